"""This module provides the solutions of a data directory as a Spark data source, `epsparql`, whose tasks host the engine.

A micro-batch is a range of the input log with one task. The task brings the engines of all buckets, each on a thread, to the range's start: kept in
their worker, or from snapshot and log. Then it feeds them the range and yields the solutions. State is a function of the log's prefix, so neither
Spark's state store nor its checkpoint holds anything that matters.
"""

import gc
import json
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import SparkFiles
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from engine.messages import INSTANT, StateChange
from pipeline.log import LogReader
from pipeline.log.arrow_ipc import stream_of
from pipeline.object_store.backends import STORE
from pipeline.partition_count import SNAPSHOT_WEIGHT, recorded
from pipeline.runners.host_messages import Advance, Elsewhere
from pipeline.runners.spill import Spill
from pipeline.solutions.solution_log import SolutionReader

FORMAT = "epsparql"
MAX_ROWS = 50_000  # the engines take in so many rows at once, and the sink gets a row for them
BATCH_ROWS = 250_000  # bounds a micro-batch's memory and time; it costs a tenth of a second beside the engines
LONG_POLL_S = 0.2
EAGER_POLLS, LAZY_POLL_S = 10, 0.01  # after two silent seconds

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


@dataclass(frozen=True, slots=True)
class Range(InputPartition):
    """Describes the work of one task: the entries [lo, hi) of a data directory's log, for all its buckets.

    The next task's end at `then`, if that is known.
    Where the directory is kept in a `store` the task reads it there. `ended`: what is known then of queries that have ended.
    """

    data: str
    buckets: int
    snapshot_weight: int
    lo: int
    hi: int
    then: int | None
    store: str | None = None
    ended: tuple[StateChange, ...] = ()


