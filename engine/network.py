"""One kernel with its queries: they share a clock, because they reach the same streams."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import host
from engine.kernel import columns as c
from engine.kernel.filters import spread_questions
from engine.kernel.goals import clear_stores, spread, spread_seen
from engine.kernel.instants import run
from engine.kernel.state import KEPT, WORDS, Net, new_net, with_room, with_width
from engine.plan import Names, plan
from engine.program import Fragment, Inquiry, Place, end_of, place, placed_nodes, with_alpha
from engine.strata import Cycle, Wire, on_cycles, strata
from engine.terms import TermTable
from epsparql import algebra as a
from epsparql.terms import Term, Variable

Ints = NDArray[np.int64]
Triple = tuple[Term, Term, Term]


SPREADERS: dict[str, tuple[Callable[[int, Ints], None], int]] = {
    "heads": (spread, 2),
    "seen_heads": (spread_seen, 1),
    "question_heads": (spread_questions, 1),
}
"""How each table of chains is moved to a larger one, and in how many halves it is used."""


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """A query in its network. `number` is its row in `queries`; `registered` the offset of its registration."""

    registered: int
    name: str
    query: a.Query
    number: int
    at: Place
    after: Place
    columns: dict[Variable, int]
    inquiries: tuple[Inquiry, ...]
    strict: frozenset[tuple[int, int]]
    scans: tuple[tuple[int, int, int], ...]  # (node, side, predicate) of each, 0 for a predicate variable
    max_derivations: int

    @property
    def out(self) -> int:
        """The node that its solutions reach."""
        return self.at.node

    @property
    def writes(self) -> str | None:
        return self.query.into if isinstance(self.query, a.Construct) else None


@dataclass(frozen=True, slots=True, eq=False)
class Failure:
    """A query stopped at an entry because it derived without end."""

    planned: Planned
    entry: int
    reason: str


@dataclass(slots=True)
class Network:
    """The kernel's arrays and the host's side of its returns."""

    terms: TermTable
    planned: dict[int, Planned] = field(default_factory=dict)  # by `registered`
    streams: dict[str, int] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    net: Net = field(init=False)
    _table: Ints = field(init=False)  # (address, length, width) of each array of `net`; its own address is the kernel's handle
    _inquiries: list[tuple[Inquiry, str]] = field(default_factory=list)  # by number of the question, with its query's name

    def __post_init__(self) -> None:
        self._hold(new_net(3))

    def _hold(self, net: Net) -> None:
        """Makes `net` the one that the kernel sees: the table of addresses follows, cell by cell where an array is another."""
        before = getattr(self, "net", None)
        if before is None:
            self._table = np.zeros(WORDS * len(net), np.int64)
        for k, array in enumerate(net):
            if before is None or array is not before[k]:
                assert array.flags.c_contiguous
                assert array.dtype.itemsize == 8
                self._table[WORDS * k] = array.__array_interface__["data"][0]
                self._table[WORDS * k + 1] = array.shape[0]
                self._table[WORDS * k + 2] = array.shape[1] if array.ndim == 2 else 1
        self.net = net

    @property
    def address(self) -> int:
        return int(self._table.__array_interface__["data"][0])

    # ------------------------------------------------------------ queries
    @property
    def reads(self) -> set[str]:
        return {stream for planned in self.planned.values() for stream in planned.query.streams}

    def names(self, facts: Iterable[Triple]) -> Names:
        known = tuple(facts)

        def matching(pattern: a.TriplePattern) -> Iterable[Triple]:
            return (fact for fact in known if matches(pattern, fact))

        return Names(self.terms.intern, self._stream, matching)

    def _stream(self, name: str) -> int:
        if name not in self.streams:
            self.streams[name] = len(self.streams)
            row = np.array([[0, c.NONE]], np.int64)
            self._hold(self.net._replace(streams=np.concatenate([self.net.streams, row])))
        return self.streams[name]

    def add(self, registered: int, name: str, query: a.Query, facts: Iterable[Triple], max_derivations: int = 0) -> None:
        """Plans a query and puts it behind the others. Raises Refusal, Cycle; whatever is raised, nothing has changed."""
        fragment = plan(query, self.names(facts))
        at, number = end_of(self.net), len(self.net.queries)
        net = self.net._replace(at=self.net.at.copy(), streams=self.net.streams.copy())
        net = place(with_width(net, len(fragment.columns)), fragment, at, number)
        planned = planned_from(registered, name, query, number, fragment, at, end_of(net), max_derivations)
        self.planned[registered] = planned
        try:
            net = self._with_readers(net, planned, fragment)
            self._rank(net)
        except BaseException:
            del self.planned[registered]
            raise
        self._inquiries += [(inquiry, name) for inquiry in fragment.inquiries]
        self._hold(net)

    def _rank(self, net: Net) -> None:
        """Strata of the nodes; and bounds for the rules that may feed themselves inside an instant, which no other rule needs."""
        wires = [wire for planned in self.planned.values() for wire in self._wires(net, planned)]
        net.nodes[:, c.STRATUM] = strata(net.nodes[:, c.KIND].tolist(), wires)
        circling = on_cycles(len(net.nodes), wires) if any(planned.writes for planned in self.planned.values()) else set()
        for planned in self.planned.values():
            net.queries[planned.number, c.Q_BOUND] = planned.max_derivations if planned.out in circling else c.FOREVER

    def _wires(self, net: Net, planned: Planned) -> Iterable[Wire]:
        """How solutions of one query go on: along its edges, and from its templates to the scans of others."""
        for node in range(planned.at.node, planned.after.node):
            first, n = int(net.nodes[node, c.EDGE_AT]), int(net.nodes[node, c.EDGE_N])
            for reader, side in net.edges[first : first + n].tolist():
                yield Wire(node, reader, (reader - planned.at.node, side) in planned.strict)
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
        alpha = np.array(fragment.alpha, np.int64).reshape(-1, c.ALPHA_WIDTH + 1)
        alpha[:, c.A_QUERY], alpha[:, c.A_NODE] = planned.number, alpha[:, c.A_NODE] + planned.at.node
        row = np.array([[0, planned.registered, -c.BIG, 0, 0, c.FOREVER, -c.BIG, 0]], np.int64)
        net = net._replace(queries=np.concatenate([net.queries, row]))
        net = with_alpha(net, np.concatenate([alpha_of(net), alpha]))
        reads = [[planned.number, int(net.streams[self.streams[s], c.S_READS])] for s in dict.fromkeys(planned.query.streams)]
        for k, stream in enumerate(dict.fromkeys(planned.query.streams)):
            net.streams[self.streams[stream], c.S_READS] = len(net.reads) + k
            net.streams[self.streams[stream], c.S_PENDING] += 1
        net = net._replace(reads=np.concatenate([net.reads, np.array(reads, np.int64).reshape(-1, c.READ_WIDTH)]))
        return self._with_facts(net, planned, fragment.facts)

    def _with_facts(self, net: Net, planned: Planned, facts: list[list[int]]) -> Net:
        """Facts that a query takes in when it opens, or at its next instant."""
        rows = np.array(facts, np.int64).reshape(-1, c.FACT_WIDTH)
        rows[:, c.F_NODE] += planned.at.node
        net.queries[planned.number, c.Q_FACTS_AT], net.queries[planned.number, c.Q_FACTS_N] = len(net.facts), len(rows)
        net = net._replace(facts=np.concatenate([net.facts, rows]))
        net.at[c.MARGIN] = self._margin(net)
        net.at[c.FED_ALONE] = not any(p.writes in self.streams and p.writes is not None for p in self.planned.values())
        return net

    @staticmethod
    def _margin(net: Net) -> int:
        """Rows that one occurrence can make at most."""
        fan = np.diff(net.alpha_at)
        awaited = int(net.queries[:, c.Q_FACTS_N].sum())
        return int(fan[0] + (fan[1:].max() if len(fan) > 1 else 0)) + awaited + 8

    def learn(self, added: Iterable[Triple], known: Iterable[Triple]) -> None:
        """Background facts were added: readers take them in at their next instant. Raises Cycle if they close one; then nothing has changed."""
        everything, news = tuple(known), self.names(added)
        before = self.net.nodes.copy()
        for planned in self.planned.values():
            fragment = plan(planned.query, self.names(everything))
            self.net.nodes[planned.at.node : planned.after.node] = placed_nodes(fragment, planned.at, planned.number)
        try:
            self._rank(self.net)
        except Cycle:
            self.net.nodes[:] = before
            raise
        for planned in self.planned.values():
            self._learn(planned, plan(planned.query, news).facts)

    def _learn(self, planned: Planned, facts: list[list[int]]) -> None:
        net, number = self.net, planned.number
        facts = [row for row in facts if row[c.F_COLUMN0] != c.EMPTY_GROUP]
        first, n = int(net.queries[number, c.Q_FACTS_AT]), int(net.queries[number, c.Q_FACTS_N])
        if not facts:
            return
        if net.queries[number, c.Q_OPEN] and n == 0:
            net.queries[number, c.Q_AFTER] = net.at[c.NOW]
            for stream in dict.fromkeys(planned.query.streams):
                net.streams[self.streams[stream], c.S_PENDING] += 1
        waiting = net.facts[first : first + n].copy()
        waiting[:, c.F_NODE] -= planned.at.node
        self._hold(self._with_facts(net, planned, waiting.tolist() + facts))

    def drop(self, registered: int) -> None:
        """Takes a query out, with its goals; no other is touched."""
        planned = self.planned.pop(registered)
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
        self._hold(self._with_terms(net._replace(feed=columns)))
        chunks: list[Ints] = []
        while (code := run(self.address)) != c.DONE:
            if self.net.at[c.FOUND] * 2 > len(self.net.out):
                chunks.append(self._take_found())
            self._serve(code)
        self._spread_heads()
        found = self._take_found()
        return np.concatenate([*chunks, found]) if chunks else found

    def _take_found(self) -> Ints:
        found = self.net.out[: self.net.at[c.FOUND]].copy()
        self.net.at[c.FOUND] = 0
        return found

    def _serve(self, code: int) -> None:
        if code == c.GROW:
            self._hold(with_room(self.net))
            self._spread_heads()
        elif code == c.EXCEEDED:
            self._fail(int(self.net.at[c.ENDLESS]))
        else:
            self._answer()

    def _spread_heads(self) -> None:
        """Hash tables of at least as many heads as what hangs on them."""
        net = self.net
        held = {"heads": len(net.rows) - int(net.at[c.FREE]), "seen_heads": len(net.seen) // 2, "question_heads": int(net.at[c.ASKED])}
        for name, (spreader, halves) in SPREADERS.items():
            if held[name] > len(getattr(self.net, name)) // halves:
                heads = np.full(halves << held[name].bit_length(), c.NONE, np.int64)
                spreader(self.address, heads)
                self._hold(self.net._replace(**{name: heads}))  # type: ignore[arg-type]  # mypy takes a name for each field's type

    def _fail(self, number: int) -> None:
        planned = next(p for p in self.planned.values() if p.number == number)
        reason = f"derived more than {self.net.queries[number, c.Q_BOUND]} triples at one instant: the rule feeds itself without end"
        self.failures.append(Failure(planned, int(self.net.at[c.ENTRY]), reason))
        self.net.at[c.ENDLESS] = c.NONE
        self.drop(planned.registered)

    def _answer(self) -> None:
        """Answers the kernel's open questions and hands the parked work back."""
        at, questions = self.net.at, self.net.questions
        for q in range(int(at[c.ANSWERED]), int(at[c.ASKED])):
            who, *arguments = questions[q, c.ASK_WHO :].tolist()
            inquiry, name = self._inquiries[who]
            questions[q, c.ASK_ANSWER] = host.answer(inquiry, arguments[c.ASK_ARG - c.ASK_WHO - 1 :], self.terms, name)
        at[c.ANSWERED] = at[c.ASKED]
        n, depth = int(at[c.PARKED]), int(at[c.DEPTH])
        at[c.NEED] = n
        net = with_room(self.net) if depth + n > len(self.net.stack) else self.net
        net.stack[depth : depth + n] = net.parked[:n]
        at[c.DEPTH], at[c.PARKED] = depth + n, 0
        self._hold(self._with_terms(net))

    def _with_terms(self, net: Net) -> Net:
        """What the kernel needs to know of terms: values if it has filters, kinds if it has rules."""
        if len(net.code):
            net = net._replace(numbers=self.terms.numbers)
        return net._replace(kinds=self.terms.kinds) if len(net.templates) else net

    # ------------------------------------------------------------ snapshots
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Program and state, by name. Between feeds nothing is on its way, so answers may be asked for again and pools be left out."""
        net = self.net
        assert not net.at[c.DEPTH]
        assert not net.at[c.PARKED]
        return {name: getattr(net, name) for name in KEPT} | {"waiting": net.waiting[: net.at[c.WAITING]], "seen": net.seen[: net.at[c.SEEN_N]]}

    def restore(self, arrays: dict[str, NDArray[Any]], planned: Iterable[Planned]) -> None:
        """Takes over what `arrays` gave, with the queries planned anew at their places."""
        width = arrays["rows"].shape[1] - c.VAR
        self._hold(with_width(self.net, width)._replace(**arrays))
        self.net.at[c.ASKED] = self.net.at[c.ANSWERED] = 0
        self.planned = {p.registered: p for p in planned}
        self._inquiries = [(Inquiry((), False), "")] * len(self.net.asks)
        for p in self.planned.values():
            self._inquiries[p.at.ask : p.after.ask] = [(inquiry, p.name) for inquiry in p.inquiries]


def planned_from(
    registered: int, name: str, query: a.Query, number: int, fragment: Fragment, at: Place, after: Place, max_derivations: int
) -> Planned:
    scans = tuple((row[c.A_NODE], row[c.A_SIDE], row[-1]) for row in fragment.alpha)
    questions, strict = tuple(fragment.inquiries), frozenset(fragment.strict)
    return Planned(registered, name, query, number, at, after, dict(fragment.columns), questions, strict, scans, max_derivations)


def alpha_of(net: Net) -> Ints:
    """The scans with their predicates as last column."""
    predicates = np.repeat(np.arange(len(net.alpha_at) - 1), np.diff(net.alpha_at))
    return np.column_stack([net.alpha, predicates]).astype(np.int64)


def matches(pattern: a.TriplePattern, triple: Triple) -> bool:
    """Whether a triple is an instance of a pattern."""
    bound: dict[Variable, Term] = {}
    for part, term in zip((pattern.subject, pattern.predicate, pattern.object), triple, strict=True):
        if isinstance(part, Variable):
            if bound.setdefault(part, term) != term:
                return False
        elif part != term:
            return False
    return True
