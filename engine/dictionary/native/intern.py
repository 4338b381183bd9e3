"""Interning finds a text's number by hash and bytes; a new text goes to the end of the arena.

Chains are of equal hashes modulo the heads. The hash has a seed that no client knows, so that nobody can make chains long.
"""

import numpy as np

from engine.dictionary.native import borrowing, entry_point, inlined, jit
from engine.dictionary.native.handle import arrays_at
from engine.dictionary.native.layout import BYTES, CELL_WIDTH, FREE, HARD, HASH, LENGTH, LIVE, NEXT, NONE, SEED, START, USED, VALUED
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
        if cells[number, HASH] == hash_ and cells[number, LENGTH] == n and same(address_of(terms.text) + cells[number, START], source, n):
            return number
        number = cells[number, NEXT]
    return NONE


@inlined
def link_term(cells, heads, number):
    head = cells[number, HASH] & (len(heads) - 1)
    cells[number, NEXT] = heads[head]
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
    return spare and at[BYTES] + n <= len(terms.text) and at[LIVE] < len(terms.heads) and at[HARD] < len(terms.hard)


@borrowing
def add_term(terms, hash_, source, n):
    """Give new bytes, for which there is room, a number."""
    at, cells = terms.at, terms.cells
    number = at[FREE]
    if number != NONE:
        at[FREE] = cells[number, NEXT]
    else:
        number = at[USED]
        at[USED] = number + 1
    cells[number, START], cells[number, LENGTH], cells[number, HASH] = at[BYTES], n, hash_
    copy(address_of(terms.text) + at[BYTES], source, n)
    at[BYTES] += n
    at[LIVE] += 1
    terms.kinds[number] = kind_of(source, n)
    link_term(cells, terms.heads, number)
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
    heads, cells, text = terms.heads, terms.cells, address_of(terms.text)
    for first in range(0, len(which), TOGETHER):
        n = min(TOGETHER, len(which) - first)
        for k in range(n):
            place = offsets + 4 * which[first + k]
            hashes[k] = hash_bytes(data + short_word(place), short_word(place + 4) - short_word(place), terms.at[SEED])
            prefetch(address_of(heads) + 8 * (hashes[k] & (len(heads) - 1)))
        for k in range(n):
            numbers[first + k] = heads[hashes[k] & (len(heads) - 1)]
            prefetch(address_of(cells) + 8 * CELL_WIDTH * numbers[first + k])
        for k in range(n):
            number = numbers[first + k]
            numbers[first + k] = number if cells[number, HASH] == hashes[k] else cells[number, NEXT]
            prefetch(address_of(cells) + 8 * CELL_WIDTH * numbers[first + k])
        for k in range(n):
            number = numbers[first + k]
            prefetch(text + cells[number, START])
            prefetch(text + cells[number, START] + cells[number, LENGTH])
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
        if cells[number, LENGTH] > 0:
            note_value(at, values, hard, number, address_of(text) + cells[number, START], cells[number, LENGTH])
    return at[USED]


@entry_point
def spread(at, cells, heads):
    """Enter all terms into the empty table `heads`."""
    for number in range(1, at[USED]):
        if cells[number, LENGTH] > 0:
            link_term(cells, heads, number)


@entry_point
def enter(at, cells, text, kinds, ends):
    """Take in texts that stand in the arena one after the other, the one of each number up to `ends`. `spread` enters them into a table.

    The number of an empty text is free. A loop of its own over the table waits for several of its places at once.
    """
    begin = 0
    for k in range(len(ends)):
        n = ends[k] - begin
        number = k + 1
        cells[number, START], cells[number, LENGTH] = begin, n
        if n > 0:
            cells[number, HASH] = hash_bytes(address_of(text) + begin, n, at[SEED])
            kinds[number] = kind_of(address_of(text) + begin, ends[k] - begin)
            at[LIVE] += 1
        else:
            cells[number, NEXT] = at[FREE]
            at[FREE] = number
        begin = ends[k]
    at[USED], at[BYTES] = len(ends) + 1, begin


@entry_point
def sweep(at, cells, kinds, text, held, moved):
    """Free the numbers that are not `held`, and move the other texts to the arena `moved` in order. `spread` enters them into a table."""
    at[FREE], at[LIVE], at[BYTES] = NONE, 0, 0
    last_free = NONE
    for number in range(1, at[USED]):
        n = cells[number, LENGTH]
        if n > 0 and held[number]:
            copy(address_of(moved) + at[BYTES], address_of(text) + cells[number, START], n)
            cells[number, START] = at[BYTES]
            at[BYTES] += n
            at[LIVE] += 1
            continue
        cells[number, LENGTH], cells[number, NEXT], kinds[number] = 0, NONE, 0
        if last_free == NONE:
            at[FREE] = number
        else:
            cells[last_free, NEXT] = number
        last_free = number
