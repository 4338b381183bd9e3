"""A standalone Spark cluster of processes on this machine: the same solutions, also when a worker dies in the middle of the stream."""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from random import Random
from threading import Event, Thread

import pytest

from pipeline.java import java_home, spark_environment, spark_home
from pipeline.log import LogWriter
from pipeline.solutions import SolutionReader
from pipeline.supervisor import SparkRunner
from tests.pipeline import spark_cases as cases

pytestmark = pytest.mark.slow

MESSAGES = 400


@pytest.fixture(scope="module", autouse=True)
def _compiled(tmp_path_factory: pytest.TempPathFactory) -> None:
    cases.compile_kernel(tmp_path_factory)


@contextmanager
def daemon(directory: Path, *command: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A process of the cluster, with whatever it starts; what it says goes to `directory`."""
    directory.mkdir()
    with spark_environment(java_home(), spark_home()), (directory / "output").open("wb") as output:
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m", "SPARK_WORKER_DIR": str(directory)}
        spark_class = str(spark_home() / "bin" / "spark-class")
        process = subprocess.Popen([spark_class, *command], env=environment, stdout=output, stderr=output, start_new_session=True)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def said(directory: Path, pattern: str) -> bool:
    return re.search(pattern, (directory / "output").read_text(errors="replace")) is not None


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def cluster(directory: Path, workers: int) -> Iterator[tuple[str, list["subprocess.Popen[bytes]"]]]:
    """The master's URL, and the workers."""
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    flags = ("--host", "127.0.0.1", "--webui-port", "0")
    with ExitStack() as stack:
        stack.enter_context(daemon(directory / "master", "org.apache.spark.deploy.master.Master", *flags, "--port", str(port)))
        cases.eventually(lambda: said(directory / "master", "Starting Spark master"), 60, lambda: "no master")
        found = []
        for number in range(workers):
            command = ("org.apache.spark.deploy.worker.Worker", *flags, "--cores", "1", "--memory", "1g", url)
            found.append(stack.enter_context(daemon(directory / f"worker-{number}", *command)))
        for number in range(workers):
            place = directory / f"worker-{number}"
            cases.eventually(lambda place=place: said(place, "Successfully registered with master"), 60, lambda: "no worker")  # type: ignore[misc]
        yield url, found


def test_a_cluster_finds_the_same_when_a_worker_dies(tmp_path: Path) -> None:
    data, over = tmp_path / "data", Event()
    with cluster(tmp_path, 2) as (url, workers), LogWriter(data, cases.frozen_clock) as log:
        for name, text in {"pairs": cases.PAIRS, "rule": cases.RULE, "rises": cases.RISES, "means": cases.FORMS["means"]}.items():
            cases.register(log, name, text)
        runner = SparkRunner(data, url, heartbeat=log.heartbeat)
        runner.start()
        feeder = Thread(target=feed, args=(log, over))
        try:
            cases.eventually(lambda: runner.ready, 120, lambda: f"{runner.state}\n{(data / 'spark.log').read_text()[-3000:]}")
            assert any((tmp_path / f"worker-{k}").glob("app-*/*/epsparql_code/code/engine/run.py") for k in range(2)), "our code was brought"
            feeder.start()
            begun = position(data)
            cases.reached(data, begun + MESSAGES // 4, 120, lambda: runner.state)
            victim = busy(tmp_path)
            os.killpg(workers[victim].pid, signal.SIGKILL)  # its executor, and the engine in it, too
            assert feeder.is_alive(), "in the middle of the stream"
            feeder.join()
            cases.finish(log)
            cases.reached(data, log.head(), 120, lambda: f"{runner.state}\n{(data / 'spark.log').read_text()[-3000:]}")
        finally:
            over.set()
            runner.stop()
    solutions, changes = cases.found_in(data)
    assert {solution.query for solution in solutions} == {"pairs", "rule", "rises", "means"}
    assert (solutions, changes) == cases.undisturbed(data, tmp_path / "elsewhere")


def feed(log: LogWriter, over: Event) -> None:
    chance = Random(6)
    for number in range(MESSAGES):
        if over.wait(0.02):
            return
        log.append_events("default", cases.message(number, chance))


def busy(directory: Path) -> int:
    """A worker with an executor on it."""
    return next(number for number in range(2) if any((directory / f"worker-{number}").glob("app-*/*")))


def position(data: Path) -> int:
    with closing(SolutionReader(data)) as reader:
        return reader.position
