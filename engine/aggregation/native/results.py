"""Results of set functions become terms, many at once."""

from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from engine.aggregation.native import layout as g
from engine.aggregation.native.number_writer import LONGEST, write_doubles, write_integers, write_quotients
from engine.dictionary.term_dictionary import TermTable
from engine.expressions import numeric
from engine.expressions.values import Number, NumericType
from epsparql.algebra import AggregateFunction

Ints = NDArray[np.int64]


def results(function: AggregateFunction, given: Ints, scale: int, terms: TermTable) -> Ints:
    """Return the numbers of terms for the columns (n x RESULT_WIDTH) that the sweep gave of one set function.

    Their exact sums are in units of 10**-scale.
    """
    found = given[:, g.RESULT].copy()
    code, high = given[:, g.CODE], given[:, g.RESULT_HIGH]
    mean = (given[:, g.OF] > 0) & (function is AggregateFunction.AVG)
    small = (high == 0) | (high == -1)
    units = given[:, g.RESULT] + np.where(small, high, 0) * np.int64(1 << 62)
    integer = small & (code == g.AN_INTEGER) & ~mean
    decimal = small & ((code == g.A_DECIMAL) | ((code == g.AN_INTEGER) & mean))
    double = code == g.A_DOUBLE
    large = ~(integer | decimal | double | (code == g.A_TERM))
    n = np.where(mean, given[:, g.OF], 1)
    if integer.any():
        found[integer] = _interned(_written(int(integer.sum()), write_integers, units[integer] // np.int64(10**scale)), terms)
    if decimal.any():
        found[decimal] = _interned(_written(int(decimal.sum()), write_quotients, units[decimal], n[decimal], scale, numeric.QUOTIENT_DIGITS), terms)
    if double.any():
        found[double] = _interned(_doubles(given[double, g.RESULT].copy().view(np.float64) / n[double]), terms)
    for k in np.flatnonzero(large).tolist():
        found[k] = terms.intern(_text(given[k].tolist(), scale, bool(mean[k])))
    return found


def _written(n: int, write: Callable[..., None], *arguments: Ints | NDArray[np.uint8] | NDArray[np.int32] | int) -> pa.StringArray:
    data, offsets = np.empty(n * LONGEST, np.uint8), np.zeros(n + 1, np.int32)
    write(*arguments, data, offsets)
    return pa.StringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(data))


def _doubles(values: NDArray[np.float64]) -> pa.StringArray:
    shortest = pc.cast(pa.array(values), pa.utf8())
    _, offsets, data = shortest.buffers()
    return _written(len(values), write_doubles, np.frombuffer(data, np.uint8), np.frombuffer(offsets, np.int32))


def _interned(texts: pa.StringArray, terms: TermTable) -> Ints:
    return terms.intern_strings(texts)


def _text(given: list[int], scale: int, mean: bool) -> str:
    """Return the text of a sum beyond 62 bits."""
    code, value, high, n = given
    exact = Decimal(value + (high << 62)).scaleb(-scale, numeric.WHOLE)
    total = Number(NumericType.INTEGER, int(exact)) if code == g.AN_INTEGER else Number(NumericType.DECIMAL, exact)
    return str(numeric.literal(numeric.divide(total, Number(NumericType.INTEGER, n)) if mean else total))
