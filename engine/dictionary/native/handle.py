"""One address stands for a table of arrays: numba takes apart each array that Python hands it, which costs more than a short call does."""

from typing import Any, NamedTuple

import numpy as np

from engine.dictionary.native import inlined
from engine.dictionary.native.layout import AT, CELLS, HARDS, HEADS, KINDS, SMALL, TEXT, VALUES
from engine.dictionary.native.memory import bytes_at, cells_at, int64s_at, values_at, word


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
        int64s_at(*heads),
        bytes_at(*text),
        int64s_at(*kinds),
        values_at(*values),
        int64s_at(*hard),
        int64s_at(*small),
    )
