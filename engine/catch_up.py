"""This module runs queries that are behind the others: paused ones, and ones that read the log from before their registration.

They stand in an engine of their own, over the same terms. That engine is the whole engine where they stopped, without what they do not rest on. So
reading on brings them where they would be, and then their networks go over as they are. Entries of the log (`CatchUp`) say what they read, and when.

If a query reads from `reads_from` on, an engine in which it is registered there reads the past, with the rules of today on which it rests. At its
registration the rules as they run take the place of these rules, with what waits for the query. So the query's solutions do not depend on when it
catches up.

A text that is to take a query's place is registered there under the query's own number, and what it finds is not told. At one entry of the log both stand
at the same position and time. There the old plan goes, and the network of the new text comes in its place (docs/decisions/0071-promotions.md).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from engine.background.changes import is_change
from engine.dictionary.arrow_encoding import one_after_another
from engine.dictionary.term_dictionary import TermTable
from engine.errors import LogGap
from engine.messages import TIED, Block, CatchUp, Drop, Entry, Fail, Outcome, Pause, Promote, Register, Resume, StateChange, Withdraw
from engine.network.network import Network
from engine.network.placed_query import Planned
from engine.partitioning import ONE, PartitionShare, Sets
from engine.physical_plan.join_trees import PlanShape
from engine.planner.builder.join_order import Rates
from engine.runtime.event_queue import Choice, Waiting
from engine.runtime.event_scheduler import ScheduledNetwork, find_reached
from engine.runtime.partition_filter import Feed
from engine.runtime.query_registry import Registry
from engine.runtime.result_assembly import NOTHING
from engine.runtime.time_course import TimeCourse
from engine.runtime.watermarks import Arrivals, StreamTime
from engine.snapshot.network_state import restore, snapshot_network
from epsparql import QueryError, parse
from epsparql import algebra as a

FAILED, PROMOTED = "failed", "promoted"
_ENDED = "the query has failed, completed or been paused, or waits for a rule that has"
_OTHER_TIME = "the new text does not stand at the time of the old one, because it waits for other streams: register it under another name"
Past = Callable[[int, int], Iterable[Block]]
"""The value is the entries [lo, hi) of the log, in blocks."""


class EngineState(Registry, ABC):
    """Holds what an engine has read of the log, and the queries that are behind it."""

    def __init__(self, share: PartitionShare = ONE, sets: Sets | None = None, past: Past | None = None, terms: TermTable | None = None) -> None:
        """Begin at the start of the log.

        `share` is the engine's part of the values that events are dealt out by; `sets` are those of an engine that this one stands beside. `past` is
        where queries that are behind find the log again.
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

    @abstractmethod
    def apply_block(self, block: Block) -> Outcome:
        """Apply a block."""

    @abstractmethod
    def read_span(
        self, entries: Sequence[Entry], arrived: Mapping[Feed, Arrivals], ends: Mapping[int, int]
    ) -> tuple[list[pa.RecordBatch], list[StateChange]]:
        """Apply entries without controls and return what they bring. Their occurrences are given by stream, their latest ends by offset."""

    @abstractmethod
    def beside(self) -> "EngineState":
        """Return a new engine over the same terms."""


def _no_past(first: int, after: int) -> Iterable[Block]:
    raise LogGap(f"no log is at hand to read [{first}, {after}) of it again")


