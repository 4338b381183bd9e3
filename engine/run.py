"""The engine: all queries of one bucket, as a function of the log entries it was fed."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyoxigraph
from numpy.typing import NDArray

from engine.assemble import found_of, in_emission_order, outlets_of, parts_of, row_part
from engine.behind import Behind, Past, in_order, is_history, join, of_own, pause, register
from engine.clock import NO_TIME, Arrivals, Course, Stream, advance, arrivals, latest_ends, latest_of, taken, time_of, together
from engine.entries import (
    ADD,
    RDFS,
    Block,
    CatchUp,
    Drop,
    DropStream,
    Entail,
    Entry,
    Events,
    Facts,
    Finish,
    Outcome,
    Pause,
    Register,
    Resume,
    StateChange,
    Tick,
)  # fmt: skip
from engine.errors import LogGap, OneBucketOnly, Refusal, SnapshotMismatch
from engine.expressions import parse_term
from engine.facts import FactIndex
from engine.keeping import FEED, kept, pending, pending_again, restore
from engine.kernel import columns as c
from engine.layout import Layout, Listener, laid_out, sources_of
from engine.member import Member, reached
from engine.network import Network
from engine.planned import Planned
from engine.planning.shapes import Rates
from engine.progress import Operator, progress
from engine.quads import Quad
from engine.rewrite import rewritten
from engine.routing import ONE, Moved, Part, Sets, Share, cut_at_controls, routed
from engine.routing.intake import Feed
from engine.snapshot import Fetch, Put, pack, unpack
from engine.strata import Cycle
from engine.terms import IRI, LITERAL, TermTable
from engine.text.intake import TERMS
from engine.usage import Own, Quota, Usage
from epsparql import QueryError, parse
from epsparql import algebra as a

Ints = NDArray[np.int64]
Control = Register | Pause | Resume | CatchUp | Drop | Facts | Entail | DropStream
WEIGHED_EVERY = 256
"""Entries of the log after which what collectors hold counts: they decide on many instants at once, as the blocks have it, and quotas may not."""


class Engine:
    """Deterministic: the same entries give the same outcome, however they are cut into blocks; no clock, no threads, no I/O."""

    def __init__(self, share: Share = ONE, sets: Sets | None = None, past: Past | None = None, terms: TermTable | None = None) -> None:
        """`share` is what of the values that events are dealt out by the engine has; `sets` are those that a `Moved` gave.

        `past` is where queries that are behind find the log again.
        """
        self.share = share
        self.sets = sets or Sets(share.buckets)
        self.past: Past = past or _no_past
        self.position = 0
        """The offset of the next entry."""
        self.terms = TermTable() if terms is None else terms
        self.streams: dict[str, Stream] = {}
        self.known = FactIndex(self.terms)
        """The background."""
        self.registered: dict[int, Register] = {}
        """Queries that run, by the offset of their registration."""
        self.fallen: dict[int, Register] = {}
        """Rules that have failed, by offset, until they are dropped: what reads their streams goes on resting on what they read."""
        self.members: list[Member] = []
        self._layout: Layout | None = None
        self._ends: dict[int, int] = {}  # of the block that is being fed
        self.behind: dict[int, Behind] = {}
        """Queries that are behind the others, by the registration of the one that they wait for."""
        self.caught_up = 0
        """Rows of the log that were read again for them."""
        self._caught: list[pa.RecordBatch] = []  # solutions of theirs that this block brings
        self.heeds: Callable[[Entry], bool] = lambda _: True
        """Whether a control entry is for this engine."""
        self.shares = True
        """Whether queries that come share what they have in common; what they find is the same."""
        self.without: frozenset[str] = frozenset()
        """SIMPLIFICATIONS and CHOICES that queries which come are planned without; what they find is the same."""

    @property
    def facts(self) -> list[Quad]:
        """The background as it was given."""
        return self.known.quads

    # ------------------------------------------------------------ entries
    def feed(self, block: Block) -> Outcome:
        """Applies a block. Raises LogGap if it does not start at `position`; Moved if the engine must begin anew, with other sets."""
        outcome = self.apply(block)
        self.terms.collect(column for engine in self.engines() for member in engine.members for column in member.pending.terms)
        return outcome

    def apply(self, block: Block) -> Outcome:
        """As `feed`, without freeing terms: other engines may hold some."""
        if block.first != self.position:
            raise LogGap(f"the engine stands at {self.position}, the block starts at {block.first}")
        found: list[pa.RecordBatch] = []
        changes: list[StateChange] = []
        for part in [block] if self.share.whole else cut_at_controls(block):
            self._feed(part, found, changes)
        solutions, caught = in_emission_order(found, tied=not self.share.whole), self._caught
        self._caught = []
        return Outcome(in_order(solutions, caught) if caught else solutions, tuple(changes))

    def _feed(self, block: Block, found: list[pa.RecordBatch], changes: list[StateChange]) -> None:
        arrived = self._arrivals(block)
        span: list[Entry] = []
        for entry in block.entries:
            if isinstance(entry, Control):
                self._pass(span, arrived, found, changes)
                span = []
                self._control(entry, changes)
            else:
                span.append(entry)
            if entry.offset % WEIGHED_EVERY == WEIGHED_EVERY - 1 and any(member.network.quotas.weighs for member in self.members):
                self._pass(span, arrived, found, changes)
                span = []
                self._weigh(entry.offset, changes)
        self._pass(span, arrived, found, changes)
        self.position = block.after

    def _arrivals(self, block: Block) -> dict[Feed, Arrivals]:
        """The block's occurrences by stream, late ones left out."""
        rows = block.rows
        if not rows.num_rows:
            self._ends = {}
            return {}
        events = [e for e in block.entries if isinstance(e, Events)]
        if not self.share.whole:
            return self._routed(rows, events)
        wanted = self._terms_wanted(block)
        arrived = taken(rows, self.terms, wanted, events[0].offset)
        if len(events) > 1:
            arrived.table[c.IN_SINCE] = np.repeat([e.offset for e in events], [e.rows for e in events])[arrived.row]
        self._ends = latest_ends(arrived)
        if not wanted:
            return {}
        names = list(dict.fromkeys(e.stream for e in events))
        if len(names) == 1:
            return {(names[0], None): arrived}
        which = np.repeat([names.index(e.stream) for e in events], [e.rows for e in events])[arrived.row]
        return {(name, None): arrived.where(which == k) for k, name in enumerate(names)}

    def _routed(self, rows: pa.RecordBatch, events: Sequence[Events]) -> dict[Feed, Arrivals]:
        """What of the occurrences concerns this bucket, for networks that are dealt out and those that live here."""
        wanted: dict[str, set[Part | None]] = {}
        for member in self.members:
            for name in member.network.reads:
                wanted.setdefault(name, set()).add(member.part)
        waits = any(len(reached(member.network.reads, self.rules)) > 1 for member in self.members if member.part is not None)
        found, self._ends = routed(rows, events, wanted, self.share, self.terms, marked=waits or any(True for _ in self.known))
        return found

    def _terms_wanted(self, block: Block) -> int:
        """How many of subject, predicate, object and graph the queries look at; the graph's name alone is often all that is new in an occurrence."""
        if any(isinstance(entry, Register | CatchUp) for entry in block.entries):
            return TERMS
        if not self.members:
            return 0
        return TERMS if self._layout is None or self._layout.graphs else TERMS - 1

    def _control(self, entry: Control, changes: list[StateChange]) -> None:
        if not self.heeds(entry):
            return
        if not self.share.whole and is_history(entry):
            raise OneBucketOnly(
                f"the log has a query that reads the past, or was paused, at offset {entry.offset}: run it with one bucket (--buckets 1)"
            )
        self._layout = None
        match entry:
            case Register():
                self.register(entry, changes)
            case Pause():
                pause(self, entry)
            case Resume():
                if entry.registered in self.behind:
                    self.behind[entry.registered].paused = False
            case CatchUp():
                self._catch_up(entry, changes)
            case Drop():
                self.sets.drop(entry.registered, entry.offset)
                self.drop(entry.registered)
                for behind in self.behind.values():
                    behind.forget(entry)
                self.behind = {lead: behind for lead, behind in self.behind.items() if behind.own}
            case Facts():
                self._learn(self.known.changed(entry.graph, numbers_of(entry.triples, self.terms), entry.change), entry.offset)
            case Entail():
                self._learn(self.known.under(entry.regime), entry.offset)
            case DropStream():
                self.streams.pop(entry.stream, None)

    def drop(self, registered: int) -> None:
        self._layout = None
        self.registered.pop(registered, None)
        self.fallen.pop(registered, None)
        for member in self.members:
            if registered in member.network.planned:
                member.network.drop(registered)
        self.members = [member for member in self.members if member.network.planned]

    def _weigh(self, entry: int, changes: list[StateChange]) -> None:
        """Holds queries to their quotas of bytes, as of the entry that has just been applied."""
        for member in self.members:
            member.network.quotas.weigh(entry)
            self._note_ends(member.network, changes)

    # ------------------------------------------------------------ what is behind
    def beside(self) -> "Engine":
        """A new engine over the same terms."""
        return Engine(past=self.past, terms=self.terms)

    def look_back_by(self, past: Past) -> None:
        """Where those that are behind find the log again; to be told to a restored engine too."""
        for engine in self.engines():
            engine.past = past

    def engines(self) -> Iterator["Engine"]:
        """This one and those beside it."""
        yield self
        for behind in self.behind.values():
            yield from behind.engines

    def _catch_up(self, entry: CatchUp, changes: list[StateChange]) -> None:
        behind = self.behind.get(entry.registered)
        if behind is None or behind.paused:
            return
        before = behind.rows
        for outcome in behind.read(min(entry.upto, entry.offset)):
            news = of_own(outcome, behind.own, entry.offset)
            self._caught.append(news.solutions)
            changes += news.changes
        self.caught_up += behind.rows - before
        if behind.engine.position == entry.offset:
            del self.behind[entry.registered]
            join(self, behind.engine, behind.own)

    # ------------------------------------------------------------ queries
    def register(self, entry: Register, changes: list[StateChange]) -> None:
        """Takes in a query; what is wrong with it is a change of its state."""
        try:
            if register(self, entry):
                return
        except Exception as fault:  # noqa: BLE001  # as below
            changes.append(StateChange(entry.offset, entry.name, entry.offset, "failed", f"internal error: {type(fault).__name__}: {fault}"))
            return
        self.enrol(entry, changes)

    def enrol(self, entry: Register, changes: list[StateChange]) -> None:
        """As `register`, of a query that is not behind any other."""
        self._layout = None
        try:
            query = parse(entry.text).query
            if self._lives_here(entry, query):
                self.admit(entry, query)
        except Moved:
            raise
        except (QueryError, Refusal, Cycle) as fault:
            changes.append(StateChange(entry.offset, entry.name, entry.offset, "failed", str(fault)))
        except Exception as fault:  # noqa: BLE001  # a fault of ours: the log is read again at every start, so it may not stop the others
            changes.append(StateChange(entry.offset, entry.name, entry.offset, "failed", f"internal error: {type(fault).__name__}: {fault}"))

    def _lives_here(self, entry: Register, query: a.Query) -> bool:
        """Whether a query concerns this bucket. Raises Moved."""
        if self.share.whole:
            return True
        self.sets.add(entry, query, self.known)
        route = self.sets.route(entry.offset)
        return route is not None and (route.part is not None or route.home == self.share.bucket)

    def admit(self, entry: Register, query: a.Query) -> Network:
        """Puts a query into its network. Raises Refusal, Cycle; whatever is raised, nothing has changed."""
        members = list(self.members)
        try:
            member = self._member_for(query, self._part_of(entry))
            self._add(member.network, entry, query, self.known)
        except BaseException:
            self.members = members
            raise
        if self.shares:
            member.share(entry.offset)
        self.registered[entry.offset] = entry
        return member.network

    def put(self, network: Network, entry: Register, rates: Rates, turned: bool, known: FactIndex | None = None) -> None:
        """Puts a query that ran before into a network, planned as it was, over the background that it rests on. Raises QueryError, Refusal, Cycle."""
        self._add(network, entry, parse(entry.text).query, self.known if known is None else known, rates, turned)

    def _add(self, network: Network, entry: Register, query: a.Query, known: FactIndex, rates: Rates | None = None, turns: bool = True) -> None:
        written, after = (
            rewritten(query, entry.default_graph, entry.policy, self.without),
            entry.offset if entry.reads_from is None else entry.reads_from - 1,
        )
        network.add(entry.offset, entry.name, written, known, entry.max_derivations, entry.policy, rates, turns=turns, reads_after=after)
        network.quotas.limit(entry.offset, Quota(entry.max_goals, entry.max_state_bytes))

    def _part_of(self, entry: Register) -> Part | None:
        """What a query's events are dealt out by."""
        route = self.sets.route(entry.offset)
        return None if route is None else route.part

    @property
    def rules(self) -> list[a.Construct]:
        """Those that have failed included."""
        fallen = [query for entry in self.fallen.values() if isinstance(query := parse(entry.text).query, a.Construct)]
        return [*(rule for member in self.members for rule in member.rules), *fallen]

    def _member_for(self, query: a.Query, part: Part | None) -> Member:
        """The network that a query belongs to: the one of its cycle of rules, else one that reaches the same streams, else a new one.

        All queries of a network are dealt out by the same part.

        Raises Refusal if rules of several networks would feed each other.
        """
        rules = self.rules
        on_cycle = []
        if isinstance(query, a.Construct):
            rules = [*rules, query]
            below, reach = reached([query.into], rules, onwards=True), reached(query.streams, rules)
            on_cycle = [m for m in self.members if any(rule.into in reach and below & set(rule.streams) for rule in m.rules)]
        if len(on_cycle) > 1:
            raise Refusal("recursion over streams that other rules read apart (let the rules of a cycle read and write one stream)", "INTO")
        if on_cycle:
            return on_cycle[0]
        gate = reached(query.streams, rules)
        for member in self.members:
            if member.part is part and reached(member.network.reads, rules) == gate:
                return member
        member = Member(Network(self.terms, owns=self._owns(part), without=self.without), part=part)
        member.time = self._time_at(gate, rules)
        self.members.append(member)
        return member

    def _owns(self, part: Part | None) -> Callable[[Quad], bool] | None:
        """Which background triples the networks of a part take for theirs; None for all."""
        return None if part is None else lambda quad: self.share.has(part.of(quad))

    def _time_at(self, gate: Collection[str], rules: Sequence[a.Construct]) -> int:
        """The time that a new network finds: a query registered into one that is there finds the same."""
        return time_of(gate, sources_of(rules), self.streams, NO_TIME)

    def _learn(self, known: FactIndex, offset: int) -> None:
        self.sets.learn(offset, known)
        try:
            for member in self.members:
                member.network.try_to_learn(known)
        except Cycle:
            return  # refused: the log is read again at every start, so it may not stop the queries
        self.known = known
        for member in self.members:
            member.network.learn(known)

    # ------------------------------------------------------------ time
    def _pass(self, entries: Sequence[Entry], arrived: dict[Feed, Arrivals], found: list[pa.RecordBatch], changes: list[StateChange]) -> None:
        """Lets the networks take in a stretch of entries without controls, those first on whose rules others rest."""
        if not entries:
            return
        first, last = entries[0].offset, entries[-1].offset
        whole = all(part.since[0] >= first and part.since[-1] <= last for part in arrived.values() if len(part))
        new = dict(arrived) if whole else {s: part.where((part.since >= first) & (part.since <= last)) for s, part in arrived.items()}
        settled, layout = self._layout is not None, self._layout or laid_out(self.members, self.rules)
        self._layout = layout
        if settled and len(entries) == 1 and isinstance(entries[0], Events):
            self._pass_one(layout, entries[0], new, found, changes)
            return
        courses = self._courses(layout, entries, settled)
        for listener in layout.order:
            if listener in courses:
                feed = listener.member.feed(entries, courses[listener], listener.part_of(new))
                self._run(layout, listener, feed, new, found, changes)

    def _pass_one(self, layout: Layout, entry: Events, new: dict[Feed, Arrivals], found: list[pa.RecordBatch], changes: list[StateChange]) -> None:
        """As `_pass`, over one entry that brings occurrences."""
        advance(self.streams, entry, self._ends)
        for listener in layout.by_stream.get(entry.stream, ()):
            time = time_of(listener.gate, layout.sources, self.streams, listener.member.time)
            feed = listener.member.feed_one(entry.offset, time, listener.part_of(new))
            self._run(layout, listener, feed, new, found, changes)

    def _courses(self, layout: Layout, entries: Sequence[Entry], settled: bool) -> dict[Listener, Course]:
        """What the entries do to the time of each network. Only occurrences on streams that it does not wait for surely leave it as it is."""
        courses: dict[Listener, Course] = {}
        for k, entry in enumerate(entries):
            stream = advance(self.streams, entry, self._ends)
            everyone = isinstance(entry, Tick | Finish) or (k == 0 and not settled)
            for listener in layout.order if everyone else layout.by_stream.get(stream or "", ()):
                if listener not in courses:
                    courses[listener] = Course.from_time(listener.member.time, len(entries))
                course = courses[listener]
                course.reach(k, time_of(listener.gate, layout.sources, self.streams, course.now))
                if everyone:
                    course.latest[k] = latest_of(listener.gate, self.streams)
        return courses

    def _run(
        self, layout: Layout, listener: Listener, feed: Ints, new: dict[Feed, Arrivals], found: list[pa.RecordBatch], changes: list[StateChange]
    ) -> None:
        """Lets a network's kernel take in a feed; sorts the rows found to its queries, and hands what rules derived to the networks that read it."""
        network = listener.member.network
        before = list(network.planned.values()) if network.coming is not None else []
        rows = network.feed(feed)
        if before:  # they may have been placed elsewhere
            outs = {planned.out: planned for planned in (*before, *network.planned.values())}
            self._layout, listener = None, replace(listener, outlets=outlets_of(outs.values()))
        if len(rows):
            self._collect(layout, listener, rows, new, found)
        self._note_ends(listener.member.network, changes)

    def _note_ends(self, network: Network, changes: list[StateChange]) -> None:
        """Queries that failed or completed meanwhile. A completed rule stays, silent: its stream's time goes on resting on what it reads."""
        for failure in network.failures:
            entry = self.registered.pop(failure.planned.registered)
            self.fallen[entry.offset] = entry
            self._layout = None
            changes.append(StateChange(failure.planned.registered, failure.planned.name, failure.entry, "failed", failure.reason))
        for completion in network.completions:
            planned = completion.planned
            changes.append(StateChange(planned.registered, planned.name, completion.entry, "completed", completion.reason))
            if planned.writes is None and planned.registered in network.planned:
                del self.registered[planned.registered]
                network.drop(planned.registered)
        if network.completions:
            self._layout = None
            self.members = [member for member in self.members if member.network.planned]
        network.failures.clear()
        network.completions.clear()

    def _collect(self, layout: Layout, listener: Listener, rows: Ints, new: dict[Feed, Arrivals], found: list[pa.RecordBatch]) -> None:
        outlets = listener.outlets
        found += found_of(outlets, rows, self.terms, listener.member.network.known, tied=not self.share.whole)
        for node, rule in outlets.others.items() if layout.sources else ():
            query = rule.query
            if isinstance(query, a.Construct) and any(query.into in other.reads for other in layout.order if other.member is not listener.member):
                own = rows[rows[:, c.OUT_NODE] == node]
                if len(own):
                    feed = query.into, listener.member.part  # its readers are dealt out as it is
                    others = [new[feed]] if feed in new else []
                    new[feed] = together([*others, self._derived(rule, query, own)])

    def _derived(self, planned: Planned, rule: a.Construct, rows: Ints) -> Arrivals:
        """A rule's triples as occurrences for the networks that read its stream; its own has them already."""
        parts = []
        for triple in rule.template:
            s, p, o = (row_part(planned, rows, part, self.terms) for part in parts_of(triple))
            good = (s > 0) & (p > 0) & (o > 0) & (self.terms.kinds[s] < LITERAL) & (self.terms.kinds[p] == IRI)
            graph = np.zeros(len(rows), np.int64)
            parts.append(arrivals(s, p, o, graph, rows[:, c.OUT_START], rows[:, c.OUT_END], rows[:, c.OUT_ENTRY]).where(good))
        return together(parts)

    # ------------------------------------------------------------ what it keeps
    def usage(self, registered: int) -> Usage:
        """What a running query's state amounts to."""
        network, _ = self._of(registered)
        return network.quotas.usage(registered)

    def progress(self, registered: int) -> tuple[Operator, ...]:
        """How far a running query is, operator by operator."""
        return progress(*self._of(registered))

    def _of(self, registered: int) -> tuple[Network, Planned]:
        network = next(member.network for member in self.members if registered in member.network.planned)
        return network, network.planned[registered]

    @property
    def own(self) -> Own:
        nets = [member.network.net for engine in self.engines() for member in engine.members]
        arrays = {id(array): array.nbytes for net in nets for array in net}
        return Own(len(self.terms) - 1, sum(int(net.at[c.ANSWERED]) for net in nets), sum(arrays.values()))

    # ------------------------------------------------------------ snapshots
    @property
    def goals(self) -> int:
        """All that are stored."""
        return sum(int(member.network.net.stores[:, c.COUNT].sum()) for engine in self.engines() for member in engine.members)

    def snapshot(self, put: Put | None = None) -> bytes:
        """The state after the last block; `put` takes large pieces of it, which are not in the bytes then."""
        arrays: dict[str, NDArray[Any]] = {f"terms.{name}": array for name, array in self.terms.arrays().items()}
        meta = self._kept(arrays) | {"behind": [self._kept_behind(behind, arrays) for behind in self.behind.values()]}
        return pack(meta, arrays, put)

    def _kept(self, arrays: dict[str, NDArray[Any]], beside: "Engine | None" = None) -> dict[str, Any]:
        """The state but for the terms, without what is behind; its arrays are added. Facts are left out that the engine `beside` has."""
        members = []
        for member in self.members:
            network, own = kept(member.network)
            own["pending"] = pending(member.pending.table)
            place = sum(name.endswith(".pending") for name in arrays)  # arrays of a member have its number in front
            arrays |= {f"{place}.{name}": array for name, array in own.items()}
            part, knows = None if member.part is None else member.part.value, member.network.knows
            earlier = list({id(known): known for known in knows.values() if known is not self.known}.values())
            arrays |= {f"{place}.known.{j}": known.numbers for j, known in enumerate(earlier)}
            members.append({
                "place": place, "time": member.time, "pending": list(FEED), "network": network, "part": part,
                "ignorant": [[registered, earlier.index(known)] for registered, known in knows.items() if known is not self.known],
                "regimes": [known.regime for known in earlier],
            })  # fmt: skip
        if beside is None or beside.known is not self.known:
            number = sum(name.startswith("known.") for name in arrays)
            arrays[f"known.{number}"] = self.known.numbers
        else:
            number = None
        return {
            "position": self.position,
            "streams": {name: asdict(stream) for name, stream in self.streams.items()},
            "known": number,
            "entailment": self.known.regime,
            "registered": [asdict(entry) for entry in self.registered.values()],
            "fallen": [asdict(entry) for entry in self.fallen.values()],
            "members": members,
            "sets": self.sets.kept(),
        }

    def _kept_behind(self, behind: Behind, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
        return {
            "lead": behind.lead,
            "own": sorted(behind.own),
            "paused": behind.paused,
            "beginning": [asdict(entry) for entry in behind.beginning],
            "engines": [engine._kept(arrays, self) for engine in behind.engines],
        }

    @classmethod
    def restore(cls, data: bytes, fetch: Fetch | None = None, share: Share = ONE) -> "Engine":
        """The engine of this share that gave `data`, of this version or another that plans its queries alike.

        Raises SnapshotMismatch; the log holds all that is needed to start anew.
        """
        meta, arrays = unpack(data, fetch)
        try:
            return cls._restored(meta, arrays, share)
        except (KeyError, TypeError) as fault:
            raise SnapshotMismatch(f"written by a version that names things otherwise: {fault}") from fault

    @classmethod
    def _restored(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]], share: Share) -> "Engine":
        terms = TermTable.restored({name: arrays[f"terms.{name}"] for name in ("texts", "ends")})
        engine = cls(share, None if share.whole else Sets.restored(share.buckets, meta["sets"]), terms=terms)
        engine._take_over(meta, arrays)
        for kept_behind in meta.get("behind", ()):
            beside = [engine.beside() for _ in kept_behind["engines"]]
            for other, found in zip(beside, kept_behind["engines"], strict=True):
                other.known = engine.known
                other._take_over(found, arrays)
            beginning = tuple(registration(values) for values in kept_behind["beginning"])
            later = beside[1] if len(beside) > 1 else None
            own, lead = set(kept_behind["own"]), kept_behind["lead"]
            engine.behind[lead] = Behind(lead, own, beside[0], kept_behind["paused"], beginning, later)
        return engine

    def _take_over(self, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """What `_kept` gave."""
        self.position = meta["position"]
        self.streams = {name: Stream(**values) for name, values in meta["streams"].items()}
        if meta.get("known") is not None or meta.get("facts") is not None:
            self.known = known_from(meta, arrays, self.terms)
        self.registered = {entry.offset: entry for entry in map(registration, meta["registered"])}
        self.fallen = {entry.offset: entry for entry in map(registration, meta["fallen"])}
        for k, member in enumerate(meta["members"]):
            place = member.get("place", k)
            own = {name.removeprefix(f"{place}."): array for name, array in arrays.items() if name.startswith(f"{place}.")}
            self.members.append(self._member_restored(member, own))

    def _member_restored(self, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Member:
        part = None if meta.get("part") is None else Part(meta["part"])
        earlier = [FactIndex.given_as(arrays[f"known.{j}"], self.terms, regime) for j, regime in enumerate(meta.get("regimes", ()))]
        ignorant = {registered: earlier[j] for registered, j in meta.get("ignorant", ())}
        network = Network(self.terms, known=earlier[0] if earlier else self.known, owns=self._owns(part))

        def add(registered: int, rates: Rates, turned: bool) -> None:
            self.put(network, self.registered[registered], rates, turned, ignorant.get(registered, self.known))

        try:
            restore(network, meta["network"], arrays, add)
        except (QueryError, Refusal, Cycle) as fault:
            raise SnapshotMismatch(f"this version refuses a query: {fault}") from fault
        if ignorant:  # the next instant brings them the background
            network.known = earlier[0]
            network.learn(self.known)
        return Member(network, meta["time"], Arrivals(pending_again(meta["pending"], arrays["pending"])), part)


def _no_past(first: int, after: int) -> Iterable[Block]:
    raise LogGap(f"no log is at hand to read [{first}, {after}) of it again")


def known_from(meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], terms: TermTable) -> FactIndex:
    """The background of a snapshot; older ones have it as texts."""
    regime = meta.get("entailment", RDFS)
    if meta.get("known") is not None:
        return FactIndex.given_as(arrays[f"known.{meta['known']}"], terms, regime)
    known = FactIndex(terms, regime)
    for text, graph in meta["facts"]:
        known = known.changed(graph, numbers_of(text, terms), ADD)
    return known


def registration(values: dict[str, Any]) -> Register:
    """As a snapshot has it."""
    return Register(**values | {"holds": tuple(values.get("holds", ()))})


def numbers_of(ntriples: str, terms: TermTable) -> Ints:
    """The terms of an N-Triples text, a triple a row."""
    parsed = pyoxigraph.parse(ntriples.encode(), format=pyoxigraph.RdfFormat.N_TRIPLES)
    texts = pa.array([str(term) for t in parsed for term in (t.subject, t.predicate, t.object)], pa.utf8()).dictionary_encode()
    distinct = [text if text.startswith(("<", "_")) else str(parse_term(text)) for text in texts.dictionary.to_pylist()]
    found: Ints = terms.intern_all(distinct)[texts.indices.to_numpy()].reshape(-1, 3)
    return found
