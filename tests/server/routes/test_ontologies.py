"""Background graphs over HTTP: loaded, added to, read, dropped, kept; what cannot be loaded."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from epsparql.client import Client
from pipeline.formats.body_parser import LD_JSON, RDF_XML
from tests.server.conftest import EX, event, serving, until

TTL, NT = {"Content-Type": "text/turtle"}, "application/n-triples"
PREFIX = f"@prefix : <{EX}> . "
RDF = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://example.org/"'
GRAPH = f"{EX}stations?of=a b#1".replace(" ", "%20")
AT = f"/ontologies/{quote(GRAPH, safe='')}"


@pytest.fixture
def graph(http: httpx.Client) -> Iterator[str]:
    """The path of a graph that is not there, and will not be left there."""
    yield AT
    http.delete(AT)


def triples(http: httpx.Client, path: str) -> list[str]:
    return sorted(http.get(path, headers={"Accept": NT}).text.splitlines())


def line(subject: str, predicate: str = "in", value: str = "hall") -> str:
    return f"<{EX}{subject}> <{EX}{predicate}> <{EX}{value}> ."


class TestChanges:
    def test_a_graph_is_loaded_added_to_replaced_and_dropped(self, http: httpx.Client, graph: str) -> None:
        made = http.put(graph, content=PREFIX + ":s :in :hall .", headers=TTL)
        assert (made.status_code, made.headers["Location"]) == (201, graph)
        assert {**made.json(), "offset": 0} == {"name": GRAPH, "triples": 1, "size": len(line("s")) + 1, "offset": 0}
        assert http.post(graph, content=PREFIX + ":t :in :hall . :s :in :hall .", headers=TTL).json()["triples"] == 2
        assert triples(http, graph) == [line("s"), line("t")]
        assert http.put(graph, content=PREFIX + ":u :in :hall .", headers=TTL).status_code == 200
        assert triples(http, graph) == [line("u")]
        assert [each["name"] for each in http.get("/ontologies").json()["ontologies"]] == [GRAPH]
        assert http.delete(graph).status_code == 204
        gone = [http.get(graph), http.delete(graph)]
        assert [(each.status_code, each.json()["code"]) for each in gone] == [(404, "unknown-ontology")] * 2

    def test_what_changes_nothing_is_not_written(self, http: httpx.Client, graph: str) -> None:
        body = PREFIX + ":s :in [ :near :t ] ."
        first = http.put(graph, content=body, headers=TTL).json()
        again = [http.put(graph, content=body, headers=TTL), http.post(graph, content=body, headers=TTL)]
        assert [(each.status_code, each.json()) for each in again] == [(200, first)] * 2

    def test_default_stands_for_no_graph(self, http: httpx.Client) -> None:
        assert http.put("/ontologies/default", content=PREFIX + ":s :in :hall .", headers=TTL).json()["name"] == "default"
        assert http.get("/ontologies/default", headers={"Accept": "application/n-quads"}).text.split() == line("s").split()
        assert http.delete("/ontologies/default").status_code == 204

    def test_blank_nodes_are_those_of_their_load(self, http: httpx.Client, graph: str) -> None:
        http.put(graph, content=PREFIX + "_:a :in :hall .", headers=TTL)
        http.post(graph, content=PREFIX + "_:a :in :yard .", headers=TTL)
        assert len({each.split()[0] for each in triples(http, graph)}) == 2

    def test_queries_see_the_change_from_the_next_instant(self, client: Client, http: httpx.Client, graph: str, stream: str, name: str) -> None:
        query = f"PREFIX : <{EX}> SELECT ?v FROM STREAM <{stream}> WHERE {{ ?s :value ?v . ?s :in :hall }}"
        client.register(name, query)
        events = f"/streams/{quote(stream, safe='')}/events"
        for number, change in enumerate((None, PREFIX + ":s :in :hall .")):
            if change is not None:
                http.put(graph, content=change, headers=TTL)
            assert http.post(events, content=event(number), headers={"Content-Type": "application/x-ndjson"}).status_code == 202
        found = f"/queries/{quote(name, safe='')}"
        until(lambda: bool(http.get(found).json()["solutions"]), "there is a solution")
        rows = http.get(f"{found}/solutions", headers={"Accept": "application/sparql-results+json"}).json()["results"]["bindings"]
        assert [row["v"]["value"] for row in rows] == ["1"]

    def test_a_plan_tells_what_is_copied_and_what_is_looked_up(self, http: httpx.Client, client: Client, graph: str, stream: str, name: str) -> None:
        query = f"PREFIX : <{EX}> SELECT ?v FROM STREAM <{stream}> WHERE {{ ?s :value ?v . ?s :housed ?hall . ?s :sort :sensor }}"
        client.register(name, query)
        more = "".join(f":s{k} :housed :hall{k}; :sort :sensor{k % 2 or ''} . " for k in range(1001))
        assert http.put(graph, content=PREFIX + more, headers=TTL).status_code == 201
        http.post(f"/streams/{quote(stream, safe='')}/events", content=event(0), headers={"Content-Type": "application/x-ndjson"})
        plan = f"/queries/{quote(name, safe='')}/plan"
        expected = [(f"?s <{EX}housed> ?hall", 1001, "looked up"), (f"?s <{EX}sort> <{EX}sensor>", 501, "copied")]

        def read() -> list[tuple[str, int, str]]:
            return sorted((each["pattern"], each["triples"], each["use"]) for each in http.get(plan).json()["background"])

        until(lambda: read() == expected, "the runner tells what it reads")
        assert "background\n" in http.get(plan, headers={"Accept": "text/plain"}).text
        assert http.get("/ontologies").json()["limited"] is None


class TestSyntaxes:
    @pytest.mark.parametrize(
        ("media_type", "body"),
        [
            ("text/turtle", PREFIX + ":s :in :hall ."),
            ("text/turtle; charset=utf-8", "<#s> <in> <hall> .".replace("#s", f"{EX}s")),
            (NT, line("s")),
            ("application/n-quads", f"{line('s')[:-1]} <{GRAPH}> ."),
            ("application/trig", f"{PREFIX} <{GRAPH}> {{ :s :in :hall }}"),
            (RDF_XML, f'<rdf:RDF {RDF}><rdf:Description rdf:about="{EX}s"><e:in rdf:resource="hall"/></rdf:Description></rdf:RDF>'),
            (RDF_XML, f'<!DOCTYPE r [<!ENTITY e "{EX}">]><rdf:RDF {RDF}><rdf:Description rdf:about="&e;s"><e:in rdf:resource="&e;hall"/></rdf:Description></rdf:RDF>'),
            (LD_JSON, f'{{"@context":{{"in":{{"@id":"{EX}in","@type":"@id"}}}},"@id":"s","in":"hall"}}'),
        ],
    )  # fmt: skip
    def test_each_of_them_is_read(self, http: httpx.Client, graph: str, media_type: str, body: str) -> None:
        assert http.put(graph, content=body, headers={"Content-Type": media_type}).status_code == 201
        assert triples(http, graph) == [line("s")]

    @pytest.mark.parametrize("media_type", ["text/turtle", NT, RDF_XML, LD_JSON, "application/trig", "application/n-quads"])
    def test_what_is_written_is_read_again(self, http: httpx.Client, graph: str, media_type: str) -> None:
        http.put(graph, content=PREFIX + ':s :in :hall ; :name "Ü \\"x\\""@de , 1.50 .', headers=TTL)
        before, found = triples(http, graph), http.get(graph, headers={"Accept": media_type})
        assert found.headers["Content-Type"].startswith(media_type)
        http.delete(graph)
        http.put(graph, content=found.content, headers={"Content-Type": media_type})
        assert triples(http, graph) == before

    def test_what_cannot_be_written(self, http: httpx.Client, graph: str) -> None:
        http.put(graph, content="<urn:a> <urn:1> <urn:b> .", headers=TTL)
        refused = [http.get(graph, headers={"Accept": kind}) for kind in ("image/png", RDF_XML)]
        assert [(each.status_code, each.json()["code"]) for each in refused] == [(406, "not-acceptable")] * 2


ENTITY = f"<rdf:RDF {RDF}><rdf:Description rdf:about='{EX}s'><e:in>&x;</e:in></rdf:Description></rdf:RDF>"
LAUGHS = "".join(f'<!ENTITY a{k} "{"ha" * 5000}">' for k in range(2))
FAULTS = [
    pytest.param("text/turtle", PREFIX + "\n:s :in .", 400, "rdf", (2, 8), id="turtle"),
    pytest.param("text/turtle", PREFIX + "\n:s :in x:y .", 400, "rdf", (2, 8), id="an unknown prefix"),
    pytest.param(NT, line("s") + "\n" + line("t") + " x", 400, "rdf", (2, 76), id="n-triples"),
    pytest.param(RDF_XML, f"<rdf:RDF {RDF}>\n <rdf:Description></rdf:RDF>", 400, "rdf", (2, 21), id="xml"),
    pytest.param(RDF_XML, f'<rdf:RDF {RDF}>\n<rdf:Description rdf:about="a b"><e:in/></rdf:Description></rdf:RDF>', 400, "rdf", (2, 29), id="rdf in xml"),
    pytest.param(RDF_XML, '<!DOCTYPE r [\n<!ENTITY x SYSTEM "file:///etc/passwd">]>' + ENTITY, 400, "entity", (2, 39), id="an external entity"),
    pytest.param(RDF_XML, '<!DOCTYPE r [<!ENTITY % x SYSTEM "http://127.0.0.1:9/x">%x;]>' + ENTITY, 400, "entity", (1, 56), id="a part of the DTD"),
    pytest.param(RDF_XML, '<!DOCTYPE r [<!ENTITY y "z"><!ENTITY x "&y;&y;">]>' + ENTITY, 400, "entity", (1, 40), id="entities of entities"),
    pytest.param(RDF_XML, f"<!DOCTYPE r [{LAUGHS}]>" + ENTITY.replace("&x;", "&a0;" * 200), 400, "term", (1, 27), id="too much of entities"),
    pytest.param(LD_JSON, '{"@context":{},\n"@id":]', 400, "rdf", (2, 7), id="json"),
    pytest.param(LD_JSON, '{"@id":"s",\n"@context":"http://127.0.0.1:9/c","a":"b"}', 400, "remote-context", (2, 1), id="a remote context"),
    pytest.param(LD_JSON, '{"@context":{"@import":"http://127.0.0.1:9/c"},"a":"b"}', 400, "remote-context", (1, 14), id="an imported context"),
    pytest.param(LD_JSON, "[" * 100_000, 400, "too-deep", (1, 65), id="deep json"),
    pytest.param(RDF_XML, f"<rdf:RDF {RDF}>" + "\n<rdf:Description><e:p>" * 10_000, 400, "too-deep", (257, 18), id="deep xml"),
    pytest.param("application/trig", PREFIX + "\n:other { :s :in :hall }", 400, "other-graph", (1, 1), id="another graph"),
    pytest.param("application/json", "{}", 415, "media-type", (None, None), id="json that is no JSON-LD"),
    pytest.param("", "x", 415, "media-type", (None, None), id="no type"),
]  # fmt: skip


class TestRefusals:
    @pytest.mark.parametrize(("media_type", "body", "status", "code", "place"), FAULTS)
    def test_a_body_is_refused_whole(
        self, http: httpx.Client, graph: str, media_type: str, body: str, status: int, code: str, place: tuple[int | None, int | None]
    ) -> None:
        problem = http.put(graph, content=body.encode(), headers={"Content-Type": media_type} if media_type else {})
        assert problem.status_code == status, problem.text
        found = problem.json()
        assert (found["code"], found.get("line"), found.get("column")) == (code, *place), found
        assert http.get(graph).status_code == 404

    def test_a_body_beyond_the_limit(self, tmp_path: Path) -> None:
        with serving(tmp_path, max_background=100) as url:
            for content in (line("s") * 10, iter([b"x"] * 200)):
                problem = httpx.put(f"{url}/ontologies/default", content=content, headers={"Content-Type": NT})
                assert (problem.status_code, problem.json()["code"]) == (413, "too-large")

    @pytest.mark.parametrize("name", ["no iri", "a/b", "http://e/<x>", "_:b"])
    def test_a_name_that_no_graph_has(self, http: httpx.Client, name: str) -> None:
        problem = http.put(f"/ontologies/{quote(name, safe='')}", content="", headers=TTL)
        assert (problem.status_code, problem.json()["code"]) == (400, "graph-name")

    def test_a_plain_name_stands_for_a_graph(self, client: Client, http: httpx.Client) -> None:
        """The README loads a graph so. A query names it by its IRI."""
        assert http.put("/ontologies/stations-1", content=PREFIX + ":s :in :hall .", headers=TTL).status_code == 201
        assert (
            http.get("/ontologies/stations-1", headers={"Accept": NT}).text
            == http.get("/ontologies/urn%3Aepsparql%3Agraph%3Astations-1", headers={"Accept": NT}).text
        )
        asked = http.get("/sparql", params={"query": "ASK { GRAPH <urn:epsparql:graph:stations-1> { ?s ?p ?o } }"})
        assert asked.json()["boolean"] is True
        assert http.delete("/ontologies/stations-1").status_code == 204

    def test_background_under_which_a_rule_would_deny_itself(self, client: Client, http: httpx.Client, graph: str, name: str) -> None:
        """The case is as in tests/engine/runtime/test_engine.py: a fact takes the strict step out of the rule's cycle."""
        rule = "CONSTRUCT { ?s :A ?a } INTO STREAM :loop FROM STREAM :loop WHERE { { ?s :C ?a FILTER NOT EXISTS { ?s :A ?z } } SEQ { ?s :B ?b } }"
        client.register(name, f"PREFIX : <{EX}> {rule}")
        problem = http.put(graph, content=PREFIX + ":s :B :o .", headers=TTL)
        assert (problem.status_code, problem.json()["code"]) == (409, "cyclic-negation")
        assert http.get(graph).status_code == 404, "it is not in the log"
        assert http.put(graph, content=PREFIX + ":s :C :o .", headers=TTL).status_code == 201
        client.drop(name)
        assert http.post(graph, content=PREFIX + ":s :B :o .", headers=TTL).status_code == 200


