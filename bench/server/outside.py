"""This bench measures what users feel: clients over real sockets, against a server in a process of its own on the
same machine.

Each line has the rate, the latency and the server's CPU time per event; `delivered` says that a subscriber received
all solutions.
"""

import asyncio
import json
import os
import tempfile
import time
from asyncio import Protocol
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from bench.measurement import WrongCount, line, median, percentile
from bench.server.load import ARROW, Deliveries, event, post, send_frames, started
from bench.server.processes import read_cpu_s, read_resident_mib
from bench.server.subscribers import Load, count_of, live
from bench.server.websocket_reader import open_socket
from bench.workloads import BATCH, Drawn, blocks, drawn, texts_of, times_of
from epsparql.client import Client
from pipeline.formats.batches.timestamps import iso
from pipeline.log.encoding.arrow_ipc import stream_of
from server.child_server import Child

_EX = "http://example.org/"
_NDJSON = "application/x-ndjson"
_IDS = 1_000
_CONNECTIONS = 64
_PACE, _PACED_EVENTS = 1_000, 10
_SETTLE_S = 60.0
_START_S = 600.0
_PAGE = 100


@dataclass(frozen=True, slots=True)
class LoadSize:
    """Says how much is measured: events of W1, single events, events in frames of 10, and queries of distinct
    constants.
    """

    whole: int
    singles: int
    tens: int
    queries: int


FULL, QUICK = LoadSize(1_000_000, 10_000, 200_000, 5_000), LoadSize(3_000, 200, 1_000, 20)


def measure(size: LoadSize) -> Iterator[str]:
    """Yield the lines. Raises: WrongCount where solutions are lost or repeated."""
    with started() as child:
        yield from _measure_whole(child, size.whole)
        yield from _measure_singles(child, size)
    yield from measure_queries(size.queries)


# ---------------------------------------------------------------- whole streams
def _measure_whole(child: Child, n: int) -> Iterator[str]:
    """Measure W1 from bodies to all of its solutions at a subscriber."""
    events, expected = drawn(n, _IDS), count_of("W1", n, _IDS)
    for media_type, bodies in ((_NDJSON, _ndjson_bodies(events)), (ARROW, _arrow_bodies(events))):
        load = Load("W1", n, media_type, bodies, expected)
        for way in ("websocket", "batches"):
            name = f"{'arrow' if media_type == ARROW else 'ndjson'}-{way}"
            yield line("outside", workload=f"W1 {name}", n=n, **asyncio.run(live(child, load, way, name)), delivered=True)
            Client(child.url).drop(name)


def _ndjson_bodies(events: Drawn) -> list[bytes]:
    subjects, predicates = events.ids.tolist(), ["abc"[k] for k in events.types.tolist()]
    objects = [json.dumps(text) for text in texts_of(events.values)]
    moments = [iso(at) for at in times_of(0, len(events)).tolist()]
    lines = [
        f'{{"s":"<{_EX}id/{s}>","p":"<{_EX}{p}>","o":{o},"at":"{at}"}}\n' for s, p, o, at in zip(subjects, predicates, objects, moments, strict=True)
    ]
    return ["".join(lines[first : first + BATCH]).encode() for first in range(0, len(lines), BATCH)]


def _arrow_bodies(events: Drawn) -> list[bytes]:
    return [bytes(stream_of(block.rows.select(["s", "p", "o", "start", "end"]))) for block in blocks(events)]


