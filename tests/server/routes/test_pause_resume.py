"""Queries that read the past, and queries that are paused, as clients see them: nothing missing, nothing twice, the
same ids.
"""

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from epsparql.client import ApiError, Client, Progress, Solution
from tests.server.conftest import EX, event, moment, serving, until, values


def joined(client: Client, name: str) -> bool:
    """Return whether a query is not behind the others, and all is applied."""
    document = client.query(name)
    return document["reads"] is None and document["lag"] == 0


def rule(stream: str, derived: str) -> str:
    return f"PREFIX : <{EX}> CONSTRUCT {{ ?s :twice ?v }} INTO STREAM <{derived}> FROM STREAM <{stream}> WHERE {{ ?s :value ?v }}"


def derivations(derived: str) -> str:
    return f"PREFIX : <{EX}> SELECT ?s ?v FROM STREAM <{derived}> WHERE {{ ?s :twice ?v }}"


def send(client: Client, stream: str, numbers: range) -> None:
    for number in numbers:
        client.send(stream, event(number))


def refused(call: Callable[[], object]) -> tuple[int, str]:
    with pytest.raises(ApiError) as found:
        call()
    return found.value.status, found.value.code


@pytest.mark.parametrize("start", ["beginning", 0])
def test_a_query_from_the_beginning_has_what_one_that_was_always_there_has(client: Client, stream: str, name: str, start: str | int) -> None:
    client.create_stream(stream)
    client.register(f"{name} before", values(stream))
    send(client, stream, range(1, 20))
    document = client.register(name, values(stream), start=start)
    assert (document["state"], document["from"]) == ("running", 0)
    assert client.register(name, values(stream), start=start)["registered"] == document["registered"]
    assert refused(lambda: client.register(name, values(stream))) == (409, "query-exists")
    send(client, stream, range(20, 30))
    until(lambda: joined(client, name), "it has caught up")
    send(client, stream, range(30, 40))
    client.finish(stream)
    until(lambda: joined(client, name), "the end is applied")
    ids = [(each.id, each.binding) for each in client.solutions(name)]
    assert ids == [(each.id, each.binding) for each in client.solutions(f"{name} before")]
    assert len(ids) == 39


def test_a_registration_from_an_offset_is_not_one_from_the_beginning(client: Client, stream: str, name: str) -> None:
    offset = client.send(stream, event(1)).offset
    registered = client.register(name, values(stream), start=offset - 1)["registered"]
    assert client.register(name, values(stream), start=offset - 1)["registered"] == registered
    assert refused(lambda: client.register(name, values(stream), start="beginning")) == (409, "query-exists")
    assert refused(lambda: client.register(name, values(stream), start=0)) == (409, "query-exists")


def test_a_query_from_an_offset_reads_what_came_from_there_on(client: Client, stream: str, name: str) -> None:
    send(client, stream, range(1, 5))
    offset = client.send(stream, event(5)).offset
    send(client, stream, range(6, 9))
    client.register(name, values(stream), start=offset)
    until(lambda: joined(client, name), "it has caught up")
    client.finish(stream)
    until(lambda: joined(client, name), "the end is applied")
    assert [each.end for each in client.solutions(name)] == [moment(n) for n in range(6, 9)]


def test_a_paused_query_reads_nothing_and_loses_nothing(client: Client, http: httpx.Client, stream: str, name: str) -> None:
    client.register(f"{name} always", values(stream))
    client.register(name, values(stream))
    send(client, stream, range(1, 6))
    until(lambda: client.query(name)["lag"] == 0, "the first five are applied")
    paused = client.pause(name)
    assert paused["state"] == "paused"
    assert client.pause(name)["reads"] == paused["reads"]
    send(client, stream, range(6, 11))
    until(lambda: client.query(f"{name} always")["lag"] == 0, "the next five are applied")
    before = client.solutions(name)
    assert [each.end for each in before] == [each.end for each in client.solutions(f"{name} always")][: len(before)]
    assert len(before) <= 5
    assert client.query(name)["lag"] >= 5
    assert client.resume(name)["state"] == "running"
    assert client.resume(name)["state"] == "running"
    until(lambda: joined(client, name), "it has caught up")
    client.finish(stream)
    until(lambda: joined(client, name), "the end is applied")
    assert [each.id for each in client.solutions(name)] == [each.id for each in client.solutions(f"{name} always")]
    assert len(client.solutions(name)) == 10


