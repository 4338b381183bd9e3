"""The instants for which queries wait: passing them one by one finds all that passing every instant finds, and then
nothing waits.
"""

import pytest
from hypothesis import HealthCheck, assume, given, note, settings

import epsparql
from engine.deadlines import find_deadlines
from engine.engine import Engine
from engine.messages import Entry, Events, Register, Tick
from engine.validation.validate import check
from epsparql.algebra import DEFAULT_STREAM
from tests.reference.evaluator import Occurrence
from tests.soak import examples
from tests.support import query_strategies
from tests.support.feeds import PREFIXES, SECOND, parse_feed, show
from tests.support.run_both import block

STEP, FAR = SECOND, 20 * SECOND
WINDOW = "GROUP BY ?s WINDOW [RANGE 'PT5S' STEP 'PT5S']"
WAITS = [
    pytest.param("{ {?s :A ?x} SEQ {?s :A ?y} }", [], id="a sequence waits for events alone"),
    pytest.param("{ ?s :A ?x OPTIONAL { ?s :B ?y } }", [1], id="an absence waits for the end of the instant"),
    pytest.param("{ ?s :A ?x } ORDER BY ?x", [1], id="so does an order"),
    pytest.param("{ {?s :A ?x} WITHOUT {?s :B ?y} FOR 5 }", [6], id="a timer"),
    pytest.param("{ {{?s :A ?x} WITHOUT {?s :B ?y} FOR 5} WITHOUT {?s :B ?z} FOR 2 }", [6, 8], id="a timer that sets another"),
    pytest.param(f"(COUNT(*) AS ?n) {{ ?s :A ?x }} {WINDOW}", [1, 5], id="a window closes its instant, and reports while it is not empty"),
]


def engine_of(query: str, feed: list[Occurrence]) -> Engine:
    engine = Engine()
    engine.feed(block([(Register(0, "q", query), ())]))
    for offset, end in enumerate(sorted({o.end for o in feed}), 1):
        now = tuple(o for o in feed if o.end == end)
        engine.feed(block([(Events(offset, DEFAULT_STREAM, len(now), end), now)]))
    return engine


def pass_to(engine: Engine, instant: int) -> list[str]:
    """The solutions that it brings, but for the entry."""
    entry: Entry = Tick(engine.position, DEFAULT_STREAM, instant)
    rows = engine.feed(block([(entry, ())])).solutions.to_pylist()
    return [str((row["start"], row["end"], row["values"])) for row in rows]


def pass_deadlines(engine: Engine, until: int) -> tuple[list[int], list[str]]:
    passed, found = list[int](), list[str]()
    while (deadline := find_deadlines(engine).get(DEFAULT_STREAM, until)) < until:
        assert deadline not in passed, "each is passed once"
        passed.append(deadline)
        found += pass_to(engine, deadline + 1)
    return passed, found


@pytest.mark.parametrize(("query", "seconds"), WAITS)
def test_who_waits_for_which_instant(query: str, seconds: list[int]) -> None:
    select = query if query.startswith("(") else f"* {query}"
    engine = engine_of(f"{PREFIXES} SELECT {select}", list(parse_feed("A(1)@1")))
    passed, found = pass_deadlines(engine, FAR)
    assert passed == [at * SECOND for at in seconds]
    assert bool(found) == bool(seconds)


@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large])
@given(query_strategies.queries(), query_strategies.feeds(8))
def test_passing_deadlines_finds_what_passing_every_instant_does(query: str, feed: list[Occurrence]) -> None:
    assume(feed)
    try:
        parsed = epsparql.parse(query)
        check(parsed)
    except epsparql.QueryError:
        assume(False)
    assume(parsed.query.streams == (DEFAULT_STREAM,))
    note(query)
    note(show(feed))
    last = max(o.end for o in feed)
    until, often, seldom = last + FAR, engine_of(query, feed), engine_of(query, feed)
    all_found = [found for at in (*range(last + 1, until, STEP), until) for found in pass_to(often, at)]
    _, found = pass_deadlines(seldom, until)
    assert sorted(found) == sorted(all_found)


def test_what_is_ahead_of_another_stream_waits_for_that_stream_alone() -> None:
    engine, ends = Engine(), {"a": (1, 5), "b": (1,)}
    engine.feed(block([(Register(0, "q", f"{PREFIXES} SELECT * FROM STREAM <a> FROM STREAM <b> {{ ?s :A ?x }}"), ())]))
    assert find_deadlines(engine) == {}, "neither was fed"
    for name, seconds in ends.items():
        for second in seconds:
            now = tuple(parse_feed(f"A({second})@{second}"))
            engine.feed(block([(Events(engine.position, name, 1, second * SECOND), now)]))
    assert find_deadlines(engine) == {"b": 5 * SECOND - 1}
    assert engine.feed(block([(Tick(engine.position, "b", 5 * SECOND), ())])).solutions.num_rows == 1
    assert find_deadlines(engine) == {}


def test_a_query_on_a_silent_stream_waits_for_its_first_instant() -> None:
    engine = engine_of(f"{PREFIXES} SELECT * {{ ?s :A ?x }}", list(parse_feed("A(1)@1")))
    engine.feed(block([(Register(engine.position, "late", f"{PREFIXES} SELECT ?x {{ VALUES ?x {{ 1 }} }}"), ())]))
    assert find_deadlines(engine) == {DEFAULT_STREAM: SECOND}
    assert len(pass_to(engine, 2 * SECOND)) == 1
    assert find_deadlines(engine) == {}
