"""Processes killed with -9 while a log is fed: the solutions are those of a run that nothing disturbed, each once,
and nothing is left behind.

The moments are random, and the same on every run; some are sought: while a snapshot is written, or while solutions
are there and not yet published. EPSPARQL_CHAOS=N kills N times on Spark (`make chaos`).
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from random import Random
from threading import Event, Thread

import pyarrow as pa
import pytest

from bench.workloads import MATCHES, PREFIXES, WORKLOADS, blocks, drawn
from pipeline.log import LogWriter
from pipeline.log.segments import FrameReader, segment_path
from pipeline.runners.in_process import InProcessRunner
from pipeline.solutions.solution_log import SolutionReader, StoredSolution, listed
from pipeline.spark.supervisor import SparkOptions, SparkRunner
from tests.soak import is_full
from tests.support import spark_cases as cases

pytestmark = pytest.mark.slow
MASTER = "local[2,4]"
MESSAGES_S = 50
BACKLOG_KILLS = 3
PARTITIONS = 2
HITS = 5  # tries to hit a victim that stands
MOMENT_S = 20 if is_full() else 3
"""How long a moment is sought, which takes a core; a process that it does not come to in that time is killed all the
same.
"""
WORKER = "pipeline.spark.worker_daemon pyspark.worker"
Family = Mapping[int, str]
"""Processes by their numbers, and their command lines."""
SNAPSHOT_WEIGHT = 500  # five entries: most lives write a snapshot
EVENTS, IDS = 1_000_000, 1_000
CHAOS = int(os.environ.get("EPSPARQL_CHAOS", "0"))

# A server in the one respect that matters here: it owns the runner, and dies with no chance to say so.
HOST = f"""
import sys, time
from pipeline.runners.in_process import InProcessRunner
from pipeline.spark.supervisor import SparkOptions, SparkRunner
kind, data, partitions, master = sys.argv[1:]
options = {{"partitions": int(partitions), "snapshot_weight": {SNAPSHOT_WEIGHT}}}
if kind == "inprocess":
    runner = InProcessRunner(data, **options)
else:
    runner = SparkRunner(data, master, options=SparkOptions(**options))
runner.start()
print("started", flush=True)
while not runner.state.startswith("failed"):
    time.sleep(0.1)
sys.exit(runner.state)
"""


class Client:
    """Follows queries as a subscriber does: from its last id, with a new reader after each death of the server."""

    def __init__(self, data: Path, registrations: tuple[int, ...]) -> None:
        self._data, self.seen = data, {registered: list[StoredSolution]() for registered in registrations}

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
def host(kind: str, data: Path, partitions: int = PARTITIONS, master: str = MASTER) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen([sys.executable, "-c", HOST, kind, str(data), str(partitions), master], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield process
        finally:
            process.kill()


# ---------------------------------------------------------------- victims
def one(found: Sequence[int]) -> tuple[int, ...]:
    return tuple(found) if len(found) == 1 else ()


def java_of(driver: int, _: Family) -> tuple[int, ...]:
    return one([pid for pid, args in cases.below(driver).items() if "org.apache.spark.deploy.SparkSubmit" in args])


def workers_of(driver: int, seen: Family) -> tuple[int, ...]:
    """The processes that may host the engine: what a daemon of Spark's tasks has forked, below the driver or, `seen`
    there before, without that daemon.
    """
    table = cases.processes()
    forked = [pid for pid, args in cases.below(driver, table).items() if args.endswith(WORKER) and table[table[pid][0]][1] == args]
    orphans = [pid for pid, args in seen.items() if args.endswith(WORKER) and table.get(pid) == (1, args)]
    return tuple({*forked, *orphans})


def daemon_of(driver: int, seen: Family) -> tuple[int, ...]:
    """The process that forks Spark's Python workers: who loses it is nobody's.

    Where they have lost it already, they themselves.
    """
    table, workers = cases.processes(), workers_of(driver, seen)
    daemons = {parent for parent, _ in (table[pid] for pid in workers if pid in table) if parent != 1}
    return tuple(daemons) or workers


def killed(*victims: int) -> bool:
    """Kill the processes and return whether all were still there: one may just have ended, after the death of another."""
    there = 0
    for pid in victims:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            there += 1
    return there == len(victims)


VICTIMS: dict[str, Callable[[int, Family], tuple[int, ...]]] = {
    "worker": workers_of,
    "daemon": daemon_of,
    "driver": lambda driver, _: (driver,),
    "driver and JVM": lambda driver, seen: (*java_of(driver, seen), driver),
    "JVM": java_of,
}


def found_of(runner: SparkRunner, victim: str, seen: Family) -> tuple[int, ...]:
    """Its processes, once there is a family: solutions may still come from one whose head is gone."""
    cases.eventually(lambda: runner.pid is not None and bool(workers_of(runner.pid, seen)), 120, lambda: runner.state)
    assert runner.pid is not None
    return VICTIMS[victim](runner.pid, seen)


MANY = ["worker", "JVM", "worker", "driver", "worker", "driver and JVM", "worker", "daemon", *["worker"] * 5]
"""With the two servers below. A job of Spark's bears three deaths of one task."""
FEW = ["driver and JVM", "worker"]
"""Outside `make soak`, a driver dies with its JVM, and a worker while a snapshot is written."""


