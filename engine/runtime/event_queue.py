"""This module keeps the occurrences of a network's streams that have arrived and wait for their time."""

from collections.abc import Callable, Collection, Set

import numpy as np
from numpy.typing import NDArray

from engine.kernel.state import layout as c
from engine.native.entries import add_to_heap, count_due, take_from_heap

Ints = NDArray[np.int64]
Choice = Callable[[Ints], NDArray[np.bool_]]
"""Chooses occurrences or solutions by their ends."""
_FEW = 1 << 6
_RETRACTED = -1
"""An occurrence that was taken back has this kind until its turn comes, and then it goes."""
_NUMBER = c.IN_ENTRY  # until an entry brings an occurrence to the kernel, this cell has its place in the order of arrival


KEY = [c.IN_S, c.IN_P, c.IN_O, c.IN_G, c.IN_START, c.IN_END]
"""These rows of a feed tell an occurrence of a stream from all others."""
Key = tuple[int, ...]


class Waiting:
    """Keeps occurrences as columns of a kernel's feed, and gives out those that end first; of equal ends, those that
    came first.
    """

    __slots__ = ("_came", "_n", "_retracted", "_rows")

    def __init__(self) -> None:
        self._rows: Ints = np.empty((0, c.FEED_HEIGHT), np.int64)
        self._n = self._came = self._retracted = 0

    @classmethod
    def from_table(cls, table: Ints) -> "Waiting":
        """Build a queue of the occurrences of a table (FEED_HEIGHT x n), in the order in which they came."""
        found = cls()
        found.add_rows(table)
        return found

    def __len__(self) -> int:
        return self._n

    @property
    def earliest_entry(self) -> int:
        """Return the first entry of which occurrences wait; FOREVER for none."""
        return int(self._rows[: self._n, c.IN_SINCE].min(initial=c.FOREVER))

    def add_rows(self, table: Ints) -> None:
        n = table.shape[1]
        if self._n + n > len(self._rows):
            self._resize(max(2 * len(self._rows), self._n + n, _FEW))
        add_to_heap(self._rows, self._n, np.ascontiguousarray(table), c.IN_END, _NUMBER, self._came)
        self._n, self._came = self._n + n, self._came + n

    def take_until(self, time: int) -> Ints:
        """Take out the occurrences that end at `time` or before, and return them in order of end."""
        found = np.empty((c.FEED_HEIGHT, count_due(self._rows, self._n, time, c.IN_END)), np.int64)
        take_from_heap(self._rows, self._n, found, c.IN_END, _NUMBER)
        self._n -= found.shape[1]
        if self._retracted:
            found = self._without_retracted(found)
        if 4 * max(self._n, _FEW) < len(self._rows):
            self._resize(2 * max(self._n, _FEW))
        return found

    def retract(self, stream: int, keys: Set[Key]) -> None:
        """Take back the occurrences with these keys on a stream. They leave the queue when their turn comes."""
        rows = self._rows[: self._n]
        ends = np.array([end for *_, end in keys], np.int64)
        for place in np.flatnonzero((rows[:, c.IN_STREAM] == stream) & (rows[:, c.IN_KIND] != _RETRACTED) & np.isin(rows[:, c.IN_END], ends)):
            if tuple(rows[place, KEY].tolist()) in keys:
                rows[place, c.IN_KIND] = _RETRACTED
                self._retracted += 1

    def _without_retracted(self, table: Ints) -> Ints:
        kept = table[c.IN_KIND] != _RETRACTED
        self._retracted -= int(np.count_nonzero(~kept))
        return np.ascontiguousarray(table[:, kept])

    def _resize(self, room: int) -> None:
        rows = np.empty((room, c.FEED_HEIGHT), np.int64)
        rows[: self._n] = self._rows[: self._n]
        self._rows = rows

    def keep_streams(self, streams: Collection[int]) -> None:
        """Let go of the occurrences on other streams than these."""
        table = self.table
        kept = np.isin(table[c.IN_STREAM], list(streams))
        if not kept.all():
            self._n = self._retracted = 0
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
        return self.choose(None)

    def choose(self, needs: Choice | None) -> Ints:
        """Return a copy of the occurrences that are chosen by their ends, or of all, in order."""
        rows = self._rows[: self._n] if needs is None else self._rows[: self._n][needs(self.end)]
        if self._retracted:
            rows = rows[rows[:, c.IN_KIND] != _RETRACTED]
        return np.ascontiguousarray(rows[np.lexsort((rows[:, _NUMBER], rows[:, c.IN_END]))].T)

    @property
    def terms(self) -> Ints:
        """Return a row of subject, predicate, object and graph for each occurrence."""
        return self._rows[: self._n, c.IN_S : c.IN_G + 1]
