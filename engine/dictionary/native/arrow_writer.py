"""One call puts solutions in order of emission (`solution_order.py`) and makes their record batch, in one allocation."""

from typing import Any, NamedTuple

import numpy as np
from numba import types

from engine.dictionary.native import entry_point, inlined, jit
from engine.dictionary.native.arrow_c_data import PRIVATE, STRUCT_WORDS, WORD, allocated, fill_struct, padded
from engine.dictionary.native.handle import arrays_at, pair
from engine.dictionary.native.layout import LENGTH, NONE, START, USED
from engine.dictionary.native.memory import address_of, bytes_at, copy, int32s_at, int64s_at, viewing
from engine.dictionary.native.solution_order import (
    ALIKE,
    BEGIN,
    END,
    ENTRY,
    FIRST,
    NAME,
    NAME_SIZE,
    NODE,
    QUERY_WIDTH,
    REGISTERED,
    SHOWN,
    Solutions,
    cell,
    sort_solutions,
)

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


class Sizes(NamedTuple):
    """Counts terms, their bytes, unbound ones, terms of queries that are not ALIKE, names, and their bytes."""

    terms: int
    bytes: int
    unbound: int
    unlike: int
    names: int
    name_bytes: int


class Packed(NamedTuple):
    """Holds a dictionary of terms, if it is `used`: the place of each term in it, from 1, the terms in it, and their bytes."""

    used: bool
    seen: Any
    distinct: Any
    size: int


class Structs(NamedTuple):
    """Holds the addresses of a column's structs: its own, that of its items or dictionary, and that of the texts of packed items."""

    column: int
    items: int
    texts: int


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
def collect_distinct(found, sizes, used):
    """Return the dictionary of the terms that are shown, each once; `used` is the number of all terms.

    It is empty where there are so few terms that each stands by itself.
    """
    packs = sizes.terms >= max(MANY, used >> 4)
    seen, distinct = np.zeros(used if packs else 0, np.int32), np.empty(sizes.terms if packs else 0, np.int64)
    count, size = 0, 0
    for row in found.order[: len(found.order) if packs else 0]:
        query = found.which[row]
        shown = found.queries[query, SHOWN]
        for m in range(shown):
            number = cell(found.rows, row, found.wanted[found.queries[query, FIRST] + 1 + shown + m])
            if number != NONE and seen[number] == 0:
                distinct[count] = number
                count += 1
                seen[number] = count
                size += found.cells[number, LENGTH]
    return Packed(packs, seen, distinct[:count], size)


@inlined
def measure_block(n, sizes, packed, tied):
    """Return the bytes of the structs with their pointers, and of the whole block of n solutions."""
    columns = COLUMNS + tied
    structs, pointers = columns + 2 + tied + packed.used, columns + 1 + 5 + 8 + 7 * (1 + tied) + packed.used
    head = WORD * (STRUCT_WORDS * structs + pointers)
    ends = padded(n + 7 >> 3) + padded(4 * (n + 1)) + padded(sizes.terms + 7 >> 3) + padded(4 * (sizes.terms + 1))
    values = ends + (padded(4 * (len(packed.distinct) + 1)) + padded(packed.size) if packed.used else padded(sizes.bytes))
    names = padded(4 * (sizes.names + 1)) + padded(sizes.name_bytes)
    return head, head + padded(4 * n) + names + 4 * WORD * n + values + (ends + padded(sizes.bytes)) * tied


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
    """Fill a column as `fill_lists` does, but with items that are places in a dictionary of texts."""
    seen, distinct = packed.seen, packed.distinct
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


@inlined
def find_queries(rows, shows, table):
    """Return the rows with the query of each, in the order in which they come."""
    which = np.empty(len(rows), np.int64)
    for row in range(len(rows)):
        which[row] = shows.places[rows[row, NODE]]
    return Solutions(rows, which, np.arange(len(rows)), shows.queries, shows.wanted, table.cells, table.text)


@jit
def fill_columns(found, shows, sizes, packed, tied, block, head):
    """Fill all columns of a block that begins with `head` bytes of structs. Return the addresses of the children and of the batch's own buffer."""
    columns, width = COLUMNS + tied, WORD * STRUCT_WORDS
    dictionary, items = block + width * columns, block + width * (columns + 1)
    children = block + width * (columns + 2 + tied + packed.used)
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
    at = fill_packed(found, sizes, packed, value_structs, buffers, at) if packed.used else fill_lists(found, sizes, False, value_structs, buffers, at)
    if tied:
        buffers += (8 if packed.used else 7) * WORD
        fill_lists(found, sizes, True, Structs(block + 6 * width, items + width, 0), buffers, at)
    return children, nothing


@entry_point
def emit(terms, rows, selects, tied, batch):
    """Make `batch` (a struct, by address) a record batch of solutions in order of emission: SOLUTIONS, or TIED ones.

    Return 1 where there are so many terms that the values stand over a dictionary, else 0. A result below 0 is `-1 - bytes` of the terms, which are
    more than Arrow's offsets can say or than there is room for.
    """
    table, shows = arrays_at(terms), selects_at(selects)
    found = find_queries(rows, shows, table)
    sort_solutions(found)
    sizes = measure_solutions(found, shows.marks)
    packed = collect_distinct(found, sizes, table.at[USED])
    head, whole = measure_block(len(rows), sizes, packed, tied)
    block = 0 if max(packed.size, 0 if packed.used and not tied else sizes.bytes) > MOST_BYTES else allocated(whole)
    if block == 0:
        shows.marks[:] = 0
        return -1 - sizes.bytes
    children, nothing = fill_columns(found, shows, sizes, packed, tied, block, head)
    fill_struct(batch, len(rows), 0, (1, nothing), (COLUMNS + tied, children), 0)
    int64s_at(batch, STRUCT_WORDS)[PRIVATE] = block
    return 1 if packed.used else 0
