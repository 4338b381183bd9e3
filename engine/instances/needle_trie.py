"""This module holds the values that one parameter has. All those that a text contains, begins with or ends with are
found in one pass over the text (`engine/native/source/dictionary/needle_trie.c`).

What is sought for a value, its needle, is the value itself, or a term that is computed of it. Values come as instances
do. Those that no instance has any more stay, and find no instance, until they are more than the others. What was found
last is remembered by the text's term, in a table of bounded size.
"""

import numpy as np
from numpy.typing import NDArray

from engine.dictionary import layout as c
from engine.dictionary.term_dictionary import Held, TermTable
from engine.expressions.evaluator import ExpressionError, evaluate
from engine.native.entries import add_needles, spread_edges
from engine.physical_plan.plan import TextSearch
from engine.regex.required_literal import find_required_literal
from epsparql import algebra as a
from epsparql.regex.syntax import PatternFault
from epsparql.terms import Iri, Literal, Term

Ints = NDArray[np.int64]
_FEW, _TEXTS, _LEAST_VALUES = 1 << 4, 1 << 12, 1 << 12
"""Room for few needles, for the texts whose values are remembered, and for these values."""
_NO_STRING = str(Iri("urn:no-string"))
_SPARE = 1 << 10
"""So many values may be out of use beside as many as there are instances."""


class NeedleTrie:
    """Finds the values of a parameter of which a text has the needle."""

    def __init__(self, terms: TermTable, search: TextSearch) -> None:
        self._terms, self._search = terms, search
        self._row: Ints = np.zeros(c.SEARCH_WIDTH, np.int64)
        self._row[[c.S_TERMS, c.S_MODE]] = terms.address, search.mode
        self._memo: Ints = np.zeros((_TEXTS, c.MEMO_WIDTH), np.int64)
        self.clear()
        terms.holders.add(self)

    def clear(self) -> None:
        """Forget all values."""
        self._known = np.zeros(0, np.bool_)  # by number of term
        self._needles: Ints = np.zeros((_FEW, c.NEEDLE_WIDTH), np.int64)
        self._edges: Ints = np.zeros((2 * _FEW, c.EDGE_WIDTH), np.int64)
        self._branches: Ints = np.full((_FEW, c.BRANCH_WIDTH), c.NO_NEEDLE, np.int64)
        self._branches[0, c.B_DEPTH] = 0
        self._values: Ints = np.zeros(_LEAST_VALUES, np.int64)
        self._row[[c.S_NEEDLES_N, c.S_EDGES_N, c.S_BRANCHES_N, c.S_FOUND]] = 0, 0, 1, 0
        self._publish_arrays()

    @property
    def address(self) -> int:
        """Return where the kernel finds the search; it stays there."""
        return int(self._row.ctypes.data)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (self._memo, self._known, self._needles, self._edges, self._branches, self._values))

    def hold(self, held: Held) -> None:
        """Mark the values and needles; texts are forgotten, whose numbers may be given to others."""
        held.add(self._needles[: self._row[c.S_NEEDLES_N], [c.N_TEXT, c.N_VALUE]])
        self._memo[:] = 0

    def add_values(self, values: Ints, live: int) -> bool:
        """Add values that are not there yet. Returns False if most values are out of use, with `live` instances."""
        values = np.unique(values)
        if (most := int(values[-1]) + 1 if len(values) else 0) > len(self._known):
            self._known = np.concatenate([self._known, np.zeros(max(most, 2 * len(self._known)) - len(self._known), np.bool_)])
        values = values[~self._known[values]]
        if not len(values):
            return True
        if self._row[c.S_NEEDLES_N] + len(values) > 2 * live + _SPARE:
            return False
        first = int(self._row[c.S_NEEDLES_N])
        texts = values if self._search.sought == a.Var(self._search.parameter) and self._search.flags is None else self._list_needles(values)
        done = 0
        while (done := add_needles(self.address, texts, values, done)) < len(values):
            self._make_room()
        self._known[self._needles[first : self._row[c.S_NEEDLES_N], c.N_VALUE]] = True  # no other ones are held
        self._memo[:] = 0
        return True

    def _list_needles(self, values: Ints) -> Ints:
        """Return the term that is sought for each value; _NO_STRING where none is."""
        needles = [self._find_needle(value) for value in values.tolist()]
        return self._terms.intern_all([_NO_STRING if needle is None else str(needle) for needle in needles])

    def _find_needle(self, value: int) -> Term | None:
        term = self._terms.get_term(value)
        try:
            sought = evaluate(self._search.sought, {self._search.parameter: term}.get, None, None)
            if self._search.flags is None:
                return sought
            return Literal(find_required_literal(sought.lexical, self._search.flags)) if isinstance(sought, Literal) else None
        except (ExpressionError, PatternFault):
            return None

    def _make_room(self) -> None:
        """Double the tables that may be full."""
        row = self._row
        if row[c.S_NEEDLES_N] == len(self._needles):
            self._needles = np.concatenate([self._needles, np.zeros_like(self._needles)])
            self._values = np.zeros(max(len(self._needles), _LEAST_VALUES), np.int64)
        if row[c.S_BRANCHES_N] == len(self._branches):
            self._branches = np.concatenate([self._branches, np.full_like(self._branches, c.NO_NEEDLE)])
        edges = self._edges
        if 2 * (row[c.S_EDGES_N] + 2) > len(edges):
            self._edges = np.zeros((2 * len(edges), c.EDGE_WIDTH), np.int64)
        self._publish_arrays()
        if self._edges is not edges:
            spread_edges(self.address, edges)

    def _publish_arrays(self) -> None:
        """Tell compiled functions where the arrays are now; what was remembered is forgotten."""
        arrays = self._needles, self._edges, self._branches, self._memo, self._values
        self._row[c.S_NEEDLES : c.S_NEEDLES + len(arrays)] = [array.ctypes.data for array in arrays]
        self._row[c.S_NEEDLES_ROOM : c.S_NEEDLES_ROOM + len(arrays)] = [len(array) for array in arrays]
        self._memo[:] = 0
