"""Solutions have one order of emission: by entry, end and start, then by query, the query's own ORDER BY, and terms.

The order within an instant decides the ids of solutions too, because `pipeline/solutions/solution_ids.py` numbers them as they come.
"""

from typing import Any, NamedTuple

import numpy as np

from engine.dictionary.native import inlined, jit
from engine.dictionary.native.collation import RowKeys, sort_order
from engine.dictionary.native.layout import NONE

# rows: columns of what the kernel found
BEGIN, END, NODE, ENTRY = range(4)
# queries, in order of their names: the columns of a row that each wants stand from FIRST on, first that of the rank, then of the terms by which its
# solutions are sorted, in order of their variables, as many as are SHOWN. Then come these as they are shown; ALIKE: that is the same. Where a query
# makes TRIPLES, their parts come instead: a column, NONE for what is never bound, or a constant
NAME, NAME_SIZE, REGISTERED, SHOWN, FIRST, ALIKE, TRIPLES, QUERY_WIDTH = range(8)
FIRST_CONSTANT = -2
"""The constants are FIRST_CONSTANT and below, in order."""


class Solutions(NamedTuple):
    """Holds rows that the kernel found, the query of each, their order of emission, and what says how they are shown.

    The `statements` of row k, if its query makes triples, stand between `ends[k]` and `ends[k + 1]`.
    """

    rows: Any
    which: Any
    order: Any
    statements: Any
    ends: Any
    queries: Any
    wanted: Any
    cells: Any
    text: Any


@inlined
def cell(rows, row, column):
    """Return a row's cell, 0 for a column below zero."""
    return rows[row, column] if column >= 0 else NONE


@jit
def sort_instant(found, by, numbers, spare, first, after):
    """Sort the rows that one entry brought at one end: by start, and by query where starts are equal.

    A query's own order goes before: by rank, which counts from 1, where the query orders its solutions, else by start; then by terms. So a start is
    raised to those of the query's solutions before it.
    """
    rows, which, order, several = found.rows, found.which, found.order, False
    for k in range(first, after):
        row = order[k]
        query = which[row]
        several |= query != which[order[first]]
        column = found.queries[query, FIRST]
        rank = cell(rows, row, found.wanted[column])
        by[row] = rank if rank != 0 else rows[row, BEGIN]
        numbers[row] = NONE
        for m in range(found.queries[query, SHOWN]):
            numbers[row, m] = cell(rows, row, found.wanted[column + 1 + m])
    sort_order(RowKeys(which, by, numbers, found.cells, found.text), order, spare, first, after)
    if several:
        for k in range(first, after):
            row, before = order[k], order[max(k - 1, first)]
            by[row] = max(rows[row, BEGIN], by[before]) if which[row] == which[before] and k > first else rows[row, BEGIN]
        sort_order(RowKeys(by, which, np.empty((len(rows), 0), np.int64), found.cells, found.text), order, spare, first, after)


@jit
def sort_solutions(found):
    """Bring `order`, in which all rows stand as they come, into the order of emission.

    The kernel gives rows by entry and end, except that rows of queries that decide when the feed is done come last.
    """
    rows, order, n, ordered = found.rows, found.order, len(found.rows), True
    spare, by = np.empty(n, np.int64), np.empty(n, np.int64)
    widest = 0
    for k in range(n):
        widest = max(widest, found.queries[found.which[k], SHOWN])
        ordered &= k == 0 or rows[k, ENTRY] > rows[k - 1, ENTRY] or (rows[k, ENTRY] == rows[k - 1, ENTRY] and rows[k, END] >= rows[k - 1, END])
    numbers = np.empty((n, widest), np.int64)
    if not ordered:
        when = RowKeys(rows[:, ENTRY].copy(), rows[:, END].copy(), np.empty((n, 0), np.int64), found.cells, found.text)
        sort_order(when, order, spare, 0, n)
    first = 0
    while first < n:
        after = first + 1
        while after < n and rows[order[after], END] == rows[order[first], END] and rows[order[after], ENTRY] == rows[order[first], ENTRY]:
            after += 1
        if after > first + 1:
            sort_instant(found, by, numbers, spare, first, after)
        first = after
