"""This module tells how much of the log its readers have yet to read, in rows."""

from collections import deque

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
