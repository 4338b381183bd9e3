"""One call puts solutions in order of emission and makes their record batch, in one allocation."""

from typing import Any, NamedTuple

import numpy as np
from numba import types

from engine.dictionary.native import entry_point, inlined, jit
from engine.dictionary.native.arrow_c_data import PRIVATE, STRUCT_WORDS, WORD, allocated, fill_struct, padded
from engine.dictionary.native.collation import RowKeys, sort_order
from engine.dictionary.native.handle import arrays_at, pair
from engine.dictionary.native.layout import LENGTH, NONE, START, USED
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


class SelectArrays(NamedTuple):
    """Holds the arrays of a table of selects, whose columns are named above."""

    places: Any
    queries: Any
    wanted: Any
    names: Any
    marks: Any


class Solutions(NamedTuple):
    """Holds rows that the kernel found, the query of each, their order of emission, and what says how they are shown."""

    rows: Any
    which: Any
    order: Any
    queries: Any
    wanted: Any
    cells: Any
    text: Any


class Sizes(NamedTuple):
    """Counts terms, their bytes, unbound ones, terms of queries that are not ALIKE, names, and their bytes."""

    terms: int
    bytes: int
    unbound: int
    unlike: int
    names: int
    name_bytes: int


class Structs(NamedTuple):
    """Holds the addresses of a column's structs: its own, that of its items or dictionary, and that of the texts of packed items."""

    column: int
    items: int
    texts: int


@inlined
def cell(rows, row, column):
    """Return a row's cell, 0 for a column below zero."""
    return rows[row, column] if column >= 0 else NONE


# ---------------------------------------------------------------- order
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


# ---------------------------------------------------------------- sizes
@jit
def measure_solutions(found, marks):
    """Measure the rows. Names are numbered in `marks` from 1."""
    terms, size, unbound, unlike, names, name_size = 0, 0, 0, 0, 0, 0
    queries = found.queries
    for row in range(len(found.rows)):
        query = found.which[row]
        shown = queries[query, SHOWN]
        first = queries[query, FIRST] + 1 + shown
        for m in range(shown):
            number = cell(found.rows, row, found.wanted[first + m])
            size += found.cells[number, LENGTH]
            unbound += number == NONE
        terms += shown
        unlike += 0 if queries[query, ALIKE] else shown
        if marks[query] == 0:
            names += 1
            marks[query] = names
            name_size += queries[query, NAME_SIZE]
    return Sizes(terms, size, unbound, unlike, names, name_size)


@jit
def collect_distinct(found, seen, distinct):
    """Fill `distinct` with the terms that are shown, each once, and `seen` with their places there, from 1.

    Return how many terms these are, and their bytes.
    """
    count, size = 0, 0
    for row in found.order:
        query = found.which[row]
        shown = found.queries[query, SHOWN]
        for m in range(shown):
            number = cell(found.rows, row, found.wanted[found.queries[query, FIRST] + 1 + shown + m])
            if number != NONE and seen[number] == 0:
                distinct[count] = number
                count += 1
                seen[number] = count
                size += found.cells[number, LENGTH]
    return count, size


# ---------------------------------------------------------------- columns
@inlined
def begin_buffer(buffers, at, size):
    """Note that a buffer of so many bytes begins at an address, and return where the next one begins."""
    int64s_at(buffers, 1)[0] = at
    return at + padded(size)


@jit
def fill_lists(found, sizes, sorted_by_name, structs, buffers, at):
    """Fill a column of lists of terms, the structs of the column and of its items, and the addresses of their buffers.

    Return where the next buffer begins. With `sorted_by_name` the terms are in order of their variables, and lists are null for queries that are
    ALIKE.
    """
    n, terms = len(found.rows), sizes.unlike if sorted_by_name else sizes.terms
    int64s_at(buffers, 6)[:] = 0
    valid, bound = bytes_at(at, padded(n + 7 >> 3)), bytes_at(at, 0)
    if sorted_by_name:
        valid[:] = 0
        at = begin_buffer(buffers, at, n + 7 >> 3)
    ends = int32s_at(at, n + 1)
    at = begin_buffer(buffers + WORD, at, 4 * (n + 1))
    if sizes.unbound > 0:
        bound = bytes_at(at, padded(terms + 7 >> 3))
        bound[:] = 0
        at = begin_buffer(buffers + 3 * WORD, at, terms + 7 >> 3)
    offsets = int32s_at(at, terms + 1)
    at = begin_buffer(buffers + 4 * WORD, at, 4 * (terms + 1))
    data, size, item = at, 0, 0
    for k in range(n):
        ends[k] = item
        row = found.order[k]
        query = found.which[row]
        if sorted_by_name:
            if found.queries[query, ALIKE]:
                continue
            valid[k >> 3] |= 1 << (k & 7)
        shown = found.queries[query, SHOWN]
        first = found.queries[query, FIRST] + 1 + (0 if sorted_by_name else shown)
        for m in range(shown):
            number = cell(found.rows, row, found.wanted[first + m])
            offsets[item] = size
            if number != NONE:
                copy(data + size, address_of(found.text) + found.cells[number, START], found.cells[number, LENGTH])
                size += found.cells[number, LENGTH]
                if sizes.unbound > 0:
                    bound[item >> 3] |= 1 << (item & 7)
            item += 1
    ends[n], offsets[item] = item, size
    at = begin_buffer(buffers + 5 * WORD, at, size)
    int64s_at(buffers + 6 * WORD, 1)[0] = structs.items
    fill_struct(structs.column, n, -1 if sorted_by_name else 0, (2, buffers), (1, buffers + 6 * WORD), 0)
    fill_struct(structs.items, item, -1 if sizes.unbound > 0 else 0, (3, buffers + 3 * WORD), (0, 0), 0)
    return at


