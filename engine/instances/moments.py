"""This module knows which entries of the log changed instances.

An occurrence notes the last of them before its own entry. So a query finds out which instances were there before an
occurrence came, also if that has waited for its time (semantics.md section 16).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.dictionary.term_dictionary import Held, TermTable
from engine.instances.relation import number_entry
from engine.kernel.state import layout as c

Ints = NDArray[np.int64]
_BEFORE = -1
"""This offset stands for the time before the first change."""


class InstanceMoments:
    """Holds the changes of instances that an occurrence may still note, in order, as the kernel's table `moments`."""

    def __init__(self, terms: TermTable, offsets: Sequence[int] = ()) -> None:
        self._terms = terms
        numbers = [number_entry(terms, offset) for offset in (_BEFORE, *offsets)]
        self.table: Ints = np.array([*zip((-c.BIG, *offsets), numbers, strict=True)], np.int64)
        terms.holders.add(self)

    @property
    def offsets(self) -> list[int]:
        found: list[int] = self.table[1:, c.M_ENTRY].tolist()
        return found

    def hold(self, held: Held) -> None:
        held.add(self.table[:, c.M_TERM])

    def note_change(self, offset: int, earliest: int) -> None:
        """Note a change. Those before are forgotten, as far as no occurrence of the entry `earliest` or later notes them."""
        row = np.array([[offset, number_entry(self._terms, offset)]], np.int64)
        kept = self.table[max(int(self.table[:, c.M_ENTRY].searchsorted(earliest)) - 1, 1) :]
        self.table = np.concatenate([self.table[:1], kept, row])
