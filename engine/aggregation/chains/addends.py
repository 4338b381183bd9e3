"""SUM over a chain adds up numbers of 128 bits, in units of a power of ten, or of 2**-80 once doubles come."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.aggregation.group_tables import layout as g
from engine.aggregation.group_tables.numeric_columns import MOST, Worth, addends, plain_of
from engine.dictionary.term_dictionary import TermTable

Ints = NDArray[np.int64]
_EXACT = (g.INTEGER, g.DECIMAL)
_BIAS = 1075
_LARGEST = 2.0**36
"""Beside doubles, all numbers are less than this, and multiples of 2**-DOUBLE_SHIFT."""


class SumUnit(NamedTuple):
    """Is what a sum counts in: 10**-scale, or 2**-DOUBLE_SHIFT if it `has_doubles`."""

    scale: int = 0
    has_doubles: bool = False


class Addends(NamedTuple):
    """Holds numbers in a unit, low and high cells, and which of them are decimals or doubles."""

    unit: SumUnit
    low: Ints
    high: Ints
    wide: Ints


def read_addends(numbers: Ints, unit: SumUnit, terms: TermTable) -> Addends | None:
    """Return the values of terms in a unit that holds them and what is there already; None if there is none."""
    distinct, which = np.unique(numbers, return_inverse=True)
    worth = addends(distinct, plain_of(distinct, terms), terms)
    if worth.foreign or not np.isin(worth.class_, (*_EXACT, g.DOUBLE)).all():
        return None
    found = _in_binary(worth, unit) if unit.has_doubles or (worth.class_ == g.DOUBLE).any() else _in_decimal(worth, unit)
    return None if found is None else Addends(found.unit, *(cells[which] for cells in found[1:]))


def _in_decimal(worth: Worth, unit: SumUnit) -> Addends | None:
    scale = max(unit.scale, int(worth.scale.max(initial=0)))
    factors = 10 ** (scale - worth.scale)
    if scale - int(worth.scale.min(initial=scale)) > 18 or (np.abs(worth.value) > (MOST - 1) // factors).any():
        return None
    low = worth.value * factors
    return Addends(SumUnit(scale), low, low >> 63, (worth.class_ == g.DECIMAL).astype(np.int64))


def _in_binary(worth: Worth, unit: SumUnit) -> Addends | None:
    doubles = worth.class_ == g.DOUBLE
    size = np.abs(np.where(doubles, worth.value.view(np.float64), worth.value))
    if unit.scale or (worth.class_ == g.DECIMAL).any() or (size >= _LARGEST).any():
        return None
    exponent = (worth.value >> 52) & 0x7FF
    mantissa = (worth.value & ((1 << 52) - 1)) | (np.minimum(exponent, 1) << 52)
    mantissa, exponent = np.where(worth.value < 0, -mantissa, mantissa), np.maximum(exponent, 1)
    shift: Ints = np.where(doubles, exponent - _BIAS, 0) + g.DOUBLE_SHIFT
    value: Ints = np.where(doubles, mantissa, worth.value)
    below: Ints = np.where(value == 0, 0, np.minimum(shift, 0))
    if (below < -52).any() or (value & ((np.int64(1) << -below) - 1)).any():
        return None
    return Addends(SumUnit(0, True), *_shifted(value >> -below, np.maximum(shift, 0)), doubles.astype(np.int64))


def _shifted(value: Ints, shift: Ints) -> tuple[Ints, Ints]:
    """Return the two cells of value * 2**shift, for shifts from 0 to 127."""
    few = shift < 64
    low = np.where(few, value << np.where(few, shift, 0), 0)
    high = np.where(few, (value >> 1) >> (63 - np.where(few, shift, 0)), value << np.where(few, 0, shift - 64))
    return low, high
