"""Rows for what tells time: streams' watermarks, the time of a query, the course of a log, and the marks that a
kernel's feed has beside occurrences.
"""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from engine.engine import Engine
from engine.kernel.state import layout as c
from engine.messages import END_OF_TIME, NO_ROWS, Block, Drop, Entry, Events, Finish, Register, SetStream, Tick
from engine.runtime import event_scheduler, time_course
from engine.runtime.event_scheduler import (
    ScheduledNetwork,
    find_last_instant,
    find_reached,
    find_read,
    insert_marks,
    is_in_order,
    sort_by_end,
    sort_by_rules,
)
from engine.runtime.time_course import TimeCourse
from engine.runtime.watermarks import (
    NO_TIME,
    Arrivals,
    Ints,
    NetworkTime,
    StreamTime,
    advance_stream,
    concatenate_arrivals,
    find_latest,
    find_latest_end,
    find_latest_ends,
    find_query_time,
    make_arrivals,
)
from epsparql import algebra as a
from epsparql import parse


def events(watermark: int | None, offset: int = 0) -> Events:
    return Events(offset, "a", 1, watermark)


STREAMS = [
    pytest.param([(events(5), 9)], StreamTime(5, 9, True, 0, 5), id="an event"),
    pytest.param([(events(5), 9), (events(4), 8)], StreamTime(5, 9, True, 0, 5), id="nothing goes back"),
    pytest.param([(events(None), 9)], StreamTime(NO_TIME, 9, True, 0, NO_TIME), id="no watermark yet"),
    pytest.param([(events(5), NO_TIME)], StreamTime(5, NO_TIME, True, 0, NO_TIME), id="late events alone reach nothing"),
    pytest.param([(SetStream(0, "a", 3), NO_TIME)], StreamTime(horizon=3), id="a delay"),
    pytest.param([(SetStream(0, "a", 3, revisable=7), NO_TIME)], StreamTime(horizon=7, revisable=True), id="revisable for longer than the delay"),
    pytest.param([(SetStream(0, "a", 3, revisable=0), NO_TIME)], StreamTime(horizon=3, revisable=True), id="revisable for no longer"),
    pytest.param([(SetStream(0, "a", 3), NO_TIME), (events(5), 9)], StreamTime(5, 9, True, 3, 8), id="without its delay it would be further"),
    pytest.param([(SetStream(0, "a", 3), NO_TIME), (events(5), 7)], StreamTime(5, 7, True, 3, 7), id="but no further than its events"),
    pytest.param([(SetStream(0, "a", 3), NO_TIME), (events(5), 7), (Tick(0, "a", 6), NO_TIME)], StreamTime(6, 7, True, 3, 9), id="a tick needs no event"),
    pytest.param([(Tick(0, "a", None), NO_TIME)], StreamTime(fed=True), id="a tick without a watermark"),
    pytest.param([(events(5), 9), (Finish(0, "a"), NO_TIME)], StreamTime(END_OF_TIME, 9, True, 0, END_OF_TIME), id="its end"),
    pytest.param(
        [(SetStream(0, "a", 3), NO_TIME), (events(5), 9), (Finish(0, "a"), NO_TIME)], StreamTime(END_OF_TIME, 9, True, 3, END_OF_TIME), id="its end, late"
    ),
]  # fmt: skip


@pytest.mark.parametrize(("entries", "expected"), STREAMS)
def test_a_stream_advances(entries: Sequence[tuple[Entry, int]], expected: StreamTime) -> None:
    streams: dict[str, StreamTime] = {}
    for entry, latest in entries:
        told = advance_stream(streams, entry, {entry.offset: latest})
        assert told == (None if isinstance(entry, SetStream) else "a")
    assert streams == {"a": expected}


def test_other_entries_move_no_stream() -> None:
    streams: dict[str, StreamTime] = {}
    assert advance_stream(streams, Tick(0, None, 5), {}) is None
    assert advance_stream(streams, Drop(0, 1, "q"), {}) is None
    assert streams == {}


FED, MUTE = StreamTime(5, 9, True), StreamTime(7, 3, False)
TIMES = [
    pytest.param("a", {}, {"a": FED}, 2, 5, id="its stream's watermark"),
    pytest.param("a", {}, {"a": FED}, 6, 6, id="never less than before"),
    pytest.param("ab", {}, {"a": FED, "b": StreamTime(4, 4, True)}, 2, 4, id="the least of several"),
    pytest.param("ab", {}, {"a": FED}, 2, 2, id="a stream that was never fed holds it back"),
    pytest.param("ab", {}, {"a": FED, "b": MUTE}, 2, 2, id="so does one that is known and was never fed"),
    pytest.param("ab", {"b": "a"}, {"a": FED}, 2, 5, id="a rule's stream rests on what was fed"),
    pytest.param("ab", {"b": "c"}, {"a": FED}, 2, 5, id="a rule's stream rests on one that rules need not write"),
    pytest.param("ab", {"b": "c", "c": "a"}, {"a": FED}, 2, 2, id="a rule's stream rests on another rule's that was not fed"),
    pytest.param("ab", {"b": "c", "c": "a"}, {"a": FED, "c": FED}, 2, 5, id="or was"),
    pytest.param("b", {"b": "a"}, {}, 2, 2, id="nothing was fed at all"),
]


