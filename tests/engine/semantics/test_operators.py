"""Cases of one kind each that the engine and the reference evaluator answer alike, with the number of solutions worked out by hand."""

import pytest

from tests.support.feeds import parse_facts, parse_feed
from tests.support.query_strategies import PROLOGUE
from tests.support.run_both import run_engine, run_oracle

Queries = dict[str, str]


def agree(queries: Queries, feed: str, facts: str = "") -> dict[str, int]:
    """The number of solutions of each query, on which both agree."""
    texts = {name: PROLOGUE + text for name, text in queries.items()}
    fed, background = {"default": parse_feed(feed)}, parse_facts(facts)
    found = run_engine(texts, fed, background)
    assert found == run_oracle(texts, fed, background)
    return {name: sum(rows.values()) if isinstance(rows, dict) else len(rows) for name, rows in found.items()}


READINGS = "A(s,1)@1 B(s,2)@1 B(s,3)@2 A(s,2)@2 A(t,4)@3 B(t,5)@3 C(1,2)@1 C(2,2)@2"
CORRELATED = [
    pytest.param("EXISTS { BIND(?o + 1 AS ?z) ?s :B ?z }", 3, id="BIND"),
    pytest.param("NOT EXISTS { BIND(?o + 1 AS ?z) ?s :B ?z }", 0, id="BIND, negated"),
    pytest.param("EXISTS { ?s :B ?x MINUS { ?s :A ?z FILTER(?o > ?z) } }", 3, id="MINUS that shares nothing once ?s is a term"),
    pytest.param("EXISTS { ?x :B ?y MINUS { ?x :A ?z FILTER(?o > ?z) } }", 2, id="MINUS that shares ?x"),
    pytest.param("EXISTS { { ?s :A ?x FILTER(?o >= ?x) } SEQ { ?s :B ?y } }", 1, id="inside SEQ"),
    pytest.param("EXISTS { ?s :B ?x OPTIONAL { ?x :C ?y FILTER(?o = 1) } }", 3, id="OPTIONAL decides nothing"),
    pytest.param("(EXISTS { ?s :B ?x FILTER(?x > ?o) } || ?o = 4)", 3, id="in a larger expression"),
    pytest.param("EXISTS { ?s :B ?x FILTER NOT EXISTS { ?s :A ?w FILTER(?w > ?o && ?w < ?x) } }", 3, id="nested"),
    pytest.param("EXISTS { ?s :B ?b . BIND(?o AS ?z) FILTER(?z < ?b) }", 3, id="BIND and FILTER"),
    pytest.param("EXISTS { BIND(?o AS ?z) FILTER(?z > 3 && BOUND(?z)) }", 1, id="BIND alone"),
    pytest.param("EXISTS { { ?s :B ?x FILTER(?x > ?o) } UNION { ?s :C ?o } }", 3, id="UNION"),
]


@pytest.mark.parametrize(("condition", "count"), CORRELATED)
def test_exists_that_looks_at_the_outer_solution(condition: str, count: int) -> None:
    assert agree({"q": f"SELECT * {{ ?s :A ?o FILTER {condition} }}"}, READINGS) == {"q": count}


LATER = "CONSTRUCT { ?s :X ?a } INTO STREAM :x { { ?s :A ?a } WITHOUT { ?s :B ?b } FOR 'PT4S'^^xsd:duration }"
ENDS = [
    pytest.param(
        {"q": "ASK { ?s :A 4 }", "o": "SELECT * { { ?s :A ?a } WITHOUT { ?s :B ?b } FOR 'PT100S'^^xsd:duration }"}, 1, id="ASK beside a timer"
    ),
    pytest.param(
        {"r": LATER, "q": "SELECT * FROM STREAM :x { { ?s :X ?a } WITHOUT { ?s :C ?b } FOR 'PT3S'^^xsd:duration }"}, 0, id="timer of a timer"
    ),
    pytest.param(
        {"r": LATER, "q": "SELECT (COUNT(*) AS ?n) FROM STREAM :x { ?s :X ?a } GROUP BY ?s WINDOW [RANGE PT6S STEP PT2S]"}, 0, id="window of a timer"
    ),
    pytest.param({"r": LATER, "q": "ASK FROM STREAM :x { ?s :X 9 }"}, 1, id="ASK of a timer's stream"),
]


@pytest.mark.parametrize(("queries", "count"), ENDS)
def test_what_timers_bring_after_the_end_schedules_nothing(queries: Queries, count: int) -> None:
    assert agree(queries, "A(s,1)@1 A(s,3)@2")["q"] == count


VALUES = [
    pytest.param("VALUES ?a { 1 2 } ?s :A ?a", 2, id="rows choose"),
    pytest.param("{ ?s :A ?a } SEQ { VALUES ?b { 1 } }", 3, id="a timeless right operand comes after everything"),
    pytest.param("{ VALUES ?b { 1 } } SEQ { ?s :A ?a }", 3, id="a timeless left operand comes before everything"),
    pytest.param("{ VALUES ?b { 1 1 } ?s :A ?b }", 2, id="equal rows stay apart"),
]


@pytest.mark.parametrize(("body", "count"), VALUES)
def test_values_beside_a_stream(body: str, count: int) -> None:
    assert agree({"q": f"SELECT * {{ {body} }}"}, READINGS) == {"q": count}


HIDDEN = [
    pytest.param("SELECT (COUNT(DISTINCT *) AS ?m) { { SELECT ?s { ?s :A ?x } } }", "A(1)@1 A(2)@1", id="COUNT(DISTINCT *)"),
    pytest.param("SELECT (SAMPLE(?b) AS ?m) { { SELECT ?b { ?b :A ?a } } }", "A(z,1)@1 A(y,2)@1", id="SAMPLE"),
    pytest.param(
        "SELECT (GROUP_CONCAT(?k) AS ?m) { { SELECT (COUNT(DISTINCT *) AS ?k) { ?b :A ?c } GROUP BY ?b } }",
        "A(z,1)@1 A(y,2)@1 A(y,3)@1",
        id="GROUP_CONCAT",
    ),
]


@pytest.mark.parametrize(("query", "feed"), HIDDEN)
def test_what_a_sub_select_hides_is_not_seen_by_the_group_around_it(query: str, feed: str) -> None:
    assert agree({"q": query}, feed) == {"q": 1}
