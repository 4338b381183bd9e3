"""This module writes the changes of a revised query's solutions as rows of SOLUTIONS (semantics.md section 14).

A change is a row of SOLUTIONS whose first value is its header:

    + or -, more, settled, end, id        with blanks between; instants have 20 characters

`more` is 1 where the next change belongs to the same entry, else 0. What ends before the instant `settled` is decided for good once the change is taken
in. The column `end` holds the entry's offset, so the ids of changes follow the log. The column `start` is the solution's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.messages import INSTANT, SOLUTIONS, Micros

ADDED, WITHDRAWN = "+", "-"
INSTANT_WIDTH = 20


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """Holds changes in columns, in order of their entries."""

    entries: Sequence[int]
    signs: Sequence[str]
    ids: Sequence[str]
    starts: Sequence[Micros]
    ends: Sequence[Micros]
    values: pa.ListArray

    def __len__(self) -> int:
        return len(self.ids)


def write_changes(name: str, registered: int, changes: Changes, settled: Mapping[int, tuple[Micros, Micros]]) -> pa.RecordBatch:
    """Write changes as rows of SOLUTIONS. `settled` has the settled instant before each entry's last change, and after it."""
    n = len(changes)
    more = [entry == following for entry, following in pairwise(changes.entries)] + [False] * (n > 0)
    marks = [f"{sign} {goes_on:d}" for sign, goes_on in zip(changes.signs, more, strict=True)]
    instants = [settled[entry][not goes_on] for goes_on, entry in zip(more, changes.entries, strict=True)]
    times = (pc.utf8_lpad(pa.array(each, pa.int64()).cast(pa.utf8()), INSTANT_WIDTH) for each in (instants, changes.ends))
    headers = pc.binary_join_element_wise(pa.array(marks, pa.utf8()), *times, pa.array(changes.ids, pa.utf8()), " ")
    entries = pa.array(changes.entries, pa.int64())
    columns = [
        pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array([name], pa.utf8())),
        pa.array(np.full(n, registered)),
        entries,
        pa.array(changes.starts, pa.int64()).cast(INSTANT),
        entries.cast(INSTANT),
        _with_first(headers, changes.values),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SOLUTIONS)


def _with_first(first: pa.StringArray, values: pa.ListArray) -> pa.ListArray:
    """Return lists with one more text each, in front."""
    n, offsets = len(first), values.offsets.to_numpy().astype(np.int64)
    begins = offsets - offsets[0] + np.arange(n + 1)
    places = np.arange(begins[-1]) - np.repeat(np.arange(1, n + 1), np.diff(begins)) + n + offsets[0]
    places[begins[:-1]] = np.arange(n)
    return pa.ListArray.from_arrays(pa.array(begins, pa.int32()), pa.concat_arrays([first, values.values]).take(pa.array(places)))
