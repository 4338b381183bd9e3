"""This module computes with the numbers of a program: exactly, but for the functions of analysis, which give doubles."""

import math
from collections.abc import Callable, Mapping
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal, DivisionByZero, Inexact, InvalidOperation, Overflow

from epsparql.etalis.parser.vocabulary import number_literal
from epsparql.terms import XSD, Literal

Value = int | Decimal | float
DIGITS = 4000
"""An exact number has at most so many digits."""
_EXACT = Context(prec=DIGITS, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact, InvalidOperation, Overflow])
_QUOTIENT = Context(prec=34, rounding=ROUND_HALF_EVEN, traps=[DivisionByZero, InvalidOperation, Overflow])
_NUMBERS = {XSD + name for name in ("integer", "decimal", "long", "int", "short", "byte", "nonNegativeInteger", "positiveInteger")}


def value_of_literal(term: object) -> Value | None:
    """Return the number that a literal stands for, or None."""
    if not isinstance(term, Literal):
        return None
    try:
        if term.datatype in _NUMBERS:
            return Decimal(term.lexical)
        return float(term.lexical) if term.datatype in (XSD + "double", XSD + "float") else None
    except (ValueError, ArithmeticError):
        return None


def literal_of_value(value: Value) -> Literal:
    """Return the canonical literal of a number."""
    if isinstance(value, float):
        return Literal.from_python(value)
    return number_literal(Decimal(value))


def _exact(operation: Callable[[Decimal, Decimal], Decimal], doubles: Callable[[float, float], float]) -> Callable[[Value, Value], Value]:
    def compute(left: Value, right: Value) -> Value:
        if isinstance(left, float) or isinstance(right, float):
            return doubles(float(left), float(right))
        return operation(Decimal(left), Decimal(right))

    return compute


def _whole(value: Value) -> int:
    number = Decimal(value)
    if number != number.to_integral_value():
        raise ArithmeticError("not an integer")
    return int(number)


def _quotient(left: Value, right: Value) -> Value:
    """Divide towards zero."""
    a, b = _whole(left), _whole(right)
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(left: Value, right: Value) -> Value:
    return _whole(left) - _whole(right) * Decimal(_quotient(left, right))


def _power(base: Value, exponent: Value) -> Value:
    if isinstance(base, float) or isinstance(exponent, float) or exponent != int(exponent) or exponent < 0:
        return math.pow(float(base), float(exponent))
    if exponent > DIGITS * 4:
        raise ArithmeticError("too many digits")
    found: Decimal = _EXACT.power(Decimal(base), Decimal(exponent))
    return found


def _double(function: Callable[[float], float]) -> Callable[[Value], Value]:
    return lambda value: function(float(value))


OPERATIONS: Mapping[tuple[str, int], Callable[..., Value]] = {
    ("+", 2): _exact(_EXACT.add, lambda a, b: a + b),
    ("-", 2): _exact(_EXACT.subtract, lambda a, b: a - b),
    ("*", 2): _exact(_EXACT.multiply, lambda a, b: a * b),
    ("/", 2): _exact(_QUOTIENT.divide, lambda a, b: a / b),
    ("//", 2): _quotient,
    ("mod", 2): lambda a, b: _whole(a) % _whole(b),
    ("rem", 2): _remainder,
    ("**", 2): _power,
    ("^", 2): _power,
    ("min", 2): min,
    ("max", 2): max,
    ("-", 1): lambda a: -a,
    ("+", 1): lambda a: a,
    ("abs", 1): abs,
    ("sign", 1): lambda a: (a > 0) - (a < 0),
    ("floor", 1): math.floor,
    ("ceiling", 1): math.ceil,
    ("round", 1): lambda a: math.floor(abs(a) + Decimal("0.5")) * (-1 if a < 0 else 1) if not isinstance(a, float) else round(a),
    ("truncate", 1): math.trunc,
    ("sqrt", 1): _double(math.sqrt),
    ("sin", 1): _double(math.sin),
    ("cos", 1): _double(math.cos),
    ("tan", 1): _double(math.tan),
    ("asin", 1): _double(math.asin),
    ("acos", 1): _double(math.acos),
    ("atan", 1): _double(math.atan),
    ("exp", 1): _double(math.exp),
    ("log", 1): _double(math.log),
    ("pi", 0): lambda: math.pi,
    ("e", 0): lambda: math.e,
}
"""Each operation of an arithmetic expression, by name and number of operands; it raises ArithmeticError or ValueError
where it has no value.
"""
