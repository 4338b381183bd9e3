"""Following a query's solutions, for WebSockets and Server-Sent Events alike."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import Enum

from pipeline.catalogue import Registration
from server.pages import Page
from server.progress import Progress
from server.service import Service


class End(Enum):
    """Why a subscription ends."""

    STOPPING = "the server stops"
    DROPPED = "the query was dropped"
    COMPLETED = "the query is completed"
    FAILED = "the query failed"


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing new for a while."""


Word = Page | Progress | Idle | End
_ENDS = {"completed": End.COMPLETED, "failed": End.FAILED}


async def follow(service: Service, registration: Registration, after: str | None, idle_s: float) -> AsyncIterator[Word]:
    """What a subscriber is to be told, in order: pages of solutions after the id `after`, progress, a sign of idleness, and an end.

    Raises: ValueError for an `after` that is no id.
    """
    pages, loop = service.pages(registration), asyncio.get_running_loop()
    last, said, said_s = after, None, -1e9
    while True:
        seen = service.generation  # this and the next three before the page is read: they hold only for what it does not have
        end = _end(service, registration)
        progress = service.progress(registration)
        page = await pages.after(last, seen)
        if page:
            last = page[-1].id
            yield page
            continue
        if end is not None:
            yield end
            return
        if progress is not None and progress != said and (progress.finished or loop.time() - said_s >= service.settings.progress_s):
            said, said_s = progress, loop.time()
            yield progress
        if not await service.news(seen, idle_s):
            yield Idle()


def _end(service: Service, registration: Registration) -> End | None:
    if service.stopping.is_set():
        return End.STOPPING
    if not service.registered(registration):
        return End.DROPPED
    return _ENDS.get(service.with_state(registration).state)
