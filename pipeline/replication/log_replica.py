"""This module keeps a log of a data directory in a store: each append here is an object there, and many small objects become large ones.

An earlier server that has not noticed yet may put one object in the place of many, and then remove these. So another server's object is removed only
where this server has put its content. The last object of a segment stays: whoever lists a segment meanwhile sees what is missing.
"""

import os
import zlib
from bisect import insort
from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from threading import Lock

import numpy as np

from pipeline.errors import StoreFailed
from pipeline.log.segments import SegmentFile, segment_path, segments, sound
from pipeline.object_store.backends import Place
from pipeline.replication.fencing import Fence
from pipeline.replication.object_names import Bound, Extent, Part, counted, cover, extent_of

PART_BYTES = 16 << 20
"""An object has at most this many bytes, but for those that stand for many."""
MANY = 64
"""This many objects of one class of size become one."""
SIZES = 64 << 10, 4 << 20
"""Objects of these sizes and more are of the next class; those of the last stay as they are."""
_TRIES = 5
"""A listing is tried this often: a server that has not noticed yet may put one object in the place of many meanwhile."""
_ORDER = attrgetter("extent.segment", "begin")


def listed(place: Place, kind: str, begin: int = 0) -> list[Extent]:
    """Return the extents of a log in the store from a segment on, in order; some may not count."""
    found = [int(folder[:-1]) for folder in place.names(kind) if folder[:-1].isdecimal()]
    names = [(segment, name) for segment in found if segment >= begin for name in place.names(f"{kind}/{segment:020d}")]
    return sorted(each for segment, name in names if (each := extent_of(segment, name)) is not None)


def present(place: Place, fence: Fence, kind: str, begin: int = 0) -> dict[int, list[Part]]:
    """Return the parts that make up each segment, from the segment `begin` on. Raises: StoreFailed where something is missing."""
    for _ in range(_TRIES):
        with suppress(StoreFailed):
            return _present(place, fence, kind, begin)
    return _present(place, fence, kind, begin)


def _present(place: Place, fence: Fence, kind: str, begin: int) -> dict[int, list[Part]]:
    extents = listed(place, kind, max(begin, fence.begins.get(kind, 0)))
    found = {segment: cover(each, fence.bounds_of(kind)) for segment, each in groupby(extents, attrgetter("segment"))}
    return {segment: parts for segment, parts in found.items() if parts}


def bytes_of(place: Place, kind: str, parts: list[Part]) -> bytes | None:
    """Return the bytes of the parts, or None where one of them has gone. Raises: StoreFailed."""
    found = []
    for part in parts:
        data = place.read(f"{kind}/{part.extent.name}")
        if data is None:
            return None
        if zlib.crc32(data) != part.extent.crc:
            raise StoreFailed(f"the object {kind}/{part.extent.name} is damaged: its checksum does not hold")
        found.append(data[part.begin - part.extent.begin : part.end - part.extent.begin])
    return b"".join(found)


