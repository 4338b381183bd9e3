"""Frames whose rows are in slices: all readers see the same rows, and a partition reads and checks no more than its
own.
"""

import zlib
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.messages import INSTANT, OCCURRENCES, Events
from engine.partitioning import NO_KEYS, PlainRows, events_of, partition_of, source_of
from pipeline.errors import Corrupt
from pipeline.log import LogReader, LogWriter, SharedReader
from pipeline.log.codec import HAS_SLICES, decode, decode_slices
from pipeline.log.encoding.sliced_rows import SLICE_ROWS, encode_slices, fetch_from
from pipeline.log.segments import HEADER, Frame, FrameReader, segment_path
from tests.support.logs import Clock

Row = tuple[str, str, str, str | None, int, int, bool]
TEXTS = [f"<http://e/{k}>" for k in range(12)] + ['"ü"', '""']
ROWS = st.tuples(*[st.sampled_from(TEXTS)] * 3, st.none() | st.sampled_from(TEXTS), st.integers(0, 9), st.integers(0, 9), st.booleans())


def batch_of(rows: Sequence[Row]) -> pa.RecordBatch:
    """Return OCCURRENCES over dictionaries that have texts twice, and texts that no row has."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(OCCURRENCES)
    whole = pa.array([*TEXTS, *TEXTS[::2]])
    terms = [
        pa.DictionaryArray.from_arrays(pa.array([None if text is None else TEXTS.index(text) for text in column], pa.int32()), whole)
        for column in columns[:4]
    ]
    times = [pa.array(column, pa.int64()).cast(INSTANT) for column in columns[4:6]]
    return pa.RecordBatch.from_arrays([*terms, *times, pa.array(columns[6], pa.bool_())], schema=OCCURRENCES)


@settings(max_examples=60)
@given(st.lists(ROWS, max_size=40), st.integers(2, 64), st.integers(1, 64), st.data())
def test_slices_have_the_rows_of_each_partition(rows: list[Row], slices: int, partitions: int, data: st.DataObject) -> None:
    batch = batch_of(rows)
    first = data.draw(st.integers(0, len(rows)))
    events = [Events(7, "a", first, 5), Events(8, "b", 0, 5), Events(9, "a", len(rows) - first, None)]
    parts, crc = encode_slices(b"[0,[]]", events, batch, slices)
    payload = memoryview(b"".join(parts))
    assert crc == zlib.crc32(payload)
    assert decode(7, payload).rows.to_pylist() == batch.to_pylist()
    whole = decode_slices(7, fetch_from(payload))[2]
    assert whole.find_latest_ends(events) == PlainRows(batch).find_latest_ends(events)
    begin = data.draw(st.integers(0, len(rows)))
    count = data.draw(st.integers(0, len(rows) - begin))
    part, plain = whole.slice(begin, count), PlainRows(batch.slice(begin, count))
    assert part.read_ends().tolist() == plain.read_ends().tolist()
    for partition in {0, partitions // 2, partitions - 1}:
        own, places = part.read_own(partition, partitions, events, NO_KEYS)
        assert places.tolist() == [k for k in range(count) if partition_of(rows[begin + k][0], partitions) == partition]
        assert own.to_pylist() == [plain.rows.to_pylist()[k] for k in places.tolist()]


def body(number: int, rows: int) -> pa.RecordBatch:
    return batch_of([(f"<http://e/{k % 12}>", "<http://e/1>", "<http://e/2>", None, number, number, False) for k in range(rows)])


def frames(data: Path) -> list[Frame]:
    with closing(FrameReader(data / "log")) as reader:
        return list(reader.frames(0))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of a body with slices, one that is too small for them, and another with slices."""
    with LogWriter(tmp_path, Clock(), partitions=2) as log:
        for number, rows in enumerate((2 * SLICE_ROWS + 1, 2 * SLICE_ROWS, 3 * SLICE_ROWS)):
            log.append_events("s", body(number, rows))
    assert [frame.flags & HAS_SLICES for frame in frames(tmp_path)] == [HAS_SLICES, 0, HAS_SLICES]
    return tmp_path


@pytest.mark.parametrize("most", [1, 10_000])
def test_blocks_of_frames_with_and_without_slices(log: Path, most: int) -> None:
    """A reader of slices gives blocks as any other does, and each partition's rows with their places."""
    with closing(LogReader(log)) as plain, closing(LogReader(log, sliced=True)) as sliced, closing(SharedReader(log, 1, 1)) as shared:
        for expected, *others in zip(plain.blocks(0, most), sliced.blocks(0, most), shared.blocks(0, most), strict=True):
            for block in others:
                assert block.entries == expected.entries
                assert block.num_rows == expected.num_rows
                assert block.rows.equals(expected.rows) or block.rows.to_pylist() == expected.rows.to_pylist()
                own = [source_of(each).read_own(1, 3, events_of(each), NO_KEYS) for each in (block, expected)]
                assert own[0][1].tolist() == own[1][1].tolist()
                assert own[0][0].to_pylist() == own[1][0].to_pylist()


def test_a_partition_checks_its_own_slice_only(log: Path) -> None:
    """A damaged slice is found by its partition and by who reads the whole; the other partition reads on."""
    last = frames(log)[-1]
    with segment_path(log / "log", last.segment).open("r+b") as file:
        file.seek(last.byte + HEADER.size + last.length - 100)  # in the last slice
        damaged = bytes([file.read(1)[0] ^ 1])
        file.seek(-1, 1)
        file.write(damaged)
    with closing(LogReader(log, sliced=True)) as reader:
        *_, block = reader.blocks(0, 1)
        assert source_of(block).read_own(0, 2, events_of(block), NO_KEYS)[0].num_rows
        with pytest.raises(Corrupt, match="checksum"):
            source_of(block).read_own(1, 2, events_of(block), NO_KEYS)
    with closing(LogReader(log)) as reader, pytest.raises(Corrupt, match="checksum"):
        list(reader.blocks(0, 1))


def test_a_damaged_index_is_found(log: Path) -> None:
    first = frames(log)[0]
    with segment_path(log / "log", first.segment).open("r+b") as file:
        file.seek(first.byte + HEADER.size + 5)  # the length of what follows the prefix
        file.write(b"\xff")
    with closing(LogReader(log, sliced=True)) as reader, pytest.raises(Corrupt, match="checksum"):
        list(reader.blocks(0, 1))
