"""This bench measures trials: W1 against itself with another window, over a log on disk, alone and beside live events."""

import asyncio
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from bench.measurement import WrongCount, line
from bench.server.outside import measure_frames
from bench.server.processes import list_family, read_cpu_s
from bench.workloads import PREFIXES, WORKLOADS, blocks, drawn
from engine.engine import Engine
from engine.messages import Register
from epsparql.client import Client
from pipeline.log import LogReader, LogWriter, Queueing
from pipeline.slices import execution
from pipeline.slices.workers import count_cores
from pipeline.trials.execution import TrialStatus, run_trial
from pipeline.trials.plan import NEW, OLD, EnginePlan, TrialPlan, TrialRange, Watched
from server.child_server import Child

_OLD = PREFIXES + WORKLOADS["W1"]
_NEW = _OLD.replace("PT10S", "PT20S")
_KEPT = 1_000
_LOOK_S = 0.2
_START_S = 300.0
_PACE = 1_000


def measure(n: int) -> Iterator[str]:
    """Yield lines: a trial over `n` events on one core and on all, and one beside 1,000 live events a second. There
    are 100 events for each id.

    Raises: WrongCount where the trial's difference is not that of the solutions of two engines.
    """
    with tempfile.TemporaryDirectory(prefix="epsparql-bench-") as directory:
        data = Path(directory) / "data"
        _write_log(data, n, max(n // 100, 1))
        expected = _compare_replays(data)
        for threads in sorted({1, count_cores()}):
            yield _measure_idle(data, Path(directory) / f"trial-{threads}", n, threads, expected)
        yield from _measure_beside(data, Path(directory) / "log", n)


def _write_log(data: Path, n: int, k: int) -> None:
    events = drawn(n, k)
    with LogWriter(data, lambda: 0) as log:
        acks = [log.submit("default", block.rows, queueing=Queueing.WAIT) for block in blocks(events)]
        for ack in acks:
            ack.result()


def _compare_replays(data: Path) -> list[int]:
    """Return how many solutions the new query alone, the old query alone, and both have, from one engine for each."""
    found = []
    for text in (_NEW, _OLD):
        engine, counts = Engine(), Counter[tuple[object, ...]]()
        engine.registry.enrol_query(Register(0, "q", text, reads_from=0), [])
        with closing(LogReader(data)) as log:
            for block in log.blocks(0, execution.BLOCK_ROWS):
                solutions = engine.feed(block).solutions
                counts.update(
                    zip(
                        *(solutions.column(name).to_pylist() for name in ("start", "end")),
                        map(tuple, solutions.column("values").to_pylist()),
                        strict=True,
                    )
                )
        found.append(counts)
    new, old = found
    return [(new - old).total(), (old - new).total(), (new & old).total()]


def _measure_idle(data: Path, place: Path, n: int, threads: int, expected: list[int]) -> str:
    place.mkdir()
    with closing(LogReader(data)) as log:
        until = log.head()
    entries = Register(until, "q", _OLD), Register(until + 1, "q", _NEW)
    engines = (EnginePlan(entries, (Watched(until, "q", OLD), Watched(until + 1, "q", NEW))),)
    plan = TrialPlan(str(data), str(place), TrialRange(0, until), engines, ("default",), _KEPT, 0, threads)
    began_s, used_s = time.perf_counter(), time.process_time()
    status: TrialStatus = run_trial(plan, lambda _: None)
    took_s, used_s = time.perf_counter() - began_s, time.process_time() - used_s
    if status.counts["q"] != expected:
        raise WrongCount("the trial", sum(status.counts["q"]), sum(expected))
    new, old, both = expected
    rates = {"events_per_s": round(n / took_s), "cpu_s": round(used_s, 2), "cpu_us_per_event": round(used_s / n * 1e6, 3)}
    return line("trials", workload="W1", n=n, threads=threads, **rates, cores_used=round(used_s / took_s, 2), new=new, old=old, both=both)


# ---------------------------------------------------------------- beside live events
def _measure_beside(data: Path, log: Path, n: int) -> Iterator[str]:
    """Measure single events at 1,000/s before a trial and during it, and how many cores the trial takes meanwhile."""
    with Child(data, "inprocess", log) as child:
        client = Client(child.url, patience_s=_START_S)
        client.wait_ready(_START_S)
        live = min(5 * _PACE, max(n // 500, 100))
        asyncio.run(measure_frames(child, "warm-up", 100, 1, 1 / _PACE))  # so that the runner has read the log
        alone = asyncio.run(measure_frames(child, "live events before a trial", live, 1, 1 / _PACE))
        client.register("old", _OLD)
        _, headers, _ = client.request(
            "POST", "/trials", json.dumps({"query": _NEW, "compare_with": "old", "to": _head_of(data)}), Content_Type="application/json"
        )
        path = {name.lower(): value for name, value in headers.items()}["location"]
        while _read(client, path)["progress"] is None:
            time.sleep(_LOOK_S)
        began_s, used_s = time.perf_counter(), _read_children_cpu_s(child.pid)
        beside = asyncio.run(measure_frames(child, "live events beside a trial", live, 1, 1 / _PACE))
        took_s, used_s = time.perf_counter() - began_s, _read_children_cpu_s(child.pid) - used_s
        state = _read(client, path)
        client.request("DELETE", path)
        yield alone
        yield beside
        p99 = [json.loads(each)["p99_ms"] for each in (alone, beside)]
        yield line(
            "trials",
            workload="W1 beside live events",
            n=n,
            trial_cores=round(used_s / took_s, 2),
            trial_state=state["state"],
            p99_growth=round(p99[1] / p99[0], 2),
        )


def _head_of(data: Path) -> int:
    with closing(LogReader(data)) as log:
        return log.head()


def _read(client: Client, path: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(client.request("GET", path)[2])
    return found


def _read_children_cpu_s(pid: int) -> float:
    """Return the CPU time of the processes that a process has begun and that are there."""
    return sum(map(read_cpu_s, list_family(pid)[1:]))
