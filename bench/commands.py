"""Defines the command `epsparql bench` of a checkout.

Each benchmark is imported where it runs, so that none loads what only the others need.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

from epsparql.solutions.policies import UNRESTRICTED
from server.cli.subcommands.definition import BROKEN, OK, Commands, add_command, add_policy, fail

Measure = Callable[[Any, argparse.Namespace], Iterable[str]]
_QUERIES = 1_000
"""The benchmark queries registers this many."""


@dataclass(frozen=True, slots=True)
class Bench:
    """Describes a bench.

    `lines` is called with the bench's module and the arguments; `n` is the default size, None where a bench has sizes
    of its own.
    """

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


def _papers(bench: Any, given: argparse.Namespace) -> Iterable[str]:
    figures = import_module("bench.papers.figures")
    lines: Iterable[str] = bench.measure(figures.Size(given.quick, given.data, given.network), given.figure, given.page)
    return lines


BENCHES = {
    "engine": Bench(1_000_000, _engine),
    "peers": Bench(1_000_000, _peers),
    "calls": Bench(40_000, _workload),
    "queries": Bench(200_000, _queries),
    "goals": Bench(10_000_000, _goals),
    "instances": Bench(100_000, _plain),
    "end-to-end": Bench(1_000_000, _workload),
    "runs": Bench(1_000_000, _plain),
    "chains": Bench(300_000, _plain),
    "reasoning": Bench(100_000, _plain),
    "static-rules": Bench(50, _plain),
    "lookup": Bench(100_000, _plain),
    "latency": Bench(200, _latency),
    "start": Bench(5, _plain),
    "outside": Bench(1_000_000, _outside),
    "trials": Bench(10_000_000, _plain),
    "spark": Bench(1_000_000, _workload),
    "scale": Bench(1_000_000, _scale),
    "bodies": Bench(50_000, _plain),
    "mapping": Bench(400_000, _plain),
    "papers": Bench(None, _papers),
}


_FOLDERS = {
    "background": ("lookup", "reasoning", "static_rules"),
    "server": (
        "bodies",
        "end_to_end",
        "latency",
        "mapping",
        "outside",
        "start",
        "trials",
    ),
    "spark": ("scale", "spark"),
    "papers": ("papers",),
}
"""These benches are not in `bench/engine/`."""


def add_bench(commands: Commands) -> None:
    """Add the command `bench`."""
    shown = ", ".join(f"{name} {bench.n:,}" for name, bench in BENCHES.items() if bench.n is not None)
    parser = add_command(commands, "bench", _bench, "Run a benchmark. It prints one line of JSON per measurement.")
    parser.epilog = f"The default of --n is: {shown}."
    parser.add_argument("bench", choices=tuple(BENCHES), help="This benchmark runs. docs/benchmarks.md describes the benchmarks.")
    parser.add_argument(
        "--workload",
        choices=("W1", "W2", "W3", "W4"),
        default="W1",
        help="The benchmark uses this workload, which docs/benchmarks.md describes. The default is W1.",
    )
    parser.add_argument(
        "--n",
        type=int,
        help="This is the number of events. For the benchmark `goals` it is the number of stored partial matches, for `instances` that of instances.",
    )
    parser.add_argument("--k", type=int, default=1_000, help="The events have this many different keys. The default is 1000.")
    parser.add_argument(
        "--key",
        choices=("subject", "message"),
        default="subject",
        help="The benchmark `scale` divides the events among partitions by this key. The default is subject.",
    )
    help_ = "The benchmark `queries` registers this many queries, by default 1,000. `outside` then only measures a server with this many."
    parser.add_argument("--queries", type=int, help=help_)
    add_policy(parser, "The benchmark `engine` uses this consumption policy", UNRESTRICTED)
    parser.set_defaults(policy=UNRESTRICTED)
    parser.add_argument(
        "--baseline", type=Path, metavar="FILE", help="The benchmark `engine` runs the kernel of this file and the present kernel in turns."
    )
    parser.add_argument("--peers", type=Path, metavar="DIRECTORY", help="The benchmark `peers` runs Esper from this directory.")
    parser.add_argument("--flink", type=Path, metavar="DIRECTORY", help="The benchmark `peers` also runs Flink CEP with the jars of this directory.")
    parser.add_argument(
        "--runner", choices=("spark", "inprocess"), default="inprocess", help="The benchmark `latency` uses this runner. The default is inprocess."
    )
    parser.add_argument(
        "--partitions", type=int, default=1, help="The benchmark `latency` starts a server with this many partitions. The default is 1."
    )
    parser.add_argument("--quick", action="store_true", help="The benchmarks `outside` and `papers` only run a small test. Do not use its figures.")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="The JSON lines are also appended to this file, each with the date and the machine."
    )
    parser.add_argument("--figure", help="The benchmark `papers` only runs the experiment of this figure or table, such as 003-1a.")
    parser.add_argument("--data", type=Path, metavar="DIRECTORY", help="The benchmark `papers` reads published data sets from this directory.")
    parser.add_argument(
        "--network", type=Path, metavar="FILE", help="The benchmark `papers` takes the roads of its delivery agents from this GTFS feed."
    )
    parser.add_argument("--page", type=Path, metavar="FILE", help="The benchmark `papers` writes its tables and charts into this page.")


def _bench(arguments: argparse.Namespace) -> int:
    from bench.measurement import TooFewEvents, UnusableInput, WrongCount, machine
    from server.cli.demo_data import NoData

    about = machine()
    try:
        for line in _measured(arguments):
            print(line, flush=True)
            if arguments.json is not None:
                with arguments.json.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(json.loads(line) | about) + "\n")
    except (TooFewEvents, WrongCount) as fault:
        print(fault, file=sys.stderr)
        return BROKEN
    except (NoData, UnusableInput) as fault:
        return fail(fault)
    return OK


def _measured(arguments: argparse.Namespace) -> Iterable[str]:
    """Run the bench that `arguments.bench` names, and return its lines."""
    bench = BENCHES[arguments.bench]
    given = argparse.Namespace(**vars(arguments) | {"n": bench.n if arguments.n is None else arguments.n})
    return bench.lines(import_module(_module_of(arguments.bench)), given)


def _module_of(bench: str) -> str:
    name = bench.replace("-", "_")
    folder = next((folder for folder, names in _FOLDERS.items() if name in names), "engine")
    return f"bench.{folder}.{name}"
