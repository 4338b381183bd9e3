"""One kernel with its queries: they share a clock, because they reach the same streams."""

from collections.abc import Callable, Iterable, KeysView, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import host
from engine.collect import Collector, GroupCollector, Moments, Rows
from engine.entries import UNRESTRICTED
from engine.facts import FactIndex
from engine.form import form_of
from engine.kernel import columns as c
from engine.kernel.filters import spread_questions
from engine.kernel.goals import clear_stores, spread, spread_seen, spread_timeless
from engine.kernel.instants import run
from engine.kernel.policies import RIGHT_TAG
from engine.kernel.state import KEPT, WORDS, Net, margin, new_net, with_links, with_room, with_width
from engine.literals import FALSE, TRUE
from engine.operators import OPERATORS
from engine.planned import Planned, placed_alpha, planned_from, scans_of
from engine.planning import Names, plan
from engine.planning.shapes import EVERYTHING, Rates, predicates_of
from engine.program import TABLES, Fact, Fragment, Inquiry, Place, place, placed_nodes, ranges_of, sizes, timers_of
from engine.quotas import Quotas
from engine.strata import NEGATIVE, POLICIES, Cycle, Wire, on_cycle, strata
from engine.tables import Ranges, Scans, by_predicate, ranges_around, scans_in, with_predicate, with_rows
from engine.terms import Held, TermTable, numbers_in
from epsparql import algebra as a
from epsparql.terms import Variable

Ints = NDArray[np.int64]


FEED = Net._fields.index("feed")
SPREADERS: dict[str, Callable[[int, Ints], None]] = {
    "heads": spread,
    "timeless": spread_timeless,
    "seen_heads": spread_seen,
    "question_heads": spread_questions,
}
"""How each table of chains is moved to a larger one."""
MOST_FOUND = 1 << 16
"""Rows of `out` that the host takes before it grants more room."""


NO_RATES: Rates = {}


@dataclass(frozen=True, slots=True, eq=False)
class Failure:
    """A query stopped at an entry because it was beyond a bound of its own."""

    planned: Planned
    entry: int
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Completion:
    """A query that has said all that it ever will, at an entry."""

    planned: Planned
    entry: int
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Collecting:
    """A collector at its node, with the columns that it reads and writes."""

    node: int
    collector: Collector
    registered: int  # of its query
    timer: int | None  # its row of `timers`, if it may be due
    reads: Ints
    writes: Ints


