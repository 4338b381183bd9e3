"""These tests check the queue of events that wait for time.

They come in order of end, and the first to arrive comes first. The cost of a call does not depend on how many wait.
"""

import time

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bench.workloads import BEGIN, EVERY, WORKLOADS, Drawn, blocks, drawn, engine_with, moved
from engine.kernel.state import layout as c
from engine.messages import Block, Events
from engine.runtime.event_queue import KEY, Waiting

Ints = NDArray[np.int64]
TIMES = st.integers(-3, 12)


def columns(ends: list[int], first: int) -> Ints:
    """Occurrences that are told apart by where they came."""
    table = np.zeros((c.FEED_HEIGHT, len(ends)), np.int64)
    table[c.IN_END], table[c.IN_S], table[c.IN_SINCE] = ends, np.arange(first, first + len(ends)), 7
    return table


def told(table: Ints) -> list[tuple[int, int]]:
    return [(end, number) for end, number in table[[c.IN_END, c.IN_S]].T.tolist()]


@given(st.lists(st.lists(TIMES, max_size=20) | TIMES, max_size=30))
def test_what_waits_comes_in_order(steps: list[list[int] | int]) -> None:
    """Ends that come, and times until which they are given out."""
    waiting, model, came = Waiting(), list[tuple[int, int]](), 0
    for step in steps:
        if isinstance(step, list):
            waiting.add_rows(columns(step, came))
            model = sorted([*model, *zip(step, range(came, came + len(step)), strict=True)])
            came += len(step)
        else:
            given_out = waiting.take_until(step)
            assert given_out.flags.c_contiguous
            assert told(given_out) == [each for each in model if each[0] <= step]
            assert (given_out[c.IN_SINCE] == 7).all()
            model = [each for each in model if each[0] > step]
        assert len(waiting) == len(model)
        assert told(waiting.table) == model
        assert sorted(waiting.terms.tolist()) == sorted([number, 0, 0, 0] for _, number in model)


@given(st.lists(TIMES, max_size=40))
def test_a_copy_has_the_same_order(ends: list[int]) -> None:
    waiting = Waiting()
    waiting.add_rows(columns(ends, 0))
    assert told(Waiting.from_table(waiting.table).take_until(100)) == told(waiting.take_until(100))


def test_room_is_given_back() -> None:
    waiting = Waiting()
    waiting.add_rows(columns(list(range(100_000)), 0))
    full = waiting._rows.nbytes
    for time_ in range(0, 100_000, 1_000):
        waiting.take_until(time_)
    assert waiting._rows.nbytes < full / 20


def test_a_call_costs_as_much_however_much_waits() -> None:
    """One event at a time, each released as long after it comes as there are others waiting: `max_delay`."""
    few, many = (least_ns(delay) for delay in (100, 100_000))
    assert many < 20 * few


def least_ns(delay: int) -> int:
    engine, events = engine_with(WORKLOADS["W1"]), drawn(delay + 200, 50)
    (first,) = blocks(Drawn(events.types[:delay], events.ids[:delay], events.values[:delay]), batch=delay)
    engine.feed(Block((Events(1, "default", delay, BEGIN),), first.rows))
    took = []  # by the thread's clock, which is exact under the timer of a mutation survey too
    for k, block in enumerate(blocks(Drawn(events.types[delay:], events.ids[delay:], events.values[delay:]), batch=1)):
        entry, rows = Events(2 + k, "default", 1, BEGIN + k * EVERY), moved(block, 2 + k, delay + k).rows
        began = time.thread_time_ns()
        engine.feed(Block((entry,), rows))
        took.append(time.thread_time_ns() - began)
    assert len(engine.registry.members[0].pending) > delay // 2
    return min(took)


def test_what_is_taken_back_goes_when_its_turn_comes() -> None:
    waiting = Waiting()
    table = columns([5, 5, 6, 7], 0)
    table[c.IN_STREAM] = [1, 2, 1, 1]
    waiting.add_rows(table)
    key = tuple(table[KEY, 0].tolist())
    waiting.retract(1, {key, (9, 9, 9, 9, 9, 6)})
    waiting.retract(1, {key})
    assert len(waiting) == 4
    assert told(waiting.table) == [(5, 1), (6, 2), (7, 3)]
    assert told(waiting.choose(lambda end: end < 7)) == [(5, 1), (6, 2)]
    assert sorted(waiting.end.tolist()) == [5, 5, 6, 7]
    assert told(waiting.take_until(5)) == [(5, 1)]
    assert (len(waiting), waiting.since.tolist()) == (2, [7, 7])
    waiting.retract(1, {tuple(table[KEY, 2].tolist())})
    waiting.keep_streams([1, 2])
    assert told(waiting.table) == [(7, 3)]
    waiting.keep_streams([2])
    assert len(waiting) == 0
    waiting.add_rows(table[:, 1:2])
    assert told(waiting.take_until(5)) == [(5, 1)]
