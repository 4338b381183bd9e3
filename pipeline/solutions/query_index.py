"""This module indexes where each registration's solutions stand in the solution log.

The index is derived from the frames, so it may be thrown away at any time.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from contextlib import suppress
from dataclasses import field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from engine.messages import StateChange
from epsparql.deferred_methods import dataclass
from epsparql.durable_files import replace_file
from pipeline.errors import Corrupt, Gone
from pipeline.log.segments import Frame, FrameReader, Head, read_opening, seal, segments, unseal, write_begin
from pipeline.solutions.solution_ids import FrameSummary, Key, KeyRange, SolutionRun, decode_summary, solution_id

_longs: Callable[[], "array[int]"] = partial(array, "q")


@dataclass(slots=True)
class FrameIndex:
    """Lists one registration's frames, in order: the last key in each, where the frame stands, and the solutions up
    to its end.

    `gone` solutions, up to the key `before`, stood in frames that are no longer kept.
    """

    ends: "array[int]" = field(default_factory=_longs)
    ordinals: "array[int]" = field(default_factory=_longs)
    segments: "array[int]" = field(default_factory=_longs)
    bytes: "array[int]" = field(default_factory=_longs)
    counts: "array[int]" = field(default_factory=_longs)
    gone: int = 0
    before: Key | None = None

    @property
    def count(self) -> int:
        return self.counts[-1] if self.counts else self.gone

    @property
    def last(self) -> Key | None:
        return (self.ends[-1], self.ordinals[-1]) if self.ends else self.before

    def ahead_of(self, rank: int) -> tuple[Key | None, int]:
        """Return the last key of the frame before that of the solution of this rank (from 1). Also return the number
        of solutions up to that key.

        Before the first frame that is kept, that is the last key of those that are gone.
        """
        at = bisect_left(self.counts, rank) - 1
        return (self.before, self.gone) if at < 0 else ((self.ends[at], self.ordinals[at]), self.counts[at])

    def add(self, run: SolutionRun, segment: int, byte: int) -> None:
        self.counts.append(self.count + run.count)
        self.ends.append(run.end)
        self.ordinals.append(run.ordinal)
        self.segments.append(segment)
        self.bytes.append(byte)

    def find_frames(self, keys: KeyRange, limit: int) -> list[tuple[int, int]]:
        """Return segment and byte of the frames that hold the first `limit` solutions of a range, in the order of
        reading. Raises: Gone.
        """
        begin, past = self._find_range(keys)
        stop = min(past + 1, len(self.ends))  # the frame at `past` may also hold solutions of the range
        if begin >= stop:
            return []
        if keys.newest:
            whole = self.counts[past - 1] if past else self.gone
            begin = max(begin, bisect_right(self.counts, whole - limit))
        else:  # the first frame may hold a single solution of the range
            stop = min(stop, bisect_left(self.counts, self.counts[begin] + limit, begin) + 1)
        places = list(zip(self.segments[begin:stop], self.bytes[begin:stop], strict=True))
        return places[::-1] if keys.newest else places

    def after(self, key: Key | None, limit: int) -> list[tuple[int, int]]:
        """Return the frames of the first `limit` solutions beyond `key`, or beyond what is gone for None. Raises: Gone."""
        return self.find_frames(KeyRange(key), limit)

    def find_bounds(self, keys: KeyRange) -> tuple[tuple[int, int], tuple[int, int]] | None:
        """Return where the first and the last frame stand that may hold solutions of a range; None if none does.

        Raises: Gone.
        """
        begin, past = self._find_range(keys)
        last = min(past, len(self.ends) - 1)
        if begin > last:
            return None
        return (self.segments[begin], self.bytes[begin]), (self.segments[last], self.bytes[last])

    def _find_range(self, keys: KeyRange) -> tuple[int, int]:
        """Return the first frame with keys of a range, and that with its end, or the one after the last. Raises: Gone."""
        self._check_kept(keys)
        begin = 0 if keys.after is None else self._find_beyond(keys.after)
        return begin, len(self.ends) if keys.before is None else bisect_left(range(len(self.ends)), keys.before, key=self._last_key)

    def list_beyond(self, place: tuple[int, int]) -> list[tuple[int, int]]:
        """Return segment and byte of the frames beyond a place."""
        begin = bisect_right(range(len(self.ends)), place, key=lambda frame: (self.segments[frame], self.bytes[frame]))
        return list(zip(self.segments[begin:], self.bytes[begin:], strict=True))

    def _find_beyond(self, key: Key) -> int:
        """Return the first frame whose last key is beyond a key. Who reads close behind asks for the last frame."""
        n = len(self.ends)
        is_last = n > 1 and key >= self._last_key(n - 2)
        return bisect_right(range(n), key, n - 1 if is_last else 0, key=self._last_key)

    def _last_key(self, frame: int) -> Key:
        return self.ends[frame], self.ordinals[frame]

    def _check_kept(self, keys: KeyRange) -> None:
        """Check that the ids which bound a range are kept. Raises: Gone."""
        if self.before is None:
            return
        after, before = keys.after, keys.before
        if (after is not None and after[1] >= 0 and after < self.before) or (before is not None and before[1] >= 0 and before <= self.before):
            raise Gone(f"solutions up to {solution_id(*self.before)} are no longer kept: read on after that id, or from the first one kept")

    def drop_segment(self, segment: int) -> None:
        """Drop the frames before a segment, which are no longer kept."""
        stop = bisect_left(self.segments, segment)
        if stop:
            self.gone, self.before = self.counts[stop - 1], (self.ends[stop - 1], self.ordinals[stop - 1])
            for column in (self.ends, self.ordinals, self.segments, self.bytes, self.counts):
                del column[:stop]


@dataclass(frozen=True, slots=True)
class InUse:
    """Says for which registrations solutions may still come or be asked for: `kept`, and those from `since` on.

    It holds for solutions that have reached `position`: before that, a query that was dropped may still give some.
    """

    since: int
    kept: frozenset[int]
    position: int

    def has(self, registered: int) -> bool:
        return registered >= self.since or registered in self.kept

    def united_with(self, other: "InUse") -> "InUse":
        """Return what is in use by one of both, as of this one's position."""
        return InUse(min(self.since, other.since), self.kept | other.kept, self.position)


