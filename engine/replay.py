"""This module reads the log again for queries whose state is not at hand.

A query keeps what decides on absence for its window alone. When a change of the background makes the decided side timeless, all that ever came
decides. So the query reads the log once more from where it began, planned without expiry, and goes on from there in a network of its own
(docs/decisions/0036-what-a-window-let-go.md).

A set of queries that moves to another bucket has no state there. An engine beside reads the log for it, and for nothing else
(docs/decisions/0104-moves-of-one-set.md).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.background.changes import read_static_rule
from engine.background.fact_store import FactIndex
from engine.catch_up import EngineState, join
from engine.errors import LogGap
from engine.kernel.state import layout as c
from engine.messages import END_OF_TIME, CatchUp, Entry, Fail, Micros, Pause, Promote, Register, Resume, StateChange, Withdraw
from engine.network.placed_query import Planned
from engine.partitioning import Moved
from engine.runtime.event_scheduler import find_reached
from engine.runtime.time_course import Place
from engine.runtime.watermarks import NO_TIME
from epsparql import QueryError, parse
from epsparql import algebra as a

MOST_ROWS = 50_000_000
"""The log is read again up to this many rows, because all other queries wait meanwhile."""
LOST = "the background now matches a part alone for which older solutions were let go, and {}: register the query again"


STRANDED = "it moved to another partition, and what it rests on was removed from the log: {}; register the query again"


class NotRepeatable(Exception):
    """Signals that a query's state does not follow from the log as it can be read here."""


def read_again(engine: EngineState, planned: Planned, after: int) -> str | None:
    """Let a query stand where it would stand before the entry `after` if nothing of it expired. Return why that cannot be, if it cannot."""
    try:
        side = _replayed(engine, planned, after)
    except (LogGap, NotRepeatable) as fault:
        return LOST.format(fault if isinstance(fault, NotRepeatable) else "the log does not go back to where the query began")
    member = next(member for member in engine.members if planned.registered in member.network.planned)
    member.network.drop_query(planned.registered)
    join(engine, side, {planned.registered})
    return None


def _replayed(engine: EngineState, planned: Planned, after: int) -> EngineState:
    """Return an engine that has read the log before `after` with a query and all rules."""
    if not engine.share.whole:
        raise NotRepeatable("a partition has no other partition's events")
    entry, side, changes, before = engine.registered[planned.registered], engine.beside(), list[StateChange](), engine.caught_up
    if isinstance(planned.source.query, a.Construct) and _is_on_cycle(engine, planned.source.query):
        raise NotRepeatable("its rule is one of several that feed each other")
    begins = entry.offset if entry.reads_from is None else entry.reads_from
    side.without = engine.without | {"expiry"}
    side.heeds = lambda other: _concerns(other, entry)
    for first, until in ((0, begins), (begins, after)):
        for block in engine.past(first, until) if first < until else ():
            changes += side.apply_block(block).changes
            engine.caught_up += block.num_rows
            if engine.caught_up - before > MOST_ROWS:
                raise NotRepeatable(f"the log has over {MOST_ROWS:,} rows")
        if until == begins:
            side.enrol_query(entry, changes)
    if side.position != after:
        raise LogGap(f"the log ends at {side.position}")
    if planned.registered not in side.registered:
        raise NotRepeatable(next(change.reason for change in changes if change.registered == planned.registered))
    return side


def _concerns(entry: Entry, own: Register) -> bool:
    """Return whether a control entry matters to a query: none about queries but rules does. Raises NotRepeatable."""
    match entry:
        case Register():
            if read_static_rule(entry) is not None:
                return True
            if entry.offset == own.offset or not _is_rule(entry):
                return False
            if entry.reads_from is not None or own.reads_from is not None:
                raise NotRepeatable("rules stand beside a query that read the past")
            return True
        case Pause() | Resume() | CatchUp() | Promote() | Withdraw() | Fail():
            return False
        case _:
            return True


def _is_rule(entry: Register) -> bool:
    try:
        return isinstance(parse(entry.text).query, a.Construct)
    except QueryError:
        return False  # refused when it came


