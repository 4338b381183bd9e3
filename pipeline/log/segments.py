"""This module keeps a framed, checksummed, append-only log in segment files; the input log and the solution log are
two (docs/decisions/0001).

A frame is a header and a payload, padded to 8 bytes; it covers the positions [first, after), and the next frame
begins at `after`. A segment is named by its first position. `head` says how far readers may look: one small record,
rewritten in place after the frames it covers.

    [frame frame frame ...] <-- [link frame frame ...] <-- [link frame ...]     each segment begins by a link to the one before it

The first segment has no link, and those of version 0.1.0 have none; after the first segment that has one, each has one.
"""

import os
import re
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import field
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path

import msgspec

from epsparql.deferred_methods import dataclass
from epsparql.durable_files import replace_file, sync_path
from pipeline.errors import Corrupt, Gone, OutOfOrder
from pipeline.log.lock import DirectoryLock

HEADER = struct.Struct("<4sIqqIIII")  # magic, payload bytes, first, after, rows, flags, crc of the payload, crc of the header so far
MAGIC = b"\xffEPF"  # 0xff occurs in no UTF-8 text, so no payload's text looks like a header
HEAD = struct.Struct("<4sqqqI")  # magic, segment, bytes of it, position after them, crc
HEAD_MAGIC = b"\xffEPH"
SEGMENT_BYTES = 16 << 20
"""A segment that has so many bytes is full.

Retention removes whole segments, so they are small beside what people keep.
"""
CHUNK = 256 << 10
WINDOW = 32 << 10
"""So many bytes are read at least: many small frames, or the header of a large one and what a partition reads to find
its own rows.
"""
SUFFIX = ".frames"
LINK = 1 << 31
"""This frame flag says that the frame covers no positions, and that its payload is a `SegmentLink`."""
_NAME = re.compile(r"(\d{20})\.frames")
_OPENING_BYTES = 512
"""This many bytes of a segment are more than a link takes."""
_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class Frame:
    """Represents a header as read: where it stands and what it says of its payload.

    `rows` and `flags` are the writer's to use.
    """

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
        """Return the byte after the frame."""
        return self.byte + HEADER.size + self.length + -self.length % 8


@dataclass(frozen=True, slots=True)
class Head:
    """Says how much is published: `size` bytes of `segment` and all earlier ones, up to `position`."""

    segment: int = 0
    size: int = 0
    position: int = 0


def segment_path(directory: Path, first: int) -> Path:
    return directory / f"{first:020d}{SUFFIX}"


def segments(directory: Path) -> list[int]:
    """Return the segments by their first positions. A file with another kind of name is not the log's."""
    return sorted(int(found[1]) for name in os.listdir(directory) if (found := _NAME.fullmatch(name)) is not None)


def oldest(directory: Path) -> int:
    """Return the first position that is kept."""
    return min(segments(directory), default=0) if directory.exists() else 0


def crc_of(payload: Sequence[bytes | memoryview]) -> int:
    """Return the checksum of a payload in parts."""
    crc = 0
    for part in payload:
        crc = zlib.crc32(part, crc)
    return crc


def pack_header(crc: int, length: int, first: int, after: int, rows: int, flags: int) -> bytes:
    """Return the header of a frame, whose payload has `length` bytes and this checksum."""
    start = HEADER.pack(MAGIC, length, first, after, rows, flags, crc, 0)[:-4]
    return start + zlib.crc32(start).to_bytes(4, "little")


def unpack_header(data: bytes | memoryview, segment: int, byte: int) -> Frame | None:
    """Return the frame that a header describes, or None where the bytes are no header."""
    magic, length, first, after, rows, flags, crc, own = HEADER.unpack(data)
    if magic != MAGIC or own != zlib.crc32(data[:-4]):
        return None
    return Frame(segment, byte, length, first, after, rows, flags, crc)


