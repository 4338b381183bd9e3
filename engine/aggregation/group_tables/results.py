"""Results of set functions become terms, many at once."""

from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from engine.aggregation.group_tables import layout as g
from engine.dictionary.number_texts import double_texts, integer_texts, quotient_texts
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
        found[integer] = terms.intern_strings(integer_texts(units[integer] // np.int64(10**scale)))
    if decimal.any():
        found[decimal] = terms.intern_strings(quotient_texts(units[decimal], n[decimal], scale, numeric.QUOTIENT_DIGITS))
    if double.any():
        found[double] = terms.intern_strings(double_texts(given[double, g.RESULT].copy().view(np.float64) / n[double]))
    for k in np.flatnonzero(large).tolist():
        found[k] = terms.intern(_text(given[k].tolist(), scale, bool(mean[k])))
    return found


def _text(given: list[int], scale: int, mean: bool) -> str:
    """Return the text of a sum beyond 62 bits."""
    code, value, high, n = given
    exact = Decimal(value + (high << 62)).scaleb(-scale, numeric.WHOLE)
    total = Number(NumericType.INTEGER, int(exact)) if code == g.AN_INTEGER else Number(NumericType.DECIMAL, exact)
    return str(numeric.literal(numeric.divide(total, Number(NumericType.INTEGER, n)) if mean else total))
