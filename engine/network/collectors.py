"""This module holds the collectors of a network's queries: groups, windows, ORDER BY, LIMIT and ASK, which decide on
the host.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.aggregation import Collector, Moments, Passage, RowBatch
from engine.aggregation.operator import AT_LAST
from engine.alpha.free_rows import with_rows
from engine.dictionary.term_dictionary import Held, numbers_in
from engine.kernel.state import layout as c
from engine.network.placed_query import Planned
from engine.network.query_slots import QuerySlots
from engine.physical_plan.batched_groups import DeferredCollector
from engine.physical_plan.plan import Fragment, TableOffsets, timers_of
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Collecting:
    """Holds a collector at its node, with the columns that it reads and writes."""

    node: int
    collector: Collector
    registered: int  # the registration of its query
    timer: int | None  # its row of `timers`, if it may be due
    reads: Ints
    writes: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Completion:
    """Says that a query has given, at an entry, all solutions that it ever will."""

    planned: Planned
    entry: int
    reason: str


class Collectors:
    """Holds the collectors and timers of queries, and lets collectors decide."""

    def __init__(self, slots: QuerySlots) -> None:
        self._slots = slots
        self.placed: dict[int, Collecting] = {}  # the collectors, by node
        self.completed: set[int] = set()  # nodes of collectors whose queries have been reported as completed
        self.completions: list[Completion] = []
        self._announced: int | None = None

    # ------------------------------------------------------------ coming and going
    def add_timers(self, fragment: Fragment, at: TableOffsets) -> dict[int, int]:
        """Put a fragment's timers behind the others; return the row of each by its node."""
        arrays = self._slots.arrays
        timers, first = timers_of(fragment, at), int(arrays.net.at[c.TIMER_NODES])
        if not len(timers):
            return {}
        arrays.replace_arrays(with_rows(arrays.net, {"timers": first + len(timers)}))
        arrays.net.timers[first : first + len(timers)] = timers
        arrays.net.at[c.TIMER_NODES] += len(timers)
        return {node: first + k for k, node in enumerate(timers[:, c.T_NODE].tolist())}

    def add_collectors(self, planned: Planned, fragment: Fragment, timers: Mapping[int, int]) -> None:
        """Take up the collectors of a query that stands at its place."""
        for node, collector in fragment.collectors.items():
            reads, writes = (np.array([fragment.columns[v] for v in part], np.int64) for part in (collector.reads, collector.writes))
            here = planned.at.node + node
            self.placed[here] = Collecting(here, collector, planned.registered, timers.get(here), reads, writes)

    def remove_query(self, planned: Planned) -> None:
        """Take a query's timers and collectors out; the last timers move into their places.

        Others may take these nodes.
        """
        nodes, net = range(planned.at.node, planned.after.node), self._slots.arrays.net
        for node in nodes:
            self.placed.pop(node, None)
        timed = net.timers[: net.at[c.TIMER_NODES], c.T_NODE]
        for k in np.flatnonzero((nodes.start <= timed) & (timed < nodes.stop))[::-1].tolist():
            net.at[c.TIMER_NODES] -= 1
            net.timers[k] = net.timers[net.at[c.TIMER_NODES]]
            moved = self.placed.get(int(net.timers[k, c.T_NODE]))
            if moved is not None:
                self.placed[moved.node] = replace(moved, timer=k)
        self.completed.difference_update(nodes)

    # ------------------------------------------------------------ deciding
    def decide_rows(self, node: int, frames: Ints) -> RowBatch:
        """Return what a collector makes at this instant of what has been gathered for it."""
        arrays, collecting = self._slots.arrays, self.placed[node]
        at, collector = arrays.net.at, collecting.collector
        rows, wakes = (arrays.read_rows(frames[frames[:, c.FRAME_SIDE] == side, c.FRAME_ROW], collecting.reads) for side in (c.LEFT, c.BLOCKER))
        given = collector.decide(int(at[c.NOW]), rows, wakes, self._horizon, arrays.terms)
        self._set_due(collecting)
        planned = self._slots.planned[collecting.registered]
        if collector.done and node == planned.last and node not in self.completed:
            self.completed.add(node)
            reason = "ASK is answered" if isinstance(planned.source.query, a.Ask) else "LIMIT is reached"
            self.completions.append(Completion(planned, int(at[c.ENTRY]), reason))
        return given

    def _set_due(self, collecting: Collecting) -> None:
        """Set the timer of a collector, if it has one, to when the collector is due."""
        if collecting.timer is not None:
            due, last = collecting.collector.due(), self._last_instant
            self._slots.arrays.net.timers[collecting.timer, c.T_DUE] = last if due == AT_LAST and last is not None else due

    def decide_reports(self, node: int, frames: Ints, passage: Passage) -> Ints:
        """Return what one collector makes of its deferred frames, in the kernel's columns."""
        arrays, collecting = self._slots.arrays, self.placed[node]
        rows = arrays.read_rows(frames[:, c.FRAME_ROW], collecting.reads)
        assert isinstance(collecting.collector, DeferredCollector)
        moments = Moments(frames[:, c.D_NOW], frames[:, c.D_ENTRY], frames[:, c.FRAME_SIDE], rows)
        given = collecting.collector.decide_all(moments, passage, self._horizon, arrays.terms)
        if arrays.net.nodes[node, c.STEP] == c.NONE:
            self._set_due(collecting)
        reports = np.zeros((len(given), arrays.net.reports.shape[1]), np.int64)
        reports[:, c.G_NODE], reports[:, c.G_ENTRY] = node, given.entry
        reports[:, c.G_START], reports[:, c.G_END] = given.rows.start, given.rows.end
        reports[:, collecting.writes + (c.G_VAR - c.VAR)] = given.rows.cells
        return reports

    def announce_last(self, instant: int) -> None:
        """Take in the last instant of the streams, which have finished: collectors that wait for it are due then."""
        net, self._announced = self._slots.arrays.net, instant
        due = net.timers[: net.at[c.TIMER_NODES], c.T_DUE]
        due[due == AT_LAST] = instant

    @property
    def _last_instant(self) -> int | None:
        """Return the last instant, which a feed tells before the kernel has come to it."""
        return self._announced if self._horizon is None else self._horizon

    @property
    def _horizon(self) -> int | None:
        horizon = int(self._slots.arrays.net.at[c.HORIZON])
        return horizon if horizon < c.FOREVER else None

    # ------------------------------------------------------------ about them
    def measure_query(self, registered: int) -> int:
        """Return the bytes that the collectors of a query hold."""
        at = self._slots.planned[registered]
        return sum(self.placed[node].collector.size() for node in range(at.at.node, at.after.node) if node in self.placed)

    def hold_terms(self, held: Held) -> None:
        for collecting in self.placed.values():
            held.add(numbers_in(collecting.collector.state()))
            if isinstance(collecting.collector, DeferredCollector):
                for table in collecting.collector.tables().values():
                    held.add(table)
