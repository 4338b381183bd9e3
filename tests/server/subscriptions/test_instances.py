"""Instances of queries with PARAMETERS over HTTP: added, changed, listed, removed; their solutions, events and feeds."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest
from rdflib import URIRef
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from engine.state_size import instance_bytes
from epsparql.client import ApiError, Client
from tests.server.conftest import EX, serving, until

TEXT = f"""PREFIX : <{EX}>
SELECT ?user ?v FROM STREAM <%s> PARAMETERS (?user ?room ?limit) WHERE {{ ?room :temp ?v FILTER (?v > ?limit) }}"""


def values(user: str, room: str, limit: float) -> dict[str, Any]:
    return {"user": f'"{user}"', "room": f"<{EX}{room}>", "limit": limit}


def register(http: httpx.Client, name: str) -> str:
    assert http.put(f"/queries/{name}", content=TEXT % name, headers={"content-type": "application/sparql-query"}).status_code == 201
    return f"/queries/{name}/instances"


def send(http: httpx.Client, stream: str, *readings: tuple[str, float, int]) -> None:
    """Send temperatures of rooms at some second."""
    lines = [{"s": f"<{EX}{room}>", "p": f"<{EX}temp>", "o": value, "at": f"2026-01-01T00:00:{second:02}Z"} for room, value, second in readings]
    sent = http.post(
        f"/streams/{stream}/events", content="".join(json.dumps(line) + "\n" for line in lines), headers={"content-type": "application/x-ndjson"}
    )
    assert sent.status_code == 202, sent.text


def found(http: httpx.Client, path: str, least: int, **parameters: Any) -> list[tuple[str, str, str]]:
    """Instance, user and value of the solutions at a path, once there are so many."""

    def read() -> list[tuple[str, str, str]]:
        lines = http.get(path, headers={"accept": "application/x-ndjson"}, params=parameters).text.splitlines()
        documents = map(json.loads, lines)
        return [(each["instance"], each["binding"]["user"]["value"], each["binding"]["v"]["value"]) for each in documents]

    until(lambda: len(read()) >= least, f"{least} solutions at {path}")
    return read()


def test_each_instance_has_its_own_solutions(http: httpx.Client) -> None:
    path = register(http, "alerts")
    created = http.put(f"{path}/ann", json=values("ann", "hall", 25))
    assert created.status_code == 201
    assert created.json() == {
        "id": "ann", "values": {"user": '"ann"', "room": f"<{EX}hall>", "limit": '"25"^^<http://www.w3.org/2001/XMLSchema#integer>'},
    }  # fmt: skip
    lines = "".join(
        json.dumps({"id": name, "values": values(name, room, limit)}) + "\n" for name, room, limit in (("bob", "hall", 30), ("eve", "attic", 5))
    )
    assert http.post(path, content=lines, headers={"content-type": "application/x-ndjson"}).json()["set"] == 2
    send(http, "alerts", ("hall", 27, 1), ("hall", 31, 2), ("attic", 4, 3))
    assert found(http, "/queries/alerts/solutions", 3) == [("ann", "ann", "27"), ("ann", "ann", "31"), ("bob", "bob", "31")]
    assert found(http, f"{path}/ann/solutions", 2) == [("ann", "ann", "27"), ("ann", "ann", "31")]
    assert found(http, f"{path}/eve/solutions", 0) == []

    assert http.put(f"{path}/ann", json=values("ann", "hall", 40)).status_code == 200
    assert http.delete(f"{path}/bob").status_code == 204
    send(http, "alerts", ("hall", 35, 4), ("hall", 41, 5), ("attic", 6, 6))
    assert found(http, "/queries/alerts/solutions", 5)[3:] == [("ann", "ann", "41"), ("eve", "eve", "6")]
    first = http.get("/queries/alerts/solutions", headers={"accept": "application/x-ndjson"}, params={"limit": 1}).json()["id"]
    assert found(http, f"{path}/ann/solutions", 2, after=first) == [("ann", "ann", "31"), ("ann", "ann", "41")]
    assert found(http, f"{path}/ann/solutions", 1, order="newest", limit=1) == [("ann", "ann", "41")]
    assert http.get(f"{path}/bob/solutions").status_code == 404


def test_pages_of_a_table_name_the_instance(http: httpx.Client) -> None:
    path = register(http, "tables")
    http.put(f"{path}/ann", json=values("ann", "hall", 25))
    send(http, "tables", ("hall", 27, 1))
    found(http, f"{path}/ann/solutions", 1)
    table = http.get(f"{path}/ann/solutions", headers={"accept": "text/csv"}).text.splitlines()
    assert table[0] == "id,start,end,instance,user,v"
    assert table[1].endswith(",ann,ann,27")
    document = http.get(f"{path}/ann/solutions", headers={"accept": "application/sparql-results+json"}).json()
    assert document["head"]["vars"] == ["user", "v"]
    assert document["epsparql"][0]["instance"] == "ann"
    assert document["results"]["bindings"][0]["v"]["value"] == "27"


def test_a_list_is_read_in_pages(http: httpx.Client) -> None:
    path = register(http, "pages")
    lines = "".join(json.dumps({"id": f"u{k:03}", "values": values("ann", "hall", k)}) + "\n" for k in range(25))
    http.post(path, content=lines, headers={"content-type": "application/x-ndjson"})
    seen, following = list[str](), f"{path}?limit=10"
    while following:
        page = http.get(following)
        assert page.json()["count"] == 25
        seen += [each["id"] for each in page.json()["instances"]]
        following = page.links.get("next", {}).get("url", "")
    assert seen == [f"u{k:03}" for k in range(25)]
    assert [each["id"] for each in http.get(path, params={"prefix": "u01"}).json()["instances"]] == [f"u01{k}" for k in range(10)]


def test_feeds_and_events_of_an_instance_resume(url: str, http: httpx.Client) -> None:
    path = register(http, "feeds")
    for name in ("ann", "bob"):
        http.put(f"{path}/{name}", json=values(name, "hall", 25 if name == "ann" else 30))
    send(http, "feeds", ("hall", 27, 1), ("hall", 31, 2))
    with connect(f"ws{url.removeprefix('http')}{path}/bob/feed") as socket:
        told = read_solution(socket)
        assert (told["instance"], told["binding"]["v"]["value"]) == ("bob", "31")
        send(http, "feeds", ("hall", 28, 3), ("hall", 33, 4))
        assert read_solution(socket)["binding"]["v"]["value"] == "33"
    with connect(f"ws{url.removeprefix('http')}{path}/bob/feed?after={told['id']}") as socket:
        assert read_solution(socket)["binding"]["v"]["value"] == "33"
    with http.stream("GET", f"{path}/ann/events", headers={"last-event-id": told["id"]}) as answer:
        data = next(json.loads(line.removeprefix("data: ")) for line in answer.iter_lines() if line.startswith("data: "))
        assert (data["instance"], data["binding"]["v"]["value"]) == ("ann", "28")  # its 31 comes before that of bob


def test_an_id_that_is_used_again_has_no_solutions_of_the_earlier_instance(url: str, http: httpx.Client) -> None:
    path = register(http, "lives")
    for name in ("ann", "bob"):
        http.put(f"{path}/{name}", json=values(name, "hall", 25))
    send(http, "lives", ("hall", 27, 1))
    assert len(found(http, "/queries/lives/solutions", 2)) == 2
    feed = f"ws{url.removeprefix('http')}{path}/ann/feed"
    with connect(feed) as follower, connect(f"{feed}?after=") as late, http.stream("GET", f"{path}/ann/events") as events:
        assert read_solution(follower)["binding"]["v"]["value"] == "27"
        assert http.delete(f"{path}/ann").status_code == 204
        http.put(f"{path}/ann", json=values("another", "hall", 20))
        send(http, "lives", ("hall", 28, 2))
        told = [str(message) for socket in (follower, late) for message in list_messages(socket)]  # they follow the earlier instance's user
        assert "another" not in "".join([*told, *events.iter_text()])
    until(lambda: len(found(http, "/queries/lives/solutions", 4)) == 4, "both readings are answered")
    assert found(http, f"{path}/ann/solutions", 1) == [("ann", "another", "28")]
    http.put(f"{path}/ann", json=values("another", "hall", 21))  # a change of values begins no new life
    assert found(http, f"{path}/ann/solutions", 1) == [("ann", "another", "28")]
    with connect(feed) as socket:
        assert read_solution(socket)["binding"]["v"]["value"] == "28"
    with http.stream("GET", f"{path}/ann/events") as answer:
        data = next(json.loads(line.removeprefix("data: ")) for line in answer.iter_lines() if line.startswith("data: "))
        assert data["binding"]["v"]["value"] == "28"


def list_messages(socket: Any) -> Iterator[Any]:
    """Yield what comes until the server closes the feed because the instance is gone."""
    with suppress(ConnectionClosed):
        while True:
            yield socket.recv(timeout=30)
    assert socket.close_code == 4004


def read_solution(socket: Any) -> dict[str, Any]:
    while True:
        message = json.loads(socket.recv(timeout=30))
        if "solution" in message:
            return message["solution"]  # type: ignore[no-any-return]


def test_instances_outlive_a_restart(tmp_path: Path) -> None:
    with serving(tmp_path) as url, httpx.Client(base_url=url) as http:
        path = register(http, "kept")
        http.put(f"{path}/ann", json=values("ann", "hall", 25))
        http.put(f"{path}/bob", json=values("bob", "hall", 25))
        http.delete(f"{path}/bob")
        send(http, "kept", ("hall", 27, 1))
        found(http, "/queries/kept/solutions", 1)
    with serving(tmp_path) as url, httpx.Client(base_url=url) as http:
        assert http.get(path).json()["count"] == 1
        send(http, "kept", ("hall", 28, 2))
        assert found(http, f"{path}/ann/solutions", 2) == [("ann", "ann", "27"), ("ann", "ann", "28")]


# ---------------------------------------------------------------- what is refused
@pytest.mark.parametrize(
    ("body", "code", "told"),
    [
        ({"user": '"x"', "room": f"<{EX}r>"}, "parameter", "'limit' has no value"),
        ({"user": '"x"', "room": f"<{EX}r>", "limit": 1, "colour": 2}, "parameter", "no parameter 'colour'"),
        ({"user": '"x"', "room": "_:b", "limit": 1}, "term", "blank node"),
        ({"user": '"x"', "room": None, "limit": 1}, "term", "no term"),
        ({"user": '"x"', "room": f"<{EX}r>", "limit": '"1"^^'}, "term", "'limit'"),
        ({"user": json.dumps("x" * 5000), "room": f"<{EX}r>", "limit": 1}, "term", "at most 4096"),
        ([1], "json", "no instance"),
    ],
)
def test_values_that_are_refused(http: httpx.Client, body: Any, code: str, told: str) -> None:
    path = register(http, "values") if http.get("/queries/values").status_code == 404 else "/queries/values/instances"
    refused = http.put(f"{path}/ann", json=body)
    assert (refused.status_code, refused.json()["code"]) == (400, code), refused.text
    assert told in refused.json()["detail"] + str(refused.json().get("expected"))
    again = http.post(path, content=json.dumps({"id": "ann", "values": body}) + "\n", headers={"content-type": "application/x-ndjson"})
    assert again.status_code == 400
    assert http.get(path).json()["count"] == 0


def test_ids_and_queries_that_are_refused(http: httpx.Client) -> None:
    path = register(http, "doors")
    for name in ("a%20b", "a%22b", "a%2Fb", "x" * 201):
        assert http.put(f"{path}/{name}", json=values("ann", "hall", 1)).json()["code"] == "instance-id", name
    plain = http.put("/queries/without-parameters", content="SELECT ?s WHERE { ?s ?p ?o }", headers={"content-type": "application/sparql-query"})
    assert plain.status_code == 201
    refused = http.put("/queries/without-parameters/instances/ann", json={})
    assert (refused.status_code, refused.json()["code"]) == (409, "no-parameters")
    assert http.put("/queries/nowhere/instances/ann", json={}).status_code == 404
    assert http.post(path, content=b"\n", headers={"content-type": "application/x-ndjson"}).json()["code"] == "empty"
    assert http.post(path, content=b"{}", headers={"content-type": "text/csv"}).status_code == 415
    for action in ("pause",):
        assert http.post(f"/queries/doors/{action}").json()["code"] == "parameters"
    for options in ({"from": "beginning"}, {"emit": "revised"}, {"policy": "recent"}, {"notify_at": 1}):
        assert http.put("/queries/parametric-other", json={"query": TEXT % "doors", **options}).status_code in (400, 409), options
    assert http.put("/queries/doors%2Fann", json={"query": "SELECT ?s WHERE { ?s ?p ?o }"}).json()["code"] == "name-of-instance"
    promoted = http.put("/queries/doors?replace=promote", json={"query": (TEXT % "doors").replace("?v >", "?v >=")})
    assert promoted.json()["code"] == "parameters"
    assert http.post("/trials", json={"query": TEXT % "doors"}).json()["code"] == "parameters"
    assert http.get("/queries/doors/diagnosis").json()["code"] == "parameters"


def test_a_query_has_so_many_instances(tmp_path: Path) -> None:
    with serving(tmp_path, max_instances=2) as url, httpx.Client(base_url=url) as http:
        path = register(http, "few")
        for name in ("a", "b", "a"):
            assert http.put(f"{path}/{name}", json=values("ann", "hall", 1)).is_success
        assert http.put(f"{path}/c", json=values("ann", "hall", 1)).json()["code"] == "too-many-instances"


def test_the_state_of_a_query_has_room_for_so_many_instances(tmp_path: Path) -> None:
    one = instance_bytes(3)
    with serving(tmp_path, max_state_bytes=2 * one + 100) as url, httpx.Client(base_url=url) as http:
        path = register(http, "small")
        for name in ("a", "b", "a"):
            assert http.put(f"{path}/{name}", json=values("ann", "hall", 1)).is_success
        refused = http.put(f"{path}/c", json=values("ann", "hall", 1))
        assert (refused.status_code, refused.json()["code"]) == (429, "too-much-state")
        assert f"{3 * one} bytes" in refused.json()["detail"]
        assert "max_state_bytes" in refused.json()["detail"]
        until(lambda: (http.get("/queries/small").json()["memory"] or {}).get("state_bytes") == 2 * one, "the memory counts instances")
        (lookup,) = (each for each in http.get("/queries/small/plan").json()["plan"] if each["operator"] == "instances")
        assert lookup["live"]["state_bytes"] == 2 * one
        goals = http.get("/queries/small/goals").json()
        assert [(each["operator"], each["state_bytes"]) for each in goals["operators"]] == [("instances", 2 * one)]
        assert goals["operands"][1:] == ["Values ?user ?room ?limit of each instance"]
        assert http.delete(f"{path}/a").status_code == 204
        assert http.put(f"{path}/c", json=values("ann", "hall", 1)).status_code == 201


# ---------------------------------------------------------------- tokens
TOKENS = {
    "chief": "admin",
    "clerk": "instances:alarms",
    "ann": "read:alarms/ann",
    "bob": "read:alarms/bob",
    "all": "read:alarms",
    "other": "read:others",
}


@contextmanager
def guarded(tmp_path: Path) -> Iterator[str]:
    tokens = tmp_path / "tokens"
    tokens.write_text("".join(f"{hashlib.sha256(token.encode()).hexdigest()} {scope}\n" for token, scope in TOKENS.items()))
    with serving(tmp_path / "data", token_file=tokens) as url:
        yield url


MAY = {
    ("PUT", "/instances/ann"): {"chief", "clerk"},
    ("DELETE", "/instances/eve"): {"chief", "clerk"},
    ("GET", "/instances"): {"chief", "clerk"},
    ("GET", "/instances/ann"): {"chief", "clerk"},
    ("POST", "/instances"): {"chief", "clerk"},
    ("GET", "/instances/ann/solutions"): {"chief", "ann", "all"},
    ("GET", "/instances/bob/solutions"): {"chief", "bob", "all"},
    ("GET", "/solutions"): {"chief", "all"},
    ("GET", ""): {"chief", "all"},
}


def test_tokens_reach_what_their_scopes_say(tmp_path: Path) -> None:
    with guarded(tmp_path) as url, httpx.Client(base_url=url, headers={"authorization": "Bearer chief"}) as http:
        path = register(http, "alarms")
        for name in ("ann", "bob"):
            http.put(f"{path}/{name}", json=values(name, "hall", 25))
        for (method, place), allowed in MAY.items():
            for token in TOKENS:
                if method == "DELETE":
                    http.put(f"{path}/eve", json=values("eve", "hall", 25))
                body = (
                    {"json": values("ann", "hall", 25)}
                    if method == "PUT"
                    else {"content": json.dumps({"id": "bob", "values": values("bob", "hall", 25)})}
                )
                body = body if method in ("PUT", "POST") else {}
                headers = {"authorization": f"Bearer {token}"} | ({"content-type": "application/x-ndjson"} if method == "POST" else {})
                answer = http.request(method, f"/queries/alarms{place}", headers=headers, **body)
                assert answer.is_success == (token in allowed), (method, place, token, answer.text)
                assert answer.is_success or answer.status_code == 403
        send(http, "alarms", ("hall", 27, 1))
        for token in TOKENS:
            socket = connect(f"ws{url.removeprefix('http')}{path}/ann/feed", additional_headers={"authorization": f"Bearer {token}"})
            with socket:
                if token in ("chief", "ann", "all"):
                    assert read_solution(socket)["instance"] == "ann"
                else:
                    with pytest.raises(ConnectionClosed) as closed:
                        read_solution(socket)
                    assert closed.value.rcvd is not None
                    assert closed.value.rcvd.code == 4003
            answer = http.get(f"{path}/ann/solutions", headers={"authorization": f"Bearer {token}"})
            assert "bob" not in answer.text


# ---------------------------------------------------------------- the client
def test_the_client_has_methods_for_instances(client: Client, http: httpx.Client) -> None:
    register(http, "methods")
    ann = {"user": "«Ann»".join('""'), "room": URIRef(f"{EX}hall"), "limit": Decimal("25.5")}
    assert client.set_instance("methods", "ann", ann)["values"]["limit"] == '"25.5"^^<http://www.w3.org/2001/XMLSchema#decimal>'
    changed = client.set_instances("methods", {"bob": {**ann, "limit": 30}, "eve": {**ann, "limit": 0}, "nobody": None})
    assert (changed["set"], changed["removed"]) == (2, 1)
    client.remove_instance("methods", "eve")
    assert [each["id"] for each in client.instances("methods")] == ["ann", "bob"]
    assert [each["id"] for each in client.instances("methods", after="ann", limit=1)] == ["bob"]
    assert [each["id"] for each in client.instances("methods", prefix="a")] == ["ann"]
    send(http, "methods", ("hall", 26, 1), ("hall", 31, 2))
    with client.follow("methods", instance="bob") as followed:
        solution = next(iter(followed))
    assert (solution.instance, str(solution["v"]), str(solution["user"])) == ("bob", "31", "«Ann»")
    assert [each.instance for each in client.solutions("methods", instance="ann")] == ["ann", "ann"]
    with pytest.raises(ApiError, match="no instance 'eve'"):
        client.solutions("methods", instance="eve")
