"""Many subscribers of one query: those that keep up are told together, the others read by themselves; each is told
everything once, in order.
"""

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from websockets.frames import Frame, Opcode
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from epsparql.client import Client, Solution, segment
from pipeline.solutions.websocket_frames import encode_text_frame
from server.cli.serve import listen
from server.settings import Settings
from server.subscriptions import broadcast
from tests.server.conftest import DEADLINE_S, event, serving, until, values
from tests.server.subscriptions.test_websockets import dial, drain, narrow


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536])
def test_frames_are_as_the_protocol_has_them(size: int) -> None:
    text = "é" * (size // 2) + "x" * (size % 2)
    assert encode_text_frame(text.encode()) == Frame(Opcode.TEXT, text.encode()).serialize(mask=False, extensions=[])


def test_what_is_written_is_sent_at_once(tmp_path: Path) -> None:
    with (
        listen(Settings(data=tmp_path, port=0)) as listener,
        socket.create_connection(listener.getsockname()),
        listener.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def ids(connection: ClientConnection, count: int) -> list[str]:
    found: list[str] = []
    while len(found) < count:
        message = json.loads(connection.recv(DEADLINE_S))
        if "solution" in message:
            found.append(message["solution"]["id"])
    return found


@pytest.mark.parametrize("shared", [True, False])
def test_those_who_come_at_any_time_are_told_everything_once(
    client: Client, url: str, name: str, stream: str, monkeypatch: pytest.MonkeyPatch, *, shared: bool
) -> None:
    monkeypatch.setattr(broadcast, "ENABLED", shared)
    client.register(name, values(stream))
    path = f"/queries/{segment(name)}/feed"
    with ExitStack() as stack:
        connections = []
        for first in range(0, 400, 20):
            connections.append(stack.enter_context(dial(url, path)))
            client.send(stream, "\n".join(event(number) for number in range(first, first + 20)))
        found = [ids(connection, 400) for connection in connections]
        late = stack.enter_context(dial(url, f"{path}?after={found[0][99]}"))
        assert ids(late, 300) == found[0][100:]
    assert found == [[each.id for each in client.solutions(name)]] * len(connections)


def test_frames_of_many_solutions_bring_the_same(client: Client, url: str, name: str, stream: str) -> None:
    """A query may have followers of either kind at once, and both resume anywhere."""
    client.register(name, values(stream))
    path = f"/queries/{segment(name)}/feed"
    offered = [Subprotocol("epsparql.v1+ndjson"), Subprotocol("epsparql.v1+json")]
    client.send(stream, "\n".join(event(number) for number in range(200)))
    with connect(url.replace("http", "ws") + path, subprotocols=offered, proxy=None) as many, dial(url, path) as single:
        assert many.subprotocol == "epsparql.v1+ndjson"
        client.send(stream, "\n".join(event(number) for number in range(200, 400)))
        found, frames = list[str](), 0
        while len(found) < 400:
            lines, frames = str(many.recv(DEADLINE_S)).rstrip("\n").split("\n"), frames + 1
            found += [message["solution"]["id"] for message in map(json.loads, lines) if "solution" in message]
        assert frames < 100
        assert found == ids(single, 400) == [each.id for each in client.solutions(name)]
    with client.follow(name, after=found[150]) as subscription:
        read = [subscription.next(DEADLINE_S) for _ in range(3)]
        subscription.close()
        assert [each.id for each in (*read, subscription.next(DEADLINE_S)) if isinstance(each, Solution)] == found[151:155]


def test_one_that_waits_for_ids_to_come_holds_nobody_up(client: Client, url: str, name: str, stream: str) -> None:
    client.register(name, values(stream))
    path = f"/queries/{segment(name)}/feed"
    with dial(url, f"{path}?after=ffffffffffffffff-00000000") as ahead, dial(url, path) as other:
        client.send(stream, event(1) + "\n" + event(2))
        assert ids(other, 2) == [each.id for each in client.solutions(name)]
        client.drop(name)
        assert not [message for message in drain(ahead) if "solution" in message]


def test_what_subscribers_say_is_passed_over(client: Client, url: str, name: str, stream: str) -> None:
    client.register(name, values(stream))
    with dial(url, f"/queries/{segment(name)}/feed") as connection:
        for number in range(50):
            connection.send("x" * 1000)
            client.send(stream, event(number))
        assert len(ids(connection, 50)) == 50
        assert connection.ping().wait(DEADLINE_S)


def test_one_that_falls_behind_is_told_everything_once_it_reads(tmp_path: Path) -> None:
    """It leaves the broadcast within one page, while the next ones are at hand."""
    with ExitStack() as stack:
        url = stack.enter_context(serving(tmp_path, max_body=10_000_000))
        client = Client(url)
        client.register("q", values("default"))
        late, other = stack.enter_context(narrow(url, "/queries/q/feed")), stack.enter_context(dial(url, "/queries/q/feed"))
        client.send("default", event(0))
        for connection in (late, other):
            ids(connection, 1)
        text = "x" * 2000
        for first in range(1, 6001, 1000):
            client.send("default", "\n".join(event(number, f"{text}{number}") for number in range(first, first + 1000)))
        until(lambda: client.query("q")["solutions"] == 6001, "all solutions")
        told = [each.id for each in client.solutions("q", limit=10_000)][1:]
        assert ids(other, 6000) == told
        assert ids(late, 6000) == told


def test_one_that_never_reads_is_cut_and_the_others_are_told(tmp_path: Path) -> None:
    with ExitStack() as stack:
        url = stack.enter_context(serving(tmp_path, stall_s=5.0, max_body=10_000_000))
        client = Client(url)
        client.register("q", values("default"))
        deaf = stack.enter_context(narrow(url, "/queries/q/feed"))
        others = [stack.enter_context(dial(url, "/queries/q/feed", max_size=None)) for _ in range(3)]
        text = "x" * 2000
        client.send("default", event(0))
        for connection in (deaf, *others):
            ids(connection, 1)
        readers = stack.enter_context(ThreadPoolExecutor(len(others)))
        found = readers.map(lambda connection: ids(connection, 6000), others)
        for first in range(1, 6001, 1000):
            client.send("default", "\n".join(event(number, f"{text}{number}") for number in range(first, first + 1000)))
        assert list(found) == [[each.id for each in client.solutions("q", limit=10_000)][1:]] * len(others)
        until(lambda: 'epsparql_subscribers{class="websocket"} 3.0' in client.request("GET", "/metrics")[2].decode(), "the deaf one is gone")
        client.send("default", event(7000))
        assert [len(ids(connection, 1)) for connection in others] == [1] * 3
        drain(deaf)
        assert deaf.close_code == 1006
