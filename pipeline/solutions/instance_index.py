"""This module indexes in which frames of the solution log an instance of a query with PARAMETERS has solutions.

A frame is noted as 64 bits for each instance with solutions in it: the CRC-32 of the instance's id, and the byte where
the frame begins in its segment. Sorted, they are searched for the CRC-32. Other instances with the same one only bring
frames that are read in vain. The index is derived from the frames; that of a full segment is stored beside it.
"""

import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import field
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from epsparql.deferred_methods import dataclass
from epsparql.durable_files import replace_file
from pipeline.log.segments import seal, segment_path, unseal
from pipeline.solutions.query_index import identify_segment

Place = tuple[int, int]
"""A frame's place is its segment, and its byte there."""
_BYTE_BITS = 32
_BYTES = 2**_BYTE_BITS - 1
_FEW = 4096
_NONE: NDArray[np.uint64] = np.empty(0, np.uint64)


@dataclass(slots=True)
class _SegmentIndex:
    """Indexes the frames of one segment up to that at the byte `reached`; `recent` is not sorted yet."""

    reached: int = -1
    is_full: bool = False
    sorted: NDArray[np.uint64] = field(default_factory=lambda: _NONE)
    recent: "array[int]" = field(default_factory=lambda: array("Q"))

    def add_frame(self, byte: int, literals: Iterable[str]) -> None:
        self.recent.extend(zlib.crc32(literal.encode()) << _BYTE_BITS | byte for literal in literals)
        self.reached = byte
        if len(self.recent) > max(_FEW, len(self.sorted) // 4):
            self.sort()

    def sort(self) -> None:
        self.sorted = np.sort(np.concatenate([self.sorted, np.array(self.recent, np.uint64)]))
        self.recent = array("Q")

    def find_bytes(self, crc: int) -> list[int]:
        """Return where the frames with solutions of an instance begin, in order."""
        first = crc << _BYTE_BITS
        begin, stop = self.sorted.searchsorted(np.uint64(first)), self.sorted.searchsorted(np.uint64(first | _BYTES), side="right")
        noted: list[int] = self.sorted[begin:stop].tolist()
        noted += [each for each in self.recent if each >> _BYTE_BITS == crc]
        return [each & _BYTES for each in noted]


class InstanceIndex:
    """Indexes the frames of one registration. One thread at a time."""

    def __init__(self, directory: Path, registered: int) -> None:
        self._directory, self._registered = directory, registered
        self._segments: dict[int, _SegmentIndex] = {}

    @property
    def reached(self) -> Place:
        """Return the place of the last frame that is indexed."""
        if not self._segments:
            return -1, -1
        last = max(self._segments)
        return last, self._segments[last].reached

    def read_on(self, places: Iterable[Place], read_literals: Callable[[Place], Iterable[str]]) -> None:
        """Index further frames, in order; `read_literals` gives the ids of the instances in one, as literals."""
        for segment, byte in places:
            if segment not in self._segments:
                self._store_last()
                self._segments[segment] = self._restore_segment(segment)
            if not (found := self._segments[segment]).is_full and byte > found.reached:
                found.add_frame(byte, read_literals((segment, byte)))

    def drop_before(self, segment: int) -> None:
        """Drop the segments before one, which are no longer kept."""
        for each in [each for each in self._segments if each < segment]:
            del self._segments[each]

    def find_frames(self, literal: str, first: Place, last: Place, *, newest: bool) -> Iterator[Place]:
        """Yield the places of frames that may have solutions of an instance, from `first` to `last`, or backwards."""
        crc = zlib.crc32(literal.encode())
        for segment in sorted((each for each in self._segments if first[0] <= each <= last[0]), reverse=newest):
            found = [(segment, byte) for byte in self._segments[segment].find_bytes(crc) if first <= (segment, byte) <= last]
            yield from reversed(found) if newest else found

    def _store_last(self) -> None:
        """Store the index of the last segment, which is full: a frame of a later one is to be indexed."""
        if self._segments and not (found := self._segments[last := max(self._segments)]).is_full:
            found.sort()
            found.is_full = True
            with suppress(OSError):  # the file only saves time
                data = msgspec.msgpack.encode((identify_segment(self._directory, last), found.sorted.tobytes()))
                replace_file(instances_path(self._directory, last, self._registered), seal(data), durable=False)

    def _restore_segment(self, segment: int) -> _SegmentIndex:
        with suppress(OSError, msgspec.MsgspecError):
            data = unseal(instances_path(self._directory, segment, self._registered).read_bytes())
            if data is not None:
                which, noted = msgspec.msgpack.decode(data, type=tuple[str, bytes])
                if which == identify_segment(self._directory, segment):
                    return _SegmentIndex(_BYTES, is_full=True, sorted=np.frombuffer(noted, np.uint64))
        return _SegmentIndex()


def instances_path(directory: Path, segment: int, registered: int | str) -> Path:
    """Return the file with a full segment's index of a registration; "*" gives the pattern of all."""
    return segment_path(directory, segment).with_suffix(f".{registered}.instances")
