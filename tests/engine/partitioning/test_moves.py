"""Queries that move to another partition while events come: they find what one engine finds, and read no further back
than they look.
"""

from collections.abc import Iterator, Mapping, Sequence
from random import Random

import pytest
from hypothesis import assume, event, given, note
from hypothesis import strategies as st

from engine.engine import Engine
from engine.errors import LogGap
from engine.messages import Block, CatchUp, Drop, Entry, Facts, Pause, Register, Resume
from engine.partitioning import PartitionShare
from engine.runtime import time_course
from engine.runtime.query_registry import Registry
from engine.runtime.watermarks import StreamTime
from epsparql.algebra import DEFAULT_STREAM
from pipeline.runners.merge import Merger
from tests.engine.runtime.test_partitioning import FEW, Log, has_key, inserted, keyed, shared_out, whole
from tests.engine.semantics.test_equivalence import accepted
from tests.pipeline.slices.test_reach import feeds, programs
from tests.reference.evaluator import Occurrence
from tests.support.feeds import PREFIXES, SECOND, Body, term
from tests.support.query_strategies import MAX_DELAY, OTHER, arrivals
from tests.support.run_both import _emitted, blocks, entries

pytestmark = pytest.mark.slow

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
def test_places_are_few_and_the_sparser_the_older() -> None:
    course, streams = time_course.TimeCourse(), {f"s{k}": StreamTime() for k in range(time_course._MOST_STREAMS)}
    for position in range(200):
        course.note(position, streams)
    course.note(200, streams | {"one more": StreamTime()})
    found = [place.position for place in course.places]
    assert len(found) <= time_course._MOST_PLACES
    assert found[-16:] == list(range(184, 200)), "so many streams are not noted"
    assert found[1] - found[0] > 10


COUNT = 450


def readings(extra: Sequence[tuple[int, Entry]] = ()) -> Log:
    """Events of 20 subjects, one a second, each in a body of its own, and all queries."""
    random, bodies = Random(7), []
    for k in range(COUNT):
        triple = term(f"s{random.randrange(20)}"), term(random.choice("ABC")), term(str(random.randrange(9)))
        bodies.append(Body(DEFAULT_STREAM, (Occurrence(triple, k * SECOND, k * SECOND),)))
    return inserted(entries({"rule": RULE, **QUERIES}, [DEFAULT_STREAM], bodies, [], 5 * SECOND), extra)


def begins_of(log: Log) -> list[int]:
    """The positions from which two engines read the log again, six entries in a block; they find what one engine finds."""
    cut = blocks(log, range(0, len(log), 6))
    found, changes, begins = shared_out(cut, 2)
    assert (found, changes) == whole(cut)
    assert {name for name, *_ in found} == {"rule", *QUERIES}
    return begins


@pytest.mark.parametrize("name", QUERIES)
def test_a_set_reads_as_far_back_as_it_looks(name: str) -> None:
    at = 350
    begins = begins_of(moved(readings(), name, at))
    assert begins
    assert at - 120 < min(begins), "places are sparse further back"


def test_a_change_of_the_background_is_not_cut_off() -> None:
    log = readings([(340, Facts(0, "", "<http://example.org/s1> <http://example.org/A> <http://example.org/5> .\n"))])
    assert 0 in begins_of(moved(log, "chain", 351))


def test_a_rule_that_is_gone_may_have_left_its_mark() -> None:
    log = readings()
    registered = next(entry.offset for entry, _ in log if isinstance(entry, Register) and entry.name == "rule")
    log = inserted(log, [(150, Drop(0, registered, "rule"))])
    assert 0 in begins_of(moved(log, "reader", 351))
    assert 0 not in begins_of(moved(log, "chain", 351))


def test_more_queries_move_than_the_one() -> None:
    """They move one after the other, and all go on in their places."""
    log = readings()
    for k, name in enumerate(QUERIES):
        log = moved(log, name, 250 + 40 * k)
    assert min(begins_of(log)) > 120


def test_a_query_fails_where_the_log_lacks_what_it_rests_on() -> None:
    """The others go on, and what the query had found stays."""
    ever = PREFIXES + "SELECT ?s ?a ?b WHERE { { ?s :A ?a } SEQ { ?s :B ?b } }"
    log = blocks(moved(readings([(40, Register(0, "ever", ever))]), "ever", 351), range(0, COUNT, 5))

    def past(first: int, after: int) -> Iterator[Block]:
        raise LogGap(f"the log has no [{first}, {after})")

    engines, merger = [Engine(Registry(PartitionShare(number, 2)), past) for number in range(2)], Merger()
    outcomes = [merger.merged(part.first, [engine.feed(part) for engine in engines]) for part in log]
    (change,) = [change for outcome in outcomes for change in outcome.changes]
    assert (change.name, change.entry, change.state) == ("ever", 351, "failed")
    assert "what it rests on was removed from the log: the log has no [" in change.reason
    found = [row for outcome in outcomes for row in _emitted(outcome.solutions)]
    assert found == [row for row in whole(log)[0] if row[0] != "ever" or row[1] < 351]
