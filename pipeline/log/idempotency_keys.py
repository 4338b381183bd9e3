"""This module keeps the idempotency keys of the last 24 hours with their acks: a bounded number a stream, in files
apart from the catalogue.

A file holds the keys of a range of log positions and is written once, so saving costs what is new. Its name says the
range, the clock at its newest key, and a checksum: `<first>-<after>-<newest>-<crc>.keys`. In it stand, for n keys:

    n digests, sorted   8 bytes of the stream's, 16 of the key's: a lookup bisects the mapped file
    n rows of 4 int64   the clock, and the ack: log position after the entry, accepted (above 40 bits: rejected), late

What has come since the newest file is in memory, and in the log. Files merge as those of a log-structured merge tree
do.
"""

import logging
import mmap
import re
import zlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from engine.messages import Events, Micros
from epsparql.durable_files import replace_file
from pipeline.errors import Overloaded
from pipeline.log.codec import Record

HOUR: Micros = 3600 * 1_000_000
REMEMBERED: Micros = 24 * HOUR
KEYS = 2_000_000
"""A stream may have this many keys at a time."""
KEYS_FOLDER = "keys"
_UNSAVED = 50_000
"""This many keys may be in memory at a time; a merged file has at most forty times as many."""
_SPAN: Micros = 4 * HOUR
"""At most this time lies between the oldest and the newest key of a merged file.

The file goes as a whole, so its first keys stay so much longer.
"""
_STREAM, _DIGEST = 8, 24  # bytes
_ROW = 32
_COUNT_BITS = 40
_NAME = re.compile(r"(\d{20})-(\d{20})-(\d{20})-([0-9a-f]{8})\.keys")
_log = logging.getLogger(__name__)


class Ack(msgspec.Struct, frozen=True):
    """Acknowledges a durable entry. `offset` is the log position after it; of the `accepted` rows `late` ones go to
    the late feed alone.

    A `duplicate` is a body whose source position the stream has: nothing of it is written again. `rejected` counts
    rows that did not map.
    """

    offset: int
    accepted: int = 0
    late: int = 0
    duplicate: bool = False
    rejected: int = 0


Saved: TypeAlias = tuple[int, int, Micros]
"""Describes a file by its range of log positions and the clock at its newest key."""
_Digests: TypeAlias = "npt.NDArray[np.bytes_]"
_Rows: TypeAlias = "npt.NDArray[np.int64]"


class IdempotencyKeys:
    """Keeps the keys of a data directory, for the one thread that writes its log."""

    def __init__(self, directory: Path, head: int, now: Micros) -> None:
        """Open the files of keys. Files of a log that is longer than `head` are not of this one, and go."""
        self._directory, self._now = directory, now
        self._files: list[_File] = []  # these are in order of the log
        self._recent: dict[bytes, tuple[Micros, Ack]] = {}
        self._counts: Counter[bytes] = Counter()  # keys by stream, for the streams that were asked for
        for path in sorted(directory.glob("*.keys*")):
            file = _open(path)
            if file is None or file.after > head:
                path.unlink()
            else:
                self._files.append(file)

    @property
    def saved(self) -> list[Saved]:
        """Return the files, for the catalogue: the keys of a file that is gone later are read from the log again."""
        return [(file.first, file.after, file.newest) for file in self._files]

    def lacks(self, saved: Iterable[Saved]) -> int | None:
        """Return the log position from which on keys must be read again, because a file of theirs is not there."""
        wanted = [(first, after) for first, after, newest in saved if newest > self._now - REMEMBERED]
        return min((first for first, after in wanted if not any(f.first <= first and after <= f.after for f in self._files)), default=None)

    def find_ack(self, stream: str, key: str, now: Micros) -> Ack | None:
        """Return the Ack that a key got within the last 24 hours, or None for a new key.

        Raises: Overloaded where a new key would be one too many for its stream: forgetting one early would break the
        promise made for it.
        """
        digest = _digest(stream, key)
        at, ack = self._recent.get(digest) or next(filter(None, (file.find(digest) for file in reversed(self._files))), (0, None))
        if ack is not None and at > now - REMEMBERED:
            return ack
        if self._count(digest[:_STREAM]) >= KEYS:
            raise Overloaded(f"the stream {stream!r} has {KEYS} idempotency keys of the last 24 hours; send fewer, for larger bodies")
        return None

    def remember(self, stream: str, key: str, at: Micros, ack: Ack) -> None:
        digest = _digest(stream, key)
        if digest[:_STREAM] in self._counts and digest not in self._recent:
            self._counts[digest[:_STREAM]] += 1
        self._recent[digest] = at, ack

    def recall(self, record: Record, at: Micros) -> None:
        """Take the key of an entry read back from the log, unless a file has it."""
        entry = record.entry
        if (
            isinstance(entry, Events)
            and entry.key is not None
            and at > self._now - REMEMBERED
            and not any(file.first <= entry.offset < file.after for file in self._files)
        ):
            self.remember(entry.stream, entry.key, at, Ack(entry.offset + 1, entry.rows, record.late, rejected=len(record.rejected) + record.skipped))

    def expire_keys(self, now: Micros) -> None:
        """Drop the files whose keys are older than 24 hours. A file whose date is ahead of the clock is dated to `now`."""
        self._now = now
        due = [file for file in self._files if not now - REMEMBERED < file.newest <= now]
        for file in due:
            with suppress(OSError):  # another time
                if file.newest > now:
                    file.date(now)
                else:
                    file.path.unlink(missing_ok=True)
                    self._files.remove(file)
                self._counts.clear()

    def is_due(self) -> bool:
        """Tell whether keys should be saved: so many are in memory, or have been for so long."""
        at, _ = next(iter(self._recent.values()), (self._now, None))
        return len(self._recent) >= _UNSAVED or not self._now - HOUR < at <= self._now

    def save(self) -> None:
        """Write the keys in memory to a file, together with the newest files if they are small beside it.

        Raises: OSError.
        """
        if not self._recent:
            return
        offsets = [ack.offset for _, ack in self._recent.values()]
        first, after = min(offsets) - 1, max(offsets)
        newest = min(max(at for at, _ in self._recent.values()), self._now)
        digests = np.frombuffer(b"".join(self._recent), dtype=f"S{_DIGEST}")
        rows = np.array(
            [(min(at, newest), ack.offset, ack.accepted | ack.rejected << _COUNT_BITS, ack.late) for at, ack in self._recent.values()], np.int64
        )
        merged: list[_File] = []
        for file in reversed(self._files):
            if file.size > min(2 * len(digests), 40 * _UNSAVED) or newest - file.oldest > _SPAN:
                break
            merged.append(file)
            digests, rows = np.concatenate([digests, file.digests]), np.concatenate([rows, file.rows])
            first, after = min(first, file.first), max(after, file.after)
        digests, order = np.unique(digests, return_index=True)  # the first of equal ones, which is the newest
        self._directory.mkdir(exist_ok=True)
        made = _write_file(self._directory, first, after, newest, digests.tobytes() + rows[order].tobytes())
        self._files = [*self._files[: len(self._files) - len(merged)], made]
        self._recent.clear()
        self._counts.clear()
        for file in merged:
            file.path.unlink(missing_ok=True)

    def _count(self, stream: bytes) -> int:
        if stream not in self._counts:
            self._counts[stream] = sum(file.count(stream) for file in self._files) + sum(digest.startswith(stream) for digest in self._recent)
        return self._counts[stream]


