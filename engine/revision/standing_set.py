"""This module keeps the solutions of a revised query that stand (semantics.md section 14), in columns."""

from collections import Counter, deque
from collections.abc import Sequence
from hashlib import blake2b
from itertools import chain

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.dictionary.arrow_encoding import plain
from engine.messages import Micros, int64s
from engine.revision.change_rows import DIGEST, STANDING, Changes
from engine.runtime.event_queue import Choice
from engine.runtime.watermarks import NO_TIME

_SMALL = 64  # parts that are joined into one, because each solution of a live stream comes alone
_NOTHING = pa.RecordBatch.from_pylist([], schema=STANDING)


class StandingSet:
    """Holds the solutions of one query that stand and are not settled; some that are settled may be among them.

    Solutions are added in order of their ends. So equal ones, which end together, come one after the other.
    """

    __slots__ = ("_copies", "_latest", "_parts", "_recent")

    def __init__(self) -> None:
        self._parts: deque[pa.RecordBatch] = deque()  # in order of the ends of their last rows (STANDING)
        self._recent: list[pa.RecordBatch] = []
        self._latest = NO_TIME
        self._copies = Counter[bytes]()  # how many of the solutions that end at `_latest` bind and last alike, by their digest

    def add(self, found: pa.RecordBatch) -> Changes:
        """Add solutions (SOLUTIONS, at least one), and return their changes in the same order."""
        starts, ends = (found.column(name).view(pa.int64()) for name in ("start", "end"))
        values = plain(found).column("values")
        digests, instants = _digest_solutions(starts, ends, values), int64s(ends)
        if instants[0] != self._latest:
            self._copies = Counter()
        ids = digests
        if len(set(digests)) < len(digests) or not self._copies.keys().isdisjoint(digests):
            ids = _number_copies(digests, self._copies)
        if instants[-1] != self._latest:
            self._latest, self._copies = int(instants[-1]), Counter()
        self._copies.update(digests[int(np.searchsorted(instants, self._latest)) :])
        column = pa.FixedSizeBinaryArray.from_buffers(STANDING.field("id").type, len(ids), [None, pa.py_buffer(b"".join(ids))])
        rows = pa.RecordBatch.from_arrays([column, starts, ends, values], schema=STANDING)
        self._recent.append(rows)
        if len(self._recent) == _SMALL:
            self._parts.append(pa.concat_batches(self._recent))
            self._recent = []
        return Changes(int64s(found.column("entry")), np.ones(len(ids), np.bool_), rows)

    def replace(self, new: "StandingSet", chosen: Choice, settled: Micros, entry: int) -> Changes:
        """Put the chosen solutions of another set in the place of those of this one that were not settled.

        Return the changes: first what is gone, then what came, both in order of their ends.
        """
        kept, old = self._split(chosen, settled)
        _, found = new._split(chosen, NO_TIME)
        gone, came = _subtract(old, found), _subtract(found, old)
        gone = gone.take(pa.array(np.argsort(int64s(gone.column("end")), kind="stable")))
        parts = [part for part in (*kept, found) if part.num_rows]
        self._parts, self._recent = deque(sorted(parts, key=_find_last_end)), []
        self._latest, self._copies = new._latest, new._copies
        added = np.arange(gone.num_rows + came.num_rows) >= gone.num_rows
        return Changes(np.full(len(added), entry), added, pa.concat_batches([gone, came]))

    def _split(self, choice: Choice, settled: Micros) -> tuple[list[pa.RecordBatch], pa.RecordBatch]:
        """Return the solutions that are not chosen, and those that are, both without those that were settled."""
        others, chosen = list[pa.RecordBatch](), [_NOTHING]
        for part in chain(self._parts, self._recent):
            ends = int64s(part.column("end"))
            wanted = choice(ends)
            for found, mask in ((others, ~wanted), (chosen, wanted)):
                found.append(part.filter(pa.array(mask & (ends >= settled))))
        return others, pa.concat_batches(chosen)

    def forget_settled(self, settled: Micros) -> None:
        """Let go of parts that are settled."""
        while self._parts and _find_last_end(self._parts[0]) < settled:
            self._parts.popleft()

    # ------------------------------------------------------------ snapshots
    def to_bytes(self) -> NDArray[np.uint8]:
        """Return the set as an Arrow stream."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, STANDING) as stream:
            stream.write(pa.concat_batches([_NOTHING, *self._parts, *self._recent]))
        return np.frombuffer(sink.getvalue(), np.uint8)

    @classmethod
    def from_bytes(cls, data: NDArray[np.uint8]) -> "StandingSet":
        import pyarrow.compute as pc  # it takes 0.1 s to load, so only where rows come

        found, rows = cls(), pa.ipc.open_stream(pa.py_buffer(data)).read_next_batch()
        if rows.num_rows:
            found._parts.append(rows)
            found._latest = _find_last_end(rows)
            last = rows.filter(pc.equal(rows.column("end"), found._latest))
            found._copies = Counter(_digest_solutions(*last.columns[1:]))
        return found


def _find_last_end(part: pa.RecordBatch) -> Micros:
    return int(int64s(part.column("end"))[-1])


def _subtract(rows: pa.RecordBatch, others: pa.RecordBatch) -> pa.RecordBatch:
    import pyarrow.compute as pc  # it takes 0.1 s to load, so only where rows come

    return rows.filter(pc.invert(pc.is_in(rows.column("id"), value_set=others.column("id"))))


def _number_copies(digests: Sequence[bytes], before: Counter[bytes]) -> list[bytes]:
    """Return ids: the digest of the first of several equal solutions, and another one for each of the next."""
    counts, found = Counter(before), list[bytes]()
    for digest in digests:
        number = counts[digest]
        found.append(blake2b(digest + number.to_bytes(8, "little"), digest_size=DIGEST).digest() if number else digest)
        counts[digest] += 1
    return found


def _digest_solutions(starts: pa.Int64Array, ends: pa.Int64Array, values: pa.ListArray) -> list[bytes]:
    """Return what tells each solution from others that bind or last otherwise.

    Terms hold no line feeds, and none is empty.
    """
    import pyarrow.compute as pc  # it takes 0.1 s to load, so only where rows come

    times = np.column_stack([int64s(starts), int64s(ends)]).astype("<i8").tobytes()
    if values.values.null_count:
        begins, texts = values.offsets.to_numpy(), values.flatten()
        values = pa.ListArray.from_arrays(pa.array(begins - begins[0], pa.int32()), texts.fill_null(""))
    joined = pc.binary_join(values, "\n").cast(pa.binary()).to_pylist()
    return [blake2b(times[at : at + 16] + text, digest_size=DIGEST).digest() for at, text in zip(range(0, len(times), 16), joined, strict=True)]
