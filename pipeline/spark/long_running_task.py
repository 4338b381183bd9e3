"""This module is the server's job on Spark: one task that stays, follows the log and writes the solutions (docs/decisions/0032-resident.md).

It is the in-process runner's loop in another home. Spark finds a place for it and tries it again when it dies; the driver tells what it commits.
"""

import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pipeline.errors import Superseded
from pipeline.log import LogReader
from pipeline.log.lock import DirectoryLock, take_when_free
from pipeline.partition_count import SNAPSHOT_WEIGHT
from pipeline.solutions.solution_log import SolutionReader
from pipeline.spark.batch_stats import BatchTeller
from pipeline.spark.spark_session import quietly
from pipeline.spark.task_lease import Claim, Tenure

_WAKE_S = 0.2
_SAVING_S = 5.0  # the whole process has ten seconds for its end
LOCK = "runner.lock"


# ---------------------------------------------------------------- in the task
@dataclass(frozen=True, slots=True)
class Residence:
    """Holds what a task is sent."""

    data: Path
    claim: Path
    run: str
    buckets: int | None
    snapshot_weight: int


def reside(residence: Residence) -> None:
    """Follow the log until the driver or a later attempt says that it is over.

    Raises: Superseded, also where the worker has lost the process that looks after it; whatever ends the loop.
    """
    context = TaskContext.get()
    assert context is not None
    claim = Claim(residence.claim, residence.run, context.taskAttemptId())
    tenure = Tenure(claim)
    if claim.take_lease():
        _follow(residence, claim, tenure)
    if claim.offered():
        raise Superseded(
            f"attempt {claim.attempt} ended because " + ("its worker was orphaned" if tenure.orphaned else "a later one has taken its place")
        )


def _follow(residence: Residence, claim: Claim, tenure: Tenure) -> None:
    from pipeline.runners.log_follower import Callbacks, Following  # the driver has no use for the engine and its second of import

    def check() -> None:
        if not claim.is_held() and claim.offered():
            raise Superseded(f"attempt {claim.attempt} commits no more: a later one has taken its place")

    with closing(LogReader(residence.data)) as log, closing(LogReader(residence.data)) as counted:
        telling = BatchTeller(residence.data, counted)
        calls = Callbacks(telling.committed, check, telling.tell)
        following = Following(residence.data, log, tenure, calls, buckets=residence.buckets, snapshot_weight=residence.snapshot_weight)
        take_when_free(following.open, tenure)
        following.run()


# ---------------------------------------------------------------- in the driver
class ResidentJob:
    """Keeps a task at work, for a `Runner`.

    A task that has got somewhere is always started again, so that rare deaths of its worker do not add up to the job's.
    """

    def __init__(self, data: Path, buckets: int | None = None, snapshot_weight: int = SNAPSHOT_WEIGHT) -> None:
        self._data, self._buckets, self._snapshot_weight = data.absolute(), buckets, snapshot_weight
        self._solutions = SolutionReader(data)
        self._ended = threading.Event()
        self._committed: Callable[[int], None]
        self._claim: Claim
        self._spark: SparkSession
        self._position = 0

    def lock(self) -> DirectoryLock:
        """Take the driver's lock; the solution log's own lock is the task's."""
        return DirectoryLock(self._data / LOCK)

    def begin(self, spark: SparkSession, scratch: Path, committed: Callable[[int], None]) -> int:
        self._spark, self._committed, self._position = spark, committed, self._solutions.position
        self._claim = Claim(scratch.absolute() / "claim", uuid4().hex)
        self._claim.offer()
        return self._position

    def work(self) -> None:
        residence = Residence(self._data, self._claim.path, self._claim.run, self._buckets, self._snapshot_weight)
        try:
            while self._claim.offered():
                begun = self._solutions.position
                try:
                    self._spark.sparkContext.parallelize([residence], 1).foreach(reside)
                except (PySparkException, Py4JError):
                    if self._solutions.position == begun:
                        raise
        finally:
            self._ended.set()

    def tell(self, over: threading.Event) -> None:
        while not over.is_set():
            reached = self._solutions.wait(self._position, _WAKE_S)
            if reached > self._position:
                self._position = reached
                self._committed(reached)

    def end(self) -> None:
        """End the task. The engines are saved if that does not take too long."""
        self._claim.withdraw()
        if not self._ended.wait(_SAVING_S):
            quietly(self._spark.sparkContext.cancelAllJobs)
        self._solutions.close()
