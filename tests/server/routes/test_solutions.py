"""Solutions pulled in every format, waited for, and followed as Server-Sent Events."""

import csv
import io
import json
import threading
from collections.abc import Iterator
from itertools import islice
from typing import Any

import httpx
import pyoxigraph as ox
import pytest

from epsparql.client import Client, segment
from pipeline.solutions.event_stream_pages import PAGE
from tests.server.conftest import EX, event, moment, until, values
from tests.server.routes.test_streams import assert_problem


@pytest.fixture
def path(client: Client, name: str, stream: str) -> str:
    """Register a query, wait for its three solutions and return its path."""
    client.register(name, values(stream))
    client.send(stream, "\n".join(event(number) for number in (1, 2, 3)))
    until(lambda: client.query(name)["solutions"] == 3, "three solutions")
    return f"/queries/{segment(name)}"


@pytest.fixture
def rule(client: Client, name: str, stream: str) -> str:
    """Register a CONSTRUCT, wait for its two solutions and return its path."""
    client.register(name, f"PREFIX : <{EX}> CONSTRUCT {{ ?s :seen ?v }} INTO STREAM <{stream}out> FROM STREAM <{stream}> WHERE {{ ?s :value ?v }}")
    client.send(stream, "\n".join(event(number) for number in (1, 2)))
    until(lambda: client.query(name)["solutions"] == 2, "two solutions")
    return f"/queries/{segment(name)}"


def lines(answer: httpx.Response) -> list[dict[str, Any]]:
    return [json.loads(line) for line in answer.text.splitlines()]


def test_ndjson(http: httpx.Client, path: str, name: str) -> None:
    answer = http.get(f"{path}/solutions", headers={"Accept": "application/x-ndjson"})
    assert answer.headers["content-type"] == "application/x-ndjson"
    found = lines(answer)
    assert [(each["query"], each["start"], each["end"]) for each in found] == [(name, moment(n), moment(n)) for n in (1, 2, 3)]
    assert found[0]["binding"] == {"s": {"type": "uri", "value": f"{EX}s"}, "v": {"type": "literal", "value": "1"}}
    ids = [each["id"] for each in found]
    assert ids == sorted(set(ids))


def test_sparql_json_is_the_default(http: httpx.Client, path: str) -> None:
    for accept in ("*/*", "application/sparql-results+json", "application/*;q=0.5, image/png"):
        answer = http.get(f"{path}/solutions", headers={"Accept": accept})
        assert answer.headers["content-type"] == "application/sparql-results+json"
        document = answer.json()
        assert document["head"]["vars"] == ["s", "v"]
        assert [row["v"]["value"] for row in document["results"]["bindings"]] == ["1", "2", "3"]


def test_csv(http: httpx.Client, path: str) -> None:
    answer = http.get(f"{path}/solutions", headers={"Accept": "text/csv;q=0.9, image/png, application/sparql-results+json;q=0.1"})
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [(row["end"], row["v"]) for row in rows] == [(moment(n), str(n)) for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("media_type", "fmt"),
    [("text/turtle", ox.RdfFormat.TURTLE), ("application/trig", ox.RdfFormat.TRIG), ("application/n-quads", ox.RdfFormat.N_QUADS)],
)
def test_constructed_triples(http: httpx.Client, rule: str, media_type: str, fmt: ox.RdfFormat) -> None:
    answer = http.get(f"{rule}/solutions", headers={"Accept": media_type})
    assert answer.headers["content-type"].startswith(media_type)
    seen = [quad for quad in ox.parse(answer.content, fmt) if quad.predicate.value == f"{EX}seen"]
    assert sorted(str(quad.object) for quad in seen) == ['"1"', '"2"']
    timed = [isinstance(quad.graph_name, ox.NamedNode) for quad in seen]
    assert timed == [media_type != "text/turtle"] * 2


def test_constructed_as_ndjson(http: httpx.Client, rule: str) -> None:
    found = lines(http.get(f"{rule}/solutions", headers={"Accept": "application/x-ndjson"}))
    assert found[0]["triples"].strip() == f'<{EX}s> <{EX}seen> "1" .'


