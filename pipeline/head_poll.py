"""This module waits for a position that another process publishes in a file. It looks often, and less often after a silence."""

import time
from collections.abc import Callable

_POLL_S, _SILENT_POLL_S, _SILENCE_S = 0.002, 0.01, 1.0
"""A look every 2 ms costs a hundredth of a core for each process that waits."""


class HeadPoll:
    """Waits for one log."""

    def __init__(self) -> None:
        self._news_s = time.monotonic()

    def wait(self, head: Callable[[], int], position: int, timeout: float) -> int:
        """Return the head, as soon as it is beyond `position` or `timeout` seconds have passed."""
        deadline = time.monotonic() + timeout
        while (reached := head()) <= position and (left := deadline - (now := time.monotonic())) > 0:
            time.sleep(min(_SILENT_POLL_S if now - self._news_s > _SILENCE_S else _POLL_S, left))
        if reached > position:
            self._news_s = time.monotonic()
        return reached
