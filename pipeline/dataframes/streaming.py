"""This module runs `solve` over a streaming DataFrame: an engine per partition, whose state Spark keeps
(docs/decisions/0061).

Spark stores a snapshot and the events since. A random token names each version, so a worker knows which version an
engine in its memory stands for. That holds whatever was tried twice or elsewhere meanwhile, and such an engine only
reads on.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from engine.messages import END_OF_TIME, Micros
from pipeline.dataframes.asked import Asked
from pipeline.dataframes.spark_keys import key_of
from pipeline.errors import SolveFailed
from pipeline.log.encoding.arrow_ipc import stream_of

if TYPE_CHECKING:
    from pipeline.dataframes.engine_task import Solver

SNAPSHOT_ROWS = 200_000
"""This many events lie between two snapshots; reading them again takes about half a second."""
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_CACHED = 64
_PARCEL = pa.schema([("engine", pa.int64()), ("latest", pa.int64()), ("rows", pa.binary())])
_PARCEL_COLUMNS = "engine long, latest long, rows binary"
_FOUND_COLUMNS = "solutions binary"
_STEP = "EPSPARQL_STEP"
_PIECE_ROWS = 50_000  # an engine takes in so many at once: their solutions must fit into a row


def follow_stream(dealt: DataFrame, asked: tuple[Asked, ...], total: int, max_delay: timedelta, columns: str) -> DataFrame:
    """Return the solutions of a streaming frame, with these columns. Raises: SolveFailed."""
    if dealt.sparkSession.conf.get(_PROVIDER, "") != _ROCKS:
        raise SolveFailed(f"transformWithState keeps its state in RocksDB; set {_PROVIDER} to {_ROCKS} before the query starts")
    processor = EngineProcessor(asked, max_delay // timedelta(microseconds=1))
    parcels = dealt.mapInArrow(lambda batches: pack_parcels(batches, total), _PARCEL_COLUMNS)
    with _separate_workers(dealt.sparkSession, "engines"):
        found = parcels.groupBy("engine").transformWithState(processor, _FOUND_COLUMNS, "append", "none")
    return found.mapInArrow(lambda batches: unpack_solutions(batches, asked), columns)


@contextmanager
def _separate_workers(spark: SparkSession, name: str) -> Iterator[None]:
    """Give the steps that are planned meanwhile workers of their own.

    Spark gives a worker to whichever step is next, but keeps workers with another environment apart.
    The fewer workers serve the engines, the more often one meets the worker that has it in memory.
    """
    environment = spark.sparkContext.environment
    environment[_STEP] = name
    try:
        yield
    finally:
        del environment[_STEP]


def unpack_solutions(batches: Iterable[pa.RecordBatch], asked: tuple[Asked, ...]) -> Iterator[pa.RecordBatch]:
    """Yield the solutions that came as Arrow streams, a row each."""
    from pipeline.dataframes.engine_task import parse_queries, solved

    queries = {name: query for each in dict.fromkeys(asked) for name, query in parse_queries(each).items()}
    for batch in batches:
        for stream in batch.column("solutions"):
            yield from solved(pa.ipc.open_stream(stream.as_buffer()).read_next_batch(), queries)


def pack_parcels(batches: Iterable[pa.RecordBatch], total: int) -> Iterator[pa.RecordBatch]:
    """Yield a partition's events as an Arrow stream per partition and batch, for rows that pass through the JVM one
    by one are slow.

    At the end yield, for every partition, how far the partition's time has come.
    """
    latest = -END_OF_TIME
    for batch in batches:
        if batch.num_rows:
            latest = max(latest, pc.max(batch.column("end")).as_py() or latest)
            numbers = batch.column("partition")
            for partition in pc.unique(numbers).to_pylist():
                yield _parcel(partition, latest, stream_of(batch.filter(pc.equal(numbers, partition)).drop_columns(["partition"])).to_pybytes())
    if latest > -END_OF_TIME:
        yield from (_parcel(partition, latest, None) for partition in range(total))


def _parcel(partition: int, latest: Micros, rows: bytes | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"engine": key_of(partition), "latest": latest, "rows": rows}], schema=_PARCEL)


class EngineProcessor(StatefulProcessor):
    """Runs one engine per key, which its partition's number gives."""

    def __init__(self, asked: tuple[Asked, ...], max_delay: Micros) -> None:
        self._asked, self._max_delay, self._snapshot_rows = asked, max_delay, SNAPSHOT_ROWS
        self._partitions = {key_of(partition): partition for partition in range(len(asked))}
        self._print = sha256(repr((asked, max_delay)).encode()).hexdigest()

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._version = handle.getValueState("version", "token string, latest long, since long, print string")
        self._snapshot = handle.getValueState("snapshot", "token string, engine binary")
        self._log = handle.getListState("log", "token string, time long, rows binary")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # Spark calls by these names
        partition = self._partitions[int(key[0])]
        token, before, since, written = self._version.get() or ("", -END_OF_TIME, 0, self._print)
        if written != self._print:
            raise SolveFailed(
                "this checkpoint was begun with other queries, partitions, background or max_delay; start again with another checkpointLocation"
            )
        latest, parts = before, list[pa.Table]()
        for row in rows:
            latest = max(latest, row.latest)
            if row.rows is not None:
                parts.append(pa.ipc.open_stream(bytes(row.rows)).read_all())
        solver = self._engine_at(partition, token)
        events = _sort_events(parts, before - self._max_delay) if parts else None
        time, token = latest - self._max_delay, uuid4().hex
        found = list(_feed_events(solver, events, time))
        since += events.num_rows if events is not None else 0
        if since >= max(self._snapshot_rows, solver.goals):  # so an event pays for one goal at most
            self._snapshot.update((token, solver.snapshot()))
            self._log.clear()
            since = 0
        else:
            self._log.appendValue((token, time, None if events is None else stream_of(events).to_pybytes()))
        self._version.update((token, latest, since, self._print))
        engine_cache().put_engine((self._print, partition), token, solver)
        yield from (Row(solutions=stream_of(batch).to_pybytes()) for batch in found if batch.num_rows)

    def _engine_at(self, partition: int, token: str) -> "Solver":
        """Return the engine as of a version: the kept engine, if its version is on the way there, else the
        snapshot's, fed the events since.
        """
        from pipeline.dataframes.engine_task import Solver

        kept, solver = engine_cache().take_engine((self._print, partition))
        if solver is not None and kept == token:
            return solver
        stored = self._snapshot.get()
        log = [tuple(entry) for entry in self._log.get()] if self._log.exists() else []
        assert token == (log[-1][0] if log else stored[0] if stored else ""), "the version names what was stored last"
        tokens = [stored[0] if stored else "", *(entry[0] for entry in log)]
        if solver is None or kept not in tokens:
            kept, solver = tokens[0], Solver(self._asked[partition], None if stored is None else bytes(stored[1]))
        for _, time, rows in log[tokens.index(kept) :]:
            for _ in _feed_events(solver, None if rows is None else pa.ipc.open_stream(bytes(rows)).read_all(), time):
                pass  # its solutions were given when the events came
        return solver


