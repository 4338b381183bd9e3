"""Solutions as Parquet files: each once, whatever dies, and read by others than us."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from engine.entries import Drop
from epsparql.client import Client
from epsparql.terms import XSD
from pipeline.errors import Locked, NotOfThisLog
from pipeline.export import Exporter
from pipeline.inprocess import InProcessRunner
from pipeline.log import LogWriter
from pipeline.solutions import SolutionReader
from pipeline.spark import session
from pipeline.times import iso
from server.child import Child
from tests.pipeline import spark_cases as cases


def run(data: Path) -> None:
    """Bring the solution log to the head."""
    runner = InProcessRunner(data)
    runner.start()
    try:
        cases.reached(data, cases.head_of(data), 120, lambda: runner.state)
    finally:
        runner.stop()


def exporter(data: Path, directory: Path) -> Exporter:
    """As of a server whose queries are all gone: the log knows them."""
    return Exporter(data, directory, lambda _: None)


@contextmanager
def closing_export(export: Exporter) -> Iterator[Exporter]:
    try:
        yield export
    finally:
        export.stop()


def rows(directory: Path) -> pa.Table:
    partitions = ds.HivePartitioning(pa.schema([("query", pa.utf8()), ("date", pa.utf8())]), segment_encoding="uri")
    return ds.dataset(directory, partitioning=partitions).to_table()


def values(table: pa.Table) -> "Counter[tuple[object, ...]]":
    times = [table.column(name).cast(pa.int64()).to_pylist() for name in ("start", "end")]
    columns = [table.column(name).to_pylist() for name in ("query", "registered", "entry", "id", "binding", "triples", "boolean")]
    found: Counter[tuple[object, ...]] = Counter()
    for start, end, query, registered, entry, identifier, binding, triples, boolean in zip(*times, *columns, strict=True):
        verdict = [] if boolean is None else [f'"{str(boolean).lower()}"^^<http://www.w3.org/2001/XMLSchema#boolean>']
        found[query, registered, entry, identifier, start, end, (*(value for _, value in binding or ()), *(triples or ()), *verdict)] += 1
    return found


def logged(data: Path) -> "Counter[tuple[object, ...]]":
    return Counter(
        (s.query, s.registered, s.entry, s.id, s.start, s.end, tuple(v for v in s.values if v is not None)) for s in cases.found_in(data)[0]
    )


@pytest.mark.parametrize("case", ["completing", "changing", "rules"])
def test_every_solution_is_exported_once(case: str, tmp_path: Path) -> None:
    cases.write(case, tmp_path / "data")
    run(tmp_path / "data")
    with closing_export(exporter(tmp_path / "data", tmp_path / "out")) as export:
        export.round()
        export.round()
        assert export.position == cases.head_of(tmp_path / "data")
    assert values(rows(tmp_path / "out")) == logged(tmp_path / "data") != Counter()
    assert not list((tmp_path / "out").rglob(".*"))


def test_files_grow_with_the_log_and_by_day(tmp_path: Path) -> None:
    data, out, chance = tmp_path / "data", tmp_path / "out", Random(8)
    for hours in (range(3), range(20, 30)):
        with LogWriter(data, cases.frozen_clock) as log:
            if not hours.start:
                cases.register(log, "a/b = c", cases.HIGH)
            cases.readings(log, [3600 * hour + k for hour in hours for k in range(5)], chance)
        run(data)
        with closing_export(exporter(data, out)) as export:
            export.round()
    assert {path.name for path in out.iterdir() if path.is_dir()} == {"query=a%2Fb%20%3D%20c"}
    assert {path.name for path in out.glob("query=*/*")} == {"date=2026-01-01", "date=2026-01-02"}
    assert values(rows(out)) == logged(data)


KILLED = """
import os, sys
from pathlib import Path
import pipeline.export as export

left = int(sys.argv[3])
for name in ("_put", "_replace"):
    def counted(*arguments, wrapped=getattr(export, name)):
        global left
        left -= 1
        if left < 0:
            os._exit(9)
        wrapped(*arguments)
    setattr(export, name, counted)
