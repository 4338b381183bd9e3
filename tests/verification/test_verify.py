"""`epsparql verify` explains what a server emitted, and finds each fault that is planted in the solution log."""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from epsparql.client import Client
from pipeline.formats.batches.batch_builder import batch_of
from pipeline.log import LogWriter
from pipeline.log.segments import FrameReader, FrameWriter
from server.cli import main
from server.cli.demo_data import QUERIES, WATCHED, find, instants
from tests.fault_tolerance.test_stored_versions import unpack
from tests.pipeline.log.test_retention import fill
from tests.server.conftest import serving, until
from tests.support.logs import Clock
from verification.checks import QueryReport, check_directory
from verification.definitions.model import Micros
from verification.frames import Unreadable
from verification.log_files import SolutionLog, read_log, read_solutions

Row = dict[str, object]
Change = Callable[[list[Row]], list[Row]]
Edit = Callable[[list[Row], int], None]
"""Changes the rows of a frame at a place."""
FORTNIGHT, YEAR = 24 * 14, 24 * 365  # in hours


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory that version 0.1.0 wrote, with joins, OPTIONAL, WITHOUT, windows, graphs, background, a rule
    and a policy.
    """
    unpack("0.1.0", tmp_path)
    return tmp_path / "1"


def plant(data: Path, change: Change) -> None:
    """Let `change` edit the rows of each frame of the solution log."""
    kept = data.parent / "solutions-before"
    shutil.move(data / "solutions", kept)
    with closing(FrameReader(kept)) as reader, closing(FrameWriter(data / "solutions", durable=False)) as writer:
        for frame in reader.frames(0):
            payload: list[bytes | memoryview] = []
            rows = 0
            if frame.length:
                found = pa.ipc.open_stream(pa.py_buffer(reader.payload(frame))).read_all()
                table = pa.Table.from_pylist(change(found.to_pylist()), found.schema)
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, table.schema) as stream:
                    stream.write_table(table)
                payload, rows = [memoryview(sink.getvalue())], table.num_rows
            writer.append(payload, frame.first, frame.after, rows, frame.flags)
        writer.publish()


def faults(reports: list[QueryReport]) -> dict[str, dict[str, int]]:
    return {report.name: dict(report.faults) for report in reports if report.faults}


@pytest.mark.parametrize("partitions", ["1", "2"])
def test_all_that_a_server_emitted_is_explained(data: Path, partitions: str) -> None:
    reports = check_directory(data.parent / partitions).queries
    assert faults(reports) == {}
    checked = {report.name: report for report in reports if not report.reason}
    assert {"sequence", "optional", "missing", "windows", "graphs", "background", "derived", "alarms"} <= checked.keys()
    assert all(report.derived == report.solutions > 0 for report in checked.values())
    assert {report.name: report.reason for report in reports if report.reason} == ({"paused": "the query is paused"} if partitions == "1" else {})


def _once(edits: Mapping[str, Edit]) -> Change:
    """Edit the rows of a frame at the first solution of each query."""
    left = dict(edits)

    def change(rows: list[Row]) -> list[Row]:
        for query in [*left]:
            places = [k for k, row in enumerate(rows) if row["query"] == query]
            if places:
                left.pop(query)(rows, places[0])
        return rows

    return change


def _remove(rows: list[Row], place: int) -> None:
    """Take a solution away, and let the ids close the gap."""
    gone = rows.pop(place)
    for row in rows:
        if (row["registered"], row["end"]) == (gone["registered"], gone["end"]) and int(str(row["ordinal"])) > int(str(gone["ordinal"])):
            row["ordinal"] = int(str(row["ordinal"])) - 1


def _rebind(rows: list[Row], place: int) -> None:
    values = rows[place]["values"]
    assert isinstance(values, list)
    rows[place]["values"] = ["<http://example.org/other>", *values[1:]]


def _repeat(rows: list[Row], place: int) -> None:
    """Emit a solution twice, with the next number, before others of its instant."""
    rows.insert(place + 1, {**rows[place], "ordinal": int(str(rows[place]["ordinal"])) + 1})


def _lengthen(rows: list[Row], place: int) -> None:
    start = rows[place]["start"]
    assert isinstance(start, datetime)
    rows[place]["start"] = start - timedelta(hours=1)


MANY = {
    "sequence": (_remove, {"missing"}),
    "windows": (_remove, {"missing"}),
    "derived": (_remove, {"missing"}),
    "missing": (_rebind, {"missing", "unexplained"}),
    "optional": (_rebind, {"missing", "unexplained"}),
    "background": (_lengthen, {"missing", "unexplained"}),
}
"""The queries of a directory, what is done to a solution of each, and which faults it is then."""


@pytest.mark.parametrize("planted", [pytest.param(MANY, id="changed"), pytest.param({"sequence": (_repeat, {"unexplained"})}, id="added")])
def test_planted_faults_are_found(data: Path, planted: Mapping[str, tuple[Edit, set[str]]]) -> None:
    """Each is found in its own query, and no other has any."""
    plant(data, _once({query: edit for query, (edit, _) in planted.items()}))
    found = faults(check_directory(data).queries)
    assert found.keys() == planted.keys()
    for query, (_, expected) in planted.items():
        assert expected <= found[query].keys() <= expected | {"numbering"}


def test_the_command_tells_by_its_exit_code(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--data", str(data)]) == 0
    told = capsys.readouterr().out
    assert "sequence (12): 134 solutions, 134 derived" in told
    assert "paused (9): 56 solutions, not checked: the query is paused" in told
    assert "the log reaches position 65, and the solutions 65" in told
    plant(data, _once({"sequence": _remove}))
    assert main(["verify", "--data", str(data), "--query", "sequence", "--json"]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    report = json.loads(line)
    assert (report["name"], report["faults"]) == ("sequence", {"missing": 1})
    assert "2026-01-01T" in report["listed"]["missing"][0]


def test_what_cannot_be_checked_is_refused(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--data", str(data / "nowhere")]) == 2
    assert main(["verify", "--data", str(data), "--query", "nothing"]) == 2
    assert "has no query 'nothing'" in capsys.readouterr().err
    segment = sorted((data / "log").glob("*.frames"))[3]
    damaged = bytearray(segment.read_bytes())
    damaged[-20] ^= 1
    segment.write_bytes(damaged)
    assert main(["verify", "--data", str(data)]) == 1
    assert f"{segment} is damaged at byte" in capsys.readouterr().err


def drop_solutions(data: Path) -> None:
    shutil.rmtree(data / "solutions")


def drop_last_segment(data: Path) -> None:
    sorted((data / "solutions").glob("*.frames"))[-1].unlink()


def drop_first_segment(data: Path) -> None:
    sorted((data / "log").glob("*.frames"))[0].unlink()


def take_solutions_of_another(data: Path) -> None:
    fill(data.parent / "other", range(30), begin=True)
    drop_solutions(data)
    shutil.copytree(data.parent / "other" / "solutions", data / "solutions")


def cut_solutions(data: Path) -> None:
    """Take away the frames from position 40 on, as a machine that fell may have."""
    kept = data.parent / "solutions-before"
    shutil.move(data / "solutions", kept)
    with closing(FrameReader(kept)) as reader, closing(FrameWriter(data / "solutions", durable=False)) as writer:
        for frame in reader.frames(0):
            if frame.after <= 40:
                writer.append([reader.payload(frame)], frame.first, frame.after, frame.rows, frame.flags)
        writer.publish()


@pytest.mark.parametrize(
    ("take", "code", "told"),
    [
        pytest.param(drop_solutions, 3, "the solutions of the entries from position 0 to 65 are not there", id="solutions"),
        pytest.param(cut_solutions, 3, r"the solutions of the entries from position \d\d to 65 are not there", id="end of solutions"),
        pytest.param(drop_last_segment, 1, "solutions is damaged: its frames end at position 0, and `head` says 65", id="last segment of solutions"),
        pytest.param(
            drop_first_segment, 1, "log/00000000000000000002.frames is damaged at byte 0: the frame begins at position 2", id="first segment"
        ),
        pytest.param(lambda data: (data / "log" / "head").unlink(), 1, "log/head is missing", id="head"),
        pytest.param(lambda data: os.truncate(data / "log" / "head", 7), 1, "log/head is damaged", id="half a head"),
        pytest.param(take_solutions_of_another, 1, "solutions is of another log than .*/log", id="solutions of another directory"),
    ],
)
def test_a_directory_of_which_a_piece_is_missing_does_not_pass(
    data: Path, take: Callable[[Path], object], code: int, told: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("verification.log_files.PATIENCE_S", 0.0)
    take(data)
    assert main(["verify", "--data", str(data)]) == code
    assert re.search(told, capsys.readouterr().err)


def test_a_frame_of_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with closing(FrameWriter(tmp_path / "log", durable=False)) as writer:
        writer.append([b"x"], 0, 1, 0, 1 << 20)
        writer.publish()
    with pytest.raises(Unreadable, match=r"has flags 0x100000, which this program does not know"):
        list(read_log(tmp_path))


def run_demo(data: Path, hours: int) -> Iterator[tuple[str, int]]:
    """Run the demo's queries over the first hours of its year, and yield how many solutions each has."""
    with serving(data) as url:
        client = Client(url, patience_s=60)
        for name, text in QUERIES.items():
            client.register(name, text)
        with client.feed("default") as feed:
            for instant in instants(find())[:hours]:
                feed.send(instant.frame)
            feed.flush()
        client.finish("default")
        for name in WATCHED:
            until(lambda name=name: not client.query(name)["lag"], f"{name} has read all")  # type: ignore[misc]  # a default that captures
            yield name, client.query(name)["solutions"]