# ---------------------------------------------------------------- few events at once
def _measure_singles(child: Child, size: LoadSize) -> Iterator[str]:
    """Measure events that come one by one, or ten at a time; each first event of a frame is a solution."""
    yield asyncio.run(measure_frames(child, "single frames, 1,000/s", size.singles, 1, 1 / _PACE))
    yield asyncio.run(measure_frames(child, "single frames, pipelined", size.singles, 1, 0.0))
    yield asyncio.run(measure_frames(child, "frames of 10, 10,000 events/s", size.tens, 10, 10 / 10_000))
    yield asyncio.run(_posts(child, "single POSTs, 1 connection", size.singles // 2, 1, 0.0))
    yield asyncio.run(_posts(child, f"single POSTs, {_CONNECTIONS} connections", size.singles, _CONNECTIONS, 0.0))
    yield asyncio.run(_posts(child, f"single POSTs, 1,000/s over {_CONNECTIONS} connections", size.singles, _CONNECTIONS, 1 / _PACE))


def _prepare(child: Child, workload: str) -> str:
    """Register a query of the marked events of a stream of its own, and return the name of both."""
    name = "".join(letter if letter.isalnum() else "-" for letter in workload)
    client = Client(child.url)
    client.create_stream(name)
    client.register(name, f"PREFIX : <{_EX}> SELECT ?n FROM STREAM <{name}> WHERE {{ ?s :marked ?n }}")
    return name


async def measure_frames(child: Child, workload: str, n: int, each: int, every_s: float) -> str:
    """Send `n` events in frames of `each`. The latency is from sending a frame until its solution is there."""
    name, base_us = _prepare(child, workload), time.time_ns() // 1000
    frames = ["\n".join(event(number, base_us, each) for number in range(first, min(first + each, n))).encode() for first in range(0, n, each)]
    deliveries, seen = Deliveries(len(frames)), list[int]()
    subscriber = await open_socket(child.url, f"/queries/{name}/feed", deliveries.note_into(seen))
    before_s, began = read_cpu_s(child.pid), time.perf_counter()
    lagged_s = await send_frames(child.url, name, frames, every_s, lambda number: deliveries.note_sent(number * each))
    figures = await _finish(child, (before_s, began), n, deliveries, seen)
    await subscriber.end()
    Client(child.url).drop(name)
    if seen != list(range(0, n, each)):
        raise WrongCount("a subscriber (nothing lost, nothing twice, in order)", len(seen), len(frames))
    return line("outside", workload=workload, n=n, frames_per_s=round(figures["events_per_s"] / each), **figures, **_latency(deliveries.waits),
                delivered=True, generator_late_ms=round(lagged_s * 1000, 1))  # fmt: skip


async def _finish(child: Child, since: tuple[float, float], n: int, deliveries: Deliveries, seen: list[int]) -> dict[str, float]:
    """Wait for all solutions. Raises: WrongCount where they do not come."""
    with suppress(TimeoutError):
        await asyncio.wait_for(deliveries.complete.wait(), _SETTLE_S)
    used_s, took_s = read_cpu_s(child.pid) - since[0], time.perf_counter() - since[1]
    return {"events_per_s": round(n / took_s), "cpu_us_per_event": round(used_s / n * 1e6, 1)}


def _latency(waits: Sequence[float]) -> dict[str, float]:
    return {"p50_ms": round(percentile(waits, 50) * 1000, 2), "p99_ms": round(percentile(waits, 99) * 1000, 2)}


class _Poster(Protocol):
    """Posts bodies over one connection, each after the answer to the one before; `post` returns when that has come."""

    def __init__(self, head: bytes) -> None:
        self._head, self._seen = head, b""
        self._answer: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    async def post(self, body: bytes) -> None:
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(b"%bContent-Length: %d\r\n\r\n%b" % (self._head, len(body), body))
        await self._answer

    def data_received(self, data: bytes) -> None:
        self._seen += data
        head, end, content = self._seen.partition(b"\r\n\r\n")
        if not end or len(content) < int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]):
            return
        assert self._answer is not None
        if head.startswith(b"HTTP/1.1 202 "):
            self._answer.set_result(None)
        else:
            self._answer.set_exception(WrongCount(f"a body ({self._seen!r})", 0, 1))
        self._seen = b""


