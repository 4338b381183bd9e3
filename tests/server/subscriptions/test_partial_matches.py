"""Partial matches in the query's own words, and the queries of a chain's first operands
(docs/decisions/0080-partial-matches-in-words.md).
"""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest

from epsparql.client import Client, segment
from pipeline.runners import goal_questions
from server.routes import explain
from tests.server.conftest import EX, moment, serving, until
from tests.server.routes.test_queries import SPARQL, put
from tests.server.routes.test_streams import assert_problem
from tests.support.logs import DEADLINE_S

QUESTIONS = 40
"""There are more of them than a server has threads."""


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
        ("{ ?s :a ?x } DURING { { ?s :b ?y } SEQ { ?s :c ?z } }", 2),
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


def ask(http: httpx.Client, name: str, **parameters: str) -> list[dict[str, Any]]:
    answer = http.get(f"/queries/{segment(name)}/goals", params=parameters)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["partial_matches"]
    return found


def test_partial_matches_are_found_by_a_variables_value_and_sorted(http: httpx.Client, client: Client, name: str, stream: str) -> None:
    """More than a report lists: each is found, by its values, and the newest or farthest come first."""
    assert put(http, name, chain(stream)).status_code == 201
    sent = [triple(f"o{k}", "a", k % 5, k) for k in range(1, 50)] + [triple("o7", "b", 3, 51), triple("o8", "b", 4, 50), triple("o7", "a", 4, 52)]
    client.send(stream, "\n".join(sent))
    goals(http, name, 20)
    of_o7 = [(each["reached"], each["end"], each["binding"]["x"]) for each in ask(http, name, s="o7")]
    number = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'.format
    assert of_o7 == [(1, moment(7), number(2)), (2, moment(51), number(2)), (1, moment(52), number(4))]
    for value in (f"{EX}o7", f"<{EX}o7>"):
        assert ask(http, name, s=value) == ask(http, name, s="o7")
    assert [each["end"] for each in ask(http, name, s="o7", x="4")] == [moment(52)]
    assert ask(http, name, s="o50") == []
    assert [each["end"] for each in ask(http, name, sort="newest", limit="3")] == [moment(52), moment(51), moment(50)]
    assert [(each["reached"], each["end"]) for each in ask(http, name, sort="progress", limit="3")] == [
        (2, moment(51)),
        (2, moment(50)),
        (1, moment(52)),
    ]
    assert len(ask(http, name, limit="1000")) == 52
    unknown = http.get(f"/queries/{segment(name)}/goals", params={"order": "o7"})
    assert_problem(unknown, 400, "unknown-parameter")
    assert http.get(f"/queries/{segment(name)}/goals", params={"limit": "0"}).status_code in (400, 422)


def test_a_texts_escapes_are_not_part_of_its_value_and_a_variable_may_have_the_name_of_a_parameter(
    http: httpx.Client, client: Client, name: str, stream: str
) -> None:
    where = "{ ?s :a ?sort } SEQ { ?s :b ?limit }"
    assert put(http, name, f"PREFIX : <{EX}> SELECT * FROM STREAM <{stream}> WHERE {{ {where} }}").status_code == 201
    texts = ['say "hi"', "back\\slash", "two\nlines", "plain"]
    client.send(
        stream, "\n".join(json.dumps({"s": f"<{EX}x{k}>", "p": f"<{EX}a>", "o": json.dumps(text), "at": moment(k)}) for k, text in enumerate(texts))
    )
    goals(http, name, len(texts))
    for k, text in enumerate(texts):
        assert [each["end"] for each in ask(http, name, **{"?sort": text})] == [moment(k)]
        assert [each["end"] for each in ask(http, name, **{"?sort": json.dumps(text), "?s": f"x{k}", "sort": "newest"})] == [moment(k)]
    refused = http.get(f"/queries/{segment(name)}/goals", params={"?order": "1"})
    assert_problem(refused, 400, "unknown-parameter")
    assert "'?order'" in refused.json()["detail"]


