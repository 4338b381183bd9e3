"""This module evaluates slices in threads, whose kernels run beside each other, and gives what they find in the order
of the log.
"""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import field
from threading import Condition, Thread

from epsparql.deferred_methods import dataclass
from pipeline.slices.execution import SlicePiece, SliceWork, run_slice

_AHEAD_BYTES = 256 << 20
"""What is found ahead of its turn takes about so much memory; then a slice waits for those before it."""
_LOOK_S = 0.1


def count_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(slots=True, eq=False)
class _Progress:
    """Holds what was found in a slice and is not taken yet."""

    found: deque[SlicePiece] = field(default_factory=deque)
    nbytes: int = 0
    ended: bool = False
    fault: Exception | None = None


class SliceThreads:
    """Evaluates slices in some threads. `allowed` tells, at any time, how many of them may work."""

    def __init__(self, threads: int, allowed: Callable[[], int] | None = None) -> None:
        self._threads, self._allowed = threads, allowed or (lambda: threads)
        self._changed = Condition()
        self._works: Sequence[SliceWork] = ()
        self._at_work: dict[int, _Progress] = {}
        self._taken = self._next = 0
        self._over = False

    def evaluate_slices(self, works: Sequence[SliceWork]) -> Generator[SlicePiece, None, None]:
        """Yield the pieces of all slices in order. Raises what evaluating a slice raises."""
        self._works = works
        self._at_work = {k: _Progress() for k in range(len(works))}
        threads = [Thread(target=self._take_turns, name=f"slices-{k}", daemon=True) for k in range(min(self._threads, len(works)))]
        for thread in threads:
            thread.start()
        try:
            for k in range(len(works)):
                yield from self._take_pieces(k)
        finally:
            with self._changed:
                self._over = True
                self._changed.notify_all()
            for thread in threads:
                thread.join()

    def _take_pieces(self, k: int) -> Iterator[SlicePiece]:
        """Yield the pieces of a slice as they come."""
        progress = self._at_work[k]
        while True:
            with self._changed:
                self._changed.wait_for(lambda: progress.found or progress.ended)
                if progress.fault is not None:
                    raise progress.fault
                pieces, progress.found, progress.nbytes = progress.found, deque(), 0
                ended = progress.ended
                if ended:
                    self._taken = k + 1
                    del self._at_work[k]
                self._changed.notify_all()
            yield from pieces
            if ended:
                return

    # ------------------------------------------------------------ in a thread
    def _take_turns(self) -> None:
        while (k := self._begin()) is not None:
            progress = self._at_work[k]
            try:
                for piece in run_slice(self._works[k]):
                    if not self._hand_over(k, progress, piece):
                        return
            except Exception as fault:  # noqa: BLE001  # it is raised where the pieces are taken
                progress.fault = fault
            with self._changed:
                progress.ended = True
                self._changed.notify_all()

    def _begin(self) -> int | None:
        """Return the next slice, as soon as it is not too far ahead; None if there is none."""
        with self._changed:
            self._changed.wait_for(lambda: self._over or self._next >= len(self._works) or self._next < self._taken + 2 * self._threads)
            if self._over or self._next >= len(self._works):
                return None
            self._next += 1
            return self._next - 1

    def _hand_over(self, k: int, progress: _Progress, piece: SlicePiece | None) -> bool:
        """Hand over a piece, and wait for the slice's turn to go on. Return whether it is to go on."""
        with self._changed:
            if piece is not None:
                progress.found.append(piece)
                progress.nbytes += piece.nbytes
                self._changed.notify_all()
            while not self._over and not self._may_go_on(k, progress):
                self._changed.wait(_LOOK_S)
            return not self._over

    def _may_go_on(self, k: int, progress: _Progress) -> bool:
        """Return whether a slice is among the first that may be at work, and not too far ahead."""
        before = sum(not self._at_work[other].ended for other in range(self._taken, k))
        return before == 0 or (before < self._allowed() and progress.nbytes < _AHEAD_BYTES)
