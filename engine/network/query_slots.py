"""This module keeps the queries of one kernel: they take places in its tables, are ranked, learn of a background and go."""

from collections.abc import Callable, Iterable, KeysView, Mapping, Sequence
from ctypes import addressof, c_byte
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.aggregation import Collector, GroupCollector
from engine.alpha.alpha_entailment import Postings
from engine.alpha.alpha_nodes import Scans, Want, widest
from engine.alpha.free_rows import Ranges, by_predicate, with_rows
from engine.background.fact_store import FactIndex
from engine.background.reasoning.rdfs_schema import Schema
from engine.background.reasoning.stream_entailment import Entailment
from engine.dictionary.native.layout import CELL_WIDTH, LENGTH
from engine.dictionary.term_dictionary import Held, TermTable, numbers_in
from engine.expressions.literals import FALSE, TRUE
from engine.kernel.state import layout as c
from engine.kernel.state.arrays import WORDS, Net, margin, new_net, with_links, with_room, with_width
from engine.messages import UNRESTRICTED
from engine.network.placed_query import Planned, placed_alpha, planned_from, reads_of, scans_of
from engine.network.stratification import POLICIES, affected, rank
from engine.physical_plan.join_trees import Shape
from engine.physical_plan.plan import TABLES, Fact, Fragment, Inquiry, Place, place, placed_nodes, ranges_of, sizes, timers_of
from engine.physical_plan.plan_signature import sign_plan
from engine.planner import NetworkNames, PlanOptions, plan_query
from engine.planner.builder.join_order import EVERYTHING, KNOWN, NO_RATES, OVER, Rates, predicates_of
from engine.planner.builder.scans import FEW
from engine.triples.hash_index import Table
from engine.triples.quads import Quad
from engine.triples.relation import without
from epsparql import algebra as a
from epsparql.terms import Term

Ints = NDArray[np.int64]
assert (c.TERM_LENGTH, c.TERM_WIDTH) == (LENGTH, CELL_WIDTH), "the kernel reads what the term table writes"


@dataclass(frozen=True, slots=True, eq=False)
class Collecting:
    """Holds a collector at its node, with the columns that it reads and writes."""

    node: int
    collector: Collector
    registered: int  # the registration of its query
    timer: int | None  # its row of `timers`, if it may be due
    reads: Ints
    writes: Ints