_Noted = list[tuple[int, msgspec.Raw]]
"""This lists the frames of a segment: where each stands, and its `FrameSummary`, which takes a fifth of the memory as
encoded bytes.
"""
_KEPT = 64


class RecentFrames:
    """Holds what a writer in this process has published last, so that a reader beside it need not read it back from
    the files.

    One thread writes and others look. None of them waits, because each sees `head` only once all before it is here.
    """

    def __init__(self, most: int = _KEPT) -> None:
        self._most = most
        self.head: Head | None = None
        """This is None where no writer in this process has opened the log."""
        self.in_use: InUse | None = None
        """The writer forgets the registrations that are not in use, if a reader has noted them here."""
        self._frames: dict[int, tuple[Frame, FrameSummary]] = {}  # by their first positions
        self._solutions: dict[tuple[int, int], pa.RecordBatch] = {}  # by segment and byte

    def begin(self, head: Head) -> None:
        """Forget the frames: the writer has found the log on disk as `head` says."""
        self._frames, self._solutions, self.head = {}, {}, head

    def add(self, frame: Frame, summary: FrameSummary, solutions: pa.RecordBatch | None, head: Head) -> None:
        """Take the frame that was published last.

        `solutions` (STORED) are None where it has none, or too many to be kept.
        """
        self._frames[frame.first] = frame, summary
        if solutions is not None:
            self._solutions[frame.segment, frame.byte] = solutions
        _drop_oldest(self._frames, self._most)
        _drop_oldest(self._solutions, self._most)
        self.head = head

    def find_frame(self, position: int) -> tuple[Frame, FrameSummary] | None:
        """Return the frame that begins at a position, if it is still here."""
        return self._frames.get(position)

    def find_solutions(self, place: tuple[int, int]) -> pa.RecordBatch | None:
        """Return the solutions of the frame at a segment and a byte, if they are still here."""
        return self._solutions.get(place)


def _drop_oldest(kept: dict[Any, Any], most: int) -> None:
    if len(kept) > most:
        del kept[next(iter(kept))]


