"""This module writes the changes of a revised query's solutions as JSON text (engine/revision/change_rows.py has their form as rows).

All of it is done by columns, because a page may hold thousands of changes.
"""

import json
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.messages import END_OF_TIME, INSTANT, SOLUTIONS, int64s
from engine.revision.change_rows import ADDED, INSTANT_WIDTH
from engine.runtime.watermarks import NO_TIME
from pipeline.formats.batches.timestamps import iso
from pipeline.solutions.solution_ids import FIRST_ID, write_ids

_MORE, _SETTLED, _END = 2, 4, 5 + INSTANT_WIDTH  # where these begin in a header
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


def write_changes(
    changes: pa.RecordBatch, write_solutions: Callable[[pa.RecordBatch], pa.BinaryArray]
) -> tuple[pa.BinaryArray, Sequence[pa.BinaryArray | bytes]]:  # fmt: skip
    """Return the `seq` of each change, and the parts of its JSON object, which are to be joined. `write_solutions` writes rows of one query as ndjson."""
    headers, solutions = split_changes(changes)
    lines = write_solutions(solutions)
    seqs = write_ids(int64s(changes.column("end")), int64s(changes.column("ordinal")))
    head = lines[0].as_py().partition(b'"id":"')[0]  # a query's name is written before, with its quotation marks escaped
    marks = pc.utf8_slice_codeunits(headers, 0, _END).dictionary_encode()  # a page has few
    before, after = (pa.array(texts, pa.binary()).take(marks.indices) for texts in zip(*map(_write_around, marks.dictionary.to_pylist()), strict=True))
    ids = pc.utf8_slice_codeunits(headers, _ID).cast(pa.binary())
    rest = pc.binary_slice(lines, len(head) + len('"id":"') + len(FIRST_ID), -1)  # without the line's end
    return seqs, (head + b'"seq":"', seqs, before, ids, rest, after)


def _write_around(mark: str) -> tuple[bytes, bytes]:
    """Write what stands between the `seq` and the id of a change's solution, and what stands after the solution."""
    settled, more = _write_instant(int(mark[_SETTLED:])), b',"more":true}' if mark[_MORE] == "1" else b"}"
    if mark.startswith(ADDED):
        return b'","added":[{"id":"', b'],"withdrawn":[],"settled":' + settled + more
    return b'","added":[],"withdrawn":[{"id":"', b'],"settled":' + settled + more


def _write_instant(settled: int) -> bytes:
    """Write an instant; null before there is one, and "finished" once nothing can change any more."""
    if settled >= END_OF_TIME:
        return b'"finished"'
    return b"null" if settled == NO_TIME else json.dumps(iso(settled)).encode()
