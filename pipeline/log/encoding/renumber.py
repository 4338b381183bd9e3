"""Compiled code numbers the terms of each slice anew, so that a slice has a dictionary of its own."""

import numpy as np
from numpy.typing import NDArray

from engine.native.entries import renumber_slices


def renumber(
    indices: NDArray[np.int32], order: NDArray[np.int64], bounds: NDArray[np.int64], size: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Return the numbers of the rows in `order`, by slices between `bounds`; the terms that these number, as
    `indices` have them; and where those begin.

    `indices` are below `size`; those below 0 are no terms, and have the number 0.
    """
    numbers, used, begins = np.empty(len(indices), np.int32), np.empty(len(indices), np.int32), np.empty(len(bounds), np.int64)
    renumber_slices(indices, order, bounds, size, numbers, used, begins)
    return numbers, used[: begins[-1]], begins
