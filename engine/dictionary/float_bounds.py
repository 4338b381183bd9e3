"""The kernel's filters know a literal's value as a float64 and a bound of its error."""

import math
from decimal import Decimal

from engine.expressions import numeric
from engine.expressions.values import ExactMicros, NumericType
from epsparql.terms import XSD

_MARK = f'"^^<{XSD}'
_NOT_A_NUMBER = (0.0, math.inf)


def approximation(literal: str) -> tuple[float, float]:
    """Return (value, error bound) of a numeric literal in N-Triples text.

    The bound is 0 where the value is exact, and inf for a text without a finite numeric value.

    xsd:float has no bound either: its arithmetic rounds to single precision, which the kernel does not do.
    """
    mark = literal.rfind(_MARK)
    if mark < 0:
        return _NOT_A_NUMBER
    parser = numeric.PARSERS.get(literal[mark + len('"^^<') : -1])
    number = None if parser is None else parser(literal[1:mark])
    return _NOT_A_NUMBER if number is None or number.kind is NumericType.FLOAT else _bounded(number.value, number.kind)


def _bounded(exact: int | Decimal | float, kind: NumericType) -> tuple[float, float]:
    try:
        value = float(exact)
    except OverflowError:
        return _NOT_A_NUMBER
    if not math.isfinite(value):
        return _NOT_A_NUMBER
    if kind is NumericType.DOUBLE or value == exact:  # Python compares int and Decimal with float exactly
        return value, 0.0
    return value, abs(value) * 2.0**-52 + 2.0**-1000


def constant_micros(micros: ExactMicros) -> tuple[float, float]:
    """Return a filter's duration as (value, error bound)."""
    value = float(micros)
    return value, 0.0 if value == micros else abs(value) * 2.0**-52
