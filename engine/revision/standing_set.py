"""This module keeps the solutions of a revised query that stand (semantics.md section 14)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from engine.dictionary.arrow_encoding import plain
from engine.messages import SOLUTIONS, Micros, int64s
from engine.revision.change_rows import ADDED, WITHDRAWN, Changes

_DIGEST = 16  # bytes of an id
_FEW = 1024  # solutions that may be settled and kept
Standing = tuple[int, Micros, Micros, pa.ListArray, int]
"""The number of equal solutions, their start and end, and what they bind: a row of a column of values."""


@dataclass(slots=True, eq=False)
class StandingSet:
    """Holds the solutions of one query that stand and are not settled; some that are settled may be among them."""

    solutions: dict[bytes, Standing] = field(default_factory=dict)
    _purge_at: int = _FEW

    def add(self, found: pa.RecordBatch) -> Changes:
        """Add solutions (SOLUTIONS), and return their changes in the same order."""
        entries, starts, ends = (int64s(found.column(name)) for name in ("entry", "start", "end"))
        values = plain(found).column("values")
        return self._add_rows(entries.tolist(), starts, ends, values)

    def _add_rows(self, entries: Sequence[int], starts: NDArray[np.int64], ends: NDArray[np.int64], values: pa.ListArray) -> Changes:
        solutions, ids = self.solutions, list[str]()
        columns = _write_keys(starts, ends, values), starts.tolist(), ends.tolist()
        for row, (key, start, end) in enumerate(zip(*columns, strict=True)):
            digest = blake2b(key, digest_size=_DIGEST).digest()
            known = solutions.get(digest)
            if known is None:
                solutions[digest] = 1, start, end, values, row
                ids.append(digest.hex())
            else:
                ids.append(_name_copy(digest, known[0]))
                solutions[digest] = known[0] + 1, *known[1:]
        return Changes(entries, ADDED * len(ids), ids, *columns[1:], values)

    def replace(self, new: "StandingSet", settled: Micros, entry: int) -> Changes:
        """Put solutions in the place of all that were not settled, and return the changes: first what is gone, then what came."""
        self._drop_settled(settled)
        old, self.solutions = self.solutions, new.solutions
        gone = [(WITHDRAWN, digest, copy, one) for digest, one in old.items() for copy in range(_count_copies(self.solutions, digest), one[0])]
        came = [(ADDED, digest, copy, one) for digest, one in self.solutions.items() for copy in range(_count_copies(old, digest), one[0])]
        each = gone + came
        values = pa.array([one[3][one[4]].as_py() for *_, one in each], SOLUTIONS.field("values").type)
        ids = [_name_copy(digest, copy) for _, digest, copy, _ in each]
        starts, ends = ([one[k] for *_, one in each] for k in (1, 2))
        return Changes([entry] * len(each), [sign for sign, *_ in each], ids, starts, ends, values)

    def forget_settled(self, settled: Micros) -> None:
        """Let go of what is settled, once there is much of it."""
        if len(self.solutions) >= self._purge_at:
            self._drop_settled(settled)
            self._purge_at = max(_FEW, 2 * len(self.solutions))

    def _drop_settled(self, settled: Micros) -> None:
        self.solutions = {digest: one for digest, one in self.solutions.items() if one[2] >= settled}

    # ------------------------------------------------------------ snapshots
    def to_bytes(self) -> NDArray[np.uint8]:
        """Return the set as an Arrow stream."""
        each = list(self.solutions.values())
        counts, starts, ends = (pa.array([one[k] for one in each], pa.int64()) for k in range(3))
        values = pa.array([one[3][one[4]].as_py() for one in each], SOLUTIONS.field("values").type)
        batch = pa.RecordBatch.from_pydict({"count": counts, "start": starts, "end": ends, "values": values})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write(batch)
        return np.frombuffer(sink.getvalue(), np.uint8)

    @classmethod
    def from_bytes(cls, data: NDArray[np.uint8]) -> "StandingSet":
        batch = pa.ipc.open_stream(pa.py_buffer(data)).read_next_batch()
        count, start, end = (int64s(batch.column(name)) for name in ("count", "start", "end"))
        found = cls()
        found._add_rows([0] * batch.num_rows, start, end, batch.column("values"))
        found.solutions = {digest: (int(n), *one[1:]) for n, (digest, one) in zip(count, found.solutions.items(), strict=True)}
        return found


def _count_copies(solutions: Mapping[bytes, Standing], digest: bytes) -> int:
    return solutions[digest][0] if digest in solutions else 0


def _name_copy(digest: bytes, number: int) -> str:
    """Return the id of one of several equal solutions, which are numbered from 0."""
    return digest.hex() if not number else blake2b(digest + number.to_bytes(8, "little"), digest_size=_DIGEST).hexdigest()


def _write_keys(starts: NDArray[np.int64], ends: NDArray[np.int64], values: pa.ListArray) -> list[bytes]:
    """Return what tells each solution from others that bind or last otherwise. Terms hold no line feeds, and none is empty."""
    times = np.column_stack([starts, ends]).astype("<i8").tobytes()
    begins, texts = values.offsets.to_numpy(), values.values
    filled = pa.ListArray.from_arrays(pa.array(begins - begins[0], pa.int32()), texts.slice(begins[0], begins[-1] - begins[0]).fill_null(""))
    joined = pc.binary_join(filled, "\n").cast(pa.binary()).to_pylist()
    return [times[at : at + 16] + text for at, text in zip(range(0, len(times), 16), joined, strict=True)]
