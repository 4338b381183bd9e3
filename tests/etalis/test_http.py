"""Programs of the ETALIS Language for Events over HTTP: registered, checked, explained, fed and read."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from epsparql.client import Client, segment
from tests.server.conftest import DEADLINE_S, serving, until

PROGRAM = "% two prices\nprint_trigger(rise/2).\nrise(X, Y) <- price(X) seq price(Y) where X < Y.\n"
NUMBER = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'
EVENT, STREAM = {"Content-Type": "text/x-etalis-event"}, {"Content-Type": "text/x-etalis-stream"}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("data")) as found:
        yield found


@pytest.fixture
def http(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, timeout=DEADLINE_S) as client:
        yield client


def test_a_program_from_registration_to_solutions(url: str, http: httpx.Client) -> None:
    client, stream = Client(url), "urn:test:prices"
    program = f"from_stream('{stream}').\n{PROGRAM}"
    made = http.put("/queries/rises", params={"policy": "recent"}, content=program, headers=EVENT)
    assert (made.status_code, made.json()["policy"], made.json()["query"]) == (201, "recent", f"#!etalis recent\n{program}")
    again = http.put("/queries/rises", params={"policy": "recent"}, content=program, headers=EVENT)
    assert again.status_code == 200, "the same program is registered already"
    events = "event(price(1), 1). event(price(3), 2). event(price(2), 3). event(price(4), 4)."
    assert http.post(f"/streams/{segment(stream)}/events", content=events, headers=STREAM).is_success
    client.finish(stream)
    until(lambda: client.query("rises")["solutions"] == 2, "the program's events are there")
    found = http.get("/queries/rises/solutions", headers={"Accept": "application/x-ndjson"}).text.splitlines()
    assert [(line["event"], line["args"]) for line in map(json.loads, found)] == [("rise", [1, 3]), ("rise", [2, 4])]
    assert [(solution.event, solution.args) for solution in client.solutions("rises")] == [("rise", [1, 3]), ("rise", [2, 4])]
    plan = http.get("/queries/rises/plan", headers={"Accept": "text/plain"}).text
    assert "an ETALIS program" in plan
    assert "recent" in plan
    why = http.get(f"/queries/rises/solutions/{client.query('rises')['last']}/why").json()
    (step,) = why["because"]
    assert [step[part] for part in ("kind", "event", "rule", "start")] == ["event", "rise(2,4)", "rise/2", "1970-01-01T00:00:03Z"]
    assert {each["o"] for each in step["because"] if each["kind"] == "occurrence"} >= {NUMBER.format(2), NUMBER.format(4)}


SEQ = "e(X) <- a(X) seq b(X). print_trigger(e/1)."
AT_ONCE = [
    pytest.param(SEQ, "unrestricted", ["event(a(1), 1).", "event(b(1), 2)."], id="seq"),
    pytest.param(SEQ, "recent", ["event(a(1), 1).", "event(b(1), 2)."], id="recent"),
    pytest.param(SEQ, "chronological", ["event(a(1), 1).", "event(b(1), 2)."], id="chronological"),
    pytest.param("f(X) <- b(X). print_trigger(f/1).", "unrestricted", ["event(b(1), 2)."], id="one event"),
    pytest.param(
        "f(X) <- b(X) where X > 0. print_trigger(f/1).",
        "unrestricted",
        ["event(b(0), 1). event(b(1), 2)."],
        id="of several events of a body the last",
    ),
    pytest.param(
        "e(X) <- a(X) seq b(X). f(X) <- e(X) seq c(X). print_trigger(f/1).",
        "recent",
        ["event(a(1), 1).", "event(b(1), 2).", "event(c(1), 3)."],
        id="a rule over another",
    ),
]


@pytest.mark.parametrize(("program", "policy", "bodies"), AT_ONCE)
def test_a_program_gives_its_event_with_the_last_one(
    http: httpx.Client, request: pytest.FixtureRequest, program: str, policy: str, bodies: list[str]
) -> None:
    """Nothing comes after it, and no clock moves the time of events that have their own."""
    name = request.node.callspec.id
    stream = f"urn:test:{name}"
    text = f"from_stream('{stream}'). {program}"
    assert http.put(f"/queries/{name}", params={"policy": policy}, content=text, headers=EVENT).status_code == 201
    for body in bodies:
        assert http.post(f"/streams/{segment(stream)}/events", content=body, headers=STREAM).is_success
    until(lambda: http.get(f"/queries/{name}").json()["solutions"] == 1, "the last event's solution is there")


def test_triples_about_the_node_of_an_event_are_refused(http: httpx.Client) -> None:
    node = "urn:ele:event:a411dcbf446b5171c735e1ad9b170e87"  # d(1,x) on [1 s, 2 s]
    times = {"start": "1970-01-01T00:00:01Z", "end": "1970-01-01T00:00:02Z"}
    event = [("http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "<urn:ele:d>"), ("urn:ele:arg1", NUMBER.format(1)), ("urn:ele:arg2", "<urn:ele:x>")]

    def send(*triples: tuple[str, str]) -> tuple[int, str | None]:
        lines = "\n".join(json.dumps({"s": f"<{node}>", "p": f"<{p}>", "o": o, **times}) for p, o in triples)
        answer = http.post(f"/streams/{segment('urn:test:nodes')}/events", content=lines, headers={"Content-Type": "application/x-ndjson"})
        return answer.status_code, answer.json().get("code")

    assert send(*event)[0] == 202, "an event that was exported is sent again"
    for other in (event[:2], [*event, ("urn:ele:arg3", "<urn:ele:y>")], [*event, ("http://example.org/p", "<urn:ele:y>")], event[1:]):
        assert send(*other) == (400, "event-node")


def test_what_a_program_writes(tmp_path: Path) -> None:
    """An EP-SPARQL query and another program read it. The server is started again in between, and explains both."""
    program = "from_stream('urn:t:in'). into_stream('urn:t:out').\nup : rise(X, Y, Y - X) <- price(X) seq price(Y) where Y =:= X + 1.\n"
    reader = "SELECT ?to FROM STREAM <urn:t:out> WHERE { ?n a <urn:ele:rise> ; <urn:ele:arg2> ?to }"
    second = "from_stream('urn:t:out').\ntwice(X, Z) <- rise(X, _, _) seq rise(_, Z, _).\n"
    with serving(tmp_path) as url, httpx.Client(base_url=url, timeout=DEADLINE_S) as http:
        Client(url).register("reader", reader)
        for name, text in (("first", program), ("second", second)):
            assert http.put(f"/queries/{name}", content=text, headers=EVENT).status_code == 201
        assert http.post(f"/streams/{segment('urn:t:in')}/events", content="event(price(1), 1). event(price(2), 2).", headers=STREAM).is_success
    with serving(tmp_path) as url, httpx.Client(base_url=url, timeout=DEADLINE_S) as http:
        client = Client(url)
        assert http.put("/queries/first", content=program, headers=EVENT).status_code == 200, "the same program is registered already"
        assert {"urn:t:in", "urn:t:out"} <= {each["name"] for each in http.get("/streams").json()["streams"]}
        sent = " ".join(f"event(price({k}), {k})." for k in range(3, 6))
        assert http.post(f"/streams/{segment('urn:t:in')}/events", content=sent, headers=STREAM).is_success
        client.finish("urn:t:in")
        until(lambda: [client.query(name)["solutions"] for name in ("first", "reader", "second")] == [4, 4, 3], "all read on")
        assert [solution.args for solution in client.solutions("second")] == [[1, 4], [1, 5], [2, 5]]
        why = http.get(f"/queries/reader/solutions/{client.query('reader')['last']}/why").json()
        assert {(step["kind"], step["rule"]) for step in why["because"]} == {("derived", "first")}
        (rule,) = why["rules"]
        assert [(step["kind"], step["event"], step["rule"]) for step in rule["because"]] == [("event", "rise(4,5,1)", "up")]
        turtle = http.get(f"/queries/second/solutions/{client.query('second')['last']}/why", headers={"Accept": "text/turtle"})
        assert 'why:event "twice' in turtle.text


def test_a_fault_has_its_place(http: httpx.Client) -> None:
    refused = http.put("/queries/faulty", content="% a comment\ne(X) <- a(Y).\n", headers=EVENT)
    document = refused.json()
    assert (refused.status_code, document["code"], document["line"], document["column"]) == (400, "ele-refused", 2, 3)
    checked = http.post("/check", content="% a comment\ne(X) <- a(Y).\n", headers=EVENT).json()
    assert [(error["code"], error["line"]) for error in checked["errors"]] == [("ele-refused", 2)]
    assert http.post("/check", content=PROGRAM, headers=EVENT).json()["errors"] == []


def doubts_of(http: httpx.Client, program: str) -> list[tuple[str, int, int, str]]:
    """Return code, line, column and message of what the server's data say about a program."""
    marks = http.post("/check", content=program, headers=EVENT).json()["warnings"]
    found = [(each["code"], each["line"], each["column"], each["message"]) for each in marks]
    return [each for each in found if each[0] in ("never-seen", "unknown-stream", "silent-stream", "from-stream", "only-instants")]


