"""This module finds solutions by Spark Structured Streaming: the server's job over the source of solutions, and its command.

The command runs this job, or the resident one.
"""

import argparse
import contextlib
import json
import os
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from pipeline.errors import Gone, SparkFailed
from pipeline.log import LogReader, LogWriter
from pipeline.object_store.backends import STORE
from pipeline.partition_count import SNAPSHOT_WEIGHT, settle
from pipeline.runners.spill import Spill
from pipeline.solutions.solution_log import SolutionWriter
from pipeline.spark.batch_stats import PROGRESS_S, Batch, tell_batch
from pipeline.spark.driver import Job, SparkDriver
from pipeline.spark.jvm import JVM_FLAGS, class_archive, java_home, spark_home
from pipeline.spark.long_running_task import ResidentJob
from pipeline.spark.sink import SolutionSink
from pipeline.spark.source import BATCH_ROWS, load
from pipeline.spark.spark_session import quietly, start_session

ARCHIVE_PATIENCE_S = 180.0


def start_job(
    spark: SparkSession, data: Path, sink: SolutionSink, *, buckets: int = 1, max_rows: int = BATCH_ROWS,
    snapshot_weight: int = SNAPSHOT_WEIGHT, to_end: bool = False,
) -> StreamingQuery:  # fmt: skip
    """Start the server's job over one data directory; with `to_end` it ends at the log's present head.

    Its checkpoint lies beside the sink's spill, and is as disposable.
    """
    options = {
        "data": str(data.absolute()),
        "from": str(sink.position),
        "form": "pieces",
        "maxRows": str(max_rows),
        "spill": str(sink.spill.directory),
    }
    options["stored"] = "false" if sink.spill.store is None else "true"
    writer = (
        load(spark, options | {"buckets": str(buckets), "snapshotWeight": str(snapshot_weight)})
        .writeStream.foreachBatch(sink)
        .option("checkpointLocation", str(sink.spill.directory / "checkpoint"))
    )
    return (writer.trigger(availableNow=True) if to_end else writer).start()


def run_to_end(
    spark: SparkSession, data_dirs: Sequence[Path | str], *, buckets: int | None = None, together: int = 2, max_rows: int = BATCH_ROWS
) -> None:
    """Bring the solution logs of data directories up to the heads of their input logs, `together` at a time.

    Raises: SparkFailed.
    """
    with ThreadPoolExecutor(together) as pool:
        for _ in pool.map(lambda data: _run_one(spark, Path(data), buckets, max_rows), data_dirs):
            pass


def _run_one(spark: SparkSession, data: Path, wanted: int | None, max_rows: int) -> None:
    with contextlib.closing(SolutionWriter(data)) as writer, tempfile.TemporaryDirectory(prefix="epsparql-job-", ignore_cleanup_errors=True) as spill:
        sink = SolutionSink(writer, Spill(Path(spill)), lambda _: None)
        try:
            buckets = settle(data, wanted)
            start_job(spark, data, sink, buckets=buckets, max_rows=max_rows, to_end=True).awaitTermination()
        except (PySparkException, Py4JError) as fault:
            raise SparkFailed(f"Spark did not get through {data}: {fault}") from None  # its text is in the JVM, which may not live as long
        finally:
            sink.close()


def cache_jvm_classes() -> None:
    """Keep the classes that the JVM loads in the cache, once per machine and user (about 20 s); later sessions start in half the time."""
    java, home = java_home(), spark_home()
    archive = class_archive(java, home, JVM_FLAGS)
    if archive.exists():
        return
    making = archive.with_suffix(f".{os.getpid()}.tmp")
    with tempfile.TemporaryDirectory(prefix="epsparql-warm-") as place:
        data = Path(place) / "data"
        with LogWriter(data, lambda: 0) as log:
            log.heartbeat()
        with start_session(java, "local[1]", None, None, [JVM_FLAGS, f"-XX:ArchiveClassesAtExit={making}"], ARCHIVE_PATIENCE_S) as spark:
            run_to_end(spark, [data])
    if making.exists():  # a Java without an archive of its own classes makes none
        making.rename(archive)


# ---------------------------------------------------------------- the runner's job
class MicroBatches:
    """Runs the server's job over one data directory, for a `SparkDriver`."""

    def __init__(self, data: Path, buckets: int | None = None, snapshot_weight: int = SNAPSHOT_WEIGHT, store: str | None = None) -> None:
        """Set up the job. Tasks read the `store`, which keeps the directory, if there is one."""
        self._data, self._buckets, self._snapshot_weight, self._store = data, buckets, snapshot_weight, store
        self._writer: SolutionWriter
        self._sink: SolutionSink
        self._query: StreamingQuery
        self._begun = 0

    def lock(self) -> SolutionWriter:
        self._writer = SolutionWriter(self._data)
        return self._writer

    def begin(self, spark: SparkSession, scratch: Path, committed: Callable[[int], None]) -> int:
        buckets, self._begun = settle(self._data, self._buckets), self._writer.position
        spill = Spill(scratch, self._store)
        spill.sweep()
        self._sink = SolutionSink(self._writer, spill, committed)
        self._query = start_job(spark, self._data, self._sink, buckets=buckets, snapshot_weight=self._snapshot_weight)
        return self._begun

    def work(self) -> None:
        self._query.awaitTermination()

    def tell(self, over: threading.Event) -> None:
        """Report Spark's last batch, once a second."""
        told = -1
        with contextlib.closing(LogReader(self._data)) as log:
            while not over.wait(PROGRESS_S):
                with contextlib.suppress(PySparkException, Py4JError, Gone):  # the job is ending; the log has no more of so old a batch
                    progress = self._query.lastProgress
                    if progress is not None and progress.batchId != told:
                        told = progress.batchId
                        tell_batch(self._data, batch_of(progress, self._begun, log))

    def end(self) -> None:
        self._sink.close()
        quietly(self._query.stop)


def batch_of(progress: StreamingQueryProgress, begun: int, log: LogReader) -> Batch:
    """Return a report of a batch. Spark knows its range, but for the start of the first, where the job was `begun`; the log knows what lies in it."""
    source = progress.sources[0]
    start, end = json.loads(source.startOffset), json.loads(source.endOffset)
    lo, hi = begun if start is None else start["position"], end["position"]
    return Batch(progress.batchId, hi - lo, log.rows(lo, hi), progress.batchDuration / 1000, max(log.head() - hi, 0))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m pipeline.spark", description="Runs the queries of a data directory on Spark until standard input ends."
    )
    parser.add_argument("--data", type=Path, required=True, help="the server's data directory")
    parser.add_argument("--master", default="local[*,4]", help="Spark master (default %(default)s; the 4 lets a failed task be retried)")
    parser.add_argument("--buckets", type=int, help="engines that share the events; default that of the data directory")
    parser.add_argument("--snapshot-weight", type=int, default=SNAPSHOT_WEIGHT, help="rows between two snapshots, an entry counting as a hundred")
    parser.add_argument("--low-latency", action="store_true", help="one task that stays, in place of micro-batches")
    parser.add_argument("--stored", action="store_true", help=f"tasks read the store that {STORE} names")
    options = parser.parse_args(arguments)
    return SparkDriver(options.data, options.master, _job(options)).run()


def _job(options: argparse.Namespace) -> Job:
    if options.low_latency:
        return ResidentJob(options.data, options.buckets, options.snapshot_weight)
    return MicroBatches(options.data, options.buckets, options.snapshot_weight, os.environ[STORE] if options.stored else None)
