"""Why a solution is one, against a running server: what each rests on was worked out by hand."""

from collections.abc import Iterator
from typing import Any

import httpx
import pyoxigraph as ox
import pytest

from engine.messages import Facts
from epsparql.client import Client, segment
from pipeline.log import LogWriter
from server.process import clock
from tests.server.conftest import EX, empty, moment, serving, until

PREFIX = f"PREFIX : <{EX}> PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>\n"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
FACTS = f"""<{EX}s> <{EX}in> <{EX}hall> .
<{EX}Thermometer> <{RDFS}subClassOf> <{EX}Sensor> .
<{EX}Sensor> <{RDFS}subClassOf> <{EX}Thing> .
<{EX}warm> <{RDFS}subPropertyOf> <{EX}reading> .
<{EX}reading> <{RDFS}domain> <{EX}Thermometer> .
"""


def line(s: str, p: str, o: str, second: int, until_second: int | None = None) -> str:
    end = second if until_second is None else until_second
    shown = f'\\"{o}\\"' if o.isdigit() else f"<{EX}{o}>"
    return f'{{"s":"<{EX}{s}>","p":"<{EX}{p}>","o":"{shown}","start":"{moment(second)}","end":"{moment(end)}"}}'


def triple(s: str, p: str, o: str) -> str:
    return f"<{EX}{s}> <{EX}{p}> " + (f'"{o}" .' if o.isdigit() else f"<{EX}{o}> .")


class Asked:
    """A server over some facts, queries and events that have all been applied."""

    def __init__(self, url: str, http: httpx.Client) -> None:
        self.client, self.http = Client(url), http

    def run(self, queries: dict[str, str], lines: list[str], *streams: str) -> None:
        for name, text in queries.items():
            self.client.register(name, PREFIX + text)
        for each in lines:
            self.client.send("default", each)
        for stream in ("default", *streams):
            self.client.finish(stream)
        until(lambda: all(query["lag"] == 0 for query in self.client.queries()), "all is applied")

    def why(self, name: str, number: int = 0) -> dict[str, Any]:
        solution = self.client.solutions(name)[number]
        answer = self.http.get(f"/queries/{segment(name)}/solutions/{solution.id}/why")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        assert found["id"] == solution.id
        return found


@pytest.fixture(scope="module")
def told_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    data = tmp_path_factory.mktemp("told")
    with LogWriter(data, clock) as log:
        log.append(lambda offset: Facts(offset, "", FACTS))
    with serving(data) as url:
        yield url


@pytest.fixture
def asked(told_url: str) -> Iterator[Asked]:
    """The server has the facts alone: queries and streams go after each test."""
    with httpx.Client(base_url=told_url, timeout=60) as http:
        asked = Asked(told_url, http)
        yield asked
    empty(asked.client)


