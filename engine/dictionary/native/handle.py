"""One address stands for a table of arrays: numba takes apart each array that Python hands it, which costs more than a short call does.

A term's cell is packed: these functions read its parts.
"""

from typing import Any, NamedTuple

import numpy as np

from engine.dictionary.native import inlined
from engine.dictionary.native.layout import (
    AT,
    CELLS,
    HARDS,
    HEADS,
    KINDS,
    LINK,
    LINK_BITS,
    MOST_PLACES,
    PLACE,
    SMALL,
    TEXT,
    VALUES,
)
from engine.dictionary.native.memory import address_of, bytes_at, cells_at, int8s_at, int32s_at, int64s_at, values_at, word


class TermArrays(NamedTuple):
    """Holds the arrays of a term table; their columns and cells are named in layout.py."""

    at: Any
    cells: Any
    heads: Any
    text: Any
    kinds: Any
    values: Any
    hard: Any
    small: Any


@inlined
def pair(table, k):
    """Return the address and length of the k-th array."""
    return np.int64(word(table + 16 * k)), np.int64(word(table + 16 * k + 8))


@inlined
def arrays_at(terms):
    """Return the term table's arrays."""
    at, cells, heads, text = pair(terms, AT), pair(terms, CELLS), pair(terms, HEADS), pair(terms, TEXT)
    kinds, values, hard, small = pair(terms, KINDS), pair(terms, VALUES), pair(terms, HARDS), pair(terms, SMALL)
    return TermArrays(
        int64s_at(*at),
        cells_at(*cells),
        int32s_at(*heads),
        bytes_at(*text),
        int8s_at(*kinds),
        values_at(*values),
        int64s_at(*hard),
        int64s_at(*small),
    )


@inlined
def text_at(cells, text, number):
    """Return the address of a term's text."""
    return address_of(text) + (cells[number, PLACE] & (MOST_PLACES - 1))


@inlined
def length_of(cells, number):
    """Return the bytes of a term's text, 0 for a number that is free."""
    return cells[number, LINK] >> LINK_BITS


@inlined
def next_of(cells, number):
    """Return what follows a term in its chain, or a free number among those."""
    return cells[number, LINK] & ((1 << LINK_BITS) - 1)


@inlined
def set_link(cells, number, length, after):
    cells[number, LINK] = (length << LINK_BITS) | after
