"""A server at work for hours: queries, streams, subscribers and background come and go, and memory, files, threads
and latency stay flat.

CI takes six samples of it with few queries. `make soak` gives it EPSPARQL_SOAK_S seconds and a thousand queries, and
prints the slopes.
"""

import itertools
import random
import re
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import linear_regression, median

import pytest

from epsparql.client import Client, Solution
from server.child_server import Child
from tests.server.conftest import COMPILING_S, EX, moment
from tests.soak import budget_s, first_seed, is_full, is_short
from tests.soak.server_load import PREFIX, Load, Mix

pytestmark = pytest.mark.slow
QUERIES = 1000 if is_full() else 40
SUBSCRIBERS = 50 if is_full() else 5
SAMPLE_S = 10.0 if is_full() else 3.0
STEP_S = 1.0 if is_full() else 0.0  # a step has the events of a second
KEPT = "32M"  # of each log, which it reaches in the first hour: the index of solutions grows with what is kept


@dataclass(frozen=True, slots=True)
class Sample:
    """Holds what the server took at an instant: seconds since the begin, MB, counts, and the median latency of the
    last events in ms.
    """

    at_s: float
    memory_mb: float
    files: int
    threads: int
    latency_ms: float


LIMITS = {"memory_mb": 10.0, "files": 20.0, "threads": 10.0, "latency_ms": 20.0}
"""In the second half of a run, a figure may grow by so much an hour.

Short runs are held to `SHORT` times that in all, and their latency is the machine's.
"""
SHORT = 4.0


def measure_latency(client: Client, number: int) -> float:
    """Return the ms from sending an event until a follower of a query has its solution."""
    with client.follow("latency", policy="drop-oldest", after=_last(client)) as subscription:
        subscription.open()
        began = time.perf_counter()
        client.send(f"{EX}latency", f'{{"s":"<{EX}s>","p":"<{EX}at>","o":"\\"{number}\\"","at":"{moment(number)}"}}')
        deadline = time.monotonic() + COMPILING_S  # a slow machine may still evaluate a thousand registrations
        while not isinstance(subscription.next(1.0), Solution):
            assert time.monotonic() < deadline
        return 1000 * (time.perf_counter() - began)


def _last(client: Client) -> str | None:
    found: str | None = client.query("latency")["last"]
    return found


def take_sample(pid: int, began: float, latencies: Sequence[float]) -> Sample:
    status = Path(f"/proc/{pid}/status").read_text()
    memory, threads = (int(re.search(rf"^{name}:\s+(\d+)", status, re.MULTILINE)[1]) for name in ("VmRSS", "Threads"))  # type: ignore[index]  # both are there
    return Sample(time.monotonic() - began, memory / 1024, len(list(Path(f"/proc/{pid}/fd").iterdir())), threads, median(latencies))


def slopes(samples: Sequence[Sample]) -> dict[str, float]:
    """Return by how much each figure grows an hour, in the second half of the samples."""
    later = samples[len(samples) // 2 :]
    hours = [sample.at_s / 3600 for sample in later]
    return {
        each.name: linear_regression(hours, [getattr(sample, each.name) for sample in later]).slope for each in fields(Sample) if each.name != "at_s"
    }


def test_a_server_stays_as_it_is(tmp_path: Path) -> None:
    with Child(tmp_path / "data", "inprocess", tmp_path / "told", extra=("--retain-bytes", KEPT)) as child:
        client = Client(child.url)
        client.wait_ready(COMPILING_S)
        client.register("latency", f"{PREFIX}SELECT ?s ?x FROM STREAM <{EX}latency> WHERE {{ ?s :at ?x }}")
        load, samples, latencies = Load(client, random.Random(first_seed()), Mix(QUERIES, SUBSCRIBERS)), list[Sample](), deque[float](maxlen=50)
        began = sampled = time.monotonic()
        try:
            for number in itertools.count():
                due = time.monotonic() + STEP_S
                load.step()
                latencies.append(measure_latency(client, number))
                time.sleep(max(0.0, due - time.monotonic()))
                if time.monotonic() > sampled + SAMPLE_S:
                    sampled = time.monotonic()
                    samples.append(take_sample(child.pid, began, latencies))
                if len(samples) >= 6 and (is_short() or time.monotonic() > began + budget_s()):
                    break
        finally:
            load.close()
        states = {query["state"] for query in client.queries()}
        assert child.stop() == 0
    found = slopes(samples)
    print(f"\n{QUERIES} queries, {SUBSCRIBERS} subscribers, {samples[-1].at_s:.0f} s, {number} steps")
    for name, slope in found.items():
        print(f"{name}: {getattr(samples[0], name):.1f} at the begin, {getattr(samples[-1], name):.1f} at the end, {slope:+.2f} an hour")
    assert states == {"running"}
    hours = (samples[-1].at_s - samples[len(samples) // 2].at_s) / 3600
    if hours > 0.25:
        assert all(found[name] <= limit for name, limit in LIMITS.items()), found
    else:
        assert all(found[name] * hours <= LIMITS[name] * SHORT for name in ("memory_mb", "files", "threads")), found
