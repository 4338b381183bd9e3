"""Conformance cases on Spark: one in ten, in `make soak` every one and some through `replay --runner spark`.

In-process, tests/engine/semantics/test_conformance.py runs all of them: Spark is to bring what the same engine finds.
"""

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.log import LogWriter
from pipeline.registrations.query_cache import get_shape
from pipeline.replay.input_files import NamedFile, read_query
from pipeline.replay.replay import Replay, write_log
from pipeline.solutions.formats import NDJSON, write_page
from pipeline.spark.job import run_to_end
from server.cli import commands
from tests.engine.semantics.test_conformance import CASES, read, row
from tests.soak import is_full
from tests.support.plain_json import stored
from tests.support.spark_cases import found_in, frozen_clock

pytestmark = pytest.mark.slow
SOME = CASES if is_full() else CASES[::10]


def test_the_server_s_job(spark: SparkSession, tmp_path: Path) -> None:
    assert len(CASES) == 200
    for case in SOME:
        _write(case, tmp_path / case.name)
    run_to_end(spark, [tmp_path / case.name for case in SOME])
    wrong = [case.name for case in SOME if _found(case, tmp_path / case.name) != Counter(read(case).expected)]
    assert wrong == []


@pytest.mark.soak  # in CI, tests/server/cli/test_cli.py replays on Spark
@pytest.mark.parametrize("case", CASES[7::80], ids=lambda path: path.name)
def test_replay_on_spark(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"--query": "query.rq", "--stream": "stream.ndjson", "--background": "background.nt"}
    status = commands.main(
        ["replay", *(part for flag, name in files.items() for part in (flag, str(case / name))), "--runner", "spark", "--master", "local[2,4]"]
    )
    printed = capsys.readouterr()
    assert status == 0, printed.err
    assert Counter(map(row, printed.out.splitlines())) == Counter(read(case).expected)


def _write(case: Path, data: Path) -> None:
    query = read_query(case / "query.rq")
    replay = Replay([query], [NamedFile("", case / "stream.ndjson")], [NamedFile("", case / "background.nt")])
    with LogWriter(data, frozen_clock) as log:
        write_log(log, replay, {query.name: get_shape(query.text)})


def _found(case: Path, data: Path) -> Counter[object]:
    form = get_shape((case / "query.rq").read_text()).form
    solutions, _ = found_in(data)
    return Counter(row(line) for line in write_page(NDJSON, stored(solutions), form).decode().splitlines())
