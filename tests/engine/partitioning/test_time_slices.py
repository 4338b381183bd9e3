"""Queries without a key in slices of time: several partitions find what one engine finds, with the same entries and
in the same order.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import event, given, note
from hypothesis import strategies as st

import epsparql
from engine.engine import Engine
from engine.messages import CatchUp, Drop, Entry, Facts, Pause, Register, Resume
from engine.partitioning import NoSlices, PartitionShare, Sets, TimeSlices, cut_time, placement, time_slices
from engine.runtime import time_course
from engine.runtime.query_registry import Registry
from epsparql.algebra import DEFAULT_STREAM, BackgroundRule, StreamQuery
from epsparql.trees import replace_fields
from tests.engine.partitioning.test_moves import ALL
from tests.engine.partitioning.test_renumbering import TRIPLES, Partitions, renumbered
from tests.engine.runtime.test_partitioning import FEW, Log, inserted, whole
from tests.pipeline.slices.test_reach import feeds, numbered, patterns, texts
from tests.reference.evaluator import Occurrence
from tests.support.feeds import PREFIXES, SECOND, Body, select, term
from tests.support.query_strategies import MAX_DELAY, OTHER, arrivals
from tests.support.run_both import Emitted, _emitted, blocks, entries

pytestmark = pytest.mark.slow

OTHERS = ("<http://example.org/a> <http://example.org/elsewhere> <http://example.org/a> .\n",)


@contextmanager
def sliced(length_s: int) -> Iterator[None]:
    """Have all queries whose reach is bounded evaluated in slices of a length, those with a key too."""
    with (
        patch.object(time_slices, "REACHES", 0),
        patch.object(time_slices, "LEAST_LENGTH", length_s * SECOND),
        patch.object(placement, "_keys", lambda *_: {}),
        patch.object(time_course, "_STEP", -1000),
    ):
        yield


@st.composite
def programs(draw: st.DrawFn) -> dict[str, str]:
    """Some queries, in a part of the cases with a rule that writes the second stream: who reads that is not dealt out
    by time.
    """
    queries = {f"q{k}": text for k, text in enumerate(draw(st.lists(texts(), min_size=2, max_size=5)))}
    if draw(st.integers(0, 3)):
        return queries
    return {"r": numbered(f"CONSTRUCT {{ ?s :r ?v }} INTO STREAM <{OTHER}> WHERE {draw(patterns())}")} | queries


@FEW
@given(queries=programs(), data=st.data())
def test_random_queries(queries: dict[str, str], data: st.DataObject) -> None:
    """The number of partitions changes, among pauses and changes of the background, and engines are restored."""
    streams = {DEFAULT_STREAM: data.draw(feeds(), "default"), OTHER: [] if "r" in queries else data.draw(feeds(), "other")}
    arrival = data.draw(arrivals(streams), "arrivals")
    log = by_time(entries(queries, streams, arrival.bodies, [], MAX_DELAY))
    for kind in data.draw(st.lists(st.sampled_from(("pause", "resume", "facts", "drop")), max_size=2), "changes"):
        name = data.draw(st.sampled_from(sorted(queries)), "whose")
        at = data.draw(st.integers(0 if kind == "facts" else len(queries) + 1, len(log) - 1), "at")
        registered = next(entry.offset for entry, _ in log if isinstance(entry, Register) and entry.name == name)
        extra: dict[str, list[Entry]] = {
            "pause": [Pause(0, registered, name)],
            "resume": [Resume(0, registered, name), CatchUp(0, registered, ALL)],
            "facts": [Facts(0, "", data.draw(st.sampled_from((*TRIPLES, *OTHERS)), "fact"))],
            "drop": [Drop(0, registered, name)],
        }
        log = inserted(log, [(at, entry) for entry in extra[kind]])
    for entry, rows in log:
        note(f"{entry} {rows}")
    cut = blocks(log, arrival.cuts | set(range(0, len(log), 4)))
    changes = data.draw(st.dictionaries(st.integers(1, len(cut) - 1), st.integers(1, 4), max_size=2), "numbers")
    with sliced(data.draw(st.sampled_from((1, 2, 3, 7)), "length")):
        first = data.draw(st.integers(2, 4), "first")
        found, told, _ = renumbered(cut, first, changes, arrival.restores)
        assert (found, told) == whole(cut)
        event(f"sliced: {count_sliced(log)}, solutions of: {len({name for name, *_ in found})}")


def by_time(log: Log) -> Log:
    """Return a log whose queries may be dealt out by time, as a server registers them."""
    return [(replace_fields(entry, by_time=True) if isinstance(entry, Register) else entry, rows) for entry, rows in log]


def count_sliced(log: Log) -> int:
    """How many of the queries are evaluated in slices of time when they come."""
    sets, engine = Sets(2), Engine()
    for entry in (entry for entry, _ in log if isinstance(entry, Register)):
        sets.add(entry, stream_query(entry.text), engine.registry.known, find_reach=engine.registry.find_reach)
    return sum(isinstance(each.route.part, TimeSlices) for each in sets.list_sets())


def stream_query(text: str) -> StreamQuery:
    query = epsparql.parse(text).query
    assert not isinstance(query, BackgroundRule)
    return query


# ---------------------------------------------------------------- by hand
NEAR = 'FILTER(getDURATION() < "PT5S"^^xsd:duration)'
QUERIES = {
    "value": f"{PREFIXES}SELECT * WHERE {{ {{ ?s :A ?v }} SEQ {{ ?t :B ?v }} WITHIN 9 }}",
    "pairs": f"{PREFIXES}SELECT ?s ?t WHERE {{ {{ ?s :A ?v }} AND {{ ?t :B ?w }} WITHIN 3 FILTER(?v > ?w) }} ORDER BY DESC(?t)",
    "absent": select("A SEQ { ?t :B ?b } WITHIN 9 WITHOUT { ?u :C ?c }"),
    "timer": select("A WITHOUT { ?t :B ?b } FOR 4"),
    "optional": select(f"{{ A OPTIONAL {{ ?t :B ?a {NEAR} }} }}"),
    "before": select(f"{{ {{ ?t :B ?a {NEAR} }} OPTIONALSEQ A }}"),
    "any": f"{PREFIXES}SELECT * WHERE {{ {{ ?s ?p ?v }} SEQ {{ ?t ?p ?v }} WITHIN 3 }}",
    "path": f"{PREFIXES}SELECT * WHERE {{ {{ ?s :A? ?v }} SEQ {{ ?v :B+ ?t }} WITHIN 3 }}",
    "windows": f"{PREFIXES}SELECT * FROM NAMED WINDOW :w ON <default> [RANGE PT10S STEP PT5S] WHERE {{ WINDOW :w {{ ?s :A ?v . ?t :B ?v }} }}",
    "groups": f"{PREFIXES}SELECT ?v (COUNT(*) AS ?n) WHERE {{ ?s :A ?v }} GROUP BY ?v WINDOW [RANGE PT7S]",
    "top": f"{PREFIXES}SELECT ?v (COUNT(*) AS ?n) WHERE {{ ?s :A ?v }} GROUP BY ?v WINDOW [RANGE PT10S STEP PT5S] ORDER BY DESC(?n) LIMIT 2",
    "distinct": f"{PREFIXES}SELECT DISTINCT ?v WHERE {{ {{ ?s :A ?v }} SEQ {{ ?t :B ?w }} WITHIN 3 }}",
    "home": select("{ ?s :A ?v } SEQ { ?t :B ?v }"),
}
COUNT, LENGTH_S = 180, 20
"""A border of slices is a border of windows too, and events lie on it."""


def readings() -> Log:
    """Events at each second and at each half of one, each in a body of its own, up to five seconds late, and all
    queries.
    """
    random, events = Random(7), list[Occurrence]()
    for k in range(COUNT):
        at = k * SECOND // 2
        events.append(Occurrence((term(f"s{random.randrange(9)}"), term(random.choice("ABC")), term(str(random.randrange(4)))), at, at))
    events.sort(key=lambda each: each.end + random.randrange(5 * SECOND))
    return by_time(entries(QUERIES, [DEFAULT_STREAM], [Body(DEFAULT_STREAM, (each,)) for each in events], [], 5 * SECOND))


def test_partitions_find_what_one_engine_finds() -> None:
    """Ids follow from entries and order. Engines are restored, and the number of partitions changes."""
    log = readings()
    cut = blocks(log, range(0, len(log), 3))
    expected = whole(cut)
    assert {name for name, *_ in expected[0]} == QUERIES.keys()
    with sliced(LENGTH_S):
        assert count_sliced(log) == len(QUERIES) - 1
        for first, changes in ((3, {20: 4, 45: 2}), (4, {30: 1})):
            found, told, begins = renumbered(cut, first, changes, restores=[35])
            assert (found, told) == expected
            assert bool(begins) == bool(changes)


def test_partitions_share_the_work_and_one_counts() -> None:
    log = readings()
    cut = blocks(log, range(0, len(log), 3))
    registered = next(entry.offset for entry, _ in log if isinstance(entry, Register) and entry.name == "value")
    one, engines = Engine(), [Engine(Registry(PartitionShare(partition, 4))) for partition in range(4)]
    with sliced(LENGTH_S):
        for each in cut[: len(cut) - 4]:  # the streams' end would end all partial matches
            for engine in (one, *engines):
                engine.feed(each)
            assert one.registry.usage(registered).goals == sum(engine.registry.usage(registered).goals for engine in engines)
            shown = [match for engine in engines for match in engine.registry.partial_matches(registered)]
            assert shown == one.registry.partial_matches(registered)
    taken = [sum(side.taken for step in engine.registry.progress(registered) for side in step.sides) for engine in (one, *engines)]
    assert max(taken[1:]) < 0.5 * taken[0], "a part of 100 seconds, and what comes nine seconds before"
    assert sum(taken[1:]) < 1.6 * taken[0]


CHANGED = {
    "s1> <http://example.org/A> <http://example.org/x": {"windows"},
    "s1> <urn:q> <http://example.org/x": QUERIES.keys() - {"home", "any", "path"},
}
"""The queries that a background triple does not concern: windows hold what came on their stream."""


@pytest.mark.parametrize("triple", CHANGED)
def test_a_change_of_the_background_moves_whom_it_concerns(triple: str) -> None:
    log = inserted(readings(), [(150, Facts(0, "", f"<http://example.org/{triple}> .\n"))])
    cut = blocks(log, range(0, len(log), 3))
    with sliced(LENGTH_S):
        partitions, found = Partitions(cut, 3), list[Emitted]()
        for each in cut:
            found += _emitted(partitions.feed(each).solutions)
        left = [each.members for each in partitions.engines[0].registry.sets.list_sets() if isinstance(each.route.part, TimeSlices)]
    assert found == whole(cut)[0]
    assert {entry.name for members in left for entry in members.values()} == CHANGED[triple]


EARLY = "C0 C1 B2 B100 B101 B102 C103 B104"
"""Kinds of events, and their seconds."""
BLOCKED = PREFIXES + "SELECT * WHERE {{ {{ ?s :A ?v }} SEQ {{ {subject} :B ?w }} WITHIN 3 WITHOUT {{ {absent} :C ?c }} }}"
MOVES: dict[str, tuple[str, list[Entry], dict[int, int]]] = {
    "slices": (BLOCKED.format(subject="?t", absent="?u"), [], {}),
    "pause": (BLOCKED.format(subject="?s", absent="?s"), [Pause(0, 1, "q"), Resume(0, 1, "q"), CatchUp(0, 1, ALL)], {}),
    "number": (BLOCKED.format(subject="?s", absent="?s"), [], {6: 1}),
}
"""What moves a query: it is read for three seconds back."""


@pytest.mark.parametrize("kind", MOVES)
def test_a_change_lets_a_query_look_back_further_than_its_move_did(kind: str) -> None:
    """The background brings an A, whose time is any. So a C of long ago stands between it and each B."""
    text, moves, changes = MOVES[kind]
    events = [Occurrence((term("s"), term(each[0]), term("1")), int(each[1:]) * SECOND, int(each[1:]) * SECOND) for each in EARLY.split()]
    log = by_time(entries({"q": text}, [DEFAULT_STREAM], [Body(DEFAULT_STREAM, (each,)) for each in events], [], 0))
    at = next(k for k, (_, rows) in enumerate(log) if rows and rows[0].end == 101 * SECOND)
    log = inserted(log, [(at, entry) for entry in (*moves, Facts(0, "", "<http://example.org/s> <http://example.org/A> <http://example.org/x> .\n"))])
    cut = blocks(log, range(len(log)))
    with patch.object(time_course, "_STEP", -1000):
        found, told, begins = renumbered(cut, 3, changes, restores=[at + len(moves)])
    assert (found, told) == whole(cut)
    assert 0 in begins


@pytest.mark.parametrize("path", ["?s :A* :b", ":b :A? ?o", "?s :A+ :b"])
@pytest.mark.parametrize("kind", ["RSTREAM", "ISTREAM", "DSTREAM"])
def test_reports_of_windows_are_compared_over_any_gap(kind: str, path: str) -> None:
    """A path of no length finds :b in empty windows too.

    So :b is new in the first report alone, however long no event comes.
    """
    head = f"{PREFIXES}REGISTER {kind} <urn:o> AS SELECT * FROM NAMED WINDOW :w ON <default> [RANGE PT1S STEP PT1S]"
    events = [Occurrence((term(subject), term("A"), term("b")), at * SECOND, at * SECOND) for subject, at in (("a", 0), ("c", 8), ("b", 22))]
    log = by_time(
        entries({"q": f"{head} WHERE {{ WINDOW :w {{ {path} }} }}"}, [DEFAULT_STREAM], [Body(DEFAULT_STREAM, (each,)) for each in events], [], 0)
    )
    cut = blocks(log, range(len(log)))
    with sliced(7):
        found, told, _ = renumbered(cut, 2, {})
        assert (found, told) == whole(cut)
        assert count_sliced(log) == (kind == "RSTREAM" or "+" in path)


# ---------------------------------------------------------------- where it pays
NOT_SLICED = {
    select("A SEQ B"): "it looks back without a bound, or to its first instant",
    select("A"): "it looks at one instant at a time",
    select("A SEQ B WITHIN 3601"): "it looks back further than 60 minutes",
    f"{PREFIXES}CONSTRUCT {{ ?s :D ?b }} INTO STREAM <d> WHERE {{ {{ ?s :A ?a }} SEQ {{ ?s :B ?b }} WITHIN 7 }}": "slices of time are for SELECTs",
    f"{PREFIXES}SELECT (COUNT(*) AS ?n) WHERE {{ ?s :A ?a }} WINDOW [RANGE PT7S]": "it looks back without a bound, or to its first instant",
}


def slices_of(text: str) -> TimeSlices:
    return cut_time(stream_query(text), Engine().registry.find_reach(Register(0, "q", text)))


@pytest.mark.parametrize("text", NOT_SLICED)
def test_what_is_not_sliced_says_why(text: str) -> None:
    with pytest.raises(NoSlices, match=re.escape(NOT_SLICED[text])):
        slices_of(text)


def test_slices_are_eight_times_as_long_as_the_reach() -> None:
    assert slices_of(select("A SEQ B WITHIN 10")) == TimeSlices(10 * SECOND, 80 * SECOND, 0)
    assert slices_of(f"{PREFIXES}SELECT * WHERE {{ {{ ?s :A ?a . ?t :B ?b }} {NEAR} }}").length == 40 * SECOND
    assert slices_of(select('A SEQ B WITHIN "PT0.001S"^^xsd:duration')).length == SECOND


def test_queries_of_earlier_versions_stay_in_one_partition() -> None:
    """Their entries say nothing of slices, so each engine places them alike, whether it reads the log or has a
    snapshot of then.
    """
    for by_time in (False, True):
        entry, sets = Register(0, "q", QUERIES["value"], by_time=by_time), Sets(2)
        with sliced(LENGTH_S):
            sets.add(entry, stream_query(entry.text), Engine().registry.known, find_reach=Engine().registry.find_reach)
        assert [isinstance(each.route.part, TimeSlices) for each in sets.list_sets()] == [by_time]
