"""This bench measures how long it takes from posting an event to receiving its solution on a WebSocket, and what an
idle server takes.
"""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import product

from bench.measurement import line, percentile
from bench.server.load import started
from bench.server.outside import measure_frames
from bench.server.processes import list_family, read_cpu_s, read_shared_out_kib
from epsparql.client import Client, Solution, Subscription
from server.child_server import Child

_QUERY = "PREFIX : <http://example.org/> SELECT ?v WHERE { ?s :value ?v }"
_PAIRS = "PREFIX : <http://example.org/> SELECT ?V ?W FROM STREAM <{stream}> WHERE {{ {{ ?s :value ?V }} SEQ {{ ?s :value ?W }} WITHIN 0.001 }}"
_PROGRAM = "#!etalis {policy}\nfrom_stream('{stream}'). print_trigger(pair/2). pair(V, W) <- (value(S, V) seq value(S, W)).1ms."
_POLICIES = ("unrestricted", "recent", "recent-longest", "recent-by ?V", "chronological")
_WARM = 20
_PAUSE_S = 0.02  # so that each event is on its own
_ANSWER_S = 60.0
_FRAME, _PACED_S, _RATES = 100, 20, (1_000, 10_000)
_IDLE_S = 60.0
_QUICK = 50
"""With fewer events than this, everything is short, and its figures mean nothing."""


def _event(number: int) -> str:
    second, milli = divmod(number, 1000)
    minute, second = divmod(second, 60)
    at = f"2026-01-01T00:{minute:02d}:{second:02d}.{milli:03d}Z"
    return json.dumps({"s": "<http://example.org/s>", "p": "<http://example.org/value>", "o": f'"{number}"', "at": at})


def _clause(number: int) -> str:
    return f"event(value(s, {number}), {number / 1000})."


_LANGUAGES: dict[str, tuple[str, Callable[[int], str], str]] = {
    "epsparql": (_PAIRS, _event, "application/x-ndjson"),
    "etalis": (_PROGRAM, _clause, "text/x-etalis-stream"),
}
"""A query of pairs, an event by its number, and the media type of events."""


def measure(runner: str, n: int, partitions: int) -> Iterator[str]:
    """Yield lines, with p50 and p99: `n` events sent one after the other, over HTTP and over a WebSocket; SEQ under each
    policy in both languages; frames of 100 events at two rates.

    The last line has the share of a core, and the memory (proportional set size), that the server takes with Spark's
    processes while nothing comes.
    """
    flags = ["--partitions", str(partitions), *(["--master", "local[4,4]"] if runner == "spark" else [])]
    with started(runner, flags) as child:
        client = Client(child.url, patience_s=120)
        client.register("latency", _QUERY)
        yield _measure_single(client, n, {"runner": runner, "partitions": partitions})
        yield from _measure_policies(client, n, {"runner": runner, "partitions": partitions})
        for rate in _RATES:
            seconds = _PACED_S if n >= _QUICK else 1
            workload = f"{runner}, {partitions} partitions, frames of {_FRAME}, {rate:,} events/s"
            yield asyncio.run(measure_frames(child, workload, seconds * rate, _FRAME, _FRAME / rate))
        yield _measure_idle(child, _IDLE_S if n >= _QUICK else 1.0, {"runner": runner, "partitions": partitions})


def _measure_single(client: Client, n: int, asked: dict[str, object]) -> str:
    posted, fed = list[float](), list[float]()
    with client.follow("latency") as subscription, client.feed("default") as feed:
        subscription.open()
        for number in range(_WARM):
            feed.send(_event(number))
            _await(subscription)
        for number in range(_WARM, _WARM + 2 * n):
            time.sleep(_PAUSE_S)
            began = time.perf_counter()
            if number % 2:
                feed.send(_event(number))
            else:
                client.send("default", _event(number))
            _await(subscription)
            (fed if number % 2 else posted).append((time.perf_counter() - began) * 1000)
    socket = {"socket_p50_ms": round(percentile(fed, 50), 2), "socket_p99_ms": round(percentile(fed, 99), 2)}
    return line(
        "latency", **asked, workload="single", n=n, p50_ms=round(percentile(posted, 50), 2), p99_ms=round(percentile(posted, 99), 2), **socket
    )


def _measure_policies(client: Client, n: int, asked: dict[str, object]) -> Iterator[str]:
    """Yield a line for SEQ under each policy, in EP-SPARQL and as a program: pairs of consecutive events, all in turns."""
    times: dict[str, dict[str, list[float]]] = {policy: {language: [] for language in _LANGUAGES} for policy in _POLICIES}
    with ExitStack() as open_:
        followed = dict[tuple[str, str], Subscription]()
        for policy, (language, (pairs, event, media_type)) in product(_POLICIES, _LANGUAGES.items()):
            stream = _name_stream(policy, language)
            client.register(stream, pairs.format(policy=policy, stream=stream), policy=policy)
            followed[policy, language] = open_.enter_context(client.follow(stream))
            followed[policy, language].open()
            client.send(stream, event(0), media_type)
        for number in range(1, _WARM + n + 1):
            for (policy, language), subscription in followed.items():
                _, event, media_type = _LANGUAGES[language]
                time.sleep(_PAUSE_S)
                began = time.perf_counter()
                client.send(_name_stream(policy, language), event(number), media_type)
                _await(subscription)
                times[policy][language].append((time.perf_counter() - began) * 1000)
    for policy, by_language in times.items():
        figures = {
            f"{language}_p{share}_ms": round(percentile(each[_WARM:], share), 2) for language, each in by_language.items() for share in (50, 99)
        }
        yield line("latency", **asked, workload="SEQ", policy=policy, n=n, **figures)


def _name_stream(policy: str, language: str) -> str:
    return f"{language}-{policy.replace(' ?', '-')}"


# ---------------------------------------------------------------- an idle server
def _measure_idle(child: Child, seconds: float, asked: dict[str, object]) -> str:
    pids = list_family(child.pid)
    before = sum(map(read_cpu_s, pids))
    time.sleep(seconds)
    used = sum(map(read_cpu_s, pids)) - before
    taken = {"core_percent": round(100 * used / seconds, 1), "pss_mb": round(sum(map(read_shared_out_kib, pids)) / 1024)}
    return line("latency", **asked, workload="idle", processes=len(pids), **taken)


def _await(subscription: Subscription) -> None:
    deadline = time.monotonic() + _ANSWER_S
    while time.monotonic() < deadline:
        if isinstance(subscription.next(_ANSWER_S), Solution):
            return
    raise TimeoutError(f"no solution within {_ANSWER_S:g} s")
