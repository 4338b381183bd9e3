"""The two WebSockets: answers per frame, resuming, progress, close codes, slow readers."""

import asyncio
import json
import socket
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from epsparql.client import ApiError, Client, Closed, Progress, Solution, segment
from server.query_output.notifier import Notifier
from tests.server.conftest import DEADLINE_S, EX, event, moment, serving, until, values
from tests.server.routes.test_streams import assert_problem
from tests.support.logs import stream_of

SUBPROTOCOL = "epsparql.v1+json"


def dial(url: str, path: str, *protocols: str, **options: Any) -> AbstractContextManager[ClientConnection]:
    """`protocols` are offered beside the one that is spoken."""
    offered = [Subprotocol(each) for each in (SUBPROTOCOL, *protocols)]
    found: AbstractContextManager[ClientConnection] = connect(url.replace("http", "ws") + path, subprotocols=offered, proxy=None, **options)
    return found


def drain(connection: ClientConnection) -> list[dict[str, Any]]:
    """Everything until the server closes, which raises ConnectionClosed in the caller's next `recv`."""
    found: list[dict[str, Any]] = []
    while True:
        try:
            found.append(json.loads(connection.recv(DEADLINE_S)))
        except ConnectionClosed:
            return found


def closing(connection: ClientConnection) -> tuple[int, str]:
    """Code and reason with which the server closes; what it sends before is passed over."""
    drain(connection)
    assert connection.close_code is not None
    return connection.close_code, connection.close_reason or ""


@pytest.mark.parametrize(("kind", "instead"), [("streams", "POST to /streams/a%2Fb/events"), ("queries", "GET /queries/a%2Fb/events")])
def test_plain_http_is_told_the_way(url: str, kind: str, instead: str) -> None:
    answer = httpx.get(f"{url}/{kind}/a%2Fb/feed")
    assert instead in str(assert_problem(answer, 426, "upgrade-required")["detail"])
    assert answer.headers["upgrade"] == "websocket"


