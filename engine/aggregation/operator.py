"""What the host asks of an operator that decides over all rows of an instant."""

from typing import Protocol

from engine.aggregation.row_batch import Rows
from engine.dictionary.term_dictionary import TermTable
from epsparql.terms import Variable


class Collector(Protocol):
    """One node's state, which is called once for each instant at which rows or wakes come, and when it is due.

    reads, writes: the columns of the rows that it is given and returns.
    """

    reads: tuple[Variable, ...]
    writes: tuple[Variable, ...]

    @property
    def done(self) -> bool:
        """Whether it will never return rows again, whatever comes."""
        ...

    def decide(self, now: int, rows: Rows, wakes: Rows, horizon: int | None, terms: TermTable) -> Rows:
        """Takes in all rows of the instant `now` (µs), no two equal, and gives what is certain by it.

        `wakes` are the moments at which an implicit group comes into being, in the columns of `rows`; `horizon` is the last instant of
        the streams once they have finished: what comes after it schedules nothing.
        """
        ...

    def due(self) -> int:
        """The next instant after the last `now` at which it is to be called though no row comes; c.FOREVER if none."""
        ...

    def size(self) -> int:
        """Bytes of its state as they count for the query's quota; found without going through what it keeps one by one."""
        ...

    def state(self) -> object:
        """What `restore` takes, fit for JSON. The numbers of all terms that are needed later stand in it as integers.

        What is remembered by number beyond that is good for one `terms.generation`.
        """
        ...

    def restore(self, state: object) -> None: ...
