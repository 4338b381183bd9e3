"""Interning finds a text's number by hash and bytes; a new text goes to the end of the arena.

Chains are of equal hashes modulo the heads. The hash has a seed that no client knows, so that nobody can make chains long. A cell has only the first bits
of the hash, which tell most other terms of a chain apart; a larger table of heads takes the hashes from the texts again.
"""

import numpy as np

from engine.dictionary.native import borrowing, entry_point, inlined, jit
from engine.dictionary.native.handle import arrays_at, length_of, next_of, set_link, text_at
from engine.dictionary.native.layout import BYTES, CELL_WIDTH, FREE, HARD, LIVE, MOST_PLACES, NONE, PLACE, PLACE_BITS, SEED, USED, VALUED
from engine.dictionary.native.memory import address_of, byte, copy, prefetch, product, same, short_word, word
from engine.dictionary.native.numeric_literals import approximate

TOGETHER = 32  # strings that are looked up at the same time
FIRST_FACTOR, LAST_FACTOR = np.uint64(0xA0761D6478BD642F), np.uint64(0xE7037ED1A0B428DB)  # of wyhash


@inlined
def fold_product(a, b):
    high, low = product(a, b)
    return high ^ low


@inlined
def hash_bytes(source, n, seed):
    """Return the hash of the n bytes at an address.

    The bytes are taken 8 at a time; the last word may overlap the one before.
    """
    hash_ = np.uint64(seed) ^ np.uint64(n)
    if n < 8:
        last = np.uint64(0)
        for k in range(n):
            last = (last << np.uint64(8)) | np.uint64(byte(source + k))
    else:
        k = 0
        while k + 8 < n:
            hash_ = fold_product(hash_ ^ word(source + k), FIRST_FACTOR)
            k += 8
        last = word(source + n - 8)
    return np.int64(fold_product(hash_ ^ last, LAST_FACTOR))


@inlined
def find_term(terms, hash_, source, n):
    """Return the number of the n bytes at an address, NONE if they are new."""
    cells, number = terms.cells, terms.heads[hash_ & (len(terms.heads) - 1)]
    while number != NONE:
        if is_like(cells, number, hash_) and length_of(cells, number) == n and same(text_at(cells, terms.text, number), source, n):
            return number
        number = next_of(cells, number)
    return NONE


@inlined
def is_like(cells, number, hash_):
    """Return whether a term's hash begins as `hash_` does."""
    return (cells[number, PLACE] ^ hash_) >> PLACE_BITS == 0


@inlined
def link_term(cells, heads, number, place, n, hash_):
    """Write the cell of a term of n bytes at a place of the arena, at the head of its chain."""
    head = hash_ & (len(heads) - 1)
    cells[number, PLACE] = (hash_ & -MOST_PLACES) | place
    set_link(cells, number, n, heads[head])
    heads[head] = number


@inlined
def kind_of(source, n):
    """Return a term's kind, as the kernel's `kinds` has it, by the n bytes of its text.

    An IRI is 1, a blank node 2, a literal 3, or 4 if it is a string and no more. A triple term is 3 as well: like a literal, it is no subject,
    and the host decides whether two of them are equal.
    """
    first = byte(source)
    if first == ord("<"):
        return 3 if byte(source + 1) == ord("<") else 1
    return 2 if first == ord("_") else 4 if byte(source + n - 1) == ord('"') else 3


@inlined
def has_room(terms, n):
    """Return whether one more term of n bytes surely fits."""
    at = terms.at
    spare = at[FREE] != NONE or at[USED] < len(terms.cells)
    return spare and at[BYTES] + n <= len(terms.text) and at[LIVE] < 2 * len(terms.heads) and at[HARD] < len(terms.hard)


@borrowing
def add_term(terms, hash_, source, n):
    """Give new bytes, for which there is room, a number."""
    at, cells = terms.at, terms.cells
    number = at[FREE]
    if number != NONE:
        at[FREE] = next_of(cells, number)
    else:
        number = at[USED]
        at[USED] = number + 1
    link_term(cells, terms.heads, number, at[BYTES], n, hash_)
    copy(address_of(terms.text) + at[BYTES], source, n)
    at[BYTES] += n
    at[LIVE] += 1
    terms.kinds[number] = kind_of(source, n)
    if at[VALUED] != 0:
        note_value(at, terms.values, terms.hard, number, source, n)
    return number


@inlined
def note_value(at, values, hard, number, source, n):
    """Note the numeric value and error bound of the text, or that the host must say them."""
    values[number, 0], values[number, 1], sure = approximate(source, n)
    if not sure:
        hard[at[HARD]] = number
        at[HARD] += 1


@borrowing
def intern_hashed(terms, hash_, source, n):
    """Return the number of the n bytes at an address with this hash, or -1 if they are new and there is no room for them.

    No bytes are no term: the number is NONE.
    """
    if n == 0:
        return NONE
    number = find_term(terms, hash_, source, n)
    if number != NONE:
        return number
    if not has_room(terms, n):
        return -1
    return add_term(terms, hash_, source, n)