class TestFeed:
    def test_each_frame_is_answered_in_order(self, url: str, stream: str, client: Client) -> None:
        with dial(url, f"/streams/{segment(stream)}/feed") as connection:
            assert connection.subprotocol == SUBPROTOCOL
            connection.send(event(1) + "\n" + event(2))
            connection.send('{"s": 1}')
            connection.send(event(3))
            connection.send(event(1))
            connection.send('{"triples": ""}')
            answers = [json.loads(connection.recv(DEADLINE_S)) for _ in range(5)]
        assert answers[0]["accepted"] == 2
        assert answers[1]["error"]["status"] == 400
        assert answers[1]["error"]["line"] == 1
        assert answers[2]["ack"] > answers[0]["ack"]
        assert answers[3]["late"] == 1
        assert answers[4]["accepted"] == 0
        assert client.stream(stream)["accepted"] == 4

    def test_frames_that_come_at_once_are_answered_as_if_alone(self, url: str, stream: str, client: Client) -> None:
        """Some are read together: each has its own place, its own lateness, and its own fault."""
        blank = event(30).replace(f'"<{EX}s>"', '"_:b"')
        frames = [event(number) for number in range(10, 30)] + [
            event(1),
            blank,
            "{",
            blank,
            event(31) + "\n" + event(32),
            '{"triples":""}',
            '{"id":"a"}\n' + event(33),
        ]
        with dial(url, f"/streams/{segment(stream)}/feed") as connection:
            for _ in range(3):
                for frame in frames:
                    connection.send(frame)
            answers = [json.loads(connection.recv(DEADLINE_S)) for _ in range(3 * len(frames))]
        for turn in range(3):
            found = answers[turn * len(frames) : (turn + 1) * len(frames)]
            assert [answer.get("accepted") for answer in found] == [1] * 22 + [None, 1, 2, 0, 1]
            assert found[22]["error"]["line"] == 1
            late = [answer.get("late", 0) for answer in found]
            assert late == ([0] * 20 + [1, 0, 0, 0, 0, 0, 0] if not turn else [1] * 22 + [0, 1, 2, 0, 0])
        assert found[-1] == answers[len(frames) - 1], "the id is known"
        acks = [answer["ack"] for answer in answers if "ack" in answer]
        assert acks[: len(frames) - 1] == list(range(acks[0], acks[0] + len(frames) - 1))
        assert client.stream(stream)["accepted"] == 3 * 25 + 1

    def test_a_frame_that_is_too_large_is_refused_alone(self, url: str, stream: str) -> None:
        with dial(url, f"/streams/{segment(stream)}/feed") as connection:
            connection.send("x" * 50_001)
            connection.send(event(1))
            assert json.loads(connection.recv(DEADLINE_S))["error"]["status"] == 413
            assert json.loads(connection.recv(DEADLINE_S))["accepted"] == 1

    def test_binary_frames_are_arrow(self, url: str, stream: str) -> None:
        with dial(url, f"/streams/{segment(stream)}/feed") as connection:
            connection.send(stream_of({"s": ["<x:a>"] * 3, "p": ["<x:p>"] * 3, "o": ['"1"', '"2"', '"3"']}))
            connection.send(b"x")
            assert json.loads(connection.recv(DEADLINE_S))["accepted"] == 3
            assert json.loads(connection.recv(DEADLINE_S))["error"]["code"] == "arrow"

    def test_an_id_makes_an_untimed_frame_safe_to_resend(self, url: str, stream: str, client: Client) -> None:
        frame = '{"id":"f1","s":"<http://example.org/s>","p":"<http://example.org/value>","o":"\\"1\\""}'
        with dial(url, f"/streams/{segment(stream)}/feed") as connection:
            connection.send(frame)
            connection.send(frame)
            first, again = (json.loads(connection.recv(DEADLINE_S)) for _ in range(2))
        assert first == again
        assert client.stream(stream)["accepted"] == 1

    @pytest.mark.parametrize("binary", [False, True])
    def test_times_that_are_not_read_are_warned_of(self, url: str, stream: str, *, binary: bool) -> None:
        """The frame gives no `at`, but something that looks like one; a body over HTTP is warned of likewise."""
        row = {"s": "<x:a>", "p": f"<{EX}timestamp>", "o": f'"{moment(5)}"'}
        with dial(url, f"/streams/{segment(stream)}/feed") as connection:
            for sent in (row, row | {"p": "<x:home>"}, row | {"at": moment(5)}):
                connection.send(stream_of({name: [value] for name, value in sent.items()}) if binary and "at" not in sent else json.dumps(sent))
            answers = [json.loads(connection.recv(DEADLINE_S)) for _ in range(3)]
        assert "timestamp" in answers[0]["warning"]
        assert "time of arrival" in answers[0]["warning"]
        assert [answer.keys() - {"late"} for answer in answers[1:]] == [{"ack", "accepted"}] * 2

    def test_a_finished_stream_takes_no_more(self, url: str, stream: str, client: Client) -> None:
        with client.feed(stream) as feed:
            feed.send(event(1))
            feed.flush()
            client.finish(stream)
            feed.send(event(2))
            with pytest.raises(ApiError, match="finished"):
                feed.flush()

    def test_a_name_that_is_none(self, url: str) -> None:
        with dial(url, "/streams/%FF/feed") as connection:
            assert closing(connection)[0] == 1008

    def test_without_subprotocol(self, url: str, stream: str) -> None:
        with connect(f"{url.replace('http', 'ws')}/streams/{segment(stream)}/feed", proxy=None) as connection:
            connection.send(event(1))
            assert json.loads(connection.recv(DEADLINE_S))["accepted"] == 1


