"""Delta tables out: rows and cursor in one commit, resumed, fenced, and with faults that name the remedy."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from connectors.configuration import parse_connector
from connectors.errors import SystemFault, WrongOption
from connectors.outbound.delta import DeltaSink
from connectors.outbound.sink import Cursor, SolutionMessage

END = "2026-01-01T11:00:00.5Z"


def sink_of(path: Path, **more: object) -> DeltaSink:
    connector = parse_connector("alerts", {"type": "delta", "query": "q", "path": str(path), **more})
    return DeltaSink(connector.name, connector.options)


def solution(number: int, registered: int = 7) -> SolutionMessage:
    identity = f"{(1 << 63) - 5 + number:016x}-{number:08x}"  # ends before 1970 and after it
    binding = {"v": {"type": "literal", "value": str(number)}}
    document = {"query": "q", "id": identity, "start": "2026-01-01T10:00:00Z", "end": END, "binding": binding}
    return SolutionMessage(document, b"{}", Cursor(registered, identity, number))


def rows(path: Path, *columns: str) -> list[tuple[object, ...]]:
    table = DeltaTable(path).to_pyarrow_table(columns=list(columns))
    return sorted(zip(*(table.column(name).to_pylist() for name in columns), strict=True))


def test_rows_and_cursor_are_one_commit(tmp_path: Path) -> None:
    sink = sink_of(tmp_path / "t", columns={"id": "id", "v": "?v", "none": "?none", "end": "end"})
    assert sink.fetch_cursor() is None
    sink.write([solution(1), solution(2)])
    sink.write([solution(9)])
    again = sink_of(tmp_path / "t", columns={"id": "id", "v": "?v", "none": "?none", "end": "end"})
    assert again.fetch_cursor() == solution(9).cursor
    again.write([solution(1, registered=8)])
    assert sink_of(tmp_path / "t").fetch_cursor() == solution(1, registered=8).cursor
    assert rows(tmp_path / "t", "v") == [("1",), ("1",), ("2",), ("9",)]
    assert {str(end) for (end,) in rows(tmp_path / "t", "end")} == {"2026-01-01 11:00:00.500000+00:00"}
    with pytest.raises(SystemFault, match=r"written to at the same time: .*; stop another connector of this name"):
        sink.write([solution(10)])
    assert len(rows(tmp_path / "t", "v")) == 4
    sink.close()
    assert sink.fetch_cursor() == solution(1, registered=8).cursor


def test_a_table_of_others_is_appended_to_and_its_schema_is_kept(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": ["x"], "v": ["0"]}))
    sink = sink_of(tmp_path / "t", columns={"id": "id", "v": "?v"})
    assert sink.fetch_cursor() is None
    sink.write([solution(1)])
    assert [value for (value,) in rows(tmp_path / "t", "v")] == ["0", "1"]
    other = sink_of(tmp_path / "t")
    other.fetch_cursor()
    with pytest.raises(SystemFault, match="the Delta table "):
        other.write([solution(2)])
    assert len(rows(tmp_path / "t", "v")) == 2


def test_a_table_that_somebody_else_creates_meanwhile_is_told(tmp_path: Path) -> None:
    first, second = sink_of(tmp_path / "t"), sink_of(tmp_path / "t")
    for sink in (first, second):
        assert sink.fetch_cursor() is None
    first.write([solution(1)])
    with pytest.raises(SystemFault, match="exists"):
        second.write([solution(1)])
    assert rows(tmp_path / "t", "query", "solution") == [("q", "{}")]


def test_wrong_columns_are_told(tmp_path: Path) -> None:
    for columns, message in (({"a": "value"}, "must hold one of"), ({"a": "?a"}, "one column must hold 'id'")):
        with pytest.raises(WrongOption, match=message):
            sink_of(tmp_path, columns=columns)
