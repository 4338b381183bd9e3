"""Files and directories in: rows with offsets, resumed at each, new files and appended lines, replaced files, Parquet
by row, and kills.
"""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connectors.assignment import Assignment
from connectors.configuration import parse_connector
from connectors.credentials import CredentialPlaces
from connectors.errors import RefusedMessage, SystemFault, WrongOption
from connectors.inbound.bodies import MOST_BYTES, join_messages, wrap_payload
from connectors.inbound.file_readers import open_reader
from connectors.inbound.files import FileSource
from connectors.inbound.source import Message
from connectors.server_access import ServerAccess
from connectors.status import StatusBoard
from connectors.worker import run_assignment
from epsparql.client import Client, segment
from tests.server.conftest import EX, event, moment, until, values

Opening = Callable[..., FileSource]


@pytest.fixture
def source_of() -> Iterator[Opening]:
    """Return a function that gives sources, which are closed at the end."""
    opened = []

    def open_source(path: Path, **more: object) -> FileSource:
        opened.append(FileSource(parse_connector("files", {"type": "files", "stream": "s", "path": str(path), **more}), {}))
        return opened[-1]

    yield open_source
    for source in (*opened, *opened):  # twice, which is no fault
        source.close()


def read_all(source: FileSource, most: int = 100) -> list[Message]:
    found: list[Message] = []
    while part := source.read(most, 0):
        found += part
    return found


def payloads(messages: Sequence[Message]) -> list[str]:
    return [message.payload.decode() for message in messages]


def bodies(messages: Sequence[Message]) -> list[tuple[str | None, str]]:
    return [(group[0].media_type, body.decode()) for group, body in join_messages(messages, "text/none")]


ROWS = [
    pytest.param("a.ndjson", "1\n2\r\n\n3\n", ["1", "2", "3"], id="lines, without those that are blank"),
    pytest.param("a.nq", "<a> <b> <c> .\n<d> <e> <f> .\n", ["<a> <b> <c> .", "<d> <e> <f> ."], id="N-Quads"),
    pytest.param("a.log", "10.0.0.1 x\n10.0.0.2 y\n", ["10.0.0.1 x", "10.0.0.2 y"], id="lines of a log"),
    pytest.param("a.csv", 'x,y\n1,"a\nb"\n2,"c ""d"" e"\n', ['1,"a\nb"', '2,"c ""d"" e"'], id="rows of CSV with line breaks"),
    pytest.param("a.json", '{"a": 1}\n{"a": 2}\n', ['{"a": 1}', '{"a": 2}'], id="an object on each line"),
    pytest.param("a.json", '{\n"a": 1\n}\n', ['{\n"a": 1\n}\n'], id="one object"),
    pytest.param("a.json", "[{},\n{}]\n", ["[{},\n{}]\n"], id="an array"),
    pytest.param("a.ttl", "<a> <b> <c> .\n<d> <e> <f> .\n", ["<a> <b> <c> .\n<d> <e> <f> .\n"], id="a document"),
]


@pytest.mark.parametrize(("name", "text", "expected"), ROWS)
def test_a_file_is_resumed_behind_each_row(name: str, text: str, expected: list[str], tmp_path: Path, source_of: Opening) -> None:
    path = tmp_path / name
    path.write_text(text, newline="")
    source = source_of(path)
    source.seek(None)
    messages = read_all(source, 1)
    assert payloads(messages) == expected
    assert source.get_lag() == 0
    for number, message in enumerate(messages, 1):
        source.seek(message.position)
        assert payloads(read_all(source)) == expected[number:]


def test_rows_of_csv_share_a_body_with_the_header_and_files_do_not(tmp_path: Path, source_of: Opening) -> None:
    (tmp_path / "1.csv").write_text("x,y\n1,2\n3,4\n")
    (tmp_path / "2.csv").write_text("y,x\n5,6\n")
    (tmp_path / "3.ndjson").write_text("{}\n")
    source = source_of(tmp_path)
    source.seek(None)
    messages = read_all(source)
    assert bodies(messages) == [("text/csv", "x,y\n1,2\n3,4"), ("text/csv", "y,x\n5,6"), ("application/x-ndjson", "{}")]
    source.seek(messages[0].position)
    assert bodies(read_all(source))[0] == ("text/csv", "x,y\n3,4")


