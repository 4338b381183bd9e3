"""Rows for the tables in which scans stand: ranges that are taken and given back, tables that grow, and the scans of
each want in order of subjects.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.alpha.alpha_nodes import AS_SENT, Scans, room_for, widest
from engine.alpha.free_rows import FEWEST, Ranges, by_predicate, with_predicate, with_rows
from engine.dictionary.term_dictionary import TermTable
from engine.kernel.state import layout as c
from engine.kernel.state.arrays import Net
from engine.native.entries import enter_lists, find_lists
from engine.network.network import Network
from tests.engine.network.books import ranges_around


def empty() -> Net:
    return Network(TermTable()).net


@given(st.lists(st.integers(0, 5), max_size=30))
def test_ranges_are_those_of_the_rows_in_use(steps: list[int]) -> None:
    """A number takes so many rows; 0 gives back those that were taken first."""
    ranges, used = Ranges(), list[tuple[int, int]]()
    for n in steps:
        if n:
            first = ranges.take(n)
            rows = {row for begin, m in used for row in range(begin, begin + m)}
            fitting = [k for k in range(ranges.end) if not rows & set(range(k, k + n))]
            assert first == fitting[0], "the first place with room"
            used.append((first, n))
        elif used:
            ranges.give(*used.pop(0))
        assert ranges == ranges_around(used)
        assert ranges.end == max((first + n for first, n in used), default=0)


def test_what_is_nothing_is_given_back_nowhere() -> None:
    ranges = Ranges(5, [(1, 3)])
    ranges.give(4, 0)
    assert ranges == Ranges(5, [(1, 3)])
    assert ranges_around([(3, 0), (1, 2)]) == Ranges(3, [(0, 1)])


def test_tables_grow_by_doubling() -> None:
    net = empty()
    net = net._replace(alpha=net.alpha[:0], wants=net.wants[:0])
    net = with_rows(net, {"alpha": 1, "wants": 0})
    assert (len(net.alpha), len(net.wants)) == (FEWEST, 0)
    assert with_rows(net, {"alpha": FEWEST}) is net
    assert len(with_rows(net, {"alpha": FEWEST + 1}).alpha) == 2 * FEWEST
    assert len(with_rows(net, {"alpha": 3 * FEWEST}).alpha) == 3 * FEWEST
    rows = len(by_predicate(net))
    assert with_predicate(net, rows - 1) is net
    assert len(by_predicate(with_predicate(net, rows))) == max(2 * rows, FEWEST)
    assert len(by_predicate(with_predicate(net, 5 * max(rows, FEWEST)))) == 5 * max(rows, FEWEST) + 1


@pytest.mark.parametrize(("n", "room"), [(0, 0), (1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (16, 16), (17, 32)])
def test_room_for_scans(n: int, room: int) -> None:
    assert room_for(n) == room


def scans(*found: tuple[int, int, int, int, int]) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Scans of (query, node, subject, object, predicate)."""
    rows = np.full((len(found), c.ALPHA_WIDTH + 2), c.NONE, np.int64)
    for row, (query, node, subject, object_, predicate) in zip(rows, found, strict=True):
        row[[c.A_QUERY, c.A_NODE, c.A_S, c.A_O]] = query, node, subject, object_
        row[-2:] = 0, predicate
    return rows


def subjects(net: Net, kept: Scans, want: tuple[int, int]) -> list[int]:
    first, n = net.wants[kept.wants[want]].tolist()
    found: list[int] = net.alpha[first : first + n, c.A_S].tolist()
    return found


def test_scans_of_a_want_stand_in_order_of_subjects() -> None:
    net, kept = empty(), Scans()
    net, new = kept.add(net, scans((0, 0, 7, 5, 3), (0, 1, 2, 5, 3), (0, 2, 4, c.NONE, 3), (0, 3, 1, 9, AS_SENT)))
    assert new == [(3, 5), (3, 0), (AS_SENT, 9)]
    net, new = kept.add(net, scans((1, 4, 5, 5, 3), (1, 5, 3, c.NONE, 3), (1, 6, 2, c.NONE, 6)))
    assert new == [(6, 0)]
    assert subjects(net, kept, (3, 5)) == [2, 5, 7]
    assert subjects(net, kept, (3, 0)) == [3, 4]
    assert kept.counts == {kept.wants[want]: n for want, n in (((3, 5), 3), ((3, 0), 2), ((AS_SENT, 9), 1), ((6, 0), 1))}
    row = by_predicate(net)[3]
    assert row[[c.ALPHA_FIRST, c.ALPHA_N]].tolist() == net.wants[kept.wants[3, 0]].tolist()
    assert widest(net) == 2
    assert kept.remove(net, 1, [(3, 5), (3, 0), (6, 0)], nodes=[4, 6]) == {(6, 0): 3}
    assert (subjects(net, kept, (3, 5)), subjects(net, kept, (3, 0))) == ([2, 7], [3, 4])
    assert kept.remove(net, 0, [(3, 5), (3, 0), (AS_SENT, 9)]) == {(3, 5): 0, (AS_SENT, 9): 2}
    assert subjects(net, kept, (3, 0)) == [3]
    assert widest(net) == 1
    assert kept.remove(net, 1, [(3, 0)]) == {(3, 0): 1}
    assert (kept.wants, kept.counts, kept.ranges) == ({}, {}, Ranges())
    assert widest(net) == 0
    net, new = kept.add(net, scans((2, 7, 1, 4, 8)))
    assert kept.wants == {(8, 4): 0}


def test_lists_of_pairs_are_found_and_pairs_without_a_place_counted() -> None:
    posted = np.full((8, c.POSTED_WIDTH), c.NONE, np.int64)
    predicates, objects, found = np.array([3, 3, 5]), np.array([7, 8, 7]), np.zeros(3, np.int64)
    assert enter_lists(posted, predicates[:2], objects[:2], np.array([1, 2])) == 2
    assert enter_lists(posted, predicates, objects, np.array([4, 2, 6])) == 1
    find_lists(posted, predicates, objects, found)
    assert found.tolist() == [4, 2, 6]
    assert enter_lists(posted, predicates, objects, found) == 0
