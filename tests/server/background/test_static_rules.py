"""Static rules over HTTP: registered like queries, shown, explained, refused, dropped; what they derive is part of
the background.
"""

from collections.abc import Iterator
from urllib.parse import quote, unquote

import httpx
import pytest

from engine.background.static_rules import maintenance
from epsparql.client import segment
from tests.server.conftest import EX, until

GRAPH = f"{EX}derived-graph"
AT, FACTS = f"/ontologies/{quote(GRAPH, safe='')}", f"/ontologies/{quote(EX + 'roads', safe='')}"
RULE = f"PREFIX : <{EX}> CONSTRUCT {{ ?event :closes ?road }} INTO BACKGROUND <{GRAPH}> WHERE {{ ?event :blocks ?part . ?part :within+ ?road }}"
TTL, SPARQL, NT = {"Content-Type": "text/turtle"}, {"Content-Type": "application/sparql-query"}, {"Accept": "application/n-triples"}
EVENT = f'{{"s":"<{EX}car>","p":"<{EX}value>","o":"<{EX}network>","at":"2026-01-01T00:00:01Z"}}'
ROADS = f"@prefix : <{EX}> . :crash :blocks :e6a . :e6a :within :e6 . :e6 :within :network ."


@pytest.fixture
def rule(http: httpx.Client, name: str) -> Iterator[str]:
    """The path of a static rule over facts; neither will be left there."""
    http.put(FACTS, content=ROADS, headers=TTL)
    made = http.put(f"/queries/{segment(name)}", content=RULE, headers=SPARQL)
    assert made.status_code == 201, made.text
    yield f"/queries/{segment(name)}"
    http.delete(f"/queries/{segment(name)}")
    http.delete(FACTS)


def derived(http: httpx.Client) -> list[str]:
    found = http.get(AT, params={"derived": "true"}, headers=NT)
    return sorted(line.replace(f"<{EX}", "").replace(">", "").removesuffix(" .") for line in found.text.splitlines()) if found.is_success else []


def test_a_rule_is_shown_with_what_it_derives(http: httpx.Client, rule: str) -> None:
    assert derived(http) == ["crash closes e6", "crash closes network"]
    assert http.get(AT).status_code == 404  # nothing was PUT there
    until(lambda: http.get(rule).json()["derived"] == 2, "the runner reports what is derived")
    shown = next(query for query in http.get("/queries").json()["queries"] if f"/queries/{segment(query['name'])}" == rule)
    assert (shown["graph"], shown["state"], shown["unfed"], shown["solutions"]) == (GRAPH, "running", [], 0)
    asked = http.post("/sparql", data={"query": f"SELECT ?r {{ GRAPH <{GRAPH}> {{ <{EX}crash> <{EX}closes> ?r }} }}"}).json()
    assert sorted(row["r"]["value"] for row in asked["results"]["bindings"]) == [f"{EX}e6", f"{EX}network"]
    http.post(FACTS, content=f"<{EX}flood> <{EX}blocks> <{EX}e6> .", headers=TTL)
    assert derived(http) == ["crash closes e6", "crash closes network", "flood closes network"]
    http.put(AT, content=f"<{EX}crash> <{EX}closes> <{EX}e6> .", headers=TTL)
    assert len(http.get(AT, headers=NT).text.splitlines()) == 1
    http.delete(rule)
    assert derived(http) == ["crash closes e6"]
    http.delete(AT)


def test_the_same_registration_changes_nothing_and_another_replaces(http: httpx.Client, rule: str) -> None:
    assert http.put(rule, content=RULE, headers=SPARQL).status_code == 200
    other = RULE.replace("within+", "within")
    assert http.put(rule, content=other, headers=SPARQL).status_code == 409
    assert http.put(f"{rule}?replace=true", content=other, headers=SPARQL).status_code == 201
    assert derived(http) == ["crash closes e6"]


