"""This module plans a trial: which queries run side by side over the log's past, and whose solutions are compared."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from engine.messages import Micros, Register
from epsparql.deferred_methods import dataclass
from pipeline.log.catalog import Registration
from pipeline.partition_count import name_of
from pipeline.registrations.query_cache import get_shape
from pipeline.registrations.stream_dependencies import find_sources, find_written
from pipeline.runners.snapshots import Snapshots

NEW, OLD = "new", "old"
SIDES = (NEW, OLD)


@dataclass(frozen=True, slots=True)
class Watched:
    """Names a registration whose solutions are compared, under a query's name, as those of one side."""

    registered: int
    name: str
    side: str


@dataclass(frozen=True, slots=True)
class EnginePlan:
    """Holds what one engine runs: its registrations in their order, and those of them that are watched."""

    registrations: tuple[Register, ...]
    watched: tuple[Watched, ...]


@dataclass(frozen=True, slots=True)
class TrialRange:
    """Bounds the part of the log that is read: positions [`first`, `until`).

    With `since`, reading begins at the first occurrence that ends then or later. With `before`, only solutions that
    end earlier count. Instants are in µs.
    """

    first: int
    until: int
    since: Micros | None = None
    before: Micros | None = None


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """Holds all that the process of a trial is told.

    `kept` is how many solutions each of the three lists keeps. `memory` is the bytes that the process may add to its
    first size, and `threads` the number of cores.
    """

    data: str
    directory: str
    range: TrialRange
    engines: tuple[EnginePlan, ...]
    streams: tuple[str, ...]
    kept: int
    memory: int
    threads: int


def plan_engines(new: Register, old: Registration | None, others: Sequence[Registration]) -> tuple[EnginePlan, ...]:
    """Return the engines of a trial: one, or one for each side where a rule is new or old, since its readers are
    compared too.

    `others` are the queries that stand beside it, without `old`. All engines run the rules on which the compared
    queries rest, and all queries have the limits of the new one.
    """
    shapes = [get_shape(text) for text in (new.text, *([] if old is None else [old.text]))]
    written = {shape.into for shape in shapes if shape.into is not None}
    rules = [other for other in others if get_shape(other.text).into is not None]
    sources = find_written([*shapes, *(get_shape(rule.text) for rule in rules)])
    readers = [other for other in others if written & find_sources(get_shape(other.text).streams, sources)]
    reached = find_sources({stream for shape in (*shapes, *(get_shape(each.text) for each in readers)) for stream in shape.streams}, sources)
    below = [_entry_of(rule, new) for rule in rules if rule not in readers and get_shape(rule.text).into in reached]
    above = [_entry_of(reader, new) for reader in readers]
    before = None if old is None else _entry_of(old, new)
    if not written:
        own = ((NEW, new),) if before is None else ((OLD, before), (NEW, new))
        return (EnginePlan((*below, *(entry for _, entry in own)), tuple(Watched(entry.offset, new.name, side) for side, entry in own)),)
    sides = (_side_of(side, own, below, above) for side, own in ((NEW, new), (OLD, before)))
    return tuple(side for side in sides if side.watched)  # beside a new rule, nothing is old where nothing reads its stream


def _side_of(side: str, own: Register | None, below: Sequence[Register], readers: Sequence[Register]) -> EnginePlan:
    compared = [*([] if own is None else [own]), *readers]
    return EnginePlan((*below, *compared), tuple(Watched(entry.offset, entry.name, side) for entry in compared))


def _entry_of(query: Registration, new: Register) -> Register:
    limits = new.max_derivations, new.max_goals, new.max_state_bytes
    return Register(query.registered, query.name, query.text, query.policy, query.default_graph, *limits, node_names=query.node_names)


def streams_of(engines: Iterable[EnginePlan]) -> tuple[str, ...]:
    """Return the streams that any query of these engines reads."""
    return tuple(sorted({stream for engine in engines for entry in engine.registrations for stream in get_shape(entry.text).streams}))


def find_earliest(data_dir: Path, oldest: int) -> int | None:
    """Return the first position from which a trial can read: where background and watermarks are known. None where
    there is none yet.

    `oldest` is where the log begins. What was before it is known from a snapshot of the engine alone.
    """
    if not oldest:
        return 0
    return next((position for position in snapshots_of(data_dir).positions() if position >= oldest), None)


def snapshots_of(data_dir: Path) -> Snapshots:
    """Return the snapshots of an engine that has no part of the events only; a log with several partitions loses
    nothing.
    """
    return Snapshots(data_dir / "snapshots", name_of(0, 1))
