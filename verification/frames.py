"""This module reads the frames of a log by itself. So a fault of the server's own reader cannot hide a fault of what
was written.

A log is a folder of segments. A segment is frames, each a header and a payload that is padded to 8 bytes:

    magic 4 | payload bytes u32 | first position i64 | position after i64 | rows u32 | flags u32 | crc of the payload u32 | crc of the header u32

The record in `head` says how much is published, and `begin` what retention has removed. Each segment begins with a
link to the one before it.
"""

import json
import re
import struct
import zlib
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

HEADER = struct.Struct("<4sIqqIIII")
HEAD = struct.Struct("<4sqqqI")
MAGIC = b"\xffEPF"
LINK = 1 << 31
"""A frame with this flag names the segment before, and covers no positions."""
_NAME = re.compile(r"\d{20}\.frames")
_TRAILER = 9  # a line with the checksum


class Unreadable(Exception):
    """Reports files that are damaged, of different logs, or in a format that this program does not know; the message
    names the file.
    """


class Frame(NamedTuple):
    """Represents a frame: the positions [first, after) that it covers, its flags, its payload and the payload's
    checksum.
    """

    first: int
    after: int
    flags: int
    crc: int
    payload: memoryview


def read_frames(directory: Path) -> Iterator[Frame]:
    """Yield each published frame, in order. Raises: Unreadable, FileNotFoundError."""
    last, size, position = read_head(directory)
    paths = sorted(path for path in directory.iterdir() if _NAME.fullmatch(path.name) and int(path.stem) <= last)
    reached, before = read_begin(directory), None
    if paths and int(paths[0].stem) < reached:  # retention notes first what it is about to remove
        reached = int(paths[0].stem)
    for path in paths:
        data = memoryview(path.read_bytes())
        segment = _Segment(path, data[:size] if int(path.stem) == last else data, before)
        for byte, frame in segment.frames():
            if reached != frame.first:
                raise Unreadable(f"{path} is damaged at byte {byte}: the frame begins at position {frame.first}, not at {reached}")
            reached = frame.after
            yield frame
        before = segment
    if reached != position:
        raise Unreadable(f"{directory} is damaged: its frames end at position {reached}, and `head` says {position}")


def read_head(directory: Path) -> tuple[int, int, int]:
    """Return the last segment, how many bytes of it are published, and the position after them.

    Raises: Unreadable, FileNotFoundError.
    """
    path = directory / "head"
    if not path.exists():
        directory.stat()
        raise Unreadable(f"{path} is missing")
    record = path.read_bytes()
    if len(record) != HEAD.size or zlib.crc32(record[:-4]) != HEAD.unpack(record)[4]:
        raise Unreadable(f"{path} is damaged: its checksum does not hold")
    _, segment, size, position, _ = HEAD.unpack(record)
    return segment, size, position


def read_begin(directory: Path) -> int:
    """Return the position before which retention has removed frames. Raises: Unreadable."""
    path = directory / "begin"
    if not path.exists():
        return 0
    data = unseal(path.read_bytes())
    if data is None:
        raise Unreadable(f"{path} is damaged: its checksum does not hold")
    return int(data)


def unseal(data: bytes) -> bytes | None:
    """Return what a last line with the checksum is of; None where the checksum does not hold."""
    body, trailer = data[:-_TRAILER], data[-_TRAILER:]
    return body if trailer == b"\n%08x" % zlib.crc32(body) else None


class _Segment:
    """Reads the frames of a segment, and sees that its link names the segment before it."""

    def __init__(self, path: Path, data: memoryview, before: "_Segment | None") -> None:
        self._path, self._data, self._before = path, data, before
        self._opening, self._digest, self._crc = "", blake2b(digest_size=16), 0
        self.is_linked = False

    def frames(self) -> Iterator[tuple[int, Frame]]:
        """Yield the frames that cover positions, each with its byte. Raises: Unreadable."""
        byte = 0
        while byte < len(self._data):
            frame, end = self._read_frame(byte)
            if frame.flags & LINK:
                self.is_linked = True
                self._check_link(json.loads(bytes(frame.payload)))
            else:
                self._crc = frame.crc
                yield byte, frame
            byte = end
        if self._before is not None and self._before.is_linked and len(self._data) and not self.is_linked:
            raise Unreadable(f"{self._path} is damaged: it does not say which segment it follows")

    def _read_frame(self, byte: int) -> tuple[Frame, int]:
        header = self._data[byte : byte + HEADER.size]
        if len(header) < HEADER.size:
            raise Unreadable(f"{self._path} is damaged at byte {byte}: the header is incomplete")
        magic, length, first, after, _, flags, crc, own = HEADER.unpack(header)
        if magic != MAGIC or zlib.crc32(header[:-4]) != own:
            raise Unreadable(f"{self._path} is damaged at byte {byte}: no frame begins here")
        begin = byte + HEADER.size
        payload = self._data[begin : begin + length]
        if len(payload) < length or zlib.crc32(payload) != crc:
            raise Unreadable(f"{self._path} is damaged at byte {byte}: the payload's checksum does not hold")
        self._opening = self._opening or blake2b(header, digest_size=16).hexdigest()
        self._digest.update(header)
        return Frame(first, after, flags, crc, payload), begin + length + -length % 8

    def _check_link(self, link: dict[str, Any]) -> None:  # Any: as it stands in JSON
        before = self._before
        if before is None and read_begin(self._path.parent) >= int(self._path.stem):
            return
        missing = self._path.with_name(f"{link['segment']:020d}.frames")
        if before is None or link["segment"] > int(before._path.stem):
            raise Unreadable(f"{missing} is missing, which {self._path.name} follows")
        found = {"segment": int(before._path.stem), "size": len(before._data), "opening": before._opening}
        found |= {"digest": before._digest.hexdigest(), "crc": before._crc}
        if link != found:
            raise Unreadable(f"{before._path} is damaged: it is not the file which {self._path.name} follows")
