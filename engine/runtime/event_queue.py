"""This module keeps the occurrences of a network's streams that have arrived and wait for their time."""

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from engine.kernel.state import layout as c
from engine.runtime.event_heap import add, due, give

Ints = NDArray[np.int64]
_FEW = 1 << 6
_NUMBER = c.IN_ENTRY  # until an entry brings an occurrence to the kernel, this cell has its place in the order of arrival


class Waiting:
    """Keeps occurrences as columns of a kernel's feed, and gives out those that end first; of equal ends, those that came first."""

    __slots__ = ("_came", "_n", "_rows")

    def __init__(self) -> None:
        self._rows: Ints = np.empty((0, c.FEED_HEIGHT), np.int64)
        self._n = self._came = 0

    @classmethod
    def from_table(cls, table: Ints) -> "Waiting":
        """Build a queue of the occurrences of a table (FEED_HEIGHT x n), in the order in which they came."""
        found = cls()
        found.add_rows(table)
        return found

    def __len__(self) -> int:
        return self._n

    def add_rows(self, table: Ints) -> None:
        n = table.shape[1]
        if self._n + n > len(self._rows):
            self._resize(max(2 * len(self._rows), self._n + n, _FEW))
        add(self._rows, self._n, np.ascontiguousarray(table), c.IN_END, _NUMBER, self._came)
        self._n, self._came = self._n + n, self._came + n

    def take_until(self, time: int) -> Ints:
        """Take out the occurrences that end at `time` or before, and return them in order of end."""
        found = np.empty((c.FEED_HEIGHT, int(due(self._rows, self._n, time, c.IN_END))), np.int64)
        give(self._rows, self._n, found, c.IN_END, _NUMBER)
        self._n -= found.shape[1]
        if 4 * max(self._n, _FEW) < len(self._rows):
            self._resize(2 * max(self._n, _FEW))
        return found

    def _resize(self, room: int) -> None:
        rows = np.empty((room, c.FEED_HEIGHT), np.int64)
        rows[: self._n] = self._rows[: self._n]
        self._rows = rows

    def keep_streams(self, streams: Collection[int]) -> None:
        """Let go of the occurrences on other streams than these."""
        table = self.table
        kept = np.isin(table[c.IN_STREAM], list(streams))
        if not kept.all():
            self._n = 0
            self.add_rows(table[:, kept])

    @property
    def since(self) -> Ints:
        """Return the entries that brought the occurrences, in no order."""
        return self._rows[: self._n, c.IN_SINCE]

    @property
    def end(self) -> Ints:
        """Return when the occurrences end, in the order of `since`."""
        return self._rows[: self._n, c.IN_END]

    @property
    def table(self) -> Ints:
        """Return a copy of all occurrences, in order."""
        rows = self._rows[: self._n]
        return np.ascontiguousarray(rows[np.lexsort((rows[:, _NUMBER], rows[:, c.IN_END]))].T)

    @property
    def terms(self) -> Ints:
        """Return a row of subject, predicate, object and graph for each occurrence."""
        return self._rows[: self._n, c.IN_S : c.IN_G + 1]
