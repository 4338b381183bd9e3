"""This module gives queries rows in the tables of one kernel, and takes them back."""

from collections.abc import Iterable, KeysView, Sequence, Set

import numpy as np
from numpy.typing import NDArray

from engine.alpha.alpha_entailment import Postings
from engine.alpha.alpha_nodes import Scans, Want, widest
from engine.alpha.free_rows import Ranges, with_rows
from engine.background.fact_store import FactIndex
from engine.background.reasoning.rdfs_schema import Schema
from engine.background.reasoning.stream_entailment import Entailment
from engine.dictionary.term_dictionary import Held
from engine.expressions.nondeterministic import Naming
from engine.instances.instance_table import InstanceTable
from engine.kernel.state import layout as c
from engine.kernel.state.arrays import margin, with_links, with_width
from engine.network.kernel_arrays import KernelArrays
from engine.network.placed_query import POLICIES, Planned, make_scan_rows
from engine.physical_plan.plan import TABLES, Fact, Fragment, Inquiry, Node, TableOffsets, place, ranges_of, sizes
from engine.triples.hash_index import Table
from engine.triples.relation import without
from epsparql.terms import Term

Ints = NDArray[np.int64]
NO_ENTRY = 1 << 62
"""No entry comes after this offset."""


class StreamTable:
    """Numbers streams, and says which queries read each of them."""

    def __init__(self, arrays: KernelArrays) -> None:
        self._arrays = arrays
        self.numbers: dict[str, int] = {}
        self._readers: dict[str, int] = {}  # how many queries read a stream

    @property
    def reads(self) -> KeysView[str]:
        """Return the streams that any query reads."""
        return self._readers.keys()

    def number_stream(self, name: str) -> int:
        """Return the network's number for a stream, and number a new stream."""
        if name not in self.numbers:
            self.numbers[name] = len(self.numbers)
            row = np.array([[0, c.NONE, 0]], np.int64)
            self._arrays.replace_arrays(self._arrays.net._replace(streams=np.concatenate([self._arrays.net.streams, row])))
        return self.numbers[name]

    def set_locality(self, described: Set[str]) -> None:
        """Note that nodes of messages are local, but in the streams in which rules may describe them."""
        self._arrays.net.streams[:, c.S_LOCAL] = [name not in described for name in self.numbers]

    def count_reader(self, planned: Planned, by: int) -> None:
        """Count one query more, or one fewer, for each stream that it reads."""
        for stream in set(planned.source.query.streams):
            self._readers[stream] = self._readers.get(stream, 0) + by
            if not self._readers[stream]:
                del self._readers[stream]

    def count_pending(self, planned: Planned, by: int) -> None:
        """Count one query more, or one fewer, that the next occurrence of each of its streams concerns whatever its
        triple.
        """
        for stream in set(planned.source.query.streams):
            self._arrays.net.streams[self.numbers[stream], c.S_PENDING] += by

    def add_reads(self, planned: Planned) -> None:
        """Have the kernel tell a query of each occurrence of its streams."""
        arrays = self._arrays
        streams = [self.numbers[name] for name in dict.fromkeys(planned.source.query.streams)]
        first = arrays.used["reads"].take(len(streams))
        arrays.replace_arrays(with_rows(arrays.net, {"reads": arrays.used["reads"].end}))
        for k, stream in enumerate(streams, first):
            arrays.net.reads[k] = planned.number, arrays.net.streams[stream, c.S_READS]
            arrays.net.streams[stream, c.S_READS] = k
        self.count_pending(planned, 1)

    def remove_reads(self, planned: Planned) -> None:
        net, used = self._arrays.net, self._arrays.used["reads"]
        reads, streams = net.reads[: used.end], [self.numbers[name] for name in dict.fromkeys(planned.source.query.streams)]
        for row, stream in zip(np.flatnonzero(reads[:, c.R_QUERY] == planned.number).tolist(), streams, strict=True):
            after = reads[row, c.R_NEXT]
            if net.streams[stream, c.S_READS] == row:
                net.streams[stream, c.S_READS] = after
            else:
                reads[reads[:, c.R_NEXT] == row, c.R_NEXT] = after
            reads[row] = c.NONE
            used.give(row, 1)


