"""This module keeps a log of a data directory in a store: each append here is an object there, and many small objects
become large ones.
"""

import os
import zlib
from collections.abc import Callable, Collection
from contextlib import closing
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from threading import Lock

import msgspec
import numpy as np

from pipeline.errors import Corrupt
from pipeline.log.segments import SegmentFile, read_sound_frames, segment_path, segments
from pipeline.object_store.backends import ObjectStore
from pipeline.replication.manifest import Extent

PIECE_BYTES = 16 << 20
"""An object has at most this many bytes, but for those that stand for many."""
MANY = 64
"""This many objects of one class of size become one."""
SIZES = 64 << 10, 4 << 20
"""Objects of these sizes and more are of the next class.

Those of the last stay as they are, until their segment is full: it becomes one object.
"""
Bound = tuple[int, int]
"""Names a segment, and a byte in it."""


class LogReplica:
    """Keeps a log in the store; `kind` is log or solutions. One thread pushes; another may merge meanwhile."""

    def __init__(self, store: ObjectStore, data_dir: Path, kind: str, put: Callable[[bytes], str]) -> None:
        """`put` writes an object and returns its name."""
        self._store, self._directory, self.kind, self._put = store, data_dir / kind, kind, put
        self.lock = Lock()
        """It guards the extents."""
        self.extents: list[Extent] = []
        """These make up the log in the store, in order."""
        self.bound: Bound = (0, 0)
        """The log is in the store up to this segment and byte."""

    def adopt(self, extents: list[Extent]) -> bool:
        """Go on from what the store holds, as far as it equals what is here; return whether all of it does.

        Raises: StoreFailed.
        """
        self.extents, self.bound = [], (0, 0)
        here = segments(self._directory) if self._directory.exists() else []
        extents = [each for each in extents if not here or each.segment >= here[0]]
        last = min([*here[-1:], max((each.segment for each in extents), default=0)])
        for segment, group in groupby(extents, attrgetter("segment")):
            found = list(group)
            whole = segment < last  # and on disk since the next one was begun
            size = self._sound_size(segment, whole=whole)
            for extent in found:
                end = min(extent.end, size) if whole else self._equal_until(extent, size)
                if end > extent.begin:
                    self.extents.append(msgspec.structs.replace(extent, end=end))
                    self.bound = segment, end
                if end < extent.end:
                    return False
            if whole and size > found[-1].end:
                return False
        return True

    def push(self, segment: int, size: int, write: Callable[[int, int, bytes], Extent], noted: Callable[[], None] = lambda: None) -> None:
        """Bring the log to the store up to byte `size` of `segment`; `write` writes a piece of a segment. Raises:
        StoreFailed, StoreTaken.

        `noted` is called under the lock when the piece is among the extents.
        """
        for first in segments(self._directory):
            if self.bound[0] <= first <= segment:
                end = size if first == segment else segment_path(self._directory, first).stat().st_size
                begin = self.bound[1] if first == self.bound[0] else 0
                for at in range(begin, end, PIECE_BYTES):
                    extent = write(first, at, self._read_segment(first, at, min(at + PIECE_BYTES, end)))
                    with self.lock:
                        self.extents.append(extent)
                        noted()
                    self.bound = first, extent.end

    def write_object(self, segment: int, begin: int, data: bytes) -> Extent:
        """Write bytes of a segment as an object of their own. Raises: StoreFailed."""
        return Extent(segment, begin, begin + len(data), self._put(data), zlib.crc32(data))

    def merge(self) -> None:
        """Put one object in the place of many. Raises: StoreFailed."""
        with self.lock:
            runs = find_runs(self.extents)
        for run in runs:
            self._replace(run)

    def drop_before(self, segment: int) -> None:
        """Drop the extents before a segment, with which the log begins."""
        with self.lock:
            self.extents = [each for each in self.extents if each.segment >= segment]

    def put_missing(self, present: Collection[str], known: Collection[Extent]) -> None:
        """Write those of the known extents again whose objects are not present. Raises: StoreFailed."""
        for extent in known:
            if extent.name not in present:
                self._replace([extent])

    def _replace(self, run: list[Extent]) -> None:
        segment, begin = run[0].segment, run[0].begin
        try:
            whole = self.write_object(segment, begin, self._read_sound(run))
        except FileNotFoundError:  # retention has removed the segment
            return
        with self.lock:
            at = self.extents.index(run[0])
            assert self.extents[at : at + len(run)] == run
            self.extents[at : at + len(run)] = [whole]

    def _read_sound(self, run: list[Extent]) -> bytes:
        """Return the bytes of a run, from the store where the segment here is damaged: its copy must not be replaced
        by the damage.
        """
        segment, begin, end = run[0].segment, run[0].begin, run[-1].end
        with closing(SegmentFile(self._directory, segment)) as file:
            is_sound = read_sound_frames(file).size >= end
        return self._read_segment(segment, begin, end) if is_sound else b"".join(extent.read(self._store) for extent in run)

    def _sound_size(self, segment: int, *, whole: bool) -> int:
        """Return how many bytes of a segment are here, and hold."""
        path = segment_path(self._directory, segment)
        if whole or not path.exists():
            return path.stat().st_size if path.exists() else 0
        with closing(SegmentFile(self._directory, segment)) as file:
            return read_sound_frames(file).size

    def _equal_until(self, extent: Extent, size: int) -> int:
        """Return up to where an extent has the bytes that are here, of which `size` hold."""
        end = min(extent.end, size)
        if end <= extent.begin:
            return extent.begin
        here, there = self._read_segment(extent.segment, extent.begin, end), extent.read(self._store)
        count = min(len(here), len(there))
        same = np.frombuffer(here, np.uint8, count) == np.frombuffer(there, np.uint8, count)
        return extent.begin + (count if same.all() else int(same.argmin()))

    def _read_segment(self, segment: int, begin: int, end: int) -> bytes:
        """Return bytes of a segment. Raises: Corrupt where a loss of power has cut it, which the next writer mends."""
        path = segment_path(self._directory, segment)
        with path.open("rb") as file:
            data = os.pread(file.fileno(), end - begin, begin)
        if len(data) < end - begin:
            raise Corrupt(path, begin + len(data), f"the file ends here, and not at byte {end}")
        return data


def find_runs(extents: list[Extent]) -> list[list[Extent]]:
    """Return stretches that become one object: full segments, and in the last one at least MANY objects of one class
    of size.
    """
    runs: list[list[Extent]] = []
    for segment, group in groupby(extents, attrgetter("segment")):
        found = list(group)
        if segment < extents[-1].segment:
            runs += [found] if len(found) > 1 else []
            continue
        for size, alike in groupby(found, lambda extent: sum(extent.end - extent.begin >= size for size in SIZES)):
            run = list(alike)
            if size < len(SIZES) and len(run) >= MANY:
                runs.append(run)
    return runs
