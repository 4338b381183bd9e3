"""This module holds the instances of one query: a row for each, with its id, the entry that gave it its terms, and the
terms.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from engine.dictionary.term_dictionary import Held, TermTable
from engine.instances.instance_table import InstanceTable
from engine.physical_plan.plan import InstanceLookup
from engine.state_size import instance_bytes
from epsparql.terms import XSD, Literal

Ints = NDArray[np.int64]
ID, ADDED, TERMS = range(3)
"""These are the columns of the relation; from TERMS on, there is one for each parameter."""
_LEAST_ROOM = 16
Rows = dict[int, list[int] | None]


def number_entry(terms: TermTable, offset: int) -> int:
    """Return the term of a log offset."""
    return terms.intern(str(Literal(str(offset), XSD + "integer")))


class InstanceRelation:
    """Holds the instances of one query, and the tables in which nodes look them up.

    A row has its place for as long as its instance has the same terms. Free places have zeros.
    """

    def __init__(self, terms: TermTable, rows: Ints) -> None:
        """Begin with rows, in the columns ID, ADDED and TERMS."""
        self._terms = terms
        self._tables: dict[InstanceLookup, InstanceTable] = {}
        self.replace_rows(rows)
        terms.holders.add(self)

    @classmethod
    def without_rows(cls, terms: TermTable, parameters: int) -> "InstanceRelation":
        return cls(terms, np.zeros((0, TERMS + parameters), np.int64))

    def replace_rows(self, rows: Ints) -> None:
        """Have other rows than before."""
        self._used, self._free = len(rows), list[int]()
        self._rows = np.zeros((len(rows) + max(len(rows) // 2, _LEAST_ROOM), rows.shape[1]), np.int64)
        self._rows[: self._used] = rows
        self._places: dict[int, int] = dict(zip(rows[:, ID].tolist(), range(self._used), strict=True))
        for table in self._tables.values():
            table.link_anew(self._rows, self._live)

    def __len__(self) -> int:
        return len(self._places)

    @property
    def live_rows(self) -> Ints:
        """Return the rows of all instances, without free places."""
        return self._rows[self._live]

    @property
    def nbytes(self) -> int:
        """Return the bytes of the rows and the tables."""
        return self._rows.nbytes + sum(table.nbytes for table in self._tables.values())

    @property
    def state_bytes(self) -> int:
        """Return the bytes of all instances, as quotas count them."""
        return len(self) * instance_bytes(self._rows.shape[1] - TERMS)

    @property
    def _live(self) -> Ints:
        return np.fromiter(self._places.values(), np.int64, len(self._places))

    def hold(self, held: Held) -> None:
        held.add(self._rows[: self._used])

    def get_table(self, lookup: InstanceLookup) -> InstanceTable:
        """Return the table of a node, which follows the changes."""
        if (found := self._tables.get(lookup)) is None:
            found = self._tables[lookup] = InstanceTable(self._terms, lookup)
            found.link_anew(self._rows, self._live)
        return found

    def change(self, offset: int, changes: Mapping[str, Sequence[str] | None]) -> None:
        """Add or change instances, by id, or remove them (None), by the entry at `offset`.

        An instance that has these terms already stays as it is.
        """
        rows = self._number_changes(offset, changes)
        leaving = [place for number in rows if (place := self._places.pop(number, None)) is not None]
        for table in self._tables.values():
            table.unlink_rows(leaving)
        self._rows[leaving] = 0
        self._free += leaving
        coming = [(number, row) for number, row in rows.items() if row is not None]
        places = self._take_places(len(coming))
        if coming:
            self._rows[places] = [row for _, row in coming]
            self._places |= {number: place for (number, _), place in zip(coming, places, strict=True)}
        for table in self._tables.values():
            if not table.link_rows(self._rows, places):
                table.link_anew(self._rows, self._live)

    def _number_changes(self, offset: int, changes: Mapping[str, Sequence[str] | None]) -> Rows:
        """Return, by the number of its id, the row that each instance is to have; those that have it are left out."""
        added, numbers = number_entry(self._terms, offset), self._terms.intern_all([str(Literal(name)) for name in changes]).tolist()
        given = [term for values in changes.values() if values is not None for term in values]
        terms, first, found = self._terms.intern_all(given).tolist() if given else [], 0, Rows()
        for number, values in zip(numbers, changes.values(), strict=True):
            if values is None:
                found[number] = None
                continue
            own, first = terms[first : first + len(values)], first + len(values)
            place = self._places.get(number)
            if place is None or self._rows[place, TERMS:].tolist() != own:
                found[number] = [number, added, *own]
        return found

    def _take_places(self, n: int) -> list[int]:
        """Take free places, and make room where there are too few."""
        fresh = max(n - len(self._free), 0)
        if self._used + fresh > len(self._rows):
            room = max(self._used + fresh, len(self._rows) + len(self._rows) // 2)
            self._rows = np.concatenate([self._rows, np.zeros((room - len(self._rows), self._rows.shape[1]), np.int64)])
        self._free += range(self._used + fresh - 1, self._used - 1, -1)
        self._used += fresh
        return [self._free.pop() for _ in range(n)]
