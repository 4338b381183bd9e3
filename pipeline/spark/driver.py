"""This module is the process that has a Spark session and a job on it for the server."""

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Protocol

from pyspark.sql import SparkSession

from pipeline.errors import PartitionsFixed, SparkFailed
from pipeline.log.lock import take_when_free
from pipeline.spark.jvm import clear
from pipeline.spark.spark_conf import SPARK_CONF, chosen_settings
from pipeline.spark.spark_session import STOP_PATIENCE_S, session
from pipeline.spark.worker_daemon import HIDDEN


class Lock(Protocol):
    def close(self) -> None: ...


class Job(Protocol):
    """A job brings the solutions of a data directory up to its log and keeps them there."""

    def lock(self) -> Lock:
        """Take the lock that keeps other processes from doing the same. Raises: Locked."""

    def begin(self, spark: SparkSession, scratch: Path, committed: Callable[[int], None]) -> int:
        """Start, and return the position up to which solutions are there; those beyond are told to `committed`.

        Raises: SparkFailed where Spark as it is cannot do the job; PartitionsFixed.
        """

    def work(self) -> None:
        """Return, or raise the reason, when the job has ended."""

    def tell(self, over: threading.Event) -> None:
        """Report progress until it is over."""

    def end(self) -> None: ...


@contextlib.contextmanager
def working(job: Job, spark: SparkSession, scratch: Path) -> Iterator[Callable[[], Exception | None]]:
    """Keep a job at work for as long as the block runs, for a caller that has a session already.

    The function that is given tells why the job has ended, if it has.
    """
    failures: list[Exception] = []

    def work() -> None:
        try:
            job.work()
        except Exception as fault:  # noqa: BLE001  # the block may raise it
            failures.append(fault)

    with contextlib.closing(job.lock()):
        job.begin(spark, scratch, lambda _: None)
        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield lambda: failures[0] if failures else None
        finally:
            job.end()
            thread.join()


class SparkDriver:
    """Runs a job in a process of its own, which lives as long as its standard input."""

    def __init__(self, data: Path, master: str, job: Job) -> None:
        self._data, self._master, self._job = data, master, job
        self._over = threading.Event()
        self._failure: str | None = None

    def run(self) -> int:
        """Run the job. Return 0 after an orderly stop, 1 if the job ended by itself."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._asked)
        threading.Thread(target=self._watch_parent, daemon=True).start()
        lock = take_when_free(self._job.lock, self._over)
        if lock is None:
            return 0
        with contextlib.closing(lock):
            scratch = self._data / "spark"
            clear(scratch)  # a killed runner may have left it
            scratch.mkdir(parents=True)
            try:
                self._serve(scratch)
            finally:
                clear(scratch)
        if self._failure is not None:
            print(self._failure, file=sys.stderr)
        return 0 if self._failure is None else 1

    def _serve(self, scratch: Path) -> None:
        chosen = {f"spark.executorEnv.{HIDDEN}": "pandas"} | chosen_settings(os.environ.get(SPARK_CONF, ""))
        with session(self._master, scratch, self._data / "spark.log", chosen=chosen) as spark:
            try:
                position = self._job.begin(spark, scratch, self._committed)
            except (SparkFailed, PartitionsFixed) as fault:  # another start would change nothing
                self._failure = str(fault)
                self._say({"refused": self._failure})
                return
            for step in (self._job.work, lambda: self._job.tell(self._over)):
                threading.Thread(target=self._watch, args=(step,), daemon=True).start()
            self._say({"state": "ready", "position": position})
            self._over.wait()
            self._job.end()

    def _committed(self, position: int) -> None:
        self._say({"position": position})

    def _say(self, message: dict[str, object]) -> None:
        try:
            print(json.dumps(message), flush=True)
        except OSError:  # nobody listens any more
            self._over.set()

    def _watch(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as fault:  # noqa: BLE001  # whatever ended the job is reported, and the process ends
            if not self._over.is_set():
                self._failure = f"the Spark job ended: {type(fault).__name__}: {fault}"
        else:
            if not self._over.is_set():
                self._failure = "the Spark job ended"
        self._over.set()

    def _watch_parent(self) -> None:
        """End when standard input does, which ends with the parent, however the parent ends.

        Start-up and stop can hang in the JVM: then the process ends all the same, and the JVM with it.
        """
        with contextlib.suppress(OSError, ValueError):
            while os.read(0, 4096):
                pass
        self._over.set()
        time.sleep(STOP_PATIENCE_S)
        os._exit(3)

    def _asked(self, _: int, __: FrameType | None) -> None:
        self._over.set()