async def _posts(child: Child, workload: str, n: int, connections: int, every_s: float) -> str:
    """Post `n` events, each in a body of its own.

    The latency is that of the answer; `fsync_ms` is what the disk takes for one.
    """
    name, base_us, parts = _prepare(child, workload), time.time_ns() // 1000, urlsplit(child.url)
    head = f"POST /streams/{name}/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: {_NDJSON}\r\n".encode()
    loop, deliveries, seen = asyncio.get_running_loop(), Deliveries(n), list[int]()
    subscriber = await open_socket(child.url, f"/queries/{name}/feed", deliveries.note_into(seen))
    posters = [(await loop.create_connection(lambda: _Poster(head), str(parts.hostname), int(parts.port or 80)))[1] for _ in range(connections)]
    waits, numbers = list[float](), iter(range(n))
    before_s, began = read_cpu_s(child.pid), time.perf_counter()

    async def work(poster: _Poster) -> None:
        for number in numbers:
            due = began + number * every_s
            await asyncio.sleep(max(due - time.perf_counter(), 0.0)) if every_s else None
            deliveries.note_sent(number)
            await poster.post(event(0, base_us).replace('"0"', f'"{number}"').replace('\\"0\\"', f'\\"{number}\\"').encode())
            waits.append(time.perf_counter() - (due if every_s else deliveries.sent_at[number]))

    await asyncio.gather(*map(work, posters))
    posted_s = time.perf_counter() - began
    figures = await _finish(child, (before_s, began), n, deliveries, seen)
    await subscriber.end()
    for poster in posters:
        poster.transport.abort()
    Client(child.url).drop(name)
    if sorted(seen) != list(range(n)):
        raise WrongCount("a subscriber (nothing lost, nothing twice)", len(seen), n)
    solutions = {f"solution_{name}": value for name, value in _latency(deliveries.waits).items()}
    return line("outside", workload=workload, n=n, **figures | {"events_per_s": round(n / posted_s)}, **_latency(waits), **solutions,
                delivered=True, fsync_ms=_fsync_ms())  # fmt: skip


def _fsync_ms() -> float:
    """Return the median of what the disk takes to make a small write durable."""
    with tempfile.TemporaryFile(prefix="epsparql-bench-") as file:
        took_s = []
        for _ in range(100):
            file.write(bytes(1024))
            file.flush()
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            took_s.append(time.perf_counter() - began)
    return round(median(took_s) * 1000, 3)


# ---------------------------------------------------------------- many queries
def measure_queries(queries: int) -> Iterator[str]:
    """Yield the lines of a server with many queries of distinct constants. Raises: WrongCount where solutions are lost."""
    with tempfile.TemporaryDirectory(prefix="epsparql-bench-") as directory:
        data, log, most = Path(directory) / "data", Path(directory) / "log", ("--max-queries", str(2 * queries))
        with Child(data, "inprocess", log, extra=most) as child:
            Client(child.url).wait_ready(_START_S)
            yield _register(child, queries)
            yield _feed(child, queries)
            yield _list(child, queries)
        began = time.perf_counter()
        with Child(data, "inprocess", log, extra=most) as child:
            client = Client(child.url)
            client.wait_ready(_START_S + queries * _QUERY_S)
            ready_s, used_s = time.perf_counter() - began, read_cpu_s(child.pid)
            client.send("default", _constant_event(0, _EACH * queries))
            _until(client, 0, "solutions", _EACH + 1, _SETTLE_S + queries * _QUERY_S)
            yield line("outside", workload="restart", queries=queries, ready_s=round(ready_s, 2), cpu_s=round(used_s, 2),
                       answered_s=round(time.perf_counter() - began, 2), resident_mb=round(read_resident_mib(child.pid)))  # fmt: skip


_EACH = 10
"""Each query has so many events, before those of the restart.

With two, the first solution of each query is most of the cost.
"""
_POLL_S = 0.1  # rarely: the server's answers count
_QUERY_S = 0.1
"""A restart, and the settling of events, may take so long for each query, on a machine with much other work."""
_REGISTERING = 4
"""Queries are registered over so many connections."""


