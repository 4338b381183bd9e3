"""Tables in which the kernel looks up what the background has for a join's left solutions: rows by hash of their key."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.kernel import columns as c
from engine.kernel.goals import MIX

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """`cells` stand bucket by bucket, the key's terms first; `heads` says where each bucket begins."""

    heads: Ints
    cells: Ints

    @classmethod
    def of(cls, rows: Ints, keys: int) -> "Table":
        """`keys`: how many columns are the key's."""
        buckets = 1 << max(len(rows) - 1, 0).bit_length()
        bucket = hashes(rows[:, :keys]) & (buckets - 1)
        order = np.argsort(bucket, kind="stable")
        heads = np.concatenate([[0], np.cumsum(np.bincount(bucket, minlength=buckets))]).astype(np.int64)
        return cls(heads, np.ascontiguousarray(rows[order]))

    @property
    def row(self) -> list[int]:
        """As the kernel has it, which does not keep it alive."""
        row = [0] * c.LOOKUP_WIDTH
        row[c.L_HEADS], row[c.L_BUCKETS] = int(self.heads.__array_interface__["data"][0]), len(self.heads) - 1
        row[c.L_CELLS], row[c.L_N], row[c.L_WIDTH] = int(self.cells.__array_interface__["data"][0]), *self.cells.shape
        return row


def hashes(keys: Ints) -> Ints:
    """`hash_of` of each row."""
    found: Ints = np.zeros(len(keys), np.int64)
    with np.errstate(over="ignore"):
        for column in keys.T:
            found = (found ^ column) * MIX
            found ^= found >> 29
    return found
