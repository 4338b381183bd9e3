"""Tries again what a system or the server does not do now, after growing pauses."""

import random
from threading import Event

from connectors.errors import ConnectorError
from connectors.status import WAITING, StatusBoard

FIRST_S, LONGEST_S = 0.2, 30.0


class Backoff:
    """Waits after faults: each pause is twice as long as the one before, until `reset`.

    It ends at once when `stopping` is set.
    """

    def __init__(self, stopping: Event, board: StatusBoard, first_s: float = FIRST_S, longest_s: float = LONGEST_S) -> None:
        self._stopping, self._board, self._first_s, self._longest_s = stopping, board, first_s, longest_s
        self._pause_s = first_s

    def reset(self) -> None:
        self._pause_s = self._first_s

    def wait_after(self, fault: ConnectorError, state: str = WAITING) -> None:
        """Record a fault, and wait. The pause is shortened at random, so that connectors do not all come back at once."""
        self._board.record_fault(state, str(fault))
        self._stopping.wait(self._pause_s * random.uniform(0.5, 1.0))
        self._pause_s = min(self._pause_s * 2, self._longest_s)
