"""Solutions on Spark Structured Streaming: a data source whose tasks host the engine, and the server's job over it.

A micro-batch is a range of the input log; its one task brings the engines of all buckets, each on a thread, to the range's start (kept in their worker, or from
snapshot and log), feeds them the range and yields the solutions. State is a function of the log's prefix, so neither Spark's state store nor its checkpoint
holds anything that matters.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from engine.entries import INSTANT, StateChange
from pipeline.batches import Batch, tell_batch
from pipeline.errors import Locked, SparkFailed
from pipeline.java import JVM_FLAGS, SOCKETS, class_archive, clear, configuration, java_home, spark_environment, spark_home
from pipeline.log import LogReader, LogWriter
from pipeline.sharing import SNAPSHOT_WEIGHT, recorded, settle
from pipeline.solutions import SolutionWriter
from pipeline.solve import solve

if TYPE_CHECKING:
    from pipeline.hosting import Advance

FORMAT = "epsparql"
MAX_ROWS = 50_000  # of the input log that the engines take in at once, with a row of the sink's for each
BATCH_ROWS = 250_000  # in one micro-batch, whose cost beside the engines' is a tenth of a second: bounds its memory and its time
SPILL_BYTES = 1_000_000
LONG_POLL_S = 0.2
EAGER_POLLS, LAZY_POLL_S = 10, 0.01  # after two silent seconds
LOCK_PATIENCE_S = 30.0  # a killed server's runner goes within seconds
STOP_PATIENCE_S = 10.0
ARCHIVE_PATIENCE_S = 180.0
PROGRESS_S = 1.0

SOLUTION_COLUMNS = "query string, registered long, entry long, start timestamp, end timestamp, values array<string>"
PIECE_COLUMNS = "lo long, hi long, solutions binary, file string, changes string"
_SOLUTION = pa.schema(
    [
        ("query", pa.string()),
        ("registered", pa.int64()),
        ("entry", pa.int64()),
        ("start", INSTANT),
        ("end", INSTANT),
        ("values", pa.list_(pa.field("element", pa.string()))),
    ]
)
_PIECE = pa.schema(
    [
        ("lo", pa.int64()),
        ("hi", pa.int64()),
        ("solutions", pa.binary()),  # an Arrow stream of SOLUTIONS,
        ("file", pa.string()),  # or the file that holds it
        ("changes", pa.string()),  # JSON
    ]
)


# ---------------------------------------------------------------- the data source
@dataclass(frozen=True, slots=True)
class Range(InputPartition):
    """What one task does: the entries [lo, hi) of a data directory's log, for all its buckets."""

    data: str
    buckets: int
    snapshot_weight: int
    lo: int
    hi: int


class SolutionSource(DataSource):
    """`format("epsparql")`. Options: `data` (the server's --data directory), `from` (log position to start at, default 0),
    `maxRows` (rows of the log in one micro-batch), `buckets` (their number; default that of the data directory) and `form`: `solutions`
    (default) gives a row per solution; `pieces` a row per range with its solutions as one Arrow stream, which is what the server's sink
    takes: rows that pass through the JVM one by one cost several times as much. A long stream goes by a file in `spill` instead.
    `snapshotWeight` is what lies between two snapshots: rows, and an entry as a hundred.
    """

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return PIECE_COLUMNS if self.options.get("form") == "pieces" else SOLUTION_COLUMNS

    def streamReader(self, schema: StructType) -> "SolutionStream":
        return SolutionStream(dict(self.options))


class SolutionStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans ranges of the log in one long-lived process and evaluates them in tasks. Offsets are log positions.

    Only the planning side opens the log: an instance is pickled to the tasks.
    """

    def __init__(self, options: dict[str, str]) -> None:
        self.data = options["data"]
        self.start = int(options.get("from", "0"))
        self.max_rows = int(options.get("maxrows", options.get("maxRows", str(BATCH_ROWS))))
        self.buckets = int(options.get("buckets", "0")) or recorded(self.data) or 1
        self.snapshot_weight = int(options.get("snapshotweight", options.get("snapshotWeight", str(SNAPSHOT_WEIGHT))))
        self.pieces = options.get("form") == "pieces"
        self.spill = options.get("spill", "")
        self.last: int | None = None  # with trigger availableNow: where to end
        self.log: LogReader | None = None
        self.idle_polls = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "log": None}

    def opened(self) -> LogReader:
        if self.log is None:
            self.log = LogReader(self.data)
        return self.log

    def initialOffset(self) -> dict[str, int]:
        return {"position": self.start}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.max_rows)

    def prepareForTriggerAvailableNow(self) -> None:
        self.last = self.opened().head()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """The end of the next micro-batch; waits a little for entries, so that a new one is found within a millisecond or so."""
        position, log = start["position"], self.opened()
        if self.last is not None and position >= self.last:
            return {"position": position}
        if self._wait(log, position) <= position:
            return {"position": position}
        end = log.advance(position, limit.max_rows if isinstance(limit, ReadMaxRows) else self.max_rows)
        return {"position": end if self.last is None else min(end, self.last)}

    def _wait(self, log: LogReader, position: int) -> int:
        """The head, once it is beyond `position` or after a while. The longer nothing came, the less often it looks."""
        if self.last is None and self.idle_polls < EAGER_POLLS:
            head = log.wait(position, LONG_POLL_S)
        else:
            until = time.monotonic() + LONG_POLL_S
            while (head := log.head()) <= position and self.last is None and time.monotonic() < until:
                time.sleep(LAZY_POLL_S)
        self.idle_polls = self.idle_polls + 1 if head <= position else 0
        return head

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """One task: Spark gives a batch's tasks to any idle workers, and an engine is worth its worker's memory of it."""
        return [Range(self.data, self.buckets, self.snapshot_weight, start["position"], end["position"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The engine runs here, in the task. Worker processes outlive tasks, and with them the engines of `host_of`."""
        from pipeline.buckets import host_of  # the planning processes have no use for the engine and its second of import

        assert isinstance(partition, Range)
        host = host_of(partition.data, partition.buckets, partition.snapshot_weight)
        if self.pieces and host.unswept:  # the sink made the solutions before `lo` durable before this batch was planned
            host.sweep(partition.lo)
        for advance in host.run(partition.lo, partition.hi, min(self.max_rows, MAX_ROWS)):
            if self.pieces:
                yield self._piece(advance)
            elif advance.outcome.solutions.num_rows:
                yield _plain(advance.outcome.solutions)

    def _piece(self, advance: "Advance") -> pa.RecordBatch:
        """How many solutions a range brings is the queries' affair, so the JVM must not have to hold them."""
        solutions, name = stream_of(advance.outcome.solutions), None
        if len(solutions) > SPILL_BYTES:
            name = f"{advance.lo}-{advance.hi}.arrow"
            making = Path(self.spill) / f"{name}.{os.getpid()}"
            making.write_bytes(solutions)
            making.rename(Path(self.spill) / name)  # a task that is tried again writes the same
            solutions = b""
        changes = json.dumps([asdict(change) for change in advance.outcome.changes])
        row = [advance.lo, advance.hi, solutions, name, changes]
        return pa.RecordBatch.from_arrays([pa.array([value], field.type) for value, field in zip(row, _PIECE, strict=True)], schema=_PIECE)


