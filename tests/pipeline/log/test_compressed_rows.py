"""Many rows of a frame are written in few bytes, and read as they were written; rows of earlier versions and few rows
are not compressed.
"""

import numpy as np
import pyarrow as pa
import pytest

from engine.messages import INSTANT, OCCURRENCES, Events
from pipeline.log.codec import Record, decode, encode
from pipeline.log.encoding import sliced_rows
from pipeline.log.encoding.arrow_ipc import COMPRESSED_ROWS, pack_rows, stream_of, unpack_rows, write_rows

MOST_BYTES = 30
"""An event of W1 takes at most this much in a body of a thousand."""


def events_of_w1(n: int) -> pa.RecordBatch:
    """Return events as those of the benchmarks: three predicates, 100,000 subjects, doubles of 17 digits as objects,
    a millisecond apart.
    """
    random = np.random.default_rng(1)
    texts = (
        [f"<http://example.org/id/{number}>" for number in random.integers(0, 100_000, n)],
        [f"<http://example.org/{'abc'[number]}>" for number in random.integers(0, 3, n)],
        [f'"{value!r}"^^<http://www.w3.org/2001/XMLSchema#double>' for value in (100 * random.random(n)).tolist()],
    )
    terms = [pa.array(each).dictionary_encode() for each in texts]
    times = pa.array(1_767_225_600_000_000 + 1000 * np.arange(n)).view(INSTANT)
    late = pa.array(np.zeros(n, np.bool_))
    return pa.RecordBatch.from_arrays([*terms, pa.nulls(n, OCCURRENCES.field("g").type), times, times, late], schema=OCCURRENCES)


def encoded(rows: pa.RecordBatch, slices: int = 1) -> memoryview:
    parts, _, _ = encode(5, [Record(Events(3, "default", rows.num_rows, None))], rows, slices)
    return memoryview(b"".join(parts))


@pytest.mark.parametrize("n", [1_000, 10_000])
def test_an_event_takes_few_bytes(n: int) -> None:
    rows = events_of_w1(n)
    payload = encoded(rows)
    assert len(payload) <= MOST_BYTES * n
    assert decode(3, payload).rows.equals(rows)


def test_slices_are_compressed_too() -> None:
    rows = events_of_w1(4 * sliced_rows.SLICE_ROWS + 1)
    payload = encoded(rows, 4)
    assert len(payload) <= 2 * MOST_BYTES * rows.num_rows
    assert decode(3, payload).rows.to_pylist() == rows.to_pylist()


@pytest.mark.parametrize("n", [COMPRESSED_ROWS - 1, COMPRESSED_ROWS, 10_000])
def test_a_slice_is_compressed_as_a_whole_and_one_with_compressed_buffers_is_read(n: int) -> None:
    rows, earlier = events_of_w1(n), pa.BufferOutputStream()
    write_rows(earlier, rows)
    packed = pack_rows(rows)
    assert len(packed) % 8 == 0
    assert len(packed) <= 1.05 * earlier.tell()
    assert unpack_rows(memoryview(packed)).equals(rows)
    assert unpack_rows(memoryview(earlier.getvalue())).equals(rows)


def test_few_rows_are_as_they_were_in_earlier_versions() -> None:
    entries = b'[5,[["events",["default",%d,null,null,null],0,null,null,false,null]]]'
    many, few = events_of_w1(COMPRESSED_ROWS), events_of_w1(COMPRESSED_ROWS - 1)
    earlier = stream_of(many.replace_schema_metadata({b"entries": entries % COMPRESSED_ROWS}))
    assert len(encoded(many)) < earlier.size / 3
    content = decode(3, memoryview(earlier))
    assert (content.at, content.records) == (5, (Record(Events(3, "default", COMPRESSED_ROWS, None)),))
    assert content.rows.equals(many)
    assert len(encoded(few)) >= stream_of(few).size
    assert decode(3, encoded(few)).rows.equals(few)
