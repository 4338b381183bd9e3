"""One call puts solutions in order of emission (`solution_order.py`) and makes their record batch, in one allocation."""

from typing import Any, NamedTuple

import numpy as np
from numba import types

from engine.dictionary.native import borrowing, entry_point, inlined, jit
from engine.dictionary.native.arrow_c_data import PRIVATE, STRUCT_WORDS, WORD, allocated, fill_struct, padded
from engine.dictionary.native.handle import arrays_at, length_of, pair, text_at
from engine.dictionary.native.layout import NONE, USED
from engine.dictionary.native.memory import address_of, bytes_at, copy, int32s_at, int64s_at, viewing
from engine.dictionary.native.ntriples_writer import insert_statement, is_statement, measure_line, write_line
from engine.dictionary.native.solution_order import (
    ALIKE,
    BEGIN,
    END,
    ENTRY,
    FIRST,
    FIRST_CONSTANT,
    NAME,
    NAME_SIZE,
    NODE,
    QUERY_WIDTH,
    REGISTERED,
    SHOWN,
    TRIPLES,
    Solutions,
    cell,
    sort_solutions,
)

# forms: the address and length of each array, in a table that has their owner's: the query of each node; queries; the columns wanted; the text in which
# their names stand; marks, one a query, which are 0 between calls; and the numbers of the constants in triples
PLACES, QUERIES, WANTED, NAMES, MARKS, CONSTANTS, N_FORMS = range(7)
# the batch's columns: query, registered, entry, start, end, values, and, of solutions that are to be merged with others, by
COLUMNS = 6
MOST_BYTES = 2**31 - 1  # that Arrow's offsets can say
queries_at = viewing(types.int64, QUERY_WIDTH)
UNBOUND = -1
MANY = 1 << 10  # terms that are shown over a dictionary, where that looks at no more than some cells for each


class FormArrays(NamedTuple):
    """Holds the arrays of a table of forms, whose columns are named above."""

    places: Any
    queries: Any
    wanted: Any
    names: Any
    marks: Any
    constants: Any


class Sizes(NamedTuple):
    """Counts terms, lines, their bytes, terms of queries that are not ALIKE, names, and their bytes."""

    terms: int
    lines: int
    line_bytes: int
    unlike: int
    names: int
    name_bytes: int


class Texts(NamedTuple):
    """Counts the bytes of the terms, those of the terms of queries that are not ALIKE, and how many terms are unbound."""

    bytes: int
    unlike_bytes: int
    unbound: int


class Packed(NamedTuple):
    """Holds a dictionary of terms, if it is `used`: the terms in it, their bytes, the end of each list, and the place of each item in the dictionary.

    An unbound item has the place UNBOUND, and a line one below it, in order.
    """

    used: bool
    distinct: Any
    size: int
    ends: Any
    places: Any
    unbound: int


class Measures(NamedTuple):
    """Holds what is known of the columns before they are filled."""

    sizes: Any
    texts: Any
    packed: Any


class Structs(NamedTuple):
    """Holds the addresses of a column's structs: its own, that of its items or dictionary, and that of the texts of packed items."""

    column: int
    items: int
    texts: int


# ---------------------------------------------------------------- sizes
@borrowing
def count_items(found, marks):
    """Count what the rows show. Names are numbered in `marks` from 1."""
    terms, unlike, names, name_size = 0, 0, 0, 0
    queries, lines, line_size = found.queries, found.ends[len(found.rows)], 0
    for row in range(len(found.rows)):
        query = found.which[row]
        shown = queries[query, SHOWN]
        terms += shown if queries[query, TRIPLES] == 0 else 0
        unlike += 0 if queries[query, ALIKE] else shown
        if marks[query] == 0:
            names += 1
            marks[query] = names
            name_size += queries[query, NAME_SIZE]
    for k in range(lines):
        line_size += measure_line(found.cells, found.statements, k)
    return Sizes(terms, lines, line_size, unlike, names, name_size)


