"""These tests check how a replay's files become blocks of the log."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.dataframes import engine_task
from pipeline.errors import SolveFailed
from pipeline.formats.batches.batch_builder import batch_of
from pipeline.formats.body_parser import NDJSON
from pipeline.replay import input_files
from pipeline.replay.input_files import NamedBody, OrderedStreams
from pipeline.replay.query_files import NamedFile, SourceFault


def rows_of(ends: range, graph: str | None = None) -> pa.RecordBatch:
    n = len(ends)
    return batch_of([f"<http://e/s{end}>" for end in ends], ["<http://e/p>"] * n, [f'"{end}"' for end in ends], [graph] * n, list(ends), list(ends))


def test_a_block_carries_only_its_own_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise, each block of the log has the terms of all files, and a file of twice the size takes four times as
    long.
    """
    monkeypatch.setattr(input_files, "BLOCK_ROWS", 10)
    streams = [("a", [rows_of(range(0, 100, 2))]), ("b", [rows_of(range(1, 100, 2), "<http://e/g>")])]
    blocks = list(OrderedStreams.from_batches(streams).read_blocks())
    assert [stream for stream, _ in blocks[:4]] == ["a", "b", "a", "b"]
    for _, rows in blocks:
        assert [len(rows.column(name).dictionary) for name in "spo"] == [5, 1, 5]
        assert rows.schema == streams[0][1][0].schema
    for name, batches in streams:
        found = pa.Table.from_batches([rows for stream, rows in blocks if stream == name])
        assert found.to_pylist() == pa.Table.from_batches(batches).to_pylist()


def test_blocks_are_of_whole_instants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_files, "BLOCK_ROWS", 4)
    ends = [1, 1, 1, 2, 2, 3, 3, 3, 3, 3, 3, 4]
    n = len(ends)
    rows = batch_of(["<http://e/s>"] * n, ["<http://e/p>"] * n, ['"1"'] * n, None, ends, ends)
    streams = OrderedStreams.from_batches([("none", [rows.slice(0, 0)]), ("a", [rows.slice(0, 2), rows.slice(2, 0), rows.slice(2)])])
    assert streams.names == ["a"]
    assert [rows.column("end").cast(pa.int64()).to_pylist() for _, rows in streams.read_blocks()] == [[1, 1, 1], [2, 2], [3, 3, 3, 3, 3, 3], [4]]
    assert list(OrderedStreams.from_batches([]).read_blocks()) == []


def test_streams_come_in_order_of_their_first_ends() -> None:
    streams = [("late", [rows_of(range(5, 7))]), ("early", [rows_of(range(8, 9)), rows_of(range(3, 5))]), ("as late", [rows_of(range(5, 6))])]
    found = OrderedStreams.from_batches(streams)
    assert found.names == ["early", "late", "as late"]
    assert [(name, rows.column("end").cast(pa.int64()).to_pylist()) for name, rows in found.read_blocks()] == [
        ("early", [3, 4, 8]),
        ("late", [5, 6]),
        ("as late", [5]),
    ]


LINE = '{"s":"<http://e/s%d>","p":"<http://e/p>","o":"\\"1\\"","at":"2026-01-01T00:00:%02dZ"}'


@pytest.mark.parametrize("order", [range(20), [*range(10, 20), *range(10)]])
@pytest.mark.parametrize("in_memory", [False, True])
def test_a_long_file_is_read_in_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, order: Sequence[int], *, in_memory: bool) -> None:
    path, body = tmp_path / "e.ndjson", "\n".join(LINE % (k, k) for k in order).encode()
    path.write_bytes(body)
    source = NamedBody("", path, body, NDJSON) if in_memory else NamedFile("", path)
    whole = input_files.occurrences_of(source)
    monkeypatch.setattr(input_files, "_PART_BYTES", 250)
    parts = input_files.occurrences_of(source)
    assert (len(whole), len(parts)) == (1, 5)
    blocks = [[rows.to_pylist() for _, rows in OrderedStreams.from_batches([("a", found)]).read_blocks()] for found in (whole, parts)]
    assert blocks[0] == blocks[1]
    assert [row["s"] for row in blocks[0][0]] == [f"<http://e/s{k}>" for k in range(20)]


@pytest.mark.parametrize(
    ("wrong", "place"), [('{"s":"x"}', ":13:6:"), ('{"s":"<http://e/s>","p":"<http://e/p>","o":"\\"1\\""}', ":13:1:"), ('{"s"', ":13:5:")]
)
def test_a_fault_has_its_line_in_the_whole_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wrong: str, place: str) -> None:
    path = tmp_path / "e.ndjson"
    path.write_text("\n".join([*(LINE % (k, k) for k in range(12)), wrong, LINE % (13, 13)]))
    monkeypatch.setattr(input_files, "_PART_BYTES", 250)
    with pytest.raises(SourceFault, match=f"{re.escape(str(path))}{place}"):
        input_files.occurrences_of(NamedFile("", path))


NODE = '{"s":"<urn:ele:event:a411dcbf446b5171c735e1ad9b170e87>","p":"<%s>","o":%s,"start":"1970-01-01T00:00:01Z","end":"1970-01-01T00:00:02Z"}\n'
EVENT = [  # d(1,x) on [1 s, 2 s]
    NODE % ("http://www.w3.org/1999/02/22-rdf-syntax-ns#type", '"<urn:ele:d>"'),
    NODE % ("urn:ele:arg1", '"\\"1\\"^^<http://www.w3.org/2001/XMLSchema#integer>"'),
    NODE % ("urn:ele:arg2", '"<urn:ele:x>"'),
]


def test_a_file_or_table_describes_a_node_of_an_event_as_the_event(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The check is over the whole file, whose parts may end inside an event."""
    monkeypatch.setattr(input_files, "_PART_BYTES", 8)
    path = tmp_path / "events.ndjson"
    path.write_text("".join(EVENT))
    assert [rows.num_rows for rows in input_files.occurrences_of(NamedFile("s", path))] == [1, 1, 1]
    path.write_text("".join(EVENT[:2]))
    with pytest.raises(SourceFault, match="describes <urn:ele:event:a411dcbf446b5171c735e1ad9b170e87> otherwise"):
        input_files.occurrences_of(NamedFile("s", path))
    rows = pa.Table.from_pylist([{**dict.fromkeys("spog"), **json.loads(line), "g": None, "start": 10**6, "end": 2 * 10**6} for line in EVENT])
    assert engine_task.occurrences(rows).num_rows == 3
    with pytest.raises(SolveFailed, match="describes <urn:ele:event:a411dcbf446b5171c735e1ad9b170e87> otherwise"):
        engine_task.occurrences(rows[1:])
