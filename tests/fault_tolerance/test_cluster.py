"""The demo on a standalone Spark cluster of processes on this machine: the same solutions, also when a worker dies in the middle of the stream."""

import os
import re
import signal
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from threading import Thread

import pytest

from bench.spark.cluster import Process, running_cluster, running_daemon
from pipeline.formats.body_parser import parse_frame
from pipeline.log import LogWriter, Queueing
from pipeline.object_store.backends import connect_store
from pipeline.replication.replicator import Replicator
from pipeline.runners.engine_report import read_report
from pipeline.solutions.solution_log import SolutionReader
from pipeline.spark.supervisor import SparkOptions, SparkRunner
from server.cli.demo_data import QUERIES, Instant, find, instants
from tests.soak import is_full
from tests.support import spark_cases as cases
from tests.support.s3_emulator import CREDENTIALS, served

pytestmark = pytest.mark.slow


def said(directory: Path, pattern: str) -> bool:
    return re.search(pattern, (directory / "output").read_text(errors="replace")) is not None


@pytest.mark.soak  # a worker with an engine dies in the next test, too
def test_the_demo_on_a_cluster_one_of_whose_workers_dies(tmp_path: Path) -> None:
    """Two partitions on three workers. The first half is undisturbed, then a worker dies while the second one comes in, and its task goes to the third.

    Prints how fast it was and how long it stood still.
    """
    data, year = tmp_path / "data", of_the_year()
    half = len(year) // 2
    with running_cluster(tmp_path, 3) as (url, workers), LogWriter(data, cases.frozen_clock) as log:
        for name, text in QUERIES.items():
            cases.register(log, name, text)
        commits: list[float] = []
        runner = SparkRunner(data, url, heartbeat=log.heartbeat, options=SparkOptions(partitions=2))
        runner.on_commit(lambda _: commits.append(time.monotonic()))
        runner.start()

        def state() -> str:
            return f"{runner.state}\n{(data / 'spark.log').read_text()[-3000:]}"

        try:
            cases.eventually(lambda: runner.ready, 180, state)
            assert any((tmp_path / f"worker-{k}").glob("app-*/*/epsparql_code/code/engine/engine.py") for k in range(3)), "our code was brought"
            began = time.monotonic()
            feed(log, year[:half])
            cases.reached(data, log.head(), 180, state)
            rate = sum(instant.readings for instant in year[:half]) / (time.monotonic() - began)
            feeder = Thread(target=feed, args=(log, year[half:]))
            feeder.start()
            cases.reached(data, position(data) + half // 10, 120, state)
            killed, attempts = time.monotonic(), claims(data)
            os.killpg(workers[busy(workers)].pid, signal.SIGKILL)  # its executor, and the engine in it, too
            feeder.join()
            cases.eventually(lambda: claims(data) != attempts, 120, state)  # what follows needs the task's next attempt
            cases.reached(data, cases.finish(log) + 1, 180, state)
        finally:
            runner.stop()
    after = [killed, *(at for at in commits if at > killed)]
    pause = max(later - earlier for earlier, later in pairwise(after))
    print(f"\ncluster: {rate:.0f} readings/s undisturbed, {pause:.1f} s without a commit after the kill")
    found = cases.found_in(data)
    assert found == cases.undisturbed(data, tmp_path / "elsewhere")
    if is_full():
        told = Counter(solution.query for solution in found[0])
        assert (told["blizzard"], told["heat"], told["wind"]) == (16, 1_391 + 502 + 16, 27_013)


def test_a_cluster_whose_machines_share_a_store_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readings of the demo, in two partitions, with snapshots; the worker with the engines dies. Tasks know nothing but the store's URI.

    Spark's processes know each other by a secret, as those of compose.yaml do. A worker with another secret is not let in.
    """
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SPARK_CONF_DIR", str(authenticated(tmp_path / "conf", "one")))
    data, year = tmp_path / "data", of_the_year()
    half = len(year) // 2
    (tmp_path / "store").mkdir()
    with served(tmp_path / "store") as store, running_cluster(tmp_path, 2) as (url, workers):
        uri = store.bucket().uri("p")
        keeper = Replicator(data, connect_store(uri), away=True)
        with LogWriter(data, cases.frozen_clock, keep=keeper.write_log) as log:
            keeper.start()
            for name, text in QUERIES.items():
                cases.register(log, name, text)
            chosen = ("spark.executor.memory=700m",)
            runner = SparkRunner(
                data, url, heartbeat=log.heartbeat, options=SparkOptions(partitions=2, snapshot_weight=10_000, store=uri, conf=chosen)
            )
            runner.start()

            def state() -> str:
                return f"{runner.state}\n{(data / 'spark.log').read_text()[-3000:]}"

            try:
                cases.eventually(lambda: runner.ready, 180, state)
                refuse_stranger(tmp_path, monkeypatch, url)
                feed(log, year[:half])
                cases.reached(data, log.head(), 180, state)
                cases.eventually(lambda: any(name.endswith(".snapshot") for name in connect_store(uri).names("snapshots")), 60, state)
                assert not list(data.glob("snapshots/*.snapshot")), "the engines are elsewhere"
                executors = [args for worker in workers for args in cases.below(worker.pid).values() if "CoarseGrainedExecutorBackend" in args]
                assert executors
                assert all("-Xmx700M" in args and "-Dspark.authenticate=true" in args for args in executors)
                assert not any(SECRET in args for _, args in cases.processes().values()), "a command line is seen by all users"
                os.killpg(workers[busy(workers)].pid, signal.SIGKILL)
                feed(log, year[half:])
                cases.reached(data, cases.finish(log) + 1, 180, state)
                cases.eventually(lambda: read_report(data) is not None, 30, state)
            finally:
                runner.stop()
        keeper.stop()
    assert cases.found_in(data) == cases.undisturbed(data, tmp_path / "elsewhere")


def refuse_stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """See that a worker with another secret does not register."""
    with monkeypatch.context() as patch:
        patch.setenv("SPARK_CONF_DIR", str(authenticated(tmp_path / "other", "another")))
        with running_daemon(tmp_path / "stranger", "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--webui-port", "0", url):
            cases.eventually(lambda: said(tmp_path / "stranger", "(?i)authenticat|SaslException|digest"), 60, lambda: "no refusal")
            assert not said(tmp_path / "stranger", "Successfully registered")


def claims(data: Path) -> list[str]:
    """Return which attempt at each partition's task is at work."""
    return [path.read_text() for path in sorted((data / "spark").glob("claim-?"))]


def of_the_year() -> Sequence[Instant]:
    """Return the demo's readings: an eighth, in `make soak` the whole year."""
    year = instants(find())
    return year if is_full() else year[: len(year) // 8]


SECRET = "5e4d0b"


def authenticated(directory: Path, kind: str) -> Path:
    """A directory for SPARK_CONF_DIR with the file that compose.yaml asks for."""
    directory.mkdir()
    lines = ("spark.authenticate true", "spark.network.crypto.enabled true", f"spark.authenticate.secret {SECRET}{kind}")
    (directory / "spark-defaults.conf").write_text("\n".join(lines) + "\n")
    return directory


def feed(log: LogWriter, year: Sequence[Instant]) -> None:
    written = [log.submit("default", parse_frame(instant.frame.encode(), arrived=0)[0], queueing=Queueing.WAIT) for instant in year]
    written[-1].result()


def busy(workers: Sequence[Process]) -> int:
    """The worker with the engine on it."""
    table = cases.processes()
    return next(
        number
        for number, worker in enumerate(workers)
        if any(
            table[table[pid][0]][1] == args
            for pid, args in cases.below(worker.pid, table).items()
            if args.endswith("pipeline.spark.worker_daemon pyspark.worker")
        )
    )


def position(data: Path) -> int:
    with closing(SolutionReader(data)) as reader:
        return reader.position
