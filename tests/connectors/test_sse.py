"""Server-Sent Events in: how a stream of them is parsed, a real publisher that ends and breaks off, and kills of
everything.
"""

import json
import re
import threading
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.configuration import parse_connector
from connectors.errors import SystemFault
from connectors.inbound.source import Message
from connectors.inbound.sse.event_stream_parser import EventStreamParser, EventTooLarge
from connectors.inbound.sse.rdf_changes import write_events
from connectors.inbound.sse.sse_source import SseSource
from tests.connectors.systems.chaos import QUERY, connecting, event, kill_at_random, restarted_server, values_of, wait_for
from tests.connectors.systems.event_publisher import EventPublisher
from tests.support.logs import until

# ---------------------------------------------------------------- parsing
PARSED = [
    pytest.param("data: YHOO\ndata: +2\ndata: 10\n\n", [("message", "YHOO\n+2\n10", "")], id="lines of data"),
    pytest.param(
        ": a comment\n\ndata: 1\nid: 1\n\ndata:2\nid\n\ndata:  3\n\n", [("message", "1", "1"), ("message", "2", ""), ("message", " 3", "")], id="ids"
    ),
    pytest.param("data\n\ndata\ndata\n\ndata:", [("message", "", ""), ("message", "\n", "")], id="empty data, and an event without an end"),
    pytest.param("event: add\ndata: 1\n\nevent: none\n\ndata: 2\n\n", [("add", "1", ""), ("message", "2", "")], id="types"),
    pytest.param("\ufeffdata: 1\r\rdata: 2\r\n\r\nid: \0\ndata: 3\n\n", [("message", each, "") for each in "123"], id="breaks of lines"),
    pytest.param("id: 7\n\nid: 8\n\ndata: 1\n\n", [("message", "1", "8")], id="an id without data"),
    pytest.param("retry: x\nother: y\ndata: 1\n\n", [("message", "1", "")], id="what is not known"),
]


def parse(text: str, cuts: Sequence[int] = ()) -> list[tuple[str, str, str]]:
    body, parser = text.encode(), EventStreamParser("", 1 << 20)
    pieces = [body[begin:end] for begin, end in pairwise([0, *sorted(cuts), len(body)])]
    return [(each.kind, each.data.decode(), each.id) for piece in pieces for each in parser.feed(piece)]


@pytest.mark.parametrize(("text", "events"), PARSED)
def test_a_text_is_parsed_as_the_standard_says(text: str, events: list[tuple[str, str, str]]) -> None:
    assert parse(text) == events


