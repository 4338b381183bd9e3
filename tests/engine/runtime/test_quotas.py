"""These tests check a query's state.

It is counted and readable operator by operator, is freed as time passes, and has a quota that stops that query alone.
"""

import json
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.engine import WEIGHED_EVERY, Engine
from engine.kernel.state import layout as c
from engine.messages import END_OF_TIME, ChangeInstances, Drop, Entry, Events, Register, SetStream, StateChange
from engine.state_size import Usage, goal_bytes, instance_bytes
from epsparql.terms import XSD
from epsparql.trees import replace_fields
from tests.engine.runtime.test_engine import Log
from tests.reference.evaluator import Occurrence
from tests.support.feeds import PREFIXES, SECOND, parse_feed
from tests.support.run_both import block, blocks

PAIRS = "SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y} }"
CLOSE = "SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y} FILTER(getDURATION() <= 'PT5S'^^xsd:duration) }"
FIVE = "'PT5S'^^xsd:duration"
TOTALS = "SELECT ?x (COUNT(*) AS ?n) WHERE { ?s :A ?x } GROUP BY ?x"
RUNS = TOTALS + " WINDOW [RUN WHILE (COUNT(*) <= 9) GAP PT1H]"


@pytest.fixture
def log() -> Log:
    return Log(Engine())


def entries(registers: Sequence[Register], feeds: Sequence[str]) -> list[tuple[Entry, tuple[Occurrence, ...]]]:
    """A log of these queries and then these bodies of the default stream."""
    found: list[tuple[Entry, tuple[Occurrence, ...]]] = [
        (replace_fields(each, offset=k, text=PREFIXES + each.text), ()) for k, each in enumerate(registers)
    ]
    latest = -END_OF_TIME
    for feed in feeds:
        occurrences = tuple(parse_feed(feed))
        latest = max(latest, *(o.end for o in occurrences))
        found.append((Events(len(found), "default", len(occurrences), latest), occurrences))
    return found


def outcome(log: Sequence[tuple[Entry, tuple[Occurrence, ...]]], cuts: Sequence[int] = ()) -> tuple[list[object], list[StateChange]]:
    engine = Engine()
    found = [engine.feed(part) for part in blocks(log, cuts)]
    return [row for each in found for row in each.solutions.to_pylist()], [change for each in found for change in each.changes]


# ---------------------------------------------------------------- instances
def test_instances_count_for_the_quota_of_their_query() -> None:
    text = f"{PREFIXES}SELECT * PARAMETERS (?s) WHERE {{ {{?s :A ?x}} SEQ {{?s :B ?y}} }}"
    quota = 3 * instance_bytes(1) + goal_bytes(3)
    added = {f"u{k}": ['"s"'] for k in range(3)}
    log: list[tuple[Entry, tuple[Occurrence, ...]]] = [
        (Register(0, "pairs", text, max_state_bytes=quota), ()), (ChangeInstances(1, 0, "pairs", json.dumps(added)), ()),
    ]  # fmt: skip
    engine = Engine()
    engine.feed(block(log))
    assert engine.registry.usage(0) == Usage(0, 3 * instance_bytes(1))
    found = [engine.feed(block([(Events(k, "default", 1, k * SECOND), tuple(parse_feed(f"A({k})@{k}")))])) for k in (2, 3)]
    (change,) = [change for each in found for change in each.changes]
    assert (change.state, "max_state_bytes" in change.reason, "fewer instances" in change.reason) == ("failed", True, True)


# ---------------------------------------------------------------- counted
def test_goals_and_bytes(log: Log) -> None:
    pairs = log.register("pairs", PAIRS)
    totals = log.register("totals", TOTALS)
    log.send("A(1)@1 A(2)@2 A(3)@3")
    assert log.engine.registry.usage(pairs) == Usage(3, 3 * goal_bytes(3))
    assert log.engine.registry.usage(totals).goals == 0
    assert log.engine.registry.usage(totals).state_bytes > 0
    log.send("A(4)@4")
    assert log.engine.own.terms == len(log.engine.registry.terms) > 4
    assert log.engine.own.reserved_bytes > log.engine.registry.usage(pairs).state_bytes


