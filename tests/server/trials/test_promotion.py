"""Promotions as clients see them: one position, one notice, ids that go on, versions, refusals and withdrawals."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine.messages import Events, Promote
from epsparql.client import Client, Promoted, Solution, segment
from pipeline.log import LogReader
from pipeline.registrations import query_cache
from pipeline.registrations.query_cache import have_one_plan
from pipeline.runners.catch_up import Catching
from pipeline.solutions.solution_log import SolutionReader, StoredSolution, listed
from tests.server.conftest import EX, serving, until, values
from tests.server.routes.test_asyncapi import kind_of
from tests.server.routes.test_pause_resume import derivations, refused, rule, send
from tests.server.subscriptions.test_websockets import dial
from tests.support.webhook_receiver import receiving

Told = list[tuple[str, int | None]]


def pairs(stream: str, first: str = "?u") -> str:
    """A query for every `:value` with each earlier one, in the columns of `values`."""
    return f"PREFIX : <{EX}> SELECT ?s ?v FROM STREAM <{stream}> WHERE {{ {{ ?s :value {first} }} SEQ {{ ?s :value ?v }} }}"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("promotions")


@pytest.fixture(scope="module")
def url(data: Path) -> Iterator[str]:
    with serving(data, progress_s=0.05, allow_hosts=("127.0.0.1",)) as found:
        yield found


def rows(data: Path, registered: int) -> list[StoredSolution]:
    with closing(SolutionReader(data)) as reader:
        return listed(reader.read(registered, None, 10_000))


def taken_over(client: Client, name: str) -> dict[str, Any]:
    """The promotion, once it has ended, and all that was sent is applied."""
    until(lambda: client.promotion(name)["state"] != "waiting" and client.query(name)["lag"] == 0, "the promotion has ended")
    return client.promotion(name)


def told(client: Client, name: str, last: str, after: str | None = None) -> Told:
    """Return what a subscription gives up to the id `last`: ids, and with that of a notice its position."""
    found: Told = []
    with client.follow(name, after=after) as subscription:
        while not found or found[-1][0] != last:
            word = subscription.next(30)
            assert word is not None, found
            if isinstance(word, Solution | Promoted):
                found.append((word.id, word.position if isinstance(word, Promoted) else None))
    return found


def streamed(http: httpx.Client, name: str, last: str, after: str = "") -> Told:
    """Return the same of an event stream."""
    found: Told = []
    with http.stream("GET", f"/queries/{segment(name)}/events", headers={"Last-Event-ID": after} if after else {}) as answer:
        kind = id_ = ""
        for line in answer.iter_lines():
            match line.partition(": "):
                case ("event", _, kind):
                    pass
                case ("id", _, id_):
                    pass
                case ("data", _, text):
                    found.append((id_, json.loads(text)["position"] if kind == "promoted" else None))
                    kind = ""
            if found and found[-1][0] == last:
                break
    return found


def test_old_solutions_up_to_a_position_and_new_ones_beyond_it(client: Client, http: httpx.Client, data: Path, stream: str, name: str) -> None:
    """Ids go on, and each way of following tells of the position once, wherever it is resumed."""
    registered = client.register(name, values(stream))["registered"]
    before = client.register(f"{name} old", values(stream))["registered"]
    after = client.register(f"{name} new", pairs(stream))["registered"]
    with receiving() as receiver, client.follow(name) as live:
        client.request("PUT", f"/queries/{segment(name)}/observers/1", json.dumps({"url": receiver.url}), Content_Type="application/json")
        send(client, stream, range(1, 6))
        asked = client.promote(name, pairs(stream))
        promotion = taken_over(client, name)
        send(client, stream, range(6, 9))
        client.finish(stream)
        until(lambda: client.query(name)["lag"] == 0, "the end is applied")
        found = rows(data, registered)
        until(lambda: len(receiver.taken) == len(found) + 1, "all is delivered")
        words: list[Solution | Promoted] = []
        while not words or words[-1].id != found[-1].id:
            if isinstance(word := live.next(30), Solution | Promoted):
                words.append(word)
    at = promotion["position"]
    assert (promotion["state"], promotion["version"], promotion["query"]) == ("promoted", 2, pairs(stream))
    assert asked["registered"] == registered
    assert [(each.entry, each.end, each.values) for each in found] == [
        *((each.entry, each.end, each.values) for each in rows(data, before) if each.entry < at),
        *((each.entry, each.end, each.values) for each in rows(data, after) if each.entry > at),
    ]
    ids = [each.id for each in found]
    assert ids == sorted(set(ids))
    old = sum(each.entry < at for each in found)
    assert 0 < old < len(ids)
    notice = f"{ids[old - 1]}.00000002"
    expected: Told = [*((id_, None) for id_ in ids[:old]), (notice, at), *((id_, None) for id_ in ids[old:])]
    assert [(word.id, word.position if isinstance(word, Promoted) else None) for word in words] == expected
    assert [json.loads(each.body)["type"] for each in receiver.taken].count("epsparql.promoted") == 1
    assert [each.solution["id"] for each in receiver.taken] == [id_ for id_, _ in expected]
    for k in (None, 0, old - 1, old, old + 1):
        last, rest = (None, expected) if k is None else (expected[k][0], expected[k + 1 :])
        assert told(client, name, ids[-1], last) == rest
        assert streamed(http, name, ids[-1], last or "") == rest
    with dial(str(http.base_url), f"/queries/{segment(name)}/feed?after={ids[old - 1]}") as connection:
        assert kind_of(str(connection.recv(30))) == "promoted"


def test_no_more_is_read_than_the_text_looks_back_to(client: Client, data: Path, stream: str, name: str) -> None:
    """Two events lie in five seconds, and one more is read."""
    near = f"PREFIX : <{EX}> SELECT ?s ?v FROM STREAM <{stream}> WHERE {{ {{ {{ ?s :value ?u }} SEQ {{ ?s :value ?v }} }} WITHIN 'PT5S' }}"
    registered = client.register(name, values(stream))["registered"]
    after = client.register(f"{name} new", near)["registered"]
    send(client, stream, range(1, 50, 3))
    client.promote(name, near)
    promotion = taken_over(client, name)
    send(client, stream, range(50, 56))
    client.finish(stream)
    until(lambda: client.query(name)["lag"] == 0, "the end is applied")
    with closing(LogReader(data)) as reader:
        asked = reader.entry(promotion["asked"])
        assert isinstance(asked, Promote)
        assert asked.begins is not None
        assert sum(isinstance(reader.entry(k), Events) for k in range(asked.begins, asked.offset)) == 3
    found = [(each.entry, each.end, each.values) for each in rows(data, registered) if each.entry > promotion["position"]]
    assert found == [(each.entry, each.end, each.values) for each in rows(data, after) if each.entry > promotion["position"]]
    assert found


def test_equal_plans_keep_the_state_and_take_over_at_once(client: Client, http: httpx.Client, data: Path, stream: str, name: str) -> None:
    registered = client.register(name, pairs(stream))["registered"]
    same = client.register(f"{name} same", pairs(stream))["registered"]
    send(client, stream, range(1, 4))
    assert client.promote(name, f"# the same\n{pairs(stream)}")["promotion"] is None
    client.promote(name, pairs(stream, "?t"))
    promotion = taken_over(client, name)
    assert (promotion["keeps"], promotion["version"], promotion["position"]) == (True, 2, promotion["asked"])
    assert "?t" in http.get(f"/queries/{segment(name)}/plan").text
    send(client, stream, range(4, 7))
    client.finish(stream)
    until(lambda: client.query(f"{name} same")["lag"] == 0, "the end is applied")
    assert [(each.id, each.values) for each in rows(data, registered)] == [(each.id, each.values) for each in rows(data, same)]


def test_a_version_can_be_promoted_back(client: Client, http: httpx.Client, data: Path, stream: str, name: str) -> None:
    registered = client.register(name, values(stream))["registered"]
    send(client, stream, range(1, 4))
    for text in (pairs(stream), values(stream)):
        client.promote(name, text)
        taken_over(client, name)
        send(client, stream, range(4, 6))
    client.promote_version(name, 2)
    taken_over(client, name)
    versions = client.versions(name)
    assert [(each["version"], each["query"]) for each in versions] == [
        (1, values(stream)), (2, pairs(stream)), (3, values(stream)), (4, pairs(stream)),
    ]  # fmt: skip
    positions = [each["position"] for each in versions]
    assert positions == sorted(set(positions))
    assert positions[0] == registered
    assert all(each["at"] for each in versions)
    assert client.query(name)["version"] == 4
    assert client.query(name)["query"] == pairs(stream)
    assert client.register(name, pairs(stream))["version"] == 4, "the present text is registered already"
    assert refused(lambda: client.promote_version(name, 9)) == (404, "unknown-version")
    for each in rows(data, registered):
        why = http.get(f"/queries/{segment(name)}/solutions/{each.id}/why").json()
        text = max((version for version in versions if version["position"] <= each.entry), key=lambda version: version["position"])["query"]
        assert len(why["because"]) == (1 if text == values(stream) else 2)


def test_other_columns_are_taken_only_on_request(client: Client, http: httpx.Client, stream: str, name: str) -> None:
    client.register(name, values(stream))
    send(client, stream, range(1, 4))
    until(lambda: len(client.solutions(name)) == 3 or client.query(name)["lag"] == 0, "they are applied")
    wider = pairs(stream).replace("?s ?v FROM", "?s ?u ?v FROM")
    assert refused(lambda: client.promote(name, wider)) == (409, "other-columns")
    client.promote(name, wider, change_columns=True)
    taken_over(client, name)
    send(client, stream, range(4, 6))
    client.finish(stream)
    until(lambda: client.query(name)["lag"] == 0, "the end is applied")
    found = client.solutions(name)
    assert {tuple(each.binding or ()) for each in found} == {("s", "v"), ("s", "u", "v")}
    heads, path = [], f"/queries/{segment(name)}/solutions?limit=100"
    while (page := http.get(path, headers={"Accept": "text/csv"})).text.count("\n") > 1:
        heads.append(page.text.partition("\r\n")[0])
        path = page.links["next"]["url"]
    assert heads == ["id,start,end,s,v", "id,start,end,s,u,v"]
    with client.follow(name) as subscription:
        words = [subscription.next(30) for _ in range(len(found) + 1)]
    assert [word.binding for word in words if isinstance(word, Solution)] == [each.binding for each in found]


def test_what_cannot_be_promoted_is_refused_with_a_remedy(client: Client, stream: str, name: str) -> None:
    client.register(f"{name} rule", rule(stream, f"{stream}derived"))
    client.register(name, values(stream))
    assert refused(lambda: client.promote(f"{name} rule", rule(stream, f"{stream}other"))) == (409, "rule-promotion")
    assert refused(lambda: client.promote(name, rule(stream, f"{stream}other"))) == (409, "rule-promotion")
    assert refused(lambda: client.promote(name, f"ASK FROM STREAM <{stream}> {{ ?s ?p ?o }}")) == (409, "other-form")
    assert refused(lambda: client.promote(name, values(f"{stream}other"))) == (409, "other-streams")
    assert refused(lambda: client.promote(name, "SELECT")) == (400, "syntax")
    assert refused(lambda: client.promotion(name)) == (404, "no-promotion")
    assert refused(lambda: client.withdraw_promotion(name)) == (404, "no-promotion")
    client.promote(name, derivations(f"{stream}derived"))  # it rests on the same events
    assert taken_over(client, name)["state"] == "promoted"
    client.pause(name)
    assert refused(lambda: client.promote(name, values(stream))) == (409, "query-waits")
    client.resume(name)
    assert client.register(f"{name} new", values(stream), replace=True)["version"] == 1


def test_a_text_that_was_judged_beside_an_earlier_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A promotion takes over while the next one is judged, which would go on with the state of a text that has gone."""
    with monkeypatch.context() as held, serving(tmp_path) as url:
        client = Client(url)
        client.register("q", values("s"))
        send(client, "s", range(1, 4))
        held.setattr(Catching, "step", lambda *_: None)
        assert client.promote("q", pairs("s"))["promotion"]["state"] == "waiting"

        def judge_late(*texts: Any) -> bool:
            held.undo()
            until(lambda: client.query("q")["version"] == 2, "the first text has taken over")
            return have_one_plan(*texts)

        monkeypatch.setattr("server.routes.queries.have_one_plan", judge_late)
        assert refused(lambda: client.promote("q", pairs("s", "?w"))) == (409, "promotion-under-way")
        assert [version["query"] for version in client.versions("q")] == [values("s"), pairs("s")]


