"""SPARQL's constructor functions, `xsd:integer(?x)` and the like, cast terms to datatypes (SPARQL 1.1, 17.5)."""

from collections.abc import Callable
from decimal import ROUND_DOWN, Decimal

from engine.expressions import numeric, temporal
from engine.expressions.literals import value_of
from engine.expressions.values import DateTime, Day, Duration, ExpressionError, Number, NumericType, Text, TimeOfDay, Value
from epsparql.terms import XSD, XSD_STRING, BlankNode, Iri, Literal, Term, TripleTerm


def _cast_text(lexical: str, datatype: str) -> Value:
    value = value_of(Literal(lexical.strip(" \t\r\n"), datatype))
    if isinstance(value, Literal):
        raise ExpressionError
    return value


def to_string(value: Value) -> Value:
    match value:
        case Iri(text) | Text(text) | Literal(text):
            return Text(text)
        case bool():
            return Text("true" if value else "false")
        case Number():
            return Text(number_text(value))
        case DateTime(micros, zone):
            return Text(temporal.format_instant(micros, zone))
        case Day():
            return Text(temporal.format_day(value))
        case TimeOfDay():
            return Text(temporal.format_time(value))
        case Duration():
            return Text(temporal.format_duration(value))
        case BlankNode() | TripleTerm():
            raise ExpressionError


def number_text(number: Number) -> str:
    """Return a number as XPath casts it to xs:string: whole numbers without a point, floats near one without an
    exponent.
    """
    value = number.value
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf")) or not (value == 0 or 1e-6 <= abs(value) < 1e6)):
        return numeric.lexical(number)
    text = numeric.lexical(number)
    if isinstance(value, float):
        text = ("-" if text.startswith("-0.0") else "") + numeric.lexical(Number(NumericType.DECIMAL, Decimal(text)))
    return text.removesuffix(".0") if "." in text else text


def to_boolean(value: Value) -> Value:
    match value:
        case bool():
            return value
        case Number(_, number):
            return bool(number == number and number)
    raise ExpressionError


def _to_floating(kind: NumericType) -> Callable[[Value], Value]:
    def to_floating(value: Value) -> Value:
        match value:
            case bool():
                return Number(kind, float(value))
            case Number(_, number):
                return Number(kind, numeric.nearest_single(number) if kind is NumericType.FLOAT else numeric.to_float(number))
        raise ExpressionError

    return to_floating


def to_decimal(value: Value) -> Value:
    match value:
        case bool():
            return Number(NumericType.DECIMAL, Decimal(value))
        case Number(_, number):
            return Number(NumericType.DECIMAL, _finite(number))
    raise ExpressionError


def to_integer(value: Value) -> Value:
    match value:
        case bool():
            return Number(NumericType.INTEGER, int(value))
        case Number(NumericType.INTEGER):
            return value
        case Number(_, number):
            return numeric.bounded(int(_finite(number).to_integral_value(ROUND_DOWN)))
    raise ExpressionError


def _finite(number: int | Decimal | float) -> Decimal:
    """Return a number as an exact decimal: a double has one, an infinity has none.

    Raises: ExpressionError.
    """
    found = Decimal(number)
    if not found.is_finite():
        raise ExpressionError
    return found


def _to_derived(datatype: str) -> Callable[[Value], Value]:
    """Return the cast to a type derived from xsd:integer, which fails beyond that type's bounds."""

    def to_derived(value: Value) -> Value:
        found = to_integer(value)
        assert isinstance(found, Number)
        made = Literal(numeric.lexical(found), datatype)
        if isinstance(value_of(made), Literal):
            raise ExpressionError
        return made

    return to_derived


def to_instant(value: Value) -> Value:
    match value:
        case DateTime():
            return value
        case Day(micros, zone):
            return DateTime(micros, zone)
    raise ExpressionError


def to_day(value: Value) -> Value:
    match value:
        case Day():
            return value
        case DateTime(micros, zone):
            local = micros + (zone or 0) * temporal.MINUTE
            return Day(micros - local % temporal.DAY, zone)
    raise ExpressionError


def to_time(value: Value) -> Value:
    match value:
        case TimeOfDay():
            return value
        case DateTime(micros, zone):
            start = -(zone or 0) * temporal.MINUTE
            return TimeOfDay((micros - start) % temporal.DAY + start, zone)
    raise ExpressionError


def to_stamp(value: Value) -> Value:
    match to_instant(value):
        case DateTime(micros, int() as zone):
            return Literal(temporal.format_instant(micros, zone), XSD + "dateTimeStamp")
    raise ExpressionError


def to_duration(value: Value) -> Duration:
    if isinstance(value, Duration):
        return value
    raise ExpressionError


def to_day_time(value: Value) -> Value:
    """Return days and shorter parts of a duration: XPath leaves out its months."""
    micros = to_duration(value).micros
    return Literal(temporal.format_duration(Duration(0, micros)), XSD + "dayTimeDuration")


def to_year_month(value: Value) -> Value:
    """Return the years and months of a duration: XPath leaves out shorter parts."""
    months = to_duration(value).months
    return Literal(temporal.format_duration(Duration(months, 0)) if months else "P0M", XSD + "yearMonthDuration")


_CASTS: dict[str, Callable[[Value], Value]] = {
    XSD_STRING: to_string,
    XSD + "boolean": to_boolean,
    XSD + "double": _to_floating(NumericType.DOUBLE),
    XSD + "float": _to_floating(NumericType.FLOAT),
    XSD + "decimal": to_decimal,
    XSD + "integer": to_integer,
    XSD + "dateTime": to_instant,
    XSD + "date": to_day,
    XSD + "time": to_time,
    XSD + "dateTimeStamp": to_stamp,
    XSD + "duration": to_duration,
    XSD + "dayTimeDuration": to_day_time,
    XSD + "yearMonthDuration": to_year_month,
    **{XSD + name: _to_derived(XSD + name) for name in numeric.INTEGERS if name != "integer"},
}


def cast(datatype: str, term: Term, into: Callable[[Value], Term]) -> Term:
    """Cast a term to a datatype. A string without a language is read as a literal of it first.

    A term that has the datatype already stays as it is, once it is known to be legal; but booleans become true and
    false.
    """
    value = value_of(term)
    if isinstance(value, Text) and value.language is None and datatype != XSD_STRING:
        value = _cast_text(value.value, datatype)
    found = _CASTS[datatype](value)
    stays = isinstance(term, Literal) and term.datatype == datatype and datatype not in (XSD_STRING, XSD + "boolean")
    return term if stays else into(found)


CASTS = tuple(_CASTS)
