"""A sample of the conformance cases on Spark, all in one session; in-process, tests/engine/test_conformance.py runs every one."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.log import LogWriter
from pipeline.spark import run_to_end, session
from server.compiled import shape
from server.replay import Replay, write_log
from server.solutions import NDJSON, written
from server.sources import NamedFile, read_query
from tests.engine.test_conformance import CASES, read, row
from tests.pipeline.spark_cases import compile_kernel, found_in, frozen_clock

pytestmark = pytest.mark.slow
SAMPLE = CASES[::10]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    compile_kernel(tmp_path_factory)
    with session("local[2,4]") as started:
        yield started


def test_a_sample_of_the_cases(spark: SparkSession, tmp_path: Path) -> None:
    assert len(SAMPLE) == 20
    for case in SAMPLE:
        _write(case, tmp_path / case.name)
    run_to_end(spark, [tmp_path / case.name for case in SAMPLE])
    wrong = [case.name for case in SAMPLE if _found(case, tmp_path / case.name) != Counter(read(case).expected)]
    assert wrong == []


def _write(case: Path, data: Path) -> None:
    query = read_query(case / "query.rq")
    replay = Replay([query], [NamedFile("", case / "stream.ndjson")], [NamedFile("", case / "background.nt")])
    with LogWriter(data, frozen_clock) as log:
        write_log(log, replay, {query.name: shape(query.text)})


def _found(case: Path, data: Path) -> Counter[object]:
    variables = shape((case / "query.rq").read_text()).variables
    solutions, _ = found_in(data)
    return Counter(row(line) for line in written(NDJSON, solutions, variables).splitlines())