class KeptLog:
    """Keeps a log in the store; `kind` is log or solutions. One thread pushes; another may tidy meanwhile."""

    def __init__(self, place: Place, fence: Fence, data_dir: Path, kind: str) -> None:
        self._place, self._fence, self.kind = place, fence, kind
        self._directory = data_dir / kind
        self._lock = Lock()  # guards the list
        self._parts: list[Part] = []  # the parts that count, in order
        self.bound: Bound = (0, 0)
        """The log is in the store up to this segment and byte."""

    def adopt(self) -> bool:
        """Go on from what the store holds, as far as it equals what is here; return whether all of it does.

        Call this before the first push. Raises: StoreFailed.
        """
        self._parts, self.bound = [], (0, 0)
        here = segments(self._directory) if self._directory.exists() else []
        found = present(self._place, self._fence, self.kind, here[0] if here else 0)
        last = min([*here[-1:], max(found, default=0)])
        for segment, parts in found.items():
            whole = segment < last  # and on disk since the next one was begun
            size = self._size(segment, whole=whole)
            for part in parts:
                end = min(part.end, size) if whole else self._same(part, size)
                if end > part.begin:
                    self._parts.append(replace(part, end=end))
                    self.bound = segment, end
                if end < part.end:
                    return False
            if whole and size > parts[-1].end:
                return False
        return True

    def push(self, segment: int, size: int) -> None:
        """Bring the log to the store up to byte `size` of `segment`, and see that no later server has come before.

        Raises: StoreFailed, StoreTaken.
        """
        for first in segments(self._directory):
            if self.bound[0] <= first <= segment:
                end = size if first == segment else segment_path(self._directory, first).stat().st_size
                begin = self.bound[1] if first == self.bound[0] else 0
                for at in range(begin, end, PART_BYTES):
                    part = self._put(first, at, min(at + PART_BYTES, end))
                    with self._lock:
                        insort(self._parts, part, key=_ORDER)
                    self.bound = first, part.end
        self._fence.check()

    def tidy(self) -> None:
        """Merge many small objects in a row into one. Raises: StoreFailed."""
        with self._lock:
            runs = _runs(self._parts)
        for run in runs:
            self._replace(run, self._put(run[0].extent.segment, run[0].begin, run[-1].end))

    def drop(self) -> None:
        """Remove the objects before the segment with which the log begins. Raises: StoreFailed."""
        begin = self._fence.begins.get(self.kind, 0)
        with self._lock:
            gone = [part.extent for part in self._parts if part.extent.segment < begin]
        self._remove(gone)
        with self._lock:
            self._parts = [part for part in self._parts if part.extent.segment >= begin]

    def mend(self) -> None:
        """Bring the store to what is counted on; then remove objects that neither this list nor another object counts on.

        Raises: StoreFailed, OSError.
        """
        with self._lock:
            parts = list(self._parts)
        there = listed(self._place, self.kind)
        for part in parts:
            if part.extent not in {*there}:
                self._replace([part], self._put(part.extent.segment, part.begin, part.end))
        with self._lock:
            parts = list(self._parts)
        begin, known = self._fence.begins.get(self.kind, 0), {part.extent for part in parts}
        mine = [part for part in parts if part.extent.epoch == self._fence.epoch]
        for extent in there:
            earlier = extent.epoch < self._fence.epoch and extent not in known
            if extent.segment < begin or (earlier and _within(counted(extent, self._fence.bounds_of(self.kind)), mine)):
                self._remove([extent])

    def _size(self, segment: int, *, whole: bool) -> int:
        """Return how many bytes of a segment are here, and hold."""
        path = segment_path(self._directory, segment)
        if whole or not path.exists():
            return path.stat().st_size if path.exists() else 0
        with closing(SegmentFile(self._directory, segment)) as file:
            return sound(file).size

    def _same(self, part: Part, size: int) -> int:
        """Return up to where the bytes of a part are those that are here, of which `size` hold."""
        if size <= part.begin:
            return part.begin
        end = min(part.end, size)
        here = self._bytes(part.extent.segment, part.begin, end)
        if (part.begin, end) == (part.extent.begin, part.extent.end) and zlib.crc32(here) == part.extent.crc:
            return end
        there = bytes_of(self._place, self.kind, [part]) or b""
        count = min(len(here), len(there))
        same = np.frombuffer(here, np.uint8, count) == np.frombuffer(there, np.uint8, count)
        return part.begin + (count if same.all() else int(same.argmin()))

    def _replace(self, run: list[Part], whole: Part) -> None:
        with self._lock:
            self._parts = sorted([*(part for part in self._parts if part not in run), whole], key=_ORDER)
            left = {part.extent for part in self._parts}
        self._remove({part.extent for part in run} - left)

    def _put(self, segment: int, begin: int, end: int) -> Part:
        data = self._bytes(segment, begin, end)
        extent = Extent(segment, begin, end, zlib.crc32(data), self._fence.epoch)
        self._place.put(f"{self.kind}/{extent.name}", data)
        return Part(extent, begin, end)

    def _bytes(self, segment: int, begin: int, end: int) -> bytes:
        with segment_path(self._directory, segment).open("rb") as file:
            data = os.pread(file.fileno(), end - begin, begin)
        assert len(data) == end - begin, (segment, begin, end, len(data))
        return data

    def _remove(self, extents: Iterable[Extent]) -> None:
        for extent in extents:
            self._place.remove(f"{self.kind}/{extent.name}")


def _within(part: Part | None, parts: list[Part]) -> bool:
    """Tell whether parts, in order, hold all of another."""
    at = part.begin if part is not None else 0
    for each in parts:
        if part is not None and each.extent.segment == part.extent.segment and each.begin <= at:
            at = max(at, each.end)
    return part is None or at >= part.end


def _runs(parts: list[Part]) -> list[list[Part]]:
    """Return stretches of a segment in at least MANY objects of one class of size; the segment's last object is in none."""
    runs: list[list[Part]] = []
    for _, segment in groupby(parts, attrgetter("extent.segment")):
        for size, group in groupby([*segment][:-1], lambda part: sum(part.end - part.begin >= size for size in SIZES)):
            run = list(group)
            if size < len(SIZES) and len(run) >= MANY:
                runs.append(run)
    return runs
