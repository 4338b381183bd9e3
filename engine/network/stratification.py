"""This module ranks negative parts into strata, the order in which they decide at one instant.

It finds recursion that has no such order.
"""

from collections.abc import Iterable, Mapping, Sequence

from engine.alpha.alpha_nodes import AS_SENT, Want
from engine.kernel.state import layout as c
from engine.network.placed_query import POLICIES, Planned
from engine.network.query_slots import QuerySlots
from engine.physical_plan.operator_names import OPERATORS
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.terms import Term, TermOrVariable, Variable

NEGATIVE = frozenset(
    {c.OPTIONAL, c.OPTIONALSEQ, c.EQUALSOPTIONAL, c.MINUS, c.EXISTS, c.NOTEXISTS, c.WITHOUT, c.WITHOUTFOR, c.MARK, c.COLLECT, c.LATEST, c.ONCE}
    | POLICIES
)


@dataclass(frozen=True, slots=True)
class Wire:
    """Represents one way that a solution goes inside an instant; over a strict edge it only matters in later instants."""

    source: int
    target: int
    strict: bool


Scanned = tuple[int, int, Want, int]
"""A scan is the node and side where it goes, what it wants, and the stream."""


class Cycle(Exception):
    """Signals recursion through a negative part without a strict step.

    `nodes` are the cycle in its order; `way` is what a reader is told of it.
    """

    def __init__(self, nodes: list[int], way: str = "") -> None:
        super().__init__(nodes, way)
        self.nodes = nodes
        self.way = way

    def __str__(self) -> str:
        reason = (
            "recursion through a negative part (optional join, MINUS, EXISTS, WITHOUT, aggregate, window, ONCE PER, ORDER BY, "
            "LIMIT, policy) without a strict step in time"
        )
        return f"{reason}: {self.way}" if self.way else reason


def find_strata(kinds: Mapping[int, int], wires: Sequence[Wire], settled: Mapping[int, int]) -> dict[int, int]:
    """Return the stratum of each node of `kinds`: how many negative parts decide before it at an instant. Raises Cycle.

    `settled` are the strata of other sources, which are positive.
    """
    level = dict.fromkeys(kinds, 0)
    into: dict[int, list[int]] = {node: [] for node in kinds}
    onwards: dict[int, list[int]] = {node: [] for node in kinds}
    for wire in wires:
        if not wire.strict:
            into[wire.target].append(wire.source)
            onwards.setdefault(wire.source, []).append(wire.target)
    least_of = {node: max((settled[source] for source in sources if source not in kinds), default=0) for node, sources in into.items()}
    pending = set(kinds)
    for _ in range(len(kinds) + 2):
        changed = set()
        for node in pending:
            least = max((level[source] + (kinds[source] in NEGATIVE) for source in into[node] if source in kinds), default=0)
            least = max(least, least_of[node])
            if least > level[node]:
                level[node] = least
                changed.add(node)
        if not changed:
            return level
        pending = {target for node in changed for target in onwards[node]}
    raise Cycle(find_negative_cycle(kinds, onwards))


def find_negative_cycle(kinds: Mapping[int, int], onwards: Mapping[int, list[int]]) -> list[int]:
    """Return a shortest cycle inside an instant through some negative part, from that part on; there is one."""
    ways = (way for node, kind in kinds.items() if kind in NEGATIVE and (way := _find_way_back(node, onwards)))
    return min(ways, key=len)


def _find_way_back(node: int, onwards: Mapping[int, list[int]]) -> list[int] | None:
    """Return the nodes of a shortest way from a node to itself."""
    came_from: dict[int, int] = {}
    edge = [node]
    while edge and node not in came_from:
        following: list[int] = []
        for source in edge:
            for target in onwards.get(source, ()):
                if target not in came_from:
                    came_from[target] = source
                    following.append(target)
        edge = following
    if node not in came_from:
        return None
    way = [came_from[node]]
    while way[-1] != node:
        way.append(came_from[way[-1]])
    return way[::-1]


def list_onwards(wires: Iterable[Wire]) -> dict[int, list[int]]:
    """Return the nodes that the solutions of each node reach inside an instant."""
    onwards: dict[int, list[int]] = {}
    for wire in wires:
        if not wire.strict:
            onwards.setdefault(wire.source, []).append(wire.target)
    return onwards


def find_affected(slots: QuerySlots, planned: Planned) -> list[Planned]:
    """Return a query and those that its triples reach through rules: no other's strata depend on it."""
    found, pending = {planned.registered: planned}, [planned]
    while pending:
        into = pending.pop().writes
        reached = [] if into is None else [p for p in slots.planned.values() if into in p.source.query.streams and p.registered not in found]
        found |= {p.registered: p for p in reached}
        pending += reached
    return list(found.values())