@pytest.mark.parametrize(("gate", "sources", "streams", "before", "expected"), TIMES)
def test_the_time_of_a_query(gate: str, sources: Mapping[str, str], streams: Mapping[str, StreamTime], before: int, expected: int) -> None:
    assert find_query_time(tuple(gate), {name: frozenset(others) for name, others in sources.items()}, streams, before) == expected


def test_the_latest_end_of_a_gate() -> None:
    streams = {"a": FED, "b": StreamTime(1, 12, True)}
    assert find_latest("ab", streams) == 12
    assert find_latest("ac", streams) == 9
    assert find_latest("c", streams) == NO_TIME


def test_the_time_of_a_network_stays_until_an_entry_moves_it() -> None:
    course = NetworkTime.from_time(3, 5)
    course.reach(1, 7)
    course.reach(3, 9)
    assert course.now == 9
    assert course.time.tolist() == [3, 7, 7, 9, 9]


def arrived(ends: Sequence[int], since: Sequence[int]) -> Ints:
    numbers = np.arange(len(ends))
    return make_arrivals(numbers, numbers, numbers, numbers, np.array(ends), np.array(ends), np.array(since, np.int64)).table


def test_the_latest_ends_of_entries() -> None:
    whole = concatenate_arrivals([Arrivals(arrived(ends, [since] * len(ends))) for since, ends in ((0, [4, 3]), (1, [2]), (5, [8, 9]))])
    assert find_latest_ends(whole) == {0: 4, 1: 2, 5: 9}
    assert find_latest_ends(whole.where(np.zeros(5, np.bool_))) == {}
    assert find_latest_end(whole) == 9
    assert find_latest_end(whole.where(np.array([1]))) == 3
    assert find_latest_end(whole.where(np.array([], np.int64))) == NO_TIME
    assert whole.where(np.array([4, 0])).end.tolist() == [9, 4]
    assert whole.where(np.array([True, False, True, False, False])).since.tolist() == [0, 1]


# ---------------------------------------------------------------- a network's clock
@pytest.mark.parametrize(("before", "latest", "expected"), [
    (5, 9, 9), (9, 5, 9), (END_OF_TIME, 5, 5), (END_OF_TIME - 1, 5, END_OF_TIME - 1), (NO_TIME, NO_TIME, 0), (-7, NO_TIME, 0), (NO_TIME, -7, -7),
])  # fmt: skip
def test_the_last_instant(before: int, latest: int, expected: int) -> None:
    assert find_last_instant(before, latest) == expected


@pytest.mark.parametrize(("release", "end", "ordered"), [
    ([0, 0, 1], [3, 3, 2], True), ([0, 0, 1], [3, 2, 9], False), ([0, 1, 0], [1, 2, 3], False), ([], [], True), ([2], [5], True), ([0, 2], [9, 1], True),
])  # fmt: skip
def test_order(release: list[int], end: list[int], ordered: bool) -> None:
    assert is_in_order(np.array(release), np.array(end)) is ordered


def test_what_ends_together_stays_as_it_stood() -> None:
    table = arrived([4, 2, 4, 2], [1, 2, 3, 4])
    assert sort_by_end(table)[c.IN_SINCE].tolist() == [2, 4, 1, 3]
    ordered = arrived([2, 2, 3], [1, 2, 3])
    assert sort_by_end(ordered) is ordered
    assert sort_by_end(arrived([], [])).shape[1] == 0


def test_who_reads_an_occurrence() -> None:
    table = arrived([1, 2, 3], [4, 5, 6])
    table[c.IN_STREAM] = [0, 1, 0]
    assert find_read(table, [0], 4).tolist() == [False, False, True]
    assert find_read(table, [0, 1], 3).tolist() == [True, True, True]


def test_marks_stand_at_their_places() -> None:
    table = arrived([1, 2], [7, 8])
    assert insert_marks(table, []) is table
    behind = insert_marks(table, [(2, c.TICK, 0, 5, 9)])
    assert behind[[c.IN_KIND, c.IN_S, c.IN_END, c.IN_ENTRY]].T.tolist()[-1] == [c.TICK, 0, 5, 9]
    between = insert_marks(table, [(0, c.OPENING, 3, 1, 7), (1, c.TICK, 0, 2, 8), (2, c.LAST, 0, 4, 9)])
    assert between[c.IN_KIND].tolist() == [c.OPENING, c.OCCURRENCE, c.TICK, c.OCCURRENCE, c.LAST]
    assert between[c.IN_S].tolist() == [3, 0, 0, 1, 0]
    assert between.flags.c_contiguous


