"""Rows of a network's scans that want triples of one predicate and object stand side by side, whosever they are."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from engine.alpha.free_rows import Ranges, by_predicate, with_predicate, with_rows
from engine.kernel.state import layout as c
from engine.kernel.state.arrays import Net
from epsparql.deferred_methods import dataclass

Ints = NDArray[np.int64]
Want = tuple[int, int]
"""A want is the predicate and object of the triples that are wanted, with 0 for any."""
AS_SENT = -1
"""AS_SENT as the predicate of a want stands for all that streams bring, but not what it entails."""


@dataclass(slots=True)
class Scans:
    """Keeps which rows of `alpha` each want has, in a range of the least power of two that holds them.

    A want of any object is found by its predicate as well.
    """

    ranges: Ranges = field(default_factory=Ranges)
    wants: dict[Want, int] = field(default_factory=dict)
    """Each want has its row of `wants` here."""
    counts: dict[int, int] = field(default_factory=dict)  # scans, by want
    _numbers: Ranges = field(default_factory=Ranges)

    def add(self, net: Net, rows: Ints) -> tuple[Net, list[Want]]:
        """Return the network with more scans, and the wants that were not there before.

        Each of `rows` has ALPHA_WIDTH columns, whether the scan is plain, and its predicate.
        """
        new: list[Want] = []
        wanted = np.column_stack([rows[:, -1], np.maximum(rows[:, c.A_O], 0)])
        for want in dict.fromkeys(map(tuple, wanted.tolist())):
            own = rows[(wanted == want).all(axis=1), :-1]
            if want not in self.wants:
                new.append(want)
                number = self.wants[want] = self._numbers.take(1)
                self.counts[number] = 0
                net = with_rows(net, {"wants": self._numbers.end})
            net = self._add_scans(net, want, own)
        return net, new

    def _add_scans(self, net: Net, want: Want, own: Ints) -> Net:
        number = self.wants[want]
        before, first = self.counts[number], int(net.wants[number, c.WANT_FIRST])
        n = before + len(own)
        if room_for(n) > room_for(before):
            held = net.alpha[first : first + before].copy()
            self.ranges.give(first, room_for(before))
            first = self.ranges.take(room_for(n))
            net = with_rows(net, {"alpha": self.ranges.end})
            net.alpha[first : first + before] = held
        for row in own:  # in order of subjects, so that an occurrence finds those that want its own
            place = bisect_right(range(first, first + before), row[c.A_S], key=lambda a: net.alpha[a, c.A_S]) + first
            net.alpha[place + 1 : first + before + 1] = net.alpha[place : first + before]
            net.alpha[place] = row
            before += 1
        return self._stand(net, want, first, n)

    def _stand(self, net: Net, want: Want, first: int, n: int) -> Net:
        """Note where a want's scans stand."""
        self.counts[self.wants[want]] = n
        net.wants[self.wants[want]] = first, n
        predicate, any_object = want[0], want[1] == 0
        if any_object and predicate >= 0:
            net = with_predicate(net, predicate)
            at = c.ALPHA_AT_WIDTH * predicate
            net.alpha_at[at + c.ALPHA_FIRST], net.alpha_at[at + c.ALPHA_N] = first, n
        return net

    def remove(self, net: Net, query: int, wants: Iterable[Want], nodes: Sequence[int] | None = None) -> dict[Want, int]:
        """Take out a query's scans, all or those of some of its nodes.

        Return what is not wanted any more, with the numbers that these wants had.
        """
        gone: dict[Want, int] = {}
        for want in set(wants):
            number = self.wants[want]
            first, before = net.wants[number].tolist()
            rows = net.alpha[first : first + before]
            goes = rows[:, c.A_QUERY] == query
            places = np.flatnonzero(goes if nodes is None else goes & np.isin(rows[:, c.A_NODE], nodes))
            n = before - len(places)
            if len(places):  # rows before the first that goes stay where they are: a query that goes is one of thousands
                rows[places[0] : n] = np.delete(rows[places[0] :], places - places[0], axis=0)
            self.ranges.give(first + room_for(n), room_for(before) - room_for(n))
            self._stand(net, want, first if n else 0, n)
            if not n:
                gone[want] = self.wants.pop(want)
                del self.counts[number]
                self._numbers.give(number, 1)
        return gone


def widest(net: Net) -> int:
    """Return how many scans one occurrence may concern at most by its predicate alone."""
    scans = by_predicate(net)[:, c.ALPHA_N]
    return int(scans[0] + scans[1:].max(initial=0))


def room_for(n: int) -> int:
    """Return how many rows a want with n scans has room for."""
    return 1 << (n - 1).bit_length() if n else 0
