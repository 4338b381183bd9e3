"""Conformance cases on Spark: one in ten, in `make soak` every one. tests/server/cli/test_cli.py has `replay --runner
spark`.

In-process, tests/engine/semantics/test_conformance.py and tests/etalis/test_conformance.py run all of them: Spark is
to bring what the same engine finds.
"""

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.log import LogWriter
from pipeline.registrations.query_cache import get_shape
from pipeline.replay.input_files import NamedBody
from pipeline.replay.query_files import NamedFile, named_file, read_program, read_query
from pipeline.replay.replay import Replay, write_log
from pipeline.solutions.formats import NDJSON, write_page
from pipeline.spark.job import run_to_end
from tests.engine.semantics.test_conformance import CASES, read, row
from tests.etalis.programs import STREAM, reported
from tests.etalis.test_conformance import CASES as PROGRAMS
from tests.etalis.test_conformance import EXAMPLES
from tests.soak import is_full
from tests.support.plain_json import stored
from tests.support.spark_cases import found_in, frozen_clock

pytestmark = pytest.mark.slow
SOME = CASES if is_full() else CASES[::10]
SOME_PROGRAMS = [*PROGRAMS, *EXAMPLES] if is_full() else [*PROGRAMS[::11], *EXAMPLES[::15]]
"""The programs are numbered by their style, modulo 10, so every eleventh has each style."""


def test_the_server_s_job(spark: SparkSession, tmp_path: Path) -> None:
    assert len(CASES) == 200
    for case in SOME:
        _write(case, tmp_path / case.name)
    run_to_end(spark, [tmp_path / case.name for case in SOME])
    wrong = [case.name for case in SOME if _found(case, tmp_path / case.name) != Counter(read(case).expected)]
    assert wrong == []


def test_programs_of_etalis(spark: SparkSession, tmp_path: Path) -> None:
    for directory in SOME_PROGRAMS:
        query, policy = read_program([directory / "program.event"])
        _write_log(Replay([query], [named_file(str(directory / "stream.stream"))], [], policies={query.name: policy}), tmp_path / directory.name)
    _write_log(_two_programs(tmp_path), tmp_path / "two")
    run_to_end(spark, [tmp_path / "two", *(tmp_path / directory.name for directory in SOME_PROGRAMS)])
    found = [(each.query, each.values[1:]) for each in found_in(tmp_path / "two")[0]]
    assert sorted(found) == [("first", (_number(1), _number(2))), ("first", (_number(2), _number(3))), ("second", (_number(1), _number(3)))]
    wrong = [directory.name for directory in SOME_PROGRAMS if _events(directory, tmp_path / directory.name) != _expected(directory)]
    assert wrong == []


def _two_programs(directory: Path) -> Replay:
    """Return a run of a program that writes a stream, and one that reads it."""
    texts = {
        "first": "into_stream('urn:t:out'). d(X, Y) <- a(X) seq a(Y) where Y =:= X + 1.",
        "second": "from_stream('urn:t:out'). e(X, Z) <- d(X, Y) and d(Y, Z).",
    }
    for name, text in texts.items():
        (directory / f"{name}.event").write_text(text)
    sent = NamedBody("", Path("s.stream"), b"event(a(1),1). event(a(2),2). event(a(3),3).", STREAM)
    return Replay([read_program([directory / f"{name}.event"])[0] for name in texts], [sent], [])


def _number(n: int) -> str:
    return f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def _write(case: Path, data: Path) -> None:
    _write_log(Replay([read_query(case / "query.rq")], [NamedFile("", case / "stream.ndjson")], [NamedFile("", case / "background.nt")]), data)


def _write_log(replay: Replay, data: Path) -> None:
    with LogWriter(data, frozen_clock) as log:
        write_log(log, replay, {query.name: get_shape(query.text) for query in replay.queries})


def _lines(text: str, data: Path) -> list[str]:
    solutions, _ = found_in(data)
    return write_page(NDJSON, stored(solutions), get_shape(text).form).decode().splitlines()


def _found(case: Path, data: Path) -> Counter[object]:
    return Counter(row(line) for line in _lines((case / "query.rq").read_text(), data))


def _events(directory: Path, data: Path) -> Counter[object]:
    query, _ = read_program([directory / "program.event"])
    return Counter(reported(line) for line in _lines(query.text, data))


def _expected(directory: Path) -> Counter[object]:
    return Counter({reported(line) for line in (directory / "expected.ndjson").read_text().splitlines()})
