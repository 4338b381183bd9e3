"""The engine finds nothing for what `check` says nothing can match, and something for its nearest neighbour that is
not named.
"""

from collections import Counter
from collections.abc import Callable

import pytest

import epsparql
from tests.support import feeds
from tests.support.run_both import Results, run_engine, run_oracle

PROLOGUE = "PREFIX : <http://example.org/>\nPREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
FEED = "a(s,1)@0-12 a(s,2)@1 b(s,3)@0-12 b(s,4)@2 b(s,5)@13-15 c(s,6)@0-20 a(t,7)@0 a(s,8)@4-6 b(s,9)@4-6 c(s,9)@4-6 b(s,9)@8-9"
LONG, SHORT = 'FILTER(getDURATION() >= "PT10S"^^xsd:duration)', 'FILTER(getDURATION() < "PT10S"^^xsd:duration)'
CASES = [
    pytest.param(f"{{ ?s :a ?x {LONG} }} SEQ {{ ?s :b ?y }} WITHIN 9", f"{{ ?s :a ?x {LONG} }} SEQ {{ ?s :b ?y }} WITHIN 15", id="WITHIN"),
    pytest.param(f"?s :a ?x {LONG} {SHORT}", f"?s :a ?x {LONG} FILTER(?x < 9)", id="two filters"),
    pytest.param(
        '?s :a ?x FILTER(getDURATION() > "PT10S"^^xsd:duration && "PT10S"^^xsd:duration >= getDURATION())',
        '?s :a ?x FILTER(getDURATION() > "PT10S"^^xsd:duration && "PT12S"^^xsd:duration >= getDURATION())',
        id="one filter",
    ),
    pytest.param(f"{{ ?s :a ?x {LONG} }} EQUALS {{ ?s :b ?y {SHORT} }}", f"{{ ?s :a ?x {LONG} }} EQUALS {{ ?s :b ?y {LONG} }}", id="EQUALS"),
    pytest.param(f"{{ ?s :a ?x {LONG} }} STARTS {{ ?s :c ?y {SHORT} }}", f"{{ ?s :a ?x {LONG} }} STARTS {{ ?s :c ?y {LONG} }}", id="STARTS"),
    pytest.param(f"{{ {{ ?s :a ?x }} WITHOUT {{ ?s :d ?y }} FOR 10 }} {SHORT}", f"{{ {{ ?s :a ?x }} WITHOUT {{ ?s :d ?y }} FOR 9 }} {SHORT}", id="FOR"),
    pytest.param(
        f"{{ ?s :a ?x {LONG} }} MEETS {{ ?s :b ?y {LONG} }} WITHIN 19", f"{{ ?s :a ?x {LONG} }} SEQ {{ ?s :b ?y }} WITHIN 19", id="both parts"
    ),
    pytest.param("?s :a ?x MINUS { ?s :a ?x }", "?s :a ?x MINUS { ?s :c ?x }", id="MINUS"),
    pytest.param("?s :a ?x ; :b ?y FILTER NOT EXISTS { ?s :b ?y }", "?s :a ?x ; :b ?y FILTER NOT EXISTS { ?s :b ?x }", id="NOT EXISTS"),
    pytest.param(
        "{ ?s :a ?x } SEQ { ?s :b ?y } FILTER NOT EXISTS { ?s :a ?x }", "{ ?s :a ?x } SEQ { ?s :b ?y } FILTER NOT EXISTS { ?s :c ?x }", id="of a chain"
    ),
]  # fmt: skip
Run = Callable[..., Results]
SILENT = [
    pytest.param(f"{{ ?s :a ?x {LONG} }} EQUALS {{ {{ ?s :b ?y }} WITHIN 5 }}", id="a timeless solution may pass WITHIN"),
    pytest.param(f"{{ ?s :a ?x {LONG} }} UNION {{ ?s :b ?x }} WITHIN 5", id="one side of UNION"),
    pytest.param(f"?s :c ?z OPTIONAL {{ ?s :a ?x {LONG} {SHORT} }}", id="an optional group"),
    pytest.param("{ ?s :a ?x } UNION { ?s :b ?x } MINUS { ?s :a ?x }", id="MINUS of one side"),
    pytest.param("{ ?s :a ?x } SEQ { ?s :b ?y } WITHOUT { ?s :a ?x }", id="WITHOUT is about others"),
]


def doubts(pattern: str) -> list[str]:
    query = f"{PROLOGUE}SELECT * WHERE {{ {pattern} }}"
    return [query[doubt.span.start : doubt.span.end] for doubt in epsparql.parse(query).warnings if doubt.code == "never-matches" and doubt.span]


def count_solutions(pattern: str, run: Run) -> int:
    rows = run({"q": f"{PROLOGUE}SELECT * WHERE {{ {pattern} }}"}, {"default": feeds.parse_feed(FEED)})["q"]
    return rows.total() if isinstance(rows, Counter) else len(rows)


@pytest.mark.parametrize("run", [run_engine, run_oracle])
@pytest.mark.parametrize(("impossible", "near"), CASES)
def test_what_nothing_matches(run: Run, impossible: str, near: str) -> None:
    assert len(doubts(impossible)) == 1
    assert count_solutions(impossible, run) == 0
    assert doubts(near) == []
    assert count_solutions(near, run) > 0


@pytest.mark.parametrize("pattern", SILENT)
def test_what_may_match_is_not_named(pattern: str) -> None:
    assert doubts(pattern) == []
