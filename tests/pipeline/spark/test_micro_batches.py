"""The Spark runner, on a real Spark: the same solutions as in-process, whatever the batches."""

import json
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from pipeline.log import LogWriter
from pipeline.object_store.backends import connect_store
from pipeline.replication.replicator import Replicator
from pipeline.solutions.solution_log import SolutionReader
from pipeline.spark.batch_stats import read_batch
from pipeline.spark.driver import working
from pipeline.spark.job import MicroBatches, run_to_end
from pipeline.spark.source import solutions_frame
from pipeline.spark.supervisor import SparkOptions, SparkRunner
from tests.pipeline.runners.test_partitions import long_stream
from tests.support import spark_cases as cases

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All cases, run in one session, in batches of few rows; every other one with two buckets."""
    root = tmp_path_factory.mktemp("spark")
    for case in cases.CASES:
        cases.write(case, root / case)
    for buckets, some in ((1, [*cases.CASES][::2]), (2, [*cases.CASES][1::2])):
        run_to_end(spark, [root / case for case in some], buckets=buckets, max_rows=60)
    return root


@pytest.mark.parametrize("case", cases.CASES)
def test_the_answers_are_those_of_the_in_process_runner(case: str, data: Path, tmp_path: Path) -> None:
    solutions, changes = cases.found_in(data / case)
    assert solutions
    assert (solutions, changes) == cases.undisturbed(data / case, tmp_path)


def test_a_log_that_grew_is_run_on_and_a_finished_one_left_alone(spark: SparkSession, data: Path, tmp_path: Path) -> None:
    before = cases.found_in(data / "rules")
    with LogWriter(data / "rules", cases.frozen_clock) as log:
        cases.register(log, "late-comer", cases.HIGH)
    run_to_end(spark, [data / "rules", data / "sequences"])
    assert cases.found_in(data / "rules")[0] == before[0]
    assert cases.head_of(data / "rules") == _position(data / "rules")


def test_a_long_stream_out_of_order(spark: SparkSession, tmp_path: Path) -> None:
    long_stream(tmp_path / "log of")
    expected = cases.undisturbed(tmp_path / "log of", tmp_path / "elsewhere", within=300)
    data = tmp_path / "data"
    shutil.copytree(tmp_path / "log of" / "log", data / "log")
    run_to_end(spark, [data], buckets=4)
    assert cases.found_in(data) == expected


def test_a_long_stream_out_of_order_by_a_store(tmp_path: Path) -> None:
    """Tasks that know the store alone bring back what is too long for a row by it, too."""
    data, store = tmp_path / "data", tmp_path / "store"
    long_stream(data)
    expected = cases.undisturbed(data, tmp_path / "elsewhere", within=300)
    keeper = Replicator(data, connect_store(str(store)), away=True)
    with LogWriter(data, cases.frozen_clock, keep=keeper.write_log) as log:
        runner = SparkRunner(data, "local[2,4]", options=SparkOptions(buckets=2, store=str(store)))
        runner.start()
        try:
            cases.reached(data, log.head(), 180, lambda: runner.state)
        finally:
            runner.stop()
    keeper.stop()
    assert cases.found_in(data) == expected
    assert [*(store / "spill").iterdir()] == []


def test_solutions_are_rows_of_a_streaming_frame(spark: SparkSession, data: Path, tmp_path: Path) -> None:
    batches: list[pa.Table] = []

    def keep(batch: DataFrame, _: int) -> None:
        batches.append(batch.toArrow())

    frame = solutions_frame(spark, data / "changing")
    assert frame.isStreaming
    query = frame.writeStream.trigger(availableNow=True).option("checkpointLocation", str(tmp_path / "checkpoint")).foreachBatch(keep).start()
    query.awaitTermination()
    rows = pa.concat_tables(batches).to_pylist()
    found = [(row["query"], row["registered"], row["entry"], tuple(row["values"])) for row in rows]
    assert found == [(s.query, s.registered, s.entry, s.values) for s in cases.found_in(data / "changing")[0]]


def test_the_first_batch_is_told_of_though_spark_knows_no_start_of_it(spark: SparkSession, data: Path, tmp_path: Path) -> None:
    shutil.copytree(data / "rules" / "log", tmp_path / "log")
    job, over = MicroBatches(tmp_path), Event()
    teller = Thread(target=lambda: job.tell(over))
    with working(job, spark, tmp_path):
        teller.start()
        try:
            cases.eventually(lambda: read_batch(tmp_path) is not None, 30, lambda: str(teller))
        finally:
            over.set()
            teller.join()
    told, head = read_batch(tmp_path), cases.head_of(tmp_path)
    assert told is not None
    assert (told.number, told.entries, told.lag) == (0, head, 0)
    assert told.rows > 0


@pytest.mark.parametrize("low_latency", [False, True], ids=["micro-batches", "low latency"])
def test_a_runner_serves_a_growing_log_and_ends_without_a_trace(low_latency: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runner takes the Java of PyPI; the session of the other tests has the system's, if there is one."""
    monkeypatch.setenv("EPSPARQL_JAVA", "pypi")
    commits: list[int] = []
    with LogWriter(tmp_path, cases.frozen_clock) as log:
        runner = SparkRunner(tmp_path, "local[2,4]", heartbeat=log.heartbeat, options=SparkOptions(low_latency=low_latency))
        runner.on_commit(commits.append)
        runner.start()
        try:
            cases.eventually(lambda: runner.ready, 90, lambda: runner.state)
            assert runner.state == "running"
            assert runner.pid is not None
            family = cases.below(runner.pid)
            assert any("java" in args for args in family.values())
            cases.sequences(log)
            cases.reached(tmp_path, cases.finish(log) + 1, 60, lambda: runner.state)
            cases.eventually(lambda: runner.position == log.head(), 10, lambda: str(runner.position))
            cases.eventually(
                lambda: (told := read_batch(tmp_path)) is not None and (low_latency or told.entries > 0) and told.lag == 0,
                10,
                lambda: str(read_batch(tmp_path)),
            )
            family |= cases.below(runner.pid)
        finally:
            runner.stop()
    assert runner.state == "stopped"
    assert commits == sorted(set(commits))
    assert not (tmp_path / "spark").exists()
    assert not low_latency or list((tmp_path / "snapshots").glob(f"*{log.head()}.snapshot")), "a task that stays saves its engines as it ends"
    cases.gone(family)
    solutions, changes = cases.found_in(tmp_path)
    assert solutions
    assert (solutions, changes) == cases.undisturbed(tmp_path, tmp_path / "elsewhere")


