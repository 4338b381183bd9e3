"""This module counts the rows of the log that are yet to be read, and the rows of a stream that wait for its sources."""

from collections import deque

from engine.messages import Micros

_MOST = 100_000  # frames that are told apart


class Backlog:
    """Counts rows by frame, for the frames written since the log was opened. One thread adds while another asks."""

    def __init__(self) -> None:
        self._marks: deque[tuple[int, int]] = deque(maxlen=_MOST)  # the position after a frame, and the rows up to there
        self._rows = self._read = 0

    def add(self, after: int, rows: int) -> None:
        self._rows += rows
        self._marks.append((after, self._rows))

    def beyond(self, position: int) -> int:
        """Return the rows of the frames that do not end by `position`, which does not fall from one call to the next."""
        marks = self._marks
        while marks and marks[0][0] <= position:
            self._read = marks.popleft()[1]
        return self._rows - self._read


# ---------------------------------------------------------------- what waits for the slowest source
Waiting = tuple[tuple[Micros, int], ...]
"""The rows of a stream that its watermark has not reached: how many end by an instant and after the one before."""
_MOST_ENDS = 64  # instants that are told apart


def add_waiting(waiting: Waiting, end: Micros, rows: int) -> Waiting:
    """Add rows that end by `end`.

    Of many instants each second one is forgotten, so that some rows count for longer than they wait.
    """
    if not rows:
        return waiting
    counts = dict(waiting)
    counts[end] = counts.get(end, 0) + rows
    found = tuple(sorted(counts.items()))
    if len(found) <= _MOST_ENDS:
        return found
    return (*((later, few + more) for (_, few), (later, more) in zip(found[:-1:2], found[1::2], strict=False)), *found[len(found) // 2 * 2 :])


def release_waiting(waiting: Waiting, watermark: Micros | None) -> Waiting:
    """Return what still waits once the watermark has come to an instant."""
    return waiting if watermark is None else tuple(each for each in waiting if each[0] > watermark)


def count_waiting(waiting: Waiting) -> int:
    return sum(rows for _, rows in waiting)
