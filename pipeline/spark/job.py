"""This module is the command that runs the server's job on Spark.

It also runs the job for callers with a session, who end it at the log's end.
"""

import argparse
import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from pyspark.sql import SparkSession

from pipeline.errors import SparkFailed
from pipeline.log import LogReader, LogWriter
from pipeline.object_store.backends import STORE
from pipeline.partition_count import SNAPSHOT_WEIGHT, recorded
from pipeline.solutions.solution_log import SolutionReader
from pipeline.spark.driver import Job, SparkDriver, working
from pipeline.spark.jvm import JVM_FLAGS, class_archive, java_home, spark_home
from pipeline.spark.long_running_task import ResidentJob, count_slots
from pipeline.spark.short_tasks import ShortTasks
from pipeline.spark.spark_session import start_session

ARCHIVE_PATIENCE_S = 180.0
_LOOK_S = 0.5


def run_to_end(spark: SparkSession, data_dirs: Sequence[Path | str], *, partitions: int | None = None, together: int = 2) -> None:
    """Bring the solution logs of data directories up to the heads of their input logs, at most `together` at a time.

    Each takes a core of Spark's for each of its partitions. Raises: SparkFailed.
    """
    most = max((partitions or recorded(data) or 1 for data in data_dirs), default=1)
    with ThreadPoolExecutor(max(1, min(together, count_slots(spark) // most))) as pool:
        for _ in pool.map(lambda data: _run_one(spark, Path(data), partitions), data_dirs):
            pass


def _run_one(spark: SparkSession, data: Path, partitions: int | None) -> None:
    with (
        closing(LogReader(data)) as log,
        closing(SolutionReader(data)) as solutions,
        tempfile.TemporaryDirectory(prefix="epsparql-job-") as scratch,
        working(ResidentJob(data, partitions), spark, Path(scratch)) as failure,
    ):
        head = log.head()
        while solutions.wait(head - 1, _LOOK_S) < head:
            if (fault := failure()) is not None:
                raise SparkFailed(f"Spark did not get through {data}: {fault}") from None  # its text is in the JVM, which may not live as long


def cache_jvm_classes() -> None:
    """Keep the classes that the JVM loads in the cache, once per machine and user (about 20 s); later sessions start
    in half the time.
    """
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


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m pipeline.spark", description="Runs the queries of a data directory on Spark until standard input ends."
    )
    parser.add_argument("--data", type=Path, required=True, help="the server's data directory")
    parser.add_argument("--master", default="local[*,4]", help="Spark master (default %(default)s; the 4 lets a failed task be retried)")
    parser.add_argument("--partitions", type=int, help="engines that share the events; default that of the data directory")
    parser.add_argument("--snapshot-weight", type=int, default=SNAPSHOT_WEIGHT, help="rows between two snapshots, an entry counting as a hundred")
    parser.add_argument("--stored", action="store_true", help=f"tasks read the store that {STORE} names")
    options = parser.parse_args(arguments)
    return SparkDriver(options.data, options.master, _job(options)).run()


def _job(options: argparse.Namespace) -> Job:
    if options.stored:
        return ShortTasks(options.data, os.environ[STORE], options.partitions, options.snapshot_weight)
    return ResidentJob(options.data, options.partitions, options.snapshot_weight)