def test_who_waits_for_a_busy_runner_holds_no_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More questions wait than the server has threads, and meanwhile what else needs a thread is answered."""
    monkeypatch.setattr(explain, "_PATIENCE_S", 10 * DEADLINE_S)
    monkeypatch.setattr(goal_questions, "_LOOK_S", 0.0)
    is_free, answer = Event(), goal_questions.GoalAnswerer.answer
    monkeypatch.setattr(goal_questions.GoalAnswerer, "answer", lambda *given: answer(*given) if is_free.is_set() else None)
    with serving(tmp_path) as url, httpx.Client(base_url=url, timeout=DEADLINE_S) as http, ThreadPoolExecutor(QUESTIONS) as asking:
        put(http, "q", chain("s"))
        http.post("/streams/s/events", content=triple("p", "a", 1, 1), headers={"Content-Type": "application/x-ndjson"})
        goals(http, "q", 1)
        waiting = [asking.submit(httpx.get, f"{url}/queries/q/goals?sort=newest", timeout=10 * DEADLINE_S) for _ in range(QUESTIONS)]
        try:
            for _ in range(QUESTIONS):
                assert http.get("/queries/q/plan").status_code == 200
            assert not any(each.done() for each in waiting)
        finally:
            is_free.set()
        assert [(each.result().status_code, len(each.result().json()["partial_matches"])) for each in waiting] == [(200, 1)] * QUESTIONS


def test_partial_matches_of_a_union_are_told_by_alternative(http: httpx.Client, client: Client, name: str, stream: str) -> None:
    where = "{ { ?s :a ?x } SEQ { ?s :b ?y } SEQ { ?s :c ?z } } UNION { ?s :e ?z } UNION { { ?s :c ?x } SEQ { ?s :d ?z } }"
    first = http.put(f"/queries/{segment(name)}?notify_at=2", content=chain(stream, where, "FILTER(?x < 5)"), headers=SPARQL)
    assert (first.status_code, first.json()["companions"]) == (201, [f"{name}~2"]), first.text
    client.send(
        stream, "\n".join([triple("p", "a", 1, 1), triple("p", "c", 2, 2), triple("p", "b", 3, 3), triple("q", "c", 9, 4), triple("p", "e", 1, 5)])
    )
    told = goals(http, name, 3)
    assert told["operands"] == ["?s :a ?x", "?s :b ?y", "?s :c ?z", "?s :c ?x", "?s :d ?z"]
    seen = [(each["operands"], each["waits_for"], each["of"]) for each in told["partial_matches"]]
    assert seen == [
        (["?s :a ?x"], ["?s :b ?y", "?s :c ?z"], 3),
        (["?s :c ?x"], ["?s :d ?z"], 2),
        (["?s :a ?x", "?s :b ?y"], ["?s :c ?z"], 3),
    ]
    until(lambda: http.get(f"/queries/{segment(name + '~2')}").json()["solutions"] == 1, "the companion's solution")
    assert bindings(client, f"{name}~2") == [{"s": f"{EX}p", "x": "1", "y": "3"}]


PROGRAM = """from_stream('{}').
print_trigger(deal/3). print_trigger(rare/1).
deal(S, X, Y) <- (offer(S, X, 'big lot') seq bid(S, Y)) cnot withdrawn(S) where X =< Y.
rare(S) <- deal(S, _, _) and (bid(S, 1) seq bid(S, 2)).
"""


def test_partial_matches_of_a_program_are_in_its_own_words(http: httpx.Client, client: Client, name: str, stream: str) -> None:
    made = http.put(f"/queries/{segment(name)}", content=PROGRAM.format(stream), headers={"Content-Type": "text/x-etalis-event"})
    assert made.status_code == 201, made.text
    events = "event(offer(acme, 3, 'big lot'), 1). event(offer('Big Co', 4, 'big lot'), 2). event(bid(acme, 1), 3)."
    client.request("POST", f"/streams/{segment(stream)}/events", events, Content_Type="text/x-etalis-stream")
    told = goals(http, name, 3)
    assert told["operands"] == ["offer(S, X, 'big lot')", "bid(S, Y)", "deal(S, _, _)", "bid(S, 1)", "bid(S, 2)"]
    offer = {"reached": 1, "of": 2, "operands": ["offer(S, X, 'big lot')"], "waits_for": ["bid(S, Y)"]}
    times = [{"start": f"1970-01-01T00:00:0{k}Z", "end": f"1970-01-01T00:00:0{k}Z"} for k in (1, 2, 3)]
    assert told["partial_matches"][:2] == [
        {**offer, **times[0], "binding": {"S": "acme", "X": "3"}},
        {**offer, **times[1], "binding": {"S": "'Big Co'", "X": "4"}},
    ]
    assert told["partial_matches"][2]["waits_for"] == ["deal(S, _, _)", "bid(S, 2)"]
    assert [each["end"] for each in ask(http, name, S="acme", sort="newest")] == [times[2]["end"], times[0]["end"]]
    assert ask(http, name, S="Big Co") == told["partial_matches"][1:2]


def test_a_companion_of_a_program_reports_what_its_first_operands_have_found(http: httpx.Client, client: Client, name: str, stream: str) -> None:
    """Each rule with more operands gives an event, whose arguments are the variables that they bind."""
    text = PROGRAM.format(stream)
    made = http.put(f"/queries/{segment(name)}?notify_at=1", content=text, headers={"Content-Type": "text/x-etalis-event"})
    assert (made.status_code, made.json()["companions"]) == (201, [f"{name}~1"]), made.text
    events = "event(offer(acme, 3, 'big lot'), 1). event(offer(zeta, 4, small), 2). event(bid(acme, 3), 3)."
    client.request("POST", f"/streams/{segment(stream)}/events", events, Content_Type="text/x-etalis-stream")
    client.request("POST", f"/streams/{segment(stream)}/finish")
    until(lambda: http.get(f"/queries/{segment(name + '~1')}").json()["solutions"] == 2, "the companion's events")
    found = [(each.event, each.args) for each in client.solutions(f"{name}~1")]
    assert found == [("deal~1", ["acme", 3]), ("rare~1", ["acme"])]
    assert_problem(
        http.put(f"/queries/{segment(name)}x?notify_at=3", content=text, headers={"Content-Type": "text/x-etalis-event"}), 400, "no-first-operands"
    )
    assert http.delete(f"/queries/{segment(name)}").status_code == 204
    assert http.get(f"/queries/{segment(name + '~1')}").status_code == 404


def test_the_plan_of_a_program_has_its_binary_rules(http: httpx.Client, name: str, stream: str) -> None:
    http.put(f"/queries/{segment(name)}", content=PROGRAM.format(stream), headers={"Content-Type": "text/x-etalis-event"})
    plan = http.get(f"/queries/{segment(name)}/plan", headers={"Accept": "application/json"}).json()
    assert [(each["rule"], each["event"], each["pattern"], each["waits"]) for each in plan["rules"]] == [
        ("deal/3", "ie1", "offer(S, X, 'big lot') seq bid(S, Y)", [{"event": "offer(S, X, 'big lot')", "waits_for": "bid(S, Y)"}]),
        ("deal/3", "deal(S, X, Y)", "ie1 cnot withdrawn(S) where X =< Y", []),
        ("rare/1", "ie2", "bid(S, 1) seq bid(S, 2)", [{"event": "bid(S, 1)", "waits_for": "bid(S, 2)"}]),
        (
            "rare/1",
            "rare(S)",
            "deal(S, _, _) and ie2",
            [{"event": "deal(S, _, _)", "waits_for": "ie2"}, {"event": "ie2", "waits_for": "deal(S, _, _)"}],
        ),
    ]
    text = http.get(f"/queries/{segment(name)}/plan", headers={"Accept": "text/plain"}).text
    assert "\nrules\n  ie1 <- offer(S, X, 'big lot') seq bid(S, Y)   [offer(S, X, 'big lot') waits for bid(S, Y)]\n" in text
    drawn = http.get(f"/queries/{segment(name)}/plan", headers={"Accept": "text/vnd.mermaid"}).text
    assert "r0 --> r1" in drawn
    assert "r2 --> r3" in drawn
