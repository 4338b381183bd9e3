"""The canonical text of a query means the query."""

import pytest
from hypothesis import given, settings

from epsparql import parse, render
from epsparql.algebra import Query
from tests.language.builders import PROLOGUE, SHARED
from tests.language.queries import queries

CASES = sorted((SHARED / "conformance" / "random").glob("*/query.rq"))


@settings(max_examples=300, deadline=None)
@given(queries)
def test_parse_gives_back_what_was_rendered(query: Query) -> None:
    assert parse(render(query)).query == query


@pytest.mark.skipif(not CASES, reason="the conformance cases are not beside the project")
def test_conformance_queries_round_trip() -> None:
    for case in CASES:
        query = parse(case.read_text()).query
        assert parse(render(query)).query == query, case


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
        "SELECT ?n WHERE { { FILTER (! (?x && (?y || NOT EXISTS {})) && ?z NOT IN (1)) } BIND(1 - (2 - 3) - 4 AS ?n) }",
        id="only the brackets that count",
    ),
    pytest.param(
        "CONSTRUCT { [] :p ?o } INTO STREAM <x> { ?s :p ?o OPTIONAL { {?s :q ?o FILTER(?o)} } }",
        "CONSTRUCT {_:b0 <http://e/p> ?o .} INTO STREAM <x> WHERE { ?s <http://e/p> ?o . OPTIONAL { { ?s <http://e/q> ?o . FILTER (?o) } } }",
        id="construct",
    ),
]


@pytest.mark.parametrize(("text", "rendered"), RENDERED)
def test_render(text: str, rendered: str) -> None:
    assert render(parse(PROLOGUE + text).query) == rendered
