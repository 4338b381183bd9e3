"""This module says what queries that come to live in another partition need of the log
(docs/decisions/0104-moves-of-one-set.md).

What is in one engine moves as it is, where another engine can take its place. For the rest, an engine beside reads
the log, as far back as they look.

Another number of partitions is a move of all queries at one entry
(docs/decisions/0104-moves-of-one-set.md). Each new engine begins with an earlier one, lets go of what
lives elsewhere from then on, and reads for what it lacks.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.engine_state import Behind, EngineState
from engine.errors import OnePartitionOnly
from engine.kernel.state import layout as c
from engine.messages import END_OF_TIME, REVISED, Micros, Register
from engine.partitioning import Moved, PartitionShare, Route, Sets, partition_of
from engine.planner.reach import find_longest
from engine.runtime.time_course import Place
from engine.runtime.watermarks import NO_TIME
from epsparql import algebra as a
from epsparql import parse

STRANDED = "it moved to another partition, and what it rests on was removed from the log: {}; register the query again"


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


FROM_BEGINNING = Start(Place(0, {}))


class StartFinder:
    """Finds where an engine may begin to read for queries that another engine has, which stands at the same entry."""

    def __init__(self, engine: EngineState) -> None:
        self._engine, self._times = engine, times_of(engine)

    def find_start(self, moved: Moved) -> Start | None:
        """Return a start that reaches back as far as queries look; None if they are to be read for from the beginning.

        A rule that has ended may have left its mark on the time of the others. Nothing before the first of the
        registrations matters.
        """
        engine = self._engine
        if moved.members.keys() & engine.behind.keys():
            return None
        entries = tuple(engine.registered[registered] for registered in sorted(moved.members.keys() & engine.registered.keys()))
        times = {registered: self._times[registered] for registered in moved.members.keys() & self._times.keys()}
        time, longest = min(times.values(), default=NO_TIME), c.FOREVER
        whole = entries and not moved.rules - engine.registered.keys() and time < END_OF_TIME
        if whole:
            longest = find_longest(engine.find_reaches(entries))
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
    finder, needed = StartFinder(engine), [engine.position]
    for each in engine.sets.list_sets():
        if each.route.part is not None or each.route.home == engine.share.partition:
            start = finder.find_start(each)
            if each.route.part is not None or (start is not None and start.bounded):
                needed.append(0 if start is None else start.place.position)
    return min(needed)


def times_of(engine: EngineState) -> dict[int, Micros]:
    """Return how far each query has come, by registration."""
    return {registered: member.time for member in engine.members for registered in member.network.planned}


def begin(side: EngineState, start: Start) -> None:
    """Let an engine that has read the log up to a start's place go on with its queries as well."""
    for entry in start.entries:
        if entry.offset < side.position:
            side.enrol_query(entry, [])


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
    sets = _sets_of_one(engine, number) if engine.share.whole else engine.sets
    finder, starts, alone = StartFinder(engine), dict[int, Start](), set[int]()
    for each in sets.list_sets():
        if engine.share.whole or each.route.part is not None or each.route.home == engine.share.partition:
            if (start := finder.find_start(each)) is not None:
                starts[each.earliest] = start
            kept = begin <= start.place.position if start is not None else not begin and engine.course.last_break < each.earliest
            if engine.share.whole and each.route.part is not None and not (kept and each.members.keys() <= engine.registered.keys()):
                alone.add(each.earliest)
    return Standing(engine.position, sets, starts, dict(engine.fallen), frozenset(alone))


def _sets_of_one(engine: EngineState, number: int) -> Sets:
    """Return the sets of the queries of an engine that reads all events, as several partitions have them.

    Raises OnePartitionOnly.
    """
    sets, entries = Sets(number), engine.registered | engine.fallen
    for behind in engine.behind.values():
        entries |= {entry.offset: entry for entry in _list_behind(engine, behind)}
    for entry in sorted(entries.values(), key=lambda entry: entry.offset):
        if entry.emit == REVISED:
            raise OnePartitionOnly(f"{entry.name} is a revised query: run it with one partition (--partitions 1)")
        query = parse(entry.text).query
        assert not isinstance(query, a.BackgroundRule), "that is part of the background"
        if entry.offset not in engine.fallen or a.written_stream(query) is not None:
            sets.add(entry, query, engine.known, engine.message_keys, engine.find_reach)
    for behind in engine.behind.values():
        sets.keep_home(engine.position, behind.first)
    return sets


def _list_behind(engine: EngineState, behind: Behind) -> Iterable[Register]:
    """Return the registrations of what is behind; that of a promotion stands for its text."""
    known = {entry.offset: entry for entry in behind.beginning}
    for each in behind.engines:
        known |= each.registered | each.fallen
    if behind.replaces is not None:
        return [replace(known[behind.replaces], offset=behind.lead, reads_from=behind.lead, waits_for=behind.replaces)]
    unread = [entry for offset in behind.own - known.keys() for block in engine.past(offset, offset + 1) for entry in block.entries]
    return [*(known[offset] for offset in behind.own & known.keys()), *(entry for entry in unread if isinstance(entry, Register))]


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


def stay(engine: EngineState, renumbering: Renumbering, share: PartitionShare) -> None:
    """Let an earlier engine be that of a new partition, with no queries but those whose state it has already."""
    staying = {registered for each in renumbering.list_staying(share.partition) for registered in each.members}
    let_go(engine, (engine.registered.keys() | engine.fallen.keys() | engine.behind.keys()) - staying)
    engine.live_as(share, renumbering.sets.copied())
