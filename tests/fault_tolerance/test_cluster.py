"""The demo on a standalone Spark cluster of processes on this machine: the same solutions, also when a worker dies in
the middle of the stream.
"""

import os
import re
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.spark.cluster import Process, running_cluster, running_daemon
from pipeline.formats.body_parser import parse_frame
from pipeline.log import LogWriter, Queueing
from pipeline.object_store.backends import connect_store
from pipeline.replication.replicator import Replicator
from pipeline.runners.engine_report import read_report
from pipeline.spark.jvm import JVM_FLAGS
from pipeline.spark.supervisor import SparkOptions, SparkRunner
from server.cli.demo_data import QUERIES, Instant, find, instants
from tests.soak import is_full
from tests.support import spark_cases as cases
from tests.support.s3_emulator import CREDENTIALS, served

pytestmark = pytest.mark.slow


def said(directory: Path, pattern: str) -> bool:
    return re.search(pattern, (directory / "output").read_text(errors="replace")) is not None


def test_a_cluster_whose_machines_share_a_store_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readings of the demo, in two partitions, with snapshots; the worker with the engines dies. Tasks know nothing
    but the store's URI.

    Spark's processes know each other by a secret, as those of compose.yaml do. A worker with another secret is not
    let in.
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
            chosen = ("spark.executor.memory=700m", f"spark.executor.extraJavaOptions={JVM_FLAGS}")
            runner = SparkRunner(
                data, url, heartbeat=log.heartbeat, options=SparkOptions(partitions=2, snapshot_weight=10_000, store=uri, conf=chosen)
            )
            runner.start()

            def state() -> str:
                return f"{runner.state}\n{(data / 'spark.log').read_text()[-3000:]}"

            try:
                cases.eventually(lambda: runner.ready, 180, state)
                assert any((tmp_path / f"worker-{k}").glob("app-*/*/epsparql_code/code/engine/engine.py") for k in range(2)), "our code was brought"
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
