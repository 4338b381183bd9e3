"""A look into a stream over HTTP: its last events, its profile, and warnings of names that it has never carried."""

import asyncio
import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from epsparql.async_client import AsyncClient
from epsparql.client import Client, segment
from epsparql.terms import RDF, XSD
from server.routes.streams.inspection import MOST_NAMES
from tests.server.conftest import DEADLINE_S, EX, event, moment, serving
from tests.server.routes.test_streams import assert_problem, post
from tests.support.logs import until

TYPED = f'{{"s":"<{EX}s>","p":"<{RDF}type>","o":"<{EX}Sensor>","at":"{moment(2)}"}}'
NUMBER = f'{{"s":"<{EX}s>","p":"<{EX}temperature>","o":"\\"21.5\\"^^<{XSD}decimal>","at":"{moment(3)}"}}'
TAGGED = f'{{"s":"<{EX}s>","p":"<{EX}label>","o":"\\"Fühler\\"@de","g":"<{EX}g>","at":"{moment(4)}"}}'


def last(http: httpx.Client, stream: str, query: str = "", **headers: str) -> httpx.Response:
    answer = http.get(f"/streams/{segment(stream)}/events{query}", headers=headers)
    assert answer.status_code == 200, answer.text
    return answer


def profile(http: httpx.Client, stream: str) -> Any:
    answer = http.get(f"/streams/{segment(stream)}/profile")
    assert answer.status_code == 200, answer.text
    return answer.json()


def feed(http: httpx.Client, stream: str, *lines: str) -> int:
    answer = post(http, stream, "\n".join(lines))
    assert answer.status_code == 202, answer.text
    return int(answer.json()["offset"])


class TestLastEvents:
    def test_the_newest_comes_first(self, http: httpx.Client, stream: str) -> None:
        first = feed(http, stream, event(1), event(2), event(3))
        feed(http, f"{stream} other", event(7))
        second = feed(http, stream, TAGGED, event(0))
        answer = last(http, stream)
        lines = [json.loads(line) for line in answer.text.splitlines()]
        assert [(line["end"], line["late"], line["offset"]) for line in lines] == [
            (moment(0), True, second), (moment(4), False, second), (moment(3), False, first), (moment(2), False, first), (moment(1), False, first),
        ]  # fmt: skip
        assert {name: lines[1][name] for name in ("s", "p", "o", "g", "start")} == {
            "s": f"<{EX}s>", "p": f"<{EX}label>", "o": '"Fühler"@de', "g": f"<{EX}g>", "start": moment(4),
        }  # fmt: skip
        assert lines[0]["arrived"] >= lines[-1]["arrived"] > moment(0)
        assert int(answer.headers["epsparql-read-from"]) < first
        assert "link" not in answer.headers

    def test_no_more_than_asked_for(self, http: httpx.Client, stream: str) -> None:
        first = feed(http, stream, event(1), event(2), event(3))
        offset = feed(http, stream, event(4), event(5))
        assert [json.loads(line)["end"] for line in last(http, stream, "?last=3").text.splitlines()] == [moment(5), moment(4), moment(3)]
        answer = last(http, stream, "?last=1")
        assert int(answer.headers["epsparql-read-from"]) == offset - 1
        assert [json.loads(line)["end"] for line in last(http, stream, f"?last=2&before={offset - 1}").text.splitlines()] == [moment(3), moment(2)]
        assert last(http, stream, f"?before={first - 1}").text == ""

    def test_as_n_quads(self, http: httpx.Client, stream: str) -> None:
        feed(http, stream, event(1), TAGGED)
        answer = last(http, stream, Accept="application/n-quads")
        assert answer.headers["content-type"].startswith("application/n-quads")
        assert answer.text == f'<{EX}s> <{EX}label> "Fühler"@de <{EX}g> .\n<{EX}s> <{EX}value> "1" .\n'

    def test_a_stream_without_events(self, http: httpx.Client, stream: str) -> None:
        http.put(f"/streams/{segment(stream)}")
        assert last(http, stream).text == ""
        found = profile(http, stream)
        assert (found["events"], found["complete"], found["predicates"]) == (0, True, {"names": [], "others": 0})

    def test_a_stream_that_was_deleted_before_is_another(self, http: httpx.Client, stream: str) -> None:
        feed(http, stream, event(1))
        assert http.delete(f"/streams/{segment(stream)}").status_code == 204
        feed(http, stream, NUMBER)
        assert [json.loads(line)["end"] for line in last(http, stream).text.splitlines()] == [moment(3)]
        assert [each["name"] for each in profile(http, stream)["predicates"]["names"]] == [f"<{EX}temperature>"]

    @pytest.mark.parametrize("query", ["?last=-1", "?last=1001", "?last=x", "?before=-1", "?after=1-1"])
    def test_out_of_bounds(self, http: httpx.Client, stream: str, query: str) -> None:
        feed(http, stream, event(1))
        assert http.get(f"/streams/{segment(stream)}/events{query}").status_code in (400, 422)

    def test_refused(self, http: httpx.Client, stream: str) -> None:
        assert_problem(http.get("/streams/nowhere/events"), 404)
        assert_problem(http.get("/streams/nowhere/profile"), 404)
        feed(http, stream, event(1))
        assert_problem(http.get(f"/streams/{segment(stream)}/events", headers={"Accept": "text/html"}), 406, "not-acceptable")


