"""Servers that stop, or are killed, and start again over the same data; clients that go on where they were."""

import io
import json
import socket
from collections.abc import Sequence
from pathlib import Path
from random import Random
from threading import Event, Thread

import pytest

from epsparql.client import Client, Progress, Solution
from pipeline.replay.query_files import NamedFile, QueryFile
from pipeline.replay.replay import Replay, run
from server.child_server import Child, ChildFailed
from server.cli.demo_data import QUERIES, WATCHED, Instant, find, instants
from server.process import clock
from tests.server.conftest import COMPILING_S, event, moment, until, values

pytestmark = pytest.mark.slow


@pytest.fixture
def port() -> int:
    """Free now, and in all likelihood a moment later: a server that comes back must be found again."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def test_an_orderly_stop_and_a_start_on_the_same_data(tmp_path: Path) -> None:
    """Meanwhile a second server is refused."""
    with Child(tmp_path / "data", "inprocess", tmp_path / "log") as child:
        client = Client(child.url)
        client.wait_ready(COMPILING_S)
        client.create_stream("default", max_delay="PT5S")
        client.register("q", values("default"))
        client.send("default", event(10), key="k")
        client.send("default", event(20))
        first = client.solutions("q", wait_s=30)
        second = Child(tmp_path / "data", "inprocess", tmp_path / "second")
        with pytest.raises(ChildFailed, match="in use"):
            second.__enter__()
        assert child.stop() == 0, (tmp_path / "log").read_text()
    with Child(tmp_path / "data", "inprocess", tmp_path / "log") as child:
        client = Client(child.url)
        client.wait_ready(COMPILING_S)
        assert client.solutions("q") == first
        stream = client.stream("default")
        assert (stream["max_delay"], stream["watermark"], stream["accepted"]) == ("PT5S", moment(15), 2)
        assert client.send("default", event(10), key="k").offset < client.send("default", event(40)).offset
        assert client.stream("default")["accepted"] == 3, "the key is remembered"
        found = client.solutions("q", after=first[-1].id, wait_s=30)
        assert [each.end for each in found] == [moment(20)]
        assert "Traceback" not in (tmp_path / "log").read_text()


class Follower:
    """A subscriber that outlives the server: it goes on from its last id."""

    def __init__(self, client: Client, query: str) -> None:
        self.query, self.seen, self.error = query, list[Solution](), ""
        self._client = client
        self.thread = Thread(target=self._follow, daemon=True)
        self.thread.start()

    def _follow(self) -> None:
        try:
            with self._client.follow(self.query) as subscription:
                while not (isinstance(word := subscription.next(), Progress) and word.finished):
                    if isinstance(word, Solution):
                        self.seen.append(word)
        except Exception as error:  # noqa: BLE001 - told by the test
            self.error = repr(error)


def feeding(client: Client, frames: Sequence[Instant], fed: list[int], over: Event) -> Thread:
    """Streams the frames as the demo does, and finishes the stream. `fed` gains a number per frame sent."""

    def feed() -> None:
        with client.feed("default", window=64) as connection:
            for number, frame in enumerate(frames):
                connection.send(frame.frame)
                fed.append(number)
            connection.flush()
        over.set()

    thread = Thread(target=feed, daemon=True)
    thread.start()
    return thread


def undisturbed(frames: Sequence[Instant], tmp_path: Path) -> dict[str, list[str]]:
    """The ids, intervals and bindings that a replay of the same frames gives."""
    file = tmp_path / "frames.ndjson"
    file.write_text("".join(frame.frame + "\n" for frame in frames))
    out = io.BytesIO()
    queries = [QueryFile(Path(f"{name}.rq"), text) for name, text in QUERIES.items()]
    run(Replay(queries, [NamedFile("", file)], []), "ndjson", out, clock, lambda _step: None, lambda _unfed: None)
    found: dict[str, list[str]] = {name: [] for name in QUERIES}
    for line in out.getvalue().splitlines():
        solution = json.loads(line)
        found[solution["query"]].append(json.dumps([solution[key] for key in ("id", "start", "end")] + [solution.get("binding")], sort_keys=True))
    return found


def told(seen: Sequence[Solution]) -> list[str]:
    return [json.dumps([each.id, each.start, each.end, each.binding], sort_keys=True) for each in seen]


@pytest.mark.parametrize(
    ("runner", "deaths", "days"),
    [
        pytest.param("inprocess", 1, (slice(600, 1000), slice(4400, 4500)), id="in-process"),
        pytest.param("inprocess", 3, (slice(600, 1100), slice(4400, 4700)), id="in-process, longer", marks=pytest.mark.soak),
        pytest.param(
            "spark", 1, (slice(600, 1000), slice(4400, 4500)), id="spark", marks=pytest.mark.soak
        ),  # in CI, test_process_kills.py kills what has a runner on Spark
        pytest.param("spark", 2, (slice(600, 1100), slice(4400, 4700)), id="spark, longer", marks=pytest.mark.soak),
    ],
)
def test_killed_while_streaming(tmp_path: Path, port: int, runner: str, deaths: int, days: Sequence[slice]) -> None:
    """kill -9 of the server, a start on the same data: the union of what subscribers see is an undisturbed run's,
    none twice.
    """
    year = instants(find())
    frames = [frame for part in days for frame in year[part]]
    chance = Random(7)
    deadlines = sorted(chance.sample(range(100, len(frames) - 100), deaths))
    client, fed, over = Client(f"http://127.0.0.1:{port}", patience_s=COMPILING_S), list[int](), Event()
    followers: list[Follower] = []
    for life in range(deaths + 1):
        with Child(tmp_path / "data", runner, tmp_path / "log", port) as child:
            client.wait_ready(COMPILING_S)
            if life == 0:
                for name, text in QUERIES.items():
                    client.register(name, text)
                followers = [Follower(client, name) for name in WATCHED]
                feeder = feeding(client, frames, fed, over)
            if life < deaths:
                until(lambda: len(fed) >= deadlines[life], "the frames of this life are sent")  # noqa: B023 - called at once
                child.kill()
                continue
            assert over.wait(COMPILING_S)
            feeder.join()
            client.finish("default")
            for follower in followers:
                follower.thread.join(COMPILING_S)
                assert not follower.thread.is_alive()
    expected = undisturbed(frames, tmp_path)
    for follower in followers:
        assert follower.error == ""
        assert told(follower.seen) == expected[follower.query]
        assert len({each.id for each in follower.seen}) == len(follower.seen) > 0
