"""This module measures a subscriber that receives all solutions of a workload over a WebSocket."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from bench.measurement import WrongCount
from bench.server.load import post
from bench.server.processes import read_cpu_s
from bench.server.websocket_reader import open_socket
from bench.workloads import PREFIXES, WORKLOADS, blocks, check, drawn, engine_with
from epsparql.client import Client
from server.child_server import Child

_WAIT_S = 600.0
_PAGE = 100_000
_BATCHES = "epsparql.v1+ndjson"
_SOLUTION = b'{"solution":{'
Take = Callable[[int, int], None]
"""This callback is told of solutions that came, and of their bytes."""


@dataclass(slots=True)
class _Count:
    """Counts the solutions and bytes that a subscriber has got; `all_there` is set once it has as many solutions as
    must come.
    """

    expected: int
    all_there: asyncio.Event
    solutions: int = 0
    size: int = 0

    def take(self, solutions: int, size: int) -> None:
        self.solutions, self.size = self.solutions + solutions, self.size + size
        if self.solutions >= self.expected:
            self.all_there.set()


@dataclass(frozen=True, slots=True)
class Load:
    """Holds the bodies of a workload, and how many solutions must come of them."""

    workload: str
    events: int
    media_type: str
    bodies: list[bytes]
    expected: int


def count_of(workload: str, n: int, k: int) -> int:
    """Return how many solutions must come: as many as the engine alone finds.

    Raises: WrongCount where another number is known.
    """
    engine = engine_with(WORKLOADS[workload])
    found = sum(len(engine.feed(block).solutions) for block in blocks(drawn(n, k)))
    check(workload, n, k, found)
    return found


async def live(child: Child, load: Load, way: str, name: str = "q") -> dict[str, int | float]:
    """Measure a WebSocket subscriber that is there before the first event, until it has the last solution.

    With the `way` "websocket" each solution is a frame, with "batches" a frame holds many. `name` is that of the
    query and the stream. Raises: WrongCount.
    """
    client = Client(child.url)
    client.create_stream(name)
    client.register(name, PREFIXES + WORKLOADS[load.workload].replace("WHERE", f"FROM STREAM <{name}> WHERE", 1))
    count = _Count(load.expected, asyncio.Event())
    protocols = {"websocket": "", "batches": _BATCHES}
    subscriber = await open_socket(child.url, f"/queries/{name}/feed", lambda text: count.take(text.count(_SOLUTION), len(text)), protocols[way])
    before_s, began = read_cpu_s(child.pid), time.perf_counter()
    await asyncio.to_thread(post, child, name, load.media_type, load.bodies)
    await asyncio.wait_for(count.all_there.wait(), _WAIT_S)
    took_s, used_s = time.perf_counter() - began, read_cpu_s(child.pid) - before_s
    subscriber.transport.abort()
    if count.solutions != load.expected:
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