@jit
def fill_packed(found, sizes, packed, structs, buffers, at):
    """Fill a column as `fill_lists` does, but with items that are places in a dictionary of texts.

    `packed`: the place of each term in the dictionary, from 1, and the terms in it.
    """
    seen, distinct = packed
    n, terms = len(found.rows), sizes.terms
    int64s_at(buffers, 8)[:] = 0
    ends, bound = int32s_at(at, n + 1), bytes_at(at, 0)
    at = begin_buffer(buffers + WORD, at, 4 * (n + 1))
    if sizes.unbound > 0:
        bound = bytes_at(at, padded(terms + 7 >> 3))
        bound[:] = 0
        at = begin_buffer(buffers + 2 * WORD, at, terms + 7 >> 3)
    indices, item = int32s_at(at, terms), 0
    at = begin_buffer(buffers + 3 * WORD, at, 4 * terms)
    for k in range(n):
        ends[k] = item
        row = found.order[k]
        query = found.which[row]
        shown = found.queries[query, SHOWN]
        for m in range(shown):
            number = cell(found.rows, row, found.wanted[found.queries[query, FIRST] + 1 + shown + m])
            indices[item] = max(seen[number] - 1, 0)
            if number != NONE and sizes.unbound > 0:
                bound[item >> 3] |= 1 << (item & 7)
            item += 1
    ends[n] = item
    offsets, size = int32s_at(at, len(distinct) + 1), 0
    at = begin_buffer(buffers + 5 * WORD, at, 4 * (len(distinct) + 1))
    for k in range(len(distinct)):
        offsets[k] = size
        copy(at + size, address_of(found.text) + found.cells[distinct[k], START], found.cells[distinct[k], LENGTH])
        size += found.cells[distinct[k], LENGTH]
    offsets[len(distinct)] = size
    at = begin_buffer(buffers + 6 * WORD, at, size)
    int64s_at(buffers + 7 * WORD, 1)[0] = structs.items
    fill_struct(structs.column, n, 0, (2, buffers), (1, buffers + 7 * WORD), 0)
    fill_struct(structs.items, item, -1 if sizes.unbound > 0 else 0, (2, buffers + 2 * WORD), (0, 0), structs.texts)
    fill_struct(structs.texts, len(distinct), 0, (3, buffers + 4 * WORD), (0, 0), 0)
    return at


@jit
def fill_names(found, selects, sizes, structs, buffers, at):
    """Fill the column of names, as `fill_lists` does, and set the marks to 0 again."""
    n, used, marks, queries = len(found.rows), sizes.names, selects.marks, found.queries
    int64s_at(buffers, 5)[:] = 0
    indices, offsets = int32s_at(at, n), int32s_at(at + padded(4 * n), used + 1)
    at = begin_buffer(buffers + 3 * WORD, begin_buffer(buffers + WORD, at, 4 * n), 4 * (used + 1))
    for k in range(n):
        indices[k] = marks[found.which[found.order[k]]] - 1
    size, known = 0, 0
    for k in range(n):
        query = found.which[k]  # as they were numbered
        if marks[query] == known + 1:
            offsets[known] = size
            copy(at + size, address_of(selects.names) + queries[query, NAME], queries[query, NAME_SIZE])
            size += queries[query, NAME_SIZE]
            known += 1
    for k in range(n):
        marks[found.which[k]] = 0
    offsets[used] = size
    fill_struct(structs.column, n, 0, (2, buffers), (0, 0), structs.items)
    fill_struct(structs.items, used, 0, (3, buffers + 2 * WORD), (0, 0), 0)
    return begin_buffer(buffers + 4 * WORD, at, size)