class SegmentLink(msgspec.Struct, frozen=True):
    """Names the segment before: its first position, bytes, the digest of its first header, that of all its headers,
    and its last payload's checksum.

    A header holds its payload's checksum, so the digest of the headers stands for the whole segment.
    """

    segment: int
    size: int
    opening: str
    digest: str
    crc: int


@dataclass(slots=True)
class Tail:
    """Summarizes a segment's sound frames: their bytes, the position after them, the last payload's checksum, and the
    digests of a `SegmentLink`.
    """

    segment: int
    position: int
    size: int = 0
    crc: int = 0
    opening: str = ""
    _digest: "blake2b" = field(default_factory=lambda: blake2b(digest_size=_DIGEST_BYTES))

    def add(self, frame: Frame, header: bytes | memoryview) -> None:
        self.opening = self.opening or digest_of(header)
        self._digest.update(header)
        self.size, self.position = frame.end, frame.after
        if not frame.flags & LINK:
            self.crc = frame.crc

    def link(self) -> SegmentLink:
        """Return the link by which the next segment names this one."""
        return SegmentLink(self.segment, self.size, self.opening, self._digest.hexdigest(), self.crc)


@dataclass(frozen=True, slots=True)
class Opening:
    """Describes the begin of a segment: the digest of its first header, the position there, and the segment's link,
    if it has one.

    The digest is empty without a sound header.
    """

    size: int
    digest: str = ""
    position: int = 0
    link: SegmentLink | None = None


def mark_of(crc: int) -> int:
    """Return a mark that tells a frame from those of other logs, in the bits of the flags that are not `LINK`."""
    return crc & (LINK - 1)


def digest_of(header: bytes | memoryview) -> str:
    return blake2b(header, digest_size=_DIGEST_BYTES).hexdigest()


def read_opening(directory: Path, first: int) -> Opening:
    """Read only the begin of a segment. Raises: OSError."""
    with segment_path(directory, first).open("rb", buffering=0) as file:
        size, data = os.fstat(file.fileno()).st_size, os.pread(file.fileno(), _OPENING_BYTES, 0)
    header = data[: HEADER.size]
    frame = unpack_header(header, first, 0) if len(header) == HEADER.size else None
    if frame is None or frame.end > size:
        return Opening(size)
    return Opening(size, digest_of(header), frame.first, _link_in(frame, data[HEADER.size : HEADER.size + frame.length]))


def _link_in(frame: Frame, payload: bytes | memoryview) -> SegmentLink | None:
    if not frame.flags & LINK or zlib.crc32(payload) != frame.crc:
        return None
    with suppress(msgspec.MsgspecError):
        return msgspec.json.decode(payload, type=SegmentLink)
    return None


def check_chain(directory: Path) -> None:
    """Compare each segment's begin and size with the next one's link: a few hundred bytes of each are read, whatever
    their size.

    Frames are checked where they are read. Raises: Corrupt.
    """
    known = segments(directory)
    openings = {first: read_opening(directory, first) for first in known}
    for first in known[:-1]:
        if openings[first].position != first or not openings[first].digest:
            raise Corrupt(segment_path(directory, first), 0, f"it does not begin by a frame of position {first}")
    linked = False
    for before, first in pairwise(known):
        opening = openings[first]
        if opening.link is None:
            if linked and (first != known[-1] or opening.digest):
                raise Corrupt(segment_path(directory, first), 0, "it does not say which segment it follows")
            continue
        linked = True
        _check_link(directory, first, opening.link, before, openings[before])
    lost = openings[known[0]].link if known and read_begin(directory) < known[0] else None
    if lost is not None:
        raise Corrupt(segment_path(directory, lost.segment), 0, f"the file is missing, which {known[0]} follows")


