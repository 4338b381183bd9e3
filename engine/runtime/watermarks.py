"""This module keeps streams' watermarks, the time of what rests on them (semantics.md section 8), and occurrences on
their way to a kernel.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from engine.dictionary.batch_layout import FIRST_TERM, HEIGHT, ROW, SINCE, WHOLE_SUBJECT
from engine.kernel.state import layout as c
from engine.messages import END_OF_TIME, Entry, Events, Finish, Micros, SetStream, Tick
from epsparql.deferred_methods import dataclass

Ints = NDArray[np.int64]
NO_TIME = -(1 << 62)
"""A query has this time before any of its streams has a watermark."""
NO_MARK = 1 << 62
"""This instant is beyond all watermarks."""


@dataclass(slots=True)
class StreamTime:
    """Holds what an engine knows of a stream, in µs: its watermark, and the latest end of its occurrences.

    The watermark lies `horizon` behind what was `reached`, which is the watermark that the stream would have without
    a delay.
    """

    watermark: int = NO_TIME
    latest: int = NO_TIME
    fed: bool = False
    horizon: int = 0
    reached: int = NO_TIME
    revisable: bool = False


def advance_stream(streams: dict[str, StreamTime], entry: Entry, ends: Mapping[int, int]) -> str | None:
    """Take a stream over an entry and return its name, if its time may move; `ends` is what `latest_ends` gave for
    its block.
    """
    if isinstance(entry, SetStream):
        known = streams.setdefault(entry.stream, StreamTime())
        known.horizon, known.revisable = max(entry.max_delay, entry.revisable or 0), entry.revisable is not None
    if not isinstance(entry, (Events, Tick, Finish)) or entry.stream is None:
        return None
    advance_to(streams, entry.stream, END_OF_TIME if isinstance(entry, Finish) else entry.watermark, ends.get(entry.offset, NO_TIME))
    stream = streams[entry.stream]
    if not isinstance(entry, Events) and stream.watermark > NO_TIME:  # time passes without an occurrence
        stream.reached = max(stream.reached, min(stream.watermark + stream.horizon, END_OF_TIME))
    return entry.stream


def advance_to(streams: dict[str, StreamTime], name: str, watermark: Micros | None, latest: int) -> None:
    """Take a stream over an entry that leaves it at this watermark, if it has one then, and whose occurrences end by
    `latest`.
    """
    stream = streams.get(name)
    if stream is None:
        stream = streams[name] = StreamTime()
    if watermark is not None and watermark > stream.watermark:
        stream.watermark = watermark
    if latest > stream.latest:
        stream.latest = latest
    reached, latest = stream.watermark + stream.horizon, stream.latest
    if reached > latest:
        reached = latest
    if reached > stream.reached:
        stream.reached = reached
    stream.fed = True


def find_latest(gate: Collection[str], streams: Mapping[str, StreamTime]) -> int:
    """Return the latest end on any stream of a gate."""
    return max((streams[name].latest for name in gate if name in streams), default=NO_TIME)


def find_query_time(gate: Collection[str], sources: Mapping[str, frozenset[str]], streams: Mapping[str, StreamTime], before: int) -> int:
    """Return a query's time: the least watermark of the fed streams of its gate, and never less than before.

    A stream that was never fed holds its readers back, unless rules bring it what comes on others. For each stream
    that rules write, `sources` has the other streams that these rest on.
    """
    least = NO_MARK
    for name in gate:
        stream = streams.get(name)
        if stream is not None and stream.fed:
            if stream.watermark < least:
                least = stream.watermark
        elif not any(source not in sources or (source in streams and streams[source].fed) for source in sources.get(name, ())):
            return before
    return least if before < least < NO_MARK else before


@dataclass(slots=True, eq=False)
class NetworkTime:
    """Follows a network's time over a span of entries, `now` after those so far.

    `latest` has, by place of entries that may end all, the latest end so far.
    """

    now: int
    times: Ints
    latest: dict[int, int] = field(default_factory=dict)

    @classmethod
    def from_time(cls, before: int, n: int) -> "NetworkTime":
        return cls(before, np.full(n, before, np.int64))

    def reach(self, k: int, time: int) -> None:
        """Note that entry `k` comes, and leaves the network at `time`."""
        self.now = self.times[k] = time

    @property
    def time(self) -> Ints:
        """Return the time after each entry."""
        return np.maximum.accumulate(self.times)


@dataclass(slots=True, eq=False)
class Arrivals:
    """Holds occurrences that wait for time, as columns of a kernel's feed: `since` is where each was accepted or
    derived (an offset).

    IN_STREAM and IN_ENTRY are for each network that is fed to write.
    """

    table: Ints  # FEED_HEIGHT x n

    def __len__(self) -> int:
        return int(self.table.shape[1])

    @property
    def end(self) -> Ints:
        found: Ints = self.table[c.IN_END]
        return found

    @property
    def row(self) -> Ints:
        """Return which row of its block each occurrence was, until a network is fed."""
        found: Ints = self.table[c.IN_ENTRY]
        return found

    @property
    def since(self) -> Ints:
        found: Ints = self.table[c.IN_SINCE]
        return found

    def where(self, chosen: NDArray[np.bool_] | Ints) -> "Arrivals":
        """Return a copy of some of the occurrences, in the order of `chosen` if that numbers them."""
        return Arrivals(self.table.take(chosen if chosen.dtype != np.bool_ else np.flatnonzero(chosen), axis=1))


NO_ARRIVALS = Arrivals(np.zeros((c.FEED_HEIGHT, 0), np.int64))


assert (c.IN_KIND, c.OCCURRENCE, c.WHOLE, c.IN_S) == (0, 0, WHOLE_SUBJECT, FIRST_TERM), "a feed is what `take` fills"
assert (c.IN_ENTRY, c.IN_SINCE, c.FEED_HEIGHT) == (ROW, SINCE, HEIGHT), "a feed is what `take` fills"


def find_latest_ends(arrived: Arrivals) -> dict[int, int]:
    """Return, by offset, the latest end of what each entry brought; what an entry brought stands together."""
    since, end = arrived.since, arrived.end
    first = np.flatnonzero(np.diff(since, prepend=-1))
    return dict(zip(since[first].tolist(), np.maximum.reduceat(end, first).tolist(), strict=True)) if len(end) else {}


def find_latest_end(arrived: Arrivals) -> int:
    """Return the latest end of what one entry brought; NO_TIME if that is nothing."""
    table = arrived.table
    n = table.shape[1]
    return table.item(c.IN_END, 0) if n == 1 else int(table[c.IN_END].max()) if n else NO_TIME


def make_arrivals(s: Ints, p: Ints, o: Ints, g: Ints, start: Ints, end: Ints, since: Ints | int) -> Arrivals:
    """Return occurrences from their columns; `g` is 0 for no graph."""
    table = np.empty((c.FEED_HEIGHT, len(end)), np.int64)
    table[c.IN_KIND] = c.OCCURRENCE
    table[c.IN_S], table[c.IN_P], table[c.IN_O], table[c.IN_G] = s, p, o, g
    table[c.IN_START], table[c.IN_END], table[c.IN_SINCE] = start, end, since
    return Arrivals(table)


def concatenate_arrivals(parts: Sequence[Arrivals]) -> Arrivals:
    if len(parts) == 1:
        return parts[0]
    return Arrivals(np.concatenate([part.table for part in parts], axis=1))
