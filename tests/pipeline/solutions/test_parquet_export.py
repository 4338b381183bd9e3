"""Solutions as Parquet files: each once, whatever dies, and read by others than us."""

import json
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from urllib.parse import quote, unquote

import pyarrow.parquet as pq
import pytest

from engine.messages import Drop
from epsparql.client import Client
from pipeline.errors import Locked, NotOfThisLog, Overtaken, StoreFailed
from pipeline.log import LogWriter
from pipeline.log.log_fingerprint import Marks
from pipeline.log.segments import oldest
from pipeline.object_store.remote_store import RemoteStore
from pipeline.parquet_export import Exporter, folder_of
from pipeline.solutions.solution_log import SolutionReader
from pipeline.spark.spark_session import session
from server.child_server import Child
from tests.pipeline.log.test_retention import fill, retention
from tests.pipeline.solutions.exports import Target, closing_export, exported, exporter, feed, logged, run, values
from tests.soak import is_full
from tests.support import spark_cases as cases
from tests.support.s3_emulator import ACCESS, CREDENTIALS, SECRET, Line, S3Bucket, Served, served

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("store")) as found:
        yield found


@pytest.fixture
def s3(store: Served, monkeypatch: pytest.MonkeyPatch) -> S3Bucket:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    return store.bucket()


@pytest.fixture(params=["directory", "s3"])
def out(request: pytest.FixtureRequest, tmp_path: Path) -> Target:
    kind: str = request.param
    if kind == "s3":
        found: S3Bucket = request.getfixturevalue("s3")
        return Target(kind, found.uri("some/where"))
    return Target(kind, str(tmp_path / "out"))


in_a_directory = pytest.mark.parametrize("out", ["directory", pytest.param("s3", marks=pytest.mark.soak)], indirect=True)
"""What does not depend on the place is tried in a directory, and in a store by `make soak`."""


@pytest.mark.parametrize("case", ["completing", pytest.param("changing", marks=pytest.mark.soak), "rules"])
def test_every_solution_is_exported_once(case: str, tmp_path: Path, out: Target) -> None:
    cases.write(case, tmp_path / "data")
    run(tmp_path / "data")
    with closing_export(exporter(tmp_path / "data", out)) as export:
        export.round()
        export.round()
        assert export.position == cases.head_of(tmp_path / "data")
    assert values(out.rows()) == logged(tmp_path / "data") != Counter()
    assert not list((tmp_path / "out").rglob(".*"))


def test_files_grow_with_the_log_and_by_day(tmp_path: Path) -> None:
    data, out, chance = tmp_path / "data", Target("directory", str(tmp_path / "out")), Random(8)
    for hours in (range(3), range(20, 30)):
        with LogWriter(data, cases.frozen_clock) as log:
            if not hours.start:
                cases.register(log, "a/b = c", cases.HIGH)
            cases.readings(log, [3600 * hour + k for hour in hours for k in range(5)], chance)
        run(data)
        exported(data, out)
    assert {path.name for path in (tmp_path / "out").iterdir() if path.is_dir()} == {"query=a%2Fb%20%3D%20c"}
    assert {path.name for path in (tmp_path / "out").glob("query=*/*")} == {"date=2026-01-01", "date=2026-01-02"}
    assert values(out.rows()) == logged(data)


LONG = ["溫" * 27, "溫" * 28, "溫" * 28 + "a", "溫" * 28 + "b", "a" * 249, "a" * 250, "ü/" * 5_000]
"""Names whose encoded bytes are about as many as a directory's name may have, and far more."""


def test_a_long_name_holds_up_nothing(tmp_path: Path, out: Target) -> None:
    data = tmp_path / "data"
    with LogWriter(data, cases.frozen_clock) as log:
        for name in LONG:
            cases.register(log, name, cases.HIGH)
        cases.readings(log, range(40), Random(3))
    run(data)
    exported(data, out)
    folders = {name: unquote(folder_of(name)).removeprefix("query=") for name in LONG}
    assert values(out.rows()) == Counter((folders[str(query)], *rest) for query, *rest in logged(data).elements()) != Counter()
    if out.kind == "directory":
        assert {pq.read_schema(path).metadata[b"query"].decode() for path in Path(out.given).rglob("*.parquet")} == set(LONG)