def _check_link(directory: Path, first: int, link: SegmentLink, before: int, opening: Opening) -> None:
    if link.segment > before:
        raise Corrupt(segment_path(directory, link.segment), 0, f"the file is missing, which {first} follows")
    if link.segment != before:
        raise Corrupt(segment_path(directory, before), 0, f"the segment {first} follows {link.segment}, not this one")
    if link.opening != opening.digest:
        raise Corrupt(segment_path(directory, before), 0, f"it is not the file which the segment {first} follows")
    if link.size != opening.size:
        raise Corrupt(segment_path(directory, before), min(link.size, opening.size), f"it has {opening.size} bytes, and had {link.size}")


def read_begin(directory: Path) -> int:
    """Return the position before which frames were removed on purpose; 0 where nothing was."""
    with suppress(FileNotFoundError, ValueError):
        data = unseal((directory / _BEGIN).read_bytes())
        return 0 if data is None else int(data)
    return 0


def write_begin(directory: Path, position: int) -> None:
    """Note durably that frames before a position are removed on purpose, before their removal."""
    replace_file(directory / _BEGIN, seal(b"%d" % position))


_BEGIN = "begin"
_TRAILER = 9


def seal(data: bytes) -> bytes:
    """Append a line with the checksum."""
    return data + b"\n%08x" % zlib.crc32(data)


def unseal(data: bytes) -> bytes | None:
    """Return the sealed data; None where the checksum does not hold."""
    body, trailer = data[:-_TRAILER], data[-_TRAILER:]
    return body if trailer == b"\n%08x" % zlib.crc32(body) else None


class SegmentFile:
    """Reads one segment's bytes through a window, never beyond the bytes it is told are published."""

    def __init__(self, directory: Path, first: int) -> None:
        self.path, self.first = segment_path(directory, first), first
        self._fd = os.open(self.path, os.O_RDONLY)
        self._window, self._at = b"", 0

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def bytes_at(self, byte: int, count: int, limit: int) -> memoryview:
        """Return `count` bytes, fewer where the file or `limit` ends."""
        if not self._at <= byte <= byte + count <= self._at + len(self._window):
            self._window, self._at = os.pread(self._fd, min(max(count, WINDOW), max(limit - byte, 0)), byte), byte
        start = byte - self._at
        return memoryview(self._window)[start : start + count]

    def frame_at(self, byte: int, limit: int) -> Frame | None:
        """Return the frame whose header stands at `byte`; None if there is no header or the frame does not fit below
        `limit`.
        """
        data = self.bytes_at(byte, HEADER.size, limit)
        frame = unpack_header(data, self.first, byte) if len(data) == HEADER.size else None
        return frame if frame is not None and frame.end <= limit else None

    def payload(self, frame: Frame, limit: int) -> memoryview | None:
        """Return a frame's payload, or None where the checksum does not hold."""
        data = self.bytes_at(frame.byte + HEADER.size, frame.length, limit)
        return data if len(data) == frame.length and zlib.crc32(data) == frame.crc else None

    def close(self) -> None:
        os.close(self._fd)


def _unpack_head(record: bytes) -> Head | None:
    """Return the head of a record, or None where its checksum does not hold."""
    if len(record) < HEAD.size or HEAD.unpack(record)[4] != zlib.crc32(record[:-4]):
        return None
    _, segment, size, position, _ = HEAD.unpack(record)
    return Head(segment, size, position)


