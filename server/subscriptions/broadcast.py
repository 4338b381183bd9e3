"""Broadcasts solutions: one task per query serves all followers that have received everything so far."""

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

_PARCEL_BYTES = 32 << 10  # half of what asyncio buffers for a client before it asks for a pause
_SPELL = 100  # members written to before others have their turn


@dataclass(frozen=True, slots=True)
class Parcel:
    """Holds frames of consecutive solutions that are written at once."""

    frames: bytes
    count: int
    last: str


def parcels(page: Page, after: str = "") -> Iterator[Parcel]:
    """Yield the lines of a page beyond an id, in pieces of about _PARCEL_BYTES."""
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
    """Represents a subscriber in a broadcast.

    `left` is set when the subscriber leaves the broadcast: to an end of the query, or to None where it must look for itself.
    """

    outlet: Outlet
    pace: Pace
    said: Progress | None = None
    left: "asyncio.Future[End | None] | None" = None

    def told(self, progress: Progress, frame: bytes) -> bool:
        """Send progress, unless it was sent before. Returns False where the subscriber is behind, or gone."""
        if self.said == progress:
            return True
        self.said = progress
        return self.outlet.open and self.outlet.write(frame)

    def leave(self, why: End | None) -> None:
        if self.left is not None and not self.left.done():
            self.left.set_result(why)


@dataclass(slots=True, eq=False)
class _Crowd:
    """Broadcasts one query's solutions to its members.

    All members have received solutions up to the id `last`, some perhaps more. Ids order solutions, so each member skips what it has.
    """

    service: Service
    registration: Registration
    last: str
    members: set[Member] = field(default_factory=set)
    said: Progress | None = None
    task: "asyncio.Task[None] | None" = None

    def enter(self, member: Member) -> None:
        """Add a member.

        A `member` that read before the crowd's last page has received less. It brings the crowd back to the id of the member that has received least.
        That may be another one, because a page may be half handed out. The crowd's last progress is not yet true of that id.
        """
        self.members.add(member)
        if self.task is None or self.task.done() or member.pace.last < self.last:
            self.stop()
            self.last, self.said = min(each.pace.last for each in self.members), None
            self.task = asyncio.create_task(self._run())
        elif self.said is not None and not member.told(self.said, text_frame(json.dumps(self.said.document()))):
            self._let_go(member, None)

    def _let_go(self, member: Member, why: End | None) -> None:
        """Remove a member at once, and not when its own task has its turn.

        The next page may come before that, and it begins beyond what the member has received.
        """
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
                            await asyncio.sleep(0)  # cached pages do not yield to the event loop, so no buffer would empty meanwhile
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
        """Write parcels to a member. Returns False where it takes no more at once, or is gone; then it reads the rest itself."""
        outlet, pace, sent = member.outlet, member.pace, self.service.admission.connections.sent
        if not outlet.open:
            return False
        for parcel in found:
            pace.tell(parcel.count, parcel.last)
            sent[SOCKET] += parcel.count
            if not outlet.write(parcel.frames):
                return False
        return True


class Crowds:
    """Holds the broadcasts by registration, for as long as they have members. Runs on the event loop only."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._crowds: dict[int, _Crowd] = {}

    async def ride(self, registration: Registration, member: Member) -> End | None:
        """Receive new solutions by broadcast, once `member` has received all there was.

        Returns an end of the query, or None where the member is behind, or its connection lost.

        Raises: what reading raises.
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
