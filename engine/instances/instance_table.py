"""This module holds the table in which one node looks instances up: chains by the hash of the node's key, where rows
stand in the order of one parameter.

A row has the place that it has in the relation. Behind the terms stands a bound of the number that the order goes by:
the term's value, less what may be its error. In chains that rise, a solution whose number lies below the bound of a
row passes that row, and all after it, by. A term that is no number stands first, and every solution meets it.
"""

import numpy as np
from numpy.typing import NDArray

from engine.dictionary.term_dictionary import TermTable
from engine.instances.needle_trie import NeedleTrie
from engine.kernel.state import layout as c
from engine.native.entries import link_instances, unlink_instances
from engine.physical_plan.plan import InstanceLookup
from engine.triples.hash_index import hashes

Ints = NDArray[np.int64]
_ROUNDING = 2.0**-50
"""The bound is computed with an error below this part of the number."""


class InstanceTable:
    """Holds the rows of a relation for one node."""

    def __init__(self, terms: TermTable, lookup: InstanceLookup) -> None:
        self._terms, self._lookup = terms, lookup
        self._heads: Ints = np.full(1, c.NONE, np.int64)
        self._cells: Ints = np.empty((0, c.L_KEY + len(lookup.parts) + 1), np.int64)
        self._trie = None if lookup.search is None else NeedleTrie(terms, lookup.search)

    @property
    def nbytes(self) -> int:
        return self._heads.nbytes + self._cells.nbytes + (0 if self._trie is None else self._trie.nbytes)

    @property
    def row(self) -> list[int]:
        """Return the table as the kernel has it; the kernel does not keep the table alive."""
        row = [0] * c.LOOKUP_WIDTH
        row[c.L_HEADS], row[c.L_BUCKETS] = int(self._heads.__array_interface__["data"][0]), len(self._heads)
        row[c.L_CELLS], row[c.L_ROOM], row[c.L_WIDTH] = int(self._cells.__array_interface__["data"][0]), *self._cells.shape
        row[c.L_N], row[c.L_SEARCH] = len(self._cells), 0 if self._trie is None else self._trie.address
        return row

    def unlink_rows(self, places: list[int]) -> None:
        """Take rows out of their chains."""
        unlink_instances(self._heads, self._cells, np.array(places, np.int64), self._lookup.keys)

    def link_rows(self, rows: Ints, places: list[int]) -> bool:
        """Put rows of the relation into their chains. Returns False if the table has no room, and is to be filled anew.

        Each chain is walked once. The relation grows by half its size at a time, so filling anew costs a row the same.
        """
        if len(rows) > len(self._cells):
            return False
        at = np.array(places, np.int64)
        if not self._add_values(rows[at], len(rows)):
            return False
        self._write_cells(rows, at)
        link_instances(self._heads, self._cells, at[self._find_order(at)[0]], self._lookup.keys, self._direction)
        return True

    def _find_order(self, places: Ints) -> tuple[Ints, Ints]:
        """Return an order of rows in which those of a chain stand together as in the chain, and their buckets."""
        bucket = hashes(self._cells[places, c.L_KEY : c.L_KEY + self._lookup.keys]) & (len(self._heads) - 1)
        if self._direction:
            return np.lexsort((self._direction * self._cells[places, -1].view(np.float64), bucket)), bucket
        return np.argsort(bucket, kind="stable"), bucket

    @property
    def _direction(self) -> int:
        """Return 1 where chains rise in their bounds, -1 where they fall, and 0 where they have no order."""
        return 0 if self._lookup.order is None else 1 if self._lookup.rises else -1

    def _add_values(self, rows: Ints, live: int) -> bool:
        """Add the values of rows to those that texts are searched for. Returns False if these are to be added anew."""
        return self._trie is None or self._trie.add_values(rows[:, self._lookup.parts[self._lookup.keys - 1]], live)

    def _write_cells(self, rows: Ints, places: Ints) -> None:
        self._cells[places, c.L_KEY : -1] = rows[places][:, self._lookup.parts]
        if (order := self._lookup.order) is not None:
            value, slack = self._terms.numbers[rows[places, order]].T
            error = slack + (np.abs(value) + slack) * _ROUNDING
            with np.errstate(invalid="ignore"):
                bound = np.where(np.isfinite(slack), value - self._direction * error, -self._direction * np.inf)
            self._cells[places, -1] = bound.view(np.int64)

    def link_anew(self, rows: Ints, live: Ints) -> None:
        """Make all chains anew, of the rows of the relation at these places."""
        room = len(rows)
        self._heads = np.full(1 << room.bit_length() if self._lookup.keys else 1, c.NONE, np.int64)
        self._cells = np.zeros((room, self._cells.shape[1]), np.int64)
        if not self._add_values(rows[live], len(live)) and self._trie is not None:
            self._trie.clear()
            self._add_values(rows[live], len(live))
        if not len(live):
            return
        self._write_cells(rows, live)
        order, bucket = self._find_order(live)
        places, bucket = live[order], bucket[order]
        begins = np.flatnonzero(np.diff(bucket, prepend=-1))
        self._cells[places, c.L_OLDER] = np.append(places[1:], c.NONE)
        self._cells[places[np.append(begins[1:], len(places)) - 1], c.L_OLDER] = c.NONE  # the last of each chain
        self._heads[bucket[begins]] = places[begins]