def test_a_solution_over_derived_triples_is_explained(http: httpx.Client, rule: str, stream: str) -> None:
    query = f"PREFIX : <{EX}> SELECT ?event FROM STREAM <{stream}> WHERE {{ ?car :value ?road . ?event :closes ?road }}"
    http.put(f"{rule}-reader", content=query, headers=SPARQL)
    http.post(f"/streams/{quote(stream, safe='')}/events", content=EVENT, headers={"Content-Type": "application/x-ndjson"})
    until(lambda: bool(http.get(f"{rule}-reader/solutions").json()["results"]["bindings"]), "a solution")
    found = http.get(f"{rule}-reader/solutions").json()["results"]["bindings"]
    assert [row["event"]["value"] for row in found] == [f"{EX}crash"]
    listed = http.get(f"{rule}-reader/solutions", headers={"Accept": "application/x-ndjson"}).json()
    why = http.get(f"{rule}-reader/solutions/{listed['id']}/why").json()
    steps = [each for step in why["because"] for each in step.get("inferences") or ()]
    assert [step["rule"] for step in steps] == [f"static rule {unquote(rule.removeprefix('/queries/'))}"]
    assert [premise.split()[1] for premise in steps[0]["premises"]] == [f"<{EX}blocks>", f"<{EX}within>", f"<{EX}within>"]
    http.delete(f"{rule}-reader")


def test_the_plan_and_a_check_show_the_rules_of_datalog(http: httpx.Client, rule: str) -> None:
    plan = http.get(f"{rule}/plan", headers={"Accept": "application/json"}).json()
    assert [step["operator"] for step in plan["plan"]] == ["INTO BACKGROUND", "DERIVE", "DERIVE", "DERIVE"]
    checked = http.post("/check", json={"query": RULE}).json()
    assert (checked["errors"], checked["plan"]["plan"][1]["operator"]) == ([], "DERIVE")


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("CONSTRUCT { ?x :n ?y } INTO BACKGROUND :g WHERE { ?x :p ?y MINUS { ?x :n ?y } }", "cyclic-negation", "its own negation"),
        ("CONSTRUCT { ?x :n ?y } INTO BACKGROUND :g FROM STREAM :s WHERE { ?x :p ?y }", "syntax", "reads no stream"),
        ("CONSTRUCT { ?x :n ?y } INTO BACKGROUND :g WHERE { {?x :p ?y} SEQ {?x :q ?y} }", "unsupported", "operator over time"),
        ("CONSTRUCT { ?x :n [] } INTO BACKGROUND :g WHERE { ?x :p ?y }", "unsupported", "blank node"),
        ("CONSTRUCT { ?x :n ?z } INTO BACKGROUND :g WHERE { ?x :p ?y BIND(NOW() AS ?z) }", "unsupported", "NOW()"),
        ("CONSTRUCT { ?x ?y ?x } INTO BACKGROUND :g WHERE { ?x :p ?y }", "unsupported", "variable as predicate"),
    ],
)
def test_what_is_no_static_rule_is_refused_with_its_place(http: httpx.Client, name: str, text: str, code: str, words: str) -> None:
    refused = http.put(f"/queries/{segment(name)}", content=f"PREFIX : <{EX}>\n{text}", headers=SPARQL)
    assert (refused.status_code, refused.json()["code"], refused.json()["line"]) == (400, code, 2)
    assert words in refused.json()["detail"]


def test_what_needs_solutions_is_refused(http: httpx.Client, rule: str) -> None:
    answers = [http.get(f"{rule}/solutions"), http.post(f"{rule}/pause"), http.put(f"{rule}-2?from=beginning", content=RULE, headers=SPARQL)]
    answers.append(http.put(f"{rule}-2?policy=recent", content=RULE, headers=SPARQL))
    assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(409, "static-rule")] * 4


def test_a_change_beyond_the_limit_is_refused(http: httpx.Client, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "MOST_DERIVED", 3)
    refused = http.post(FACTS, content=f"@prefix : <{EX}> . :flood :blocks :e6a .", headers=TTL)
    assert (refused.status_code, refused.json()["code"]) == (422, "entailment-limit")
    assert "derive more than 3 triples" in refused.json()["detail"]
    assert derived(http) == ["crash closes e6", "crash closes network"]


def test_a_schema_that_closes_a_negative_cycle_is_refused(http: httpx.Client, name: str) -> None:
    text = f"PREFIX : <{EX}> CONSTRUCT {{ ?x :quiet ?x }} INTO BACKGROUND :g WHERE {{ ?x :station ?y FILTER NOT EXISTS {{ ?x :reports ?z }} }}"
    assert http.put(f"/queries/{segment(name)}", content=text, headers=SPARQL).status_code == 201
    schema = f"<{EX}quiet> <http://www.w3.org/2000/01/rdf-schema#subPropertyOf> <{EX}reports> ."
    refused = http.put(FACTS, content=schema, headers=TTL)
    assert (refused.status_code, refused.json()["code"]) == (409, "cyclic-negation")
    assert name in refused.json()["detail"]
    http.delete(f"/queries/{segment(name)}")