class TestSubscription:
    def test_history_then_live_then_resumed_after_any_id(self, client: Client, name: str, stream: str) -> None:
        client.register(name, values(stream))
        client.send(stream, "\n".join(event(number) for number in range(3)))
        until(lambda: client.query(name)["solutions"] == 3, "three solutions")
        found = []
        with client.follow(name) as subscription:
            for _ in range(3):
                found.append(self.next_solution(subscription))
            client.send(stream, "\n".join(event(number) for number in range(3, 6)))
            for _ in range(3):
                found.append(self.next_solution(subscription))
        assert [each.binding["v"]["value"] for each in found if each.binding] == [str(number) for number in range(6)]
        for k, resumed in enumerate(found):
            with client.follow(name, after=resumed.id) as subscription:
                assert [self.next_solution(subscription) for _ in found[k + 1 :]] == found[k + 1 :]

    @staticmethod
    def next_solution(subscription: Any) -> Solution:
        while not isinstance(word := subscription.next(DEADLINE_S), Solution):
            assert word is not None, "no solution came"
        return word

    def test_progress_when_idle(self, client: Client, name: str, stream: str) -> None:
        client.register(name, values(stream))
        with client.follow(name) as subscription:
            client.send(stream, event(7))
            assert isinstance(subscription.next(DEADLINE_S), Solution)
            assert subscription.next(DEADLINE_S) == Progress(moment(7), finished=False)
            client.send(stream, event(9).replace("value", "other"))
            assert subscription.next(DEADLINE_S) == Progress(moment(9), finished=False)
            client.finish(stream)
            word = subscription.next(DEADLINE_S)
            assert isinstance(word, Progress)
            assert word.finished

    def test_the_iterator_ends_with_the_stream(self, client: Client, name: str, stream: str) -> None:
        client.register(name, values(stream))
        client.send(stream, event(1) + "\n" + event(2))
        client.finish(stream)
        with client.follow(name) as subscription:
            assert len(list(subscription)) == 2

    def test_progress_waits_for_all_streams_and_looks_through_rules(self, client: Client, name: str, stream: str) -> None:
        derived = f"{stream}/derived"
        client.register(
            f"{name}/rule",
            f"PREFIX : <http://example.org/> CONSTRUCT {{ ?s :value ?v }} INTO STREAM <{derived}> FROM STREAM <{stream}> WHERE {{ ?s :raw ?v }}",
        )
        client.register(name, values(derived))
        with client.follow(name) as subscription:
            client.send(stream, event(7).replace("value", "raw"))
            assert isinstance(subscription.next(DEADLINE_S), Solution)
            assert subscription.next(DEADLINE_S) == Progress(moment(7), finished=False)

    def test_no_progress_while_a_stream_that_was_never_fed_holds_the_query_back(self, client: Client, name: str, stream: str) -> None:
        client.register(name, f"PREFIX : <http://example.org/> SELECT ?v FROM STREAM <{stream}> FROM STREAM <{stream}x> WHERE {{ ?s :value ?v }}")
        with client.follow(name) as subscription:
            subscription.open()
            client.send(stream, event(7))
            assert subscription.next(1.0) is None
            client.send(f"{stream}x", event(5).replace("value", "other"))
            assert subscription.next(DEADLINE_S) == Progress(moment(5), finished=False)
            client.send(f"{stream}x", event(9).replace("value", "other"))
            assert isinstance(subscription.next(DEADLINE_S), Solution)
            assert subscription.next(DEADLINE_S) == Progress(moment(7), finished=False)

    def test_a_subscriber_that_is_woken_late_is_told_all_before_the_end(
        self, client: Client, name: str, stream: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A query ends with the commit of its last solutions, and the event loop may be told of it later."""

        def announce_late(self: Notifier, loop: asyncio.AbstractEventLoop) -> None:
            loop.call_soon_threadsafe(loop.call_later, 0.5, self._wake_concerned)

        monkeypatch.setattr(Notifier, "announce_commit", announce_late)
        client.register(name, f"{values(stream)} LIMIT 2")
        with client.follow(name) as subscription:
            subscription.open()
            client.send(stream, "\n".join(event(number) for number in range(1, 5)))
            assert [each.end for each in subscription] == [moment(1), moment(2)]

    def test_an_unknown_query(self, client: Client) -> None:
        with client.follow("no such query") as subscription, pytest.raises(Closed) as closed:
            subscription.next(DEADLINE_S)
        assert closed.value.code == 4004
        assert "no such query" in closed.value.reason

    def test_an_after_that_is_no_id(self, url: str, client: Client, name: str, stream: str) -> None:
        client.register(name, values(stream))
        with dial(url, f"/queries/{segment(name)}/feed?after=x") as connection:
            assert closing(connection)[0] == 1008

    def test_a_dropped_query_ends_the_subscription(self, client: Client, name: str, stream: str) -> None:
        client.register(name, values(stream))
        with client.follow(name) as subscription:
            subscription.open()
            client.drop(name)
            with pytest.raises(Closed) as closed:
                subscription.next(DEADLINE_S)
        assert closed.value.code == 4004


def test_a_slow_reader_is_closed_with_the_id_to_resume_from(tmp_path: Path) -> None:
    """The reader's window is kept small, so that what it does not read waits in the server."""
    with ExitStack() as stack:
        url = stack.enter_context(serving(tmp_path, buffer_solutions=100, slow_after_s=0.2, max_body=10_000_000))
        client = Client(url)
        client.register("q", values("default"))
        connection = stack.enter_context(narrow(url, "/queries/q/feed"))
        client.send("default", event(0))
        seen = [json.loads(connection.recv(DEADLINE_S))["solution"]["id"]]
        assert "progress" in json.loads(connection.recv(DEADLINE_S))  # it has caught up: who still reads history is never too slow
        text = "x" * 2000
        for first in range(1, 6001, 1000):
            client.send("default", "\n".join(event(number, f"{text}{number}") for number in range(first, first + 1000)))
        until(lambda: client.query("q")["solutions"] == 6001, "all solutions")
        until(lambda: "epsparql_slow_subscribers_total 1.0" in client.request("GET", "/metrics")[2].decode(), "it is called slow")
        seen += [message["solution"]["id"] for message in drain(connection) if "solution" in message]
        assert (connection.close_code, connection.close_reason) == (4008, seen[-1])
        assert len(seen) < 6001
        with client.follow("q", after=seen[-1]) as subscription:
            while len(seen) < 6001:
                word = subscription.next(DEADLINE_S)
                assert isinstance(word, Solution)
                seen.append(word.id)
        assert seen == [each.id for each in client.solutions("q", limit=10_000)]


def narrow(url: str, path: str) -> AbstractContextManager[ClientConnection]:
    """A connection that takes little before it is read."""
    parts = urlsplit(url)
    small = socket.socket()
    small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    small.connect((parts.hostname, parts.port))
    return dial(url, path, sock=small, max_queue=1, ping_interval=None, compression=None)


def test_a_stopping_server_says_so(tmp_path: Path) -> None:
    with ExitStack() as stack:
        with serving(tmp_path) as url:
            Client(url).register("q", values("default"))
            connections = [stack.enter_context(dial(url, path)) for path in ("/queries/q/feed", "/streams/default/feed")]
        assert [closing(connection)[0] for connection in connections] == [1012, 1012]


def test_a_failed_query_ends_its_subscription(tmp_path: Path) -> None:
    with serving(tmp_path, max_derivations=2000) as url:
        client = Client(url)
        endless = "PREFIX : <http://example.org/> CONSTRUCT { ?s :value ?w } WHERE { ?s :value ?v BIND(?v + 1 AS ?w) }"
        client.register("endless", endless)
        client.register("other", values("default"))
        client.send("default", event(1).replace('"\\"1\\""', '"\\"1\\"^^<http://www.w3.org/2001/XMLSchema#integer>"'))
        until(lambda: client.query("endless")["state"] == "failed", "the rule is stopped")
        assert client.query("endless")["reason"]
        with client.follow("endless", after=client.query("endless")["last"]) as subscription, pytest.raises(Closed) as closed:
            subscription.next(DEADLINE_S)
        assert closed.value.code == 1011
        assert client.query("other")["state"] == "running"