def test_progress(log: Log) -> None:
    chain = log.register("chain", "SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y} SEQ {?s :C ?z} FILTER NOT EXISTS { ?s :D ?x } }")
    log.send("A(1)@1 A(2)@2 B@3 D(1)@4")
    kept = [each for each in log.engine.registry.progress(chain) if each.keeps]
    assert [(each.operator, each.on, [(side.side, side.goals, side.oldest) for side in each.sides if side.goals]) for each in kept] == [
        ("NOT EXISTS", ("?s", "?x"), [("right", 1, 4 * SECOND)]),
        ("SEQ", ("?s",), [("left", 2, 3 * SECOND)]),
        ("SEQ", ("?s",), [("left", 2, 1 * SECOND)]),
    ]


STREAMING = [
    pytest.param("SEQ", ("left",), id="SEQ: what ends later cannot come before"),
    pytest.param("EQUALS", (), id="EQUALS: both end at one instant"),
    pytest.param("MEETS", ("left",), id="MEETS: what starts where the other ends is there by then or ends then"),
    pytest.param("DURING", ("left",), id="DURING: the inner one ends first"),
    pytest.param("STARTS", ("left",), id="STARTS: the shorter one ends first"),
    pytest.param("FINISHES", (), id="FINISHES: both end at one instant"),
    pytest.param("OVERLAPS", ("left",), id="OVERLAPS: the left one ends first"),
    pytest.param("PAR", ("left", "right"), id="PAR: either may end first"),
    pytest.param("AND", ("left", "right"), id="AND: either may end first"),
]


@pytest.mark.parametrize(("relation", "sides"), STREAMING)
def test_a_join_keeps_only_what_may_still_find_a_partner(log: Log, relation: str, sides: tuple[str, ...]) -> None:
    query = log.register("join", f"SELECT * WHERE {{ {{?s :A ?x}} {relation} {{?s :B ?y}} }}")
    log.send("A(1)@1-2 B(1)@1-3 A(2)@5 B(2)@6")
    for now in range(10, 14):
        log.send(f"X@{now}")  # what an instant leaves is swept by and by
    kept = [(side.side, side.goals) for operator in log.engine.registry.progress(query) for side in operator.sides if side.goals]
    assert kept == [(side, 2) for side in sides]


SUPPRESSED = [
    pytest.param("{?s :A ?a} SEQ {{?s :B ?b} SEQ {?s :C ?c}}", "B@1 B@2 A@3 B(2)@3 B(3)@2-4 B(t,1)@5 B(4)@6", 2, id="SEQ"),
    pytest.param("{?s :A ?a} SEQ {{?s :B ?b} AND {?s :C ?c}}", "B@1 C@2 A@3 C(1)@4 B(2)@5", 3, id="AND"),
    pytest.param("{?s :A ?a} SEQ {?s :B ?b ; :C ?c ; :D ?d}", "B@1 C@2 D@2 A@3 C(1)@4", 2, id="triple patterns"),
    pytest.param("{?s :A ?a} SEQ {{?t :B ?b} AND {?t :C ?c}}", "B@1 A@3 B(t,1)@4", 2, id="what the sides do not share"),
    pytest.param("{?s :A ?a} SEQ {{?s :B ?b} SEQ {{?s :C ?c} SEQ {?s :D ?d}}}", "C@1 A@2 C@3 B@4 C(1)@5", 3, id="each after the one before it"),
    pytest.param("{?s :A ?a} SEQ {{?s :B ?b} SEQ {?s :C ?c}} WITHIN 3", "A@1 B@5 B@6", 0, id="not after one that is too old"),
    pytest.param("{?s :A ?a} SEQ {{?s :B ?b} OPTIONAL {{?s :C ?c} SEQ {?s :D ?d}}}", "C@1 C@2", 2, id="not what may begin before"),
    pytest.param("{VALUES ?a {1 2}} SEQ {{?s :B ?b} SEQ {?s :C ?c}}", "B@1 B(2)@2", 4, id="not after what is always there"),
]


@pytest.mark.parametrize(("pattern", "feed", "goals"), SUPPRESSED)
def test_the_right_side_of_seq_keeps_what_a_left_solution_precedes(log: Log, pattern: str, feed: str, goals: int) -> None:
    query = log.register("q", f"SELECT * WHERE {{ {pattern} }}")
    for event in feed.split():
        log.send(event, delay=1)
    for now in range(10, 14):
        log.send(f"X@{now}")
    assert log.engine.registry.usage(query).goals == goals


