"""Kills with -9 over two, three and four partitions, among registrations, drops, changes of the background, pauses
and queries that read the past.

The number of partitions changes at each start. The solutions, their ids and their order are those of one undisturbed
engine. `EPSPARQL_KILLS` says how often Spark's processes die in `make soak`.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from threading import Event, Thread

import pytest

from bench.spark.cluster import Process, running_cluster, running_worker
from engine.messages import CatchUp, Drop, Facts, Pause, Register, Resume, SetStream
from pipeline.log import LogWriter, codec
from pipeline.spark.supervisor import SparkOptions, SparkRunner
from tests.fault_tolerance.test_process_kills import SNAPSHOT_WEIGHT, VICTIMS, WORKER, found_of, host, killed, position_of
from tests.support import spark_cases as cases

pytestmark = pytest.mark.slow
KILLS = int(os.environ.get("EPSPARQL_KILLS", "50"))
PARTITIONS = (2, 3, 4)
TEXTS = (cases.PAIRS, cases.HIGH, cases.OBSERVED, cases.RISES, cases.NEAR, cases.CROSS)
BODIES_S = 5
MASTER = "local[4,4]"
KILLS_A_NUMBER = 5
PATIENCE_S = 600


@dataclass(slots=True)
class Changes:
    """Changes what a log's queries and background are, at random."""

    log: LogWriter
    chance: Random
    running: dict[int, str] = field(default_factory=dict)  # names by registration
    made: int = 0

    def begin(self) -> None:
        self.log.append(lambda offset: SetStream(offset, "default", key="http://e/by", parts=("http://e/result",)))
        cases.register(self.log, "rule", cases.RULE)
        for text in TEXTS:
            self._register(text, None)

    def _register(self, text: str, reads_from: int | None) -> None:
        name, self.made = f"q{self.made}", self.made + 1
        registered = self.log.append(lambda offset: Register(offset, name, text, reads_from=reads_from, by_time=True))
        self.running[registered] = name
        if reads_from is not None:
            self._catch_up(registered)

    def _catch_up(self, registered: int) -> None:
        self.log.append(lambda offset: CatchUp(offset, registered, offset // 2))
        self.log.append(lambda offset: CatchUp(offset, registered, offset))

    def one(self) -> None:
        match self.chance.choice(("register", "register", "drop", "facts", "pause", "past")):
            case "register":
                self._register(self.chance.choice(TEXTS), None)
            case "past":
                self._register(self.chance.choice(TEXTS[:3]), 0)
            case "facts":
                triple = f"<http://e/hall> <http://e/near> <http://e/s{self.chance.randrange(4)}> .\n"
                self.log.append(lambda offset: Facts(offset, "", triple))
            case change:
                registered, name = self.chance.choice([*self.running.items()])
                if change == "drop":
                    del self.running[registered]
                    self.log.append(lambda offset: Drop(offset, registered, name))
                else:
                    self.log.append(lambda offset: Pause(offset, registered, name))
                    Event().wait(0.2)  # events that it reads later
                    self.log.append(lambda offset: Resume(offset, registered, name))
                    self._catch_up(registered)


@contextmanager
def fed(data: Path, chance: Random, monkeypatch: pytest.MonkeyPatch) -> Iterator[Changes]:
    """A log in slices that grows by readings and observations for as long as the block runs; then it is finished."""
    monkeypatch.setattr(codec, "SLICE_ROWS", 2)  # more than eight rows stand in slices; putting slices together takes long where rows are few
    over = Event()
    with LogWriter(data, cases.frozen_clock, partitions=max(PARTITIONS)) as log:
        changes = Changes(log, chance)
        changes.begin()

        def feed() -> None:
            own, number = Random(chance.random()), 0
            while not over.wait(1 / BODIES_S):
                log.append_events("default", (cases.message if number % 2 else cases.observation)(number, own))
                number += 1

        feeder = Thread(target=feed)
        feeder.start()
        try:
            yield changes
        finally:
            over.set()
            feeder.join()
        cases.finish(log)


def check(data: Path, elsewhere: Path) -> None:
    found = cases.found_in(data)
    assert found == cases.undisturbed(data, elsewhere, within=300)
    assert len({(solution.registered, solution.id) for solution in found[0]}) == len(found[0]) > 0


def test_in_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, chance = tmp_path / "data", Random(3)
    with fed(data, chance, monkeypatch) as changes:
        for number in PARTITIONS:
            with host("inprocess", data, number):
                for _ in range(2):
                    changes.one()
                    cases.reached(data, position_of(data) + chance.randrange(5, 25), 300)
    with host("inprocess", data, 2):
        cases.reached(data, cases.head_of(data), 300)
    check(data, tmp_path / "undisturbed")


@pytest.mark.soak
def test_on_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    data, chance, family = tmp_path / "data", Random(5), dict[int, str]()

    def find(runner: SparkRunner, victim: str) -> tuple[int, ...]:
        pids = found_of(runner, victim, family)
        family.update(cases.below(runner.pid or 0))
        return pids

    with fed(data, chance, monkeypatch) as changes:
        kill_in_turn(changes, data, MASTER, [*VICTIMS], find, capsys)
    with host("inprocess", data, 3):
        cases.reached(data, cases.head_of(data), PATIENCE_S)
    cases.gone(family)
    check(data, tmp_path / "undisturbed")


@pytest.mark.soak
def test_on_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Executors and whole workers of a standalone cluster die, too.

    There is one worker more than partitions, and another comes for each that dies.
    """
    data, chance = tmp_path / "data", Random(7)
    with running_cluster(tmp_path, max(PARTITIONS) + 1) as (url, workers), ExitStack() as stack, fed(data, chance, monkeypatch) as changes:
        numbers = count(len(workers))

        def find(runner: SparkRunner, victim: str) -> tuple[int, ...]:
            cases.eventually(lambda: runner.pid is not None and bool(executors_of(workers)), 120, lambda: runner.state)
            assert runner.pid is not None
            if victim not in ON_A_CLUSTER:
                return VICTIMS[victim](runner.pid, {})
            executor, tasks, worker = chance.choice(executors_of(workers))
            if victim == "cluster's worker":
                workers.remove(worker)
                workers.append(stack.enter_context(running_worker(tmp_path / f"worker-{next(numbers)}", url)))
                return (worker.pid, executor, *tasks)
            return (executor,) if victim == "executor" else tasks

        kill_in_turn(changes, data, url, [*ON_A_CLUSTER, "driver", "JVM", "driver and JVM"], find, capsys)
    with host("inprocess", data, 3):
        cases.reached(data, cases.head_of(data), PATIENCE_S)
    check(data, tmp_path / "undisturbed")


ON_A_CLUSTER = ("task", "executor", "cluster's worker")


def executors_of(workers: Sequence[Process]) -> list[tuple[int, tuple[int, ...], Process]]:
    """Return the executors with tasks, the processes of these tasks, and the cluster's workers that run them."""
    table = cases.processes()
    found = [(pid, worker) for worker in workers for pid, args in cases.below(worker.pid, table).items() if "CoarseGrainedExecutorBackend" in args]
    tasks = {pid: tuple(task for task, args in cases.below(pid, table).items() if args.endswith(WORKER)) for pid, _ in found}
    return [(pid, tasks[pid], worker) for pid, worker in found if tasks[pid]]


def kill_in_turn(
    changes: Changes,
    data: Path,
    master: str,
    kinds: Sequence[str],
    find: Callable[[SparkRunner, str], tuple[int, ...]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Kill processes of these kinds at random. A server dies every five kills, and the next one begins with another
    number of partitions.

    Print the longest gap for each kind: the time from a kill until an event that came after it has its solutions.
    """
    chance, gaps, kills = changes.chance, dict[str, float](), Counter[str]()
    victims = [chance.choice(kinds) for _ in range(KILLS)]

    def solved(position: int, state: Callable[[], str] = lambda: "") -> None:
        cases.reached(data, position, PATIENCE_S, state)

    def count_kill(victim: str, begun: float) -> None:
        kills[victim] += 1
        gaps[victim] = max(gaps.get(victim, 0.0), time.monotonic() - begun)

    for turn, first in enumerate(range(0, KILLS, KILLS_A_NUMBER)):
        earlier, number = (PARTITIONS[(turn + k) % len(PARTITIONS)] for k in range(2))
        with host("spark", data, earlier, master) as server:
            changes.one()
            solved(position_of(data) + chance.randrange(2, 10))
            family = cases.below(server.pid)
            server.kill()
            died, before = time.monotonic(), changes.log.head()
        options = SparkOptions(partitions=number, snapshot_weight=SNAPSHOT_WEIGHT)
        runner = SparkRunner(data, master, heartbeat=changes.log.heartbeat, options=options)
        runner.start()
        try:
            solved(before + 1, lambda runner=runner: runner.state)  # type: ignore[misc]
            count_kill("server", died)
            for victim in victims[first : first + KILLS_A_NUMBER - 1]:
                changes.one()
                solved(position_of(data) + chance.randrange(2, 10), lambda runner=runner: runner.state)  # type: ignore[misc]
                if killed(*find(runner, victim)):
                    died, before = time.monotonic(), changes.log.head()
                    solved(before + 1, lambda runner=runner: runner.state)  # type: ignore[misc]
                    count_kill(victim, died)
            with capsys.disabled():
                print(f"{kills.total()} kills, {changes.log.head()} entries", flush=True)
        finally:
            runner.stop()
        cases.gone(family)
    with capsys.disabled():
        print({victim: f"{kills[victim]} kills, the longest gap {seconds:.1f} s" for victim, seconds in gaps.items()})
