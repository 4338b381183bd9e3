"""Watches how subscribers keep up, with one task for all of them."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.errors import PipelineError
from server.service import Service
from server.subscriptions.delivery_progress import DeliveryProgress

_LOOK_S = 0.25
_log = logging.getLogger("epsparql.server")


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
