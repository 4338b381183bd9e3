"""This module replaces damaged segments of a data directory with their copies in the store.

A segment is written again in its place, so whoever has it open reads the sound bytes from then on. Only bytes whose
frames hold are written.
"""

import logging
import os
import zlib
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from epsparql.durable_files import sync_path
from pipeline.errors import Corrupt, Locked, StoreDamaged, StoreFailed
from pipeline.log.segments import HEADER, FrameWriter, Tail, read_opening, segment_path, segments, unpack_header
from pipeline.object_store.backends import ObjectStore
from pipeline.replication.manifest import LOG, Extent

_log = logging.getLogger("epsparql.store")


def repair_log(store: ObjectStore, directory: Path, extents: Sequence[Extent]) -> int:
    """Repair what would keep the writer of a log from opening it, as far as the store has it. The rest is for that
    writer to refuse.

    Return how many segments were repaired.
    """
    repaired = set[Path]()
    while directory.exists():
        try:
            with closing(FrameWriter(directory, durable=directory.name == LOG)):
                break
        except Corrupt as fault:
            if fault.path in repaired or not repair_segment(store, fault, extents):
                break
            repaired.add(fault.path)
        except Locked:  # the runner of a killed server ends within seconds
            break
    return len(repaired)


def repair_segment(store: ObjectStore, fault: Corrupt, extents: Sequence[Extent]) -> bool:
    """Write a damaged segment again from its copy, and say so. Return False where the copy cannot be used."""
    path = fault.path
    parts = [each for each in extents if segment_path(path.parent, each.segment) == path]
    if not parts:
        return False
    try:
        data = _read_copy(store, path, parts)
        _write_in_place(path, data)
    except (StoreFailed, OSError) as reason:
        _log.error("%s; it cannot be fetched from %s: %s", fault, store, reason)
        return False
    _log.warning("%s was damaged at byte %d: %s; it was fetched from %s and checked", path, fault.byte, fault.reason, store)
    return True


def _read_copy(store: ObjectStore, path: Path, parts: Sequence[Extent]) -> bytes:
    """Return a segment as far as the frames of its copy hold: all of it, unless it is the last one.

    Raises: StoreFailed, OSError.
    """
    data = b"".join(each.read(store) for each in parts)
    tail = _read_sound_bytes(data, parts[0].segment)
    following = next((first for first in segments(path.parent) if first > parts[0].segment), None)
    link = None if following is None else read_opening(path.parent, following).link
    is_whole = tail.size == len(data) if link is None else link == tail.link()
    if not tail.size or (following is not None and not is_whole):
        raise StoreDamaged(str(store), f"its copy of {path.name} is not the segment that {following} follows")
    return data[: tail.size]


def _read_sound_bytes(data: bytes, segment: int) -> Tail:
    """Return the frames at the begin of some bytes that hold."""
    tail, view = Tail(segment, segment), memoryview(data)
    while len(data) - tail.size >= HEADER.size:
        header = view[tail.size : tail.size + HEADER.size]
        frame = unpack_header(header, segment, tail.size)
        if frame is None or frame.end > len(data) or frame.first != tail.position:
            break
        begin = tail.size + HEADER.size
        if zlib.crc32(view[begin : begin + frame.length]) != frame.crc:
            break
        tail.add(frame, header)
    return tail


def _write_in_place(path: Path, data: bytes) -> None:
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        os.pwrite(fd, data, 0)
        os.ftruncate(fd, len(data))
        os.fsync(fd)
    finally:
        os.close(fd)
    sync_path(path.parent)
