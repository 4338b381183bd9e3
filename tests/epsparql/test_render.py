"""The canonical text of a query means the query."""

import pytest
from hypothesis import given, settings

from epsparql import algebra as a
from epsparql import parse, render
from epsparql.literals import MAX_LENGTH
from epsparql.trees import tree_depth
from tests.epsparql.algebra_strategies import canonical, queries
from tests.epsparql.builders import PROLOGUE, SHARED
from tests.epsparql.parser import fuzz_texts
from tests.soak import examples

CASES = sorted((SHARED / "conformance" / "random").glob("*/query.rq"))


@settings(max_examples=examples(300))
@given(queries)
def test_parse_gives_back_what_was_rendered(query: a.Query) -> None:
    text = render(query)
    found = parse(text).query
    assert canonical(found) == canonical(query)
    assert parse(render(found)).query == found


@pytest.mark.skipif(not CASES, reason="the conformance cases are not beside the project")
def test_conformance_queries_round_trip() -> None:
    for case in CASES:
        query = parse(case.read_text()).query
        assert parse(render(query)).query == query, case


@pytest.mark.parametrize("text", [text for text in fuzz_texts.VALID if "SERVICE" not in text])
def test_every_construct_round_trips(text: str) -> None:
    query = parse(PROLOGUE + text).query
    assert parse(render(query)).query == query


RENDERED = [
    pytest.param("SELECT * {}", "SELECT * WHERE {}", id="nothing"),
    pytest.param(
        "SELECT ?s FROM STREAM <a> { ?s :p 1, 'x' }", 'SELECT ?s FROM STREAM <a> WHERE { ?s <http://e/p> 1 . ?s <http://e/p> "x" . }', id="triples"
    ),
    pytest.param(
        "SELECT * { {?s :p ?o} SEQ {?s :q ?r} WITHIN 90 WITHOUT {?s :r 1} UNION {} }",
        'SELECT ?s ?o ?r WHERE { { ?s <http://e/p> ?o . } SEQ { ?s <http://e/q> ?r . } WITHIN "PT1M30S"^^<http://www.w3.org/2001/XMLSchema#duration>'
        " WITHOUT { ?s <http://e/r> 1 . } UNION {} }",
        id="chain",
    ),
    pytest.param(
        "SELECT (1 - (2 - 3) - 4 AS ?n) { FILTER(!(?x && (?y || NOT EXISTS {})) && ?z NOT IN (1)) }",
        "SELECT (1 - (2 - 3) - 4 AS ?n) WHERE { FILTER (! (?x && (?y || NOT EXISTS {})) && ?z NOT IN (1)) }",
        id="only the brackets that count",
    ),
    pytest.param("SELECT * { FILTER(STRLEN(?o) = 1) FILTER(REGEX(?o, 'a')) }", 'SELECT * WHERE { FILTER (STRLEN(?o) = 1 && REGEX(?o, "a")) }', id="filters"),
    pytest.param("SELECT * { FILTER(REGEX(?o, 'a')) }", 'SELECT * WHERE { FILTER REGEX(?o, "a") }', id="a call needs no brackets"),
    pytest.param(
        "CONSTRUCT { [] :p ?o } INTO STREAM <x> { ?s :p ?o OPTIONAL { {?s :q ?o FILTER(?o)} } }",
        "CONSTRUCT {_:b0 <http://e/p> ?o .} INTO STREAM <x> WHERE { ?s <http://e/p> ?o . OPTIONAL { { ?s <http://e/q> ?o . FILTER (?o) } } }",
        id="construct",
    ),
    pytest.param(
        "SELECT ?k (COUNT(*) + 1 AS ?n) (GROUP_CONCAT(DISTINCT ?o; SEPARATOR=',') AS ?l) { ?s :p ?o } GROUP BY (STR(?s) AS ?k) (?o + 1) STR(?o)"
        " HAVING (SUM(?o) > 1) (COUNT(*) > 2) WINDOW [RANGE PT1H STEP PT1M] ORDER BY DESC(COUNT(*)) ?k OFFSET 1 LIMIT 2 VALUES ?k { 'a' UNDEF }",
        'SELECT ?k (COUNT(*) + 1 AS ?n) (GROUP_CONCAT(DISTINCT ?o; SEPARATOR=",") AS ?l) WHERE { ?s <http://e/p> ?o . } GROUP BY (STR(?s) AS ?k) (?o + 1) STR(?o)'
        ' HAVING (SUM(?o) > 1 && COUNT(*) > 2) WINDOW [RANGE "PT1H"^^<http://www.w3.org/2001/XMLSchema#duration>'
        ' STEP "PT1M"^^<http://www.w3.org/2001/XMLSchema#duration>] ORDER BY DESC(COUNT(*)) ?k LIMIT 2 OFFSET 1 VALUES ?k { "a" UNDEF }',
        id="groups",
    ),
    pytest.param(
        "SELECT * { ?s :p/:q ?o ; (:a|^:b)*/!(:c|^a)? _:x . _:x :p [] }",
        "SELECT ?s ?o WHERE { ?s <http://e/p> _:b0 . _:b0 <http://e/q> ?o . _:x <http://e/p> _:b2 ."
        " ?s (<http://e/a>|^<http://e/b>)* _:b1 . _:b1 !(<http://e/c>|^<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>)? _:x . }",
        id="paths beside the triples that share their blank nodes",
    ),
    pytest.param(
        "SELECT * { GRAPH ?g { ?s :p ?o } VALUES (?s ?o) { (:a UNDEF) } { SELECT DISTINCT ?s { ?s :q 1 } ORDER BY ?o LIMIT 3 } { ?s ?p ?o } }",
        "SELECT ?g ?s ?o ?p WHERE { GRAPH ?g { ?s <http://e/p> ?o . } VALUES (?s ?o) { (<http://e/a> UNDEF) }"
        " { SELECT DISTINCT ?s WHERE { ?s <http://e/q> 1 . } ORDER BY ?o LIMIT 3 } ?s ?p ?o . }",
        id="elements",
    ),
    pytest.param(
        "REGISTER ISTREAM :o AS CONSTRUCT { ?s :p 1 } FROM NAMED WINDOW :w ON <in> [RANGE PT2S STEP PT1S] { WINDOW :w { ?s :p ?o } }",
        "REGISTER ISTREAM <http://e/o> AS CONSTRUCT {?s <http://e/p> 1 .} FROM NAMED WINDOW <http://e/w> ON <in>"
        ' [RANGE "PT2S"^^<http://www.w3.org/2001/XMLSchema#duration> STEP "PT1S"^^<http://www.w3.org/2001/XMLSchema#duration>]'
        " WHERE { WINDOW <http://e/w> { ?s <http://e/p> ?o . } }",
        id="named windows",
    ),
    pytest.param("ASK FROM <g> FROM NAMED :h { ?s :p ?o } LIMIT 1", "ASK FROM <g> FROM NAMED <http://e/h> WHERE { ?s <http://e/p> ?o . } LIMIT 1", id="ask"),
    pytest.param("DESCRIBE :a ?s { ?s :p ?o } ORDER BY ?o", "DESCRIBE <http://e/a> ?s WHERE { ?s <http://e/p> ?o . } ORDER BY ?o", id="describe"),
    pytest.param("BASE <http://b/> SELECT * { FILTER(IRI('a') = <c>) }", "BASE <http://b/> SELECT * WHERE { FILTER (IRI(\"a\") = <http://b/c>) }", id="base"),
    pytest.param(
        "BASE <b/> SELECT * { FILTER(IRI('a') = <c>) }",
        'PREFIX r0: <b/> PREFIX r1: <b/c> BASE <b/> SELECT * WHERE { FILTER (IRI("a") = r1:) }',
        id="a base that is no absolute IRI",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "rendered"), RENDERED)