@borrowing
def measure_texts(found):
    """Measure the terms that the rows show."""
    size, unlike_size, unbound, queries = 0, 0, 0, found.queries
    for row in range(len(found.rows)):
        query, own = found.which[row], 0
        first = queries[query, FIRST] + 1
        for m in range(queries[query, SHOWN]):
            number = cell(found.rows, row, found.wanted[first + m])
            own += length_of(found.cells, number)
            unbound += number == NONE
        size += own if queries[query, TRIPLES] == 0 else 0
        unlike_size += 0 if queries[query, ALIKE] else own
    return Texts(size, unlike_size, unbound)


@jit
def collect_distinct(found, sizes, used):
    """Return the dictionary of the terms that are shown, each once; `used` is the number of all terms.

    It is empty where there are so few terms that each stands by itself.
    """
    packs, n = sizes.terms >= max(MANY, used >> 4), len(found.rows)
    seen, distinct = np.zeros(used if packs else 0, np.int32), np.empty(sizes.terms if packs else 0, np.int64)
    ends, places = np.empty(n + 1 if packs else 0, np.int32), np.empty(sizes.terms + sizes.lines if packs else 0, np.int32)
    count, size, unbound = fill_places(found, seen, distinct, ends, places) if packs else (0, 0, 0)
    return Packed(packs, distinct[:count], size, ends, places, unbound)


@borrowing
def fill_places(found, seen, distinct, ends, places):
    """Fill what a dictionary of terms has, of which `seen` numbers those so far from 1. Return how many terms there are, their bytes, and the unbound items."""
    count, size, unbound, item = 0, 0, 0, 0
    for k in range(len(found.order)):
        ends[k] = item
        row = found.order[k]
        query = found.which[row]
        for line in range(found.ends[row], found.ends[row + 1]):
            places[item] = UNBOUND - 1 - line
            item += 1
        shown = found.queries[query, SHOWN] if found.queries[query, TRIPLES] == 0 else 0
        first = found.queries[query, FIRST] + 1 + shown
        for m in range(shown):
            number = cell(found.rows, row, found.wanted[first + m])
            place = seen[number] - 1
            if number == NONE:
                unbound += 1
            elif place == UNBOUND:
                place = count
                distinct[count] = number
                count += 1
                seen[number] = count
                size += length_of(found.cells, number)
            places[item] = place
            item += 1
    ends[len(found.order)] = item
    return count, size, unbound


@inlined
def measure_block(n, measures, tied):
    """Return the bytes of the structs with their pointers, and of the whole block of n solutions."""
    sizes, texts, packed = measures
    columns = COLUMNS + tied
    structs, pointers = columns + 2 + tied + packed.used, columns + 1 + 5 + 8 + 7 * (1 + tied) + packed.used
    head = WORD * (STRUCT_WORDS * structs + pointers)
    values = measure_lists(n, sizes.terms + sizes.lines) + padded(measure_values(measures))
    if packed.used:
        values += padded(4 * (len(packed.distinct) + sizes.lines + 1))
    names = padded(4 * (sizes.names + 1)) + padded(sizes.name_bytes)
    by = (measure_lists(n, sizes.unlike) + padded(texts.unlike_bytes)) * tied
    return head, head + padded(4 * n) + names + 4 * WORD * n + values + by


@inlined
def measure_lists(n, items):
    """Return the bytes of n lists of so many items, without their texts."""
    return padded(n + 7 >> 3) + padded(4 * (n + 1)) + padded(items + 7 >> 3) + padded(4 * (items + 1))


@inlined
def measure_values(measures):
    """Return the bytes of the texts in the column of values."""
    return measures.sizes.line_bytes + (measures.packed.size if measures.packed.used else measures.texts.bytes)


# ---------------------------------------------------------------- columns
@inlined
def begin_buffer(buffers, at, size):
    """Note that a buffer of so many bytes begins at an address, and return where the next one begins."""
    int64s_at(buffers, 1)[0] = at
    return at + padded(size)


