"""This module folds the log's entries into a catalogue: streams with their watermarks, and queries with their states."""

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Any, assert_never

import msgspec
from msgspec.structs import replace as replace_fields

from engine.messages import (
    CERTAIN,
    DROP,
    END_OF_TIME,
    RDFS,
    REPLACE,
    REVISED,
    CatchUp,
    ChangeInstances,
    Drop,
    DropStream,
    Entail,
    Events,
    Facts,
    Fail,
    Finish,
    MessageKey,
    Micros,
    Pause,
    Promote,
    Register,
    Resume,
    Revise,
    SetStream,
    StateChange,
    Tick,
    Withdraw,
)
from epsparql.deferred_methods import dataclass
from pipeline.log.codec import Record
from pipeline.log.lag import Waiting, add_waiting, release_waiting
from pipeline.source_positions import SourceState

CLOCK_SILENCE: Micros = 1_000_000
"""A stream without times of its own is silent for this long before the clock advances it."""


MAX_AHEAD: Micros = 86_400_000_000
"""A stream takes events that end at most this far beyond the clock, unless it says otherwise.

Streams of before that said nothing have no limit.
"""


class Stream(msgspec.Struct, frozen=True):
    """Represents a stream as of some log position. It is a struct because each body makes a new one.

    `latest` is the greatest end seen; `accepted` counts all rows, `late` those of them that were late. `sources` are
    the declared ones, and `declared` is the clock when they were.
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
    on_error: str = "refuse"  # logs of before also have `reject`
    rejected: int = 0  # rows of bodies that did not map
    message_key: MessageKey | None = None
    waiting: Waiting = ()  # accepted events that the watermark has not reached, where sources are declared
    revisable: Micros | None = None
    round: str = ""  # "microsecond", or "" for none
    prefixes: str = ""  # JSON text; "" for none
    instants: int | None = None  # the entry since which events that last are refused; None: they are taken
    local: int | None = None  # the entry since which a subject of another body is refused; None: it is taken
    retractable: Waiting = ()  # marks (end, position) of a revisable stream: all events before the position end by the instant

    @property
    def horizon(self) -> Micros:
        """Return how far the watermark lies behind the latest end."""
        return max(self.max_delay, self.revisable or 0)

    @property
    def reached(self) -> Micros | None:
        """Return the watermark that the stream would have without a delay."""
        if self.latest is None or self.watermark is None or self.finished:
            return self.watermark
        return min(self.latest, self.watermark + self.horizon)

    @property
    def silence(self) -> Micros | None:
        """Return for how long the stream, or a declared source, is silent before it counts as such; None for any time."""
        return CLOCK_SILENCE if self.by_clock else self.idle_timeout

    def after(self, latest: Micros | None) -> Micros | None:
        """Return the watermark once `latest` has been seen. It never falls, whatever becomes of max_delay."""
        if latest is None:
            return self.watermark
        return latest - self.horizon if self.watermark is None else max(self.watermark, latest - self.horizon)

    def advance(self, now: Micros, deadline: Micros) -> Micros | None:
        """Return the watermark to which the clock at `now` brings a silent stream; None while it does not pass the
        `deadline` of waiting queries.

        A deadline that the watermark has passed is an old one: so each deadline brings one advance, and no watermark
        ever falls.
        """
        silence = self.silence
        if silence is None or self.finished or self.latest is None or self.arrived is None or now - self.arrived < silence:
            return None
        return self.pass_deadline(self.latest - self.horizon + now - self.arrived, deadline)

    def pass_deadline(self, reached: Micros | None, deadline: Micros) -> Micros | None:
        """Return the watermark `reached` if it is the first beyond the deadline."""
        waits = self.watermark is None or self.watermark <= deadline
        return reached if waits and reached is not None and reached > deadline else None

    def is_clocked(self, by_clock: bool, rows: int) -> bool:
        """Return whether all events took the arrival time, once so many rows have come which did (`by_clock`) or did
        not.
        """
        return by_clock and (self.by_clock or not self.accepted) if rows else self.by_clock


@dataclass(frozen=True, slots=True)
class Version:
    """Represents a text of a query. `offset` is that of its registration or promotion, and `at` the clock when that
    was written.

    `state` is promoted, failed or withdrawn with the reason, or waiting: then `reads` is how far the text has read
    the log, if it is behind. A text that was promoted has a `number`, and its solutions are those of the entries from
    `position` on.
    """

    offset: int
    text: str
    policy: str
    default_graph: str
    reads_from: int | None
    at: Micros = 0
    by: str = ""
    keeps: bool = False
    reads: int | None = None
    state: str = "waiting"
    reason: str = ""
    number: int = 0
    position: int = 0


@dataclass(frozen=True, slots=True)
class Registration:
    """Represents a registered query; `registered`, the offset of its entry, identifies it. `state` is running,
    paused, completed or failed.

    A completed rule gives nothing more, but keeps its place: time on the stream that it writes still comes through
    it. A query that is behind the others has read the log up to `reads`, and catches up together with the one
    registered at `lead`. Any other query runs with the others, since the entry `since` if it was ever behind.

    `versions` are its first text and those that were to take its place. A catalog has the first text in `text`, and
    does not know which were promoted: `with_changes` does.
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
    at: Micros = 0  # the clock at its registration; 0 where an earlier version of the server wrote it
    versions: tuple[Version, ...] = ()
    emit: str = CERTAIN
    node_names: int = 1
    instants: bool = False
    local: tuple[str, ...] = ()
    max_state_bytes: int = 0

    @property
    def stands(self) -> bool:
        return self.state != "failed"

    @property
    def first_version(self) -> Version:
        return Version(
            self.registered, self.text, self.policy, self.default_graph, self.reads_from, self.at, state="promoted", number=1,
            position=self.registered,
        )  # fmt: skip

    @property
    def promoted(self) -> tuple[Version, ...]:
        """Return the texts that the query has had, the present one last."""
        return tuple(version for version in self.versions if version.state == "promoted") or (self.first_version,)

    @property
    def waiting(self) -> Version | None:
        """Return the text that is to take the query's place."""
        return next((version for version in reversed(self.versions) if version.state == "waiting"), None)

    def as_of(self, entry: int) -> "Registration":
        """Return the registration with the text whose solutions this entry of the log brought."""
        version = next((each for each in reversed(self.promoted) if each.position <= entry), self.first_version)
        return self._with_text(version)

    def _with_text(self, version: Version) -> "Registration":
        return replace(self, text=version.text, policy=version.policy, default_graph=version.default_graph, reads_from=version.reads_from)

    def after_changes(self, changes: Mapping[int, StateChange]) -> "Registration":
        """Return the registration with what the runner reported, by registration or promotion."""
        found = self
        if self.versions:
            versions = list[Version]()
            for version in self.versions:
                if (change := changes.get(version.offset)) is not None and version.offset != self.registered:
                    before = [each for each in versions if each.state == "promoted"]
                    begins = before[-1].reads_from if version.keeps else version.offset + 1 if version.reads_from is None else version.reads_from
                    version = replace(
                        version, reads_from=None if begins == self.registered + 1 else begins, state=change.state, reason=change.reason,
                        number=len(before) + 1, position=change.entry,
                    )  # fmt: skip
                versions.append(version)
            now = [version for version in versions if version.state == "promoted"][-1]
            found = replace(self._with_text(now), versions=tuple(versions))
        own = changes.get(self.registered)
        return found if own is None else replace(found, state=own.state, reason=own.reason)


