"""Collections are read as they are given."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Lists:
    """Holds the members of collections by their first cells."""

    def __init__(self, firsts: Ints, rests: Ints, text: Callable[[int], str]) -> None:
        """Take rows of rdf:first and of rdf:rest; `text` gives the text of a term."""
        following = _by_subject(rests, text)
        self._cells = {cell: (first, following.get(cell, 0)) for cell, first in _by_subject(firsts, text).items()}

    def members(self, cell: int) -> list[int]:
        """Return the members of a collection; if it runs in a circle, each comes once."""
        found = dict[int, int]()
        while cell in self._cells and cell not in found:
            found[cell], cell = self._cells[cell]
        return [*found.values()]


def _by_subject(rows: Ints, text: Callable[[int], str]) -> dict[int, int]:
    """Return the object of each subject; of several the first by text, so that all runs take the same."""
    found: dict[int, int] = {}
    for s, o in rows[:, :2].tolist():
        found[s] = o if found.get(s, o) == o else min(found[s], o, key=text)
    return found
