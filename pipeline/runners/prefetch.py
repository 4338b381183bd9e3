"""This module runs an engine, or the merging of several engines, on a thread of its own, ahead of the reader who
takes the pieces.
"""

from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from threading import Condition
from typing import Protocol

from pipeline.runners.host_messages import Advance

PIECE_BYTES = 32 << 20
"""Beyond this many bytes of solutions no further piece waits."""


class RangeReader(Protocol):
    """Goes through a range of the log and brings its pieces."""

    def run(self, lo: int, hi: int, max_rows: int) -> Generator[Advance, None, None]: ...


class Halted(Exception):
    """There is nothing to take, and there will be nothing."""


class Prefetch:
    """Goes through range after range, as they are asked for."""

    def __init__(self, host: RangeReader, pieces: int) -> None:
        """Start the thread; at most `pieces` pieces wait to be taken."""
        self._host, self._most = host, pieces
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="partition")
        self._changed = Condition()
        self._ranges = 0  # so many are still to be gone through
        self._pieces: deque[Advance] = deque()
        self._fault: Exception | None = None
        self._over = False

    def go(self, lo: int, hi: int, max_rows: int) -> None:
        """Go through [lo, hi), after the ranges that were asked for before."""
        with self._changed:
            self._ranges += 1
        self._thread.submit(self._bring, lo, hi, max_rows)

    def take_piece(self) -> Advance:
        """Return the next piece, as soon as it is there. Raises: whatever the engine raised; Halted."""
        with self._changed:
            self._changed.wait_for(lambda: self._pieces or not self._ranges)
            if not self._pieces:
                raise self._fault or Halted
            piece = self._pieces.popleft()
            self._changed.notify_all()
        return piece

    def finish(self) -> None:
        """Wait until the engine is through; all its pieces must have been taken. Raises: whatever the engine raised."""
        with self._changed:
            self._changed.wait_for(lambda: not self._ranges)
            if self._fault is not None:
                raise self._fault

    def halt(self) -> None:
        """Bring no piece after the one at work; `stop` waits for that."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def stop(self) -> None:
        """End after the piece at work.

        The engine is ahead of what was taken by all pieces that wait, and these are lost.
        """
        self.halt()
        with self._changed:
            self._changed.wait_for(lambda: not self._ranges)
            self._pieces.clear()
            self._fault, self._over = None, False

    def soon(self, work: Callable[[], None]) -> Future[None]:
        """Do some work on the same thread."""
        return self._thread.submit(work)

    def close(self) -> None:
        self.stop()
        self._thread.shutdown()

    def _bring(self, lo: int, hi: int, max_rows: int) -> None:
        try:
            if not self._over and self._fault is None:
                with closing(self._host.run(lo, hi, max_rows)) as pieces:
                    for piece in pieces:
                        if not self._put(piece):
                            break
        except Exception as fault:  # noqa: BLE001  # `take` raises it
            self._fault = fault
        with self._changed:
            self._ranges -= 1
            self._changed.notify_all()

    def _put(self, piece: Advance) -> bool:
        """Queue a piece once there is room. Return whether to go on."""
        with self._changed:
            self._changed.wait_for(lambda: self._over or not self._enough)
            self._pieces.append(piece)
            self._changed.notify_all()
            return not self._over

    @property
    def _enough(self) -> bool:
        return len(self._pieces) >= self._most or sum(piece.outcome.solutions.nbytes for piece in self._pieces) >= PIECE_BYTES
