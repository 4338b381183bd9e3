"""This module knows which occurrences of a revisable stream may still be taken back, so that a retraction without a
target is found.
"""

from collections.abc import Iterable, Iterator
from dataclasses import field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.messages import Events, Micros, int64s
from epsparql.deferred_methods import dataclass
from pipeline.log.codec import Content, rows_of

_FEW = 4096
Ranges = tuple[tuple[int, int], ...]
"""Ranges of rows, each with the row after its last."""


@dataclass(slots=True)
class Presence:
    """Keeps the occurrences that are present, by their hashes, with their ends.

    Some that the watermark has passed may be among them.
    """

    _ends: dict[int, Micros] = field(default_factory=dict)
    _purge_at: int = _FEW

    def read(self, stream: str, contents: Iterable[Content], after: int) -> "Presence":
        """Take in what the log brought to a stream from a position on."""
        for content in contents:
            row = 0
            for record in content.records:
                begin, row = row, row + rows_of(record.entry)
                if isinstance(record.entry, Events) and record.entry.stream == stream and record.entry.offset >= after:
                    self._replay(record.entry, content.rows.slice(begin, row - begin))
        return self

    def judge(self, rows: pa.RecordBatch, watermark: Micros | None) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Take in the rows of a body, in order, and return which of them are retractions that have a target, and
        which have none.

        Retractions are marked as late, and their targets end after the watermark.
        """
        retracts = rows.column("late").to_numpy(zero_copy_only=False)
        hits = np.zeros(len(retracts), np.bool_)
        for row, (key, end) in enumerate(hash_rows(rows)):
            if retracts[row]:
                hits[row] = (watermark is None or end > watermark) and self._ends.pop(key, None) is not None
            elif watermark is None or end >= watermark:
                self._ends[key] = end
        self._purge(watermark)
        return hits, retracts & ~hits

    def _replay(self, entry: Events, rows: pa.RecordBatch) -> None:
        late, taken = rows.column("late").to_numpy(zero_copy_only=False), mask_of(entry.retracts, rows.num_rows)
        for row, (key, end) in enumerate(hash_rows(rows)):
            if taken[row]:
                self._ends.pop(key, None)
            elif not late[row]:
                self._ends[key] = end
        self._purge(entry.watermark)

    def _purge(self, watermark: Micros | None) -> None:
        if watermark is not None and len(self._ends) >= self._purge_at:
            self._ends = {key: end for key, end in self._ends.items() if end >= watermark}
            self._purge_at = max(_FEW, 2 * len(self._ends))


def hash_rows(rows: pa.RecordBatch) -> Iterator[tuple[int, Micros]]:
    """Yield for each row a hash of what tells it from other occurrences, good for this process, and its end."""
    starts, ends = (int64s(rows.column(name)).tolist() if rows.num_rows else [] for name in ("start", "end"))
    for *key, end in zip(*(rows.column(name).to_pylist() for name in "spog"), starts, ends, strict=True):
        yield hash((*key, end)), end


def ranges_of(mask: NDArray[np.bool_]) -> Ranges:
    """Return the ranges of the rows that are chosen."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8))).tolist()
    return tuple(zip(edges[::2], edges[1::2], strict=True))


def mask_of(ranges: Ranges, rows: int) -> NDArray[np.bool_]:
    found = np.zeros(rows, np.bool_)
    for begin, after in ranges:
        found[begin:after] = True
    return found
