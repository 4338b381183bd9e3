"""This bench measures the Spark runner.

It tells events a second from a backlog with one partition and with two, and the same of Spark's own joins for the
same query. It also tells how soon a solution can be read.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import expr

from bench.measurement import TooFewEvents, WrongCount, line, percentile
from bench.workloads import BATCH, BEGIN, EVERY, MATCHES, PREFIXES, WORKLOADS, Drawn, blocks, check, drawn
from engine.messages import Drop, Register
from pipeline.log import LogReader, LogWriter
from pipeline.solutions.solution_log import SolutionReader
from pipeline.spark.driver import working
from pipeline.spark.long_running_task import ResidentJob
from pipeline.spark.spark_session import session

MASTER = "local[2,4]"
PIECES = 4  # events come to the log in at least so many
MOST_ROWS = 250_000
JOIN_EVENTS, JOIN_BATCH = 200_000, 50_000
EVENTS, WARM_EVENTS, PAUSE_S = 200, 20, 0.01
_FEWEST_COMMITS = 2
_WARMING, _ROUNDS = 2, 5  # a job in steady state has had its code compiled by the JVM
_TYPES = "abc"


@dataclass(slots=True)
class Commits:
    """Records when each commit of a run came, and the log position it reached."""

    at: list[tuple[float, int]] = field(default_factory=list)

    def __call__(self, position: int) -> None:
        self.at.append((time.perf_counter(), position))

    def rate(self, rows_between: int) -> float:
        """Return rows a second from the first commit to the last: the first one has the start of engine and job in it.

        Raises: TooFewEvents where a single commit was seen, which gives no rate.
        """
        if len(self.at) < _FEWEST_COMMITS:
            raise TooFewEvents("The runner committed all events at once, which gives no rate. Give more events with --n.")
        return rows_between / (self.at[-1][0] - self.at[0][0])


def measure(workload: str, n: int, k: int) -> Iterator[str]:
    """Yield a line for each number of partitions, one for Spark's joins, and one for the delay with each number of
    partitions.

    A line of partitions is the median of some rounds after some that warm, which take turns. The delay is that of
    events one by one.
    """
    events = drawn(n, k)
    with tempfile.TemporaryDirectory(prefix="epsparql-bench-") as place, session(MASTER) as spark:
        root = Path(place)
        query = _write(root / "log", workload, events, k, min(MOST_ROWS, n))
        rounds = [[_solved(spark, root / "log", query, partitions) for partitions in (1, 2)] for _ in range(_WARMING + _ROUNDS)]
        rates = {}
        for partitions, solved in enumerate(zip(*rounds[_WARMING:], strict=True), 1):
            for _, matches in solved:
                check(workload, n, k, matches)
            rates[partitions], matches = sorted(solved)[_ROUNDS // 2]
            figures = {"events_per_s": round(rates[partitions]), "matches": matches, "ratio": round(rates[partitions] / rates[1], 3)}
            yield line("spark", what="backlog", workload=workload, n=n, k=k, partitions=partitions, **figures)
        if workload == "W1":
            rate, matches = _joined(spark, root / "joins", drawn(JOIN_EVENTS, k))
            check(workload, JOIN_EVENTS, k, matches)
            ratio = round(max(rates.values()) / rate, 1)
            yield line("spark", what="its own joins", n=JOIN_EVENTS, k=k, events_per_s=round(rate), matches=matches, ours_to_it=ratio)
        for partitions in (1, 2):
            delays = _delays(spark, root / f"delays {partitions}", partitions)
            figures = {"p50_ms": round(percentile(delays, 50), 1), "p99_ms": round(percentile(delays, 99), 1)}
            yield line("spark", what="from durable to readable", n=EVENTS, partitions=partitions, **figures)


# ---------------------------------------------------------------- from a backlog
def _write(data: Path, workload: str, events: Drawn, k: int, ahead: int) -> int:
    """Write a query and its events, and return the registration's offset.

    They come after so many events for a query of the same text, which stand for the past of a running job.
    """
    piece = min(BATCH, len(events) // PIECES)
    text = PREFIXES + WORKLOADS[workload]
    with LogWriter(data, lambda: BEGIN) as log:
        past = log.append(lambda offset: Register(offset, "past", text))
        for block in blocks(drawn(ahead, k), piece):
            log.append_events("default", block.rows)
        log.append(lambda offset: Drop(offset, past, "past"))
        query = log.append(lambda offset: Register(offset, "q", text.replace("WHERE", "FROM STREAM <now> WHERE", 1)))
        for block in blocks(events, piece):
            log.append_events("now", block.rows)
    return query


def _solved(spark: SparkSession, log: Path, query: int, partitions: int) -> tuple[float, int]:
    """Return events a second in steady state, and the solutions found. Registrations count as rows."""
    commits = Commits()
    with tempfile.TemporaryDirectory(prefix="epsparql-bench-") as place:
        data, scratch = Path(place) / "data", Path(place) / "scratch"
        shutil.copytree(log / "log", data / "log", copy_function=os.link)  # nothing writes to it
        scratch.mkdir()
        with closing(LogReader(data)) as reader:
            head = reader.head()
        with closing(SolutionReader(data)) as solutions, working(ResidentJob(data, partitions), spark, scratch) as failure:
            position = 0
            while position < head:
                if (fault := failure()) is not None:
                    raise fault
                reached = solutions.wait(position, 1)
                if reached > position:
                    position = reached
                    commits(position)
        with closing(SolutionReader(data)) as solutions:
            matches = solutions.tally(query).count
        rows = _rows_after(data, commits.at[0][1])
    return commits.rate(rows), matches


def _rows_after(data: Path, position: int) -> int:
    with closing(LogReader(data)) as log:
        return sum(block.rows.num_rows for block in log.blocks(position, MOST_ROWS))


# ---------------------------------------------------------------- Spark's own joins
def _joined(spark: SparkSession, place: Path, events: Drawn) -> tuple[float, int]:
    """Solve W1 by chained stream-stream joins.

    One event-time column may go through them, so the first event's time is carried as a number.
    """
    place.mkdir()
    _write_parquet(place / "events", events)
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    stream = spark.readStream.schema("id long, type string, x double, at timestamp, at_us long").option("maxFilesPerTrigger", 1)
    sides = [
        stream.parquet(str(place / "events"))
        .where(f"type = '{kind}'")
        .selectExpr(f"id {kind}_id", f"x {kind}_x", f"at {kind}_at", f"at_us {kind}_us")
        for kind in _TYPES
    ]
    a, b, c = (side.withWatermark(f"{kind}_at", "0 seconds") for kind, side in zip(_TYPES, sides, strict=True))
    pairs = a.join(b, _on("a", "b")).drop("a_at")  # its type stays that of an event time for ever
    chains = pairs.join(c, _on("b", "c")).where("c_us - a_us < 10000000")
    found, times = [0], list[float]()

    def count(batch: DataFrame, _: int) -> None:
        found[0] += batch.count()
        times.append(time.perf_counter())

    query = chains.writeStream.foreachBatch(count).option("checkpointLocation", str(place / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    return (len(events) - JOIN_BATCH) / (times[len(events) // JOIN_BATCH - 1] - times[0]), found[0]


def _on(first: str, second: str) -> Column:
    return expr(f"{first}_id = {second}_id AND {second}_at > {first}_at AND {second}_at < {first}_at + INTERVAL 10 SECONDS")


def _write_parquet(place: Path, events: Drawn) -> None:
    place.mkdir()
    for number, first in enumerate(range(0, len(events), JOIN_BATCH)):
        after = first + JOIN_BATCH
        us = pa.array([BEGIN + k * EVERY for k in range(first, after)], pa.int64())
        table = pa.table(
            {
                "id": events.ids[first:after],
                "type": pa.array([_TYPES[kind] for kind in events.types[first:after].tolist()]),
                "x": events.values[first:after],
                "at": us.cast(pa.timestamp("us", tz="UTC")),
                "at_us": us,
            }
        )
        pq.write_table(table, place / f"{number:05d}.parquet")


# ---------------------------------------------------------------- events one by one
def _delays(spark: SparkSession, data: Path, partitions: int) -> list[float]:
    scratch = data / "scratch"
    scratch.mkdir(parents=True)
    with LogWriter(data, lambda: BEGIN) as log, working(ResidentJob(data, partitions), spark, scratch) as failure:
        return _from_durable_to_readable(log, data, failure)


def _from_durable_to_readable(log: LogWriter, data: Path, failure: Callable[[], Exception | None]) -> list[float]:
    """Return the milliseconds from when an event is durable to when its solution can be read, of events one after the
    other.
    """
    log.append(lambda offset: Register(offset, "q", PREFIXES + "SELECT ?s ?x { ?s :a ?x }"))
    events, found = drawn(3 * (EVENTS + WARM_EVENTS), 100), list[float]()
    only = events.types == 0
    with closing(SolutionReader(data)) as reader:
        for number, block in enumerate(blocks(Drawn(events.types[only], events.ids[only], events.values[only]), 1)):
            position = log.append_events("default", block.rows).offset
            durable = time.perf_counter()
            while reader.wait(position - 1, 60) < position:
                if (fault := failure()) is not None:
                    raise fault
            if reader.tally(0).count != number + 1:
                raise WrongCount("events one by one", reader.tally(0).count, number + 1)
            found.append((time.perf_counter() - durable) * 1000)
            if number == EVENTS + WARM_EVENTS:
                break
            time.sleep(PAUSE_S)
    return found[WARM_EVENTS:]


assert MATCHES[JOIN_EVENTS, 1_000]["W1"]
