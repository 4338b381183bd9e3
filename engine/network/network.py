"""This module composes a network: one kernel with the queries that share a clock because they reach the same streams."""

from collections.abc import Callable, KeysView, Mapping

import numpy as np
from numpy.typing import NDArray

from engine.background.fact_store import FactIndex
from engine.dictionary.term_dictionary import TermTable
from engine.kernel.state import layout as c
from engine.kernel.state.arrays import Net, to_width
from engine.network.background_update import BackgroundUpdate
from engine.network.host_calls import KernelHost
from engine.network.placed_query import Planned
from engine.network.window_subquery import make_solver
from engine.triples.quads import Quad

Ints = NDArray[np.int64]


class Network:
    """Feeds a kernel, whose background changes between two instants."""

    def __init__(
        self, terms: TermTable, *, known: FactIndex | None = None, owns: Callable[[Quad], bool] | None = None, without: frozenset[str] = frozenset()
    ) -> None:
        self.host = host = KernelHost(terms, FactIndex(terms) if known is None else known, make_solver, owns, without)
        self.arrays, self.slots, self.planning, self.collectors = host.arrays, host.slots, host.planning, host.collectors
        self.quotas, self.sharing, self.background = host.quotas, host.sharing, BackgroundUpdate(host)

    @property
    def net(self) -> Net:
        return self.arrays.net

    @property
    def planned(self) -> dict[int, Planned]:
        """Return the queries, by `registered`."""
        return self.slots.planned

    @property
    def rules(self) -> dict[int, Planned]:
        """Return the queries that write a stream, by `registered`."""
        return self.slots.rules

    @property
    def reads(self) -> KeysView[str]:
        """Return the streams that any query reads."""
        return self.slots.streams.reads

    @property
    def begun(self) -> int:
        """Return the instant that has begun.

        It is decided by the background as it was, and later ones by one that is coming.
        """
        return max(int(self.net.at[c.NOW]), self.background.begun)

    def drop_query(self, registered: int) -> None:
        """Take a query out between feeds, with its goals; no other is touched."""
        self.host.take_out(self.planned[registered])
        self.slots.free_dropped()

    def follow_instances(self, moments: Ints) -> None:
        """Show the kernel the tables of instances, and their last changes, after the last of these `moments`."""
        parametric = [planned for planned in self.planned.values() if planned.source.instances is not None]
        for planned in parametric:
            self.host.quotas.deal_goals(planned)
        if parametric:
            self.slots.lookups.show_tables()
            self.arrays.replace_arrays(self.net._replace(moments=moments))
            self.net.at[c.LATEST_FROM] = max(int(self.net.at[c.LATEST_FROM]), int(moments[-1, c.M_ENTRY]))

    def share_query(self, registered: int, waiting: int, latest: int) -> None:
        """Let a query that has just come share what it has in common with others.

        `waiting` and `latest` are the last entry and the latest end of what waits for time.
        """
        self.sharing.share_query(registered, self.sharing.current_moment(waiting, latest))

    def feed(self, columns: Ints) -> Ints:
        """Take in a feed (FEED_HEIGHT x n, in order); return the rows found, in the columns of `out`."""
        if self.sharing.due < self.arrays.now[c.NOW]:
            self.sharing.unite_due()
        if self.background.coming is None and not self.slots.scans.entails_otherwise:
            return self.host.feed(columns)
        now = self.begun
        # The mark of the last instant stands before all that the end of the streams releases.
        later = np.flatnonzero((columns[c.IN_END] > now) & (columns[c.IN_KIND] != c.LAST))
        if not len(later):
            return self.host.feed(columns)
        parts = list[Ints]()
        if now > -c.BIG:  # the instant closes with the background that it has had
            k = int(later[0])
            before, columns = columns[:, : k + 1].copy(), np.ascontiguousarray(columns[:, k:])
            before[c.IN_KIND, k], before[c.IN_END, k] = c.TICK, now + 1
            parts.append(self.host.feed(before))
        if self.background.coming is not None:
            outs = {planned.out: planned.registered for planned in self.planned.values()}
            self.background.apply_coming()
            for part in parts:
                self._rename_moved(part, outs)
        if self.slots.scans.entails_otherwise:
            self.slots.scans.entail_by(self.slots.scans.entailment)
        parts.append(self.host.feed(columns))
        width = self.net.out.shape[1]
        return np.concatenate([to_width(part, width) for part in parts])

    def _rename_moved(self, found: Ints, outs: Mapping[int, int]) -> None:
        """Rename rows found by queries that have been placed elsewhere since, because they are theirs still."""
        for node in np.unique(found[:, c.OUT_NODE]).tolist():
            if (planned := self.planned.get(outs.get(node, c.NONE))) is not None:  # else it has failed
                found[found[:, c.OUT_NODE] == node, c.OUT_NODE] = -1 - planned.out
        moved = found[:, c.OUT_NODE] < 0
        found[moved, c.OUT_NODE] = -1 - found[moved, c.OUT_NODE]