def test_no_table_is_turtle(http: httpx.Client, path: str) -> None:
    assert "text/csv" in str(assert_problem(http.get(f"{path}/solutions", headers={"Accept": "text/turtle"}), 406)["expected"])


def test_no_graph_is_a_table(http: httpx.Client, rule: str) -> None:
    assert "text/turtle" in str(assert_problem(http.get(f"{rule}/solutions", headers={"Accept": "text/csv"}), 406)["expected"])


def test_pages_by_link(http: httpx.Client, path: str) -> None:
    seen = []
    following = f"{path}/solutions?limit=2"
    for expected in (2, 1, 0):
        answer = http.get(following, headers={"Accept": "application/x-ndjson"})
        page = [each["id"] for each in lines(answer)]
        assert len(page) == expected
        seen += page
        following = answer.headers["link"].partition(">")[0][1:]
    assert seen == sorted(set(seen))
    assert len(seen) == 3


def page_of(answer: httpx.Response) -> list[str]:
    return [each["binding"]["v"]["value"] for each in lines(answer)]


def test_plain_json_is_that_of_sparql(http: httpx.Client, path: str) -> None:
    plain = http.get(f"{path}/solutions", headers={"Accept": "application/json"})
    assert plain.headers["content-type"] == "application/json"
    assert plain.json() == http.get(f"{path}/solutions").json()


def test_newest_first_leads_to_older_pages(http: httpx.Client, path: str) -> None:
    first = http.get(f"{path}/solutions?order=newest&limit=2", headers={"Accept": "application/x-ndjson"})
    assert page_of(first) == ["3", "2"]
    older = http.get(first.headers["link"].partition(">")[0][1:], headers={"Accept": "application/x-ndjson"})
    assert page_of(older) == ["1"]
    assert "link" not in older.headers
    assert [row["v"]["value"] for row in http.get(f"{path}/solutions?order=newest").json()["results"]["bindings"]] == ["3", "2", "1"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (f"from={moment(2)}", ["2", "3"]),
        (f"to={moment(2)}", ["1", "2"]),
        (f"from={moment(2)}&to={moment(2)}", ["2"]),
        (f"from={moment(2)}&to={moment(9)}&order=newest", ["3", "2"]),
        (f"to={moment(2)}&order=newest&limit=1", ["2"]),
        ("from=2026-01-01T02:00:01.5%2B02:00&to=2026-01-01T00:00:02.999Z", ["2"]),
        (f"from={moment(4)}", []),
        (f"to={moment(0)}&order=newest", []),
    ],
)
def test_ranges_of_time(http: httpx.Client, path: str, query: str, expected: list[str]) -> None:
    assert page_of(http.get(f"{path}/solutions?{query}", headers={"Accept": "application/x-ndjson"})) == expected


def test_a_range_keeps_to_itself_on_the_next_page(http: httpx.Client, path: str) -> None:
    answer = http.get(f"{path}/solutions?to={moment(2)}&limit=1", headers={"Accept": "application/x-ndjson"})
    pages = [page_of(answer)]
    for _ in range(2):
        answer = http.get(answer.headers["link"].partition(">")[0][1:], headers={"Accept": "application/x-ndjson"})
        pages.append(page_of(answer))
    assert pages == [["1"], ["2"], []]


def test_a_range_that_ends_before_it_begins_is_refused(http: httpx.Client, path: str) -> None:
    assert_problem(http.get(f"{path}/solutions?from={moment(2)}&to={moment(1)}"), 400, "bad-range")