def _is_on_cycle(engine: EngineState, rule: a.Construct) -> bool:
    """Return whether a rule rests on other rules that rest on it."""
    above, below = find_reached(rule.streams, engine.rules), find_reached([rule.into], engine.rules, onwards=True)
    return any(other.into in above and below & set(other.streams) for other in engine.rules if other != rule)


# ---------------------------------------------------------------- queries that move
def let_go(engine: EngineState, leaving: Collection[int]) -> None:
    """Drop queries that live elsewhere from now on, with what is behind. No query that stays shares events with them."""
    engine.forget_layout()
    for kept in (engine.registered, engine.fallen, engine.behind):
        for registered in kept.keys() & leaving:
            del kept[registered]
    for member in engine.members:
        for registered in member.network.planned.keys() & leaving:
            member.network.drop_query(registered)
        member.forget_unread()
    engine.members = [member for member in engine.members if member.network.planned]


@dataclass(frozen=True, slots=True)
class Start:
    """Says where an engine begins to read for queries that move.

    It has the streams' times before an entry, and there the `entries` of these queries and the background. At the end they have the `times`, by
    registration; None where the engine begins at the log's beginning.
    """

    place: Place
    entries: tuple[Register, ...] = ()
    known: FactIndex | None = None
    times: Mapping[int, Micros] | None = None


FROM_BEGINNING = Start(Place(0, {}))


class StartFinder:
    """Finds where an engine may begin to read for queries that move."""

    def __init__(self, engine: EngineState) -> None:
        self._engine, self._times, self._rules = engine, times_of(engine), engine.rules

    def find_start(self, moved: Moved) -> Start | None:
        """Return a start that reaches back as far as queries look that were dealt out by a key; None if they are to be read for from the beginning.

        A rule that has ended may have left its mark on the time of the others. Nothing before the first of the registrations matters.
        """
        engine = self._engine
        if moved.before.part is None or moved.route.part is not None:
            return None
        entries = tuple(engine.registered[registered] for registered in sorted(moved.members.keys() & engine.registered.keys()))
        times = {registered: self._times[registered] for registered in moved.members.keys() & self._times.keys()}
        time, longest = min(times.values(), default=NO_TIME), c.FOREVER
        if entries and not moved.rules - engine.registered.keys() and NO_TIME < time < END_OF_TIME:
            longest = max(c.FOREVER if reach.micros is None or reach.opens else reach.micros for reach in engine.find_reaches(entries))
        since = NO_TIME if longest >= c.FOREVER else time - longest
        place = engine.course.find_place(since, find_reached(moved.streams, self._rules), min(moved.members))
        return None if place is None else Start(place, entries, engine.known, times)


def merge_starts(starts: Sequence[Start]) -> Start:
    """Return a start for all queries of some starts of one engine: the first of them reaches back far enough."""
    entries = sorted((entry for start in starts for entry in start.entries), key=lambda entry: entry.offset)
    times = {registered: time for start in starts for registered, time in (start.times or {}).items()}
    return replace(min(starts, key=lambda start: start.place.position), entries=tuple(entries), times=times)


def find_needed(engine: EngineState) -> int:
    """Return the position from which on the log is read again for the queries of this engine if they move; 0 for its beginning."""
    finder = StartFinder(engine)
    starts = [finder.find_start(dealt) for dealt in engine.sets.list_dealt()]
    return min((0 if start is None else start.place.position for start in starts), default=engine.position)


def times_of(engine: EngineState) -> dict[int, Micros]:
    """Return how far each query has come, by registration."""
    return {registered: member.time for member in engine.members for registered in member.network.planned}


def begin(side: EngineState, start: Start, coming: Collection[int]) -> None:
    """Let a new engine begin to read for queries, and for nothing else."""
    side.heeds = lambda entry: not isinstance(entry, Register) or entry.offset in coming or read_static_rule(entry) is not None
    side.position, side.known = start.place.position, start.known or side.known
    side.streams = {name: replace(stream) for name, stream in start.place.streams.items()}
    for entry in start.entries:
        if entry.offset < side.position:
            side.enrol_query(entry, [])