@dataclass(frozen=True, slots=True)
class BackgroundGraph:
    """Represents a background graph by the log entries whose triples it has.

    `size` is the length of their texts, in characters.
    """

    name: str  # "" for no graph
    entries: tuple[int, ...] = ()
    size: int = 0

    @property
    def offset(self) -> int:
        """Return the offset of the graph's latest change."""
        return self.entries[-1]


class Instance(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Records an instance of a query with PARAMETERS: its `terms`, as a JSON array.

    Its life began with the entry `since`, before which its id named another instance, or none.
    """

    since: int
    terms: str


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
    unrevised: dict[str, int] = field(default_factory=dict)
    """The first entry, by stream, that revised queries have not told the consequences of; the key is "" for changes
    of what they rest on.
    """
    instances: dict[int, dict[str, Instance]] = field(default_factory=dict)
    """The instances of each query with PARAMETERS, by registration and id."""
    leads: frozenset[int] = field(init=False)  # registrations with which queries catch up
    newest: int = field(init=False, default=-1)
    """The latest registration.

    Whoever has looked at all queries up to it need not look through thousands of them again.
    """
    _revised: set[int] = field(init=False)  # registrations of the queries that are emitted as revised

    def __post_init__(self) -> None:
        self._note_leads()
        self.newest = max((query.registered for query in self.queries.values()), default=-1)
        self._revised = {query.registered for query in self.queries.values() if query.emit == REVISED}

    def _note_leads(self) -> None:
        leads = {query.lead for query in self.queries.values() if query.lead is not None}
        reading = {version.offset for query in self.queries.values() for version in query.versions if version.reads is not None}
        self.leads = frozenset(leads | reading)

    @property
    def message_keys(self) -> dict[str, MessageKey]:
        """Return the message keys that streams declare."""
        return {name: stream.message_key for name, stream in list(self.streams.items()) if stream.message_key is not None}

    def stream(self, name: str) -> Stream:
        """Return the stream, or the one that feeding it now would create."""
        return self.streams.get(name) or Stream(name, self.position)

    def advance(self, name: str, now: Micros, deadline: Micros, opened: Micros) -> Micros | None:
        """Return the watermark to which the clock brings a stream whose declared sources, or which itself, fell
        silent; None for no change.

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
                self.position = entry.offset + 1
                return
            case Tick():
                self._pass_time(entry)
            case Finish():
                self.streams[entry.stream] = replace_fields(self.stream(entry.stream), finished=True, watermark=END_OF_TIME, waiting=())
            case SetStream():
                self._set(entry, at)
            case DropStream():
                self.streams.pop(entry.stream, None)
                self.sources.pop(entry.stream, None)
            case Register():
                self._register(entry, at)
            case Pause():
                self._pause(entry)
            case Resume():
                self._change({entry.registered}, state="running")
            case CatchUp():
                self._catch_up(entry)
            case Promote():
                self._promote(entry, at)
            case Withdraw():
                self._change_version(entry.promotion, state="withdrawn", reason=entry.reason, reads=None)
            case Revise():
                self.unrevised = {}
            case Drop():
                self._remove_query(entry.name, entry.registered)
            case ChangeInstances():
                self._change_instances(entry)
            case Fail():
                pass  # the solution log tells that it has failed
            case Facts():
                self._learn(entry)
            case Entail():
                self.entailment = entry.regime
            case _:
                assert_never(entry)
        if isinstance(entry, Register | Pause | CatchUp | Promote | Withdraw | Drop) and (self.leads or _may_lead(entry)):
            self._note_leads()
        if self._revised and isinstance(entry, Register | Pause | CatchUp | Promote | Withdraw | Drop | Fail | Facts | Entail | DropStream):
            self.unrevised.setdefault("", entry.offset)  # it may change what stands of revised queries otherwise than by going on
        self.position = entry.offset + 1

    def _pass_time(self, entry: Tick) -> None:
        if entry.stream is not None:
            stream = self.stream(entry.stream)
            left = release_waiting(stream.waiting, entry.watermark)
            self.streams[entry.stream] = replace_fields(stream, watermark=entry.watermark, waiting=left)

    def _note_events(self, entry: Events, record: Record, at: Micros) -> None:
        known = self.stream(entry.stream)
        waiting: Waiting = ()
        if known.sources:
            declared = entry.source is not None and entry.source[0] in known.sources
            end = record.source_latest if declared else record.latest
            added = known.waiting if end is None else add_waiting(known.waiting, end, entry.rows - record.late)
            waiting = release_waiting(added, entry.watermark)
        self.streams[entry.stream] = replace_fields(
            known,
            waiting=waiting,
            max_ahead=known.max_ahead if record.max_ahead is None else record.max_ahead,
            latest=record.latest,
            watermark=entry.watermark,
            accepted=known.accepted + entry.rows,
            late=known.late + record.late,
            arrived=at,
            by_clock=known.is_clocked(record.by_clock, entry.rows),
            rejected=known.rejected + len(record.rejected) + record.skipped,
            retractable=known.retractable if known.revisable is None else _mark_retractable(known, entry, record.latest),
        )
        if entry.revises and self._revised:
            self.unrevised.setdefault(entry.stream, entry.offset)
        if entry.source is not None:
            name, position = entry.source
            sources = self.sources.setdefault(entry.stream, {})
            if position is None:
                sources.pop(name, None)
            else:
                sources[name] = SourceState(position, entry.offset + 1, at, record.source_latest)

    def _remove_query(self, name: str, registered: int | None = None) -> None:
        """Remove the query of a name, or only that of this registration."""
        known = self.queries.get(name)
        if known is not None and registered in (None, known.registered):
            del self.queries[name]
            self._revised.discard(known.registered)
            self.instances.pop(known.registered, None)

    def _change_instances(self, entry: ChangeInstances) -> None:
        known = self.queries.get(entry.name)
        if known is None or known.registered != entry.registered:
            return
        found = self.instances.setdefault(entry.registered, {})
        for name, terms in msgspec.json.decode(entry.changes, type=dict[str, msgspec.Raw]).items():
            if bytes(terms) == b"null":
                found.pop(name, None)
            else:
                before = found.get(name)
                found[name] = Instance(entry.offset if before is None else before.since, bytes(terms).decode())

    def _register(self, entry: Register, at: Micros) -> None:
        self._remove_query(entry.name)
        found = Registration(
            entry.offset, entry.name, entry.text, entry.policy, entry.default_graph, reads_from=entry.reads_from, at=at, emit=entry.emit,
            node_names=entry.node_names, instants=entry.instants, local=entry.local, max_state_bytes=entry.max_state_bytes,
        )  # fmt: skip
        if entry.reads_from is not None:
            found = replace(found, reads=entry.reads_from, lead=entry.offset)
            self.rereads[entry.offset] = entry.offset, 0, entry.offset  # entries before `reads_from` give the background and watermarks
            self._change(set(entry.holds), reads=entry.offset, lead=entry.offset)
        elif entry.waits_for is not None:
            found = replace(found, reads=entry.offset, lead=entry.waits_for)
        self.queries[entry.name] = found
        self.newest = entry.offset
        if entry.emit == REVISED:
            self._revised.add(entry.offset)

    def _pause(self, entry: Pause) -> None:
        self._change({entry.registered}, state="paused")
        if all(query.lead != entry.registered for query in self.queries.values()):
            self._change({entry.registered, *entry.holds}, reads=entry.offset, lead=entry.registered)
            self.rereads[entry.offset] = entry.registered, entry.offset, entry.offset

    def _catch_up(self, entry: CatchUp) -> None:
        if self._is_paused(entry.registered):  # since the entry was asked for; the engine passes over it too
            return
        begun = next((k for k, (lead, *_) in reversed(self.rereads.items()) if lead == entry.registered), None)  # the latest
        if begun is not None:
            self.rereads[begun] = (*self.rereads[begun][:2], entry.offset)
        self._change_version(entry.registered, reads=None if entry.upto == entry.offset else entry.upto)
        for query in self.behind(entry.registered):
            if entry.upto == entry.offset:
                self._change({query.registered}, reads=None, lead=None, since=entry.offset)
            elif query.reads is not None and query.reads < entry.upto:
                self._change({query.registered}, reads=entry.upto)

    def _promote(self, entry: Promote, at: Micros) -> None:
        known = self.queries.get(entry.name)
        if known is None or known.registered != entry.registered:
            return
        version = Version(
            entry.offset, entry.text, entry.policy, entry.default_graph, entry.reads_from, at, entry.by, entry.keeps,
            None if entry.reads_from is None else entry.begins or 0,  # entries before `reads_from` give the background and watermarks
        )  # fmt: skip
        versions = [each for each in known.versions or (known.first_version,) if each.state != "withdrawn"]
        self.queries[entry.name] = replace(known, versions=(*versions, version))
        if entry.reads_from is not None:
            self.rereads[entry.offset] = entry.offset, entry.begins or 0, entry.offset

    def _change_version(self, promotion: int, **changes: Any) -> None:
        """Change what is known of a promotion. It is the last of its query, because a query has one at a time."""
        for name, query in self.queries.items():
            if query.versions and query.versions[-1].offset == promotion:
                self.queries[name] = replace(query, versions=(*query.versions[:-1], replace(query.versions[-1], **changes)))
                return

    @property
    def texts(self) -> list[str]:
        """Return the texts of all queries, those that are no longer theirs, or not yet, included."""
        return [version.text for query in list(self.queries.values()) for version in query.versions or (query.first_version,)]

    def find_needed_position(self, start: int) -> int:
        """Return the position from which an engine needs the log when it reads on from `start`.

        Queries that are behind read again, and so do those that were behind at `start`.
        """
        again = [begin for lead, begin, last in list(self.rereads.values()) if lead in self.leads or last >= start]
        return min(again, default=start)

    def forget_before(self, oldest: int) -> None:
        """Forget the queries that were behind only before the position `oldest`: the log begins there, so no engine
        begins earlier.
        """
        self.rereads = {begun: reread for begun, reread in self.rereads.items() if reread[0] in self.leads or reread[2] >= oldest}

    def find_reads(self, lead: int) -> int | None:
        """Return up to where the queries that catch up together have read the log; None while they are paused."""
        versions = [version.reads for query in list(self.queries.values()) for version in query.versions[-1:] if version.offset == lead]
        if self._is_paused(lead):
            return None
        return min((reads for reads in (*versions, *(query.reads for query in self.behind(lead))) if reads is not None), default=None)

    def _is_paused(self, lead: int) -> bool:
        return any(query.registered == lead and query.state == "paused" for query in self.behind(lead))

    def behind(self, lead: int) -> list[Registration]:
        """Return the queries that catch up together."""
        return [query for query in list(self.queries.values()) if query.lead == lead]

    def _change(self, registered: set[int], **changes: Any) -> None:
        for name, query in self.queries.items():
            if query.registered in registered:
                self.queries[name] = replace(query, **changes)

    def _set(self, entry: SetStream, at: Micros) -> None:
        known = self.stream(entry.stream)
        changed = replace_fields(
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
            message_key=entry.message_key,
            revisable=entry.revisable,
            round=entry.round,
            prefixes=entry.prefixes,
            instants=_find_since(entry.instants, known.instants, entry.offset),
            local=_find_since(entry.local, known.local, entry.offset),
            retractable=() if entry.revisable is None else known.retractable or ((-END_OF_TIME, entry.offset + 1),),
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
        return {name: query.after_changes(found) for name, query in list(self.queries.items())}


def _find_since(wanted: bool, since: int | None, offset: int) -> int | None:
    """Return the entry since which a setting stands that the entry `offset` wants or not."""
    return None if not wanted else offset if since is None else since


def _may_lead(entry: Register | Pause | CatchUp | Promote | Withdraw | Drop) -> bool:
    """Return whether a query may catch up after an entry where none did before."""
    return isinstance(entry, Pause | Promote) or (isinstance(entry, Register) and (entry.reads_from, entry.waits_for) != (None, None))


_MARKS = 64


def _mark_retractable(stream: Stream, entry: Events, latest: Micros | None) -> Waiting:
    """Return the marks of a revisable stream after an entry.

    They are some way apart. All but the last of those that the watermark has passed are forgotten.
    """
    marks = stream.retractable
    if latest is None:
        return marks
    if latest - marks[-1][0] >= max(stream.horizon // _MARKS, 1):
        marks = (*marks, (latest, entry.offset + 1))
    passed = [place for place, (end, _) in enumerate(marks) if entry.watermark is not None and end < entry.watermark]
    return marks[passed[-1] :] if passed else marks


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
