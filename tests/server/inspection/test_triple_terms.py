"""Statements about statements (RDF 1.2) from an event's body to a client, and how a client learns that a format
cannot carry them.
"""

from collections.abc import Iterator
from urllib.parse import quote

import httpx
import pyoxigraph as ox
import pytest
from rdflib import XSD, Literal, URIRef

from epsparql.client import Client, segment
from epsparql.rdf_exchange.client_terms import DirectionalString, Triple
from tests.server.conftest import EX, until
from tests.server.routes.test_streams import assert_problem

JSON, CSV, TURTLE, LD_JSON, NDJSON, TRIG = (
    "application/sparql-results+json", "text/csv", "text/turtle", "application/ld+json", "application/x-ndjson", "application/trig",
)  # fmt: skip
SAID = f"PREFIX : <{EX}> :door :state :open {{| :by :sensor1 ; :confidence 0.8 |}} . :door :label 'x'@ar--rtl ."


@pytest.fixture
def fed(client: Client, name: str, stream: str) -> Iterator[str]:
    """A stream with a statement about a statement, and four queries over it."""
    prefix, source = f"PREFIX : <{EX}>", f"FROM STREAM <{stream}>"
    texts = {
        "sure": f"{prefix} SELECT * {source} WHERE {{ << ?thing :state ?state ~ ?r >> :by ?who ; :confidence ?c FILTER(?c > 0.5) }}",
        "terms": f"{prefix} SELECT ?t {source} WHERE {{ ?r rdf:reifies ?t }}".replace(prefix, f"{prefix} PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>"),
        "labels": f"{prefix} SELECT ?l {source} WHERE {{ :door :label ?l }}",
        "made": f"{prefix} CONSTRUCT {{ :log :has <<( ?thing :state ?state )>> }} INTO STREAM <{stream}out> {source} WHERE {{ ?thing :state ?state }}",
    }  # fmt: skip
    for each, text in texts.items():
        client.register(f"{name}{each}", text)
    client.send(stream, SAID, media_type="text/turtle; version=1.2")
    for each in texts:
        until(lambda each=each: client.query(f"{name}{each}")["solutions"] == 1, each)  # type: ignore[misc]  # bound now
    yield name
    for each in texts:
        client.drop(f"{name}{each}")


def read(http: httpx.Client, query: str, accept: str) -> httpx.Response:
    return http.get(f"/queries/{segment(query)}/solutions", headers={"Accept": accept})


def test_a_statement_about_a_statement_is_a_pattern(client: Client, http: httpx.Client, fed: str) -> None:
    (found,) = client.solutions(f"{fed}sure")
    assert (found["thing"], found["state"], found["who"]) == (URIRef(f"{EX}door"), URIRef(f"{EX}open"), URIRef(f"{EX}sensor1"))
    assert found["c"] == Literal("0.8", datatype=XSD.decimal)
    for accept, told in ((JSON, JSON), (CSV, CSV), (f"{JSON}; version=1.1", JSON)):  # the solution itself is RDF 1.1
        assert read(http, f"{fed}sure", accept).headers["content-type"].removesuffix("; charset=utf-8") == told


def test_a_triple_term_reaches_a_client(client: Client, http: httpx.Client, fed: str) -> None:
    (found,) = client.solutions(f"{fed}terms")
    assert found["t"] == Triple(URIRef(f"{EX}door"), URIRef(f"{EX}state"), URIRef(f"{EX}open"))
    answer = read(http, f"{fed}terms", JSON)
    assert answer.headers["content-type"] == f"{JSON}; version=1.2"
    solutions = ox.parse_query_results(answer.content, ox.QueryResultsFormat.JSON)
    assert isinstance(solutions, ox.QuerySolutions)
    assert [str(row["t"]) for row in solutions] == [f"<{EX}door> <{EX}state> <{EX}open>"]


