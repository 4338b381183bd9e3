"""Queries that move to another partition while events come: they find what one engine finds, and read no further back than they look."""

from collections.abc import Mapping, Sequence
from random import Random

import pytest
from hypothesis import assume, event, given, note
from hypothesis import strategies as st

from engine.messages import CatchUp, Drop, Entry, Facts, Pause, Register, Resume
from engine.runtime import time_course
from epsparql.algebra import DEFAULT_STREAM
from tests.engine.runtime.test_partitioning import FEW, Log, has_key, inserted, keyed, shared_out, whole
from tests.engine.semantics.test_equivalence import accepted
from tests.pipeline.slices.test_reach import feeds, programs
from tests.reference.evaluator import Occurrence
from tests.support.feeds import PREFIXES, SECOND, Body, term
from tests.support.query_strategies import MAX_DELAY, OTHER, arrivals
from tests.support.run_both import blocks, entries

ALL = 1 << 40
CHAIN = PREFIXES + "SELECT ?s ?a ?b WHERE { { ?s :A ?a } SEQ { ?s :B ?b } WITHIN 20 }"
RULE = PREFIXES + "CONSTRUCT { ?s :D ?b } INTO STREAM <d> WHERE { { ?s :A ?a } SEQ { ?s :B ?b } WITHIN 20 }"
READER = PREFIXES + "SELECT ?s ?a ?b FROM STREAM <d> FROM STREAM <default> WHERE { { ?s :D ?a } SEQ { ?s :C ?b } WITHIN 20 }"
QUERIES = {
    "chain": CHAIN,
    "absent": PREFIXES + "SELECT ?s ?a WHERE { { ?s :A ?a } WITHOUT { ?s :B ?b } FOR 9 }",
    "window": PREFIXES + "SELECT ?s (SUM(?a) AS ?n) WHERE { ?s :A ?a } GROUP BY ?s WINDOW [RANGE PT30S STEP PT10S]",
    "reader": READER,
}


@pytest.fixture(autouse=True)
def _every_entry_is_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_course, "_STEP", -1000)


def moved(log: Log, name: str, at: int) -> Log:
    """The log with a query that is paused before an entry, which makes its set move, and goes on at once."""
    registered = next(entry.offset for entry, _ in log if isinstance(entry, Register) and entry.name == name)
    return inserted(log, [(at, Pause(0, registered, name)), (at, Resume(0, registered, name)), (at, CatchUp(0, registered, ALL))])


@FEW
@given(queries=programs(), data=st.data())
def test_random_queries(queries: Mapping[str, str], data: st.DataObject) -> None:
    queries = {name: keyed(text) for name, text in queries.items()}
    assume(accepted(queries) and all(map(has_key, queries.values())))
    streams = {DEFAULT_STREAM: data.draw(feeds(), "default"), OTHER: [] if "r" in queries else data.draw(feeds(), "other")}
    arrival = data.draw(arrivals(streams), "arrivals")
    log = entries(queries, streams, arrival.bodies, [], MAX_DELAY)
    log = moved(log, data.draw(st.sampled_from(sorted(queries)), "which"), data.draw(st.integers(len(queries) + 1, len(log) - 1), "at"))
    for entry, rows in log:
        note(f"{entry} {rows}")
    cut = blocks(log, arrival.cuts | set(range(0, len(log), 3)))
    found, changes, begins = shared_out(cut, data.draw(st.sampled_from((2, 3))), arrival.restores)
    event(f"read from the beginning: {0 in begins}, solutions: {bool(found)}")
    assert (found, changes) == whole(cut)


# ---------------------------------------------------------------- by hand
COUNT = 900


def readings(extra: Sequence[tuple[int, Entry]] = ()) -> Log:
    """Events of 20 subjects, one a second, each in a body of its own, and all queries."""
    random, bodies = Random(7), []
    for k in range(COUNT):
        triple = term(f"s{random.randrange(20)}"), term(random.choice("ABC")), term(str(random.randrange(9)))
        bodies.append(Body(DEFAULT_STREAM, (Occurrence(triple, k * SECOND, k * SECOND),)))
    return inserted(entries({"rule": RULE, **QUERIES}, [DEFAULT_STREAM], bodies, [], 5 * SECOND), extra)


def begins_of(log: Log) -> list[int]:
    """The positions from which two engines read the log again, each other entry in a block of its own; they find what one engine finds."""
    cut = blocks(log, range(0, len(log), 2))
    found, changes, begins = shared_out(cut, 2)
    assert (found, changes) == whole(cut)
    assert {name for name, *_ in found} == {"rule", *QUERIES}
    return begins


@pytest.mark.parametrize("name", QUERIES)
def test_a_set_reads_as_far_back_as_it_looks(name: str) -> None:
    at = 700
    begins = begins_of(moved(readings(), name, at))
    assert begins
    assert at - 150 < min(begins), "places are sparse further back"


def test_a_change_of_the_background_is_not_cut_off() -> None:
    log = readings([(690, Facts(0, "", "<http://example.org/s1> <http://example.org/A> <http://example.org/5> .\n"))])
    assert 0 in begins_of(moved(log, "chain", 701))


def test_a_rule_that_is_gone_may_have_left_its_mark() -> None:
    log = readings()
    registered = next(entry.offset for entry, _ in log if isinstance(entry, Register) and entry.name == "rule")
    log = inserted(log, [(300, Drop(0, registered, "rule"))])
    assert 0 in begins_of(moved(log, "reader", 701))
    assert 0 not in begins_of(moved(log, "chain", 701))


def test_more_queries_move_than_the_one() -> None:
    """They move one after the other, and all go on in their places."""
    log = readings()
    for k, name in enumerate(QUERIES):
        log = moved(log, name, 500 + 60 * k)
    assert min(begins_of(log)) > 300