def test_check_compares_a_program_with_what_its_streams_have_carried(http: httpx.Client) -> None:
    stream = "urn:test:seen"
    events = "event(price(acme, 1), [1, 2]). event(sold(acme), 2)."
    assert http.post(f"/streams/{segment(stream)}/events", content=events, headers=STREAM).is_success
    before = f"from_stream('{stream}').\n"
    assert doubts_of(http, f"{before}e(X) <- price(X, _) seq sold(X).") == []
    unseen = [("never-seen", 2, 26, f"the stream '{stream}' has never carried the event solt; the nearest is sold")]
    assert doubts_of(http, f"{before}e(X) <- (price(X, _) seq solt(X)).1.") == unseen
    narrow = [("never-seen", 2, 9, f"the stream '{stream}' has never carried an event with 3 arguments")]
    assert doubts_of(http, f"{before}e(X) <- price(X, _, _).") == narrow
    derived = "prefix(t, 'http://example.org/').\nt:up(X, Y) <- price(X, Y).\ne(X) <- t:up(X, Y) where t:known(X, Y).\n"
    assert doubts_of(http, f"{before}{derived}f(X) <- t:uq(X, _).") == [
        ("never-seen", 5, 9, f"the stream '{stream}' has never carried the predicate <http://example.org/uq>")
    ]