@pytest.mark.parametrize("accept", [CSV, f"{JSON}; version=1.1", f'{JSON};version="1.2-basic"', f"{CSV}, {JSON};version=1.1"])
def test_a_downgrade_of_a_table_is_refused(http: httpx.Client, fed: str, accept: str) -> None:
    problem = assert_problem(read(http, f"{fed}terms", accept), 406, "not-acceptable")
    assert "triple terms" in str(problem["detail"])
    assert str(problem["expected"]) == f"{JSON}; version=1.2, {NDJSON}, application/json"


def test_the_next_best_format_is_taken(http: httpx.Client, fed: str) -> None:
    assert read(http, f"{fed}terms", f"{CSV}, {NDJSON};q=0.1").headers["content-type"] == NDJSON
    assert read(http, f"{fed}terms", f"{CSV}, {JSON};version=1.2;q=0.1").headers["content-type"] == f"{JSON}; version=1.2"


def test_base_directions_need_the_basic_part(client: Client, http: httpx.Client, fed: str) -> None:
    (found,) = client.solutions(f"{fed}labels")
    assert found["l"] == DirectionalString("x", "ar", "rtl")
    assert read(http, f"{fed}labels", f"{JSON};version=1.2-basic").json()["results"]["bindings"][0]["l"]["its:dir"] == "rtl"
    assert "base directions" in str(assert_problem(read(http, f"{fed}labels", f"{JSON};version=1.1"), 406)["detail"])


def test_a_downgrade_of_a_graph_is_refused(http: httpx.Client, fed: str) -> None:
    answer = read(http, f"{fed}made", TURTLE)
    assert answer.headers["content-type"].startswith(f"{TURTLE}; version=1.2")
    assert [str(quad.object) for quad in ox.parse(answer.content, ox.RdfFormat.TURTLE)] == [f"<{EX}door> <{EX}state> <{EX}open>"]
    for accept in (LD_JSON, f"{TURTLE};version=1.1"):
        assert f"{TRIG}; version=1.2" in str(assert_problem(read(http, f"{fed}made", accept), 406)["expected"])
    root = f"/queries/{segment(fed + 'made')}/ldes"
    registered = http.get(root, headers={"Accept": "application/n-quads"}).text.partition("registered=")[2].partition("&")[0].partition("#")[0]
    page = f"{root}?registered={registered}&page=0"
    assert http.get(page, headers={"Accept": TRIG}).headers["content-type"] == f"{TRIG}; version=1.2"
    assert_problem(http.get(page, headers={"Accept": LD_JSON}), 406)


def test_the_background(http: httpx.Client) -> None:
    graph = f"{EX}said"
    path = f"/ontologies/{quote(graph, safe='')}"
    try:
        assert http.put(path, content=SAID, headers={"Content-Type": TURTLE}).status_code == 201
        assert http.get(path, headers={"Accept": TURTLE}).headers["content-type"].startswith(f"{TURTLE}; version=1.2")
        assert_problem(http.get(path, headers={"Accept": LD_JSON}), 406, "not-acceptable")
        query = f"PREFIX : <{EX}> SELECT ?t ?who FROM <{graph}> {{ ?r ?reifies ?t ; :by ?who FILTER(isTRIPLE(?t)) }}"
        answer = http.get("/sparql", params={"query": query}, headers={"Accept": f"{CSV}, {JSON};q=0.5"})
        assert answer.headers["content-type"] == f"{JSON}; version=1.2"
        assert answer.json()["results"]["bindings"][0]["t"]["type"] == "triple"
        assert_problem(http.get("/sparql", params={"query": query}, headers={"Accept": CSV}), 406, "not-acceptable")
        made = f"PREFIX : <{EX}> CONSTRUCT {{ ?r :about ?t }} FROM <{graph}> WHERE {{ ?r ?reifies ?t FILTER(isTRIPLE(?t)) }}"
        assert_problem(http.get("/sparql", params={"query": made}, headers={"Accept": LD_JSON}), 406, "not-acceptable")
    finally:
        http.delete(path)