def test_a_long_name_that_a_store_has_taken_stays(tmp_path: Path, s3: S3Bucket) -> None:
    """So an export that was cut short by an older version ends in the same files."""
    data, out, name = tmp_path / "data", Target("s3", s3.uri("some/where")), "a" * 300
    with LogWriter(data, cases.frozen_clock) as log:
        cases.register(log, name, cases.HIGH)
        cases.readings(log, range(40), Random(3))
    run(data)
    with closing(out.place()) as place:
        place.put(f"query={name}/date=2026-01-01/_old", b"old")
    exported(data, out)
    assert values(out.rows()) == logged(data)


KILLED = """
import os, sys
from pathlib import Path
import pipeline.parquet_export as export
from tests.pipeline.solutions.exports import Target

left = int(sys.argv[4])
place = Target(*sys.argv[2:4]).place()
def counted(*arguments, put=place.put):
    global left
    left -= 1
    if left < 0:
        os._exit(9)
    put(*arguments)
type(place).put = lambda self, *arguments: counted(*arguments)
export.ROWS = 20
export.Exporter(Path(sys.argv[1]), place, dict).round()
"""
"""Ends with no chance to clean up before the n-th file or note."""


@in_a_directory
def test_an_export_that_is_killed_anywhere_ends_with_each_solution_once(tmp_path: Path, out: Target) -> None:
    """Each time the log has grown, so a range that was not noted would end elsewhere.

    It dies between two puts, whatever they put into.
    """
    steps = []
    for turn, number in enumerate(range(1, 6) if is_full() else (2, 4)):
        grow(tmp_path / "data", turn)
        command = [sys.executable, "-c", KILLED, str(tmp_path / "data"), out.kind, out.given, str(number)]
        steps.append(subprocess.run(command, check=False, cwd=Path(__file__).parents[3]).returncode)
    assert set(steps) <= {0, 9}
    assert 9 in steps
    exported(tmp_path / "data", out)
    assert values(out.rows()) == logged(tmp_path / "data")


def grow(data: Path, number: int) -> None:
    """Make another piece of a log with two queries."""
    with LogWriter(data, cases.frozen_clock) as log:
        if not number:
            cases.register(log, "high", cases.HIGH)
            cases.register(log, "pairs", cases.PAIRS)
        cases.readings(log, range(30 * number, 30 * number + 30), Random(number))
    run(data)


def test_a_query_that_was_replaced_is_read_by_its_own_text(tmp_path: Path) -> None:
    data, out = tmp_path / "data", Target("directory", str(tmp_path / "out"))
    with LogWriter(data, cases.frozen_clock) as log:
        first = cases.register(log, "q", cases.HIGH)
        cases.readings(log, range(20), Random(1))
        log.append(lambda offset: Drop(offset, first, "q"))
        cases.register(log, "q", cases.PAIRS)
        cases.readings(log, range(20, 40), Random(2))
    run(data)
    exported(data, out)
    assert values(out.rows()) == logged(data)
    assert len({registered for _, registered, *_ in logged(data)}) == 2


@in_a_directory
def test_solutions_that_are_found_again_are_waited_for(tmp_path: Path, out: Target) -> None:
    """After the machine's fall the solution log may end before what was exported."""
    cases.write("sequences", tmp_path / "data")
    run(tmp_path / "data")
    exported(tmp_path / "data", out)
    for file in (tmp_path / "data" / "solutions").iterdir():
        file.unlink()
    with closing_export(exporter(tmp_path / "data", out)) as export:
        export.round()
        run(tmp_path / "data")
        export.round()
    with closing(SolutionReader(tmp_path / "data")) as solutions:
        assert solutions.position == cases.head_of(tmp_path / "data")
    assert values(out.rows()) == logged(tmp_path / "data")


# ---------------------------------------------------------------- whose place it is
def test_a_directory_is_for_one_exporter_at_a_time(tmp_path: Path) -> None:
    cases.write("sequences", tmp_path / "data")
    out = Target("directory", str(tmp_path / "out"))
    with closing_export(exporter(tmp_path / "data", out)):
        for same in (out, Target("directory", f"file://{out.given}")):
            with pytest.raises(Locked, match="another directory with --export"):
                exporter(tmp_path / "data", same)


def test_another_log_s_files_are_not_gone_on_with(tmp_path: Path, out: Target) -> None:
    """The export refuses to go on whether the other log is shorter or longer."""
    cases.write("sequences", tmp_path / "data")
    run(tmp_path / "data")
    exported(tmp_path / "data", out)
    with LogWriter(tmp_path / "short", cases.frozen_clock) as log:
        log.heartbeat()
    with LogWriter(tmp_path / "long", cases.frozen_clock) as log:
        cases.register(log, "high", cases.HIGH)
        cases.readings(log, range(200), Random(9))
    for other, told in (("short", "this log ends at 1: they are of another log"), ("long", "solutions of another log, up to its position 152")):
        with pytest.raises(NotOfThisLog, match=f"{told}; choose an empty directory, or prefix of a store, with --export"):
            exporter(tmp_path / other, out)
    assert values(out.rows()) == logged(tmp_path / "data")