class TestTail:
    """A stream's events as they arrive, over HTTP and through both clients."""

    def follow(self, http: httpx.Client, stream: str, query: str, wanted: int, after: str | None = None) -> list[tuple[str, str]]:
        """The ids and ends of the first `wanted` events of an event stream."""
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": after} if after else {})
        found: list[tuple[str, str]] = []
        with http.stream("GET", f"/streams/{segment(stream)}/events{query}", headers=headers) as answer:
            assert answer.status_code == 200, answer.read()
            told = ""
            for line in answer.iter_lines():
                told = line[4:] if line.startswith("id: ") else told
                if line.startswith("data: "):
                    event = json.loads(line[6:])
                    assert event["id"] == told
                    found.append((told, event["end"]))
                if len(found) == wanted:
                    return found
        return found

    @pytest.mark.parametrize(("query", "numbers"), [("?last=2", [2, 3]), ("", [1, 2, 3]), ("?last=0&after=1", None), ("?before=7", None)])
    def test_begins_with_the_last_events_the_oldest_first(self, http: httpx.Client, stream: str, query: str, numbers: list[int] | None) -> None:
        feed(http, stream, event(1), event(2))
        offset = feed(http, stream, event(3))
        if numbers is None:
            assert_problem(http.get(f"/streams/{segment(stream)}/events{query}", headers={"Accept": "text/event-stream"}), 400)
        else:
            ends = self.follow(http, stream, query, len(numbers))
            assert [end for _, end in ends] == [moment(number) for number in numbers]
            assert ends[-1][0] == f"{offset}-1"

    def test_continues_after_an_event_in_the_midst_of_a_body(self, http: httpx.Client, stream: str) -> None:
        first = feed(http, stream, event(1), event(2), event(3))
        feed(http, f"{stream} other", event(9))
        second = feed(http, stream, event(4), event(0))
        rest = [(f"{first}-3", moment(3)), (f"{second}-1", moment(4)), (f"{second}-2", moment(0))]
        assert self.follow(http, stream, "", 3, f"{first}-2") == rest
        assert self.follow(http, stream, f"?after={first}-3", 2) == rest[1:]
        assert self.follow(http, stream, f"?after={first}-2", 2, f"{first}-3") == rest[1:]

    @pytest.mark.parametrize("after", ["x", "1", "0-1", "999999999-1"])
    def test_what_is_no_event_of_the_log(self, http: httpx.Client, stream: str, after: str) -> None:
        feed(http, stream, event(1))
        headers = {"Accept": "text/event-stream", "Last-Event-ID": after}
        assert_problem(http.get(f"/streams/{segment(stream)}/events", headers=headers), 400, "bad-id")

    def test_a_stream_that_does_not_exist(self, http: httpx.Client) -> None:
        assert_problem(http.get("/streams/nowhere/events", headers={"Accept": "text/event-stream"}), 404)

    def test_ends_with_the_stream(self, http: httpx.Client, stream: str) -> None:
        feed(http, stream, event(1))
        assert http.post(f"/streams/{segment(stream)}/finish").status_code == 200
        answer = http.get(f"/streams/{segment(stream)}/events", headers={"Accept": "text/event-stream"})
        assert answer.text.startswith("retry: 1000")
        assert answer.text.endswith(": the stream is finished\n\n")
        assert moment(1) in answer.text

    def test_the_client_takes_each_event_once_as_it_arrives(self, client: Client, stream: str) -> None:
        client.create_stream(stream)
        with client.tail(stream) as tail:
            tail.open()
            events = iter(tail)
            for number in range(1, 6):
                client.send(stream, event(number))
                assert next(events)["end"] == moment(number)
                if number == 3:
                    tail.close()
            client.finish(stream)
            assert list(events) == []
            assert tail.last == f"{client.events(stream)[0]['offset']}-1"

    def test_asyncio_takes_them_too_and_lets_go_at_once(self, url: str, client: Client, stream: str) -> None:
        client.send(stream, f"{event(1)}\n{event(2)}")

        async def take() -> list[str]:
            found: list[str] = []
            async with AsyncClient(url).tail(stream, last=2) as tail:
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.5):
                        async for each in tail:
                            found.append(each["end"])
            return found

        begun = time.monotonic()
        assert asyncio.run(take()) == [moment(1), moment(2)]
        assert time.monotonic() - begun < 5, "the comment that would have ended the reading comes after 15 s"

    def test_goes_on_after_a_restart(self, tmp_path: Path) -> None:
        last, ends = None, []
        for number in (1, 2):
            with serving(tmp_path) as url:
                client = Client(url)
                client.send("default", event(number))
                with client.tail("default", last=1, after=last) as tail:
                    ends.append(next(iter(tail))["end"])
                    last = tail.last
        assert ends == [moment(1), moment(2)]

    def test_a_silent_stream_says_where_to_come_back(self, tmp_path: Path) -> None:
        with serving(tmp_path, comment_s=0.05, max_subscribers_per_query=1) as url, httpx.Client(base_url=url, timeout=DEADLINE_S) as http:
            feed(http, "default", event(1))
            offset = feed(http, "other", event(2))
            with http.stream("GET", "/streams/default/events?last=0", headers={"Accept": "text/event-stream"}) as answer:
                lines = answer.iter_lines()  # held, because httpx closes the answer with its iterator
                assert next(line for line in lines if line.startswith("id: ")) == f"id: {offset + 1}-0"
                refused = http.get("/streams/default/events", headers={"Accept": "text/event-stream"})
                assert_problem(refused, 429, "too-many-subscribers")