def test_render(text: str, rendered: str) -> None:
    query = parse(PROLOGUE + text).query
    assert render(query) == rendered
    assert parse(rendered).query == query


NUMBERED = [
    "SELECT * { FILTER EXISTS {{SELECT (COUNT(*) AS ?n) {}}} {SELECT (SUM(?x) AS ?m) {?s ?p ?x} GROUP BY (?s+1)} }",
    "SELECT ?x { {SELECT (COUNT(*) AS ?n) {}} BIND(EXISTS {{SELECT (SUM(?x) AS ?m) {?s ?p ?x} GROUP BY (?s+1)}} AS ?x) }",
    "SELECT (EXISTS {{SELECT (SUM(?x) AS ?m) {?s ?p ?x} GROUP BY (?s+1)}} AS ?x) { {SELECT (COUNT(*) AS ?n) {}} }",
    "SELECT (COUNT(*) AS ?x) { {SELECT (COUNT(*) AS ?n) {}} } HAVING(AVG(?n) > 3)",
    "SELECT * { {} OPTIONAL { FILTER EXISTS {{SELECT (COUNT(*) AS ?n) {}}} {SELECT (SUM(?x) AS ?m) {?s ?p ?x}} } }",
]


@pytest.mark.parametrize("text", NUMBERED)
def test_aggregates_are_numbered_by_the_algebra(text: str) -> None:
    """Wherever the text has its FILTERs and expressions, the hidden variables are the same."""
    query = parse(text).query
    assert parse(render(query)).query == query


def nested(opening: str, inner: str, closing: str, times: int) -> str:
    return opening * times + inner + closing * times


