"""Watches how subscribers keep up, with one task for all of them."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pipeline.errors import PipelineError
from server.service import Service

_LOOK_S = 0.25
_log = logging.getLogger("epsparql.server")


@dataclass(slots=True, eq=False)
class DeliveryProgress:
    """Tracks how far one subscriber is.

    `last` is the id of the newest solution sent to it. `base` is how many solutions came before its first one, known once it has caught up with the log.

    `abort` ends its connection at once.
    """

    registered: int
    abort: Callable[[], None]
    last: str
    sent: int = 0
    base: int | None = None
    sending_since_s: float | None = None
    slow: bool = False

    def record_sent(self, count: int, last: str) -> None:
        self.sent, self.last = self.sent + count, last

    def waited_s(self, now_s: float) -> float:
        return 0.0 if self.sending_since_s is None else now_s - self.sending_since_s

    def count_behind(self, count: int) -> int:
        """Return the number of solutions not yet sent to a subscriber that had caught up. One that still reads history is never behind."""
        return 0 if self.base is None else count - self.base - self.sent


class SlowConsumerMonitor:
    """Marks subscribers that do not read as slow, and ends the connections of those that never will.

    Nothing is buffered for them but a page: what they miss is in the solution log.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._deliveries: set[DeliveryProgress] = set()

    @contextmanager
    def watch_delivery(self, delivery: DeliveryProgress) -> Iterator[DeliveryProgress]:
        self._deliveries.add(delivery)
        try:
            yield delivery
        finally:
            self._deliveries.discard(delivery)

    async def run(self) -> None:
        """Watch until cancelled."""
        settings, loop = self._service.settings, asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_LOOK_S)
            now_s = loop.time()
            waiting = [delivery for delivery in self._deliveries if delivery.waited_s(now_s) > min(settings.slow_after_s, settings.stall_s)]
            for delivery in waiting:
                if delivery.waited_s(now_s) > settings.stall_s:
                    delivery.abort()
            try:
                counts = await asyncio.to_thread(self._service.solutions.counts, {delivery.registered for delivery in waiting})
            except (OSError, PipelineError):
                _log.exception("how far subscribers are behind cannot be read")
                continue
            for delivery in waiting:
                if not delivery.slow and delivery.count_behind(counts[delivery.registered]) > settings.buffer_solutions:
                    delivery.slow = True
                    self._service.admission.connections.slow += 1