def test_graphs_are_there_after_a_restart(tmp_path: Path) -> None:
    body = PREFIX + "[] :in :hall . _:x :in :yard ."
    with serving(tmp_path) as url:
        httpx.put(url + AT, content=body, headers=TTL)
        httpx.post(url + AT, content=PREFIX + ":s :in :hall .", headers=TTL)
        httpx.put(f"{url}/ontologies/default", content=PREFIX + ":s :in :hall .", headers=TTL)
        httpx.delete(f"{url}/ontologies/default")
        before = httpx.get(f"{url}/ontologies").json(), httpx.get(url + AT).text
    (tmp_path / "catalogue.json").unlink()
    with serving(tmp_path) as url:
        assert (httpx.get(f"{url}/ontologies").json(), httpx.get(url + AT).text) == before
        assert httpx.put(url + AT, content=PREFIX + ":s :in :hall .", headers=TTL).json()["triples"] == 1


def test_changes_and_reading_need_the_scope_admin(tmp_path: Path) -> None:
    import hashlib

    tokens = tmp_path / "tokens"
    tokens.write_text(f"{hashlib.sha256(b'a').hexdigest()} admin\n{hashlib.sha256(b'r').hexdigest()} read:* ingest:*\n")
    with serving(tmp_path / "data", token_file=tokens) as url:
        calls = [
            ("PUT", AT),
            ("POST", AT),
            ("GET", AT),
            ("GET", "/ontologies"),
            ("DELETE", AT),
            ("GET", "/sparql?query=ASK%7B%7D"),
            ("POST", "/sparql"),
        ]
        for headers, status in (({}, 401), ({"Authorization": "Bearer r"}, 403)):
            assert {httpx.request(method, url + path, headers=headers).status_code for method, path in calls} == {status}
        assert httpx.put(url + AT, content=line("s"), headers={"Authorization": "Bearer a", "Content-Type": NT}).status_code == 201
