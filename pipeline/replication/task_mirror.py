"""This module copies the log of a store to files of the machine that a task runs on. It puts the snapshots that the task makes into the store too.

It reads what a server has acknowledged, and nothing beyond: other objects there may not count.
"""

from collections.abc import Iterator
from pathlib import Path

from pipeline.errors import StoreFailed
from pipeline.log.segments import HEADER, LINK, Frame, FrameWriter, segment_path, unpack_header
from pipeline.object_store.backends import Place
from pipeline.partition_count import name_of
from pipeline.replication.fencing import Fence
from pipeline.replication.log_replica import bytes_of
from pipeline.replication.object_names import cover, extent_of
from pipeline.replication.restore import SNAPSHOTS, snapshots, tree, write

_LOG = "log"
_TRIES = 10
"""Reading is tried this often: a server may put one object in the place of many between looking and reading."""


class Replica:
    """Mirrors the log for one process. One thread at a time."""

    def __init__(self, place: Place, directory: Path) -> None:
        self._place, self.directory = place, directory
        self._fence = Fence(place)
        self._log: FrameWriter | None = None
        self._segments: list[int] = []
        self._segment, self._byte, self._rest = 0, 0, b""  # in the store: the next byte to read, and the bytes of its frame before that
        self._snapshots = set[str]()  # these are both here and in the store

    def follow(self, position: int) -> None:
        """Copy the log up to a position that was acknowledged. Raises: StoreFailed, OSError."""
        for tries in range(_TRIES):
            if self._log is not None and self._log.position >= position:
                return
            if tries or self._log is None:
                self._look()
            self._read(position)
        raise StoreFailed(f"{self._place} does not have the log up to position {position}; is it the server's --store?")

    def close(self) -> None:
        if self._log is not None:
            self._log.close()

    # ------------------------------------------------------------ snapshots
    def fetch(self, buckets: int) -> None:
        """Fetch the snapshots of that many buckets, and remove those of another number. Raises: StoreFailed, OSError."""
        names = {name_of(bucket, buckets) for bucket in range(buckets)}
        for name in tree(self._place, SNAPSHOTS):
            if name.partition("-")[0] not in names:
                self._place.remove(f"{SNAPSHOTS}/{name}")
            elif (data := self._place.read(f"{SNAPSHOTS}/{name}")) is not None:
                write(self.directory / SNAPSHOTS / name, data)
                self._snapshots.add(name)

    def bring(self) -> None:
        """Bring the snapshots that are here to the store. Raises: StoreFailed, OSError."""
        for name in snapshots(self.directory):
            if name not in self._snapshots:
                self._place.put(f"{SNAPSHOTS}/{name}", (self.directory / SNAPSHOTS / name).read_bytes())
                self._snapshots.add(name)

    def drop(self) -> None:
        """Remove from the store the snapshots that have gone here. Raises: StoreFailed."""
        for name in self._snapshots - {*snapshots(self.directory)}:
            self._place.remove(f"{SNAPSHOTS}/{name}")
            self._snapshots.discard(name)

    # ------------------------------------------------------------ the log
    def _look(self) -> None:
        """Look which segments there are, and which bytes of earlier servers may not count.

        The state as of now will do, for acknowledged entries have come before.
        """
        self._fence.look()
        found = sorted(int(folder[:-1]) for folder in self._place.names(_LOG) if folder[:-1].isdecimal())
        self._segments = [segment for segment in found if segment >= self._fence.begins.get(_LOG, 0)]
        if self._log is None and self._segments:
            self._segment = self._segments[0]
            path = segment_path(self.directory / _LOG, self._segment)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()  # the log begins here
            self._log = FrameWriter(path.parent, durable=False)

    def _read(self, position: int) -> None:
        """Read as far as the known segments go, at most to a position."""
        if self._log is None:
            return
        for segment in [each for each in self._segments if each >= self._segment]:
            if self._log.position >= position or not self._read_segment(self._log, segment, position):
                break
        self._log.publish()

    def _read_segment(self, log: FrameWriter, segment: int, position: int) -> bool:
        """Read one segment. Return False where reading cannot go on with it now."""
        if segment != self._segment:
            if segment != log.position or self._rest:
                return False
            self._segment, self._byte = segment, 0
        names = self._place.names(f"{_LOG}/{segment:020d}")
        extents = [each for name in names if (each := extent_of(segment, name)) is not None]
        bounds = [(epoch, each[_LOG]) for epoch, each in self._fence.bounds if _LOG in each]
        try:
            parts = cover(extents, bounds)
        except StoreFailed:  # so it may seem where an earlier server wrote beyond what was known to count
            return False
        for part in parts:
            if part.end <= self._byte or log.position >= position:
                continue
            data = bytes_of(self._place, _LOG, [part])
            if data is None:
                return False
            self._take(log, data[max(self._byte - part.begin, 0) :], position)
        return True

    def _take(self, log: FrameWriter, data: bytes, position: int) -> None:
        """Take the frames that end by `position`, and the frame in which it lies."""
        whole = memoryview(self._rest + data)
        begin = self._byte - len(self._rest)
        self._byte += len(data)
        for frame, payload in frames_in(whole, self._segment, begin):
            if not frame.flags & LINK:  # the copy has segments of its own
                log.append([payload], frame.first, frame.after, frame.rows, frame.flags)
            begin = frame.end
            if log.position >= position:
                self._byte, self._rest = begin, b""
                return
        self._rest = bytes(whole[len(whole) - (self._byte - begin) :])


def frames_in(data: memoryview, segment: int, byte: int) -> Iterator[tuple[Frame, memoryview]]:
    """Yield the whole frames of a segment's bytes from `byte` on, with their payloads. Raises: StoreFailed."""
    at = 0
    while len(data) - at >= HEADER.size:
        frame = unpack_header(data[at : at + HEADER.size], segment, byte + at)
        if frame is None:
            raise StoreFailed(f"no frame begins at byte {byte + at} of the segment {segment} in the store")
        if frame.end - byte > len(data):
            return
        yield frame, data[at + HEADER.size : at + HEADER.size + frame.length]
        at = frame.end - byte
