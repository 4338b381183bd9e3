"""Source positions over HTTP and WebSocket, and with both clients: each part of a source is accepted once
(docs/sources.md).
"""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from epsparql.async_client import AsyncClient
from epsparql.client import ApiError, Client, Source, segment
from pipeline.source_positions import LONGEST_ID, LONGEST_POSITION, MOST_DECLARED
from tests.server.conftest import DEADLINE_S, event, moment, serving, until, values
from tests.server.operations.test_security import digest
from tests.server.routes.test_streams import assert_problem, post
from tests.server.subscriptions.test_websockets import dial

FIRST = Source("a", None, "1")


def test_a_body_is_accepted_ignored_or_refused(client: Client, stream: str) -> None:
    first = client.send(stream, event(1), source=FIRST)
    assert (first.accepted, first.duplicate) == (1, False)
    again = client.send(stream, event(1), source=FIRST)
    assert (again.offset, again.accepted, again.duplicate) == (first.offset, 0, True)
    with pytest.raises(ApiError) as caught:
        client.send(stream, event(2), source=Source("a", "0", "2"))
    assert (caught.value.status, caught.value.code) == (409, "source-conflict")
    assert caught.value.problem["source"] == {"id": "a", "position": "1"}
    assert client.stream(stream)["accepted"] == 1
    assert client.send(stream, event(2), source=Source("a", "0", "2", reset=True)).accepted == 1
    assert client.send(stream, '{"triples":""}', source=Source("a", "2", "3")).accepted == 0
    assert client.sources(stream) == {"a": "3"}


def test_positions_are_shown_with_what_is_known_of_their_sources(client: Client, http: httpx.Client, stream: str) -> None:
    path = f"/streams/{segment(stream)}/sources"
    assert_problem(http.get(path), 404, "unknown-stream")
    client.create_stream(stream, sources=["b", "a"])
    offset = client.send(stream, event(5), source=FIRST).offset
    client.send(stream, event(7), source=Source("other", None, "x"))
    found = http.get(path).json()["sources"]
    assert all(each.pop("arrived") for each in found[1:])
    assert found == [
        {"id": "b", "position": None, "offset": None, "arrived": None, "latest": None, "declared": True},
        {"id": "a", "position": "1", "offset": offset, "latest": moment(5), "declared": True},
        {"id": "other", "position": "x", "offset": offset + 1, "latest": moment(7), "declared": False},
    ]
    assert client.sources(stream) == {"b": None, "a": "1", "other": "x"}


def test_the_header_is_json_in_ascii(http: httpx.Client, client: Client, stream: str) -> None:
    for text, code in (("", "source"), ("a;1;2", "source"), ('{"id": "a"}', "source"), ("x" * 60_000, "invalid-parameter")):
        assert_problem(post(http, stream, event(1), **{"Epsparql-Source": text}), 400, code)
    assert_problem(http.get(f"/streams/{segment(stream)}"), 404)
    longest = Source("\U0001f600" * LONGEST_ID, "\U0001f601" * LONGEST_POSITION, "\U0001f602" * LONGEST_POSITION, reset=True)
    assert client.send(stream, event(1), source=longest).accepted == 1
    assert client.sources(stream) == {longest.id: longest.position}


def frame(number: int, source: dict[str, Any], **more: object) -> str:
    return json.dumps({"source": source, **more}) + f"\n{event(number)}"


