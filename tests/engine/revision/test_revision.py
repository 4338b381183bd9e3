"""Revised queries against the reference evaluator: after all revisions the set that stands is the one that a replay
of what remained gives.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

import epsparql
from engine.engine import Engine
from engine.messages import (
    ADD,
    CERTAIN,
    DROP,
    OCCURRENCES,
    REPLACE,
    REVISED,
    Block,
    Entry,
    Events,
    Facts,
    Finish,
    Register,
    Revise,
    SetStream,
    StateChange,
)
from epsparql.algebra import Select
from tests.engine.revision.revised_streams import KNOWN, RevisedStreams
from tests.soak import examples
from tests.support.feeds import PREFIXES, SECOND, occurrence, parse_facts
from tests.support.run_both import block, past_of, results
from verification.definitions.model import Occurrence

H = 6_000_000
QUERIES = {
    "seq": ("SELECT ?a ?b WHERE { { ?s :A ?a } SEQ { ?s :B ?b } }",),
    "copies": ("SELECT ?s WHERE { { ?s :A ?a } SEQ { ?s :B ?b } }",),
    "optional": ("SELECT ?a ?b WHERE { ?s :A ?a OPTIONAL { ?s :B ?b } }",),
    "minus": ("SELECT ?a WHERE { ?s :A ?a MINUS { ?s :B ?b } }",),
    "without": ("SELECT ?a ?b WHERE { { ?s :A ?a } SEQ { ?s :A ?b } WITHOUT { ?s :B ?c } }",),
    "timer": ("SELECT ?a WHERE { { ?s :A ?a } WITHOUT { ?s :B ?c } FOR 3 }",),
    "group": ("SELECT (COUNT(*) AS ?n) (SUM(?a) AS ?t) WHERE { ?s :A ?a } WINDOW [RANGE 'PT3S']",),
    "runs": ("SELECT (COUNT(*) AS ?n) WHERE { ?s :A ?a } WINDOW [SESSION 'PT2S' CLOSED]",),
    "rule": (
        "SELECT ?a ?b FROM STREAM <derived> WHERE { { ?s :C ?a } SEQ { ?s :C ?b } }",
        "CONSTRUCT { ?s :C ?a } INTO STREAM <derived> WHERE { ?s :A ?a MINUS { ?s :B ?a } }",
    ),
    "within": ("SELECT ?a ?b WHERE { { ?s :A ?a } SEQ { ?s :B ?b } WITHIN 1 }",),
    "near": ("SELECT ?a ?b WHERE { { ?s :A ?a } SEQ { ?s :A ?b } WITHOUT { ?s :B ?c } WITHIN 2 }",),
    "close": ("SELECT ?a ?b WHERE { ?s :A ?a OPTIONAL { ?s :B ?b FILTER(getDURATION() <= 'PT1S'^^xsd:duration) } }",),
    "chain": (
        "SELECT ?a ?b FROM STREAM <derived> FROM STREAM <default> WHERE { { ?s :C ?a } SEQ { ?s :A ?b } WITHIN 3 }",
        "CONSTRUCT { ?s :C ?a } INTO STREAM <derived> WHERE { { ?s :A ?a } WITHOUT { ?s :B ?a } FOR 1 }",
    ),
    "both": ("SELECT ?a ?b FROM STREAM <default> FROM STREAM <other> WHERE { { ?s :A ?a } AND { ?s :B ?b } }",),
    "known": ("SELECT ?k WHERE { ?s :K ?k }",),
    "joined": ("SELECT ?a ?k WHERE { ?s :A ?a . ?s :K ?k }",),
    "absent": ("SELECT ?a WHERE { ?s :A ?a FILTER NOT EXISTS { ?x :K ?k } }",),
    "count": ("SELECT (COUNT(*) AS ?n) WHERE { ?s :K ?k }",),
    "steps": ("SELECT (COUNT(*) AS ?n) WHERE { ?s :A ?a } WINDOW [RANGE 'PT3S' STEP 'PT1S']",),
}
PLAIN = ("seq", "copies", "optional", "minus", "without", "group", "within", "near", "close", "known", "joined", "absent", "count")
"""The reference evaluator knows the solutions of these over a background that changes."""


BESIDE = "SELECT ?a FROM STREAM <other> WHERE { ?s :A ?a MINUS { ?s :B ?b } }"
"""This query is revised too, and reads a stream of its own."""
ACCOMPANIED = ("minus", "rule", "timer")


@dataclass(slots=True)
class Scenario:
    """Builds a log as its writer would, beside the reference."""

    streams: RevisedStreams
    log: list[tuple[Entry, list[tuple[Occurrence, bool]]]] = field(default_factory=list)

    def add(self, make: Any, *values: object, **named: object) -> None:
        self.log.append((make(len(self.log), *values, **named), []))

    def send(self, stream: str, sent: Sequence[tuple[Occurrence, bool]]) -> None:
        """Append a body of occurrences and retractions (True)."""
        reached, floor = self.streams.latest.get(stream), self.streams.watermark(stream)
        rows, retracts, revises = list[tuple[Occurrence, bool]](), list[tuple[int, int]](), False
        judged = RevisedStreams(self.streams.horizon, self.streams.present, dict(self.streams.latest))
        for k, (each, back) in enumerate(sent):
            if back:
                taken = self.streams.take_back(stream, each) if stream in self.streams.latest else False
                retracts += [(k, k + 1)] if taken else []
                revises |= taken
                rows.append((each, True))
            else:
                late = floor is not None and each.end < floor
                if not late:
                    judged.latest.pop(stream, None)  # lateness is judged by body
                    judged.send(stream, each)
                    revises |= reached is not None and each.end < reached
                rows.append((each, late))
        ends = [each.end for each, late in rows if not late]
        if ends or reached is not None:
            self.streams.latest[stream] = max([*ends, *([] if reached is None else [reached])])
        self.log.append((Events(len(self.log), stream, len(rows), self.streams.watermark(stream), None, None, revises, tuple(retracts)), rows))

    def learn(self, change: str, facts: str) -> None:
        """Append a change of the background, with facts in shorthand."""
        learned = self.streams.learn(change, parse_facts(facts))
        self.add(Facts, KNOWN, learned.text, change)

    def blocks(self, cuts: set[int]) -> list[Block]:
        found = list[Block]()
        begin = 0
        for k in range(1, len(self.log) + 1):
            if k in cuts or k == len(self.log):
                part = self.log[begin:k]
                plain = block((entry, tuple(each for each, _ in rows)) for entry, rows in part)
                late = pa.array([late for _, rows in part for _, late in rows], pa.bool_())
                found.append(Block(plain.entries, plain.rows.set_column(6, OCCURRENCES.field("late"), late)))
                begin = k
        return found


class Reader:
    """Follows a changelog, and holds it to its promises."""

    def __init__(self) -> None:
        self.standing: dict[str, tuple[tuple[str | None, ...], int, int]] = {}
        self.settled = -(1 << 62)

    def read(self, row: dict[str, Any]) -> None:
        (header, *values), start = row["values"], row["start"]
        sign, _more, settled, end, identifier = header.split()
        if sign == "+":
            assert identifier not in self.standing
            self.standing[identifier] = (tuple(values), start, int(end))
        else:
            assert int(end) >= self.settled, "nothing is withdrawn after it is settled"
            assert self.standing.pop(identifier) == (tuple(values), start, int(end))
        assert int(settled) >= self.settled
        self.settled = int(settled)

    def rows(self, query: str, before: int | None) -> Counter[Any]:
        emitted = [("q", 0, start, end, values) for values, start, end in self.standing.values() if before is None or end < before]
        return Counter(results({"q": query}, emitted)["q"])


Steps = Sequence[tuple[str, Sequence[tuple[Occurrence, bool]], tuple[str, str] | None, bool]]
"""What comes: a body of a stream, then perhaps a change of the background (its kind and facts), then perhaps a
revision.
"""


def check(kind: str, steps: Steps, cuts: set[int], restores: set[int]) -> None:
    """Compare what stands after each revision, and after the end, with what the definitions and a replay in order give."""
    texts = {name: PREFIXES + text for name, text in zip(("q", "rule"), QUERIES[kind], strict=False)}
    gate = ("default", "other") if kind == "both" else ("default",)
    scenario = Scenario(RevisedStreams(H))
    for name in ("default", "other"):
        scenario.add(SetStream, name, revisable=H)
    for name, text in reversed(texts.items()):
        scenario.add(Register, name, text, emit=CERTAIN if name == "rule" else REVISED)
    scenario.add(Register, "certain", texts["q"])
    if kind in ACCOMPANIED:
        scenario.add(Register, "beside", PREFIXES + BESIDE, emit=REVISED)
    expected: dict[int, tuple[list[Counter[Any]], int | None]] = {}
    for stream, sent, change, revise in steps:
        scenario.send(stream, sent)
        if change is not None:
            scenario.learn(*change)
        if revise:
            scenario.add(Revise)
            latest = scenario.streams.latest
            before = min(latest[name] for name in gate) if latest.keys() >= set(gate) else None
            expected[len(scenario.log)] = [Counter()] if before is None else find_standing(scenario.streams, kind, texts, gate, before), before
    for name in ("default", "other"):
        scenario.add(Finish, name)
    scenario.add(Revise)
    final = find_standing(scenario.streams, kind, texts, gate, None)
    expected[len(scenario.log)] = final, None
    parts = scenario.blocks(cuts | expected.keys())
    engine, reader, beside, certain = (
        Engine(past=partial(past_of, parts)),
        Reader(),
        Reader(),
        list[tuple[str, int, int, int, tuple[str | None, ...]]](),
    )
    for number, part in enumerate(parts):
        if number in restores:
            engine = Engine.restore(engine.snapshot())
            engine.look_back_by(partial(past_of, parts))
        outcome = engine.feed(part)
        assert not outcome.changes, outcome.changes
        rows = outcome.solutions
        for row in rows.set_column(3, "start", rows["start"].cast(pa.int64())).set_column(4, "end", rows["end"].cast(pa.int64())).to_pylist():
            if row["query"] in ("q", "beside"):
                (reader if row["query"] == "q" else beside).read(row)
            elif row["query"] == "certain":
                certain.append(("q", 0, row["start"], row["end"], tuple(row["values"])))
        if part.after in expected:
            for rows_expected in expected[part.after][0]:
                assert reader.rows(texts["q"], expected[part.after][1]) == rows_expected
    for rows_expected in final:
        assert Counter(results({"q": texts["q"]}, certain)["q"]) == rows_expected, "what is certain is the same"
    if kind in ACCOMPANIED:
        for rows_expected in find_standing(scenario.streams, "beside", {"q": PREFIXES + BESIDE}, ("other",), None):
            assert beside.rows(PREFIXES + BESIDE, None) == rows_expected


def find_standing(streams: RevisedStreams, kind: str, texts: Mapping[str, str], gate: Sequence[str], before: int | None) -> list[Counter[Any]]:
    """Return the solutions of `q` that stand before an instant, in each way in which they can be found; None for all
    after the end.
    """
    parsed = {name: epsparql.parse(text).query for name, text in texts.items()}
    if not streams.changes:
        return [streams.standing(parsed, "q", before)]
    found = [streams.replay(texts, "q", gate, before)]
    if kind in PLAIN and streams.present.get(gate[0]):
        assert isinstance(parsed["q"], Select)
        found.append(streams.standing_over_changes(parsed["q"], gate[0], before))
    return found


def place(steps: Sequence[tuple[str, Sequence[tuple[str, str, int, bool]], tuple[str, str] | None, bool]]) -> Steps:
    """Return bodies of occurrences that end so many seconds before their body's time, which goes on by two seconds
    from one body to the next.
    """
    return [
        (stream, [(occurrence(f"{name}({value})@{max(2 * k + 1 - back, 1)}"), taken) for name, value, back, taken in sent], change, revise)
        for k, (stream, sent, change, revise) in enumerate(steps)
    ]


FACTS = st.lists(st.sampled_from(("K(1)", "K(2)", "A(1)", "A(2)", "B(1)", "B(3)", "C(1)", "X(1)")), min_size=1, max_size=2, unique=True).map(" ".join)
CHANGES = st.one_of(st.tuples(st.sampled_from((ADD, ADD, REPLACE)), FACTS), st.just((DROP, "")))


def list_steps(stream: Sequence[str], back: st.SearchStrategy[int], bodies: int, changes: st.SearchStrategy[Any]) -> st.SearchStrategy[Steps]:
    occurrences = st.tuples(st.sampled_from("AB"), st.sampled_from("123"), back, st.sampled_from((False, False, True)))
    body = st.lists(occurrences, min_size=1, max_size=4)
    return st.lists(st.tuples(st.sampled_from(stream), body, changes, st.booleans()), min_size=1, max_size=bodies).map(place)


BOUNDED = ("chain", "close", "group", "near", "steps", "within")
"""These look back for a bounded time, so a change of the past has only its neighbourhood read again."""
PLACES = st.sets(st.integers(0, 24), max_size=6)
BACK, NEAR_BACK = st.integers(-6, 12), st.sampled_from((0, 0, 1, 4, 5, 6))
CASES = given(
    st.one_of(
        st.tuples(st.sampled_from(sorted(QUERIES)), list_steps(("default", "default", "other"), BACK, 10, st.none())),
        st.tuples(st.sampled_from(BOUNDED), list_steps(("default",), NEAR_BACK, 16, st.none())),
    ),
    PLACES,
    PLACES,
)
OVER_CHANGES = given(
    st.tuples(st.sampled_from(sorted(QUERIES)), list_steps(("default", "default", "other"), BACK | NEAR_BACK, 10, st.none() | CHANGES)),
    PLACES,
    PLACES,
)
QUIET = settings(deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.slow
@settings(QUIET, max_examples=examples(10_000, 100))
@CASES
def test_after_all_revisions_the_standing_set_is_that_of_a_replay(case: tuple[str, Steps], cuts: set[int], restores: set[int]) -> None:
    check(*case, cuts, restores)


@pytest.mark.slow
@settings(QUIET, max_examples=examples(25_000, 250))
@OVER_CHANGES
def test_a_background_that_changes_between_revisions_is_that_of_each_instant(case: tuple[str, Steps], cuts: set[int], restores: set[int]) -> None:
    check(*case, cuts, restores)


def end_after(first: str, second: str, facts: str) -> Steps:
    """Return two bodies in shorthand, of which the second one is followed by a change of the background and the end."""
    bodies = [[(occurrence(event), False) for event in feed.split()] for feed in (first, second)]
    return [("default", bodies[0], None, True), ("default", bodies[1], (ADD, facts), False)]


ENDED = [
    pytest.param("known", end_after("A(1)@3", "A(2)@9", "K(1)"), id="what a change brings stands at the next instant"),
    pytest.param("absent", end_after("A(1)@3", "A(2)@9", "K(1)"), id="absence is decided without it"),
    pytest.param("count", end_after("A(1)@3", "A(2)@9", "K(1)"), id="the first report has not counted it"),
    pytest.param("steps", end_after("A(1)@2 A(2)@3", "A(3)@9", "X(1)"), id="a window is reported once"),
]


@pytest.mark.parametrize(("kind", "steps"), ENDED)
def test_the_instant_of_the_watermark_has_the_background_from_before_a_change_if_the_streams_end_there(kind: str, steps: Steps) -> None:
    check(kind, steps, set(range(24)), set())


ENDLESS = "CONSTRUCT { ?s :X ?b } INTO STREAM :x FROM STREAM :x FROM STREAM <default> WHERE { { ?s :A ?b } UNION { ?s :X ?a BIND(?a + 1 AS ?b) FILTER(?a >= 7) } }"
READER = "SELECT * FROM STREAM :x WHERE { ?s :X ?a FILTER NOT EXISTS { ?s :Y ?y } }"
SEQ = "SELECT ?a ?b WHERE { { ?s :A ?a } SEQ { ?s :B ?b } }"
TWO = "SELECT ?a ?b FROM STREAM <default> FROM STREAM <other> WHERE { { ?s :A ?a } SEQ { ?s :B ?b } }"
FAILING = [
    pytest.param(
        0, {"endless": (ENDLESS, False, 0), "q": (READER, True, 0)}, ["default A(1)@1", "revise", "default A(2)@2", "default A(7)@3"], ["1"], ["q 5"],
        id="a rule fails ahead and in the settled network at one entry",
    ),
    pytest.param(
        6, {"endless": (ENDLESS, False, 0), "q": (READER, True, 0)}, ["default A(1)@1", "revise", "default B@2", "default A(7)@3", "default B@4"], ["1"], ["q 7"],
        id="a rule fails ahead after changes",
    ),
    pytest.param(
        2, {"q": (SEQ, True, 2)}, ["revise", "default A(1)@1 B(1)@2", "default A(2)@3 B(2)@4", "default A(3)@5", "default A(4)@6", "default B(5)@9"],
        ["1 1", "1 2", "2 2"], ["q 6"], id="ahead before the settled network",
    ),
    pytest.param(
        6, {"q": (TWO, True, 1), "other": (SEQ, True, 0)}, ["default A(1)@1", "revise", "other A(1)@1 A(2)@1", "other A(3)@4", "other A(4)@3", "default B(2)@5", "default B(3)@6"],
        ["1 2", "1 3"], ["q 6"], id="what is late concerns nobody any more",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("horizon", "queries", "sends", "told", "failed"), FAILING)
def test_a_failure_ahead_says_the_same_however_the_log_is_cut(
    horizon: int, queries: dict[str, tuple[str, bool, int]], sends: Sequence[str], told: list[str], failed: list[str]
) -> None:
    """A query's changes up to the entry at which it fails are told, and the first of its failures counts."""
    scenario = Scenario(RevisedStreams(horizon * SECOND))
    for name in ("default", "other") if horizon else ():
        scenario.add(SetStream, name, revisable=horizon * SECOND)
    for name, (text, revised, quota) in queries.items():
        scenario.add(Register, name, PREFIXES + text, emit=REVISED if revised else CERTAIN, max_goals=quota, max_derivations=20)
    for each in sends:
        stream, *feed = each.split()
        if feed:
            scenario.send(stream, [(occurrence(event), False) for event in feed])
        else:
            scenario.add(Revise)
    n, outcomes = len(scenario.log), list[tuple[list[dict[str, Any]], list[StateChange]]]()
    for cuts in (set(range(n)), set[int](), set(range(0, n, 2)), set(range(1, n, 3)), {n - len(sends) + 1}):
        engine = Engine()
        found = [engine.feed(part) for part in scenario.blocks(cuts)]
        rows = [row for each in found for row in each.solutions.to_pylist() if row["query"] in ("q", "other")]
        outcomes.append((rows, [change for each in found for change in each.changes if change.name != "endless"]))
    assert all(each == outcomes[0] for each in outcomes)
    rows, changes = outcomes[0]
    assert [" ".join(text.split('"')[1] for text in row["values"][1:] if '"' in text) for row in rows] == told
    assert [f"{change.name} {change.entry}" for change in changes] == failed
