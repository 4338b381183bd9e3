"""This module holds the engine, which runs all queries of one partition as a function of the log entries that it was
fed.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeGuard, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.background.changes import RuleRejected, apply_change, is_change
from engine.background.fact_store import FactIndex
from engine.dictionary.batch_layout import TERMS
from engine.engine_state import EngineState, Past
from engine.errors import LogGap, OnePartitionOnly, SnapshotMismatch
from engine.kernel.state import layout as c
from engine.messages import (
    OCCURRENCES,
    REVISED,
    Block,
    CatchUp,
    ChangeInstances,
    Drop,
    DropStream,
    Entail,
    Entry,
    Events,
    Facts,
    Fail,
    Micros,
    Outcome,
    Pause,
    Promote,
    Register,
    Resume,
    Revise,
    SetStream,
    StateChange,
    Withdraw,
)  # fmt: skip
from engine.partitioning import ONE, Division, Moved, PartitionShare, Sets
from engine.query_lifecycle.catch_up import catch_up, merge_caught_up, pause, register_query
from engine.query_lifecycle.moves import move_queries
from engine.query_lifecycle.network_union import unite_networks
from engine.query_lifecycle.promotion import promote, read_promotion
from engine.query_lifecycle.replay import read_again
from engine.revision.revision import Revision, span_times
from engine.runtime.dispatch import Layout
from engine.runtime.event_queue import KEY
from engine.runtime.event_scheduler import find_reached
from engine.runtime.partition_filter import Feed, cut_at_controls, route_rows
from engine.runtime.query_registry import Registry
from engine.runtime.result_assembly import NOTHING, sort_by_emission
from engine.runtime.span_evaluator import SpanEvaluator
from engine.runtime.time_course import TimeCourse
from engine.runtime.watermarks import NO_ARRIVALS, NO_TIME, Arrivals, find_latest_end, find_latest_ends
from engine.snapshot.format import Fetch, Put, pack, unpack
from engine.state_size import Own
from engine.stored_state import restore_state, state_of, terms_of
from epsparql import QueryError, parse
from epsparql import algebra as a

Ints = NDArray[np.int64]
Control = Register | Pause | Resume | CatchUp | Promote | Withdraw | Drop | ChangeInstances | Fail | Revise | Facts | Entail | DropStream
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

    It has no clock, no threads and no I/O. Its parts:

    - the registry: queries in networks, streams and the background;
    - the evaluator: what spans of the log without controls bring;
    - the revision: what revised queries find ahead of the horizon;
    - side engines: they read other spans of the log for queries that are behind.
    """

    def __init__(self, registry: Registry | None = None, past: Past | None = None) -> None:
        super().__init__(Registry() if registry is None else registry, past)
        self.revision = Revision(self.registry)
        self.evaluator = SpanEvaluator(self.registry, self.revision.keep, self.revision.note_failure)
        self._ends: Mapping[int, int] = {}  # the latest ends, by offset, in the block that is being fed
        self._caught: list[pa.RecordBatch] = []  # solutions of queries that are behind, and changes of revised ones, that this block brings
        self._lost: list[StateChange] = []  # failures of queries that moved

    # ------------------------------------------------------------ entries
    def apply_block(self, block: Block) -> Outcome:
        first, layout, is_whole = block.entries[0], self.registry.settled_layout, self.registry.share.whole
        if first.offset != self.position:
            raise LogGap(f"the engine stands at {self.position}, the block starts at {first.offset}")
        if layout is not None and is_whole and len(block.entries) <= FEW:
            events = [entry for entry in block.entries if isinstance(entry, Events) and not entry.retracts]
            if len(events) == len(block.entries):
                self._apply_few(layout, events, block.rows)
                return self._sum_up()
        for part in [block] if is_whole else cut_at_controls(block):
            self._feed(part)
        return self._sum_up()

    def _sum_up(self) -> Outcome:
        found, changes = self.evaluator.take_found()
        if not (found or changes or self._caught or self._lost) and self.registry.share.whole:  # as of most events
            return _NO_OUTCOME
        solutions, caught, lost = sort_by_emission(found, tied=not self.registry.share.whole), self._caught, self._lost
        self._caught, self._lost = [], []
        return Outcome(merge_caught_up(solutions, caught) if caught else solutions, (*changes, *lost))

    def _apply_few(self, layout: Layout, entries: Sequence[Events], batch: pa.RecordBatch) -> None:
        """Apply entries that bring occurrences to networks that stand as they did, one by one; most of a live stream
        come alone, or a few at once.
        """
        registry, evaluator, revision = self.registry, self.evaluator, self.revision
        revisable = any(entry.stream in registry.streams and registry.streams[entry.stream].revisable for entry in entries)
        table = registry.terms.take(batch, TERMS if revisable else layout.terms_wanted, 0) if batch.num_rows else NO_ARRIVALS.table
        rows, begin = 0, 0
        evaluator.begin_together()
        for entry in entries:
            new: dict[Feed, Arrivals] = {}
            latest, rows = NO_TIME, rows + entry.rows
            if entry.rows:
                after = int(table[c.IN_ENTRY].searchsorted(rows))
                arrived = new[entry.stream, None] = Arrivals(table[:, begin:after].copy())
                arrived.table[c.IN_SINCE], begin, latest = entry.offset, after, find_latest_end(arrived)
            if entry.revises and revision.is_upset_by(entry):
                revision.upset(new[entry.stream, None].end)
                layout = registry.layout
            ahead = None if revision.ahead is None else (revision.translate([entry], {entry.offset: latest}), dict(new))
            evaluator.pass_entry(layout, entry, latest, new)
            if ahead is not None:
                self._caught += revision.follow_span(*ahead, span_times({}, layout.order), evaluator.changes)
            if self._weighs_after(entry):
                self._weigh(entry.offset)
            self.position = entry.offset + 1
            if registry.settled_layout is None:  # a query has ended, and networks may wait for other streams now
                break
        evaluator.end_together(layout)
        if rest := tuple(entry for entry in entries if entry.offset >= self.position):
            self._feed(Block(rest, batch.slice(rows)))

    def _weighs_after(self, entry: Entry) -> bool:
        return entry.offset % WEIGHED_EVERY == WEIGHED_EVERY - 1 and any(member.network.quotas.weighs_collectors for member in self.registry.members)

    def _feed(self, block: Block) -> None:
        arrived, registry = self._arrivals(block), self.registry
        span: list[Entry] = []
        for entry in block.entries:
            if is_control(entry):
                self._pass(span, arrived)
                rules = registry.rules
                self._control(entry)
                unite_networks(registry, entry.offset)
                moves_time = isinstance(entry, DropStream) or registry.rules != rules  # what queries wait for is another then
                span = [entry] if moves_time else []
                if moves_time or is_change(entry, registry.known):
                    self.revision.interrupt()
            elif isinstance(entry, Events) and (entry.retracts or self.revision.is_upset_by(entry)):
                self._pass(span, arrived)
                span = [entry]
                if entry.retracts or self.revision.is_upset_by(entry):  # still, as the queries that read its stream may have failed in the span
                    taken = self._retract(block, entry, arrived) if entry.retracts else []
                    came = [part.end[part.since == entry.offset] for part in (arrived.get((entry.stream, None)),) if part is not None]
                    self.revision.upset(np.concatenate([np.array(taken, np.int64), *came]))
            else:
                if isinstance(entry, SetStream) and not self.registry.share.whole:
                    self._pass(span, arrived)  # queries that move stand before the entry
                    span = []
                span.append(entry)
            if isinstance(entry, SetStream | DropStream):
                self._declare(entry)
            if self._weighs_after(entry):
                self._pass(span, arrived)
                span = []
                self._weigh(entry.offset)
        self._pass(span, arrived)
        self.position = block.after

    def _arrivals(self, block: Block) -> dict[Feed, Arrivals]:
        """Return the block's occurrences by stream, without late ones."""
        if not block.num_rows:
            self._ends = {}
            return {}
        if not self.registry.share.whole:
            return self._routed(block)
        wanted = self._terms_wanted(block)
        events = [e for e in block.entries if isinstance(e, Events)]
        arrived = Arrivals(self.registry.terms.take(block.rows, wanted, 0))
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
        if not self.registry.share.whole:
            raise OnePartitionOnly(f"the log has retractions at offset {entry.offset}: run it with one partition (--partitions 1)")
        begin = sum(each.rows for each in block.entries if isinstance(each, Events) and each.offset < entry.offset)
        rows = np.concatenate([np.arange(first, after) for first, after in entry.retracts])
        taken = block.rows.take(pa.array(begin + rows))
        timely = taken.set_column(6, OCCURRENCES.field("late"), pa.array(np.zeros(len(rows), np.bool_)))
        keys = dict(zip(map(tuple, self.registry.terms.take(timely, TERMS, 0)[KEY].T.tolist()), (begin + rows).tolist(), strict=True))
        for each in self.registries():
            for member in each.members:
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
        registry, wanted = self.registry, dict[str, set[Division | None]]()
        for member in registry.members:
            for name in member.network.reads:
                wanted.setdefault(name, set()).add(member.part)
        waits = any(len(find_reached(member.network.reads, registry.rules)) > 1 for member in registry.members if member.part is not None)
        is_marked = waits or any(True for _ in registry.known)
        found, self._ends = route_rows(block, wanted, registry.share, registry.terms, registry.message_keys, marked=is_marked)
        return found

    def _terms_wanted(self, block: Block) -> int:
        """Return how many of subject, predicate, object and graph the queries look at.

        The graph's name alone is often all that is new in an occurrence.
        """
        if any(isinstance(entry, Register | CatchUp | Promote) or self._is_revisable(entry) for entry in block.entries):
            return TERMS
        if not self.registry.members:
            return 0
        return TERMS if self.registry.settled_layout is None else self.registry.settled_layout.terms_wanted

    def _is_revisable(self, entry: Entry) -> bool:
        """Return whether an entry brings occurrences that may be taken back, for which all four terms tell them apart."""
        if isinstance(entry, SetStream):
            return entry.revisable is not None
        return isinstance(entry, Events) and entry.stream in self.registry.streams and self.registry.streams[entry.stream].revisable

    def _control(self, entry: Control) -> None:
        if not self.heeds(entry):
            return
        registry, changes = self.registry, self.evaluator.changes
        if isinstance(entry, Revise):
            self._caught += self.revision.revise(entry.offset, changes)
            return
        registry.forget_layout()
        if is_change(entry, registry.known):
            self._change_background(entry)
            self.course.last_break = entry.offset
            return
        match entry:
            case Register():
                self.register(entry)
            case Pause():
                self._move(registry.sets.keep_home(entry.offset, entry.registered), entry.offset)
                pause(self, entry)
            case Resume():
                if entry.registered in self.sides:
                    self.sides[entry.registered].paused = False
            case CatchUp():
                self._catch_up(entry)
            case Promote():
                if self._lives_on_here(entry):
                    self._note(promote(self, entry))
            case Withdraw():
                self.sides.pop(entry.promotion, None)
            case Drop():
                self._drop(entry)
            case ChangeInstances():
                registry.change_instances(entry)
            case Fail():
                if entry.registered in registry.registered:
                    self.revision.forget_query(entry.registered)
                    changes.append(registry.fail_query(entry.registered, entry.offset, entry.reason))
            case DropStream():
                registry.streams.pop(entry.stream, None)
                self.course.last_break = entry.offset

    def _lives_on_here(self, entry: Promote) -> bool:
        """Return whether a promotion concerns this partition: its text reads the past beside the query, in one
        partition.
        """
        if self.registry.share.whole or entry.keeps:
            return True
        self._find_place(Register(entry.offset, entry.name, entry.text, entry.policy, reads_from=entry.offset, waits_for=entry.registered))
        return self.registry.is_home(entry.registered)

    def _find_place(self, entry: Register) -> bool:
        """Give a new query its place, and return whether it has state in this partition.

        A text that another version took is refused in each.
        """
        if self.registry.share.whole:
            return True
        try:
            query = parse(entry.text).query
        except QueryError:
            return True
        assert not isinstance(query, a.BackgroundRule), "that is part of the background"
        self._move(self.registry.sets.add(entry, query, self.registry.known, self.registry.message_keys, self.registry.find_reach), entry.offset)
        return self.registry.sets.route(entry.offset) is not None and self.registry.is_home(entry.offset)

    def _move(self, moved: Sequence[Moved], after: int) -> None:
        if moved:
            self._lost += move_queries(self, moved, after)

    def _declare(self, entry: SetStream | DropStream) -> None:
        """Take up the message key that a stream declares."""
        before, key = self.registry.message_keys.get(entry.stream), entry.message_key if isinstance(entry, SetStream) else None
        if key != before:
            self.registry.message_keys = {stream: other for stream, other in self.registry.message_keys.items() if stream != entry.stream}
            if key is not None:
                self.registry.message_keys[entry.stream] = key
            if self.registry.share.whole:
                self.course.last_break = entry.offset  # no set remembers the earlier key
            self._move(self.registry.sets.forget_message_key(entry.offset, entry.stream), entry.offset)

    def _change_background(self, entry: Entry) -> None:
        """Take up the background after an entry. A static rule that cannot stand is a change of its state."""
        reason = "with what it derives, a rule over streams would read its own negation without a strict step in time"
        try:
            accepted = self._learn(apply_change(self.registry.known, entry), entry.offset)
        except RuleRejected as rejected:
            accepted, reason = False, str(rejected)
        if isinstance(entry, Register) and not accepted:
            self._note(StateChange(entry.offset, entry.name, entry.offset, "failed", reason))

    def _learn(self, known: FactIndex, entry: int) -> bool:
        """Take up another background, and return whether it closes no cycle.

        Queries that then decide by what they have let go get it from the log.
        """
        registry = self.registry
        is_concerned, looks_further = partial(registry.is_concerned, known=known), partial(registry.looks_further, known=known)
        self._move(registry.sets.learn(entry, known, registry.message_keys, is_concerned, looks_further), entry)
        self._stop_answered(known, entry)
        if not registry.accepts_background(known):
            return False
        for member in list(registry.members):
            for planned in member.network.background.find_needing_past(known, member.time):
                if (reason := read_again(self, planned, entry)) is not None:
                    member.network.net.at[c.ENTRY] = entry
                    member.network.host.fail_query(planned, reason)
            member.network.slots.free_dropped()
            self.evaluator.note_ends(member.network)
        registry.members = [member for member in registry.members if member.network.planned]
        registry.announce_background(known)
        return True

    def _stop_answered(self, known: FactIndex, entry: int) -> None:
        """Stop the queries with PARAMETERS that a background may answer without an event."""
        for member in self.registry.members:
            for planned, reason in member.network.background.list_refused(known):
                member.network.net.at[c.ENTRY] = entry
                member.network.host.fail_query(planned, reason)
            member.network.slots.free_dropped()
            self.evaluator.note_ends(member.network)

    def _weigh(self, entry: int) -> None:
        """Hold queries to their quotas of bytes, as of the entry that has just been applied."""
        for member in self.registry.members:
            member.network.host.weigh_collectors(entry)
            self.evaluator.note_ends(member.network)

    # ------------------------------------------------------------ queries
    def register(self, entry: Register) -> None:
        """Take in a query; a fault in it is a change of its state."""
        registry, changes = self.registry, self.evaluator.changes
        if not registry.share.whole and entry.emit == REVISED:
            raise OnePartitionOnly(f"the log has a revised query at offset {entry.offset}: run it with one partition (--partitions 1)")
        with suppress(QueryError):
            registry.prepare_instances(entry.offset, parse(entry.text).query)  # each partition follows them
        if not self._find_place(entry):
            return
        try:
            if register_query(self, entry):
                return
        except Exception as fault:  # noqa: BLE001  # a fault of ours: the log is read again at every start, so it may not stop the others
            changes.append(StateChange(entry.offset, entry.name, entry.offset, "failed", f"internal error: {type(fault).__name__}: {fault}"))
            return
        registry.enrol_query(entry, changes)
        if entry.emit == REVISED and entry.offset in registry.registered:
            self.revision.add_query(entry)

    def _drop(self, entry: Drop) -> None:
        registry = self.registry
        self.revision.forget_query(entry.registered)
        registry.sets.drop(entry.registered, entry.offset)
        is_plain = any(entry.registered in member.network.planned and entry.registered not in member.network.rules for member in registry.members)
        if registry.share.whole and not is_plain:
            self.course.last_break = entry.offset  # no set remembers what a rule derived
        registry.drop_query(entry.registered)
        registry.instances.pop(entry.registered, None)
        for side in self.sides.values():
            side.forget(entry)
        self.sides = {lead: side for lead, side in self.sides.items() if side.queries}

    def _catch_up(self, entry: CatchUp) -> None:
        side = self.sides.get(entry.registered)
        if side is None or side.paused:
            return
        if side.replaces:
            self._note(read_promotion(self, entry))
            return
        for news in catch_up(self, side, entry):
            self._caught.append(news.solutions)
            self.evaluator.changes += news.changes

    def _note(self, change: StateChange | None) -> None:
        if change is not None:
            self.evaluator.changes.append(change)

    # ------------------------------------------------------------ side engines
    def make_beside(self, registry: Registry, position: int = 0) -> "Engine":
        found = Engine(registry, self.read_past)
        found.position = position
        return found

    def look_back_by(self, past: Past) -> None:
        """Set where side engines find the log again; a restored engine must be told too."""
        self.past = past

    def registries(self) -> Iterator[Registry]:
        yield from super().registries()
        if self.revision.ahead is not None:
            yield self.revision.ahead.registry

    # ------------------------------------------------------------ time
    def _pass(self, entries: Sequence[Entry], arrived: Mapping[Feed, Arrivals]) -> None:
        """Let the networks take in a stretch of entries without controls."""
        if not entries:
            return
        first, last, evaluator, revision = entries[0].offset, entries[-1].offset, self.evaluator, self.revision
        whole = all(part.since[0] >= first and part.since[-1] <= last for part in arrived.values() if len(part))
        new = dict(arrived) if whole else {s: part.where((part.since >= first) & (part.since <= last)) for s, part in arrived.items()}
        ahead, feeds = revision.translate(entries, self._ends), dict(new)
        courses = evaluator.find_courses(entries, self._ends)
        passed = {} if revision.ahead is None else span_times(courses, self.registry.layout.order)  # before any of the queries fails
        evaluator.run_courses(entries, courses, new)
        if revision.ahead is not None:
            self._caught += revision.follow_span(ahead, feeds, passed, evaluator.changes)

    # ------------------------------------------------------------ what it keeps
    @property
    def own(self) -> Own:
        nets = [member.network.net for registry in self.registries() for member in registry.members]
        arrays = {id(array): array.nbytes for net in nets for array in net}
        relations = sum(relation.nbytes for registry in self.registries() for relation in registry.instances.values())
        return Own(len(self.registry.terms), sum(int(net.at[c.ANSWERED]) for net in nets), sum(arrays.values()) + relations, len(nets))

    # ------------------------------------------------------------ snapshots
    @property
    def goals(self) -> int:
        """Return the number of all goals that are stored."""
        return sum(int(member.network.net.stores[:, c.COUNT].sum()) for registry in self.registries() for member in registry.members)

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
            engine = cls(Registry(share, None if kept is None else Sets.restored(share.partitions, kept), terms_of(arrays)))
            restore_state(engine, meta, arrays)
            if "revision" in meta:
                engine.revision.restore(meta["revision"], arrays, engine.position)
            if "course" in meta:
                engine.course = TimeCourse.restored(meta["course"])
        except (KeyError, TypeError) as fault:
            raise SnapshotMismatch(f"written by a version that names things otherwise: {fault}") from fault
        return engine
