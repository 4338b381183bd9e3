"""Sorted rows hold the tuples of a relation as packed integers in a few sorted runs. So a small change does not copy
all of them.

A tuple of two terms is `first << 32 | second`; longer ones have numbers of their own (`Tuples`). A value never changes.
"""

from collections.abc import Callable, Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from engine.triples.relation import sort_values
from epsparql.deferred_methods import dataclass

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
SHIFT = 32
LOW = (1 << SHIFT) - 1
NO_INTS: Ints = np.zeros(0, np.int64)


def pack_pairs(first: Ints, second: Ints) -> Ints:
    """Return pairs of numbers below 2**31 as integers that sort by the first number, then by the second."""
    return (first << SHIFT) | second


def swap_pairs(packed: Ints) -> Ints:
    return ((packed & LOW) << SHIFT) | (packed >> SHIFT)


def merge_sorted(one: Ints, other: Ints) -> Ints:
    """Return two sorted arrays as one."""
    if not len(one) or not len(other):
        return other if len(other) else one
    if len(other) * 16 < len(one):
        return np.insert(one, np.searchsorted(one, other), other)
    both = np.concatenate([one, other])
    both.sort(kind="stable")  # which merges sorted stretches
    return both


def is_among(values: Ints, sorted_: Ints) -> Mask:
    """Return which values are in a sorted array."""
    if not len(sorted_):
        return np.zeros(len(values), np.bool_)
    at = np.searchsorted(sorted_, values)
    at[at == len(sorted_)] = 0
    found: Mask = sorted_[at] == values
    return found


def unite(parts: Sequence[Ints]) -> Ints:
    """Return the values of several arrays, each once, in order."""
    filled = [part for part in parts if len(part)]
    return NO_INTS if not filled else sort_values(filled[0] if len(filled) == 1 else np.concatenate(filled))


@dataclass(slots=True, eq=False)
class _Run:
    packed: Ints  # sorted
    swapped: Ints | None = None  # the same pairs by their second term, once somebody asks for it

    def by_second(self) -> Ints:
        if self.swapped is None:
            self.swapped = swap_pairs(self.packed)
            self.swapped.sort()
        return self.swapped

    def joined(self, other: "_Run") -> "_Run":
        swapped = None if self.swapped is None else merge_sorted(self.swapped, other.by_second())
        return _Run(merge_sorted(self.packed, other.packed), swapped)

    def reduced(self, gone: Ints) -> "_Run":
        """Return the run without sorted values, some of which it may not have."""
        here = gone[is_among(gone, self.packed)]
        if not len(here):
            return self
        swapped = self.swapped
        if swapped is not None:
            turned = np.sort(swap_pairs(here))
            swapped = np.delete(swapped, np.searchsorted(swapped, turned))
        return _Run(np.delete(self.packed, np.searchsorted(self.packed, here)), swapped)


@dataclass(frozen=True, slots=True, eq=False)
class SortedRows:
    """Holds a set of packed tuples; each run is more than twice as long as the next, and no two share a tuple."""

    runs: tuple[_Run, ...] = ()

    @classmethod
    def from_sorted(cls, packed: Ints) -> "SortedRows":
        return cls((_Run(packed),)) if len(packed) else NO_ROWS

    def __len__(self) -> int:
        return sum(len(run.packed) for run in self.runs)

    def packed(self) -> Ints:
        """Return all tuples, in order where there is one run."""
        return self.runs[0].packed if len(self.runs) == 1 else np.concatenate([NO_INTS, *(run.packed for run in self.runs)])

    def contains(self, packed: Ints) -> Mask:
        found = np.zeros(len(packed), np.bool_)
        for run in self.runs:
            found |= is_among(packed, run.packed)
        return found

    def with_more(self, packed: Ints) -> "SortedRows":
        """Return these and further tuples, sorted and none of them here."""
        if not len(packed):
            return self
        runs = [*self.runs, _Run(packed)]
        while len(runs) > 1 and len(runs[-2].packed) <= 2 * len(runs[-1].packed):
            last = runs.pop()
            runs[-1] = runs[-1].joined(last)
        return SortedRows(tuple(runs))

    def without(self, packed: Ints) -> "SortedRows":
        """Return these without some sorted tuples."""
        if not len(packed):
            return self
        runs = [run.reduced(packed) for run in self.runs]
        return SortedRows(tuple(run for run in runs if len(run.packed)))

    def ranges(self, keys: Ints, *, second: bool) -> list[tuple[Ints, Ints, Ints]]:
        """Return, run by run, the pairs' order by the first term (or the second), and where those of each key begin
        and end in it.
        """
        found = []
        for run in self.runs:
            order = run.by_second() if second else run.packed
            least = keys << SHIFT
            begin = np.searchsorted(order, least)
            found.append((order, begin, np.searchsorted(order, least + LOW, side="right")))
        return found


NO_ROWS = SortedRows()


@dataclass(slots=True, eq=False)
class Tuples:
    """Numbers tuples of three terms and more, as pairs of the number of all but the last term with the last."""

    _numbers: dict[int, int] = field(default_factory=dict)
    _pairs: list[int] = field(default_factory=list)

    def pack(self, columns: Sequence[Ints]) -> Ints:
        """Return tuples of at least one term as integers."""
        return self._packed(columns, self._assign_number)

    def find(self, columns: Sequence[Ints]) -> Ints:
        """Return tuples as integers, -1 for those that were never packed."""
        return self._packed(columns, lambda pair: self._numbers.get(pair, -1))

    def _packed(self, columns: Sequence[Ints], number: Callable[[int], int]) -> Ints:
        found = columns[0]
        for column in columns[1:-1]:
            pairs, place = np.unique(pack_pairs(found, column), return_inverse=True)
            found = np.fromiter(map(number, pairs.tolist()), np.int64, len(pairs))[place]
        return pack_pairs(found, columns[-1]) if len(columns) > 1 else found

    def _assign_number(self, pair: int) -> int:
        number = self._numbers.get(pair)
        if number is None:
            number = self._numbers[pair] = len(self._pairs)
            self._pairs.append(pair)
        return number

    def unpack(self, packed: Ints, arity: int) -> list[Ints]:
        """Return the terms of tuples, column by column."""
        columns: list[Ints] = []
        for _ in range(arity - 2):
            columns.append(packed & LOW)
            packed = np.array(self._pairs, np.int64)[packed >> SHIFT]
        return [*([packed >> SHIFT, packed & LOW] if arity > 1 else [packed]), *reversed(columns)]

    @property
    def pairs(self) -> Ints:
        """Return the pairs that have numbers."""
        return np.array(self._pairs, np.int64)
