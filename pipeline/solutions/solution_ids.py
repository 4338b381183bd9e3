"""This module makes solution ids, and encodes solutions as the bytes of a frame."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.messages import SOLUTIONS, Micros, StateChange
from epsparql.deferred_methods import dataclass
from pipeline.errors import OutOfOrder
from pipeline.log.encoding.arrow_ipc import Part, parts_of

_ORDINAL = pa.field("ordinal", pa.int64(), nullable=False)
STORED = SOLUTIONS.append(_ORDINAL)
_ID = re.compile(r"([0-9a-f]{16})-([0-9a-f]{8})(\.[0-9]{8})?")
FIRST_ID = f"{0:016x}-{0:08x}"
"""This id is before all solutions'."""
Key = tuple[Micros, int]
"""The key of a solution is its end and its ordinal. Keys order as ids do."""


def solution_id(end: Micros, ordinal: int) -> str:
    return f"{end + 2**63:016x}-{ordinal:08x}"


def key_of(identifier: str) -> Key:
    """Return the key of an id; that of a notice is the key of the solution that it follows.

    Raises: ValueError for a text that is no id.
    """
    found = _ID.fullmatch(identifier)
    if found is None:
        raise ValueError(f"{identifier[:40]!r} is not a solution id such as {solution_id(0, 0)}")
    return int(found[1], 16) - 2**63, int(found[2], 16)


def notice_id(last: str, number: int) -> str:
    """Return the id of the notice that version `number` begins, which stands between the solution `last` and all
    later ones.
    """
    return f"{last}.{number:08}"


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Selects the solutions between two keys, both excluded; `newest` reads them from the end.

    A key that bounds a time has the ordinal -1, which no id has.
    """

    after: Key | None = None
    before: Key | None = None
    newest: bool = False

    def within(self, first: Micros | None, last: Micros | None) -> "KeyRange":
        """Return the part of this range whose solutions end at `first` or later, and at `last` or earlier."""
        after = [key for key in (self.after, None if first is None else (first, -1)) if key is not None]
        before = [key for key in (self.before, None if last is None else (last + 1, -1)) if key is not None]
        return KeyRange(max(after, default=None), min(before, default=None), self.newest)


class SolutionRun(msgspec.Struct, frozen=True, array_like=True):
    """Summarizes a registration's solutions in one frame: how many, and the key of the last."""

    registered: int
    count: int
    end: Micros
    ordinal: int


@dataclass(frozen=True, slots=True)
class FrameSummary:
    """Holds what a frame tells without its rows."""

    runs: tuple[SolutionRun, ...] = ()
    changes: tuple[StateChange, ...] = ()


def assign(registered: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], last: dict[int, Key]) -> tuple[npt.NDArray[np.int64], list[SolutionRun]]:
    """Return ordinals of solutions in order of emission, and the runs.

    `last` has each registration's last key so far. Raises: OutOfOrder where ends fall.
    """
    n = len(registered)
    if n <= _FEW:
        return _assign_each(registered.tolist(), ends.tolist(), last)
    order: slice | npt.NDArray[np.intp] = np.argsort(registered, kind="stable") if (np.diff(registered) < 0).any() else slice(None)
    by_query, by_end, rows = registered[order], ends[order], np.arange(n)
    first = np.concatenate(([True], by_query[1:] != by_query[:-1]))
    if bool(np.any((by_end[1:] < by_end[:-1]) & ~first[1:])):
        raise OutOfOrder("solutions of one query whose ends fall")
    instants = first | np.concatenate(([True], by_end[1:] != by_end[:-1]))
    ordinals = rows - np.maximum.accumulate(np.where(instants, rows, 0))
    begins = np.flatnonzero(first).tolist()
    stops = [*begins[1:], n]
    queries, starts = by_query[begins].tolist(), by_end[begins].tolist()
    for query, end, begin, stop in zip(queries, starts, begins, stops, strict=True):
        known = last.get(query)
        if known is not None and end < known[0]:
            raise OutOfOrder(f"a solution of the query registered at {query} ends at {end} µs, after one that ends at {known[0]} µs")
        if known is not None and end == known[0]:
            same = begin + int(np.searchsorted(by_end[begin:stop], end, side="right"))
            ordinals[begin:same] += known[1] + 1
    lasts = np.array(stops) - 1
    counts = (lasts + 1 - begins).tolist()
    runs = list(map(SolutionRun, queries, counts, by_end[lasts].tolist(), ordinals[lasts].tolist()))
    given = np.empty(n, np.int64)
    given[order] = ordinals
    return given, runs


_FEW = 16
"""So few solutions are looked at one by one, because operations on arrays take 50 µs, however few they are."""


def _assign_each(registered: Sequence[int], ends: Sequence[Micros], last: Mapping[int, Key]) -> tuple[npt.NDArray[np.int64], list[SolutionRun]]:
    """Do what `assign` does for many. Raises: OutOfOrder."""
    ordinals, counts, keys = list[int](), dict[int, int](), dict[int, Key]()
    for query, end in zip(registered, ends, strict=True):
        known = keys.get(query) or last.get(query)
        if known is not None and end < known[0]:
            raise OutOfOrder(f"a solution of the query registered at {query} ends at {end} µs, after one that ends at {known[0]} µs")
        ordinals.append(known[1] + 1 if known is not None and end == known[0] else 0)
        keys[query], counts[query] = (end, ordinals[-1]), counts.get(query, 0) + 1
    return np.array(ordinals, np.int64), [SolutionRun(query, counts[query], *keys[query]) for query in sorted(keys)]


def encode_solutions(solutions: pa.RecordBatch, ordinals: npt.NDArray[np.int64], summary: FrameSummary) -> tuple[Sequence[Part], pa.RecordBatch]:
    """Return the parts of a payload, of which those that are columns are not copied, and the solutions as
    `decode_solutions` reads them from it.
    """
    plain = (summary.runs, [astuple(change) for change in summary.changes])
    stored = solutions.append_column(_ORDINAL, pa.array(ordinals)).replace_schema_metadata({b"summary": msgspec.json.encode(plain)})
    return parts_of(stored), stored


def decode_summary(payload: memoryview) -> FrameSummary:
    plain = pa.ipc.open_stream(pa.py_buffer(payload)).schema.metadata[b"summary"]
    runs, changes = msgspec.json.decode(plain, type=tuple[tuple[SolutionRun, ...], list[Any]])
    return FrameSummary(runs, tuple(StateChange(*change) for change in changes))


def decode_solutions(payload: memoryview) -> pa.RecordBatch:
    """Decode a payload as STORED, maybe packed."""
    return pa.ipc.open_stream(pa.py_buffer(payload)).read_next_batch()


def last_keys(runs: Sequence[SolutionRun]) -> dict[int, Key]:
    return {run.registered: (run.end, run.ordinal) for run in runs}
