"""This module puts a server with the in-process runner under load. Server and load share the machine.

Benches send events, bodies and frames by it, and read what the server takes of the machine.
"""

import asyncio
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa

from bench.measurement import WrongCount, line
from bench.server.processes import read_cpu_s, read_resident_mib
from bench.server.websocket_reader import open_socket
from epsparql.client import Client
from pipeline.log.encoding.arrow_ipc import stream_of
from server.child_server import Child

EACH = 100
"""One event in so many is a solution."""
_SETTLE_S = 30.0
_CONNECTIONS = 3
_SPELL = 32  # frames sent before the others have their turn
_EX = "http://example.org/"


@contextmanager
def started(runner: str = "inprocess", flags: Sequence[str] = ()) -> Iterator[Child]:
    """Run a server on an empty directory for as long as the block runs."""
    with (
        tempfile.TemporaryDirectory(prefix="epsparql-bench-") as directory,
        Child(Path(directory) / "data", runner, Path(directory) / "log", extra=flags) as child,
    ):
        Client(child.url).wait_ready(300)
        yield child


# ---------------------------------------------------------------- frames
def event(number: int, base_us: int, each: int = EACH) -> str:
    """Return an event as a line. One in `each` is a solution of `marked`."""
    at = base_us + number * 100  # the distance of events at this rate
    moment = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(at // 1_000_000))}.{at % 1_000_000:06d}Z"
    predicate = "marked" if number % each == 0 else "other"
    return f'{{"s":"<{_EX}s{number % 1000}>","p":"<{_EX}{predicate}>","o":"\\"{number}\\"","at":"{moment}"}}'


class Deliveries:
    """Measures how long each event takes to its subscribers, until `expected` deliveries are complete."""

    def __init__(self, expected: int) -> None:
        self.sent_at: dict[int, float] = {}
        self.waits: list[float] = []
        self.complete, self._expected = asyncio.Event(), expected

    def note_sent(self, number: int) -> None:
        self.sent_at[number] = time.perf_counter()

    def note_into(self, mine: list[int]) -> Callable[[bytes], None]:
        """Return what takes a subscriber's frames, and appends the numbers of its events to `mine`."""

        def take(frame: bytes) -> None:
            value = frame.rpartition(b'"value":"')[2]
            if frame.startswith(b'{"solution"'):
                number = int(value[: value.index(b'"')])
                if number in self.sent_at:
                    mine.append(number)
                    self.waits.append(time.perf_counter() - self.sent_at[number])
                if len(self.waits) == self._expected:
                    self.complete.set()

        return take


async def send_frames(url: str, stream: str, frames: list[bytes], every_s: float, sent: Callable[[int], None]) -> float:
    """Send a frame each `every_s` seconds over one WebSocket, and wait for all acks. `sent` is called with a frame's
    number before it is sent.

    Return by how much the generator itself was late at most. Raises: WrongCount for a frame that is refused or late.
    """
    answered, lagged_s, acks, refused = asyncio.Event(), 0.0, 0, list[bytes]()

    def take(answer: bytes) -> None:
        nonlocal acks
        acks += 1
        if b'"error"' in answer or b'"late"' in answer:
            refused.append(answer)
        if acks == len(frames) or refused:
            answered.set()

    feed = await open_socket(url, f"/streams/{stream}/feed", take)
    began = time.perf_counter()
    for number, frame in enumerate(frames):
        early_s = began + number * every_s - time.perf_counter()
        if early_s > 0 or number % _SPELL == 0:
            await asyncio.sleep(max(early_s, 0.0))
        lagged_s = max(lagged_s, time.perf_counter() - began - number * every_s)
        sent(number)
        feed.send(frame)
    await asyncio.wait_for(answered.wait(), _SETTLE_S)
    await feed.end()
    if refused:
        raise WrongCount(f"a frame ({refused[0]!r})", 0, 1)
    return lagged_s


# ---------------------------------------------------------------- ingest
ARROW = "application/vnd.apache.arrow.stream"


def _bodies(media_type: str, rows: int, count: int, base_us: int) -> list[bytes]:
    make = _arrow_body if media_type == ARROW else _ndjson_body
    return [make(number * rows, rows, base_us) for number in range(count)]


def _ndjson_body(first: int, rows: int, base_us: int) -> bytes:
    return "\n".join(event(number, base_us) for number in range(first, first + rows)).encode()


def _arrow_body(first: int, rows: int, base_us: int) -> bytes:
    numbers = range(first, first + rows)
    at = pa.array([base_us + number * 100 for number in numbers], pa.timestamp("us", "UTC"))
    predicates = [f"<{_EX}{'marked' if number % EACH == 0 else 'other'}>" for number in numbers]
    table = pa.table(
        {
            "s": pa.array([f"<{_EX}s{number % 1000}>" for number in numbers]).dictionary_encode(),
            "p": pa.array(predicates).dictionary_encode(),
            "o": pa.array([f'"{number}"' for number in numbers]),
            "start": at,
            "end": at,
        }
    )
    return bytes(stream_of(table))


def ingest(child: Child, media_type: str, rows: int, events: int) -> str:
    """Send bodies over some connections, each to a stream of its own, until the last is durable and its solutions are
    there.
    """
    client, base_us = Client(child.url), time.time_ns() // 1000
    streams = [f"s{number}" for number in range(_CONNECTIONS)]
    for stream in streams:
        client.create_stream(stream)
        client.register(stream, f"PREFIX : <{_EX}> SELECT ?n FROM STREAM <{stream}> WHERE {{ ?s :marked ?n }}")
    bodies = _bodies(media_type, rows, events // rows // _CONNECTIONS, base_us)
    sent = len(bodies) * rows * _CONNECTIONS
    before_s, began = read_cpu_s(child.pid), time.perf_counter()
    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        list(pool.map(lambda stream: post(child, stream, media_type, bodies), streams))
    durable_s = time.perf_counter() - began
    expected = len(bodies) * rows // EACH
    deadline = time.perf_counter() + _SETTLE_S
    while (counts := [client.query(stream)["solutions"] for stream in streams]) != [expected] * _CONNECTIONS:
        if time.perf_counter() > deadline:
            raise WrongCount("ingest", sum(counts), expected * _CONNECTIONS)
        time.sleep(0.02)
    took_s = time.perf_counter() - began
    name = "ingest Arrow" if media_type == ARROW else "ingest ndjson"
    figures = {"durable_s": round(durable_s, 2), "cpu_s": round(read_cpu_s(child.pid) - before_s, 1), "rss_mb": round(read_resident_mib(child.pid))}
    return line("ingest", workload=name, n=sent, body=rows, events_per_s=round(sent / took_s), **figures)


def post(child: Child, stream: str, media_type: str, bodies: list[bytes]) -> None:
    connection = HTTPConnection(urlsplit(child.url).netloc, timeout=60)
    for body in bodies:
        while True:
            connection.request("POST", f"/streams/{stream}/events", body, {"Content-Type": media_type})
            answer = connection.getresponse()
            content = answer.read()
            if answer.status != 429:
                break
            time.sleep(0.05)
        if answer.status != 202 or json.loads(content)["late"]:
            raise WrongCount(f"a body ({answer.status} {content[:200]!r})", 0, 1)
    connection.close()
