"""Registering, describing, explaining and dropping queries."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from epsparql.client import Client, segment
from pipeline.log.catalog import Registration
from server.routes.explain import PlanDocument
from server.routes.queries import compute_lag
from tests.server.conftest import EX, event, moment, serving, until, values
from tests.server.routes.test_streams import assert_problem

SPARQL = {"Content-Type": "application/sparql-query"}


def put(http: httpx.Client, name: str, text: str, query: str = "") -> httpx.Response:
    return http.put(f"/queries/{segment(name)}{query}", content=text, headers=SPARQL)


def test_registered_as_text(http: httpx.Client, name: str, stream: str) -> None:
    answer = put(http, name, values(stream))
    assert answer.status_code == 201, answer.text
    assert answer.headers["location"] == f"/queries/{segment(name)}"
    document = answer.json()
    assert document["name"] == name
    assert document["query"] == values(stream)
    assert (document["state"], document["reason"], document["solutions"], document["last"]) == ("running", None, 0, None)
    assert {warning["code"] for warning in document["warnings"]} <= {"unknown-stream"}
    for link in document["links"].values():
        assert (
            http.get(link, headers={"Accept": "*/*"} if "events" not in link else {}, params={"limit": 1} if "solutions" in link else {}).status_code
            == 200
            if "events" not in link
            else True
        )
    assert http.get(answer.headers["location"]).json()["registered"] == document["registered"]
    listed = next(each for each in http.get("/queries").json()["queries"] if each["name"] == name)
    assert set(listed) == set(document) - {"warnings", "version", "promotion", "companions"}, (
        "a list that does not look for warnings does not say that there are none"
    )


def test_registered_as_json(http: httpx.Client, name: str, stream: str) -> None:
    wish = {"query": values(stream), "policy": "unrestricted", "default_graph": "all", "from": "now"}
    assert http.put(f"/queries/{segment(name)}", json=wish).status_code == 201


def test_the_same_again_is_no_second_registration(http: httpx.Client, name: str, stream: str) -> None:
    first = put(http, name, values(stream))
    again = put(http, name, values(stream))
    assert (again.status_code, again.json()["registered"]) == (200, first.json()["registered"])


@pytest.mark.parametrize("options", ["", "?replace=true"])
def test_how_a_text_is_written_makes_no_other_query(http: httpx.Client, name: str, stream: str, options: str) -> None:
    text = values(stream)
    first = put(http, name, text).json()
    written = text.replace("PREFIX :", "PREFIX e:").replace(" :", " e:")
    assert written.count(" e:") == 2
    for other in (f"\n{text} \n", text.replace("{", "{\n  # a comment\n", 1), written):
        again = put(http, name, other, options)
        assert (again.status_code, again.json()["registered"], again.json()["query"]) == (200, first["registered"], text)
    assert put(http, name, text.replace("?v FROM", "FROM")).status_code == 409


def test_warnings_have_their_places_in_the_text_that_stays(http: httpx.Client, name: str, stream: str) -> None:
    text = f"PREFIX : <{EX}> SELECT ?s FROM STREAM <{stream}> WHERE {{ {{ ?s :value ?v }} SEQ {{ ?s :value ?w }} }}"
    first = put(http, name, text).json()["warnings"]
    assert first
    assert put(http, name, f"# a comment\n{text}").json()["warnings"] == first


def test_what_cannot_replace_a_query_leaves_it(http: httpx.Client, name: str, stream: str) -> None:
    first = put(http, name, values(stream)).json()
    other = values(stream).replace("SELECT", "SELECT DISTINCT")
    assert_problem(put(http, name, other, "?replace=true&from=999999999"), 400, "bad-offset")
    left = http.get(f"/queries/{segment(name)}").json()
    assert (left["registered"], left["query"]) == (first["registered"], first["query"])
    assert put(http, name, other, f"?replace=true&from={first['registered']}").status_code == 201


def test_another_text_needs_replace(http: httpx.Client, client: Client, name: str, stream: str) -> None:
    first = put(http, name, values(stream))
    client.send(stream, event(1))
    until(lambda: bool(client.query(name)["solutions"]), "the first solution")
    other = values(stream).replace("SELECT", "SELECT DISTINCT")
    problem = assert_problem(put(http, name, other), 409, "query-exists")
    assert problem["query"] == name
    replaced = put(http, name, other, "?replace=true")
    assert replaced.status_code == 201
    assert replaced.json()["registered"] > first.json()["registered"]
    assert client.solutions(name) == [], "a new solution log"
    client.send(stream, event(2))
    assert len(client.solutions(name, wait_s=30)) == 1


def test_posted_queries_get_names_of_their_own(http: httpx.Client, stream: str) -> None:
    first = http.post("/queries", content=values(stream), headers=SPARQL)
    again = http.post("/queries", content=values(stream), headers=SPARQL)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["name"] == again.json()["name"]
    assert http.get(first.headers["location"]).status_code == 200


def test_posted_queries_may_bring_a_name(http: httpx.Client, name: str, stream: str) -> None:
    assert http.post("/queries", json={"query": values(stream), "name": name}).json()["name"] == name
    assert_problem(http.put("/queries/other", json={"query": values(stream), "name": name}), 400, "two-names")


FAULTS = [
    pytest.param("SELECT ?s\nWHERE { SEQ { ?s <p> ?v } }", "syntax", (2, 9), id="misplaced SEQ"),
    pytest.param("SELECT ?s WHERE { ?s x:p ?v }", "unknown-prefix", (1, 22), id="unknown prefix"),
    pytest.param("", "syntax", (1, 1), id="empty"),
]


@pytest.mark.parametrize(("text", "code", "place"), FAULTS)
def test_faults_have_a_place(http: httpx.Client, name: str, text: str, code: str, place: tuple[int, int]) -> None:
    problem = assert_problem(put(http, name, text), 400, code)
    assert (problem["line"], problem["column"]) == place
    assert problem["query"] == name
    assert_problem(http.get(f"/queries/{segment(name)}"), 404)


def test_a_place_in_a_json_body_is_one_in_the_query(http: httpx.Client, name: str) -> None:
    problem = assert_problem(http.put(f"/queries/{segment(name)}", json={"query": "SELECT ?s\nWHERE { SEQ { ?s <p> ?v } }"}), 400, "syntax")
    assert (problem["line"], problem["column"]) == (2, 9)
    assert problem["expected"]


@pytest.mark.parametrize(
    ("body", "headers", "query", "status", "code"),
    [
        pytest.param('{"query": ', {"Content-Type": "application/json"}, "", 400, "malformed-json", id="malformed JSON"),
        pytest.param("{}", {"Content-Type": "application/json"}, "", 400, "no-query", id="no query"),
        pytest.param('{"query": 1}', {"Content-Type": "application/json"}, "", 400, "invalid-member", id="no text"),
        pytest.param(r'{"query": "SELECT \ud800"}', {"Content-Type": "application/json"}, "", 400, "invalid-member", id="half of a surrogate pair"),
        pytest.param('{"query": ' + "[" * 9_000, {"Content-Type": "application/json"}, "", 400, "too-deep", id="nested too deeply"),
        pytest.param('{"query": "", "x": 1}', {"Content-Type": "application/json"}, "", 400, "unknown-member", id="unknown member"),
        pytest.param("SELECT", {"Content-Type": "text/plain"}, "", 415, "media-type", id="media type"),
        pytest.param("SELECT", {}, "", 415, "media-type", id="no media type"),
        pytest.param("SELECT", SPARQL, "?policy=best", 400, "invalid-member", id="no policy"),
        pytest.param("SELECT", SPARQL, "?default_graph=some", 400, "invalid-member", id="default graph"),
        pytest.param("SELECT", SPARQL, "?from=yesterday", 400, "invalid-member", id="from"),
        pytest.param("SELECT", SPARQL, "?from=-1", 400, "invalid-member", id="from before the log"),
        pytest.param("SELECT * { ?s ?p ?o }", SPARQL, "?from=99999999", 400, "bad-offset", id="from beyond the log"),
        pytest.param("SELECT", SPARQL, "?replace=perhaps", 400, "invalid-parameter", id="no boolean"),
        pytest.param("#" * 10_001, SPARQL, "", 413, "too-large", id="too large"),
        pytest.param(b"\xff", SPARQL, "", 400, "bad-encoding", id="no UTF-8"),
    ],
)
def test_other_faults(http: httpx.Client, name: str, body: str, headers: dict[str, str], query: str, status: int, code: str) -> None:
    assert_problem(http.put(f"/queries/{segment(name)}{query}", content=body, headers=headers), status, code)


@pytest.mark.parametrize("member", ["query", "name", "policy", "default_graph"])
def test_half_of_a_surrogate_pair_is_refused_with_its_member(http: httpx.Client, stream: str, member: str) -> None:
    wish = {"query": values(stream), member: "half \udc00"}
    problem = assert_problem(http.post("/queries", content=json.dumps(wish), headers={"Content-Type": "application/json"}), 400, "invalid-member")
    assert str(problem["detail"]).startswith(f"{member} ")


def test_an_unknown_query_is_told_the_nearest(http: httpx.Client, name: str, stream: str) -> None:
    put(http, name, values(stream))
    for path in ("", "/plan", "/solutions", "/events"):
        problem = assert_problem(http.get(f"/queries/{segment(name + 'x')}{path}"), 404, "unknown-query")
        assert repr(name) in str(problem["detail"])
        assert problem["expected"] == name


def test_warnings_tell_of_streams_that_are_waited_for(http: httpx.Client, client: Client, name: str, stream: str) -> None:
    text = f"PREFIX : <{EX}> SELECT ?s FROM STREAM <{stream}> FROM STREAM <{stream}x> WHERE {{ ?s :a ?v }}"

    def warned(document: dict[str, Any]) -> list[str]:
        return [warning["message"] for warning in document["warnings"] if warning["code"] == "unfed-stream"]

    assert [stream in message for message in warned(put(http, name, text).json())] == [True, True]
    client.send(stream, event(1))
    assert [f"{stream}x" in message for message in warned(client.query(name))] == [True]
    client.create_stream(f"{stream}x")
    client.finish(f"{stream}x")
    assert warned(client.query(name)) == []


def rule(into: str, *reads: str) -> str:
    return f"PREFIX : <{EX}> CONSTRUCT {{ ?s :value ?v }} INTO STREAM <{into}> {''.join(f'FROM STREAM <{each}> ' for each in reads)} WHERE {{ ?s :value ?v }}"


def test_a_query_tells_for_which_streams_it_waits(http: httpx.Client, client: Client, name: str, stream: str) -> None:
    """A query also waits by way of rules; all queries are listed with their streams."""
    derived, other = f"{stream}d", f"{stream}o"
    assert put(http, name, values(derived)).json()["unfed"] == [derived]
    put(http, f"{name} rule", rule(derived, stream))
    listed = {query["name"]: query["unfed"] for query in client.queries()}
    assert (listed[name], listed[f"{name} rule"], client.query(name)["warnings"]) == ([stream], [stream], [])
    put(http, f"{name} second", rule(derived, other))
    assert client.query(name)["unfed"] == sorted([stream, other])
    assert [warning["code"] for warning in client.query(name)["warnings"]] == ["unfed-stream"] * 2, "either rule holds the other's back"
    client.send(stream, event(1))
    client.create_stream(other)
    assert client.query(name)["unfed"] == [other]
    client.finish(other)
    assert client.query(name)["unfed"] == []
    client.drop(f"{name} rule")
    client.drop(f"{name} second")
    assert client.query(name)["unfed"] == [derived]


@pytest.mark.parametrize(
    ("registration", "head", "position", "behind"),
    [
        pytest.param({}, 9, 9, 0, id="all is applied"),
        pytest.param({}, 9, 6, 3, id="three entries are not"),
        pytest.param({"registered": 9}, 9, 9, 1, id="its own entry is not counted yet"),
        pytest.param({"reads": 4}, 9, 9, 5, id="it is behind the others"),
        pytest.param({"since": 9}, 9, 9, 1, id="the entry by which it joined them is not counted yet"),
        pytest.param({"since": 8}, 9, 9, 0, id="that one is applied"),
    ],
)
def test_a_query_has_all_only_when_its_last_entry_is_applied(registration: dict[str, int], head: int, position: int, behind: int) -> None:
    found = Registration(**{"registered": 0, "name": "q", "text": values("s")} | registration)  # type: ignore[arg-type]
    assert compute_lag(found, head, position) == behind


def test_a_query_that_has_ended_waits_for_no_stream(http: httpx.Client, client: Client, name: str, stream: str) -> None:
    put(http, name, f"ASK FROM STREAM <{stream}> WHERE {{ ?s ?p ?o }}")
    client.send(stream, event(1) + "\n" + event(2))
    until(lambda: client.query(name)["state"] == "completed", "the query has answered")
    assert http.delete(f"/streams/{segment(stream)}").status_code == 204
    assert client.query(name)["unfed"] == []


def test_the_plan(http: httpx.Client, name: str, stream: str) -> None:
    put(http, name, values(stream))
    path = f"/queries/{segment(name)}/plan"
    found = {kind: http.get(path, headers={"Accept": kind}) for kind in ("application/json", "text/plain", "text/vnd.mermaid", "*/*")}
    for kind, answer in found.items():
        assert answer.headers["content-type"].startswith("application/json" if kind == "*/*" else kind)
    document = PlanDocument.model_validate_json(found["application/json"].text, strict=True)
    assert [(step.operator, step.inputs) for step in document.plan] == [("SELECT", [1]), ("scan", [])]
    assert [(item.node, item.inputs) for item in document.algebra] == [("Select", [1]), ("Bgp", [])]
    assert "scan" in found["text/plain"].text
    assert found["text/vnd.mermaid"].text.startswith("flowchart")
    assert_problem(http.get(f"/queries/{segment(name)}/plan", headers={"Accept": "image/png"}), 406)


def test_policies(http: httpx.Client, client: Client, name: str, stream: str) -> None:
    text = f"PREFIX : <{EX}> SELECT ?v FROM STREAM <{stream}> WHERE {{ {{ ?s :a ?v }} SEQ {{ ?s :b ?w }} }}"
    other = f"{name} too"
    recent = put(http, name, text, "?policy=recent")
    chronological = http.put(f"/queries/{segment(other)}", json={"query": text, "policy": "chronological"})
    assert [(answer.status_code, answer.json()["policy"]) for answer in (recent, chronological)] == [(201, "recent"), (201, "chronological")]
    assert "SEQ recent on ?s" in http.get(f"/queries/{segment(name)}/plan", headers={"Accept": "text/plain"}).text
    assert "until a right one consumes them" in http.get(f"/queries/{segment(other)}").json()["warnings"][0]["message"]
    events = enumerate(("a", "a", "b"), 1)
    client.send(stream, "\n".join(event(second, value=second).replace(f"{EX}value", f"{EX}{predicate}") for second, predicate in events))
    client.finish(stream)
    assert [[solution.start for solution in client.solutions(each, wait_s=30)] for each in (name, other)] == [[moment(2)], [moment(1)]]


def test_a_policy_that_names_a_variable(http: httpx.Client, name: str, stream: str) -> None:
    text = f"PREFIX : <{EX}> SELECT ?v FROM STREAM <{stream}> WHERE {{ {{ ?s :a ?v }} AND {{ ?s :b ?w }} }}"
    made = put(http, name, text, "?policy=recent-by%20$v")
    assert (made.status_code, made.json()["policy"]) == (201, "recent-by ?v")
    assert "AND recent-by ?v on ?s" in http.get(f"/queries/{segment(name)}/plan", headers={"Accept": "text/plain"}).text
    other = put(http, name, text, "?policy=recent-by%20?none&replace=true").json()
    assert (other["policy"], next(each["code"] for each in other["warnings"])) == ("recent-by ?none", "policy-variable")
    refused = http.post("/check", json={"query": text, "policy": "recent-longer"}).json()
    assert (refused["code"], refused["expected"]) == ("invalid-member", "unrestricted or recent or recent-longest or recent-by ?v or chronological")


def test_dropped(http: httpx.Client, name: str, stream: str) -> None:
    put(http, name, values(stream))
    assert http.delete(f"/queries/{segment(name)}").status_code == 204
    assert_problem(http.get(f"/queries/{segment(name)}"), 404)
    assert_problem(http.delete(f"/queries/{segment(name)}"), 404)


# ---------------------------------------------------------------- what a query keeps
def pairs(stream: str) -> str:
    return f"PREFIX : <{EX}> SELECT * FROM STREAM <{stream}> WHERE {{ {{ ?s :value ?v }} SEQ {{ ?s :other ?w }} }}"


def test_goals_are_told(http: httpx.Client, client: Client, name: str, stream: str) -> None:
    put(http, name, pairs(stream))
    client.send(stream, "\n".join(event(k) for k in range(1, 4)))
    goals = f"/queries/{segment(name)}/goals"
    until(lambda: http.get(goals).json()["goals"] == 3, "the runner's report")
    told = http.get(goals).json()
    assert told["operators"] == [{"operator": "SEQ", "on": ["?s"], "sides": [{"side": "left", "goals": 3, "oldest": moment(1)}], "state_bytes": 0}]
    memory = http.get(f"/queries/{segment(name)}").json()["memory"]
    assert (memory["goals"], memory["state_bytes"]) == (3, told["state_bytes"])
    assert memory["offset"] >= told["offset"] > 0
    engine = http.get("/queries").json()["engine"]
    assert engine["terms"] > 3
    assert engine["reserved_bytes"] > 0
    assert engine["networks"] > 0


def test_rows_of_each_step_are_told(http: httpx.Client, client: Client, name: str, stream: str) -> None:
    """The plan of a query that finds nothing shows where the rows end, as JSON and as text; a text that is only
    checked has no rows.
    """
    put(http, name, pairs(stream))
    client.send(stream, "\n".join(event(k) for k in range(1, 4)))
    plan = f"/queries/{segment(name)}/plan"
    until(lambda: (http.get(plan).json()["plan"][1].get("live") or {"sides": []})["sides"], "the runner's report")
    found = [each["live"] for each in http.get(plan).json()["plan"]]
    assert found == [
        {"sides": [], "out": None, "refused": 0, "type_errors": 0, "state_bytes": 0},
        {"sides": [{"side": "left", "rows": 3, "goals": 3}], "out": 0, "refused": 0, "type_errors": 0, "state_bytes": 0},
        {"sides": [], "out": 3, "refused": 0, "type_errors": 0, "state_bytes": 0},
        {"sides": [], "out": 0, "refused": 0, "type_errors": 0, "state_bytes": 0},
    ]
    assert "(in: left 3; out: 0)" in http.get(plan, headers={"Accept": "text/plain"}).text
    assert [each["live"] for each in http.post("/check", json={"query": pairs(stream)}).json()["plan"]["plan"]] == [None] * 4


def test_a_query_beyond_its_quota_fails_with_a_remedy(tmp_path: Path, name: str, stream: str) -> None:
    with serving(tmp_path, max_partial_matches=2) as url, httpx.Client(base_url=url) as http:
        put(http, name, pairs(stream))
        put(http, "other", values(stream))
        Client(url).send(stream, "\n".join(event(k) for k in range(1, 4)))
        until(lambda: http.get(f"/queries/{segment(name)}").json()["state"] == "failed", "the failure")
        failed = http.get(f"/queries/{segment(name)}").json()
        assert "stores 3 partial matches, more than the limit of 2 (max_partial_matches)" in failed["reason"]
        assert failed["memory"] is None
        assert http.get(f"/queries/{segment(name)}/goals").json()["operators"] == []
        until(lambda: http.get("/queries/other").json()["solutions"] == 3, "the other's solutions")
        assert http.get("/queries/other").json()["state"] == "running"
        assert (put(http, name, pairs(stream)).status_code, put(http, "other", values(stream), "?replace=true").status_code) == (200, 200)
        anew = put(http, name, pairs(stream), "?replace=true")
        assert (anew.status_code, anew.json()["state"]) == (201, "running")
        assert anew.json()["registered"] > failed["registered"]


def test_a_long_list_comes_in_pages(http: httpx.Client, client: Client, name: str, stream: str) -> None:
    for number in range(3):
        client.register(f"{name}{number}", values(stream))
    every, found, following = [each["name"] for each in http.get("/queries").json()["queries"]], list[str](), "/queries?limit=2"
    while following:
        answer = http.get(following)
        page = [each["name"] for each in answer.json()["queries"]]
        assert len(page) == min(2, len(every) - len(found))
        found += page
        following = answer.links["next"]["url"] if "next" in answer.links else ""
    assert found == every
    assert http.get("/queries?limit=0").status_code == 400


def test_type_errors_of_a_filter_are_told(http: httpx.Client, client: Client, name: str, stream: str) -> None:
    """Rows for which a filter has no value are told from those for which it is false, whoever decides: compiled code
    or the host.
    """
    text = f"PREFIX : <{EX}> SELECT ?s FROM STREAM <{stream}> WHERE {{ {{ ?s :value ?v }} SEQ {{ ?s :value ?w }} FILTER({{}}) }}"
    conditions = {"numbers": "?v + ?w > 30", "texts": "STRLEN(?v) > 30"}
    for kind, condition in conditions.items():
        put(http, f"{name} {kind}", text.replace("{}", condition).replace("{{", "{").replace("}}", "}"))
    values = ['"1"^^<http://www.w3.org/2001/XMLSchema#integer>', '"old"', "<http://e/x>"]
    client.send(
        stream, "\n".join(json.dumps({"s": f"<{EX}s>", "p": f"<{EX}value>", "o": o, "at": moment(k)}) for k, o in enumerate([*values, values[0]]))
    )

    def count(kind: str) -> list[tuple[int, int]]:
        plan = http.get(f"/queries/{segment(f'{name} {kind}')}/plan").json()["plan"]
        counted = [live for each in plan if (live := each.get("live"))]  # nothing is counted before the first evaluation
        return [(live["refused"], live["type_errors"]) for live in counted if live["refused"]]

    until(lambda: count("numbers") == [(6, 5)], "only the sum of the numbers has a value", 20)
    until(lambda: count("texts") == [(4, 3)], "only the text has a length", 20)
    shown = http.get(f"/queries/{segment(f'{name} numbers')}/plan", headers={"Accept": "text/plain"}).text
    assert "refused: 6; type errors: 5" in shown
