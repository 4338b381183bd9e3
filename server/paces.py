"""How subscribers keep up, and who looks after it: one task for all of them."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from server.service import Service

_LOOK_S = 0.25


@dataclass(slots=True, eq=False)
class Pace:
    """Of one subscriber. `base` is the rank of its first solution, known once it has caught up with the log."""

    registered: int
    sent: int = 0
    last: str = ""
    base: int | None = None
    sending_since_s: float | None = None
    slow: bool = False
    stalled: asyncio.Event = field(default_factory=asyncio.Event)

    def waited_s(self, now_s: float) -> float:
        return 0.0 if self.sending_since_s is None else now_s - self.sending_since_s

    def behind(self, count: int) -> int:
        """Solutions not yet sent to one that had caught up; one that still reads history is as far behind as it likes."""
        return 0 if self.base is None else count - self.base - self.sent


class Watch:
    """Marks subscribers that do not read as slow, and those that never will as stalled.

    Nothing is buffered for them but a page: what they miss is in the solution log.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._paces: set[Pace] = set()

    @contextmanager
    def over(self, registered: int) -> Iterator[Pace]:
        pace = Pace(registered)
        self._paces.add(pace)
        try:
            yield pace
        finally:
            self._paces.discard(pace)

    async def run(self) -> None:
        """Until cancelled."""
        settings, loop = self._service.settings, asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_LOOK_S)
            now_s = loop.time()
            waiting = [pace for pace in self._paces if pace.waited_s(now_s) > min(settings.slow_after_s, settings.stall_s)]
            counts = await asyncio.to_thread(self._service.solutions.counts, {pace.registered for pace in waiting})
            for pace in waiting:
                if pace.waited_s(now_s) > settings.stall_s:
                    pace.stalled.set()
                elif not pace.slow and pace.behind(counts[pace.registered]) > settings.buffer_solutions:
                    pace.slow = True
                    self._service.seats.slow += 1