# ---------------------------------------------------------------- moments
def at_a_snapshot(data: Path) -> None:
    """Return while a snapshot is being written, or after a while in which none was."""
    deadline = time.monotonic() + MOMENT_S
    while time.monotonic() < deadline:
        with suppress(FileNotFoundError):
            if any(name.endswith(".tmp") for name in os.listdir(data / "snapshots")):
                return


def at_unpublished_solutions(data: Path) -> None:
    """Return when there is more in the solution log's files than its head says, or after a while."""
    deadline = time.monotonic() + MOMENT_S
    while time.monotonic() < deadline and not unpublished(data):
        pass


def unpublished(data: Path) -> bool:
    with closing(FrameReader(data / "solutions")) as reader:
        head = reader.head()
    return segment_path(data / "solutions", head.segment).stat().st_size > head.size


def test_in_process(tmp_path: Path) -> None:
    """The runner's process dies at random moments, then while it writes snapshots, and between solutions and the head
    that publishes them.
    """
    chance, data = Random(7), tmp_path / "data"
    with fed(data, seed=7) as (log, client):
        for _ in range(5 if is_full() else 1):
            with host("inprocess", data):
                moves_on(data, client, chance.randrange(5, 40))
        with host("inprocess", data) as process:
            moves_on(data, client, 5)
            at_a_snapshot(data)
            process.kill()
        torn = 0
        for _ in range(8 if is_full() else 2):
            if torn:
                break
            with host("inprocess", data) as process:
                moves_on(data, client, 5)
                at_unpublished_solutions(data)
                process.kill()
                process.wait()
                torn += unpublished(data)
    with host("inprocess", data):
        cases.reached(data, log.head(), 60)
    check(data, client, tmp_path / "undisturbed")


