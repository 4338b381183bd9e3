"""This module writes the changes of a revised query's solutions as JSON text (engine/revision/change_rows.py has their form as rows).

All of it is done by columns, because a page may hold thousands of changes.
"""

import json
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.messages import END_OF_TIME, INSTANT, SOLUTIONS, int64s
from engine.revision.change_rows import ADDED, INSTANT_WIDTH
from engine.runtime.watermarks import NO_TIME
from pipeline.formats.batches.timestamps import iso
from pipeline.solutions.solution_ids import solution_id

_ID_LENGTH = len(solution_id(0, 0))
_SETTLED, _END = 4, 5 + INSTANT_WIDTH  # where these begin in a header
_ID = _END + INSTANT_WIDTH + 1


def split_changes(changes: pa.RecordBatch) -> tuple[pa.StringArray, pa.RecordBatch]:
    """Return the headers of changes (STORED), and their solutions as rows of STORED. The ids of these rows are of no use."""
    values = changes.column("values")
    offsets, texts = values.offsets.to_numpy(), values.values
    headers = texts.take(pa.array(offsets[:-1]))
    rest = np.ones(offsets[-1] - offsets[0], np.bool_)
    rest[offsets[:-1] - offsets[0]] = False
    bound = texts.slice(offsets[0], len(rest)).filter(pa.array(rest))
    begins = pa.array(offsets - offsets[0] - np.arange(len(offsets)), pa.int32())
    ends = pc.utf8_ltrim_whitespace(pc.utf8_slice_codeunits(headers, _END, _END + INSTANT_WIDTH)).cast(pa.int64()).cast(INSTANT)
    with_ends = changes.set_column(4, SOLUTIONS.field("end"), ends)
    return headers, with_ends.set_column(5, SOLUTIONS.field("values"), pa.ListArray.from_arrays(begins, bound))


def write_changes(changes: pa.RecordBatch, write_solutions: Callable[[pa.RecordBatch], pa.BinaryArray]) -> tuple[pa.BinaryArray, pa.BinaryArray]:
    """Return the `seq` of each change, and its JSON object. `write_solutions` writes rows of one query as lines of ndjson."""
    headers, solutions = split_changes(changes)
    lines = write_solutions(solutions)
    keys = zip(int64s(changes.column("end")).tolist(), int64s(changes.column("ordinal")).tolist(), strict=True)
    seqs = pa.array([solution_id(*key) for key in keys], pa.utf8()).cast(pa.binary())
    head = lines[0].as_py().partition(b'"id":"')[0]  # a query's name is written before, with its quotation marks escaped
    found = pc.binary_join_element_wise(
        b'{"id":"',
        pc.utf8_slice_codeunits(headers, _ID).cast(pa.binary()),
        pc.binary_slice(lines, len(head) + len('"id":"') + _ID_LENGTH, -1),  # without the line's end
        b"",
    )
    added = pc.starts_with(headers, ADDED)
    nothing, empty = pa.scalar(b"", pa.binary()), b""
    texts = pc.binary_join_element_wise(
        head + b'"seq":"', seqs, b'","added":[', pc.if_else(added, found, nothing), b'],"withdrawn":[', pc.if_else(added, nothing, found), b'],"settled":',
        _write_settled(pc.utf8_slice_codeunits(headers, _SETTLED, _SETTLED + INSTANT_WIDTH)),
        pc.if_else(pc.equal(pc.utf8_slice_codeunits(headers, 2, 3), "1"), pa.scalar(b',"more":true}', pa.binary()), pa.scalar(b"}", pa.binary())), empty,
    )  # fmt: skip
    return seqs, texts


def _write_settled(texts: pa.StringArray) -> pa.BinaryArray:
    """Write the instants; null before there is one, and "finished" once nothing can change any more."""
    encoded = texts.dictionary_encode()
    return pa.array([_write_instant(int(text)) for text in encoded.dictionary.to_pylist()], pa.binary()).take(encoded.indices)


def _write_instant(settled: int) -> bytes:
    if settled >= END_OF_TIME:
        return b'"finished"'
    return b"null" if settled == NO_TIME else json.dumps(iso(settled)).encode()