def stream_of(batch: pa.RecordBatch) -> bytes:
    """A record batch as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]  # pyarrow has no types


def _plain(solutions: pa.RecordBatch) -> pa.RecordBatch:
    """Spark knows no dictionaries and compares schemas to the letter."""
    columns = [solutions.column(field.name).cast(field.type) for field in _SOLUTION]
    return pa.RecordBatch.from_arrays(columns, schema=_SOLUTION)


# ---------------------------------------------------------------- reading, for Spark users
def solutions_frame(spark: SparkSession, data: Path | str, start: int = 0) -> DataFrame:
    """The solutions of a data directory's queries as a streaming DataFrame, a row per solution in order of emission.

    Columns: `query` (its name), `registered` (log position of its registration), `entry` (log position of the event that brought
    the solution), `start`, `end`, `values` (a term in N-Triples syntax per projected variable, null if unbound; for a CONSTRUCT
    its N-Triples statements). `start` is a position of the input log: entries before it shape the solutions but bring none.
    Anything that Spark can write to can take it; with Spark's own checkpoint each solution comes once into a transactional sink:

        solutions_frame(spark, "data").writeStream.format("parquet").option("path", …).option("checkpointLocation", …).start()
    """
    return _load(spark, {"data": str(Path(data).absolute()), "from": str(start)})


_registering = threading.Lock()


def _load(spark: SparkSession, options: dict[str, str]) -> DataFrame:
    """Each frame has a registration to itself.

    A registration carries one mutable map of environment variables, to which Spark adds while it starts a query; another query of the same
    registration whose task is serialised at that moment is lost to a java.io.OptionalDataException.
    """
    with _registering:
        spark.dataSource.register(SolutionSource)
        return spark.readStream.format(FORMAT).options(**options).load()


# ---------------------------------------------------------------- the sink
class SolutionSink:
    """Commits micro-batches to the solution log, by log position: one that is there already is dropped, a gap is refused."""

    def __init__(self, writer: SolutionWriter, spill: Path, committed: Callable[[int], None]) -> None:
        self._writer, self.spill, self._committed = writer, spill, committed
        self._lock, self._closed = threading.Lock(), False

    def __call__(self, batch: DataFrame, _: int) -> None:
        rows = batch.toArrow().sort_by("lo").to_pylist()
        with self._lock:
            if self._closed:
                return
            for row in rows:
                self._commit(row)
            self._writer.sync()  # the next batch may sweep the snapshots that could bring them back
            position = self._writer.position
        self._committed(position)

    def _commit(self, row: dict[str, Any]) -> None:
        file = None if row["file"] is None else self.spill / row["file"]
        solutions = pa.ipc.open_stream(row["solutions"] if file is None else file.read_bytes()).read_next_batch()
        self._writer.commit(row["lo"], row["hi"], solutions, tuple(StateChange(**change) for change in json.loads(row["changes"])))
        if file is not None:
            file.unlink()

    def close(self) -> None:
        """After this nothing is written any more, whatever Spark still does."""
        with self._lock:
            self._closed = True


def start_job(
    spark: SparkSession, data: Path, sink: SolutionSink, position: int, *, buckets: int = 1, max_rows: int = BATCH_ROWS,
    snapshot_weight: int = SNAPSHOT_WEIGHT, to_end: bool = False,
) -> StreamingQuery:  # fmt: skip
    """The server's job over one data directory; with `to_end` it ends at the log's present head.

    Its checkpoint lies beside the sink's spill, and is as disposable.
    """
    options = {"data": str(data.absolute()), "from": str(position), "form": "pieces", "maxRows": str(max_rows), "spill": str(sink.spill)}
    writer = (
        _load(spark, options | {"buckets": str(buckets), "snapshotWeight": str(snapshot_weight)})
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


# ---------------------------------------------------------------- the session
@contextlib.contextmanager
def session(master: str = "local[*,4]", scratch: Path | None = None, log: Path | None = None) -> Iterator[SparkSession]:
    """A Spark session of our own with its JVM, gone without trace at the end. Spark's own output goes to the file `log`, if any.

    One at a time in a process. The 4 in the master lets a failed task be retried. Raises: JavaMissing.
    """
    java, home = java_home(), spark_home()
    archive = class_archive(java, home, JVM_FLAGS)
    with _started(java, home, master, scratch, log, [f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []) as spark:
        yield spark


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
        with _started(java, home, "local[1]", None, None, [f"-XX:ArchiveClassesAtExit={making}"], ARCHIVE_PATIENCE_S) as spark:
            run_to_end(spark, [data])
    if making.exists():  # a Java without an archive of its own classes makes none
        making.rename(archive)


@contextlib.contextmanager
def _started(
    java: Path, home: Path, master: str, scratch: Path | None, log: Path | None, jvm: Sequence[str], patience_s: float = STOP_PATIENCE_S
) -> Iterator[SparkSession]:
    with contextlib.ExitStack() as stack:
        place = scratch or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="epsparql-spark-")))
        sockets = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=SOCKETS)))  # not in `place`, whose path may be too long
        (place / "sockets").symlink_to(sockets)
        output = stack.enter_context((log or Path(os.devnull)).open("ab"))
        stack.enter_context(spark_environment(java, home))
        conf = SparkConf(loadDefaults=False)
        for key, value in configuration(master, place, sockets, jvm).items():
            conf.set(key, value)
        gateway = launch_gateway(conf, {"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]  # pyspark leaves it untyped
        stack.callback(_end, gateway, patience_s)
        context = SparkContext(conf=conf, gateway=gateway)
        stack.callback(_quietly, context.stop)
        yield SparkSession(context)


def _quietly(step: Callable[[], object]) -> None:
    """The JVM may be gone already, and py4j says so in many ways; there is nothing left to do then."""
    with contextlib.suppress(Exception):
        step()


def _end(gateway: Any, patience_s: float) -> None:
    """Close the JVM, which ends when its standard input does, and let pyspark forget it, so that a new session starts a new one."""
    _quietly(gateway.shutdown)
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(patience_s)
    except subprocess.TimeoutExpired:  # a JVM that does not end is ended
        gateway.proc.kill()
        gateway.proc.wait()
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None


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
            _quietly(query.stop)

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
