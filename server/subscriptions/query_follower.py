"""Follows a query's solutions, for WebSockets and Server-Sent Events alike."""

import asyncio
from collections.abc import AsyncGenerator
from enum import Enum

from epsparql.deferred_methods import dataclass
from pipeline.log.catalog import Registration
from pipeline.solutions.json_encoder import Envelope
from pipeline.solutions.result_kinds import InstanceLife
from server.query_output.page_cache import Notice, Page
from server.query_output.watermark_progress import QueryProgress
from server.service import Service


class End(Enum):
    """Names the reasons for which a subscription ends."""

    STOPPING = "the server stops"
    DROPPED = "the query was dropped"
    REMOVED = "the instance was removed"
    COMPLETED = "the query is completed"
    FAILED = "the query failed"


@dataclass(frozen=True, slots=True)
class Idle:
    """Reports that nothing is new: once when everything has been sent, then each time after a while without news."""


_ASK_S = 0.02
"""Progress that cannot be told yet is asked for again after this time."""
FeedItem = Page | Notice | QueryProgress | Idle | End
_ENDS = {"completed": End.COMPLETED, "failed": End.FAILED}


async def follow_query(
    service: Service, registration: Registration, after: str | None, envelope: Envelope, life: InstanceLife | None = None
) -> AsyncGenerator[FeedItem]:
    """Yield what a subscriber is sent, in order: pages of solutions after the id `after`, notices, progress, signs of
    idleness, and an end. With a `life`, that of the instance is an end, and its old solutions have pages of their own.

    Raises: ValueError for an `after` that is no id.
    """
    with service.notifier.follow_query(registration):
        while life is not None and service.catalog.is_alive(registration, life):
            page = await asyncio.to_thread(service.output.read_own_page, registration, life, after, envelope)
            yield page
            after = page.last or None
            if page.newest:
                break
        async for item in _read_items(service, registration, after, envelope, life):
            yield item


async def _read_items(
    service: Service, registration: Registration, after: str | None, envelope: Envelope, life: InstanceLife | None
) -> AsyncGenerator[FeedItem]:
    pages, loop = service.output.get_pages(registration, envelope), asyncio.get_running_loop()
    every_s, idle_s = service.settings.progress_s, service.settings.comment_s
    last, said, caught_up = after, None, False
    told_s = loop.time()
    said_s = asked_s = told_s - every_s
    while True:
        rung = service.notifier.generation_of(registration)  # read this, `end` and `progress` before the page: they hold if nothing follows it
        end = _find_end(service, registration)
        progress, now_s = said, loop.time()
        if end is None and now_s >= max(said_s + every_s, asked_s + _ASK_S):
            progress, asked_s = service.output.get_progress(registration), now_s
        # An end and progress come with a commit, of whose solutions the event loop may not have been told yet.
        page, more = await pages.get_page_after(last, rung, anew=end is not None or progress != said)
        if life is not None and end is not End.DROPPED and not service.catalog.is_alive(registration, life):
            yield End.REMOVED  # the page may have solutions of the id's next life
            return
        if page:
            last, told_s = page.last, loop.time()
            yield page
        if more:
            await asyncio.sleep(0)  # neither cached pages nor sending into a buffer with room yield to the event loop
            continue
        if end is not None:
            yield end
            return
        if not caught_up or loop.time() >= told_s + idle_s:
            caught_up, told_s = True, loop.time()
            yield Idle()
        if progress is not None and progress != said:
            said, said_s = progress, loop.time()
            yield progress
        await service.notifier.wait_for_query(registration, rung, min(every_s, idle_s))


def _find_end(service: Service, registration: Registration) -> End | None:
    if service.lifecycle.stopping.is_set():
        return End.STOPPING
    if not service.catalog.is_current(registration):
        return End.DROPPED
    return _ENDS.get(service.catalog.with_state(registration).state)
