"""This module reads the input log from its end: the last rows of one stream, within bounds of bytes and time.

A frame does not say where the one before it begins. So the headers of a segment are walked once, and about one place
in each `CHUNK` bytes is kept. From these places the frames are found again, the last first.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from epsparql.deferred_methods import dataclass
from pipeline.errors import Gone
from pipeline.inspection.recent_rows import RecentRows, read_pieces
from pipeline.log.segments import CHUNK, LINK, Frame, FrameReader, Head, segment_path, segments

MOST_BYTES = 64 << 20
MOST_S = 1.0
"""At most this many bytes of payloads, and about this many seconds, are read for one look at a stream."""
_KEPT_SEGMENTS = 4


@dataclass(frozen=True, slots=True)
class Look:
    """Holds the pieces that were found, the newest first, and the position back to which the log was read.

    `is_cut` says that a bound ended the look before it had the rows that were asked for.
    """

    pieces: tuple[RecentRows, ...]
    read_from: int
    is_cut: bool


class BackwardReader:
    """Reads the published part of a log backwards. One thread at a time."""

    def __init__(self, data_dir: Path | str, most_bytes: int = MOST_BYTES, most_s: float = MOST_S) -> None:
        self._frames = FrameReader(Path(data_dir) / "log")
        self._most_bytes, self._most_s = most_bytes, most_s
        self._places: dict[int, list[int]] = {}  # by segment, the last one used at the end

    def read_last(self, stream: str, created: int, count: int, before: int | None = None) -> Look:
        """Return the last `count` rows that `stream` has, late ones too, in entries from `created` on and before
        position `before`.
        """
        found: list[RecentRows] = []
        read_from, is_cut = self.visit_last(stream, created, count, found.append, before)
        return Look(tuple(found), read_from, is_cut)

    def visit_last(self, stream: str, created: int, count: int, take: Callable[[RecentRows], None], before: int | None = None) -> tuple[int, bool]:
        """Have `take` called with the pieces that `read_last` returns, the newest first.

        Return the position, and whether it is cut, as in `Look`.
        """
        over, budget = time.monotonic() + self._most_s, self._most_bytes
        read_from = self._frames.head().position if before is None else before
        for frame in self._backwards(created, before):
            if frame.rows:
                if budget <= 0 or time.monotonic() > over:
                    return read_from, True
                budget -= frame.length
                for piece in read_pieces(frame, self._frames.payload(frame), stream, created, before):
                    taken = piece.cut(max(0, piece.rows.num_rows - count))
                    take(taken)
                    count -= taken.rows.num_rows
                    if not count:
                        return piece.offset, False
            read_from = frame.first
        return read_from, False

    def close(self) -> None:
        self._frames.close()

    def _backwards(self, created: int, before: int | None) -> Iterator[Frame]:
        """Yield the published frames with positions from `created` on and below `before`, the last first, as far as
        they are kept.
        """
        head = self._frames.head()
        if not head.position:
            return
        for segment in reversed([first for first in segments(self._frames.directory) if first <= head.segment]):
            if before is not None and segment >= before:
                continue
            try:
                for frame in self._backwards_in(segment, head):
                    if frame.after <= created:
                        return
                    if not frame.flags & LINK and (before is None or frame.first < before):
                        yield frame
            except Gone:  # removed meanwhile, and with it all segments before it
                return
            if segment <= created:
                return

    def _backwards_in(self, segment: int, head: Head) -> Iterator[Frame]:
        limit = head.size if segment == head.segment else self._size(segment)
        places = [place for place in self._find_places(segment, limit) if place < limit]
        for begin, end in zip(reversed(places), [limit, *reversed(places[1:])], strict=True):
            yield from reversed(list(self._frames.frames_of(segment, begin, end)))

    def _find_places(self, segment: int, limit: int) -> list[int]:
        """Return bytes of the segment at which frames begin, in order; only what came since the last call is walked."""
        places = self._places.pop(segment, [0])
        self._places[segment] = places
        while len(self._places) > _KEPT_SEGMENTS:
            del self._places[next(iter(self._places))]
        begin = places[-1]
        for frame in self._frames.frames_of(segment, begin, limit):
            if frame.byte - places[-1] >= CHUNK:
                places.append(frame.byte)
        return places

    def _size(self, segment: int) -> int:
        try:
            return segment_path(self._frames.directory, segment).stat().st_size
        except FileNotFoundError:
            raise Gone(f"positions from {segment} of {self._frames.directory} are no longer kept") from None