SUMS = """CONSTRUCT { _:point :Count ?count ; :Sum ?sum } WHERE { SELECT (?n + 1 AS ?count) (?s + ?price AS ?sum) WHERE {
  { { ?point :Count ?n ; :Sum ?s } SEQ { :s :A ?price } }
  EQUALSOPTIONAL { { ?point :Count ?n ; :Sum ?s } SEQ { :s :A ?between } SEQ { :s :A ?price } }
  FILTER(!BOUND(?between) && getDURATION() < "PT5S"^^xsd:duration)
} }"""


def test_the_papers_sliding_sum_keeps_its_window(log: Log) -> None:
    log.register("start", "CONSTRUCT { _:point :Count 1 ; :Sum ?price } WHERE { :s :A ?price }")
    sums, kept = log.register("sums", SUMS), list[int]()
    for now in range(1, 41):
        log.send(f"A({now})@{now}")
        kept.append(log.engine.registry.usage(sums).goals)
    assert 0 < max(kept[10:]) == max(kept[20:]) < 400


def test_collectors_show_their_size(log: Log) -> None:
    totals = log.register("totals", TOTALS)
    log.send("A(1)@1 A(2)@2")
    log.send("A(3)@3")
    assert [each.state_bytes for each in log.engine.registry.progress(totals) if each.keeps] == [log.engine.registry.usage(totals).state_bytes]


# ---------------------------------------------------------------- bounded
QUOTAS = [
    pytest.param(Register(0, "small", PAIRS, max_goals=3), 4, "stores 4 partial matches, more than the limit of 3 (max_partial_matches)", id="goals"),
    pytest.param(Register(0, "small", PAIRS, max_state_bytes=3 * goal_bytes(3)), 4, "more than the limit of 264 (max_state_bytes)", id="bytes"),
]


@pytest.mark.parametrize(("register", "event", "reason"), QUOTAS)
def test_a_query_beyond_its_quota_fails_alone(register: Register, event: int, reason: str) -> None:
    feeds = [f"A({k})@{k}" for k in range(1, 7)] + ["B@9", "A@11"]
    found, changes = outcome(entries([register, Register(0, "other", PAIRS)], feeds))
    assert [(change.name, change.state) for change in changes] == [("small", "failed")]
    assert changes[0].entry == 1 + event
    assert reason in changes[0].reason
    assert "WITHIN" in changes[0].reason
    undisturbed, none = outcome(entries([Register(0, "idle", "SELECT * WHERE { ?s :none ?x }"), Register(0, "other", PAIRS)], feeds))
    assert [row for row in found if row["query"] == "other"] == undisturbed  # type: ignore[index]
    assert none == []


@pytest.mark.parametrize("text", [TOTALS, RUNS], ids=["groups", "runs"])
@pytest.mark.parametrize("cuts", [(), range(1, 600), range(7, 600, 60)], ids=["whole", "each alone", "in between"])
def test_what_groups_hold_is_weighed_at_set_entries(cuts: Sequence[int], text: str) -> None:
    register = Register(0, "small", text, max_state_bytes=300 * goal_bytes(2))
    found, changes = outcome(entries([register], [f"A({k})@{k}" for k in range(1, 600)]), cuts)
    assert [(change.state, change.entry) for change in changes] == [("failed", 2 * WEIGHED_EVERY - 1)]
    assert "keeps 40800 bytes of state, more than the limit of 24000 (max_state_bytes)" in changes[0].reason
    assert len(found) == 2 * WEIGHED_EVERY - 2


def test_what_has_outlived_its_window_counts_for_nothing() -> None:
    """Three goals are alive at most, however many wait to be swept: the B's are stored by a side that no C comes to."""
    text = f"SELECT * WHERE {{ {{ {CLOSE.removeprefix('SELECT * WHERE')} }} UNION {{ {{?s :B ?x}} SEQ {{?s :C ?y}} WITHIN 5 }} }}"
    feeds = [f"A({k})@{10 * k} B({k})@{10 * k + 1}" for k in range(1, 30)]
    _, changes = outcome(entries([Register(0, "small", text, max_goals=3)], feeds))
    assert changes == []
    _, changes = outcome(entries([Register(0, "small", text, max_goals=1)], feeds))
    assert [change.entry for change in changes] == [1]


BOTH = "SELECT * FROM STREAM <default> FROM STREAM <other> WHERE { {?s :A ?x} AND {?s :B ?y} }"


def sent(log: list[tuple[Entry, tuple[Occurrence, ...]]], stream: str, feed: str) -> None:
    """Append a body of a stream, which leaves the watermark at its last end."""
    body = tuple(parse_feed(feed))
    log.append((Events(len(log), stream, len(body), body[-1].end), body))


