"""Set functions take terms by their numbers, texts and sort keys."""

from engine.dictionary.sort_keys import SortKey, SortKeys
from engine.dictionary.term_dictionary import TermTable
from engine.expressions import numeric
from engine.expressions.literals import parse_addend
from engine.expressions.values import Duration, Number, NumericType
from epsparql.terms import BlankNode, Iri, Literal, TripleTerm

Total = dict[str, int]
"""It says what many addends are together (`engine/aggregation/group_tables/fallback.py`)."""
Value = int | tuple[int, ...] | Total
"""A value is the number of a term, c.UNBOUND for an error; of COUNT(DISTINCT *), the numbers of a whole solution."""

_KEPT = 1 << 16


class TermValues:
    """Remembers the values that terms have for set functions, by the terms' numbers. Call `over` first."""

    terms: TermTable

    def __init__(self) -> None:
        self._keys = SortKeys()
        self._addends: dict[int, Number | Duration | None] = {0: None}
        self._integers: dict[int, int] = {}
        self._generation = 0  # of the terms that are remembered

    def over(self, terms: TermTable) -> None:
        """Take the table that is in use from now on."""
        self.terms = terms
        if self._generation != terms.generation:
            self._addends, self._integers, self._generation = {0: None}, {}, terms.generation

    def read_addend(self, value: Value) -> Number | Duration | None:
        """Return a number or a day-time duration, None for what has no sum."""
        assert isinstance(value, int)
        if value in self._addends:
            return self._addends[value]
        if len(self._addends) >= _KEPT:
            self._addends = {0: None}
        term = self.terms.term(value)
        found = self._addends[value] = None if term is None else parse_addend(term)
        return found

    def read_sort_key(self, value: Value) -> SortKey:
        assert isinstance(value, int)
        return self._keys.find_sort_key(value, self.terms)

    def read_text(self, value: Value) -> str | None:
        """Return STR of the term, None for an error."""
        assert isinstance(value, int)
        match self.terms.term(value):
            case Iri(text) | Literal(text):
                return text
            case BlankNode() | TripleTerm() | None:
                return None

    def integer(self, value: int) -> int:
        """Return the number of an integer's term."""
        found = self._integers.get(value)
        if found is None:
            if len(self._integers) >= _KEPT:
                self._integers.clear()
            found = self._integers[value] = self.terms.intern(str(numeric.literal(Number(NumericType.INTEGER, value))))
        return found