@pytest.mark.parametrize(
    "query", ["after=x", "before=x", "after=", "limit=0", "limit=x", "wait=-1", "order=up", "from=noon", "to=", "from=2026-01-01T00:00:00+02:00"]
)
def test_bad_parameters(http: httpx.Client, path: str, query: str) -> None:
    assert_problem(http.get(f"{path}/solutions?{query}"), 400)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("wait=soon", "query wait is 'soon'; give a number"),
        ("wait=-1", "query wait is '-1'; give a number of at least 0"),
        ("wait=nan", "query wait is 'nan'; give a number of at least 0"),
        ("limit=1.5", "query limit is '1.5'; give a whole number"),
        ("limit=100001", "query limit is '100001'; give a number of at most 100000"),
        ("order=up", "query order is 'up'; give 'oldest' or 'newest'"),
        (f"limit={'x' * 1000}", f"query limit is '{'x' * 100}'; give a whole number"),
    ],
)
def test_a_bad_parameter_is_told_with_what_it_may_be(http: httpx.Client, path: str, query: str, told: str) -> None:
    problem = assert_problem(http.get(f"{path}/solutions?{query}"), 400, "invalid-parameter")
    assert problem["detail"] == told
    assert str(problem["expected"]) in told


def test_waiting(client: Client, name: str, stream: str) -> None:
    client.register(name, values(stream))
    assert client.solutions(name, wait_s=0.05) == []
    later = threading.Timer(0.2, client.send, (stream, event(1)))
    later.start()
    assert len(client.solutions(name, wait_s=30)) == 1
    later.join()


def events_of(response: httpx.Response) -> Iterator[tuple[str, dict[str, Any]]]:
    """Ids and data of an event stream."""
    last = ""
    for line in response.iter_lines():
        field, _, value = line.partition(": ")
        if field == "id":
            last = value
        elif field == "data":
            yield last, json.loads(value)


def test_server_sent_events_resume_without_gap_or_repeat(http: httpx.Client, client: Client, path: str, stream: str) -> None:
    with http.stream("GET", f"{path}/events") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        first = list(islice(events_of(response), 2))
    assert [data["id"] for _, data in first] == [last for last, _ in first]
    client.send(stream, event(4))
    with http.stream("GET", f"{path}/events", headers={"Last-Event-ID": first[-1][0]}) as response:
        found = events_of(response)
        rest = list(islice(found, 2))
        client.send(stream, event(5))  # live, on the open connection
        rest += list(islice(found, 1))
    assert [data["binding"]["v"]["value"] for _, data in first + rest] == ["1", "2", "3", "4", "5"]
    with http.stream("GET", f"{path}/events", params={"after": rest[1][0]}) as response:
        assert [data["binding"]["v"]["value"] for _, data in islice(events_of(response), 1)] == ["5"]


def test_an_event_id_that_is_none(http: httpx.Client, path: str) -> None:
    assert_problem(http.get(f"{path}/events", headers={"Last-Event-ID": "x"}), 400, "bad-id")


def test_events_tell_that_no_solution_will_follow(http: httpx.Client, client: Client, path: str, stream: str) -> None:
    client.finish(stream)
    with http.stream("GET", f"{path}/events") as response:
        assert ": no further solution will follow" in response.iter_lines()


def test_events_end_when_the_query_is_dropped(http: httpx.Client, client: Client, path: str, name: str) -> None:
    with http.stream("GET", f"{path}/events") as response:
        text = response.iter_text()
        next(text)
        client.drop(name)
        assert "dropped" in "".join(text)


def test_many_followers_see_the_same(client: Client, name: str, stream: str) -> None:
    client.register(name, values(stream))
    subscriptions = [client.follow(name) for _ in range(8)]
    try:
        for subscription in subscriptions:
            subscription.open()
        with client.feed(stream) as feed:
            for number in range(700):
                feed.send(event(number))
            feed.flush()
        for subscription in subscriptions:
            assert [each.id for each in islice(iter(subscription), 700)] == [each.id for each in client.solutions(name)]
    finally:
        for subscription in subscriptions:
            subscription.close()


# ---------------------------------------------------------------- event streams
TREE, LDES = "https://w3id.org/tree#", "https://w3id.org/ldes#"
IMMUTABLE = "max-age=31536000, immutable"


def members(answer: httpx.Response) -> list[str]:
    """The values of a page's members, in their order. Each value stands in the graph of a member that has a time."""
    quads = list(ox.parse(answer.content, ox.RdfFormat.TRIG))
    listed = [quad.object for quad in quads if quad.predicate.value == f"{TREE}member"]
    assert {quad.subject for quad in quads if quad.predicate.value.endswith("generatedAtTime")} == set(listed)
    found = {quad.graph_name: quad.object.value for quad in quads if quad.predicate.value == f"{EX}seen"}
    return [found[member] for member in listed]


