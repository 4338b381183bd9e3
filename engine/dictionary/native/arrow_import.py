"""One call takes in a batch of occurrences through Arrow's C data interface and interns its terms, and one makes such a batch, however few rows it has.

The batch has the columns s, p, o, g, start, end (8 bytes) and late (bits). The first four are dictionaries of utf8 with indices of 4 bytes, g with nulls.
Source: Arrow C data interface, struct ArrowArray.
"""

import numpy as np

from engine.dictionary.native import borrowing, entry_point, inlined, jit
from engine.dictionary.native.arrow_c_data import (
    BUFFERS,
    CHILDREN,
    DICTIONARY,
    OFFSET,
    PRIVATE,
    ROWS,
    STRUCT_WORDS,
    WORD,
    allocated,
    at_word,
    bit,
    fill_struct,
    let_go,
    padded,
)
from engine.dictionary.native.handle import arrays_at
from engine.dictionary.native.intern import TOGETHER, intern_some
from engine.dictionary.native.layout import NONE
from engine.dictionary.native.memory import address_of, bytes_at, copy, int64s_at, short_word

# columns of the batch
TERMS = 4
START, END, LATE, COLUMNS = 4, 5, 6, 7
# what `taken` gives, in rows of its table: the terms, from the first on; start and end; which row each was; and where it came from
FIRST, ROW, SINCE, HEIGHT = 2, 8, 9, 10
UNUSED = -1  # a string that no row has had yet, or no string
USES, WHICH, NUMBERS, N_SPARE = range(4)


@jit
def take_column(terms, column, rows, target, spare, hashes):
    """Fill `target` with the numbers of the terms in some rows of a column, NONE for null. `spare` is room for USES, WHICH and NUMBERS of the rows.

    Return 0, or `-1 - bytes` of a string for which there was no room. Strings are interned in the order of their first use, so a dictionary may have
    many that no row has. Of a dictionary with more strings than rows are taken, a string is looked up at each use.
    """
    strings, first = at_word(column, DICTIONARY), at_word(column, OFFSET)
    valid, indices = at_word(at_word(column, BUFFERS), 0), at_word(at_word(column, BUFFERS), 1)
    n = at_word(strings, ROWS)
    uses = spare[USES, : n if n <= len(rows) else 0]  # by string: which of those in use it is
    uses[:] = UNUSED
    which, used = spare[WHICH], 0
    for i in range(len(rows)):
        k = first + rows[i]
        if valid != 0 and bit(valid, k) == 0:
            target[i] = UNUSED
            continue
        index = short_word(indices + 4 * k)
        use = uses[index] if len(uses) else UNUSED
        if use == UNUSED:
            use, which[used] = used, index
            used += 1
            if len(uses):
                uses[index] = use
        target[i] = use
    buffers, numbers = at_word(strings, BUFFERS), spare[NUMBERS, :used]
    offsets = at_word(buffers, 1) + 4 * at_word(strings, OFFSET)
    done = intern_some(terms, offsets, at_word(buffers, 2), which[:used], numbers, hashes)
    if done < used:
        place = offsets + 4 * which[done]
        return short_word(place) - short_word(place + 4) - 1
    for i in range(len(rows)):
        target[i] = NONE if target[i] == UNUSED else numbers[target[i]]
    return 0


@entry_point
def taken(terms, batch, wanted, since, table):
    """Fill `table` (HEIGHT x rows) with the rows of a batch (by address) that are not late, and let the batch go.

    Return how many rows these are, or `-1 - bytes` for which there was no room. The first `wanted` of s, p, o and g have numbers; the others are 0,
    and so is what stands above them.
    """
    table_of_terms = arrays_at(terms)
    columns, n, kept = at_word(batch, CHILDREN), at_word(batch, ROWS), 0
    late = at_word(columns, LATE)
    bits, first = at_word(at_word(late, BUFFERS), 1), at_word(late, OFFSET)
    for k in range(n):
        if bit(bits, first + k) == 0:
            table[ROW, kept] = k
            kept += 1
    rows = table[ROW, :kept]
    table[:FIRST, :kept], table[SINCE, :kept] = 0, since
    for which in range(START, END + 1):
        column = at_word(columns, which)
        numbers = at_word(at_word(column, BUFFERS), 1) + 8 * at_word(column, OFFSET)
        for i in range(kept):
            table[FIRST + which, i] = at_word(numbers, rows[i])
    table[FIRST + wanted : FIRST + TERMS, :kept] = NONE
    spare, hashes = np.empty((N_SPARE, kept), np.int64), np.empty(TOGETHER, np.int64)  # for all columns, since most batches have one row
    for which in range(wanted):
        column, target = at_word(columns, which), table[FIRST + which, :kept]
        short = take_column(table_of_terms, column, rows, target, spare, hashes)
        if short < 0:
            return short
    let_go(batch)
    return kept