@dataclass(slots=True, eq=False, weakref_slot=True)
class Network:
    """The kernel's arrays and the host's side of its returns."""

    terms: TermTable
    planned: dict[int, Planned] = field(default_factory=dict)  # by `registered`
    numbered: dict[int, Planned] = field(default_factory=dict)  # the same by number
    rules: dict[int, Planned] = field(default_factory=dict)  # those of them that write a stream, by `registered`
    streams: dict[str, int] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    completions: list[Completion] = field(default_factory=list)
    collecting: dict[int, Collecting] = field(default_factory=dict)  # by node
    known: FactIndex = field(default_factory=FactIndex)  # the background as it stands
    completed: set[int] = field(default_factory=set)  # nodes of collectors whose queries have been reported as completed
    quotas: Quotas = field(init=False)
    net: Net = field(init=False)
    address: int = field(init=False)  # the kernel's handle: where `_table` stands
    _table: Ints = field(init=False)  # (address, length, width) of each array of `net`
    _lent: Ints = field(init=False)  # the feed that the kernel sees, kept alive while it is there
    _inquiries: dict[int, tuple[Inquiry, str]] = field(default_factory=dict)  # by number of the question, with its query's name
    _readers: dict[str, int] = field(default_factory=dict)  # how many queries read a stream
    _used: dict[str, Ranges] = field(default_factory=dict)  # rows in use, by name of the table
    _scans: Scans = field(default_factory=Scans)
    _swaps: bool = False  # whether a scan takes an occurrence's object for its subject
    _dropped: list[Planned] = field(default_factory=list)  # whose rows are not free yet, because something may be on its way there

    def __post_init__(self) -> None:
        self.quotas = Quotas(self)
        self._hold(new_net(4))
        self._used = {name: Ranges() for name in (*TABLES, "queries", "reads", "facts")}
        self.net.at[c.TRUE_TERM], self.net.at[c.FALSE_TERM] = self.terms.intern(str(TRUE)), self.terms.intern(str(FALSE))
        self.terms.holders.add(self)

    def _hold(self, net: Net) -> None:
        """Makes `net` the one that the kernel sees: the table of addresses follows, cell by cell where an array is another."""
        before = getattr(self, "net", None)
        if net is before:
            return
        if before is None:
            self._table = np.zeros(WORDS * len(net), np.int64)
            self.address = int(self._table.__array_interface__["data"][0])
        for k, array in enumerate(net):
            if before is None or array is not before[k]:
                self._show(k, array)
        self.net = net

    def _make_room(self, need: int, frames: int = 0) -> None:
        self._hold(with_room(self.net, need, frames))
        for name in ("rows", "links"):  # they grow at their place
            self._show(Net._fields.index(name), getattr(self.net, name))

    def _show(self, k: int, array: NDArray[Any]) -> None:
        """Makes an array the k-th that the kernel sees."""
        assert array.flags.c_contiguous
        assert array.dtype.itemsize == 8
        height, width = array.shape if array.ndim == 2 else (len(array), 1)
        self._table[WORDS * k : WORDS * k + WORDS] = array.__array_interface__["data"][0], height, width

    # ------------------------------------------------------------ queries
    @property
    def reads(self) -> KeysView[str]:
        return self._readers.keys()

    def names(self, facts: FactIndex, query: str = "", policy: str = UNRESTRICTED, rates: Rates = NO_RATES, *, turns: bool = True) -> Names:
        from engine.solver import Solver  # which has a network inside

        solvers: list[Solver] = []

        def once(inner: a.Select, contents: Mapping[str, Ints], now: int) -> Ints:
            if not solvers or solvers[-1].known is not self.known:
                solvers[:] = [Solver(self.terms, inner, self.known, policy)]
            return solvers[-1].solve(contents, now)

        return Names(self.terms.intern, self.number_of, facts.matching, facts.schema, query, policy, rates, turns, once)

    def rates_for(self, query: a.Query) -> Rates:
        """How often there have been triples of each predicate of a query here; nothing if there have been none at all."""
        seen = by_predicate(self.net)[:, c.ALPHA_SEEN]
        if not seen[0]:
            return NO_RATES
        numbers = {text: self.terms.intern(text) for text in sorted(predicates_of(query))}
        return {EVERYTHING: int(seen[0])} | {text: int(seen[number]) for text, number in numbers.items() if number < len(seen)}

    def number_of(self, name: str) -> int:
        """The network's number for a stream."""
        if name not in self.streams:
            self.streams[name] = len(self.streams)
            row = np.array([[0, c.NONE]], np.int64)
            self._hold(self.net._replace(streams=np.concatenate([self.net.streams, row])))
        return self.streams[name]

    def add(
        self, registered: int, name: str, query: a.Query, facts: FactIndex, max_derivations: int = 0, policy: str = UNRESTRICTED,
        rates: Rates | None = None, *, turns: bool = True,
    ) -> None:  # fmt: skip
        """Plans a rewritten query, by the rates observed if none are given, and puts it into rows that are free.

        Raises Refusal, Cycle; whatever is raised, nothing has changed.
        """
        self.known = facts
        rates = self.rates_for(query) if rates is None else rates
        fragment = plan(query, self.names(facts, name, policy, rates, turns=turns))
        number = self._used["queries"].take(1)
        at = Place(*(self._used[table].take(n) for table, n in zip(TABLES, sizes(fragment), strict=True)))
        planned = planned_from(registered, name, query, number, fragment, at, max_derivations, policy, rates)
        self._enter(planned)
        try:
            net = with_rows(with_width(self.net, len(fragment.columns)), {"queries": self._used["queries"].end})
            net = place(net, fragment, at, number, self._used)
            self._hold(with_links(net) if any(node[c.KIND] in POLICIES for node in fragment.nodes) else net)
            self.net.queries[number] = 0, registered, -c.BIG, 0, 0, c.FOREVER, -c.BIG, 0, 0, 0, c.FOREVER
            self._rank(self._affected(planned))
        except BaseException:
            self._leave(planned)
            self._free(planned)
            raise
        self._inquiries |= {at.ask + k: (inquiry, name) for k, inquiry in enumerate(fragment.inquiries)}
        self._with_readers(planned, fragment)
        self._collect_with(planned, fragment, self._with_timers(fragment, at))

    def _enter(self, planned: Planned) -> None:
        self.planned[planned.registered] = self.numbered[planned.number] = planned
        if planned.writes is not None:
            self.rules[planned.registered] = planned
        for stream in set(planned.query.streams):
            self._readers[stream] = self._readers.get(stream, 0) + 1

    def _leave(self, planned: Planned) -> None:
        del self.planned[planned.registered], self.numbered[planned.number]
        self.rules.pop(planned.registered, None)
        for stream in set(planned.query.streams):
            self._readers[stream] -= 1
            if not self._readers[stream]:
                del self._readers[stream]

    def _free(self, planned: Planned) -> None:
        """Gives back a query's rows, where nothing is on its way any more."""
        self.net.nodes[planned.at.node : planned.after.node, c.KIND] = c.DROPPED
        self.net.queries[planned.number, c.Q_OPEN] = 1
        self._used["queries"].give(planned.number, 1)
        for name, (first, n) in ranges_of(planned.at, planned.after).items():
            self._used[name].give(first, n)

    def _with_timers(self, fragment: Fragment, at: Place) -> dict[int, int]:
        """Puts a fragment's timers behind the others; the row of each by its node."""
        timers, first = timers_of(fragment, at), int(self.net.at[c.TIMER_NODES])
        self._hold(with_rows(self.net, {"timers": first + len(timers)}))
        self.net.timers[first : first + len(timers)] = timers
        self.net.at[c.TIMER_NODES] += len(timers)
        return {node: first + k for k, node in enumerate(timers[:, c.T_NODE].tolist())}

    def _collect_with(self, planned: Planned, fragment: Fragment, timers: Mapping[int, int]) -> None:
        """Takes up the collectors of a query that stands at its place."""
        for node, collector in fragment.collectors.items():
            reads, writes = (np.array([fragment.columns[v] for v in part], np.int64) for part in (collector.reads, collector.writes))
            here = planned.at.node + node
            self.collecting[here] = Collecting(here, collector, planned.registered, timers.get(here), reads, writes)

    def _affected(self, planned: Planned) -> list[Planned]:
        """A query and those that its triples reach through rules: no other's strata depend on it."""
        found, pending = {planned.registered: planned}, [planned]
        while pending:
            into = pending.pop().writes
            reached = [] if into is None else [p for p in self.planned.values() if into in p.query.streams and p.registered not in found]
            found |= {p.registered: p for p in reached}
            pending += reached
        return list(found.values())

    def _rank(self, affected: Sequence[Planned]) -> None:
        """Strata of these queries' nodes; and bounds for the rules that may feed themselves inside an instant, which no other rule needs."""
        nodes = self.net.nodes
        wires = [wire for planned in affected for wire in self._wires(self.net, planned)]
        kinds = {node: int(nodes[node, c.KIND]) for planned in affected for node in range(planned.at.node, planned.after.node)}
        settled = {rule.out: int(nodes[rule.out, c.STRATUM]) for rule in self.rules.values() if rule.out not in kinds}
        try:
            ranked = strata(kinds, wires, settled)
        except Cycle as cycle:
            raise Cycle(cycle.nodes, self._way(self.net, cycle.nodes)) from None
        nodes[list(ranked), c.STRATUM] = list(ranked.values())
        for planned in affected:
            bounded = planned.writes is not None and on_cycle(planned.out, wires)
            self.net.queries[planned.number, c.Q_BOUND] = planned.max_derivations if bounded else c.FOREVER

    def _way(self, net: Net, nodes: Sequence[int]) -> str:
        """A cycle for its reader: queries, with their negative parts and the streams they write."""
        steps: list[str] = []
        for node in nodes:
            planned = next(p for p in self.planned.values() if p.at.node <= node < p.after.node)
            kind = int(net.nodes[node, c.KIND])
            if kind in NEGATIVE:
                steps.append(f"{OPERATORS[kind]} of {planned.name}")
            elif node == planned.out and planned.writes is not None:
                steps.append(f"the triples that {planned.name} writes to the stream {planned.writes}")
        return " -> ".join([*steps, steps[0]])

    def _wires(self, net: Net, planned: Planned) -> Iterable[Wire]:
        """How solutions go on inside one query, along its edges, and to its scans from the templates of rules."""
        for node in range(planned.at.node, planned.after.node):
            first, n = int(net.nodes[node, c.EDGE_AT]), int(net.nodes[node, c.EDGE_N])
            for reader, side in net.edges[first : first + n].tolist():
                yield Wire(node, reader, (reader - planned.at.node, side) in planned.strict)
            first, n = int(net.nodes[node, c.MARK_AT]), int(net.nodes[node, c.MARK_N])
            for mark in net.edges[first : first + n, 0].tolist():
                yield Wire(mark, node, strict=False)
        for rule in self.rules.values():
            assert isinstance(rule.query, a.Construct)
            if rule.query.into in planned.query.streams:
                yield from (Wire(rule.out, node, strict) for node, strict in self._scanned(planned, rule.query.template))

    def _scanned(self, planned: Planned, template: Iterable[a.TriplePattern]) -> Iterable[tuple[int, bool]]:
        """The nodes of a query whose scans may read triples of a template."""
        written = [t.predicate for t in template]
        anything = any(isinstance(p, Variable) for p in written)
        predicates = {0} | {self.terms.intern(str(p)) for p in written if not isinstance(p, Variable)}
        for node, side, predicate in planned.scans:
            if anything or predicate in predicates:
                yield planned.at.node + node, (node, side) in planned.strict

    def _with_readers(self, planned: Planned, fragment: Fragment) -> None:
        """Scans, reads and facts of a query that has just been placed."""
        self._hold(self._scans.add(self.net, placed_alpha(fragment, planned.at, planned.number)))
        streams = [self.streams[name] for name in dict.fromkeys(planned.query.streams)]
        first = self._used["reads"].take(len(streams))
        self._hold(with_rows(self.net, {"reads": self._used["reads"].end}))
        for k, stream in enumerate(streams, first):
            self.net.reads[k] = planned.number, self.net.streams[stream, c.S_READS]
            self.net.streams[stream, c.S_READS] = k
            self.net.streams[stream, c.S_PENDING] += 1
        self._with_facts(planned, fragment.facts)

    def _without_readers(self, planned: Planned) -> None:
        """Takes out a query's scans, reads and facts."""
        net, number = self.net, planned.number
        self._scans.remove(net, number, (predicate for _, _, predicate in planned.scans))
        pending = net.queries[number, c.Q_OPEN] == 0 or net.queries[number, c.Q_FACTS_N] > 0
        net.queries[number, c.Q_FACTS_N] = 0
        reads = net.reads[: self._used["reads"].end]
        for name in set(planned.query.streams):
            stream = self.streams[name]
            row = _read_of(net, stream, number)
            after = net.reads[row, c.R_NEXT]
            if net.streams[stream, c.S_READS] == row:
                net.streams[stream, c.S_READS] = after
            else:
                reads[reads[:, c.R_NEXT] == row, c.R_NEXT] = after
            net.streams[stream, c.S_PENDING] -= bool(pending)
            net.reads[row] = c.NONE
            self._used["reads"].give(int(row), 1)

    def _with_facts(self, planned: Planned, facts: list[Fact]) -> None:
        """Facts that a query takes in when it opens, or at its next instant."""
        rows = np.zeros((len(facts), self.net.facts.shape[1]), np.int64)
        for row, fact in zip(rows, facts, strict=True):
            row[: c.F_VAR] = planned.at.node + fact.node, fact.side, fact.triple
            for column, term in fact.cells.items():
                row[c.F_VAR + column - c.VAR] = term
        self._with_fact_rows(planned, rows)

    def _with_fact_rows(self, planned: Planned, rows: Ints) -> None:
        if self._used["facts"].end + len(rows) > len(self.net.facts):
            self._gather_facts(len(rows))
        net, first = self.net, self._used["facts"].take(len(rows))
        net.facts[first : first + len(rows)] = rows
        net.queries[planned.number, c.Q_FACTS_AT], net.queries[planned.number, c.Q_FACTS_N] = first, len(rows)
        self._note_scans()
        net.at[c.FED_ALONE] = not self.rules

    def _note_scans(self) -> None:
        """What one step adds to a pool at most, and what scans do with an occurrence."""
        self._swaps = bool(self.net.alpha[: self._scans.ranges.end, c.A_SWAPPED].any())
        self.net.at[c.MARGIN] = margin(self.net, self._scans.widest)

    def _gather_facts(self, more: int) -> None:
        """Leaves the facts that have been taken in behind, with room for as many again as there are then."""
        net, before = self.net, self.net.facts
        waiting = np.flatnonzero(net.queries[:, c.Q_FACTS_N])
        end = int(net.queries[waiting, c.Q_FACTS_N].sum())
        facts = np.zeros((2 * (end + more), before.shape[1]), np.int64)
        used = self._used["facts"] = Ranges()
        for first, n, number in zip(*net.queries[waiting][:, [c.Q_FACTS_AT, c.Q_FACTS_N]].T.tolist(), waiting.tolist(), strict=True):
            at = net.queries[number, c.Q_FACTS_AT] = used.take(n)
            facts[at : at + n] = before[first : first + n]
        self._hold(net._replace(facts=facts))

    def try_to_learn(self, known: FactIndex) -> None:
        """Raises Cycle if the background `known` would close one; nothing has changed then."""
        planned, nodes, bounds = dict(self.planned), self.net.nodes.copy(), self.net.queries[:, c.Q_BOUND].copy()
        try:
            self._replan(known)
            self._rank(list(self.planned.values()))
        finally:
            self.net.nodes[:], self.net.queries[:, c.Q_BOUND] = nodes, bounds
            self.planned = planned

    def learn(self, added: FactIndex, known: FactIndex) -> None:
        """Background facts were added, which close no cycle: readers take them in at their next instant."""
        for planned in [p for p in self.planned.values() if p.turned and not self._planned_anew(p, known).turned]:
            self._straighten(planned)
        self.known = known
        fragments = self._replan(known)
        self._rank(list(self.planned.values()))
        for planned, fragment in zip(self.planned.values(), fragments, strict=True):
            self._scans.remove(self.net, planned.number, (predicate for _, _, predicate in self.numbered[planned.number].scans))
            self._hold(self._scans.add(self.net, placed_alpha(fragment, planned.at, planned.number)))
            self.numbered[planned.number] = planned
            if planned.writes is not None:
                self.rules[planned.registered] = planned
        self._note_scans()
        for planned in self.planned.values():
            self._learn(planned, self._planned_anew(planned, added).facts)

    def _planned_anew(self, planned: Planned, facts: FactIndex) -> Fragment:
        names = self.names(facts, planned.name, planned.policy, planned.rates, turns=planned.turned)
        return plan(planned.query, names)

    def _straighten(self, planned: Planned) -> None:
        """Plans a chain of SEQs as it is written, which had been planned from its end; the goals of its operands go over, from which its joins follow."""
        order, before = list(self.planned), self.net.queries[planned.number].copy()
        goals = [(self._goals_of(c.SIDES * (planned.at.node + node) + side), k) for k, (node, side) in enumerate(planned.leaves[:-1])]
        quota, held = self.quotas.of(planned.registered)
        self._take_out(planned)
        self.add(
            planned.registered, planned.name, planned.query, self.known, planned.max_derivations, planned.policy, planned.rates, turns=False
        )  # fmt: skip
        self.quotas.limit(planned.registered, quota, held)
        new = self.planned[planned.registered]
        self.planned = {registered: self.planned[registered] for registered in order}
        tags = self.net.seen[: self.net.at[c.SEEN_N], c.SEEN_TAG]
        tags[tags == planned.out] = new.out  # what it has said at this instant
        if before[c.Q_OPEN]:
            for stream in set(planned.query.streams):
                self.net.streams[self.streams[stream], c.S_PENDING] -= 1
        kept = [c.Q_OPEN, c.Q_FROM, c.Q_AFTER, c.Q_T0]
        self.net.queries[new.number, kept] = before[kept]
        self.free_dropped()
        places = [(new.at.node + node, side) for node, side in new.leaves]
        self._take_over(
            np.concatenate([rows for rows, _ in goals]), np.array([places[k] for rows, k in goals for _ in rows], np.int64).reshape(-1, 2)
        )

    def _goals_of(self, store: int) -> Ints:
        """The timed goals of a store, the oldest first."""
        numbers, goal = list[int](), int(self.net.stores[store, c.HEAD])
        while goal != c.NONE:
            numbers.append(goal)
            goal = int(self.net.rows[goal, c.QUEUE])
        return self.net.rows[np.array(numbers, np.int64)]

    def _take_over(self, rows: Ints, places: Ints) -> None:
        """Solutions from before arrive at their nodes, in order of end, since stores are kept in that order."""
        self.net.at[c.EVENT] = self.net.at[c.EVENTS] = 0
        self._hold(self._with_terms(self.net))
        for end in np.unique(rows[:, c.END]).tolist():
            now = np.flatnonzero(rows[:, c.END] == end)
            numbers, depth = self._rows_taken(len(now)), int(self.net.at[c.DEPTH])
            self.net.rows[numbers] = rows[now]
            frames = self.net.stack[depth : depth + len(now)]
            frames[:, [c.FRAME_NODE, c.FRAME_SIDE]], frames[:, c.FRAME_ROW] = places[now], numbers
            self.net.at[c.DEPTH] = depth + len(now)
            while (code := run(self.address)) != c.DONE:
                self._serve(code)
        assert not self.net.at[c.FOUND], "the last operand keeps no goals"

    def _replan(self, known: FactIndex) -> list[Fragment]:
        """The same nodes, with what changes in them when timeless solutions become possible; the new fragments."""
        fragments = []
        for registered, planned in self.planned.items():
            fragment = self._planned_anew(planned, known)
            fragments.append(fragment)
            if planned.turned and not fragment.turned:
                continue  # `learn` plans it otherwise; nothing of it decides on absence
            nodes = placed_nodes(fragment, planned.at, planned.number)
            assert len(nodes) == planned.after.node - planned.at.node, "a plan's shape does not depend on the background"
            self.net.nodes[planned.at.node : planned.after.node] = nodes
            self.planned[registered] = replace(planned, strict=frozenset(fragment.strict), scans=scans_of(fragment), form=form_of(fragment))
        return fragments

    def _learn(self, planned: Planned, facts: list[Fact]) -> None:
        net, number = self.net, planned.number
        facts = [fact for fact in facts if fact.triple]
        first, n = int(net.queries[number, c.Q_FACTS_AT]), int(net.queries[number, c.Q_FACTS_N])
        if not facts:
            return
        if net.queries[number, c.Q_OPEN] and n == 0:
            net.queries[number, c.Q_AFTER] = net.at[c.NOW]
            for stream in dict.fromkeys(planned.query.streams):
                net.streams[self.streams[stream], c.S_PENDING] += 1
        waiting = net.facts[first : first + n].copy()
        self._with_facts(planned, facts)
        first, n = self.net.queries[number, [c.Q_FACTS_AT, c.Q_FACTS_N]].tolist()
        self._with_fact_rows(planned, np.concatenate([waiting, self.net.facts[first : first + n]]))

    def drop(self, registered: int) -> None:
        """Takes a query out between feeds, with its goals; no other is touched."""
        self._take_out(self.planned[registered])
        self.free_dropped()

    def _take_out(self, planned: Planned) -> None:
        self._without_readers(planned)
        self._leave(planned)
        self.net.nodes[planned.at.node : planned.after.node, c.KIND] = c.DROPPED
        clear_stores(self.address, c.SIDES * planned.at.node, c.SIDES * planned.after.node)
        self._without_timers(planned)
        self.quotas.forget(planned.registered)
        self._dropped.append(planned)

    def _without_timers(self, planned: Planned) -> None:
        """Takes a query's timers and collectors out; the last timers move into their places."""
        for node in range(planned.at.node, planned.after.node):
            self.collecting.pop(node, None)
        timers = self.net.timers
        nodes = timers[: self.net.at[c.TIMER_NODES], c.T_NODE]
        for k in np.flatnonzero((planned.at.node <= nodes) & (nodes < planned.after.node))[::-1].tolist():
            self.net.at[c.TIMER_NODES] -= 1
            timers[k] = timers[self.net.at[c.TIMER_NODES]]
            moved = self.collecting.get(int(timers[k, c.T_NODE]))
            if moved is not None:
                self.collecting[moved.node] = replace(moved, timer=k)

    def free_dropped(self) -> None:
        """Frees the rows of dropped queries. What waits for the close of the instant, what the instant has met and the memo may name them still."""
        net, at = self.net, self.net.at
        waiting = net.waiting[: at[c.WAITING]]
        gone, side = net.nodes[waiting[:, c.FRAME_NODE], c.KIND] == c.DROPPED, waiting[:, c.FRAME_SIDE]
        stored = (side >= c.ORDER) & (side != c.RIGHT_CHOICE)  # goals of a policy, which their stores freed
        self._release(waiting[gone & ~stored, c.FRAME_ROW])
        kept = waiting[~gone]
        waiting[: len(kept)] = kept
        at[c.WAITING] = len(kept)
        for planned in self._dropped:
            tags, who = net.seen[: at[c.SEEN_N], c.SEEN_TAG], net.questions[: at[c.ASKED], c.ASK_WHO]
            nodes = tags % RIGHT_TAG
            tags[(tags >= 0) & (planned.at.node <= nodes) & (nodes < planned.after.node)] = c.BIG
            who[(planned.at.ask <= who) & (who < planned.after.ask)] = c.NONE
            for ask in range(planned.at.ask, planned.after.ask):
                del self._inquiries[ask]
            self._free(planned)
        self._dropped.clear()

    def unopened(self) -> list[Planned]:
        """The queries that no occurrence has opened yet."""
        closed = self.net.queries[: self._used["queries"].end, c.Q_OPEN] == 0
        return [self.numbered[number] for number in np.flatnonzero(closed).tolist()]

    # ------------------------------------------------------------ running
    def feed(self, columns: Ints) -> Ints:
        """Takes in a feed (FEED_HEIGHT x n, in order); the rows found, as `out` has them."""
        net = self.net
        net.at[c.EVENT], net.at[c.EVENTS] = 0, columns.shape[1]
        self._show(FEED, columns)
        self._lent = columns
        self._hold(self._with_terms(net))
        chunks: list[Ints] = []
        while (code := run(self.address)) != c.DONE:
            if self.net.at[c.FOUND] > MOST_FOUND:
                chunks.append(self._take_found())
            self._serve(code)
        self._spread_heads()
        if self._dropped:
            self.free_dropped()
        found = self._take_found()
        return np.concatenate([*chunks, found]) if chunks else found

    def _take_found(self) -> Ints:
        n = int(self.net.at[c.FOUND])
        if n == 0:
            return self.net.out[:0]
        self.net.at[c.FOUND] = 0
        return self.net.out[:n].copy()

    def _serve(self, code: int) -> None:
        if code == c.GROW:
            at = self.net.at
            self._make_room(int(at[c.MARGIN]), int(at[c.WAITING]))
            self._spread_heads()
        elif code == c.EXCEEDED:
            self._exceeded()
        elif code == c.COLLECTION:
            self._collect()
        elif code == c.DECISION:
            self._decide()
        else:
            self._answer()

    def _spread_heads(self) -> None:
        """Hash tables of at least as many heads as what hangs on them."""
        at = self.net.at.tolist()
        held = {
            "heads": at[c.USED] - at[c.FREE] - at[c.TIMELESS_GOALS],
            "timeless": at[c.TIMELESS_GOALS],
            "seen_heads": max(at[c.SEEN_N], at[c.SEEN_MOST]),
            "question_heads": at[c.ASKED],
        }
        for name, spreader in SPREADERS.items():
            if held[name] > len(getattr(self.net, name)):
                heads = np.full(1 << held[name].bit_length(), c.NONE, np.int64)
                spreader(self.address, heads)
                self._hold(self.net._replace(**{name: heads}))

    def _exceeded(self) -> None:
        """Has the query that is beyond a bound of its own looked into."""
        number = int(self.net.at[c.ENDLESS])
        self.net.at[c.ENDLESS] = c.NONE
        self.quotas.look_into(self.numbered[number])

    def fail(self, planned: Planned, reason: str) -> None:
        """Stops a query; no other is touched. `free_dropped` is yet to come."""
        self.failures.append(Failure(planned, int(self.net.at[c.ENTRY]), reason))
        self._take_out(planned)

    # ------------------------------------------------------------ collectors
    def _collect(self) -> None:
        """Hands what has been gathered to the collectors, and what they give to their nodes' readers; policies' goals come back in order."""
        net = self.net
        gathered = net.gathered[: net.at[c.GATHERED]].copy()
        net.at[c.GATHERED] = 0
        to_order = gathered[:, c.FRAME_SIDE] == c.ORDER
        if to_order.any():
            self._order(gathered[to_order])
            gathered = gathered[~to_order]
        for node in np.unique(gathered[:, c.FRAME_NODE]).tolist():
            frames = gathered[gathered[:, c.FRAME_NODE] == node]
            if node in self.collecting:
                self._emit(node, self._decided(self.collecting[node], frames))
            self._release(frames[:, c.FRAME_ROW])
        self._hold(self._with_terms(self.net))

    def _order(self, frames: Ints) -> None:
        """Puts left goals that a policy's nodes cannot order on the stack, the oldest on top, with all of their instant and key."""
        goals: dict[int, int] = {}  # and their nodes
        for node, goal in frames[:, [c.FRAME_NODE, c.FRAME_ROW]].tolist():
            if self.net.nodes[node, c.KIND] in POLICIES and goal not in goals:  # its query may have failed meanwhile
                goals |= dict.fromkeys(self._beside(node, goal), node)
        numbers = np.array(list(goals), np.int64)
        numbers = numbers[self._by_age(numbers, np.array(list(goals.values()), np.int64))][::-1]
        self._make_room(0, len(numbers))
        at, depth = self.net.at, int(self.net.at[c.DEPTH])
        stack = self.net.stack[depth : depth + len(numbers)]
        stack[:, c.FRAME_NODE], stack[:, c.FRAME_SIDE], stack[:, c.FRAME_ROW] = (
            [goals[goal] for goal in numbers.tolist()],
            c.DECIDE + c.YOUNGEST,
            numbers,
        )
        at[c.DEPTH] = depth + len(numbers)

    def _beside(self, node: int, goal: int) -> list[int]:
        """The goals of one chain that have a goal's key and end at this instant, itself too."""
        rows, now = self.net.rows, self.net.at[c.NOW]
        first, n = self.net.nodes[node, [c.KEY_AT, c.KEY_N]].tolist()
        columns = [c.HASH, *self.net.slots[first : first + n].tolist()]
        key, found = rows[goal, columns].tolist(), [goal]
        for direction in (c.OLDER, c.NEWER):
            other = int(rows[goal, direction])
            while other != c.NONE and rows[other, c.END] == now:
                if rows[other, columns].tolist() == key:
                    found.append(other)
                other = int(rows[other, direction])
        return found

    def _by_age(self, goals: Ints, nodes: Ints) -> Ints:
        """The order of goals of one instant by start, then terms in N-Triples text by variable name, hidden ones last."""
        order = np.zeros(len(goals), np.int64)
        for query in np.unique(self.net.nodes[nodes, c.QUERY]).tolist():
            planned = self.planned[int(self.net.queries[query, c.Q_FROM])]
            columns = np.array([planned.columns[v] for v in sorted(planned.columns, key=lambda v: (v.hidden, v.name))], np.int64)
            own = np.flatnonzero(self.net.nodes[nodes, c.QUERY] == query)
            ranks = self.terms.in_order(self.net.rows[np.ix_(goals[own], columns)])
            order[own] = own[np.lexsort((*ranks.T[::-1], self.net.rows[goals[own], c.START]))]
        return order

    def _decided(self, collecting: Collecting, frames: Ints) -> Rows:
        at, collector = self.net.at, collecting.collector
        rows, wakes = (self._rows(frames[frames[:, c.FRAME_SIDE] == side, c.FRAME_ROW], collecting.reads) for side in (c.LEFT, c.BLOCKER))
        horizon = int(at[c.HORIZON]) if at[c.HORIZON] < c.FOREVER else None
        given = collector.decide(int(at[c.NOW]), rows, wakes, horizon, self.terms)
        if collecting.timer is not None:
            self.net.timers[collecting.timer, c.T_DUE] = collector.due()
        planned = self.planned[collecting.registered]
        if collector.done and collecting.node == planned.last and collecting.node not in self.completed:
            self.completed.add(collecting.node)
            reason = "ASK is answered" if isinstance(planned.query, a.Ask) else "LIMIT is reached"
            self.completions.append(Completion(planned, int(at[c.ENTRY]), reason))
        return given

    def _decide(self) -> None:
        """Hands what was deferred to its collectors, and what they give back to the kernel, which takes it on instant by instant."""
        net, at = self.net, self.net.at
        frames = net.deferred[: at[c.DEFERRED_N]].copy()
        at[c.DEFERRED_N] = 0
        parts = [self._reports(self.collecting[node], frames) for node in np.unique(frames[:, c.FRAME_NODE]).tolist() if node in self.collecting]
        self._release(frames[:, c.FRAME_ROW])
        reports = np.concatenate([net.reports[:0], *parts])
        at[c.REPORTED], at[c.REPORTS], at[c.STOOD] = 0, len(reports), at[c.NOW]
        self._hold(self._with_terms(self.net._replace(reports=reports)))

    def _reports(self, collecting: Collecting, frames: Ints) -> Ints:
        """What one collector makes of its frames, in the kernel's columns."""
        frames, horizon = frames[frames[:, c.FRAME_NODE] == collecting.node], int(self.net.at[c.HORIZON])
        rows = self._rows(frames[:, c.FRAME_ROW], collecting.reads)
        assert isinstance(collecting.collector, GroupCollector)
        moments = Moments(frames[:, c.D_NOW], frames[:, c.D_ENTRY], frames[:, c.FRAME_SIDE], rows)
        given = collecting.collector.decide_all(moments, horizon if horizon < c.FOREVER else None, self.terms)
        reports = np.zeros((len(given), self.net.reports.shape[1]), np.int64)
        reports[:, c.G_NODE], reports[:, c.G_ENTRY] = collecting.node, given.entry
        reports[:, c.G_START], reports[:, c.G_END] = given.rows.start, given.rows.end
        reports[:, collecting.writes + (c.G_VAR - c.VAR)] = given.rows.cells
        return reports

    def _rows(self, numbers: Ints, columns: Ints) -> Rows:
        rows = self.net.rows[numbers]
        return Rows(rows[:, c.START], rows[:, c.END], rows[:, columns])

    def _emit(self, node: int, given: Rows) -> None:
        """The collector's rows, on the stack as the node's own."""
        n, at = len(given), self.net.at
        if not n:
            return
        numbers, net, depth = self._rows_taken(n), self.net, int(at[c.DEPTH])
        net.rows[numbers] = 0
        net.rows[numbers, c.START], net.rows[numbers, c.END] = given.start, given.end
        net.rows[np.ix_(numbers, self.collecting[node].writes)] = given.cells
        frames = net.stack[depth : depth + n]
        frames[:, c.FRAME_NODE], frames[:, c.FRAME_SIDE], frames[:, c.FRAME_ROW] = node, c.EMIT, numbers[::-1]
        at[c.DEPTH] = depth + n

    def _rows_taken(self, n: int) -> Ints:
        """Rows to fill and to put on the stack."""
        self._make_room(n)
        at, free, used = self.net.at, int(self.net.at[c.FREE]), int(self.net.at[c.USED])
        fresh = max(n - free, 0)
        at[c.FREE], at[c.USED] = free - (n - fresh), used + fresh
        return np.concatenate([self.net.free[free - (n - fresh) : free], np.arange(used, used + fresh)])

    def _release(self, numbers: Ints) -> None:
        at, n = self.net.at, len(numbers)
        self.net.free[at[c.FREE] : at[c.FREE] + n] = numbers
        at[c.FREE] += n

    def _answer(self) -> None:
        """Answers the kernel's open questions and hands the parked work back."""
        at, questions = self.net.at, self.net.questions
        for q in range(int(at[c.ANSWERED]), int(at[c.ASKED])):
            who, *arguments = questions[q, c.ASK_WHO :].tolist()
            inquiry, name = self._inquiries[who]
            questions[q, c.ASK_ANSWER] = host.answer(inquiry, arguments[c.ASK_ARG - c.ASK_WHO - 1 :], self.terms, name, int(at[c.NOW]))
        at[c.ANSWERED] = at[c.ASKED]
        n, depth = int(at[c.PARKED]), int(at[c.DEPTH])
        self._make_room(0, n)
        net = self.net
        net.stack[depth : depth + n] = net.parked[:n]
        at[c.DEPTH], at[c.PARKED] = depth + n, 0
        self._hold(self._with_terms(net))

    def _with_terms(self, net: Net) -> Net:
        """What the kernel needs to know of terms: values and kinds if it has filters, kinds if it has rules."""
        filters = self._used["code"].end
        if filters and (numbers := self.terms.numbers) is not net.numbers:
            net = net._replace(numbers=numbers)
        if (filters or self._used["templates"].end or self._swaps) and (kinds := self.terms.kinds) is not net.kinds:
            net = net._replace(kinds=kinds)
        return net

    def hold(self, held: Held) -> None:
        """Marks the terms of program, goals and collectors; what was asked may be asked again."""
        net = self.net
        for table in (
            net.at[[c.TRUE_TERM, c.FALSE_TERM]],
            net.alpha,
            np.array(list(self._scans.counts), np.int64),
            net.code,
            net.templates,
            net.moves,
            net.facts,
        ):
            held.add(table)
        held.add(net.seen[: net.at[c.SEEN_N], c.SEEN_VAR :])
        held.add_rows(net.rows[: net.at[c.USED]], net.free[: net.at[c.FREE]], c.VAR)
        for collecting in self.collecting.values():
            held.add(numbers_in(collecting.collector.state()))
            if isinstance(collecting.collector, GroupCollector):
                for table in collecting.collector.tables().values():
                    held.add(table)
        self._forget_answers()

    def _forget_answers(self) -> None:
        """Between feeds, when nothing waits for them."""
        self.net.at[c.ASKED] = self.net.at[c.ANSWERED] = 0
        self.net.question_heads[:] = c.NONE

    # ------------------------------------------------------------ taken back
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Program and state, by name. Between feeds nothing is on its way, so answers may be asked for again and pools be left out."""
        net = self.net
        assert not net.at[c.DEPTH]
        assert not net.at[c.PARKED]
        assert not net.at[c.DEFERRED_N]
        ends = {name: used.end for name, used in self._used.items()} | {"alpha": self._scans.ranges.end, "stores": c.SIDES * self._used["nodes"].end}
        filled = {name: getattr(net, name)[:end] for name, end in ends.items()} | {"timers": net.timers[: net.at[c.TIMER_NODES]]}
        pools = {"waiting": net.waiting[: net.at[c.WAITING]], "seen": net.seen[: net.at[c.SEEN_N]]}
        return {name: getattr(net, name) for name in KEPT} | filled | pools

    def restore(self, arrays: dict[str, NDArray[Any]], fragments: Sequence[tuple[Planned, Fragment]]) -> None:
        """Takes over what `arrays` gave, with the queries at their places, whose collectors were never used."""
        planned = [p for p, _ in fragments]
        width = arrays["rows"].shape[1] - c.VAR
        self._hold(with_width(self.net, width)._replace(**arrays))
        self._forget_answers()  # if it was used, they have no place any more
        self.planned, self.numbered, self.rules, self._readers, self._inquiries = {}, {}, {}, {}, {}
        for p in planned:
            self._enter(p)
            self._inquiries |= {p.at.ask + k: (inquiry, p.name) for k, inquiry in enumerate(p.inquiries)}
        self._used = self._rows_in_use()
        self._scans = scans_in(self.net)
        timers = {node: k for k, node in enumerate(self.net.timers[:, c.T_NODE].tolist())}
        for p, fragment in fragments:
            self._collect_with(p, fragment, timers)
        self.completed = set()

    def _rows_in_use(self) -> dict[str, Ranges]:
        """The ranges of a network that was restored."""
        placed = [ranges_of(p.at, p.after) for p in self.planned.values()]
        used = {name: ranges_around(ranges[name] for ranges in placed) for name in TABLES}
        used["queries"] = ranges_around((p.number, 1) for p in self.planned.values())
        used["reads"] = ranges_around((k, 1) for k in np.flatnonzero(self.net.reads[:, c.R_QUERY] != c.NONE).tolist())
        used["facts"] = Ranges(len(self.net.facts))
        return used

    # ------------------------------------------------------------ snapshots
    def observed(self) -> Ints:
        """How many occurrences there were, of all predicates and then of each."""
        return by_predicate(self.net)[:, c.ALPHA_SEEN].copy()

    def observe(self, observed: Ints) -> None:
        """Takes over what `observed` gave."""
        self._hold(with_predicate(self.net, len(observed) - 1))
        by_predicate(self.net)[: len(observed), c.ALPHA_SEEN] = observed

    def await_facts(self, facts: Sequence[tuple[Planned, Ints]]) -> None:
        """What each query is yet to take in, as rows of `facts` whose cells may be fewer; whatever stood there before goes."""
        self._used["facts"] = Ranges()
        self.net.queries[:, c.Q_FACTS_N], self.net.streams[:, c.S_PENDING] = 0, 0
        for planned, rows in facts:
            wide = np.zeros((len(rows), self.net.facts.shape[1]), np.int64)
            wide[:, : rows.shape[1]] = rows
            self._with_fact_rows(planned, wide)
            pending = self.net.queries[planned.number, c.Q_OPEN] == 0 or len(rows) > 0
            for stream in dict.fromkeys(planned.query.streams):
                self.net.streams[self.streams[stream], c.S_PENDING] += pending

    def make_room(self, n: int) -> None:
        """Room for `n` more rows, and as many entries of each pool."""
        self._make_room(n)
        self._spread_heads()


def _read_of(net: Net, stream: int, number: int) -> int:
    """The row of `reads` by which a query reads a stream."""
    row = int(net.streams[stream, c.S_READS])
    while net.reads[row, c.R_QUERY] != number:
        row = int(net.reads[row, c.R_NEXT])
    return row
