"""This module finds solutions by one short task of Spark's after the other, where the machines share a store alone
(docs/decisions/0061-a-task-for-each-partition.md).

A task there cannot write the solution log, which is the driver's. So each task takes the next entries, and returns
what they bring.
"""

import gc
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import cache
from pathlib import Path

from pyspark import SparkFiles
from pyspark.sql import SparkSession

from engine.messages import StateChange
from epsparql.deferred_methods import dataclass
from pipeline.log import LogReader
from pipeline.partition_count import SNAPSHOT_WEIGHT
from pipeline.runners.host_messages import Elsewhere
from pipeline.runners.renumbering import settle
from pipeline.runners.spill import Spill
from pipeline.solutions.solution_log import SolutionReader, SolutionWriter
from pipeline.spark.batch_stats import BatchTeller
from pipeline.spark.spark_session import quietly

TASK_ROWS = 250_000
"""This bounds a task's time and the memory of its result."""
_WAKE_S = 0.2
_WARM_S = 15.0
"""After this time without entries a task takes none: Spark ends workers that were idle for a minute, and their
engines with them.
"""


# ---------------------------------------------------------------- in the task
@dataclass(frozen=True, slots=True)
class Range:
    """Describes the work of one task: the entries [lo, hi) of the log in a store, for all partitions.

    `ended` has the changes of state that the solution log holds.
    """

    store: str
    partitions: int
    snapshot_weight: int
    lo: int
    hi: int
    ended: tuple[StateChange, ...]


@dataclass(frozen=True, slots=True)
class RangeSolutions:
    """Holds what the entries [lo, hi) brought: the solutions as an Arrow stream, or the name of the object that holds
    them.
    """

    lo: int
    hi: int
    solutions: bytes | str
    changes: tuple[StateChange, ...]


def solve_ranges(ranges: Iterable[Range]) -> Iterator[RangeSolutions]:
    """Run the engines here. Worker processes outlive tasks, and with them the engines of `host_of`."""
    from pipeline.runners.remote_engines import host_of  # the driver has no use for the engine and its second of import

    for part in ranges:
        host = host_of(Elsewhere(part.store, Path(SparkFiles.getRootDirectory()), part.ended), part.partitions, part.snapshot_weight)
        if host.unswept:  # the driver made the solutions before `lo` durable before it planned this range
            host.sweep(part.lo)
        for advance in host.run(part.lo, part.hi):
            solutions = Spill(part.store).send_solutions(advance.lo, advance.hi, advance.outcome.solutions)
            yield RangeSolutions(advance.lo, advance.hi, solutions, tuple(advance.outcome.changes))
    keep_for_good()


@cache
def keep_for_good() -> None:
    """Take the objects that are there now, modules and compiled code above all, from the garbage collector.

    Spark lets the collector look through everything after each task.
    """
    gc.collect()
    gc.freeze()


# ---------------------------------------------------------------- in the driver
class ShortTasks:
    """Brings the solution log up to the log, a range of entries at a time, for a `SparkDriver`."""

    def __init__(self, data: Path, store: str, partitions: int | None = None, snapshot_weight: int = SNAPSHOT_WEIGHT) -> None:
        """Set up the job over a data directory that the `store` keeps."""
        self._data, self._store, self._partitions, self._snapshot_weight = data, store, partitions, snapshot_weight
        self._spill = Spill(store)
        self._writer: SolutionWriter
        self._committed: Callable[[int], None]
        self._spark: SparkSession
        self._number = 1
        self._over, self._committing = threading.Event(), threading.Lock()

    def lock(self) -> SolutionWriter:
        self._writer = SolutionWriter(self._data)
        return self._writer

    def begin(self, spark: SparkSession, _: Path, committed: Callable[[int], None]) -> int:
        self._spark, self._committed = spark, committed
        self._number = settle(self._data, self._partitions, self._writer.sync, away=True)
        self._spill.sweep()
        return self._writer.position

    def work(self) -> None:
        with closing(LogReader(self._data)) as log, closing(LogReader(self._data)) as counted:
            teller, warm_s = BatchTeller(self._data, counted), time.monotonic()
            while not self._over.is_set():
                lo = self._writer.position
                if log.wait(lo, _WAKE_S) > lo:
                    self._commit_range(lo, log.advance(lo, TASK_ROWS), teller)
                elif time.monotonic() - warm_s >= _WARM_S:
                    self._run_task(lo, lo)
                else:
                    teller.tell()
                    continue
                warm_s = time.monotonic()

    def tell(self, over: threading.Event) -> None:
        """Wait until it is over: `work` reports by itself."""
        over.wait()

    def end(self) -> None:
        """End. After this nothing is written any more, whatever Spark still does."""
        with self._committing:
            self._over.set()
        quietly(self._spark.sparkContext.cancelAllJobs)

    def _commit_range(self, lo: int, hi: int, teller: BatchTeller) -> None:
        began = time.perf_counter()
        pieces = self._run_task(lo, hi)
        with self._committing:
            if self._over.is_set():
                return
            for piece in pieces:
                self._writer.commit(piece.lo, piece.hi, self._spill.receive_solutions(piece.solutions), piece.changes)
            self._writer.sync()  # the next task may remove the snapshots that could bring them back
            if any(isinstance(piece.solutions, str) for piece in pieces):
                self._spill.sweep(hi)
        self._committed(hi)
        teller.committed(lo, hi, time.perf_counter() - began)

    def _run_task(self, lo: int, hi: int) -> list[RangeSolutions]:
        part = Range(self._store, self._number, self._snapshot_weight, lo, hi, self._ended())
        return self._spark.sparkContext.parallelize([part], 1).mapPartitions(solve_ranges).collect()

    def _ended(self) -> tuple[StateChange, ...]:
        """Return the changes of state, which engines of several partitions need and cannot read there."""
        if self._number == 1:
            return ()
        with closing(SolutionReader(self._data)) as solutions:
            return solutions.changes
