"""This module is the server's job on Spark: tasks that stay, one for each partition, which follow the log
(docs/decisions/0061-a-task-for-each-partition.md).

A task runs the in-process runner's loop in another home. Spark finds a place for each task and tries it again when it
dies. A single task writes the solution log itself, and the driver tells what it commits. Of several, each writes its
partition's log, and the driver merges these.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import closing
from pathlib import Path
from uuid import uuid4

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from engine.partitioning import PartitionShare
from epsparql.deferred_methods import dataclass
from pipeline.errors import SparkFailed, Superseded
from pipeline.log import LogReader
from pipeline.log.lock import DirectoryLock, take_when_free
from pipeline.partition_count import SNAPSHOT_WEIGHT, recorded
from pipeline.runners.renumbering import settle
from pipeline.solutions.partition_log import PartitionLogs, PartitionReader
from pipeline.solutions.solution_log import SolutionReader, SolutionWriter
from pipeline.spark.batch_stats import BatchTeller
from pipeline.spark.spark_session import quietly
from pipeline.spark.task_lease import Claim, Tenure

_WAKE_S = 0.2
_SAVING_S = 5.0  # the whole process has ten seconds for its end
_SLOTS_PATIENCE_S = 60.0
LOCK = "runner.lock"


# ---------------------------------------------------------------- in the task
@dataclass(frozen=True, slots=True)
class Residence:
    """Holds what a task is sent. `logs` are for one of several partitions."""

    data: Path
    claim: Path
    run: str
    share: PartitionShare
    logs: PartitionLogs
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
    from pipeline.runners.engine_host import block_rows
    from pipeline.runners.log_follower import Callbacks, Following, PartitionWork, WholeWork  # the engine, of which a single task's driver has no use

    def check() -> None:
        if not claim.is_held() and claim.offered():
            raise Superseded(f"attempt {claim.attempt} commits no more: a later one has taken its place")

    data, weight = residence.data, residence.snapshot_weight
    with closing(LogReader(data, sliced=not residence.share.whole)) as log, closing(LogReader(data)) as counted:
        if residence.share.whole:
            telling = BatchTeller(data, counted)
            following = Following(WholeWork(data, log, 1, weight), tenure, Callbacks(telling.committed, check, telling.tell))
        else:
            work = PartitionWork(data, log, residence.share, residence.logs, weight)
            following = Following(work, tenure, Callbacks(lambda *_: None, check), block_rows(residence.share))
        take_when_free(following.open, tenure)
        following.run()


# ---------------------------------------------------------------- in the driver
class ResidentJob:
    """Keeps a task at work for each partition, for a `SparkDriver`, and merges what several find.

    A task that has got somewhere is always started again, so that rare deaths of its worker do not add up to the job's.
    """

    def __init__(self, data: Path, partitions: int | None = None, snapshot_weight: int = SNAPSHOT_WEIGHT) -> None:
        self._data, self._partitions, self._snapshot_weight = data.absolute(), partitions, snapshot_weight
        self._solutions = SolutionReader(data)
        self._ended, self._unwanted = threading.Event(), threading.Event()
        self._committed: Callable[[int], None]
        self._residences: list[Residence] = []
        self._spark: SparkSession
        self._position = 0

    def lock(self) -> DirectoryLock:
        """Take the driver's lock; the solution log's own lock is for the process that writes it."""
        return DirectoryLock(self._data / LOCK)

    def begin(self, spark: SparkSession, scratch: Path, committed: Callable[[int], None]) -> int:
        """Offer a claim for each partition. Raises: SparkFailed where Spark has fewer slots than there are partitions."""
        _check_slots(spark, self._partitions or recorded(self._data) or 1)
        number = settle(self._data, self._partitions, self._secure)
        self._spark, self._committed, self._position = spark, committed, self._solutions.position
        run, place = uuid4().hex, scratch.absolute()
        logs = PartitionLogs(place / run, self._position)
        self._residences = [
            Residence(self._data, place / f"claim-{partition}", run, PartitionShare(partition, number), logs, self._snapshot_weight)
            for partition in range(number)
        ]
        for residence in self._residences:
            Claim(residence.claim, run).offer()
        return self._position

    def _secure(self) -> int:
        """Make the solutions durable once an earlier task writes no more, and return their position."""
        writer = take_when_free(lambda: SolutionWriter(self._data), self._unwanted)
        if writer is None:
            raise Superseded("the job was ended before it began")
        with closing(writer):
            return writer.sync()

    def work(self) -> None:
        """Return when the job was ended. Raises: what ended a task or the merge; the others end with it."""
        steps: list[Callable[[], None]] = [lambda residence=residence: self._rerun_task(residence) for residence in self._residences]  # type: ignore[misc]
        if len(self._residences) > 1:
            steps.append(self._merge)
        with ThreadPoolExecutor(len(steps), thread_name_prefix="partition") as pool:
            running = [pool.submit(step) for step in steps]
            try:
                for ended in wait(running, return_when=FIRST_COMPLETED).done:
                    ended.result()
            finally:
                self._withdraw()
                if wait(running, _SAVING_S).not_done:
                    quietly(self._spark.sparkContext.cancelAllJobs)
        self._ended.set()

    def tell(self, over: threading.Event) -> None:
        if len(self._residences) > 1:  # the merge tells by itself
            over.wait()
        while not over.is_set():
            reached = self._solutions.wait(self._position, _WAKE_S)
            if reached > self._position:
                self._position = reached
                self._committed(reached)

    def end(self) -> None:
        """End the tasks. The engines are saved if that does not take too long."""
        self._withdraw()
        if not self._ended.wait(_SAVING_S):
            quietly(self._spark.sparkContext.cancelAllJobs)
        self._solutions.close()

    def _withdraw(self) -> None:
        self._unwanted.set()
        for residence in self._residences:
            Claim(residence.claim, residence.run).withdraw()

    def _rerun_task(self, residence: Residence) -> None:
        """Run a job of one task, again and again until the task is no longer wanted.

        Raises: what ended a task that got nowhere.
        """
        partition = PartitionReader(residence.logs, residence.share.partition)
        reader = self._solutions if residence.share.whole else partition
        with closing(partition):
            while not self._unwanted.is_set():
                begun = reader.position
                try:
                    self._spark.sparkContext.parallelize([residence], 1).foreach(reside)
                except (PySparkException, Py4JError):
                    if reader.position == begun:
                        raise

    def _merge(self) -> None:
        """Merge what the partitions found, as they get on, until that is no longer wanted."""
        from pipeline.runners.log_follower import Callbacks, Following
        from pipeline.runners.merge import MergeWork

        with closing(LogReader(self._data)) as counted:
            telling = BatchTeller(self._data, counted)

            def committed(lo: int, hi: int, seconds: float) -> None:
                telling.committed(lo, hi, seconds)
                self._committed(hi)

            work = MergeWork(self._data, self._residences[0].logs, len(self._residences))
            following = Following(work, self._unwanted, Callbacks(committed, idle=telling.tell))
            take_when_free(following.open, self._unwanted)
            following.run()


def count_slots(spark: SparkSession) -> int:
    """Return how many tasks Spark can run at once, on the executors that are there now."""
    context = spark.sparkContext._jsc.sc()  # pyspark itself does not offer it
    return int(context.maxNumConcurrentTasks(context.resourceProfileManager().defaultResourceProfile()))


def _check_slots(spark: SparkSession, number: int) -> None:
    """Refuse more partitions than can run at once: those that ran would wait for the others for ever.

    Raises: SparkFailed.
    """
    if number == 1:
        return
    master = str(spark.sparkContext.master)
    deadline = time.monotonic() + (0.0 if master.startswith("local") else _SLOTS_PATIENCE_S)  # executors take a while to come
    while (slots := count_slots(spark)) < number:
        if time.monotonic() >= deadline:
            raise SparkFailed(
                f"{number} partitions need {number} cores of Spark at once, and {master} gives {slots}: "
                f"add cores, or start with --partitions {max(slots, 1)}"
            )
        time.sleep(_WAKE_S)
