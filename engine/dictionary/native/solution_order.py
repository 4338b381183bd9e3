"""Solutions have one order of emission: by entry, end and start, then by query, the query's own ORDER BY, and terms.

The order within an instant decides the ids of solutions too, because `pipeline/solutions/solution_ids.py` numbers them as they come.
"""

from typing import Any, NamedTuple

import numpy as np

from engine.dictionary.native import borrowing, inlined, jit
from engine.dictionary.native.collation import RowKeys, sort_order, text_before
from engine.dictionary.native.layout import NONE

# rows: columns of what the kernel found
BEGIN, END, NODE, ENTRY = range(4)
# queries, in order of their names: the columns of a row that each wants stand from FIRST on, first that of the rank, then of the terms by which its
# solutions are sorted, in order of their variables, as many as are SHOWN. Then come these as they are shown; ALIKE: those tell the order, too. Where a query
# makes TRIPLES, their parts come instead: a column, NONE for what is never bound, or a constant
NAME, NAME_SIZE, REGISTERED, SHOWN, FIRST, ALIKE, TRIPLES, QUERY_WIDTH = range(8)
FEW_ROWS = 32
"""The rows of most instants are so few that they are sorted by insertion."""
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


@borrowing
def sort_instant(found, by, numbers, nothing, spare, first, after):
    """Sort the rows that one entry brought at one end: by start, by query where starts are equal, then by terms.

    A query's own order, by rank, which counts from 1, goes before. So a start is raised to those of the query's solutions before it.
    """
    rows, which, order, ranked = found.rows, found.which, found.order, False
    for k in range(first, after):
        row = order[k]
        query = which[row]
        column = found.queries[query, FIRST]
        rank = cell(rows, row, found.wanted[column])
        ranked |= rank != 0
        by[row] = rank if rank != 0 else rows[row, BEGIN]
        numbers[row] = NONE
        for m in range(found.queries[query, SHOWN]):
            numbers[row, m] = cell(rows, row, found.wanted[column + 1 + m])
    if not ranked:
        sort_order(RowKeys(by, which, numbers, found.cells, found.text), order, spare, first, after)
        return
    sort_order(RowKeys(which, by, numbers, found.cells, found.text), order, spare, first, after)
    for k in range(first, after):
        row, before = order[k], order[max(k - 1, first)]
        by[row] = max(rows[row, BEGIN], by[before]) if which[row] == which[before] and k > first else rows[row, BEGIN]
    sort_order(RowKeys(by, which, nothing, found.cells, found.text), order, spare, first, after)


@borrowing
def survey_solutions(found):
    """Return the most terms that a row's query shows, and whether rows rise in entry and end."""
    rows, widest, ordered = found.rows, 0, True
    for k in range(len(rows)):
        widest = max(widest, found.queries[found.which[k], SHOWN])
        ordered &= k == 0 or rows[k, ENTRY] > rows[k - 1, ENTRY] or (rows[k, ENTRY] == rows[k - 1, ENTRY] and rows[k, END] >= rows[k - 1, END])
    return widest, ordered


@inlined
def comes_before(found, i, j):
    """Return whether row i comes before row j of the same instant, where no query has an order of its own."""
    rows, query = found.rows, found.which[i]
    if rows[i, BEGIN] != rows[j, BEGIN]:
        return rows[i, BEGIN] < rows[j, BEGIN]
    if query != found.which[j]:
        return query < found.which[j]
    first = found.queries[query, FIRST] + 1
    for column in found.wanted[first : first + found.queries[query, SHOWN]]:
        a, b = cell(rows, i, column), cell(rows, j, column)
        if a != b:
            return text_before(found.cells, found.text, a, b)
    return False


@inlined
def insert_instant(found, came, first, after):
    """Sort the few rows of an instant, came[first:after], into `order`, which fills from its end.

    Joins meet the newest goal first, so most rows come before all that were found before them, and none has to make room.
    """
    order = found.order
    for k in range(first, after):
        row, at = came[k], after - (k - first)
        while at < after and not comes_before(found, row, order[at]):
            order[at - 1] = order[at]
            at += 1
        order[at - 1] = row


@borrowing
def sort_instants(found, came, by, numbers, nothing, spare):
    """Sort the rows of each instant, which stand together in `came` and in `order`, into `order`."""
    rows, n, first = found.rows, len(found.rows), 0
    while first < n:
        row, after, ranked = came[first], first, False
        end, entry = rows[row, END], rows[row, ENTRY]
        while after < n and rows[came[after], END] == end and rows[came[after], ENTRY] == entry:
            ranked |= found.wanted[found.queries[found.which[came[after]], FIRST]] >= 0
            after += 1
        if after - first <= FEW_ROWS and not ranked:
            insert_instant(found, came, first, after)
        else:
            sort_instant(found, by, numbers, nothing, spare, first, after)
        first = after


@jit
def sort_solutions(found):
    """Bring `order`, in which all rows stand as they come, into the order of emission.

    The kernel gives rows by entry and end, except that rows of queries that decide when the feed is done come last.
    """
    rows, n = found.rows, len(found.rows)
    widest, ordered = survey_solutions(found)
    spare, by, numbers, nothing = np.empty(n, np.int64), np.empty(n, np.int64), np.empty((n, widest), np.int64), np.empty((n, 0), np.int64)
    if not ordered:
        sort_order(RowKeys(rows[:, ENTRY].copy(), rows[:, END].copy(), nothing, found.cells, found.text), found.order, spare, 0, n)
    sort_instants(found, found.order.copy(), by, numbers, nothing, spare)
