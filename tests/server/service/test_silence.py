"""Time passes on streams that fall silent: by the clock where events have no times of their own, else by
`idle_timeout` (semantics.md section 8).
"""

from pathlib import Path

import httpx
import pytest

from engine.messages import Tick
from epsparql.client import Client
from pipeline.log import LogReader
from tests.server.conftest import EX, event, serving, until, values

UNTIMED = f'{{"s":"<{EX}s>","p":"<{EX}value>","o":"\\"1\\""}}'


def silent(stream: str, timer: str = "PT1S") -> str:
    return f"PREFIX : <{EX}> SELECT ?s FROM STREAM <{stream}> {{ {{ ?s :value ?v }} WITHOUT {{ ?s :value ?w }} FOR '{timer}' }}"


def stepping(stream: str) -> str:
    return f"PREFIX : <{EX}> SELECT (COUNT(?v) AS ?n) FROM STREAM <{stream}> {{ ?s :value ?v }} GROUP BY ?s WINDOW [RANGE 'PT1S' STEP 'PT1S']"


def pairs(stream: str) -> str:
    return f"PREFIX : <{EX}> SELECT * FROM STREAM <{stream}> {{ {{ ?s :value ?v }} SEQ {{ ?s :value ?w }} }}"


def ticks(data: Path, stream: str) -> int:
    return sum(isinstance(entry, Tick) and entry.stream == stream for block in LogReader(data).blocks(0, 1000) for entry in block.entries)


def codes(document: dict[str, list[dict[str, str]]]) -> list[str]:
    return [warning["code"] for warning in document["warnings"] if warning["code"] != "unknown-stream"]


def test_time_passes_only_where_a_query_waits_for_it_and_a_restart_changes_nothing(tmp_path: Path) -> None:
    queries = {"silent": silent("awaited"), "last": f"{values('last')} ORDER BY ?v", "plain": pairs("plain"), "window": stepping("window")}
    with serving(tmp_path) as url:
        client = Client(url)
        for name, text in queries.items():
            client.register(name, text)
        for stream in ("plain", "unread", "awaited", "last", "window"):
            client.send(stream, UNTIMED)
        until(lambda: all(client.solutions(name) for name in ("silent", "last", "window")), "time has passed")
        found = {name: client.solutions(name) for name in queries}
        client.register("background", f"PREFIX : <{EX}> SELECT ?v FROM STREAM <plain> {{ VALUES ?v {{ 1 }} }}")
        until(lambda: client.solutions("background") != [], "the query's first instant has come by the clock")
    assert [len(found[name]) for name in queries] == [1, 1, 0, 1]
    assert {stream: ticks(tmp_path, stream) for stream in ("plain", "unread", "last")} == {"plain": 1, "unread": 0, "last": 1}
    assert 1 <= ticks(tmp_path, "awaited") <= 2
    assert 1 <= ticks(tmp_path, "window") <= 3
    (tmp_path / "solutions").rename(tmp_path / "before")
    (tmp_path / "snapshots").rename(tmp_path / "earlier")
    with serving(tmp_path) as url:
        again = Client(url)
        until(lambda: again.queries()[0]["lag"] == 0, "the log is read again")
        assert {name: again.solutions(name) for name in queries} == found


def test_a_stream_whose_events_carry_times_is_told_of_and_idle_timeout_mends_it(http: httpx.Client, client: Client, stream: str, name: str) -> None:
    registered = client.register(name, silent(stream))
    assert codes(registered) == ["silent-stream"], "its events may come with times or without"
    client.send(stream, event(1))
    (told,) = client.query(name)["warnings"]
    assert told["line"] == 1
    assert "set the stream's idle_timeout" in told["message"]
    assert len(told["message"].replace(stream, "STREAM").split()) <= 25
    assert codes(http.post("/check", json={"query": silent(stream)}).json()) == ["silent-stream"]
    client.create_stream(stream, idle_timeout="PT0.1S")
    assert codes(client.query(name)) == []
    assert codes(http.post("/check", json={"query": silent(stream)}).json()) == []
    until(lambda: client.solutions(name) != [], "the timer acts")


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        pytest.param(silent, True, id="a timer"),
        pytest.param(stepping, True, id="a window that steps"),
        pytest.param(
            lambda stream: (
                f"PREFIX : <{EX}> REGISTER RSTREAM <out> AS SELECT ?v FROM NAMED WINDOW :w ON <{stream}> [RANGE PT10S STEP PT10S] "
                "WHERE { WINDOW :w { ?s :value ?v } }"
            ),
            True,
            id="a named window",
        ),
        pytest.param(pairs, False, id="a sequence"),
        pytest.param(lambda stream: f"{values(stream)} ORDER BY ?v", False, id="an order"),
    ],
)
def test_who_waits_for_time_is_warned_unless_it_passes(client: Client, stream: str, name: str, text: object, warned: bool) -> None:
    assert callable(text)
    query = text(stream)
    assert ("silent-stream" in codes(client.register(name, query))) == warned
    client.send(stream, UNTIMED)
    assert "silent-stream" not in codes(client.query(name)), "the stream goes by the clock"
    client.send(stream, event(1))
    assert ("silent-stream" in codes(client.query(name))) == warned, "it does no more"
    client.finish(stream)
    assert "silent-stream" not in codes(client.query(name))


def test_what_rules_write_passes_time_with_what_they_read(client: Client, stream: str, name: str) -> None:
    client.register(
        f"{name} rule", f"PREFIX : <{EX}> CONSTRUCT {{ ?s :value ?v }} INTO STREAM <{stream}/high> FROM STREAM <{stream}> {{ ?s :value ?v }}"
    )
    client.register(name, silent(f"{stream}/high", "PT0.5S"))
    assert [warning["message"].count(f"{stream}/high") for warning in client.query(name)["warnings"]] == [0]
    client.send(stream, UNTIMED)
    assert codes(client.query(name)) == []
    until(lambda: client.solutions(name) != [], "the timer acts")