def kills_on_spark(tmp_path: Path, victims: Sequence[str], chance: Random) -> None:
    """A server or two die, then in another one's runner these victims, every second while a snapshot is written."""
    data, family = tmp_path / "data", dict[int, str]()
    with fed(data, seed=chance.randrange(1000)) as (log, client):
        for _ in range(2 if is_full() else 1):
            with host("spark", data) as server:
                moves_on(data, client, chance.randrange(5, 60))
                family |= cases.below(server.pid)
        runner = SparkRunner(data, MASTER, heartbeat=log.heartbeat, options=SparkOptions(snapshot_weight=SNAPSHOT_WEIGHT))
        runner.start()
        try:
            for number, victim in enumerate(victims):
                moves_on(data, client, chance.randrange(5, 60), lambda: runner.state)
                for _ in range(HITS):
                    pids, table = found_of(runner, victim, family), cases.processes()
                    family |= {pid: args for pid, (_, args) in table.items() if pid == runner.pid} | cases.below(runner.pid or 0, table)
                    if number % 2 == 1:
                        at_a_snapshot(data)
                    if pids and killed(*pids):
                        break
                else:
                    raise AssertionError(f"no {victim} stays to be killed: {runner.state}")
            moves_on(data, client, 5, lambda: runner.state)
            cases.eventually(lambda: runner.ready, 120, lambda: runner.state)
            assert runner.pid is not None
            family |= cases.below(runner.pid)
            end = log.head()
            cases.reached(data, end, 120, lambda: runner.state)
        finally:
            runner.stop()
    with host("inprocess", data):  # a log begun on one runner can be ended on the other
        cases.reached(data, log.head(), 60)
    cases.gone(family)
    check(data, client, tmp_path / "undisturbed")


def test_spark(tmp_path: Path) -> None:
    kills_on_spark(tmp_path, MANY if is_full() else FEW, Random(11))


@pytest.mark.soak  # in CI, a worker dies in test_spark, and one with an engine in test_cluster.py
def test_workers_of_a_backlog(tmp_path: Path) -> None:
    """Four tasks are ahead of what is merged and written; first all of their workers die, then one at a time."""
    data, chance = tmp_path / "data", Random(13)
    with LogWriter(data, cases.frozen_clock) as log:
        query = cases.register(log, "chains", PREFIXES + WORKLOADS["W1"])
        bodies = [block.rows for block in blocks(drawn(EVENTS, IDS), 10_000)]
        half, kills, family = len(bodies) // 2, 0, dict[int, str]()
        for rows in bodies[:half]:
            log.append_events("default", rows)
        runner = SparkRunner(data, "local[4,4]", heartbeat=log.heartbeat, options=SparkOptions(partitions=4, snapshot_weight=100_000))
        runner.start()
        try:
            while (position := position_of(data)) < log.head():
                cases.reached(data, position + 1, 240, lambda: runner.state)
                if kills == BACKLOG_KILLS:
                    continue
                Event().wait(chance.uniform(0, 0.2))  # into the next piece, or the one after
                assert runner.pid is not None, runner.state
                family |= cases.below(runner.pid)
                victims = workers_of(runner.pid, family)
                some = victims if kills == 0 else chance.sample(victims, min(len(victims), 1))  # the others' tasks go on
                kills += bool(some) and killed(*some)
                while kills and half < len(bodies):  # so there is something left to do after the first kill
                    log.append_events("default", bodies[half])
                    half += 1
        finally:
            runner.stop()
    cases.gone(family)
    assert kills >= 2
    with closing(SolutionReader(data)) as reader:
        assert reader.tally(query).count == MATCHES[EVENTS, IDS]["W1"]
    assert solutions_of(data) == solutions_of(alone(data, tmp_path / "alone"))


def alone(data: Path, elsewhere: Path) -> Path:
    """A copy of the log, solved by one engine in this process."""
    shutil.copytree(data / "log", elsewhere / "log")
    runner = InProcessRunner(elsewhere)
    runner.start()
    try:
        cases.reached(elsewhere, cases.head_of(data), 120, lambda: runner.state)
    finally:
        runner.stop()
    return elsewhere


def solutions_of(data: Path) -> pa.Table:
    with closing(SolutionReader(data)) as reader:
        return pa.Table.from_batches(
            [batch.set_column(0, "query", batch.column(0).dictionary_decode()) for batch in reader.emitted()]
        ).combine_chunks()


@pytest.mark.skipif(not CHAOS, reason="EPSPARQL_CHAOS says how many kills")
def test_chaos(tmp_path: Path) -> None:
    chance = Random()
    kills_on_spark(tmp_path, [chance.choice([*VICTIMS]) for _ in range(CHAOS - 2)], chance)
