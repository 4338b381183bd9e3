"""Streams of instants: events that last are refused at every door, rules that may write such too, and the setting is
offered where it helps.
"""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from epsparql.client import ApiError, Client, segment
from tests.server.conftest import EX, until

CONSECUTIVE = "{ ?k :v ?v } SEQ { ?k :v ?w } WITHOUT { ?k :v ?u }"
AT = "2026-11-29T12:00:{:02}Z"


def event(start: int, end: int, key: str = "k") -> str:
    times = {"start": AT.format(start), "end": AT.format(end)}
    return json.dumps({"s": f"<{EX}{key}>", "p": f"<{EX}v>", "o": f'"{end}"', **times})


def rule(pattern: str, read: str, into: str) -> str:
    return f"PREFIX : <{EX}> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> CONSTRUCT {{ ?k :v ?v }} INTO STREAM <{into}> FROM STREAM <{read}> WHERE {{ {pattern} }}"


def select(pattern: str, read: str) -> str:
    return f"PREFIX : <{EX}> SELECT * FROM STREAM <{read}> WHERE {{ {pattern} }}"


@pytest.fixture
def put(http: httpx.Client) -> Callable[..., httpx.Response]:
    return lambda stream, **settings: http.put(f"/streams/{segment(stream)}", json=settings)


@pytest.fixture
def register(http: httpx.Client) -> Callable[[str, str], httpx.Response]:
    return lambda name, text: http.put(f"/queries/{segment(name)}", content=text, headers={"Content-Type": "application/sparql-query"})


@pytest.fixture
def streams(stream: str) -> tuple[str, str]:
    """Names that FROM STREAM can have: a stream that is read, and one that is written."""
    number = "".join(filter(str.isdigit, stream.split("?")[0]))
    return f"{EX}read{number}", f"{EX}written{number}"


