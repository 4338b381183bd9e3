"""This module holds how far an engine has read the log, and the side engines beside it.

A side engine reads another span of the log for some queries, over the same terms
(docs/decisions/0019-what-is-behind.md):

    engine  ──────────────────────────────────▶ join: their networks go over as they are
    side       begins ─── read ─── ends ───────╯

It is an engine like any other, with the rules on which its queries rest. At `ends` it stands where the other stands,
and hands its queries over. A new rule may join its queries to rules that it lacks. It is given copies of these, as
they run in the other engine at the rule's registration. The uses differ in where it begins, and in which
registrations of the log it heeds:

- A pause begins as a copy of the engine, cut to its queries and their rules. It heeds followers and new rules.
- The past of a query, or of a promoted text, begins at the first entry read, with today's rules. It heeds no query.
- A move to another partition begins where the queries look back to, and heeds their own registrations.
- A replay begins at the log's beginning, is planned without expiry, and heeds all rules.
- A slice, also of a trial, begins with the background and the streams' times at its first entry. It heeds no query.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import field
from typing import NamedTuple

from engine.background.changes import is_change
from engine.errors import LogGap
from engine.messages import Block, CatchUp, Drop, Entry, Outcome, Pause, Promote, Register, Resume, StateChange, Withdraw
from engine.runtime.event_scheduler import find_reached
from engine.runtime.query_registry import Registry
from engine.runtime.result_assembly import NOTHING
from engine.runtime.time_course import TimeCourse
from epsparql import algebra as a
from epsparql import parse
from epsparql.deferred_methods import dataclass

Past = Callable[[int, int], Iterable[Block]]
"""The value is the entries [lo, hi) of the log, in blocks."""


class EngineState(ABC):
    """Holds how far an engine has read the log, its queries, and the side engines beside it."""

    def __init__(self, registry: Registry, past: Past | None) -> None:
        """Begin at the start of the log. `past` is where side engines find the log again."""
        self.registry = registry
        self.past: Past = past or _no_past
        self.position = 0
        """This is the offset of the next entry."""
        self.course = TimeCourse()
        """It tells where another engine may begin to read for queries that move."""
        self.sides: dict[int, SideEngine] = {}
        """They have the queries that are behind, by the registration or promotion for which they read."""
        self.caught_up = 0
        """This counts rows of the log that were read again by side engines."""
        self.heeds: Callable[[Entry], bool] = lambda _: True
        """It returns whether a control entry is for this engine."""

    def read_past(self, first: int, after: int) -> Iterator[Block]:
        """Yield the entries [first, after) of the log, and count their rows. Side engines read the log here."""
        for block in self.past(first, after) if first < after else ():
            yield block
            self.caught_up += block.num_rows

    def read_log(self, upto: int) -> Iterator[Outcome]:
        """Read the log up to a position, and yield what each block brings. Raises LogGap."""
        for block in self.past(self.position, upto) if self.position < upto else ():
            yield self.apply_block(block)
        if self.position != upto:
            raise LogGap(f"the log ends at {self.position}, before {upto}")

    def registries(self) -> Iterator[Registry]:
        """Yield the registry of this engine, and those of the side engines."""
        yield self.registry
        for side in self.sides.values():
            yield from (each.registry for each in side.engines)

    def feed(self, block: Block) -> Outcome:
        """Apply a block. Raises LogGap if it does not start at `position`."""
        outcome, terms = self.apply_block(block), self.registry.terms
        self.course.note(self.position, self.registry.streams)
        if terms.due:  # most often it is not, and who holds terms need not be asked
            terms.collect(member.pending.terms for each in self.registries() for member in each.members)
        return outcome

    @abstractmethod
    def apply_block(self, block: Block) -> Outcome:
        """Apply a block as `feed` does, without freeing terms, because other engines may hold some."""

    @abstractmethod
    def make_beside(self, registry: Registry, position: int = 0) -> "EngineState":
        """Return a new engine with these queries, which reads the past of this one from a position on."""


def _no_past(first: int, after: int) -> Iterable[Block]:
    raise LogGap(f"no log is at hand to read [{first}, {after}) of it again")


class Beginning(NamedTuple):
    """Says where queries begin in a side engine: `entries` are registered there, and `queries` are handed over."""

    position: int
    entries: tuple[Register, ...]
    queries: Collection[int] = ()


@dataclass(slots=True, eq=False)
class SideEngine:
    """Reads a span of the log for `queries`, which another engine then takes over."""

    engine: EngineState
    queries: set[int]
    begins: deque[Beginning] = field(default_factory=deque)  # what is yet to begin, in order of position
    registers: Callable[[Register], bool] | None = None  # whether the registration of a query is heeded; None for followers
    follows_pauses: bool = False  # whether its queries are paused and catch up as the log says
    reader: int = -1  # the query that was paused or reads the past, for which the others wait
    present: EngineState | None = None  # while the past is read: a copy of the engine at the registration, to go on with
    feeding: deque[EngineState] = field(default_factory=deque)  # copies of rules, which feed its queries from these engines' positions on
    paused: bool = False
    replaces: bool = False  # whether the text of a promotion reads on as the query `reader`, whose place it is to take

    def __post_init__(self) -> None:
        self.engine.heeds = self._heeds

    def _heeds(self, entry: Entry) -> bool:
        """Return whether a control entry that is read concerns the engine.

        Static rules are part of the background as it was then.
        """
        if is_change(entry, self.engine.registry.known):
            return True
        match entry:
            case Register():
                return self._is_follower(entry) if self.registers is None else self.registers(entry)
            case Pause() | Resume() | CatchUp() | Promote() | Withdraw():
                return self.follows_pauses
            case _:
                return True

    def _is_follower(self, entry: Register) -> bool:
        """Return whether an entry registers a query that waits for those here, or a rule on which they rest.

        None in the past does: the rules there are those of the present.
        """
        if self.present is not None or entry.offset in self.queries:
            return self.present is None and entry.offset != self.reader
        into, registry = a.written_stream(parse_entry(entry)), self.engine.registry
        reads = {stream for member in registry.members for stream in member.network.reads}
        return into is not None and entry.reads_from is None and into in find_reached(reads, registry.rules)

    def read(self, upto: int) -> Iterator[Outcome]:
        """Read the log up to a position, and yield what each block brings. Raises LogGap."""
        while True:
            stops = [upto, *(beginning.position for beginning in self.begins), *(rules.position for rules in self.feeding)]
            if self.begins and self.engine.position >= self.begins[0].position:
                yield self.begin()
            elif self.present is not None and self.engine.position == self.present.position:
                before = self._go_on()
                join(self.engine.registry, before.registry, {self.reader})
            elif self.feeding and self.engine.position == self.feeding[0].position:
                self._take_in(self.feeding.popleft().registry)
            elif self.engine.position >= upto:
                return
            else:
                yield from self.engine.read_log(min(stops if self.present is None else [*stops, self.present.position]))

    def begin(self) -> Outcome:
        """Register the queries that begin at the engine's position; faults in them are changes of their states."""
        beginning, changes = self.begins.popleft(), list[StateChange]()
        self.queries |= set(beginning.queries)
        for entry in beginning.entries:
            self.engine.registry.enrol_query(entry, changes)
        return Outcome(NOTHING, tuple(changes))

    def _go_on(self) -> EngineState:
        """Go on with the present: the rules as they ran at the registration, and what waited for the query there.

        Return the engine of the past.
        """
        assert self.present is not None
        before, self.engine, self.present = self.engine, self.present, None
        self.engine.heeds = self._heeds
        self.begins.clear()
        return before

    def _take_in(self, rules: Registry) -> None:
        """Go on with rules as they run in the other engine. Those of them that are here may lack what feeds them."""
        own = rules.registered.keys() | rules.fallen.keys()
        let_go(self.engine, own)
        join(self.engine.registry, rules, own)

    def forget(self, entry: Drop) -> None:
        """Drop a query here; those that waited for it wait no more.

        A rule that others here rest on goes when its drop is read.
        """
        if entry.registered not in self.queries:
            return
        self.queries.discard(entry.registered)
        if entry.registered == self.reader:
            self.paused = False
            if self.present is not None:
                self._go_on()
        self.engine.registry.drop_query(entry.registered)

    @property
    def engines(self) -> tuple[EngineState, ...]:
        return (self.engine, *(() if self.present is None else (self.present,)), *self.feeding)


