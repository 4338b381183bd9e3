"""The rows that came into each step of a plan and went out, as the plan of a running query shows them."""

from dataclasses import replace

import pytest

import epsparql
from engine.engine import Engine
from engine.explain import explain, match_counts, render_text
from tests.engine.runtime.test_engine import Log
from tests.support.feeds import PREFIXES

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
    steps = replace(found, rows=match_counts(found.plan, log.engine.progress(query)))
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
    assert restored.engine.progress(query) == log.engine.progress(query)
