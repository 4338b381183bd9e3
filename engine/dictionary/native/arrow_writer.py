"""One call puts solutions in order of emission and makes their record batch, in one allocation."""

import numpy as np
from numba import types

from engine.dictionary.native import entry_point, inlined, jit
from engine.dictionary.native.arrow_c_data import PRIVATE, STRUCT_WORDS, WORD, allocated, make, padded
from engine.dictionary.native.collation import sort
from engine.dictionary.native.handle import arrays_at, pair
from engine.dictionary.native.layout import *
from engine.dictionary.native.memory import address_of, bytes_at, copy, int32s_at, int64s_at, viewing

# rows: columns of what the kernel found
BEGIN, END, NODE, ENTRY = range(4)
# queries, in order of their names: the columns of a row that each wants stand from FIRST on, first that of the rank, then of as many terms as it
# shows in order of their variables, then of these as they are shown; ALIKE: that is the same
NAME, NAME_SIZE, REGISTERED, SHOWN, FIRST, ALIKE, QUERY_WIDTH = range(7)
# selects: the address and length of each array, in a table that has their owner's: the query of each node; queries; the columns wanted; the text in which
# their names stand; and marks, one a query, which are 0 between calls
PLACES, QUERIES, WANTED, NAMES, MARKS, N_SELECTS = range(6)
# the batch's columns: query, registered, entry, start, end, values, and, of solutions that are to be merged with others, by
COLUMNS = 6
MOST_BYTES = 2**31 - 1  # that Arrow's offsets can say
queries_at = viewing(types.int64, QUERY_WIDTH)
MANY = 1 << 10  # terms that are shown over a dictionary, where that looks at no more than some cells for each


@inlined
def cell(rows, row, column):
    """Return a row's cell, 0 for a column below zero."""
    return rows[row, column] if column >= 0 else NONE


@jit
def sort_instant(rows, which, queries, wanted, by, numbers, cells, text, order, spare, first, after):
    """Sort the rows that one entry brought at one end: by start, and by query where starts are equal.

    A query's own order goes before: by rank, which counts from 1, where the query orders its solutions, else by start; then by terms. So a start is
    raised to those of the query's solutions before it.
    """
    several = False
    for k in range(first, after):
        row = order[k]
        query = which[row]
        several |= query != which[order[first]]
        column = queries[query, FIRST]
        rank = cell(rows, row, wanted[column])
        by[row] = rank if rank != 0 else rows[row, BEGIN]
        numbers[row] = NONE
        for m in range(queries[query, SHOWN]):
            numbers[row, m] = cell(rows, row, wanted[column + 1 + m])
    sort(which, by, numbers, cells, text, order, spare, first, after)
    if several:
        for k in range(first, after):
            row, before = order[k], order[max(k - 1, first)]
            by[row] = max(rows[row, BEGIN], by[before]) if which[row] == which[before] and k > first else rows[row, BEGIN]
        sort(by, which, np.empty((len(rows), 0), np.int64), cells, text, order, spare, first, after)


@jit
def order_of(rows, which, queries, wanted, cells, text):
    """Return the order of emission.

    The kernel gives rows by entry and end, except that rows of queries that decide when the feed is done come last.
    """
    n, ordered = len(rows), True
    order, spare, by = np.arange(n), np.empty(n, np.int64), np.empty(n, np.int64)
    widest = 0
    for k in range(n):
        widest = max(widest, queries[which[k], SHOWN])
        ordered &= k == 0 or rows[k, ENTRY] > rows[k - 1, ENTRY] or (rows[k, ENTRY] == rows[k - 1, ENTRY] and rows[k, END] >= rows[k - 1, END])
    numbers = np.empty((n, widest), np.int64)
    if not ordered:
        sort(rows[:, ENTRY].copy(), rows[:, END].copy(), np.empty((n, 0), np.int64), cells, text, order, spare, 0, n)
    first = 0
    while first < n:
        after = first + 1
        while after < n and rows[order[after], END] == rows[order[first], END] and rows[order[after], ENTRY] == rows[order[first], ENTRY]:
            after += 1
        if after > first + 1:
            sort_instant(rows, which, queries, wanted, by, numbers, cells, text, order, spare, first, after)
        first = after
    return order


