"""This module sees whether a server takes in events, so that work over its past leaves it all cores but one meanwhile."""

import time
from collections.abc import Callable
from pathlib import Path

from pipeline.log import LogReader

_LOOK_S = 0.25
_QUIET_S = 2.0
"""After so long without an event a server counts as idle."""


class LiveWork:
    """Tells on how many threads work over the past may go on beside a server. Not thread-safe."""

    def __init__(self, data: Path, threads: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Watch the log of a data directory; `threads` is how many there are for an idle server."""
        self._reader, self._threads, self._clock = LogReader(data), threads, clock
        self._position = self._reader.head()
        self._looked_s = clock()
        self._busy_s = self._looked_s - _QUIET_S

    def count_threads(self) -> int:
        """Return one while events come, and all otherwise."""
        now_s = self._clock()
        if now_s - self._looked_s >= _LOOK_S:
            self._looked_s, head = now_s, self._reader.head()
            if self._reader.rows(self._position, head):
                self._busy_s = now_s
            self._position = head
        return 1 if now_s - self._busy_s < _QUIET_S else self._threads
