"""This module has the functions of lists that conditions and static rules call. Lists are literals in canonical text."""

from collections.abc import Callable, Iterable, Mapping
from functools import reduce

from epsparql.etalis.parser.constants import list_literal, read_parts
from epsparql.etalis.parser.vocabulary import TERM, name_of
from epsparql.etalis.statics.arithmetic import OPERATIONS, Value, literal_of_value, value_of_literal
from epsparql.terms import Iri, Literal
from epsparql.terms import Term as RdfTerm

_FIRST = "."


class NoList(ValueError):
    """Signals a term that is no list where a list is needed."""


def list_items(term: object) -> tuple[RdfTerm, ...]:
    """Return the items of a list. Raises: NoList for anything else."""
    found = read_parts(term.lexical) if isinstance(term, Literal) and term.datatype == TERM else None
    if found is None or found[0] != _FIRST:
        raise NoList
    return found[1]


def standard_order(term: RdfTerm) -> tuple[object, ...]:
    """Return a key that orders terms: numbers by value, names and IRIs, strings and other literals by their text,
    structs by size, name and arguments, and lists by their items.
    """
    if isinstance(term, Literal):
        value = value_of_literal(term)
        if value is not None and value == value:
            return (0, value, term.lexical)
        found = read_parts(term.lexical) if term.datatype == TERM else None
        if found is not None:
            name, parts = found
            keys = tuple(map(standard_order, parts))
            return (4, keys) if name == _FIRST else (3, len(parts), name, keys)
        return (2, term.lexical, str(term))
    return (1, name_of(term.value) if isinstance(term, Iri) else str(term))


def ordered_list(items: Iterable[RdfTerm]) -> Literal:
    """Return a list of terms in their standard order."""
    return list_literal(sorted(items, key=standard_order))


def _numbers(whole: RdfTerm) -> list[Value]:
    found = [value_of_literal(item) for item in list_items(whole)]
    numbers = [value for value in found if value is not None]
    if len(numbers) < len(found):
        raise ValueError("no number")
    return numbers


def _item(place: RdfTerm, whole: RdfTerm, first: int) -> RdfTerm:
    at, items = value_of_literal(place), list_items(whole)
    if at is None or at != int(at) or not 0 <= at - first < len(items):
        raise ValueError("no item of this number")
    return items[int(at) - first]


def _last(whole: RdfTerm) -> RdfTerm:
    *_, last = list_items(whole)  # raises ValueError for an empty list
    return last


def _sum_items(whole: RdfTerm) -> RdfTerm:
    start: Value = 0
    return literal_of_value(reduce(OPERATIONS["+", 2], _numbers(whole), start))


LIST_FUNCTIONS: Mapping[tuple[str, int], tuple[tuple[int, ...], Callable[..., RdfTerm]]] = {
    ("length", 2): ((0,), lambda whole: literal_of_value(len(list_items(whole)))),
    ("append", 3): ((0, 1), lambda left, right: list_literal((*list_items(left), *list_items(right)))),
    ("reverse", 2): ((0,), lambda whole: list_literal(list_items(whole)[::-1])),
    ("last", 2): ((0,), _last),
    ("nth0", 3): ((0, 1), lambda place, whole: _item(place, whole, 0)),
    ("nth1", 3): ((0, 1), lambda place, whole: _item(place, whole, 1)),
    ("sum_list", 2): ((0,), _sum_items),
    ("sumlist", 2): ((0,), _sum_items),
    ("min_list", 2): ((0,), lambda whole: literal_of_value(min(_numbers(whole)))),
    ("max_list", 2): ((0,), lambda whole: literal_of_value(max(_numbers(whole)))),
    ("msort", 2): ((0,), lambda whole: ordered_list(list_items(whole))),
    ("sort", 2): ((0,), lambda whole: ordered_list(dict.fromkeys(list_items(whole)))),
}
"""Each function of lists by name and number of arguments: the places of its inputs, which stand before its result, and
what computes it. It raises ValueError or ArithmeticError where it has no result.
"""
