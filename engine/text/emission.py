"""Solutions in order of emission: one call puts rows in order, takes the numbers that are shown out of them, and measures their texts."""

import numpy as np

from engine.text.columns import *
from engine.text.compile import entry_point, inlined
from engine.text.order import sort_places

# placed: of each row in order, whose it is, and its entry, start and end
WHICH, ENTRY, BEGIN, END, PLACED_HEIGHT = range(5)


@inlined
def cell(rows, row, column):
    """0 for a column below zero."""
    return rows[row, column] if column >= 0 else NONE


@entry_point
def arrange(which, rows, header, wanted, shown, cells, text, placed, picked, offsets):
    """Fills `placed`, and `picked` with the numbers that rows in order show, with the `offsets` of their texts; bytes in all, and how many are 0.

    `header` names the columns of entry, start and end. `wanted`, of the query that `which` names: the columns of the rank, of as many terms as
    are `shown` in order of their variables, and of these terms as they are shown. Rows that differ in query, entry or end stay where they are;
    else ranks decide (which count from 1), or starts, and then terms.
    """
    n = len(rows)
    by, numbers = np.empty(n, np.int64), np.empty((n, shown), np.int64)
    for row in range(n):
        columns = wanted[which[row]]
        rank = cell(rows, row, columns[0])
        by[row] = rank if rank != 0 else rows[row, header[1]]
        for m in range(shown):
            numbers[row, m] = cell(rows, row, columns[1 + m])
    order = np.empty(n, np.int64)
    sort_places(which, rows, header[0], header[2], by, numbers, cells, text, order, np.empty(n, np.int64))
    size, unbound, at = 0, 0, 0
    for k in range(n):
        row = order[k]
        placed[WHICH, k], placed[ENTRY, k] = which[row], rows[row, header[0]]
        placed[BEGIN, k], placed[END, k] = rows[row, header[1]], rows[row, header[2]]
        for m in range(shown):
            number = cell(rows, row, wanted[which[row], 1 + shown + m])
            picked[at], offsets[at] = number, size
            size += cells[number, LENGTH]
            unbound += number == NONE
            at += 1
    offsets[at] = size
    return size, unbound
