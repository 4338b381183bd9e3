"""This module cuts a part of the log into slices that can be evaluated by themselves. Each has the entries before it
as far as the queries reach.

A slice gives the solutions of the entries [keep, until), and reads the entries from `first` on
(docs/decisions/0083-slices.md).
"""

from collections.abc import Collection, Iterator, Sequence

from engine.messages import END_OF_TIME, Micros
from engine.planner.reach import Reach
from engine.runtime.watermarks import NO_TIME
from epsparql.deferred_methods import dataclass
from pipeline.slices.outline import LogOutline

SLICE_EVENTS = 20_000
"""A slice that is not asked for has this many events at least. Starting it costs about as much as half of them."""
SLICES_PER_WORKER = 4
MOST_SLICES = 4096


@dataclass(frozen=True, slots=True)
class StreamMark:
    """Holds a stream's time where a slice begins to read."""

    stream: str
    watermark: Micros
    latest: Micros
    fed: bool


@dataclass(frozen=True, slots=True)
class Slice:
    """Says which entries are read, [first, until), and from which on solutions count; `marks` are the streams' times
    before the first.
    """

    first: int
    keep: int
    until: int
    marks: tuple[StreamMark, ...] = ()


@dataclass(frozen=True, slots=True)
class SlicedQuery:
    """Holds what the cuts must heed of a query: the streams that it reads, those that it rests on through rules too,
    and its reach.
    """

    reads: frozenset[str]
    rests_on: frozenset[str]
    reach: Reach


@dataclass(frozen=True, slots=True)
class SlicePlanner:
    """Cuts the entries [first, until) of a log, whose outline is known, for queries that run together; `written` are
    the streams of their rules.
    """

    outline: LogOutline
    queries: Sequence[SlicedQuery]
    written: Collection[str]
    first: int
    until: int

    def plan_exactly(self, count: int) -> list[Slice]:
        """Return this many slices of about as many events each, or as many as can be cut."""
        return self._cut_at(self._choose_positions(min(count, MOST_SLICES)))

    def plan_for(self, workers: int) -> list[Slice]:
        """Return slices for some workers, so few that what is read twice costs less than the others gain."""
        most = min(SLICES_PER_WORKER * workers, self._count_events(self.first, self.until) // SLICE_EVENTS)
        plans = [self.plan_exactly(count) for count in {1, workers, most} if workers > 1 and 1 <= count <= max(most, 1)] or [self.plan_exactly(1)]
        return min(plans, key=lambda slices: (self._longest(slices, workers), len(slices)))

    # ------------------------------------------------------------ cutting
    def _choose_positions(self, count: int) -> list[int]:
        """Return positions that part the entries into `count` parts of about as many events each."""
        inside = [(offset, events) for offset, events in self.outline.places if self.first < offset < self.until]
        begun, whole = self.outline.count_events(self.first), self._count_events(self.first, self.until)
        chosen, k = list[int](), 1
        for offset, events in inside:
            if k < count and (events - begun) * count >= k * whole:
                chosen.append(offset)
                while k < count and (events - begun) * count >= k * whole:
                    k += 1
        return chosen

    def _cut_at(self, positions: Sequence[int]) -> list[Slice]:
        cuts = [(self.first, self.first), *self._possible_cuts(positions)]
        ends = [keep for _, keep in cuts[1:]] + [self.until]
        return [self._make_slice(first, keep, until) for (first, keep), until in zip(cuts, ends, strict=True)]

    def _possible_cuts(self, positions: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield, for each position at which a slice can begin, where it begins to read, and the position."""
        broken = max((each for each in self.outline.breaks if self.first <= each < self.until), default=-1)
        for keep in positions:
            if (begin := self._find_begin(keep)) is not None and begin > broken:
                yield max(begin, self.first), keep

    def find_settled_begin(self, position: int) -> int | None:
        """Return where to begin to read for queries that stand at a position as if they had read all; None where that
        is not known.

        What they find at each instant then is as in a slice. One event more, which they look back to no longer, tells
        changes of the background that come later that there were earlier events.
        """
        return self._find_begin(position, settled=True)

    def _find_begin(self, keep: int, *, settled: bool = False) -> int | None:
        """Return where a slice begins to read whose solutions count from a position on; None where none can."""
        begins = [keep]
        for query in self.queries:
            time = None if query.reach.micros is None else self._find_time(keep, query.rests_on)
            if time is None or query.reach.micros is None:
                return None
            since = time - query.reach.micros
            found = self.outline.find_first(since, query.rests_on)
            begins.append(keep if found is None else found)
            if settled or query.reach.opens:  # its first instant lies before
                before, place = (since, begins[-1]) if settled else (time, keep)
                earlier = self.outline.find_earlier(before, query.reads - frozenset(self.written), place)
                if earlier is None or earlier < self.first:
                    return None
                begins.append(earlier)
        return min(begins)

    def _find_time(self, position: int, streams: frozenset[str]) -> Micros | None:
        """Return an instant before which nothing can come any more at a position; None where a stream has not been
        fed, or all have ended.
        """
        courses = self.outline.courses_at(position)
        least = END_OF_TIME
        for name in streams:
            course = courses.get(name)
            if course is not None and course.time.fed:
                least = min(least, course.time.watermark)
            elif name not in self.written:
                return None
        return least if NO_TIME < least < END_OF_TIME else None

    def _make_slice(self, first: int, keep: int, until: int) -> Slice:
        times = {name: course.time for name, course in self.outline.courses_at(first).items()}
        return Slice(first, keep, until, tuple(StreamMark(name, time.watermark, time.latest, time.fed) for name, time in times.items()))

    # ------------------------------------------------------------ what it costs
    def _count_events(self, first: int, until: int) -> int:
        return self.outline.count_events(until) - self.outline.count_events(first)

    def _longest(self, slices: Sequence[Slice], workers: int) -> float:
        """Return how many events the busiest worker reads at least, with what starting slices costs."""
        counts = [self._count_events(part.first, part.until) + SLICE_EVENTS // 2 for part in slices]
        return max(max(counts), sum(counts) / workers)
