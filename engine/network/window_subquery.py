"""This module solves a query at one instant after another, as RSP-QL's windows ask.

The query is planned once, then run on contents from a clean state.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.background.fact_store import FactIndex
from engine.dictionary.term_dictionary import TermTable
from engine.kernel.state import layout as c
from engine.network.network import Network
from engine.planner import plan_query
from engine.planner.queries import RANK
from epsparql import algebra as a

Ints = NDArray[np.int64]


class Solver:
    """Evaluates plain SPARQL over a background and the contents of windows."""

    def __init__(self, terms: TermTable, query: a.Select, known: FactIndex, policy: str) -> None:
        self.query, self.known = query, known
        self._network = Network(terms, known=known)
        self._network.add(0, "", query, known, policy=policy)
        self._planned = self._network.planned[0]
        self._fragment = plan_query(query, self._network.names(known, "", policy))
        self._clean = {name: array.copy() for name, array in self._network.arrays().items()}

    def solve(self, contents: Mapping[str, Ints], now: int) -> Ints:
        """Return a row for each solution at `now` over `contents` (n x s, p, o, g, by window): its rank and then its projection."""
        network = self._network
        fragment = replace(self._fragment, collectors=deepcopy(self._fragment.collectors))  # which were never used
        network.restore({name: array.copy() for name, array in self._clean.items()}, [(self._planned, fragment)])
        found = network.feed(self._feed(contents, now))
        columns = [self._planned.columns.get(v) for v in (RANK, *self.query.projection)]
        nothing = np.zeros(len(found), np.int64)
        return np.column_stack([nothing if k is None else found[:, c.OUT_VAR + k - c.VAR] for k in columns])

    def _feed(self, contents: Mapping[str, Ints], now: int) -> Ints:
        parts = [(self._network.streams[name], rows) for name, rows in contents.items() if len(rows) and name in self._network.streams]
        n = sum(len(rows) for _, rows in parts)
        feed = np.zeros((c.FEED_HEIGHT, n + 3), np.int64)
        feed[c.IN_START], feed[c.IN_END], feed[c.IN_SINCE] = now, now, 1
        if n:
            feed[c.IN_STREAM, :n] = np.concatenate([np.full(len(rows), stream) for stream, rows in parts])
            feed[[c.IN_S, c.IN_P, c.IN_O, c.IN_G], :n] = np.concatenate([rows for _, rows in parts]).T
        feed[c.IN_KIND, n:], feed[c.IN_S, n], feed[c.IN_END, n + 2] = (c.OPENING, c.LAST, c.TICK), self._planned.number, c.FOREVER
        return feed
