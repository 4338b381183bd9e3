"""Follows a stream's events as they arrive, as Server-Sent Events. What a reader is behind by stays in the log."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from epsparql.deferred_methods import dataclass
from pipeline.inspection.recent_rows import RecentRows
from pipeline.inspection.tail_reader import TailPage
from pipeline.log.catalog import Stream
from server.http.connection_limits import EVENT_STREAM
from server.http.event_streams import IDLE, RETRY
from server.inspection.event_lines import EventId, write_events
from server.service import Service

STOPPING, DELETED, FINISHED = "the server stops", "the stream was deleted", "the stream is finished"
_LOOK_S = 1.0
"""A commit of the runner tells of new events.

Without one, as while the runner is down, the log is looked at this often.
"""
_BATCH = 500


@dataclass(frozen=True, slots=True)
class TailStart:
    """Says where a tail begins: with these pieces, the oldest first, and then with what stands in the log from
    `position` on.
    """

    pieces: Sequence[RecentRows]
    position: int


async def start_tail(service: Service, stream: Stream, last: int, after: EventId | None) -> TailStart:
    """Return where a tail begins: after an event, or with the last ones.

    Raises: Gone; ValueError for an event that the log does not have yet.
    """
    head = service.log.head()
    if after is None:
        look = await service.inspector.read_last(stream, last, head) if stream.accepted and last else None
        return TailStart(() if look is None else look.pieces[::-1], head)
    if after.offset - 1 > head:
        raise ValueError(f"the log ends at position {head}, before the event {after}; give an id that this server has sent, or none")
    found = await service.inspector.read_after(stream, after.offset - 1)
    return TailStart(_cut_read(found, after), found.position)


def _cut_read(found: TailPage, after: EventId) -> list[RecentRows]:
    """Return the pieces without the events up to `after`, which the reader has."""
    return [piece.cut(min(after.number, piece.rows.num_rows)) if piece.offset + 1 == after.offset else piece for piece in found.pieces]


async def stream_tail(service: Service, stream: Stream, start: TailStart) -> AsyncIterator[str]:
    """Yield the texts of an event stream: events, comments while nothing comes, and a comment that says why it ends.

    Raises: Fault 429.
    """
    loop, comment_s = asyncio.get_running_loop(), service.settings.comment_s
    yield RETRY
    with service.admission.connections.count_follower(EVENT_STREAM, stream.name):
        tail, told_s = TailPage(tuple(start.pieces), start.position), loop.time() - comment_s
        known = service.log.catalogue.streams.get(stream.name)  # None before its first event
        while True:
            for piece in tail.pieces:
                for begin in range(0, piece.rows.num_rows, _BATCH):
                    yield await asyncio.to_thread(_write_batch, piece.cut(begin, min(begin + _BATCH, piece.rows.num_rows)))
                told_s = loop.time()
            seen, now = service.notifier.generation, service.log.catalogue.streams.get(stream.name)  # before the log, lest something come in between
            end, known, position = _find_end(service, known, now), known or now, tail.position
            tail = await service.inspector.read_after(stream, position)
            if tail.position > position:
                continue
            if end:
                yield f": {end}\n\n"
                return
            if loop.time() >= told_s + comment_s:
                told_s = loop.time()
                # a reader of a silent stream comes back to this place, and to no older one
                yield f"{IDLE.strip()}\nid: {EventId(position + 1, 0)}\n\n"
            await service.notifier.wait_for_news(seen, min(_LOOK_S, comment_s))


def _write_batch(piece: RecentRows) -> str:
    return "".join(f"id: {event.id}\ndata: {event.text}\n\n" for event in write_events(piece))


def _find_end(service: Service, known: Stream | None, now: Stream | None) -> str:
    """Return why the tail ends after what is in the log now, if it does; `known` is the stream as this tail knew it
    before.
    """
    if service.lifecycle.stopping.is_set():
        return STOPPING
    if known is not None and (now is None or now.created != known.created):
        return DELETED
    return FINISHED if now is not None and now.finished else ""