def _sort_events(parts: list[pa.Table], mark: Micros) -> pa.Table:
    """Return the events by end, without the late ones.

    Most often they come sorted, and sorting them would cost as much as feeding them to an engine.
    """
    whole = pa.concat_tables(parts)
    ends = whole.column("end").combine_chunks()
    if not ends.null_count:
        numbers = ends.to_numpy()
        if numbers.min(initial=mark) >= mark and bool(np.all(numbers[1:] >= numbers[:-1])):
            return whole
    return whole.filter(pc.or_kleene(pc.greater_equal(ends, mark), pc.is_null(ends))).sort_by("end")


def _feed_events(solver: "Solver", events: pa.Table | None, time: Micros) -> Iterator[pa.RecordBatch]:
    from pipeline.dataframes.engine_task import NO_EVENTS, occurrences, streams_of

    table = NO_EVENTS if events is None else events
    for first in range(0, max(len(table), 1), _PIECE_ROWS):
        piece = table.slice(first, _PIECE_ROWS)
        rows, last = occurrences(piece), first + _PIECE_ROWS >= len(table)
        yield solver.feed(rows, streams_of(piece), time if last else min(time, piece.column("end")[-1].as_py()))


class EngineCache:
    """Keeps the engines that were used last, each with its version, between the tasks of a worker process."""

    def __init__(self) -> None:
        self._engines: OrderedDict[tuple[str, int], tuple[str, Solver]] = OrderedDict()

    def take_engine(self, whose: tuple[str, int]) -> "tuple[str, Solver | None]":
        """Take an engine and its version out, for it is about to change."""
        return self._engines.pop(whose, ("", None))

    def put_engine(self, whose: tuple[str, int], token: str, solver: "Solver") -> None:
        self._engines[whose] = token, solver
        while len(self._engines) > _CACHED:
            self._engines.popitem(last=False)


@cache
def engine_cache() -> EngineCache:
    """Return the cache of this process: tasks come and go, and their worker process stays."""
    return EngineCache()
