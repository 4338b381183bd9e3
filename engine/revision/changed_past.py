"""This module says at which instants a change of the past can matter (engine/planner/reach.py)."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from engine.messages import Micros
from engine.runtime.watermarks import NO_TIME
from epsparql.deferred_methods import dataclass

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class ChangedPast:
    """Holds the sorted ends of occurrences that came late or were taken back. `stood` is how far ahead each query was
    when the first of them came.

    Solutions depend on what ends at most `reach` µs before them; None if that has no bound.
    """

    instants: Ints
    stood: Mapping[int, Micros]
    reach: Micros | None

    def touches(self, query: int, ends: Ints) -> NDArray[np.bool_]:
        """Return which of a query's solutions, by their ends, may be others than before, or are new."""
        return self._are_near([query], ends, 0)

    def needs(self, queries: list[int], ends: Ints) -> NDArray[np.bool_]:
        """Return which occurrences, by their ends, must be read to find these solutions, and all that come later."""
        return self._are_near(queries, ends, self.reach or 0)

    def _are_near(self, queries: list[int], ends: Ints, before: Micros) -> NDArray[np.bool_]:
        since = min((self.stood.get(query, NO_TIME) for query in queries), default=NO_TIME)
        if self.reach is None or since == NO_TIME:
            return np.ones(len(ends), np.bool_)
        near = np.searchsorted(self.instants, ends - self.reach) < np.searchsorted(self.instants, ends + before, "right")
        found: NDArray[np.bool_] = near | (ends >= since - before)
        return found