@dataclass(slots=True)
class Index:
    """Follows the frames of a directory.

    A segment that is full is noted in a file beside it, so that the next start need not read it.
    """

    places: dict[int, FrameIndex] = field(default_factory=dict)
    changes: list[StateChange] = field(default_factory=list)
    position: int = 0
    _recalled: bool = False
    _segment: int = -1
    _noted: _Noted = field(default_factory=list)

    def read_on(self, frames: FrameReader, recent: RecentFrames) -> None:
        """Take in what was published since the last call."""
        head = recent.head or frames.head()
        if not self._recalled:
            self._recall(frames.directory, head)
            self._recalled = True
        while (known := recent.find_frame(self.position)) is not None and self.position < head.position:
            self._take_in(frames.directory, *known)
            frames.pass_over(known[0])
        for frame in frames.frames(self.position, head):
            self._take_in(frames.directory, frame, decode_summary(frames.payload(frame)) if frame.length else FrameSummary())

    def _take_in(self, directory: Path, frame: Frame, summary: FrameSummary) -> None:
        self._turn(directory, frame)
        if frame.length:
            self._noted.append((frame.byte, msgspec.Raw(msgspec.msgpack.encode(summary))))
        self._add(frame.segment, frame.byte, summary)
        self.position = frame.after

    def drop_segment(self, directory: Path, segment: int, in_use: InUse | None) -> None:
        """Keep of the frames before a segment what nothing else tells.

        That is how many solutions there were, the last of each registration, and changes of state.
        """
        for places in self.places.values():
            places.drop_segment(segment)
        if in_use is not None:
            unused = [registered for registered, places in self.places.items() if not places.ends and not in_use.has(registered)]
            for registered in unused:
                del self.places[registered]
            self.changes = [change for change in self.changes if change.entry >= segment or in_use.has(change.registered)]
        tallies = [(registered, places.gone, *places.before) for registered, places in self.places.items() if places.before is not None]
        write_base(directory, Base(segment, tallies, [change for change in self.changes if change.entry < segment]))

    def _add(self, segment: int, byte: int, summary: FrameSummary) -> None:
        for run in summary.runs:
            if (places := self.places.get(run.registered)) is None:
                places = self.places[run.registered] = FrameIndex()
            places.add(run, segment, byte)
        self.changes += summary.changes

    def _turn(self, directory: Path, frame: Frame) -> None:
        """Note the segment before, where `frame` begins a new one."""
        if frame.segment != self._segment:
            if self._segment >= 0:
                _write_notes(directory, self._segment, self._noted)
            self._segment, self._noted = frame.segment, []

    def _recall(self, directory: Path, head: Head) -> None:
        """Take in the leading full segments that are noted."""
        base = read_base(directory)
        if base is not None:
            self.position = base.position
            self.changes += base.changes
            self.places |= {registered: FrameIndex(gone=gone, before=(end, ordinal)) for registered, gone, end, ordinal in base.tallies}
        known = [first for first in segments(directory) if self.position <= first <= head.segment] if directory.exists() else []
        for first, following in pairwise(known):
            noted = _read_notes(directory, first)
            if noted is None:
                return
            for byte, summary in noted:
                self._add(first, byte, msgspec.msgpack.decode(summary, type=FrameSummary))
            self.position = following


@dataclass(frozen=True, slots=True)
class Base:
    """Records the frames before `position`, which are no longer kept: per registration the number of solutions, and
    the last one's key.
    """

    position: int
    tallies: list[tuple[int, int, int, int]]
    changes: list[StateChange]


def read_base(directory: Path) -> Base | None:
    """Read the base, which cannot be made anew. Raises: Corrupt."""
    path = directory / "base"
    try:
        data = path.read_bytes()
        return msgspec.msgpack.decode(unseal(data) or data, type=Base)  # version 0.1.0 did not seal its base
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as fault:
        raise Corrupt(path, 0, f"it cannot be read: {fault}") from None


def write_base(directory: Path, base: Base) -> None:
    """Write the base in one step, and durably: the frames that it stands for are removed next."""
    replace_file(directory / "base", seal(msgspec.msgpack.encode(base)))
    write_begin(directory, base.position)


def _notes(directory: Path, segment: int) -> Path:
    return directory / f"{segment:020d}.index"


def _write_notes(directory: Path, segment: int, noted: _Noted) -> None:
    if _read_notes(directory, segment) is None:
        with suppress(OSError):  # the notes only save time
            data = seal(msgspec.msgpack.encode((identify_segment(directory, segment), noted)))
            replace_file(_notes(directory, segment), data, durable=False)


def _read_notes(directory: Path, segment: int) -> _Noted | None:
    """Read the notes of a segment.

    Return None for notes of another segment, or of version 0.1.0: then the segment is read, once.
    """
    with suppress(OSError, msgspec.MsgspecError):
        data = unseal(_notes(directory, segment).read_bytes())
        if data is not None:
            which, noted = msgspec.msgpack.decode(data, type=tuple[str, _Noted])
            return noted if which == identify_segment(directory, segment) else None
    return None


def identify_segment(directory: Path, segment: int) -> str:
    """Return a text that no other segment has, nor this one before it was full. Raises: OSError."""
    opening = read_opening(directory, segment)
    return f"{opening.digest}-{opening.size}"
