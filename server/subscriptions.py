"""Following a query's solutions, for WebSockets and Server-Sent Events alike."""

import asyncio
from collections.abc import AsyncGenerator
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
    """Nothing new: at once when all that there was has been told, then each time it has been so for a while."""


Word = Page | Progress | Idle | End
_ENDS = {"completed": End.COMPLETED, "failed": End.FAILED}


async def follow(service: Service, registration: Registration, after: str | None, idle_s: float) -> AsyncGenerator[Word]:
    """What a subscriber is to be told, in order: pages of solutions after the id `after`, progress, a sign of idleness, and an end.

    Raises: ValueError for an `after` that is no id.
    """
    pages, loop, every_s = service.pages(registration), asyncio.get_running_loop(), service.settings.progress_s
    last, said, said_s, caught_up = after, None, -every_s, False
    while True:
        seen = service.generation  # this and what follows come before the page is read: they hold if it turns out empty
        end = _end(service, registration)
        wait_s = said_s + every_s - loop.time()
        progress = service.progress(registration) if end is None and wait_s <= 0 else said
        page = await pages.after(last, seen)
        if page:
            last = page[-1].id
            yield page
            continue
        if end is not None:
            yield end
            return
        if not caught_up:
            caught_up = True
            yield Idle()
        if progress is not None and progress != said:
            said, said_s = progress, loop.time()
            yield progress
        elif not await service.news(seen, wait_s if wait_s > 0 else idle_s) and wait_s <= 0:
            yield Idle()


def _end(service: Service, registration: Registration) -> End | None:
    if service.stopping.is_set():
        return End.STOPPING
    if not service.registered(registration):
        return End.DROPPED
    return _ENDS.get(service.with_state(registration).state)
