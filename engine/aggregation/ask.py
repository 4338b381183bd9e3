"""ASK is true at the first solution, and false where finished streams end without one (semantics.md section 7)."""

import numpy as np

from engine.aggregation.row_batch import RowBatch, no_rows, rows_of
from engine.dictionary.term_dictionary import TermTable
from engine.expressions.literals import FALSE, TRUE
from engine.kernel.state import layout as c
from epsparql.terms import Variable

VERDICT = Variable("_:ask")


class AskCollector:
    """Gives one answer.

    While there is none, the collector is due when the streams have ended.
    """

    def __init__(self, reads: tuple[Variable, ...]) -> None:
        self.reads = reads
        self.writes: tuple[Variable, ...] = (VERDICT,)
        self.done = False

    def decide(self, now: int, rows: RowBatch, wakes: RowBatch, horizon: int | None, terms: TermTable) -> RowBatch:
        if self.done:
            return no_rows(1)
        if len(rows):
            self.done = True
            return self._first(rows.placed(now), terms)
        if horizon is None or len(wakes):
            return no_rows(1)
        self.done = True
        return rows_of([horizon], [horizon], [[terms.intern(str(FALSE))]], 1)

    def _first(self, rows: RowBatch, terms: TermTable) -> RowBatch:
        k = np.lexsort((rows.start, rows.end))[0]
        return rows_of([rows.start[k]], [rows.end[k]], [[terms.intern(str(TRUE))]], 1)

    def due(self) -> int:
        return c.FOREVER if self.done else c.AT_END

    def size(self) -> int:
        return 0

    def state(self) -> object:
        return self.done

    def restore(self, state: object) -> None:
        self.done = bool(state)