class FrameReader:
    """Follows a log from any process; sees what its writer published and nothing else. One thread at a time."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.head_file = directory, directory / "head"
        self._head_fd = -1
        self._file: SegmentFile | None = None
        self._next = (0, 0, 0)  # position, segment, byte: where the last walk stopped, so that the next one need not search

    def head(self) -> Head:
        if self._head_fd < 0:
            try:
                self._head_fd = os.open(self.head_file, os.O_RDONLY)
            except FileNotFoundError:
                return Head()
        for _ in range(1000):  # a read may meet the writer's write half-way
            record = os.pread(self._head_fd, HEAD.size, 0)
            if not record:
                return Head()
            if (head := _unpack_head(record)) is not None:
                return head
        raise Corrupt(self.head_file, 0, "its checksum does not hold")

    def frames(self, position: int, head: Head | None = None) -> Iterator[Frame]:
        """Yield the published frames that hold positions at or after `position`, in order. Payloads are not read."""
        head = head or self.head()
        if position >= head.position:
            return
        expected = None
        for segment, byte, limit in self._walk(position, head):
            file = self._open(segment)
            expected = expected if expected is not None else segment if byte == 0 else position
            while byte < limit:
                frame = file.frame_at(byte, limit)
                if frame is None:
                    raise Corrupt(file.path, byte, "no frame begins here")
                if frame.first != expected:
                    raise Corrupt(file.path, byte, f"positions from {expected} to {frame.first} are missing before it")
                byte, expected = frame.end, frame.after
                if frame.after > position and not frame.flags & LINK:
                    self._next = (frame.after, segment, byte)
                    yield frame
                    file = self._open(segment)  # whoever took the frame may have read elsewhere

    def pass_over(self, frame: Frame) -> None:
        """Begin the next walk behind a frame that was not read from here."""
        self._next = (frame.after, frame.segment, frame.end)

    def frames_of(self, segment: int, byte: int, limit: int) -> Iterator[Frame]:
        """Yield the frames of one segment up to `limit`, from a byte at which one is known to begin.

        Payloads are not read.
        """
        while byte < limit:
            file = self._open(segment)
            frame = file.frame_at(byte, limit)
            if frame is None:
                raise Corrupt(file.path, byte, "no frame begins here")
            byte = frame.end
            yield frame

    def frame(self, segment: int, byte: int) -> Frame:
        """Return the frame that is known to stand there."""
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

    def part(self, frame: Frame, begin: int, length: int, crc: int | None) -> memoryview:
        """Return some bytes of a frame's payload by a checksum of their own; None: they are checked later.

        Raises: Corrupt.
        """
        file, byte = self._open(frame.segment), frame.byte + HEADER.size + begin
        data = file.bytes_at(byte, length, frame.end)
        if len(data) < length or (crc is not None and zlib.crc32(data) != crc):
            raise Corrupt(file.path, byte, "the checksum of this part of a frame does not hold")
        return data

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._head_fd >= 0:
            os.close(self._head_fd)
            self._head_fd = -1

    def _walk(self, position: int, head: Head) -> Iterator[tuple[int, int, int]]:
        """Yield the segments to look through: first position, byte to begin at, byte to stop at."""
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
    """Writes a log directory, as its only writer. Not thread-safe.

    With `durable` frames are on disk before they are published, so a published byte that is gone is damage. Otherwise
    the log can be computed again, and whatever of the last segment does not hold is cut off. `keep` is told, before
    frames are published, up to which byte of which segment they are on disk. Raises: Locked, Corrupt.
    """

    def __init__(self, directory: Path, *, durable: bool, segment_bytes: int = SEGMENT_BYTES, keep: Callable[[int, int], None] | None = None) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory, self._durable, self._segment_bytes, self._keep = directory, durable, segment_bytes, keep
        self._lock = DirectoryLock(directory / "lock")
        self._fd = self._head_fd = -1
        try:
            self._head_fd = os.open(directory / "head", os.O_RDWR | os.O_CREAT, 0o644)
            published = self._published()
            self._before: SegmentLink | None = None  # names the segment before one that has no frame yet
            self._tail = self._find_sound_tail(published)
            self._fd = os.open(segment_path(directory, self._tail.segment), os.O_RDWR | os.O_CREAT, 0o644)
            os.truncate(self._fd, self._tail.size)
            self._synced = self._tail.segment, 0
            sync_path(directory)
            if durable:  # the last writer may have died between a frame and its sync, or after a sync that failed
                if published.segment == self._tail.segment:
                    self._synced = self._tail.segment, min(published.size, self._tail.size)
                self._rewrite()
                self.sync()
            self.publish()
        except BaseException:
            self.close()
            raise

    last: Frame | None = None
    """This is the last frame that was appended, if any was."""

    @property
    def position(self) -> int:
        """Return the position after the last frame."""
        return self._tail.position

    @property
    def head(self) -> Head:
        """Return the head as `publish` writes it."""
        return Head(self._tail.segment, self._tail.size, self.position)

    @property
    def mark(self) -> int:
        """Return the mark of the last frame; 0 without frames."""
        return mark_of(self._before.crc if self._before is not None else self._tail.crc)

    def append(self, payload: Sequence[bytes | memoryview], first: int, after: int, rows: int = 0, flags: int = 0, crc: int | None = None) -> bool:
        """Write a frame, whose payload is in parts; it is neither durable nor published yet. `crc` is the payload's
        checksum, if it is known.

        Return True if it began a new segment. Raises: OutOfOrder, OSError.
        """
        if first != self.position or after < first:
            raise OutOfOrder(f"a frame of [{first}, {after}) cannot follow position {self.position} of {self.directory}")
        rotated = self._tail.size >= self._segment_bytes
        if rotated:
            self._rotate()
        frames = [(list(payload), crc_of(payload) if crc is None else crc, after, rows, flags)]
        if self._before is not None:  # one write has link and frame, so a segment without frames has no link either
            link = msgspec.json.encode(self._before)
            frames.insert(0, ([link], zlib.crc32(link), first, 0, LINK))
        self._write(first, frames)
        self._before = None
        return rotated

    def sync(self) -> None:
        self._flush()
        if self._keep is not None:
            self._keep(self._tail.segment, self._tail.size)

    def publish(self) -> None:
        """Let readers see the frames that were appended."""
        head = self.head
        record = HEAD.pack(HEAD_MAGIC, head.segment, head.size, head.position, 0)[:-4]
        os.pwrite(self._head_fd, record + zlib.crc32(record).to_bytes(4, "little"), 0)

    def cut_back(self) -> None:
        """Take back what was appended since the last sync that held; after that the writer can only be closed.
        Raises: OSError.

        The system calls bytes clean whose sync failed, so a second sync says nothing of them.
        """
        segment, size = self._synced
        for first in segments(self.directory):
            if first >= segment:
                path, kept = segment_path(self.directory, first), size if first == segment else 0
                if path.stat().st_size > kept:
                    os.truncate(path, kept)

    def close(self) -> None:
        for fd in (self._fd, self._head_fd):
            if fd >= 0:
                os.close(fd)
        self._fd = self._head_fd = -1
        self._lock.close()

    def _write(self, first: int, frames: list[tuple[list[bytes | memoryview], int, int, int, int]]) -> None:
        """Write frames at the end, in one write.

        Each has the parts of its payload, its checksum, the position after it, rows and flags.
        """
        parts: list[bytes | memoryview] = []
        added: list[tuple[Frame, bytes]] = []
        at = self._tail.size
        for payload, crc, after, rows, flags in frames:
            length = sum(map(len, payload))
            header = pack_header(crc, length, first, after, rows, flags)
            frame = unpack_header(header, self._tail.segment, at)
            assert frame is not None
            added.append((frame, header))
            parts += [header, *payload, bytes(-length % 8)]
            at, first = frame.end, after
        written = os.pwritev(self._fd, parts, self._tail.size)
        if written < at - self._tail.size:  # a signal or a full disk: say it all again, plainly, and let the disk complain
            os.pwrite(self._fd, b"".join(parts)[written:], self._tail.size + written)
        for frame, header in added:
            self._tail.add(frame, header)
        self.last = added[-1][0]

    def _flush(self) -> None:
        try:
            os.fdatasync(self._fd)
        except OSError:
            with suppress(OSError):
                self._rewrite()
            raise
        self._synced = self._tail.segment, self._tail.size

    def _rewrite(self) -> None:
        """Write the bytes that are not known to be on disk again, in their place: only then does the next sync speak
        of them.
        """
        segment, at = self._synced
        for begin in range(at if segment == self._tail.segment else 0, self._tail.size, CHUNK):
            os.pwrite(self._fd, os.pread(self._fd, min(CHUNK, self._tail.size - begin), begin), begin)

    def _rotate(self) -> None:
        self._flush()  # recovery looks at the last segment only, so all before it must hold
        if not self._durable:  # solutions, which few read again, and the next ones take its pages; the input log is read by engines that are behind
            os.posix_fadvise(self._fd, 0, 0, os.POSIX_FADV_DONTNEED)
        fd = os.open(segment_path(self.directory, self.position), os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        os.close(self._fd)  # not before the next one is open: whatever fails, `close` finds what is its own
        self._fd, self._before, self._tail = fd, self._tail.link(), Tail(self.position, self.position)
        sync_path(self.directory)

    def _find_sound_tail(self, published: Head) -> Tail:
        """Return the sound frames of the last segment. Raises: Corrupt."""
        known = segments(self.directory)
        if published.segment not in known and (known or published.size):
            raise Corrupt(segment_path(self.directory, published.segment), 0, "the file is missing")
        if not known:
            return Tail(0, 0)
        check_chain(self.directory)
        with closing(SegmentFile(self.directory, known[-1])) as file:
            tail = self._sound(file, published)
        if tail.position == known[-1]:
            tail = Tail(known[-1], known[-1])  # a link whose frame has torn is written again
        if len(known) > 1 and (not tail.size or read_opening(self.directory, known[-1]).link is None):
            self._check_succession(known[-2], tail)
        return tail

    def _check_succession(self, before: int, tail: Tail) -> None:
        """See that a segment without a link begins where the one before ends. Raises: Corrupt."""
        with closing(SegmentFile(self.directory, before)) as file:
            found, size = read_sound_frames(file), file.size()
        if found.size != size:
            raise Corrupt(file.path, found.size, "a frame that was written whole does not hold")
        if found.position != tail.segment:
            raise Corrupt(segment_path(self.directory, tail.segment), 0, f"the segment before it ends at position {found.position}")
        if not tail.size:
            self._before = found.link()

    def _published(self) -> Head:
        """Return the head as the last writer left it; where the head cannot be read, nothing counts as published."""
        return _unpack_head(os.pread(self._head_fd, HEAD.size, 0)) or Head(oldest(self.directory))

    def _sound(self, file: SegmentFile, published: Head) -> Tail:
        """Return the segment's frames that hold. Raises: Corrupt where more than a torn tail is wrong."""
        tail, limit = read_sound_frames(file), file.size()
        if self._durable:
            if published.segment > file.first or (published.segment == file.first and published.size > tail.size):
                raise Corrupt(file.path, tail.size, "a frame that was written whole does not hold")
            if _frame_follows(file, tail.size, limit):
                raise Corrupt(file.path, tail.size, "sound frames follow one that does not hold")
        return tail


def read_sound_frames(file: SegmentFile, is_over: Callable[[], bool] = lambda: False) -> Tail:
    """Read the segment's frames as far as they hold, or until it is over."""
    tail, limit = Tail(file.first, file.first), file.size()
    while tail.size < limit and not is_over():
        header = bytes(file.bytes_at(tail.size, HEADER.size, limit))
        frame = file.frame_at(tail.size, limit)
        if frame is None or frame.first != tail.position or file.payload(frame, limit) is None:
            break
        tail.add(frame, header)
    return tail


def _frame_follows(file: SegmentFile, byte: int, limit: int) -> bool:
    """Tell whether a whole frame stands somewhere after the fault at `byte`.

    Then the fault is no torn tail, for the last write alone can tear.
    """
    rest = bytes(file.bytes_at(byte, limit - byte, limit))
    at = rest.find(MAGIC, 1)
    while at >= 0:
        frame = file.frame_at(byte + at, limit)
        if frame is not None and file.payload(frame, limit) is not None:
            return True
        at = rest.find(MAGIC, at + 1)
    return False