class _File:
    """Represents a mapped file of keys."""

    def __init__(self, path: Path, first: int, after: int, newest: Micros, data: mmap.mmap) -> None:
        self.path, self.first, self.after, self.newest, self._data = path, first, after, newest, data
        self.size = len(data) // (_DIGEST + _ROW)
        self.oldest = min(int(self.rows[:, 0].min()), newest)

    @property
    def digests(self) -> _Digests:
        return np.frombuffer(self._data, f"S{_DIGEST}", self.size)

    @property
    def rows(self) -> _Rows:
        return np.frombuffer(self._data, np.int64, 4 * self.size, _DIGEST * self.size).reshape(-1, 4)

    def find(self, digest: bytes) -> tuple[Micros, Ack] | None:
        k = self._place(digest)
        if k == self.size or self._digest(k) != digest:
            return None
        at, offset, counts, late = self.rows[k].tolist()
        return min(at, self.newest), Ack(offset, counts & ((1 << _COUNT_BITS) - 1), late, rejected=counts >> _COUNT_BITS)

    def count(self, stream: bytes) -> int:
        return self._place(stream + b"\xff" * _DIGEST) - self._place(stream)

    def date(self, newest: Micros) -> None:
        """Date the newest key of the file to `newest`. Raises: OSError."""
        crc = self.path.stem[-8:]
        self.path = self.path.rename(self.path.with_name(_name(self.first, self.after, newest, int(crc, 16))))
        self.newest, self.oldest = newest, min(self.oldest, newest)

    def _digest(self, k: int) -> bytes:
        return self._data[k * _DIGEST : (k + 1) * _DIGEST]

    def _place(self, digest: bytes) -> int:
        return bisect_left(range(self.size), digest, key=self._digest)


def _digest(stream: str, key: str) -> bytes:
    """Return a digest with eight bytes of the stream and sixteen of the key, for two keys must not pass for one."""
    return blake2b(stream.encode(), digest_size=_STREAM).digest() + blake2b(key.encode(), digest_size=_DIGEST - _STREAM).digest()


def _name(first: int, after: int, newest: Micros, crc: int) -> str:
    return f"{first:020d}-{after:020d}-{max(newest, 0):020d}-{crc:08x}.keys"


def _write_file(directory: Path, first: int, after: int, newest: Micros, data: bytes) -> _File:
    path = directory / _name(first, after, newest, zlib.crc32(data))
    replace_file(path, data)
    made = _open(path)
    assert made is not None, path
    return made


def _open(path: Path) -> _File | None:
    """Open a file of keys. Return None if it is not a whole one."""
    named = _NAME.fullmatch(path.name)
    if named is None:
        return None
    first, after, newest = map(int, named.groups()[:3])
    with path.open("rb") as file, suppress(ValueError):  # an empty file raises it
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if len(data) % (_DIGEST + _ROW) == 0 and zlib.crc32(data) == int(named[4], 16):
            return _File(path, first, after, newest, data)
    _log.warning("%s is damaged and is removed: its keys are looked up in the log, as far as the log goes back", path)
    return None
