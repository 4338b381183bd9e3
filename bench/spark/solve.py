"""This bench runs queries over a directory of Parquet files through `solve`, in batch and, some files at a time, as a stream."""

import tempfile
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as f

from bench.measurement import line
from bench.workloads import PREFIXES, WORKLOADS, blocks, check, drawn
from pipeline.dataframes.api import solve
from pipeline.spark.spark_session import session

_WARMING, _ROUNDS, _FILES, _PARTITIONS = 4, 3, 8, 2
_FILES_A_BATCH = 2  # one a core
_STATE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def measure(workload: str, n: int, k: int) -> Iterator[str]:
    """Yield two lines, of local[2]: the median of some rounds over the whole directory; and as a stream, once to warm and once measured."""
    with tempfile.TemporaryDirectory(prefix="epsparql-bench-") as place, session("local[2]", flags="") as spark:
        spark.conf.set("spark.sql.streaming.stateStore.providerClass", _STATE)
        spark.conf.set("spark.sql.shuffle.partitions", str(_PARTITIONS))
        write(Path(place) / "events", n, k)
        text, path = PREFIXES + WORKLOADS[workload], f"{place}/events"
        frame = solve(spark.read.parquet(path), text, partitions=_PARTITIONS)
        for _ in range(_WARMING):  # workers start, compiled code is loaded, and the JVM compiles its own
            _batch(frame)
        rounds = sorted(_batch(frame) for _ in range(_ROUNDS))
        for _, matches in rounds:
            check(workload, n, k, matches)
        seconds, matches = rounds[_ROUNDS // 2]
        yield line("solve", kind="batch", workload=workload, n=n, k=k, partitions=_PARTITIONS, matches=matches, events_per_s=round(n / seconds))
        _stream(spark, path, text, f"{place}/warm")  # warm, as for the batch: most of a first stream's time goes into the JVM's compiler
        rate, matches = _stream(spark, path, text, f"{place}/checkpoint")
        check(workload, n, k, matches)
        yield line("solve", kind="stream", workload=workload, n=n, k=k, partitions=_PARTITIONS, matches=matches, events_per_s=round(rate))


def write(directory: Path, n: int, k: int) -> None:
    """Write the workload's events in files of equal size."""
    directory.mkdir()
    for number, block in enumerate(blocks(drawn(n, k), -(-n // _FILES))):
        columns = {name: block.rows.column(name).cast(pa.utf8()) for name in "spo"}
        times = {name: block.rows.column(name) for name in ("start", "end")}
        pq.write_table(pa.table(columns | times), directory / f"{number}.parquet")


def _batch(frame: DataFrame) -> tuple[float, int]:
    """Return seconds and solutions of a run that keeps nothing."""
    seen, began = Observation(), time.monotonic()
    frame.observe(seen, f.count(f.lit(1)).alias("n")).write.format("noop").mode("overwrite").save()
    return time.monotonic() - began, int(seen.get["n"])


def _stream(spark: SparkSession, path: str, text: str, checkpoint: str) -> tuple[float, int]:
    """Return events a second from the end of the first micro-batch to that of the last; and solutions.

    The first one has the start of all workers in it.
    """
    events = spark.readStream.schema(spark.read.parquet(path).schema).option("maxFilesPerTrigger", _FILES_A_BATCH).parquet(path)
    counts, ends = list[int](), list[float]()

    def count(batch: DataFrame, _: int) -> None:
        counts.append(batch.count())
        ends.append(time.monotonic())

    writer = solve(events, text, partitions=_PARTITIONS, max_delay=timedelta(0)).writeStream.option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).foreachBatch(count).start().awaitTermination()
    rows = spark.read.parquet(path).count() * (len(ends) - 1) / len(ends)  # files are of equal size
    return rows / (ends[-1] - ends[0]), sum(counts)
