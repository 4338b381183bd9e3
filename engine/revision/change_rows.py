"""This module writes the changes of a revised query's solutions as rows of SOLUTIONS (semantics.md section 14).

A change is a row of SOLUTIONS whose first value is its header:

    + or -, more, settled, end, id        with blanks between; instants have 20 characters

`more` is 1 where the next change belongs to the same entry, else 0. What ends before the instant `settled` is decided
for good once the change is taken in. The column `end` holds the entry's offset, so the ids of changes follow the log.
The column `start` is the solution's.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.messages import INSTANT, SOLUTIONS
from epsparql.deferred_methods import dataclass

ADDED, WITHDRAWN = "+", "-"
INSTANT_WIDTH = 20
DIGEST = 16
"""An id has so many bytes, and is written with twice as many hexadecimal digits."""
STANDING = pa.schema([pa.field("id", pa.binary(DIGEST)), pa.field("start", pa.int64()), pa.field("end", pa.int64()), SOLUTIONS.field("values")])
"""Each row is a solution of one query, with texts as they are."""


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """Holds changes in columns, in order of their entries: solutions (STANDING) that came, or else are withdrawn."""

    entries: NDArray[np.int64]
    added: NDArray[np.bool_]
    solutions: pa.RecordBatch

    def __len__(self) -> int:
        return len(self.entries)


class ChangeHeader(NamedTuple):
    """Holds the parts of a change's header. `settled` and `end` are instants in µs."""

    is_added: bool
    has_more: bool
    settled: int
    end: int
    id: str


def parse_header(text: str) -> ChangeHeader:
    """Return the parts of a change's first value."""
    sign, more, settled, end, digits = text.split()
    return ChangeHeader(sign == ADDED, more == "1", int(settled), int(end), digits)


def write_changes(name: str, registered: int, changes: Changes, settled: NDArray[np.int64]) -> pa.RecordBatch:
    """Write changes as rows of SOLUTIONS. `settled` has the settled instant after each of them."""
    import pyarrow.compute as pc  # it takes 0.1 s to load, so only where rows come

    n, (ids, starts, ends, values) = len(changes), changes.solutions.columns
    more = np.concatenate([changes.entries[1:] == changes.entries[:-1], np.zeros(min(n, 1), np.bool_)])
    instants, which = np.unique(settled, return_inverse=True)
    marks = pa.array(
        [f"{sign} {goes_on:d} {instant:{INSTANT_WIDTH}}" for instant in instants.tolist() for sign in (WITHDRAWN, ADDED) for goes_on in (0, 1)],
        pa.utf8(),
    )
    begins = marks.take(pa.array(4 * which + 2 * changes.added + more))
    headers = pc.binary_join_element_wise(begins, pc.utf8_lpad(ends.cast(pa.utf8()), INSTANT_WIDTH), _write_ids(ids), " ")
    entries = pa.array(changes.entries)
    columns = [
        pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array([name], pa.utf8())),
        pa.array(np.full(n, registered)),
        entries,
        starts.view(INSTANT),
        entries.view(INSTANT),
        _with_first(headers, values),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SOLUTIONS)


def _write_ids(ids: pa.FixedSizeBinaryArray) -> pa.StringArray:
    """Write ids in hexadecimal digits."""
    digits = bytes(ids.buffers()[1])[DIGEST * ids.offset : DIGEST * (ids.offset + len(ids))].hex().encode()
    places = np.arange(0, len(digits) + 1, 2 * DIGEST, dtype=np.int32)
    return pa.StringArray.from_buffers(len(ids), pa.py_buffer(places), pa.py_buffer(digits))


def _with_first(first: pa.StringArray, values: pa.ListArray) -> pa.ListArray:
    """Return lists with one more text each, in front."""
    n, offsets = len(first), values.offsets.to_numpy().astype(np.int64)
    begins = offsets - offsets[0] + np.arange(n + 1)
    places = np.arange(begins[-1]) - np.repeat(np.arange(1, n + 1), np.diff(begins)) + n + offsets[0]
    places[begins[:-1]] = np.arange(n)
    return pa.ListArray.from_arrays(pa.array(begins, pa.int32()), pa.concat_arrays([first, values.values]).take(pa.array(places)))
