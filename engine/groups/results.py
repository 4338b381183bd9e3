"""Terms of what set functions give, many at once."""

from collections.abc import Iterator
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from engine import numbers
from engine.groups import columns as g
from engine.terms import TermTable
from engine.values import Kind, Number
from epsparql.algebra import AggregateFunction
from epsparql.terms import XSD

Ints = NDArray[np.int64]

_INTEGER = f'"^^<{XSD}integer>'


def results(function: AggregateFunction, given: Ints, scale: int, terms: TermTable) -> Ints:
    """Numbers of terms for the columns that the sweep gave of one set function (n x RESULT_WIDTH), whose exact sums are in units of 10**-scale."""
    found = given[:, g.RESULT].copy()
    code = given[:, g.CODE]
    mean = function is AggregateFunction.AVG
    small = (given[:, g.RESULT_HIGH] == 0) | (given[:, g.RESULT_HIGH] == -1)
    integer = small & (code == g.AN_INTEGER) & (~np.full(len(given), mean) | (given[:, g.OF] == 0))
    if integer.any():
        distinct, which = np.unique(_small(given[integer], scale), return_inverse=True)
        found[integer] = terms.intern_all([f'"{value}{_INTEGER}' for value in distinct.tolist()])[which]
    others = np.flatnonzero(~integer & (code != g.A_TERM))
    if len(others):
        found[others] = terms.intern_all([_text(total, n, mean) for total, n in _totals(given[others], scale)])
    return found


def _small(given: Ints, scale: int) -> Ints:
    """Integers of 62 bits."""
    units: Ints = given[:, g.RESULT] + given[:, g.RESULT_HIGH] * np.int64(1 << 62)
    return units // np.int64(10**scale)


def _totals(given: Ints, scale: int) -> Iterator[tuple[Number, int]]:
    """The sums, and of how many values they are."""
    doubles = given[:, g.RESULT].copy().view(np.float64).tolist()
    for (code, value, high, n), double in zip(given.tolist(), doubles, strict=True):
        if code == g.A_DOUBLE:
            yield Number(Kind.DOUBLE, double), n
            continue
        units = value + (high << 62)
        if code == g.AN_INTEGER:
            yield Number(Kind.INTEGER, units // 10**scale), n
        else:
            yield Number(Kind.DECIMAL, Decimal(units).scaleb(-scale, numbers.WHOLE)), n


def _text(total: Number, n: int, mean: bool) -> str:
    return str(numbers.literal(numbers.divide(total, Number(Kind.INTEGER, n)) if mean and n else total))