@jit
def measured(rows, which, queries, wanted, cells, marks):
    """Measure the rows: terms, their bytes, unbound ones, terms of queries that are not ALIKE, names, and their bytes.

    Names are numbered in `marks` from 1.
    """
    terms, size, unbound, unlike, names, name_size = 0, 0, 0, 0, 0, 0
    for row in range(len(rows)):
        query = which[row]
        shown = queries[query, SHOWN]
        first = queries[query, FIRST] + 1 + shown
        for m in range(shown):
            number = cell(rows, row, wanted[first + m])
            size += cells[number, LENGTH]
            unbound += number == NONE
        terms += shown
        unlike += 0 if queries[query, ALIKE] else shown
        if marks[query] == 0:
            names += 1
            marks[query] = names
            name_size += queries[query, NAME_SIZE]
    return terms, size, unbound, unlike, names, name_size


@inlined
def begin(buffers, at, size):
    """Note that a buffer of so many bytes begins at an address, and return where the next one begins."""
    int64s_at(buffers, 1)[0] = at
    return at + padded(size)


@jit
def fill_lists(rows, order, which, queries, wanted, cells, text, sorted_by_name, terms, unbound, nulls, lists, strings, buffers, at):
    """Fill a column of lists of terms, the structs of the column and of its items, and the addresses of their buffers.

    Return where the next buffer begins. With `sorted_by_name` the terms are in order of their variables, and lists are null for queries that are
    ALIKE, of which there are `nulls` rows.
    """
    n = len(rows)
    int64s_at(buffers, 6)[:] = 0
    valid, bound = bytes_at(at, padded(n + 7 >> 3)), bytes_at(at, 0)
    if sorted_by_name:
        valid[:] = 0
        at = begin(buffers, at, n + 7 >> 3)
    ends = int32s_at(at, n + 1)
    at = begin(buffers + WORD, at, 4 * (n + 1))
    if unbound > 0:
        bound = bytes_at(at, padded(terms + 7 >> 3))
        bound[:] = 0
        at = begin(buffers + 3 * WORD, at, terms + 7 >> 3)
    offsets = int32s_at(at, terms + 1)
    at = begin(buffers + 4 * WORD, at, 4 * (terms + 1))
    data, size, item = at, 0, 0
    for k in range(n):
        ends[k] = item
        query = which[order[k]]
        if sorted_by_name:
            if queries[query, ALIKE]:
                continue
            valid[k >> 3] |= 1 << (k & 7)
        shown = queries[query, SHOWN]
        first = queries[query, FIRST] + 1 + (0 if sorted_by_name else shown)
        for m in range(shown):
            number = cell(rows, order[k], wanted[first + m])
            offsets[item] = size
            if number != NONE:
                copy(data + size, address_of(text) + cells[number, START], cells[number, LENGTH])
                size += cells[number, LENGTH]
                if unbound > 0:
                    bound[item >> 3] |= 1 << (item & 7)
            item += 1
    ends[n], offsets[item] = item, size
    at = begin(buffers + 5 * WORD, at, size)
    int64s_at(buffers + 6 * WORD, 1)[0] = strings
    make(lists, n, nulls, 2, buffers, 1, buffers + 6 * WORD, 0)
    make(strings, item, -1 if unbound > 0 else 0, 3, buffers + 3 * WORD, 0, 0, 0)
    return at


@jit
def told_apart(rows, order, which, queries, wanted, cells, seen, distinct):
    """Fill `distinct` with the terms that are shown, each once, and `seen` with their places there, from 1.

    Return how many terms these are, and their bytes.
    """
    count, size = 0, 0
    for row in order:
        query = which[row]
        shown = queries[query, SHOWN]
        for m in range(shown):
            number = cell(rows, row, wanted[queries[query, FIRST] + 1 + shown + m])
            if number != NONE and seen[number] == 0:
                distinct[count] = number
                count += 1
                seen[number] = count
                size += cells[number, LENGTH]
    return count, size


