"""Queries take rows of a network's tables and give them back, so that coming and going touches no other query."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.kernel.state import layout as c
from engine.kernel.state.arrays import Net, taller
from epsparql.deferred_methods import dataclass

Ints = NDArray[np.int64]
FEWEST = 16
"""A table that has any rows has at least FEWEST."""


@dataclass(slots=True)
class Ranges:
    """Tracks which rows of a table are free.

    `free` has ranges (first, after) in order, none touching another or the end; all rows from `end` on are free too.
    So the ranges are a function of the rows in use alone.
    """

    end: int = 0
    free: list[tuple[int, int]] = field(default_factory=list)

    def take(self, n: int) -> int:
        """Take n free rows, of the first range with room for them, else at the end, and return the first row."""
        for k, (first, after) in enumerate(self.free):
            if after - first >= n:
                self.free[k : k + 1] = [(first + n, after)] if after - first > n else []
                return first
        self.end += n
        return self.end - n

    def give(self, first: int, n: int) -> None:
        """Give back n rows."""
        if n == 0:
            return
        after, k = first + n, bisect_left(self.free, (first, first))
        if k < len(self.free) and self.free[k][0] == after:
            after = self.free.pop(k)[1]
        if k > 0 and self.free[k - 1][1] == first:
            k -= 1
            first = self.free.pop(k)[0]
        if after == self.end:
            self.end = first
        else:
            self.free.insert(k, (first, after))


def with_rows(net: Net, ends: Mapping[str, int]) -> Net:
    """Return the network with room for so many rows in each of these tables; a table grows by doubling."""
    grown: dict[str, NDArray[Any]] = {}
    for name, end in ends.items():
        array = getattr(net, name)
        if end > len(array):
            grown[name] = taller(array, max(end, 2 * len(array), FEWEST))
    return net._replace(**grown) if grown else net


def by_predicate(net: Net) -> Ints:
    """Return `alpha_at` with one row for each predicate."""
    return net.alpha_at.reshape(-1, c.ALPHA_AT_WIDTH)


def with_predicate(net: Net, predicate: int) -> Net:
    """Return the network with a row of `alpha_at` for a predicate; the kernel relies on whole rows."""
    rows = len(by_predicate(net))
    if predicate < rows:
        return net
    return net._replace(alpha_at=taller(net.alpha_at, c.ALPHA_AT_WIDTH * max(predicate + 1, 2 * rows, FEWEST)))
