"""This bench runs two engines on two threads against one: the kernel holds no lock of the interpreter's."""

import os
import time
from collections.abc import Iterator
from threading import Barrier, Thread

from bench.engine.engine import in_numbers
from bench.measurement import line, median
from bench.workloads import WORKLOADS, Ints, check, drawn, engine_with
from engine.dictionary.term_dictionary import TermTable
from engine.network.network import Network

_ROUNDS = 3


def measure(workload: str, n: int, k: int) -> Iterator[str]:
    """Yield a line: the rate of one engine and of two together, each over n events in numbers; `ratio` cannot be above the number of cores."""
    terms = TermTable()
    log = in_numbers(terms, drawn(n, k), valued=workload == "W3")
    one: list[float] = []
    two: list[float] = []
    for _ in range(_ROUNDS):
        for threads, rates in ((1, one), (2, two)):
            networks = [engine_with(WORKLOADS[workload], terms=terms).members[0].network for _ in range(threads)]
            seconds, counts = _together(networks, log.feeds)
            for matches in counts:
                check(workload, n, k, matches)
            rates.append(threads * n / seconds)
    rates_ = {"one_events_per_s": round(median(one)), "two_events_per_s": round(median(two))}
    yield line("threads", workload=workload, n=n, k=k, cores=os.cpu_count(), **rates_, ratio=round(median(two) / median(one), 3))


def _together(networks: list[Network], log: list[Ints]) -> tuple[float, list[int]]:
    """Return the seconds until all are done, and how many matches each found."""
    counts = [0] * len(networks)
    barrier = Barrier(len(networks) + 1)

    def work(k: int) -> None:
        barrier.wait()
        for feed in log:
            counts[k] += len(networks[k].feed(feed))

    workers = [Thread(target=work, args=(k,)) for k in range(len(networks))]
    for worker in workers:
        worker.start()
    barrier.wait()
    began = time.perf_counter()
    for worker in workers:
        worker.join()
    return time.perf_counter() - began, counts
