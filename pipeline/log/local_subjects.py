"""This module holds bodies to the setting `local` of their stream: all triples of a subject come in one body.

A body that is sent again may describe its subjects once more, since a stream is a set. So for each of the last
subjects a digest of its rows is remembered. The log tells them after a start.
"""

from collections.abc import Iterator
from contextlib import closing
from hashlib import blake2b
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from engine.messages import Events, int64s
from pipeline.errors import SubjectReturned
from pipeline.log.catalog import Stream
from pipeline.log.codec import Record, decode_records, rows_of
from pipeline.log.presence import mask_of
from pipeline.log.segments import FrameReader, segments

Hashes = NDArray[np.uint64]
REMEMBERED = 200_000
"""This many subjects of a stream are remembered at least, and at most twice as many."""
_MESSAGE_BLANK = "_:m"
"""Blank nodes of a message are named so, by a digest of their body."""
_ODD = tuple(np.uint64(odd) for odd in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


class Descriptions(NamedTuple):
    """Holds what a body says of its subjects: their hashes, those of their rows, and the row that has each first."""

    subjects: list[int]
    digests: list[int]
    rows: NDArray[np.int64]


class SubjectMemory:
    """Remembers the last subjects of each stream whose subjects are local. One thread at a time."""

    def __init__(self, data_dir: Path) -> None:
        self._log = data_dir / "log"
        self._known: dict[str, _StreamSubjects] = {}

    def take_in(self, stream: Stream, rows: pa.RecordBatch, retracted: NDArray[np.bool_] | None) -> None:
        """Take in the subjects of a body but for those of its retractions.

        Raises: SubjectReturned, and nothing of the body is remembered.
        """
        if stream.local is None:
            self._known.pop(stream.name, None)
            return
        known = self._known.get(stream.name)
        if known is None or known.since != stream.local:
            known = self._known[stream.name] = self._recall(stream.name, stream.local)
        if retracted is not None:
            rows = rows.filter(pa.array(~retracted))
        found = describe_subjects(rows)
        if (returned := known.take_in(found)) is not None:
            raise SubjectReturned(stream.name, rows.column("s")[int(found.rows[returned])].as_py())

    def _recall(self, stream: str, since: int) -> "_StreamSubjects":
        """Return the last subjects that the log has of a stream, in entries from `since` on."""
        found = _StreamSubjects(since)
        for record, rows in _read_back(self._log, stream, since):
            assert isinstance(record.entry, Events)
            taken = mask_of((*record.entry.retracts, *record.untargeted), rows.num_rows)
            found.recall(describe_subjects(rows.filter(pa.array(~taken)) if taken.any() else rows))
            if found.is_full:
                break
        return found


class _StreamSubjects:
    """Remembers a stream's last subjects with their digests, in two generations: a full one makes the other go."""

    def __init__(self, since: int) -> None:
        self.since = since
        self._recent, self._former = dict[int, int](), dict[int, int]()

    @property
    def is_full(self) -> bool:
        return len(self._former) >= REMEMBERED

    def recall(self, found: Descriptions) -> None:
        """Take in what an earlier body says than those that were taken in before."""
        for subject, digest in zip(found.subjects, found.digests, strict=True):
            self._former.setdefault(subject, digest)

    def take_in(self, found: Descriptions) -> int | None:
        """Remember the subjects of a body.

        If another body has described one otherwise, remember nothing and return its place among them.
        """
        recent, former = self._recent, self._former
        for k, (subject, digest) in enumerate(zip(found.subjects, found.digests, strict=True)):
            if recent.get(subject, former.get(subject, digest)) != digest:
                return k
        recent.update(zip(found.subjects, found.digests, strict=True))
        if len(recent) >= REMEMBERED:
            self._recent, self._former = {}, recent
        return None


def describe_subjects(rows: pa.RecordBatch) -> Descriptions:
    """Return what rows (OCCURRENCES) say of their subjects, but for blank nodes of a message, which cannot return.

    The order of a subject's rows does not matter.
    """
    s = rows.column("s")
    lasting = ~pc.starts_with(s.dictionary, _MESSAGE_BLANK).to_numpy(zero_copy_only=False)
    places = s.indices.to_numpy()
    own = np.flatnonzero(lasting[places]) if len(places) else places
    if not len(own):
        return Descriptions([], [], np.zeros(0, np.int64))
    which, first, of_row = np.unique(places[own], return_index=True, return_inverse=True)
    total = np.zeros(len(own), np.uint64)
    with np.errstate(over="ignore"):
        for name, odd in zip("pog", _ODD, strict=False):
            total = _mix(total ^ _hash_column(rows.column(name))[own] * odd)
        for name, odd in zip(("start", "end"), _ODD[3:], strict=True):
            total = _mix(total ^ int64s(rows.column(name)).view(np.uint64)[own] * odd)
        digests = np.zeros(len(which), np.uint64)
        np.add.at(digests, of_row, total)
    return Descriptions(_hash_texts(s.dictionary.take(pa.array(which))).tolist(), digests.tolist(), own[first])


def _hash_column(column: pa.DictionaryArray) -> Hashes:
    """Return a hash of each row's text; that of none is 0."""
    hashes = np.append(_hash_texts(column.dictionary), np.uint64(0))
    found: Hashes = hashes[column.indices.fill_null(len(hashes) - 1).to_numpy(zero_copy_only=False)]
    return found


def _hash_texts(texts: pa.StringArray) -> Hashes:
    """Return hashes that are the same in each process."""
    return np.frombuffer(b"".join(blake2b(text.encode(), digest_size=8).digest() for text in texts.to_pylist()), np.uint64)


def _mix(hashes: Hashes) -> Hashes:
    """Spread each bit of 64 over all (splitmix64)."""
    hashes = (hashes ^ (hashes >> np.uint64(30))) * _ODD[3]
    hashes = (hashes ^ (hashes >> np.uint64(27))) * _ODD[4]
    return hashes ^ (hashes >> np.uint64(31))


def _read_back(log: Path, stream: str, since: int) -> Iterator[tuple[Record, pa.RecordBatch]]:
    """Yield the bodies of a stream in entries from `since` on, the last one first."""
    with closing(FrameReader(log)) as reader:
        before = reader.head().position
        for segment in reversed(segments(log)):
            frames = takewhile(lambda frame, before=before: frame.first < before, reader.frames(max(segment, since)))  # type: ignore[misc]  # mypy knows no defaults of lambdas
            for frame in reversed([frame for frame in frames if frame.rows]):
                _, records, read_rows = decode_records(frame.first, reader.payload(frame))
                ends = np.cumsum([rows_of(record.entry) for record in records]).tolist()
                for record, end in zip(reversed(records), reversed(ends), strict=True):
                    entry = record.entry
                    if isinstance(entry, Events) and entry.stream == stream and entry.rows and entry.offset >= since:
                        yield record, read_rows().slice(end - entry.rows, entry.rows)
            before = segment
            if segment <= since:
                return