@pytest.mark.parametrize("cuts", [(), (1, 2), (1,)], ids=["whole", "each alone", "a few"])
def test_streams_come_in_the_order_of_their_entries_up_to_the_failure(cuts: Sequence[int]) -> None:
    """A query that is stopped in the middle of an instant has told what it found by then, so the order of what comes
    at that instant is the log's.
    """
    log = entries([Register(0, "small", BOTH, max_goals=3)], [])
    sent(log, "other", "A(1)@1 B(t,1)@1 B(2)@1")
    sent(log, "default", "B(3)@1 A(t,2)@1")
    found, changes = outcome(log, cuts)
    assert [row["values"][1:] for row in found if isinstance(row, dict)] == [[f'"1"^^<{XSD}integer>', f'"{y}"^^<{XSD}integer>'] for y in (2, 3)]
    assert [(change.entry, change.state) for change in changes] == [(2, "failed")]


def test_an_occurrence_in_several_graphs_is_one_goal_to_who_asks_for_none() -> None:
    """Whatever else the block holds for which graphs are told apart: a registration, or events of a stream that takes
    retractions.
    """
    log = entries([Register(0, "small", PAIRS, max_goals=2), Register(0, "other", "SELECT * FROM STREAM <other> WHERE { ?s :A ?x }")], [])
    log.append((SetStream(len(log), "other", revisable=SECOND), ()))
    for feed in ("A(1)@1 g/A(1)@1", "g/A(2)@2", "h/A(2)@2 A(2)@2"):
        sent(log, "default", feed)
        sent(log, "other", "A@1")
    for cuts in ((), range(1, len(log)), (3,), (3, 5, 7)):
        assert outcome(log, cuts)[1] == []
    sent(log, "default", "A(3)@3")
    for cuts in ((), range(1, len(log)), (3,), (3, 5, 7)):
        assert [(change.name, change.entry) for change in outcome(log, cuts)[1]] == [("small", len(log) - 1)]


def test_who_asks_for_graphs_is_told_of_those_that_come_after_it() -> None:
    """It goes again, and then occurrences that only graphs tell apart are one goal as they were before."""
    asks = Register(1, "asks", PREFIXES + "SELECT ?g WHERE { GRAPH ?g { ?s :A ?x } }")
    log = entries([Register(0, "pairs", PAIRS)], ["g/A(1)@1 h/A(1)@1"])
    log.append((replace_fields(asks, offset=len(log)), ()))
    sent(log, "default", "g/A(2)@2 h/A(2)@2")
    log.append((Drop(len(log), 2, "asks"), ()))
    sent(log, "default", "g/A(3)@3 h/A(3)@3")
    for cuts in ((), range(1, len(log))):
        engine = Engine()
        found = [row for part in blocks(log, cuts) for row in engine.feed(part).solutions.to_pylist()]
        assert [row["values"] for row in found] == [["<http://example.org/g>"], ["<http://example.org/h>"]]
        assert engine.registry.usage(0).goals == 4


@given(st.data())
def test_the_entry_of_the_failure_does_not_depend_on_blocks(data: st.DataObject) -> None:
    events = st.builds("{}{}({})@{}".format, st.sampled_from(["", "g/"]), st.sampled_from("AAAB"), st.integers(0, 9), st.integers(0, 3))
    later, feeds = 0, []
    for feed in data.draw(st.lists(st.lists(events, min_size=1, max_size=4), min_size=2, max_size=12)):
        moved = [f"{name}@{int(at) + later}" for name, at in (event.split("@") for event in sorted(feed, key=lambda event: event[-1]))]
        later += 3
        feeds.append(" ".join(moved))
    quota = data.draw(st.integers(1, 8))
    texts = data.draw(st.lists(st.sampled_from([PAIRS, CLOSE, TOTALS, RUNS]), min_size=1, max_size=3))
    registers = [Register(0, f"q{k}", text, max_goals=quota, max_state_bytes=100 * quota) for k, text in enumerate(texts)]
    log = entries(registers, feeds)
    cuts = data.draw(st.lists(st.integers(1, len(log))))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("engine.engine.WEIGHED_EVERY", 4)
        assert outcome(log) == outcome(log, cuts) == outcome(log, range(1, len(log)))


