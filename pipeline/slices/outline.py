"""This module reads the outline of a log: how far its entries bring the streams' times, and where the background
changes. No rows are decoded.

The outline has the times at some thousands of places. What lies between two of them is read again where it is asked
for.
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

from engine.background.changes import read_static_rule
from engine.messages import END_OF_TIME, NO_END, Drop, DropStream, Entail, Entry, Events, Facts, Finish, Micros, Register, Tick
from engine.partitioning import source_of
from engine.runtime.watermarks import NO_TIME, StreamTime
from epsparql.deferred_methods import dataclass
from pipeline.log import LogReader

_MOST_PLACES = 8192


@dataclass(frozen=True, slots=True)
class StreamCourse:
    """Says how far a stream has come: its time, and how many events have come in time."""

    time: StreamTime
    events: int = 0


Courses = dict[str, StreamCourse]


@dataclass(frozen=True, slots=True)
class _Place:
    """Holds how far the streams had come before the entry at an offset."""

    offset: int
    courses: Courses

    @property
    def event_count(self) -> int:
        return sum(course.events for course in self.courses.values())


class LogOutline:
    """Holds the outline of the entries [position, until) of a log, as far as some streams are concerned."""

    def __init__(
        self, data: Path, span: tuple[int, int], streams: Collection[str], begun: dict[str, StreamTime], static_rules: Iterable[int]
    ) -> None:
        """Read the outline; `begun` has the streams' times before the first entry, and `static_rules` stand there.

        Raises: Gone, Corrupt.
        """
        self._data, self._streams = data, frozenset(streams)
        self._static_rules = set(static_rules)
        self.changes: list[int] = []
        """These entries change the background."""
        self.drops: list[Drop] = []
        """These entries drop queries that were registered before the first entry, or are no static rules."""
        self.reads_rows = False
        """Entries of version 0.1.0 do not say how far their stream had come: their rows do, for themselves."""
        self.breaks: list[int] = []
        """What comes after such an entry cannot be found without what was before it: it changes the background, or
        drops a stream.
        """
        after = {name: StreamCourse(replace(time)) for name, time in begun.items()}
        self._places = [_Place(span[0], after)]
        every = 1
        for passed, (entry, courses) in enumerate(self._walk(*span, after)):
            self._note_change(entry)
            after = courses
            if passed % every == 0:
                self._places.append(_Place(entry.offset + 1, dict(courses)))
                if len(self._places) > _MOST_PLACES:
                    every, self._places = 2 * every, self._places[::2]
        self._places.append(_Place(span[1], dict(after)))

    # ------------------------------------------------------------ reading
    def _walk(self, position: int, until: int, courses: Courses) -> Iterator[tuple[Entry, Courses]]:
        """Yield each entry that matters, and how far the streams have come after it: always the same dictionary."""
        courses = dict(courses)
        with closing(LogReader(self._data)) as reader:
            for record in reader.records(position, until):
                entry = record.entry
                match entry:
                    case Events() if entry.stream in self._streams:
                        latest = self._latest_end(reader, entry) if record.latest is None else record.latest
                        _advance(courses, entry.stream, entry.watermark, latest, entry.rows - record.late)
                    case Tick(stream=str(stream)) if stream in self._streams:
                        _advance(courses, stream, entry.watermark, NO_TIME, 0)
                    case Finish() if entry.stream in self._streams:
                        _advance(courses, entry.stream, END_OF_TIME, NO_TIME, 0)
                    case DropStream():
                        courses.pop(entry.stream, None)
                    case Facts() | Entail() | Register() | Drop():
                        pass
                    case _:
                        continue
                yield entry, courses

    def _latest_end(self, reader: LogReader, entry: Events) -> Micros:
        """Return the latest end of what an entry brings in time, from its rows: logs of version 0.1.0 do not say it."""
        if not entry.rows:
            return NO_TIME
        self.reads_rows = True
        ends = source_of(next(reader.blocks(entry.offset, 1, entry.offset + 1))).read_ends()
        return max((end for end in ends.tolist() if end != NO_END), default=NO_TIME)

    def _note_change(self, entry: Entry) -> None:
        match entry:
            case Facts() | Entail():
                self.changes.append(entry.offset)
            case Register() if read_static_rule(entry) is not None:
                self._static_rules.add(entry.offset)
                self.changes.append(entry.offset)
            case Drop() if entry.registered in self._static_rules:
                self.changes.append(entry.offset)
            case Drop():
                self.drops.append(entry)
                return
            case DropStream() if entry.stream in self._streams:
                pass
            case _:
                return
        self.breaks.append(entry.offset)

    # ------------------------------------------------------------ what it says
    @property
    def places(self) -> list[tuple[int, int]]:
        """Return positions in their order, with how many events in time come before each."""
        return [(place.offset, place.event_count) for place in self._places]

    def courses_at(self, position: int) -> Courses:
        """Return how far the streams have come before the entry at a position."""
        known = max((place for place in self._places if place.offset <= position), key=lambda place: place.offset)
        last = deque(self._walk(known.offset, position, known.courses), maxlen=1)
        return dict(last[0][1]) if last else known.courses

    def find_first(self, since: Micros, streams: Collection[str]) -> int | None:
        """Return the offset of the first entry that brings an event of these streams which ends at `since` or later."""

        def reached(courses: Courses) -> bool:
            return any(courses[name].time.latest >= since for name in streams if name in courses)

        for before, after in zip(self._places, self._places[1:], strict=False):
            for entry, courses in self._walk(before.offset, after.offset, before.courses) if reached(after.courses) else ():
                if reached(courses):
                    return entry.offset
        return None

    def find_earlier(self, before: Micros, streams: Collection[str], position: int) -> int | None:
        """Return the last known position from which on an event of one of these streams comes before `position` and
        ends before an instant.
        """
        for begin, end in zip(reversed(self._places[:-1]), reversed(self._places[1:]), strict=True):
            if end.offset <= position:
                for name in streams:
                    after, earlier = end.courses.get(name), begin.courses.get(name)
                    if after is not None and after.time.latest < before and after.events > (0 if earlier is None else earlier.events):
                        return begin.offset
        return None

    def count_events(self, position: int) -> int:
        """Return about how many events in time come before a position."""
        places = np.array(self.places)
        return int(np.interp(position, places[:, 0], places[:, 1]))


def _advance(courses: Courses, stream: str, watermark: Micros | None, latest: Micros, events: int) -> None:
    before = courses.get(stream, StreamCourse(StreamTime()))
    reached = before.time.watermark if watermark is None else max(watermark, before.time.watermark)
    courses[stream] = StreamCourse(StreamTime(reached, max(latest, before.time.latest), fed=True), before.events + events)
