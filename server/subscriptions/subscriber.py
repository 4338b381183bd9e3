"""Serves one subscriber: it reads by itself until it has caught up, and then joins the query's broadcast."""

import asyncio
from contextlib import aclosing

from epsparql.deferred_methods import dataclass
from pipeline.log.catalog import Registration
from server.http.connection_limits import SOCKET
from server.query_output.page_cache import Notice, Page
from server.query_output.watermark_progress import QueryProgress
from server.service import Service
from server.subscriptions import broadcast
from server.subscriptions.broadcast import BroadcastMember, Broadcasts, batch_frames, encode_message
from server.subscriptions.query_follower import End, Idle, follow_query

NORMAL, BAD_REQUEST, FAILED, RESTART, UNKNOWN, TOO_SLOW = 1000, 1008, 1011, 1012, 4004, 4008
_CLOSE_OF_END = {End.STOPPING: RESTART, End.DROPPED: UNKNOWN, End.REMOVED: UNKNOWN, End.COMPLETED: NORMAL, End.FAILED: FAILED}
Closing = tuple[int, str]
"""The pair holds the code and the reason with which a subscription is closed."""


@dataclass(frozen=True, slots=True)
class Subscriber:
    """Serves one subscription.

    If `drops` is set, a slow subscriber loses the oldest solutions, rather than the connection.
    """

    service: Service
    registration: Registration
    broadcasts: Broadcasts
    member: BroadcastMember
    drops: bool

    async def run(self) -> Closing:
        """Run until the subscription ends.

        Raises: WebSocketDisconnect; ValueError and Gone for a place that cannot be read on from.
        """
        while True:
            closing = await self._follow_alone()
            if closing is not None:
                return closing
            end = await self.broadcasts.join_query(self.registration, self.member)
            if end is not None:
                return _CLOSE_OF_END[end], end.value
            closing = await self._wait_for_room()
            if closing is not None:
                return closing

    async def _follow_alone(self) -> Closing | None:
        """Follow the query until everything has been sent.

        Returns a closing if the query ends, or the subscriber turns out too slow.
        """
        service, delivery = self.service, self.member.delivery
        while True:
            async with aclosing(follow_query(service, self.registration, delivery.last or None, self.member.envelope, self.member.life)) as items:
                async for item in items:
                    match item:
                        case Idle():
                            await self._note_base()
                            if broadcast.ENABLED:
                                return None
                        case QueryProgress():
                            self.member.send_progress(item, encode_message(item.document()))
                        case End():
                            return _CLOSE_OF_END[item], item.value
                        case page:
                            closing = await self._send_page(page)
                            if closing is not None:
                                return closing
                            if delivery.last != page.last:
                                break  # there was a gap, and it reads on from the gap's end

    async def _note_base(self) -> None:
        """Record how many solutions came before the first one sent, once the subscriber has caught up with the log."""
        delivery = self.member.delivery
        if delivery.base is None and self.member.life is None:  # solutions of other instances put no subscriber behind
            rank = await asyncio.to_thread(self.service.solutions.rank, self.registration.registered, delivery.last or None)
            delivery.base = rank - delivery.sent

    async def _send_page(self, page: Page | Notice) -> Closing | None:
        member, delivery = self.member, self.member.delivery
        await member.writer.wait_for_room()
        for batch in batch_frames(page, member.envelope, life=member.life):
            delivery.record_sent(batch.count, batch.last)
            self.service.admission.connections.sent[SOCKET] += batch.count if batch.frames else 0
            if batch.frames and not member.writer.write_frames(batch.frames):
                last = delivery.last
                slow = await self._wait_for_room()
                if slow is not None or delivery.last != last:
                    return slow
        return None

    async def _wait_for_room(self) -> Closing | None:
        """Wait until the subscriber takes more. One that was found slow meanwhile continues after a gap, or is closed."""
        delivery = self.member.delivery
        delivery.sending_since_s = asyncio.get_running_loop().time()
        await self.member.writer.wait_for_room()
        delivery.sending_since_s = None
        if delivery.slow:
            if not self.drops:
                return TOO_SLOW, delivery.last
            await self._skip_oldest()
        return None

    async def _skip_oldest(self) -> None:
        """Leave out all but what the buffer holds, and report the gap."""
        delivery, kept = self.member.delivery, self.service.settings.buffer_solutions
        assert delivery.base is not None, "who has not caught up is not slow"
        resume, rank = await asyncio.to_thread(self.service.solutions.before_last, self.registration.registered, kept)
        missed = rank - delivery.base - delivery.sent
        delivery.slow = False
        if resume is None or missed <= 0:
            return
        gap: dict[str, object] = {"gap": {"after": delivery.last, "resume": resume, "missed": missed}}
        delivery.record_sent(missed, resume)
        if self.member.writer.open:
            self.member.writer.write_frames(encode_message(gap))
