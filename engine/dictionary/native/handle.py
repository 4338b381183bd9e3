"""One address stands for a table of arrays: numba takes apart each array that Python hands it, which costs more than a short call does."""

import numpy as np

from engine.dictionary.native import inlined
from engine.dictionary.native.layout import *
from engine.dictionary.native.memory import bytes_at, cells_at, int64s_at, values_at, word


@inlined
def pair(table, k):
    """Return the address and length of the k-th array."""
    return np.int64(word(table + 16 * k)), np.int64(word(table + 16 * k + 8))


@inlined
def arrays_at(terms):
    """Return the term table's arrays: at, cells, heads, text, kinds, values, hard."""
    at, cells, heads, text = pair(terms, AT), pair(terms, CELLS), pair(terms, HEADS), pair(terms, TEXT)
    kinds, values, hard = pair(terms, KINDS), pair(terms, VALUES), pair(terms, HARDS)
    return (
        int64s_at(at[0], at[1]), cells_at(cells[0], cells[1]), int64s_at(heads[0], heads[1]), bytes_at(text[0], text[1]),
        int64s_at(kinds[0], kinds[1]), values_at(values[0], values[1]), int64s_at(hard[0], hard[1]),
    )  # fmt: skip
