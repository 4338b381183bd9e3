"""Revised queries over HTTP: late events and retractions change what stands, and every way of delivery tells it."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from websockets.sync.client import connect

from connectors.outbound.delivery import _number_changes
from connectors.server_access import SolutionPage
from epsparql.client import Client, StandingSolutions
from tests.server.conftest import EX, serving, until
from tests.server.routes.test_asyncapi import kind_of
from tests.support.logs import stream_of

TEXT = "PREFIX : <http://example.org/> SELECT ?s FROM STREAM <%s> WHERE { ?s :on ?a MINUS { ?s :off ?b } }"


def line(subject: str, name: str, second: int, **more: Any) -> dict[str, Any]:
    return {"s": f"<{EX}{subject}>", "p": f"<{EX}{name}>", "o": '"1"', "at": f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z", **more}


def send(http: httpx.Client, stream: str, *lines: dict[str, Any]) -> dict[str, Any]:
    body = "\n".join(map(json.dumps, lines))
    answer = http.post(f"/streams/{stream}/events", content=body, headers={"Content-Type": "application/x-ndjson"})
    assert answer.status_code == 202, answer.text
    return dict(answer.json())


def changes(http: httpx.Client, query: str, after: str | None = None) -> list[dict[str, Any]]:
    answer = http.get(f"/queries/{query}/solutions", params={} if after is None else {"after": after})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    return [json.loads(each) for each in answer.text.splitlines()]


def fold(found: list[dict[str, Any]]) -> set[str]:
    """The subjects that stand after some changes."""
    standing: dict[str, str] = {}
    for change in found:
        for solution in change["withdrawn"]:
            del standing[solution["id"]]
        for solution in change["added"]:
            standing[solution["id"]] = solution["binding"]["s"]["value"].removeprefix(EX)
    return set(standing.values())


def set_up(http: httpx.Client, name: str, horizon: str = "PT1M") -> None:
    assert http.put(f"/streams/{name}", json={"revisable": horizon}).json()["revisable"] == "PT60S"
    answer = http.put(f"/queries/{name}", json={"query": TEXT % name, "emit": "revised"})
    assert answer.status_code == 201, answer.text
    assert answer.json()["emit"] == "revised"


def test_a_late_event_withdraws_and_a_retraction_brings_back(http: httpx.Client) -> None:
    set_up(http, "revised")
    send(http, "revised", line("a", "on", 10), line("b", "on", 20), line("c", "other", 30))
    until(lambda: fold(changes(http, "revised")) == {"a", "b"}, "what stands as of the latest event")
    first = changes(http, "revised")
    assert [change["settled"] for change in first][-1] in (None, "2025-12-31T23:59:30Z")
    send(http, "revised", line("a", "off", 5))
    until(lambda: fold(changes(http, "revised")) == {"b"}, "a solution that is withdrawn")
    late = changes(http, "revised", first[-1]["seq"])
    assert [(len(change["added"]), len(change["withdrawn"])) for change in late] == [(0, 1)]
    assert late[0]["withdrawn"][0]["id"] in {change["added"][0]["id"] for change in first}
    assert send(http, "revised", line("a", "off", 5, retract=True))["late"] == 0
    until(lambda: fold(changes(http, "revised")) == {"a", "b"}, "what the retraction brings back")


def test_what_is_beyond_the_horizon_or_has_no_target_goes_to_the_late_feed(http: httpx.Client) -> None:
    set_up(http, "late-ones")
    send(http, "late-ones", line("a", "on", 10), line("b", "on", 100))
    answer = send(http, "late-ones", line("b", "on", 99, retract=True), line("a", "on", 10, retract=True), line("c", "off", 20))
    assert answer["late"] == 3
    feed = [json.loads(each) for each in http.get("/streams/late-ones/late").text.splitlines()]
    assert [row["reason"].split(",")[0] for row in feed] == ["it takes back what is not there"] * 2 + ["its end is below the stream's watermark"]
    assert http.get("/streams/late-ones").json()["watermark"] == "2026-01-01T00:00:40Z"


def test_arrow_and_whole_bodies_retract(http: httpx.Client) -> None:
    set_up(http, "formats")
    send(http, "formats", line("a", "on", 10), line("b", "on", 10), line("c", "other", 11))
    until(lambda: fold(changes(http, "formats")) == {"a", "b"}, "what stands")
    at = pa.array([datetime(2026, 1, 1, 0, 0, 10, tzinfo=UTC)], pa.timestamp("us", tz="UTC"))
    columns = {"s": [f"<{EX}a>"], "p": [f"<{EX}on>"], "o": ['"1"'], "start": at, "end": at, "retract": pa.array([True])}
    bodies = [
        (stream_of(columns), "application/vnd.apache.arrow.stream", {}),
        (f'<{EX}b> <{EX}on> "1" .'.encode(), "text/turtle", {"at": "2026-01-01T00:00:10Z", "retract": "true"}),
    ]
    for left, (body, media_type, params) in zip(({"b"}, set()), bodies, strict=True):
        answer = http.post("/streams/formats/events", params=params, content=body, headers={"Content-Type": media_type})
        assert answer.json()["late"] == 0, answer.text
        until(lambda left=left: fold(changes(http, "formats")) == left, "what is left")  # type: ignore[misc]


def test_the_changelog_comes_by_websocket_and_as_events(url: str, http: httpx.Client) -> None:
    set_up(http, "followed-changes")
    send(http, "followed-changes", line("a", "on", 10), line("b", "on", 20), line("c", "other", 30))
    until(lambda: len(changes(http, "followed-changes")) == 2, "two changes")
    told = changes(http, "followed-changes")
    with connect(f"ws{url.removeprefix('http')}/queries/followed-changes/feed?after={told[0]['seq']}") as socket:
        assert json.loads(socket.recv(30)) == {"change": told[1]}
        send(http, "followed-changes", line("a", "off", 5))
        received = (json.loads(socket.recv(30)) for _ in range(10))
        change = next(message["change"] for message in received if "change" in message)
    assert [solution["id"] for solution in change["withdrawn"]] == [told[0]["added"][0]["id"]]
    with http.stream("GET", "/queries/followed-changes/events", headers={"Last-Event-ID": told[1]["seq"]}) as events:
        lines = (each for each in events.iter_lines() if each.startswith(("id:", "data:")))
        assert next(lines) == f"id: {change['seq']}"
        assert json.loads(next(lines).removeprefix("data: ")) == change


REFUSED = [
    pytest.param({"query": "ASK { ?s ?p ?o }"}, 400, id="ASK"),
    pytest.param({"query": "SELECT * { ?s ?p ?o } LIMIT 1"}, 400, id="LIMIT"),
    pytest.param({"query": "SELECT * { ?s ?p ?o } ONCE PER ?s WITHIN 9"}, 400, id="ONCE PER"),
    pytest.param({"query": "SELECT * { { SELECT ?s { ?s ?p ?o } OFFSET 1 } }"}, 400, id="OFFSET inside"),
    pytest.param({"query": "SELECT * { { ?s ?p ?o } SEQ { ?s ?p ?q } }", "policy": "recent"}, 400, id="policy"),
    pytest.param({"query": "#!etalis recent\ne(X) <- a(X) seq b(X).\n", "policy": "recent"}, 400, id="policy of a program"),
    pytest.param({"query": "SELECT * { ?s ?p ?o }", "from": "beginning"}, 409, id="from the past"),
]


@pytest.mark.parametrize(("wish", "status"), REFUSED)
def test_what_cannot_be_revised_is_refused_with_the_remedy(http: httpx.Client, wish: dict[str, str], status: int) -> None:
    answer = http.put("/queries/not-to-be-revised", json=wish | {"emit": "revised"})
    assert answer.status_code == status, answer.text
    assert answer.json()["code"] in ("not-revised", "revised-query")


def test_a_stream_that_is_not_revisable_takes_nothing_back(http: httpx.Client) -> None:
    body = json.dumps(line("a", "on", 10, retract=True))
    answer = http.post("/streams/fixed/events", content=body, headers={"Content-Type": "application/x-ndjson"})
    assert (answer.status_code, answer.json()["code"]) == (409, "not-revisable")


def test_a_restart_goes_on_with_the_same_changelog(tmp_path: Path) -> None:
    with serving(tmp_path) as url, httpx.Client(base_url=url) as http:
        set_up(http, "kept")
        send(http, "kept", line("a", "on", 10), line("b", "on", 20), line("c", "other", 30))
        until(lambda: fold(changes(http, "kept")) == {"a", "b"}, "what stands")
        before = changes(http, "kept")
    with serving(tmp_path) as url, httpx.Client(base_url=url) as http:
        assert changes(http, "kept") == before
        send(http, "kept", line("a", "off", 5), line("b", "on", 20, retract=True))
        until(lambda: fold(changes(http, "kept")) == set(), "what the past has become")
        assert changes(http, "kept")[: len(before)] == before


def test_the_client_keeps_what_stands(url: str, http: httpx.Client) -> None:
    set_up(http, "client")
    client = Client(url)
    send(http, "client", line("a", "on", 10), line("b", "on", 20), line("c", "other", 30))
    until(lambda: len(client.changes("client")) == 2, "two solutions")
    send(http, "client", line("a", "off", 5))
    standing, followed = StandingSolutions(), StandingSolutions()
    subscription = client.follow("client")
    for change in subscription.changes():
        followed.apply(change)
        if change.withdrawn:
            break
    subscription.close()
    assert subscription.last == change.seq
    for change in client.changes("client"):
        standing.apply(change)
    assert [str(solution["s"]) for solution in standing.values()] == [f"{EX}b"]
    assert standing == followed


def test_a_sink_takes_each_entry_whole_where_the_page_has_it() -> None:
    documents = tuple(
        {"query": "q", "seq": str(k), "added": [{"id": f"i{k}", "start": "", "end": ""}], "withdrawn": [], "settled": None}
        | ({"more": True} if k == 2 else {})
        for k in (1, 2)
    )
    page = SolutionPage(7, "running", 9, documents, (b"", b""), "SELECT * { ?s ?p ?o }", revised=True)
    assert [(each.document["id"], str(each.cursor), each.withdrawn) for each in _number_changes(page, None)] == [("i1", "7/1/1", False)]


def test_a_webhook_gets_changes_and_takes_no_template(http: httpx.Client) -> None:
    set_up(http, "posted")
    wish = {"url": "http://127.0.0.1:9/", "template": {"body": "{s}"}}
    answer = http.put("/queries/posted/observers/o", json=wish)
    assert (answer.status_code, answer.json()["code"]) == (409, "revised-query")


def test_frames_and_refusals_of_a_revised_query(http: httpx.Client) -> None:
    set_up(http, "described")
    send(http, "described", line("a", "on", 10), line("c", "other", 30))
    until(lambda: len(changes(http, "described")) == 1, "a change")
    (change,) = changes(http, "described")
    assert kind_of(json.dumps({"change": change})) == "change"
    for path in (f"solutions/{change['seq']}/why", "ldes"):
        assert http.get(f"/queries/described/{path}").json()["code"] == "revised-query"
    for path in ("queries/described/pause",):
        assert http.post(f"/{path}").json()["code"] == "revised-query"
    assert http.put("/queries/described?replace=promote", json={"query": "SELECT * { ?s ?p ?o }"}).json()["code"] == "revised-query"


# ---------------------------------------------------------------- programs
PROGRAM = "from_stream('%s'). print_trigger(calm/2).\ncalm(X, at(X, Y)) <- (on(X) seq on(Y)) cnot off(X).\n"
ETALIS = {"Content-Type": "text/x-etalis-event"}


def send_events(http: httpx.Client, stream: str, events: str, **params: str) -> None:
    headers = {"Content-Type": "text/x-etalis-stream"}
    answer = http.post(f"/streams/{stream}/events", content=events, headers=headers, params=params)
    assert (answer.status_code, answer.json()["late"]) == (202, 0), answer.text


def set_up_program(http: httpx.Client, name: str) -> None:
    assert http.put(f"/streams/{name}", json={"revisable": "PT1M"}).is_success
    answer = http.put(f"/queries/{name}", params={"emit": "revised"}, content=PROGRAM % name, headers=ETALIS)
    assert (answer.status_code, answer.json()["emit"]) == (201, "revised"), answer.text


def told(changes: list[dict[str, Any]]) -> list[tuple[str, str, list[Any]]]:
    return [
        (sign, each["event"], each["args"]) for change in changes for sign, member in (("+", "added"), ("-", "withdrawn")) for each in change[member]
    ]


CALM = ("calm", [1, {"functor": "at", "args": [1, 2]}])


def test_a_program_tells_its_own_events_and_takes_them_back(url: str, http: httpx.Client) -> None:
    set_up_program(http, "calm")
    send_events(http, "calm", "event(on(1), 10). event(on(2), 20). event(other, 30).")
    until(lambda: told(changes(http, "calm")) == [("+", *CALM)], "what stands as of the latest event")
    (first,) = changes(http, "calm")
    assert (first["added"][0]["start"], first["added"][0]["end"]) == ("1970-01-01T00:00:10Z", "1970-01-01T00:00:20Z")
    send_events(http, "calm", "event(off(1), 15).")
    until(lambda: told(changes(http, "calm"))[1:] == [("-", *CALM)], "an event that is withdrawn")
    send_events(http, "calm", "event(off(1), 15).", retract="true")
    until(lambda: told(changes(http, "calm"))[2:] == [("+", *CALM)], "what the retraction brings back")
    found = changes(http, "calm")
    assert len({each["id"] for change in found for each in change["added"] + change["withdrawn"]}) == 1
    assert all(kind_of(json.dumps({"change": change})) == "change" for change in found)
    with connect(f"ws{url.removeprefix('http')}/queries/calm/feed?after={first['seq']}") as socket:
        assert [json.loads(socket.recv(30)) for _ in range(2)] == [{"change": change} for change in found[1:]]
    with http.stream("GET", "/queries/calm/events", headers={"Last-Event-ID": first["seq"]}) as events:
        lines = (each for each in events.iter_lines() if each.startswith(("id:", "data:")))
        assert [next(lines), json.loads(next(lines).removeprefix("data: "))] == [f"id: {found[1]['seq']}", found[1]]
    standing, client = StandingSolutions(), Client(url)
    for change in client.changes("calm"):
        standing.apply(change)
    assert [(each.event, each.args) for each in standing.values()] == [CALM]


def test_what_is_settled_of_a_program_is_what_is_certain(http: httpx.Client) -> None:
    set_up_program(http, "settled-calm")
    assert http.put("/queries/certain-calm", content=PROGRAM % "settled-calm", headers=ETALIS).status_code == 201
    send_events(http, "settled-calm", "event(on(1), 10). event(on(2), 20). event(on(3), 25).")
    send_events(http, "settled-calm", "event(off(2), 22). event(off(1), 21).")
    assert http.post("/streams/settled-calm/finish").is_success

    def certain() -> list[tuple[str, str]]:
        lines = http.get("/queries/certain-calm/solutions", headers={"Accept": "application/x-ndjson"}).text.splitlines()
        return sorted((each["start"], json.dumps(each["args"])) for each in map(json.loads, lines))

    def standing() -> list[tuple[str, str]]:
        found: dict[str, tuple[str, str]] = {}
        for change in changes(http, "settled-calm"):
            for each in change["withdrawn"]:
                del found[each["id"]]
            found |= {each["id"]: (each["start"], json.dumps(each["args"])) for each in change["added"]}
        return sorted(found.values())

    until(lambda: len(certain()) == 1 and standing() == certain(), "both have on(1), on(2)")