def next_page(answer: httpx.Response) -> str | None:
    return next((quad.object.value for quad in ox.parse(answer.content, ox.RdfFormat.TRIG) if quad.predicate.value == f"{TREE}node"), None)


def test_an_event_stream_is_followed_page_by_page(http: httpx.Client, client: Client, rule: str, name: str, stream: str) -> None:
    """Full pages are immutable and stay as they are; the last one grows until it is full."""
    root = http.get(f"{rule}/ldes")
    assert (root.headers["content-type"], root.headers["cache-control"], root.headers["vary"]) == ("application/trig", "no-cache", "Accept")
    first = str(next_page(root))
    page = http.get(first)
    assert (members(page), page.headers["cache-control"], next_page(page)) == (["1", "2"], "no-cache", None)
    assert http.get(first, headers={"If-None-Match": page.headers["etag"]}).status_code == 304
    client.send(stream, "\n".join(event(number) for number in range(3, PAGE + 3)))
    until(lambda: client.query(name)["solutions"] == PAGE + 2, "all solutions")
    page = http.get(first, headers={"If-None-Match": page.headers["etag"]})
    assert (members(page), page.headers["cache-control"]) == (list(map(str, range(1, PAGE + 1))), IMMUTABLE)
    assert f"<{first}> ldes:immutable true" in page.text.replace("&amp;", "&")
    assert f'tree:value "{moment(PAGE)}"' in page.text
    last = http.get(str(next_page(page)))
    assert (members(last), next_page(last)) == ([str(PAGE + 1), str(PAGE + 2)], None)
    beyond = str(next_page(page)).replace("page=1", "page=2")
    assert "the last page has the number 1" in str(assert_problem(http.get(beyond), 404, "unknown-page")["detail"])


@pytest.mark.parametrize(("media_type", "fmt"), [("application/n-quads", ox.RdfFormat.N_QUADS), ("application/ld+json", ox.RdfFormat.JSON_LD)])
def test_an_event_stream_in_other_formats(http: httpx.Client, rule: str, media_type: str, fmt: ox.RdfFormat) -> None:
    first = str(next_page(http.get(f"{rule}/ldes")))
    answer = http.get(first, headers={"Accept": media_type})
    assert answer.headers["content-type"] == media_type
    assert set(ox.parse(answer.content, fmt)) == set(ox.parse(http.get(first).content, ox.RdfFormat.TRIG))
    assert_problem(http.get(first, headers={"Accept": "text/turtle"}), 406)


def test_an_interval_tells_start_and_end(http: httpx.Client, client: Client, name: str, stream: str) -> None:
    pair = '{ ?s :value "1" } SEQ { ?s :value ?v }'
    client.register(name, f"PREFIX : <{EX}> CONSTRUCT {{ ?s :seen ?v }} INTO STREAM <{stream}out> FROM STREAM <{stream}> WHERE {{ {pair} }}")
    client.send(stream, "\n".join(event(number) for number in (1, 2)))
    until(lambda: client.query(name)["solutions"] == 1, "the pair")
    found = http.get(str(next_page(http.get(f"/queries/{segment(name)}/ldes"))), headers={"Accept": "application/n-quads"}).text
    assert f'startsAtTime> "{moment(1)}"' in found
    assert found.count(f'Time> "{moment(2)}"') == 2


def test_only_graphs_are_an_event_stream(http: httpx.Client, path: str) -> None:
    assert "CONSTRUCT" in str(assert_problem(http.get(f"{path}/ldes"), 422, "unsupported")["detail"])


def test_pages_of_another_registration_are_refused(http: httpx.Client, client: Client, rule: str, name: str) -> None:
    first = str(next_page(http.get(f"{rule}/ldes")))
    assert_problem(http.get(f"{rule}/ldes?page=0"), 400, "bad-page")
    client.register(name, "CONSTRUCT WHERE { ?s ?p ?o }", replace=True)
    assert "begin at its root" in str(assert_problem(http.get(first), 410)["detail"])
