"""This module copies the log of a store to files of the machine that a task runs on. It puts the snapshots that the
task makes into the store too.

It reads what a server has acknowledged, and nothing beyond: other objects there may not count.
"""

from collections.abc import Iterator
from pathlib import Path

from epsparql.durable_files import replace_file
from pipeline.errors import StoreFailed
from pipeline.log.segments import HEADER, LINK, Frame, FrameWriter, segment_path, unpack_header
from pipeline.object_store.backends import ObjectStore
from pipeline.partition_count import name_of
from pipeline.replication.manifest import LOG, Extent, ManifestChain, read_piece
from pipeline.replication.restore import SNAPSHOTS, list_snapshots, list_tree

_TRIES = 10
"""Reading is tried this often: a server may put one object in the place of many between looking and reading."""


class LogMirror:
    """Mirrors the log for one process. One thread at a time."""

    def __init__(self, store: ObjectStore, directory: Path) -> None:
        self._store, self.directory = store, directory
        self._chain = ManifestChain(store)
        self._log: FrameWriter | None = None
        self._segment, self._byte, self._rest = 0, 0, b""  # where the next frame begins in the store, and what is known of it
        self._tail = 0  # the piece of the tail that is read next
        self._snapshots = set[str]()  # these are both here and in the store

    def follow(self, position: int) -> None:
        """Copy the log up to a position that was acknowledged. Raises: StoreFailed, OSError."""
        for tries in range(_TRIES):
            if self._has(position):
                return
            if tries or self._log is None:
                self._read_manifest(position)
            self._read_tail(position)
        raise StoreFailed(f"{self._store} does not have the log up to position {position}; is it the server's --store?")

    def close(self) -> None:
        if self._log is not None:
            self._log.close()

    # ------------------------------------------------------------ snapshots
    def fetch_snapshots(self, partitions: int) -> None:
        """Fetch the snapshots of that many partitions, and remove those of another number.

        Raises: StoreFailed, OSError.
        """
        names = {name_of(partition, partitions) for partition in range(partitions)}
        for name in list_tree(self._store, SNAPSHOTS):
            if name.partition("-")[0] not in names:
                self._store.remove(f"{SNAPSHOTS}/{name}")
            elif (data := self._store.read(f"{SNAPSHOTS}/{name}")) is not None:
                replace_file(self.directory / SNAPSHOTS / name, data)
                self._snapshots.add(name)

    def put_snapshots(self) -> None:
        """Bring the snapshots that are here to the store. Raises: StoreFailed, OSError."""
        for name in list_snapshots(self.directory):
            if name not in self._snapshots:
                self._store.put(f"{SNAPSHOTS}/{name}", (self.directory / SNAPSHOTS / name).read_bytes())
                self._snapshots.add(name)

    def remove_snapshots(self) -> None:
        """Remove from the store the snapshots that have gone here. Raises: StoreFailed."""
        for name in self._snapshots - {*list_snapshots(self.directory)}:
            self._store.remove(f"{SNAPSHOTS}/{name}")
            self._snapshots.discard(name)

    # ------------------------------------------------------------ the log
    def _read_manifest(self, position: int) -> None:
        """Read what the newest manifest names: the tail's pieces before it may have been removed."""
        manifest = self._chain.look()
        extents = manifest.logs.get(LOG, []) if manifest is not None else []
        for extent in extents:
            try:
                self._read_extent(extent, position)
            except StoreFailed:
                if self._store.read(extent.name) is not None:
                    raise
                return  # the object has been replaced: a later manifest names another
        if manifest is not None and not self._has(position):
            self._tail = manifest.tail

    def _read_tail(self, position: int) -> None:
        while not self._has(position):
            piece = read_piece(self._store, self._tail)
            if piece is None or (piece.extent is not None and not self._read_extent(piece.extent, position, piece.data)):
                return
            if not self._has(position):
                self._tail += 1

    def _has(self, position: int) -> bool:
        return self._log is not None and self._log.position >= position

    def _read_extent(self, extent: Extent, position: int, data: bytes | None = None) -> bool:
        """Take the frames of an extent that end by `position`, and the frame in which it lies.

        Return False where bytes before it are missing.
        """
        if self._log is None:
            self._segment = extent.segment
            path = segment_path(self.directory / LOG, self._segment)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()  # the log begins here
            self._log = FrameWriter(path.parent, durable=False)
        log = self._log
        if log.position >= position or (extent.segment, extent.end) <= (self._segment, self._byte):
            return True
        if extent.segment > self._segment and extent.segment == log.position and not self._rest:
            self._segment, self._byte = extent.segment, 0
        if extent.segment != self._segment or extent.begin > self._byte + len(self._rest):
            return False
        data = extent.read(self._store) if data is None else data
        known = self._rest[: max(extent.begin - self._byte, 0)]  # an extent replaces an earlier server's half frame
        whole = memoryview(known + data[max(self._byte - extent.begin, 0) :])
        begin = self._byte
        for frame, payload in read_frames(whole, self._segment, begin):
            if not frame.flags & LINK:  # the copy has segments of its own
                log.append([payload], frame.first, frame.after, frame.rows, frame.flags)
            self._byte = frame.end
            if log.position >= position:
                break
        self._rest = b"" if log.position >= position else bytes(whole[self._byte - begin :])
        log.publish()
        return True


def read_frames(data: memoryview, segment: int, byte: int) -> Iterator[tuple[Frame, memoryview]]:
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