class TestProfile:
    def test_counts_with_times_and_an_example(self, http: httpx.Client, stream: str) -> None:
        offset = feed(http, stream, event(1), TYPED, NUMBER, TAGGED)
        feed(http, stream, event(5), event(0))
        found = profile(http, stream)
        assert (found["events"], found["late"], found["complete"], found["since"]) == (6, 1, True, offset - 1)
        assert [(each["name"], each["count"], each["first"], each["last"]) for each in found["predicates"]["names"]] == [
            (f"<{EX}value>", 3, moment(0), moment(5)),
            (f"<{EX}label>", 1, moment(4), moment(4)),
            (f"<{EX}temperature>", 1, moment(3), moment(3)),
            (f"<{RDF}type>", 1, moment(2), moment(2)),
        ]
        assert found["predicates"]["names"][0]["example"] == f'<{EX}s> <{EX}value> "5" .'
        assert [(each["name"], each["count"], each["example"]) for each in found["classes"]["names"]] == [
            (f"<{EX}Sensor>", 1, f"<{EX}s> <{RDF}type> <{EX}Sensor> .")
        ]
        assert {each["name"]: each["count"] for each in found["datatypes"]["names"]} == {
            f"<{XSD}string>": 3, f"<{XSD}decimal>": 1, f"<{RDF}langString>": 1,
        }  # fmt: skip
        assert found["rate"] == pytest.approx(6 / 300)
        assert found["predicates"]["names"][0]["rate"] == pytest.approx(3 / 300)

    def test_names_beyond_the_bound_are_counted(self, http: httpx.Client, stream: str) -> None:
        lines = [f'{{"s":"<{EX}s>","p":"<{EX}p{k}>","o":"<{EX}o>","at":"{moment(1)}"}}' for k in range(MOST_NAMES + 3)]
        for begin in range(0, len(lines), 500):
            feed(http, stream, *lines[begin : begin + 500])
        found = profile(http, stream)["predicates"]
        assert (len(found["names"]), found["others"]) == (MOST_NAMES, 3)

    def test_after_a_restart(self, tmp_path: Path) -> None:
        for _ in range(2):
            with serving(tmp_path) as url, httpx.Client(base_url=url, timeout=DEADLINE_S) as http:
                feed(http, "default", event(1))
                found = profile(http, "default")
        assert (found["events"], found["complete"]) == (2, True)


