"""This bench measures what subscribers get through the public interface.

It sends N-Quads by POST, and reads solutions over a WebSocket, as Server-Sent Events or by pull. The server with the in-process runner is a process
of its own; the load's process shares the machine with it, so the server's CPU seconds say more than the seconds of the clock.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from urllib.parse import urlsplit

from bench.measurement import WrongCount, line
from bench.server.end_to_end import bodies
from bench.server.server import cpu_s, post, started
from bench.server.websocket_reader import open_socket
from bench.workloads import PREFIXES, WORKLOADS, blocks, check, drawn, engine_with
from epsparql.client import Client
from pipeline.formats.body_parser import N_QUADS
from server.child_server import Child

_WAIT_S = 600.0
_PAGE = 100_000
_BATCHES = "epsparql.v1+ndjson"
_SOLUTION = b'{"solution":{'
Take = Callable[[int, int], None]
"""This callback is told of solutions that came, and of their bytes."""


@dataclass(slots=True)
class _Count:
    """Counts the solutions and bytes that a subscriber has got; `all_there` is set once it has as many solutions as must come."""

    expected: int
    all_there: asyncio.Event
    solutions: int = 0
    size: int = 0

    def take(self, solutions: int, size: int) -> None:
        self.solutions, self.size = self.solutions + solutions, self.size + size
        if self.solutions >= self.expected:
            self.all_there.set()


class _Events(asyncio.Protocol):
    """Reads Server-Sent Events at little cost to its process: it counts them and looks at nothing else."""

    def __init__(self, path: str, take: Take) -> None:
        self._path, self._take, self._tail = path, take, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(f"GET {self._path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n".encode())

    def data_received(self, data: bytes) -> None:
        seen = self._tail + data
        self._take(seen.count(b"\ndata: "), len(data))
        self._tail = seen[-6:]  # one byte less than what is counted


@dataclass(frozen=True, slots=True)
class Load:
    """Holds the bodies of a workload, and how many solutions must come of them."""

    workload: str
    events: int
    media_type: str
    bodies: list[bytes]
    expected: int


def measure(workload: str, n: int, k: int) -> Iterator[str]:
    """Yield a line each: without a subscriber, with one that follows live, and with one that reads the solutions that are there already.

    Raises: WrongCount.
    """
    load = Load(workload, n, N_QUADS, bodies(drawn(n, k)), count_of(workload, n, k))
    for way in ("none", "websocket", "batches", "sse"):
        with started() as child:
            yield line("subscribers", part="live", workload=workload, n=n, way=way, **asyncio.run(live(child, load, way)))
            if way == "none":
                for later in ("websocket", "batches", "sse", "pull"):
                    yield asyncio.run(_backlog(child, workload, later, load.expected))


def count_of(workload: str, n: int, k: int) -> int:
    """Return how many solutions must come: as many as the engine alone finds. Raises: WrongCount where another number is known."""
    engine = engine_with(WORKLOADS[workload])
    found = sum(len(engine.feed(block).solutions) for block in blocks(drawn(n, k)))
    check(workload, n, k, found)
    return found


async def live(child: Child, load: Load, way: str, name: str = "q") -> dict[str, int | float]:
    """Measure a subscriber that is there before the first event, until it has the last solution. `name` is that of the query and the stream.

    Raises: WrongCount.
    """
    client = Client(child.url)
    client.create_stream(name)
    client.register(name, PREFIXES + WORKLOADS[load.workload].replace("WHERE", f"FROM STREAM <{name}> WHERE", 1))
    count = _Count(load.expected, asyncio.Event())
    transport = await _subscribe(child, way, count.take, name)
    before_s, began = cpu_s(child), time.perf_counter()
    await asyncio.to_thread(post, child, name, load.media_type, load.bodies)
    if way == "none":
        await asyncio.to_thread(_finished, client, load.expected)
    else:
        await asyncio.wait_for(count.all_there.wait(), _WAIT_S)
    took_s, used_s = time.perf_counter() - began, cpu_s(child) - before_s
    if transport is not None:
        transport.abort()
    if way != "none" and count.solutions != load.expected:
        raise WrongCount(f"a subscriber by {way}", count.solutions, load.expected)
    return {
        "solutions": load.expected,
        "bytes_in": sum(map(len, load.bodies)),
        "bytes_out": count.size,
        "events_per_s": round(load.events / took_s),
        "solutions_per_s": round(load.expected / took_s),
        "cpu_s": round(used_s, 2),
        "cpu_us_per_event": round(used_s / load.events * 1e6, 2),
    }


async def _backlog(child: Child, workload: str, way: str, expected: int) -> str:
    """Measure reading while nothing else is done: what writing and sending cost."""
    count = _Count(expected, asyncio.Event())
    before_s, began = cpu_s(child), time.perf_counter()
    if way == "pull":
        await asyncio.to_thread(_pull, child, count.take)
    else:
        transport = await _subscribe(child, way, count.take)
        await asyncio.wait_for(count.all_there.wait(), _WAIT_S)
        assert transport is not None
        transport.abort()
    took_s, used_s = time.perf_counter() - began, cpu_s(child) - before_s
    if count.solutions != expected:
        raise WrongCount(f"reading by {way}", count.solutions, expected)
    return line("subscribers", part="backlog", workload=workload, way=way, solutions=expected, bytes_out=count.size,
                solutions_per_s=round(expected / took_s), cpu_s=round(used_s, 2), solutions_per_cpu_s=round(expected / max(used_s, 0.01)))  # fmt: skip


async def _subscribe(child: Child, way: str, take: Take, query: str = "q") -> asyncio.Transport | None:
    path = f"/queries/{query}/feed"
    match way:
        case "websocket":
            return (await open_socket(child.url, path, lambda text: take(text.startswith(_SOLUTION), len(text)))).transport
        case "batches":
            return (await open_socket(child.url, path, lambda text: take(text.count(_SOLUTION), len(text)), _BATCHES)).transport
        case "sse":
            parts, loop = urlsplit(child.url), asyncio.get_running_loop()
            transport, _ = await loop.create_connection(lambda: _Events(f"/queries/{query}/events", take), str(parts.hostname), int(parts.port or 80))
            return transport
        case _:
            return None


def _finished(client: Client, expected: int) -> None:
    deadline = time.perf_counter() + _WAIT_S
    while (found := client.query("q")["solutions"]) != expected:
        if time.perf_counter() > deadline:
            raise WrongCount("a query", found, expected)
        time.sleep(0.05)


def _pull(child: Child, take: Take) -> None:
    """Read pages of ndjson, each from where the one before led."""
    connection = HTTPConnection(urlsplit(child.url).netloc, timeout=60)
    path = f"/queries/q/solutions?limit={_PAGE}"
    while True:
        connection.request("GET", path, headers={"Accept": "application/x-ndjson"})
        answer = connection.getresponse()
        text, path = answer.read(), str(answer.headers["Link"]).partition("<")[2].partition(">")[0]
        if not text:
            connection.close()
            return
        take(text.count(b"\n"), len(text))
