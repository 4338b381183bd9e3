"""This module holds upper bounds of the differences of integer variables, and closes them by shortest paths.

Source: Dechter, Meiri and Pearl, *Temporal constraint networks*, Artificial Intelligence 49 (1991). Times are whole
microseconds, so `x - y < d` is `x - y <= d - 1`.
"""

from collections.abc import Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from engine.kernel.state.layout import FOREVER
from epsparql.deferred_methods import dataclass

MOST_VARIABLES = 200
"""Bounds on more variables would take too long to close, so they are not looked at."""
GREATEST = 1 << 52
"""A bound (µs) beyond 142 years to either side is not looked at, so that no path of bounds overflows."""


class Contradiction(Exception):
    """No values satisfy the bounds."""


@dataclass(slots=True)
class DifferenceBounds:
    """Holds the greatest value of `x - y` for each pair of variables; FOREVER where nothing bounds it.

    `hulls` are (first, last, parts): the variable `first` is the least of the parts' first ones, and `last` the
    greatest of their last ones.
    """

    n: int
    hulls: list[tuple[int, int, Sequence[tuple[int, int]]]] = field(default_factory=list)
    most: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self.most = np.full((self.n, self.n), FOREVER, np.int64)
        np.fill_diagonal(self.most, 0)

    def limit(self, x: int, y: int, most: int) -> None:
        """Let `x - y` be at most so much."""
        if abs(most) <= GREATEST:
            self.most[x, y] = min(int(self.most[x, y]), most)

    def add_hull(self, first: int, last: int, parts: Sequence[tuple[int, int]]) -> None:
        self.hulls.append((first, last, parts))
        for start, end in parts:
            self.limit(first, start, 0)
            self.limit(end, last, 0)

    def close(self) -> None:
        """Replace each bound by the least one that follows from all. Raises Contradiction.

        A round finds shortest paths, and then what the ends of hulls are bounded by: the greatest of several values
        is at most what all of them are. Each round may only lower bounds, and as many rounds as there are hulls reach
        from the innermost hull to the outermost one.
        """
        for _ in range(len(self.hulls) + 1):
            self._find_paths()
            if not self._bound_hulls():
                return
        self._find_paths()

    def _find_paths(self) -> None:
        """Apply Floyd and Warshall's algorithm."""
        for via in range(self.n):
            np.minimum(self.most, self.most[:, via, None] + self.most[None, via, :], out=self.most)
            if (np.diagonal(self.most) < 0).any():
                raise Contradiction
        self.most[self.most > FOREVER - GREATEST * self.n] = FOREVER

    def _bound_hulls(self) -> bool:
        """Bound the ends of hulls by their parts' ends, and return whether a bound fell."""
        before = self.most.copy()
        for first, last, parts in self.hulls:
            starts, ends = [start for start, _ in parts], [end for _, end in parts]
            self.most[last] = np.minimum(self.most[last], self.most[ends].max(axis=0))
            self.most[:, first] = np.minimum(self.most[:, first], self.most[:, starts].max(axis=1))
        return bool((self.most < before).any())

    def find_most(self, x: int, y: int) -> int:
        """Return the greatest value of `x - y`."""
        return int(self.most[x, y])