@inlined
def note_bound(unbound, bound, item):
    """Note that an item is no null, in a column that has nulls if some are unbound."""
    if unbound > 0:
        bound[item >> 3] |= 1 << (item & 7)


@borrowing
def fill_lists(found, sizes, unbound, sorted_by_name, structs, buffers, at):
    """Fill a column of lists of terms, the structs of the column and of its items, and the addresses of their buffers.

    Return where the next buffer begins. With `sorted_by_name` the terms are in order of their variables, and lists are null for queries that are
    ALIKE.
    """
    n, terms = len(found.rows), sizes.unlike if sorted_by_name else sizes.terms + sizes.lines
    int64s_at(buffers, 6)[:] = 0
    valid, bound = bytes_at(at, padded(n + 7 >> 3)), bytes_at(at, 0)
    if sorted_by_name:
        valid[:] = 0
        at = begin_buffer(buffers, at, n + 7 >> 3)
    ends = int32s_at(at, n + 1)
    at = begin_buffer(buffers + WORD, at, 4 * (n + 1))
    if unbound > 0:
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
        for line in range(found.ends[row], found.ends[row] if sorted_by_name else found.ends[row + 1]):
            offsets[item] = size
            size = write_line(found.cells, found.text, found.statements, line, data + size) - data
            note_bound(unbound, bound, item)
            item += 1
        shown = found.queries[query, SHOWN] if sorted_by_name or found.queries[query, TRIPLES] == 0 else 0
        first = found.queries[query, FIRST] + 1 + (0 if sorted_by_name else shown)
        for m in range(shown):
            number = cell(found.rows, row, found.wanted[first + m])
            offsets[item] = size
            if number != NONE:
                copy(data + size, text_at(found.cells, found.text, number), length_of(found.cells, number))
                size += length_of(found.cells, number)
                note_bound(unbound, bound, item)
            item += 1
    ends[n], offsets[item] = item, size
    at = begin_buffer(buffers + 5 * WORD, at, size)
    int64s_at(buffers + 6 * WORD, 1)[0] = structs.items
    fill_struct(structs.column, n, -1 if sorted_by_name else 0, (2, buffers), (1, buffers + 6 * WORD), 0)
    fill_struct(structs.items, item, -1 if unbound > 0 else 0, (3, buffers + 3 * WORD), (0, 0), 0)
    return at


@borrowing
def fill_packed(found, sizes, packed, structs, buffers, at):
    """Fill a column as `fill_lists` does, but with items that are places in a dictionary of texts: the distinct terms, and all lines behind them."""
    distinct, unbound = packed.distinct, packed.unbound
    n, terms, texts = len(found.rows), sizes.terms + sizes.lines, len(distinct) + sizes.lines
    int64s_at(buffers, 8)[:] = 0
    copy(at, address_of(packed.ends), 4 * (n + 1))
    at, bound = begin_buffer(buffers + WORD, at, 4 * (n + 1)), bytes_at(at, 0)
    if unbound > 0:
        bound = bytes_at(at, padded(terms + 7 >> 3))
        bound[:] = 0
        at = begin_buffer(buffers + 2 * WORD, at, terms + 7 >> 3)
    indices = int32s_at(at, terms)
    at = begin_buffer(buffers + 3 * WORD, at, 4 * terms)
    for item in range(terms):
        place = packed.places[item]
        indices[item] = place if place > UNBOUND else 0 if place == UNBOUND else len(distinct) + UNBOUND - 1 - place
        if place != UNBOUND:
            note_bound(unbound, bound, item)
    offsets, size = int32s_at(at, texts + 1), 0
    at = begin_buffer(buffers + 5 * WORD, at, 4 * (texts + 1))
    for k in range(len(distinct)):
        offsets[k] = size
        copy(at + size, text_at(found.cells, found.text, distinct[k]), length_of(found.cells, distinct[k]))
        size += length_of(found.cells, distinct[k])
    for line in range(sizes.lines):
        offsets[len(distinct) + line] = size
        size = write_line(found.cells, found.text, found.statements, line, at + size) - at
    offsets[texts] = size
    at = begin_buffer(buffers + 6 * WORD, at, size)
    int64s_at(buffers + 7 * WORD, 1)[0] = structs.items
    fill_struct(structs.column, n, 0, (2, buffers), (1, buffers + 7 * WORD), 0)
    fill_struct(structs.items, terms, -1 if unbound > 0 else 0, (2, buffers + 2 * WORD), (0, 0), structs.texts)
    fill_struct(structs.texts, texts, 0, (3, buffers + 4 * WORD), (0, 0), 0)
    return at