def test_what_reads_a_paused_rule_waits_with_it(client: Client, stream: str, name: str) -> None:
    derived = f"{stream}derived"
    client.register(f"{name} rule", rule(stream, derived))
    client.register(name, derivations(derived))
    send(client, stream, range(1, 6))
    client.pause(f"{name} rule")
    assert (client.query(name)["state"], client.query(name)["waits_for"]) == ("running", f"{name} rule")
    assert refused(lambda: client.pause(name)) == (409, "query-waits")
    client.register(f"{name} new", derivations(derived))
    assert client.query(f"{name} new")["waits_for"] == f"{name} rule"
    assert refused(lambda: client.register(f"{name} past", derivations(derived), start="beginning")) == (409, "query-waits")
    send(client, stream, range(6, 11))
    assert len(client.solutions(name)) <= 5
    client.resume(f"{name} rule")
    until(lambda: joined(client, name), "they have caught up")
    client.finish(stream)
    until(lambda: joined(client, name), "the end is applied")
    assert [each.end for each in client.solutions(name)] == [moment(n) for n in range(1, 11)]
    assert [each.end for each in client.solutions(f"{name} new")] == [moment(n) for n in range(6, 11)]


def test_what_cannot_be_paused_is_told(client: Client, stream: str, name: str) -> None:
    derived = f"{stream}derived"
    assert refused(lambda: client.pause(name)) == (404, "unknown-query")
    client.register(name, f"PREFIX : <{EX}> SELECT ?v FROM STREAM <{stream}> WHERE {{ ?s :value ?v }} LIMIT 1")
    send(client, stream, range(1, 4))
    until(lambda: client.query(name)["state"] == "completed", "LIMIT is reached")
    assert refused(lambda: client.pause(name)) == (409, "query-ended")
    client.register(f"{name} rule", rule(stream, derived))
    client.register(f"{name} reader", derivations(derived))
    client.pause(f"{name} reader")
    assert refused(lambda: client.pause(f"{name} rule")) == (409, "query-waits")
    circle = f"PREFIX : <{EX}> CONSTRUCT {{ ?s :value ?v }} INTO STREAM <{stream}> FROM STREAM <{derived}> WHERE {{ ?s :never ?v }}"
    client.drop(f"{name} reader")
    assert refused(lambda: client.register(f"{name} circle", circle, start="beginning")) == (409, "rules-circle")


def test_a_subscriber_is_told_of_no_progress_while_a_query_is_behind(client: Client, stream: str, name: str) -> None:
    client.register(name, values(stream))
    send(client, stream, range(1, 4))
    client.pause(name)
    send(client, stream, range(4, 8))
    client.resume(name)
    client.finish(stream)
    seen = []
    with client.follow(name) as subscription:
        while not (isinstance(word := subscription.next(), Progress) and word.finished):
            if isinstance(word, Solution):
                seen.append(word.end)
    assert seen == [moment(n) for n in range(1, 8)]


def test_a_pause_survives_a_restart(tmp_path: Path) -> None:
    stream = f"{EX}stream"
    with serving(tmp_path) as url:
        client = Client(url)
        client.register("q", values(stream))
        client.register("always", values(stream))
        send(client, stream, range(1, 6))
        client.pause("q")
        send(client, stream, range(6, 11))
    with serving(tmp_path) as url:
        client = Client(url)
        assert client.query("q")["state"] == "paused"
        client.register("past", values(stream), start="beginning")
        send(client, stream, range(11, 16))
        client.resume("q")
    with serving(tmp_path) as url:
        client = Client(url)
        until(lambda: joined(client, "q") and joined(client, "past"), "both have caught up")
        client.finish(stream)
        until(lambda: joined(client, "past"), "the end is applied")
        expected = [each.id for each in client.solutions("always")]
        assert len(expected) == 15
        assert [each.id for each in client.solutions("q")] == expected
        assert [each.id for each in client.solutions("past")] == expected
