"""This module keeps a heap of occurrences, a row each, by end and then by the number in which they came.

A call costs what it takes in or gives out, and not what waits beside that.
"""

from pathlib import Path

import numpy as np

from engine.jit import Native

native = Native.of(Path(__file__))

MOST_LEVELS = 64
"""A heap that fits into memory has at most this many levels."""


@native.inlined
def before(rows, i, j, end, number):
    return rows[i, end] < rows[j, end] or (rows[i, end] == rows[j, end] and rows[i, number] < rows[j, number])


@native.inlined
def swap(rows, i, j):
    for column in range(rows.shape[1]):
        rows[i, column], rows[j, column] = rows[j, column], rows[i, column]


@native.jit
def rise(rows, k, end, number):
    while k > 0 and before(rows, k, (k - 1) // 2, end, number):
        swap(rows, k, (k - 1) // 2)
        k = (k - 1) // 2


@native.jit
def sink(rows, n, end, number):
    """Put the first of n rows, which may be any, where it belongs."""
    k, least = 0, 1
    while least < n:
        if least + 1 < n and before(rows, least + 1, least, end, number):
            least += 1
        if not before(rows, least, k, end, number):
            return
        swap(rows, k, least)
        k, least = least, 2 * least + 1


@native.entry_point
def add(rows, n, columns, end, number, came):
    """Take in the columns of a feed, the first as number `came`, beside the n rows that are there; `rows` has room."""
    for k in range(columns.shape[1]):
        for column in range(len(columns)):
            rows[n + k, column] = columns[column, k]
        rows[n + k, number] = came + k
        rise(rows, n + k, end, number)


@native.entry_point
def due(rows, n, time, end):
    """Return how many of n rows end at `time` or before."""
    stack, depth, found = np.empty(MOST_LEVELS, np.int64), 1, 0
    stack[0] = 0
    while depth > 0:
        depth -= 1
        k = stack[depth]
        if k < n and rows[k, end] <= time:
            found += 1
            stack[depth], stack[depth + 1] = 2 * k + 2, 2 * k + 1
            depth += 2
    return found


@native.entry_point
def give(rows, n, columns, end, number):
    """Fill the columns of a feed with the first of n rows, in order; these rows leave."""
    for k in range(columns.shape[1]):
        for column in range(len(columns)):
            columns[column, k] = rows[0, column]
        n -= 1
        swap(rows, 0, n)
        sink(rows, n, end, number)
