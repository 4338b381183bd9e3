"""Room in a network's tables: what a query takes there and gives back, so that coming and going touches no other query."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.kernel import columns as c
from engine.kernel.state import Net, taller

Ints = NDArray[np.int64]
FEWEST = 16
"""Rows of a table that has any."""


@dataclass(slots=True)
class Ranges:
    """Which rows of a table are free: `free` ranges (first, after), in order, none touching another or the end; and all from `end` on.

    So it is a function of the rows in use alone.
    """

    end: int = 0
    free: list[tuple[int, int]] = field(default_factory=list)

    def take(self, n: int) -> int:
        """The first of n rows that were free: of the first range with room for them, else at the end."""
        for k, (first, after) in enumerate(self.free):
            if after - first >= n:
                self.free[k : k + 1] = [(first + n, after)] if after - first > n else []
                return first
        self.end += n
        return self.end - n

    def give(self, first: int, n: int) -> None:
        """Gives back n rows."""
        if n == 0:
            return
        after, k = first + n, bisect_left(self.free, (first, first))
        if k < len(self.free) and self.free[k][0] == after:
            after = self.free.pop(k)[1]
        if k > 0 and self.free[k - 1][1] == first:
            k -= 1
            first = self.free.pop(k)[0]
        if after == self.end:
            self.end = first
        else:
            self.free.insert(k, (first, after))


def ranges_around(used: Iterable[tuple[int, int]]) -> Ranges:
    """The ranges where (first, n) rows each are in use."""
    ranges = Ranges()
    for first, n in sorted(used):
        if n:
            if first > ranges.end:
                ranges.free.append((ranges.end, first))
            ranges.end = first + n
    return ranges


def with_rows(net: Net, ends: Mapping[str, int]) -> Net:
    """The network with room for so many rows in each of these tables; a table grows by doubling."""
    grown: dict[str, NDArray[Any]] = {}
    for name, end in ends.items():
        array = getattr(net, name)
        if end > len(array):
            grown[name] = taller(array, max(end, 2 * len(array), FEWEST))
    return net._replace(**grown) if grown else net


@dataclass(slots=True)
class Scans:
    """Which rows of `alpha` each predicate has: side by side, in a range of the least power of two that holds them."""

    ranges: Ranges = field(default_factory=Ranges)
    counts: dict[int, int] = field(default_factory=dict)  # by predicate, 0 for those of a predicate variable

    @property
    def widest(self) -> int:
        """Scans that one occurrence may concern at most."""
        return self.counts.get(0, 0) + max((n for predicate, n in self.counts.items() if predicate), default=0)

    def add(self, net: Net, rows: Ints) -> Net:
        """The network with more scans: ALPHA_WIDTH columns and the predicate each."""
        for predicate in np.unique(rows[:, -1]).tolist():
            own = rows[rows[:, -1] == predicate, :-1]
            net = with_predicate(net, predicate)
            before = self.counts.get(predicate, 0)
            n = before + len(own)
            at = c.ALPHA_AT_WIDTH * predicate
            first = int(net.alpha_at[at + c.ALPHA_FIRST])
            if room_for(n) > room_for(before):
                held = net.alpha[first : first + before].copy()
                self.ranges.give(first, room_for(before))
                first = self.ranges.take(room_for(n))
                net = with_rows(net, {"alpha": self.ranges.end})
                net.alpha[first : first + before] = held
            net.alpha[first + before : first + n] = own
            net.alpha_at[at + c.ALPHA_FIRST], net.alpha_at[at + c.ALPHA_N] = first, n
            self.counts[predicate] = n
        return net

    def remove(self, net: Net, query: int, predicates: Iterable[int]) -> None:
        """Takes a query's scans out."""
        for predicate in set(predicates):
            at = c.ALPHA_AT_WIDTH * predicate
            first, before = net.alpha_at[[at + c.ALPHA_FIRST, at + c.ALPHA_N]].tolist()
            rows = net.alpha[first : first + before]
            kept = rows[rows[:, c.A_QUERY] != query]
            n = len(kept)
            net.alpha[first : first + n] = kept
            net.alpha_at[at + c.ALPHA_FIRST], net.alpha_at[at + c.ALPHA_N] = (first, n) if n else (0, 0)
            self.ranges.give(first + room_for(n), room_for(before) - room_for(n))
            self.counts[predicate] = n
            if not n:
                del self.counts[predicate]


def room_for(n: int) -> int:
    """Rows that a predicate with n scans has room for."""
    return 1 << (n - 1).bit_length() if n else 0


def scans_in(net: Net) -> Scans:
    """The scans of a network that was restored."""
    predicates = by_predicate(net)
    there = np.flatnonzero(predicates[:, c.ALPHA_N]).tolist()
    used = ((int(predicates[p, c.ALPHA_FIRST]), room_for(int(predicates[p, c.ALPHA_N]))) for p in there)
    return Scans(ranges_around(used), {p: int(predicates[p, c.ALPHA_N]) for p in there})


def by_predicate(net: Net) -> Ints:
    """`alpha_at`, a row a predicate."""
    return net.alpha_at.reshape(-1, c.ALPHA_AT_WIDTH)


def with_predicate(net: Net, predicate: int) -> Net:
    """The network with a row of `alpha_at` for a predicate; the kernel relies on whole rows."""
    rows = len(by_predicate(net))
    if predicate < rows:
        return net
    return net._replace(alpha_at=taller(net.alpha_at, c.ALPHA_AT_WIDTH * max(predicate + 1, 2 * rows, FEWEST)))
