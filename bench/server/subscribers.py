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
from bench.server.websocket_reader import Frames
from bench.workloads import PREFIXES, WORKLOADS, blocks, check, drawn, engine_with
from epsparql.client import Client
from pipeline.formats.body_parser import N_QUADS
from server.child_server import Child

_WAIT_S = 600.0
_PAGE = 100_000
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


def measure(workload: str, n: int, k: int) -> Iterator[str]:
    """Yield a line each: without a subscriber, with one that follows live, and with one that reads the solutions that are there already.

    Raises: WrongCount.
    """
    sent, expected = bodies(drawn(n, k)), count_of(workload, n, k)
    for way in ("none", "websocket", "sse"):
        with started() as child:
            yield asyncio.run(_live(child, workload, n, sent, way, expected))
            if way == "none":
                for later in ("websocket", "sse", "pull"):
                    yield asyncio.run(_backlog(child, workload, later, expected))


def count_of(workload: str, n: int, k: int) -> int:
    """Return how many solutions must come: as many as the engine alone finds. Raises: WrongCount where another number is known."""
    engine = engine_with(WORKLOADS[workload])
    found = sum(len(engine.feed(block).solutions) for block in blocks(drawn(n, k)))
    check(workload, n, k, found)
    return found


async def _live(child: Child, workload: str, n: int, sent: list[bytes], way: str, expected: int) -> str:
    """Measure a subscriber that is there before the first event, until it has the last solution."""
    client = Client(child.url)
    client.create_stream("default")
    client.register("q", PREFIXES + WORKLOADS[workload])
    count = _Count(expected, asyncio.Event())
    transport = await _subscribe(child, way, count.take)
    before_s, began = cpu_s(child), time.perf_counter()
    await asyncio.to_thread(post, child, "default", N_QUADS, sent)
    if way == "none":
        await asyncio.to_thread(_finished, client, expected)
    else:
        await asyncio.wait_for(count.all_there.wait(), _WAIT_S)
    took_s, used_s = time.perf_counter() - began, cpu_s(child) - before_s
    if transport is not None:
        transport.abort()
    if way != "none" and count.solutions != expected:
        raise WrongCount(f"a subscriber by {way}", count.solutions, expected)
    return line("subscribers", part="live", workload=workload, n=n, way=way, solutions=expected, bytes_in=sum(map(len, sent)), bytes_out=count.size,
                events_per_s=round(n / took_s), solutions_per_s=round(expected / took_s), cpu_s=round(used_s, 2), events_per_cpu_s=round(n / max(used_s, 0.01)))  # fmt: skip


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


async def _subscribe(child: Child, way: str, take: Take) -> asyncio.Transport | None:
    parts, loop = urlsplit(child.url), asyncio.get_running_loop()
    host, port = str(parts.hostname), int(parts.port or 80)
    if way == "websocket":

        def frame(text: bytes) -> None:
            if text.startswith(b'{"solution"'):
                take(1, len(text))

        transport, frames = await loop.create_connection(lambda: Frames("/queries/q/feed", frame), host, port)
        await asyncio.wait_for(frames.ready.wait(), 30)
        return transport
    if way == "sse":
        transport, _ = await loop.create_connection(lambda: _Events("/queries/q/events", take), host, port)
        return transport
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
