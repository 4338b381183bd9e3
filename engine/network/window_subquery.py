"""This module solves a query at one instant after another, as RSP-QL's windows ask.

The query is planned once, then run on contents from a clean state.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.background.fact_store import FactIndex
from engine.dictionary.term_dictionary import TermTable
from engine.errors import SolverStopped
from engine.expressions.nondeterministic import Naming
from engine.kernel.state import layout as c
from engine.kernel.state.arrays import KEPT, with_width
from engine.network.host_calls import KernelHost
from engine.network.placed_query import Planned, RegisteredQuery, Solve
from engine.planner import PlanOptions, plan_query
from engine.planner.queries import RANK
from epsparql import algebra as a

Ints = NDArray[np.int64]


def make_instant_feed(planned: Planned, now: int, n: int = 0) -> Ints:
    """Return the feed by which a query has all its solutions at one instant: room for n occurrences, then it begins,
    and its streams end.
    """
    feed = np.zeros((c.FEED_HEIGHT, n + 3), np.int64)
    feed[c.IN_START], feed[c.IN_END], feed[c.IN_SINCE] = now, now, 1
    feed[c.IN_KIND, n:], feed[c.IN_S, n], feed[c.IN_END, n + 2] = (c.OPENING, c.LAST, c.TICK), planned.number, c.FOREVER
    return feed


def make_solver(terms: TermTable, query: a.Select, known: FactIndex, policy: str, naming: Naming) -> Solve:
    """Return what solves plain SPARQL over a background and the contents of windows."""
    return WindowSolver(terms, query, known, policy, naming).solve_contents


class WindowSolver:
    """Evaluates plain SPARQL over a background and the contents of windows."""

    def __init__(self, terms: TermTable, query: a.Select, known: FactIndex, policy: str, naming: Naming) -> None:
        self._query, self._host = query, KernelHost(terms, known, make_solver)
        name = "" if naming.form == 1 else naming.query
        self._host.add_query(RegisteredQuery(0, name, query, 0, policy=policy, node_names=naming.form), known)
        self._planned = self._host.slots.planned[0]
        self._fragment = plan_query(query, self._host.planning.make_names(known, PlanOptions(self._planned.source.naming, policy)))
        self._clean = {name: array.copy() for name, array in self._read_filled().items()}

    def solve_contents(self, contents: Mapping[str, Ints], now: int) -> Ints:
        """Return a row for each solution at `now` over `contents` (n x s, p, o, g, by window): its rank and then its
        projection.

        Raises SolverStopped if that takes more than any query may at one instant. It is of no use then.
        """
        self._restore_clean()
        found = self._host.feed(self._make_feed(contents, now))
        if self._host.failures:
            raise SolverStopped(self._host.failures[0].reason)
        columns = [self._planned.columns.get(v) for v in (RANK, *self._query.projection)]
        nothing = np.zeros(len(found), np.int64)
        return np.column_stack([nothing if k is None else found[:, c.OUT_VAR + k - c.VAR] for k in columns])

    def _make_feed(self, contents: Mapping[str, Ints], now: int) -> Ints:
        streams = self._host.slots.streams.numbers
        parts = [(streams[name], rows) for name, rows in contents.items() if len(rows) and name in streams]
        n = sum(len(rows) for _, rows in parts)
        feed = make_instant_feed(self._planned, now, n)
        if n:
            feed[c.IN_STREAM, :n] = np.concatenate([np.full(len(rows), stream) for stream, rows in parts])
            feed[[c.IN_S, c.IN_P, c.IN_O, c.IN_G], :n] = np.concatenate([rows for _, rows in parts]).T
        return feed

    # ------------------------------------------------------------ the clean state
    def _read_filled(self) -> dict[str, NDArray[Any]]:
        """Return program and state, by name.

        Between feeds nothing is on its way, so answers may be asked for again and pools be left out.
        """
        arrays = self._host.arrays
        net = arrays.net
        assert not net.at[[c.DEPTH, c.PARKED, c.DEFERRED_N]].any()
        ends = {name: used.end for name, used in arrays.used.items()} | {"stores": c.SIDES * arrays.used["nodes"].end}
        filled = {name: getattr(net, name)[:end] for name, end in ends.items()} | {"timers": net.timers[: net.at[c.TIMER_NODES]]}
        pools = {"waiting": net.waiting[: net.at[c.WAITING]], "seen": net.seen[: net.at[c.SEEN_N]]}
        return {name: getattr(net, name) for name in KEPT} | filled | pools

    def _restore_clean(self) -> None:
        """Bring the query to where it has seen nothing, with collectors that were never used."""
        planned, arrays = self._planned, self._host.arrays
        clean = {name: array.copy() for name, array in self._clean.items()}
        arrays.replace_arrays(with_width(arrays.net, clean["rows"].dtype["terms"].shape[0])._replace(**clean))
        arrays.forget_answers()
        timers = {node: k for k, node in enumerate(arrays.net.timers[:, c.T_NODE].tolist())}
        self._host.collectors.add_collectors(planned, replace(self._fragment, collectors=deepcopy(self._fragment.collectors)), timers)
        self._host.collectors.completed.clear()
