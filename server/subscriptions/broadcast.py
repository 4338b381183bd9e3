"""Followers of a query that have been told all there was: one task reads on for all of them."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass, field

from pipeline.log.catalog import Registration
from server.push.connection_limits import SOCKET
from server.push.page_cache import Page
from server.push.watermark_progress import Progress
from server.push.websocket_protocol import Outlet, text_frame
from server.service import Service
from server.subscriptions.feed import End, Idle, follow
from server.subscriptions.slow_consumers import Pace

_PARCEL_BYTES = 32 << 10  # of half what asyncio holds for a client before it asks for a pause
_SPELL = 100  # members written to before others have their turn


@dataclass(frozen=True, slots=True)
class Parcel:
    """Frames of consecutive solutions that are written at once."""

    frames: bytes
    count: int
    last: str


def parcels(page: Page, after: str = "") -> Iterator[Parcel]:
    """The lines of a page beyond an id, in pieces of about _PARCEL_BYTES."""
    taken: list[bytes] = []
    size, last = 0, after
    for line in page:
        if line.id <= after:
            continue
        if taken and size + len(line.frame) > _PARCEL_BYTES:
            yield Parcel(b"".join(taken), len(taken), last)
            taken, size = [], 0
        taken.append(line.frame)
        size, last = size + len(line.frame), line.id
    if taken:
        yield Parcel(b"".join(taken), len(taken), last)


@dataclass(slots=True, eq=False)
class Member:
    """A subscriber. `left`, while it is of a crowd, is told why it no longer is: an end of the query, or None where it must look for itself."""

    outlet: Outlet
    pace: Pace
    said: Progress | None = None
    left: "asyncio.Future[End | None] | None" = None

    def told(self, progress: Progress, frame: bytes) -> bool:
        """False where it is behind, or gone."""
        if self.said == progress:
            return True
        self.said = progress
        return self.outlet.open and self.outlet.write(frame)

    def leave(self, why: End | None) -> None:
        if self.left is not None and not self.left.done():
            self.left.set_result(why)


@dataclass(slots=True, eq=False)
class _Crowd:
    """`last` is the id up to which all members have been told, unless they were told more: ids order solutions, so each skips what it has."""

    service: Service
    registration: Registration
    last: str
    members: set[Member] = field(default_factory=set)
    said: Progress | None = None
    task: "asyncio.Task[None] | None" = None

    def enter(self, member: Member) -> None:
        """A `member` that was told less, by a reading from before the crowd's last, brings the crowd back to where the last of all stands.

        That may be another one: a page may be half handed out. What was said of progress there is not yet true of where it goes back to.
        """
        self.members.add(member)
        if self.task is None or self.task.done() or member.pace.last < self.last:
            self.stop()
            self.last, self.said = min(each.pace.last for each in self.members), None
            self.task = asyncio.create_task(self._run())
        elif self.said is not None and not member.told(self.said, text_frame(json.dumps(self.said.document()))):
            self._let_go(member, None)

    def _let_go(self, member: Member, why: End | None) -> None:
        """At once, and not when its own task has its turn: the next page may come before, and begins beyond what it was told."""
        self.members.discard(member)
        member.leave(why)

    def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()

    async def _run(self) -> None:
        try:
            async with aclosing(follow(self.service, self.registration, self.last or None, self.service.settings.comment_s)) as words:
                async for word in words:
                    match word:
                        case Progress():
                            self._say(word)
                        case Idle():
                            pass
                        case End():
                            for member in tuple(self.members):
                                self._let_go(member, word)
                            return
                        case page:
                            await self._hand_out(page)
                            await asyncio.sleep(0)  # pages at hand do not yield, and nobody's buffer empties meanwhile
        except Exception as fault:  # noqa: BLE001 - each member's own connection tells of it
            for member in self.members:
                if member.left is not None and not member.left.done():
                    member.left.set_exception(fault)

    def _say(self, progress: Progress) -> None:
        self.said = progress
        frame = text_frame(json.dumps(progress.document()))
        for member in tuple(self.members):
            if not member.told(progress, frame):
                self._let_go(member, None)

    async def _hand_out(self, page: Page) -> None:
        first, self.last, shared = page[0].id, page[-1].id, tuple(parcels(page))
        for number, member in enumerate(tuple(self.members), 1):
            if member in self.members:
                pace = member.pace
                if not self._give(member, shared if pace.last < first else tuple(parcels(page, pace.last))):
                    self._let_go(member, None)
            if number % _SPELL == 0:
                await asyncio.sleep(0)

    def _give(self, member: Member, found: tuple[Parcel, ...]) -> bool:
        """False where it does not take more at once, or is gone: then the rest is for it to read."""
        outlet, pace, sent = member.outlet, member.pace, self.service.seats.sent
        if not outlet.open:
            return False
        for parcel in found:
            pace.tell(parcel.count, parcel.last)
            sent[SOCKET] += parcel.count
            if not outlet.write(parcel.frames):
                return False
        return True


class Crowds:
    """By registration, for as long as they have members. On the event loop only."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._crowds: dict[int, _Crowd] = {}

    async def ride(self, registration: Registration, member: Member) -> End | None:
        """Be told what is new together with others. Returns an end of the query, or None where the member is behind, or its connection lost.

        To be called when there was nothing beyond what `member` has been told. Raises: what reading raises.
        """
        number = registration.registered
        crowd = self._crowds.setdefault(number, _Crowd(self._service, registration, member.pace.last))
        member.left = asyncio.get_running_loop().create_future()
        member.outlet.gone = lambda: member.leave(None)
        try:
            crowd.enter(member)
            return await member.left if member.outlet.open else None
        finally:
            member.left = member.outlet.gone = None
            crowd.members.discard(member)
            if not crowd.members and self._crowds.get(number) is crowd:
                crowd.stop()
                del self._crowds[number]
