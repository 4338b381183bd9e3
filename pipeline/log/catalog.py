"""This module folds the log's entries into a catalogue: streams with their watermarks, and queries with their states."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from engine.messages import (
    DROP,
    END_OF_TIME,
    RDFS,
    REPLACE,
    CatchUp,
    Drop,
    DropStream,
    Entail,
    Events,
    Facts,
    Finish,
    Micros,
    Pause,
    Register,
    Resume,
    SetStream,
    StateChange,
    Tick,
)
from pipeline.log.codec import Record
from pipeline.log.lag import Waiting, add_waiting, release_waiting
from pipeline.source_positions import SourceState

CLOCK_SILENCE: Micros = 1_000_000
"""A stream without times of its own is silent for this long before the clock advances it."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Represents a stream as of some log position.

    `latest` is the greatest end seen; `accepted` counts all rows, `late` those of them that were late. `sources` are the declared ones, and
    `declared` is the clock when they were.
    """

    name: str
    created: int
    max_delay: Micros = 0
    idle_timeout: Micros | None = None
    max_ahead: Micros | None = None
    description: str = ""
    latest: Micros | None = None
    watermark: Micros | None = None
    finished: bool = False
    accepted: int = 0
    late: int = 0
    arrived: Micros | None = None  # clock at its last events
    by_clock: bool = False  # true where all its events took the server's arrival time
    sources: tuple[str, ...] = ()
    declared: Micros | None = None
    base: str = ""
    mapping: str = ""  # JSON text; "" for none
    on_error: str = "reject"
    rejected: int = 0  # rows of bodies that did not map
    waiting: Waiting = ()  # accepted events that the watermark has not reached, where sources are declared

    @property
    def silence(self) -> Micros | None:
        """Return for how long the stream, or a declared source, is silent before it counts as such; None for any time."""
        return CLOCK_SILENCE if self.by_clock else self.idle_timeout

    def after(self, latest: Micros | None) -> Micros | None:
        """Return the watermark once `latest` has been seen. It never falls, whatever becomes of max_delay."""
        if latest is None:
            return self.watermark
        return latest - self.max_delay if self.watermark is None else max(self.watermark, latest - self.max_delay)

    def advance(self, now: Micros, deadline: Micros) -> Micros | None:
        """Return the watermark to which the clock at `now` brings a silent stream; None while it does not pass the `deadline` of waiting queries.

        A deadline that the watermark has passed is an old one: so each deadline brings one advance, and no watermark ever falls.
        """
        silence = self.silence
        if silence is None or self.finished or self.latest is None or self.arrived is None or now - self.arrived < silence:
            return None
        return self.pass_deadline(self.latest - self.max_delay + now - self.arrived, deadline)

    def pass_deadline(self, reached: Micros | None, deadline: Micros) -> Micros | None:
        """Return the watermark `reached` if it is the first beyond the deadline."""
        waits = self.watermark is None or self.watermark <= deadline
        return reached if waits and reached is not None and reached > deadline else None

    def is_clocked(self, by_clock: bool, rows: int) -> bool:
        """Return whether all events took the arrival time, once so many rows have come which did (`by_clock`) or did not."""
        return by_clock and (self.by_clock or not self.accepted) if rows else self.by_clock


@dataclass(frozen=True, slots=True)
class Registration:
    """Represents a registered query; `registered`, the offset of its entry, identifies it. `state` is running, paused, completed or failed.

    A completed rule gives nothing more, but keeps its place: time on the stream that it writes still comes through it. A query that is behind the
    others has read the log up to `reads`, and catches up together with the one registered at `lead`. Any other query runs with the others, since the
    entry `since` if it was ever behind.
    """

    registered: int
    name: str
    text: str
    policy: str = "unrestricted"
    default_graph: str = "all"
    state: str = "running"
    reason: str = ""
    reads_from: int | None = None
    reads: int | None = None
    lead: int | None = None
    since: int = 0

    @property
    def stands(self) -> bool:
        return self.state != "failed"


@dataclass(frozen=True, slots=True)
class BackgroundGraph:
    """Represents a background graph by the log entries whose triples it has. `size` is the length of their texts, in characters."""

    name: str  # "" for no graph
    entries: tuple[int, ...] = ()
    size: int = 0

    @property
    def offset(self) -> int:
        """Return the offset of the graph's latest change."""
        return self.entries[-1]