@borrowing
def fill_names(found, shows, sizes, structs, buffers, at):
    """Fill the column of names, as `fill_lists` does, and set the marks to 0 again."""
    n, used, marks, queries = len(found.rows), sizes.names, shows.marks, found.queries
    int64s_at(buffers, 5)[:] = 0
    indices, offsets = int32s_at(at, n), int32s_at(at + padded(4 * n), used + 1)
    at = begin_buffer(buffers + 3 * WORD, begin_buffer(buffers + WORD, at, 4 * n), 4 * (used + 1))
    for k in range(n):
        indices[k] = marks[found.which[found.order[k]]] - 1
    size, known, row = 0, 0, 0
    while known < used:
        query = found.which[row]  # as they were numbered
        if marks[query] == known + 1:
            offsets[known] = size
            copy(at + size, address_of(shows.names) + queries[query, NAME], queries[query, NAME_SIZE])
            size += queries[query, NAME_SIZE]
            known += 1
        row += 1
    for k in range(row):
        marks[found.which[k]] = 0
    offsets[used] = size
    fill_struct(structs.column, n, 0, (2, buffers), (0, 0), structs.items)
    fill_struct(structs.items, used, 0, (3, buffers + 2 * WORD), (0, 0), 0)
    return begin_buffer(buffers + 4 * WORD, at, size)


@borrowing
def fill_numbers(found, struct, buffers, at):
    """Fill the four columns of numbers."""
    n = len(found.rows)
    size = padded(WORD * n)
    registered, entries = int64s_at(at, n), int64s_at(at + size, n)
    starts, ends = int64s_at(at + 2 * size, n), int64s_at(at + 3 * size, n)
    for k in range(n):
        row = found.order[k]
        registered[k] = found.queries[found.which[row], REGISTERED]
        entries[k], starts[k], ends[k] = found.rows[row, ENTRY], found.rows[row, BEGIN], found.rows[row, END]
    for _ in range(4):
        int64s_at(buffers, 1)[0] = 0
        at = begin_buffer(buffers + WORD, at, WORD * n)
        fill_struct(struct, n, 0, (2, buffers), (0, 0), 0)
        struct, buffers = struct + WORD * STRUCT_WORDS, buffers + 2 * WORD
    return at


@inlined
def forms_at(forms):
    """Return the arrays of a table of forms."""
    places, queries, wanted = pair(forms, PLACES), pair(forms, QUERIES), pair(forms, WANTED)
    names, marks, constants = pair(forms, NAMES), pair(forms, MARKS), pair(forms, CONSTANTS)
    return FormArrays(int64s_at(*places), queries_at(*queries), int64s_at(*wanted), bytes_at(*names), int64s_at(*marks), int64s_at(*constants))


@inlined
def read_part(rows, row, part, constants):
    """Return a part of a triple that a row makes."""
    return constants[FIRST_CONSTANT - part] if part <= FIRST_CONSTANT else cell(rows, row, part)