def told(steps: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Kind and triple of each step; of what is absent, the operator and its patterns."""
    return [(step["kind"], step["triple"]) if "triple" in step else (step["kind"], step["operator"], *step["patterns"]) for step in steps]


def test_a_sequence_names_its_occurrences(asked: Asked) -> None:
    lines = [line("x", "a", "1", 1), line("s", "a", "1", 2, 3), line("s", "a", "2", 4), line("s", "b", "9", 5)]
    asked.run({"q": "SELECT ?v ?w { { ?s :a ?v } SEQ { ?s :b ?w } FILTER(?v > '1') }"}, lines)
    found = asked.why("q")
    assert found["binding"] == {"v": '"2"', "w": '"9"'}
    assert [(step["triple"], step["start"], step["end"]) for step in found["because"]] == [
        (triple("s", "a", "2"), moment(4), moment(4)),
        (triple("s", "b", "9"), moment(5), moment(5)),
    ]
    first, second = (step["offset"] for step in found["because"])
    assert first + 1 == second
    assert found["rules"] == []


def test_the_occurrence_is_the_one_of_the_interval(asked: Asked) -> None:
    asked.run({"q": "SELECT ?s { ?s :a ?v . ?s :b ?w }"}, [line("s", "a", "1", 1), line("s", "a", "2", 2), line("s", "b", "3", 4)])
    starts = [[(step["triple"], step["start"]) for step in asked.why("q", k)["because"]] for k in range(2)]
    b = (triple("s", "b", "3"), moment(4))
    assert [sorted(each) for each in starts] == [[(triple("s", "a", "1"), moment(1)), b], [(triple("s", "a", "2"), moment(2)), b]]


def test_a_chain_of_rules_is_told_to_its_end(asked: Asked) -> None:
    queries = {
        "one": "CONSTRUCT { ?s :up ?w } INTO STREAM <mid> WHERE { { ?s :a ?v } SEQ { ?s :a ?w } }",
        "two": "CONSTRUCT { ?s :alarm ?w } INTO STREAM <top> FROM STREAM <mid> WHERE { ?s :up ?w . ?s :in ?room }",
        "q": "SELECT ?s ?w FROM STREAM <top> { ?s :alarm ?w }",
    }
    asked.run(queries, [line("s", "a", "1", 1), line("s", "a", "2", 3)])
    found = asked.why("q")
    assert told(found["because"]) == [("derived", triple("s", "alarm", "2"))]
    two, one = found["rules"]
    assert [(each["query"], each["triples"]) for each in (two, one)] == [("two", [triple("s", "alarm", "2")]), ("one", [triple("s", "up", "2")])]
    assert (found["because"][0]["rule"], found["because"][0]["solution"]) == ("two", two["id"])
    assert sorted(told(two["because"])) == [("background", triple("s", "in", "hall")), ("derived", triple("s", "up", "2"))]
    assert told(one["because"]) == [("occurrence", triple("s", "a", "1")), ("occurrence", triple("s", "a", "2"))]


def test_a_rule_that_feeds_itself_is_told_without_a_circle(asked: Asked) -> None:
    queries = {
        "closure": "CONSTRUCT { ?x :next ?z } WHERE { ?x :next ?y . ?y :next ?z }",
        "q": "SELECT ?z { :a :next ?z }",
    }
    asked.run(queries, [line("a", "next", "b", 1), line("b", "next", "c", 2), line("c", "next", "d", 3)])
    ends = {(solution.binding or {})["z"]["value"]: k for k, solution in enumerate(asked.client.solutions("q"))}
    found = asked.why("q", ends[f"{EX}d"])
    rests = {each["triples"][0]: [step["triple"] for step in each["because"]] for each in found["rules"]}
    reached, pending = set[str](), [triple("a", "next", "d")]
    while pending:
        if (each := pending.pop()) not in reached:
            reached.add(each)
            pending += rests.get(each, [])
    assert {triple("a", "next", "b"), triple("b", "next", "c"), triple("c", "next", "d")} <= reached
    assert all(key not in rests[key] for key in rests)


def test_what_was_absent_is_told(asked: Asked) -> None:
    lines = [line("s", "a", "1", 1), line("t", "a", "2", 2), line("t", "b", "3", 3), line("s", "a", "4", 5), line("t", "a", "5", 6)]
    queries = {
        "optional": "SELECT ?v ?w { { ?s :a ?v } OPTIONAL { ?s :b ?w } }",
        "minus": "SELECT ?v { ?s :a ?v MINUS { ?s :b ?w } }",
        "exists": "SELECT ?v { ?s :a ?v FILTER NOT EXISTS { ?s :b ?w } }",
        "between": "SELECT ?v ?w { { ?s :a ?v } SEQ { ?s :a ?w } WITHOUT { ?s :b ?x } }",
        "silence": "SELECT ?v { { ?s :a ?v } WITHOUT { ?s :b ?x } FOR 'PT2S'^^<http://www.w3.org/2001/XMLSchema#duration> }",
    }
    asked.run(queries, lines)
    absent = f"<{EX}s> <{EX}b> "
    assert told(asked.why("optional")["because"]) == [("occurrence", triple("s", "a", "1")), ("absent", "OPTIONAL", f"{absent}?w")]
    assert told(asked.why("optional", 3)["because"]) == [("occurrence", triple("t", "a", "5")), ("occurrence", triple("t", "b", "3"))]
    assert told(asked.why("minus")["because"]) == [("occurrence", triple("s", "a", "1")), ("absent", "MINUS", f"{absent}?w")]
    assert told(asked.why("exists")["because"]) == [("occurrence", triple("s", "a", "1")), ("absent", "NOT EXISTS", f"{absent}?w")]
    assert told(asked.why("between")["because"]) == [
        ("occurrence", triple("s", "a", "1")), ("occurrence", triple("s", "a", "4")), ("absent", "WITHOUT", f"{absent}?x"),
    ]  # fmt: skip
    silence = asked.why("silence")
    assert (silence["start"], silence["end"]) == (moment(1), moment(3))
    assert told(silence["because"]) == [("occurrence", triple("s", "a", "1")), ("absent", "WITHOUT ... FOR", f"{absent}?x")]


def test_a_path_is_told_link_by_link(asked: Asked) -> None:
    lines = [line("a", "next", "b", 1), line("x", "next", "y", 2), line("b", "next", "c", 3)]
    asked.run({"q": "SELECT ?z { :a :next+ ?z }"}, lines)
    assert told(asked.why("q", 1)["because"]) == [("occurrence", triple("a", "next", "b")), ("occurrence", triple("b", "next", "c"))]


def test_inference_is_told_step_by_step(asked: Asked) -> None:
    asked.run({"q": "SELECT ?s { ?s rdf:type :Thing . ?s :in ?room }"}, [line("s", "warm", "1", 1)])
    found = asked.why("q")
    step = next(step for step in found["because"] if step["kind"] == "occurrence")
    assert step["triple"] == f"<{EX}s> <{TYPE}> <{EX}Thing> ."
    assert [(each["rule"], each["conclusion"]) for each in step["inferences"]] == [
        ("rdfs7", triple("s", "reading", "1")),
        ("rdfs2", f"<{EX}s> <{TYPE}> <{EX}Thermometer> ."),
        ("rdfs9", f"<{EX}s> <{TYPE}> <{EX}Sensor> ."),
        ("rdfs9", f"<{EX}s> <{TYPE}> <{EX}Thing> ."),
    ]
    assert (step["s"], step["p"], step["o"]) == (f"<{EX}s>", f"<{EX}warm>", '"1"')
    assert step["inferences"][0]["premises"] == [triple("s", "warm", "1"), f"<{EX}warm> <{RDFS}subPropertyOf> <{EX}reading> ."]
    assert ("background", triple("s", "in", "hall")) in told(found["because"])


def test_a_background_triple_that_follows_is_told_too(asked: Asked) -> None:
    asked.run({"q": f"SELECT ?v {{ ?s :a ?v . :Thermometer <{RDFS}subClassOf> :Thing }}"}, [line("s", "a", "1", 1)])
    step = next(step for step in asked.why("q")["because"] if step["kind"] == "background")
    assert [each["rule"] for each in step["inferences"]] == ["rdfs11"]


def test_an_aggregate_lists_its_members(asked: Asked) -> None:
    lines = [line("s", "a", "1", 1), line("t", "a", "2", 2), line("s", "a", "3", 3), line("s", "a", "4", 20)]
    window = "WINDOW [RANGE 'PT10S'^^<http://www.w3.org/2001/XMLSchema#duration>]"
    asked.run({"q": f"SELECT ?s (COUNT(?v) AS ?n) {{ ?s :a ?v }} GROUP BY ?s {window}"}, lines)
    counts = []
    for k in range(4):
        (members,) = asked.why("q", k)["because"]
        counts.append((members["count"], [told(member["because"]) for member in members["shown"]]))
    one, two, three, four = ([("occurrence", triple(s, "a", o))] for s, o in (("s", "1"), ("t", "2"), ("s", "3"), ("s", "4")))
    assert counts == [(1, [one]), (1, [two]), (2, [one, three]), (1, [four])]


def test_it_is_told_in_prov_o(asked: Asked) -> None:
    queries = {"rule": "CONSTRUCT { ?s :up ?v } INTO STREAM <mid> WHERE { ?s :a ?v }", "q": "SELECT ?s FROM STREAM <mid> { ?s :up ?v }"}
    asked.run(queries, [line("s", "a", "1", 1)])
    solution = asked.client.solutions("q")[0]
    url = f"/queries/q/solutions/{solution.id}/why"
    answer = asked.http.get(url, headers={"Accept": "text/turtle"})
    assert answer.headers["Content-Type"].startswith("text/turtle")
    store = ox.Store()
    store.load(answer.content, format=ox.RdfFormat.TURTLE)
    found = store.query(
        f"""PREFIX prov: <http://www.w3.org/ns/prov#> PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
        SELECT ?p ?o {{ ?solution prov:wasDerivedFrom+ ?used . ?used a prov:Entity ; rdf:subject <{EX}s> ; rdf:predicate ?p ; rdf:object ?o
        FILTER(STRENDS(STR(?solution), "{solution.id}") && CONTAINS(STR(?solution), "/queries/q/")) }} ORDER BY ?p"""
    )
    assert [(row["p"].value, row["o"].value) for row in found] == [(f"{EX}a", "1"), (f"{EX}up", "1")]  # type: ignore[union-attr]


def test_what_cannot_be_told_is_said(asked: Asked) -> None:
    asked.run(
        {"rule": "CONSTRUCT { ?s :up ?v } INTO STREAM <mid> WHERE { ?s :a ?v }", "q": "SELECT ?s FROM STREAM <mid> { ?s :up ?v }"},
        [line("s", "a", "1", 1)],
    )
    identifier = asked.client.solutions("q")[0].id
    for path, status, code in (
        ("q/solutions/x", 400, "bad-id"),
        (f"q/solutions/{identifier[:-1]}7", 404, "unknown-solution"),
        (f"r/solutions/{identifier}", 404, "unknown-query"),
    ):
        answer = asked.http.get(f"/queries/{path}/why")
        assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert asked.http.get(f"/queries/q/solutions/{identifier}/why", headers={"Accept": "image/png"}).status_code == 406
    asked.client.drop("rule")
    answer = asked.http.get(f"/queries/q/solutions/{identifier}/why")
    assert (answer.status_code, answer.json()["code"]) == (409, "not-found-again")
