"""This module runs a standalone Spark cluster on this machine: a master, and workers of one core each."""

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

from pipeline.spark.jvm import JVM_FLAGS, java_home, spark_environment, spark_home

_PATIENCE_S, _LOOK_S = 120.0, 0.1
Process = subprocess.Popen[bytes]


@contextmanager
def running_cluster(directory: Path, workers: int) -> Iterator[tuple[str, list[Process]]]:
    """Give the master's URL, and the workers, of 1 GB each.

    What they say goes to directories below this one. Raises: TimeoutError.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = int(server.getsockname()[1])
    url, flags = f"spark://127.0.0.1:{port}", ("--host", "127.0.0.1", "--webui-port", "0")
    with ExitStack() as stack:
        stack.enter_context(running_daemon(directory / "master", "org.apache.spark.deploy.master.Master", *flags, "--port", str(port)))
        _await_output(directory / "master", "Starting Spark master")
        found = [stack.enter_context(running_worker(directory / f"worker-{number}", url)) for number in range(workers)]
        for number in range(workers):
            _await_output(directory / f"worker-{number}", "Successfully registered with master")
        yield url, found


def running_worker(directory: Path, url: str) -> AbstractContextManager[Process]:
    """Run a worker of one core and 1 GB for the master at `url`."""
    flags = ("--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1g")
    return running_daemon(directory, "org.apache.spark.deploy.worker.Worker", *flags, url)


@contextmanager
def running_daemon(directory: Path, *command: str) -> Iterator[Process]:
    """Run a process of the cluster; it ends with whatever it has started."""
    directory.mkdir()
    with spark_environment(java_home(), spark_home()), (directory / "output").open("wb") as output:
        environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(directory)}
        environment |= {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": JVM_FLAGS, "SPARK_LAUNCHER_OPTS": JVM_FLAGS}
        spark_class = str(spark_home() / "bin" / "spark-class")
        process = subprocess.Popen([spark_class, *command], env=environment, stdout=output, stderr=output, start_new_session=True)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _await_output(directory: Path, pattern: str) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not re.search(pattern, text := (directory / "output").read_text(errors="replace")):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{directory.name} did not say {pattern!r} within {_PATIENCE_S:g} s: {text[-1000:]}")
        time.sleep(_LOOK_S)