def test_many_marks_stand_as_few_do(monkeypatch: pytest.MonkeyPatch) -> None:
    n = event_scheduler._FEW_MARKS + 1
    table, marks = arrived(range(n), range(n)), [(k // 2, c.TICK, 0, k, n + k) for k in range(n)]
    many = insert_marks(table, marks)
    monkeypatch.setattr(event_scheduler, "_FEW_MARKS", n)
    assert many.tolist() == insert_marks(table, marks).tolist()
    assert many.flags.c_contiguous


def test_the_last_instant_is_marked_where_the_last_stream_ends() -> None:
    engine = Engine()
    engine.feed(Block((Register(0, "q", "SELECT * { ?s <p> ?x }"),), NO_ROWS))
    (member,) = engine.registry.members
    for times, expected in (([3, END_OF_TIME], [c.TICK, c.LAST, c.TICK]), ([3, 5], [c.TICK, c.TICK])):
        course = NetworkTime.from_time(NO_TIME, 3)
        for k, time in enumerate(times, 1):
            course.reach(k, time)
            course.latest[k] = 2
        member.time = NO_TIME
        fed = member.feed([Tick(1, "default", None), Tick(2, "default", 3), Finish(3, "default")], course, [])
        kinds = [kind for kind in fed[c.IN_KIND].tolist() if kind != c.OPENING]
        assert kinds == expected
        assert fed[c.IN_END, fed[c.IN_KIND] == c.LAST].tolist() == [3] * (c.LAST in kinds)
    member.time, course = 7, NetworkTime(END_OF_TIME, np.array([END_OF_TIME]), {0: 2})
    fed = member.feed([Finish(4, "default")], course, [])
    assert fed[c.IN_END, fed[c.IN_KIND] == c.LAST].tolist() == [7], "by then time had come so far"


def rule(into: str, *streams: str) -> a.Construct:
    read = " ".join(f"FROM STREAM <{name}>" for name in streams)
    query = parse(f"CONSTRUCT {{ ?s <p> ?o }} INTO STREAM <{into}> {read} WHERE {{ ?s <p> ?o }}").query
    assert isinstance(query, a.Construct)
    return query


def test_streams_that_rest_on_others() -> None:
    rules = [rule("c", "b"), rule("b", "a"), rule("d", "d", "e")]
    assert find_reached(["c"], rules) == {"a", "b", "c"}
    assert find_reached(["a"], rules) == {"a"}
    assert find_reached(["a"], rules, onwards=True) == {"a", "b", "c"}
    assert find_reached(["c"], rules, onwards=True) == {"c"}
    assert find_reached(["d"], rules) == {"d", "e"}


def test_a_network_comes_after_all_that_write_what_it_reads() -> None:
    def member(reads: str, *rules: a.Construct) -> ScheduledNetwork:
        return cast(ScheduledNetwork, SimpleNamespace(network=SimpleNamespace(reads=set(reads)), rules=rules))

    last, middle, first = member("bd"), member("ad", rule("b", "a")), member("e", rule("d", "e"))
    assert sort_by_rules([last, middle, first]) == [first, middle, last]
    assert sort_by_rules([first, last]) == [first, last]
    loop = member("af", rule("f", "f"), rule("b", "a"))
    assert sort_by_rules([last, loop]) == [loop, last], "what feeds itself waits for others alone"
    one, other = member("a", rule("b", "a")), member("b", rule("a", "b"))
    assert sort_by_rules([one, other]) == [one, other], "on a cycle the first comes first"


# ---------------------------------------------------------------- how far a log had come
def test_a_place_is_found_behind_which_nothing_is_missed() -> None:
    course, times = TimeCourse(), {"a": StreamTime(latest=0), "b": StreamTime(latest=0)}
    step = time_course._STEP + len(times)
    for k in range(5):
        times["a"].latest, times["b"].latest = 10 * k, 100
        course.note(k * step, times)
        course.note(k * step + step - 1, times)
    assert [place.position for place in course.places] == [k * step for k in range(5)]
    places = {since: place and place.position for since in (5, 10, 11, 40, 99) for place in [course.find_place(since, ["a"], -1)]}
    assert places == {5: 0, 10: 0, 11: step, 40: 3 * step, 99: 4 * step}
    assert course.find_place(0, ["a"], -1) is None
    assert course.find_place(50, ["a", "b"], -1) is None
    assert course.find_place(50, ["a", "unknown"], -1) == course.places[-1]
    assert course.find_place(0, ["a"], 2 * step) == course.places[2]
    assert course.find_place(0, ["a"], 2 * step - 1) == course.places[1]
    course.last_break = 3 * step
    assert course.find_place(99, ["a"], -1) == course.places[4]
    assert course.find_place(40, ["a"], -1) is None
    assert TimeCourse.restored(course.to_json()) == course
