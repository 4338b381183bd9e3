"""This module says what queries that come to live in another partition need of the log
(docs/decisions/0104-moves-of-one-set.md).

What is in one engine moves as it is, where another engine can take its place. For the rest, a side engine reads the
log, as far back as they look.

Another number of partitions is a move of all queries at one entry
(docs/decisions/0104-moves-of-one-set.md). Each new engine begins with an earlier one, lets go of what
lives elsewhere from then on, and reads for what it lacks.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from engine.engine_state import Beginning, EngineState, SideEngine, join, let_go
from engine.errors import LogGap, OnePartitionOnly
from engine.kernel.state import layout as c
from engine.messages import END_OF_TIME, REVISED, Micros, Register, StateChange
from engine.partitioning import Moved, PartitionShare, Route, Sets, partition_of
from engine.planner.reach import find_longest
from engine.query_lifecycle.catch_up import list_behind
from engine.runtime.time_course import Place
from engine.runtime.watermarks import NO_TIME
from epsparql import algebra as a
from epsparql import parse
from epsparql.deferred_methods import dataclass

_STRANDED = "it moved to another partition, and what it rests on was removed from the log: {}; register the query again"


# ---------------------------------------------------------------- where reading begins
@dataclass(frozen=True, slots=True)
class Start:
    """Says where an engine begins to read for queries that move.

    Before the entry at the place, the `entries` of these queries stand. At the end they have the `times`, by
    registration; None where reading begins at the log's beginning. It is `bounded` if the queries look back no
    further than the place because they never do.
    """

    place: Place
    entries: tuple[Register, ...] = ()
    times: Mapping[int, Micros] | None = None
    bounded: bool = False

    def find_earlier(self) -> tuple[Register, ...]:
        """Return the entries before the place. The others are read."""
        return tuple(entry for entry in self.entries if entry.offset < self.place.position)


FROM_BEGINNING = Start(Place(0, {}))


class StartFinder:
    """Finds where an engine may begin to read for queries that another engine has, which stands at the same entry."""

    def __init__(self, engine: EngineState) -> None:
        self._engine, self._times = engine, engine.registry.times

    def find_start(self, moved: Moved) -> Start | None:
        """Return a start that reaches back as far as queries look; None if they are to be read for from the beginning.

        A rule that has ended may have left its mark on the time of the others. Nothing before the first of the
        registrations matters.
        """
        engine, registered = self._engine, self._engine.registry.registered
        if moved.members.keys() & engine.sides.keys():
            return None
        entries = tuple(registered[each] for each in sorted(moved.members.keys() & registered.keys()))
        times = {each: self._times[each] for each in moved.members.keys() & self._times.keys()}
        time, longest = min(times.values(), default=NO_TIME), c.FOREVER
        whole = entries and not moved.rules - registered.keys() and time < END_OF_TIME
        if whole:
            longest = find_longest(engine.registry.find_reaches(entries))
        bounded, since = longest < c.FOREVER, NO_TIME
        if whole and time == NO_TIME:
            since = NO_TIME + 1  # nothing is decided: what matters begins with the first event
        elif bounded:
            since = time - longest
        place = engine.course.find_place(since, moved.streams, min(moved.members))
        return None if place is None else Start(place, entries, times, bounded)


def find_needed_position(engine: EngineState) -> int:
    """Return the position from which on the log is read again for the queries of this engine if they move; 0 for its
    beginning.

    What lives in one partition keeps the log only where it looks back a bounded time: else its state can move as it is.
    """
    finder, needed, registry = StartFinder(engine), [engine.position], engine.registry
    for each in registry.sets.list_sets():
        if each.route.part is not None or each.route.home == registry.share.partition:
            start = finder.find_start(each)
            if each.route.part is not None or (start is not None and start.bounded):
                needed.append(0 if start is None else start.place.position)
    return min(needed)


# ---------------------------------------------------------------- reading for queries
def move_queries(engine: EngineState, moved: Sequence[Moved], after: int) -> list[StateChange]:
    """Let go of the queries that move at the entry `after`, and take in those that live here from it on.

    Where the log lacks what they rest on, they fail. Return these failures.
    """
    finder, registry, lost = StartFinder(engine), engine.registry, list[StateChange]()
    coming = [
        (each, finder.find_start(each) if each.before.part is not None and each.route.part is None and not each.anew else None)
        for each in moved
        if each.route.part is not None or each.route.home == registry.share.partition
    ]
    for each in moved:
        let_go(engine, each.members)
    for each, gap in _take_in(engine, coming, after):
        left = {registered: entry for registered, entry in each.members.items() if registered not in each.gone}
        registry.fallen |= left
        lost += [StateChange(entry.offset, entry.name, after, "failed", _STRANDED.format(gap)) for entry in left.values()]
    return lost


def _take_in(engine: EngineState, coming: Sequence[tuple[Moved, Start | None]], after: int) -> list[tuple[Moved, LogGap]]:
    """Take over queries, and what is behind, from a side engine that reads the log before the entry `after`, from
    their starts on.

    Those that do not come to the times of their starts are read for from the beginning. Return those that the log
    lacks entries for.
    """
    stranded = list[tuple[Moved, LogGap]]()
    near = [(each, start) for each, start in coming if start is not None]
    far = [(each, FROM_BEGINNING) for each, start in coming if start is None]
    for together in (near, far):
        try:
            unsettled = _read_for(engine, together, after) if together else []
        except LogGap as gap:
            stranded += [(each, gap) for each, _ in together]
        else:
            far += [(each, FROM_BEGINNING) for each in unsettled]
    return stranded


def _read_for(engine: EngineState, coming: Sequence[tuple[Moved, Start]], after: int) -> list[Moved]:
    """Read the log between the first of some starts and the entry `after`, and take over the queries but those that
    are returned.

    Each set begins at its own start. Raises LogGap.
    """
    registry, heeded = engine.registry.make_beside(before=after), set[int]()
    in_order = sorted(coming, key=lambda each: each[1].place.position)
    place = in_order[0][1].place
    registry.streams = {name: replace(stream) for name, stream in place.streams.items()}
    if place.position:  # since then they are as they are now
        registry.known, registry.message_keys = engine.registry.known, dict(engine.registry.message_keys)
    begins = deque(Beginning(start.place.position, start.find_earlier(), each.members.keys()) for each, start in in_order)
    side = SideEngine(engine.make_beside(registry, place.position), heeded, begins, lambda entry: entry.offset in heeded, follows_pauses=True)
    for _ in side.read(after):
        if registry.terms.due:
            registry.terms.collect(member.pending.terms for each in (*engine.registries(), *side.engine.registries()) for member in each.members)
    times = registry.times
    unsettled = [
        each
        for each, start in coming
        if start.times is not None and start.times != {registered: times[registered] for registered in each.members.keys() & times.keys()}
    ]
    own = heeded.difference(*(each.members for each in unsettled))
    join(engine.registry, registry, own)
    followers = {lead: other for lead, other in side.engine.sides.items() if lead in own}
    engine.sides |= followers
    for each in (each for other in followers.values() for each in other.engines):
        each.past = engine.read_past  # the side engine goes
    return unsettled


# ---------------------------------------------------------------- another number of partitions
@dataclass(frozen=True, slots=True)
class Standing:
    """Says what one of the earlier engines has: the sets of all queries, and the starts of those that it has state
    of, by their first registration.

    Of a single engine, these sets are new. `alone` has the first registrations of those that only their state as it
    is can give a place.
    """

    position: int
    sets: Sets
    starts: Mapping[int, Start]
    fallen: Mapping[int, Register]
    alone: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Renumbering:
    """Says where all queries live from an entry of the log on, because the number of partitions changes there.

    The engine of each partition begins with that of an earlier partition, by `sources`. `starts` are by the first
    registration of a set; where there is none, reading begins at the log's beginning.
    """

    sets: Sets
    moved: tuple[Moved, ...]
    sources: tuple[int, ...]
    starts: Mapping[int, Start]
    fallen: Mapping[int, Register]

    def list_staying(self, partition: int) -> list[Moved]:
        """Return the sets whose state the engine of a partition has from the first."""
        return [
            each for each in self._list_own(partition) if each.before.part is None and each.route.part is None and self._has_source(each, partition)
        ]

    def list_coming(self, partition: int) -> list[tuple[Moved, Start | None]]:
        """Return the sets that the engine of a partition reads the log for."""
        staying = {each.earliest for each in self.list_staying(partition)}
        return [(each, self.starts.get(each.earliest)) for each in self._list_own(partition) if each.earliest not in staying]

    def _list_own(self, partition: int) -> Iterator[Moved]:
        return (each for each in self.moved if each.route.part is not None or each.route.home == partition)

    def _has_source(self, each: Moved, partition: int) -> bool:
        return each.before.home == self.sources[partition]

    def list_unread(self, begin: int) -> list[Moved]:
        """Return the sets for which the log would have to begin before the position `begin`."""
        coming = {
            each.earliest: (each, start or FROM_BEGINNING) for partition in range(len(self.sources)) for each, start in self.list_coming(partition)
        }
        return [each for each, start in coming.values() if start.place.position < begin]


def list_names(sets: Iterable[Moved]) -> list[str]:
    """Return the names of queries, without those that are gone."""
    return sorted({entry.name for each in sets for registered, entry in each.members.items() if registered not in each.gone})


def survey(engine: EngineState, number: int, begin: int) -> Standing:
    """Return how an earlier engine stands, where `number` partitions are to follow and the log begins at the position
    `begin`.

    Raises OnePartitionOnly.
    """
    registry = engine.registry
    share, sets = registry.share, _sets_of_one(engine, number) if registry.share.whole else registry.sets
    finder, starts, alone = StartFinder(engine), dict[int, Start](), set[int]()
    for each in sets.list_sets():
        if share.whole or each.route.part is not None or each.route.home == share.partition:
            if (start := finder.find_start(each)) is not None:
                starts[each.earliest] = start
            kept = begin <= start.place.position if start is not None else not begin and engine.course.last_break < each.earliest
            if share.whole and each.route.part is not None and not (kept and each.members.keys() <= registry.registered.keys()):
                alone.add(each.earliest)
    return Standing(engine.position, sets, starts, dict(registry.fallen), frozenset(alone))


def _sets_of_one(engine: EngineState, number: int) -> Sets:
    """Return the sets of the queries of an engine that reads all events, as several partitions have them.

    Raises OnePartitionOnly.
    """
    registry = engine.registry
    sets, entries = Sets(number), registry.registered | registry.fallen
    for lead, side in engine.sides.items():
        entries |= {entry.offset: entry for entry in list_behind(engine, lead, side)}
    for entry in sorted(entries.values(), key=lambda entry: entry.offset):
        if entry.emit == REVISED:
            raise OnePartitionOnly(f"{entry.name} is a revised query: run it with one partition (--partitions 1)")
        query = parse(entry.text).query
        assert not isinstance(query, a.BackgroundRule), "that is part of the background"
        if entry.offset not in registry.fallen or a.written_stream(query) is not None:
            sets.add(entry, query, registry.known, registry.message_keys, registry.find_reach)
    for side in engine.sides.values():
        sets.keep_home(engine.position, side.reader)
    return sets


def renumber(standings: Sequence[Standing], number: int, begin: int) -> Renumbering:
    """Return where the queries of some engines, which stand at one entry of a log that begins at `begin`, live with
    another number of partitions.
    """
    position, earlier = standings[0].position, len(standings)
    starts = {first: start for standing in reversed(standings) for first, start in standing.starts.items()}
    fallen = {registered: entry for standing in standings for registered, entry in standing.fallen.items()}
    sets = standings[0].sets
    for first in standings[0].alone:
        sets.keep_home(position, first)
    now = sets.list_sets() if earlier > 1 else [replace(each, before=Route(None)) for each in sets.list_sets()]
    sources = _choose_sources(now, starts, earlier, number, begin)
    moved = tuple(replace(each, route=_route(each, sources, number)) for each in now)
    return Renumbering(sets.dealt_anew(number, position, [each.route for each in moved]), moved, sources, starts, fallen)


def _choose_sources(sets: Iterable[Moved], starts: Mapping[int, Start], earlier: int, number: int, begin: int) -> tuple[int, ...]:
    """Return the earlier partition with whose engine each new partition begins: all of them, else those with most
    state that the log cannot give.
    """
    if number >= earlier:
        return tuple(partition * earlier // number for partition in range(number))
    unread = [0] * earlier
    for each in sets:
        start = starts.get(each.earliest)
        if each.before.part is None and (start is None or not start.bounded or start.place.position < begin):
            unread[each.before.home] += 1
    return tuple(sorted(sorted(range(earlier), key=lambda partition: -unread[partition])[:number]))


def _route(each: Moved, sources: Sequence[int], number: int) -> Route:
    """Return where a set lives.

    One that lived in one partition goes where its state is, if any engine begins with that.
    """
    if each.route.part is not None:
        return each.route if number > 1 else Route(None)
    places = [partition for partition, source in enumerate(sources) if source == each.before.home] or list(range(number))
    return Route(None, places[partition_of(str(each.earliest), len(places))])


def change_share(engine: EngineState, renumbering: Renumbering, share: PartitionShare) -> list[tuple[Moved, LogGap]]:
    """Let an earlier engine become that of a partition among another number of them.

    Return what the log lacks entries for; then the engine is of no use.
    """
    registry, staying = engine.registry, {registered for each in renumbering.list_staying(share.partition) for registered in each.members}
    let_go(engine, (registry.registered.keys() | registry.fallen.keys() | engine.sides.keys()) - staying)
    registry.live_as(share, renumbering.sets.copied())
    stranded = _take_in(engine, renumbering.list_coming(share.partition), engine.position)
    for registered in registry.registered.keys() & renumbering.fallen.keys():  # they failed in another partition
        registry.fail_query(registered, engine.position, "")
    return stranded
