"""asyncapi.yaml is true: real frames of each kind are valid by it, and it describes no other."""

import json
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jsonschema_rs
import yaml
from fastapi.routing import APIWebSocketRoute
from websockets.exceptions import ConnectionClosedOK
from websockets.sync.client import ClientConnection

from epsparql.client import Client, segment
from server.routes import websockets
from tests.server.conftest import DEADLINE_S, EX, event, serving, until, values
from tests.server.subscriptions.test_websockets import dial, narrow

DOCUMENT: dict[str, Any] = yaml.safe_load((Path(__file__).parents[3] / "asyncapi.yaml").read_text(encoding="utf-8"))
VALIDATORS = {
    name: jsonschema_rs.validator_for(message["payload"] | {"components": DOCUMENT["components"]})
    for name, message in DOCUMENT["components"]["messages"].items()
    if message.get("contentType") is None
}


def kind_of(frame: str) -> str:
    """The one message of the server that the frame is valid by."""
    document = json.loads(frame)
    found = [name for name, validator in VALIDATORS.items() if validator.is_valid(document)]
    assert len(found) == 1, (found, frame)
    return str(found[0])


def test_frames_of_a_feed(url: str, stream: str) -> None:
    frames = []
    with dial(url, f"/streams/{segment(stream)}/feed") as connection:
        untimed = json.dumps({"s": "<x:a>", "p": "<x:/time>", "o": '"1"'})
        for sent in (event(5), event(1), "{", "x" * 50_001, b"x", "", untimed):
            connection.send(sent)
            frames.append(str(connection.recv(DEADLINE_S)))
    assert [kind_of(frame) for frame in frames] == ["ack", "ack", "error", "error", "error", "error", "ack"]
    assert "warning" in json.loads(frames[-1])


def test_frames_of_a_subscription(url: str, client: Client, name: str, stream: str) -> None:
    where = f"FROM STREAM <{stream}> WHERE {{ ?s :value ?v }}"
    for number, form in enumerate(("SELECT ?s ?v ?unbound", "CONSTRUCT { ?s :copy ?v, _:b }", "ASK")):
        client.register(f"{name}{number}", f"PREFIX : <{EX}> {form} {where}")
    client.send(stream, event(1).replace('"_:b"', '"_:c"') + "\n" + event(2, "ä"))
    client.finish(stream)
    for number in range(3):
        with dial(url, f"/queries/{segment(f'{name}{number}')}/feed") as connection:
            kinds = [kind_of(json.dumps(frame)) for frame in until_told_all(connection)]
        assert set(kinds) == {"solution", "progress"} if number < 2 else {"solution"}


def until_told_all(connection: ClientConnection) -> list[dict[str, Any]]:
    """Up to the first progress, or the end of a query that is completed."""
    found: list[dict[str, Any]] = []
    with suppress(ConnectionClosedOK):
        while not found or "progress" not in found[-1]:
            found.append(json.loads(connection.recv(DEADLINE_S)))
    return found


def test_a_reader_that_drops_the_oldest_is_told_of_the_gap(tmp_path: Path) -> None:
    """And of everything else, once, in order; another reader meanwhile misses nothing."""
    with serving(tmp_path, buffer_solutions=100, slow_after_s=0.2) as url:
        client = Client(url)
        client.register("q", values("default"))
        with narrow(url, "/queries/q/feed?policy=drop-oldest") as slow, client.follow("q") as quick:
            client.send("default", event(0))
            assert json.loads(slow.recv(DEADLINE_S))["solution"]
            text = "x" * 2000
            for first in range(1, 3001, 1000):
                client.send("default", "\n".join(event(number, f"{text}{number}") for number in range(first, first + 1000)))
            seen_by_quick = [
                solution.id for solution in (quick.next(DEADLINE_S) for _ in range(3001)) if solution is not None and hasattr(solution, "id")
            ]
            until(lambda: "epsparql_slow_subscribers_total 1.0" in client.request("GET", "/metrics")[2].decode(), "it is found slow")
            ids, gaps = [client.solutions("q", limit=1)[0].id], []
            all_ids = [each.id for each in client.solutions("q", limit=10_000)]
            while ids[-1] != all_ids[-1]:
                frame = str(slow.recv(DEADLINE_S))
                message = json.loads(frame)
                match kind_of(frame):
                    case "solution":
                        ids.append(message["solution"]["id"])
                    case "gap":
                        gaps.append((len(ids), message["gap"]))
        assert len(gaps) >= 1
        missed = 0
        for rank, gap in gaps:
            assert gap["after"] == ids[rank - 1]
            assert all_ids.index(gap["resume"]) == rank + missed + gap["missed"] - 1
            missed += gap["missed"]
        assert len(ids) + missed == len(all_ids)
        assert len(set(ids)) == len(ids)
        assert [each for each in all_ids if each in set(seen_by_quick)] == seen_by_quick
        assert seen_by_quick[-1] >= all_ids[-3]


def test_the_addresses_and_the_version_are_the_apps() -> None:
    assert DOCUMENT["info"]["version"] == version("epsparql")
    described = {channel["address"] for channel in DOCUMENT["channels"].values()}
    assert described == {route.path for route in websockets.router.routes if isinstance(route, APIWebSocketRoute)}
