"""This module interns the distinct terms of one body: numbered in order of their first appearance, found again by hash and comparison."""

import numpy as np

from pipeline.formats.native.swar import NONE, borrowed, copied, native, same
from pipeline.formats.native.terms import plain, whole

START, SIZE, KEY, CLOSE = range(4)
"""Columns of `spans`, a row a term: where it stands first, its bytes, its hash; CLOSE is the place of its closing quote where that is escaped, or 0."""

MAX_TERM = 1 << 18
"""Bytes; longer ones are for the exact path, whose limit is as many characters."""

PLAIN, ODD = 0, 1
"""Flags of terms: canonical as they stand, or for the exact path to judge."""

_FIRST_SLOTS = 1 << 10
_NUMBER = np.uint64(0xFFFF_FFFF)  # the low half of a slot: the term's number and 1; the high half is of its hash
_LONGEST_PROBE = 1 << 10


@native.inlined
def new_table():
    return np.zeros(_FIRST_SLOTS, np.uint64)


@native.inlined
def _slot_of(key, number):
    return (key & ~_NUMBER) | np.uint64(number + 1)


@native.inlined
def slot_of(text, table, spans, key, start, size):
    """Return the slot of a term, or the empty one where it belongs.

    NONE is returned if that would take too long, which nobody's text does by chance.
    """
    mask = len(table) - 1
    slot = np.int64(key & np.uint64(mask))
    for _ in range(_LONGEST_PROBE):
        entry = table[slot]
        if entry == 0:
            return slot
        if entry & ~_NUMBER == key & ~_NUMBER:
            number = np.int64(entry & _NUMBER) - 1
            if spans[number, SIZE] == size and same(text, spans[number, START], start, size):
                return slot
        slot = (slot + 1) & mask
    return NONE


@native.inlined
def number_at(table, slot):
    """Return the number of the term in a slot, NONE in an empty one."""
    return np.int64(table[slot] & _NUMBER) - 1


@native.inlined
def put(table, slot, spans, number, key, start, size):
    """Make a piece of the text term `number`, which is the next one."""
    table[slot] = _slot_of(key, number)
    spans[number, START], spans[number, SIZE], spans[number, KEY], spans[number, CLOSE] = start, size, np.int64(key), 0


@native.jit
def grown(table, spans, count):
    """Return a table of four times the slots with the same terms."""
    larger = np.zeros(4 * len(table), np.uint64)
    mask = len(larger) - 1
    for number in range(count):
        key = np.uint64(spans[number, KEY])
        slot = np.int64(key & np.uint64(mask))
        while larger[slot] != 0:
            slot = (slot + 1) & mask
        larger[slot] = _slot_of(key, number)
    return larger


@native.jit
def _choose(cells, spans, indices, new, chosen):
    """Fill the indices of a column's numbers, NONE for NONE. Return how many terms are `chosen`, in order of first appearance, and their bytes at most."""
    count, size = 0, 0
    new[:] = NONE
    for row in range(len(indices)):
        number = cells[row]
        if number == NONE:
            indices[row] = NONE
            continue
        if new[number] == NONE:
            new[number] = count
            chosen[count] = number
            size += spans[number, SIZE]
            count += 1
        indices[row] = new[number]
    return count, size


@native.entry_point
def columns_of(text, spans, cells, rows):
    """Return a dictionary column for the first `rows` numbers in each row of `cells`. NONE is null.

    It consists of indices (a row each). The offsets into the dictionaries' texts, from 0 each, and these texts stand one after another. The last result
    counts each dictionary's terms and its bytes.
    """
    text, spans, cells = borrowed(text), borrowed(spans), borrowed(cells)
    n, new, most = len(cells), np.empty(len(spans), np.int32), min(rows, len(spans))
    indices, chosen, sizes = np.empty((n, rows), np.int32), np.empty((n, most), np.int32), np.empty((n, 2), np.int64)
    terms, size = 0, 0
    for k in range(n):
        sizes[k, 0], sizes[k, 1] = _choose(cells[k], spans, indices[k], new, chosen[k])
        terms, size = terms + sizes[k, 0], size + sizes[k, 1]
    offsets, texts, place, at = np.empty(terms + n, np.int32), np.empty(size + 8, np.uint8), 0, 0
    out = borrowed(texts)  # `texts` is returned, so it lives
    for k in range(n):
        first, offsets[place] = at, 0
        for i in range(sizes[k, 0]):
            number = chosen[k, i]
            start, close = spans[number, START], spans[number, CLOSE]
            if close == 0:
                at = copied(out, at, text, start, spans[number, SIZE])
            else:  # a literal in JSON, whose two quotes are escaped: the backslashes are left out
                at = copied(out, at, text, start + 1, close - start - 1)
                at = copied(out, at, text, close + 1, start + spans[number, SIZE] - close - 1)
            place += 1
            offsets[place] = at - first
        place, sizes[k, 1] = place + 1, at - first
    return indices, offsets, texts, sizes


@native.entry_point
def flags_of(text, offsets):
    """Return a flag for each of the terms that stand one after another in the text."""
    text, flags = borrowed(text), np.empty(len(offsets) - 1, np.uint8)
    for k in range(len(flags)):
        i, end = np.int64(offsets[k]), np.int64(offsets[k + 1])
        flags[k] = PLAIN if i < end and end - i <= MAX_TERM and whole(text, i, end) and plain(text, i, end) else ODD
    return flags
