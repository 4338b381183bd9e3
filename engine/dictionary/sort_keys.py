"""ORDER BY, MIN and MAX follow one total order, which extends SPARQL 1.1, 15.1.

The unbound comes first, then blank nodes, IRIs, literals and triple terms. Literals are numbers (NaN least) by exact
value, strings without language by code points, booleans, dateTimes by instant, day-time durations by length. All
other literals come by N-Triples text. Triple terms go by subject, then predicate, then object.
"""

from decimal import Decimal
from fractions import Fraction

from engine.dictionary.term_dictionary import TermTable
from engine.expressions.literals import value_of
from engine.expressions.values import DateTime, Duration, Number, Text
from epsparql.terms import BlankNode, Iri, Term, TripleTerm

SortKey = tuple[int, "int | Decimal | Fraction | float | str | tuple[SortKey, ...]"]
"""A key is a class, and a value that compares within the class; terms that are equal in the order have equal keys."""

_UNBOUND, _BLANK, _IRI, _NAN, _NUMBER, _STRING, _BOOLEAN, _INSTANT, _DURATION, _OTHER, _TRIPLE = range(11)
_KEPT = 1 << 16


def sort_key(term: Term | None) -> SortKey:
    if term is None:
        return _UNBOUND, 0
    match value_of(term):
        case BlankNode(label):
            return _BLANK, label
        case Iri(iri):
            return _IRI, iri
        case Number(_, value):
            return (_NUMBER, value) if value == value else (_NAN, 0)
        case Text(text, None):
            return _STRING, text
        case bool() as value:
            return _BOOLEAN, value
        case DateTime(micros):
            return _INSTANT, micros
        case Duration(0, micros):
            return _DURATION, micros
        case TripleTerm(subject, predicate, object_):
            return _TRIPLE, (sort_key(subject), sort_key(predicate), sort_key(object_))
    return _OTHER, str(term)


class SortKeys:
    """Remembers sort keys by number of term."""

    def __init__(self) -> None:
        self._known: dict[int, SortKey] = {}
        self._generation = 0  # of the terms in `_known`

    def find_sort_key(self, number: int, terms: TermTable) -> SortKey:
        if self._generation != terms.generation:
            self._known, self._generation = {}, terms.generation
        found = self._known.get(number)
        if found is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            found = self._known[number] = sort_key(terms.term(number))
        return found
