"""This module groups queries that share events through rules, and places each such set: dealt out by a key or by
time, or in one partition.

The sets are a function of the log's entries, the same for every partition. A set that was placed stays as it is while
that is right. Where a new query or a new schema makes it wrong, the set moves, mostly to one partition
(docs/decisions/0104-moves-of-one-set.md).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, field
from typing import Any

from engine.background.fact_store import FactIndex
from engine.messages import MessageKey, Micros, Register
from engine.partitioning.hash_partitioner import Part, partition_of
from engine.partitioning.key_inference import NoKey, keys_of
from engine.partitioning.message_keys import NO_KEYS
from engine.partitioning.time_slices import NoSlices, TimeSlices, cut_time
from epsparql import algebra as a
from epsparql import parse
from epsparql.deferred_methods import dataclass
from epsparql.terms import Variable
from epsparql.trees import replace_fields

Division = Part | TimeSlices
"""Events are dealt out by a part of their triples, or by their time."""
FindReach = Callable[[Register], Micros | None]


def _no_reach(_: Register) -> Micros | None:
    return None


@dataclass(frozen=True, slots=True)
class Route:
    """Says that events are dealt out by `part`; None: all go to the partition `home`."""

    part: Division | None
    home: int = 0


@dataclass(frozen=True, slots=True)
class Moved:
    """Holds queries with state that live elsewhere from an entry of the log on, by registration, and both routes.

    They read these streams. Some of them are `rules`, and some are `gone`, because they were dropped. With `anew` the
    log is read for them from its beginning.
    """

    members: Mapping[int, Register]
    streams: frozenset[str]
    rules: frozenset[int]
    gone: frozenset[int]
    before: Route
    route: Route
    anew: bool = False

    @property
    def earliest(self) -> int:
        """Return the first registration, by which the set is known."""
        return min(self.members)


@dataclass(slots=True)
class Settled:
    """Represents a registered query; `keys` are those that it had under every background since, and `slices` those by
    which it alone can be dealt out.
    """

    entry: Register
    query: a.StreamQuery
    keys: dict[Part, Variable]
    slices: TimeSlices | None = None

    def parts(self, read: Iterable[str]) -> set[Part]:
        """Return the parts that the query can be dealt out by where these streams are read.

        What a rule writes must have the key there too.
        """
        query = self.query
        if not isinstance(query, a.Construct) or query.into not in read:
            return set(self.keys)
        return {part for part, key in self.keys.items() if all(_has(triple, part, key) for triple in query.template)}


def _has(triple: a.TriplePattern, part: Part, key: Variable) -> bool:
    """Return whether a rule's triple goes where its solution is.

    It lies in no graph, so nobody who is dealt out by graphs sees it.
    """
    return part is Part.GRAPH or (part is not Part.MESSAGE and (triple.subject if part is Part.SUBJECT else triple.object) == key)


@dataclass(slots=True)
class Together:
    """Holds queries that must share an engine, by registration, and where they live.

    Of one that is `short`, an engine may have read the log no further back than it looks.
    """

    route: Route
    members: dict[int, Settled]
    dropped: set[int] = field(default_factory=set)
    short: bool = False

    @property
    def streams(self) -> set[str]:
        return {stream for member in self.members.values() for stream in member.query.streams}

    @property
    def writes(self) -> set[str]:
        return {into for member in self.members.values() if (into := a.written_stream(member.query)) is not None}

    def list_entries(self) -> list[Register]:
        """Return the registrations of the queries that were not dropped."""
        return [member.entry for registered, member in self.members.items() if registered not in self.dropped]

    def moved(self, route: Route, *, anew: bool = False) -> Moved:
        """Return the move of the set to another route."""
        rules = {registered for registered, member in self.members.items() if a.written_stream(member.query) is not None}
        entries = {registered: member.entry for registered, member in self.members.items()}
        return Moved(entries, frozenset(self.streams), frozenset(rules), frozenset(self.dropped), self.route, route, anew)

    def allowed(self) -> list[Division]:
        """Return what the set can be dealt out by, the best first. Only a query that stands alone is dealt out by time."""
        read = self.streams
        common = set(Part).intersection(*(member.parts(read) for member in self.members.values()))
        slices = [member.slices for member in self.members.values() if member.slices is not None] if len(self.members) == 1 else []
        return [*(part for part in Part if part in common), *slices]


class Sets:
    """Holds all sets of queries of a log.

    They are as they are from the position `until` on; entries before it change nothing.
    """

    def __init__(self, partitions: int, until: int = 0) -> None:
        self._partitions, self.until = partitions, until
        self._sets: list[Together] = []
        self._of: dict[int, Together] = {}

    def settled(self, until: int) -> "Sets":
        """Return the sets as they are, for an engine that reads the log before the entry `until` again."""
        fixed = Sets(self._partitions, until)
        fixed._sets, fixed._of = self._sets, self._of
        return fixed

    def route(self, registered: int) -> Route | None:
        """Return the route of a query; None for one that is gone with all that shared events with it."""
        found = self._of.get(registered)
        return None if found is None else found.route

    def list_sets(self) -> list[Moved]:
        """Return all sets, each of which stays where it is."""
        return [each.moved(each.route) for each in self._sets]

    def dealt_anew(self, partitions: int, until: int, routes: Sequence[Route]) -> "Sets":
        """Return the sets for another number of partitions from the position `until` on, with new routes in the order
        of `list_sets`.
        """
        return self._copied(partitions, until, routes, short=True)

    def copied(self) -> "Sets":
        """Return the sets for another engine, which takes up changes by itself."""
        return self._copied(self._partitions, self.until, [each.route for each in self._sets])

    def _copied(self, partitions: int, until: int, routes: Sequence[Route], *, short: bool = False) -> "Sets":
        found = Sets(partitions, until)
        for each, route in zip(self._sets, routes, strict=True):
            together = Together(
                route, {registered: replace_fields(member) for registered, member in each.members.items()}, set(each.dropped), each.short or short
            )
            found._sets.append(together)
            found._of |= dict.fromkeys(together.members, together)
        return found

    def add(
        self, entry: Register, query: a.StreamQuery, known: FactIndex, declared: Mapping[str, MessageKey] = NO_KEYS, find_reach: FindReach = _no_reach
    ) -> list[Moved]:
        """Place a new query, and return what moves for it. A query that waits for another has its place.

        `find_reach` returns how far back the query looks; None: without a bound. It is called for a query that stands
        alone and has no key.
        """
        if entry.offset < self.until or entry.offset in self._of:
            return []
        settled = Settled(entry, query, _keys(entry, query, known, declared))
        joined = [each for each in self._sets if _connected(each, query) or entry.waits_for in each.members]
        if not (joined or settled.keys):
            settled.slices = self._slices(entry, query, find_reach)
        members = dict(sorted({number: member for each in joined for number, member in each.members.items()}.items())) | {entry.offset: settled}
        together = Together(self._new_home(entry.offset), members, {number for each in joined for number in each.dropped})
        allowed = together.allowed()
        if (joined and joined[0].route.part is not None and joined[0].route.part in allowed) or (joined and joined[0].route.part is None):
            together.route = joined[0].route
        elif allowed and not joined:
            together.route = Route(allowed[0])
        moved = [each.moved(together.route) for each in joined if each.route != together.route]
        together.short = bool(moved) or any(each.short for each in joined)
        self._sets = [*(each for each in self._sets if each not in joined), together]
        self._of |= dict.fromkeys(members, together)
        return moved

    def drop(self, registered: int, offset: int) -> None:
        """Drop a query.

        A set ends with the last of its queries: before, a dropped query may have left its mark on the others.
        """
        together = self._of.get(registered)
        if together is None or offset < self.until:
            return
        texts = {number for number, each in together.members.items() if each.entry.reads_from is not None and each.entry.waits_for == registered}
        together.dropped |= {registered, *texts}  # those that were to take its place, too
        if len(together.dropped) == len(together.members):
            self._sets = [each for each in self._sets if each is not together]
            for member in together.members:
                del self._of[member]

    def learn(
        self,
        offset: int,
        known: FactIndex,
        declared: Mapping[str, MessageKey],
        is_concerned: Callable[[Register], bool] = lambda _: True,
        looks_further: Callable[[Sequence[Register]], bool] = lambda _: False,
    ) -> list[Moved]:
        """Take up another background from the entry at `offset` on, and return what moves for it.

        A query that it concerns is dealt out by time no more: what a change decides may rest on all that came before.
        Queries that look further back over the new background than before are read for anew, unless all that came is
        in their state.
        """
        if offset < self.until:
            return []
        anew = list[Together]()
        for together in self._sets:
            if (together.short or isinstance(together.route.part, TimeSlices)) and looks_further(together.list_entries()):
                anew.append(together)
            for member in together.members.values():
                if member.slices is not None and is_concerned(member.entry):
                    member.slices = None
                now = _keys(member.entry, member.query, known, declared)
                member.keys = {part: key for part, key in member.keys.items() if now.get(part) == key}
        return self._move_keyless(anew)

    def keep_home(self, offset: int, registered: int) -> list[Moved]:
        """Place the set of a query that does not read with the others from the entry at `offset` on. Return what moves."""
        if offset < self.until or registered not in self._of:
            return []
        member = self._of[registered].members[registered]
        member.keys, member.slices = {}, None
        return self._move_keyless()

    def forget_message_key(self, offset: int, stream: str) -> list[Moved]:
        """Let no query that reads a stream rest on the message key that it declared until the entry at `offset`;
        return what moves.
        """
        if offset < self.until:
            return []
        for together in self._sets:
            for member in together.members.values():
                if stream in member.query.streams:
                    member.keys.pop(Part.MESSAGE, None)
        return self._move_keyless()

    def _move_keyless(self, anew: Collection[Together] = ()) -> list[Moved]:
        """Give a home to the sets that cannot be dealt out any more as they were.

        Return them, and those that are read for anew.
        """
        moved = []
        for together in self._sets:
            keyless, again = together.route.part is not None and together.route.part not in together.allowed(), any(each is together for each in anew)
            if keyless or again:
                route = self._new_home(next(iter(together.members))) if keyless else together.route
                moved.append(together.moved(route, anew=again))
                together.route, together.short = route, not again
        return moved

    def _new_home(self, registered: int) -> Route:
        return Route(None, partition_of(str(registered), self._partitions))

    def _slices(self, entry: Register, query: a.StreamQuery, find_reach: FindReach) -> TimeSlices | None:
        if not entry.by_time or entry.reads_from is not None:  # who reads the past is in one partition, as with keys
            return None
        try:
            return cut_time(query, find_reach(entry), partition_of(str(entry.offset), self._partitions))
        except NoSlices:
            return None

    # ------------------------------------------------------------ snapshots
    def to_json(self) -> dict[str, Any]:
        """Return the sets as JSON, which `restored` takes."""
        return {"until": self.until, "sets": [_group_to_json(each) for each in self._sets]}

    @classmethod
    def restored(cls, partitions: int, kept: Mapping[str, Any]) -> "Sets":
        sets = cls(partitions, kept["until"])
        for plain in kept["sets"]:
            members = {member.entry.offset: member for member in _members(plain["members"])}
            part = division_from_json(plain["part"])
            together = Together(Route(part, plain["home"]), members, set(plain["dropped"]), plain.get("short", True))
            sets._sets.append(together)
            sets._of |= dict.fromkeys(members, together)
        return sets


def _keys(entry: Register, query: a.StreamQuery, known: FactIndex, declared: Mapping[str, MessageKey]) -> dict[Part, Variable]:
    if entry.reads_from is not None:
        return {}  # an engine of its own reads the past, and reads all of it
    try:
        return {key.part: key.variable for key in keys_of(query, entry.policy, known, declared)}
    except NoKey:
        return {}


def _connected(together: Together, query: a.StreamQuery) -> bool:
    """Return whether one writes what the other reads."""
    return bool(together.writes.intersection(query.streams)) or a.written_stream(query) in together.streams


def division_to_json(part: Division | None) -> Any:
    """Return a division as JSON, which `division_from_json` takes."""
    return asdict(part) if isinstance(part, TimeSlices) else None if part is None else part.value


def division_from_json(plain: Any) -> Division | None:
    return TimeSlices(**plain) if isinstance(plain, dict) else None if plain is None else Part(plain)


def _group_to_json(together: Together) -> dict[str, Any]:
    members = [
        {
            "entry": asdict(member.entry),
            "keys": {part.value: key.name for part, key in member.keys.items()},
            "slices": division_to_json(member.slices),
        }
        for member in together.members.values()
    ]
    return {
        "part": division_to_json(together.route.part),
        "home": together.route.home,
        "members": members,
        "dropped": sorted(together.dropped),
        "short": together.short,
    }


def _members(plain: Iterable[Mapping[str, Any]]) -> Iterator[Settled]:
    for member in plain:
        entry = Register.from_plain(member["entry"])
        query = parse(entry.text).query
        assert not isinstance(query, a.BackgroundRule), "no events are dealt out to it"
        slices = division_from_json(member.get("slices"))
        assert not isinstance(slices, Part)
        yield Settled(entry, query, {Part(part): Variable(name) for part, name in member["keys"].items()}, slices)