def test_no_door_takes_an_event_that_lasts(http: httpx.Client, url: str, put: Callable[..., httpx.Response], streams: tuple[str, str]) -> None:
    read, _ = streams
    assert put(read, instants=True).json()["instants"] is True
    assert put(read, instants="yes").json()["code"] == "invalid-member"
    bodies = [
        (event(1, 1) + "\n" + event(1, 2), {"Content-Type": "application/x-ndjson"}, ""),
        (f"<{EX}k> <{EX}v> 1 .", {"Content-Type": "text/turtle"}, f"?start={AT.format(1)}&end={AT.format(2)}"),
    ]
    for body, headers, query in bodies:
        answer = http.post(f"/streams/{segment(read)}/events{query}", content=body, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (422, "no-instant"), answer.text
        assert f"stream {read!r} takes only instants" in answer.json()["detail"]
    with Client(url).feed(read) as feed:
        feed.send(event(1, 2))
        with pytest.raises(ApiError, match="takes only instants"):
            feed.flush()
    assert http.get(f"/streams/{segment(read)}").json()["accepted"] == 0
    assert http.post(f"/streams/{segment(read)}/events", content=event(2, 2), headers=bodies[0][1]).status_code == 202


RULES: list[Any] = [
    pytest.param("{ ?k :v ?v } SEQ { ?k :v ?w }", False, id="a sequence lasts"),
    pytest.param("?k :v ?v", True, id="a triple of an instant"),
    pytest.param("{ ?k :v ?v } EQUALS { ?k :w ?w }", True, id="two instants that are one"),
    pytest.param("?k :v ?v . ?k :w ?w", False, id="two triples, of any two instants"),
    pytest.param('{ ?k :v ?v } SEQ { ?k :v ?w } FILTER(getDURATION() = "PT0S"^^xsd:duration)', True, id="a condition"),
    pytest.param("SELECT ?k (COUNT(*) AS ?v) { ?k :v ?w } GROUP BY ?k WINDOW [ROWS 3]", False, id="a window"),
]


@pytest.mark.parametrize(("pattern", "is_taken"), RULES)
def test_rules_that_may_write_what_lasts(
    put: Callable[..., httpx.Response],
    register: Callable[[str, str], httpx.Response],
    http: httpx.Client,
    streams: tuple[str, str],
    pattern: str,
    is_taken: bool,
) -> None:
    """They are refused when they come, and so is the setting when they are there."""
    (read, into), name = streams, f"rule of {streams[1]}"
    put(read, instants=True)
    put(into, instants=True)
    text = rule(pattern if not pattern.startswith("SELECT") else f"{{ {pattern} }}", read, into)
    answer = register(name, text)
    assert answer.status_code == (201 if is_taken else 409), answer.text
    if not is_taken:
        assert answer.json()["code"] == "writes-intervals"
        assert "getDURATION()" in answer.json()["detail"]
        assert put(into).json()["instants"] is False
        assert register(name, text).status_code == 201
        refused = put(into, instants=True)
        assert (refused.status_code, refused.json()["code"]) == (409, "writes-intervals")
        assert http.get(f"/streams/{segment(into)}").json()["instants"] is False
    http.delete(f"/queries/{segment(name)}").raise_for_status()


def test_a_rule_that_read_what_may_last(
    put: Callable[..., httpx.Response], register: Callable[[str, str], httpx.Response], streams: tuple[str, str]
) -> None:
    """It read its stream before the setting, so it may still write events that last; registered again, it may not."""
    (read, into), text = streams, rule("?k :v ?v", *streams)
    assert register(f"early {into}", text).status_code == 201
    put(read, instants=True)
    assert put(into, instants=True).json()["code"] == "writes-intervals"


def test_the_setting_stays_while_a_query_rests_on_it(
    put: Callable[..., httpx.Response], register: Callable[[str, str], httpx.Response], http: httpx.Client, streams: tuple[str, str]
) -> None:
    read, _ = streams
    put(read, instants=True)
    found = register(f"q {read}", select(CONSECUTIVE, read)).json()
    assert found["warnings"] == []
    plan = http.get(f"/queries/{segment(f'q {read}')}/plan", headers={"Accept": "text/plain"}).text
    assert "left side kept until an absent one has passed" in plan
    refused = put(read, max_delay="PT1S")
    assert (refused.status_code, refused.json()["code"]) == (409, "stream-in-use")
    assert put(read, max_delay="PT1S", instants=True).status_code == 200
    http.delete(f"/queries/{segment(f'q {read}')}").raise_for_status()
    assert put(read).json()["instants"] is False


def test_partial_matches_follow_the_keys(
    put: Callable[..., httpx.Response], register: Callable[[str, str], httpx.Response], http: httpx.Client, streams: tuple[str, str]
) -> None:
    read, _ = streams
    put(read, instants=True)
    name = f"keys of {read}"
    register(name, select(CONSECUTIVE, read))
    body = "\n".join(event(second, second, f"k{key}") for second in range(50) for key in range(4))
    sent = http.post(f"/streams/{segment(read)}/events", content=body, headers={"Content-Type": "application/x-ndjson"}).json()
    path = f"/queries/{segment(name)}"
    until(lambda: (http.get(path).json()["memory"] or {"offset": 0})["offset"] >= sent["offset"], "a report after the readings")
    found = http.get(path).json()
    assert (found["solutions"], found["memory"]["goals"] <= 12) == (4 * 49, True), found


def test_the_setting_is_offered(put: Callable[..., httpx.Response], http: httpx.Client, streams: tuple[str, str]) -> None:
    read, into = streams
    for stream, end in ((read, 1), (into, 2)):
        http.post(f"/streams/{segment(stream)}/events", content=event(1, end), headers={"Content-Type": "application/x-ndjson"}).raise_for_status()
        assert http.get(f"/streams/{segment(stream)}/profile").json()["lasting"] == end - 1

    def offers(pattern: str, stream: str) -> list[str]:
        warnings = http.post("/check", json={"query": select(pattern, stream)}).json()["warnings"]
        return [warning["message"] for warning in warnings if warning["code"] == "only-instants"]

    assert offers(CONSECUTIVE, read) == [f"the stream {read!r} has carried no event that lasts: with the setting instants: true, this keeps less"]
    assert offers(CONSECUTIVE, into) == []
    assert offers("?k :v ?v", read) == []
    put(read, instants=True)
    assert offers(CONSECUTIVE, read) == []
