"""An index finds the rows of a table that have one of several terms in a column, by binary search."""

import numpy as np
from numpy.typing import NDArray

from epsparql.deferred_methods import dataclass

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class RowIndex:
    """Orders rows by the terms of one column: `places[k]` is the row with the k-th term."""

    terms: Ints
    places: NDArray[np.int32]

    @classmethod
    def from_column(cls, column: Ints) -> "RowIndex":
        places = np.argsort(column, kind="stable").astype(np.int32)
        return cls(column[places], places)

    def count_rows(self, wanted: Ints) -> int:
        """Return how many rows have one of these terms."""
        first, after = self._find_ranges(wanted)
        return int((after - first).sum())

    def find_rows(self, wanted: Ints) -> Ints:
        """Return the rows that have one of these terms, which are distinct."""
        first, after = self._find_ranges(wanted)
        counts = after - first
        starts = np.repeat(first - np.cumsum(counts) + counts, counts)
        return self.places[starts + np.arange(len(starts))].astype(np.int64)

    def _find_ranges(self, wanted: Ints) -> tuple[Ints, Ints]:
        return np.searchsorted(self.terms, wanted, "left"), np.searchsorted(self.terms, wanted, "right")


def is_among(column: Ints, wanted: Ints) -> NDArray[np.bool_]:
    """Return which terms of a column are among `wanted`, which are sorted."""
    if not len(wanted):
        return np.zeros(len(column), np.bool_)
    places = np.minimum(np.searchsorted(wanted, column), len(wanted) - 1)
    found: NDArray[np.bool_] = wanted[places] == column
    return found
