"""The rows that came into each step of a plan and went out, as the plan of a running query shows them."""

from dataclasses import replace

import pytest

import epsparql
from engine.engine import Engine
from engine.explain import explain, match_counts, render_text
from engine.kernel.state import layout as c
from engine.messages import Drop
from engine.runtime.introspection import ChangedQueries
from tests.engine.runtime.test_engine import Log
from tests.support.feeds import PREFIXES, SECOND

PAIR = "{?s :A ?x} SEQ {?s :B ?y}"
COUNTED = [
    pytest.param(PAIR, "A(1)@1 A(2)@2 B(3)@3 C@4", ["SELECT (in: 2)", "SEQ (in: left 2, right 1; out: 2)", "scan (out: 2)", "scan (out: 1)"], id="all join"),
    pytest.param(PAIR, "A(1)@1 A(2)@2", ["SELECT (in: 0)", "SEQ (in: left 2; out: 0)", "scan (out: 2)", "scan (out: 0)"], id="one side is silent"),
    pytest.param(
        f"{PAIR} FILTER(?x > ?y)", "A(1)@1 A(2)@2 B(3)@3 B(0)@4",
        ["SELECT (in: 2)", "SEQ (in: left 2, right 2; refused: 2; out: 2)", "scan (out: 2)", "scan (out: 2)"], id="a join's filter",
    ),
    pytest.param(
        "{?s :A ?x FILTER(?x > 5)} SEQ {?s :B ?y}", "A(1)@1 A(2)@2 B(3)@3",
        ["SELECT (in: 0)", "SEQ (in: right 1; out: 0)", "filter (in: 2; refused: 2; out: 0)", "scan (out: 2)", "scan (out: 1)"], id="a filter of its own",
    ),
    pytest.param(
        "{ {?s :A ?x} UNION {?s :C ?x} } SEQ {?s :B ?y}", "A(1)@1 C(2)@2 B(3)@3",
        ["SELECT (in: 2)", "SEQ (in: left 2, right 1; out: 2)", "scan", "scan", "scan (out: 1)"], id="two scans of one side are not told apart",
    ),
    pytest.param(
        "{?s :A ?x} SEQ {?s :B ?y} WITHOUT {?s :D ?w}", "A(1)@1 D(1)@3 B(3)@4",
        ["SELECT (in: 0)", "SEQ ... WITHOUT (in: left 1, right 1, absent 1; out: 0)", "scan (out: 1)", "scan (out: 1)", "scan (out: 1)"], id="blocked",
    ),
    pytest.param(
        "{?s :A ?x} SEQ {?s :B ?y} WITHOUT {?s :D ?w}", "A(1)@1 D(1)@3 A(2)@4 B(3)@5",
        ["SELECT (in: 1)", "SEQ ... WITHOUT (in: left 2, right 1, absent 1; out: 1)", "scan (out: 2)", "scan (out: 1)", "scan (out: 1)"], id="one is blocked",
    ),
    pytest.param(
        "{?s :A ?x} BIND(STRLEN(STR(?x)) AS ?n)", "A(1)@1 A(2)@2",
        ["SELECT (in: 2)", "BIND (in: 2; out: 2)", "scan (out: 2)"], id="what waits for the host comes in once",
    ),
    pytest.param(
        "?s :A ?x . ?s :B ?y . ?s :C ?z", "A(1)@1 B(1)@2 C(1)@3 B(1)@4",
        ["SELECT (in: 2)", "AND (in: left 2, right 1; out: 2)", "AND (in: left 1, right 2; out: 2)", "scan (out: 1)", "scan (out: 2)", "scan (out: 1)"],
        id="joins of one kind",
    ),
]  # fmt: skip


def counted(log: Log, query: int, text: str) -> list[str]:
    """The steps of the plan with their rows: what the text of each has before its detail, and in its last brackets."""
    found = explain(epsparql.parse(PREFIXES + text).query)
    steps = replace(found, rows=match_counts(found.plan, log.engine.registry.progress(query)))
    lines = [line.lstrip(" │├└─") for line in render_text(steps).partition("\nplan\n")[2].partition("\npartition")[0].splitlines()]
    names = [step.operator for step in found.plan]
    return [
        name + (f" ({line.rpartition(' (')[2]}" if (line.endswith(")") and "out:" in line) or "(in:" in line else "")
        for name, line in zip(names, lines, strict=True)
    ]


@pytest.mark.parametrize(("pattern", "feed", "rows"), COUNTED)
def test_rows_in_and_out(pattern: str, feed: str, rows: list[str]) -> None:
    text = f"SELECT * WHERE {{ {pattern} }}"
    log = Log(Engine())
    query = log.register("q", text)
    log.send(feed)
    assert counted(log, query, text) == rows


def test_counts_go_with_a_snapshot() -> None:
    text = f"SELECT * WHERE {{ {PAIR} }}"
    log = Log(Engine())
    query = log.register("q", text)
    log.send("A(1)@1 A(2)@2 B(3)@3")
    restored = Log(Engine.restore(log.engine.snapshot()))
    assert restored.engine.registry.progress(query) == log.engine.registry.progress(query)


