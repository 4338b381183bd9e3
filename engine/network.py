"""One kernel with its queries: they share a clock, because they reach the same streams."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import host
from engine.collect import Collector, GroupCollector, Moments, Rows
from engine.entries import UNRESTRICTED
from engine.facts import FactIndex
from engine.kernel import columns as c
from engine.kernel.filters import spread_questions
from engine.kernel.goals import clear_stores, spread, spread_seen, spread_timeless
from engine.kernel.instants import run
from engine.kernel.state import KEPT, WORDS, Net, margin, new_net, with_links, with_room, with_width
from engine.literals import FALSE, TRUE
from engine.operators import OPERATORS
from engine.planned import Planned, alpha_of, placed_alpha, planned_from, scans_of
from engine.planning import Names, plan
from engine.program import Fact, Fragment, Inquiry, end_of, place, placed_nodes, with_alpha
from engine.strata import NEGATIVE, POLICIES, Cycle, Wire, on_cycles, strata
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


@dataclass(frozen=True, slots=True, eq=False)
class Failure:
    """A query stopped at an entry because it derived without end."""

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
    streams: dict[str, int] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    completions: list[Completion] = field(default_factory=list)
    collecting: dict[int, Collecting] = field(default_factory=dict)  # by node
    known: FactIndex = field(default_factory=FactIndex)  # the background as it stands
    completed: set[int] = field(default_factory=set)  # nodes of collectors whose queries have been reported as completed
    net: Net = field(init=False)
    address: int = field(init=False)  # the kernel's handle: where `_table` stands
    _table: Ints = field(init=False)  # (address, length, width) of each array of `net`
    _lent: Ints = field(init=False)  # the feed that the kernel sees, kept alive while it is there
    _looked_at: Ints | None = None  # the `alpha` of which `_swaps` says whether a scan takes an occurrence's object for its subject
    _swaps: bool = False
    _inquiries: list[tuple[Inquiry, str]] = field(default_factory=list)  # by number of the question, with its query's name

    def __post_init__(self) -> None:
        self._hold(new_net(4))
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

    def _show(self, k: int, array: NDArray[Any]) -> None:
        """Makes an array the k-th that the kernel sees."""
        assert array.flags.c_contiguous
        assert array.dtype.itemsize == 8
        height, width = array.shape if array.ndim == 2 else (len(array), 1)
        self._table[WORDS * k : WORDS * k + WORDS] = array.__array_interface__["data"][0], height, width

    # ------------------------------------------------------------ queries
    @property
    def reads(self) -> set[str]:
        return {stream for planned in self.planned.values() for stream in planned.query.streams}

    def names(self, facts: FactIndex, query: str = "", policy: str = UNRESTRICTED) -> Names:
        from engine.solver import Solver  # which has a network inside

        solvers: list[Solver] = []

        def once(inner: a.Select, contents: Mapping[str, Ints], now: int) -> Ints:
            if not solvers or solvers[-1].known is not self.known:
                solvers[:] = [Solver(self.terms, inner, self.known, policy)]
            return solvers[-1].solve(contents, now)

        return Names(self.terms.intern, self._stream, facts.matching, facts.schema, query, policy, once)

    def _stream(self, name: str) -> int:
        if name not in self.streams:
            self.streams[name] = len(self.streams)
            row = np.array([[0, c.NONE]], np.int64)
            self._hold(self.net._replace(streams=np.concatenate([self.net.streams, row])))
        return self.streams[name]

    def add(self, registered: int, name: str, query: a.Query, facts: FactIndex, max_derivations: int = 0, policy: str = UNRESTRICTED) -> None:
        """Plans a rewritten query and puts it behind the others. Raises Refusal, Cycle; whatever is raised, nothing has changed."""
        self.known = facts
        fragment = plan(query, self.names(facts, name, policy))
        at, number = end_of(self.net), len(self.net.queries)
        net = self.net._replace(at=self.net.at.copy(), streams=self.net.streams.copy())
        net = place(with_width(net, len(fragment.columns)), fragment, at, number)
        if any(node[c.KIND] in POLICIES for node in fragment.nodes):
            net = with_links(net)
        planned = planned_from(registered, name, query, number, fragment, at, end_of(net), max_derivations, policy)
        self.planned[registered] = planned
        try:
            net = self._with_readers(net, planned, fragment)
            self._rank(net)
        except BaseException:
            del self.planned[registered]
            raise
        self._inquiries += [(inquiry, name) for inquiry in fragment.inquiries]
        self._hold(net)
        self._collect_with(planned, fragment)

    def _collect_with(self, planned: Planned, fragment: Fragment) -> None:
        """Takes up the collectors of a query that stands at its place."""
        timers = {int(node): k for k, node in enumerate(self.net.timers[:, c.T_NODE])}
        for node, collector in fragment.collectors.items():
            reads, writes = (np.array([fragment.columns[v] for v in part], np.int64) for part in (collector.reads, collector.writes))
            self.collecting[planned.at.node + node] = Collecting(
                planned.at.node + node, collector, planned.registered, timers.get(planned.at.node + node), reads, writes
            )

    def _rank(self, net: Net) -> None:
        """Strata of the nodes; and bounds for the rules that may feed themselves inside an instant, which no other rule needs."""
        wires = [wire for planned in self.planned.values() for wire in self._wires(net, planned)]
        try:
            net.nodes[:, c.STRATUM] = strata(net.nodes[:, c.KIND].tolist(), wires)
        except Cycle as cycle:
            raise Cycle(cycle.nodes, self._way(net, cycle.nodes)) from None
        circling = on_cycles(len(net.nodes), wires) if any(planned.writes for planned in self.planned.values()) else set()
        for planned in self.planned.values():
            net.queries[planned.number, c.Q_BOUND] = planned.max_derivations if planned.out in circling else c.FOREVER

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
        """How solutions of one query go on: along its edges, and from its templates to the scans of others."""
        for node in range(planned.at.node, planned.after.node):
            first, n = int(net.nodes[node, c.EDGE_AT]), int(net.nodes[node, c.EDGE_N])
            for reader, side in net.edges[first : first + n].tolist():
                yield Wire(node, reader, (reader - planned.at.node, side) in planned.strict)
            first, n = int(net.nodes[node, c.MARK_AT]), int(net.nodes[node, c.MARK_N])
            for mark in net.edges[first : first + n, 0].tolist():
                yield Wire(mark, node, strict=False)
        if isinstance(planned.query, a.Construct):
            for other in self.planned.values():
                if planned.query.into in other.query.streams:
                    yield from (Wire(planned.out, node, strict) for node, strict in self._scans(other, planned.query.template))

    def _scans(self, planned: Planned, template: Iterable[a.TriplePattern]) -> Iterable[tuple[int, bool]]:
        """The nodes of a query whose scans may read triples of a template."""
        written = [t.predicate for t in template]
        anything = any(isinstance(p, Variable) for p in written)
        predicates = {0} | {self.terms.intern(str(p)) for p in written if not isinstance(p, Variable)}
        for node, side, predicate in planned.scans:
            if anything or predicate in predicates:
                yield planned.at.node + node, (node, side) in planned.strict

    def _with_readers(self, net: Net, planned: Planned, fragment: Fragment) -> Net:
        """Scans, reads and facts of a query that has just been placed."""
        alpha = placed_alpha(fragment, planned.at, planned.number)
        row = np.array([[0, planned.registered, -c.BIG, 0, 0, c.FOREVER, -c.BIG, 0, 0]], np.int64)
        net = net._replace(queries=np.concatenate([net.queries, row]))
        net = with_alpha(net, np.concatenate([alpha_of(net), alpha]))
        reads = [[planned.number, int(net.streams[self.streams[s], c.S_READS])] for s in dict.fromkeys(planned.query.streams)]
        for k, stream in enumerate(dict.fromkeys(planned.query.streams)):
            net.streams[self.streams[stream], c.S_READS] = len(net.reads) + k
            net.streams[self.streams[stream], c.S_PENDING] += 1
        net = net._replace(reads=np.concatenate([net.reads, np.array(reads, np.int64).reshape(-1, c.READ_WIDTH)]))
        return self._with_facts(net, planned, fragment.facts)

    def _with_facts(self, net: Net, planned: Planned, facts: list[Fact]) -> Net:
        """Facts that a query takes in when it opens, or at its next instant."""
        rows = np.zeros((len(facts), net.facts.shape[1]), np.int64)
        for row, fact in zip(rows, facts, strict=True):
            row[: c.F_VAR] = planned.at.node + fact.node, fact.side, fact.triple
            for column, term in fact.cells.items():
                row[c.F_VAR + column - c.VAR] = term
        return self._with_fact_rows(net, planned, rows)

    def _with_fact_rows(self, net: Net, planned: Planned, rows: Ints) -> Net:
        net.queries[planned.number, c.Q_FACTS_AT], net.queries[planned.number, c.Q_FACTS_N] = len(net.facts), len(rows)
        net = net._replace(facts=np.concatenate([net.facts, rows]))
        net.at[c.MARGIN] = margin(net)
        net.at[c.FED_ALONE] = not any(p.writes in self.streams and p.writes is not None for p in self.planned.values())
        return net

    def try_to_learn(self, known: FactIndex) -> None:
        """Raises Cycle if the background `known` would close one; nothing has changed then."""
        net, planned, nodes = self.net, dict(self.planned), self.net.nodes.copy()
        try:
            self._replan(known)
            self._rank(self.net)
        finally:
            net.nodes[:] = nodes
            self._hold(net)
            self.planned = planned

    def learn(self, added: FactIndex, known: FactIndex) -> None:
        """Background facts were added, which close no cycle: readers take them in at their next instant."""
        self.known = known
        self._replan(known)
        self._rank(self.net)
        for planned in self.planned.values():
            self._learn(planned, plan(planned.query, self.names(added, policy=planned.policy)).facts)
        self.net.at[c.MARGIN] = margin(self.net)  # entailment adds scans

    def _replan(self, known: FactIndex) -> None:
        """The same nodes, with what changes in them when timeless solutions become possible."""
        for registered, planned in self.planned.items():
            fragment = plan(planned.query, self.names(known, planned.name, planned.policy))
            nodes = placed_nodes(fragment, planned.at, planned.number)
            assert len(nodes) == planned.after.node - planned.at.node, "a plan's shape does not depend on the background"
            self.net.nodes[planned.at.node : planned.after.node] = nodes
            alpha = alpha_of(self.net)
            others = alpha[alpha[:, c.A_QUERY] != planned.number]
            self._hold(with_alpha(self.net, np.concatenate([others, placed_alpha(fragment, planned.at, planned.number)])))
            self.planned[registered] = replace(planned, strict=frozenset(fragment.strict), scans=scans_of(fragment))

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
        net = self._with_facts(net, planned, facts)
        added = net.facts[int(net.queries[number, c.Q_FACTS_AT]) :]
        self._hold(self._with_fact_rows(net, planned, np.concatenate([waiting, added])))

    def drop(self, registered: int) -> None:
        """Takes a query out, with its goals; no other is touched."""
        planned = self.planned.pop(registered)
        self.collecting = {node: collecting for node, collecting in self.collecting.items() if collecting.registered != registered}
        net = self.net
        net.nodes[planned.at.node : planned.after.node, c.KIND] = c.DROPPED
        clear_stores(self.address, c.SIDES * planned.at.node, c.SIDES * planned.after.node)
        alpha = alpha_of(net)
        net = with_alpha(net, alpha[alpha[:, c.A_QUERY] != planned.number])
        net.queries[planned.number, c.Q_FACTS_N] = 0
        reads: list[list[int]] = []
        net.streams[:, c.S_READS], net.streams[:, c.S_PENDING] = c.NONE, 0
        for other in self.planned.values():
            pending = net.queries[other.number, c.Q_OPEN] == 0 or net.queries[other.number, c.Q_FACTS_N] > 0
            for stream in dict.fromkeys(other.query.streams):
                number = self.streams[stream]
                reads.append([other.number, int(net.streams[number, c.S_READS])])
                net.streams[number, c.S_READS] = len(reads) - 1
                net.streams[number, c.S_PENDING] += bool(pending)
        self._hold(net._replace(reads=np.array(reads, np.int64).reshape(-1, c.READ_WIDTH)))

    def unopened(self) -> list[Planned]:
        """The queries that no occurrence has opened yet."""
        return [p for p in self.planned.values() if not self.net.queries[p.number, c.Q_OPEN]]

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
            self._hold(with_room(self.net, int(at[c.MARGIN]), int(at[c.WAITING])))
            self._spread_heads()
        elif code == c.EXCEEDED:
            self._fail(int(self.net.at[c.ENDLESS]))
        elif code == c.COLLECTION:
            self._collect()
        elif code == c.DECISION:
            self._decide()
        else:
            self._answer()

    def _spread_heads(self) -> None:
        """Hash tables of at least as many heads as what hangs on them."""
        net = self.net
        timeless = int(net.at[c.TIMELESS_GOALS])
        held = {
            "heads": int(net.at[c.USED] - net.at[c.FREE]) - timeless,
            "timeless": timeless,
            "seen_heads": int(max(net.at[c.SEEN_N], net.at[c.SEEN_MOST])),
            "question_heads": int(net.at[c.ASKED]),
        }
        for name, spreader in SPREADERS.items():
            if held[name] > len(getattr(self.net, name)):
                heads = np.full(1 << held[name].bit_length(), c.NONE, np.int64)
                spreader(self.address, heads)
                self._hold(self.net._replace(**{name: heads}))  # type: ignore[arg-type]  # mypy takes a name for each field's type

    def _fail(self, number: int) -> None:
        planned = next(p for p in self.planned.values() if p.number == number)
        reason = f"derived more than {self.net.queries[number, c.Q_BOUND]} triples at one instant: the rule feeds itself without end"
        self.failures.append(Failure(planned, int(self.net.at[c.ENTRY]), reason))
        self.net.at[c.ENDLESS] = c.NONE
        self.drop(planned.registered)

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
        self._hold(with_room(self.net, 0, len(numbers)))
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
        self._hold(with_room(self.net, n))
        net, depth, free, used = self.net, int(at[c.DEPTH]), int(at[c.FREE]), int(at[c.USED])
        fresh = max(n - free, 0)
        numbers = np.concatenate([net.free[free - (n - fresh) : free], np.arange(used, used + fresh)])
        at[c.FREE], at[c.USED] = free - (n - fresh), used + fresh
        net.rows[numbers] = 0
        net.rows[numbers, c.START], net.rows[numbers, c.END] = given.start, given.end
        net.rows[np.ix_(numbers, self.collecting[node].writes)] = given.cells
        frames = net.stack[depth : depth + n]
        frames[:, c.FRAME_NODE], frames[:, c.FRAME_SIDE], frames[:, c.FRAME_ROW] = node, c.EMIT, numbers[::-1]
        at[c.DEPTH] = depth + n

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
        net = with_room(self.net, 0, n)
        net.stack[depth : depth + n] = net.parked[:n]
        at[c.DEPTH], at[c.PARKED] = depth + n, 0
        self._hold(self._with_terms(net))

    def _with_terms(self, net: Net) -> Net:
        """What the kernel needs to know of terms: values and kinds if it has filters, kinds if it has rules."""
        if len(net.code) and (numbers := self.terms.numbers) is not net.numbers:
            net = net._replace(numbers=numbers)
        if (len(net.code) or len(net.templates) or self._entails(net)) and (kinds := self.terms.kinds) is not net.kinds:
            net = net._replace(kinds=kinds)
        return net

    def _entails(self, net: Net) -> bool:
        if net.alpha is not self._looked_at:
            self._looked_at, self._swaps = net.alpha, bool(net.alpha[:, c.A_SWAPPED].any())
        return self._swaps

    def hold(self, held: Held) -> None:
        """Marks the terms of program, goals and collectors; what was asked may be asked again."""
        net = self.net
        for table in (net.at[[c.TRUE_TERM, c.FALSE_TERM]], net.alpha, np.flatnonzero(np.diff(net.alpha_at)), net.code, net.templates, net.moves, net.facts):
            held.add(table)
        held.add(net.seen[: net.at[c.SEEN_N], c.SEEN_VAR :])
        held.add_rows(net.rows[: net.at[c.USED]], net.free[: net.at[c.FREE]], c.VAR)
        for table in self._tables().values():
            held.add(table)
        for collecting in self.collecting.values():
            held.add(numbers_in(collecting.collector.state()))
        self._forget_answers()

    def _forget_answers(self) -> None:
        """Between feeds, when nothing waits for them."""
        self.net.at[c.ASKED] = self.net.at[c.ANSWERED] = 0
        self.net.question_heads[:] = c.NONE

    # ------------------------------------------------------------ snapshots
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Program and state, by name. Between feeds nothing is on its way, so answers may be asked for again and pools be left out."""
        net = self.net
        assert not net.at[c.DEPTH]
        assert not net.at[c.PARKED]
        assert not net.at[c.DEFERRED_N]
        return (
            {name: getattr(net, name) for name in KEPT}
            | {"waiting": net.waiting[: net.at[c.WAITING]], "seen": net.seen[: net.at[c.SEEN_N]]}
            | self._tables()
        )

    def _tables(self) -> dict[str, Ints]:
        """Of the collectors' states, what is in tables."""
        groups = [(node, collecting.collector) for node, collecting in self.collecting.items() if isinstance(collecting.collector, GroupCollector)]
        return {f"groups.{node}.{name}": array for node, collector in groups for name, array in collector.tables().items()}

    def collected(self) -> dict[str, object]:
        """The collectors' states, by node."""
        return {str(node): [node in self.completed, collecting.collector.state()] for node, collecting in self.collecting.items()}

    def restore(self, arrays: dict[str, NDArray[Any]], fragments: Sequence[tuple[Planned, Fragment]], collected: Mapping[str, Any]) -> None:
        """Takes over what `arrays` and `collected` gave, with the queries planned anew at their places."""
        planned = [p for p, _ in fragments]
        width = arrays["rows"].shape[1] - c.VAR
        tables = {name: array for name, array in arrays.items() if name.startswith("groups.")}
        self._hold(with_width(self.net, width)._replace(**{name: array for name, array in arrays.items() if name not in tables}))
        self._forget_answers()  # if it was used, they have no place any more
        self.planned = {p.registered: p for p in planned}
        self._inquiries = [(Inquiry((), False), "")] * len(self.net.asks)
        for p in self.planned.values():
            self._inquiries[p.at.ask : p.after.ask] = [(inquiry, p.name) for inquiry in p.inquiries]
        for p, fragment in fragments:
            self._collect_with(p, fragment)
        self.completed = {int(node) for node, (completed, _) in collected.items() if completed}
        for node, (_, state) in collected.items():
            collector = self.collecting[int(node)].collector
            collector.restore(state)
            if isinstance(collector, GroupCollector):
                prefix = f"groups.{node}."
                collector.restore_tables({name.removeprefix(prefix): array for name, array in tables.items() if name.startswith(prefix)})