@pytest.mark.parametrize(
    "hours", [pytest.param(FORTNIGHT, id="fortnight", marks=pytest.mark.slow), pytest.param(YEAR, id="year", marks=pytest.mark.soak)]
)
def test_the_demo_is_explained(tmp_path: Path, hours: int) -> None:
    counted = dict(run_demo(tmp_path, hours))
    reports = {report.name: report for report in check_directory(tmp_path).queries}
    assert faults([*reports.values()]) == {}
    assert reports.keys() == QUERIES.keys()
    assert {name: reports[name].derived for name in WATCHED} == counted
    assert counted["wind"] > 100
    assert all(not report.reason and report.complete_slices for report in reports.values())


def test_slices_are_read_as_they_were_written(tmp_path: Path) -> None:
    """Rows that stand in slices, by the hash of their subjects, come in the order in which they were sent."""
    subjects = [f"<http://e/s{k * k % 97}>" for k in range(3000)]
    with LogWriter(tmp_path, Clock(), partitions=3) as log:
        log.append_events("t", _events(subjects))
    ((_, entries, rows),) = list(read_log(tmp_path))
    assert [entry.kind for entry in entries] == ["events"]
    assert rows.column("s").to_pylist() == subjects
    assert rows.column("end").to_pylist() == list(range(3000))
    assert read_solutions(tmp_path) == SolutionLog()