def test_a_dropped_query_leaves_nothing_of_the_texts_that_it_had_or_was_to_have(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    client, texts = Client(url), (values("forgotten"), pairs("forgotten"))
    with monkeypatch.context() as held:
        held.setattr(Catching, "step", lambda *_: None)
        client.register("forgotten", texts[0])
        send(client, "forgotten", range(1, 4))
        assert client.promote("forgotten", texts[1])["promotion"]["state"] == "waiting"
        client.withdraw_promotion("forgotten")
    assert query_cache._shapes.keys() >= {*texts}
    client.drop("forgotten")
    assert not query_cache._shapes.keys() & {*texts}


def test_a_promotion_can_be_withdrawn_and_goes_on_after_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as held:
        held.setattr(Catching, "step", lambda *_: None)  # nothing is let read on
        with serving(tmp_path) as url:
            client = Client(url)
            client.register("q", values("s"))
            send(client, "s", range(1, 4))
            assert client.promote("q", pairs("s"))["promotion"]["state"] == "waiting"
            assert refused(lambda: client.promote("q", values("s") + " LIMIT 3")) == (409, "promotion-under-way")
            assert refused(lambda: client.pause("q")) == (409, "promotion-under-way")
            client.withdraw_promotion("q")
            assert client.promotion("q")["state"] == "withdrawn"
            assert refused(lambda: client.withdraw_promotion("q")) == (409, "promotion-ended")
            assert client.query("q")["query"] == values("s")
            client.promote("q", pairs("s"))
            send(client, "s", range(4, 6))
    with serving(tmp_path) as url:
        client = Client(url)
        assert taken_over(client, "q")["state"] == "promoted"
        send(client, "s", range(6, 7))
        client.finish("s")
        until(lambda: client.query("q")["lag"] == 0, "the end is applied")
        ends = [each.end[-3:-1] for each in client.solutions("q")]
        assert ends[:4] == ["01", "02", "03", "04"]
        assert ends[-5:] == ["06"] * 5
        versions = client.versions("q")
    with serving(tmp_path) as url:
        assert Client(url).versions("q") == versions


def test_a_promotion_that_does_not_catch_up_is_withdrawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Catching, "_ask", lambda *_: None)  # nothing is let read on
    with serving(tmp_path, promotion_timeout_s=0.001) as url:
        client = Client(url)
        client.register("q", values("s"))
        send(client, "s", range(1, 4))
        client.promote("q", pairs("s"))
        promotion = taken_over(client, "q")
        assert promotion["state"] == "withdrawn"
        assert "has not caught up within" in promotion["reason"]
        assert client.query("q")["query"] == values("s")