# ---------------------------------------------------------------- freed
def silent_then(log: Log, feed: Sequence[str]) -> Iterator[int]:
    query = log.register("close", CLOSE)
    log.register("other", "SELECT * WHERE { ?s :C ?x }")
    for k in range(50):
        log.send(f"A({k})@{1 + k / 100}")
    network = log.engine.registry.members[0].network
    yield int(network.net.queries[network.planned[query].number, c.Q_GOALS])
    for each in feed:
        log.send(each)
        yield int(network.net.queries[network.planned[query].number, c.Q_GOALS])


def test_goals_of_a_silent_stream_go_with_the_time_of_the_others(log: Log) -> None:
    assert [*silent_then(log, ["C@2", "C@60"])] == [50, 50, 0]


def test_a_query_stopped_for_its_quota_leaves_nothing(log: Log) -> None:
    log.put(Register(0, "small", PREFIXES + PAIRS, max_goals=3))
    log.send("A(1)@1 A(2)@2 A(3)@3")
    assert log.engine.goals == 3
    log.send("A(4)@4")
    assert log.engine.goals == 0
    assert log.engine.feed(block([(Events(log.engine.position, "default", 0, None), ())])).solutions.num_rows == 0


@pytest.mark.parametrize("bound", ["getDURATION() <= {}", "getDURATION() = {}", "{} = getDURATION()", "{} >= getDURATION() && ?x = ?x"])
def test_conditions_on_the_duration_bound_the_state(bound: str) -> None:
    log = Log(Engine())
    query = log.register("close", f"SELECT * WHERE {{ {{?s :A ?x}} SEQ {{?s :B ?y}} FILTER({bound.format(FIVE)}) }}")
    found = [log.send(f"A({k})@{3 * k} B({k})@{3 * k + 2}") for k in range(1, 30)]
    assert log.engine.registry.usage(query).goals <= 2
    assert {end - start for rows in found for _, _, start, end in rows} == ({5} if bound.count(" = ") == 1 and "&&" not in bound else {2, 5})


# ---------------------------------------------------------------- at one instant
MULTIPLIES = [
    pytest.param("SELECT * WHERE { { ?s :A ?x } SEQ { ?t :B ?y } }", id="solutions"),
    pytest.param("SELECT * WHERE { { ?s :A ?x } SEQ { ?t :B ?y } FILTER(?x + ?y > 9999) }", id="what a filter rejects"),
    pytest.param("SELECT (COUNT(*) AS ?n) WHERE { { ?s :A ?x } SEQ { ?t :B ?y } }", id="what is counted"),
    pytest.param("SELECT * WHERE { { { ?s :A ?x } SEQ { ?t :B ?y } } MINUS { ?s :C ?x } }", id="what waits for the close"),
    pytest.param("CONSTRUCT { ?s :D ?x } WHERE { { ?s :A ?x } SEQ { ?t :B ?y } }", id="what a rule makes"),
]


def bounded(log: Log, most: int) -> None:
    for member in log.engine.registry.members:
        member.network.net.at[[c.MOST_MADE, c.MOST_NOW]], member.network.net.at[c.MOST_EACH] = most, 0


@pytest.mark.parametrize("restored", [False, True])
@pytest.mark.parametrize("text", MULTIPLIES)
def test_what_multiplies_at_one_instant_fails_alone(log: Log, text: str, restored: bool) -> None:
    """400 before, and 40 at the instant: 16,000 pairs. It comes in two parts; a snapshot between them keeps the count."""
    log.register("much", text)
    log.register("pairs", "SELECT ?x ?y WHERE { { ?s :A ?x FILTER(?x = 7) } SEQ { ?s :B ?y } }")
    log.send(" ".join(f"A({k})@1" for k in range(400)))
    bounded(log, 1000)
    if "FILTER(?x + ?y" in text:  # a join that goes on counts as a sixteenth
        assert len(log.send(" ".join(f"B({k})@2" for k in range(20)))) == 20
        assert not log.failed
    if restored:
        log.engine = Engine.restore(log.engine.snapshot())
        bounded(log, 1000)
    found = log.send(" ".join(f"B({k})@2" for k in range(20, 40)))
    assert "took more than 1,000 steps at one instant" in log.failed["much"]
    assert sum(row[0] == "pairs" for row in found) == 20
    assert [row[0] for row in log.send("B(1)@3")] == ["pairs"]


