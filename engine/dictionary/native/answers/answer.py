"""The kernel calls this module by address for each new question; what it leaves open is asked of the host (docs/decisions/0099-compiled-answers.md)."""

from functools import cache

import numpy as np
from numba import types

from engine.dictionary.native import _native, borrowing, inlined
from engine.dictionary.native.answers.arithmetic import calculate
from engine.dictionary.native.answers.instants import write_instant
from engine.dictionary.native.answers.layout import (
    ARITHMETIC,
    CONTEXT_WIDTH,
    DIGITS,
    HEAD,
    HEAD_N,
    INSTANT,
    NO_ANSWER,
    NONE,
    PAIR_AT,
    PART_ARGUMENT,
    PART_LENGTH,
    PART_TEXT,
    PART_WIDTH,
    PARTS,
    PREFIX,
    PREFIX_N,
    RECIPES,
    SEPARATOR,
    SHA256,
    STRICT,
    TAIL,
    TAIL_N,
    TERMS,
    TEXT,
    TEXT_ROOM,
    TIMED_AT,
    WHICH,
    WORDS,
    WORDS_ROOM,
)
from engine.dictionary.native.answers.number_writer import MINUS, ZERO
from engine.dictionary.native.answers.sha256 import BLOCK, DIGEST_AT, LENGTH_BYTES, STATE, digest, digest_by_openssl
from engine.dictionary.native.handle import arrays_at, length_of, text_at
from engine.dictionary.native.intern import intern_bytes
from engine.dictionary.native.memory import address_of, bytes_at, copy, int64s_at, prefetch, uint64s_at

_LONGEST_RECIPE = 1 << 20
HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
PAIRS = np.array([list(b"%02d" % k) for k in range(100)], np.uint8)
LONGEST_WHOLE = 20
"""A word has at most so many digits."""
_MOST_BYTES = TEXT_ROOM - BLOCK - LENGTH_BYTES - 64
"""The parts of a digest have at most so many bytes, besides two instants."""


@borrowing
def answer_at(context, who, arguments):
    """Return the number of the term that answers question `who` about the arguments at an address, or NO_ANSWER."""
    cells = int64s_at(context, CONTEXT_WIDTH)
    at = cells[RECIPES] + 8 * who
    recipe_at = int64s_at(at, 1)[0]
    if recipe_at == 0:
        return NO_ANSWER
    terms, recipe = arrays_at(cells[TERMS]), int64s_at(recipe_at, _LONGEST_RECIPE)
    given, text = int64s_at(arguments, _LONGEST_RECIPE), bytes_at(cells[TEXT], TEXT_ROOM)
    if recipe[0] == ARITHMETIC:
        return calculate(terms, recipe, given, int64s_at(cells[WORDS], WORDS_ROOM), text)
    if recipe[0] == INSTANT:
        pair = recipe[PAIR_AT]
        n = write_instant(text, given[pair + recipe[WHICH]]) if given[pair] <= given[pair + 1] else 0
    else:
        n = name_digest(terms, recipe, given, cells, text)
    return intern_bytes(terms, cells[TEXT], n) if n > 0 else NO_ANSWER


@borrowing
def name_digest(terms, recipe, arguments, cells, text):
    """Write the name that is a digest of the recipe's parts, and return its length; 0 where the host has to say it.

    Their texts are fetched first, so that they wait for memory together.
    """
    for k in range(recipe[PARTS]):
        argument = recipe[PARTS + 1 + PART_WIDTH * k + PART_ARGUMENT]
        if argument != NONE:
            prefetch(text_at(terms.cells, terms.text, arguments[argument]))
    n, timed = append(text, 0, recipe[PREFIX], recipe[PREFIX_N]), recipe[TIMED_AT]
    if timed != NONE:
        if arguments[timed] > arguments[timed + 1]:  # timeless
            return 0
        spare = bytes_at(cells[WORDS], LONGEST_WHOLE)
        for k in range(2):
            text[n] = recipe[SEPARATOR]
            n = write_whole(text, n + 1, arguments[timed + k], spare)
    for k in range(recipe[PARTS]):
        part = PARTS + 1 + PART_WIDTH * k
        argument, at, length = recipe[part + PART_ARGUMENT], recipe[part + PART_TEXT], recipe[part + PART_LENGTH]
        if argument != NONE:
            term = arguments[argument]
            at, length = text_at(terms.cells, terms.text, term), length_of(terms.cells, term)
        if n + length >= _MOST_BYTES or (length == 0 and recipe[STRICT] != 0):
            return 0
        if n > 0:
            text[n] = recipe[SEPARATOR]
            n += 1
        n = append(text, n, at, length)
    words = uint64s_at(cells[WORDS], WORDS_ROOM)
    if cells[SHA256] != 0:
        digest_by_openssl(int64s_at(cells[SHA256], 3), cells[TEXT], n, words)
    else:
        digest(cells[TEXT], n, words)
    found = bytes_at(cells[WORDS] + 8 * DIGEST_AT, 4 * STATE)
    n = append(text, 0, recipe[HEAD], recipe[HEAD_N])
    for k in range(0, recipe[DIGITS], 2):
        text[n + k], text[n + k + 1] = HEX[found[k >> 1] >> 4], HEX[found[k >> 1] & 15]
    return append(text, n + recipe[DIGITS], recipe[TAIL], recipe[TAIL_N])


@inlined
def append(text, n, source, length):
    copy(address_of(text) + n, source, length)
    return n + length


@borrowing
def write_whole(text, n, value, spare):
    """Write a whole number, two digits at a time, from the end of `spare` on, and return the place behind."""
    if value < 0:
        text[n] = MINUS
        n += 1
    rest, first = np.uint64(abs(value)), LONGEST_WHOLE
    while rest > np.uint64(0) or first == LONGEST_WHOLE:
        rest, two = rest // np.uint64(100), rest % np.uint64(100)
        first -= 2
        spare[first], spare[first + 1] = PAIRS[two, 0], PAIRS[two, 1]
    first += spare[first] == ZERO
    return append(text, n, address_of(spare) + first, LONGEST_WHOLE - first)


def _answer(context, who, arguments):
    return answer_at(context, who, arguments)


@cache
def answerer():
    """Return the compiled function, for the kernel to call by its `address`."""
    return _native.callback(_answer, types.int64(types.int64, types.int64, types.int64))
