"""An engine's way through the log on a thread of its own, ahead of who takes what it brings."""

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from threading import Condition

from pipeline.hosting import Advance, EngineHost

PIECES = 6
"""That may wait to be taken: more than a micro-batch has, so that the engine goes on while one is committed and the next one planned."""
PIECE_BYTES = 32 << 20
"""Of solutions beyond which no further piece waits."""


class Course:
    """Range after range, as they are asked for."""

    def __init__(self, host: EngineHost) -> None:
        self._host = host
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="bucket")
        self._changed = Condition()
        self._ranges = 0  # to go through
        self._pieces: deque[Advance] = deque()
        self._fault: Exception | None = None
        self._over = False

    def go(self, lo: int, hi: int, max_rows: int) -> None:
        """Through [lo, hi), after what it was sent through before."""
        with self._changed:
            self._ranges += 1
        self._thread.submit(self._bring, lo, hi, max_rows)

    def take(self) -> Advance:
        """The next piece, as soon as it is there. Raises: whatever the engine raised."""
        with self._changed:
            self._changed.wait_for(lambda: self._pieces or not self._ranges)
            if not self._pieces and self._fault is not None:
                raise self._fault
            assert self._pieces, "a piece is asked for that the ranges do not have"
            piece = self._pieces.popleft()
            self._changed.notify_all()
        return piece

    def finish(self) -> None:
        """The engine is through, and all that it brought was taken. Raises: whatever the engine raised."""
        with self._changed:
            self._changed.wait_for(lambda: not self._ranges)
            if self._fault is not None:
                raise self._fault

    def stop(self) -> None:
        """After the piece at work. The engine is ahead of what was taken by all that waits, which is lost."""
        with self._changed:
            self._over = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._ranges)
            self._pieces.clear()
            self._fault, self._over = None, False

    def save(self) -> Future[None]:
        return self._thread.submit(self._host.save)

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
        except Exception as fault:  # noqa: BLE001  # it is raised to who takes
            self._fault = fault
        with self._changed:
            self._ranges -= 1
            self._changed.notify_all()

    def _put(self, piece: Advance) -> bool:
        """Whether to go on."""
        with self._changed:
            self._changed.wait_for(lambda: self._over or not self._enough)
            self._pieces.append(piece)
            self._changed.notify_all()
            return not self._over

    @property
    def _enough(self) -> bool:
        return len(self._pieces) >= PIECES or sum(piece.outcome.solutions.nbytes for piece in self._pieces) >= PIECE_BYTES
