"""The kernel looks up in these tables what the background has for a solution: rows in chains by hash of their key,
the newest first.

A version of the background that only adds to one before shares its table: rows go behind those that there are, and
each version counts its own.
"""

from dataclasses import field
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from engine.kernel.state import layout as c
from epsparql.deferred_methods import dataclass

Ints = NDArray[np.int64]
LEAST_ROOM = 16


@dataclass(slots=True, eq=False)
class _Chains:
    """Holds rows that only become more.

    `cells` begin with the next older row of the chain; those from `n` on are room for more.
    """

    heads: Ints
    cells: Ints
    n: int
    lock: Lock = field(default_factory=Lock)  # versions of several engines share it


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """Holds what the right side of a join, or a FIND, matches of the background, where that is too much to be copied.

    `source` has s, p, o, g of the triples. `parts` are the parts of them that are the key and, behind those, the
    other columns that they bind.
    """

    source: Ints
    parts: tuple[int, ...]
    keys: int  # how many of the parts are

    @property
    def rows(self) -> Ints:
        return self.source[:, self.parts]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Represents the first `n` rows of the chains; `keys` says how many of their terms are the key's."""

    chains: _Chains
    keys: int
    n: int

    @classmethod
    def from_rows(cls, rows: Ints, keys: int) -> "Table":
        n, room = len(rows), len(rows) + max(len(rows) // 2, LEAST_ROOM)
        heads = np.full(1 << room.bit_length() if keys else 1, c.NONE, np.int64)
        cells = np.empty((room, c.L_KEY + rows.shape[1]), np.int64)
        bucket = hashes(rows[:, :keys]) & (len(heads) - 1)
        order = np.argsort(bucket, kind="stable")  # rows of a chain stand together
        bucket, cells[:n, c.L_KEY :] = bucket[order], rows[order]
        cells[:n, c.L_OLDER] = np.arange(-1, n - 1)
        cells[np.flatnonzero(np.diff(bucket, prepend=-1)), c.L_OLDER] = c.NONE
        heads[bucket] = np.arange(n)  # the last of a chain stands
        return cls(_Chains(heads, cells, n), keys, n)

    def with_more(self, rows: Ints) -> "Table":
        """Return a table with further rows, which an older version does not see."""
        chains, n = self.chains, self.n + len(rows)
        with chains.lock:
            if self.n != chains.n or n > len(chains.cells):  # another version has gone on from here, or there is no room
                return Table.from_rows(np.concatenate([chains.cells[: self.n, c.L_KEY :], rows]), self.keys)
            chains.cells[self.n : n, c.L_KEY :] = rows
            buckets = hashes(rows[:, : self.keys]) & (len(chains.heads) - 1)
            for place, bucket in enumerate(buckets.tolist(), self.n):
                chains.cells[place, c.L_OLDER] = chains.heads[bucket]
                chains.heads[bucket] = place
            chains.n = n
            return Table(chains, self.keys, n)

    @property
    def row(self) -> list[int]:
        """Return the table as the kernel has it; the kernel does not keep the table alive."""
        chains, row = self.chains, [0] * c.LOOKUP_WIDTH
        row[c.L_HEADS], row[c.L_BUCKETS] = int(chains.heads.__array_interface__["data"][0]), len(chains.heads)
        row[c.L_CELLS], row[c.L_ROOM], row[c.L_WIDTH] = int(chains.cells.__array_interface__["data"][0]), *chains.cells.shape
        row[c.L_N] = self.n
        return row


def hashes(keys: Ints) -> Ints:
    """Return `hash_of` of each row."""
    found: Ints = np.zeros(len(keys), np.int64)
    with np.errstate(over="ignore"):
        for column in keys.T:
            found = (found ^ column) * c.MIX
            found ^= found >> 29
    return found
