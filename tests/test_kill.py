"""Processes killed with -9 while a log is fed: the solutions are those of a run that nothing disturbed, each once, and nothing is left behind.

The moments are random, and the same on every run.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from threading import Event, Thread

import pytest

from pipeline.log import LogWriter
from pipeline.solutions import Solution, SolutionReader, listed
from pipeline.supervisor import SparkRunner
from tests.pipeline import spark_cases as cases

pytestmark = pytest.mark.slow
MASTER = "local[2,4]"
MESSAGES_S = 50

# A server in the one respect that matters here: it owns the runner, and dies with no chance to say so. It reports its child on standard output.
HOST = f"""
import sys, time
from pipeline.inprocess import InProcessRunner
from pipeline.supervisor import SparkRunner
kind, data = sys.argv[1:]
runner = SparkRunner(data, {MASTER!r}) if kind == "spark" else InProcessRunner(data)
runner.start()
print(runner.pid if kind == "spark" else 0, flush=True)
while not runner.state.startswith("failed"):
    time.sleep(0.1)
sys.exit(runner.state)
"""


@pytest.fixture(scope="module", autouse=True)
def _compiled(tmp_path_factory: pytest.TempPathFactory) -> None:
    cases.compile_kernel(tmp_path_factory)


class Client:
    """Follows queries as a subscriber does: from its last id, with a new reader after each death of the server."""

    def __init__(self, data: Path, registrations: tuple[int, ...]) -> None:
        self._data, self.seen = data, {registered: list[Solution]() for registered in registrations}

    def follow(self) -> None:
        with closing(SolutionReader(self._data)) as reader:
            for registered, seen in self.seen.items():
                while more := listed(reader.read(registered, seen[-1].id if seen else None, 100)):
                    seen += more


@contextmanager
def fed(data: Path, seed: int) -> Iterator[tuple[LogWriter, Client]]:
    """A log that grows, with two queries and a rule, for as long as the block runs; then finished."""
    over = Event()
    with LogWriter(data, cases.frozen_clock) as log:
        registrations = tuple(
            cases.register(log, name, text) for name, text in (("pairs", cases.PAIRS), ("rule", cases.RULE), ("rises", cases.RISES))
        )

        def feed() -> None:
            chance, number = Random(seed), 0
            while not over.wait(1 / MESSAGES_S):
                log.append_events("default", cases.message(number, chance))
                number += 1

        feeder = Thread(target=feed)
        feeder.start()
        try:
            yield log, Client(data, registrations)
        finally:
            over.set()
            feeder.join()
        cases.finish(log)


def check(data: Path, client: Client, elsewhere: Path) -> None:
    """Nothing lost, nothing twice, nothing else, in the log and for the client."""
    found, undisturbed = cases.found_in(data), cases.undisturbed(data, elsewhere)
    assert found == undisturbed
    client.follow()
    for registered, seen in client.seen.items():
        assert seen == [solution for solution in undisturbed[0] if solution.registered == registered]
        assert len({solution.id for solution in seen}) == len(seen) > 0


def position_of(data: Path) -> int:
    with closing(SolutionReader(data)) as reader:
        return reader.position


def moves_on(data: Path, client: Client, by: int, state: Callable[[], str] = lambda: "") -> None:
    """Wait until solutions of `by` more entries are there."""
    cases.reached(data, position_of(data) + by, 120, state)
    client.follow()


@contextmanager
def host(kind: str, data: Path) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen([sys.executable, "-c", HOST, kind, str(data)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield process
        finally:
            process.kill()


# ---------------------------------------------------------------- victims
def only(found: dict[int, str], family: dict[int, str]) -> int:
    assert len(found) == 1, family
    return next(iter(found))


def java_of(driver: int) -> int:
    family = cases.below(driver)
    return only({pid: args for pid, args in family.items() if "org.apache.spark.deploy.SparkSubmit" in args}, family)


def worker_of(driver: int) -> int:
    """The process that hosts the engine: what the daemon of Spark's tasks has forked."""
    table = cases.processes()
    family = cases.below(driver, table)
    return only(
        {pid: args for pid, args in family.items() if args.endswith("pyspark.daemon pyspark.worker") and table[table[pid][0]][1] == args}, family
    )


def kill(*victims: int) -> None:
    for pid in victims:
        os.kill(pid, signal.SIGKILL)


VICTIMS: dict[str, Callable[[int], tuple[int, ...]]] = {
    "worker": lambda driver: (worker_of(driver),),
    "driver and JVM": lambda driver: (driver, java_of(driver)),
    "JVM": lambda driver: (java_of(driver),),
}


def test_in_process(tmp_path: Path) -> None:
    """The runner's process dies five times."""
    chance, data = Random(7), tmp_path / "data"
    with fed(data, seed=7) as (log, client):
        for _ in range(5):
            with host("inprocess", data):
                moves_on(data, client, chance.randrange(5, 40))
    with host("inprocess", data):
        cases.reached(data, log.head(), 60)
    check(data, client, tmp_path / "undisturbed")


def test_spark(tmp_path: Path) -> None:
    """The server dies, then in a new one's runner the worker, driver and JVM, and the JVM."""
    chance, data = Random(11), tmp_path / "data"
    with fed(data, seed=11) as (log, client):
        with host("spark", data) as server:
            moves_on(data, client, chance.randrange(5, 60))
            family = cases.below(server.pid)
        runner = SparkRunner(data, MASTER, heartbeat=log.heartbeat)
        runner.start()
        try:
            for victims in VICTIMS.values():
                moves_on(data, client, chance.randrange(5, 60), lambda: runner.state)
                assert runner.pid is not None
                family |= {runner.pid: cases.processes()[runner.pid][1]} | cases.below(runner.pid)
                kill(*victims(runner.pid))
            moves_on(data, client, 5, lambda: runner.state)
            cases.eventually(lambda: runner.ready, 60, lambda: runner.state)
            assert runner.pid is not None
            family |= cases.below(runner.pid)
            end = log.head()
            cases.reached(data, end, 60, lambda: runner.state)
        finally:
            runner.stop()
    with host("inprocess", data):  # a log begun on one runner can be ended on the other
        cases.reached(data, log.head(), 60)
    cases.gone(family)
    check(data, client, tmp_path / "undisturbed")