MATCHED = [
    pytest.param(PAIR, "A(1)@1 A(2)@2-3 B(3)@4 A(4)@5", ["1-1 0-0 s=s x=1", "2-3 0-0 s=s x=2", "5-5 0-0 s=s x=4"], id="left solutions stay"),
    pytest.param(f"{{ {PAIR} }} WITHIN 4", "A(1)@1 A(2)@2-3 A(3)@4-5 C@6", ["2-3 0-0 s=s x=2", "4-5 0-0 s=s x=3"], id="what is too old is none"),
    pytest.param(f"{{ {PAIR} }} WITHIN 4", "A(1)@1 C@5", ["1-1 0-0 s=s x=1"], id="what is just young enough"),
    pytest.param(
        "{?s :A ?x} SEQ {?s :B ?y} SEQ {?s :C ?z}", "A(1)@1 B(2)@2", ["1-1 0-0 s=s x=1", "1-2 0-1 s=s x=1 y=2"], id="the first two of three"
    ),
    pytest.param("{?s :A ?x} AND {?s :B ?y}", "B(1)@1 A(2)@1", ["1-1 0-0 s=s x=2", "1-1 1-1 s=s y=1"], id="both sides"),
    pytest.param("{?s :A ?x} SEQ {?s :B ?y} WITHOUT {?s :C ?z}", "A(1)@1 C(2)@2 A(3)@3", ["1-1 0-0 s=s x=1", "3-3 0-0 s=s x=3"], id="not what is absent"),
    pytest.param("{?s :A ?x} WITHOUT {?s :B ?y} FOR 'PT5S'^^xsd:duration", "A(1)@1 A(2)@2 B(3)@4", ["1-1 0-0 s=s x=1", "2-2 0-0 s=s x=2"], id="a timer"),
    pytest.param("{?s :A ?x} OPTIONAL {?s :B ?y}", "A(1)@1 B(2)@1", [], id="what may be missing waits for nothing"),
    pytest.param(PAIR, " ".join(f"A({k})@{k}" for k in range(25)), [f"{k}-{k} 0-0 s=s x={k}" for k in range(20)], id="the 20 oldest"),
    pytest.param(f"{PAIR} BIND(?x AS ?v) FILTER(?x > 1)", "A(1)@1 A(2)@2", ["2-2 0-0 s=s x=2"], id="those that satisfy a condition"),
]  # fmt: skip


def short(term: str) -> str:
    """Return what an IRI ends with, or a literal's value."""
    return term[1:-1].rpartition("/")[2] if term.startswith("<") else term[1:].partition('"')[0]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("pattern", "feed", "expected"), MATCHED)
def test_partial_matches(pattern: str, feed: str, expected: list[str], shared: bool) -> None:
    """They are the same where another query shares what keeps them."""
    log = Log(Engine())
    query = log.register("q", f"SELECT * WHERE {{ {pattern} }}")
    if shared:
        log.register("another", f"SELECT ?s WHERE {{ {pattern} }}")
    log.send(feed)
    found = [
        f"{each.start // SECOND}-{each.end // SECOND} {each.first}-{each.last} "
        + " ".join(f"{name}={short(term)}" for name, term in sorted(each.binding.items()))
        for each in log.engine.registry.partial_matches(query)
    ]
    assert found == expected


def test_which_queries_stand_otherwise() -> None:
    log = Log(Engine())
    keeps, passes, groups = (
        log.register("keeps", f"SELECT * WHERE {{ {PAIR} }}"),
        log.register("passes", "SELECT * WHERE { ?s :A ?x . FILTER(?x > 3) }"),
        log.register("groups", "SELECT ?s (COUNT(*) AS ?n) WHERE { ?s :C ?x } GROUP BY ?s"),
    )
    (member,) = log.engine.registry.members
    changed = ChangedQueries()
    assert changed.find_changed(member.network) == {keeps, passes, groups}, "all have come"
    assert changed.find_changed(member.network) == {groups}, "a collector may change by time alone"
    log.send("A(4)@1")
    assert changed.find_changed(member.network) == {keeps, passes, groups}
    log.send("D@2")
    assert changed.find_changed(member.network) == {keeps, groups}, "partial matches may grow too old"
    late = log.register("late", "SELECT * WHERE { ?s :E ?x }")
    assert changed.find_changed(member.network) == {keeps, groups, late}
    log.put(Drop(0, late, "late"))
    assert changed.find_changed(member.network) == {keeps, groups}


def test_what_an_operator_keeps() -> None:
    log = Log(Engine())
    query = log.register("q", f"SELECT (COUNT(*) AS ?n) WHERE {{ {PAIR} FILTER(?x > ?y) }} GROUP BY ?s")
    log.send("A(1)@1 A(9)@2 B(3)@3")
    states = {each.operator: each for each in log.engine.registry.progress(query)}
    join = states["SEQ"]
    assert join.on == ("?s",)
    assert [(side.side, side.goals, side.oldest, side.taken) for side in join.sides] == [("left", 2, SECOND, 2), ("right", 0, None, 1)]
    assert (join.given, join.refused, join.keeps, join.state_bytes) == (1, 1, True, 0)
    assert not states["out"].keeps
    log.send("A(1)@5")
    assert [each.kind for each in log.engine.registry.progress(query) if each.state_bytes > 0] == [c.COLLECT]
