"""Timers are called in order, whatever is set due meanwhile; many at one instant, and many that wait."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.dictionary.term_dictionary import TermTable
from engine.kernel.state import layout as c
from engine.native.entries import run as run_kernel
from engine.network.network import Network
from epsparql.algebra import DEFAULT_STREAM
from tests.support.feeds import PREFIXES, parse_feed, shown
from tests.support.run_both import Runner, run_engine, run_oracle

MANY, LATER = 300, 100


def network(dues: list[int]) -> Network:
    """A node with a timer for each of `dues`, and a feed whose only column is a tick after all of them."""
    found = Network(TermTable())
    nodes, timers = np.zeros((len(dues), c.NODE_WIDTH), np.int64), np.zeros((len(dues), c.TIMER_WIDTH), np.int64)
    nodes[:, c.KIND] = c.COLLECT
    timers[:, c.T_NODE], timers[:, c.T_DUE] = range(len(dues)), dues
    feed = np.zeros((c.FEED_HEIGHT, 1), np.int64)
    feed[[c.IN_KIND, c.IN_END], 0] = c.TICK, LATER
    queries = np.zeros((1, c.QUERY_WIDTH), np.int64)
    found.arrays.replace_arrays(found.net._replace(nodes=nodes, timers=timers, queries=queries, feed=feed))
    found.arrays.make_room(len(dues))
    found.net.at[[c.TIMER_NODES, c.EVENTS, c.NOW]] = len(dues), 1, 0
    return found


def called(network: Network) -> Iterator[tuple[int, set[int]]]:
    """The timers that the kernel calls together, and when; whoever asks for the next may have set others due meanwhile."""
    at = network.net.at
    while run_kernel(network.arrays.address) == c.COLLECTION:
        yield int(at[c.NOW]), set(network.net.gathered[: at[c.GATHERED], c.FRAME_NODE].tolist())
        at[c.GATHERED] = 0


DUES = st.integers(0, 40) | st.just(c.FOREVER)


@given(first=st.lists(DUES, min_size=1, max_size=MANY), changes=st.lists(st.tuples(st.integers(0, MANY), DUES), max_size=30))
def test_timers_are_called_when_they_are_due(first: list[int], changes: list[tuple[int, int]]) -> None:
    net, dues, now = network(first), list(first), 0
    for then, timers in called(net):
        now = max(now, min(dues))
        assert (then, timers) == (now, {k for k, due in enumerate(dues) if due <= now})
        for k in timers:
            dues[k] = c.FOREVER
        for k, due in changes[:1]:
            net.net.timers[k % len(dues), c.T_DUE] = dues[k % len(dues)] = due
        del changes[:1]
    assert min(dues) == c.FOREVER
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