DEEPEST = [
    pytest.param("SELECT * " + nested("{", "?s ?p ?o", "}", 100), id="groups"),
    pytest.param("SELECT * " + nested("{FILTER EXISTS ", "{}", "}", 95), id="EXISTS"),
    pytest.param("SELECT (1 AS ?n) " + nested("{", "FILTER(?o)", "}", 99), id="an expression of SELECT beside a FILTER"),
    pytest.param("SELECT * " + nested("{", "FILTER STR(?o)", "}", 99), id="a call"),
    pytest.param("SELECT * {" + nested("{} AND {", "?s ?p ?o", "}", 99) + "}", id="AND"),
    pytest.param("SELECT * {" + nested("{} UNION {} AND {", "?s ?p ?o", "}", 99) + "}", id="AND after UNION"),
    pytest.param("SELECT * {" + nested("{?s ?p ?o} AND {", "?s <p>* ?o", "}", 97) + "}", id="AND of paths"),
    pytest.param("SELECT * " + nested("{ SELECT * ", "{?s ?p ?o}", "}", 99), id="sub-SELECTs"),
    pytest.param("ASK " + nested("{", "?s ?p ?o", "}", 100) + " LIMIT 1", id="ASK with LIMIT"),
    pytest.param("CONSTRUCT {} WHERE " + nested("{", "FILTER(?o)", "}", 99) + " ORDER BY ?o VALUES ?o {1}", id="CONSTRUCT with modifiers"),
    pytest.param("SELECT * {" + nested("GRAPH ?g {", "?s ?p ?o", "}", 99) + "}", id="GRAPH"),
    pytest.param("SELECT * {?s ?p ?o VALUES ?x {1} FILTER " + nested("(", "?o", ")", 99) + "}", id="brackets"),
    pytest.param("SELECT * {FILTER" + nested("(!", "?o", ")", 99) + "}", id="negations"),
    pytest.param("SELECT * {FILTER" + nested("(+", "?o", ")", 90) + "}", id="signs"),
    pytest.param("SELECT * {?s " + nested("(", "<p>", "*)", 99) + "* ?o}", id="path brackets"),
    pytest.param("SELECT * {{?s ?p ?o}" + " SEQ {?s ?p ?o}" * 195 + "}", id="195 operators"),
    pytest.param("SELECT * {" + "?s ?p ?o OPTIONAL {}" * 95 + "}", id="95 optional groups"),
    pytest.param("SELECT * {" + "{?s ?p ?o}" * 190 + "}", id="190 groups"),
    pytest.param("SELECT * {?s ?p ?o" + " . ?s <p>* ?o" * 190 + "}", id="190 paths"),
    pytest.param("SELECT * {FILTER(?x" + " || ?x" * 190 + ")}", id="190 alternatives"),
]  # fmt: skip


@pytest.mark.parametrize("text", DEEPEST)
def test_the_deepest_queries_come_back_within_the_limits(text: str) -> None:
    query = parse(text).query
    assert parse(render(query)).query == query


WIDE = [
    pytest.param("PREFIX : <http://www.example.org/#> SELECT * {?s " + ";".join(f":p{i} ?o" for i in range(1_500)) + "}", id="semicolons"),
    pytest.param("PREFIX : <http://www.example.org/#> CONSTRUCT {?s :p " + ",".join(f":o{i}" for i in range(1_900)) + "} {?s ?p ?o}", id="commas"),
    pytest.param("SELECT * {" + ".".join(f"?s{i} ?p{i} ?o{i}" for i in range(850)) + "}", id="variables"),
    pytest.param("SELECT * (1 AS ?n) {}".replace("* ", " ".join(f"?s{i} " for i in range(2_400))), id="an expression among many"),
    pytest.param("PREFIX : <http://www.example.org/a/long/name#> SELECT * {" + ".".join(f"?s :p{i} ?o" for i in range(1_000)) + "}", id="prefixes"),
    pytest.param("BASE <b/c> SELECT * { FILTER(IRI('x') = <d>) " + "".join(f"?s <http://e/{i}> <{i}> ." for i in range(300)) + "}", id="and BASE"),
    pytest.param("SELECT * {" + "".join(f"?s ?p '{i}'^^<http://www.example.org/a/long/name#type{i}> ." for i in range(300)) + "}", id="datatypes"),
]


@pytest.mark.parametrize("text", WIDE)
def test_a_long_query_is_rendered_short_enough(text: str) -> None:
    query = parse(text).query
    rendered = render(query)
    assert len(rendered) <= MAX_LENGTH
    assert parse(rendered).query == query


def test_the_deepest_tree_is_rendered_within_pythons_own_limit() -> None:
    query = parse("SELECT * {{?s ?p ?o}" + " SEQ {?s ?p ?o}" * 195 + "}").query
    assert tree_depth(query) > 190
    assert parse(render(query)).query == query