export.ROWS = 20
export.Exporter(Path(sys.argv[1]), Path(sys.argv[2]), lambda _: None).round()
"""
"""Ends with no chance to clean up before the n-th file or note."""


def test_an_export_that_is_killed_anywhere_ends_with_each_solution_once(tmp_path: Path) -> None:
    cases.write("changing", tmp_path / "data")
    run(tmp_path / "data")
    steps = []
    for number in range(1, 9):
        command = [sys.executable, "-c", KILLED, str(tmp_path / "data"), str(tmp_path / "out"), str(number)]
        steps.append(subprocess.run(command, check=False).returncode)
    assert 9 in steps
    with closing_export(exporter(tmp_path / "data", tmp_path / "out")) as export:
        export.round()
    assert values(rows(tmp_path / "out")) == logged(tmp_path / "data")


def test_a_query_that_was_replaced_is_read_by_its_own_text(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with LogWriter(data, cases.frozen_clock) as log:
        first = cases.register(log, "q", cases.HIGH)
        cases.readings(log, range(20), Random(1))
        log.append(lambda offset: Drop(offset, first, "q"))
        cases.register(log, "q", cases.PAIRS)
        cases.readings(log, range(20, 40), Random(2))
    run(data)
    with closing_export(exporter(data, tmp_path / "out")) as export:
        export.round()
    assert values(rows(tmp_path / "out")) == logged(data)
    assert len({registered for _, registered, *_ in logged(data)}) == 2


def test_another_log_s_files_are_not_gone_on_with(tmp_path: Path) -> None:
    cases.write("sequences", tmp_path / "data")
    run(tmp_path / "data")
    with closing_export(exporter(tmp_path / "data", tmp_path / "out")) as export:
        export.round()
        with pytest.raises(Locked):
            exporter(tmp_path / "data", tmp_path / "out")
    with LogWriter(tmp_path / "other", cases.frozen_clock) as log:
        log.heartbeat()
    with pytest.raises(NotOfThisLog, match="choose an empty directory with --export"):
        exporter(tmp_path / "other", tmp_path / "out")


def test_solutions_that_are_found_again_are_waited_for(tmp_path: Path) -> None:
    """After the machine's fall the solution log may end before what was exported."""
    cases.write("sequences", tmp_path / "data")
    run(tmp_path / "data")
    with closing_export(exporter(tmp_path / "data", tmp_path / "out")) as export:
        export.round()
    for file in (tmp_path / "data" / "solutions").iterdir():
        file.unlink()
    with closing_export(exporter(tmp_path / "data", tmp_path / "out")) as export:
        export.round()
        run(tmp_path / "data")
        export.round()
    with closing(SolutionReader(tmp_path / "data")) as solutions:
        assert solutions.position == cases.head_of(tmp_path / "data")
    assert values(rows(tmp_path / "out")) == logged(tmp_path / "data")


@pytest.mark.slow
def test_a_server_exports_while_it_runs_and_spark_reads_it(tmp_path: Path) -> None:
    """The server is killed in between; then it is stopped, which exports the rest."""
    data, out = tmp_path / "data", tmp_path / "out"
    options = ["--export", str(out), "--export-every-s", "0.2"]
    with Child(data, "inprocess", tmp_path / "log", extra=options) as child:
        client = Client(child.url, patience_s=60)
        client.wait_ready(240)
        client.register("high", cases.HIGH)
        feed(client, range(40))
        cases.eventually(lambda: any(out.glob("query=high/*/*.parquet")), 30, lambda: "nothing is exported")
        child.kill()
    with Child(data, "inprocess", tmp_path / "log", extra=options) as child:
        client = Client(child.url, patience_s=60)
        client.wait_ready(60)
        feed(client, range(40, 80))
        cases.reached(data, cases.head_of(data), 30)
        assert child.stop() == 0
    assert values(rows(out)) == logged(data) != Counter()
    with session("local[1]") as spark:
        frame = spark.read.parquet(str(out))
        assert {"query", "date", "id", "binding"} <= set(frame.columns)
        found = frame.where("query = 'high'").select("id", frame.binding["v"].alias("v")).collect()
        assert sorted((row["id"], row["v"]) for row in found) == sorted((s.id, s.values[1]) for s in cases.found_in(data)[0])


def feed(client: Client, numbers: range) -> None:
    with client.feed("default") as feed:
        for number in numbers:
            at = iso(cases.START + number * cases.SECOND)
            feed.send(json.dumps({"s": "<http://e/s>", "p": "<http://e/a>", "o": f'"{number + 30}"^^<{XSD}integer>', "at": at}))
        feed.flush()
