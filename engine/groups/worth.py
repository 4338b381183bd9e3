"""What terms are worth to native set functions: columns of numbers, for the terms of a feed."""

from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from engine.collect.order import sort_key
from engine.expressions import number
from engine.groups import columns as g
from engine.terms import TermTable
from engine.values import Kind
from epsparql.terms import XSD, Literal

Ints = NDArray[np.int64]

MOST = 1 << 62
MOST_SCALE = 18
EXACT = 1 << 53
_SPECIAL = {"nan": g.NAN, "inf": g.RISE, "-inf": g.FALL}
_NUMBER = sort_key(Literal("0", XSD + "integer"))[0]


@dataclass(frozen=True, slots=True, eq=False)
class Worth:
    """Of n terms: the class, value and low part; and of numbers that are added, the scale. `foreign`: that a term has none of these."""

    class_: Ints
    value: Ints
    low: Ints
    scale: Ints
    foreign: bool


@dataclass(frozen=True, slots=True, eq=False)
class Plain:
    """Of n terms, which are finite doubles and which integers that a double holds; and their values."""

    double: NDArray[np.bool_]
    integer: NDArray[np.bool_]
    exact: NDArray[np.float64]


def addends(numbers: Ints, plain: Plain, terms: TermTable) -> Worth:
    """Of SUM: mantissas of integers and decimals with their scales, bits of doubles; what is no number is an error."""
    n = len(numbers)
    class_, value, scale, foreign = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64), False
    double, integer, exact = plain.double, plain.integer, plain.exact
    class_[double], class_[integer] = g.DOUBLE, g.INTEGER
    value[double], value[integer] = exact[double].view(np.int64), exact[integer].astype(np.int64)
    for k in np.flatnonzero(~(double | integer)).tolist():
        found = _addend(int(numbers[k]), terms)
        if found is None:
            foreign = True
        else:
            class_[k], value[k], scale[k] = found
    return Worth(class_, value, np.zeros(n, np.int64), scale, foreign)


def plain_of(numbers: Ints, terms: TermTable) -> Plain:
    known = terms.numbers[numbers]
    exact: NDArray[np.float64] = np.ascontiguousarray(known[:, 0])
    texts = terms.text_array(numbers)
    double, integer = (_ends_with(texts, f'"^^<{XSD}{name}>') & (known[:, 1] == 0) for name in ("double", "integer"))
    return Plain(double, integer & (np.abs(exact) < EXACT), exact)


def _ends_with(texts: pa.Array, end: str) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = pc.fill_null(pc.ends_with(texts, end), False).to_numpy(zero_copy_only=False)
    return found


def _addend(term: int, terms: TermTable) -> tuple[int, int, int] | None:
    """Class, value and scale; None if it has none that are native."""
    parsed = terms.term(term)
    found = None if parsed is None else number(parsed)
    match found:
        case None:
            return g.ERROR, 0, 0
        case _ if found.kind is Kind.DOUBLE and isinstance(found.value, float):
            special = _SPECIAL.get(str(found.value))
            return (special, 0, 0) if special is not None else (g.DOUBLE, int(np.float64(found.value).view(np.int64)), 0)
        case _ if found.kind is Kind.FLOAT:
            return None
    mantissa, scale = _decimal(found.value)
    if abs(mantissa) >= MOST or scale > MOST_SCALE:
        return None
    return g.DECIMAL if found.kind is Kind.DECIMAL else g.INTEGER, mantissa, scale


def _decimal(value: int | Decimal | float) -> tuple[int, int]:
    """Mantissa and scale, which is the least."""
    if isinstance(value, int):
        return value, 0
    assert isinstance(value, Decimal)
    numerator, denominator = value.as_integer_ratio()
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    mantissa = numerator * 10**scale // denominator
    while scale and mantissa % 10 == 0:
        mantissa, scale = mantissa // 10, scale - 1
    return mantissa, scale


def ranks(numbers: Ints, plain: Plain, terms: TermTable) -> Worth:
    """Of MIN and MAX: the class of the order, then the value as the nearest double and what is left of it, both as numbers that sort."""
    n = len(numbers)
    class_, high, low, foreign = np.zeros(n, np.int64), np.zeros(n), np.zeros(n), False
    known = plain.double | plain.integer
    class_[known], high[known] = _NUMBER, plain.exact[known]
    for k in np.flatnonzero(~known).tolist():
        found = _rank(int(numbers[k]), terms)
        if found is None:
            foreign = True
        else:
            class_[k], high[k], low[k] = found
    return Worth(class_, _sorting(high), _sorting(low), np.zeros(n, np.int64), foreign)


def _rank(term: int, terms: TermTable) -> tuple[int, float, float] | None:
    class_, value = sort_key(terms.term(term))
    if isinstance(value, str):
        return None
    if isinstance(value, float):
        return class_, value, 0.0
    if isinstance(value, Decimal):
        mantissa, scale = _decimal(value)
        if abs(mantissa) >= MOST or scale > MOST_SCALE:
            return None
        return class_, float(value), float(value - Decimal(float(value)))
    if abs(value) >= MOST:
        return None
    return class_, float(value), float(value - int(float(value)))


def _sorting(values: NDArray[np.float64]) -> Ints:
    """Integers in the order of these doubles; both zeros are one."""
    bits = (values + 0.0).view(np.int64)
    return np.where(bits < 0, bits ^ np.int64((1 << 63) - 1), bits)
