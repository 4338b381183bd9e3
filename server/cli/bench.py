"""Lists what `epsparql bench` measures. Each bench is imported where it is run, so that none loads what only the others need."""

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import chain
from typing import Any

Measure = Callable[[Any, argparse.Namespace], Iterable[str]]
_QUERIES = 1_000
"""The benchmark queries registers this many."""


@dataclass(frozen=True, slots=True)
class Bench:
    """Describes a bench. `lines` is called with the bench's module and the arguments; `n` is the default size, None where a bench has sizes of its own."""

    n: int | None
    lines: Measure


def _plain(bench: Any, given: argparse.Namespace) -> Iterable[str]:
    lines: Iterable[str] = bench.measure(given.n)
    return lines


def _workload(bench: Any, given: argparse.Namespace) -> Iterable[str]:
    lines: Iterable[str] = bench.measure(given.workload, given.n, given.k)
    return lines


def _scale(bench: Any, given: argparse.Namespace) -> Iterable[str]:
    lines: Iterable[str] = bench.measure(given.workload, given.n, given.k, given.key)
    return lines


def _engine(bench: Any, given: argparse.Namespace) -> Iterable[str]:
    lines: Iterable[str] = bench.measure(given.workload, given.n, given.k, given.policy, given.baseline)
    return lines


def _queries(bench: Any, given: argparse.Namespace) -> Iterable[str]:
    shared = import_module("bench.engine.shared")
    queries = given.queries or _QUERIES
    return chain(bench.measure(queries, given.n), shared.measure(min(queries, 100), given.n // 10))


def _goals(bench: Any, given: argparse.Namespace) -> Iterable[str]:
    lines: Iterable[str] = bench.measure(given.n, given.n // 10, given.n * 3_600 // BENCHES["goals"].n)
    return lines


def _latency(bench: Any, given: argparse.Namespace) -> Iterable[str]:
    lines: Iterable[str] = bench.measure(given.runner, given.n, given.partitions)
    return lines


def _outside(bench: Any, given: argparse.Namespace) -> Iterable[str]:
    size = bench.QUICK if given.quick else replace(bench.FULL, whole=given.n)
    lines: Iterable[str] = bench.measure(size) if given.queries is None else bench.measure_queries(given.queries)
    return lines


def _peers(bench: Any, given: argparse.Namespace) -> Iterable[str]:
    lines: Iterable[str] = bench.measure(given.peers, given.n, given.k, given.flink)
    return lines


def _fuzz(bench: Any, given: argparse.Namespace) -> Iterable[str]:
    return [bench.measure(given.n)]


def _papers(bench: Any, given: argparse.Namespace) -> Iterable[str]:
    figures = import_module("bench.papers.figures")
    lines: Iterable[str] = bench.measure(figures.Size(given.quick, given.data, given.network), given.figure, given.page)
    return lines


BENCHES = {
    "engine": Bench(1_000_000, _engine),
    "peers": Bench(1_000_000, _peers),
    "calls": Bench(40_000, _workload),
    "queries": Bench(200_000, _queries),
    "shapes": Bench(100_000, _plain),
    "goals": Bench(10_000_000, _goals),
    "growth": Bench(1_000_000, _workload),
    "threads": Bench(1_000_000, _workload),
    "end-to-end": Bench(1_000_000, _workload),
    "windows": Bench(200_000, _plain),
    "runs": Bench(1_000_000, _plain),
    "reasoning": Bench(100_000, _plain),
    "static-rules": Bench(50, _plain),
    "lookup": Bench(100_000, _plain),
    "latency": Bench(200, _latency),
    "start": Bench(5, _plain),
    "server": Bench(600_000, _plain),
    "outside": Bench(1_000_000, _outside),
    "subscribers": Bench(200_000, _workload),
    "slices": Bench(1_000_000, _plain),
    "trials": Bench(10_000_000, _plain),
    "revision": Bench(700_000, _workload),
    "solve": Bench(1_000_000, _workload),
    "spark": Bench(1_000_000, _workload),
    "scale": Bench(1_000_000, _scale),
    "fuzz": Bench(100_000, _fuzz),
    "bodies": Bench(50_000, _plain),
    "mapping": Bench(400_000, _plain),
    "papers": Bench(None, _papers),
}


def measured(arguments: argparse.Namespace) -> Iterable[str]:
    """Run the bench that `arguments.bench` names, and return its lines."""
    bench = BENCHES[arguments.bench]
    given = argparse.Namespace(**vars(arguments) | {"n": bench.n if arguments.n is None else arguments.n})
    return bench.lines(import_module(_module_of(arguments.bench)), given)


_FOLDERS = {
    "background": ("lookup", "reasoning", "static_rules"),
    "server": (
        "bodies",
        "end_to_end",
        "fuzz",
        "latency",
        "mapping",
        "outside",
        "revision",
        "server",
        "start",
        "subscribers",
        "trials",
        "websocket_reader",
    ),
    "spark": ("scale", "solve", "spark"),
    "papers": ("papers",),
}
"""These benches are not in `bench/engine/`."""


def _module_of(bench: str) -> str:
    name = bench.replace("-", "_")
    folder = next((folder for folder, names in _FOLDERS.items() if name in names), "engine")
    return f"bench.{folder}.{name}"
