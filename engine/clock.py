"""Streams' watermarks over a span of the log, and which occurrences time releases at which entry (semantics.md section 8)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.entries import END_OF_TIME, Entry, Events, Finish, Tick

Ints = NDArray[np.int64]
NO_TIME = -(1 << 62)
"""The time of a query before any of its streams has a watermark."""


@dataclass(slots=True)
class Stream:
    """What an engine knows of a stream, in µs: its watermark, and the latest end of its occurrences."""

    watermark: int = NO_TIME
    latest: int = NO_TIME
    fed: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """Watermarks of the streams after each of n entries; `fed` says from where on a stream counts."""

    watermarks: Mapping[str, Ints]
    fed: Mapping[str, Ints]
    latest: Mapping[str, Ints]  # the latest end so far
    n: int


def latest_ends(entries: Sequence[Entry], end: Ints) -> dict[int, int]:
    """By offset, the latest end of what each of a block's Events brings; its occurrences end at `end`, in order."""
    events = [entry for entry in entries if isinstance(entry, Events) and entry.rows]
    if not events:
        return {}
    starts = np.cumsum([0, *(entry.rows for entry in events[:-1])])
    return dict(zip((entry.offset for entry in events), np.maximum.reduceat(end, starts).tolist(), strict=True))


def advance(streams: dict[str, Stream], entries: Sequence[Entry], ends: Mapping[int, int]) -> Span:
    """Takes the streams over the entries; `ends` is what `latest_ends` gave for their block."""
    n = len(entries)
    marks: dict[str, Ints] = {}
    fed: dict[str, Ints] = {}
    latest: dict[str, Ints] = {}
    for k, entry in enumerate(entries):
        if not isinstance(entry, Events | Tick | Finish) or entry.stream is None:
            continue
        state = streams.setdefault(entry.stream, Stream())
        if entry.stream not in marks:
            marks[entry.stream] = np.full(n, state.watermark, np.int64)
            fed[entry.stream] = np.full(n, state.fed, np.int64)
            latest[entry.stream] = np.full(n, state.latest, np.int64)
        mark = END_OF_TIME if isinstance(entry, Finish) else entry.watermark
        if mark is not None and mark > state.watermark:
            state.watermark = mark
        state.fed = True
        state.latest = max(state.latest, ends.get(entry.offset, NO_TIME))
        latest[entry.stream][k] = state.latest
        marks[entry.stream][k] = state.watermark
        fed[entry.stream][k] = 1
    for name, mark_column in marks.items():
        np.maximum.accumulate(mark_column, out=mark_column)
        np.maximum.accumulate(fed[name], out=fed[name])
        np.maximum.accumulate(latest[name], out=latest[name])
    return Span(marks, fed, latest, n)


def latest_of(gate: Sequence[str], streams: Mapping[str, Stream], span: Span) -> Ints:
    """The latest end on any stream of a gate, after each entry."""
    found = np.full(span.n, NO_TIME, np.int64)
    for name in gate:
        known = streams[name].latest if name in streams else NO_TIME
        np.maximum(found, span.latest.get(name, np.full(span.n, known, np.int64)), out=found)
    return found


def time_of(gate: Sequence[str], sources: Mapping[str, frozenset[str]], streams: Mapping[str, Stream], span: Span, before: int) -> Ints:
    """A query's time after each entry: the least watermark of the fed streams of its gate, and never less than before.

    A stream that was never fed holds its readers back, unless rules bring it what comes on others: `sources` has, for each stream that
    rules write, the other streams that these rest on.
    """
    if len(gate) == 1 and gate[0] in span.fed and span.fed[gate[0]][0]:
        return np.maximum(span.watermarks[gate[0]], before)
    least = np.full(span.n, END_OF_TIME, np.int64)
    counted = np.zeros(span.n, bool)
    for name in gate:
        marks, fed = _marks_of(name, streams, span), _fed_of(name, streams, span)
        brought = np.zeros(span.n, bool)
        for source in sources.get(name, ()):
            brought |= _fed_of(source, streams, span) | (source not in sources)
        counts = fed | ~brought
        least = np.where(counts, np.minimum(least, np.where(fed, marks, NO_TIME)), least)
        counted |= counts
    time = np.where(counted, least, NO_TIME)
    np.maximum.accumulate(time, out=time)
    return np.maximum(time, before)


def _marks_of(name: str, streams: Mapping[str, Stream], span: Span) -> Ints:
    return span.watermarks.get(name, np.full(span.n, streams[name].watermark if name in streams else NO_TIME, np.int64))


def _fed_of(name: str, streams: Mapping[str, Stream], span: Span) -> NDArray[np.bool_]:
    return span.fed.get(name, np.full(span.n, name in streams and streams[name].fed, np.int64)).astype(bool)


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """Occurrences that wait for time: columns of equal length; `entry` is where each was accepted or derived (an offset)."""

    stream: Ints
    s: Ints
    p: Ints
    o: Ints
    g: Ints  # 0 for no graph
    start: Ints
    end: Ints
    entry: Ints

    def __len__(self) -> int:
        return len(self.end)

    def where(self, chosen: NDArray[np.bool_] | Ints) -> "Arrivals":
        return Arrivals(*(getattr(self, name)[chosen] for name in COLUMNS))


COLUMNS = ("stream", "s", "p", "o", "g", "start", "end", "entry")
NO_ARRIVALS = Arrivals(*(np.zeros(0, np.int64) for _ in COLUMNS))


def together(parts: Sequence[Arrivals]) -> Arrivals:
    if len(parts) == 1:
        return parts[0]
    return Arrivals(*(np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS))