class SolutionSource(DataSource):
    """Provides `format("epsparql")`. Its options follow.

    `data` is the server's --data directory, and `from` the log position to start at (default 0). `maxRows` bounds the rows of the log in one
    micro-batch. `buckets` is the number of buckets (default that of the data directory). `form` is `solutions` or `pieces`: `solutions` (default)
    gives a row per solution; `pieces` a row per range with its solutions as one Arrow stream, which the server's sink takes. Rows that pass through
    the JVM one by one cost several times as much. A long stream goes by a file in `spill` instead. `snapshotWeight` is what lies between two
    snapshots: rows, and an entry as a hundred. With `stored` tasks read the store in which the directory is kept, and need not see the directory. The
    planner's environment names that store as EPSPARQL_STORE.
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
        self.store = os.environ[STORE] if options.get("stored") == "true" else None  # no option, for those are shown, and it may hold credentials
        self.last: int | None = None  # where to end, with trigger availableNow
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
        """Return the end of the next micro-batch; wait a little for entries, so that a new one is found within a millisecond or so."""
        position, log = start["position"], self.opened()
        if self.last is not None and position >= self.last:
            return {"position": position}
        if self._wait(log, position) <= position:
            return {"position": position}
        end = log.advance(position, limit.max_rows if isinstance(limit, ReadMaxRows) else self.max_rows)
        return {"position": end if self.last is None else min(end, self.last)}

    def _wait(self, log: LogReader, position: int) -> int:
        """Return the head, once it is beyond `position` or after a while. The longer nothing came, the less often it looks."""
        if self.last is None and self.idle_polls < EAGER_POLLS:
            head = log.wait(position, LONG_POLL_S)
        else:
            until = time.monotonic() + LONG_POLL_S
            while (head := log.head()) <= position and self.last is None and time.monotonic() < until:
                time.sleep(LAZY_POLL_S)
        self.idle_polls = self.idle_polls + 1 if head <= position else 0
        return head

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Plan one task: Spark gives a batch's tasks to any idle workers, and an engine is worth its worker's memory of it."""
        lo, hi = start["position"], end["position"]
        return [Range(self.data, self.buckets, self.snapshot_weight, lo, hi, self._then(hi), self.store, self._ended())]

    def _ended(self) -> tuple[StateChange, ...]:
        """Return the changes of state, which engines of several buckets need where they cannot read them."""
        if self.store is None or self.buckets == 1:
            return ()
        with closing(SolutionReader(self.data)) as solutions:
            return solutions.changes

    def _then(self, position: int) -> int | None:
        """Return where the micro-batch from a position on will end, if the log has a whole one there already."""
        log = self.opened()
        end = log.advance(position, self.max_rows)
        if self.last is not None and self.last <= end:
            return self.last
        return end if end < log.head() else None

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Run the engine here, in the task. Worker processes outlive tasks, and with them the engines of `host_of`."""
        from pipeline.runners.partitions import host_of  # the planning processes have no use for the engine and its second of import

        assert isinstance(partition, Range)
        host = host_of(_where(partition), partition.buckets, partition.snapshot_weight)
        if self.pieces and host.unswept:  # the sink made the solutions before `lo` durable before this batch was planned
            host.sweep(partition.lo)
        spill = Spill(Path(self.spill), self.store) if self.pieces else None
        for advance in host.run(partition.lo, partition.hi, min(self.max_rows, MAX_ROWS), partition.then, spill):
            if spill is not None:
                yield _piece(spill.spill_solutions(advance))
            elif advance.outcome.solutions.num_rows:
                yield _plain(advance.outcome.solutions)
        keep_for_good()


def _where(partition: Range) -> str | Elsewhere:
    if partition.store is None:
        return partition.data
    return Elsewhere(partition.store, Path(SparkFiles.getRootDirectory()), partition.ended)


@cache
def keep_for_good() -> None:
    """Take the objects that are there now, modules and compiled code above all, from the garbage collector.

    Spark lets the collector look through everything after each task.
    """
    gc.collect()
    gc.freeze()


def _piece(advance: Advance) -> pa.RecordBatch:
    inline = stream_of(advance.outcome.solutions).to_pybytes() if advance.file is None else b""
    changes = json.dumps([asdict(change) for change in advance.outcome.changes])
    row = [advance.lo, advance.hi, inline, advance.file, changes]
    return pa.RecordBatch.from_arrays([pa.array([value], field.type) for value, field in zip(row, _PIECE, strict=True)], schema=_PIECE)


def _plain(solutions: pa.RecordBatch) -> pa.RecordBatch:
    """Return plain columns: Spark knows no dictionaries and compares schemas to the letter."""
    from engine.dictionary.arrow_encoding import plain

    columns = [plain(solutions).column(field.name).cast(field.type) for field in _SOLUTION]
    return pa.RecordBatch.from_arrays(columns, schema=_SOLUTION)


# ---------------------------------------------------------------- reading, for Spark users
def solutions_frame(spark: SparkSession, data: Path | str, start: int = 0) -> DataFrame:
    """Return the solutions of a data directory's queries as a streaming DataFrame, a row per solution in order of emission.

    Columns: `query` (its name), `registered` (log position of its registration), `entry` (log position of the event that brought
    the solution), `start`, `end`, `values` (a term in N-Triples syntax per projected variable, null if unbound; for a CONSTRUCT
    its N-Triples statements). `start` is a position of the input log: entries before it shape the solutions but bring none.
    Anything that Spark can write to can take it; with Spark's own checkpoint each solution comes once into a transactional sink:

        solutions_frame(spark, "data").writeStream.format("parquet").option("path", …).option("checkpointLocation", …).start()
    """
    return load(spark, {"data": str(Path(data).absolute()), "from": str(start)})


_registering = threading.Lock()


def load(spark: SparkSession, options: dict[str, str]) -> DataFrame:
    """Load a frame with a registration to itself.

    A registration carries one mutable map of environment variables, to which Spark adds while it starts a query; another query of the same
    registration whose task is serialised at that moment is lost to a java.io.OptionalDataException.
    """
    with _registering:
        spark.dataSource.register(SolutionSource)
        return spark.readStream.format(FORMAT).options(**options).load()


__all__ = ["BATCH_ROWS", "SolutionSource", "load", "solutions_frame"]