def test_a_frame_says_its_source_in_its_first_line(url: str, client: Client, stream: str) -> None:
    at = {"id": "a", "after": "1", "position": "2"}
    one_line = event(4)[:-1] + ', "source": {"id": "a", "after": "2", "position": "3"}}'
    frames = [
        (frame(1, {"id": "a", "position": "1"}), {"accepted": 1}),
        (frame(1, {"id": "a", "position": "1"}), {"accepted": 0, "duplicate": True}),
        (frame(2, at, id="key"), {"accepted": 1}),
        (frame(9, at, id="key"), {"accepted": 1}),  # the id is that of the frame before
        (one_line, {"accepted": 1}),
        (json.dumps({"source": {"id": "a", "after": "3", "position": "4"}}), {"accepted": 0}),
        (frame(5, {"id": "a", "after": "7", "position": "8"}), (409, None)),
        (frame(5, {"id": "a"}), (400, 1)),
        (frame(5, {"id": "a", "after": "4", "position": "5"}) + "\n{}", (400, 3)),
        (event(5) + "\n" + frame(6, {"id": "a", "after": "4", "position": "5"}), (400, 2)),
        (frame(6, {"id": "a", "after": "4", "position": "5"}), {"accepted": 1}),
    ]
    with dial(url, f"/streams/{segment(stream)}/feed") as connection:
        for sent, expected in frames:
            connection.send(sent)
            answer = json.loads(connection.recv(DEADLINE_S))
            if isinstance(expected, tuple):
                assert (answer["error"]["status"], answer["error"].get("line")) == expected, answer
                assert answer["error"].get("source") == ({"id": "a", "position": "4"} if expected[0] == 409 else None)
            else:
                assert {name: value for name, value in answer.items() if name != "ack"} == expected
    assert client.sources(stream) == {"a": "5"}
    assert client.stream(stream)["accepted"] == 4


def test_a_feed_that_reconnects_sends_no_position_twice(client: Client, stream: str) -> None:
    with client.feed(stream) as feed:
        feed.send(event(1), source=FIRST)
        feed.flush()
        feed.close()
        feed.send(event(1), source=FIRST)
        feed.send(event(2), source=Source("a", "1", "2"))
        feed.flush()
    assert (client.sources(stream), client.stream(stream)["accepted"]) == ({"a": "2"}, 2)


def test_the_client_for_asyncio_does_the_same(url: str, stream: str) -> None:
    async def run() -> None:
        client = AsyncClient(url)
        await client.create_stream(stream, sources=["a"])
        assert (await client.send(stream, event(1), source=FIRST)).accepted == 1
        assert (await client.send(stream, event(1), source=FIRST)).duplicate
        async with client.feed(stream) as feed:
            await feed.send(event(2), source=Source("a", "1", "2"))
            await feed.flush()
        assert await client.sources(stream) == {"a": "2"}

    asyncio.run(run())


def test_the_longest_wait_of_a_query_is_that_of_the_slowest_source(client: Client, http: httpx.Client, stream: str, name: str) -> None:
    """Four backlogs are read one after the other: nothing is late, and the solutions come in the order of time."""
    sources = [f"kafka:readings:{k}" for k in range(4)]
    client.create_stream(stream, sources=sources)
    client.register(name, values(stream))
    for k, source in enumerate(sources):
        for number in range(25):
            client.send(stream, event(4 * number + k), source=Source(source, str(number) if number else None, str(number + 1)))
    found = client.stream(stream)
    assert (found["accepted"], found["late"], found["watermark"]) == (100, 0, moment(96))
    client.finish(stream)
    until(lambda: len(client.solutions(name)) == 100, "all solutions are there")
    assert [each.end for each in client.solutions(name)] == [moment(number) for number in range(100)]
    assert http.get(f"/streams/{segment(stream)}/late").text == ""


def test_a_body_from_no_declared_source_is_warned_of(url: str, client: Client, stream: str) -> None:
    client.create_stream(stream, sources=["a"])
    assert client.send(stream, event(1), source=FIRST).warning == ""
    assert "the body names no source, so its events do not move the watermark" in client.send(stream, event(9)).warning
    assert "the source 'b' is not declared" in client.send(stream, event(9), source=Source("b", None, "1")).warning
    assert client.stream(stream)["watermark"] == moment(1)
    with dial(url, f"/streams/{segment(stream)}/feed") as connection:
        connection.send(event(9))
        assert "names no source" in json.loads(connection.recv(DEADLINE_S))["warning"]


@pytest.mark.parametrize(
    ("sources", "told"),
    [
        ("a", "an array"),
        ([1], "sources[0] must be a string"),
        (["a", ""], "sources[1] has 0 characters"),
        (["a" * (LONGEST_ID + 1)], f"sources[0] has {LONGEST_ID + 1} characters"),
        (["a", "b", "a"], "sources has 'a' twice"),
        ([str(k) for k in range(MOST_DECLARED + 1)], f"not {MOST_DECLARED + 1} members"),
    ],
)
def test_a_declaration_that_is_none_is_refused(http: httpx.Client, stream: str, sources: object, told: str) -> None:
    problem = assert_problem(http.put(f"/streams/{segment(stream)}", json={"sources": sources}), 400, "invalid-member")
    assert told in str(problem["detail"])


