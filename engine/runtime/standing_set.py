"""This module keeps the solutions of a revised query that stand, and tells how they change (semantics.md section 14).

A change is a row of SOLUTIONS whose first value is its header:

    + or -, more, settled, end, id

`more` is 1 where the next change belongs to the same entry, else 0. What ends before the instant `settled` is decided for good once the change is taken
in. The column `end` holds the entry's offset, so the ids of changes follow the log. The column `start` is the solution's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.dictionary.arrow_encoding import plain
from engine.messages import INSTANT, SOLUTIONS, Micros, int64s

ADDED, WITHDRAWN = "+", "-"
_DIGEST = 16  # bytes of an id
_FEW = 1024  # solutions that may be settled and kept
Values = Sequence[str | None]


@dataclass(slots=True)
class Standing:
    """Holds equal solutions: their number and interval, and what they bind."""

    count: int
    start: Micros
    end: Micros
    values: Values


@dataclass(frozen=True, slots=True)
class Change:
    """Says that a solution came, or is gone, at an entry of the log."""

    entry: int
    sign: str
    id: str
    start: Micros
    end: Micros
    values: Values


def digest_solution(start: Micros, end: Micros, values: Values) -> bytes:
    """Return what tells a solution from others that bind or last otherwise. Terms hold no line feeds, and none is empty."""
    text = f"{start} {end}\n" + "\n".join([value or "" for value in values])
    return blake2b(text.encode(), digest_size=_DIGEST).digest()


def _name_copy(digest: bytes, number: int) -> str:
    """Return the id of one of several equal solutions, which are numbered from 0."""
    return digest.hex() if not number else blake2b(digest + number.to_bytes(8, "little"), digest_size=_DIGEST).hexdigest()


@dataclass(slots=True, eq=False)
class StandingSet:
    """Holds the solutions of one query that stand and are not settled; some that are settled may be among them."""

    solutions: dict[bytes, Standing] = field(default_factory=dict)
    _purge_at: int = _FEW

    def add(self, found: pa.RecordBatch) -> list[Change]:
        """Add solutions (SOLUTIONS), and return their changes in the same order."""
        entries, starts, ends = (int64s(found.column(name)).tolist() for name in ("entry", "start", "end"))
        values, changes = plain(found).column("values").to_pylist(), list[Change]()
        for entry, start, end, bound in zip(entries, starts, ends, values, strict=True):
            digest = digest_solution(start, end, bound)
            known = self.solutions.get(digest)
            if known is None:
                self.solutions[digest] = Standing(1, start, end, bound)
                changes.append(Change(entry, ADDED, digest.hex(), start, end, bound))
            else:
                changes.append(Change(entry, ADDED, _name_copy(digest, known.count), start, end, bound))
                known.count += 1
        return changes

    def replace(self, new: "StandingSet", settled: Micros, entry: int) -> list[Change]:
        """Put solutions in the place of all that were not settled, and return the changes: first what is gone, then what came."""
        self._drop_settled(settled)
        old, self.solutions = self.solutions, new.solutions
        gone = [change for digest, one in old.items() for change in _compare(digest, one, new.solutions.get(digest), entry, WITHDRAWN)]
        came = [change for digest, one in new.solutions.items() for change in _compare(digest, one, old.get(digest), entry, ADDED)]
        return gone + came

    def settle(self, settled: Micros) -> None:
        """Let go of what is settled, once there is much of it."""
        if len(self.solutions) >= self._purge_at:
            self._drop_settled(settled)
            self._purge_at = max(_FEW, 2 * len(self.solutions))

    def _drop_settled(self, settled: Micros) -> None:
        self.solutions = {digest: one for digest, one in self.solutions.items() if one.end >= settled}

    # ------------------------------------------------------------ snapshots
    def to_bytes(self) -> NDArray[np.uint8]:
        """Return the set as an Arrow stream."""
        each = list(self.solutions.values())
        counts, starts, ends = ([getattr(one, name) for one in each] for name in ("count", "start", "end"))
        batch = pa.RecordBatch.from_pydict({
            "count": pa.array(counts, pa.int64()), "start": pa.array(starts, pa.int64()), "end": pa.array(ends, pa.int64()),
            "values": pa.array([one.values for one in each], pa.list_(pa.utf8())),
        })  # fmt: skip
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write(batch)
        return np.frombuffer(sink.getvalue(), np.uint8)

    @classmethod
    def from_bytes(cls, data: NDArray[np.uint8]) -> "StandingSet":
        batch = pa.ipc.open_stream(pa.py_buffer(data)).read_next_batch()
        found = [Standing(*row.values()) for row in batch.to_pylist()]
        return cls({digest_solution(one.start, one.end, one.values): one for one in found})


def _compare(digest: bytes, one: Standing, other: Standing | None, entry: int, sign: str) -> list[Change]:
    """Return the changes for the copies that `one` has beyond those of the other side."""
    first = 0 if other is None else other.count
    return [Change(entry, sign, _name_copy(digest, number), one.start, one.end, one.values) for number in range(first, one.count)]


def write_changes(name: str, registered: int, changes: Sequence[Change], settled: Mapping[int, tuple[Micros, Micros]]) -> pa.RecordBatch:
    """Write changes as rows of SOLUTIONS, in order of their entries. `settled` has the settled instant before each entry's last change, and after it."""
    n = len(changes)
    more = [change.entry == following.entry for change, following in pairwise(changes)] + [False] * (n > 0)
    entries = pa.array([change.entry for change in changes], pa.int64())
    values = [
        [f"{change.sign} {goes_on:d} {settled[change.entry][not goes_on]} {change.end} {change.id}", *change.values]
        for change, goes_on in zip(changes, more, strict=True)
    ]
    columns = [
        pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.int32()), pa.array([name], pa.utf8())),
        pa.array([registered] * n, pa.int64()),
        entries,
        pa.array([change.start for change in changes], pa.int64()).cast(INSTANT),
        entries.cast(INSTANT),
        pa.array(values, pa.list_(pa.utf8())),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SOLUTIONS)
