"""Solutions on their way through a collector are columns of numbers."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from engine.dictionary.term_dictionary import TermTable
from engine.kernel.state import layout as c
from engine.rewrite.rename_hidden import restore_name
from epsparql.deferred_methods import dataclass
from epsparql.terms import Variable

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class RowBatch:
    """Holds n solutions; times are in µs, and a timeless one is [c.BIG, -c.BIG]."""

    start: Ints
    end: Ints
    cells: Ints  # n x variables: term numbers, c.UNBOUND for unbound

    def __len__(self) -> int:
        return len(self.start)

    def where(self, chosen: NDArray[np.bool_] | Ints | slice) -> "RowBatch":
        return RowBatch(self.start[chosen], self.end[chosen], self.cells[chosen])

    @property
    def timeless(self) -> bool:
        """Return whether any of them is timeless."""
        return bool(self.start.max(initial=0) == c.BIG)

    def placed(self, now: int | Ints) -> "RowBatch":
        """Return the rows with timeless solutions at [now, now]: they are given at the instant at which they stand."""
        if not self.timeless:
            return self
        timeless = self.start == c.BIG
        return RowBatch(np.where(timeless, now, self.start), np.where(timeless, now, self.end), self.cells)

    def standing(self, now: int) -> "RowBatch":
        """Return the rows without the timeless solutions that equal one at [now, now]: where they stand, the two are
        one.
        """
        if not self.timeless:
            return self
        timeless = self.start == c.BIG
        there = {tuple(cells) for cells in self.cells[(self.start == now) & (self.end == now)].tolist()}
        doubled = [k for k in np.flatnonzero(timeless).tolist() if tuple(self.cells[k].tolist()) in there] if there else []
        return self.where(np.delete(np.arange(len(self)), doubled))


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Holds what comes to a collector over several instants, in their order: solutions (c.LEFT), wakes (c.BLOCKER),
    and that it is due (c.RIGHT).
    """

    now: Ints
    entry: Ints
    side: Ints
    rows: RowBatch

    def __len__(self) -> int:
        return len(self.now)

    def where(self, chosen: NDArray[np.bool_] | Ints | slice) -> "Moments":
        return Moments(self.now[chosen], self.entry[chosen], self.side[chosen], self.rows.where(chosen))

    def standing(self) -> "Moments":
        """Return the moments without timeless solutions that equal one that stands at their instant.

        Wakes and what is due are timeless rows too.
        """
        solutions = self.side == c.LEFT
        if not self.rows.where(solutions).timeless:
            return self
        kept = [self.where(~solutions)]
        for moment in self.where(solutions).each():
            rows = moment.rows.standing(int(moment.now[0]))
            kept.append(Moments(moment.now[: len(rows)], moment.entry[: len(rows)], moment.side[: len(rows)], rows))
        now, entry, side = (np.concatenate(arrays) for arrays in zip(*((k.now, k.entry, k.side) for k in kept), strict=True))
        start, end, cells = (np.concatenate(arrays) for arrays in zip(*((k.rows.start, k.rows.end, k.rows.cells) for k in kept), strict=True))
        whole = Moments(now, entry, side, RowBatch(start, end, cells))
        return whole.where(np.argsort(now, kind="stable"))

    def each(self) -> Iterator["Moments"]:
        """Yield the moments instant by instant."""
        edges = [0, *(np.flatnonzero(np.diff(self.now)) + 1).tolist(), len(self)]
        for first, after in pairwise(edges):
            yield self.where(slice(first, after))


@dataclass(frozen=True, slots=True, eq=False)
class Passage:
    """Holds how time passed while a feed was taken in: the latest end so far, rising, and the entry of each column.

    No end is of a last instant.
    """

    end: Ints
    entry: Ints

    @property
    def until(self) -> int:
        """Return the instant before which all instants are closed."""
        return int(self.end[-1]) if len(self.end) else -c.BIG

    def entries_of(self, instants: Ints) -> Ints:
        """Return the entries by which these instants, which are closed, were."""
        return self.entry[np.searchsorted(self.end, instants, side="right")]


@dataclass(frozen=True, slots=True, eq=False)
class Reports:
    """Holds what a collector gives over several instants, each row with the entry that brings it."""

    entry: Ints
    rows: RowBatch

    def __len__(self) -> int:
        return len(self.entry)


def rows_of(start: Sequence[int], end: Sequence[int], cells: Sequence[Sequence[int]], width: int) -> RowBatch:
    return RowBatch(np.array(start, np.int64), np.array(end, np.int64), np.array(cells, np.int64).reshape(len(start), width))


def no_rows(width: int) -> RowBatch:
    return rows_of([], [], [], width)


def together(parts: Sequence[Reports], width: int) -> Reports:
    if not parts:
        return Reports(np.zeros(0, np.int64), no_rows(width))
    entry, start, end = (np.concatenate(arrays) for arrays in zip(*((p.entry, p.rows.start, p.rows.end) for p in parts), strict=True))
    return Reports(entry, RowBatch(start, end, np.concatenate([part.rows.cells for part in parts])))


def in_order(rows: RowBatch, reads: Sequence[Variable], terms: TermTable, first: Sequence[Variable] = ()) -> Ints:
    """Return the order of solutions that nothing else orders: end, start, then terms in N-Triples text by variable
    name, unbound first.

    Variables of `first` come before the others, and visible ones before hidden ones. No row may be timeless.
    """
    if len(rows) < 2:
        return np.arange(len(rows))
    names = [restore_name(variable) for variable in reads]
    columns = sorted(range(len(reads)), key=lambda k: (reads[k] not in first, names[k] is None, names[k] or reads[k].name))
    ranks = terms.in_order(rows.cells[:, columns])
    return np.lexsort((*ranks.T[::-1], rows.start, rows.end))


def order_moments(moments: Moments, reads: Sequence[Variable], visible: Sequence[Variable], terms: TermTable) -> Ints:
    """Return the order of moments, which stand in that of instants, in which the solutions inside an instant are in
    theirs (`in_order`).
    """
    order = np.arange(len(moments))
    same = np.diff(moments.now) == 0
    several = np.flatnonzero((np.append(same, False) | np.insert(same, 0, False)) & (moments.side == c.LEFT))
    placed = moments.rows.where(several).placed(moments.now[several])
    order[several] = several[in_order(placed, reads, terms, visible)]
    return order
