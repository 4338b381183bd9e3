"""This module compares the solutions of two sides while they come, and keeps counts by time and the first solutions
of each kind.

Two solutions are equal where interval and values are, and where their queries have the same form. Duplicates count.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import field
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from engine.dictionary.arrow_encoding import plain
from engine.messages import SOLUTIONS, Micros, int64s
from epsparql.deferred_methods import dataclass
from pipeline.solutions.json_encoder import ndjson
from pipeline.solutions.result_kinds import Form
from pipeline.solutions.solution_ids import STORED
from pipeline.trials.plan import NEW, OLD, SIDES, TrialRange, Watched

Ints = NDArray[np.int64]
BOTH = "both"
KINDS = (NEW, OLD, BOTH)
"""Solutions are of the new side alone, of the old side alone, or of both."""
MOST_SLOTS = 240
_FINEST: Micros = 1_000_000


@dataclass(slots=True)
class SolutionTimeline:
    """Counts ends by kind in slots of `width` µs since the epoch; slots become wider when there are more than
    MOST_SLOTS.
    """

    width: Micros = _FINEST
    slots: dict[int, list[int]] = field(default_factory=dict)  # three counts, as KINDS has them

    def add(self, kind: int, ends: Ints, counts: Ints) -> None:
        """Add `counts` solutions of a kind at each of the ends."""
        slots, which = np.unique(ends // self.width, return_inverse=True)
        sums = np.bincount(which, counts, len(slots)).astype(np.int64)
        for slot, count in zip(slots.tolist(), sums.tolist(), strict=True):
            self.slots.setdefault(slot, [0, 0, 0])[kind] += count
        while len(self.slots) > MOST_SLOTS:
            self._widen()

    def _widen(self) -> None:
        """Double the width."""
        wider: dict[int, list[int]] = {}
        for slot, counts in self.slots.items():
            merged = wider.setdefault(slot // 2, [0, 0, 0])
            for kind, count in enumerate(counts):
                merged[kind] += count
        self.width, self.slots = 2 * self.width, wider


class _Group(NamedTuple):
    """Holds equal solutions, column by column: their end, how many each side has, and the place of one of each side."""

    end: Ints
    new: Ints
    old: Ints
    first: Ints
    last: Ints


class Comparison:
    """Compares solutions and writes the first `kept` of each kind to files of a directory; use it as a context."""

    def __init__(self, directory: Path, kept: int, bounds: TrialRange, forms: Mapping[Watched, Form]) -> None:
        self._kept, self._bounds = kept, bounds
        self.timeline = SolutionTimeline()
        self.counts: dict[str, list[int]] = {watched.name: [0, 0, 0] for watched in forms}
        """Counts of each query, as KINDS has them."""
        self.written = dict.fromkeys(KINDS, 0)
        self._forms = {(watched.name, watched.side): form for watched, form in forms.items()}
        self._pending: dict[tuple[str, str], list[pa.RecordBatch]] = {}
        self._files = ExitStack()
        self._out: dict[str, BinaryIO] = {kind: self._files.enter_context((directory / kind).open("wb")) for kind in KINDS}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._files.close()

    def add(self, watched: Watched, solutions: pa.RecordBatch) -> None:
        """Add solutions (SOLUTIONS) of a registration, in order of emission: their ends never fall."""
        self._pending.setdefault((watched.name, watched.side), []).append(plain(solutions))

    def compare_until(self, before: Micros) -> None:
        """Compare what ends before an instant: no side brings more of it."""
        for name in self.counts:
            new, old = (self._take_settled(name, side, before) for side in SIDES)
            if new.num_rows or old.num_rows:
                self._compare(name, new, old)

    def _take_settled(self, name: str, side: str, before: Micros) -> pa.RecordBatch:
        """Take out the solutions of a side that end before an instant, and return those that count."""
        parts = self._pending.get((name, side))
        if parts is None or int64s(parts[0].column("end"))[0] >= before:
            return _NONE
        pending = pa.concat_batches(parts)
        ends = int64s(pending.column("end"))
        after = int(np.searchsorted(ends, before))
        self._pending[name, side] = [pending.slice(after)]
        if after == len(ends):
            del self._pending[name, side]
        first = 0 if self._bounds.since is None else int(np.searchsorted(ends, self._bounds.since))
        if self._bounds.before is not None:
            after = min(after, int(np.searchsorted(ends, self._bounds.before)))
        return pending.slice(first, max(after - first, 0))

    def _compare(self, name: str, new: pa.RecordBatch, old: pa.RecordBatch) -> None:
        alike = self._forms.get((name, NEW)) == self._forms.get((name, OLD))
        groups, together = group_equal(new, old, alike=alike), pa.concat_batches([new, old])
        both = np.minimum(groups.new, groups.old)
        for kind, (counts, rows) in enumerate(((groups.new - both, groups.first), (groups.old - both, groups.last), (both, groups.first))):
            there = counts > 0
            if there.any():
                self.counts[name][kind] += int(counts.sum())
                self.timeline.add(kind, groups.end[there], counts[there])
                self._keep(kind, name, together, np.sort(np.repeat(rows[there], counts[there])))

    def _keep(self, kind: int, name: str, solutions: pa.RecordBatch, rows: Ints) -> None:
        """Write rows as lines of JSON, in order of emission, as long as there is room."""
        room = self._kept - self.written[KINDS[kind]]
        if room <= 0:
            return
        chosen = solutions.take(pa.array(rows[:room]))
        stored = pa.RecordBatch.from_arrays([*chosen.columns, pa.array(np.zeros(chosen.num_rows, np.int64))], schema=STORED)
        form = self._forms[name, OLD if KINDS[kind] == OLD else NEW]
        out = self._out[KINDS[kind]]
        out.write(ndjson(stored, dict.fromkeys(stored.column("query").dictionary.to_pylist(), form)).text)
        out.flush()
        self.written[KINDS[kind]] += chosen.num_rows


_NONE = pa.RecordBatch.from_pylist([], schema=SOLUTIONS)


def group_equal(new: pa.RecordBatch, old: pa.RecordBatch, *, alike: bool = True) -> _Group:
    """Return the groups of equal solutions; none is equal to one of the other side unless the sides are `alike`."""
    n, m = new.num_rows, old.num_rows
    if not n or not m:
        ends, places = int64s((new if n else old).column("end")), np.arange(n + m)
        ones, zeros = np.ones(n + m, np.int64), np.zeros(n + m, np.int64)
        return _Group(ends, ones if n else zeros, ones if m else zeros, places, places)
    columns: dict[str, Any] = {name: np.concatenate([int64s(part.column(name)) for part in (new, old)]) for name in ("start", "end")}
    columns["values"] = pa.chunked_array([_join_values(part.column("values")) for part in (new, old)])
    columns["side"], columns["row"] = np.repeat([1, 0], [n, m]), np.arange(n + m)
    keys = ["start", "end", "values", *([] if alike else ["side"])]
    found = pa.table(columns).group_by(keys, use_threads=False).aggregate([("side", "sum"), ("side", "count"), ("row", "min"), ("row", "max")])
    count, end, first, last = (found.column(name).to_numpy() for name in ("side_count", "end", "row_min", "row_max"))
    news = found.column("side_sum").to_numpy()
    return _Group(end, news, count - news, first, last)


def _join_values(values: pa.ListArray) -> pa.Array:
    """Return each list as one text; no term is empty or has a line's end, so different lists give different texts."""
    texts = values.flatten()
    offsets = values.offsets
    from_zero = pc.subtract(offsets, offsets[0])
    return pc.binary_join(pa.ListArray.from_arrays(from_zero, texts.fill_null("")), "\n")
