"""Conformance cases on Spark: one in ten, in `make soak` every one. tests/server/cli/test_cli.py has `replay --runner
spark`.

In-process, tests/engine/semantics/test_conformance.py and tests/etalis/test_conformance.py run all of them: Spark is
to bring what the same engine finds.
"""

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from pipeline.log import LogWriter
from pipeline.registrations.query_cache import get_shape
from pipeline.replay.input_files import NamedBody
from pipeline.replay.query_files import NamedFile, QueryFile, SourceFault, named_file, read_program, read_query
from pipeline.replay.replay import Replay, write_log
from pipeline.solutions.formats import NDJSON, write_page
from pipeline.solutions.solution_log import StoredSolution
from pipeline.spark.job import run_to_end
from tests.engine.semantics.test_conformance import CASES, read, row
from tests.etalis.naive import Ambiguous, Event, run_naively
from tests.etalis.programs import STREAM, Reported, reported
from tests.etalis.strategies import streams, written
from tests.etalis.test_conformance import CASES as PROGRAMS
from tests.etalis.test_conformance import EXAMPLES, PAPERS, POLICIES, events_of, written_policy
from tests.etalis.test_equivalence import programs, seconds
from tests.pipeline.spark.test_background import drawn
from tests.soak import first_seed, is_full
from tests.support.plain_json import stored
from tests.support.spark_cases import found_in, frozen_clock, undisturbed

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


def test_papers(spark: SparkSession, tmp_path: Path) -> None:
    """Each policy of the papers' cases is a query of its own over the case's stream."""
    wanted: dict[str, dict[str, list[Reported]]] = {"recent": {}, "and": {}}
    for name, by_query in wanted.items():
        policies = {f"{name}{k}": (policy, found) for k, (case, policy, found) in enumerate(POLICIES) if case == name}
        by_query |= {query: sorted(events_of(found)) for query, (_, found) in policies.items()}
        queries = [_program_named(tmp_path, query, written_policy(name, policy)) for query, (policy, _) in policies.items()]
        stream = named_file(str(PAPERS / "policies" / f"{name}.stream"))
        _write_log(Replay(queries, [stream], [], policies={query: policy for query, (policy, _) in policies.items()}), tmp_path / name)
    run_to_end(spark, [tmp_path / name for name in wanted])
    for name, by_query in wanted.items():
        found = found_in(tmp_path / name)[0]
        assert {query: sorted(_read_events(tmp_path / f"{query}.event", found)) for query in by_query} == by_query


def test_programs_that_nobody_has_seen(spark: SparkSession, tmp_path: Path) -> None:
    """Random programs give what the naive evaluator gives, in-process and on Spark; in `make soak` the seed is new."""
    wanted, queries, sent = dict[str, set[Event]](), list[QueryFile](), list[NamedBody]()
    for number, (program, events) in enumerate(drawn(st.tuples(programs(), streams()), 300 if is_full() else 24, first_seed() if is_full() else 48)):
        with suppress(Ambiguous, SourceFault):  # of the latter, a variable on one side of an or alone
            wanted[f"q{number}"] = run_naively(program, events)
            queries.append(_program_named(tmp_path, f"q{number}", f"from_stream('urn:s{number}').\n{program}"))
            sent.append(NamedBody(f"urn:s{number}", Path("s.stream"), written(events).encode(), STREAM))
    _write_log(Replay(queries, sent, []), tmp_path / "data")
    run_to_end(spark, [tmp_path / "data"])
    found = found_in(tmp_path / "data")
    assert found == undisturbed(tmp_path / "data", tmp_path / "elsewhere")
    for query in queries:
        lines = _read_events(query.path, found[0])
        assert {(each.event, tuple(json.loads(each.args)), seconds(each.start), seconds(each.end)) for each in lines} == wanted[query.name], (
            query.text
        )
    assert sum(bool(wanted[query.name]) for query in queries) > len(queries) // 3, "many find something"


def _program_named(directory: Path, name: str, text: str) -> QueryFile:
    (directory / f"{name}.event").write_text(text)
    return read_program([directory / f"{name}.event"])[0]


def _read_events(program: Path, solutions: Sequence[StoredSolution]) -> list[Reported]:
    """Return the events of a program, which is named after its file, among the solutions of several."""
    own, form = [each for each in solutions if each.query == program.stem], get_shape(read_program([program])[0].text).form
    return [reported(line) for line in write_page(NDJSON, stored(own), form).decode().splitlines()]


def _two_programs(directory: Path) -> Replay:
    """Return a run of a program that writes a stream, and one that reads it."""
    texts = {
        "first": "into_stream('urn:t:out'). d(X, Y) <- a(X) seq a(Y) where Y =:= X + 1.",
        "second": "from_stream('urn:t:out'). e(X, Z) <- d(X, Y) and d(Y, Z).",
    }
    sent = NamedBody("", Path("s.stream"), b"event(a(1),1). event(a(2),2). event(a(3),3).", STREAM)
    return Replay([_program_named(directory, name, text) for name, text in texts.items()], [sent], [])


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
