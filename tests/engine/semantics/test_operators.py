"""Cases of one kind each that the engine and the reference evaluator answer alike, with the number of solutions
worked out by hand.
"""

import pytest

from epsparql.solutions.policies import CHRONOLOGICAL, RECENT
from tests.reference.evaluator import Settings
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
    pytest.param("EXISTS { ?x :B ?y MINUS { ?x :A ?o } }", 2, id="MINUS of one outer value"),
    pytest.param("NOT EXISTS { ?x :B ?y MINUS { ?x :A ?z . ?o :C ?y } }", 1, id="MINUS of one outer value, negated"),
    pytest.param("EXISTS { ?s :B ?x OPTIONAL { ?o :C ?z } FILTER(!BOUND(?z)) }", 2, id="OPTIONAL of one outer value"),
    pytest.param("EXISTS { ?s :B ?x OPTIONAL { ?s :B ?z FILTER(?z > ?o) } FILTER(!BOUND(?z)) }", 1, id="OPTIONAL whose FILTER is outer"),
    pytest.param("EXISTS { ?s :B ?x FILTER(BOUND(?z) && ?z = ?o) OPTIONAL { ?o :C ?z } }", 1, id="OPTIONAL before an outer FILTER"),
    pytest.param("EXISTS { { ?s :B ?x OPTIONAL { ?o :C ?z } } UNION { ?s :D ?x } }", 3, id="OPTIONAL in a UNION"),
    pytest.param("EXISTS { { ?s :C ?x } OPTIONALSEQ { ?s :B ?y } FILTER(!BOUND(?x)) }", 3, id="OPTIONALSEQ"),
    pytest.param("EXISTS { { ?s :B ?y } EQUALSOPTIONAL { ?o :C ?z } FILTER(!BOUND(?z)) }", 2, id="EQUALSOPTIONAL of one outer value"),
]


@pytest.mark.parametrize(("condition", "count"), CORRELATED)
def test_exists_that_looks_at_the_outer_solution(condition: str, count: int) -> None:
    assert agree({"q": f"SELECT * {{ ?s :A ?o FILTER {condition} }}"}, READINGS) == {"q": count}


@pytest.mark.parametrize("condition", ["?x + ?y < 1", "(?x + ?y) * ?z < 2", "?z * (?x + ?y) < 2", "?x * ?z = 1", "?z - ?y > 1.5"])
def test_what_floating_point_rounds_is_compared_exactly(condition: str) -> None:
    text = f"SELECT * {{ VALUES (?x ?y ?z) {{ (0.5 0.49999999999999999 2) }} ?s :A ?o FILTER({condition}) }}"
    assert agree({"q": text}, "A(s,1)@1") == {"q": 1}


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


ERRORS = [
    pytest.param("?a > 1 && ?z > 0", 0, id="true and an error"),
    pytest.param("?z > 0 && ?a > 1", 0, id="an error and true"),
    pytest.param("!(?a > 1 && ?z > 0)", 1, id="not: false and an error"),
    pytest.param("!(?z > 0 && ?a > 1)", 1, id="not: an error and false"),
    pytest.param("?a > 1 || ?z > 0", 2, id="true or an error"),
    pytest.param("!(?a > 1 || ?z > 0)", 0, id="not: false or an error"),
    pytest.param("!(?z > 0 || ?a > 1)", 0, id="not: an error or false"),
]


@pytest.mark.parametrize(("condition", "count"), ERRORS)
def test_errors_in_filters(condition: str, count: int) -> None:
    assert agree({"q": f"SELECT * {{ ?s :A ?a OPTIONAL {{ ?s :Z ?z }} FILTER({condition}) }}"}, READINGS) == {"q": count}


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


def two_graphs(one: str, other: str) -> str:
    return f"{{ GRAPH {one} {{ ?s :K ?u }} }} UNION {{ GRAPH {other} {{ ?s :K ?u }} }}"