def test_a_mark_that_is_none_is_of_no_log(tmp_path: Path) -> None:
    cases.write("sequences", tmp_path / "data")
    with closing(Marks(tmp_path / "data")) as marks:
        found = marks.mark_at(20)
        assert marks.holds(found)
        assert not any(marks.holds(each) for each in ("", "x", found + "0", "999-1000:1-00000000"))


@in_a_directory
def test_a_copy_goes_on_until_it_has_parted(tmp_path: Path, out: Target) -> None:
    """A data directory that was restored from a copy is the same log up to where the copy ends, and another one after
    that.
    """
    data, copy = tmp_path / "data", tmp_path / "copy"
    with LogWriter(data, cases.frozen_clock) as log:
        cases.register(log, "high", cases.HIGH)
        cases.readings(log, range(20), Random(1))
    run(data)
    exported(data, out)
    shutil.copytree(data, copy)
    with LogWriter(copy, cases.frozen_clock) as log:
        cases.readings(log, range(20, 40), Random(2))
    with LogWriter(data, cases.frozen_clock) as log:
        cases.readings(log, range(20, 60), Random(3))
    run(copy)
    run(data)
    exported(copy, out)
    with pytest.raises(NotOfThisLog, match="of another log"):
        exporter(data, out)
    assert values(out.rows()) == logged(copy)


def standing(data: Path, out: Target) -> Exporter:
    """Return the exporter of a server whose query stands."""
    return Exporter(data, out.place(), lambda: {0: cases.PAIRS})


@in_a_directory
def test_what_the_log_no_longer_keeps_cannot_be_gone_on_from(tmp_path: Path, out: Target) -> None:
    """While a server exports, its limits wait; without `--export` they do not."""
    data = tmp_path / "data"
    fill(data, range(100), begin=True)
    with closing_export(standing(data, out)) as export:
        export.round()
        position = export.position
        fill(data, range(100, 300))
        every = logged(data)
        with retention(data) as (swept, _):
            swept.solution_holds.append(lambda: export.position)
            swept.log_holds.append(lambda: export.marked)
            swept.sweep(cases.START)
            assert 0 < oldest(data / "log") < position
    with closing_export(standing(data, out)) as export:
        export.round()
    assert values(out.rows()) == every
    fill(data, range(300, 500))
    with retention(data) as (swept, _):
        swept.sweep(cases.START)
    with pytest.raises(NotOfThisLog, match="no longer kept; choose an empty directory"):
        exporter(data, out)