# ---------------------------------------------------------------- making a batch
_STRUCTS = COLUMNS + TERMS
_HEAD = WORD * (STRUCT_WORDS * _STRUCTS + COLUMNS + 1 + 2 * COLUMNS + 3 * TERMS)
"""These are the bytes of the structs, and of the addresses of children and buffers."""


@inlined
def put_buffer(buffer, at, source, size):
    """Copy so many bytes to an address, note it as that of a buffer, and return where the next buffer begins."""
    int64s_at(buffer, 1)[0] = at
    copy(at, source, size)
    return at + padded(size)


@borrowing
def put_indices(column, dictionary, buffers, at, indices):
    """Fill the struct and the buffers of a column of terms; indices below 0 are null. Return where the next buffer begins."""
    rows, nulls = len(indices), 0
    bits = bytes_at(at, padded(rows + 7 >> 3))
    bits[:] = 0
    for k in range(rows):
        if indices[k] < 0:
            nulls += 1
        else:
            bits[k >> 3] |= 1 << (k & 7)
    int64s_at(buffers, 1)[0] = at if nulls else 0
    fill_struct(column, rows, nulls, (2, buffers), (0, 0), dictionary)
    return put_buffer(buffers + WORD, at + padded(rows + 7 >> 3), address_of(indices), 4 * rows)


@borrowing
def put_columns(block, buffers, columns, start, end):
    """Fill the structs of all columns and their buffers, which begin behind the head of the block."""
    indices, offsets, texts, sizes = columns
    rows, at, width, place, first = len(start), block + _HEAD, WORD * STRUCT_WORDS, address_of(offsets), address_of(texts)
    for k in range(TERMS):
        dictionary, terms, size = block + width * (COLUMNS + k), sizes[k, 0], sizes[k, 1]
        at = put_indices(block + width * k, dictionary, buffers, at, indices[k])
        int64s_at(buffers + 2 * WORD, 1)[0] = 0
        at = put_buffer(buffers + 3 * WORD, at, place, 4 * (terms + 1))
        at = put_buffer(buffers + 4 * WORD, at, first, size)
        fill_struct(dictionary, terms, 0, (3, buffers + 2 * WORD), (0, 0), 0)
        place, first, buffers = place + 4 * (terms + 1), first + size, buffers + 5 * WORD
    for k in range(TERMS, COLUMNS):
        int64s_at(buffers, 1)[0] = 0
        fill_struct(block + width * k, rows, 0, (2, buffers), (0, 0), 0)
        if k == LATE:
            int64s_at(buffers + WORD, 1)[0] = at
            bytes_at(at, padded(rows + 7 >> 3))[:] = 0
        else:
            at = put_buffer(buffers + WORD, at, address_of(start if k == START else end), WORD * rows)
        buffers += 2 * WORD


@entry_point
def make_batch(indices, offsets, texts, sizes, start, end, batch):
    """Make `batch` (a struct, by address) a batch of occurrences that are not late, and return whether there is room for it.

    `indices` has a row for each of s, p, o and g, below 0 for null. The offsets into their dictionaries' texts, from 0 each, and these texts stand one
    after another; `sizes` has the terms and the bytes of each.
    """
    rows = len(start)
    size = _HEAD + 2 * WORD * rows + (TERMS + 1) * padded(rows + 7 >> 3) + TERMS * padded(4 * rows)
    for k in range(TERMS):
        size += padded(4 * (sizes[k, 0] + 1)) + padded(sizes[k, 1])
    block = allocated(size)
    if block == 0:
        return False
    children = block + WORD * STRUCT_WORDS * _STRUCTS
    for k in range(COLUMNS):
        int64s_at(children, COLUMNS)[k] = block + WORD * STRUCT_WORDS * k
    nothing = children + WORD * COLUMNS  # the batch's own buffer: none of its rows is null
    int64s_at(nothing, 1)[0] = 0
    put_columns(block, nothing + WORD, (indices, offsets, texts, sizes), start, end)
    fill_struct(batch, rows, 0, (1, nothing), (COLUMNS, children), 0)
    int64s_at(batch, STRUCT_WORDS)[PRIVATE] = block
    return True