SAME, TWO = two_graphs(":g", ":g"), two_graphs(":g", ":h")
IN_TWO_GRAPHS = [
    pytest.param(f"SELECT * {{ {SAME} }}", 3, id="one graph twice"),
    pytest.param(f"SELECT * {{ {TWO} }}", 3, id="two graphs"),
    pytest.param(f"SELECT * {{ {two_graphs('?g', '?g')} }}", 4, id="a variable"),
    pytest.param(f"SELECT * {{ {two_graphs(':g', '?g')} }}", 7, id="a variable tells apart"),
    pytest.param(f"SELECT * {{ GRAPH ?g {{ {TWO} }} }}", 12, id="GRAPH inside GRAPH"),
    pytest.param(f"SELECT * {{ {two_graphs('?g', '?h')} }} ", 8, id="two variables"),
    pytest.param(f"SELECT ?u {{ {{ SELECT DISTINCT ?u {{ {two_graphs('?g', '?h')} }} }} }}", 3, id="DISTINCT"),
    pytest.param(f"SELECT ?u {{ {{ SELECT ?u {{ {TWO} }} }} }}", 3, id="a sub-SELECT"),
    pytest.param("SELECT ?u { { SELECT ?u { GRAPH ?g { ?s :K ?u } } } }", 4, id="a sub-SELECT that hides the name"),
    pytest.param(f"SELECT * {{ {{ ?t :A ?a }} OPTIONAL {{ {TWO} }} }}", 2, id="OPTIONAL"),
    pytest.param(f"SELECT * {{ {{ {TWO} }} OPTIONAL {{ ?t :A ?a }} }}", 3, id="before OPTIONAL"),
    pytest.param(f"SELECT * {{ {{ {TWO} }} MINUS {{ ?s :A ?u }} }}", 3, id="before MINUS"),
    pytest.param(f"SELECT * {{ {TWO} FILTER NOT EXISTS {{ ?s :A ?u }} }}", 3, id="before NOT EXISTS"),
    pytest.param(f"SELECT * {{ {{ {TWO} }} SEQ {{ ?t :A ?a }} }}", 2, id="SEQ"),
    pytest.param(f"SELECT * {{ {{ {TWO} }} WITHOUT {{ ?s :Z ?z }} FOR 2 }}", 3, id="WITHOUT FOR"),
    pytest.param(f"SELECT * {{ {TWO} VALUES ?u {{ 1 }} }}", 1, id="VALUES"),
    pytest.param(f"SELECT * {{ {TWO} }} LIMIT 2", 2, id="LIMIT"),
    pytest.param(f"SELECT * {{ {TWO} BIND(?u + 1 AS ?v) }}", 3, id="BIND"),
    pytest.param(f"SELECT (COUNT(*) AS ?n) {{ {TWO} }} GROUP BY ?u HAVING (COUNT(*) > 1)", 0, id="COUNT"),
    pytest.param(f"SELECT (SUM(?u) AS ?n) {{ {TWO} }} WINDOW [ROWS 2]", 3, id="a window of rows"),
    pytest.param("SELECT * { { GRAPH :g { } } UNION { GRAPH :h { } } UNION { GRAPH :i { } } }", 3, id="empty groups"),
    pytest.param("SELECT * { { GRAPH :g { VALUES ?x { 1 } } } UNION { GRAPH :h { BIND(1 AS ?x) } } }", 4, id="timeless ones of event graphs"),
    pytest.param("SELECT * { { GRAPH :g { ?s :K+ ?u } } UNION { GRAPH :h { ?s :K+ ?u } } }", 3, id="paths"),
    pytest.param("SELECT * { { GRAPH :i { ?s :B ?b } } UNION { GRAPH :j { ?s :B ?b } } }", 1, id="of the background"),
]


@pytest.mark.parametrize(("query", "count"), IN_TWO_GRAPHS)
def test_the_graphs_name_tells_no_solutions_apart_that_are_equal(query: str, count: int) -> None:
    assert agree({"q": query}, "g/K(1)@1 h/K(1)@1 g/K(2)@2 A@3 g/K(3)@5", "i/B(1) j/B(1)") == {"q": count}


