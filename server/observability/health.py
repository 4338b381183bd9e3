"""Reports whether the server lives, and whether it is ready."""

from http import HTTPStatus

from fastapi import APIRouter, Request
from pydantic import BaseModel

from pipeline.log.lag import count_waiting
from server.http.problem_details import Fault, Problem, describe_responses
from server.service import Service

router = APIRouter(tags=["operations"])


class Live(BaseModel):
    status: str


class Standbys(BaseModel):
    """Counts the servers that stand by for this one: those that load their code, and those that have loaded it."""

    loading: int
    loaded: int


class Ready(BaseModel):
    """Shows how far the runner is; `lag` counts the log's entries that it has not committed yet.

    `held` counts the streams of which more than half of `max_waiting` events wait for a declared source. `standbys`
    is null without `takeover_s`.
    """

    status: str
    runner: str
    state: str
    head: int
    position: int
    lag: int
    held: int
    standbys: Standbys | None
    version: str


@router.get("/livez", summary="Tell whether the process answers")
async def livez() -> Live:
    return Live(status="ok")


@router.get("/readyz", summary="Tell whether the runner is up", responses=describe_responses([503]))
async def readyz(request: Request) -> Ready:
    service: Service = request.app.state.service
    lifecycle, kind = service.lifecycle, service.settings.runner
    damage = service.log.damage or lifecycle.scrubber.damage
    if damage:
        raise Fault(Problem(HTTPStatus.SERVICE_UNAVAILABLE, "not-ready", damage))
    if not lifecycle.runner.ready or lifecycle.stopping.is_set() or lifecycle.store_lost:
        why = lifecycle.store_lost or f"the {kind} runner is {lifecycle.describe_state()}"
        raise Fault(Problem(HTTPStatus.SERVICE_UNAVAILABLE, "not-ready", why, headers={"Retry-After": "1"}))
    head, position = service.log.head(), service.solutions.position
    most = service.settings.max_waiting
    held = sum(0 < most < 2 * count_waiting(stream.waiting) for stream in list(service.log.catalogue.streams.values()))
    return Ready(
        status="ready",
        runner=kind,
        state=lifecycle.runner.state,
        head=head,
        position=position,
        lag=max(head - position, 0),
        held=held,
        standbys=None if lifecycle.standbys is None else Standbys(**lifecycle.standbys),
        version=request.app.version,
    )
