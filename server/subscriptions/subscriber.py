"""Serves one subscriber: it reads by itself until it has caught up, and then joins the query's broadcast."""

import asyncio
import json
from dataclasses import dataclass

from pipeline.log.catalog import Registration
from server.push.connection_limits import SOCKET
from server.push.page_cache import Page
from server.push.websocket_protocol import text_frame
from server.service import Service
from server.subscriptions.broadcast import Crowds, Member, parcels
from server.subscriptions.feed import End

NORMAL, BAD_REQUEST, FAILED, RESTART, UNKNOWN, TOO_SLOW = 1000, 1008, 1011, 1012, 4004, 4008
_CLOSE_OF_END = {End.STOPPING: RESTART, End.DROPPED: UNKNOWN, End.COMPLETED: NORMAL, End.FAILED: FAILED}
Closing = tuple[int, str]
"""The pair holds the code and the reason with which a subscription is closed."""


@dataclass(frozen=True, slots=True)
class Subscriber:
    """Serves one subscription. If `drops` is set, a slow subscriber loses the oldest solutions, rather than the connection."""

    service: Service
    registration: Registration
    crowds: Crowds
    member: Member
    drops: bool

    async def run(self) -> Closing:
        """Run until the subscription ends.

        Raises: WebSocketDisconnect; ValueError and Gone for a place that cannot be read on from.
        """
        while True:
            slow = await self._catch_up()
            if slow is not None:
                return slow
            end = await self.crowds.ride(self.registration, self.member)
            if end is not None:
                return _CLOSE_OF_END[end], end.value
            slow = await self._room()
            if slow is not None:
                return slow

    async def _catch_up(self) -> Closing | None:
        """Send solutions until there is nothing more to read, or the subscriber has turned out too slow."""
        service, pace = self.service, self.member.pace
        pages = service.output.get_pages(self.registration)
        while page := await pages.after(pace.last or None, service.notifier.generation_of(self.registration)):
            slow = await self._send(page)
            if slow is not None:
                return slow
            await asyncio.sleep(0)  # sending into a buffer with room does not yield to the event loop
        if pace.base is None:
            pace.base = await asyncio.to_thread(service.solutions.rank, self.registration.registered, pace.last or None) - pace.sent
        return None

    async def _send(self, page: Page) -> Closing | None:
        member, pace = self.member, self.member.pace
        await member.outlet.room()
        for parcel in parcels(page):
            pace.tell(parcel.count, parcel.last)
            self.service.admission.connections.sent[SOCKET] += parcel.count
            if not member.outlet.write(parcel.frames):
                last = pace.last
                slow = await self._room()
                if slow is not None or pace.last != last:
                    return slow
        return None

    async def _room(self) -> Closing | None:
        """Wait until the subscriber takes more. One that was found slow meanwhile continues after a gap, or is closed."""
        pace = self.member.pace
        pace.sending_since_s = asyncio.get_running_loop().time()
        await self.member.outlet.room()
        pace.sending_since_s = None
        if pace.slow:
            if not self.drops:
                return TOO_SLOW, pace.last
            await self._skip()
        return None

    async def _skip(self) -> None:
        """Leave out all but what the buffer holds, and report the gap."""
        pace, kept = self.member.pace, self.service.settings.buffer_solutions
        assert pace.base is not None, "who has not caught up is not slow"
        resume, rank = await asyncio.to_thread(self.service.solutions.before_last, self.registration.registered, kept)
        missed = rank - pace.base - pace.sent
        pace.slow = False
        if resume is None or missed <= 0:
            return
        gap = {"gap": {"after": pace.last, "resume": resume, "missed": missed}}
        pace.tell(missed, resume)
        if self.member.outlet.open:
            self.member.outlet.write(text_frame(json.dumps(gap)))
