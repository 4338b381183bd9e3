"""Pauses and resumes queries."""

import asyncio
from typing import Literal

from fastapi import APIRouter

from server.dependencies import ADMIN, Shared
from server.http.path_names import Name
from server.http.problem_details import describe_responses
from server.registrations.catch_up_rules import conflict_fault, switch_entry
from server.routes.queries import QueryDocument, build_document
from server.service import Service

router = APIRouter(tags=["queries"])
_CHANGED = describe_responses([404, 409])


@router.post("/queries/{name}/pause", dependencies=[ADMIN], summary="Let a query read nothing until it is resumed", responses=_CHANGED)
async def pause_query(name: Name, service: Shared) -> QueryDocument:
    return await _switch_query(service, name, "paused")


@router.post("/queries/{name}/resume", dependencies=[ADMIN], summary="Let a paused query read on from where it stopped", responses=_CHANGED)
async def resume_query(name: Name, service: Shared) -> QueryDocument:
    return await _switch_query(service, name, "running")


async def _switch_query(service: Service, name: str, state: Literal["paused", "running"]) -> QueryDocument:
    async with service.catalog.changing:
        known = service.catalog.get_query(name)
        if known.state not in ("paused", "running"):
            raise conflict_fault(
                "query-ended",
                f"the query {name!r} is {known.state}: it no longer reads events; to start it again, drop it and register it again",
                name,
            )
        if known.state != state:
            await asyncio.to_thread(service.log.append, lambda offset: switch_entry(service.catalog, offset, name, state))
    service.notifier.wake_all()
    return await build_document(service, service.catalog.get_query(name), ())
