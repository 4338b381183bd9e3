"""A log in slices gives what one engine gives: none missing, none more, in the same order.

The reach of the queries is what this rests on.
"""

import re
from collections.abc import Mapping

from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from tests.reference.evaluator import Occurrence
from tests.soak import examples
from tests.support.feeds import SECOND, Body
from tests.support.query_strategies import (
    AGGREGATES,
    CHAIN_OPERATORS,
    MAX_DELAY,
    OBJECTS,
    OTHER,
    PREDICATES,
    PROLOGUE,
    TERMS,
    arrivals,
    shared,
    window_queries,
)  # fmt: skip
from tests.support.slices import by_one_engine, in_slices, plan_of, written_log

LAST_S = 30


# ---------------------------------------------------------------- random queries whose reach is bounded
def durations() -> st.SearchStrategy[str]:
    return st.integers(0, 4).map(lambda seconds: f'"PT{seconds}S"^^xsd:duration')


def patterns(depth: int = 2) -> st.SearchStrategy[str]:
    """Groups in groups, of which each has a bound on how far it looks back."""
    leaves = st.one_of(shared(), shared(), st.sampled_from(("{ ?s (:p|^:q) ?v }", "{ GRAPH ?g { ?s ?p ?v } }", "{ ?s :p? ?v }")))
    if not depth:
        return leaves
    inner = patterns(depth - 1)
    return st.one_of(_chains(inner), _chains(inner), _others(inner), _reports(inner), *([leaves] if depth == 1 else []))


def _chains(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from([operator for operator in CHAIN_OPERATORS if operator != "OPTIONALSEQ"])
    plain = st.tuples(inner, operators, inner, durations()).map("{{ {{ {0[0]} {0[1]} {0[2]} }} WITHIN {0[3]} }}".format)
    absent = st.tuples(inner, st.sampled_from(("SEQ", "AND")), inner, durations(), inner).map(
        "{{ {0[0]} {0[1]} {0[2]} WITHIN {0[3]} WITHOUT {0[4]} }}".format
    )
    return st.one_of(plain, plain, absent)


def _others(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    near = st.tuples(inner, durations()).map("{{ {0[0]} FILTER(getDURATION() <= {0[1]}) }}".format)
    return st.one_of(
        st.tuples(inner, near).map("{{ {0[0]} OPTIONAL {0[1]} }}".format),
        st.tuples(near, inner).map("{{ {0[0]} OPTIONALSEQ {0[1]} }}".format),
        st.tuples(inner, inner).map("{{ {0[0]} EQUALSOPTIONAL {0[1]} }}".format),
        st.tuples(inner, inner).map("{{ {0[0]} UNION {0[1]} }}".format),
        st.tuples(inner, inner, st.integers(1, 4)).map('{{ {0[0]} WITHOUT {0[1]} FOR "PT{0[2]}S"^^xsd:duration }}'.format),
        st.tuples(inner, st.sampled_from(("?v > 1", "BOUND(?w)"))).map("{{ {0[0]} FILTER({0[1]}) }}".format),
        inner.map("{{ {} VALUES ?s {{ :a }} }}".format),
        st.tuples(inner, durations()).map("{{ {{ ?s :p+ ?v FILTER(getDURATION() < {0[1]}) }} UNION {0[0]} }}".format),
    )


def _reports(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    windows = st.sampled_from(('[RANGE "PT1S"]', '[RANGE "PT3S"]', '[RANGE "PT2S" STEP "PT2S"]', '[RANGE "PT4S" STEP "PT3S"]'))
    return st.tuples(inner, windows, st.sampled_from(AGGREGATES)).map(
        lambda parts: f"{{ SELECT ?s ({parts[2]} AS ?n@) WHERE {parts[0]} GROUP BY ?s WINDOW {parts[1]} }}"
    )


def texts() -> st.SearchStrategy[str]:
    """Queries, each over one of two streams or both."""
    streams = st.sampled_from(("", "", f"FROM STREAM <default> FROM STREAM <{OTHER}> "))
    heads = st.sampled_from(("*", "*", "DISTINCT ?s", "?v"))
    ends = st.sampled_from(("", "", " ORDER BY DESC(?v)"))
    plain = st.tuples(heads, streams, patterns(), ends).map("SELECT {0[0]} {0[1]}WHERE {0[2]}{0[3]}".format)
    windows = st.sampled_from(('[RANGE "PT3S"]', '[RANGE "PT4S" STEP "PT3S"]'))
    whole = st.tuples(st.sampled_from(AGGREGATES), patterns(), windows).map("SELECT ({0[0]} AS ?n@) WHERE {0[1]} WINDOW {0[2]}".format)
    return st.one_of(plain, plain, plain, whole).map(numbered) | window_queries()


def numbered(text: str) -> str:
    counted = iter(range(1000))
    return PROLOGUE + re.sub("@", lambda _: str(next(counted)), text)


@st.composite
def programs(draw: st.DrawFn) -> dict[str, str]:
    """A query, or one that reads what a rule derives."""
    if draw(st.integers(0, 3)):
        return {"q": draw(texts())}
    rule = f"CONSTRUCT {{ ?s :r ?v }} INTO STREAM <{OTHER}> WHERE {draw(patterns())}"
    return {"r": numbered(rule), "q": numbered(f"SELECT * FROM STREAM <{OTHER}> FROM STREAM <default> WHERE {draw(patterns())}")}


def feeds() -> st.SearchStrategy[list[Occurrence]]:
    one = st.builds(
        lambda s, p, o, end, length: Occurrence((s, p, o), (end - length) * SECOND, end * SECOND, None),
        st.sampled_from(TERMS),
        st.sampled_from(PREDICATES),
        st.sampled_from(OBJECTS),
        st.integers(0, LAST_S),
        st.sampled_from((0, 0, 0, 0, 1, 3, 8)),
    )
    return st.lists(one, min_size=10, max_size=40, unique=True)


@given(queries=programs(), data=st.data())
@settings(max_examples=examples(300, 30))
def test_slices_give_what_one_engine_gives(queries: Mapping[str, str], data: st.DataObject) -> None:
    streams = {"default": data.draw(feeds(), "default"), OTHER: data.draw(feeds(), "other")}
    if "r" in queries:
        streams[OTHER] = []
    bodies = data.draw(arrivals(streams), "arrivals").bodies
    check_slices(queries, bodies, tuple(streams), data.draw(st.integers(2, 8), "slices"))


def check_slices(queries: Mapping[str, str], bodies: tuple[Body, ...], streams: tuple[str, ...], count: int) -> None:
    with written_log(queries, bodies, streams, max_delay=MAX_DELAY) as (data, registrations, first):
        expected, refused = by_one_engine(data)
        assume(not refused)
        log, planner = plan_of(data, registrations, first)
        unbounded = {registered: reach.reason for registered, reach in log.find_reaches().items() if reach.micros is None}
        assume(not unbounded)
        finest = planner.plan_exactly(9)
        event(f"slices: {min(len(finest) // 5, 4)}, solutions: {bool(expected)}")
        for slices in (planner.plan_exactly(count), finest):
            assert in_slices(log.list_work(slices)) == expected