@inlined
def fill_numbers(found, struct, buffers, at):
    """Fill the four columns of numbers."""
    n = len(found.rows)
    for column in range(4):
        numbers = int64s_at(at, n)
        for k in range(n):
            row = found.order[k]
            shown = ENTRY if column == 1 else BEGIN if column == 2 else END
            numbers[k] = found.queries[found.which[row], REGISTERED] if column == 0 else found.rows[row, shown]
        int64s_at(buffers, 1)[0] = 0
        at = begin_buffer(buffers + WORD, at, WORD * n)
        fill_struct(struct, n, 0, (2, buffers), (0, 0), 0)
        struct, buffers = struct + WORD * STRUCT_WORDS, buffers + 2 * WORD
    return at


@inlined
def selects_at(selects):
    """Return the arrays of a table of selects."""
    places, queries, wanted = pair(selects, PLACES), pair(selects, QUERIES), pair(selects, WANTED)
    names, marks = pair(selects, NAMES), pair(selects, MARKS)
    return SelectArrays(int64s_at(*places), queries_at(*queries), int64s_at(*wanted), bytes_at(*names), int64s_at(*marks))


@entry_point
def emit(terms, rows, selects, tied, batch):
    """Make `batch` (a struct, by address) a record batch of solutions in order of emission: SOLUTIONS, or TIED ones.

    Return 1 where there are so many terms that the values stand over a dictionary, else 0. A result below 0 is `-1 - bytes` of the terms, which are
    more than Arrow's offsets can say or than there is room for.
    """
    table, shows = arrays_at(terms), selects_at(selects)
    n = len(rows)
    which = np.empty(n, np.int64)
    for row in range(n):
        which[row] = shows.places[rows[row, NODE]]
    found = Solutions(rows, which, np.arange(n), shows.queries, shows.wanted, table.cells, table.text)
    sort_solutions(found)
    sizes = measure_solutions(found, shows.marks)
    packs = sizes.terms >= max(MANY, table.at[USED] >> 4)
    seen, distinct = np.zeros(table.at[USED] if packs else 0, np.int32), np.empty(sizes.terms if packs else 0, np.int64)
    distinct_size = 0
    if packs:
        count, distinct_size = collect_distinct(found, seen, distinct)
        distinct = distinct[:count]
    columns = COLUMNS + tied
    structs, pointers = columns + 2 + tied + packs, columns + 1 + 5 + 8 + 7 * (1 + tied) + packs
    head = WORD * (STRUCT_WORDS * structs + pointers)
    ends = padded(n + 7 >> 3) + padded(4 * (n + 1)) + padded(sizes.terms + 7 >> 3) + padded(4 * (sizes.terms + 1))
    values = ends + (padded(4 * (len(distinct) + 1)) + padded(distinct_size) if packs else padded(sizes.bytes))
    names = padded(4 * (sizes.names + 1)) + padded(sizes.name_bytes)
    whole = head + padded(4 * n) + names + 4 * WORD * n + values + (ends + padded(sizes.bytes)) * tied
    block = 0 if max(distinct_size, 0 if packs and not tied else sizes.bytes) > MOST_BYTES else allocated(whole)
    if block == 0:
        shows.marks[:] = 0
        return -1 - sizes.bytes
    width = WORD * STRUCT_WORDS
    dictionary, items = block + width * columns, block + width * (columns + 1)
    children = block + width * structs
    for k in range(columns):
        int64s_at(children, columns)[k] = block + width * k
    nothing = children + WORD * columns  # the batch's own buffer: none of its rows is null
    int64s_at(nothing, 1)[0] = 0
    buffers, at = nothing + WORD, block + head
    at = fill_names(found, shows, sizes, Structs(block, dictionary, 0), buffers, at)
    buffers += 5 * WORD
    at = fill_numbers(found, block + width, buffers, at)
    buffers += 8 * WORD
    value_structs = Structs(block + 5 * width, items, items + width * (1 + tied))
    if packs:
        at = fill_packed(found, sizes, (seen, distinct), value_structs, buffers, at)
    else:
        at = fill_lists(found, sizes, False, value_structs, buffers, at)
    if tied:
        buffers += (8 if packs else 7) * WORD
        fill_lists(found, sizes, True, Structs(block + 6 * width, items + width, 0), buffers, at)
    fill_struct(batch, n, 0, (1, nothing), (columns, children), 0)
    int64s_at(batch, STRUCT_WORDS)[PRIVATE] = block
    return 1 if packs else 0
