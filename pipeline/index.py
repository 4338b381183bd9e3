"""Where each registration's solutions stand in the solution log. Derived from the frames, so it may be thrown away at any time."""

from array import array
from bisect import bisect_left, bisect_right
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import msgspec

from engine.entries import StateChange
from pipeline.frames import Frame, FrameReader, Head, segments
from pipeline.ordinals import Key, Run, Summary, decode_summary


def _longs() -> "array[int]":
    return array("q")


@dataclass(slots=True)
class Places:
    """One registration's frames, in order: the last key in each, where the frame stands, and the solutions up to its end."""

    ends: "array[int]" = field(default_factory=_longs)
    ordinals: "array[int]" = field(default_factory=_longs)
    segments: "array[int]" = field(default_factory=_longs)
    bytes: "array[int]" = field(default_factory=_longs)
    counts: "array[int]" = field(default_factory=_longs)

    @property
    def count(self) -> int:
        return self.counts[-1] if self.counts else 0

    @property
    def last(self) -> Key | None:
        return (self.ends[-1], self.ordinals[-1]) if self.ends else None

    def ahead_of(self, rank: int) -> tuple[Key | None, int]:
        """The last key of the frame before the one that holds the solution of this rank (from 1), and the solutions up to it."""
        at = bisect_left(self.counts, rank) - 1
        return (None, 0) if at < 0 else ((self.ends[at], self.ordinals[at]), self.counts[at])

    def add(self, run: Run, segment: int, byte: int) -> None:
        self.counts.append(self.count + run.count)
        self.ends.append(run.end)
        self.ordinals.append(run.ordinal)
        self.segments.append(segment)
        self.bytes.append(byte)

    def after(self, key: Key | None, limit: int) -> list[tuple[int, int]]:
        """Segment and byte of the frames that hold the first `limit` solutions beyond `key`."""
        begin = 0 if key is None else bisect_right(range(len(self.ends)), key, key=lambda i: (self.ends[i], self.ordinals[i]))
        if begin == len(self.ends):
            return []
        stop = bisect_left(self.counts, self.counts[begin] + limit, begin) + 1  # the first of them may hold a single one beyond the key
        return list(zip(self.segments[begin:stop], self.bytes[begin:stop], strict=True))


_Noted = list[tuple[int, Summary]]


@dataclass(slots=True)
class Index:
    """Follows the frames of a directory. A segment that is full is noted in a file beside it, so that the next start need not read it."""

    places: dict[int, Places] = field(default_factory=dict)
    changes: list[StateChange] = field(default_factory=list)
    position: int = 0
    _recalled: bool = False
    _segment: int = -1
    _noted: _Noted = field(default_factory=list)

    def follow(self, frames: FrameReader) -> None:
        """Take in what was published since the last call."""
        head = frames.head()
        if not self._recalled:
            self._recall(frames.directory, head)
            self._recalled = True
        for frame in frames.frames(self.position, head):
            self._turn(frames.directory, frame)
            summary = decode_summary(frames.payload(frame)) if frame.length else Summary()
            if frame.length:
                self._noted.append((frame.byte, summary))
            self._add(frame.segment, frame.byte, summary)
            self.position = frame.after

    def _add(self, segment: int, byte: int, summary: Summary) -> None:
        for run in summary.runs:
            self.places.setdefault(run.registered, Places()).add(run, segment, byte)
        self.changes += summary.changes

    def _turn(self, directory: Path, frame: Frame) -> None:
        """Where `frame` begins a new segment, note the one before."""
        if frame.segment != self._segment:
            if self._segment >= 0:
                _write_notes(directory, self._segment, self._noted)
            self._segment, self._noted = frame.segment, []

    def _recall(self, directory: Path, head: Head) -> None:
        """Take in the leading full segments that are noted."""
        known = [first for first in segments(directory) if first <= head.segment] if directory.exists() else []
        for first, following in pairwise(known):
            noted = _read_notes(directory, first)
            if noted is None:
                return
            for byte, summary in noted:
                self._add(first, byte, summary)
            self.position = following


def _notes(directory: Path, segment: int) -> Path:
    return directory / f"{segment:020d}.index"


def _write_notes(directory: Path, segment: int, noted: _Noted) -> None:
    path = _notes(directory, segment)
    if not path.exists():
        with suppress(OSError):  # it only saves time
            temporary = path.with_suffix(".tmp")
            temporary.write_bytes(msgspec.msgpack.encode(noted))
            temporary.replace(path)


def _read_notes(directory: Path, segment: int) -> _Noted | None:
    try:
        return msgspec.msgpack.decode(_notes(directory, segment).read_bytes(), type=_Noted)
    except (OSError, msgspec.MsgspecError):
        return None
