"""One event per call: how long each call of the engine takes, from a block of the log to solutions with their terms."""

import gc
import time
from collections.abc import Iterator

from bench.line import line, one_core, percentile
from bench.workloads import WORKLOADS, blocks, drawn, engine_with

_WARMING = 4  # one part in so many of the events is not counted


def measure(workload: str, n: int, k: int) -> Iterator[str]:
    """A line: p50 and p99 in µs of all calls, and of those alone that brought solutions."""
    one_core()
    log = list(blocks(drawn(n, k), batch=1))
    engine = engine_with(WORKLOADS[workload])
    calls: list[tuple[float, int]] = []
    gc.collect()
    gc.freeze()  # the blocks, which a server would not have at hand
    try:
        for block in log:
            began = time.perf_counter_ns()
            solutions = engine.feed(block).solutions
            calls.append(((time.perf_counter_ns() - began) / 1000, solutions.num_rows))
    finally:
        gc.unfreeze()
    counted = calls[n // _WARMING :]
    all_calls, bearing = [took for took, _ in counted], [took for took, found in counted if found]
    yield line(
        "calls",
        workload=workload,
        n=n,
        k=k,
        matches=sum(found for _, found in calls),
        p50_us=round(percentile(all_calls, 50), 1),
        p99_us=round(percentile(all_calls, 99), 1),
        share_with_solutions=round(len(bearing) / len(counted), 3),
        solutions_p50_us=round(percentile(bearing, 50), 1) if bearing else None,
        solutions_p99_us=round(percentile(bearing, 99), 1) if bearing else None,
    )
