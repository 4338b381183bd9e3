"""ORDER BY, DISTINCT, OFFSET, LIMIT and the order of ONCE PER apply within an instant or through the whole stream
(SPARQL 1.1, 18.2.5).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.aggregation.arguments import Argument
from engine.aggregation.row_batch import Ints, RowBatch, in_order, no_rows
from engine.dictionary.sort_keys import SortKeys
from engine.dictionary.term_dictionary import TermTable
from engine.expressions.nondeterministic import NAMELESS, Naming
from engine.kernel.state import layout as c
from engine.state_size import goal_bytes
from epsparql.algebra import Modifiers, OrderKey
from epsparql.deferred_methods import dataclass
from epsparql.terms import Variable


@dataclass(frozen=True, slots=True)
class Projection:
    """Says which of the variables in `reads` a SELECT shows, and by which its solutions stay apart.

    Without DISTINCT, they stay apart by all that they bind. With it, by what they bind of the projection, and by
    `graph` if that is not in it. `graph` is the column that tells graphs apart inside GRAPH, which are counted apart.
    `rank`, if there is one, is written last.
    """

    reads: tuple[Variable, ...]
    shown: tuple[Variable, ...]
    distinct: bool = False
    rank: Variable | None = None
    graph: Variable | None = None

    def list_columns(self) -> tuple[Variable, ...]:
        """Return the variables by which solutions stay apart."""
        columns = tuple(v for v in self.shown if v in self.reads) if self.distinct else self.reads
        return columns if self.graph is None or self.graph in columns else (*columns, self.graph)


class SolutionOrder:
    """Orders solutions of an instant: by ORDER BY, then start, then terms."""

    def __init__(self, keys: Sequence[OrderKey], projection: Projection, naming: Naming = NAMELESS) -> None:
        self._reads, self._shown, self._keys = projection.reads, projection.shown, keys
        self._sort_keys = SortKeys()
        self._arguments = [Argument(key.expression, self._reads, naming, f"ORDER BY {k}") for k, key in enumerate(keys)]

    def find_order(self, rows: RowBatch, now: int, terms: TermTable) -> Ints:
        """Return the rows' order: ORDER BY, then start, then terms of the projected variables; a timeless solution as
        if it stood at `now`.
        """
        order: list[int] = self._by_terms(rows.placed(now), rows.start == c.BIG, terms).tolist()
        # sorting is stable, so the least comparator goes first
        for key, argument in zip(reversed(self._keys), reversed(self._arguments), strict=True):
            keys = [self._sort_keys.find_sort_key(number, terms) for number in argument.numbers(rows, now, terms)]
            order.sort(key=keys.__getitem__, reverse=key.descending)
        return np.array(order, np.int64)

    def _by_terms(self, placed: RowBatch, timeless: NDArray[np.bool_], terms: TermTable) -> Ints:
        """Return the order by end, start and projected terms.

        Of equals the timeless ones come first, and then what else tells them apart decides.
        """
        order = in_order(placed, self._reads, terms, self._shown)
        order = order[np.argsort(~timeless[order], kind="stable")]
        shown = [variable for variable in self._shown if variable in self._reads]
        columns = [self._reads.index(variable) for variable in shown]
        sorted_so_far = placed.where(order)
        return order[in_order(RowBatch(sorted_so_far.start, sorted_so_far.end, sorted_so_far.cells[:, columns]), shown, terms)]


class OnceCollector:
    """Puts the solutions that come to a ONCE PER together in the order of emission.

    The kernel keeps its state, and decides which of them pass.
    """

    done = False

    def __init__(self, order: SolutionOrder, reads: tuple[Variable, ...]) -> None:
        self.reads = self.writes = reads
        self._order = order

    def decide(self, now: int, rows: RowBatch, wakes: RowBatch, horizon: int | None, terms: TermTable) -> RowBatch:
        return rows.where(self._order.find_order(rows, now, terms))

    def due(self) -> int:
        return c.FOREVER

    def size(self) -> int:
        return 0

    def state(self) -> object:
        return None

    def restore(self, state: object) -> None:
        pass


class ModifiersCollector:
    """Puts solutions of an instant in their order, and leaves what DISTINCT, OFFSET and LIMIT leave of them.

    OFFSET and LIMIT count through the stream, or anew in each report.
    """

    def __init__(self, modifiers: Modifiers, projection: Projection, per_report: bool, naming: Naming = NAMELESS, stands: bool = False) -> None:
        """Make the collector.

        With `stands`, timeless solutions become [now, now], as of a query; else they stay timeless, as of a sub-SELECT.
        """
        self.reads, self.columns, rank, graph = projection.reads, projection.list_columns(), projection.rank, projection.graph
        self.writes = self.columns if rank is None else (*self.columns, rank)
        self.modifiers, self.projection, self.distinct = modifiers, projection.shown, projection.distinct
        self.per_report, self.ranked, self.stands = per_report, rank is not None, stands
        self._order = SolutionOrder(modifiers.order, projection, naming)
        self._graph = None if graph is None else self.columns.index(graph)
        self._counts: dict[int, tuple[int, int]] = {}  # by graph: how many solutions OFFSET has left out, and how many were given

    @property
    def done(self) -> bool:
        limit = self.modifiers.limit
        if limit is None or self._graph is not None or self.per_report:
            return limit == 0
        return self._counts.get(c.UNBOUND, (0, 0))[1] >= limit

    def decide(self, now: int, rows: RowBatch, wakes: RowBatch, horizon: int | None, terms: TermTable) -> RowBatch:
        if not len(rows) or self.done:
            return no_rows(len(self.writes))
        if self.stands:
            rows = rows.standing(now)
        rows = rows.where(np.argsort(rows.start != c.BIG, kind="stable"))  # of equals, the timeless one comes first
        rows = rows.where(self._order.find_order(rows, now, terms))
        rows = RowBatch(rows.start, rows.end, self._projected(rows.cells))
        if self.stands:
            rows = rows.placed(now)
        if self.distinct:
            rows = rows.where(_first_of_equals(rows))
        rows = self._sliced(rows)
        if not self.ranked:
            return rows
        return RowBatch(rows.start, rows.end, np.column_stack([rows.cells, np.arange(1, len(rows) + 1)]))

    def _projected(self, cells: Ints) -> Ints:
        if not self.distinct:
            return cells
        return cells[:, [self.reads.index(variable) for variable in self.columns]]

    def _sliced(self, rows: RowBatch) -> RowBatch:
        graphs = np.zeros(len(rows), np.int64) if self._graph is None else rows.cells[:, self._graph]
        parts = [self._slice(int(graph), np.flatnonzero(graphs == graph)) for graph in np.unique(graphs)]
        return rows.where(np.sort(np.concatenate(parts)))

    def _slice(self, graph: int, places: Ints) -> Ints:
        """Return, of the solutions of one graph, which stand at `places`, those that are given."""
        passed, given = (0, 0) if self.per_report else self._counts.get(graph, (0, 0))
        kept = places[max(self.modifiers.offset - passed, 0) :]
        passed += len(places) - len(kept)
        if self.modifiers.limit is not None:
            kept = kept[: self.modifiers.limit - given]
        self._counts[graph] = passed, given + len(kept)
        return kept

    def due(self) -> int:
        return c.FOREVER

    def size(self) -> int:
        return goal_bytes(2) * len(self._counts)

    def state(self) -> object:
        return [[graph, *counts] for graph, counts in self._counts.items()]

    def restore(self, state: Any) -> None:
        self._counts = {graph: (passed, given) for graph, passed, given in state}


def _first_of_equals(rows: RowBatch) -> Ints:
    _, first = np.unique(np.column_stack([rows.start, rows.end, rows.cells]), axis=0, return_index=True)
    return np.sort(first)
