"""The tasks that stay, on a real Spark: the same solutions as in-process, one writer at a time, an orderly end."""

import shutil
from contextlib import closing
from pathlib import Path
from random import Random
from threading import Event, Thread

import pytest
from pyspark.sql import SparkSession

from pipeline.errors import Locked, SparkFailed
from pipeline.log import LogWriter, codec
from pipeline.log.lock import take_when_free
from pipeline.runners.log_follower import Callbacks, Following, WholeWork
from pipeline.solutions.solution_log import SolutionWriter
from pipeline.spark.driver import working
from pipeline.spark.long_running_task import ResidentJob
from pipeline.spark.task_lease import Claim
from tests.pipeline.runners.test_partitions import long_stream
from tests.soak import is_full
from tests.support import spark_cases as cases

pytestmark = pytest.mark.slow


def solve(spark: SparkSession, data: Path, scratch: Path, partitions: int) -> cases.Found:
    scratch.mkdir()
    with working(ResidentJob(data, partitions), spark, scratch) as failure:
        cases.reached(data, cases.head_of(data), 120, lambda: str(failure()))
    return cases.found_in(data)


PARTITIONS = {
    "sequences": (1, 4),
    "crossing": (4,),
    "changing": (2, 4),
    "rules": (4,),
    "completing": (4,),
    "history": (1, 2),
    "backlogs": (2,),
    "observations": (3,),
}
FEW = {("sequences", 4), ("changing", 2), ("rules", 4), ("history", 1), ("backlogs", 2)}
"""Outside of `make soak`; test_partitions.py has all cases in the server's process, by the same engines."""


@pytest.mark.parametrize(
    ("case", "partitions"), [(case, number) for case in cases.CASES for number in PARTITIONS[case] if is_full() or (case, number) in FEW]
)
def test_the_answers_are_those_of_the_in_process_runner(
    case: str, partitions: int, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of several tasks reads its slices of the log."""
    monkeypatch.setattr(codec, "SLICE_ROWS", 0)
    data = tmp_path / "data"
    cases.write(case, data, partitions)
    found = solve(spark, data, tmp_path / "scratch", partitions)
    assert found[0]
    assert found == cases.undisturbed(data, tmp_path / "elsewhere")
    assert len(list((data / "snapshots").glob("*.snapshot"))) == partitions, "the engines are saved at the end"


def test_a_long_stream_out_of_order(spark: SparkSession, tmp_path: Path) -> None:
    long_stream(tmp_path / "log of")
    expected = cases.undisturbed(tmp_path / "log of", tmp_path / "elsewhere", within=300)
    data = tmp_path / "data"
    shutil.copytree(tmp_path / "log of" / "log", data / "log")
    assert solve(spark, data, tmp_path / "scratch", 4) == expected


def test_an_attempt_that_still_lives_gives_way_to_a_later_one(spark: SparkSession, tmp_path: Path) -> None:
    """The later one is at work here. Spark's further attempts are earlier ones, and have no part any more."""
    data, scratch = tmp_path / "data", tmp_path / "scratch"
    with LogWriter(data, cases.frozen_clock) as log:
        cases.sequences(log)
        scratch.mkdir()
        with working(ResidentJob(data), spark, scratch) as failure:
            cases.reached(data, log.head(), 60, lambda: str(failure()))
            with pytest.raises(Locked, match="in use by process"):
                SolutionWriter(data)
            later = Claim(scratch / "claim-0", (scratch / "claim-0").read_text().split()[0], 10**6)
            assert later.take_lease()
            following = Following(WholeWork(data, log.reader()), over := Event(), Callbacks(lambda *_: None))
            assert take_when_free(following.open, over) is None
            assert following.position == log.head()
            thread = Thread(target=following.run)
            thread.start()
            cases.readings(log, range(150, 200), Random(9))
            cases.reached(data, cases.finish(log) + 1, 60, lambda: str(failure()))
            cases.eventually(lambda: failure() is not None, 180, lambda: "the job goes on")
            over.set()
            thread.join()
    assert "Superseded" in str(failure())
    assert cases.found_in(data) == cases.undisturbed(data, tmp_path / "elsewhere")


def test_more_partitions_than_slots_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    data = tmp_path / "data"
    cases.write("sequences", data)
    with pytest.raises(SparkFailed, match=r"5 partitions need 5 cores of Spark at once, and local\[4,4\] gives 4: .* --partitions 4"):
        ResidentJob(data, 5).begin(spark, tmp_path, lambda _: None)


def test_two_drivers_do_not_share_a_directory(tmp_path: Path) -> None:
    with closing(ResidentJob(tmp_path).lock()), pytest.raises(Locked, match=str(tmp_path)):
        ResidentJob(tmp_path).lock()


def test_a_task_that_gets_nowhere_ends_the_job_with_its_reason(spark: SparkSession, tmp_path: Path) -> None:
    data, scratch = tmp_path / "data", tmp_path / "scratch"
    cases.write("sequences", data)
    cases.undisturbed(data, tmp_path / "elsewhere")
    shutil.copytree(tmp_path / "elsewhere" / "solutions", data / "solutions")
    shutil.rmtree(data / "log")
    scratch.mkdir()
    with working(ResidentJob(data), spark, scratch) as failure:
        cases.eventually(lambda: failure() is not None, 180, lambda: "it goes on")
    assert "not the log they came from" in str(failure())
