"""Broadcasts solutions: one task per query serves all followers that have received everything so far."""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import field

import msgspec
from numpy import searchsorted

from epsparql.deferred_methods import dataclass
from pipeline.log.catalog import Registration
from pipeline.solutions.json_encoder import Envelope
from pipeline.solutions.result_kinds import InstanceLife
from pipeline.solutions.websocket_frames import encode_text_frame
from server.http.connection_limits import SOCKET
from server.query_output.page_cache import Notice, Page
from server.query_output.watermark_progress import QueryProgress
from server.query_output.websocket_protocol import WebSocketWriter
from server.service import Service
from server.subscriptions.delivery_progress import DeliveryProgress
from server.subscriptions.query_follower import End, Idle, follow_query

ENABLED = True
"""Tests and measurements turn the broadcast off: each WebSocket then follows by itself, as event streams and webhooks
do.
"""
_BATCH_BYTES = 32 << 10  # half of what asyncio buffers for a client before it asks for a pause
_SPELL = 100  # members written to before others have their turn


@dataclass(frozen=True, slots=True)
class FrameBatch:
    """Holds frames that are written at once: those of `count` consecutive solutions, or that of a notice."""

    frames: bytes | memoryview
    count: int
    last: str


def batch_frames(page: Page | Notice, envelope: Envelope, after: str = "", life: InstanceLife | None = None) -> Iterator[FrameBatch]:
    """Yield the solutions of a page beyond an id, in batches of about _BATCH_BYTES. Messages without frames of their
    own share one a batch.

    A notice is a batch of its own, and so are the solutions of an instance, though all count that the batch passes.
    """
    if isinstance(page, Notice):
        if page.id > after:
            yield FrameBatch(encode_text_frame(f'{{"promoted":{page.text}}}'.encode()), 0, page.id)
        return
    text, ends, begin = memoryview(page.written.text), page.written.ends, page.find_after(after)
    if life is not None:
        if page.last > after:
            own = page.join_texts(life, begin)
            yield FrameBatch(own if envelope == Envelope.FRAME or not own else encode_text_frame(own), len(page) - begin, page.last)
        return
    while begin < len(page):
        start = int(ends[begin - 1]) if begin else 0
        stop = max(int(searchsorted(ends, start + _BATCH_BYTES, side="right")), begin + 1)
        taken = text[start : int(ends[stop - 1])]
        yield FrameBatch(taken if envelope == Envelope.FRAME else encode_text_frame(taken), stop - begin, page.id_at(stop - 1))
        begin = stop


def encode_message(message: dict[str, object] | msgspec.Struct) -> bytes:
    """Return a message beside the solutions as a frame."""
    return encode_text_frame(msgspec.json.encode(message))


@dataclass(slots=True, eq=False)
class BroadcastMember:
    """Represents a subscriber in a broadcast, of all solutions or those of one instance's `life`. `envelope` says whether each
    solution comes in a frame of its own.

    `left` is set when the subscriber leaves the broadcast: to an end of the query, or to None where it must look for
    itself.
    """

    writer: WebSocketWriter
    delivery: DeliveryProgress
    envelope: Envelope = Envelope.FRAME
    life: InstanceLife | None = None
    said: QueryProgress | None = None
    left: "asyncio.Future[End | None] | None" = None

    def send_progress(self, progress: QueryProgress, frame: bytes) -> bool:
        """Send progress, unless it was sent before. Returns False where the subscriber is behind, or gone."""
        if self.said == progress:
            return True
        self.said = progress
        return self.writer.open and self.writer.write_frames(frame)

    def leave(self, why: End | None) -> None:
        if self.left is not None and not self.left.done():
            self.left.set_result(why)


