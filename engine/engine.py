"""This module holds the engine, which runs all queries of one partition as a function of the log entries that it was
fed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeGuard, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.background.changes import RuleRejected, apply_change, is_change, read_static_rule
from engine.background.fact_store import FactIndex
from engine.dictionary.batch_layout import TERMS
from engine.dictionary.term_dictionary import IRI, LITERAL, TermTable
from engine.engine_state import EngineState, Past, join
from engine.errors import LogGap, OnePartitionOnly, SnapshotMismatch
from engine.kernel.state import layout as c
from engine.messages import (
    OCCURRENCES,
    REVISED,
    Block,
    CatchUp,
    Drop,
    DropStream,
    Entail,
    Entry,
    Events,
    Facts,
    Fail,
    Finish,
    Micros,
    Outcome,
    Pause,
    Promote,
    Register,
    Resume,
    Revise,
    SetStream,
    StateChange,
    Tick,
    Withdraw,
)  # fmt: skip
from engine.network.network import Network
from engine.network.placed_query import Planned
from engine.partitioning import ONE, Division, Moved, PartitionShare, Sets, TimeSlices
from engine.query_lifecycle.catch_up import copied, merge_caught_up, of_own, pause, register_query
from engine.query_lifecycle.moves import FROM_BEGINNING, STRANDED, Renumbering, Start, StartFinder, begin, let_go, stay, times_of
from engine.query_lifecycle.network_union import unite_networks
from engine.query_lifecycle.promotion import promote, read_promotion
from engine.query_lifecycle.replay import read_again
from engine.revision.revision import Revision, span_times
from engine.runtime.dispatch import Layout, Listener
from engine.runtime.event_queue import KEY
from engine.runtime.event_scheduler import find_reached
from engine.runtime.partition_filter import Feed, cut_at_controls, route_rows
from engine.runtime.result_assembly import NOTHING, assemble_solutions, list_parts, make_outlets, read_part, sort_by_emission
from engine.runtime.time_course import TimeCourse
from engine.runtime.watermarks import (
    NO_ARRIVALS,
    NO_TIME,
    Arrivals,
    NetworkTime,
    advance_stream,
    advance_to,
    concatenate_arrivals,
    find_latest,
    find_latest_end,
    find_latest_ends,
    find_query_time,
    make_arrivals,
)
from engine.snapshot.format import Fetch, Put, pack, unpack
from engine.state_size import Own
from engine.stored_state import restore_state, state_of, terms_of
from epsparql import QueryError, parse
from epsparql import algebra as a

Ints = NDArray[np.int64]
Control = Register | Pause | Resume | CatchUp | Promote | Withdraw | Drop | Fail | Revise | Facts | Entail | DropStream
_CONTROLS = frozenset(get_args(Control))
_NO_OUTCOME = Outcome(NOTHING, ())
FEW = 16
"""So many entries are applied one by one. One takes a tenth of the time of a block of them."""
WEIGHED_EVERY = 256
"""What collectors hold counts after every so many entries of the log.

