"""ASK, DESCRIBE and queries that complete; graphs of events and of the background; over HTTP, WebSocket and the
command line.
"""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from epsparql.client import Client, Closed, Progress, Solution, segment
from server.cli.commands import main
from tests.server.cli.test_cli import OK, write
from tests.server.conftest import EX, event, moment, serving, until
from tests.server.subscriptions.test_websockets import closing, dial

TIMED = "@prefix prov: <http://www.w3.org/ns/prov#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> . @prefix : <http://example.org/> ."


def ask(stream: str, value: int = 2) -> str:
    return f'PREFIX : <{EX}> ASK FROM STREAM <{stream}> {{ ?s :value "{value}" }}'


def first_two(stream: str) -> str:
    return f"PREFIX : <{EX}> SELECT ?v FROM STREAM <{stream}> {{ ?s :value ?v }} LIMIT 2"


def by_graph(stream: str) -> str:
    return f"PREFIX : <{EX}> SELECT ?g ?v FROM STREAM <{stream}> {{ GRAPH ?g {{ ?s :value ?v }} }}"


def pulled(http: httpx.Client, name: str, media_type: str) -> httpx.Response:
    return http.get(f"/queries/{segment(name)}/solutions", headers={"Accept": media_type})


def completed(client: Client, name: str) -> dict[str, Any]:
    until(lambda: client.query(name)["state"] == "completed", "the query is completed")
    return client.query(name)


class TestAsk:
    def test_the_answer_in_every_format(self, http: httpx.Client, client: Client, name: str, stream: str) -> None:
        client.register(name, ask(stream))
        client.send(stream, event(1))
        assert pulled(http, name, "*/*").json() == {"head": {}, "epsparql": []}
        client.send(stream, event(2) + "\n" + event(3) + "\n" + event(4))
        document = completed(client, name)
        assert (document["solutions"], bool(document["reason"]), document["warnings"]) == (1, True, [])
        answer = pulled(http, name, "application/sparql-results+json")
        assert answer.headers["content-type"] == "application/sparql-results+json"
        assert answer.json() == {"head": {}, "epsparql": [{"id": document["last"], "start": moment(2), "end": moment(2)}], "boolean": True}
        assert json.loads(pulled(http, name, "application/x-ndjson").text)["boolean"] is True
        assert pulled(http, name, "text/csv").text.splitlines() == ["id,start,end,boolean", f"{document['last']},{moment(2)},{moment(2)},true"]
        assert pulled(http, name, "text/turtle").status_code == 406

    def test_false_where_finished_streams_end(self, client: Client, name: str, stream: str) -> None:
        client.register(name, ask(stream, 9))
        client.send(stream, event(1) + "\n" + event(5))
        client.finish(stream)
        completed(client, name)
        (answer,) = client.solutions(name)
        assert (answer.boolean, answer.start, answer.end, answer.binding, answer.triples) == (False, moment(5), moment(5), None, None)