def _events(subjects: list[str]) -> pa.RecordBatch:
    times: list[Micros] = list(range(len(subjects)))
    return batch_of(subjects, ["<http://e/p>"] * len(subjects), ['"1"'] * len(subjects), None, times, times)


def test_changes_and_what_was_taken_back_are_told_as_not_checked(tmp_path: Path) -> None:
    with serving(tmp_path) as url:
        client = Client(url, patience_s=60)
        for name in ("kept", "retracted"):
            client.create_stream(name, revisable="PT1M")
            text = f"SELECT * FROM STREAM <{name}> WHERE {{ ?s <http://e/p> ?v }}"
            client.register(f"{name} certain", text)
            client.register(f"{name} revised", text, emit="revised")
            events = [f'{{"s":"<http://e/s>","p":"<http://e/p>","o":"\\"{second}\\"","at":"2026-01-01T00:00:{second:02}Z"}}' for second in range(30)]
            client.send(name, "\n".join(events))
        client.send("retracted", events[0].replace("{", '{"retract":true,', 1))
        for name in ("kept", "retracted"):
            client.finish(name)
            until(lambda name=name: not client.query(f"{name} certain")["lag"], f"{name} has been read")  # type: ignore[misc]  # a default that captures
    reports = {report.name: report for report in check_directory(tmp_path).queries}
    assert faults([*reports.values()]) == {}
    assert reports["kept certain"].derived == 30
    assert {name: report.reason for name, report in reports.items() if report.reason} == {
        "kept revised": "it gives changes, or rests on a rule that does",
        "retracted revised": "it gives changes, or rests on a rule that does",
        "retracted certain": f"events of the stream 'retracted' were taken back at offset {_find_retraction(tmp_path)}",
    }


def test_what_goes_by_the_order_of_the_log_is_told_as_not_checked(tmp_path: Path) -> None:
    """The right solution of the earlier entry consumes, whatever its terms are."""
    text = "PREFIX : <http://e/> SELECT ?b FROM STREAM <{}> WHERE {{ {{ ?s :a ?a }} SEQ {{ ?s :b ?b }} }}"
    sent = {"divided": [("a", 1, 1), ("b", 9, 2), ("b", 1, 2), ("b", 5, 3)], "whole": [("a", 1, 1), ("b", 9, 2), ("b", 5, 3)]}
    with serving(tmp_path) as url:
        client = Client(url, patience_s=60)
        for name, events in sent.items():
            client.create_stream(name)
            client.register(name, text.format(name), policy="chronological")
            for predicate, value, second in events:
                client.send(name, f'{{"s":"<http://e/s>","p":"<http://e/{predicate}>","o":"\\"{value}\\"","at":"2026-01-01T00:00:0{second}Z"}}')
            client.finish(name)
            until(lambda name=name: not client.query(name)["lag"], f"{name} has been read")  # type: ignore[misc]  # a default that captures
    reports = {report.name: report for report in check_directory(tmp_path).queries}
    assert faults([*reports.values()]) == {}
    assert (reports["whole"].derived, reports["whole"].reason) == (1, "")
    assert reports["divided"].reason == "the policy chronological goes by the order of the log, and events of one instant came in several entries"


def _find_retraction(data: Path) -> int:
    return next(entry.offset for _, entries, _ in read_log(data) for entry in entries if entry.kind == "events" and entry.members["retracts"])
