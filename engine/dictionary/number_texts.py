"""Columns of numbers become columns of their N-Triples texts."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.dictionary.answers_layout import LONGEST_NUMBER
from engine.native.entries import write_doubles, write_integers, write_quotients

Ints = NDArray[np.int64]


def integer_texts(values: Ints) -> pa.StringArray:
    """Return texts of xsd:integer."""
    return _written(len(values), write_integers, values)


def quotient_texts(values: Ints, divisors: Ints, scale: int, digits: int) -> pa.StringArray:
    """Return texts of xsd:decimal, of value / divisor / 10**scale to so many significant digits."""
    return _written(len(values), write_quotients, values, divisors, scale, digits)


def double_texts(values: NDArray[np.float64]) -> pa.StringArray:
    """Return texts of xsd:double."""
    shortest = pa.array(values).cast(pa.utf8())
    _, offsets, data = shortest.buffers()
    return _written(len(values), write_doubles, np.frombuffer(data, np.uint8), np.frombuffer(offsets, np.int32))


def _written(n: int, write: Callable[..., None], *arguments: Ints | NDArray[np.uint8] | NDArray[np.int32] | int) -> pa.StringArray:
    data, offsets = np.empty(n * LONGEST_NUMBER, np.uint8), np.zeros(n + 1, np.int32)
    write(*arguments, data, offsets)
    return pa.StringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(data))