class TestCompleted:
    def test_its_solutions_stay_and_no_more_come(self, client: Client, name: str, stream: str) -> None:
        client.register(name, first_two(stream))
        client.send(stream, "\n".join(event(number) for number in range(1, 5)))
        document = completed(client, name)
        assert (document["solutions"], bool(document["reason"])) == (2, True)
        client.send(stream, event(6))
        other = f"{name} after"
        client.register(other, first_two(stream))
        client.send(stream, event(7) + "\n" + event(8) + "\n" + event(9))
        completed(client, other)
        assert [each.end for each in client.solutions(name, wait_s=30)] == [moment(1), moment(2)]
        assert client.solutions(name, after=document["last"], wait_s=30) == [], "what is over is not waited for"
        assert client.register(name, first_two(stream))["state"] == "completed", "the same again is no second registration"

    def test_subscribers_are_told_that_it_is_over(self, url: str, http: httpx.Client, client: Client, name: str, stream: str) -> None:
        client.register(name, first_two(stream))
        with client.follow(name) as early:
            early.open()
            client.send(stream, "\n".join(event(number) for number in range(1, 5)))
            assert [each.end for each in early] == [moment(1), moment(2)], "it ends with a close code of 1000"
        with client.follow(name) as late:
            assert isinstance(late.next(30), Solution)
            assert isinstance(late.next(30), Solution)
            with pytest.raises(Closed, match=r"1000.*completed"):
                late.next(30)
        with dial(url, f"/queries/{segment(name)}/feed") as connection:
            assert closing(connection)[0] == 1000
        with http.stream("GET", f"/queries/{segment(name)}/events") as response:
            lines = list(response.iter_lines())
        assert len([line for line in lines if line.startswith("id: ")]) == 2
        assert any("completed" in line for line in lines)

    def test_a_restart_keeps_it(self, tmp_path: Path) -> None:
        with serving(tmp_path) as url:
            client = Client(url)
            client.register("q", first_two("s"))
            client.register("a", ask("s"))
            client.send("s", "\n".join(event(number) for number in range(1, 5)))
            before = [(completed(client, name), client.solutions(name)) for name in ("q", "a")]
        with serving(tmp_path) as url:
            client = Client(url)
            client.send("s", event(9))
            until(lambda: client.query("q")["lag"] == 0, "all is applied")
            assert [(client.query(name), client.solutions(name)) for name in ("q", "a")] == before

    def test_time_goes_on_through_a_completed_rule(self, client: Client, name: str, stream: str) -> None:
        rule = f"PREFIX : <{EX}> CONSTRUCT {{ ?s :first ?v }} INTO STREAM <{stream}out> FROM STREAM <{stream}> {{ ?s :value ?v }} LIMIT 1"
        client.register(f"{name} rule", rule)
        client.register(name, f"PREFIX : <{EX}> SELECT ?v FROM STREAM <{stream}out> FROM STREAM <{stream}> {{ ?s :first ?v }}")
        client.send(stream, "\n".join(event(number) for number in range(1, 5)))
        completed(client, f"{name} rule")
        assert client.query(name)["warnings"] == [], "the rule still carries the stream that it wrote"
        client.send(stream, event(9))
        with client.follow(name) as subscription:
            assert isinstance(subscription.next(30), Solution)
            word = subscription.next(30)
            while isinstance(word, Progress) and word.watermark != moment(9):
                word = subscription.next(30)
        assert isinstance(word, Progress)

    def test_its_stream_can_be_deleted(self, client: Client, name: str, stream: str) -> None:
        client.register(name, first_two(stream))
        client.send(stream, "\n".join(event(number) for number in range(1, 5)))
        completed(client, name)
        client.request("DELETE", f"/streams/{segment(stream)}")
        assert len(client.solutions(name)) == 2


class TestGraphs:
    def test_an_event_graph(self, http: httpx.Client, client: Client, name: str, stream: str) -> None:
        """The formats that have graphs are tested in tests/pipeline/formats."""
        body = f'{TIMED} :m1 prov:generatedAtTime "{moment(1)}"^^xsd:dateTime . :m1 {{ :s :value "1" }}'
        client.register(name, by_graph(stream))
        answer = http.post(f"/streams/{segment(stream)}/events", content=body, headers={"Content-Type": "application/trig"})
        assert answer.status_code == 202, answer.text
        client.finish(stream)
        found = client.solutions(name, wait_s=30)
        assert [{variable: term["value"] for variable, term in (each.binding or {}).items()} for each in found] == [{"g": f"{EX}m1", "v": "1"}]

    def test_the_default_graph_of_a_query(self, http: httpx.Client, client: Client, name: str, stream: str) -> None:
        text = f"PREFIX : <{EX}> SELECT ?v FROM STREAM <{stream}> {{ ?s :value ?v }}"
        assert client.register(name, text)["default_graph"] == "all"
        assert client.register(f"{name} json", text, default_graph="unnamed")["default_graph"] == "unnamed"
        answer = http.put(
            f"/queries/{segment(name)}%20text?default_graph=unnamed", content=text, headers={"Content-Type": "application/sparql-query"}
        )
        assert answer.json()["default_graph"] == "unnamed"
        client.send(stream, event(1).replace("}", f',"g":"<{EX}m1>"}}') + "\n" + event(2))
        client.finish(stream)
        until(lambda: client.query(name)["solutions"] == 2, "both are found")
        for other in ("json", "text"):
            assert [each.end for each in client.solutions(f"{name} {other}", wait_s=30)] == [moment(2)]