def let_go(engine: EngineState, leaving: Collection[int]) -> None:
    """Drop queries that another registry has from now on, with what is behind. No query that stays shares events with
    them.
    """
    registry = engine.registry
    registry.forget_layout()
    for kept in (registry.registered, registry.fallen, engine.sides):
        for registered in kept.keys() & leaving:
            del kept[registered]
    for member in registry.members:
        for registered in member.network.planned.keys() & leaving:
            member.network.drop_query(registered)
        member.forget_unread()
    registry.members = [member for member in registry.members if member.network.planned]


def join(registry: Registry, side: Registry, queries: Collection[int]) -> None:
    """Move those of some queries that are left over from the registry of an engine that stands at the same position."""
    for member in side.members:
        for registered in [registered for registered in member.network.planned if registered not in queries]:
            member.network.drop_query(registered)
        if member.network.planned:
            member.network.background.replace_known(side.known, registry.known)
            member.network.arrays.give_back_room()
            member.apart = True
            registry.members.append(member)
    registry.adopt_instances(side, queries)
    registry.registered |= {registered: entry for registered, entry in side.registered.items() if registered in queries}
    registry.fallen |= {registered: entry for registered, entry in side.fallen.items() if registered in queries}


def parse_entry(entry: Register) -> a.Query:
    return parse(entry.text).query
