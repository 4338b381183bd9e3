"""An instant as a pattern is there whether or not anything happens: time alone brings it."""

from engine.aggregation.row_batch import RowBatch, no_rows, rows_of
from engine.dictionary.term_dictionary import TermTable
from engine.kernel.state import layout as c
from epsparql.terms import Variable


class InstantCollector:
    """Gives one solution, at the instant that it is made for; if the query reads from later on, none."""

    def __init__(self, at: int) -> None:
        """Make the collector of an instant (µs)."""
        self.reads: tuple[Variable, ...] = ()
        self.writes: tuple[Variable, ...] = ()
        self.done = False
        self.at = at

    def decide(self, now: int, rows: RowBatch, wakes: RowBatch, horizon: int | None, terms: TermTable) -> RowBatch:
        if self.done or now < self.at:
            return no_rows(0)
        self.done = True
        return rows_of([now], [now], [[]], 0) if now == self.at else no_rows(0)

    def due(self) -> int:
        return c.FOREVER if self.done else self.at

    def size(self) -> int:
        return 0

    def state(self) -> object:
        return self.done

    def restore(self, state: object) -> None:
        self.done = bool(state)