def test_a_runner_that_gets_nowhere_gives_up_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPSPARQL_JAVA", "none")
    monkeypatch.setattr("pipeline.spark.supervisor.FIRST_PAUSE_S", 0.01)
    runner = SparkRunner(tmp_path, "local[1,4]")
    runner.start()
    cases.eventually(lambda: runner.state.startswith("failed"), 60, lambda: runner.state)
    assert "EPSPARQL_JAVA must be 'system' or 'pypi'" in runner.state
    assert not runner.ready
    runner.stop()
    assert runner.state.startswith("failed")


def test_the_process_ends_with_its_standard_input(tmp_path: Path) -> None:
    """Also while Spark is still starting."""
    command = [sys.executable, "-m", "pipeline.spark", "--data", str(tmp_path), "--master", "local[1,4]"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as runner:
        assert runner.stdin is not None
        assert runner.stdout is not None
        cases.eventually(lambda: any("java" in args for args in cases.below(runner.pid).values()), 30, lambda: "no java")
        family = cases.below(runner.pid)
        runner.stdin.close()
        assert runner.wait(40) in (0, 3)  # 3: Spark did not come to a point where it could be stopped
        assert all("position" in json.loads(line) for line in runner.stdout)
    cases.gone(family)


def _position(data: Path) -> int:
    with closing(SolutionReader(data)) as reader:
        return reader.position
