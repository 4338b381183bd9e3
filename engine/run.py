"""The engine: all queries of one bucket, as a function of the log entries it was fed."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyoxigraph
from numpy.typing import NDArray

from engine.assemble import Found, found_of, in_emission_order, parts_of, row_part
from engine.clock import COLUMNS, NO_TIME, Arrivals, Stream, advance, note_latest, time_of, together
from engine.entries import Block, Drop, DropStream, Entry, Events, Facts, Outcome, Register, StateChange
from engine.errors import LogGap
from engine.expressions import parse_term
from engine.kernel import columns as c
from engine.member import Member, in_order_of_rules, reached
from engine.network import Network, Planned, Triple, planned_from
from engine.plan import Refusal, plan
from engine.program import Place
from engine.snapshot import pack, unpack
from engine.strata import Cycle
from engine.terms import IRI, LITERAL, TermTable
from epsparql import QueryError, parse
from epsparql import algebra as a

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """What registrations settle: networks in order of their rules, each with the streams whose time it waits for."""

    order: tuple[tuple[Member, tuple[str, ...]], ...]
    sources: Mapping[str, frozenset[str]]  # for each stream that rules write, the others that it rests on


class Engine:
    """Deterministic: the same entries give the same outcome, however they are cut into blocks; no clock, no threads, no I/O."""

    def __init__(self) -> None:
        self.position = 0
        """The offset of the next entry."""
        self.terms = TermTable()
        self.streams: dict[str, Stream] = {}
        self.facts: dict[Triple, None] = {}
        self.registered: dict[int, Register] = {}
        """Queries that run, by the offset of their registration."""
        self.members: list[Member] = []
        self._layout: Layout | None = None

    # ------------------------------------------------------------ entries
    def feed(self, block: Block) -> Outcome:
        """Applies a block. Raises LogGap if it does not start at `position`."""
        if block.first != self.position:
            raise LogGap(f"the engine stands at {self.position}, the block starts at {block.first}")
        found: list[Found] = []
        changes: list[StateChange] = []
        late = block.rows.column("late").to_numpy(zero_copy_only=False)
        note_latest(self.streams, block.entries, np.where(late, NO_TIME, block.rows.column("end").view(pa.int64()).to_numpy()))
        arrivals = self._arrivals(block)
        span: list[Entry] = []
        for entry in block.entries:
            if isinstance(entry, Register | Drop | Facts | DropStream):
                self._pass(span, arrivals, found, changes)
                span = []
                self._control(entry, changes)
            else:
                span.append(entry)
        self._pass(span, arrivals, found, changes)
        self.position = block.after
        return Outcome(in_emission_order(found), tuple(changes))

    def _arrivals(self, block: Block) -> dict[str, Arrivals]:
        """The block's occurrences by stream, late ones left out."""
        rows = block.rows
        if not rows.num_rows or not (self.members or any(isinstance(e, Register) for e in block.entries)):
            return {}
        events = [e for e in block.entries if isinstance(e, Events)]
        counts = [e.rows for e in events]
        offsets = np.repeat(np.array([e.offset for e in events], np.int64), counts)
        names = list(dict.fromkeys(e.stream for e in events))
        which = np.repeat(np.array([names.index(e.stream) for e in events], np.int64), counts)
        s, p, o = (self.terms.map_dictionary(rows.column(name)) for name in ("s", "p", "o"))
        start, end = (rows.column(name).view(pa.int64()).to_numpy() for name in ("start", "end"))
        everything = Arrivals(which, s, p, o, start, end, offsets)
        late = rows.column("late").to_numpy(zero_copy_only=False)
        if len(names) == 1:
            return {names[0]: everything.where(~late) if late.any() else everything}
        return {name: everything.where(~late & (which == k)) for k, name in enumerate(names)}

    def _control(self, entry: Register | Drop | Facts | DropStream, changes: list[StateChange]) -> None:
        self._layout = None
        match entry:
            case Register():
                self._register(entry, changes)
            case Drop():
                self.registered.pop(entry.registered, None)
                for member in self.members:
                    if entry.registered in member.network.planned:
                        member.network.drop(entry.registered)
                self.members = [member for member in self.members if member.network.planned]
            case Facts():
                self._learn(entry)
            case DropStream():
                self.streams.pop(entry.stream, None)

    # ------------------------------------------------------------ queries
    def _register(self, entry: Register, changes: list[StateChange]) -> None:
        try:
            self.admit(entry, parse(entry.text).query)
        except (QueryError, Refusal, Cycle) as fault:
            changes.append(StateChange(entry.offset, entry.name, entry.offset, "failed", str(fault)))
        except Exception as fault:  # noqa: BLE001  # a fault of ours: the log is read again at every start, so it may not stop the others
            changes.append(StateChange(entry.offset, entry.name, entry.offset, "failed", f"internal error: {type(fault).__name__}: {fault}"))

    def admit(self, entry: Register, query: a.Query) -> Network:
        """Puts a query into its network. Raises Refusal, Cycle; whatever is raised, nothing has changed."""
        members = list(self.members)
        try:
            network = self._member_for(query).network
            network.add(entry.offset, entry.name, query, self.facts, entry.max_derivations)
        except BaseException:
            self.members = members
            raise
        self.registered[entry.offset] = entry
        return network

    def _rules(self) -> list[a.Construct]:
        return [rule for member in self.members for rule in member.rules]

    def _member_for(self, query: a.Query) -> Member:
        """The network that a query belongs to: the one of its cycle of rules, else one that reaches the same streams, else a new one.

        Raises Refusal if rules of several networks would feed each other.
        """
        rules = self._rules()
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
            if reached(member.network.reads, rules) == gate:
                return member
        self.members.append(Member(Network(self.terms)))
        return self.members[-1]

    def _learn(self, entry: Facts) -> None:
        added = [t for t in triples_of(entry.triples) if t not in self.facts]
        self.facts |= dict.fromkeys(added)
        for member in self.members:
            member.network.learn(added, self.facts)

    # ------------------------------------------------------------ time
    def _pass(self, entries: Sequence[Entry], arrivals: dict[str, Arrivals], found: list[Found], changes: list[StateChange]) -> None:
        """Lets the networks take in a stretch of entries without controls, those first on whose rules others rest."""
        if not entries:
            return
        span = advance(self.streams, entries)
        first, last = entries[0].offset, entries[-1].offset
        whole = all(part.entry[0] >= first and part.entry[-1] <= last for part in arrivals.values() if len(part))
        new = dict(arrivals) if whole else {s: part.where((part.entry >= first) & (part.entry <= last)) for s, part in arrivals.items()}
        layout = self._layout = self._layout or self._laid_out()
        for member, gate in layout.order:
            time = time_of(gate, layout.sources, self.streams, span, member.time)
            rows = member.network.feed(
                member.feed(entries, time, new, max((self.streams[name].latest for name in gate if name in self.streams), default=NO_TIME))
            )
            self._collect(member, rows, new, found)
            for failure in member.network.failures:
                del self.registered[failure.planned.registered]
                self._layout = None
                changes.append(StateChange(failure.planned.registered, failure.planned.name, failure.entry, "failed", failure.reason))
            member.network.failures.clear()

    def _laid_out(self) -> "Layout":
        rules = self._rules()
        order = tuple((member, tuple(sorted(reached(member.network.reads, rules)))) for member in in_order_of_rules(self.members))
        written = {rule.into for rule in rules}
        sources = {into: frozenset(reached([s for rule in rules if rule.into == into for s in rule.streams], rules) - {into}) for into in written}
        return Layout(order, sources)

    def _collect(self, member: Member, rows: Ints, new: dict[str, Arrivals], found: list[Found]) -> None:
        """Sorts a network's rows to its queries, and hands what rules derived to the other networks that read it."""
        if not len(rows):
            return
        if (rows[1:, c.OUT_NODE] != rows[0, c.OUT_NODE]).any():
            rows = rows[np.argsort(rows[:, c.OUT_NODE], kind="stable")]
        outs, starts = np.unique(rows[:, c.OUT_NODE], return_index=True)
        by_out = {planned.out: planned for planned in (*member.network.planned.values(), *(f.planned for f in member.network.failures))}
        for out, own in zip(outs.tolist(), np.split(rows, starts[1:]), strict=True):
            planned = by_out[out]
            found.append(found_of(planned, own, self.terms))
            if isinstance(planned.query, a.Construct) and any(planned.query.into in m.network.reads for m in self.members if m is not member):
                into = planned.query.into
                others = [new[into]] if into in new else []
                new[into] = together([*others, self._derived(planned, planned.query, own)])

    def _derived(self, planned: Planned, rule: a.Construct, rows: Ints) -> Arrivals:
        """A rule's triples as occurrences for the networks that read its stream; its own has them already."""
        parts = []
        for triple in rule.template:
            s, p, o = (row_part(planned, rows, part, self.terms) for part in parts_of(triple))
            good = (s > 0) & (p > 0) & (o > 0) & (self.terms.kinds[s] < LITERAL) & (self.terms.kinds[p] == IRI)
            zeros = np.zeros(len(rows), np.int64)
            parts.append(Arrivals(zeros, s, p, o, rows[:, c.OUT_START], rows[:, c.OUT_END], rows[:, c.OUT_ENTRY]).where(good))
        return together(parts)

    # ------------------------------------------------------------ snapshots
    def snapshot(self) -> bytes:
        """The state after the last block."""
        arrays: dict[str, NDArray[Any]] = {"terms": np.frombuffer("\n".join(self.terms.texts[1:]).encode(), np.uint8)}
        members = []
        for k, member in enumerate(self.members):
            arrays |= {f"{k}.{name}": array for name, array in member.network.arrays().items()}
            arrays |= {f"{k}.pending.{name}": getattr(member.pending, name) for name in COLUMNS}
            planned = [[p.registered, p.number, astuple(p.at), astuple(p.after)] for p in member.network.planned.values()]
            members.append({"time": member.time, "streams": member.network.streams, "planned": planned})
        meta = {
            "position": self.position,
            "streams": {name: astuple(stream) for name, stream in self.streams.items()},
            "facts": [" ".join(map(str, fact)) + " ." for fact in self.facts],
            "registered": [astuple(entry) for entry in self.registered.values()],
            "members": members,
        }
        return pack(meta, arrays)

    @classmethod
    def restore(cls, data: bytes) -> "Engine":
        """The engine that gave `data`. Raises SnapshotMismatch; the log holds all that is needed to start anew."""
        meta, arrays = unpack(data)
        engine = cls()
        engine.position = meta["position"]
        engine.terms = TermTable.restored(arrays["terms"].tobytes().decode().split("\n") if len(arrays["terms"]) else ())
        engine.streams = {name: Stream(*values) for name, values in meta["streams"].items()}
        engine.facts = dict.fromkeys(triples_of("\n".join(meta["facts"])))
        engine.registered = {entry.offset: entry for entry in (Register(*values) for values in meta["registered"])}
        for k, member in enumerate(meta["members"]):
            engine.members.append(engine._restored(k, member, arrays))
        return engine

    def _restored(self, k: int, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Member:
        network = Network(self.terms)
        own = {name.removeprefix(f"{k}."): array for name, array in arrays.items() if name.startswith(f"{k}.")}
        pending = Arrivals(*(own.pop(f"pending.{name}") for name in COLUMNS))
        network.streams = dict(meta["streams"])
        planned = []
        for registered, number, at, after in meta["planned"]:
            entry = self.registered[registered]
            query = parse(entry.text).query
            fragment = plan(query, network.names(self.facts))
            planned.append(planned_from(registered, entry.name, query, number, fragment, Place(*at), Place(*after), entry.max_derivations))
        network.restore(own, planned)
        return Member(network, meta["time"], pending)


def triples_of(ntriples: str) -> list[Triple]:
    """The triples of an N-Triples text."""
    parsed = pyoxigraph.parse(ntriples.encode(), format=pyoxigraph.RdfFormat.N_TRIPLES)
    return [(parse_term(str(t.subject)), parse_term(str(t.predicate)), parse_term(str(t.object))) for t in parsed]
