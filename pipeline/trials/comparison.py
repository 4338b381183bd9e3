"""This module compares the solutions of two sides while they come, and keeps counts by time and the first solutions of each kind.

A solution is a line of JSON without its ordinal, so two solutions are equal where query, interval and values are. Duplicates count.
"""

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.dictionary.arrow_encoding import plain
from engine.messages import Micros, int64s
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
_SIGN = 1 << 63


@dataclass(slots=True)
class Timeline:
    """Counts ends by kind in slots of `width` µs since the epoch; slots become wider when there are more than MOST_SLOTS."""

    width: Micros = _FINEST
    slots: dict[int, list[int]] = field(default_factory=dict)  # three counts, as KINDS has them

    def add(self, kind: int, ends: Ints, sign: int = 1) -> None:
        """Add to a kind's counts, or take from them."""
        for slot, count in zip(*(part.tolist() for part in np.unique(ends // self.width, return_counts=True)), strict=True):
            self.slots.setdefault(slot, [0, 0, 0])[kind] += sign * count
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


@dataclass(slots=True)
class _Pending:
    """Holds solutions of one query and side that are not compared yet, in order of end."""

    ends: list[Micros] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)

    def take(self, before: Micros) -> tuple[Ints, list[bytes]]:
        """Take out the solutions that end before an instant."""
        k = bisect_left(self.ends, before)
        ends, lines = self.ends[:k], self.lines[:k]
        del self.ends[:k], self.lines[:k]
        return np.array(ends, np.int64), lines


class Comparison:
    """Compares solutions and writes the first `kept` of each kind to files of a directory; use it as a context."""

    def __init__(self, directory: Path, kept: int, bounds: TrialRange, forms: Mapping[Watched, Form]) -> None:
        self._kept, self._bounds, self._forms = kept, bounds, forms
        self.timeline = Timeline()
        self.counts: dict[str, list[int]] = {watched.name: [0, 0, 0] for watched in forms}
        """Counts of each query, as KINDS has them."""
        self.written = dict.fromkeys(KINDS, 0)
        self._pending = {name: {side: _Pending() for side in SIDES} for name in self.counts}
        self._begins = {name: _line_prefix(name) for name in self.counts}
        self._files = ExitStack()
        self._out: dict[str, BinaryIO] = {kind: self._files.enter_context((directory / kind).open("wb")) for kind in KINDS}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._files.close()

    def add(self, watched: Watched, solutions: pa.RecordBatch) -> None:
        """Add solutions (SOLUTIONS) of a registration, in order of emission: their ends never fall."""
        found = plain(solutions)
        ends = int64s(found.column("end"))
        stored = pa.RecordBatch.from_arrays([*found.columns, pa.array(np.zeros(len(ends), np.int64))], schema=STORED)
        pending = self._pending[watched.name][watched.side]
        pending.ends += ends.tolist()
        pending.lines += ndjson(stored, dict.fromkeys(found.column("query").dictionary.to_pylist(), self._forms[watched])).text.splitlines()

    def settle(self, before: Micros) -> None:
        """Compare what ends before an instant: no side brings more of it."""
        for name, sides in self._pending.items():
            (new_ends, new), (old_ends, old) = (self._within(*sides[side].take(before)) for side in SIDES)
            if not new and not old:
                continue
            only_new, only_old, both = subtract(new, old)
            for kind, lines in enumerate((only_new, only_old, both)):
                self.counts[name][kind] += len(lines)
                self._keep(KINDS[kind], lines)
            self._count(name, new_ends, old_ends, only_new, only_old)

    def _within(self, ends: Ints, lines: list[bytes]) -> tuple[Ints, list[bytes]]:
        first = 0 if self._bounds.since is None else int(np.searchsorted(ends, self._bounds.since))
        after = len(ends) if self._bounds.before is None else int(np.searchsorted(ends, self._bounds.before))
        return ends[first:after], lines[first:after]

    def _count(self, name: str, new_ends: Ints, old_ends: Ints, only_new: list[bytes], only_old: list[bytes]) -> None:
        """Count by time. Both sides' solutions are the new ones without those of the new side alone."""
        at = self._begins[name]
        alone = self._ends_of(only_new, at) if len(only_new) < len(new_ends) else new_ends
        lost = self._ends_of(only_old, at) if len(only_old) < len(old_ends) else old_ends
        for kind, ends, sign in ((0, alone, 1), (1, lost, 1), (2, new_ends, 1), (2, alone, -1)):
            self.timeline.add(kind, ends, sign)

    def _ends_of(self, lines: Sequence[bytes], at: int) -> Ints:
        """Return the ends as the ids of the lines have them, which begin at the character `at`."""
        return np.array([int(line[at : at + 16], 16) - _SIGN for line in lines], np.int64)

    def _keep(self, kind: str, lines: list[bytes]) -> None:
        room = self._kept - self.written[kind]
        if room > 0 and lines:
            chosen = sorted(lines)[:room]
            self._out[kind].write(b"".join(line + b"\n" for line in chosen))
            self._out[kind].flush()
            self.written[kind] += len(chosen)


def subtract(new: list[bytes], old: list[bytes]) -> tuple[list[bytes], list[bytes], list[bytes]]:
    """Return what only the new list has, what only the old one has, and what both have; a line counts as often as it stands."""
    if new == old:
        return [], [], new
    if not new or not old:
        return new, old, []
    sets = set(new), set(old)
    if len(sets[0]) == len(new) and len(sets[1]) == len(old):
        return list(sets[0] - sets[1]), list(sets[1] - sets[0]), list(sets[0] & sets[1])
    counts = Counter(new), Counter(old)
    return tuple(list(part.elements()) for part in (counts[0] - counts[1], counts[1] - counts[0], counts[0] & counts[1]))  # type: ignore[return-value]


def _line_prefix(name: str) -> int:
    """Return how many bytes of a query's lines stand before the id, whose first part is the end."""
    return len(f'{{"query":{json.dumps(name, ensure_ascii=False)},"id":"'.encode())