def test_the_clients_look_too(url: str, client: Client, stream: str) -> None:
    async def look() -> tuple[object, object]:
        asking = AsyncClient(url)
        return await asking.events(stream, last=1), await asking.profile(stream)

    client.send(stream, f"{event(1)}\n{event(2)}")
    found = client.events(stream, last=1)
    assert [(each["o"], each["end"]) for each in found] == [('"2"', moment(2))]
    assert client.profile(stream)["events"] == 2
    assert asyncio.run(look()) == (found, client.profile(stream))


class TestNeverSeen:
    def told(self, http: httpx.Client, query: str) -> list[str]:
        found = http.post("/check", json={"query": query}).json()
        assert found["errors"] == []
        return [warning["message"] for warning in found["warnings"] if warning["code"] == "never-seen"]

    def test_the_nearest_name(self, http: httpx.Client, client: Client, stream: str, name: str) -> None:
        feed(http, stream, TYPED, NUMBER)
        query = f"PREFIX : <{EX}> SELECT ?s FROM STREAM <{stream}> WHERE {{ ?s a :Senosr . ?s :temprature ?v . ?s :temperature+/:zzz ?w }}"
        wanted = [
            f"the stream {stream!r} has never carried the class <{EX}Senosr>; the nearest is <{EX}Sensor>",
            f"the stream {stream!r} has never carried the predicate <{EX}temprature>; the nearest is <{EX}temperature>",
            f"the stream {stream!r} has never carried the predicate <{EX}zzz>",
        ]
        assert self.told(http, query) == wanted
        found = [warning for warning in client.register(name, query)["warnings"] if warning["code"] == "never-seen"]
        assert [warning["message"] for warning in found] == wanted
        assert query[found[1]["column"] - 1 :].startswith("?s :temprature")
        client.drop(name)

    def test_not_of_what_was_seen(self, http: httpx.Client, stream: str) -> None:
        feed(http, stream, TYPED, NUMBER)
        assert self.told(http, f"PREFIX : <{EX}> SELECT ?s FROM STREAM <{stream}> WHERE {{ ?s a :Sensor ; :temperature ?v ; ?p ?o }}") == []

    def test_a_name_that_comes_later(self, http: httpx.Client, stream: str) -> None:
        query = f"PREFIX : <{EX}> SELECT ?s FROM STREAM <{stream}> WHERE {{ ?s :temperature ?v }}"
        assert self.told(http, query) == [], "the stream has no events"
        feed(http, stream, event(1))
        assert len(self.told(http, query)) == 1

    def test_not_of_what_the_background_has(self, http: httpx.Client, stream: str) -> None:
        feed(http, stream, event(1))
        query = f"PREFIX : <{EX}> SELECT ?s FROM STREAM <{stream}> WHERE {{ ?s :inBackground ?v }}"
        assert len(self.told(http, query)) == 1
        path = f"/ontologies/{segment(f'{EX}inspected')}"
        changed = http.put(path, content=f"<{EX}a> <{EX}inBackground> <{EX}b> .", headers={"Content-Type": "text/turtle"})
        assert changed.status_code == 201, changed.text
        assert self.told(http, query) == []
        assert http.delete(path).status_code == 204
        assert len(self.told(http, query)) == 1

    def test_not_where_a_rule_writes(self, http: httpx.Client, client: Client, stream: str, name: str) -> None:
        feed(http, stream, event(1))
        query = f"PREFIX : <{EX}> SELECT ?s FROM STREAM <{stream}> WHERE {{ ?s :derived ?v }}"
        client.register(name, f"PREFIX : <{EX}> CONSTRUCT {{ ?s :derived ?v }} INTO STREAM <{stream}> FROM STREAM <{stream}-in> WHERE {{ ?s :v ?v }}")
        assert self.told(http, query) == []
        client.drop(name)
        assert len(self.told(http, query)) == 1

    def test_not_where_one_of_two_streams_is_silent(self, http: httpx.Client, stream: str) -> None:
        feed(http, stream, event(1))
        query = f"PREFIX : <{EX}> SELECT ?s FROM STREAM <{stream}> FROM STREAM <{stream}-silent> WHERE {{ ?s :temperature ?v }}"
        assert self.told(http, query) == []


