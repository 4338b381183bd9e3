"""Compiled code numbers the terms of each slice anew, so that a slice has a dictionary of its own."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.jit import Native

_native = Native.of(Path(__file__))


@_native.entry_point
def _renumber(indices: Any, order: Any, bounds: Any, size: int, numbers: Any, used: Any, begins: Any) -> None:
    slice_of, number = np.full(size, -1, np.int32), np.empty(size, np.int32)
    count = 0
    for k in range(len(bounds) - 1):
        begins[k] = count
        for at in range(bounds[k], bounds[k + 1]):
            index = indices[order[at]]
            if index < 0:
                numbers[at] = 0
                continue
            if slice_of[index] != k:
                slice_of[index], number[index] = k, count - begins[k]
                used[count] = index
                count += 1
            numbers[at] = number[index]
    begins[len(bounds) - 1] = count


def renumber(
    indices: NDArray[np.int32], order: NDArray[np.int64], bounds: NDArray[np.int64], size: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Return the numbers of the rows in `order`, by slices between `bounds`; the terms that these number, as `indices` have them; and where those begin.

    `indices` are below `size`; those below 0 are no terms, and have the number 0.
    """
    numbers, used, begins = np.empty(len(indices), np.int32), np.empty(len(indices), np.int32), np.empty(len(bounds), np.int64)
    _renumber(indices, order, bounds, size, numbers, used, begins)
    return numbers, used[: begins[-1]], begins