@dataclass(slots=True, eq=False, weakref_slot=True)
class Residents:
    """Holds the kernel's arrays, and tells which query has which rows of them."""

    terms: TermTable
    planned: dict[int, Planned] = field(default_factory=dict)  # by `registered`
    numbered: dict[int, Planned] = field(default_factory=dict)  # the same by number
    rules: dict[int, Planned] = field(default_factory=dict)  # those of them that write a stream, by `registered`
    streams: dict[str, int] = field(default_factory=dict)
    collecting: dict[int, Collecting] = field(default_factory=dict)  # by node
    known: FactIndex = field(default_factory=FactIndex)  # the background as it stands
    owns: Callable[[Quad], bool] | None = None  # says which background triples are not another bucket's; None: all
    knows: dict[int, FactIndex] = field(default_factory=dict)  # the one that each query rests on, by `registered`
    without: frozenset[str] = frozenset()  # those of the planner's CHOICES that are not made
    began: int | None = None  # the instant from which on occurrences have been counted
    net: Net = field(init=False)
    address: int = field(init=False)  # the kernel's handle: where `_table` stands
    now: memoryview = field(init=False)  # `net.at`, which gives Python's own numbers
    _table: Ints = field(init=False)  # (address, length, width) of each array of `net`
    _inquiries: dict[int, tuple[Inquiry, str]] = field(default_factory=dict)  # by number of the question, with its query's name
    _readers: dict[str, int] = field(default_factory=dict)  # how many queries read a stream
    _used: dict[str, Ranges] = field(default_factory=dict)  # rows in use, by name of the table
    _scans: Scans = field(default_factory=Scans)
    _looked: dict[int, Table] = field(default_factory=dict)  # by node
    entailment: Entailment = field(init=False)  # follows the background as it stands
    _postings: Postings = field(init=False)
    _tells_kinds: bool = False  # whether it matters which kind of term an occurrence's object is
    _dropped: list[Planned] = field(default_factory=list)  # whose rows are not free yet, because something may be on its way there

    def __post_init__(self) -> None:
        self._hold(new_net(4))
        self.entailment = Entailment(self.known.schema)
        self._postings = Postings(self.terms, self.entailment)
        self._used = {name: Ranges() for name in (*TABLES, "queries", "reads", "facts")}
        self.net.at[c.TRUE_TERM], self.net.at[c.FALSE_TERM] = self.terms.intern(str(TRUE)), self.terms.intern(str(FALSE))
        self.terms.holders.add(self)

    def _hold(self, net: Net) -> None:
        """Make `net` the one that the kernel sees: the table of addresses follows, cell by cell where an array is another."""
        before = getattr(self, "net", None)
        if net is before:
            return
        if before is None:
            self._table = np.zeros(WORDS * len(net), np.int64)
            self.address = int(self._table.__array_interface__["data"][0])
        for k, array in enumerate(net):
            if before is None or array is not before[k]:
                self._show(k, array)
        if before is None or net.at is not before.at:
            self.now = net.at.data
        self.net = net

    def _make_room(self, need: int, frames: int = 0) -> None:
        self._hold(with_room(self.net, need, frames))
        for name in ("rows", "links"):  # they grow at their place
            self._show(Net._fields.index(name), getattr(self.net, name))

    def _show(self, k: int, array: NDArray[Any]) -> None:
        """Make an array the k-th that the kernel sees."""
        assert array.dtype.itemsize == 8
        height, width = array.shape if array.ndim == 2 else (len(array), 1)
        self._table[WORDS * k : WORDS * k + WORDS] = address_of(array), height, width

    @property
    def reads(self) -> KeysView[str]:
        return self._readers.keys()

    def names(
        self, facts: FactIndex, query: str = "", policy: str = UNRESTRICTED, rates: Rates = NO_RATES, shape: Shape | None = None
    ) -> NetworkNames:
        from engine.network.window_subquery import Solver  # which has a network inside

        solvers: list[Solver] = []

        def once(inner: a.Select, contents: Mapping[str, Ints], now: int) -> Ints:
            if not solvers or solvers[-1].known is not self.known:
                solvers[:] = [Solver(self.terms, inner, self.known, policy)]
            return solvers[-1].solve(contents, now)

        owns = self.owns
        own = None if owns is None else lambda rows: rows[[owns(facts.quad(*row)) for row in rows.tolist()]]
        return NetworkNames(
            self.terms.intern,
            self.number_of,
            facts.matching,
            facts.graphs,
            facts.any,
            PlanOptions(query, policy, rates, shape, self.without),
            once,
            own,
        )

    def rates_for(self, query: a.Query) -> Rates:
        """Return how often there have been triples of each predicate of a query here.

        If there have been none at all, only predicates of which the background has many are there.
        """
        seen = by_predicate(self.net)[:, c.ALPHA_SEEN]
        known = {f"{KNOWN}{text}": n for text in sorted(predicates_of(query)) if (n := self.known.count(text)) > FEW}
        if not seen[0]:
            return known
        numbers = {text: self.terms.intern(text) for text in sorted(predicates_of(query))}
        known |= {OVER: int(self.net.at[c.NOW]) - self.began} if self.began is not None else {}
        return known | {EVERYTHING: int(seen[0])} | {text: int(seen[number]) for text, number in numbers.items() if number < len(seen)}

    def number_of(self, name: str) -> int:
        """Return the network's number for a stream, and number a new stream."""
        if name not in self.streams:
            self.streams[name] = len(self.streams)
            row = np.array([[0, c.NONE]], np.int64)
            self._hold(self.net._replace(streams=np.concatenate([self.net.streams, row])))
        return self.streams[name]

    def add(
        self, registered: int, name: str, query: a.Query, facts: FactIndex, max_derivations: int = 0, policy: str = UNRESTRICTED,
        rates: Rates | None = None, shape: Shape | None = None, *, reads_after: int | None = None,
    ) -> None:  # fmt: skip
        """Plan a rewritten query and put it into rows that are free. Raises Refusal, Cycle; whatever is raised, nothing has changed.

        If no rates are given, those observed are taken; if no shape is given, the rates decide the shape.
        """
        self._know(facts)
        rates = self.rates_for(query) if rates is None else rates
        fragment = plan_query(query, self.names(facts, name, policy, rates, shape))
        self.settle(registered, name, query, fragment, max_derivations, policy, rates, reads_after)
        self.knows[registered] = facts

    def settle(
        self, registered: int, name: str, query: a.Query, fragment: Fragment, max_derivations: int = 0, policy: str = UNRESTRICTED,
        rates: Rates = NO_RATES, reads_after: int | None = None,
    ) -> None:  # fmt: skip
        """Put a plan into rows that are free. Raises Cycle; nothing has changed then."""
        number = self._used["queries"].take(1)
        at = Place(*(self._used[table].take(n) for table, n in zip(TABLES, sizes(fragment), strict=True)))
        after = registered if reads_after is None else reads_after
        planned = planned_from(registered, after, name, query, number, fragment, at, max_derivations, policy, rates)
        self._enter(planned)
        try:
            net = with_rows(with_width(self.net, len(fragment.columns)), {"queries": self._used["queries"].end})
            net = place(net, fragment, at, number, self._used)
            self._hold(with_links(net) if any(node.kind in POLICIES for node in fragment.nodes) else net)
            self.net.queries[number] = 0, after, -c.BIG, 0, 0, c.FOREVER, -c.BIG, 0, 0, 0, c.FOREVER, 0, -c.BIG
            rank(self, affected(self, planned))
        except BaseException:
            self._leave(planned)
            self._free(planned)
            raise
        self._inquiries |= {at.ask + k: (inquiry, name) for k, inquiry in enumerate(fragment.inquiries)}
        self.look_up(planned, fragment)
        self._with_readers(planned, fragment)
        self._collect_with(planned, fragment, self._with_timers(fragment, at))

    def _know(self, facts: FactIndex) -> None:
        """Take up a background. The occurrences of an instant that has begun go on to entail what they did."""
        self.known, self.entailment = facts, self._entailment_by(facts)
        if self.entails_otherwise and self.net.at[c.NOW] == -c.BIG:
            self._entail_anew()

    def _entailment_by(self, facts: FactIndex) -> Entailment:
        return self.entailment if self.entailment.schema is facts.schema else Entailment(facts.schema, self.entailment)

    @property
    def entails_otherwise(self) -> bool:
        """Return whether the occurrences of the instant that has begun entail by another schema than later ones."""
        return self._postings.entailment is not self.entailment

    @property
    def outgoing(self) -> Schema[Term] | None:
        """Return the schema by which the occurrences of the instant that has begun entail, if later ones entail by another."""
        return self._postings.entailment.schema if self.entails_otherwise else None

    def go_by(self, outgoing: Schema[Term]) -> None:
        """Take over what `outgoing` gave."""
        self._go_by(Entailment(outgoing))

    def _entail_anew(self) -> None:
        """Let occurrences entail by the background as it stands."""
        self._go_by(self.entailment)

    def _go_by(self, entailment: Entailment) -> None:
        self._hold(self._postings.change(self.net, entailment))
        self._note_scans()

    def look_up(self, planned: Planned, fragment: Fragment) -> None:
        """Give joins the tables in which they look up the background."""
        looked = {planned.at.node + node: lookup for node, lookup in fragment.lookups.items() if lookup is not None}
        if not looked and not any(node in self._looked for node in range(planned.at.node, planned.after.node)):
            return
        self._forget_tables(planned)
        self._looked |= {node: self.known.table(lookup) for node, lookup in looked.items()}
        tables = list({id(table): table for table in self._looked.values()}.values())
        numbers = {id(table): number for number, table in enumerate(tables)}
        self._hold(self.net._replace(lookups=np.array([table.row for table in tables], np.int64).reshape(-1, c.LOOKUP_WIDTH)))
        for node, table in self._looked.items():
            self.net.nodes[node, c.LOOK] = numbers[id(table)]

    def _forget_tables(self, planned: Planned) -> None:
        for node in range(planned.at.node, planned.after.node):
            if self._looked.pop(node, None) is not None:
                self.net.nodes[node, c.LOOK] = c.NONE

    def _enter(self, planned: Planned) -> None:
        self.net.at[c.LATEST_FROM] = max(self.net.at[c.LATEST_FROM], planned.reads_after)
        self.planned[planned.registered] = self.numbered[planned.number] = planned
        if planned.writes is not None:
            self.rules[planned.registered] = planned
        for stream in set(planned.query.streams):
            self._readers[stream] = self._readers.get(stream, 0) + 1

    def _leave(self, planned: Planned) -> None:
        del self.planned[planned.registered], self.numbered[planned.number]
        self.knows.pop(planned.registered, None)
        self.rules.pop(planned.registered, None)
        for stream in set(planned.query.streams):
            self._readers[stream] -= 1
            if not self._readers[stream]:
                del self._readers[stream]

    def _free(self, planned: Planned) -> None:
        """Give back a query's rows, where nothing is on its way any more."""
        self.net.nodes[planned.at.node : planned.after.node, c.KIND] = c.DROPPED
        self._forget_tables(planned)
        self.net.queries[planned.number, c.Q_OPEN] = 1
        self._used["queries"].give(planned.number, 1)
        for name, (first, n) in ranges_of(planned.at, planned.after).items():
            self._used[name].give(first, n)

    def _with_timers(self, fragment: Fragment, at: Place) -> dict[int, int]:
        """Put a fragment's timers behind the others; return the row of each by its node."""
        timers, first = timers_of(fragment, at), int(self.net.at[c.TIMER_NODES])
        self._hold(with_rows(self.net, {"timers": first + len(timers)}))
        self.net.timers[first : first + len(timers)] = timers
        self.net.at[c.TIMER_NODES] += len(timers)
        return {node: first + k for k, node in enumerate(timers[:, c.T_NODE].tolist())}

    def _collect_with(self, planned: Planned, fragment: Fragment, timers: Mapping[int, int]) -> None:
        """Take up the collectors of a query that stands at its place."""
        for node, collector in fragment.collectors.items():
            reads, writes = (np.array([fragment.columns[v] for v in part], np.int64) for part in (collector.reads, collector.writes))
            here = planned.at.node + node
            self.collecting[here] = Collecting(here, collector, planned.registered, timers.get(here), reads, writes)

    def _with_readers(self, planned: Planned, fragment: Fragment) -> None:
        """Add the scans, reads and facts of a query that has just been placed."""
        self._with_scans(placed_alpha(fragment, planned.at, planned.number))
        streams = [self.streams[name] for name in dict.fromkeys(planned.query.streams)]
        first = self._used["reads"].take(len(streams))
        self._hold(with_rows(self.net, {"reads": self._used["reads"].end}))
        for k, stream in enumerate(streams, first):
            self.net.reads[k] = planned.number, self.net.streams[stream, c.S_READS]
            self.net.streams[stream, c.S_READS] = k
            self.net.streams[stream, c.S_PENDING] += 1
        self._with_fact_rows(planned, self._fact_rows(planned, fragment.facts))

    def _with_scans(self, rows: Ints) -> None:
        net, wanted = self._scans.add(self.net, rows)
        self._hold(self._postings.add(net, {want: self._scans.wants[want] for want in wanted}))

    def _without_scans(self, number: int, wants: Iterable[Want], nodes: Sequence[int] | None = None) -> None:
        self._hold(self._postings.remove(self.net, self._scans.remove(self.net, number, wants, nodes)))

    def scan_again(self, before: Planned, fragment: Fragment) -> None:
        """Exchange the scans that a query's plan over another background has at other nodes: under GRAPH, those that what is timeless needs."""
        now = self.planned[before.registered]
        differing = set(before.scans) ^ set(now.scans)
        nodes = [now.at.node + node for node in sorted({node for node, _, _ in differing})]
        if not nodes:
            return
        self._without_scans(now.number, [want for node, _, want in before.scans if now.at.node + node in nodes], nodes)
        rows = placed_alpha(fragment, now.at, now.number)
        self._with_scans(rows[np.isin(rows[:, c.A_NODE], nodes)])

    def _without_readers(self, planned: Planned) -> None:
        """Take out a query's scans, reads and facts."""
        number = planned.number
        self._without_scans(number, (want for _, _, want in planned.scans))
        net = self.net
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

    def _fact_rows(self, planned: Planned, facts: list[Fact]) -> Ints:
        """Return facts as rows of the network's table of facts."""
        rows = np.zeros((sum(len(fact.rows) for fact in facts), self.net.facts.shape[1]), np.int64)
        first = 0
        for fact in facts:
            part = rows[first : first + len(fact.rows)]
            part[:, [c.F_NODE, c.F_SIDE, c.F_TRIPLE]] = planned.at.node + fact.node, fact.side, fact.triple
            part[:, [c.F_VAR + column - c.VAR for column in fact.columns]] = fact.rows
            first += len(fact.rows)
        return rows

    def _with_fact_rows(self, planned: Planned, rows: Ints) -> None:
        if self._used["facts"].end + len(rows) > len(self.net.facts):
            self._gather_facts(len(rows))
        net, first = self.net, self._used["facts"].take(len(rows))
        net.facts[first : first + len(rows)] = rows
        net.queries[planned.number, c.Q_FACTS_AT], net.queries[planned.number, c.Q_FACTS_N] = first, len(rows)
        self._note_scans()
        net.at[c.FED_ALONE] = not self.rules

    def _note_scans(self) -> None:
        """Note how much one step adds to a pool at most, and whether scans look at the kinds of objects."""
        self._tells_kinds = self._postings.tells_kinds(self.net)
        self.net.at[c.MARGIN] = margin(self.net, widest(self.net) + self._postings.widest(self.net))

    def _gather_facts(self, more: int) -> None:
        """Leave the facts that have been taken in behind, with room for as many again as there are then."""
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
        """Raise Cycle if the background `known` would close one; nothing has changed then, nor otherwise."""
        planned, nodes, bounds = dict(self.planned), self.net.nodes.copy(), self.net.queries[:, c.Q_BOUND].copy()
        entailment = self.entailment
        try:
            self.entailment = self._entailment_by(known)
            self._replan(known)
            rank(self, list(self.planned.values()))
        finally:
            self.net.nodes[:], self.net.queries[:, c.Q_BOUND] = nodes, bounds
            self.entailment = entailment
            self.planned = planned

    def _planned_anew(self, planned: Planned, facts: FactIndex) -> Fragment:
        names = self.names(facts, planned.name, planned.policy, planned.rates, planned.shape)
        return plan_query(planned.query, names)

    def _replan(self, known: FactIndex) -> list[Fragment]:
        """Plan all queries over a background: the nodes change where timeless solutions become possible. Return the new fragments."""
        fragments = []
        for registered, planned in self.planned.items():
            fragment = self._planned_anew(planned, known)
            fragments.append(fragment)
            if planned.shape != fragment.shape:
                continue  # `learn` plans it otherwise; nothing of it decides on absence
            nodes = placed_nodes(fragment, planned.at, planned.number)
            assert len(nodes) == planned.after.node - planned.at.node, "a plan's shape does not depend on the background"
            self.net.nodes[planned.at.node : planned.after.node] = nodes
            self.planned[registered] = replace(
                planned, strict=frozenset(fragment.strict), scans=scans_of(fragment), form=sign_plan(fragment), reads=reads_of(fragment)
            )
        return fragments

    def _await(self, planned: Planned, added: list[Fact], removed: list[Fact]) -> None:
        """Set what a query is to take in at its next instant, besides what it has been waiting for and has not lost."""
        net, number = self.net, planned.number
        first, n = net.queries[number, [c.Q_FACTS_AT, c.Q_FACTS_N]].tolist()
        waiting = np.concatenate([without(net.facts[first : first + n], self._fact_rows(planned, removed)), self._fact_rows(planned, added)])
        if net.queries[number, c.Q_OPEN]:
            net.queries[number, c.Q_AFTER] = net.at[c.NOW]
            for stream in dict.fromkeys(planned.query.streams):
                net.streams[self.streams[stream], c.S_PENDING] += (len(waiting) > 0) - (n > 0)
        self._with_fact_rows(planned, waiting)

    def _without_timers(self, planned: Planned) -> None:
        """Take a query's timers and collectors out; the last timers move into their places."""
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

    def _rows_taken(self, n: int) -> Ints:
        """Take rows to fill and to put on the stack, and return their numbers."""
        self._make_room(n)
        at, free, used = self.net.at, int(self.net.at[c.FREE]), int(self.net.at[c.USED])
        fresh = max(n - free, 0)
        at[c.FREE], at[c.USED] = free - (n - fresh), used + fresh
        return np.concatenate([self.net.free[free - (n - fresh) : free], np.arange(used, used + fresh)])

    def _release(self, numbers: Ints) -> None:
        at, n = self.net.at, len(numbers)
        self.net.free[at[c.FREE] : at[c.FREE] + n] = numbers
        at[c.FREE] += n

    def _with_terms(self, net: Net) -> Net:
        """Return the network with the columns of terms that the kernel needs: values and kinds if it has filters, kinds and lengths if it has rules."""
        filters = self._used["code"].end
        if filters and (numbers := self.terms.numbers) is not net.numbers:
            net = net._replace(numbers=numbers)
        rules = self._used["templates"].end
        if (filters or rules or self._tells_kinds) and (kinds := self.terms.kinds) is not net.kinds:
            net = net._replace(kinds=kinds)
        if rules and (cells := self.terms.cells) is not net.terms:
            net = net._replace(terms=cells)
        return net

    def hold(self, held: Held) -> None:
        """Mark the terms of program, goals and collectors; what was asked may be asked again."""
        net = self.net
        for table in (
            net.at[[c.TRUE_TERM, c.FALSE_TERM]],
            net.alpha,
            np.array(list(self._scans.wants), np.int64),
            net.code,
            net.templates,
            net.moves,
            net.facts,
        ):
            held.add(table)
        self._postings.hold(net, held)
        held.add(net.seen[: net.at[c.SEEN_N], c.SEEN_VAR :])
        held.add_rows(net.rows[: net.at[c.USED]], net.free[: net.at[c.FREE]], c.VAR)
        for collecting in self.collecting.values():
            held.add(numbers_in(collecting.collector.state()))
            if isinstance(collecting.collector, GroupCollector):
                for table in collecting.collector.tables().values():
                    held.add(table)
        self._forget_answers()

    def _forget_answers(self) -> None:
        """Forget the host's answers, between feeds, when nothing waits for them."""
        self.net.at[c.ASKED] = self.net.at[c.ANSWERED] = 0
        self.net.question_heads[:] = c.NONE


def address_of(array: NDArray[Any]) -> int:
    """Return the address of a C-contiguous array; 0 for an empty one. This is several times faster than to ask numpy."""
    return addressof(c_byte.from_buffer(array.data)) if array.size else 0


def _read_of(net: Net, stream: int, number: int) -> int:
    """Return the row of `reads` by which a query reads a stream."""
    row = int(net.streams[stream, c.S_READS])
    while net.reads[row, c.R_QUERY] != number:
        row = int(net.reads[row, c.R_NEXT])
    return row
