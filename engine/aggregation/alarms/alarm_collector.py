"""An alarm gives a solution once more, on an interval that ends at an instant which the solution itself says.

x on [x.start, x.end], bound to T ──▶ heap by T ──▶ time passes T ──▶ x on [x.start, T]
"""

from heapq import heapify, heappop, heappush
from typing import Any

from engine.aggregation.row_batch import RowBatch, no_rows, rows_of
from engine.dictionary.term_dictionary import TermTable
from engine.expressions.temporal import instant_micros
from engine.kernel.state import layout as c
from engine.state_size import goal_bytes
from epsparql.terms import XSD, Literal, Variable

Waiting = tuple[int, int, tuple[int, ...]]
"""What waits is (T, start, terms)."""


class AlarmCollector:
    """Keeps solutions until their instants; those of instants that are over bring nothing."""

    done = False

    def __init__(self, reads: tuple[Variable, ...], at: Variable) -> None:
        """Make the collector; `at` is the column that holds the instant, an xsd:dateTime."""
        self.reads = self.writes = reads
        self._at = reads.index(at)
        self._heap: list[Waiting] = []

    def decide(self, now: int, rows: RowBatch, wakes: RowBatch, horizon: int | None, terms: TermTable) -> RowBatch:
        if horizon is None or now <= horizon:  # what time brings after the end sets no further alarms
            rows = rows.placed(now)
            for start, end, cells in zip(rows.start.tolist(), rows.end.tolist(), rows.cells.tolist(), strict=True):
                term = terms.term(cells[self._at])
                at = instant_micros(term.lexical) if isinstance(term, Literal) and term.datatype == XSD + "dateTime" else None
                if at is not None and at > end:
                    heappush(self._heap, (at, start, tuple(cells)))
        due: list[Waiting] = []
        while self._heap and self._heap[0][0] <= now:
            due.append(heappop(self._heap))
        if not due:
            return no_rows(len(self.writes))
        return rows_of([start for _, start, _ in due], [at for at, _, _ in due], [cells for _, _, cells in due], len(self.writes))

    def due(self) -> int:
        return self._heap[0][0] if self._heap else c.FOREVER

    def size(self) -> int:
        return goal_bytes(len(self.reads)) * len(self._heap)

    def state(self) -> object:
        return [[str(at), str(start), list(cells)] for at, start, cells in self._heap]

    def restore(self, state: Any) -> None:
        self._heap = [(int(at), int(start), tuple(cells)) for at, start, cells in state]
        heapify(self._heap)
