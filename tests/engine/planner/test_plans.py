"""Plans, reaches and partition keys, word for word: tests/golden/plans.txt, which `python -m
tests.engine.planner.plan_text` writes anew.

A plan that changes refuses the snapshots that hold its state, so that each server reads its log again. A key that
changes lets state lie elsewhere. That a plan finds what its query means is the affair of the tests of the semantics.
"""

import pytest

from engine.planner.reach import Asked, find_reaches
from engine.rewrite import rewrite_query
from epsparql import algebra as a
from epsparql import parse
from tests.engine.planner.plan_text import show_query
from tests.epsparql.golden import Block, blocks

PLANS = blocks("plans.txt")


@pytest.mark.parametrize("block", [pytest.param(block, id=block.title) for block in PLANS])
def test_plan(block: Block) -> None:
    assert show_query(block.query) == block.answer


def test_titles_are_unique() -> None:
    assert len({block.title for block in PLANS}) == len(PLANS)


# ---------------------------------------------------------------- how far queries look back through rules
RULES = {
    "point": "CONSTRUCT { ?s :p ?x } INTO STREAM <p> { ?s :a ?x }",
    "pair": "CONSTRUCT { ?s :q ?x } INTO STREAM <q> FROM STREAM <p> FROM STREAM <default> { { { ?s :p ?x } SEQ { ?s :b ?y } } WITHIN 5 }",
    "far": "CONSTRUCT { ?s :q ?x } INTO STREAM <q> { ?s :a ?x OPTIONAL { ?s :b ?y FILTER(getDURATION() <= 'PT6S'^^xsd:duration) } }",
    "farther": "CONSTRUCT { ?s :q ?x } INTO STREAM <q> { ?s :a ?x OPTIONAL { ?s :b ?y FILTER(getDURATION() <= 'PT8S'^^xsd:duration) } }",
    "ever": "CONSTRUCT { ?s :q ?x } INTO STREAM <q> { { ?s :a ?x } SEQ { ?s :b ?y } }",
    "loop": "CONSTRUCT { ?s :r ?x } INTO STREAM <r> FROM STREAM <r> FROM STREAM <default> { { { ?s :r ?x } SEQ { ?s :b ?y } } WITHIN 3 }",
    "copy": "CONSTRUCT { ?s :r ?x } INTO STREAM <r> FROM STREAM <r> FROM STREAM <default> { ?s :r ?x }",
    "there": "CONSTRUCT { ?s :v ?x } INTO STREAM <v> FROM STREAM <w> FROM STREAM <default> { ?s :w ?x }",
    "back": "CONSTRUCT { ?s :w ?x } INTO STREAM <w> FROM STREAM <v> { { ?s :v ?x } WITHIN 4 }",
    "grows": "CONSTRUCT { ?s :r ?x } INTO STREAM <r> FROM STREAM <r> { ?s :r ?x OPTIONAL { ?s :b ?y FILTER(getDURATION() <= 'PT6S'^^xsd:duration) } }",
    "opens": "CONSTRUCT { :k :o ?x } INTO STREAM <o> { VALUES ?x { 1 } }",
    "read p": "SELECT * FROM STREAM <p> { ?s :p ?x }",
    "read q": "SELECT * FROM STREAM <q> FROM STREAM <default> { { { ?s :q ?x } SEQ { ?s :c ?y } } WITHIN 7 }",
    "any q": "SELECT * FROM STREAM <q> { ?s :q ?x }",
    "read r": "SELECT * FROM STREAM <r> { ?s :r ?x }",
    "read v": "SELECT * FROM STREAM <v> { ?s :v ?x }",
    "read o": "SELECT * FROM STREAM <o> { ?s :o ?x }",
    "timed": "SELECT * { { { { ?s :a ?x OPTIONAL { ?s :b ?y FILTER(getDURATION() <= 'PT6S'^^xsd:duration) } } WITHOUT { ?s :c ?z } FOR 4 } SEQ { ?s :d ?w } } WITHIN 9 }",
    "windows": "SELECT ?x FROM NAMED WINDOW :w ON <q> [RANGE PT10S STEP PT5S] { WINDOW :w { ?s :q ?x } }",
}
BY_RULE = "a rule that writes a stream of it, whose own reach has no bound"
JOIN = "a join, whose sides may lie any time apart: WITHIN bounds that"
THROUGH = [
    pytest.param({"point": 0, "read p": 0}, id="a rule of one triple"),
    pytest.param({"pair": 5, "point": 0, "read q": 7}, id="what is derived lasts as long as what it rests on"),
    pytest.param({"far": 6, "read q": 13}, id="what lies before what is derived adds up"),
    pytest.param({"far": 6, "farther": 8, "pair": 5, "read q": 15}, id="the widest of several rules"),
    pytest.param({"read q": 7}, id="no rule"),
    pytest.param({"ever": JOIN, "read q": 7, "any q": BY_RULE}, id="a rule without a bound"),
    pytest.param({"far": 6, "windows": 26}, id="a window of what a rule writes"),
    pytest.param({"loop": 3, "read r": 3}, id="a rule that feeds itself in a window"),
    pytest.param({"grows": BY_RULE, "read r": BY_RULE}, id="a rule that feeds itself from further and further back"),
    pytest.param({"grows": BY_RULE, "point": 0, "far": 6, "read p": 0, "read q": 13}, id="beside such a rule another one has its bound"),
    pytest.param({"timed": 15}, id="what lies before a solution that a timer decides on"),
    pytest.param({"copy": 0, "read r": 0}, id="a rule that copies what it writes"),
    pytest.param({"there": 0, "back": 0, "read v": 0}, id="rules that hand on to each other"),
    pytest.param({"opens": 0, "read o": BY_RULE}, id="a rule whose first solution depends on where it begins"),
]  # fmt: skip


@pytest.mark.parametrize("expected", THROUGH)
def test_reach_through_rules(expected: dict[str, int | str]) -> None:
    asked = []
    for name in expected:
        query = rewrite_query(parse(f"PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> {RULES[name]}").query)
        assert not isinstance(query, a.BackgroundRule)
        asked.append(Asked(query))
    found = find_reaches(asked, lambda *_: False)
    told = {name: each.reason if each.micros is None else each.micros // 1_000_000 for name, each in zip(expected, found, strict=True)}
    assert told == expected