def test_check_tells_of_a_programs_streams(http: httpx.Client) -> None:
    http.post(f"/streams/{segment('urn:test:fed')}/events", content="event(a(1), 1).", headers=STREAM)
    (unknown,) = doubts_of(http, "from_stream('urn:test:fedd').\ne(X) <- a(X).")
    assert unknown[:3] == ("unknown-stream", 1, 13)
    assert "; the nearest is <urn:test:fed>" in unknown[3]
    (silent,) = doubts_of(http, "from_stream('urn:test:fed').\nexceptionAlarm(e(X), 10) <- a(X).")
    assert silent[:3] == ("silent-stream", 2, 16)
    (waits,) = doubts_of(http, "from_stream('urn:test:fed').\ne(X) <- a(X) seq 7.")
    assert waits[:3] == ("silent-stream", 2, 18)


def test_the_first_line_names_the_policy(http: httpx.Client) -> None:
    wish = {"query": f"#!etalis recent\n{PROGRAM}", "policy": "chronological"}
    assert http.put("/queries/torn", json=wish).json()["code"] == "ele-refused"
    made = http.put("/queries/whole", params={"policy": "recent-by ?X"}, content=PROGRAM, headers=EVENT).json()
    assert (made["policy"], made["query"]) == ("recent-by ?X", f"#!etalis recent-by ?X\n{PROGRAM}")
    assert http.put("/queries/whole", json={"query": made["query"], "policy": made["policy"]}).status_code == 200


def test_events_over_http_do_not_sleep(http: httpx.Client) -> None:
    refused = http.post("/streams/sleepy/events", content="event(a). sleep(2).", headers=STREAM)
    assert (refused.status_code, refused.json()["line"]) == (400, 1)
