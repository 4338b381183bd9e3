"""Timers: what is due first is known at once, and setting one touches few others; many at one instant, and many that wait."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.dictionary.term_dictionary import TermTable
from engine.kernel import entry_point
from engine.kernel.operators.timers import call_timer, enter_timers, find_next_due, set_due
from engine.kernel.state import layout as c
from engine.kernel.state.handle import as_net
from engine.network.network import Network
from epsparql.algebra import DEFAULT_STREAM
from tests.support.feeds import PREFIXES, parse_feed, shown
from tests.support.run_both import Runner, run_engine, run_oracle

MANY = 300


handle: Any = as_net  # compiled code makes a handle of an address


@entry_point
def winds(address: int) -> None:
    enter_timers(handle(address))


@entry_point
def sets(address: int, timer: int, due: int) -> int:
    net = handle(address)
    set_due(net, timer, due)
    return int(find_next_due(net))


@entry_point
def calls(address: int) -> tuple[int, int]:
    net = handle(address)
    due = find_next_due(net)
    call_timer(net)
    return due, net.waiting[net.at.waiting - 1].node


def network(dues: list[int]) -> Network:
    """A node with a timer for each of `dues`."""
    found = Network(TermTable())
    nodes, timers = np.zeros((len(dues), c.NODE_WIDTH), np.int64), np.zeros((len(dues), c.TIMER_WIDTH), np.int64)
    nodes[:, c.KIND] = c.COLLECT
    timers[:, c.T_NODE], timers[:, c.T_DUE] = range(len(dues)), dues
    found.arrays.replace_arrays(found.net._replace(nodes=nodes, timers=timers, queries=np.zeros((1, c.QUERY_WIDTH), np.int64)))
    found.net.at[c.TIMER_NODES] = len(dues)
    winds(found.arrays.address)
    return found


DUES = st.integers(0, 40) | st.just(c.FOREVER)


@given(first=st.lists(DUES, min_size=1, max_size=MANY), changes=st.lists(st.tuples(st.integers(0, MANY), DUES), max_size=30))
def test_a_change_touches_one_way_through_the_heap(first: list[int], changes: list[tuple[int, int]]) -> None:
    net, dues = network(first), list(first)
    for k, due in changes:
        timer = k % len(dues)
        dues[timer] = due
        before = net.net.timers[:, c.T_HEAP].copy()
        assert sets(net.arrays.address, timer, due) == min(dues)
        assert np.count_nonzero(before != net.net.timers[:, c.T_HEAP]) <= len(dues).bit_length() + 1
    called = [calls(net.arrays.address) for _ in range(sum(due < c.FOREVER for due in dues))]
    assert called == sorted((due, k) for k, due in enumerate(dues) if due < c.FOREVER)
    assert net.net.at[c.TIMERS_DUE] == 0


SILENCE = f"{PREFIXES}SELECT * WHERE {{ {{ ?s :A ?a }} WITHOUT {{ ?s :B ?b }} FOR 5 }}"
FEEDS = [
    pytest.param(" ".join(f"A(s{k},1)@7" for k in range(MANY)) + " B(s1,1)@8 X@20", MANY - 1, id="at one instant"),
    pytest.param(" ".join(f"A(s{k},1)@{k}" for k in range(MANY)) + f" B(s{MANY - 1},1)@{MANY} X@{2 * MANY}", MANY - 1, id="one after the other"),
]


@pytest.mark.parametrize("run", [run_engine, run_oracle])
@pytest.mark.parametrize(("feed", "found"), FEEDS)
def test_many_timers(run: Runner, feed: str, found: int) -> None:
    names = {f"q{k}": SILENCE for k in range(3)}
    solutions = run(names, {DEFAULT_STREAM: parse_feed(feed)})
    assert [len(shown(solutions[name])) for name in names] == 3 * [found]