@dataclass(slots=True, eq=False)
class _Broadcast:
    """Broadcasts one query's solutions to those of its members that take them in the same envelope.

    All members have received solutions up to the id `last`, some perhaps more. Ids order solutions, so each member
    skips what it has. Members that follow an instance (`routed`) are found by it, so a page costs nothing for the
    others: up to the id `passed` they have all, whatever their own `last`.
    """

    service: Service
    registration: Registration
    envelope: Envelope
    last: str
    members: set[BroadcastMember] = field(default_factory=set)
    whole: set[BroadcastMember] = field(default_factory=set)
    routed: dict[str, set[BroadcastMember]] = field(default_factory=dict)
    passed: str = ""
    said: QueryProgress | None = None
    task: "asyncio.Task[None] | None" = None

    def add_member(self, member: BroadcastMember) -> None:
        """Add a member.

        A `member` that read before the broadcast's last page has received less. It brings the broadcast back to the
        id of the member that has received least. That may be another one, because a page may be half handed out. The
        broadcast's last progress is not yet true of that id.
        """
        self.members.add(member)
        following = self.whole if member.life is None else self.routed.setdefault(member.life.instance, set())
        following.add(member)
        if self.task is None or self.task.done() or member.delivery.last < self.last:
            self.stop()
            self.last, self.said = min(self._find_last(each, member) for each in self.members), None
            self.passed = self.last
            self.task = asyncio.create_task(self._run())
        elif self.said is not None and not member.send_progress(self.said, encode_message(self.said.document())):
            self._release(member, None)

    def _find_last(self, member: BroadcastMember, new: BroadcastMember) -> str:
        """Return the id up to which a member has all that is for it; nothing has passed by a new one."""
        return member.delivery.last if member.life is None or member is new else max(member.delivery.last, self.passed)

    def remove_member(self, member: BroadcastMember) -> None:
        """Remove a member; it may go on alone, from its last id."""
        if member not in self.members:
            return
        self.members.discard(member)
        self.whole.discard(member)
        if member.life is not None:
            member.delivery.last = max(member.delivery.last, self.passed)
            following = self.routed[member.life.instance]
            following.discard(member)
            if not following:
                del self.routed[member.life.instance]

    def _release(self, member: BroadcastMember, why: End | None) -> None:
        """Remove a member at once, and not when its own task has its turn.

        The next page may come before that, and it begins beyond what the member has received.
        """
        self.remove_member(member)
        member.leave(why)

    def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()

    async def _run(self) -> None:
        try:
            async with aclosing(follow_query(self.service, self.registration, self.last or None, self.envelope)) as items:
                async for item in items:
                    match item:
                        case QueryProgress():
                            self._send_progress(item)
                        case Idle():
                            pass
                        case End():
                            for member in tuple(self.members):
                                self._release(member, item)
                            return
                        case page:
                            await self._send_page(page)
        except Exception as fault:  # noqa: BLE001 - each member's own connection tells of it
            for member in self.members:
                if member.left is not None and not member.left.done():
                    member.left.set_exception(fault)

    def _send_progress(self, progress: QueryProgress) -> None:
        self.said = progress
        frame = encode_message(progress.document())
        for member in tuple(self.members):
            if not self._is_alive(member):
                self._release(member, End.REMOVED)
            elif not member.send_progress(progress, frame):
                self._release(member, None)

    async def _send_page(self, page: Page | Notice) -> None:
        self.last, shared = page.last, tuple(batch_frames(page, self.envelope)) if self.whole else ()
        routes = () if isinstance(page, Notice) else page.routes
        own = [member for instance in routes for member in self.routed.get(instance, ())]
        for number, member in enumerate([*self.whole, *own], 1):
            if member in self.members:
                self._hand_page(member, page, shared)
            if number % _SPELL == 0:
                await asyncio.sleep(0)
        self.passed = page.last

    def _hand_page(self, member: BroadcastMember, page: Page | Notice, shared: tuple[FrameBatch, ...]) -> None:
        """Send a page to a member, or what it does not have of it; `shared` is all of it."""
        last, life = member.delivery.last, member.life
        if not self._is_alive(member):
            self._release(member, End.REMOVED)
            return
        is_shared = last < page.first and life is None
        if not self._write_batches(member, shared if is_shared else tuple(batch_frames(page, self.envelope, last, life))):
            self._release(member, None)

    def _is_alive(self, member: BroadcastMember) -> bool:
        return member.life is None or self.service.catalog.is_alive(self.registration, member.life)

    def _write_batches(self, member: BroadcastMember, batches: tuple[FrameBatch, ...]) -> bool:
        """Write batches to a member.

        Returns False where it takes no more at once, or is gone; then it reads the rest itself.
        """
        writer, delivery, sent = member.writer, member.delivery, self.service.admission.connections.sent
        if not writer.open:
            return False
        for batch in batches:
            delivery.record_sent(batch.count, batch.last)
            if batch.frames:
                sent[SOCKET] += batch.count
                if not writer.write_frames(batch.frames):
                    return False
        return True


class Broadcasts:
    """Holds the broadcasts by registration and envelope, for as long as they have members. Runs on the event loop only."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._broadcasts: dict[tuple[int, Envelope], _Broadcast] = {}

    async def join_query(self, registration: Registration, member: BroadcastMember) -> End | None:
        """Receive new solutions by broadcast, once `member` has received all there was.

        Returns an end of the query, or None where the member is behind, or its connection lost.

        Raises: what reading raises.
        """
        key = registration.registered, member.envelope
        broadcast = self._broadcasts.setdefault(key, _Broadcast(self._service, registration, member.envelope, member.delivery.last))
        member.left = asyncio.get_running_loop().create_future()
        member.writer.on_lost = lambda: member.leave(None)
        try:
            broadcast.add_member(member)
            return await member.left if member.writer.open else None
        finally:
            member.left = member.writer.on_lost = None
            broadcast.remove_member(member)
            if not broadcast.members and self._broadcasts.get(key) is broadcast:
                broadcast.stop()
                del self._broadcasts[key]
