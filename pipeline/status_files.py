"""This module writes small files in which a process tells others how it stands.

Each is written in its place: a file that replaced it would wait for the disk, and the solutions with it.
"""

import os
import struct
import zlib
from pathlib import Path

NOTES = "notes"
_HEAD = struct.Struct("<II")  # bytes of the note, their checksum
_TRIES = 3  # a read may meet a write half-way


def note_path(data_dir: Path | str, name: str) -> Path:
    return Path(data_dir) / NOTES / name


def write_note(path: Path, text: bytes) -> None:
    """Write a note without syncing it, for a note is of no use to a later process. Raises: OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.pwrite(fd, _HEAD.pack(len(text), zlib.crc32(text)) + text, 0)
    finally:
        os.close(fd)


def read_note(path: Path) -> bytes | None:
    """Read a note. Return None where there is none that is whole."""
    for _ in range(_TRIES):
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        if len(data) >= _HEAD.size:
            size, crc = _HEAD.unpack_from(data)
            text = data[_HEAD.size : _HEAD.size + size]
            if len(text) == size and zlib.crc32(text) == crc:
                return text
    return None


def read_checksum(path: Path) -> bytes:
    """Return the head of a note, which is another one after each change; b"" where there is no note."""
    try:
        with path.open("rb") as file:
            return file.read(_HEAD.size)
    except FileNotFoundError:
        return b""
