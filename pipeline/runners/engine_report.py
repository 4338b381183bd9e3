"""This module reports what the engine of a partition keeps, in a small file that any process may read, the server
above all.

The file may be lost: it says as of which log position it is true, and is written anew while the log is read.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, field
from pathlib import Path
from weakref import WeakKeyDictionary

import msgspec

from engine.deadlines import find_deadlines
from engine.engine import Engine
from engine.messages import Micros
from engine.physical_plan.plan import Read
from engine.runtime.introspection import MOST_MATCHES, ChangedQueries, MatchWish, OperatorState, PartialMatch, Side, SideName
from engine.runtime.query_registry import Registry
from engine.state_size import Own, Quota, Usage
from epsparql.deferred_methods import dataclass
from pipeline.partition_count import name_of, recorded
from pipeline.status_files import note_path, read_checksum, read_note, write_note

_log = logging.getLogger(__name__)
_SHARE, _LEAST_S = 20, 0.05
"""A report is written when so many times as long has passed as the last one took: 5 % of the time at most.

And when so many seconds have passed.
"""


@dataclass(frozen=True, slots=True)
class Standing:
    """Represents a running query's state: how much there is, and at which operators; and what the query reads of the
    background.

    `waiting` has the oldest partial matches of each partition, which are decoded only where they are asked for.
    """

    usage: Usage
    quota: Quota
    operators: tuple[OperatorState, ...]
    reads: tuple[Read, ...] = ()
    waiting: tuple[msgspec.Raw, ...] = ()

    def list_partial_matches(self) -> list[PartialMatch]:
        """Return the oldest partial matches, by their ends."""
        found = [match for part in self.waiting for match in msgspec.json.decode(part, type=list[PartialMatch])]
        return sorted(found, key=lambda match: match.end)[:MOST_MATCHES]


@dataclass(frozen=True, slots=True)
class EngineReport:
    """Reports the running queries by their registrations, and what serves all of them, as of a log position.

    `limited` says why OWL 2 RL is not applied, though it is the regime, or why static rules are not ("": both are
    applied). `deadlines` are the instants for which queries wait, by stream. `derived` counts what static rules
    derive, by their registrations.
    """

    position: int
    own: Own
    queries: dict[int, Standing]
    limited: str = ""
    deadlines: dict[str, Micros] = field(default_factory=dict)
    derived: dict[int, int] = field(default_factory=dict)


class Reporter:
    """Writes the reports of one partition. `clock` gives seconds."""

    def __init__(self, data_dir: Path | str, partition: str, clock: Callable[[], float]) -> None:
        self._path, self._clock = note_path(data_dir, partition), clock
        self._after = -1.0
        self._position = -1
        self._limited = ""
        self._changed = ChangedQueries()
        self._standings: WeakKeyDictionary[object, dict[int, Standing]] = WeakKeyDictionary()  # by network

    def tell(self, engine: Engine) -> None:
        """Write what the engine keeps, if it has read on since the last report and that was not just now.

        Ignore a full disk.
        """
        began = self._clock()
        if engine.position == self._position or began < self._after:
            return
        report = self._make_report(engine)
        if report.limited not in ("", self._limited):
            _log.warning("not all that follows from the background is applied: %s", report.limited)
        self._limited = report.limited
        with suppress(OSError):
            write_note(self._path, msgspec.json.encode(report))
        self._position, ended = engine.position, self._clock()
        self._after = ended + max(_SHARE * (ended - began), _LEAST_S)

    def _make_report(self, engine: Engine) -> EngineReport:
        queries = dict[int, Standing]()
        for one in reversed(tuple(engine.registries())):  # side engines come first: they have copies of its rules
            queries |= self._find_standings(one)
        limited = "" if engine.registry.known.overflow is None else str(engine.registry.known.overflow)
        return EngineReport(engine.position, engine.own, queries, limited, find_deadlines(engine), engine.registry.known.count_derived())

    def _find_standings(self, registry: Registry) -> dict[int, Standing]:
        """Return the standings of an engine's queries; they are worked out anew only for queries that may have
        changed since the last report.
        """
        found = dict[int, Standing]()
        for network in (member.network for member in registry.members):
            changed, known = self._changed.find_changed(network), self._standings.get(network, {})
            queries = [registered for registered in network.planned if registered in registry.registered]
            own = {k: _standing_of(registry, k) if k in changed or k not in known else known[k] for k in queries}
            self._standings[network] = own
            found |= own
        return found


def find_matches(engine: Engine, registered: int, wish: MatchWish) -> list[PartialMatch]:
    """Return the partial matches of a query that are wanted; none of a query that does not run."""
    for registry in engine.registries():
        if any(registered in member.network.planned for member in registry.members):
            return registry.partial_matches(registered, wish)
    return []


def _standing_of(registry: Registry, registered: int) -> Standing:
    usage = registry.usage(registered)
    matches = registry.partial_matches(registered) if usage.goals else []
    waiting = (msgspec.Raw(msgspec.json.encode(matches)),) if matches else ()
    return Standing(usage, registry.quota(registered), registry.progress(registered), registry.reads(registered), waiting)


def read_report(data_dir: Path | str) -> EngineReport | None:
    """Return the last report of all partitions together; None before each has reported, and after another version."""
    return ReportReader(data_dir).read()


class ReportReader:
    """Reads the reports of the partitions, each again only once it has changed: that of thousands of queries takes
    milliseconds. Thread-safe.
    """

    def __init__(self, data_dir: Path | str) -> None:
        self._data = data_dir
        self._known: tuple[list[bytes], EngineReport | None] = [], None

    def read(self) -> EngineReport | None:
        """Return the last report of all partitions together; None before each has reported, and after another version."""
        partitions = recorded(self._data) or 1
        paths = [note_path(self._data, name_of(partition, partitions)) for partition in range(partitions)]
        checksums, known = [read_checksum(path) for path in paths], self._known
        if checksums == known[0]:
            return known[1]
        reports = [_read_report(path) for path in paths]
        told = [report for report in reports if report is not None]
        if len(told) < len(reports):
            return None
        found = _together(told)
        self._known = checksums, found
        return found


def _read_report(path: Path) -> EngineReport | None:
    note = read_note(path)
    with suppress(msgspec.DecodeError):
        return None if note is None else msgspec.json.decode(note, type=EngineReport)
    return None


def _together(reports: Sequence[EngineReport]) -> EngineReport:
    if len(reports) == 1:
        return reports[0]
    own = Own(*(sum(values) for values in zip(*(astuple(report.own) for report in reports), strict=True)))
    registered = sorted({number for report in reports for number in report.queries})
    queries = {number: _standing([report.queries[number] for report in reports if number in report.queries]) for number in registered}
    limited = max(report.limited for report in reports)
    return EngineReport(
        min(report.position for report in reports), own, queries, limited, _earliest([report.deadlines for report in reports]), reports[0].derived
    )


def _earliest(parts: Iterable[Mapping[str, Micros]]) -> dict[str, Micros]:
    """Return, by stream, the first deadline of any partition."""
    found: dict[str, Micros] = {}
    for part in parts:
        for name, deadline in part.items():
            found[name] = min(deadline, found.get(name, deadline))
    return found


@dataclass(frozen=True, slots=True)
class _Awaited:
    """Represents the part of a report that is read while nothing happens: decoding it passes over the rest."""

    deadlines: dict[str, Micros] = field(default_factory=dict)


class DeadlineReader:
    """Reads the deadlines of the partitions from their reports, each again only once it has changed."""

    def __init__(self, data_dir: Path | str) -> None:
        self._data = data_dir
        self._known: dict[Path, tuple[bytes, dict[str, Micros]]] = {}

    def read(self) -> dict[str, Micros]:
        """Return the least instant, by stream, that a query waits for.

        The stream's watermark has passed an instant that is stale.
        """
        partitions = recorded(self._data) or 1
        return _earliest([self._of(note_path(self._data, name_of(partition, partitions))) for partition in range(partitions)])

    def _of(self, path: Path) -> dict[str, Micros]:
        checksum = read_checksum(path)
        if path not in self._known or self._known[path][0] != checksum:
            deadlines: dict[str, Micros] = {}
            with suppress(msgspec.DecodeError):
                deadlines = msgspec.json.decode(read_note(path) or b"{}", type=_Awaited).deadlines
            self._known[path] = checksum, deadlines
        return self._known[path][1]


def _standing(parts: Sequence[Standing]) -> Standing:
    usage = Usage(sum(part.usage.goals for part in parts), sum(part.usage.state_bytes for part in parts))
    operators: dict[tuple[str, tuple[str, ...], int], list[OperatorState]] = {}
    for part in parts:
        met = Counter[tuple[str, tuple[str, ...]]]()
        for each in part.operators:
            met[each.operator, each.on] += 1
            operators.setdefault((each.operator, each.on, met[each.operator, each.on]), []).append(each)
    return Standing(
        usage, parts[0].quota, tuple(map(_operator, operators.values())), parts[0].reads, tuple(raw for part in parts for raw in part.waiting)
    )


def _operator(parts: Sequence[OperatorState]) -> OperatorState:
    sides: dict[SideName, list[Side]] = {}
    for part in parts:
        for side in part.sides:
            sides.setdefault(side.side, []).append(side)
    summed = tuple(
        Side(
            name,
            sum(side.goals for side in found),
            min((side.oldest for side in found if side.oldest is not None), default=None),
            sum(side.taken for side in found),
        )
        for name, found in sides.items()
    )
    given, refused = sum(part.given for part in parts), sum(part.refused for part in parts)
    size, failed = sum(part.state_bytes for part in parts), sum(part.failed for part in parts)
    return OperatorState(parts[0].operator, parts[0].on, summed, size, given, refused, parts[0].kind, failed)