@given(st.lists(st.sampled_from(["data: a", "data", "id: 1", "id", "event: x", ":", "\n", "\r", "\r\n", "retry: 5", "é"]), max_size=30), st.data())
def test_where_the_pieces_end_does_not_matter(parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    cuts = data.draw(st.lists(st.integers(0, len(text.encode())), max_size=6))
    expected, event = list[tuple[str, str, str]](), dict[str, str]()
    lines, last = re.split("\r\n|\n|\r", text)[:-1], ""
    for line in lines:  # what is expected is read whole, line by line
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if line == "":
            if "data" in event:
                expected.append((event.get("event") or "message", event["data"].removesuffix("\n"), last))
            event = {}
        elif name == "data":
            event["data"] = event.get("data", "") + value + "\n"
        elif name == "id":
            last = value
        else:
            event[name] = value
    assert parse(text, cuts) == expected


def test_an_event_has_a_bound() -> None:
    for piece in (b"x" * 60, b"data: 12345678901234567890\n"):
        parser = EventStreamParser("", 100)
        assert not [*parser.feed(piece)]
        with pytest.raises(EventTooLarge):
            [*parser.feed(piece), *parser.feed(piece), *parser.feed(piece)]


# ---------------------------------------------------------------- changes of graphs
ENTITY, URN = "<http://w.example/entity/Q1>", "urn:epsparql:change:"
SAID = [
    {"s": ENTITY, "p": f"<{URN}operation>", "o": '"diff"', "at": "2026-01-01T00:00:00Z"},
    {"s": ENTITY, "p": f"<{URN}revision>", "o": 7, "at": "2026-01-01T00:00:00Z"},
]


def change(**more: Any) -> dict[str, Any]:
    """A change of an entity, in the form of Wikidata's mutation stream."""
    return {
        "$schema": "/mediawiki/wikibase/entity/rdf_change/2.0.0", "meta": {"domain": "w.example", "stream": "s", "id": "i"},
        "dt": "2026-01-01T00:00:00Z", "entity_id": "Q1", "rev_id": 7, "operation": "diff", "sequence": 0, "sequence_length": 1,
    } | more  # fmt: skip


def turtle(text: str) -> dict[str, str]:
    return {"mime_type": "text/turtle", "data": text}


CHANGES = [
    pytest.param(change(), SAID, id="an operation"),
    pytest.param(
        change(**{f"rdf_{name}_data": turtle(name) for name in ("added", "deleted", "linked_shared", "unlinked_shared")}),
        [
            *SAID,
            *({"triples": text, "g": f"<{URN}{text.removesuffix('_shared')}>", "at": "2026-01-01T00:00:00Z"}
              for text in ("added", "deleted", "linked_shared", "unlinked_shared")),
        ],
        id="all graphs",
    ),
    pytest.param(
        change(sequence=1, sequence_length=2, rdf_added_data={"mime_type": "application/n-triples; charset=utf-8", "data": "é"}),
        [{"triples": "é", "g": f"<{URN}added>", "at": "2026-01-01T00:00:00Z"}],
        id="a second part says no operation",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("document", "events"), CHANGES)
def test_a_change_becomes_events(document: dict[str, Any], events: list[dict[str, Any]]) -> None:
    assert [json.loads(line) for line in write_events(json.dumps(document).encode()).splitlines()] == events


@pytest.mark.parametrize(
    "text", [b"{", b"[]", b"{}", b"[" * 100_000, b"\xff", json.dumps(change(rdf_added_data={"mime_type": "text/html", "data": ""})).encode()]
)
def test_what_is_no_change_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        write_events(text)


def test_a_message_that_is_no_change_goes_on_as_it_is(publisher: EventPublisher) -> None:
    """The server refuses it then, and `on_error` says what becomes of it."""
    publisher.events = [f"id: {{id}}\ndata: {json.dumps(each)}\n\n" for each in ({"no": "change"}, change())]
    source = source_of(publisher, rdf_changes=True)
    source.seek(None)
    first, second = read(source, 2)
    assert (first.payload, first.media_type) == (b'{"no": "change"}', "application/x-ndjson")
    assert "that is no change of RDF (a member is missing" in first.origin
    assert [json.loads(line) for line in second.payload.splitlines()] == SAID
    source.close()


# ---------------------------------------------------------------- a publisher
@pytest.fixture
def publisher() -> Iterator[EventPublisher]:
    found = EventPublisher()
    yield found
    found.close()


def source_of(publisher: EventPublisher, **more: object) -> SseSource:
    given = {"type": "sse", "stream": "s", "url": publisher.url, "token_env": "TOKEN", "event": "message"} | more
    return SseSource(parse_connector("events", given), {"token": "s3cret"})


@pytest.fixture
def source(publisher: EventPublisher) -> Iterator[SseSource]:
    found = source_of(publisher)
    yield found
    found.close()


def read(source: SseSource, count: int) -> list[Message]:
    found: list[Message] = []

    def has_all() -> bool:
        found.extend(source.read(3, 0.05))
        return len(found) >= count

    until(has_all, f"{count} events")
    return found


def test_events_are_read_once_across_the_ends_of_answers(publisher: EventPublisher, source: SseSource) -> None:
    publisher.longest = 4
    publisher.events = [f"event: other\ndata: no\n\nid: {{id}}\ndata: {number}\n\n" for number in range(10)]
    source.seek(None)
    found = read(source, 10)
    publisher.events.append("id: {id}\ndata: 10\n\n")
    found += read(source, 1)
    assert [message.payload for message in found] == [str(number).encode() for number in range(11)]
    assert [message.position for message in found] == [str(number) for number in range(1, 12)]
    assert {asked["authorization"] for asked in publisher.asked} == {"Bearer s3cret"}
    assert [asked.get("last-event-id") for asked in publisher.asked[:3]] == [None, "4", "8"]
    source.seek(found[6].position)
    assert [message.payload for message in read(source, 4)] == [b"7", b"8", b"9", b"10"]


def test_a_publisher_without_ids_is_read_on_demand(publisher: EventPublisher, source: SseSource) -> None:
    publisher.events = ["event: x\ndata: 1\n\n", "data: 2\n\n"]
    source.seek(None)
    with pytest.raises(SystemFault, match="sends an event of the type 'message' without an id, so nothing can resume after it; name the type"):
        read(source, 1)
    for kind, expected in (("x", [b"1"]), (None, [b"1", b"2"])):
        other = source_of(publisher, resume=False, event=kind)
        assert not other.has_positions
        other.seek(None)
        assert [message.payload for message in read(other, len(expected))] == expected
        other.close()


FAULTS: list[Any] = [
    pytest.param(404, {}, "answers with 404 Not Found", id="status"),
    pytest.param(307, {"Location": "http://127.0.0.1:1/x"}, "is redirected to http://127.0.0.1:1/x; give that address as url", id="redirected"),
    pytest.param(200, {"Content-Type": "text/html; charset=utf-8"}, "answers with text/html instead of text/event-stream", id="media type"),
    pytest.param(200, {"Content-Encoding": "gzip"}, "answers with the Content-Encoding 'gzip', which was not asked for", id="packed"),
]


@pytest.mark.parametrize(("status", "headers", "message"), FAULTS)
def test_what_cannot_be_followed_is_told(status: int, headers: dict[str, str], message: str, publisher: EventPublisher, source: SseSource) -> None:
    publisher.status = status
    publisher.headers |= headers
    source.seek(None)
    with pytest.raises(SystemFault, match=re.escape(message)):
        source.read(10, 1)


def test_other_faults_are_told(publisher: EventPublisher, source: SseSource) -> None:
    publisher.events = [f"id: {'7' * 2049}\ndata: 1\n\n"]
    source.seek(None)
    with pytest.raises(SystemFault, match="sends an id of 2049 characters; ids have 1 to 2048"):
        read(source, 1)
    publisher.events, publisher.longest, publisher.breaks_off = ["id: {id}\ndata: 1\n\n"], 1, True
    source.seek(None)
    assert len(read(source, 1)) == 1
    with pytest.raises(SystemFault, match="breaks off: "):
        read(source, 1)
    publisher.breaks_off, publisher.events = False, [f"data: {'x' * (1 << 20)}\n" * 17]
    source.seek(None)
    with pytest.raises(SystemFault, match="has an event of more than 16777216 bytes; ask its publisher for smaller events"):
        read(source, 1)
    publisher.close()
    source.seek(None)
    with pytest.raises(SystemFault, match="does not answer"):
        source.read(10, 1)


def test_closing_ends_at_once_while_nothing_comes(publisher: EventPublisher, source: SseSource) -> None:
    source.seek(None)
    assert source.read(1, 0.2) == []
    assert publisher.asked
    begin = time.monotonic()
    source.close()
    assert time.monotonic() - begin < 5
    assert "event stream" not in {thread.name for thread in threading.enumerate()}


# ---------------------------------------------------------------- kills
@pytest.mark.slow
def test_every_event_is_evaluated_once_and_in_order_whoever_is_killed(tmp_path: Path, publisher: EventPublisher) -> None:
    chance, stopping, solved = Random(12), threading.Event(), 0
    publisher.longest = 23

    def publish() -> None:
        while not stopping.wait(0.004):
            if len(publisher.events) < solved + 1_000:  # a busy machine would not catch up otherwise
                publisher.events.append(f"id: {{id}}\ndata: {event(len(publisher.events))}\n\n")

    def count_solved() -> int:
        nonlocal solved
        solved = int(server.client.query("values")["solutions"])
        return solved

    with restarted_server(tmp_path) as server:
        server.client.register("values", QUERY)
        connectors = {"events": {"type": "sse", "stream": "default", "url": publisher.url, "format": "application/x-ndjson"}}
        with connecting(tmp_path, server.url, connectors) as process:
            writer = threading.Thread(target=publish)
            writer.start()
            try:
                victims = (lambda: process.kill_worker(chance), server.restart)
                kill_at_random(victims, chance, count_solved)
            finally:
                stopping.set()
                writer.join()
            total = len(publisher.events)
            wait_for(lambda: count_solved() >= total, "the last solution")
        found = server.client.stream("default")
        assert (found["accepted"], found["late"]) == (total, 0)
        _, _, content = server.client.request("GET", "/queries/values/solutions?limit=100000", Accept="application/x-ndjson")
        assert values_of(content.splitlines()) == list(range(total))
