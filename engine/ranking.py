"""In which order the nodes of a network decide inside an instant: strata of their own for negative parts, through rules too (semantics.md section 6)."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from engine.kernel import columns as c
from engine.operators import OPERATORS
from engine.planned import Planned
from engine.scans import AS_SENT, Want
from engine.strata import NEGATIVE, Cycle, Wire, on_cycle, strata
from epsparql import algebra as a
from epsparql.terms import Term, Variable

if TYPE_CHECKING:
    from engine.residents import Residents


def affected(residents: "Residents", planned: Planned) -> list[Planned]:
    """A query and those that its triples reach through rules: no other's strata depend on it."""
    found, pending = {planned.registered: planned}, [planned]
    while pending:
        into = pending.pop().writes
        reached = [] if into is None else [p for p in residents.planned.values() if into in p.query.streams and p.registered not in found]
        found |= {p.registered: p for p in reached}
        pending += reached
    return list(found.values())


def rank(residents: "Residents", queries: Sequence[Planned]) -> None:
    """Strata of these queries' nodes; and bounds for the rules that may feed themselves inside an instant, which no other rule needs. Raises Cycle."""
    nodes = residents.net.nodes
    wires = [wire for planned in queries for wire in _wires(residents, planned)]
    kinds = {node: int(nodes[node, c.KIND]) for planned in queries for node in range(planned.at.node, planned.after.node)}
    settled = {rule.out: int(nodes[rule.out, c.STRATUM]) for rule in residents.rules.values() if rule.out not in kinds}
    try:
        ranked = strata(kinds, wires, settled)
    except Cycle as cycle:
        raise Cycle(cycle.nodes, _way(residents, cycle.nodes)) from None
    nodes[list(ranked), c.STRATUM] = list(ranked.values())
    for planned in queries:
        bounded = planned.writes is not None and on_cycle(planned.out, wires)
        residents.net.queries[planned.number, c.Q_BOUND] = planned.max_derivations if bounded else c.FOREVER


def _way(residents: "Residents", nodes: Sequence[int]) -> str:
    """A cycle for its reader: queries, with their negative parts and the streams they write."""
    steps: list[str] = []
    for node in nodes:
        planned = next(p for p in residents.planned.values() if p.at.node <= node < p.after.node)
        kind = int(residents.net.nodes[node, c.KIND])
        if kind in NEGATIVE:
            steps.append(f"{OPERATORS[kind]} of {planned.name}")
        elif node == planned.out and planned.writes is not None:
            steps.append(f"the triples that {planned.name} writes to the stream {planned.writes}")
    return " -> ".join([*steps, steps[0]])


def _wires(residents: "Residents", planned: Planned) -> Iterable[Wire]:
    """How solutions go on inside one query, along its edges, and to its scans from the templates of rules."""
    net = residents.net
    for node in range(planned.at.node, planned.after.node):
        first, n = int(net.nodes[node, c.EDGE_AT]), int(net.nodes[node, c.EDGE_N])
        for reader, side in net.edges[first : first + n].tolist():
            yield Wire(node, reader, (reader - planned.at.node, side) in planned.strict)
        first, n = int(net.nodes[node, c.MARK_AT]), int(net.nodes[node, c.MARK_N])
        for mark in net.edges[first : first + n, 0].tolist():
            yield Wire(mark, node, strict=False)
    for rule in residents.rules.values():
        assert isinstance(rule.query, a.Construct)
        if rule.query.into in planned.query.streams:
            yield from (Wire(rule.out, node, strict) for node, strict in _scanned(residents, planned, rule.query.template))


def _scanned(residents: "Residents", planned: Planned, template: Iterable[a.TriplePattern]) -> Iterable[tuple[int, bool]]:
    """The nodes of a query whose scans may read triples of a template."""
    written = [t.predicate for t in template]
    anything = any(isinstance(p, Variable) for p in written)
    for node, side, want in planned.scans:
        if anything or any(_reaches(residents, p, want) for p in written if not isinstance(p, Variable)):
            yield planned.at.node + node, (node, side) in planned.strict


def _reaches(residents: "Residents", predicate: Term, want: Want) -> bool:
    """Whether a rule's triples of a predicate, or what they entail, may be wanted."""
    wanted, object_ = want
    if wanted == AS_SENT:
        return True
    return residents.entailment.reaches(predicate, (residents.terms.term(wanted), residents.terms.term(object_)))
