"""This module translates durations and counts of a query's clauses to microseconds and integers."""

import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import NoReturn

from epsparql import algebra as a
from epsparql.errors import InvalidLiteral
from epsparql.literals import MAX_MICROS, duration_micros, likely_duration, literal_fault, show_lexical
from epsparql.parser import ast as s
from epsparql.terms import XSD, XSD_STRING, Literal
from epsparql.translate.context import Context

MAX_COUNT = 2**62
"""This is the greatest number in LIMIT, OFFSET and ROWS."""


def micros_of(context: Context, duration: s.DurationText, *, zero: bool = False) -> a.Micros:
    """Return the microseconds of a duration, which may be `zero` after WITHIN only. Raises InvalidLiteral."""
    if duration.datatype is not None and context.names.iri(duration.datatype) not in (XSD + "duration", XSD + "dayTimeDuration", XSD_STRING):
        context.fail(InvalidLiteral, "this is no xsd:duration", duration.span, '"..."^^xsd:duration')
    micros = _seconds(context, duration) if duration.seconds else _parsed(context, duration)
    if micros < 0 or (micros == 0 and not zero):
        context.fail(InvalidLiteral, "the duration is not positive", duration.span, "a duration longer than zero")
    if micros > MAX_MICROS:
        context.fail(InvalidLiteral, "the duration is too long", duration.span, f"at most {MAX_MICROS // 86_400_000_000:,} days")
    return micros


def _seconds(context: Context, duration: s.DurationText) -> a.Micros:
    """Return the microseconds of a number of seconds, exactly: no rounding, and no arithmetic with exponents that
    only look like a number of seconds.
    """
    try:
        seconds = Decimal(duration.lexical)
    except InvalidOperation:
        context.fail(InvalidLiteral, "the number of seconds is out of range", duration.span, "a number of seconds")
    if seconds == 0:
        return 0
    if abs(seconds.adjusted()) > 20:
        return MAX_MICROS + 1 if seconds.adjusted() > 0 else _fail_fineness(context, duration)
    micros = Fraction(seconds) * 1_000_000
    return int(micros) if micros.denominator == 1 else _fail_fineness(context, duration)


def _fail_fineness(context: Context, duration: s.DurationText) -> NoReturn:
    context.fail(InvalidLiteral, "the duration is finer than a microsecond", duration.span, "at most six digits after the point")


def _parsed(context: Context, duration: s.DurationText) -> a.Micros:
    fault = literal_fault(Literal(duration.lexical, XSD + "duration"))
    if fault is not None:
        meant = likely_duration(duration.lexical)
        context.fail_form(f'"{show_lexical(duration.lexical)}" is no duration', duration.span, duration.lexical, meant)
    micros = duration_micros(duration.lexical)
    if micros is None:
        if not re.search("[YM]", duration.lexical.partition("T")[0]):
            _fail_fineness(context, duration)
        message = "the duration has months or years, which have no fixed length"
        context.fail(InvalidLiteral, message, duration.span, "days, hours, minutes and seconds, such as P30D")
    return micros


def count_of(context: Context, number: s.NumericLiteral) -> int:
    """Return the integer of LIMIT, OFFSET or ROWS. Raises InvalidLiteral."""
    digits = number.text.lstrip("0")
    if len(digits) > 19 or int(digits or "0") > MAX_COUNT:
        context.fail(InvalidLiteral, "the number is too large", number.span, f"at most {MAX_COUNT:,}")
    return int(digits or "0")
