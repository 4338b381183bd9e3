"""A framed, checksummed, append-only log in segment files: what the input log and the solution log are made of (docs/decisions/0001).

A frame is a header and a payload, padded to 8 bytes; it covers the positions [first, after), and the next frame begins at `after`. A segment
is named by its first position. `head` says how far readers may look: one small record, rewritten in place after the frames it covers.
"""

import os
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import Corrupt, Gone, OutOfOrder
from pipeline.lock import DirectoryLock

HEADER = struct.Struct("<4sIqqIIII")  # magic, payload bytes, first, after, rows, flags, crc of the payload, crc of the header so far
MAGIC = b"\xffEPF"  # 0xff occurs in no UTF-8 text, so no payload's text looks like a header
HEAD = struct.Struct("<4sqqqI")  # magic, segment, bytes of it, position after them, crc
HEAD_MAGIC = b"\xffEPH"
SEGMENT_BYTES = 64 << 20
CHUNK = 256 << 10
SUFFIX = ".frames"


@dataclass(frozen=True, slots=True)
class Frame:
    """A header as read: where it stands and what it says of its payload. `rows` and `flags` are the writer's to use."""

    segment: int
    byte: int
    length: int
    first: int
    after: int
    rows: int
    flags: int
    crc: int

    @property
    def end(self) -> int:
        """The byte after the frame."""
        return self.byte + HEADER.size + self.length + -self.length % 8


@dataclass(frozen=True, slots=True)
class Head:
    """What is published: `size` bytes of `segment` and all earlier ones, up to `position`."""

    segment: int = 0
    size: int = 0
    position: int = 0


def segment_path(directory: Path, first: int) -> Path:
    return directory / f"{first:020d}{SUFFIX}"


def segments(directory: Path) -> list[int]:
    return sorted(int(name[: -len(SUFFIX)]) for name in os.listdir(directory) if name.endswith(SUFFIX))


def oldest(directory: Path) -> int:
    """The first position that is kept."""
    return min(segments(directory), default=0) if directory.exists() else 0


def pack_header(payload: Sequence[bytes | memoryview], length: int, first: int, after: int, rows: int, flags: int) -> bytes:
    """`payload`: in parts, `length` bytes in all."""
    crc = 0
    for part in payload:
        crc = zlib.crc32(part, crc)
    start = HEADER.pack(MAGIC, length, first, after, rows, flags, crc, 0)[:-4]
    return start + zlib.crc32(start).to_bytes(4, "little")


def unpack_header(data: bytes | memoryview, segment: int, byte: int) -> Frame | None:
    """None for what is no header."""
    magic, length, first, after, rows, flags, crc, own = HEADER.unpack(data)
    if magic != MAGIC or own != zlib.crc32(data[:-4]):
        return None
    return Frame(segment, byte, length, first, after, rows, flags, crc)


