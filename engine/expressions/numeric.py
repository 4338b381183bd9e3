"""Numbers of expressions are exact integers and decimals, and IEEE floats and doubles, as in XPath."""

import operator
import re
from collections.abc import Callable
from decimal import (
    MAX_EMAX,
    MAX_PREC,
    MIN_EMIN,
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    DecimalException,
    DivisionByZero,
    Inexact,
    InvalidOperation,
    Overflow,
    Underflow,
)
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np

from engine.expressions.values import ExpressionError, Number, NumericType
from epsparql.terms import XSD, Literal

DIGITS = 4000
"""An exact number of more digits is an error, so that repeated multiplication cannot exhaust memory."""
QUOTIENT_DIGITS = 34
"""A decimal quotient has so many significant digits, rounded half to even; more if the dividend has more."""
INTEGERS: dict[str, tuple[int | None, int | None]] = {
    "integer": (None, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "long": (-(1 << 63), (1 << 63) - 1),
    "int": (-(1 << 31), (1 << 31) - 1),
    "short": (-(1 << 15), (1 << 15) - 1),
    "byte": (-128, 127),
    "unsignedLong": (0, (1 << 64) - 1),
    "unsignedInt": (0, (1 << 32) - 1),
    "unsignedShort": (0, (1 << 16) - 1),
    "unsignedByte": (0, 255),
}
"""The values of each integer type lie between these bounds, None for no bound (XML Schema 2, 3.4.13 to 3.4.25)."""

_BEYOND = 10**DIGITS
_EXACT = Context(prec=DIGITS, Emax=DIGITS, Emin=-DIGITS, traps=[Inexact, InvalidOperation, Overflow, Underflow])
WHOLE = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
"""This context never rounds; DIGITS bounds what it is given."""
_INFINITIES = (float("inf"), float("-inf"))
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN")


def integer(lexical: str, least: int | None = None, most: int | None = None) -> Number | None:
    if len(lexical) > DIGITS or not _INTEGER.fullmatch(lexical):
        return None
    value = int(lexical)
    if (least is not None and value < least) or (most is not None and value > most):
        return None
    return Number(NumericType.INTEGER, value)


def decimal(lexical: str) -> Number | None:
    if len(lexical) > DIGITS or not _DECIMAL.fullmatch(lexical):
        return None
    return Number(NumericType.DECIMAL, Decimal(lexical))


def double(lexical: str) -> Number | None:
    return Number(NumericType.DOUBLE, float(lexical)) if _DOUBLE.fullmatch(lexical) else None


def single(lexical: str) -> Number | None:
    if not _DOUBLE.fullmatch(lexical):
        return None
    double = float(lexical)
    inexact = double - double == 0 and to_single(double) != double
    return Number(NumericType.FLOAT, nearest_single(Decimal(lexical)) if inexact else to_single(double))


PARSERS: dict[str, Callable[[str], Number | None]] = {
    **{XSD + name: partial(integer, least=least, most=most) for name, (least, most) in INTEGERS.items()},
    XSD + "decimal": decimal,
    XSD + "double": double,
    XSD + "float": single,
}
"""Each datatype IRI has the function that gives the number of a lexical form, None if the form stands for none."""

DATATYPES = {
    NumericType.INTEGER: XSD + "integer",
    NumericType.DECIMAL: XSD + "decimal",
    NumericType.FLOAT: XSD + "float",
    NumericType.DOUBLE: XSD + "double",
}


def to_single(value: float) -> float:
    """Return the nearest 32-bit float; beyond their range, an infinity."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def nearest_single(value: int | Decimal | Fraction | float) -> float:
    """Return the 32-bit float nearest to the value itself.

    The nearest double leads to it, unless that lies just between two 32-bit floats.
    """
    double = to_float(value)
    single = to_single(double)
    if isinstance(value, float) or double == single or single in _INFINITIES:
        return single
    other = to_single(2 * double - single)
    if double - single == other - double and value != double:  # Python compares int and Decimal with float exactly
        return max(single, other) if value > double else min(single, other)
    return single


def to_float(value: int | Decimal | Fraction | float) -> float:
    """Return the nearest double; beyond their range, an infinity."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def promoted(number: Number, kind: NumericType) -> Number:
    """Return the number as one of `kind`, which is not less than its own."""
    value = number.value
    match kind:
        case NumericType.INTEGER:
            return number
        case NumericType.DECIMAL:
            return Number(kind, Decimal(value))
        case NumericType.FLOAT:
            return Number(kind, nearest_single(value))
        case NumericType.DOUBLE:
            return Number(kind, to_float(value))


def bounded(value: int) -> Number:
    if abs(value) >= _BEYOND:
        raise ExpressionError
    return Number(NumericType.INTEGER, value)


def _exactly(operation: Callable[[Decimal, Decimal], Decimal], left: int | Decimal | float, right: int | Decimal | float) -> Number:
    try:
        return Number(NumericType.DECIMAL, operation(Decimal(left), Decimal(right)))
    except DecimalException as error:
        raise ExpressionError from error


def _floats(left: Number, right: Number, kind: NumericType) -> tuple[float, float]:
    """Return both operands as the type that they are promoted to.

    So a decimal beside a float is rounded to single precision first.
    """
    return float(promoted(left, kind).value), float(promoted(right, kind).value)


def _floating(kind: NumericType, value: float) -> Number:
    return Number(kind, to_single(value) if kind is NumericType.FLOAT else value)


def _combine(operation: Callable[[Any, Any], Any], exact: Callable[[Decimal, Decimal], Decimal], left: Number, right: Number) -> Number:
    """Return the result of an operation in the type that both operands are promoted to; decimals have it `exact`."""
    kind = max(left.kind, right.kind)
    match left.value, right.value:
        case int() as a, int() as b:
            return bounded(operation(a, b))
        case a, b if kind is NumericType.DECIMAL:
            return _exactly(exact, a, b)
        case _:
            return _floating(kind, operation(*_floats(left, right, kind)))


def add(left: Number, right: Number) -> Number:
    return _combine(operator.add, _EXACT.add, left, right)


def subtract(left: Number, right: Number) -> Number:
    return _combine(operator.sub, _EXACT.subtract, left, right)


def multiply(left: Number, right: Number) -> Number:
    return _combine(operator.mul, _EXACT.multiply, left, right)


def divide(left: Number, right: Number) -> Number:
    """Divide: integers give a decimal; only floats and doubles divide by zero."""
    kind = max(left.kind, right.kind, NumericType.DECIMAL)
    if kind is NumericType.DECIMAL:
        return Number(kind, _quotient(Decimal(left.value), Decimal(right.value)))
    return _floating(kind, _float_quotient(*_floats(left, right, kind)))


def _quotient(dividend: Decimal, divisor: Decimal) -> Decimal:
    digits = len(dividend.as_tuple().digits)
    try:
        return _dividing(max(QUOTIENT_DIGITS, digits)).divide(dividend, divisor)
    except DecimalException as error:
        raise ExpressionError from error


@lru_cache(maxsize=64)
def _dividing(digits: int) -> Context:
    traps = [DivisionByZero, InvalidOperation, Overflow, Underflow]
    return Context(prec=digits, rounding=ROUND_HALF_EVEN, Emax=DIGITS, Emin=-DIGITS, traps=traps)


def _float_quotient(dividend: float, divisor: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float64(dividend) / np.float64(divisor))


def exact_decimal(value: int | Fraction) -> Decimal:
    """Return a fraction that has a finite decimal expansion. Raises: ExpressionError for too many digits."""
    return Decimal(_exactly(_EXACT.divide, value.numerator, value.denominator).value)


def negate(number: Number) -> Number:
    value = number.value
    return Number(number.kind, value.copy_negate() if isinstance(value, Decimal) and value else -value)


def comparable(left: Number, right: Number) -> tuple[int | Decimal | float, int | Decimal | float]:
    """Return both values under the promotion of their kinds, for Python's comparison operators."""
    kind = max(left.kind, right.kind)
    if kind <= NumericType.DECIMAL:
        return left.value, right.value  # Python compares int and Decimal exactly
    return promoted(left, kind).value, promoted(right, kind).value


def lexical(number: Number) -> str:
    """Return the canonical lexical form (XML Schema 1.0): 4, 2.5, 3.0, 2.0E0, INF."""
    match number.value:
        case int() as value:
            return str(value)
        case Decimal() as value:
            return _decimal_lexical(value)
        case value:
            return _float_lexical(value, number.kind)


def _decimal_lexical(value: Decimal) -> str:
    text = f"{value:f}"
    whole, _, fraction = text.partition(".")
    sign = "-" if whole.startswith("-") and value else ""
    return f"{sign}{whole.lstrip('-+0') or '0'}.{fraction.rstrip('0') or '0'}"


def _float_lexical(value: float, kind: NumericType) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "INF" if value > 0 else "-INF"
    shortest = str(np.float32(value)) if kind is NumericType.FLOAT else repr(value)
    sign, digits, exponent = Decimal(shortest).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits))
    power = exponent + len(text) - 1 if value else 0
    return f"{'-' if sign else ''}{text[0]}.{text[1:].rstrip('0') or '0'}E{power}"


def literal(number: Number) -> Literal:
    return Literal(lexical(number), DATATYPES[number.kind])
