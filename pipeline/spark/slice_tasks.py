"""This module evaluates slices of a log as ordinary Spark tasks, each a job of its own. It returns their solutions in
the order of the log.

Executors must see the log's directory.
"""

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from pyspark.sql import SparkSession

from engine.messages import Micros, Outcome, StateChange
from epsparql.deferred_methods import dataclass
from pipeline.runners.spill import Spill
from pipeline.slices.execution import SlicePiece, SliceWork, run_slice
from pipeline.spark.spark_session import quietly, session


@dataclass(frozen=True, slots=True)
class _Sent:
    """Holds a piece as a task sends it: the solutions of each engine as an Arrow stream, or the name of the object
    that holds them.
    """

    lo: int
    hi: int
    rows: int
    solutions: tuple[bytes | str, ...]
    changes: tuple[tuple[StateChange, ...], ...]
    times: tuple[Mapping[int, Micros], ...]


def solve_slices(works: Iterable[SliceWork]) -> Iterator[_Sent]:
    """Evaluate slices, in a task."""
    for work in works:
        spill = Spill(work.data)
        for piece in run_slice(work):
            if piece is not None:
                solutions = tuple(spill.send_solutions(piece.lo, piece.hi, outcome.solutions) for outcome in piece.outcomes)
                yield _Sent(piece.lo, piece.hi, piece.rows, solutions, tuple(outcome.changes for outcome in piece.outcomes), piece.times)


def run_on_spark(spark: SparkSession, works: Sequence[SliceWork], together: int) -> Generator[SlicePiece, None, None]:
    """Yield the pieces of all slices in order, with this many of them at work together.

    Raises what ends a task, after Spark has tried it again.
    """
    waiting: deque[Future[list[_Sent]]] = deque()
    pool = ThreadPoolExecutor(together, thread_name_prefix="slices")
    try:
        for work in works:
            waiting.append(pool.submit(_run_task, spark, work))
            if len(waiting) > 2 * together:
                yield from _receive(waiting.popleft().result(), Spill(work.data))
        while waiting:
            yield from _receive(waiting.popleft().result(), Spill(works[0].data))
    finally:
        for task in waiting:
            task.cancel()
        quietly(spark.sparkContext.cancelAllJobs)
        pool.shutdown()


def _run_task(spark: SparkSession, work: SliceWork) -> list[_Sent]:
    return spark.sparkContext.parallelize([work], 1).mapPartitions(solve_slices).collect()


def _receive(pieces: Sequence[_Sent], spill: Spill) -> Iterator[SlicePiece]:
    for sent in pieces:
        outcomes = tuple(Outcome(spill.receive_solutions(each), changes) for each, changes in zip(sent.solutions, sent.changes, strict=True))
        yield SlicePiece(sent.lo, sent.hi, sent.rows, outcomes, sent.times)


def run_with_session(master: str, works: Sequence[SliceWork], together: int, log: Path) -> Generator[SlicePiece, None, None]:
    """Evaluate slices on a session of their own. Spark's own output goes to the file `log`. Raises: JavaMissing."""
    with session(master, log=log) as spark:
        yield from run_on_spark(spark, works, together)