def rank_nodes(slots: QuerySlots, queries: Sequence[Planned]) -> None:
    """Set the strata of these queries' nodes, and bounds for the rules that may feed themselves inside an instant.

    No other rule needs a bound. Raises Cycle.
    """
    nodes = slots.arrays.net.nodes
    wires = [wire for planned in queries for wire in _find_wires(slots, planned)]
    kinds = {node: int(nodes[node, c.KIND]) for planned in queries for node in range(planned.at.node, planned.after.node)}
    settled = {out: int(nodes[out, c.STRATUM]) for rule in slots.rules.values() for out in rule.written}
    try:
        ranked = find_strata(kinds, wires, settled)
    except Cycle as cycle:
        raise Cycle(cycle.nodes, _describe_cycle(slots, cycle.nodes)) from None
    nodes[list(ranked), c.STRATUM] = list(ranked.values())
    onwards = list_onwards(wires)
    for planned in queries:
        bounded = any(_find_way_back(node, onwards) is not None for node in (*planned.silent, *planned.written))
        slots.arrays.net.queries[planned.number, c.Q_BOUND] = planned.source.max_derivations if bounded else c.FOREVER


def _describe_cycle(slots: QuerySlots, nodes: Sequence[int]) -> str:
    """Describe a cycle for its reader: queries, with their negative parts and the streams they write."""
    steps: list[str] = []
    for node in nodes:
        planned = next(p for p in slots.planned.values() if p.at.node <= node < p.after.node)
        kind = int(slots.arrays.net.nodes[node, c.KIND])
        if kind in NEGATIVE:
            steps.append(f"{OPERATORS[kind]} of {planned.source.name}")
        elif node in planned.silent:
            steps.append(f"the events of {planned.source.name}")
        elif node in planned.written:
            steps.append(f"the triples that {planned.source.name} writes to the stream {planned.writes}")
    return " -> ".join([*steps, steps[0]])


def _find_wires(slots: QuerySlots, planned: Planned) -> Iterable[Wire]:
    """Return how solutions go on inside one query, along its edges, and to its scans from the templates of rules."""
    net = slots.arrays.net
    for node in range(planned.at.node, planned.after.node):
        first, n = int(net.nodes[node, c.EDGE_AT]), int(net.nodes[node, c.EDGE_N])
        for reader, side in net.edges[first : first + n].tolist():
            yield Wire(node, reader, (reader - planned.at.node, side) in planned.strict)
        first, n = int(net.nodes[node, c.MARK_AT]), int(net.nodes[node, c.MARK_N])
        for mark in net.edges[first : first + n, 0].tolist():
            yield Wire(mark, node, strict=False)
    scanned = _Scans(slots, planned)
    own = planned.silent
    for out, rule in own.items():
        yield from (Wire(out, node, strict) for node, strict in scanned.find_readers(rule))
    for writer in slots.rules.values():
        if writer.writes in planned.source.query.streams and not (own and writer is planned):  # a program does not read what it writes
            for out, rule in writer.written.items():
                yield from (Wire(out, node, strict) for node, strict in scanned.find_readers(rule))


class _Scans:
    """Holds the scans of a query by the predicate that they want, so that a template is not compared with each."""

    def __init__(self, slots: QuerySlots, planned: Planned) -> None:
        self._planned, self._terms, self._entailment = planned, slots.arrays.terms, slots.scans.entailment
        self._streams = slots.streams.numbers
        self._all = list(dict.fromkeys(planned.scans))
        self._of_predicate: dict[TermOrVariable | None, list[Scanned]] = {}
        for scan in self._all:
            wanted, _ = scan[2]
            self._of_predicate.setdefault(None if wanted == AS_SENT else self._terms.term(wanted), []).append(scan)

    def find_readers(self, rule: a.Construct) -> Iterable[tuple[int, bool]]:
        """Return the nodes whose scans may read triples of a rule, and whether each does so over a strict edge."""
        written = dict.fromkeys(t.predicate for t in rule.template)
        found = self._all if any(isinstance(p, Variable) for p in written) else list(self._of_predicate.get(None, ()))
        for predicate in written if found is not self._all else ():
            if predicate in self._entailment.of_predicate or self._entailment.of_pair:
                found += [scan for scan in self._all if self._reaches(predicate, scan[2])]
            else:
                found += self._of_predicate.get(predicate, ())
        read = dict.fromkeys((node, side) for node, side, _, stream in found if stream == self._streams[rule.into])
        for node, side in read:
            yield self._planned.at.node + node, (node, side) in self._planned.strict

    def _reaches(self, predicate: Term | Variable, want: Want) -> bool:
        """Return whether a rule's triples of a predicate, or what they entail, may be wanted."""
        wanted, object_ = want
        assert not isinstance(predicate, Variable)
        return wanted == AS_SENT or self._entailment.reaches(predicate, (self._terms.term(wanted), self._terms.term(object_)))
