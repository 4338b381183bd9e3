"""These tests check how a replay's files become blocks of the log."""

import pyarrow as pa
import pytest

from pipeline.formats.batches.batch_builder import batch_of
from pipeline.replay import input_files


def rows_of(ends: range, graph: str | None = None) -> pa.RecordBatch:
    n = len(ends)
    return batch_of([f"<http://e/s{end}>" for end in ends], ["<http://e/p>"] * n, [f'"{end}"' for end in ends], [graph] * n, list(ends), list(ends))


def test_a_block_carries_only_its_own_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise, each block of the log has the terms of all files, and a file of twice the size takes four times as long."""
    monkeypatch.setattr(input_files, "BLOCK_ROWS", 10)
    streams = [("a", [rows_of(range(0, 100, 2))]), ("b", [rows_of(range(1, 100, 2), "<http://e/g>")])]
    blocks = list(input_files.messages(streams))
    assert [block.stream for block in blocks[:4]] == ["a", "b", "a", "b"]
    for block in blocks:
        assert [len(block.rows.column(name).dictionary) for name in "spo"] == [5, 1, 5]
        assert block.rows.schema == streams[0][1][0].schema
    for name, batches in streams:
        found = pa.Table.from_batches([block.rows for block in blocks if block.stream == name])
        assert found.to_pylist() == pa.Table.from_batches(batches).to_pylist()


def test_blocks_are_of_whole_instants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_files, "BLOCK_ROWS", 4)
    ends = [1, 1, 1, 2, 2, 3, 3, 3, 3, 3, 3, 4]
    n = len(ends)
    rows = batch_of(["<http://e/s>"] * n, ["<http://e/p>"] * n, ['"1"'] * n, None, ends, ends)
    found = [block.rows.column("end").cast(pa.int64()).to_pylist() for block in input_files.messages([("a", [rows]), ("none", [rows.slice(0, 0)])])]
    assert found == [[1, 1, 1], [2, 2], [3, 3, 3, 3, 3, 3], [4]]
    assert list(input_files.messages([])) == []
