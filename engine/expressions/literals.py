"""This module goes between terms and their values."""

from collections.abc import Callable
from functools import lru_cache
from typing import assert_never

from engine.expressions import numeric, temporal
from engine.expressions.values import DateTime, Day, Duration, ExpressionError, Number, Text, TimeOfDay, Value
from epsparql.ntriples import parse_term as parse_term
from epsparql.terms import XSD, XSD_STRING, BlankNode, Iri, Literal, Term, TripleTerm

XSD_BOOLEAN = XSD + "boolean"
TRUE, FALSE = Literal("true", XSD_BOOLEAN), Literal("false", XSD_BOOLEAN)

_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def _zoned_instant(lexical: str) -> DateTime | None:
    found = temporal.instant(lexical)
    return None if found is None or found.zone is None else found


_PARSERS: dict[str, Callable[[str], bool | Number | Text | DateTime | Day | TimeOfDay | Duration | None]] = {
    **numeric.PARSERS,
    XSD_STRING: Text,
    XSD_BOOLEAN: _BOOLEANS.get,
    XSD + "dateTime": temporal.instant,
    XSD + "dateTimeStamp": _zoned_instant,
    XSD + "date": temporal.day,
    XSD + "time": temporal.time_of_day,
    XSD + "duration": temporal.duration,
    XSD + "dayTimeDuration": temporal.day_time,
    XSD + "yearMonthDuration": temporal.year_month,
}


@lru_cache(maxsize=1 << 14)
def value_of(term: Term) -> Value:
    """Return the value of a term; the term itself if it is an IRI, a blank node, a triple term or a literal without a
    known value.
    """
    if not isinstance(term, Literal):
        return term
    if term.language is not None:
        return Text(term.lexical, term.tag)
    parser = _PARSERS.get(term.datatype)
    value = parser(term.lexical) if parser else None
    return term if value is None else value


def term_of(value: Value) -> Term:
    """Return the canonical term of a value."""
    match value:
        case Iri() | BlankNode() | Literal() | TripleTerm():
            return value
        case bool():
            return TRUE if value else FALSE
        case Number():
            return numeric.literal(value)
        case Text(text, language):
            return Literal(text) if language is None else Literal.from_tag(text, language)
        case DateTime(micros, zone):
            return Literal(temporal.format_instant(micros, zone), XSD + "dateTime")
        case Day():
            return Literal(temporal.format_day(value), XSD + "date")
        case TimeOfDay():
            return Literal(temporal.format_time(value), XSD + "time")
        case Duration():
            return temporal.duration_literal(value)
    assert_never(value)


def parse_number(term: Term) -> Number | None:
    """Return the exact numeric value of a term, None if it has none."""
    value = value_of(term)
    return value if isinstance(value, Number) else None


def parse_addend(term: Term) -> Number | Duration | None:
    """Return the number or day-time duration that SUM and AVG add, None if the term is neither."""
    value = value_of(term)
    return value if isinstance(value, Number) or (isinstance(value, Duration) and not value.months) else None


def effective(value: Value) -> bool:
    """Return the effective boolean value. Raises: ExpressionError where SPARQL defines none."""
    match value:
        case bool():
            return value
        case Number(_, n):
            return n == n and n != 0
        case Text(text):
            return bool(text)
        case Literal(_, datatype) if datatype == XSD_BOOLEAN or datatype in numeric.PARSERS:
            return False  # SPARQL 1.1, 17.2.2: a lexical form that the datatype does not have
        case _:
            raise ExpressionError
