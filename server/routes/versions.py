"""Lists the texts that a query has had, promotes one back, and shows and withdraws a promotion."""

import asyncio
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel

from pipeline.log.catalog import Registration, Version
from server.dependencies import ADMIN, READ, Shared
from server.http.path_names import Name
from server.http.problem_details import Fault, Problem, describe_responses
from server.registrations.promotion_rules import withdraw_entry
from server.routes.queries import QueryDocument, VersionDocument, Wish, describe_version, promote_query

router = APIRouter(tags=["queries"])
_NO_QUERY = describe_responses([404])


class VersionList(BaseModel):
    """Lists the texts that a query has had, the present one last."""

    versions: list[VersionDocument]


@router.get("/queries/{name}/versions", dependencies=[READ], summary="List the texts that a query has had", responses=_NO_QUERY)
async def list_versions(name: Name, service: Shared) -> VersionList:
    return VersionList(versions=[describe_version(version) for version in service.catalog.get_query(name).promoted])


@router.post(
    "/queries/{name}/versions/{version}/promote",
    dependencies=[ADMIN],
    summary="Let an earlier text of a query take its place again",
    responses=describe_responses(
        [400, 404, 409],
        success={202: {"description": "The text reads the log, and takes over when it has caught up", "model": QueryDocument}}
    ),
)  # fmt: skip
async def promote_version(
    name: Name,
    version: Annotated[int, Path(ge=1, le=2**31)],
    request: Request,
    response: Response,
    service: Shared,
    columns: Annotated[str, Query(pattern="^(keep|change)$", description="The earlier text may have other columns only with change.")] = "keep",
) -> QueryDocument:
    known = service.catalog.get_query(name)
    found = next((each for each in known.promoted if each.number == version), None)
    if found is None:
        detail = f"{name!r} has the versions 1 to {known.promoted[-1].number}"
        raise Fault(Problem(HTTPStatus.NOT_FOUND, "unknown-version", detail, query=name))
    wish = Wish(found.text, found.policy, found.default_graph)
    return await promote_query(service, request, response, name, wish, may_change_columns=columns == "change")


@router.get("/queries/{name}/promotion", dependencies=[READ], summary="Show the last promotion of a query", responses=_NO_QUERY)
async def get_promotion(name: Name, service: Shared) -> VersionDocument:
    return describe_version(_find_promotion(service.catalog.get_query(name)))


@router.delete(
    "/queries/{name}/promotion",
    dependencies=[ADMIN],
    status_code=204,
    summary="Withdraw a promotion that has not taken over",
    responses=describe_responses([404, 409]),
)
async def delete_promotion(name: Name, service: Shared) -> None:
    async with service.catalog.changing:
        promotion = _find_promotion(service.catalog.get_query(name)).offset
        await asyncio.to_thread(service.log.append, lambda offset: withdraw_entry(service.catalog, offset, name, promotion))
    service.notifier.wake_all()


def _find_promotion(registration: Registration) -> Version:
    """Return the last promotion. Raises: Fault 404."""
    if not registration.versions:
        detail = f"no other text was to take the place of {registration.name!r}"
        raise Fault(Problem(HTTPStatus.NOT_FOUND, "no-promotion", detail, query=registration.name))
    return registration.versions[-1]