def test_a_declaration_is_set_shown_and_taken_back(http: httpx.Client, stream: str) -> None:
    path = f"/streams/{segment(stream)}"
    assert http.put(path, json={"sources": ["b", "a"]}).json()["sources"] == ["b", "a"]
    assert http.get(path).json()["sources"] == ["b", "a"]
    assert http.put(path, json={}).json()["sources"] == []


def test_a_token_for_the_stream_reads_its_sources(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{digest('feeder')} ingest:default\n{digest('reader')} read:*\n")
    with serving(tmp_path / "data", token_file=tokens) as url:
        assert Client(url, "feeder").send("default", event(1), source=FIRST).accepted == 1
        assert Client(url, "feeder").sources("default") == {"a": "1"}
        with pytest.raises(ApiError, match="403"):
            Client(url, "reader").sources("default")


def test_the_page_is_true(client: Client, http: httpx.Client) -> None:
    """The header, the settings and the line of a frame that docs/sources.md shows are taken."""
    page = (Path(__file__).parents[3] / "docs" / "sources.md").read_text(encoding="utf-8")
    (header,), (settings,) = re.findall(r"'Epsparql-Source: (\{.*\})'", page), re.findall(r"-d '(\{.*\})'", page)
    assert http.put("/streams/readings", content=settings).status_code == 201
    assert assert_problem(post(http, "readings", event(1), **{"Epsparql-Source": header}), 409, "source-conflict")["source"] == {
        "id": "kafka:readings:0",
        "position": None,
    }
    client.send("readings", event(1), source=Source("kafka:readings:0", None, "41"))
    assert post(http, "readings", event(2), **{"Epsparql-Source": header}).status_code == 202
    assert client.sources("readings") == {"kafka:readings:0": "57", "kafka:readings:1": None}


def test_a_body_in_any_format_has_a_source(http: httpx.Client, client: Client, stream: str) -> None:
    header = {"Epsparql-Source": FIRST.to_json()}
    for status, accepted in ((202, 2), (202, 0)):
        answer = post(http, stream, "<http://e/s> <http://e/p> 1, 2 .", "text/turtle", f"?at={moment(1)}", **header)
        assert (answer.status_code, answer.json()["accepted"]) == (status, accepted)
    assert answer.json()["duplicate"] is True


def test_what_waits_for_a_silent_source_is_refused_beyond_a_bound(tmp_path: Path) -> None:
    with serving(tmp_path, max_waiting=4) as url, httpx.Client(base_url=url) as http:
        client = Client(url, patience_s=0)
        client.create_stream("s", sources=["a", "b"])
        client.send("s", "\n".join(map(event, range(4))), source=FIRST)
        refused = post(http, "s", event(5))
        assert_problem(refused, 429, "source-silent")
        assert refused.headers["Retry-After"] == "10"
        assert "wait for its source 'b'; send its events, remove it from `sources`, or set `idle_timeout`" in refused.json()["detail"]
        stream = client.stream("s")
        assert (stream["waiting"], stream["waits_for"], stream["accepted"]) == (4, ["b"], 4)
        assert http.get("/readyz").json()["held"] == 1
        assert 'epsparql_stream_waiting_occurrences{stream="s"} 4.0' in http.get("/metrics").text
        with dial(url, "/streams/s/feed") as connection:
            told = []
            for text in (frame(6, {"id": "a", "after": "1", "position": "2"}), frame(3, {"id": "b", "position": "1"}), event(9)):
                connection.send(text)
                told.append(json.loads(connection.recv(timeout=DEADLINE_S)))
        assert told[0]["error"]["code"] == "source-silent", "the frame is answered, and does not hold up those behind it"
        assert [each["accepted"] for each in told[1:]] == [1, 1]
        assert client.send("s", event(6), source=Source("a", "1", "2")).late == 0
        stream = client.stream("s")
        assert (stream["accepted"], stream["late"], http.get("/readyz").json()["held"]) == (7, 0, 0)
