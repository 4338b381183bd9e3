"""This module says which subplans are shared, and which queries read each of them
(docs/decisions/0002-networks-by-reach.md).
"""

from collections.abc import Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from engine.kernel.state import layout as c
from engine.network.placed_query import Planned
from engine.network.query_slots import QuerySlots
from engine.physical_plan.common_subplans import Subplan
from epsparql.deferred_methods import dataclass

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Moment:
    """Tells what a network had been given when a query came.

    The fields are the number of occurrences, the entry of the last one that waits for time (or -1), and the latest
    end. If two queries came at one moment, each reads what the other reads.
    """

    seen: int
    waiting: int
    latest: int


@dataclass(slots=True, eq=False)
class Reading:
    """Represents a subplan of a query that a share carries out.

    `moves` is the first row by which its root hands on, `filter_` what the root had for itself.
    """

    share: "SharedSubplan"
    registered: int
    first: int  # the query's first node
    subplan: Subplan
    moves: int
    filter_: int

    @property
    def root(self) -> int:
        return self.first + self.subplan.root

    @property
    def nodes(self) -> Ints:
        return self.first + np.array(self.subplan.nodes, np.int64)

    def stands_for(self, node: int) -> int:
        """Return the node of the share that stands for one of the query's."""
        return self.share.stands.at.node + self.subplan.nodes.index(node - self.first)


@dataclass(slots=True, eq=False)
class SharedSubplan:
    """Represents a shared subplan.

    `stands` is its place in the tables, from its root on in the order of `Subplan.nodes`; `edges` is the range of
    those to its readers.
    """

    digest: bytes
    stands: Planned
    moment: Moment | None
    readings: list[Reading] = field(default_factory=list)
    edges: tuple[int, int] = (0, 0)

    @property
    def number(self) -> int:
        """Return the number that a share has in the tables, as a query has one."""
        return self.stands.number

    @property
    def columns(self) -> range:
        return range(c.VAR, c.VAR + len(self.stands.columns))


class Shares:
    """Lists the shares of a network with the queries that read them."""

    def __init__(self, slots: QuerySlots) -> None:
        self._slots = slots
        self.numbered: dict[int, SharedSubplan] = {}  # the shares, by number
        self.readings: dict[int, list[Reading]] = {}  # the subplans that shares carry out, by their queries' `registered`

    def list_read(self, planned: Planned) -> list[SharedSubplan]:
        """Return the shares that a query reads; a share that it reads twice comes twice."""
        return [reading.share for reading in self.readings.get(planned.registered, ())]

    def find_readers(self, number: int) -> list[Planned]:
        """Return the query of a number, or those that read the share of that number."""
        if number not in self.numbered:
            return [self._slots.numbered[number]]
        return [self._slots.planned[registered] for registered in dict.fromkeys(reading.registered for reading in self.numbered[number].readings)]

    def find_reading(self, planned: Planned, node: int) -> Reading | None:
        """Return the reading that stands for a query's node, if there is one."""
        return next((r for r in self.readings.get(planned.registered, ()) if node - r.first in r.subplan.nodes), None)

    def find_keeper(self, planned: Planned, node: int) -> int:
        """Return the node that keeps the goals of a query's node: itself, or one of a share."""
        reading = self.find_reading(planned, node)
        return node if reading is None else reading.stands_for(node)

    def list_shares(self, queries: Sequence[Planned]) -> list[SharedSubplan]:
        """Return the shares that any of these queries reads."""
        registered = {planned.registered for planned in queries}
        return [share for share in self.numbered.values() if any(reading.registered in registered for reading in share.readings)]