@jit
def intern_some(terms, offsets, data, which, numbers, hashes):
    """Number some of an Arrow array's strings, and return how many have numbers; if not all, room is wanting.

    The strings are given by the addresses of their offsets and bytes, and `which` has their places. A table of many terms is in no cache. So some
    strings are looked up together, head by head, then cell by cell, then text by text: they wait for memory at the same time. `hashes` is room for
    those of TOGETHER strings.
    """
    heads, cells, text = terms.heads, terms.cells, terms.text
    for first in range(0, len(which), TOGETHER):
        n = min(TOGETHER, len(which) - first)
        for k in range(n):
            place = offsets + 4 * which[first + k]
            hashes[k] = hash_bytes(data + short_word(place), short_word(place + 4) - short_word(place), terms.at[SEED])
            prefetch(address_of(heads) + 4 * (hashes[k] & (len(heads) - 1)))
        for k in range(n):
            numbers[first + k] = heads[hashes[k] & (len(heads) - 1)]
            prefetch(address_of(cells) + 8 * CELL_WIDTH * numbers[first + k])
        for k in range(n):
            number = numbers[first + k]
            numbers[first + k] = number if is_like(cells, number, hashes[k]) else next_of(cells, number)
            prefetch(address_of(cells) + 8 * CELL_WIDTH * numbers[first + k])
        for k in range(n):
            number = numbers[first + k]
            prefetch(text_at(cells, text, number))
            prefetch(text_at(cells, text, number) + length_of(cells, number))
        for k in range(n):
            place = offsets + 4 * which[first + k]
            number = intern_hashed(terms, hashes[k], data + short_word(place), short_word(place + 4) - short_word(place))
            if number < 0:
                return first + k
            numbers[first + k] = number
    return len(which)


@borrowing
def intern_bytes(terms, source, n):
    """Return the number of the n bytes at an address, as `intern_hashed` does."""
    return intern_hashed(terms, hash_bytes(source, n, terms.at[SEED]), source, n)


@entry_point
def intern_one(terms, written):
    """Return the number of a text given as bytes; -1 without room."""
    return intern_bytes(arrays_at(terms), address_of(written), len(written))


@entry_point
def intern_strings(terms, offsets, data, first, numbers):
    """Number an Arrow array's strings from the one at `first` on, as `intern_some` does, and return how many have numbers."""
    return first + intern_some(arrays_at(terms), offsets, data, np.arange(first, len(numbers)), numbers[first:], np.empty(TOGETHER, np.int64))


@entry_point
def value_from(at, cells, text, values, hard, first):
    """Note the numeric values of terms from number `first` on.

    Return the number from which to go on once the host has said its part.
    """
    for number in range(first, at[USED]):
        if at[HARD] == len(hard):
            return number
        if length_of(cells, number) > 0:
            note_value(at, values, hard, number, text_at(cells, text, number), length_of(cells, number))
    return at[USED]


@entry_point
def spread(at, cells, text, heads):
    """Enter all terms into the empty table `heads`. Some are entered together, so that they wait for their places in it at the same time."""
    hashes = np.empty(TOGETHER, np.int64)
    for first in range(1, at[USED], TOGETHER):
        n = min(TOGETHER, at[USED] - first)
        for k in range(n):
            hashes[k] = hash_bytes(text_at(cells, text, first + k), length_of(cells, first + k), at[SEED])
            prefetch(address_of(heads) + 4 * (hashes[k] & (len(heads) - 1)))
        for k in range(n):
            number, length = first + k, length_of(cells, first + k)
            if length > 0:
                link_term(cells, heads, number, cells[number, PLACE] & (MOST_PLACES - 1), length, hashes[k])


@entry_point
def enter(at, cells, text, kinds, ends):
    """Take in texts that stand in the arena one after the other, the one of each number up to `ends`. `spread` enters them into a table.

    The number of an empty text is free.
    """
    begin = 0
    for k in range(len(ends)):
        n = ends[k] - begin
        number = k + 1
        cells[number, PLACE] = begin
        set_link(cells, number, n, NONE)
        if n > 0:
            kinds[number] = kind_of(address_of(text) + begin, ends[k] - begin)
            at[LIVE] += 1
        else:
            set_link(cells, number, 0, at[FREE])
            at[FREE] = number
        begin = ends[k]
    at[USED], at[BYTES] = len(ends) + 1, begin


@entry_point
def sweep(at, cells, kinds, text, held, moved):
    """Free the numbers that are not `held`, and move the other texts to the arena `moved` in order. `spread` enters them into a table."""
    at[FREE], at[LIVE], at[BYTES] = NONE, 0, 0
    last_free = NONE
    for number in range(1, at[USED]):
        n = length_of(cells, number)
        if n > 0 and held[number]:
            copy(address_of(moved) + at[BYTES], text_at(cells, text, number), n)
            cells[number, PLACE] = at[BYTES]
            at[BYTES] += n
            at[LIVE] += 1
            continue
        set_link(cells, number, 0, NONE)
        kinds[number] = 0
        if last_free == NONE:
            at[FREE] = number
        else:
            set_link(cells, last_free, 0, number)
        last_free = number