@dataclass(slots=True, eq=False)
class Behind:
    """Holds the queries that are behind together (`own`), because they rest on what `lead` writes.

    The engine has copies of the other rules beside them. With `replaces`, `lead` is a promotion, and the text reads on as the query of that number.
    """

    lead: int
    own: set[int]
    engine: EngineState
    paused: bool = False
    beginning: tuple[Register, ...] = ()  # registrations that wait for the place where the past begins
    later: EngineState | None = None  # the engine to go on with at the registration, while the past is read
    rows: int = 0  # how many rows of the log were read
    replaces: int | None = None  # the query that runs, and whose place its new text is to take

    @property
    def first(self) -> int:
        """Return the registration of the query that reads the past, or was paused."""
        return self.lead if self.replaces is None else self.replaces

    def __post_init__(self) -> None:
        self.engine.heeds = self._heeds

    def _heeds(self, entry: Entry) -> bool:
        """Return whether a control entry that is read concerns the engine.

        In the past no entry about queries does, because the rules there are those of today. Static rules are part of the background as it was then.
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
        into = _writes(entry)
        return into is not None and entry.reads_from is None and into in find_reached(_read_in(self.engine), self.engine.rules)

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
                outcomes += self._feed(min(upto, self._next_stop(upto)))
        return outcomes

    def _next_stop(self, upto: int) -> int:
        if self.beginning and self.beginning[0].reads_from is not None:
            return self.beginning[0].reads_from
        return upto if self.later is None else self.later.position

    def _feed(self, upto: int) -> list[Outcome]:
        engine = self.engine
        outcomes = []
        for block in engine.past(engine.position, upto):
            outcomes.append(engine.apply_block(block))
            self.rows += block.num_rows
        assert engine.position == upto, "the log has what is read of it"
        return outcomes

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
        """Drop a query here; those that waited for it wait no more. A rule that others here rest on goes when its drop is read."""
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


# ---------------------------------------------------------------- falling behind
def pause(engine: EngineState, entry: Pause) -> None:
    """Take a running query, and what rests on it, out of the engine. A query that is behind already reads no further."""
    if (known := engine.behind.get(entry.registered)) is not None:
        known.paused = True
    elif entry.registered in engine.registered:
        own = {entry.registered, *entry.holds}
        engine.behind[entry.registered] = Behind(entry.registered, own, fork(engine, entry.offset, own), paused=True)


def register_query(engine: EngineState, entry: Register) -> bool:
    """Take in a query that is behind from the first; return False for any other."""
    if entry.waits_for is not None and entry.waits_for in engine.behind:
        engine.behind[entry.waits_for].own.add(entry.offset)
        return True
    if entry.reads_from is None:
        return False
    engine.behind[entry.offset] = begin_behind(engine, entry.offset, entry)
    return True


def begin_behind(engine: EngineState, lead: int, entry: Register) -> Behind:
    """Return what is behind from the position `lead` on: a query that reads the past, which is not in the engine, and those that it holds."""
    held, streams = set(entry.holds), set(_parsed(entry).streams)
    rests_on = find_reached(streams, engine.rules)
    rules = [rule for rule in engine.registered.values() if rule.offset not in held and _writes(rule) in rests_on]
    later = fork(engine, lead, held, streams)
    beginning = tuple(replace(rule, reads_from=entry.reads_from, holds=(), waits_for=None) for rule in (*rules, entry))
    return Behind(lead, {entry.offset, *held}, engine.beside(), beginning=beginning, later=later)


def fork(engine: EngineState, at: int, own: set[int], streams: Iterable[str] = ()) -> EngineState:
    """Return the engine at the position `at`, as far as `own` and `streams` rest on it.

    The queries `own` go over to it; it has copies of the rest.
    """
    side = engine.beside()
    side.position, side.known = at, engine.known
    side.streams = {name: replace(stream) for name, stream in engine.streams.items()}
    side.fallen = dict(engine.fallen)
    read = {stream for member in engine.members for p in member.network.planned.values() if p.registered in own for stream in p.source.query.streams}
    rests_on = find_reached(read | set(streams), engine.rules)
    for member in list(engine.members):
        wanted = [p for p in member.network.planned.values() if p.registered in own or p.writes in rests_on]
        going = [p.registered for p in wanted if p.registered in own]
        side.registered |= {p.registered: engine.registered[p.registered] for p in wanted if p.registered in engine.registered}
        if len(going) == len(member.network.planned):
            engine.members.remove(member)
            side.members.append(member)
        elif wanted:
            side.members.append(copied(side, member, wanted))
            for registered in going:
                member.network.drop_query(registered)
    for registered in own:
        engine.registered.pop(registered, None)
    return side


def join(engine: EngineState, side: EngineState, own: set[int]) -> None:
    """Move the queries of `own` that are left over from an engine that stands at the same position."""
    for member in side.members:
        for registered in [registered for registered in member.network.planned if registered not in own]:
            member.network.drop_query(registered)
        if member.network.planned:
            member.network.background.replace_known(side.known, engine.known)
            engine.members.append(member)
    engine.registered |= {registered: entry for registered, entry in side.registered.items() if registered in own}
    engine.fallen |= {registered: entry for registered, entry in side.fallen.items() if registered in own}


def copied(
    side: EngineState, member: ScheduledNetwork, queries: Sequence[Planned], needs: Choice | None = None
) -> ScheduledNetwork:  # fmt: skip
    """Return a network with copies of some queries of another one, as they stand. Of what waits, it has what `needs` chooses by its ends."""
    meta, arrays = snapshot_network(member.network, queries)
    network = Network(
        side.terms, known=member.network.planning.known, owns=side.make_owner_test(member.part), without=member.network.planning.without
    )

    def add(registered: int, rates: Rates, shape: PlanShape | None) -> None:
        side.restore_query(network, side.registered[registered], rates, shape, member.network.planning.knows[registered])

    restore(network, deepcopy(meta), arrays, add)  # collectors give what they work on
    network.planning.known = member.network.planning.known
    network.background.coming, network.background.begun = member.network.background.coming, member.network.background.begun
    return ScheduledNetwork(network, member.time, Waiting.from_table(member.pending.choose(needs)), member.part, member.revised, member.silent)


def _read_in(engine: EngineState) -> set[str]:
    return {stream for member in engine.members for stream in member.network.reads}


def _writes(entry: Register) -> str | None:
    return a.written_stream(_parsed(entry))


def _parsed(entry: Register) -> a.Query:
    return parse(entry.text).query


# ---------------------------------------------------------------- another text in a query's place
def promote(engine: EngineState, entry: Promote) -> StateChange | None:
    """Let a text take a query's place at once, or let it read the past first. Return how that ended, if it has."""
    try:
        return _promote(engine, entry)
    except QueryError as fault:  # another version took the text
        return StateChange(entry.offset, entry.name, entry.offset, FAILED, str(fault))


