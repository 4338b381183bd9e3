"""`solve` on a real Spark: batch and streaming frames give what the log and the in-process runner give."""

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from engine.messages import Facts
from pipeline.dataframes.api import solve
from pipeline.dataframes.spark_keys import key_of
from pipeline.dataframes.streaming import _PARCEL_COLUMNS
from pipeline.errors import SolveFailed
from pipeline.log import LogWriter
from tests.docs.test_docs import fenced
from tests.soak import is_full
from tests.support import spark_cases as cases

pytestmark = pytest.mark.slow

QUERIES = {"pairs": cases.PAIRS, "high": cases.HIGH, "rule": cases.RULE, "rises": cases.RISES} | cases.FORMS
ROOMS = "<http://e/s1> <http://e/in> <http://e/hall> .\n"
DAEMON = "-m pipeline.spark.worker_daemon pyspark.worker"
MESSAGES, FILES = 120, 4 if is_full() else 3
COLUMNS = "s string, p string, o string, start timestamp, end timestamp"
ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
Found = Counter[tuple[object, ...]]


@pytest.fixture(scope="module", autouse=True)
def _with_states(spark: SparkSession) -> Iterator[None]:
    """Set in the shared session what streaming frames with states need, as long as this module's tests run."""
    chosen = {"spark.sql.streaming.stateStore.providerClass": ROCKS, "spark.sql.shuffle.partitions": "2"}
    before = {name: str(spark.conf.get(name)) for name in chosen}
    for name, value in chosen.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Readings in Parquet files, each file later than the one before and shuffled inside."""
    root, chance = tmp_path_factory.mktemp("events"), Random(5)
    for number in range(FILES):
        first = number * MESSAGES // FILES
        rows = pa.Table.from_batches([cases.message(k, chance) for k in range(first, first + MESSAGES // FILES)])
        order = Random(number).sample(range(len(rows)), len(rows))
        columns = {name: rows.column(name).cast(pa.utf8()) for name in "spo"} | {name: rows.column(name) for name in ("start", "end")}
        pq.write_table(pa.table(columns).take(order), root / f"{number}.parquet")
        os.utime(root / f"{number}.parquet", (number, number))
    return root


def in_process(queries: Mapping[str, str], facts: str, directory: Path, *, finished: bool = True) -> Found:
    """Return the solutions that the log and the in-process runner give."""
    chance = Random(5)
    with LogWriter(directory / "data", cases.frozen_clock) as log:
        log.append(lambda offset: Facts(offset, "", facts))
        for name, text in queries.items():
            cases.register(log, name, text)
        cases.readings(log, range(MESSAGES), chance)
        if finished:
            cases.finish(log)
    solutions, _ = cases.undisturbed(directory / "data", directory / "elsewhere")
    return Counter((s.query, s.start, s.end, *sorted(filter(None, s.values))) for s in solutions)


def found_in(rows: pa.Table) -> Found:
    found: Found = Counter()
    for row in (
        rows.set_column(1, "start", rows.column("start").cast(pa.int64())).set_column(2, "end", rows.column("end").cast(pa.int64())).to_pylist()
    ):
        verdict = [f'"{str(row["boolean"]).lower()}"^^<http://www.w3.org/2001/XMLSchema#boolean>'] if row["boolean"] is not None else []
        values = [value for _, value in row["binding"] or ()] + (row["triples"] or []) + verdict
        found[row["query"], row["start"], row["end"], *sorted(values)] += 1
    return found


@pytest.mark.parametrize("background", [pytest.param("", marks=pytest.mark.soak), ROOMS])
def test_a_batch_frame(spark: SparkSession, events: Path, tmp_path: Path, background: str) -> None:
    frame = solve(spark.read.parquet(str(events)), QUERIES, background)
    found = found_in(frame.toArrow())
    assert found == in_process(QUERIES, background, tmp_path)
    assert {name for name, *_ in found} >= {"pairs", "high", "rule", "rises", "some", "none", "three", "means"}


def test_an_empty_frame_has_ends_too(spark: SparkSession, events: Path) -> None:
    frame = solve(spark.read.parquet(str(events)).where("false"), {"none": cases.FORMS["none"], "high": cases.HIGH})
    assert [(row["query"], row["boolean"]) for row in frame.collect()] == [("none", False)]


def test_a_streaming_frame_goes_on_where_it_was_whatever_dies(
    spark: SparkSession, events: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File by file, each in a run of its own from the one checkpoint; all workers are killed between two of them."""
    monkeypatch.setattr("pipeline.dataframes.streaming.SNAPSHOT_ROWS", 50)
    queries, inbox, batches = (
        {"pairs": cases.PAIRS, "high": cases.HIGH, "rule": cases.RULE, "rises": cases.RISES},
        tmp_path / "inbox",
        list[pa.Table](),
    )
    inbox.mkdir()
    for number in range(FILES):
        (inbox / f"{number}.parquet").symlink_to(events / f"{number}.parquet")
        frame = solve(spark.readStream.schema(COLUMNS).parquet(str(inbox)), queries, partitions=2)
        assert frame.isStreaming
        run(frame, tmp_path / "checkpoint", batches)
        if number == 1:
            kill_workers()
    assert found_in(pa.concat_tables(batches)) == in_process(queries, "", tmp_path, finished=False)
    (inbox / "again.parquet").symlink_to(events / "0.parquet")
    other = solve(spark.readStream.schema(COLUMNS).parquet(str(inbox)), cases.HIGH, partitions=2)
    with pytest.raises(Exception, match="checkpoint was begun with other queries"):
        run(other, tmp_path / "checkpoint", batches)