@jit
def fill_packed(rows, order, which, queries, wanted, cells, text, seen, distinct, terms, unbound, lists, places, texts, buffers, at):
    """Fill a column as `fill_lists` does, but with items that are `places` in a dictionary of the texts of `distinct`."""
    n = len(rows)
    int64s_at(buffers, 8)[:] = 0
    ends, bound = int32s_at(at, n + 1), bytes_at(at, 0)
    at = begin(buffers + WORD, at, 4 * (n + 1))
    if unbound > 0:
        bound = bytes_at(at, padded(terms + 7 >> 3))
        bound[:] = 0
        at = begin(buffers + 2 * WORD, at, terms + 7 >> 3)
    indices, item = int32s_at(at, terms), 0
    at = begin(buffers + 3 * WORD, at, 4 * terms)
    for k in range(n):
        ends[k] = item
        query = which[order[k]]
        shown = queries[query, SHOWN]
        for m in range(shown):
            number = cell(rows, order[k], wanted[queries[query, FIRST] + 1 + shown + m])
            indices[item] = max(seen[number] - 1, 0)
            if number != NONE and unbound > 0:
                bound[item >> 3] |= 1 << (item & 7)
            item += 1
    ends[n] = item
    offsets, size = int32s_at(at, len(distinct) + 1), 0
    at = begin(buffers + 5 * WORD, at, 4 * (len(distinct) + 1))
    for k in range(len(distinct)):
        offsets[k] = size
        copy(at + size, address_of(text) + cells[distinct[k], START], cells[distinct[k], LENGTH])
        size += cells[distinct[k], LENGTH]
    offsets[len(distinct)] = size
    at = begin(buffers + 6 * WORD, at, size)
    int64s_at(buffers + 7 * WORD, 1)[0] = places
    make(lists, n, 0, 2, buffers, 1, buffers + 7 * WORD, 0)
    make(places, item, -1 if unbound > 0 else 0, 2, buffers + 2 * WORD, 0, 0, texts)
    make(texts, len(distinct), 0, 3, buffers + 4 * WORD, 0, 0, 0)
    return at


@jit
def fill_names(order, which, queries, names, marks, used, column, dictionary, buffers, at):
    """Fill the column of names, as `fill_lists` does, and set `marks` to 0 again."""
    n = len(order)
    int64s_at(buffers, 5)[:] = 0
    indices, offsets = int32s_at(at, n), int32s_at(at + padded(4 * n), used + 1)
    at = begin(buffers + 3 * WORD, begin(buffers + WORD, at, 4 * n), 4 * (used + 1))
    for k in range(n):
        indices[k] = marks[which[order[k]]] - 1
    size, known = 0, 0
    for k in range(n):
        query = which[k]  # as they were numbered
        if marks[query] == known + 1:
            offsets[known] = size
            copy(at + size, address_of(names) + queries[query, NAME], queries[query, NAME_SIZE])
            size += queries[query, NAME_SIZE]
            known += 1
    for k in range(n):
        marks[which[k]] = 0
    offsets[used] = size
    make(column, n, 0, 2, buffers, 0, 0, dictionary)
    make(dictionary, used, 0, 3, buffers + 2 * WORD, 0, 0, 0)
    return begin(buffers + 4 * WORD, at, size)


@inlined
def fill_numbers(rows, order, which, queries, struct, buffers, at):
    """Fill the four columns of numbers."""
    n = len(rows)
    for column in range(4):
        numbers = int64s_at(at, n)
        for k in range(n):
            row = order[k]
            numbers[k] = queries[which[row], REGISTERED] if column == 0 else rows[row, ENTRY if column == 1 else BEGIN if column == 2 else END]
        int64s_at(buffers, 1)[0] = 0
        at = begin(buffers + WORD, at, WORD * n)
        make(struct, n, 0, 2, buffers, 0, 0, 0)
        struct, buffers = struct + WORD * STRUCT_WORDS, buffers + 2 * WORD
    return at