def _register(child: Child, queries: int) -> str:
    numbers, took_s, before_s, before_mb = iter(range(queries)), list[float](), read_cpu_s(child.pid), read_resident_mib(child.pid)

    def work() -> None:
        connection = HTTPConnection(urlsplit(child.url).netloc, timeout=_START_S)
        for k in numbers:
            text = f"SELECT ?v WHERE {{ <{_EX}id/{k}> <{_EX}value> ?v }}"
            took_s.append(_time_request(connection, "PUT", f"/queries/q{k}", 201, text, {"Content-Type": "application/sparql-query"}))
        connection.close()

    with ThreadPoolExecutor(_REGISTERING) as pool:
        for each in [pool.submit(work) for _ in range(_REGISTERING)]:
            each.result()
    _until(Client(child.url), queries - 1, "lag", 0, _SETTLE_S + queries * _QUERY_S)
    cpu_ms = (read_cpu_s(child.pid) - before_s) / queries * 1000
    last = took_s[-max(queries // 10, 1) :]
    return line("outside", workload="registrations", queries=queries, **_latency(took_s), last_p50_ms=round(median(last) * 1000, 2),
                cpu_ms=round(cpu_ms, 2), resident_mb=round(read_resident_mib(child.pid)),
                kb_per_query=round((read_resident_mib(child.pid) - before_mb) * 1024 / queries, 1))  # fmt: skip


def _constant_event(k: int, second: int) -> str:
    return f'{{"s":"<{_EX}id/{k}>","p":"<{_EX}value>","o":"\\"1\\"","at":"{iso(1_767_225_600_000_000 + second * 1_000_000)}"}}'


def _feed(child: Child, queries: int) -> str:
    n, client = _EACH * queries, Client(child.url)
    lines = [_constant_event(number % queries, number) for number in range(n)]
    bodies = ["\n".join(lines[first : first + 1_000]).encode() for first in range(0, n, 1_000)]
    before_s, began = read_cpu_s(child.pid), time.perf_counter()
    post(child, "default", _NDJSON, bodies)
    _until(client, queries - 1, "solutions", _EACH, _SETTLE_S + queries * _QUERY_S)
    took_s, used_s = time.perf_counter() - began, read_cpu_s(child.pid) - before_s
    return line("outside", workload="events of queries", queries=queries, events_per_s=round(n / took_s), cpu_us_per_event=round(used_s / n * 1e6, 1))


def _until(client: Client, query: int, member: str, wanted: int, patience_s: float) -> None:
    """Wait until a member of a query's document has a value. Raises: WrongCount if it has another one for so long."""
    deadline = time.perf_counter() + patience_s
    while (found := client.query(f"q{query}")[member]) != wanted:
        if time.perf_counter() > deadline:
            raise WrongCount(f"{member} of the query q{query}", found, wanted)
        time.sleep(_POLL_S)


def _list(child: Child, queries: int) -> str:
    whole, page = _time_get(child, "/queries", 1), _time_get(child, f"/queries?limit={_PAGE}", 5)
    return line("outside", workload="GET /queries", queries=queries, whole_ms=whole, page=_PAGE, page_ms=page)


def _time_request(
    connection: HTTPConnection, method: str, path: str, status: int, body: str | None = None, headers: Mapping[str, str] | None = None
) -> float:
    """Return the seconds that an answer takes. Raises: WrongCount where it has another status."""
    began = time.perf_counter()
    connection.request(method, path, body, headers or {})
    answer = connection.getresponse()
    content = answer.read()
    took_s = time.perf_counter() - began
    if answer.status != status:
        raise WrongCount(f"{method} {path} ({content!r})", answer.status, status)
    return took_s


def _time_get(child: Child, path: str, times: int) -> float:
    """Return the median of the milliseconds that an answer takes."""
    connection = HTTPConnection(urlsplit(child.url).netloc, timeout=_START_S)
    took_s = [_time_request(connection, "GET", path, 200) for _ in range(times)]
    connection.close()
    return round(median(took_s) * 1000, 1)