class StreamScans:
    """Holds the scans of all queries, with the lists by which an occurrence and what it entails find them."""

    def __init__(self, arrays: KernelArrays, entailment: Entailment) -> None:
        self._arrays, self.scans = arrays, Scans()
        self.entailment = entailment  # follows the background as it stands
        self._postings = Postings(arrays.terms, entailment)
        self.is_margin_due = False

    def add_scans(self, rows: Ints) -> None:
        net, wanted = self.scans.add(self._arrays.net, rows)
        self._arrays.replace_arrays(self._postings.add(net, {want: self.scans.wants[want] for want in wanted}))

    def remove_scans(self, number: int, wants: Iterable[Want], nodes: Sequence[int] | None = None) -> None:
        """Take out the scans of a query, or of a share, by its number; all of them, or those of some nodes."""
        net = self._arrays.net
        self._arrays.replace_arrays(self._postings.remove(net, self.scans.remove(net, number, wants, nodes)))

    def replace_scans(self, before: Planned, now: Planned, fragment: Fragment) -> None:
        """Exchange the scans that a query's plan over another background has at other nodes: under GRAPH, those that
        what is timeless needs.
        """
        differing = set(before.scans) ^ set(now.scans)
        nodes = [now.at.node + node for node in sorted({node for node, _, _, _ in differing})]
        self.remove_scans(now.number, [want for _, _, want, _ in before.scans], nodes)
        rows = make_scan_rows(fragment, now.at, now.number)
        self.add_scans(rows[np.isin(rows[:, c.A_NODE], nodes)])

    def update_margin(self) -> None:
        """Note, before the kernel runs again, how much one step adds to a pool at most, and whether scans look at the
        kinds of objects.
        """
        self.is_margin_due = True  # thousands of queries may come before that

    def settle_margin(self) -> None:
        """Note what `update_margin` asked for."""
        net, self.is_margin_due = self._arrays.net, False
        net.at[c.FOREIGN], net.at[c.STARS] = self._postings.describes_others(net), net.nodes[:, c.STAR].any()
        self._arrays.asks_kinds = self._postings.tells_kinds(net) or bool(net.nodes[:, c.SUBJECT].any())
        net.at[c.MARGIN] = margin(net, widest(net) + self._postings.widest(net))

    # ------------------------------------------------------------ what occurrences entail
    def entailment_by(self, known: FactIndex) -> Entailment:
        """Return what occurrences entail by the schema of a background."""
        return self.entailment if self.entailment.schema is known.schema else Entailment(known.schema, self.entailment)

    @property
    def entails_otherwise(self) -> bool:
        """Return whether the occurrences of the instant that has begun entail by another schema than later ones."""
        return self._postings.entailment is not self.entailment

    @property
    def outgoing(self) -> Schema[Term] | None:
        """Return the schema by which the occurrences of the instant that has begun entail, if later ones entail by
        another.
        """
        return self._postings.entailment.schema if self.entails_otherwise else None

    def entail_by(self, entailment: Entailment) -> None:
        """Let occurrences entail by this from now on."""
        self._arrays.replace_arrays(self._postings.change(self._arrays.net, entailment))
        self.update_margin()

    def hold_terms(self, held: Held) -> None:
        held.add(self._arrays.net.alpha)
        held.add(np.array(list(self.scans.wants), np.int64))
        self._postings.hold(self._arrays.net, held)