@inlined
def selects_at(selects):
    """Return the arrays places, queries, wanted, names and marks."""
    places, queries, wanted = pair(selects, PLACES), pair(selects, QUERIES), pair(selects, WANTED)
    names, marks = pair(selects, NAMES), pair(selects, MARKS)
    return (
        int64s_at(places[0], places[1]), queries_at(queries[0], queries[1]), int64s_at(wanted[0], wanted[1]), bytes_at(names[0], names[1]),
        int64s_at(marks[0], marks[1]),
    )  # fmt: skip


@entry_point
def emit(terms, rows, selects, tied, batch):
    """Make `batch` (a struct, by address) a record batch of solutions in order of emission: SOLUTIONS, or TIED ones.

    Return 1 where there are so many terms that the values stand over a dictionary, else 0. A result below 0 is `-1 - bytes` of the terms, which are
    more than Arrow's offsets can say or than there is room for.
    """
    at_, cells, _, text, _, _, _ = arrays_at(terms)
    places, queries, wanted, names, marks = selects_at(selects)
    n = len(rows)
    which = np.empty(n, np.int64)
    for row in range(n):
        which[row] = places[rows[row, NODE]]
    order = order_of(rows, which, queries, wanted, cells, text)
    shown, size, unbound, unlike, used, name_size = measured(rows, which, queries, wanted, cells, marks)
    packs = shown >= max(MANY, at_[USED] >> 4)
    seen, distinct, distinct_size = np.zeros(at_[USED] if packs else 0, np.int32), np.empty(shown if packs else 0, np.int64), 0
    if packs:
        count, distinct_size = told_apart(rows, order, which, queries, wanted, cells, seen, distinct)
        distinct = distinct[:count]
    columns = COLUMNS + tied
    structs, pointers = columns + 2 + tied + packs, columns + 1 + 5 + 8 + 7 * (1 + tied) + packs
    head = WORD * (STRUCT_WORDS * structs + pointers)
    ends = padded(n + 7 >> 3) + padded(4 * (n + 1)) + padded(shown + 7 >> 3) + padded(4 * (shown + 1))
    values = ends + (padded(4 * (len(distinct) + 1)) + padded(distinct_size) if packs else padded(size))
    whole = head + padded(4 * n) + padded(4 * (used + 1)) + padded(name_size) + 4 * WORD * n + values + (ends + padded(size)) * tied
    block = 0 if max(distinct_size, 0 if packs and not tied else size) > MOST_BYTES else allocated(whole)
    if block == 0:
        marks[:] = 0
        return -1 - size
    width = WORD * STRUCT_WORDS
    dictionary, items = block + width * columns, block + width * (columns + 1)
    children = block + width * structs
    for k in range(columns):
        int64s_at(children, columns)[k] = block + width * k
    nothing = children + WORD * columns  # the batch's own buffer: none of its rows is null
    int64s_at(nothing, 1)[0] = 0
    buffers, at = nothing + WORD, block + head
    at = fill_names(order, which, queries, names, marks, used, block, dictionary, buffers, at)
    buffers += 5 * WORD
    at = fill_numbers(rows, order, which, queries, block + width, buffers, at)
    buffers += 8 * WORD
    lists = block + 5 * width
    if packs:
        texts = items + width * (1 + tied)
        at = fill_packed(rows, order, which, queries, wanted, cells, text, seen, distinct, shown, unbound, lists, items, texts, buffers, at)
    else:
        at = fill_lists(rows, order, which, queries, wanted, cells, text, False, shown, unbound, 0, lists, items, buffers, at)
    if tied:
        buffers += (8 if packs else 7) * WORD
        fill_lists(rows, order, which, queries, wanted, cells, text, True, unlike, unbound, -1, block + 6 * width, items + width, buffers, at)
    make(batch, n, 0, 1, nothing, columns, children, 0)
    int64s_at(batch, STRUCT_WORDS)[PRIVATE] = block
    return 1 if packs else 0
