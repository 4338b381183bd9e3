"""This module holds what an engine has read of the log, and the queries that are behind it.

Those stand in an engine of their own, over the same terms. That engine is the whole engine where they stopped,
without what they do not rest on. So reading on brings them where they would be, and then their networks go over as
they are. Entries of the log (`CatchUp`) say what they read, and when.

If a query reads from `reads_from` on, a second engine registers it there and reads the past, with today's rules on
which it rests. At its registration the rules as they run take the place of these rules, with what waits for the
query. So the query's solutions do not depend on when it catches up.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from engine.background.changes import is_change
from engine.dictionary.term_dictionary import TermTable
from engine.errors import LogGap
from engine.messages import Block, CatchUp, Drop, Entry, Fail, Outcome, Pause, Promote, Register, Resume, StateChange, Withdraw
from engine.partitioning import ONE, PartitionShare, Sets
from engine.runtime.event_scheduler import find_reached
from engine.runtime.partition_filter import Feed
from engine.runtime.query_registry import Registry
from engine.runtime.result_assembly import NOTHING
from engine.runtime.time_course import TimeCourse
from engine.runtime.watermarks import Arrivals
from epsparql import algebra as a
from epsparql import parse

Past = Callable[[int, int], Iterable[Block]]
"""The value is the entries [lo, hi) of the log, in blocks."""


class EngineState(Registry, ABC):
    """Holds what an engine has read of the log, and the queries that are behind it."""

    def __init__(self, share: PartitionShare = ONE, sets: Sets | None = None, past: Past | None = None, terms: TermTable | None = None) -> None:
        """Begin at the start of the log.

        `share` is the engine's part of the values that events are dealt out by; `sets` are those of an engine that
        this one stands beside. `past` is where queries that are behind find the log again.
        """
        super().__init__(share, sets, terms)
        self.past: Past = past or _no_past
        self.position = 0
        """This is the offset of the next entry."""
        self.course = TimeCourse()
        """It tells where another engine may begin to read for queries that move."""
        self.behind: dict[int, Behind] = {}
        """These queries are behind the others, by the registration of the query that they wait for."""
        self.caught_up = 0
        """This counts rows of the log that were read again for queries that are behind."""
        self.heeds: Callable[[Entry], bool] = lambda _: True
        """It returns whether a control entry is for this engine."""

    def read_past(self, first: int, after: int) -> Iterator[Block]:
        """Yield the entries [first, after) of the log, and count their rows. Engines beside this one read the log here."""
        for block in self.past(first, after) if first < after else ():
            yield block
            self.caught_up += block.num_rows

    def read_log(self, upto: int) -> Iterator[Outcome]:
        """Read the log up to a position, and yield what each block brings. Raises LogGap."""
        for block in self.past(self.position, upto) if self.position < upto else ():
            yield self.apply_block(block)
        if self.position != upto:
            raise LogGap(f"the log ends at {self.position}, before {upto}")

    @abstractmethod
    def apply_block(self, block: Block) -> Outcome:
        """Apply a block."""

    @abstractmethod
    def read_span(
        self, entries: Sequence[Entry], arrived: Mapping[Feed, Arrivals], ends: Mapping[int, int]
    ) -> tuple[list[pa.RecordBatch], list[StateChange]]:
        """Apply entries without controls and return what they bring.

        Their occurrences are given by stream, their latest ends by offset.
        """

    @abstractmethod
    def beside(self) -> "EngineState":
        """Return a new engine over the same terms, which reads all rows."""

    @abstractmethod
    def beside_before(self, entry: int) -> "EngineState":
        """Return a new engine over the same terms, which reads this one's share of the log before an entry.

        Queries live there as they do at the entry.
        """


def _no_past(first: int, after: int) -> Iterable[Block]:
    raise LogGap(f"no log is at hand to read [{first}, {after}) of it again")


@dataclass(slots=True, eq=False)
class Behind:
    """Holds the queries that are behind together (`own`), because they rest on what `lead` writes.

    The engine has copies of the other rules beside them. With `replaces`, `lead` is a promotion, and the text reads
    on as the query of that number.
    """

    lead: int
    own: set[int]
    engine: EngineState
    paused: bool = False
    beginning: tuple[Register, ...] = ()  # registrations that wait for the place where the past begins
    later: EngineState | None = None  # the engine to go on with at the registration, while the past is read
    replaces: int | None = None  # the query that runs, and whose place its new text is to take

    @property
    def first(self) -> int:
        """Return the registration of the query that reads the past, or was paused."""
        return self.lead if self.replaces is None else self.replaces

    def __post_init__(self) -> None:
        self.engine.heeds = self._heeds

    def _heeds(self, entry: Entry) -> bool:
        """Return whether a control entry that is read concerns the engine.

        In the past no entry about queries does, because the rules there are those of today. Static rules are part of
        the background as it was then.
        """
        if is_change(entry, self.engine.known):
            return True
        match entry:
            case Register():
                return self.later is None and (entry.offset in self.own - {self.first} or self._writes_here(entry))
            case Drop() | Fail():
                return self.later is None
            case Pause() | Resume() | CatchUp() | Promote() | Withdraw():
                return False
            case _:
                return True

    def _writes_here(self, entry: Register) -> bool:
        """Return whether an entry registers a rule that writes what the queries here rest on."""
        into = a.written_stream(parse_entry(entry))
        return into is not None and entry.reads_from is None and into in find_reached(find_read_streams(self.engine), self.engine.rules)

    # ------------------------------------------------------------ reading on
    def read(self, upto: int) -> list[Outcome]:
        """Read the log up to a position."""
        outcomes = []
        while self.engine.position < upto or self.beginning or self.later is not None:
            if self.beginning and self.engine.position >= (self.beginning[0].reads_from or 0):
                outcomes.append(self._begin())
            elif self.later is not None and self.engine.position == self.later.position:
                self.turn()
            elif self.engine.position >= upto:
                break
            else:
                outcomes += self.engine.read_log(min(upto, self._next_stop(upto)))
        return outcomes

    def _next_stop(self, upto: int) -> int:
        if self.beginning and self.beginning[0].reads_from is not None:
            return self.beginning[0].reads_from
        return upto if self.later is None else self.later.position

    def _begin(self) -> Outcome:
        changes: list[StateChange] = []
        for entry in self.beginning:
            self.engine.enrol_query(entry, changes)
        self.beginning = ()
        return Outcome(NOTHING, tuple(changes))

    def turn(self) -> None:
        """Go on with the rules as they ran at the registration, and with what waited for the query there."""
        assert self.later is not None
        before, self.engine = self.engine, self.later
        self.later, self.beginning, self.engine.heeds = None, (), self._heeds
        join(self.engine, before, {self.first})

    def forget(self, entry: Drop) -> None:
        """Drop a query here; those that waited for it wait no more.

        A rule that others here rest on goes when its drop is read.
        """
        if entry.registered not in self.own:
            return
        self.own.discard(entry.registered)
        if entry.registered == self.first:
            self.paused = False
            if self.later is not None:
                self.engine, self.later, self.beginning = self.later, None, ()
                self.engine.heeds = self._heeds
        self.engine.drop_query(entry.registered)

    @property
    def engines(self) -> tuple[EngineState, ...]:
        return (self.engine,) if self.later is None else (self.engine, self.later)


def join(engine: EngineState, side: EngineState, own: set[int]) -> None:
    """Move the queries of `own` that are left over from an engine that stands at the same position."""
    for member in side.members:
        for registered in [registered for registered in member.network.planned if registered not in own]:
            member.network.drop_query(registered)
        if member.network.planned:
            member.network.background.replace_known(side.known, engine.known)
            member.network.arrays.give_back_room()
            member.apart = True
            engine.members.append(member)
    engine.registered |= {registered: entry for registered, entry in side.registered.items() if registered in own}
    engine.fallen |= {registered: entry for registered, entry in side.fallen.items() if registered in own}


def find_read_streams(engine: EngineState) -> set[str]:
    return {stream for member in engine.members for stream in member.network.reads}


def parse_entry(entry: Register) -> a.Query:
    return parse(entry.text).query
