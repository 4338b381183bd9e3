"""This bench measures the engine alone, against the clock and against another kernel in the same run."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from bench.measurement import line, median, one_core, peak_rss_mb
from bench.workloads import BATCH, WORKLOADS, Drawn, Ints, blocks, check, drawn, engine_with, texts_of, times_of
from engine.dictionary.arrow_encoding import plain
from engine.dictionary.term_dictionary import Held, TermTable
from engine.kernel.state import layout as c
from engine.messages import Block
from epsparql.solutions.policies import UNRESTRICTED

_WARM, _WARM_IDS = 20_000, 1_000
_ROUNDS = 3
_FIRST_TERM = 1 << 40  # no query looks at objects from here on


class Timed(Protocol):
    def __call__(self) -> tuple[float, int]:
        """Return seconds and matches."""
        ...


def measure(workload: str, n: int, k: int, policy: str = UNRESTRICTED, baseline: Path | None = None, rounds: int = _ROUNDS) -> Iterator[str]:
    """Yield a line: medians of the rounds, in which all that is measured takes its turn.

    `events_per_s` counts from blocks of the log to solutions in Arrow, where many stand over a dictionary of terms;
    `texts_events_per_s` to solutions whose every value is text of its own; `kernel_events_per_s` from occurrences in
    numbers to rows of numbers, which is what `baseline` (the file of another kernel) does. `…_cpu_s` are the same
    rates by the process's CPU seconds, which other work on the machine hardly changes. Raises: WrongCount.
    """
    one_core()
    ways: dict[str, Callable[[Drawn], Timed]] = {
        "events_per_s": lambda events: fed(workload, list(blocks(events)), policy),
        "texts_events_per_s": lambda events: fed(workload, list(blocks(events)), policy, text_of=plain),
        "kernel_events_per_s": lambda events: numbered(workload, events, policy),
    }
    if baseline is not None:
        module = _baseline(baseline)
        ways["baseline_events_per_s"] = lambda events: _other(module, workload, events, k)
    for way in ways.values():
        way(drawn(_WARM, _WARM_IDS))()
    events = drawn(n, k)
    runs = {name: way(events) for name, way in ways.items()}
    rates: dict[str, list[float]] = {name: [] for name in ways}
    used_s = dict.fromkeys(ways, 0.0)
    matches = 0
    for _ in range(rounds):
        for name, run in runs.items():
            before_s = time.process_time()
            seconds, count = run()
            used_s[name] += time.process_time() - before_s
            rates[name].append(n / seconds)
            if name == "events_per_s":
                matches = count
            if name != "baseline_events_per_s" and policy == UNRESTRICTED:
                check(workload, n, k, count)
    figures: dict[str, object] = {name: round(median(each)) for name, each in rates.items()}
    figures |= {name.replace("_s", "_cpu_s"): round(n * rounds / each) for name, each in used_s.items()}
    figures |= {"rounds": rounds, "cpu_s": round(sum(used_s.values()), 3), "peak_rss_mb": peak_rss_mb()}
    if baseline is not None:
        figures["ratio"] = round(median(rates["kernel_events_per_s"]) / median(rates["baseline_events_per_s"]), 3)
        figures["baseline_note"] = "another filter of like selectivity" if workload == "W3" else "no removal of duplicates"
    yield line("engine", workload=workload, n=n, k=k, policy=policy, matches=matches, **figures)


def fed(workload: str, log: Sequence[Block], policy: str = UNRESTRICTED, text_of: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None) -> Timed:
    """Return a run that feeds blocks and counts solutions; `text_of` is applied to them."""

    def run() -> tuple[float, int]:
        engine = engine_with(WORKLOADS[workload], policy)
        began, matches = time.perf_counter(), 0
        for block in log:
            solutions = engine.feed(block).solutions
            matches += (solutions if text_of is None else text_of(solutions)).num_rows
        return time.perf_counter() - began, matches

    return run


def numbered(workload: str, events: Drawn, policy: str = UNRESTRICTED) -> Timed:
    """Return a run of the kernel's own work: numbers in, rows out, in batches."""
    terms = TermTable()
    log = in_numbers(terms, events, valued=workload == "W3")

    def run() -> tuple[float, int]:
        engine = engine_with(WORKLOADS[workload], policy, terms)
        network = engine.registry.members[0].network
        began, matches = time.perf_counter(), 0
        for feed in log.feeds:
            matches += len(network.feed(feed))
        return time.perf_counter() - began, matches

    return run


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Numbered:
    """Holds events as the kernel takes them in, batch by batch; their terms stay, although no goal has them yet."""

    feeds: list[Ints]

    def hold(self, held: Held) -> None:
        for feed in self.feeds:
            held.add(feed[c.IN_S : c.IN_O + 1])


def in_numbers(terms: TermTable, events: Drawn, *, valued: bool, batch: int = BATCH) -> Numbered:
    """Number the events' terms. Objects are terms only if they are `valued`."""
    n = len(events)
    feed = np.zeros((c.FEED_HEIGHT, n), np.int64)
    feed[c.IN_S] = terms.intern_all([f"<http://example.org/id/{key}>" for key in range(int(events.ids.max()) + 1)])[events.ids]
    feed[c.IN_P] = terms.intern_all([f"<http://example.org/{name}>" for name in "abc"])[events.types]
    feed[c.IN_O] = terms.intern_all(texts_of(events.values)) if valued else np.arange(n) + _FIRST_TERM
    feed[c.IN_START] = feed[c.IN_END] = times_of(0, n)
    feed[c.IN_ENTRY] = feed[c.IN_SINCE] = np.arange(n) // batch + 1
    found = Numbered([np.ascontiguousarray(feed[:, first : first + batch]) for first in range(0, n, batch)])
    terms.holders.add(found)
    return found


def _baseline(path: Path) -> Any:
    """Return the other kernel as a module."""
    sys.path.append(str(path.parent))  # this stays: a call of the module imports others beside it
    return import_module(path.stem)


def _other(module: Any, workload: str, events: Drawn, k: int) -> Timed:
    n = len(events)
    columns = [events.types, events.ids, np.arange(n), np.arange(n)]
    log = [[column[first : first + BATCH] for column in columns] for first in range(0, n, BATCH)]
    about = {"val": events.values, "N": n, "K": k, "win": 10_000}

    def run() -> tuple[float, int]:
        engine = module.make(workload, about)
        began, matches = time.perf_counter(), 0
        for part in log:
            engine.run(*part)
            matches += engine.nout
        return time.perf_counter() - began, matches

    return run
