"""This bench measures how long it takes from posting an event to receiving its solution on a WebSocket."""

import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.measurement import line, percentile
from epsparql.client import Client, Solution, Subscription
from server.child_server import Child

_QUERY = "PREFIX : <http://example.org/> SELECT ?v WHERE { ?s :value ?v }"
_WARM = 20
_PAUSE_S = 0.02  # so that each event is on its own
_ANSWER_S = 60.0


def measure(runner: str, n: int) -> Iterator[str]:
    """Yield a line: p50 and p99 over `n` events sent one after the other, over HTTP and over a WebSocket."""
    with (
        tempfile.TemporaryDirectory(prefix="epsparql-bench-") as directory,
        Child(Path(directory) / "data", runner, Path(directory) / "log") as child,
    ):
        client = Client(child.url, patience_s=120)
        client.wait_ready()
        client.register("latency", _QUERY)
        with client.follow("latency") as subscription, client.feed("default") as feed:
            subscription.open()
            for number in range(_WARM):
                feed.send(_event(number))
                _await(subscription)
            posted: list[float] = []
            fed: list[float] = []
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
    yield line(
        "latency",
        runner=runner,
        n=n,
        p50_ms=round(percentile(posted, 50), 2),
        p99_ms=round(percentile(posted, 99), 2),
        **socket,
    )


def _event(number: int) -> str:
    second, milli = divmod(number, 1000)
    minute, second = divmod(second, 60)
    at = f"2026-01-01T00:{minute:02d}:{second:02d}.{milli:03d}Z"
    return json.dumps({"s": "<http://example.org/s>", "p": "<http://example.org/value>", "o": f'"{number}"', "at": at})


def _await(subscription: Subscription) -> None:
    deadline = time.monotonic() + _ANSWER_S
    while time.monotonic() < deadline:
        if isinstance(subscription.next(_ANSWER_S), Solution):
            return
    raise TimeoutError(f"no solution within {_ANSWER_S:g} s")
