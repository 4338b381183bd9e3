"""Partial matches in the query's own words, and the queries of a chain's first operands
(docs/decisions/0080-partial-matches-in-words.md).
"""

from typing import Any

import httpx
import pytest

from epsparql.client import Client, segment
from tests.server.conftest import EX, moment, until
from tests.server.routes.test_queries import SPARQL, put
from tests.server.routes.test_streams import assert_problem


def chain(stream: str, where: str = "{ ?s :a ?x } SEQ { ?s :b ?y FILTER(?y > 1) } SEQ { ?s :c ?z }", end: str = "FILTER(?x < 5)") -> str:
    return f"PREFIX : <{EX}> SELECT ?s ?x ?z FROM STREAM <{stream}> WHERE {{ {where} {end} }}"


def triple(subject: str, predicate: str, value: int, second: int) -> str:
    return (
        f'{{"s":"<{EX}{subject}>","p":"<{EX}{predicate}>","o":"\\"{value}\\"^^<http://www.w3.org/2001/XMLSchema#integer>","at":"{moment(second)}"}}'
    )


def goals(http: httpx.Client, name: str, n: int) -> dict[str, Any]:
    until(lambda: len(http.get(f"/queries/{segment(name)}/goals").json()["partial_matches"]) == n, "the runner's report")
    found: dict[str, Any] = http.get(f"/queries/{segment(name)}/goals").json()
    return found


def bindings(client: Client, name: str) -> list[dict[str, str]]:
    return [{variable: term["value"] for variable, term in (each.binding or {}).items()} for each in client.solutions(name)]


def test_partial_matches_have_the_querys_own_words(http: httpx.Client, client: Client, name: str, stream: str) -> None:
    assert put(http, name, chain(stream)).status_code == 201
    client.send(
        stream, "\n".join([triple("p", "a", 1, 1), triple("q", "a", 2, 2), triple("q", "a", 9, 2), triple("p", "b", 3, 3), triple("p", "b", 1, 4)])
    )
    told = goals(http, name, 3)
    assert told["operands"] == ["?s :a ?x", "?s :b ?y", "?s :c ?z"]
    seen = [(each["reached"], each["of"], each["end"], each["binding"]["s"]) for each in told["partial_matches"]]
    assert seen == [(1, 3, moment(1), f"<{EX}p>"), (1, 3, moment(2), f"<{EX}q>"), (2, 3, moment(3), f"<{EX}p>")]
    last = told["partial_matches"][2]
    assert (last["operands"], last["waits_for"], last["start"]) == (told["operands"][:2], told["operands"][2:], moment(1))
    assert set(last["binding"]) == {"s", "x", "y"}


def test_partial_matches_of_a_shared_part_and_of_a_window(http: httpx.Client, client: Client, name: str, stream: str) -> None:
    """Two queries keep the goals of their common part once. What has outlived its window is no partial match."""
    for suffix, last in (("", ":c"), (" too", ":d")):
        put(
            http,
            name + suffix,
            chain(stream, f"{{ {{ ?s :a ?x }} SEQ {{ ?s :b ?y }} }} SEQ {{ ?s {last} ?z }}", "FILTER(getDURATION() < 'PT10S'^^xsd:duration)").replace(
                "SELECT", "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> SELECT"
            ),
        )
    client.send(stream, "\n".join([triple("p", "a", 1, 1), triple("p", "b", 3, 3), triple("q", "a", 1, 20)]))
    for each in (name, f"{name} too"):
        assert [(match["reached"], match["binding"]["s"]) for match in goals(http, each, 1)["partial_matches"]] == [(1, f"<{EX}q>")]


def test_a_companion_gives_what_the_first_operands_have_found(http: httpx.Client, client: Client, name: str, stream: str) -> None:
    first = http.put(f"/queries/{segment(name)}?notify_at=2", content=chain(stream), headers=SPARQL)
    assert (first.status_code, first.json()["companions"]) == (201, [f"{name}~2"])
    client.send(
        stream, "\n".join([triple("p", "a", 1, 1), triple("q", "a", 9, 2), triple("p", "b", 3, 3), triple("q", "b", 3, 4), triple("p", "c", 0, 5)])
    )
    client.request("POST", f"/streams/{segment(stream)}/finish")
    until(lambda: http.get(f"/queries/{segment(name)}").json()["solutions"] == 1, "the solution")
    until(lambda: http.get(f"/queries/{segment(name + '~2')}").json()["solutions"] == 1, "the companion's solution")
    assert bindings(client, f"{name}~2") == [{"s": f"{EX}p", "x": "1", "y": "3"}]
    again = http.put(f"/queries/{segment(name)}", json={"query": chain(stream), "notify_at": 2})
    assert (again.status_code, again.json()["companions"]) == (200, [f"{name}~2"])
    assert http.put(f"/queries/{segment(name)}", json={"query": chain(stream), "notify_at": 1}).json()["companions"] == [f"{name}~2", f"{name}~1"]
    other = chain(stream, end="FILTER(?x < 4)")
    replaced = http.put(f"/queries/{segment(name)}?replace=true", json={"query": other, "notify_at": 1})
    assert (replaced.status_code, replaced.json()["companions"]) == (201, [f"{name}~1"])
    assert http.get(f"/queries/{segment(name + '~2')}").status_code == 404
    assert http.delete(f"/queries/{segment(name)}").status_code == 204
    assert http.get(f"/queries/{segment(name + '~1')}").status_code == 404


@pytest.mark.parametrize(
    ("where", "n"),
    [
        ("{ ?s :a ?x } SEQ { ?s :b ?y }", 2),
        ("{ ?s :a ?x } SEQ { { ?s :b ?y } SEQ { ?s :c ?z } }", 2),
        ("?s :a ?x", 1),
    ],
)
def test_operands_that_are_no_part_by_themselves_are_refused(http: httpx.Client, name: str, stream: str, where: str, n: int) -> None:
    answer = http.put(f"/queries/{segment(name)}", json={"query": chain(stream, where, ""), "notify_at": n})
    assert_problem(answer, 400, "no-first-operands")
    assert http.get(f"/queries/{segment(name)}").status_code == 404


def test_a_companion_takes_no_other_querys_name(http: httpx.Client, name: str, stream: str) -> None:
    put(http, f"{name}~1", chain(stream))
    assert_problem(http.put(f"/queries/{segment(name)}", json={"query": chain(stream), "notify_at": 1}), 409, "query-exists")
    assert http.get(f"/queries/{segment(name)}").status_code == 404
    assert_problem(http.put(f"/queries/{segment(name)}", json={"query": chain(stream), "notify_at": True}), 400, "invalid-member")
