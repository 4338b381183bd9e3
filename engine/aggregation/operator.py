"""The host calls an operator that decides over all rows of an instant through this protocol."""

from typing import Protocol

from engine.aggregation.row_batch import RowBatch
from engine.dictionary.term_dictionary import TermTable
from engine.kernel.state import layout as c
from epsparql.terms import Variable

AT_LAST = c.FOREVER - 2
"""A collector that is due at this value is called at the last instant of the streams, once they have finished."""


class Collector(Protocol):
    """Keeps one node's state; it is called once for each instant at which rows or wakes come, and when it is due.

    reads, writes: the columns of the rows that it is given and returns.
    """

    reads: tuple[Variable, ...]
    writes: tuple[Variable, ...]

    @property
    def done(self) -> bool:
        """Return whether the collector will never return rows again, whatever comes."""
        ...

    def decide(self, now: int, rows: RowBatch, wakes: RowBatch, horizon: int | None, terms: TermTable) -> RowBatch:
        """Take in all rows of the instant `now` (µs), no two equal, and return what is certain by it.

        `wakes` are the moments at which an implicit group comes into being, in the columns of `rows`. `horizon` is
        the last instant of the streams once they have finished: what comes after it schedules nothing.
        """
        ...

    def due(self) -> int:
        """Return the next instant after the last `now` at which the collector must be called though no row comes;
        c.FOREVER if none, AT_LAST if that is the end.
        """
        ...

    def size(self) -> int:
        """Return the bytes of its state as they count for the query's quota, found without going through all that it
        keeps.
        """
        ...

    def state(self) -> object:
        """Return what `restore` takes, fit for JSON.

        The numbers of all terms that are needed later stand in it as integers. Other numbers that are remembered are
        good for one `terms.generation`.
        """
        ...

    def restore(self, state: object) -> None: ...
