"""This module reads the input log forwards for those who follow one stream: its rows from a position on, a piece at a
time.
"""

from pathlib import Path

from epsparql.deferred_methods import dataclass
from pipeline.inspection.recent_rows import RecentRows, read_pieces
from pipeline.log.segments import LINK, FrameReader

MOST_ROWS, MOST_BYTES = 2000, 4 << 20
"""One reading ends after the frame in which it has this many rows of the stream, or has read this many bytes of
payloads.
"""


@dataclass(frozen=True, slots=True)
class TailPage:
    """Holds what a reading has found, the oldest first, and the position from which to read on."""

    pieces: tuple[RecentRows, ...]
    position: int


class TailReader:
    """Reads the published part of a log forwards. One thread at a time."""

    def __init__(self, data_dir: Path | str) -> None:
        self._frames = FrameReader(Path(data_dir) / "log")

    def read_after(self, stream: str, position: int) -> TailPage:
        """Return rows of `stream`, late ones too, in entries from `position` on.

        Raises: Gone where these are no longer kept.
        """
        found: list[RecentRows] = []
        rows = size = 0
        since = position
        for frame in self._frames.frames(position):
            if frame.rows and not frame.flags & LINK:
                pieces = [*read_pieces(frame, self._frames.payload(frame), stream, since)]
                found += reversed(pieces)
                rows += sum(piece.rows.num_rows for piece in pieces)
                size += frame.length
            position = frame.after
            if rows >= MOST_ROWS or size >= MOST_BYTES:
                break
        return TailPage(tuple(found), position)

    def close(self) -> None:
        self._frames.close()
