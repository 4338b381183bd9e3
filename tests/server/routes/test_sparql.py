"""SPARQL 1.1 Protocol over the background: forms of requests and of answers, datasets, bounds, refusals."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import httpx
import pyoxigraph as ox
import pytest

from pipeline.formats.body_parser import RDF_XML
from tests.server.conftest import DEADLINE_S, EX, serving
from tests.support.logs import until

PREFIX = f"PREFIX : <{EX}> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "
JSON = {"Accept": "application/sparql-results+json"}
FORM = "application/x-www-form-urlencoded"
ENDLESS = "ASK { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?n1 ?o . ?p ?q ?r . ?s ?t ?u FILTER(STR(?a) = CONCAT(STR(?u), 'x')) }"
"""It has no solution, and looks at all combinations."""


OUTSIDE = Path(__file__).parents[4] / "shared/conformance/outside/server.sh"
"""A user's script that put these data and asked these questions."""
DATA = {
    "g1": ":a :b :c, :c2 .",
    "g2": ":d :b :e ; :n 21.50, 01, 1E3 ; :t '2010-03-09T00:00:00'^^<http://www.w3.org/2001/XMLSchema#dateTime> .",
}


def put(base: str, graph: str, turtle: str) -> None:
    text = f"@prefix : <{EX}> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . {turtle}"
    httpx.put(f"{base}/ontologies/{quote(graph, safe='')}", content=text, headers={"Content-Type": "text/turtle"}).raise_for_status()


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server of its own: what is in the background is known to the last triple, and its bounds are narrow."""
    with serving(tmp_path_factory.mktemp("data"), sparql_timeout_s=1.0, max_sparql_answer=20_000, max_sparql_memory=768 << 20, max_query=2000) as url:
        put(url, f"{EX}classes", ":Dog rdfs:subClassOf :Animal .")
        put(url, f"{EX}pets", ":rex a :Dog ; :near :mia . :mia :name 'Mia'@de .")
        put(url, "default", ":tom :name 'Tom' .")
        for graph, turtle in DATA.items():
            put(url, f"{EX}{graph}", turtle)
        with httpx.Client(base_url=url, timeout=60) as client:
            yield client


def rows(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return sorted(" ".join(term["value"].removeprefix(EX) for term in row.values()) for row in answer.json()["results"]["bindings"])


def ask(client: httpx.Client, query: str, **parameters: str | list[str]) -> httpx.Response:
    return client.get("/sparql", params={"query": PREFIX + query, **parameters}, headers=JSON)


class TestRequests:
    def test_a_query_comes_in_three_ways(self, asked: httpx.Client) -> None:
        query = PREFIX + "SELECT ?s { ?s :name ?n }"
        for answer in (
            asked.get("/sparql", params={"query": query}),
            asked.post("/sparql", data={"query": query}),
            asked.post("/sparql", content=query, headers={"Content-Type": "application/sparql-query"}),
        ):
            assert rows(answer) == ["mia", "tom"]

    def test_a_dataset_of_the_request(self, asked: httpx.Client) -> None:
        names, graphs = "SELECT ?s { ?s :name ?n }", "SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }"
        pets, classes = f"{EX}pets", f"{EX}classes"
        assert rows(ask(asked, names, **{"default-graph-uri": pets})) == ["mia"]
        assert rows(ask(asked, names, **{"named-graph-uri": pets})) == []
        assert rows(ask(asked, graphs, **{"named-graph-uri": [pets, classes]})) == ["classes", "pets"]
        assert rows(ask(asked, graphs, **{"default-graph-uri": pets})) == []
        assert rows(asked.post("/sparql", data={"query": PREFIX + names, "default-graph-uri": pets})) == ["mia"]
        body = {"content": PREFIX + names, "headers": {"Content-Type": "application/sparql-query"}}
        assert rows(asked.post("/sparql", params={"default-graph-uri": pets}, **body)) == ["mia"]  # type: ignore[arg-type]  # the two of them

    def test_a_dataset_of_the_query(self, asked: httpx.Client) -> None:
        assert rows(ask(asked, "SELECT ?s FROM :pets { ?s :name ?n }")) == ["mia"]
        assert rows(ask(asked, "SELECT ?g FROM NAMED :pets { GRAPH ?g { ?s :name ?n } }")) == ["pets"]

    def test_without_one_it_looks_through_all_graphs_and_sees_what_is_entailed(self, asked: httpx.Client) -> None:
        assert rows(ask(asked, "SELECT ?s { ?s a :Animal }")) == ["rex"]
        assert rows(ask(asked, "SELECT ?g { GRAPH ?g { :rex a :Animal } }")) == ["pets"]

    def test_functions_are_those_of_queries_over_streams(self, asked: httpx.Client) -> None:
        query = "PREFIX ep: <urn:epsparql:function:> SELECT (ep:distance(0, 0, 0, 180) AS ?d) (ep:distance('x', 0, 0, 0) AS ?none) {}"
        assert rows(ask(asked, query)) == ["2.0037508342789244E7"]


class TestAnswers:
    @pytest.mark.parametrize(
        ("query", "accept", "media_type", "text"),
        [
            ("SELECT ?n { :mia :name ?n }", "application/sparql-results+json", "application/sparql-results+json", '"xml:lang":"de"'),
            ("SELECT ?n { :mia :name ?n }", "*/*", "application/sparql-results+json", '"Mia"'),
            (
                "SELECT ?n { :mia :name ?n }",
                "application/sparql-results+xml",
                "application/sparql-results+xml",
                '<literal xml:lang="de">Mia</literal>',
            ),
            ("SELECT ?n { :mia :name ?n }", "text/csv", "text/csv; charset=utf-8", "n\r\nMia"),
            ("SELECT ?n { :mia :name ?n }", "text/tab-separated-values", "text/tab-separated-values; charset=utf-8", '?n\n"Mia"@de'),
            ("ASK { :mia :name ?n }", "application/sparql-results+json", "application/sparql-results+json", "true"),
            ("ASK { :mia :none ?n }", "application/sparql-results+xml", "application/sparql-results+xml", "false"),
            ("CONSTRUCT WHERE { :rex :near ?n }", "text/turtle", "text/turtle", f"<{EX}rex> <{EX}near> <{EX}mia> ."),
            ("CONSTRUCT WHERE { :rex :near ?n }", "application/n-triples", "application/n-triples", f"<{EX}rex> <{EX}near> <{EX}mia> ."),
            ("CONSTRUCT WHERE { :rex :near ?n }", "application/rdf+xml", "application/rdf+xml", f'rdf:resource="{EX}mia"'),
            ("DESCRIBE :mia", "*/*", "text/turtle", f'<{EX}mia> <{EX}name> "Mia"@de .'),
        ],
    )
    def test_they_come_in_the_form_that_is_asked_for(self, asked: httpx.Client, query: str, accept: str, media_type: str, text: str) -> None:
        answer = asked.get("/sparql", params={"query": PREFIX + query}, headers={"Accept": accept})
        assert answer.headers["Content-Type"].removesuffix("; charset=utf-8") == media_type.removesuffix("; charset=utf-8")
        assert text in answer.text

    def test_they_follow_the_background(self, asked: httpx.Client) -> None:
        base, query = str(asked.base_url), "SELECT ?s { ?s a :Animal }"
        for turtle, found in ((":tim a :Dog .", ["rex", "tim"]), (":tim a :Stone .", ["rex"])):
            put(base, f"{EX}more", turtle)
            assert rows(ask(asked, query)) == found
        asked.delete(f"/ontologies/{quote(EX + 'more', safe='')}")
        assert rows(ask(asked, "SELECT ?s { ?s a :Stone }")) == []


class TestBounds:
    def test_a_query_that_takes_too_long_ends_and_holds_up_nobody(self, asked: httpx.Client) -> None:
        ask(asked, "ASK {}")  # the process is there
        with ThreadPoolExecutor(4) as threads:
            began = time.monotonic()
            long = [threads.submit(ask, asked, ENDLESS) for _ in range(3)]
            assert (asked.get("/livez").status_code, rows(ask(asked, "SELECT ?s { ?s :name 'Tom' }"))) == (200, ["tom"])
            assert not any(each.done() for each in long), "the other was answered meanwhile"
            problems = [each.result() for each in long]
            assert time.monotonic() - began < DEADLINE_S
        assert [(each.status_code, each.json()["code"]) for each in problems] == [(422, "beyond-time")] * 3
        assert "more than 1 s of processor time" in problems[0].json()["detail"]

    def test_an_answer_that_is_too_large(self, asked: httpx.Client) -> None:
        problem = ask(asked, f"SELECT * {{ {' '.join(f'?a{k} ?b{k} ?c{k} .' for k in range(4))} }}")
        assert (problem.status_code, problem.json()["code"]) == (422, "beyond-answer")

    def test_a_query_that_needs_too_much_memory(self, asked: httpx.Client) -> None:
        triples = " ".join(f"?a{k} ?b{k} ?c{k} ." for k in range(6))
        problem = ask(asked, f"SELECT (GROUP_CONCAT(REPLACE('{'x' * 500}', 'x', '{'y' * 500}')) AS ?all) {{ {triples} }}")
        assert problem.status_code == 422
        assert problem.json()["code"] in ("beyond-memory", "beyond-time")
        assert rows(ask(asked, "SELECT ?s { ?s :name 'Tom' }")) == ["tom"]

    def test_a_query_that_is_too_long(self, asked: httpx.Client) -> None:
        text = "ASK {} #" + "x" * 2000
        for problem in (
            asked.get("/sparql", params={"query": text}),
            asked.post("/sparql", content=text, headers={"Content-Type": "application/sparql-query"}),
        ):
            assert (problem.status_code, problem.json()["code"]) == (413, "too-large")


REFUSED = [
    pytest.param("SELECT * {\n ?s ?p }", "syntax", 2, id="syntax"),
    pytest.param("SELECT * { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }", "unsupported", 1, id="SERVICE"),
    pytest.param("SELECT * { SERVICE SILENT ?x { ?s ?p ?o } }", "unsupported", 1, id="SERVICE of a variable"),
    pytest.param("INSERT DATA { :a :b :c }", "unsupported", 1, id="an update as a query"),
    pytest.param("SELECT * {\n { ?s :a ?o } SEQ { ?s :b ?o } }", "unsupported", 2, id="SEQ is asked of streams"),
    pytest.param("SELECT * {\n ?s ?p ?o FILTER(<urn:f>(?o)) }", "unsupported", 2, id="an unknown function"),
    pytest.param(
        "SELECT * {\n ?s ?p ?o FILTER(getDURATION() > 'P1D'^^<http://www.w3.org/2001/XMLSchema#duration>) }", "unsupported", 2, id="an interval"
    ),
    pytest.param(
        "SELECT (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s WINDOW [RANGE 'PT1S'^^<http://www.w3.org/2001/XMLSchema#duration>]",
        "unsupported",
        1,
        id="a window",
    ),
    pytest.param("SELECT * FROM STREAM :s { ?s ?p ?o }", "unsupported", 1, id="a stream"),
    pytest.param("SELECT * { ?s ?p ?o }\nONCE PER ?s WITHIN 5", "unsupported", 2, id="ONCE PER"),
    pytest.param("SELECT * {\n { SELECT ?s { ?s ?p ?o } ONCE PER ?s UNTIL { ?s a ?o } } }", "unsupported", 2, id="ONCE PER in a sub-SELECT"),
]


def test_the_endpoint_describes_itself(asked: httpx.Client) -> None:
    answer = asked.get("/sparql")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/turtle; charset=utf-8")
    said = [(quad.predicate.value.rpartition("#")[2], getattr(quad.object, "value", "")) for quad in ox.parse(answer.content, ox.RdfFormat.TURTLE)]
    assert ("endpoint", str(asked.base_url.join("/sparql"))) in said
    assert "comment" not in dict(said), "its answers are those of registered queries"
    assert asked.get("/sparql", headers={"Accept": "application/n-triples"}).headers["content-type"].startswith("application/n-triples")


DIALECT = [
    ("SELECT DISTINCT ?g ?x { GRAPH ?g { VALUES ?x { 1 } } }", "g1 1;g2 1"),
    ("SELECT ?g ?n { GRAPH ?g { { SELECT (COUNT(*) AS ?n) { ?s :b ?o } } } }", "g1 2;g2 1"),
    ("SELECT ?g ?s { GRAPH ?g { { SELECT DISTINCT ?s { ?s :b ?o } } } }", "g1 a;g2 d"),
    ("SELECT DISTINCT ?g ?h { GRAPH ?g { GRAPH ?h { ?s :b ?o } } }", "g1 g1;g1 g2;g2 g1;g2 g2"),
    ("SELECT ?g ?s { GRAPH ?g { ?s :b ?o MINUS { ?x :n ?y } } }", "g1 a;g1 a;g2 d"),
    ("SELECT (STR(?v) AS ?s) { ?x :n ?v }", "01;1E3;21.50"),
    ("SELECT ?v { ?x :n ?v FILTER(sameTerm(?v, 1)) }", ""),
    ('SELECT ?t { ?x :t ?t FILTER(?t < "2010-03-09T10:00:00Z"^^xsd:dateTime) }', "2010-03-09T00:00:00"),
    ("SELECT (9223372036854775807 + 1 AS ?i) {}", "9223372036854775808"),
    ('SELECT (REPLACE("cost 5", "([0-9])", "\\\\$$1") AS ?r) {}', "cost $5"),
    ("ASK { :x :p? :x }", "true"),
    ('SELECT (COUNT(DISTINCT ?b) AS ?n) { :a :b ?o BIND(BNODE("x") AS ?b) }', "2"),
]


@pytest.mark.parametrize(("query", "found"), DIALECT)
def test_it_has_the_dialect_of_registered_queries(asked: httpx.Client, query: str, found: str) -> None:
    graphs = [f"{EX}{name}" for name in DATA]
    parameters: dict[str, str | list[str]] = {"default-graph-uri": graphs, "named-graph-uri": graphs}
    answer = ask(asked, f"PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> {query}", **parameters)
    assert (";".join(rows(answer)) if "results" in answer.json() else str(answer.json()["boolean"]).lower()) == found


@pytest.mark.skipif(not OUTSIDE.exists(), reason="the script is not beside the project")
def test_the_script_asks_nothing_else() -> None:
    asked_there = re.findall(r"^ask '.*?' '(.*)'$", OUTSIDE.read_text(encoding="utf-8").partition("## 1 ")[0], re.MULTILINE)
    assert asked_there == [query for query, _ in DIALECT]


class TestSparqlRefusals:
    @pytest.mark.parametrize(("query", "code", "line"), REFUSED)
    def test_a_query(self, asked: httpx.Client, query: str, code: str, line: int | None) -> None:
        problem = ask(asked, query)
        assert problem.status_code == 400, problem.text
        assert (problem.json()["code"], problem.json().get("line")) == (code, line), problem.text

    @pytest.mark.parametrize("into", ["STREAM :s", "BACKGROUND :g"])
    def test_a_rule(self, asked: httpx.Client, into: str) -> None:
        problem = asked.get("/sparql", params={"query": f"{PREFIX}CONSTRUCT {{ ?s :p ?o }} INTO {into} WHERE {{ ?s :q ?o }}"})
        assert (problem.status_code, problem.json()["code"]) == (400, "unsupported"), problem.text

    def test_a_request(self, asked: httpx.Client) -> None:
        update, form = "INSERT DATA { <urn:a> <urn:b> <urn:c> }", {"Content-Type": FORM}
        for answer, status, code in (
            (asked.get("/sparql?default-graph-uri=urn:g"), 400, "no-query"),
            (asked.get("/sparql?query=ASK%7B%7D&query=ASK%7B%7D"), 400, "no-query"),
            (asked.get("/sparql", params={"update": update}), 422, "unsupported"),
            (asked.post("/sparql", data={"update": update}), 422, "unsupported"),
            (asked.post("/sparql", content=update, headers={"Content-Type": "application/sparql-update"}), 422, "unsupported"),
            (asked.post("/sparql", content="ASK {}"), 415, "media-type"),
            (asked.post("/sparql", content="default-graph-uri=urn:g", headers=form), 400, "no-query"),
            (asked.post("/sparql", content="query=%ff", headers=form), 400, "bad-form"),
            (asked.get("/sparql?query=ASK%7B%7D", headers={"Accept": "image/png"}), 406, "not-acceptable"),
            (asked.get("/sparql?query=CONSTRUCT%7B%3Curn:a%3E%3Curn:1%3E%3Curn:b%3E%7D%7B%7D", headers={"Accept": RDF_XML}), 406, "not-acceptable"),
            (ask(asked, "ASK {}", **{"default-graph-uri": "no iri"}), 400, "graph-name"),
        ):
            assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_query_ends_when_its_client_hangs_up(tmp_path: Path, method: str) -> None:
    with serving(tmp_path, sparql_processes=1, sparql_timeout_s=600.0) as url:
        put(url, f"{EX}pets", " ".join(f":s{k} :p :o{k} ." for k in range(50)))
        with httpx.Client(base_url=url, timeout=DEADLINE_S) as client:
            assert ask(client, "ASK {}").status_code == 200
            body = {"params" if method == "GET" else "data": {"query": PREFIX + ENDLESS}}
            with pytest.raises(httpx.ReadTimeout):
                client.request(method, "/sparql", timeout=0.5, **body)  # type: ignore[arg-type]  # one of the two
            assert ask(client, "ASK {}").json()["boolean"], "the only place is free again"
            until(lambda: not children(hosts()), "the process of the query ends")


def children(parents: set[int]) -> set[int]:
    """The processes over a background that these have started."""
    listed = subprocess.run(["ps", "-ww", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout.splitlines()
    return {int(row.split()[0]) for row in listed[1:] if int(row.split()[1]) in parents and "server.background.query_process" in row}


def hosts() -> set[int]:
    """The processes of this one's servers that hold a background."""
    return children({os.getpid()})


def test_a_process_that_was_killed_is_followed_by_another_and_the_last_one_goes_with_its_server(tmp_path: Path) -> None:
    before = hosts()
    with serving(tmp_path) as url, httpx.Client(base_url=url, timeout=60) as client:
        assert ask(client, "ASK {}").json() == {"head": {}, "boolean": True}
        (own,) = hosts() - before
        os.kill(own, signal.SIGKILL)
        assert ask(client, "ASK {}").status_code == 200
        assert hosts() - before - {own}
    assert hosts() <= before
