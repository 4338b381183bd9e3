"""Functions of the ETALIS Language for Events: numbers, instants, and structs and lists, which are literals in
canonical text.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from math import floor

from engine.expressions.literals import value_of
from engine.expressions.temporal import DAY, HOUR, MINUTE, SECOND, civil_from_days, instant_literal
from engine.expressions.values import DateTime, ExpressionError, Number
from epsparql.etalis.parser.constants import list_literal, read_parts, struct_literal, written_term
from epsparql.etalis.parser.vocabulary import FUNCTION, NAMED, TERM, event_node, key_of
from epsparql.etalis.statics.arithmetic import OPERATIONS, literal_of_value
from epsparql.etalis.statics.lists import LIST_FUNCTIONS, list_items
from epsparql.terms import XSD, Literal, Term

BOOLEAN = XSD + "boolean"


def _exact_value(term: Term) -> int | Decimal | float:
    value = value_of(term)
    if not isinstance(value, Number):
        raise ExpressionError
    return value.value


def _micros(term: Term) -> int:
    """Return an instant in whole microseconds: an xsd:dateTime, or a number of seconds since 1970."""
    value = value_of(term)
    if isinstance(value, DateTime):
        return floor(value.micros)
    return _duration(term)


def _duration(term: Term) -> int:
    """Return the microseconds of a number of seconds with at most six fraction digits."""
    number = _exact_value(term)
    micros = Decimal(number) * SECOND
    if micros != micros.to_integral_value():
        raise ExpressionError
    return int(micros)


def canonical_number(term: Term) -> Term:
    number = _exact_value(term)
    if isinstance(number, float) and number - number != 0:
        raise ExpressionError
    return literal_of_value(number)


def _computed(operation: Callable[..., int | Decimal | float]) -> Callable[..., Term]:
    def compute(*terms: Term) -> Term:
        try:
            return literal_of_value(operation(*map(_exact_value, terms)))
        except (ArithmeticError, ValueError) as fault:
            raise ExpressionError from fault

    return compute


def difference(left: Term, right: Term) -> Term:
    """Return the seconds between two instants, exactly."""
    return literal_of_value(Decimal(_micros(left) - _micros(right)) / SECOND)


def less_instant(left: Term, right: Term) -> Term:
    return Literal("true" if _micros(left) < _micros(right) else "false", BOOLEAN)


def build_struct(name: Term, *parts: Term) -> Term:
    if not isinstance(name, Literal):
        raise ExpressionError
    return struct_literal(name.lexical, parts)


def append_item(whole: Term, item: Term) -> Term:
    """Return a list with one item more at its end."""
    if not isinstance(whole, Literal) or whole.datatype != TERM:
        raise ExpressionError
    text = whole.lexical[:-1]
    return Literal(f"{text}{',' if len(text) > 1 else ''}{written_term(item)}]", TERM)


def take_part(whole: Term, name: Term, size: Term, place: Term) -> Term:
    """Return a part of a struct of this name and size, of a list (name `.`), or of an instant (name `datime`).

    A list of at least this size (name `|`) has one part more: the list of the items that follow.
    """
    assert isinstance(name, Literal)
    n, k = int(_exact_value(size)), int(_exact_value(place))
    value = value_of(whole)
    if name.lexical == "datime" and isinstance(value, DateTime):
        return literal_of_value(_instant_parts(floor(value.micros))[k])
    if not isinstance(whole, Literal) or whole.datatype != TERM:
        raise ExpressionError
    found = read_parts(whole.lexical)
    if found is None:
        raise ExpressionError
    own, parts = found
    if name.lexical == "|" and own == "." and len(parts) >= n:
        return parts[k] if k < n else list_literal(parts[n:])
    if len(parts) != n or own != name.lexical:
        raise ExpressionError
    return parts[k]


def build_list(*terms: Term) -> Term:
    """Return a list of items before the list that is the last argument."""
    *items, tail = terms
    return list_literal((*items, *list_items(tail)))


def _of_lists(operation: Callable[..., Term]) -> Callable[..., Term]:
    def compute(*terms: Term) -> Term:
        try:
            return operation(*terms)
        except (ArithmeticError, ValueError) as fault:
            raise ExpressionError from fault

    return compute


def _instant_parts(micros: int) -> list[int]:
    days, rest = divmod(micros, DAY)
    return [*civil_from_days(days), rest // HOUR, rest % HOUR // MINUTE, rest % MINUTE // SECOND, rest % SECOND]


def name_event(name: Term, *parts: Term) -> Term:
    """Return the node by which streams have an event: after the event's name come its arguments, its start and its end."""
    assert isinstance(name, Literal)
    *arguments, start, end = parts
    return event_node(name.lexical, arguments, _micros(start), _micros(end))


KEY, CANONICAL = f"<{FUNCTION}key>", f"<{FUNCTION}number>"
_BY_NAME: Mapping[str, tuple[Callable[..., Term], int, int]] = {
    **{NAMED.get(name, name): (_computed(operation), n, n) for (name, n), operation in OPERATIONS.items() if name not in ("+", "-", "*", "/")},
    "number": (canonical_number, 1, 1),
    "key": (lambda *terms: key_of(map(str, terms)), 1, 64),
    "event": (name_event, 3, 64),
    "struct": (build_struct, 1, 64),
    "list": (lambda *terms: list_literal(terms), 0, 64),
    "append": (append_item, 2, 2),
    "cons": (_of_lists(build_list), 2, 65),
    **{NAMED.get(name, name): (_of_lists(operation), len(places), len(places)) for (name, _), (places, operation) in LIST_FUNCTIONS.items()},
    "written": (lambda term: Literal(written_term(term)), 1, 1),
    "listed": (lambda items: Literal(f"[{items.lexical}]", TERM) if isinstance(items, Literal) else items, 1, 1),
    "member": (_of_lists(lambda item, whole: Literal("true" if item in list_items(whole) else "false", BOOLEAN)), 2, 2),
    "part": (take_part, 4, 4),
    "datime": (lambda at: instant_literal(_micros(at)), 1, 1),
    "datime_plus_sec": (lambda at, by: instant_literal(_micros(at) + _duration(by)), 2, 2),
    "datime_minus_sec": (lambda at, by: instant_literal(_micros(at) - _duration(by)), 2, 2),
    "addSec_Datime": (lambda by, at: instant_literal(_micros(at) + _duration(by)), 2, 2),
    "datime_minus_datime": (difference, 2, 2),
    "less_datime": (less_instant, 2, 2),
}
APPLIED = {f"<{FUNCTION}{name}>": found for name, found in _BY_NAME.items()}
"""Each function by its IRI in `<>`, with the least and the greatest number of its arguments."""