@borrowing
def state_triples(rows, row, shows, table, query, statements, first):
    """Put the statements of a row among all, from `first` on, in order and each once, and return how many there are."""
    n, at = 0, shows.queries[query, FIRST] + 1 + shows.queries[query, SHOWN]
    for k in range(at, at + 3 * shows.queries[query, TRIPLES], 3):
        s = read_part(rows, row, shows.wanted[k], shows.constants)
        p = read_part(rows, row, shows.wanted[k + 1], shows.constants)
        o = read_part(rows, row, shows.wanted[k + 2], shows.constants)
        if is_statement(table.kinds, s, p, o):
            n = insert_statement(table, statements, first, n, (s, p, o))
    return n


@borrowing
def count_triples(rows, shows):
    """Return how many triples the rows are to make."""
    most = 0
    for row in range(len(rows)):
        most += shows.queries[shows.places[rows[row, NODE]], TRIPLES]
    return most


@borrowing
def state_rows(rows, shows, table, which, ends, kept, statements):
    """Note the query and the statements of each row, and which rows are `kept`: one that is to make triples and makes none is left out.

    Return how many are kept.
    """
    lines, n = 0, 0
    for row in range(len(rows)):
        query = shows.places[rows[row, NODE]]
        made = state_triples(rows, row, shows, table, query, statements, lines)
        if made > 0 or shows.queries[query, TRIPLES] == 0:
            lines += made
            which[n], kept[n], ends[n + 1] = query, row, lines
            n += 1
    return n


@jit
def find_queries(rows, shows, table):
    """Return the rows that are kept with the query and the statements of each, in the order in which they come."""
    which, ends, kept = np.empty(len(rows), np.int64), np.zeros(len(rows) + 1, np.int64), np.empty(len(rows), np.int64)
    statements = np.empty((count_triples(rows, shows), 3), np.int64)
    n = state_rows(rows, shows, table, which, ends, kept, statements)
    found = rows if n == len(rows) else rows[kept[:n]]
    return Solutions(found, which[:n], np.arange(n), statements, ends[: n + 1], shows.queries, shows.wanted, table.cells, table.text)


@borrowing
def fill_columns(found, shows, measures, tied, block, head):
    """Fill all columns of a block that begins with `head` bytes of structs. Return the addresses of the children and of the batch's own buffer."""
    sizes, texts, packed = measures
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
    if packed.used:
        at = fill_packed(found, sizes, packed, value_structs, buffers, at)
    else:
        at = fill_lists(found, sizes, texts.unbound, False, value_structs, buffers, at)
    if tied:
        buffers += (8 if packed.used else 7) * WORD
        fill_lists(found, sizes, texts.unbound, True, Structs(block + 6 * width, items + width, 0), buffers, at)
    return children, nothing


@entry_point
def emit(terms, rows, forms, tied, batch):
    """Make `batch` (a struct, by address) a record batch of solutions in order of emission: SOLUTIONS, or TIED ones.

    Return 1 where there are so many terms that the values stand over a dictionary, else 0. A result below 0 is `-1 - bytes` of the texts, which are
    more than Arrow's offsets can say or than there is room for.
    """
    table, shows = arrays_at(terms), forms_at(forms)
    found = find_queries(rows, shows, table)
    sort_solutions(found)
    sizes = count_items(found, shows.marks)
    packed = collect_distinct(found, sizes, table.at[USED])
    texts = Texts(0, 0, 0) if packed.used and not tied else measure_texts(found)
    measures = Measures(sizes, texts, packed)
    head, whole = measure_block(len(found.rows), measures, tied)
    longest = max(measure_values(measures), texts.unlike_bytes if tied else 0)
    block = 0 if longest > MOST_BYTES else allocated(whole)
    if block == 0:
        shows.marks[:] = 0
        return -1 - longest
    children, nothing = fill_columns(found, shows, measures, tied, block, head)
    fill_struct(batch, len(found.rows), 0, (1, nothing), (COLUMNS + tied, children), 0)
    int64s_at(batch, STRUCT_WORDS)[PRIVATE] = block
    return 1 if packed.used else 0
