"""The Spark runner, in a process of its own: the same solutions as in-process, whoever wrote the directory and
wherever the engines are.
"""

import json
import subprocess
import sys
import tarfile
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from pipeline.log import LogWriter
from pipeline.object_store.backends import connect_store
from pipeline.replication.replicator import Replicator
from pipeline.spark.batch_stats import read_batch
from pipeline.spark.job import run_to_end
from pipeline.spark.supervisor import SparkOptions, SparkRunner
from tests.pipeline.runners.test_partitions import long_stream
from tests.support import spark_cases as cases

pytestmark = pytest.mark.slow


FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.mark.parametrize("partitions", [pytest.param(1, marks=pytest.mark.soak), 2])
def test_a_directory_of_micro_batches_goes_on(partitions: int, spark: SparkSession, tmp_path: Path) -> None:
    """Micro-batches, which the runner had in 0.1.0, wrote `micro-batches.tar.xz`: `cases.sequences` and a heartbeat,
    with snapshots.
    """
    with tarfile.open(FIXTURES / "micro-batches.tar.xz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python has it from 3.11.4 on
        archive.extractall(tmp_path)
    data = tmp_path / str(partitions)
    before = cases.found_in(data)[0]
    with LogWriter(data, cases.frozen_clock) as log:
        cases.readings(log, range(150, 200), Random(9))
        cases.finish(log)
    run_to_end(spark, [data])
    found = cases.found_in(data)
    assert found[0][: len(before)] == before
    assert found == cases.undisturbed(data, tmp_path / "elsewhere")
    assert len(found[0]) > len(before) > 0


@pytest.mark.soak  # in CI, test_cluster.py has tasks that know the store alone, and test_spill.py what is too long for a row
def test_a_long_stream_out_of_order_by_a_store(tmp_path: Path) -> None:
    """Tasks that know the store alone bring back what is too long for a row by it, too."""
    data, store = tmp_path / "data", tmp_path / "store"
    long_stream(data)
    expected = cases.undisturbed(data, tmp_path / "elsewhere", within=300)
    keeper = Replicator(data, connect_store(str(store)), away=True)
    with LogWriter(data, cases.frozen_clock, keep=keeper.write_log) as log:
        runner = SparkRunner(data, "local[2,4]", options=SparkOptions(partitions=2, store=str(store)))
        runner.start()
        try:
            cases.reached(data, log.head(), 180, lambda: runner.state)
        finally:
            runner.stop()
    keeper.stop()
    assert cases.found_in(data) == expected
    assert [*(store / "spill").iterdir()] == []


@pytest.mark.soak  # in CI, test_long_running_task.py has the refusal without a JVM of its own
def test_a_runner_with_too_few_slots_says_so_and_does_not_try_again(tmp_path: Path) -> None:
    cases.write("sequences", tmp_path)
    runner = SparkRunner(tmp_path, "local[1,4]", options=SparkOptions(partitions=2))
    runner.start()
    try:
        cases.eventually(lambda: runner.state != "starting", 180, lambda: runner.state)
        assert runner.state == "failed: 2 partitions need 2 cores of Spark at once, and local[1,4] gives 1: add cores, or start with --partitions 1"
    finally:
        runner.stop()


def test_a_runner_serves_a_growing_log_and_ends_without_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runner takes the Java of PyPI; the session of the other tests has the system's, if there is one.

    All users see a command line, so a chosen secret stands in none.
    """
    monkeypatch.setenv("EPSPARQL_JAVA", "pypi")
    conf = ("spark.test.secret=hidden", "spark.driver.extraJavaOptions=-Dtest.option=1")
    commits: list[int] = []
    with LogWriter(tmp_path, cases.frozen_clock) as log:
        runner = SparkRunner(tmp_path, "local[2,4]", log.heartbeat, SparkOptions(conf=conf))
        runner.on_commit(commits.append)
        runner.start()
        try:
            cases.eventually(lambda: runner.ready, 90, lambda: runner.state)
            assert runner.state == "running"
            assert runner.pid is not None
            family = cases.below(runner.pid)
            assert any("java" in args and "-Dtest.option=1" in args for args in family.values())
            assert not any("hidden" in args for args in family.values())
            cases.sequences(log)
            cases.reached(tmp_path, cases.finish(log) + 1, 60, lambda: runner.state)
            cases.eventually(lambda: runner.position == log.head(), 10, lambda: str(runner.position))
            cases.eventually(
                lambda: (told := read_batch(tmp_path)) is not None and told.entries > 0 and told.lag == 0,
                10,
                lambda: str(read_batch(tmp_path)),
            )
            family |= cases.below(runner.pid)
        finally:
            runner.stop()
    assert runner.state == "stopped"
    assert commits == sorted(set(commits))
    assert not (tmp_path / "spark").exists()
    assert list((tmp_path / "snapshots").glob(f"*{log.head()}.snapshot")), "a task that stays saves its engines as it ends"
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
