"""Solutions on Spark Structured Streaming: the server's job over the source of solutions, and the process that it runs in."""

import argparse
import contextlib
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from pipeline.batches import Batch, tell_batch
from pipeline.errors import Locked, SparkFailed
from pipeline.java import JVM_FLAGS, class_archive, clear, java_home, spark_home
from pipeline.log import LogReader, LogWriter
from pipeline.session import STOP_PATIENCE_S, quietly, session, started
from pipeline.sharing import SNAPSHOT_WEIGHT, settle
from pipeline.sink import SolutionSink
from pipeline.solutions import SolutionWriter
from pipeline.solve import solve
from pipeline.source import BATCH_ROWS, SolutionSource, load, solutions_frame

LOCK_PATIENCE_S = 30.0  # a killed server's runner goes within seconds
ARCHIVE_PATIENCE_S = 180.0
PROGRESS_S = 1.0


def start_job(
    spark: SparkSession, data: Path, sink: SolutionSink, position: int, *, buckets: int = 1, max_rows: int = BATCH_ROWS,
    snapshot_weight: int = SNAPSHOT_WEIGHT, to_end: bool = False,
) -> StreamingQuery:  # fmt: skip
    """The server's job over one data directory; with `to_end` it ends at the log's present head.

    Its checkpoint lies beside the sink's spill, and is as disposable.
    """
    options = {"data": str(data.absolute()), "from": str(position), "form": "pieces", "maxRows": str(max_rows), "spill": str(sink.spill)}
    writer = (
        load(spark, options | {"buckets": str(buckets), "snapshotWeight": str(snapshot_weight)})
        .writeStream.foreachBatch(sink)
        .option("checkpointLocation", str(sink.spill / "checkpoint"))
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
    with contextlib.closing(SolutionWriter(data)) as writer, tempfile.TemporaryDirectory(prefix="epsparql-job-") as spill:
        sink = SolutionSink(writer, Path(spill), lambda _: None)
        try:
            buckets = settle(data, wanted)
            start_job(spark, data, sink, writer.position, buckets=buckets, max_rows=max_rows, to_end=True).awaitTermination()
        except (PySparkException, Py4JError) as fault:
            raise SparkFailed(f"Spark did not get through {data}: {fault}") from None  # its text is in the JVM, which may not live as long
        finally:
            sink.close()


def warm() -> None:
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
        with started(java, home, "local[1]", None, None, [f"-XX:ArchiveClassesAtExit={making}"], ARCHIVE_PATIENCE_S) as spark:
            run_to_end(spark, [data])
    if making.exists():  # a Java without an archive of its own classes makes none
        making.rename(archive)


# ---------------------------------------------------------------- the runner process
class Runner:
    """The server's job in a process of its own, which lives as long as its standard input."""

    def __init__(self, data: Path, master: str, buckets: int | None = None, snapshot_weight: int = SNAPSHOT_WEIGHT) -> None:
        self._data, self._master, self._buckets, self._snapshot_weight = data, master, buckets, snapshot_weight
        self._over = threading.Event()
        self._failure: str | None = None

    def run(self) -> int:
        """0 after an orderly stop, 1 if the job ended by itself."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._asked)
        threading.Thread(target=self._watch_parent, daemon=True).start()
        writer = self._lock_solutions()
        if writer is None:
            return 0
        with contextlib.closing(writer):
            scratch = self._data / "spark"
            clear(scratch)  # of a runner that was killed
            scratch.mkdir(parents=True)
            try:
                self._serve(writer, scratch)
            finally:
                clear(scratch)
        if self._failure is not None:
            print(self._failure, file=sys.stderr)
        return 0 if self._failure is None else 1

    def _serve(self, writer: SolutionWriter, scratch: Path) -> None:
        sink = SolutionSink(writer, scratch, self._committed)
        with session(self._master, scratch, self._data / "spark.log") as spark:
            buckets = settle(self._data, self._buckets)
            query = start_job(spark, self._data, sink, writer.position, buckets=buckets, snapshot_weight=self._snapshot_weight)
            for follow in (self._watch, self._tell_batches):
                threading.Thread(target=follow, args=(query,), daemon=True).start()
            self._say({"state": "ready", "position": writer.position})
            self._over.wait()
            sink.close()
            quietly(query.stop)

    def _lock_solutions(self) -> SolutionWriter | None:
        """The solution log's one writer; a runner whose server was killed may hold it for some seconds more. None if stopped meanwhile."""
        deadline = time.monotonic() + LOCK_PATIENCE_S
        while not self._over.is_set():
            try:
                return SolutionWriter(self._data)
            except Locked:
                if time.monotonic() > deadline:
                    raise
            self._over.wait(0.1)
        return None

    def _committed(self, position: int) -> None:
        self._say({"position": position})

    def _say(self, message: dict[str, object]) -> None:
        try:
            print(json.dumps(message), flush=True)
        except OSError:  # nobody listens any more
            self._over.set()

    def _watch(self, query: StreamingQuery) -> None:
        try:
            query.awaitTermination()
        except Exception as fault:  # noqa: BLE001  # whatever ended the job is reported, and the process ends
            if not self._over.is_set():
                self._failure = f"the Spark job ended: {type(fault).__name__}: {fault}"
        else:
            if not self._over.is_set():
                self._failure = "the Spark job ended"
        self._over.set()

    def _tell_batches(self, query: StreamingQuery) -> None:
        """Once a second, what Spark says of its last batch."""
        told = -1
        with contextlib.closing(LogReader(self._data)) as log:
            while not self._over.wait(PROGRESS_S):
                with contextlib.suppress(PySparkException, Py4JError):  # the job is ending
                    progress = query.lastProgress
                    if progress is not None and progress.batchId != told:
                        told = progress.batchId
                        tell_batch(self._data, batch_of(progress, log))

    def _watch_parent(self) -> None:
        """Standard input ends with the parent, however that ends. Start-up and stop can hang in the JVM: then the process ends all the same, and the JVM with it."""
        with contextlib.suppress(OSError, ValueError):
            while os.read(0, 4096):
                pass
        self._over.set()
        time.sleep(STOP_PATIENCE_S)
        os._exit(3)

    def _asked(self, _: int, __: FrameType | None) -> None:
        self._over.set()


def batch_of(progress: StreamingQueryProgress, log: LogReader) -> Batch:
    """Spark knows the range of a batch, the log what lies in it."""
    source = progress.sources[0]
    lo, hi = (json.loads(offset)["position"] for offset in (source.startOffset, source.endOffset))
    return Batch(progress.batchId, hi - lo, log.rows(lo, hi), progress.batchDuration / 1000, max(log.head() - hi, 0))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m pipeline.spark", description="Runs the queries of a data directory on Spark until standard input ends."
    )
    parser.add_argument("--data", type=Path, required=True, help="the server's data directory")
    parser.add_argument("--master", default="local[*,4]", help="Spark master (default %(default)s; the 4 lets a failed task be retried)")
    parser.add_argument("--buckets", type=int, help="engines that share the events; default that of the data directory")
    parser.add_argument("--snapshot-weight", type=int, default=SNAPSHOT_WEIGHT, help="rows between two snapshots, an entry counting as a hundred")
    options = parser.parse_args(arguments)
    return Runner(options.data, options.master, options.buckets, options.snapshot_weight).run()


__all__ = ["SolutionSink", "SolutionSource", "main", "run_to_end", "session", "solutions_frame", "solve", "start_job", "warm"]

if __name__ == "__main__":
    from pipeline.spark import main as imported  # so that the source's classes belong to a module that workers can import

    sys.exit(imported())
