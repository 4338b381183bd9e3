"""This module deals out events by time to a query that has no key, but a bound on how far back it looks
(docs/decisions/0104-moves-of-one-set.md).

Time is cut into slices, which the partitions have in turn. A partition also reads what the query reaches back to
before a slice. It tells the solutions that end in its slices:

    partition 0   [ reach |    slice 0    ]              [ reach |    slice 2    ]
    partition 1                   [ reach |    slice 1    ]              [ reach |    slice 3    ]
"""

import numpy as np
from numpy.typing import NDArray

from engine.messages import Micros
from engine.partitioning.hash_partitioner import PartitionShare
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass

Ints = NDArray[np.int64]
MOST_REACH: Micros = 3_600_000_000
"""A slice of a longer reach would be one partition's for most of a day."""
REACHES = 8
"""A slice is so many times as long as the reach, so an eighth of the events is read twice."""
LEAST_LENGTH: Micros = 1_000_000


@dataclass(frozen=True, slots=True)
class TimeSlices:
    """Cuts time into slices of `length` µs.

    Number `k` is that of the partition `home + k`, counted round, which reads `reach` µs before it.
    """

    reach: Micros
    length: Micros
    home: int

    def select_rows(self, ends: Ints, share: PartitionShare) -> NDArray[np.bool_]:
        """Return which events, by their ends, a partition reads."""
        first, last = ends // self.length, (ends + self.reach) // self.length
        chosen: NDArray[np.bool_] = (share.partition - self.home - first) % share.partitions <= last - first
        return chosen

    def select_solutions(self, ends: Ints, share: PartitionShare) -> NDArray[np.bool_]:
        """Return which solutions, by their ends, a partition tells."""
        own: NDArray[np.bool_] = (ends // self.length + self.home) % share.partitions == share.partition
        return own

    def is_turn(self, instant: Micros, share: PartitionShare) -> bool:
        """Return whether an instant lies in a slice of a partition."""
        return (instant // self.length + self.home) % share.partitions == share.partition


class NoSlices(Exception):
    """Says why a query cannot be evaluated in slices of time, or does not gain by it."""


def cut_time(query: a.StreamQuery, reach: Micros | None, home: int = 0) -> TimeSlices:
    """Return the slices for a query that stands alone, by how far back it looks; None: without a bound, or to its
    first instant. Raises NoSlices.
    """
    if not isinstance(query, a.Select) or query.rules:
        raise NoSlices("slices of time are for SELECTs without rules of their own")
    if reach is None:
        raise NoSlices("it looks back without a bound, or to its first instant")
    if not reach:
        raise NoSlices("it looks at one instant at a time")
    if reach > MOST_REACH:
        raise NoSlices(f"it looks back further than {MOST_REACH // 60_000_000} minutes")
    return TimeSlices(reach, max(-(-REACHES * reach // LEAST_LENGTH), 1) * LEAST_LENGTH, home)
