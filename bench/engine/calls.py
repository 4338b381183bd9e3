"""This bench feeds one event per call and tells how long each call takes, of the engine and of its kernel alone."""

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from bench.engine.engine import in_numbers
from bench.measurement import line, one_core, percentile
from bench.workloads import WORKLOADS, Drawn, blocks, drawn, engine_with
from engine.dictionary.term_dictionary import TermTable

Call = TypeVar("Call")
_WARMING = 4  # one part in so many of the events is not counted


def measure(workload: str, n: int, k: int) -> Iterator[str]:
    """Yield a line: p50 and p99 in µs of all calls, and of only those that brought solutions; and of the kernel's,
    all of them.

    A call of the engine goes from a block of the log to solutions with all their terms. One of the kernel goes from
    numbers to rows of numbers.
    """
    one_core()
    events = drawn(n, k)
    engine, kernel = engine_calls(workload, events), kernel_calls(workload, events)
    counted = engine[n // _WARMING :]
    all_calls, bearing = [took for took, _ in counted], [took for took, found in counted if found]
    alone = [took for took, _ in kernel[n // _WARMING :]]
    matches = sum(found for _, found in engine)
    assert matches == sum(found for _, found in kernel), "the same events, the same queries"
    yield line(
        "calls",
        workload=workload,
        n=n,
        k=k,
        matches=matches,
        p50_us=round(percentile(all_calls, 50), 1),
        p99_us=round(percentile(all_calls, 99), 1),
        share_with_solutions=round(len(bearing) / len(counted), 3),
        solutions_p50_us=round(percentile(bearing, 50), 1) if bearing else None,
        solutions_p99_us=round(percentile(bearing, 99), 1) if bearing else None,
        kernel_p50_us=round(percentile(alone, 50), 1),
        kernel_p99_us=round(percentile(alone, 99), 1),
    )


def engine_calls(workload: str, events: Drawn) -> list[tuple[float, int]]:
    engine = engine_with(WORKLOADS[workload])
    return timed(lambda block: engine.feed(block).solutions.num_rows, list(blocks(events, batch=1)))


def kernel_calls(workload: str, events: Drawn) -> list[tuple[float, int]]:
    terms = TermTable()
    log = in_numbers(terms, events, valued=workload == "W3", batch=1)
    network = engine_with(WORKLOADS[workload], terms=terms).registry.members[0].network
    return timed(lambda feed: len(network.feed(feed)), log.feeds)


def timed(call: Callable[[Call], int], log: Sequence[Call]) -> list[tuple[float, int]]:
    """Return, for each call, how many µs it took and what it gave."""
    calls: list[tuple[float, int]] = []
    gc.collect()
    gc.freeze()  # the log, which a server would not have at hand
    try:
        for each in log:
            began = time.perf_counter_ns()
            found = call(each)
            calls.append(((time.perf_counter_ns() - began) / 1000, found))
    finally:
        gc.unfreeze()
    return calls