Collectors decide on many instants at once, as the blocks have it; quotas may not.
"""


def is_control(entry: Entry) -> TypeGuard[Control]:
    return type(entry) in _CONTROLS


class Engine(EngineState):
    """Runs queries deterministically: the same entries give the same outcome, however they are cut into blocks.

    It has no clock, no threads and no I/O.
    """

    def __init__(self, share: PartitionShare = ONE, sets: Sets | None = None, past: Past | None = None, terms: TermTable | None = None) -> None:
        super().__init__(share, sets, past, terms)
        self._ends: Mapping[int, int] = {}  # the latest ends, by offset, in the block that is being fed
        self._caught: list[pa.RecordBatch] = []  # solutions of queries that are behind, and changes of revised ones, that this block brings
        self._lost: list[StateChange] = []  # failures of queries that moved
        self._later: dict[Listener, list[Ints]] | None = None  # while a few entries are applied: what was found, to be made into solutions at once
        self.revision = Revision(self)

    # ------------------------------------------------------------ entries
    def feed(self, block: Block) -> Outcome:
        """Apply a block. Raises LogGap if it does not start at `position`."""
        outcome = self.apply_block(block)
        self.course.note(self.position, self.streams)
        if self.terms.due:  # most often it is not, and who holds terms need not be asked
            self.terms.collect(member.pending.terms for engine in self.engines() for member in engine.members)
        return outcome

    def apply_block(self, block: Block) -> Outcome:
        """Apply a block as `feed` does, without freeing terms, because other engines may hold some."""
        first, layout = block.entries[0], self._layout
        if first.offset != self.position:
            raise LogGap(f"the engine stands at {self.position}, the block starts at {first.offset}")
        if layout is not None and self.share.whole and len(block.entries) <= FEW:
            events = [entry for entry in block.entries if isinstance(entry, Events) and not entry.retracts]
            if len(events) == len(block.entries):
                return self._apply_few(layout, events, block.rows)
        found: list[pa.RecordBatch] = []
        changes: list[StateChange] = []
        for part in [block] if self.share.whole else cut_at_controls(block):
            self._feed(part, found, changes)
        return self._sum_up(found, changes)

    def _sum_up(self, found: Sequence[pa.RecordBatch], changes: Sequence[StateChange]) -> Outcome:
        if not (found or changes or self._caught or self._lost) and self.share.whole:  # as of most events
            return _NO_OUTCOME
        solutions, caught, lost = sort_by_emission(found, tied=not self.share.whole), self._caught, self._lost
        self._caught, self._lost = [], []
        return Outcome(merge_caught_up(solutions, caught) if caught else solutions, (*changes, *lost))

    def _apply_few(self, layout: Layout, entries: Sequence[Events], batch: pa.RecordBatch) -> Outcome:
        """Apply entries that bring occurrences to networks that stand as they did, one by one; most of a live stream
        come alone, or a few at once.
        """
        found: list[pa.RecordBatch] = []
        changes: list[StateChange] = []
        revisable = any(entry.stream in self.streams and self.streams[entry.stream].revisable for entry in entries)
        table = self.terms.take(batch, TERMS if revisable else layout.terms_wanted, 0) if batch.num_rows else NO_ARRIVALS.table
        rows, begin, revision, later = 0, 0, self.revision, dict[Listener, list[Ints]]()
        self._later = later
        for entry in entries:
            new: dict[Feed, Arrivals] = {}
            latest, rows = NO_TIME, rows + entry.rows
            if entry.rows:
                after = int(table[c.IN_ENTRY].searchsorted(rows))
                arrived = new[entry.stream, None] = Arrivals(table[:, begin:after].copy())
                arrived.table[c.IN_SINCE], begin, latest = entry.offset, after, find_latest_end(arrived)
            if entry.revises and revision.is_upset_by(entry):
                revision.upset(new[entry.stream, None].end)
                layout = self.layout
            ahead = None if revision.ahead is None else (revision.translate([entry], {entry.offset: latest}), dict(new))
            self._pass_one(layout, entry, latest, new, found, changes)
            if ahead is not None:
                self._caught += revision.follow_span(*ahead, span_times({}, layout.order), changes)
            if self._weighs_after(entry):
                self._weigh(entry.offset, changes)
            self.position = entry.offset + 1
            if self._layout is None:  # a query has ended, and networks may wait for other streams now
                break
        self._later = None
        for listener, parts in later.items():
            together = parts[0] if len(parts) == 1 else np.concatenate(parts)
            self._collect(layout, listener, together, listener.member.network.planning.known, {}, found)
        if rest := tuple(entry for entry in entries if entry.offset >= self.position):
            self._feed(Block(rest, batch.slice(rows)), found, changes)
        return self._sum_up(found, changes)

    def _pass_one(
        self, layout: Layout, entry: Events, latest: Micros, new: dict[Feed, Arrivals], found: list[pa.RecordBatch], changes: list[StateChange]
    ) -> None:
        """Let the networks take in one entry, as `_pass` does for many."""
        advance_to(self.streams, entry.stream, entry.watermark, latest)
        for listener in layout.by_stream.get(entry.stream, ()):
            member = listener.member
            time = find_query_time(listener.gate, layout.sources, self.streams, member.time)
            self._run(layout, listener, member.feed_one(entry.offset, time, listener.select_feeds(new)), new, found, changes)

    def _weighs_after(self, entry: Entry) -> bool:
        return entry.offset % WEIGHED_EVERY == WEIGHED_EVERY - 1 and any(member.network.quotas.weighs_collectors for member in self.members)

    def _feed(self, block: Block, found: list[pa.RecordBatch], changes: list[StateChange]) -> None:
        arrived = self._arrivals(block)
        span: list[Entry] = []
        for entry in block.entries:
            if is_control(entry):
                self._pass(span, arrived, found, changes)
                rules = self.rules
                self._control(entry, changes)
                unite_networks(self, entry.offset)
                moves_time = isinstance(entry, DropStream) or self.rules != rules  # what queries wait for is another then
                span = [entry] if moves_time else []
                if moves_time or is_change(entry, self.known):
                    self.revision.interrupt()
            elif isinstance(entry, Events) and (entry.retracts or self.revision.is_upset_by(entry)):
                self._pass(span, arrived, found, changes)
                span = [entry]
                if entry.retracts or self.revision.is_upset_by(entry):  # still, as the queries that read its stream may have failed in the span
                    taken = self._retract(block, entry, arrived) if entry.retracts else []
                    came = [part.end[part.since == entry.offset] for part in (arrived.get((entry.stream, None)),) if part is not None]
                    self.revision.upset(np.concatenate([np.array(taken, np.int64), *came]))
            else:
                if isinstance(entry, SetStream) and not self.share.whole:
                    self._pass(span, arrived, found, changes)  # queries that move stand before the entry
                    span = []
                span.append(entry)
            if isinstance(entry, SetStream | DropStream):
                self._declare(entry)
            if self._weighs_after(entry):
                self._pass(span, arrived, found, changes)
                span = []
                self._weigh(entry.offset, changes)
        self._pass(span, arrived, found, changes)
        self.position = block.after

    def _arrivals(self, block: Block) -> dict[Feed, Arrivals]:
        """Return the block's occurrences by stream, without late ones."""
        if not block.num_rows:
            self._ends = {}
            return {}
        if not self.share.whole:
            return self._routed(block)
        wanted = self._terms_wanted(block)
        events = [e for e in block.entries if isinstance(e, Events)]
        arrived = Arrivals(self.terms.take(block.rows, wanted, 0))
        arrived.table[c.IN_SINCE] = np.repeat([e.offset for e in events], [e.rows for e in events])[arrived.row]
        self._ends = find_latest_ends(arrived)
        if not wanted:
            return {}
        names = list(dict.fromkeys(e.stream for e in events))
        if len(names) == 1:
            return {(names[0], None): arrived}
        which = np.repeat([names.index(e.stream) for e in events], [e.rows for e in events])[arrived.row]
        return {(name, None): arrived.where(which == k) for k, name in enumerate(names)}

    def _retract(self, block: Block, entry: Events, arrived: dict[Feed, Arrivals]) -> list[Micros]:
        """Take back what an entry retracts: occurrences that wait, and those of its own rows that come before the
        retraction. Return their ends.
        """
        if not self.share.whole:
            raise OnePartitionOnly(f"the log has retractions at offset {entry.offset}: run it with one partition (--partitions 1)")
        begin = sum(each.rows for each in block.entries if isinstance(each, Events) and each.offset < entry.offset)
        rows = np.concatenate([np.arange(first, after) for first, after in entry.retracts])
        taken = block.rows.take(pa.array(begin + rows))
        timely = taken.set_column(6, OCCURRENCES.field("late"), pa.array(np.zeros(len(rows), np.bool_)))
        keys = dict(zip(map(tuple, self.terms.take(timely, TERMS, 0)[KEY].T.tolist()), (begin + rows).tolist(), strict=True))
        for engine in self.engines():
            for member in engine.members:
                member.retract(entry.stream, keys.keys())
        feed = entry.stream, None
        if feed in arrived:
            part = arrived[feed]
            places = np.flatnonzero((part.since == entry.offset) & np.isin(part.end, [end for *_, end in keys]))
            gone = [k for k in places.tolist() if part.table.item(c.IN_ENTRY, k) < keys.get(tuple(part.table[KEY, k].tolist()), -1)]
            arrived[feed] = part.where(np.delete(np.arange(len(part)), gone)) if gone else part
        return [end for *_, end in keys]

    def _routed(self, block: Block) -> dict[Feed, Arrivals]:
        """Return the occurrences that concern this partition, for networks that are dealt out and for those that live
        here.
        """
        wanted: dict[str, set[Division | None]] = {}
        for member in self.members:
            for name in member.network.reads:
                wanted.setdefault(name, set()).add(member.part)
        waits = any(len(find_reached(member.network.reads, self.rules)) > 1 for member in self.members if member.part is not None)
        found, self._ends = route_rows(block, wanted, self.share, self.terms, self.message_keys, marked=waits or any(True for _ in self.known))
        return found

    def _terms_wanted(self, block: Block) -> int:
        """Return how many of subject, predicate, object and graph the queries look at.

        The graph's name alone is often all that is new in an occurrence.
        """
        if any(isinstance(entry, Register | CatchUp | Promote) or self._is_revisable(entry) for entry in block.entries):
            return TERMS
        if not self.members:
            return 0
        return TERMS if self._layout is None else self._layout.terms_wanted

    def _is_revisable(self, entry: Entry) -> bool:
        """Return whether an entry brings occurrences that may be taken back, for which all four terms tell them apart."""
        if isinstance(entry, SetStream):
            return entry.revisable is not None
        return isinstance(entry, Events) and entry.stream in self.streams and self.streams[entry.stream].revisable

    def _control(self, entry: Control, changes: list[StateChange]) -> None:
        if not self.heeds(entry):
            return
        if isinstance(entry, Revise):
            self._caught += self.revision.revise(entry.offset, changes)
            return
        self._layout = None
        if is_change(entry, self.known):
            self._change_background(entry, changes)
            self.course.last_break = entry.offset
            return
        match entry:
            case Register():
                self.register(entry, changes)
            case Pause():
                self._move(self.sets.keep_home(entry.offset, entry.registered), entry.offset)
                pause(self, entry)
            case Resume():
                if entry.registered in self.behind:
                    self.behind[entry.registered].paused = False
            case CatchUp():
                self._catch_up(entry, changes)
            case Promote():
                if self._lives_on_here(entry):
                    changes += [change] if (change := promote(self, entry)) is not None else []
            case Withdraw():
                self.behind.pop(entry.promotion, None)
            case Drop():
                self.revision.forget_query(entry.registered)
                self.sets.drop(entry.registered, entry.offset)
                if self.share.whole and not self._is_plain(entry.registered):
                    self.course.last_break = entry.offset  # no set remembers what it derived
                self.drop_query(entry.registered)
                for behind in self.behind.values():
                    behind.forget(entry)
                self.behind = {lead: behind for lead, behind in self.behind.items() if behind.own}
            case Fail():
                if entry.registered in self.registered:
                    self.revision.forget_query(entry.registered)
                    changes.append(self.fail_query(entry.registered, entry.offset, entry.reason))
            case DropStream():
                self.streams.pop(entry.stream, None)
                self.course.last_break = entry.offset

    def _lives_on_here(self, entry: Promote) -> bool:
        """Return whether a promotion concerns this partition: its text reads the past beside the query, in one
        partition.
        """
        if self.share.whole or entry.keeps:
            return True
        self._find_place(Register(entry.offset, entry.name, entry.text, entry.policy, reads_from=entry.offset, waits_for=entry.registered))
        return self.is_home(entry.registered)

    def _find_place(self, entry: Register) -> bool:
        """Give a new query its place, and return whether it has state in this partition.

        A text that another version took is refused in each.
        """
        if self.share.whole:
            return True
        try:
            query = parse(entry.text).query
        except QueryError:
            return True
        assert not isinstance(query, a.BackgroundRule), "that is part of the background"
        self._move(self.sets.add(entry, query, self.known, self.message_keys, self.find_reach), entry.offset)
        return self.sets.route(entry.offset) is not None and self.is_home(entry.offset)

    def _move(self, moved: Sequence[Moved], after: int) -> None:
        """Let go of the queries that move at the entry `after`, and take in those that live here from it on
        (docs/decisions/0104-moves-of-one-set.md).

        An engine beside reads the log before the entry for them. Where the log lacks what they rest on, they fail.
        """
        if not moved:
            return
        finder = StartFinder(self)
        coming = [
            (each, finder.find_start(each) if each.before.part is not None and each.route.part is None and not each.anew else None)
            for each in moved
            if each.route.part is not None or each.route.home == self.share.partition
        ]
        for each in moved:
            let_go(self, each.members)
        for each, gap in self._take_in(coming, after):
            left = {registered: entry for registered, entry in each.members.items() if registered not in each.gone}
            self.fallen |= left
            self._lost += [StateChange(entry.offset, entry.name, after, "failed", STRANDED.format(gap)) for entry in left.values()]

    def change_share(self, renumbering: Renumbering, share: PartitionShare) -> list[tuple[Moved, LogGap]]:
        """Become the engine of a partition among another number of them.

        Return what the log lacks entries for; then the engine is of no use.
        """
        stay(self, renumbering, share)
        stranded = self._take_in(renumbering.list_coming(share.partition), self.position)
        for registered in self.registered.keys() & renumbering.fallen.keys():  # they failed in another partition
            self.fail_query(registered, self.position, "")
        return stranded

    def _take_in(self, coming: Sequence[tuple[Moved, Start | None]], after: int) -> list[tuple[Moved, LogGap]]:
        """Take over queries, and what is behind, from an engine beside that reads the log before the entry `after`,
        from their starts on.

        Those that do not come to the times of their starts are read for from the beginning. Return those that the log
        lacks entries for.
        """
        stranded = list[tuple[Moved, LogGap]]()
        near = [(each, start) for each, start in coming if start is not None]
        far = [(each, FROM_BEGINNING) for each, start in coming if start is None]
        for together in (near, far):
            try:
                unsettled = self._read_for(together, after) if together else []
            except LogGap as gap:
                stranded += [(each, gap) for each, _ in together]
            else:
                far += [(each, FROM_BEGINNING) for each in unsettled]
        return stranded

    def _read_for(self, coming: Sequence[tuple[Moved, Start]], after: int) -> list[Moved]:
        """Read the log between the first of some starts and the entry `after`, and take over the queries but those
        that are returned.

        Each set begins at its own start. Raises LogGap.
        """
        side, heeded = self.beside_before(after), set[int]()
        side.heeds = lambda entry: not isinstance(entry, Register) or entry.offset in heeded or read_static_rule(entry) is not None
        in_order = sorted(coming, key=lambda each: each[1].place.position)
        place = in_order[0][1].place
        side.position, side.streams = place.position, {name: replace(stream) for name, stream in place.streams.items()}
        if place.position:  # since then they are as they are now
            side.known, side.message_keys = self.known, dict(self.message_keys)
        for each, start in in_order:
            self._read_beside(side, start.place.position)
            heeded |= each.members.keys()
            begin(side, start)
        self._read_beside(side, after)
        times = times_of(side)
        unsettled = [
            each
            for each, start in coming
            if start.times is not None and start.times != {registered: times[registered] for registered in each.members.keys() & times.keys()}
        ]
        own = heeded.difference(*(each.members for each in unsettled))
        join(self, side, own & (side.registered.keys() | side.fallen.keys()))
        followers = {lead: behind for lead, behind in side.behind.items() if lead in own}
        self.behind |= followers
        for engine in (engine for behind in followers.values() for engine in behind.engines):
            engine.past = self.read_past  # the side engine goes
        return unsettled

    def _read_beside(self, side: "Engine", after: int) -> None:
        """Let an engine beside read the log before the entry `after`. Raises LogGap."""
        for _ in side.read_log(after):
            if self.terms.due:
                self.terms.collect(member.pending.terms for each in (*self.engines(), *side.engines()) for member in each.members)

    def _declare(self, entry: SetStream | DropStream) -> None:
        """Take up the message key that a stream declares."""
        before, key = self.message_keys.get(entry.stream), entry.message_key if isinstance(entry, SetStream) else None
        if key != before:
            self.message_keys = {stream: other for stream, other in self.message_keys.items() if stream != entry.stream}
            if key is not None:
                self.message_keys[entry.stream] = key
            if self.share.whole:
                self.course.last_break = entry.offset  # no set remembers the earlier key
            self._move(self.sets.forget_message_key(entry.offset, entry.stream), entry.offset)

    def _change_background(self, entry: Entry, changes: list[StateChange]) -> None:
        """Take up the background after an entry. A static rule that cannot stand is a change of its state."""
        reason = "with what it derives, a rule over streams would read its own negation without a strict step in time"
        try:
            accepted = self._learn(apply_change(self.known, entry), entry.offset, changes)
        except RuleRejected as rejected:
            accepted, reason = False, str(rejected)
        if isinstance(entry, Register) and not accepted:
            changes.append(StateChange(entry.offset, entry.name, entry.offset, "failed", reason))

    def _learn(self, known: FactIndex, entry: int, changes: list[StateChange]) -> bool:
        """Take up another background, and return whether it closes no cycle.

        Queries that then decide by what they have let go get it from the log.
        """
        is_concerned, looks_further = partial(self.is_concerned, known=known), partial(self.looks_further, known=known)
        self._move(self.sets.learn(entry, known, self.message_keys, is_concerned, looks_further), entry)
        if not self.accepts_background(known):
            return False
        for member in list(self.members):
            for planned in member.network.background.find_needing_past(known, member.time):
                if (reason := read_again(self, planned, entry)) is not None:
                    member.network.net.at[c.ENTRY] = entry
                    member.network.host.fail_query(planned, reason)
            member.network.slots.free_dropped()
            self._note_ends(member.network, changes)
        self.members = [member for member in self.members if member.network.planned]
        self.announce_background(known)
        return True

    def _weigh(self, entry: int, changes: list[StateChange]) -> None:
        """Hold queries to their quotas of bytes, as of the entry that has just been applied."""
        for member in self.members:
            member.network.host.weigh_collectors(entry)
            self._note_ends(member.network, changes)

    # ------------------------------------------------------------ what is behind
    def beside(self) -> "Engine":
        """Return a new engine over the same terms, which reads all rows and plans as this one does."""
        found = Engine(past=self.read_past, terms=self.terms)
        found.without = self.without
        return found

    def beside_before(self, entry: int) -> "Engine":
        """Return a new engine over the same terms, which reads this one's share of the log before an entry.

        Queries live there as they do at the entry.
        """
        return Engine(self.share, self.sets.settled(entry), self.read_past, self.terms)

    def look_back_by(self, past: Past) -> None:
        """Set where queries that are behind find the log again; a restored engine must be told too."""
        self.past = past

    def engines(self) -> Iterator[EngineState]:
        """Return this engine and those beside it."""
        yield self
        yield from self.revision.engines
        for behind in self.behind.values():
            yield from behind.engines

    def _catch_up(self, entry: CatchUp, changes: list[StateChange]) -> None:
        behind = self.behind.get(entry.registered)
        if behind is None or behind.paused:
            return
        if behind.replaces is not None:
            changes += [change] if (change := read_promotion(self, behind, entry)) is not None else []
            return
        for outcome in behind.read(min(entry.upto, entry.offset)):
            news = of_own(outcome, behind.own, entry.offset)
            self._caught.append(news.solutions)
            changes += news.changes
        if behind.engine.position == entry.offset:
            del self.behind[entry.registered]
            join(self, behind.engine, behind.own)

    # ------------------------------------------------------------ queries
    def _is_plain(self, registered: int) -> bool:
        """Return whether a query runs here and is no rule."""
        return any(registered in member.network.planned and registered not in member.network.rules for member in self.members)

    def drop_query(self, registered: int) -> None:
        rules = self.rules
        super().drop_query(registered)
        if self.rules != rules:
            self._part_networks()

    def _part_networks(self) -> None:
        """Part the queries of each network that reach the same streams no longer, because a rule has gone: none may
        wait for another's.

        What waits on streams that their network waits for no longer goes, because its end would move their first
        instant.
        """
        for member in list(self.members):
            by_gate: dict[frozenset[str], list[Planned]] = {}
            for planned in member.network.planned.values():
                by_gate.setdefault(frozenset(find_reached(planned.source.query.streams, self.rules)), []).append(planned)
            for queries in list(by_gate.values())[1:]:
                self.members.append(copied(self, member, queries))
                for planned in queries:
                    member.network.drop_query(planned.registered)
        for member in self.members:
            member.forget_unread()

    def register(self, entry: Register, changes: list[StateChange]) -> None:
        """Take in a query; a fault in it is a change of its state."""
        if not self.share.whole and entry.emit == REVISED:
            raise OnePartitionOnly(f"the log has a revised query at offset {entry.offset}: run it with one partition (--partitions 1)")
        if not self._find_place(entry):
            return
        try:
            if register_query(self, entry):
                return
        except Exception as fault:  # noqa: BLE001  # as below
            changes.append(StateChange(entry.offset, entry.name, entry.offset, "failed", f"internal error: {type(fault).__name__}: {fault}"))
            return
        self.enrol_query(entry, changes)
        if entry.emit == REVISED and entry.offset in self.registered:
            self.revision.add_query(entry)

    # ------------------------------------------------------------ time
    def read_span(
        self, entries: Sequence[Entry], arrived: Mapping[Feed, Arrivals], ends: Mapping[int, int]
    ) -> tuple[list[pa.RecordBatch], list[StateChange]]:
        found, changes, first = list[pa.RecordBatch](), list[StateChange](), entries[0] if entries else None
        self._ends = ends
        if len(entries) == 1 and isinstance(first, Events) and self._layout is not None:
            self._pass_one(self._layout, first, ends.get(first.offset, NO_TIME), dict(arrived), found, changes)
        else:
            self._pass(entries, arrived, found, changes)
        return found, changes

    def _pass(self, entries: Sequence[Entry], arrived: Mapping[Feed, Arrivals], found: list[pa.RecordBatch], changes: list[StateChange]) -> None:
        """Let the networks take in a stretch of entries without controls.

        Networks on whose rules others rest come first.
        """
        if not entries:
            return
        first, last = entries[0].offset, entries[-1].offset
        whole = all(part.since[0] >= first and part.since[-1] <= last for part in arrived.values() if len(part))
        new = dict(arrived) if whole else {s: part.where((part.since >= first) & (part.since <= last)) for s, part in arrived.items()}
        ahead, feeds = self.revision.translate(entries, self._ends), dict(new)
        settled, layout = self._layout is not None, self.layout
        courses = self._courses(layout, entries, settled)
        passed = {} if self.revision.ahead is None else span_times(courses, layout.order)  # before any of the queries fails
        for listener in layout.order:
            if listener in courses:
                feed = listener.member.feed(entries, courses[listener], listener.select_feeds(new))
                self._run(layout, listener, feed, new, found, changes)
        if self.revision.ahead is not None:
            self._caught += self.revision.follow_span(ahead, feeds, passed, changes)

    def _courses(self, layout: Layout, entries: Sequence[Entry], settled: bool) -> dict[Listener, NetworkTime]:
        """Return how the entries move the time of each network.

        Only occurrences on streams that a network does not wait for surely leave its time unchanged.
        """
        courses: dict[Listener, NetworkTime] = {}
        for k, entry in enumerate(entries):
            stream = advance_stream(self.streams, entry, self._ends)
            everyone = isinstance(entry, Tick | Finish) or (k == 0 and not settled)
            for listener in layout.order if everyone else layout.by_stream.get(stream or "", ()):
                if listener not in courses:
                    courses[listener] = NetworkTime.from_time(listener.member.time, len(entries))
                course = courses[listener]
                course.reach(k, find_query_time(listener.gate, layout.sources, self.streams, course.now))
                if everyone:
                    course.latest[k] = find_latest(listener.gate, self.streams)
        return courses

    def _run(
        self, layout: Layout, listener: Listener, feed: Ints, new: dict[Feed, Arrivals], found: list[pa.RecordBatch], changes: list[StateChange]
    ) -> None:
        """Let a network's kernel take in a feed.

        Sort the rows found to its queries, and hand what rules derived to the networks that read it.
        """
        network = listener.member.network
        before = list(network.planned.values()) if network.background.coming is not None else []
        known, begun = network.planning.known, network.begun
        rows = network.feed(feed)
        if before:  # they may have been placed elsewhere
            outs = {planned.out: planned for planned in (*before, *network.planned.values())}
            self._layout, listener = None, replace(listener, outlets=make_outlets(outs.values(), silent=listener.member.silent))
            old = rows[:, c.OUT_END] <= begun
            for part, background in ((rows[old], known), (rows[~old], network.planning.known)):
                if len(part):
                    self._collect(layout, listener, part, background, new, found)
        elif len(rows) and self._later is not None and not (listener.member.revised or layout.sources):
            self._later.setdefault(listener, []).append(rows)
        elif len(rows):
            self._collect(layout, listener, rows, known, new, found)
        if network.host.failures or network.collectors.completions:
            self._note_ends(network, changes)

    def _note_ends(self, network: Network, changes: list[StateChange]) -> None:
        """Note queries that failed or completed meanwhile.

        A completed rule stays, silent: its stream's time goes on resting on what it reads.
        """
        for failure in network.host.failures:
            entry = self.registered.pop(failure.planned.registered)
            self.revision.note_failure(entry.offset, failure.entry)
            self.fallen[entry.offset] = entry
            self._layout = None
            changes.append(StateChange(failure.planned.registered, failure.planned.source.name, failure.entry, "failed", failure.reason))
        for completion in network.collectors.completions:
            planned = completion.planned
            changes.append(StateChange(planned.registered, planned.source.name, completion.entry, "completed", completion.reason))
            if planned.writes is None and planned.registered in network.planned:
                del self.registered[planned.registered]
                network.drop_query(planned.registered)
        if network.collectors.completions:
            self._layout = None
            self.members = [member for member in self.members if member.network.planned]
        network.host.failures.clear()
        network.collectors.completions.clear()

    def _collect(
        self, layout: Layout, listener: Listener, rows: Ints, known: FactIndex, new: dict[Feed, Arrivals], found: list[pa.RecordBatch]
    ) -> None:
        """Make solutions of rows of a network. `known` is the background at their instants."""
        outlets, part = listener.outlets, listener.member.part
        if isinstance(part, TimeSlices):
            rows = rows[part.select_solutions(rows[:, c.OUT_END], self.share)]
        told = assemble_solutions(outlets, rows, self.terms, known, tied=not self.share.whole)
        if not listener.member.revised:
            found += told
        elif not listener.member.silent:
            self.revision.keep(told)
        for node, (planned, rule) in outlets.rules.items() if layout.sources else ():
            if any(rule.into in other.reads for other in layout.order if other.member is not listener.member):
                own = rows[rows[:, c.OUT_NODE] == node]
                if len(own):
                    feed = rule.into, part  # its readers are dealt out as it is
                    others = [new[feed]] if feed in new else []
                    new[feed] = concatenate_arrivals([*others, self._derived(planned, rule, own)])

    def _derived(self, planned: Planned, rule: a.Construct, rows: Ints) -> Arrivals:
        """Return a rule's triples as occurrences for the networks that read its stream; the rule's own network has
        them already.
        """
        parts = []
        for triple in rule.template:
            s, p, o = (read_part(planned, rows, part, self.terms) for part in list_parts(triple))
            good = (s > 0) & (p > 0) & (o > 0) & (self.terms.kinds[s] < LITERAL) & (abs(self.terms.kinds[p]) == IRI)
            graph = np.zeros(len(rows), np.int64)
            parts.append(make_arrivals(s, p, o, graph, rows[:, c.OUT_START], rows[:, c.OUT_END], rows[:, c.OUT_ENTRY]).where(good))
        return concatenate_arrivals(parts)

    # ------------------------------------------------------------ what it keeps
    @property
    def own(self) -> Own:
        nets = [member.network.net for engine in self.engines() for member in engine.members]
        arrays = {id(array): array.nbytes for net in nets for array in net}
        return Own(len(self.terms), sum(int(net.at[c.ANSWERED]) for net in nets), sum(arrays.values()), len(nets))

    # ------------------------------------------------------------ snapshots
    @property
    def goals(self) -> int:
        """Return the number of all goals that are stored."""
        return sum(int(member.network.net.stores[:, c.COUNT].sum()) for engine in self.engines() for member in engine.members)

    def snapshot(self, put: Put | None = None) -> bytes:
        """Return the state after the last block. `put` takes large pieces of it, and then the bytes lack them."""
        meta, arrays = state_of(self)
        meta["revision"] = self.revision.snapshot(arrays)
        meta["course"] = self.course.to_json()
        return pack(meta, arrays, put)

    @classmethod
    def restore(cls, data: bytes, fetch: Fetch | None = None, share: PartitionShare = ONE) -> "Engine":
        """Restore the engine of this share that gave `data`, in this version or another that plans its queries alike.

        Raises SnapshotMismatch; the log holds all that is needed to start anew.
        """
        meta, arrays = unpack(data, fetch)
        try:
            kept = meta.get("sets") if share.whole else meta["sets"]  # earlier snapshots of one partition have none
            engine = cls(share, None if kept is None else Sets.restored(share.partitions, kept), terms=terms_of(arrays))
            restore_state(engine, meta, arrays)
            if "revision" in meta:
                engine.revision.restore(meta["revision"], arrays)
            if "course" in meta:
                engine.course = TimeCourse.restored(meta["course"])
        except (KeyError, TypeError) as fault:
            raise SnapshotMismatch(f"written by a version that names things otherwise: {fault}") from fault
        return engine