def test_engines_are_spread_over_spark_s_tasks(spark: SparkSession) -> None:
    """Spark's own hash of a partition's key gives the partition's number, and groups go by this hash."""
    keys = spark.createDataFrame([(partition, key_of(partition)) for partition in range(64)], "partition int, engine long")
    assert keys.where("hash(engine) = partition").count() == 64


@pytest.mark.soak  # it is Spark that refuses: it compares the keys' type
def test_a_checkpoint_of_other_keys_is_refused(spark: SparkSession, events: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines were grouped by an int once, which Spark sent to one task: they would not be found again, and begin
    anew unasked.
    """
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    (inbox / "0.parquet").symlink_to(events / "0.parquet")
    kind = type(spark.range(1))
    map_in_arrow = kind.mapInArrow

    def with_ints(frame: DataFrame, function: object, schema: str) -> DataFrame:
        made = map_in_arrow(frame, function, schema)  # type: ignore[arg-type]
        return made.withColumn("engine", f.col("engine").cast("int")) if schema == _PARCEL_COLUMNS else made

    monkeypatch.setattr(kind, "mapInArrow", with_ints)
    run(solve(spark.readStream.schema(COLUMNS).parquet(str(inbox)), cases.HIGH, partitions=1), tmp_path / "checkpoint", [])
    monkeypatch.undo()
    (inbox / "1.parquet").symlink_to(events / "1.parquet")
    with pytest.raises(Exception, match="STATE_STORE"):
        run(solve(spark.readStream.schema(COLUMNS).parquet(str(inbox)), cases.HIGH, partitions=1), tmp_path / "checkpoint", [])


def test_late_events_are_dropped_and_max_delay_waits_for_them(spark: SparkSession, events: Path, tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    found: dict[int, list[pa.Table]] = {0: [], 3600: []}

    def solve_inbox(delay: int) -> None:
        frame = solve(spark.readStream.schema(COLUMNS).parquet(str(inbox)), cases.HIGH, partitions=2, max_delay=timedelta(seconds=delay))
        run(frame, tmp_path / f"checkpoint-{delay}", found[delay])

    for number in (1, 0, *range(2, FILES)):
        (inbox / f"{number}.parquet").symlink_to(events / f"{number}.parquet")
        solve_inbox(0)
    solve_inbox(3600)
    ends = pa.concat_tables(found[0]).column("end").cast(pa.int64()).to_pylist()
    assert min(ends) >= cases.START + MESSAGES // FILES * cases.SECOND  # the first file came second: all of it was late
    assert len(ends) > 20
    assert not any(len(batch) for batch in found[3600])  # the hour has not passed


def test_the_page_s_sink_has_each_solution_once_whatever_dies(spark: SparkSession, events: Path, tmp_path: Path) -> None:
    """A micro-batch dies after it has written, and once it has half written; another reader than Spark looks at what
    is there in the end.
    """
    (code,) = (block for block in fenced("spark.md", "python") if "def keep" in block and "foreachBatch" in block)
    found: dict[str, Callable[[DataFrame, int], None]] = {}
    exec(code[code.index("def keep") : code.index("solve(")].replace("outbox", f"{tmp_path}/outbox"), found)  # the page is ours
    frame = solve(spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(events)), cases.HIGH, partitions=2)
    died = set[int]()

    def dying(batch: DataFrame, number: int) -> None:
        found["keep"](batch.limit(number + 1) if number not in died and number == 1 else batch, number)
        if number in (1, 2) and number not in died:
            died.add(number)
            raise OSError("it dies here")

    stream = frame.writeStream.trigger(availableNow=True).option("checkpointLocation", str(tmp_path / "checkpoint")).foreachBatch(dying)
    for _ in range(2):
        with pytest.raises(Exception, match="it dies here"):
            stream.start().awaitTermination()
    stream.start().awaitTermination()
    outbox = list((tmp_path / "outbox").glob("batch=*/*.parquet"))
    expected = solve(spark.read.parquet(str(events)), cases.HIGH, partitions=1).toArrow()
    assert sorted(row for path in outbox for row in shown(pq.read_table(path))) == sorted(shown(expected))


def shown(rows: pa.Table) -> list[str]:
    """Instants as µs: Spark writes Parquet's old kind of timestamp, which pyarrow reads as nanoseconds."""
    start, end = (rows.column(name).cast(pa.timestamp("us")).cast(pa.int64()).to_pylist() for name in ("start", "end"))
    return list(map(str, zip(start, end, rows.column("binding").to_pylist(), strict=True)))


def run(frame: DataFrame, checkpoint: Path, batches: list[pa.Table]) -> None:
    def keep(batch: DataFrame, _: int) -> None:
        batches.append(batch.toArrow())

    frame.writeStream.trigger(availableNow=True).option("checkpointLocation", str(checkpoint)).foreachBatch(keep).start().awaitTermination()


def kill_workers() -> None:
    table = cases.processes()
    mine = cases.below(os.getpid(), table)
    victims = [pid for pid, args in mine.items() if args.endswith(DAEMON) and table[table[pid][0]][1].endswith(DAEMON)]  # not the daemon itself
    assert victims
    for pid in victims:
        os.kill(pid, signal.SIGKILL)


FAULTS = [
    pytest.param(lambda e: e.drop("o"), "no column 'o'", id="missing"),
    pytest.param(lambda e: e.withColumn("o", f.lit(1)), "'o' is of int", id="numbers"),
    pytest.param(
        lambda e: e.withColumn("end", f.lit("2026-01-01")), "'end' is of string; make it a timestamp, with to_timestamp", id="text for a time"
    ),
]


@pytest.mark.parametrize(("change", "said"), FAULTS)
def test_other_columns_are_refused_with_the_remedy(spark: SparkSession, events: Path, change: object, said: str) -> None:
    assert callable(change)
    with pytest.raises(SolveFailed, match=said):
        solve(change(spark.read.parquet(str(events))), cases.HIGH)


WISHES = [
    pytest.param({"queries": {}}, "there is no query", id="none"),
    pytest.param({"queries": cases.RISES}, "no query reads the stream 'default'", id="unfed"),
    pytest.param({"queries": cases.HIGH, "background": "nonsense"}, "the background is no Turtle", id="background"),
    pytest.param({"queries": cases.HIGH, "partitions": 0}, "partitions is 0; expected 1 to 64", id="partitions"),
    pytest.param({"queries": cases.HIGH, "policies": "newest"}, "'newest' is no policy", id="policy"),
    pytest.param({"queries": cases.HIGH, "default_graph": "some"}, "expected 'all' or 'unnamed'", id="default graph"),
]


@pytest.mark.parametrize(("wish", "said"), WISHES)
def test_what_cannot_be_asked_is_said(spark: SparkSession, events: Path, wish: dict[str, object], said: str) -> None:
    with pytest.raises(SolveFailed, match=said):
        solve(spark.read.parquet(str(events)), **wish)  # type: ignore[arg-type]  # that is what is tested


def test_the_former_name_of_partitions_is_taken_with_a_warning(spark: SparkSession, events: Path) -> None:
    with pytest.warns(DeprecationWarning, match="use partitions="), pytest.raises(SolveFailed, match="partitions is 0"):
        solve(spark.read.parquet(str(events)), cases.HIGH, buckets=0)


def test_a_row_that_is_no_occurrence_ends_the_job_and_is_named(spark: SparkSession, events: Path) -> None:
    broken = spark.read.parquet(str(events)).withColumn("s", f.lit("nonsense"))
    with pytest.raises(Exception, match="'nonsense' is no term in N-Triples syntax"):
        solve(broken, cases.HIGH).count()


def test_the_page_s_example_over_parquet_files(spark: SparkSession, events: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = (block for block in fenced("spark.md", "python") if 'read.parquet("readings")' in block)
    exec(code.replace('"readings"', repr(str(events))), {"spark": spark})  # the page is ours
    assert "http://e/s" in capsys.readouterr().out