def test_what_two_share_and_multiplies_fails_for_both(log: Log) -> None:
    """The part that they have in common, of another length of chunks, is each one's."""
    common = "{ { ?s :A ?x } SEQ { ?t :B ?y } FILTER(?x + ?y > 9999) }"
    log.register("one", f"SELECT * WHERE {{ {common} SEQ {{ ?s :C ?z }} }}")
    log.register("other", f"SELECT * WHERE {{ {common} SEQ {{ ?s :D ?z }} }}")
    log.register("pairs", "SELECT ?x ?y WHERE { { ?s :A ?x FILTER(?x = 7) } SEQ { ?s :B ?y } }")
    log.send(" ".join(f"A({k})@1" for k in range(400)))
    bounded(log, 1000)
    assert len(log.send(" ".join(f"B({k})@2" for k in range(40)))) == 40
    assert log.failed.keys() == {"one", "other"}
    assert [row[0] for row in log.send("B(1)@3")] == ["pairs"]


def test_each_instant_is_counted_by_itself(log: Log) -> None:
    log.register("much", "SELECT * WHERE { { ?s :A ?x } SEQ { ?t :B ?y } }")
    log.send("A(1)@1 A(2)@1")
    bounded(log, 90)
    assert sum(len(log.send(" ".join(f"B({k})@{at}" for k in range(40)))) for at in range(2, 12)) == 800
    assert not log.failed


COSTLY = [
    pytest.param("SELECT * WHERE { { ?s :A ?x } SEQ { ?t :B ?y } FILTER(REGEX(STR(?x + ?y), 'z')) }", 200, id="the host is asked of each pair"),
    pytest.param("SELECT * WHERE { { { ?s :A ?x } SEQ { ?t :B ?y } } BIND(?x + ?y AS ?z) FILTER(?z < 0) }", 200, id="a value for each pair"),
    pytest.param(
        "SELECT * WHERE { { ?t :B ?y } OPTIONAL { ?s :A ?x FILTER(REGEX(STR(?x + ?y), 'z')) } }", 200, id="the host is asked before absence is sure"
    ),
    pytest.param("SELECT * WHERE { { { ?s :A ?x } SEQ { ?t :B ?y } } SEQ { ?s :C ?z } }", 200, id="partial solutions"),
    pytest.param("SELECT * WHERE { { ?s :A ?x } DURING { ?t :B ?y } }", 2000, id="what is looked at and does not fit"),
]


@pytest.mark.parametrize(("text", "n"), COSTLY)
def test_work_that_leaves_no_solution_counts(log: Log, text: str, n: int) -> None:
    """A query that multiplies is stopped though it says nothing, and the others go on."""
    log.register("costly", text)
    log.register("count", "SELECT ?x WHERE { ?s :A ?x }")
    log.send("A(1)@0")
    bounded(log, 10_000)
    log.send(" ".join(f"A({k})@1" for k in range(n)))
    found = log.send(" ".join(f"B({k})@2" for k in range(n)) + " A(1)@2")
    log.send("C(1)@3")  # closes the instant
    assert "took more than 10,000 steps at one instant" in log.failed["costly"]
    assert log.failed.keys() == {"costly"}
    assert [row[0] for row in found] == ["count"]


def test_a_query_is_found_out_before_it_has_asked_all() -> None:
    """250,000 questions would take the host seconds; what is open at once is bounded, and the bound is felt between."""
    log = Log(Engine())
    log.register("costly", "SELECT * WHERE { { ?s :A ?x } SEQ { ?t :B ?y } FILTER(REGEX(STR(?x + ?y), 'z')) }")
    log.send("A(1)@0")
    bounded(log, 10_000)
    log.send(" ".join(f"A({k})@1" for k in range(500)))
    log.send(" ".join(f"B({1000 * k})@2" for k in range(500)))
    assert log.failed.keys() == {"costly"}
    assert log.engine.registry.members[0].network.net.at[c.ASKED] < 2 * c.MOST_OPEN


def test_what_comes_at_one_instant_may_cost_in_proportion(log: Log) -> None:
    """A body whose events all take the time of its arrival is one instant."""
    log.register("each", "SELECT ?y WHERE { ?s :A ?x BIND(?x + 1 AS ?y) FILTER(?y > 0) }")
    log.send("A(1)@0")
    for member in log.engine.registry.members:
        member.network.net.at[c.MOST_MADE] = 100
    assert len(log.send(" ".join(f"A({k})@1" for k in range(3000)))) == 3000
    assert not log.failed
