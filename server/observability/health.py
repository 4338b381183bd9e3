"""Reports whether the server lives, and whether it is ready."""

from http import HTTPStatus

from fastapi import APIRouter, Request
from pydantic import BaseModel

from server.http.problem_details import Fault, Problem, described
from server.service import Service

router = APIRouter(tags=["operations"])


class Live(BaseModel):
    status: str


class Ready(BaseModel):
    """Shows how far the runner is; `lag` counts the log's entries that it has not committed yet."""

    status: str
    runner: str
    state: str
    head: int
    position: int
    lag: int


@router.get("/livez", summary="Tell whether the process answers")
async def livez() -> Live:
    return Live(status="ok")


@router.get("/readyz", summary="Tell whether the runner is up", responses=described(HTTPStatus.SERVICE_UNAVAILABLE))
async def readyz(request: Request) -> Ready:
    service: Service = request.app.state.service
    runner = service.runner
    damage = service.log.damage or service.scrubber.damage
    if damage:
        raise Fault(Problem(HTTPStatus.SERVICE_UNAVAILABLE, "not-ready", damage))
    if not runner.ready or service.stopping.is_set() or _taken(service):
        problem = Problem(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "not-ready",
            service.keeper.failure
            if service.keeper is not None and _taken(service)
            else f"the {service.settings.runner} runner is {_state(service)}",
            headers={"Retry-After": "1"},
        )
        raise Fault(problem)
    head, position = service.log.head(), service.solutions.position
    return Ready(status="ready", runner=service.settings.runner, state=runner.state, head=head, position=position, lag=max(head - position, 0))


def _taken(service: Service) -> bool:
    """Return whether another server has taken over this server's store."""
    return service.keeper is not None and service.keeper.taken


def _state(service: Service) -> str:
    if service.stopping.is_set():
        return "stopping with the server"
    if service.failure:
        return f"failed: {service.failure}"
    return "not started yet: its code is being compiled, which takes some minutes once per machine" if service.preparing else service.runner.state
