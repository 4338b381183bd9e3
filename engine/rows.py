"""Tables of numbers as sets of rows."""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
EMPTY: Ints = np.zeros((0, 3), np.int64)
FEW = 32
"""Rows that are compared one by one."""


def distinct(rows: Ints) -> Ints:
    """Each row once, as the first of its kind stood."""
    if len(rows) < 2:
        return rows
    order, new = _grouped(rows)
    return rows if new.all() else rows[np.sort(order[new])]


def without(rows: Ints, others: Ints) -> Ints:
    """The rows, no two of which are equal, that are not among others."""
    if not len(rows) or not len(others):
        return rows
    both = min(len(rows), len(others))
    if (rows[:both] == others[:both]).all():  # one goes on where the other ends
        return rows[both:]
    if len(rows) <= FEW:
        return rows[[not (others == row).all(axis=1).any() for row in rows]]
    order, new = _grouped(np.concatenate([others, rows]))
    first = order[new]
    return rows[np.sort(first[first >= len(others)]) - len(others)]


def _grouped(rows: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """An order in which equal rows stand together as they stood, and where a new kind begins."""
    order = np.lexsort(rows.T[::-1])
    sorted_ = rows[order]
    new = np.ones(len(rows), np.bool_)
    new[1:] = (sorted_[1:] != sorted_[:-1]).any(axis=1)
    return order, new