@pytest.mark.parametrize("restarted", [False, True])
def test_who_goes_between_two_rounds_is_read_by_the_text_that_it_had(tmp_path: Path, restarted: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Although the log no longer has it; where that was forgotten too, what cannot be read holds nothing up."""
    data, out = tmp_path / "data", Target("directory", str(tmp_path / "out"))
    texts = {0: cases.PAIRS}
    fill(data, range(100), begin=True)
    with closing_export(Exporter(data, out.place(), lambda: texts)) as export:
        with LogWriter(data, cases.frozen_clock) as log:
            log.append(lambda offset: Drop(offset, 0, "pairs"))
            later = cases.register(log, "later", cases.HIGH)
        texts = {later: cases.HIGH}
        fill(data, range(100, 500))
        with retention(data) as (swept, _):
            swept.solution_holds.append(lambda: 0)
            swept.sweep(cases.START)
        assert oldest(data / "log") > 0
        if not restarted:
            export.round()
    with closing_export(Exporter(data, out.place(), lambda: texts)) as export:
        export.round()
    assert ("solutions of pairs are not exported" in caplog.text) == restarted
    assert {row[1] for row in logged(data)} == {0, later}
    assert values(out.rows()) == Counter({row: n for row, n in logged(data).items() if not restarted or row[1] == later})


@in_a_directory
def test_a_place_is_begun_where_the_logs_begin(tmp_path: Path, out: Target) -> None:
    """Also where the solutions are kept for longer than what they were found in."""
    data = tmp_path / "data"
    fill(data, range(300), begin=True)
    with retention(data) as (swept, _):
        swept.solution_holds.append(lambda: 0)
        swept.sweep(cases.START)
        assert oldest(data / "solutions") == 0 < oldest(data / "log")
    for _ in range(2):
        with closing_export(standing(data, out)) as export:
            export.round()
    assert values(out.rows()) == logged(data) != Counter()


def test_a_note_of_before_is_gone_on_with(tmp_path: Path) -> None:
    """It names no log, and no writer."""
    data, out = tmp_path / "data", Target("directory", str(tmp_path / "out"))
    cases.write("sequences", data)
    run(data)
    exported(data, out)
    note = tmp_path / "out" / "_epsparql.json"
    known = json.loads(note.read_text())
    note.write_text(json.dumps({name: known[name] for name in ("position", "until", "texts")}))
    exported(data, out)
    assert json.loads(note.read_text())["log"] == known["log"] != ""
    assert values(out.rows()) == logged(data)


def test_a_damaged_note_is_refused(tmp_path: Path) -> None:
    cases.write("sequences", tmp_path / "data")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "_epsparql.json").write_text('{"position": 1')
    with pytest.raises(NotOfThisLog, match=r"_epsparql.json, that is damaged \(.*choose an empty"):
        exporter(tmp_path / "data", Target("directory", str(tmp_path / "out")))


def test_of_two_exporters_the_one_that_came_first_ends(tmp_path: Path, s3: S3Bucket, caplog: pytest.LogCaptureFixture) -> None:
    """A store has no locks: the second one, of a copy, is let in where nothing is exported yet, or the same; the
    first one finds its note gone.
    """
    data, out = tmp_path / "data", Target("s3", s3.uri("shared"))
    cases.write("sequences", data)
    run(data)
    shutil.copytree(data, tmp_path / "copy")
    first = Exporter(data, out.place(), dict, every_s=0.01)
    with closing_export(exporter(tmp_path / "copy", out)) as second:
        with pytest.raises(Overtaken, match=r"another server exports to s3://.*give each its own with --export"):
            first.round()
        first.start()
        cases.eventually(lambda: first.failure != "", 30, lambda: "the first one goes on")
        assert not [name for name in s3.names() if name.endswith(".parquet")]
        second.round()
        first.stop()
    assert [record.levelname for record in caplog.records if record.name == "epsparql.export"] == ["ERROR"]
    assert values(out.rows()) == logged(data)


# ---------------------------------------------------------------- a store that fails
@pytest.mark.slow
def test_a_store_that_fails_is_tried_again(tmp_path: Path, s3: S3Bucket, caplog: pytest.LogCaptureFixture) -> None:
    """Cut wherever it may be, nothing is missing and nothing is there twice; no message has the credentials."""
    data = tmp_path / "data"
    grow(data, 0)
    with Line(s3) as line:
        out = Target("s3", s3.uri("p", port=line.port, user=f"{ACCESS}:{quote(SECRET, safe='')}@"))
        with closing_export(exporter(data, out)) as export:
            for number in range(1, 8) if is_full() else (2, 5):
                grow(data, number)
                line.hold(3 * number)
                worker = threading.Thread(target=attempted, args=(export,))
                worker.start()
                line.held.wait(20)
                line.cut()
                worker.join()
                line.mend()
            export.round()
    found = Target("s3", s3.uri("p"))
    assert values(found.rows()) == logged(data)
    assert SECRET not in caplog.text


def attempted(export: Exporter) -> None:
    with suppress(StoreFailed):
        export.round()


def test_a_stop_does_not_wait_for_a_store_for_long(
    tmp_path: Path, s3: S3Bucket, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(RemoteStore, "patience_s", 0.2)
    data = tmp_path / "data"
    cases.write("sequences", data)
    run(data)
    with Line(s3) as line:
        out = Target("s3", s3.uri("p", port=line.port))
        export = exporter(data, out)
        export.start()
        line.slow()
        export.stop()
        assert "did not end within 0.2 s: the next start goes on there" in caplog.text
        line.mend()
        cases.eventually(lambda: not any(thread.name == "export" for thread in threading.enumerate()), 60, lambda: "it goes on")
    found = Target("s3", s3.uri("p"))
    exported(data, found)
    assert values(found.rows()) == logged(data)


# ---------------------------------------------------------------- servers
@pytest.mark.soak
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
    assert values(Target("directory", str(out)).rows()) == logged(data) != Counter()
    with session("local[1]") as spark:
        frame = spark.read.parquet(str(out))
        assert {"query", "date", "id", "binding"} <= set(frame.columns)
        found = frame.where("query = 'high'").select("id", frame.binding["v"].alias("v")).collect()
        assert sorted((row["id"], row["v"]) for row in found) == sorted((s.id, s.values[1]) for s in cases.found_in(data)[0])
