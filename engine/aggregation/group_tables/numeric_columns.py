"""Native set functions take terms as columns of numbers, for the terms of a feed."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.aggregation.group_tables import layout as g
from engine.dictionary.sort_keys import sort_key
from engine.dictionary.term_dictionary import TermTable
from engine.expressions.literals import parse_addend
from engine.expressions.values import Duration, NumericType
from engine.native.entries import read_decimals
from epsparql.deferred_methods import dataclass
from epsparql.terms import XSD, Literal

Ints = NDArray[np.int64]

MOST = 1 << 62
MOST_SCALE = 18
_TENS = np.array([float(10**k) for k in range(MOST_SCALE + 1)])
EXACT = 1 << 53
_SPECIAL = {"nan": g.NAN, "inf": g.RISE, "-inf": g.FALL}
_NUMBER = sort_key(Literal("0", XSD + "integer"))[0]


@dataclass(frozen=True, slots=True, eq=False)
class Worth:
    """Holds the class, value and low part of n terms; and of numbers that are added, the scale.

    `foreign`: that a term has none of these.
    """

    class_: Ints
    value: Ints
    low: Ints
    scale: Ints
    foreign: bool


@dataclass(frozen=True, slots=True, eq=False)
class Plain:
    """Says which of n terms are finite doubles, integers that a double holds, and decimals of few digits.

    It has the nearest double of each, and mantissa and scale of decimals.
    """

    double: NDArray[np.bool_]
    integer: NDArray[np.bool_]
    decimal: NDArray[np.bool_]
    nearest: NDArray[np.float64]
    mantissa: Ints
    scale: Ints


def plain_of(numbers: Ints, terms: TermTable) -> Plain:
    known = terms.numbers[numbers]
    nearest: NDArray[np.float64] = np.ascontiguousarray(known[:, 0])
    texts = terms.text_array(numbers)
    double, integer = (_ends_with(texts, f'"^^<{XSD}{name}>') & (known[:, 1] == 0) for name in ("double", "integer"))
    decimal, mantissa, scale = np.zeros(len(numbers), np.bool_), np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.int64)
    _, offsets, data = texts.buffers()
    if data is not None and len(numbers):
        read_decimals(np.frombuffer(data, np.uint8), np.frombuffer(offsets, np.int32, len(numbers) + 1, 4 * texts.offset), decimal, mantissa, scale)
    return Plain(double, integer & (np.abs(nearest) < EXACT), decimal, nearest, mantissa, scale)


def addends(numbers: Ints, plain: Plain, terms: TermTable) -> Worth:
    """Return the columns of SUM: mantissas of integers and decimals with their scales, bits of doubles; what is no
    number is an error.
    """
    n = len(numbers)
    class_, value, scale, foreign = np.zeros(n, np.int64), plain.mantissa.copy(), plain.scale.copy(), False
    class_[plain.double], class_[plain.integer], class_[plain.decimal] = g.DOUBLE, g.INTEGER, g.DECIMAL
    value[plain.double], value[plain.integer] = plain.nearest[plain.double].view(np.int64), plain.nearest[plain.integer].astype(np.int64)
    for k in np.flatnonzero(class_ == g.ERROR).tolist():
        found = _addend(int(numbers[k]), terms)
        if found is None:
            foreign = True
        else:
            class_[k], value[k], scale[k] = found
    return Worth(class_, value, np.zeros(n, np.int64), scale, foreign)


def _ends_with(texts: pa.Array, end: str) -> NDArray[np.bool_]:
    import pyarrow.compute as pc  # it takes 0.1 s to load, so only where rows come

    found: NDArray[np.bool_] = pc.fill_null(pc.ends_with(texts, end), False).to_numpy(zero_copy_only=False)
    return found


def _addend(term: int, terms: TermTable) -> tuple[int, int, int] | None:
    """Return class, value and scale; None if the term has none that are native."""
    parsed = terms.term(term)
    found = None if parsed is None else parse_addend(parsed)
    match found:
        case None:
            return g.ERROR, 0, 0
        case Duration():
            return None
        case _ if found.kind is NumericType.DOUBLE and isinstance(found.value, float):
            special = _SPECIAL.get(str(found.value))
            return (special, 0, 0) if special is not None else (g.DOUBLE, int(np.float64(found.value).view(np.int64)), 0)
        case _ if found.kind is NumericType.FLOAT:
            return None
    mantissa, scale = _decimal(found.value)
    if abs(mantissa) >= MOST or scale > MOST_SCALE:
        return None
    return g.DECIMAL if found.kind is NumericType.DECIMAL else g.INTEGER, mantissa, scale


def _decimal(value: int | Decimal | float) -> tuple[int, int]:
    """Return mantissa and scale, which is the least."""
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
    """Return the columns of MIN and MAX: the class of the order, then the value.

    The value is the nearest double and what is left of it, both as numbers that sort.
    """
    n = len(numbers)
    class_, high, low, foreign = np.zeros(n, np.int64), plain.nearest.copy(), np.zeros(n), False
    few = plain.decimal & (np.abs(plain.mantissa) < EXACT)
    known = plain.double | plain.integer | few
    class_[known] = _NUMBER
    low[few] = _rest(plain.mantissa[few].astype(np.float64), plain.nearest[few], _TENS[plain.scale[few]])
    for k in np.flatnonzero(~known).tolist():
        found = _rank(int(numbers[k]), terms)
        if found is None:
            foreign = True
        else:
            class_[k], high[k], low[k] = found
    return Worth(class_, _sorting(high), _sorting(low), np.zeros(n, np.int64), foreign)


def _rest(mantissa: NDArray[np.float64], nearest: NDArray[np.float64], power: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return mantissa / power - nearest, from an exact product.

    Source: T. J. Dekker, A Floating-Point Technique for Extending the Available Precision, 1971.
    """
    product = nearest * power
    (a, b), (x, y) = _halves(nearest), _halves(power)
    error = a * x - product + a * y + b * x + b * y
    return (mantissa - product - error) / power


def _halves(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    scaled = values * float((1 << 27) + 1)
    high = scaled - (scaled - values)
    return high, values - high


def _rank(term: int, terms: TermTable) -> tuple[int, float, float] | None:
    class_, value = sort_key(terms.term(term))
    if isinstance(value, str | tuple):
        return None
    if isinstance(value, float):
        return class_, value, 0.0
    if isinstance(value, Decimal):
        mantissa, scale = _decimal(value)
        if abs(mantissa) >= MOST or scale > MOST_SCALE:
            return None
        return class_, float(value), float(value - Decimal(float(value)))
    if isinstance(value, Fraction) or abs(value) >= MOST:
        return None
    return class_, float(value), float(value - int(float(value)))


def _sorting(values: NDArray[np.float64]) -> Ints:
    """Return integers in the order of these doubles; both zeros are one."""
    bits = (values + 0.0).view(np.int64)
    return np.where(bits < 0, bits ^ np.int64((1 << 63) - 1), bits)
