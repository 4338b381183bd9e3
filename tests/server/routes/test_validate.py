"""Queries that are looked at and not registered."""

from typing import Any

import httpx
import pytest

from epsparql.client import Client
from tests.server.conftest import EX
from tests.server.routes.test_streams import assert_problem

FINE = f"PREFIX : <{EX}>\nSELECT ?a ?b WHERE {{ {{ ?s :v ?a }} SEQ {{ ?s :v ?b }} }}"


def looked_at(http: httpx.Client, query: str, **more: str) -> Any:
    answer = http.post("/check", json={"query": query} | more)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize(
    ("query", "code", "place"),
    [
        pytest.param("SELECT *\nWHERE {\n  ?s ?p ?o\n", "syntax", (4, 1, 4, 1), id="what is missing at the end"),
        pytest.param(f"PREFIX : <{EX}> SELECT ?ü WHERE {{ ?ü :é ?x . ?x 𝄞:v ?y }}", "unknown-prefix", (1, 64, 1, 66), id="columns are code points"),
    ],
)
def test_faults(http: httpx.Client, query: str, code: str, place: tuple[int, int, int, int]) -> None:
    found = looked_at(http, query)
    (fault,) = found["errors"]
    assert found["plan"] is None
    assert (fault["code"], fault["line"], fault["column"], fault["end_line"], fault["end_column"]) == (code, *place)


def test_all_faults_and_their_repairs(http: httpx.Client) -> None:
    found = looked_at(http, "SELECT ?a\nWHERE { ?s price ?a } WITHIN \u201cPT1H\u201d")
    assert [(mark["code"], mark["line"], mark["column"]) for mark in found["errors"]] == [
        ("syntax", 2, 12),
        ("unknown-prefix", 2, 12),
        ("syntax", 2, 30),
    ]
    assert {(repair["found"], repair["remedy"]) for repair in found["repairs"]} == {
        ("price", ":price"),
        ("\u201cPT1H\u201d", '"PT1H"'),
        ("", "PREFIX : <http://example.org/>"),
    }
    assert looked_at(http, found["mended"])["errors"] == []
    assert looked_at(http, FINE)["mended"] is None


def test_the_plan_of_what_has_no_fault(http: httpx.Client) -> None:
    found = looked_at(http, FINE)
    assert found["errors"] == []
    assert "SEQ" in [step["operator"] for step in found["plan"]["plan"]]
    assert found["plan"]["unbounded"]
    assert [warning["code"] for warning in found["warnings"]]


def test_nothing_is_registered(http: httpx.Client) -> None:
    before = http.get("/queries").json()
    looked_at(http, FINE, name="looked at")
    assert http.get("/queries").json()["queries"] == before["queries"]


def test_rules_that_would_go_round_through_a_negative_part(http: httpx.Client, client: Client, name: str, stream: str) -> None:
    rule = f"PREFIX : <{EX}> CONSTRUCT {{ ?s :{{}} 1 }} INTO STREAM <{stream}> FROM STREAM <{stream}> WHERE {{ ?s :v ?v MINUS {{ ?s :{{}} 1 }} }}"
    first, second = (rule.replace("{}", each, 1).replace("{}", other) for each, other in (("a", "b"), ("b", "a")))
    client.register(name, first)
    assert [fault["code"] for fault in looked_at(http, second)["errors"]] == ["cyclic-negation"]
    assert looked_at(http, second, name=name)["errors"] == []  # in place of the first one it would do
    client.drop(name)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "no-query"),
        ({"query": "ASK {}", "policy": "none"}, "invalid-member"),
        ({"query": "ASK {}", "default_graph": "none"}, "invalid-member"),
        ({"query": "ASK {}", "from": "now"}, "unknown-member"),
        ({"query": 1}, "invalid-member"),
    ],
)
def test_refused(http: httpx.Client, body: object, code: str) -> None:
    assert_problem(http.post("/check", json=body), 400, code)


def test_too_large(http: httpx.Client) -> None:
    assert_problem(http.post("/check", json={"query": " " * 20_000}), 413)
