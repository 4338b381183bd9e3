"""RSP-QL windows report at each step: the query is solved over what they hold, as plain SPARQL at one instant
(semantics.md section 7).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from engine.aggregation.row_batch import Ints, RowBatch, no_rows
from engine.dictionary.term_dictionary import TermTable
from engine.kernel.state import layout as c
from engine.state_size import goal_bytes
from epsparql import algebra as a
from epsparql.terms import Variable
from epsparql.trees import replace_fields

Solve = Callable[[a.Select, Mapping[str, Ints], int], Ints]
"""Solves a query over contents (n x s, p, o, g, by window) at an instant: each row is a solution's rank and then its
projection.
"""


class ReportCollector:
    """Keeps what the windows hold and reports at each multiple of a step: all solutions, the new ones or those that
    are gone.

    `cells` are, by window, the columns of subject, predicate, object and graph, one window's bound in a row; `number`
    tells equal solutions apart.
    """

    def __init__(
        self, query: a.StreamQuery, cells: Sequence[tuple[Variable, Variable, Variable, Variable]], shown: tuple[Variable, ...],
        rank: Variable, number: Variable, solve: Solve,
    ) -> None:  # fmt: skip
        """Make the collector; `shown` are the variables that are reported."""
        windows = query.sources.windows
        self.reads = tuple(v for window in cells for v in window)
        self.writes = (*shown, number, rank)
        self.done = False
        self._windows, self._kind, self._solve = windows, query.sources.report, solve
        self._query = _without_windows(query, shown)
        self._contents: list[list[list[int]]] = [[] for _ in windows]  # by window: [s, p, o, g, end], in order of end
        self._before: Counter[tuple[int, ...]] = Counter()  # the previous report, for ISTREAM and DSTREAM
        self._now = -c.BIG
        self._empty = True  # whether the last report was of empty windows

    def decide(self, now: int, rows: RowBatch, wakes: RowBatch, horizon: int | None, terms: TermTable) -> RowBatch:
        self._now = now
        if horizon is None or now <= horizon:
            self._take(rows)
        if all(now % window.step for window in self._windows):
            return no_rows(len(self.writes))
        held = [self._held(k, now) for k in range(len(self._windows))]
        was_empty, self._empty = self._empty, not any(held)
        if was_empty and self._empty:
            return no_rows(len(self.writes))
        return self._report_solutions(now, held, terms)

    def _take(self, rows: RowBatch) -> None:
        for k, content in enumerate(self._contents):
            mine = rows.cells[:, 4 * k : 4 * k + 4]
            chosen = mine[:, 1] != c.UNBOUND
            content += [[*triple, end] for triple, end in zip(mine[chosen].tolist(), rows.end[chosen].tolist(), strict=True)]

    def _held(self, k: int, now: int) -> list[list[int]]:
        """Return what window k holds as of its own last step, and forget what no later step can hold."""
        window = self._windows[k]
        at = now - now % window.step
        self._contents[k] = [row for row in self._contents[k] if row[-1] > at - window.length]
        return [row for row in self._contents[k] if row[-1] <= at]

    def _report_solutions(self, now: int, held: list[list[list[int]]], terms: TermTable) -> RowBatch:
        contents = {
            window.name: np.array([row[:4] for row in rows], np.int64).reshape(-1, 4) for window, rows in zip(self._windows, held, strict=True)
        }
        found = [tuple(row) for row in self._solve(self._query, contents, now).tolist()]
        if self._kind is not a.Report.RSTREAM:
            found = self._difference(found)
        cells = [[*row[1:], terms.intern(f'"{k}"^^<http://www.w3.org/2001/XMLSchema#integer>'), row[0]] for k, row in enumerate(found)]
        start = now - max(window.length for window in self._windows)
        n = len(found)
        return RowBatch(np.full(n, start, np.int64), np.full(n, now, np.int64), np.array(cells, np.int64).reshape(n, len(self.writes)))

    def _difference(self, found: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Return the new solutions, or the ones gone, as multisets of what is shown."""
        current = Counter(row[1:] for row in found)
        before, self._before = self._before, current
        left = current - before if self._kind is a.Report.ISTREAM else before - current
        if self._kind is a.Report.DSTREAM:
            return [(0, *row) for row in left.elements()]
        kept = []
        for row in found:
            if left[row[1:]] > 0:
                left[row[1:]] -= 1
                kept.append(row)
        return kept

    def due(self) -> int:
        """Return the next step of a window, while one holds something or the last report was not yet of empty ones."""
        if self._empty and not any(self._contents):
            return c.FOREVER
        return min((self._now // window.step + 1) * window.step for window in self._windows)

    def size(self) -> int:
        held = sum(map(len, self._contents))
        return goal_bytes(4) * held + goal_bytes(len(self.writes)) * len(self._before)

    def state(self) -> object:
        before = [[list(row), n] for row, n in self._before.items()]
        return [self._now, self._empty, self._contents, before]

    def restore(self, state: Any) -> None:
        self._now, self._empty, self._contents, before = state
        self._before = Counter({tuple(row): n for row, n in before})


def _without_windows(query: a.StreamQuery, shown: tuple[Variable, ...]) -> a.Select:
    """Return what is solved at each step: the query over its windows as over streams."""
    streams = tuple(window.name for window in query.sources.windows)
    if isinstance(query, a.Select):
        return replace_fields(query, streams=streams, sources=a.WHOLE)
    return a.Select(query.pattern, shown, False, streams)