def test_a_directory_is_read_in_order_of_name_and_goes_on_with_new_files(tmp_path: Path, source_of: Opening) -> None:
    source = source_of(tmp_path, pattern="**/*.ndjson")
    source.seek(None)
    assert source.read(10, 0) == []
    for name in ("b/2.ndjson", "a.ndjson", "b/1.ndjson", ".hidden.ndjson", "_note.ndjson", "c.ndjson.tmp", "c.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f'"{name}"\n')
    found = source.read(10, 5)
    assert payloads(found) == ['"a.ndjson"', '"b/1.ndjson"', '"b/2.ndjson"']
    (tmp_path / "b/1.ndjson").unlink()  # it was read
    (tmp_path / "c.ndjson").write_text("3\n")
    source.seek(found[1].position)
    assert payloads(source.read(10, 5)) == ['"b/2.ndjson"', "3"]
    (tmp_path / "0.ndjson").write_text("0\n")  # a name before those that were read
    assert source.read(10, 0) == []


def test_a_growing_file_gives_complete_lines_only(tmp_path: Path, source_of: Opening) -> None:
    path = tmp_path / "a.csv"
    source = source_of(path)
    with pytest.raises(SystemFault, match="there is no file or directory"):
        source.seek(None)
    path.write_text("x,")
    source.seek(None)
    for more, expected in (("y", []), ("\n1", []), (',"2', []), ("\n", []), ('"', []), ("\n3,4\n5", ['1,"2\n"', "3,4"]), ("", []), (",6\n", ["5,6"])):
        with path.open("a", newline="") as file:
            file.write(more)
        assert payloads(read_all(source)) == expected
    with path.open("a") as file:
        file.write("7,8")
    assert (source.read(10, 0), source.get_lag()) == ([], 3)
    at_once = source_of(path, tail=False)
    at_once.seek(None)
    assert payloads(read_all(at_once))[-1] == "7,8"


def test_a_last_line_without_a_break_counts_once_a_later_file_is_there(tmp_path: Path, source_of: Opening) -> None:
    (tmp_path / "1.ndjson").write_text("1\n2")
    source = source_of(tmp_path)
    source.seek(None)
    assert payloads(read_all(source)) == ["1"]
    (tmp_path / "2.ndjson").write_text("3\n")
    source.seek(None)
    assert payloads(read_all(source)) == ["1", "2", "3"]


def test_a_file_that_was_replaced_or_cut_is_told(tmp_path: Path, source_of: Opening) -> None:
    path = tmp_path / "a.ndjson"
    path.write_text("1\n2\n")
    source = source_of(path)
    source.seek(None)
    position = read_all(source)[-1].position
    assert position.startswith("a.ndjson@4#4-")
    told = "was rotated, truncated or written anew. Give the connector another source"
    path.rename(tmp_path / "a.ndjson.1")
    path.write_text("5\n6\n7\n")
    with pytest.raises(SystemFault, match=told):  # while it is open
        source.read(10, 0)
    with pytest.raises(SystemFault, match=told):  # and at the next start
        source.seek(position)
    path.write_text("1\n2\n3\n")
    source.seek(position)
    assert payloads(read_all(source)) == ["3"]
    path.write_text("1\n2\n")
    with pytest.raises(SystemFault, match=told):
        source.read(10, 0)
    source.seek(position)
    path.unlink()
    with pytest.raises(SystemFault, match="cannot be read: No such file"):
        source.read(10, 0)


@pytest.mark.parametrize(
    ("position", "message"),
    [("17", "is none of a file"), ("b.ndjson@2#0-e3b0c44298fc", "is of the file 'b.ndjson'"), ("a.ndjson@9#0-e3b0c44298fc", "rotated")],
)
def test_a_position_of_another_source_is_told(position: str, message: str, tmp_path: Path, source_of: Opening) -> None:
    (tmp_path / "a.ndjson").write_text("1\n")
    with pytest.raises(SystemFault, match=message):
        source_of(tmp_path / "a.ndjson").seek(position)


def test_what_cannot_be_read_is_told(tmp_path: Path, source_of: Opening) -> None:
    (tmp_path / "a.xls").write_text("1\n")
    source = source_of(tmp_path)
    source.seek(None)
    with pytest.raises(SystemFault, match=r"no format is known by the suffix '\.xls'; give format"):
        source.read(10, 0)
    given = source_of(tmp_path, format="application/x-ndjson")
    given.seek(None)
    assert payloads(read_all(given)) == ["1"]
    (tmp_path / "a.xls").rename(tmp_path / "a.ndjson")
    (tmp_path / "a.ndjson").write_text("x" * (MOST_BYTES + 1))
    source.seek(None)
    with pytest.raises(SystemFault, match=r"the row at byte 0 has more than \d+ bytes"):
        source.read(10, 0)
    (tmp_path / "a.ndjson").rename(tmp_path / "a.parquet")
    source.seek(None)
    with pytest.raises(SystemFault, match="is no whole Parquet file"):
        source.read(10, 0)
    for pattern in ("../*", "/etc/*"):
        with pytest.raises(WrongOption, match="below path"):
            source_of(tmp_path, pattern=pattern)


def test_over_http_a_path_lies_below_the_directory_of_the_setting(tmp_path: Path) -> None:
    places = CredentialPlaces("EPSPARQL_CONNECTOR_", tmp_path, limited=True)
    given = {"type": "files", "stream": "s"}
    parse_connector("a", given | {"path": str(tmp_path / "in")}, places)
    with pytest.raises(WrongOption, match="path: over HTTP, files may be named only below"):
        parse_connector("a", given | {"path": "/etc"}, places)


def test_over_http_no_link_leads_outside_of_the_directory_of_the_setting(tmp_path: Path) -> None:
    """A link that is made later counts too, and one that leads to another place below the directory is followed."""
    inside, outside = tmp_path / "in", tmp_path / "out"
    for directory in (inside / "files", inside / "more", outside):
        directory.mkdir(parents=True)
    for path, line in ((inside / "files" / "a.ndjson", "1"), (inside / "more" / "b.ndjson", "2"), (outside / "c.ndjson", "3")):
        path.write_text(f"{line}\n")
    (inside / "files" / "b.ndjson").symlink_to(inside / "more" / "b.ndjson")
    (inside / "files" / "c.ndjson").symlink_to(outside / "c.ndjson")
    (inside / "files" / "d").symlink_to(outside)
    given = {"type": "files", "stream": "s", "path": str(inside / "files"), "pattern": "**/*.ndjson"}
    with closing(FileSource(parse_connector("a", given, CredentialPlaces("", inside, limited=True)), {})) as source:
        source.seek(None)
        assert payloads(read_all(source)) == ["1", "2"]
    with closing(FileSource(parse_connector("a", given), {})) as source:  # an operator's own file of connectors may name any file
        source.seek(None)
        assert payloads(read_all(source)) == ["1", "2", "3"]
    one = given | {"path": str(inside / "files" / "a.ndjson")}
    with closing(FileSource(parse_connector("a", one, CredentialPlaces("", inside, limited=True)), {})) as source:
        (inside / "files" / "a.ndjson").unlink()
        (inside / "files" / "a.ndjson").symlink_to(outside / "c.ndjson")
        source.seek(None)
        with pytest.raises(SystemFault, match="leads outside of the directory of the setting connector_files"):
            source.read(10, 0)


def test_parquet_is_read_by_row(tmp_path: Path, source_of: Opening) -> None:
    rows = 25
    table = pa.table(
        {
            "n": range(rows),
            "at": pa.array([datetime(2026, 1, 1, 10, 0, second, 5, tzinfo=UTC) for second in range(rows)], pa.timestamp("ns", "UTC")),
            "t": pa.array([Decimal("8.50")] * rows),
            "none": pa.array([None] * rows, pa.utf8()),
            "more": [{"x": [1]}] * rows,
        }
    )
    pq.write_table(table, tmp_path / "1.parquet", row_group_size=10)
    source = source_of(tmp_path)
    source.seek(None)
    messages = read_all(source, 7)
    assert [json.loads(message.payload)["n"] for message in messages] == list(range(rows))
    assert payloads(messages)[0] == '{"n":0,"at":"2026-01-01T10:00:00.000005+00:00","t":8.50,"more":{"x": [1]}}'
    assert len(bodies(messages)) == 1
    for number, message in enumerate(messages, 1):
        source.seek(message.position)
        assert [json.loads(each.payload)["n"] for each in read_all(source)] == list(range(number, rows))
    pq.write_table(pa.table({"n": [1], "b": [b"\xff"]}), tmp_path / "2.parquet")
    with pytest.raises(SystemFault, match=r"row 1, column b: .*leave the column out"):
        source.read(10, 5)


# ---------------------------------------------------------------- to a server
MAPPING = {"base": EX, "time": "at", "subject": "s", "properties": {"value": ":value"}}


def write_file(folder: Path, suffix: str, numbers: Sequence[int]) -> None:
    rows = [{"at": moment(number), "value": str(number)} for number in numbers]
    path = folder / f"{numbers[0]:04d}.{suffix}"
    if suffix == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif suffix == "csv":
        path.write_text("at,value\n" + "".join(f"{row['at']},{row['value']}\n" for row in rows))
    elif suffix == "json":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        path.write_text("".join(event(number) + "\n" for number in numbers))


def has_read(board: StatusBoard, messages: int) -> bool:
    return board.present.messages == messages or board.present.fault is not None


def test_nothing_is_late_where_four_backlogs_are_read_one_after_the_other(client: Client, url: str, name: str, stream: str, tmp_path: Path) -> None:
    """Each source is a directory of another format; rows of three go through the stream's mapping."""
    formats = ("csv", "json", "parquet", "ndjson")
    client.create_stream(stream, sources=formats, mapping=MAPPING)
    client.register(name, values(stream))
    for at, suffix in enumerate(formats):
        (tmp_path / suffix).mkdir()
        for first in (0, 50):
            write_file(tmp_path / suffix, suffix, range(4 * first + at, 4 * first + 200, 4))
        connector = parse_connector(suffix, {"type": "files", "stream": stream, "path": str(tmp_path / suffix), "batch": 30})
        board, stopping = StatusBoard(), threading.Event()
        thread = threading.Thread(target=run_assignment, args=(Assignment(connector, url, None, {}), board, stopping))
        thread.start()
        until(partial(has_read, board, 100), "a backlog")
        stopping.set()
        thread.join()
        assert (board.present.fault, board.present.late, board.present.lag) == (None, 0, 0)
    found = client.stream(stream)
    assert (found["accepted"], found["late"]) == (400, 0)
    client.finish(stream)
    until(lambda: client.query(name)["solutions"] == 400, "all solutions")
    assert [each.binding["v"]["value"] for each in client.solutions(name) if each.binding] == [str(number) for number in range(400)]


NUMBERS = MAPPING | {"properties": {"value": {"iri": ":value", "datatype": "xsd:integer"}}}
ROWS_AT_FAULT = f"at,value\n{moment(0)},0\n{moment(1)},one\n{moment(2)},2\nnever,3\n{moment(4)},4\n"
LINES_AT_FAULT = "".join(f"{line}\n" for line in (event(0), "no event", event(2), '{"s":5}', event(4)))
RULES = [
    pytest.param("s.csv", ROWS_AT_FAULT, ("'one' is no xsd:integer", "value", "at"), id="rows that do not map"),
    pytest.param("s.ndjson", LINES_AT_FAULT, ("line 1, column 5: JSON is malformed", None, None), id="messages that cannot be read"),
]


@contextmanager
def connecting(url: str, stream: str, path: Path, **more: object) -> Iterator[StatusBoard]:
    """Run a connector of a file, and give its status."""
    connector = parse_connector("files", {"type": "files", "stream": stream, "path": str(path), **more})
    board, stopping = StatusBoard(), threading.Event()
    thread = threading.Thread(target=run_assignment, args=(Assignment(connector, url, None, {}), board, stopping))
    thread.start()
    try:
        yield board
    finally:
        stopping.set()
        thread.join()


def has_accepted(client: Client, stream: str, events: int) -> bool:
    return bool(client.stream(stream)["accepted"] == events)


def letters(client: Client, stream: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in client.request("GET", f"/streams/{segment(stream)}/rejected")[2].splitlines()]


@pytest.mark.parametrize(("file", "text", "told"), RULES)
def test_messages_at_fault_stop_nothing(
    client: Client, url: str, stream: str, tmp_path: Path, file: str, text: str, told: tuple[str, str | None, str | None]
) -> None:
    """The dead-letter feed has them by default; a connector that starts again begins after them.

    With skip they are only counted.
    """
    (tmp_path / file).write_text(text)
    for name, more in ((stream, {}), (f"{stream}/skip", {"on_error": "skip"})):
        client.create_stream(name, mapping=NUMBERS)
        with connecting(url, name, tmp_path / file, **more) as board:
            until(lambda: board.present.rejected + board.present.skipped == 2, "the messages at fault")
            until(partial(has_accepted, client, name, 3), "the others")
            until(lambda: board.present.lag == 0 and board.present.state == "running", "the end of the file")
        assert (board.present.rejected, board.present.skipped) == ((0, 2) if more else (2, 0))
        assert board.present.fault is not None
        assert f"file '{file}', the message before position" in board.present.fault
        assert ("left out" if more else "dead-letter feed of the stream") in board.present.fault
    reason, *fields = told
    assert [letter["field"] for letter in letters(client, stream)] == fields
    assert reason in letters(client, stream)[0]["reason"]
    assert letters(client, f"{stream}/skip") == []
    with connecting(url, stream, tmp_path / file) as board:
        until(lambda: board.present.state == "running", "the connector")
    assert (board.present.messages, board.present.rejected) == (0, 0)
    assert len(letters(client, stream)) == client.stream(stream)["rejected"] == 2


def test_a_refused_message_is_tried_again_until_it_is_mended(client: Client, url: str, stream: str, tmp_path: Path) -> None:
    """That is no failure: with the stream mended, the connector goes on by itself."""
    (tmp_path / "s.csv").write_text(f"at,value\n{moment(0)},0\n{moment(1)},one\n")
    client.create_stream(stream, mapping=NUMBERS)
    with connecting(url, stream, tmp_path / "s.csv", on_error="stop") as board:
        until(lambda: board.present.state == "retrying", "the refusal")
        assert "row 1, field value: 'one' is no xsd:integer" in str(board.present.fault)
        assert "on_error = 'dead_letter' or 'skip'" in str(board.present.fault)
        client.create_stream(stream, mapping=MAPPING)
        until(lambda: client.stream(stream)["accepted"] == 2, "the message")
        until(lambda: board.present.state == "running", "the state")


def test_a_refusal_is_told_in_the_servers_words(url: str, stream: str) -> None:
    server = ServerAccess(url, None)
    with pytest.raises(SystemFault, match=r"^the server refuses this: 'text/x-none' .*; expected application/x-ndjson"):
        server.send_body(stream, b"x", "text/x-none", None)
    with pytest.raises(RefusedMessage, match=r"^line 1, column 1: JSON is malformed"):
        server.send_body(stream, b"x", "application/x-ndjson", None)


def test_json_that_is_nested_too_deep_is_passed_on(tmp_path: Path) -> None:
    """The server refuses it. A connector whose parser failed would end, and start again at the same place for ever."""
    deep = b"[" * 100_000
    assert json.loads(wrap_payload({"topic": "t"}, deep)) == {"topic": "t", "payload": deep.decode()}
    (tmp_path / "deep").write_bytes(deep)
    with open(tmp_path / "deep", "rb") as file:
        assert open_reader(tmp_path / "deep", file, "application/json", 0).size == len(deep)