class LookupTables:
    """Gives nodes the tables in which they look up the background, or instances."""

    def __init__(self, arrays: KernelArrays) -> None:
        self._arrays = arrays
        self._tables: dict[int, Table | InstanceTable] = {}  # by node

    def set_tables(self, planned: Planned, fragment: Fragment, known: FactIndex) -> None:
        """Give the nodes of a query their tables of a background, and of the query's instances."""
        tables: dict[int, Table | InstanceTable] = {
            planned.at.node + node: known.table(lookup) for node, lookup in fragment.lookups.items() if lookup is not None
        }
        if (relation := planned.source.instances) is not None:
            tables |= {planned.at.node + node: relation.get_table(lookup) for node, lookup in fragment.instances.items()}
        if not tables and not any(node in self._tables for node in range(planned.at.node, planned.after.node)):
            return
        self.remove_tables(planned)
        self._tables |= tables
        self.show_tables()

    def show_tables(self) -> None:
        """Show the kernel the tables, which may have moved."""
        tables = list({id(table): table for table in self._tables.values()}.values())
        numbers = {id(table): number for number, table in enumerate(tables)}
        rows = np.array([table.row for table in tables], np.int64).reshape(-1, c.LOOKUP_WIDTH)
        self._arrays.replace_arrays(self._arrays.net._replace(lookups=rows))
        for node, table in self._tables.items():
            self._arrays.net.nodes[node, c.LOOK] = numbers[id(table)]

    def remove_tables(self, planned: Planned) -> None:
        for node in range(planned.at.node, planned.after.node):
            if self._tables.pop(node, None) is not None:
                self._arrays.net.nodes[node, c.LOOK] = c.NONE