def sync_directory(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class SegmentFile:
    """Reads one segment's bytes through a window, never beyond the bytes it is told are published."""

    def __init__(self, directory: Path, first: int) -> None:
        self.path, self.first = segment_path(directory, first), first
        self._fd = os.open(self.path, os.O_RDONLY)
        self._window, self._at = b"", 0

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def bytes_at(self, byte: int, count: int, limit: int) -> memoryview:
        """`count` bytes, fewer where the file or `limit` ends."""
        if not self._at <= byte <= byte + count <= self._at + len(self._window):
            self._window, self._at = os.pread(self._fd, min(max(count, CHUNK), max(limit - byte, 0)), byte), byte
        start = byte - self._at
        return memoryview(self._window)[start : start + count]

    def frame_at(self, byte: int, limit: int) -> Frame | None:
        """The frame whose header stands at `byte`; None if it is none or does not fit below `limit`."""
        data = self.bytes_at(byte, HEADER.size, limit)
        frame = unpack_header(data, self.first, byte) if len(data) == HEADER.size else None
        return frame if frame is not None and frame.end <= limit else None

    def payload(self, frame: Frame, limit: int) -> memoryview | None:
        """None where the checksum does not hold."""
        data = self.bytes_at(frame.byte + HEADER.size, frame.length, limit)
        return data if len(data) == frame.length and zlib.crc32(data) == frame.crc else None

    def close(self) -> None:
        os.close(self._fd)


class FrameReader:
    """Follows a log from any process; sees what its writer published and nothing else. One thread at a time."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._head_fd = -1
        self._file: SegmentFile | None = None
        self._next = (0, 0, 0)  # position, segment, byte: where the last walk stopped, so that the next one need not search

    def head(self) -> Head:
        if self._head_fd < 0:
            try:
                self._head_fd = os.open(self.directory / "head", os.O_RDONLY)
            except FileNotFoundError:
                return Head()
        for _ in range(1000):  # a read may meet the writer's write half-way
            record = os.pread(self._head_fd, HEAD.size, 0)
            if not record:
                return Head()
            if len(record) == HEAD.size and HEAD.unpack(record)[4] == zlib.crc32(record[:-4]):
                _, segment, size, position, _ = HEAD.unpack(record)
                return Head(segment, size, position)
        raise Corrupt(self.directory / "head", 0, "its checksum does not hold")

    def frames(self, position: int, head: Head | None = None) -> Iterator[Frame]:
        """The published frames that hold positions at or after `position`, in order. Payloads are not read."""
        head = head or self.head()
        if position >= head.position:
            return
        for segment, byte, limit in self._walk(position, head):
            file = self._open(segment)
            while byte < limit:
                frame = file.frame_at(byte, limit)
                if frame is None:
                    raise Corrupt(file.path, byte, "no frame begins here")
                byte = frame.end
                if frame.after > position:
                    self._next = (frame.after, segment, byte)
                    yield frame
                    file = self._open(segment)  # whoever took the frame may have read elsewhere

    def frame(self, segment: int, byte: int) -> Frame:
        """The frame that is known to stand there."""
        file = self._open(segment)
        found = unpack_header(file.bytes_at(byte, HEADER.size, byte + HEADER.size), segment, byte)
        if found is None:
            raise Corrupt(file.path, byte, "no frame begins here")
        return found

    def payload(self, frame: Frame) -> memoryview:
        file = self._open(frame.segment)
        data = file.payload(frame, frame.end)
        if data is None:
            raise Corrupt(file.path, frame.byte, "the checksum of this frame's payload does not hold")
        return data

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._head_fd >= 0:
            os.close(self._head_fd)
            self._head_fd = -1

    def _walk(self, position: int, head: Head) -> Iterator[tuple[int, int, int]]:
        """Segments to look through: first position, byte to begin at, byte to stop at."""
        at, segment, byte = self._next
        if at == position and segment == head.segment:
            yield segment, byte, head.size  # the usual case of a follower costs no directory listing
            return
        known = [first for first in segments(self.directory) if first <= head.segment]
        if not known or known[-1] != head.segment:
            raise Corrupt(segment_path(self.directory, head.segment), 0, "the file is missing")
        if position < known[0]:
            raise Gone(f"position {position} of {self.directory} is no longer kept: the oldest is {known[0]}")
        begin = segment if at == position and segment in known else max((first for first in known if first <= position), default=known[0])
        for first in known[known.index(begin) :]:
            limit = head.size if first == head.segment else self._open(first).size()
            yield first, byte if at == position and first == segment else 0, limit

    def _open(self, segment: int) -> SegmentFile:
        if self._file is None or self._file.first != segment:
            if self._file is not None:
                self._file.close()
                self._file = None
            try:
                self._file = SegmentFile(self.directory, segment)
            except FileNotFoundError:
                raise Gone(f"positions from {segment} of {self.directory} are no longer kept") from None
        return self._file


class FrameWriter:
    """The one writer of a log directory. Not thread-safe.

    `durable`: frames are on disk before they are published, so a published byte that is gone is damage. Otherwise (a log that can be computed
    again) whatever of the last segment does not hold is cut off. `keep` is told, before they are published, up to which byte of which segment they are on disk.
    Raises: Locked, Corrupt.
    """

    def __init__(self, directory: Path, *, durable: bool, segment_bytes: int = SEGMENT_BYTES, keep: Callable[[int, int], None] | None = None) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory, self._durable, self._segment_bytes, self._keep = directory, durable, segment_bytes, keep
        self._lock = DirectoryLock(directory / "lock")
        self._fd = self._head_fd = -1
        try:
            self._head_fd = os.open(directory / "head", os.O_RDWR | os.O_CREAT, 0o644)
            self._segment, self._size, self.position = self._recover()
            self._fd = os.open(segment_path(directory, self._segment), os.O_RDWR | os.O_CREAT, 0o644)
            os.truncate(self._fd, self._size)
            sync_directory(directory)
            if durable:
                self.sync()  # the last writer may have died between a frame and its sync
            self.publish()
        except BaseException:
            self.close()
            raise

    def append(self, payload: Sequence[bytes | memoryview], first: int, after: int, rows: int = 0, flags: int = 0) -> bool:
        """Write a frame, whose payload is in parts; it is neither durable nor published yet. True if it began a new segment. Raises: OutOfOrder, OSError."""
        if first != self.position or after < first:
            raise OutOfOrder(f"a frame of [{first}, {after}) cannot follow position {self.position} of {self.directory}")
        rotated = self._size >= self._segment_bytes
        if rotated:
            self._rotate()
        length = sum(map(len, payload))
        parts = [pack_header(payload, length, first, after, rows, flags), *payload, bytes(-length % 8)]
        size = HEADER.size + length + len(parts[-1])
        written = os.pwritev(self._fd, parts, self._size)
        if written < size:  # a signal or a full disk: say it all again, plainly, and let the disk complain
            os.pwrite(self._fd, b"".join(parts)[written:], self._size + written)
        self._size += size
        self.position = after
        return rotated

    def sync(self) -> None:
        os.fdatasync(self._fd)
        if self._keep is not None:
            self._keep(self._segment, self._size)

    def publish(self) -> None:
        """Let readers see what was appended."""
        record = HEAD.pack(HEAD_MAGIC, self._segment, self._size, self.position, 0)[:-4]
        os.pwrite(self._head_fd, record + zlib.crc32(record).to_bytes(4, "little"), 0)

    def close(self) -> None:
        for fd in (self._fd, self._head_fd):
            if fd >= 0:
                os.close(fd)
        self._fd = self._head_fd = -1
        self._lock.close()

    def _rotate(self) -> None:
        os.fsync(self._fd)  # recovery looks at the last segment only, so all before it must hold
        if not self._durable:  # solutions, which few read again, and the next ones take its pages; the input log is read by engines that are behind
            os.posix_fadvise(self._fd, 0, 0, os.POSIX_FADV_DONTNEED)
        fd = os.open(segment_path(self.directory, self.position), os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        os.close(self._fd)  # not before the next one is open: whatever fails, `close` finds what is its own
        self._fd, self._segment, self._size = fd, self.position, 0
        sync_directory(self.directory)

    def _recover(self) -> tuple[int, int, int]:
        """The last segment, its sound bytes, and the position after them."""
        known = segments(self.directory)
        if not known:
            return 0, 0, 0
        published = self._published()
        if published.segment not in known:
            raise Corrupt(segment_path(self.directory, published.segment), 0, "the file is missing")
        file = SegmentFile(self.directory, known[-1])
        try:
            size, position = self._sound(file, published)
        finally:
            file.close()
        return known[-1], size, position

    def _published(self) -> Head:
        """The head as the last writer left it; where that cannot be read, nothing counts as published."""
        record = os.pread(self._head_fd, HEAD.size, 0)
        if len(record) < HEAD.size or HEAD.unpack(record)[4] != zlib.crc32(record[:-4]):
            return Head(segments(self.directory)[0])
        _, segment, size, position, _ = HEAD.unpack(record)
        return Head(segment, size, position)

    def _sound(self, file: SegmentFile, published: Head) -> tuple[int, int]:
        """Bytes and position up to which the segment's frames hold. Raises: Corrupt where more than a torn tail is wrong."""
        byte, position, limit = *sound(file), file.size()
        if self._durable:
            if published.segment > file.first or (published.segment == file.first and published.size > byte):
                raise Corrupt(file.path, byte, "a frame that was written whole does not hold")
            if _frame_follows(file, byte, limit):
                raise Corrupt(file.path, byte, "sound frames follow one that does not hold")
        return byte, position


def sound(file: SegmentFile) -> tuple[int, int]:
    """Bytes and position up to which the segment's frames hold."""
    byte, position, limit = 0, file.first, file.size()
    while byte < limit:
        frame = file.frame_at(byte, limit)
        if frame is None or frame.first != position or file.payload(frame, limit) is None:
            break
        byte, position = frame.end, frame.after
    return byte, position


def _frame_follows(file: SegmentFile, byte: int, limit: int) -> bool:
    """Whether a whole frame stands somewhere after the fault at `byte`: then that is no torn tail, for the last write alone can tear."""
    rest = bytes(file.bytes_at(byte, limit - byte, limit))
    at = rest.find(MAGIC, 1)
    while at >= 0:
        frame = file.frame_at(byte + at, limit)
        if frame is not None and file.payload(frame, limit) is not None:
            return True
        at = rest.find(MAGIC, at + 1)
    return False
