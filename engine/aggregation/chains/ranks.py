"""MIN and MAX over a chain compare values by numbers, as long as equal ones are one term."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from engine.aggregation.group_tables import layout as g
from engine.aggregation.group_tables.numeric_columns import plain_of, ranks
from engine.dictionary.term_dictionary import TermTable
from engine.kernel.state import layout as c

Ints = NDArray[np.int64]
_FEW = 1 << 16


class Ranks:
    """Remembers the values of one set function, and which terms have them.

    Of equal values that are different terms, the first match decides, so it takes the matches to say.
    """

    def __init__(self) -> None:
        self._values: set[tuple[int, ...]] = set()
        self._known = np.zeros(0, np.bool_)  # by the number of a term
        self._generation = self._most = -1

    def rank_terms(self, numbers: Ints, terms: TermTable, live: Callable[[], Ints]) -> Ints | None:
        """Return class and value of terms as rows of VALUE_WIDTH; of an unbound one, zeros.

        The result is None if a term has no such value, or another term has the same. `live` gives the rows of all
        values that may still be compared with these.
        """
        distinct, which = np.unique(numbers, return_inverse=True)
        worth = ranks(distinct, plain_of(distinct, terms), terms)
        if worth.foreign:
            return None
        rows = np.column_stack([distinct, worth.class_, worth.value, worth.low])
        rows[distinct == c.UNBOUND] = 0
        if self._generation != terms.generation or len(self._values) > self._most:
            self._values, self._known, self._generation = set(), np.zeros(0, np.bool_), terms.generation
            if not self._enter(live()):
                return None
            self._most = 2 * len(self._values) + _FEW
        return rows[which] if self._enter(rows) else None

    def _enter(self, rows: Ints) -> bool:
        """Remember the terms of values, and return whether no value has two."""
        terms, first = np.unique(rows[:, g.TERM], return_index=True)
        most = int(terms.max(initial=0))
        if most >= len(self._known):
            self._known = np.concatenate([self._known, np.zeros(2 * most + 1 - len(self._known), np.bool_)])
        new = rows[first[~self._known[terms] & (terms != c.UNBOUND)]]
        self._known[new[:, g.TERM]] = True
        values = list(zip(*new[:, g.CLASS :].T.tolist(), strict=True))
        before = len(self._values)
        self._values.update(values)
        return len(self._values) == before + len(values)