class QuerySlots:
    """Holds the queries of one kernel, each with the rows that it has in the tables."""

    def __init__(self, arrays: KernelArrays, entailment: Entailment) -> None:
        self.arrays = arrays
        self.streams, self.scans, self.lookups = StreamTable(arrays), StreamScans(arrays, entailment), LookupTables(arrays)
        self.planned: dict[int, Planned] = {}  # the queries, by `registered`
        self.numbered: dict[int, Planned] = {}  # the same queries, by number
        self.rules: dict[int, Planned] = {}  # those of them that write a stream, by `registered`
        self.with_instants: dict[int, Planned] = {}  # those of them that have instants as patterns, by `registered`
        self.graphs_after = NO_ENTRY  # after this entry, some query asks in which graph an occurrence came
        self.inquiries: dict[int, tuple[Inquiry, Naming]] = {}  # the kernel's questions by number
        self.dropped: list[Planned] = []  # whose rows are not free yet, because something may be on its way there

    # ------------------------------------------------------------ coming
    def take_place(self, fragment: Fragment) -> tuple[int, TableOffsets]:
        """Take a number, and free rows of the tables, for a plan."""
        used = self.arrays.used
        return used["queries"].take(1), TableOffsets(*(used[table].take(n) for table, n in zip(TABLES, sizes(fragment), strict=True)))

    def write_plan(self, planned: Planned, fragment: Fragment, *, is_open: bool = False) -> None:
        """Write a plan to its place, without scans and facts; no occurrence opens it if it `is_open`."""
        arrays, number = self.arrays, planned.number
        net = with_rows(with_width(arrays.net, len(fragment.columns)), {"queries": arrays.used["queries"].end})
        net = place(net, fragment, planned.at, number, arrays.used)
        arrays.replace_arrays(with_links(net) if any(map(_links_goals, fragment.nodes)) else net)
        arrays.net.queries[number] = is_open, planned.source.reads_after, -c.BIG, 0, 0, c.FOREVER, -c.BIG, 0, 0, 0, c.FOREVER, 0, -c.BIG

    def add_inquiries(self, planned: Planned) -> None:
        self.arrays.recipes.put(planned.at.ask, planned.inquiries, planned.source.naming)
        self.inquiries |= {planned.at.ask + k: (inquiry, planned.source.naming) for k, inquiry in enumerate(planned.inquiries)}

    def enter_query(self, planned: Planned) -> None:
        """List a query; its rows are yet to be filled."""
        at = self.arrays.net.at
        at[c.LATEST_FROM] = max(at[c.LATEST_FROM], planned.source.reads_after)
        self.planned[planned.registered] = planned
        self.list_query(planned)
        self.streams.count_reader(planned, 1)

    def list_query(self, planned: Planned) -> None:
        """List a query by its number, and among the rules if it is one, as it is planned now."""
        self.numbered[planned.number] = planned
        if planned.writes is not None:
            self.rules[planned.registered] = planned
        if planned.instants:
            self.with_instants[planned.registered] = planned
        if planned.graphs:
            self.graphs_after = min(self.graphs_after, planned.source.reads_after)

    def add_readers(self, planned: Planned, fragment: Fragment) -> None:
        """Add the scans, reads and facts of a query that has just been placed."""
        self.scans.add_scans(make_scan_rows(fragment, planned.at, planned.number))
        self.streams.add_reads(planned)
        self.put_facts(planned, self.make_fact_rows(planned, fragment.facts))

    # ------------------------------------------------------------ going
    def leave_query(self, planned: Planned) -> None:
        """Strike a query off the lists; its rows are yet to be freed."""
        del self.planned[planned.registered], self.numbered[planned.number]
        self.rules.pop(planned.registered, None)
        self.with_instants.pop(planned.registered, None)
        if planned.graphs and planned.source.reads_after == self.graphs_after:
            self.graphs_after = min((other.source.reads_after for other in self.planned.values() if other.graphs), default=NO_ENTRY)
        self.streams.count_reader(planned, -1)

    def remove_readers(self, planned: Planned) -> None:
        """Take out a query's scans, reads and facts."""
        self.scans.remove_scans(planned.number, (want for _, _, want, _ in planned.scans))
        row = self.arrays.net.queries[planned.number]
        if row[c.Q_OPEN] == 0 or row[c.Q_FACTS_N] > 0:
            self.streams.count_pending(planned, -1)
        row[c.Q_FACTS_N] = 0
        self.streams.remove_reads(planned)

    def free_rows(self, planned: Planned) -> None:
        """Give back a query's rows, where nothing is on its way any more."""
        net, used = self.arrays.net, self.arrays.used
        net.nodes[planned.at.node : planned.after.node, c.KIND] = c.DROPPED
        self.lookups.remove_tables(planned)
        net.queries[planned.number, c.Q_OPEN] = 1
        used["queries"].give(planned.number, 1)
        for name, (first, n) in ranges_of(planned.at, planned.after).items():
            used[name].give(first, n)

    def free_dropped(self) -> None:
        """Free the rows of dropped queries.

        What waits for the close of the instant, what the instant has met and the memo may name them still.
        """
        net, at = self.arrays.net, self.arrays.net.at
        waiting = net.waiting[: at[c.WAITING]]
        gone, side = net.nodes[waiting[:, c.FRAME_NODE], c.KIND] == c.DROPPED, waiting[:, c.FRAME_SIDE]
        stored = (side >= c.ORDER) & (side != c.RIGHT_CHOICE)  # goals of a policy, which their stores freed
        self.arrays.release_rows(waiting[gone & ~stored, c.FRAME_ROW])
        kept = waiting[~gone]
        waiting[: len(kept)] = kept
        at[c.WAITING] = len(kept)
        for planned in self.dropped:
            tags, who = net.seen[: at[c.SEEN_N], c.SEEN_TAG], net.questions[: at[c.ASKED], c.ASK_WHO]
            nodes = tags % c.RIGHT_TAG
            tags[(tags >= 0) & (planned.at.node <= nodes) & (nodes < planned.after.node)] = c.BIG
            who[(planned.at.ask <= who) & (who < planned.after.ask)] = c.NONE
            for ask in range(planned.at.ask, planned.after.ask):
                del self.inquiries[ask]
            self.free_rows(planned)
        self.dropped.clear()

    # ------------------------------------------------------------ timeless facts
    def make_fact_rows(self, planned: Planned, facts: Sequence[Fact]) -> Ints:
        """Return facts as rows of the network's table of facts."""
        rows = np.zeros((sum(len(fact.rows) for fact in facts), self.arrays.net.facts.shape[1]), np.int64)
        first = 0
        for fact in facts:
            part = rows[first : first + len(fact.rows)]
            part[:, [c.F_NODE, c.F_SIDE, c.F_TRIPLE]] = planned.at.node + fact.node, fact.side, fact.triple
            part[:, [c.F_VAR + column - c.VAR for column in fact.columns]] = fact.rows
            first += len(fact.rows)
        return rows

    def put_facts(self, planned: Planned, rows: Ints) -> None:
        """Set what a query takes in at its next instant."""
        arrays = self.arrays
        if arrays.used["facts"].end + len(rows) > len(arrays.net.facts):
            self._gather_facts(len(rows))
        net, first = arrays.net, arrays.used["facts"].take(len(rows))
        net.facts[first : first + len(rows)] = rows
        net.queries[planned.number, c.Q_FACTS_AT], net.queries[planned.number, c.Q_FACTS_N] = first, len(rows)
        self.scans.update_margin()
        net.at[c.FED_ALONE] = not self.rules

    def _gather_facts(self, more: int) -> None:
        """Leave the facts that have been taken in behind, with room for as many again as there are then."""
        net, before = self.arrays.net, self.arrays.net.facts
        waiting = np.flatnonzero(net.queries[:, c.Q_FACTS_N])
        end = int(net.queries[waiting, c.Q_FACTS_N].sum())
        facts = np.zeros((2 * (end + more), before.shape[1]), np.int64)
        used = self.arrays.used["facts"] = Ranges()
        for first, n, number in zip(*net.queries[waiting][:, [c.Q_FACTS_AT, c.Q_FACTS_N]].T.tolist(), waiting.tolist(), strict=True):
            at = net.queries[number, c.Q_FACTS_AT] = used.take(n)
            facts[at : at + n] = before[first : first + n]
        self.arrays.replace_arrays(net._replace(facts=facts))

    def change_facts(self, planned: Planned, added: list[Fact], removed: list[Fact]) -> None:
        """Set what a query is to take in at its next instant, besides what it has been waiting for and has not lost."""
        net, number = self.arrays.net, planned.number
        first, n = net.queries[number, [c.Q_FACTS_AT, c.Q_FACTS_N]].tolist()
        stays = without(net.facts[first : first + n], self.make_fact_rows(planned, removed))
        waiting = np.concatenate([stays, self.make_fact_rows(planned, added)])
        if net.queries[number, c.Q_OPEN]:
            net.queries[number, c.Q_AFTER] = net.at[c.NOW]
            self.streams.count_pending(planned, (len(waiting) > 0) - (n > 0))
        self.put_facts(planned, waiting)

    def restore_facts(self, facts: Sequence[tuple[Planned, Ints]]) -> None:
        """Set what each query, which has just been placed, is yet to take in; what its plan has for it goes.

        The rows are those of `facts`; their cells may be fewer, or more than any query has.
        """
        net = self.arrays.net
        net.queries[[planned.number for planned, _ in facts], c.Q_FACTS_N] = 0
        for planned, rows in facts:
            own = np.zeros((len(rows), net.facts.shape[1]), np.int64)
            cells = min(rows.shape[1], own.shape[1])
            assert not rows[:, cells:].any(), "columns of wider queries, which are gone"
            own[:, :cells] = rows[:, :cells]
            self.put_facts(planned, own)
            if net.queries[planned.number, c.Q_OPEN] and not len(rows):
                self.streams.count_pending(planned, -1)

    # ------------------------------------------------------------ about them
    def find_unopened(self) -> list[Planned]:
        """Return the queries that no occurrence has opened yet."""
        closed = self.arrays.net.queries[: self.arrays.used["queries"].end, c.Q_OPEN] == 0
        return [self.numbered[number] for number in np.flatnonzero(closed).tolist()]


def _links_goals(node: Node) -> bool:
    """Return whether goals may leave a node's store from its middle: a policy chooses, ONCE PER ...

    UNTIL resets, or blockers of a WITHOUT pass.
    """
    passing = node.kind == c.WITHOUT and node.keep != c.NOT_PASSING
    return passing or node.kind in POLICIES or (node.kind == c.ONCE and node.life_left == c.FOREVER)
