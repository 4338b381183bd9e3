"""This module tells a log from all others by one of its frames, for each frame was written at its own microsecond.

Logs that agree in a frame are one log, or copies that had not parted yet when it was written. A log thus needs no
name of its own. A data directory that was restored from a copy is the same one, up to where the copy ends.
"""

from pathlib import Path

from pipeline.errors import Gone
from pipeline.log.reader import Published
from pipeline.log.segments import Frame, FrameReader, mark_of, oldest, read_opening


class Marks:
    """Computes marks of the log of a data directory.

    One thread at a time. `published` is what a writer in this process hands on.
    """

    def __init__(self, data_dir: Path, published: Published | None = None) -> None:
        self._directory, self._published = data_dir / "log", published
        self._frames = FrameReader(self._directory)
        self._last: Frame | None = None

    def mark_at(self, position: int) -> str:
        """Return the mark of the first kept frame that ends at or after a position.

        The position is not beyond the head, and does not fall from call to call. The mark is empty for the log's
        beginning.
        """
        if position == 0:
            return ""
        if self._last is None or self._last.after < position:  # only what is new is looked through
            begin = max(position - 1, oldest(self._directory)) if self._last is None else self._last.after
            self._last = next(frame for frame in self._frames.frames(begin) if frame.after >= position)
        return _mark(self._last)

    def mark_before(self, position: int) -> int:
        """Return the mark, in 31 bits, of the frame that holds the entry before a position. Positions must not fall
        from one call to the next.

        0 where there is none, or it is not known any more.
        """
        while self._published and self._last and self._last.after < position and (known := self._published.find_frame(self._last.after)):
            self._last = known[0]
            self._frames.pass_over(self._last)
        if self._last is None or self._last.after < position:
            begin = position - 1 if self._last is None else self._last.after
            try:
                found = next((frame for frame in self._frames.frames(max(begin, 0)) if frame.after >= position), None)
            except Gone:
                first = oldest(self._directory)
                link = read_opening(self._directory, first).link if first == position else None
                return 0 if link is None else mark_of(link.crc)
            self._last = found or self._last
        return mark_of(self._last.crc) if self._last is not None and self._last.first < position <= self._last.after else 0

    def holds(self, mark: str) -> bool:
        """Tell whether a mark is of this log. Raises: Gone."""
        first = mark.partition("-")[0]
        found = next(self._frames.frames(int(first)), None) if first.isdecimal() else None
        return found is not None and _mark(found) == mark

    def close(self) -> None:
        self._frames.close()


def _mark(frame: Frame) -> str:
    return f"{frame.first}-{frame.after}:{frame.length:x}-{frame.crc:08x}"