class TestSources:
    def check(self, http: httpx.Client, clause: str) -> list[tuple[str, str, int]]:
        found = http.post("/check", json={"query": f"SELECT * {clause} {{ ?s ?p ?o }}"}).json()
        return [(each["code"], each["message"], each["column"]) for each in found["warnings"] if each["code"] in ("from-stream", "unknown-stream")]

    def test_from_where_a_stream_was_meant(self, http: httpx.Client, stream: str) -> None:
        feed(http, stream, event(1))
        reads = f"FROM <{stream}> reads a graph of the background; FROM STREAM <{stream}> reads the events of the stream {stream!r}"
        assert self.check(http, f"FROM <{stream}>")[0] == ("from-stream", reads, 10)
        assert self.check(http, f"FROM STREAM <{stream}>") == []

    def test_from_without_a_graph(self, http: httpx.Client, stream: str) -> None:
        feed(http, stream, event(1))
        graph = f"{EX}graphs/{stream}-places"
        path = f"/ontologies/{segment(graph)}"
        assert http.put(path, content=f"<{EX}a> <{EX}in> <{EX}b> .", headers={"Content-Type": "text/turtle"}).status_code == 201
        feed(http, "default", event(1))
        assert self.check(http, f"FROM <{graph}>") == self.check(http, f"FROM NAMED <{graph}>") == []
        wrong = f"{EX}graphs/{stream}-plces"
        missing = f"the background has no graph <{wrong}>; the nearest is <{graph}>"
        assert self.check(http, f"FROM NAMED <{wrong}>") == [("from-stream", missing, 10)]
        http.delete(path)

    def test_an_unknown_stream(self, http: httpx.Client) -> None:
        feed(http, f"{EX}sources/temperature", event(1))
        wrong = f"{EX}sources/temprature"
        unknown = f"there is no stream {wrong!r}: nothing was sent to it, and no rule writes it; the nearest is <{EX}sources/temperature>"
        assert self.check(http, f"FROM STREAM <{EX}sources/temperature> FROM STREAM <{wrong}>") == [
            ("unknown-stream", unknown, len(f"SELECT * FROM STREAM <{EX}sources/temperature> ") + 1)
        ]

    def test_a_warning_lives(self, http: httpx.Client, client: Client, stream: str, name: str) -> None:
        def codes(document: dict[str, Any]) -> list[str]:
            return [warning["code"] for warning in document["warnings"]]

        feed(http, "default", event(1))
        query = f"PREFIX : <{EX}> SELECT ?s FROM STREAM <{stream}> WHERE {{ ?s :temprature ?v }}"
        assert codes(client.register(name, query)) == ["unknown-stream"]
        feed(http, stream, event(1))
        assert codes(client.query(name)) == ["never-seen"], "the name was not seen, in a stream that has come since"
        assert codes(http.post(f"/queries/{segment(name)}/pause").json()) == ["never-seen"]
        feed(http, stream, json.dumps({"s": f"<{EX}s>", "p": f"<{EX}temprature>", "o": '"1"', "at": moment(2)}))
        until(lambda: codes(client.query(name)) == [], "the name is seen")
        client.drop(name)

    def test_values_that_never_compare(self, http: httpx.Client, client: Client, stream: str, name: str) -> None:
        def told(document: dict[str, Any]) -> list[tuple[str, str]]:
            return [(warning["code"], warning["message"]) for warning in document["warnings"]]

        feed(http, stream, json.dumps({"s": f"<{EX}s>", "p": f"<{EX}level>", "o": '"35"', "at": moment(2)}))
        query = f"PREFIX : <{EX}> SELECT ?s FROM STREAM <{stream}> WHERE {{ ?s :level ?v FILTER(?v > 30) }}"
        words = '?v > 30 has no value: ?v has, on the stream, so far, 1 value, all xsd:string, for example "35"; xsd:decimal(?v) reads numbers'
        assert told(client.register(name, query)) == [("never-comparable", words)]
        assert told(http.post("/check", json={"query": query}).json()) == [("never-comparable", words)]
        feed(http, stream, json.dumps({"s": f"<{EX}s>", "p": f"<{EX}level>", "o": f'"35"^^<{XSD}integer>', "at": moment(3)}))
        until(lambda: told(client.query(name)) == [], "some value compares")
        client.drop(name)