def _promote(engine: EngineState, entry: Promote) -> StateChange | None:
    if entry.keeps:  # the plan that runs finds what the text asks for
        return StateChange(entry.offset, entry.name, entry.offset, PROMOTED, "")
    if entry.registered not in engine.registered:
        return StateChange(entry.offset, entry.name, entry.offset, FAILED, _ENDED)
    begins = entry.offset + 1 if entry.reads_from is None else entry.reads_from
    limits = entry.max_derivations, entry.max_goals, entry.max_state_bytes
    query = Register(entry.registered, entry.name, entry.text, entry.policy, entry.default_graph, *limits, begins)
    if entry.reads_from is not None:
        behind = engine.behind[entry.offset] = begin_behind(engine, entry.offset, query)
        behind.replaces = entry.registered
        if entry.begins is not None:  # nothing before matters, and the background is the same since
            behind.engine.position, behind.engine.known = entry.begins, engine.known
            behind.engine.streams = {name: StreamTime(watermark, latest, fed) for name, watermark, latest, fed in entry.marks}
        return None
    side, changes = fork(engine, entry.offset, set(), parse(entry.text).query.streams), list[StateChange]()
    side.enrol_query(query, changes)
    if changes:
        return StateChange(entry.offset, entry.name, entry.offset, FAILED, changes[0].reason)
    return _take_over(engine, Behind(entry.offset, {entry.registered}, side, replaces=entry.registered), entry.name, entry.offset)


def read_promotion(engine: EngineState, behind: Behind, entry: CatchUp) -> StateChange | None:
    """Let the text of a promotion read on, and take over where it has read all. Return how the promotion ended, if it has."""
    assert behind.replaces is not None
    name = next((each.name for each in (engine.registered.get(behind.replaces), *behind.beginning) if each is not None), "")
    for outcome in behind.read(min(entry.upto, entry.offset)):
        for change in outcome.changes:
            if change.registered == behind.replaces:
                del engine.behind[behind.lead]
                return StateChange(behind.lead, name, entry.offset, FAILED, f"the new text {change.state} while it caught up: {change.reason}")
    if behind.engine.position < entry.offset:
        return None
    del engine.behind[behind.lead]
    return _take_over(engine, behind, name, entry.offset)


def _take_over(engine: EngineState, behind: Behind, name: str, at: int) -> StateChange:
    """Exchange a query's plan for that of its new text, which has read the log as far."""
    assert behind.replaces is not None
    old, new = (_find_member(each, behind.replaces) for each in (engine, behind.engine))
    if old is None or new is None:
        return StateChange(behind.lead, name, at, FAILED, _ENDED)
    if old.time != new.time:
        return StateChange(behind.lead, name, at, FAILED, _OTHER_TIME)
    engine.drop_query(behind.replaces)
    join(engine, behind.engine, {behind.replaces})
    return StateChange(behind.lead, name, at, PROMOTED, "")


def _find_member(engine: EngineState, registered: int) -> ScheduledNetwork | None:
    return next((member for member in engine.members if registered in member.network.planned), None)


# ---------------------------------------------------------------- what it brings
def of_own(outcome: Outcome, own: set[int], entry: int) -> Outcome:
    """Return the part of an outcome that is news, as of the entry that let it be read."""
    changes = tuple(replace(change, entry=entry) for change in outcome.changes if change.registered in own)
    found = outcome.solutions
    if found.num_rows:
        found = found.filter(pa.array(np.isin(found.column("registered").to_numpy(), list(own))))
        found = found.set_column(2, found.schema.field("entry"), pa.array(np.full(found.num_rows, entry, np.int64)))
    return Outcome(found, changes)


def merge_caught_up(solutions: pa.RecordBatch, caught: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Merge solutions with those that were caught up with, in order of entry."""
    if "by" in solutions.schema.names:
        caught = [part.append_column(TIED.field("by"), pa.nulls(part.num_rows, TIED.field("by").type)) for part in caught]
    parts = [part for part in (solutions, *caught) if part.num_rows]
    if len(parts) < 2:
        return parts[0] if parts else solutions
    whole = one_after_another(parts)
    return whole.take(pa.array(np.argsort(whole.column("entry").to_numpy(), kind="stable")))