@dataclass(slots=True)
class Catalogue:
    """Folds a log's entries. One thread applies; values are frozen and replaced, so any thread may look meanwhile."""

    position: int = 0
    streams: dict[str, Stream] = field(default_factory=dict)
    queries: dict[str, Registration] = field(default_factory=dict)  # the key is the name; the order is that of registration
    graphs: dict[str, BackgroundGraph] = field(default_factory=dict)  # these are the background graphs
    entailment: str = RDFS
    rereads: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """The key is the entry from which queries were behind.

    The value is their lead, where they began to read again, and the last entry that let them.
    """
    sources: dict[str, dict[str, SourceState]] = field(default_factory=dict)  # by stream and the source's id
    leads: frozenset[int] = field(init=False)  # registrations with which queries catch up

    def __post_init__(self) -> None:
        self._note_leads()

    def _note_leads(self) -> None:
        self.leads = frozenset(query.lead for query in self.queries.values() if query.lead is not None)

    def stream(self, name: str) -> Stream:
        """Return the stream, or the one that feeding it now would create."""
        return self.streams.get(name) or Stream(name, self.position)

    def advance(self, name: str, now: Micros, deadline: Micros, opened: Micros) -> Micros | None:
        """Return the watermark to which the clock brings a stream whose declared sources, or which itself, fell silent; None for no change.

        A silence begins no earlier than `opened`, when the writer was: while there is none, a source cannot be heard.
        """
        stream = self.stream(name)
        ends = source_ends(stream, self.sources.get(name, {}), now, opened)
        if not ends:
            return stream.advance(now, deadline)
        return None if stream.finished else stream.pass_deadline(stream.after(least_end(ends)), deadline)

    def find_awaited(self, name: str, now: Micros, opened: Micros) -> list[str]:
        """Return the declared sources for which events of a stream wait."""
        stream = self.stream(name)
        return find_slowest(source_ends(stream, self.sources.get(name, {}), now, opened)) if stream.waiting and not stream.finished else []

    def apply(self, record: Record, at: Micros) -> None:
        """Take in the next entry, written at clock `at`."""
        entry = record.entry
        match entry:
            case Events():
                self._note_events(entry, record, at)
            case Tick():
                if entry.stream is not None:
                    stream = self.stream(entry.stream)
                    left = release_waiting(stream.waiting, entry.watermark)
                    self.streams[entry.stream] = replace(stream, watermark=entry.watermark, waiting=left)
            case Finish():
                self.streams[entry.stream] = replace(self.stream(entry.stream), finished=True, watermark=END_OF_TIME, waiting=())
            case SetStream():
                self._set(entry, at)
            case DropStream():
                self.streams.pop(entry.stream, None)
                self.sources.pop(entry.stream, None)
            case Register():
                self._register(entry)
            case Pause():
                self._pause(entry)
            case Resume():
                self._change({entry.registered}, state="running")
            case CatchUp():
                self._catch_up(entry)
            case Drop():
                if (known := self.queries.get(entry.name)) is not None and known.registered == entry.registered:
                    del self.queries[entry.name]
            case Facts():
                self._learn(entry)
            case Entail():
                self.entailment = entry.regime
            case _:
                assert_never(entry)
        if isinstance(entry, Register | Pause | CatchUp | Drop):
            self._note_leads()
        self.position = entry.offset + 1

    def _note_events(self, entry: Events, record: Record, at: Micros) -> None:
        known = self.stream(entry.stream)
        waiting: Waiting = ()
        if known.sources:
            declared = entry.source is not None and entry.source[0] in known.sources
            end = record.source_latest if declared else record.latest
            added = known.waiting if end is None else add_waiting(known.waiting, end, entry.rows - record.late)
            waiting = release_waiting(added, entry.watermark)
        self.streams[entry.stream] = replace(
            known,
            waiting=waiting,
            latest=record.latest,
            watermark=entry.watermark,
            accepted=known.accepted + entry.rows,
            late=known.late + record.late,
            arrived=at,
            by_clock=known.is_clocked(record.by_clock, entry.rows),
            rejected=known.rejected + len(record.rejected),
        )
        if entry.source is not None:
            name, position = entry.source
            sources = self.sources.setdefault(entry.stream, {})
            if position is None:
                sources.pop(name, None)
            else:
                sources[name] = SourceState(position, entry.offset + 1, at, record.source_latest)

    def _register(self, entry: Register) -> None:
        self.queries.pop(entry.name, None)
        found = Registration(entry.offset, entry.name, entry.text, entry.policy, entry.default_graph, reads_from=entry.reads_from)
        if entry.reads_from is not None:
            found = replace(found, reads=entry.reads_from, lead=entry.offset)
            self.rereads[entry.offset] = entry.offset, 0, entry.offset  # entries before `reads_from` give the background and watermarks
            self._change(set(entry.holds), reads=entry.offset, lead=entry.offset)
        elif entry.waits_for is not None:
            found = replace(found, reads=entry.offset, lead=entry.waits_for)
        self.queries[entry.name] = found

    def _pause(self, entry: Pause) -> None:
        self._change({entry.registered}, state="paused")
        if all(query.lead != entry.registered for query in self.queries.values()):
            self._change({entry.registered, *entry.holds}, reads=entry.offset, lead=entry.registered)
            self.rereads[entry.offset] = entry.registered, entry.offset, entry.offset

    def _catch_up(self, entry: CatchUp) -> None:
        begun = next((k for k, (lead, *_) in reversed(self.rereads.items()) if lead == entry.registered), None)  # the latest
        if begun is not None:
            self.rereads[begun] = (*self.rereads[begun][:2], entry.offset)
        for query in self.behind(entry.registered):
            if entry.upto == entry.offset:
                self._change({query.registered}, reads=None, lead=None, since=entry.offset)
            elif query.reads is not None and query.reads < entry.upto:
                self._change({query.registered}, reads=entry.upto)

    def needed_from(self, start: int) -> int:
        """Return the position from which an engine needs the log when it reads on from `start`.

        Queries that are behind read again, and so do those that were behind at `start`.
        """
        again = [begin for lead, begin, last in list(self.rereads.values()) if lead in self.leads or last >= start]
        return min(again, default=start)

    def forget_before(self, oldest: int) -> None:
        """Forget the queries that were behind only before the position `oldest`: the log begins there, so no engine begins earlier."""
        self.rereads = {begun: reread for begun, reread in self.rereads.items() if reread[0] in self.leads or reread[2] >= oldest}

    def behind(self, lead: int) -> list[Registration]:
        """Return the queries that catch up together."""
        return [query for query in list(self.queries.values()) if query.lead == lead]

    def _change(self, registered: set[int], **changes: Any) -> None:
        for name, query in self.queries.items():
            if query.registered in registered:
                self.queries[name] = replace(query, **changes)

    def _set(self, entry: SetStream, at: Micros) -> None:
        known = self.stream(entry.stream)
        changed = replace(
            known,
            max_delay=entry.max_delay,
            idle_timeout=entry.idle_timeout,
            max_ahead=entry.max_ahead,
            description=entry.description,
            sources=entry.sources,
            waiting=known.waiting if entry.sources else (),
            declared=known.declared if entry.sources == known.sources else at,
            base=entry.base,
            mapping=entry.mapping,
            on_error=entry.on_error,
        )
        self.streams[entry.stream] = changed

    def _learn(self, entry: Facts) -> None:
        known = self.graphs.pop(entry.graph, None)
        if entry.change == REPLACE or known is None:
            known = BackgroundGraph(entry.graph)
        if entry.change != DROP:
            self.graphs[entry.graph] = BackgroundGraph(entry.graph, (*known.entries, entry.offset), known.size + len(entry.triples))

    def with_changes(self, changes: Iterable[StateChange]) -> dict[str, Registration]:
        """Return the queries, with the states that the runner reported in `changes`."""
        found = {change.registered: change for change in changes}
        return {
            name: replace(query, state=found[query.registered].state, reason=found[query.registered].reason) if query.registered in found else query
            for name, query in list(self.queries.items())
        }


Ends = Mapping[str, Micros | None]


def source_ends(stream: Stream, sources: Mapping[str, SourceState], now: Micros, opened: Micros) -> Ends:
    """Return the latest end of each declared source that is not silent; None for one that has brought no events."""
    found: dict[str, Micros | None] = {}
    for name in stream.sources:
        state = sources.get(name)
        heard = max(opened, (stream.declared or 0) if state is None else state.arrived)
        if stream.silence is None or now - heard < stream.silence:
            found[name] = None if state is None else state.latest
    return found


def least_end(ends: Ends) -> Micros | None:
    """Return the least of the sources' latest ends; None while one of them has none."""
    return min((end for end in ends.values() if end is not None), default=None) if None not in ends.values() else None


def find_slowest(ends: Ends) -> list[str]:
    """Return the sources that hold the watermark."""
    least = least_end(ends)
    return [name for name, end in ends.items() if end == least]