# ---------------------------------------------------------------- all short intervals at once
SPANS = [f"{start}-{end}" for end in range(1, 5) for start in range(1, end + 1)]
DENSE = " ".join(
    f"A(s,{k % 3})@{span} B(s,{k % 3 + 1})@{span}" + (f" B(t,{k % 2})@{span} C(s,{k % 2})@{span}" if k % 3 == 0 else "")
    for k, span in enumerate(SPANS)
)
KNOWN = "K(s,1) K(t,2) L(s,2)"
A, B, C, K = "{ ?s :A ?a }", "{ ?s :B ?b }", "{ ?s :C ?c }", "{ ?s :K ?k }"
RELATIONS = ("SEQ", "AND", "EQUALS", "MEETS", "DURING", "STARTS", "FINISHES", "OVERLAPS", "PAR")
PATTERNS = (
    *(f"{A} {relation} {B}" for relation in RELATIONS),
    *(f"{A} {relation} {B} WITHIN 3" for relation in RELATIONS),
    *(f"{A} {relation} {{ ?t :B ?b }} FILTER(?b > ?a)" for relation in RELATIONS[:4]),
    *(f"{A} {relation} {{ {B} SEQ {C} }}" for relation in RELATIONS),
    *(f"{A} {relation} {B} WITHOUT {C}" for relation in ("SEQ", "AND")),
    *(f"{A} {relation} {B} WITHIN 2 WITHOUT {{ ?t :C ?a }}" for relation in ("SEQ", "AND")),
    *(f"{A} {optional} {{ ?s :B ?b FILTER(?b > 1) }}" for optional in ("OPTIONAL", "OPTIONALSEQ", "EQUALSOPTIONAL")),
    *(f"{{ {A} {optional} {B} }} SEQ {C}" for optional in ("OPTIONAL", "OPTIONALSEQ", "EQUALSOPTIONAL")),
    *(f"{A} {optional} {{ {B} AND {C} WITHIN 2 }}" for optional in ("OPTIONAL", "OPTIONALSEQ", "EQUALSOPTIONAL")),
    *(f"{A} {optional} {K}" for optional in ("OPTIONAL", "OPTIONALSEQ", "EQUALSOPTIONAL")),
    *(f"{K} {optional} {{ ?s :A ?k }}" for optional in ("OPTIONAL", "OPTIONALSEQ", "EQUALSOPTIONAL", "MINUS")),
    f"{A} MINUS {{ ?s :K ?a }}",
    f"{B} MINUS {{ ?s :A ?b }}",
    f"{{ {A} SEQ {B} }} MINUS {{ ?s :C ?a . ?s :K ?b }}",
    f"{B} FILTER EXISTS {{ ?s :A ?b }}",
    f"{B} FILTER NOT EXISTS {{ ?s :A ?x FILTER(?x >= ?b) }}",
    f"{B} FILTER(?b = 3 || EXISTS {{ ?s :C ?b . ?s :K ?k }})",
    f"{B} FILTER EXISTS {{ ?s :A ?x FILTER NOT EXISTS {{ ?s :C ?y FILTER(?y = ?x) }} }}",
    f"{B} FILTER NOT EXISTS {{ ?s :K ?k . ?s :L ?l FILTER NOT EXISTS {{ ?s :A ?x FILTER(?x + ?k = ?b) }} }}",
    f"{A} WITHOUT {B} FOR 2",
    f"{{ {A} SEQ {B} }} WITHOUT {{ ?s :C ?a }} FOR 1",
    "?s :A ?a . ?s :B ?a . ?s :C ?c",
    "?s :A ?a . ?s :K ?k . ?s :B ?k . ?s :C ?c",
    f"{A} SEQ {{ {B} AND {C} }} WITHIN 3",
    f"{{ {A} UNION {B} }} SEQ {{ {B} UNION {C} }}",
    f"{{ SELECT DISTINCT ?s WHERE {{ {A} SEQ {B} }} }} AND {C}",
    "{ SELECT ?s (COUNT(*) AS ?n) WHERE { { ?s :A ?a } SEQ { ?s :B ?b } } GROUP BY ?s } FILTER(?n > 2)",
    "?s ?p ?a . ?s :C ?a",
    "{ :s :A ?a } SEQ { ?s :B 2 }",
    "{ :t ?p ?b } AND { ?s :A 1 }",
    "{ :t :B ?b } SEQ { :s ?p 1 }",
    f"{A} BIND(?a * 2 - 1 AS ?d) FILTER(?d > 0 && getDURATION() < 'PT3S'^^xsd:duration)",
)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_all_short_intervals_at_once(pattern: str) -> None:
    """Each interval between four instants meets each other one, in one feed; the definition says what comes."""
    assert agree({"q": f"SELECT * {{ {pattern} }}"}, DENSE, KNOWN)["q"] > 0


@pytest.mark.parametrize("policy", [RECENT, CHRONOLOGICAL])
@pytest.mark.parametrize("relation", RELATIONS)
def test_policies_over_all_short_intervals(relation: str, policy: str) -> None:
    for tail in ("", " WITHIN 3"):
        texts = {
            "q": PROLOGUE + f"SELECT * {{ {{ {A} {relation} {B} }} SEQ {C}{tail} }}",
            "pairs": PROLOGUE + f"SELECT * {{ {A} {relation} {B}{tail} }}",
        }
        chosen, fed = dict.fromkeys(texts, Settings(policy)), {"default": parse_feed(DENSE)}
        found = run_engine(texts, fed, settings=chosen)
        assert found == run_oracle(texts, fed, settings=chosen)
        assert found["pairs"] or relation != "SEQ"