class TestReplayOfForms:
    def test_ask(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        yes, no = write(tmp_path, "yes.rq", ask("default")), write(tmp_path, "no.rq", ask("default", 9))
        stream = write(tmp_path, "s.ndjson", event(1) + "\n" + event(2) + "\n" + event(3))
        arguments = ["replay", "--query", str(yes), "--query", str(no), "--stream", str(stream)]
        assert main(arguments) == OK
        found = {line["query"]: line for line in map(json.loads, capsys.readouterr().out.splitlines())}
        assert {name: (line["boolean"], line["end"]) for name, line in found.items()} == {"yes": (True, moment(2)), "no": (False, moment(3))}
        assert main([*arguments, "--format", "json"]) == OK
        assert {name: document["boolean"] for name, document in json.loads(capsys.readouterr().out).items()} == {"yes": True, "no": False}
        assert main([*arguments, "--format", "csv"]) == OK
        assert [line.rpartition(",")[2] for line in capsys.readouterr().out.split()] == ["boolean", "true", "boolean", "false"]

    def test_describe(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        query = write(tmp_path, "q.rq", f"PREFIX : <{EX}> DESCRIBE ?s {{ ?s :value ?v }}")
        stream = write(tmp_path, "s.ndjson", event(1) + "\n" + event(2))
        facts = write(tmp_path, "b.ttl", f"@prefix : <{EX}> . :s :in [ :name 'hall' ] . :t :in :cellar .")
        arguments = ["replay", "--query", str(query), "--stream", str(stream), "--background", str(facts)]
        assert main(arguments) == OK
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [(line["end"], "hall" in line["triples"], "cellar" in line["triples"]) for line in found] == [
            (moment(1), True, False),
            (moment(2), True, False),
        ]
        assert main([*arguments, "--format", "turtle"]) == OK
        assert capsys.readouterr().out.count("hall") == 1
        assert main([*arguments, "--format", "csv"]) != OK
        assert "SELECT and ASK" in capsys.readouterr().err

    def test_graphs_of_the_background(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        query = write(tmp_path, "q.rq", f"PREFIX : <{EX}> SELECT ?g ?room {{ ?s :value ?v GRAPH ?g {{ ?s :in ?room }} }}")
        stream = write(tmp_path, "s.ndjson", event(1))
        plain = write(tmp_path, "plain.ttl", f"<{EX}s> <{EX}in> <{EX}hall> .")
        named = write(tmp_path, "named.trig", f"<{EX}s> <{EX}in> <{EX}cellar> . <{EX}old> {{ <{EX}s> <{EX}in> <{EX}attic> }}")
        arguments = ["replay", "--query", str(query), "--stream", str(stream), "--background"]

        def rooms(*background: str) -> dict[str, str]:
            assert main([*arguments, *background]) == OK
            lines = [json.loads(line)["binding"] for line in capsys.readouterr().out.splitlines()]
            return {line["room"]["value"].removeprefix(EX): line["g"]["value"].removeprefix(EX) for line in lines}

        assert rooms(str(plain)) == {}
        assert rooms(f"{EX}plan={plain}") == {"hall": "plan"}
        assert rooms(f"<{EX}plan>={named}", str(plain)) == {"cellar": "plan", "attic": "old"}
