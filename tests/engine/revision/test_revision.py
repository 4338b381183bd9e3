"""Revised queries against the reference evaluator: after all revisions the set that stands is the one that a replay of what remained gives."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

import epsparql
from engine.engine import Engine
from engine.messages import CERTAIN, OCCURRENCES, REVISED, Block, Entry, Events, Finish, Register, Revise, SetStream, StateChange
from tests.engine.revision.revised_streams import RevisedStreams
from tests.support.feeds import PREFIXES, SECOND, occurrence
from tests.support.run_both import block, results
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
}


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


def check(kind: str, sends: Sequence[tuple[str, Sequence[tuple[Occurrence, bool]], bool]], cuts: set[int], restores: set[int]) -> None:
    text, *rules = (PREFIXES + each for each in QUERIES[kind])
    scenario = Scenario(RevisedStreams(H))
    for name in ("default", "other"):
        scenario.add(SetStream, name, revisable=H)
    for k, rule in enumerate(rules):
        scenario.add(Register, f"rule{k}", rule)
    scenario.add(Register, "q", text, emit=REVISED)
    scenario.add(Register, "certain", text)
    if kind in ACCOMPANIED:
        scenario.add(Register, "beside", PREFIXES + BESIDE, emit=REVISED)
    expected: dict[int, tuple[Counter[Any], int | None]] = {}
    parsed = {name: epsparql.parse(each).query for name, each in (("q", text), *((f"rule{k}", rule) for k, rule in enumerate(rules)))}
    gate = {"default", "other"} if kind == "both" else {"default"}
    for stream, sent, revise in sends:
        scenario.send(stream, sent)
        if revise:
            scenario.add(Revise)
            latest = scenario.streams.latest
            before = min(latest[name] for name in latest.keys() & gate) if latest.keys() & gate else -(1 << 62)
            ready = gate <= latest.keys() and before > -(1 << 62)
            expected[len(scenario.log)] = (scenario.streams.standing(parsed, "q", before) if ready else Counter(), before if ready else None)
    for name in ("default", "other"):
        scenario.add(Finish, name)
    scenario.add(Revise)
    expected[len(scenario.log)] = scenario.streams.standing(parsed, "q"), None
    engine, reader, beside, certain = Engine(), Reader(), Reader(), list[tuple[str, int, int, int, tuple[str | None, ...]]]()
    for number, part in enumerate(scenario.blocks(cuts | expected.keys())):
        if number in restores:
            engine = Engine.restore(engine.snapshot())
        outcome = engine.feed(part)
        assert not outcome.changes, outcome.changes
        rows = outcome.solutions
        for row in rows.set_column(3, "start", rows["start"].cast(pa.int64())).set_column(4, "end", rows["end"].cast(pa.int64())).to_pylist():
            if row["query"] in ("q", "beside"):
                (reader if row["query"] == "q" else beside).read(row)
            elif row["query"] == "certain":
                certain.append(("q", 0, row["start"], row["end"], tuple(row["values"])))
        if part.after in expected:
            rows_expected, limit = expected[part.after]
            assert reader.rows(text, limit) == rows_expected
    assert Counter(results({"q": text}, certain)["q"]) == rows_expected, "what is certain is the same"
    if kind in ACCOMPANIED:
        assert beside.rows(PREFIXES + BESIDE, None) == scenario.streams.standing({"q": epsparql.parse(PREFIXES + BESIDE).query}, "q")


def place(sends: Sequence[tuple[str, Sequence[tuple[str, str, int, bool]], bool]]) -> list[tuple[str, list[tuple[Occurrence, bool]], bool]]:
    """Return bodies of occurrences that end so many seconds before their body's time, which goes on by two seconds from one body to the next."""
    return [
        (stream, [(occurrence(f"{name}({value})@{max(2 * k + 1 - back, 1)}"), taken) for name, value, back, taken in sent], revise)
        for k, (stream, sent, revise) in enumerate(sends)
    ]


def list_sends(stream: Sequence[str], back: st.SearchStrategy[int], bodies: int) -> st.SearchStrategy[Any]:
    occurrences = st.tuples(st.sampled_from("AB"), st.sampled_from("123"), back, st.sampled_from((False, False, True)))
    body = st.lists(occurrences, min_size=1, max_size=4)
    return st.lists(st.tuples(st.sampled_from(stream), body, st.booleans()), min_size=1, max_size=bodies).map(place)


BOUNDED = ("chain", "close", "group", "near", "within")
"""These look back for a bounded time, so a change of the past has only its neighbourhood read again."""
PLACES = st.sets(st.integers(0, 24), max_size=6)
CASES = given(
    st.one_of(
        st.tuples(st.sampled_from(sorted(QUERIES)), list_sends(("default", "default", "other"), st.integers(-6, 12), 10)),
        st.tuples(st.sampled_from(BOUNDED), list_sends(("default",), st.sampled_from((0, 0, 1, 4, 5, 6)), 16)),
    ),
    PLACES,
    PLACES,
)
QUIET = settings(deadline=None, suppress_health_check=list(HealthCheck))
Sends = list[tuple[str, list[tuple[Occurrence, bool]], bool]]


@pytest.mark.slow
@settings(QUIET, max_examples=300)
@CASES
def test_after_all_revisions_the_standing_set_is_that_of_a_replay(case: tuple[str, Sends], cuts: set[int], restores: set[int]) -> None:
    check(*case, cuts, restores)


@pytest.mark.soak
@settings(QUIET, max_examples=10_000)
@CASES
def test_many_logs_are_revised_to_what_a_replay_gives(case: tuple[str, Sends], cuts: set[int], restores: set[int]) -> None:
    check(*case, cuts, restores)


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
