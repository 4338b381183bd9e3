"""This module plans what starts rows: triple patterns, VALUES and GRAPH."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.alpha.alpha_nodes import AS_SENT
from engine.kernel.state import layout as c
from engine.physical_plan.filter_compiler import slots
from engine.physical_plan.plan import COPIED, LOOKED_UP, Fact, Lookup, Unit, fact
from engine.planner.operators import join_order, joins
from engine.rewrite.resolve_datasets import BACKGROUND
from engine.scope import ANY_TRIPLE, of_place
from epsparql import algebra as a
from epsparql.terms import XSD, Iri, Literal, TermOrVariable, Variable

if TYPE_CHECKING:
    from engine.planner.planner import Planner, Target


Ints = NDArray[np.int64]
NOTHING = np.zeros((0, 4), np.int64)
FEW = 1000
"""So many background triples of a pattern are copied to each of its queries; more are looked up."""


def bgp(planner: "Planner", pattern: a.Bgp, target: "Target", span: int, wanted: Sequence[a.Expression]) -> None:
    ordered = join_order.in_order(pattern.triples, planner.names.order)
    if not ordered:
        empty(planner, pattern.place, planner.after(target, c.FOREVER, wanted))
        return
    alone = [planner.scope(a.Bgp((triple,), pattern.place)) for triple in ordered]
    before = [alone[0]]
    for scope in alone[1:-1]:
        before.append(before[-1].joined(scope))
    made, first = list[int](), len(planner.fragment.nodes)
    for k in range(len(ordered) - 1, 0, -1):  # a loop, because a group may have a thousand patterns
        node, wanted, other = joins.join_node(planner, before[k - 1], alone[k], c.ANY, target, span, wanted)
        via = planner.after((node, c.EMIT), c.FOREVER, other)[0] if other else c.NONE
        looked_up(planner, node, via, ordered[k], pattern.place, planner.after((node, c.RIGHT), c.FOREVER, other))
        target = node, c.LEFT
        made.append(node)
    scan(planner, ordered[0], pattern.place, planner.after(target, c.FOREVER, wanted))
    if len(made) > 1:
        leaves = [(node, c.RIGHT) for node in made[1:]] + [(made[-1], c.LEFT)]
        nodes = range(first, len(planner.fragment.nodes))
        unit = Unit(made[0], nodes, tuple((leaf, leaf) for leaf in leaves), tuple((node, c.LEFT) for node in made[:-1]))
        planner.fragment.units.append(unit)


def looked_up(planner: "Planner", node: int, via: int, triple: a.TriplePattern, place: a.Place, target: "Target") -> None:
    """Plan a scan at one side of a node. If the background has much for the scan, solutions of the other side look that up; else it is copied.

    A plan's tables are the same either way.
    """
    deep = len(planner.names.facts(triple, place)) > FEW
    look_up(planner, node, via, triple, place, deep)
    scan(planner, triple, place, target, copied=not deep)


def look_up(planner: "Planner", node: int, via: int, triple: a.TriplePattern, place: a.Place, deep: bool, use: str = LOOKED_UP) -> None:
    """Let the solutions that come to a node look up a triple pattern in a table by the node's key, if the background is `deep` there."""
    bound = columns_of(planner, triple, place)
    at, n = planner.fragment.nodes[node][c.KEY_AT], planner.fragment.nodes[node][c.KEY_N]
    keys = planner.fragment.slots[at : at + n]
    free = [column for column in bound if column not in keys]
    first, _ = slots(planner.fragment, free)
    planner.assign(node, LOOK_AT=first, LOOK_N=len(free), LOOK_VIA=via)
    parts = tuple(bound[column] for column in (*keys, *free))
    planner.fragment.lookups[node] = Lookup(planner.names.facts(triple, place), parts, n) if deep else None
    if deep:
        reads(planner, triple, planner.names.facts(triple, place), use)


def reads(planner: "Planner", triple: a.TriplePattern, rows: Ints, use: str) -> None:
    """Note what is read of the background, for people."""
    if len(rows):
        parts = ("[]" if isinstance(part, Variable) and part.hidden else str(part) for part in parts_of(triple))
        planner.fragment.reads[" ".join(parts), use] = len(rows)


def streams_of(planner: "Planner", place: a.Place) -> tuple[str, ...]:
    if place.window is not None:
        return () if place.window == BACKGROUND else (place.window,)
    return tuple(dict.fromkeys(planner.query.streams))


def graphs_of(planner: "Planner", place: a.Place) -> list[int]:
    """Return the values of A_GRAPH of the scans: there is one scan for each graph that is named."""
    if place.among is None:
        return [c.NONE if place.graph is None else c.NAMED]
    return [planner.names.term(str(Iri(name))) if name else c.UNBOUND for name in dict.fromkeys(place.among)]


def read(
    planner: "Planner", place: a.Place, sought: Sequence[TermOrVariable], columns: Sequence[int], target: "Target", *, sent: bool = False
) -> None:
    """Plan scans of all streams and graphs of a place for the triple pattern `sought`, or only for what was `sent` there and not what that entails.

    `columns` are where subject, predicate and object go, or NONE.
    """
    graph = c.NONE if place.graph is None else planner.column(place.graph)
    s, p, o = (c.NONE if isinstance(part, Variable) else planner.names.term(str(part)) for part in sought)
    for stream in streams_of(planner, place):
        number = planner.names.stream(stream)
        for wanted in graphs_of(planner, place):
            planner.fragment.alpha.append([number, s, o, *columns, 0, *target, wanted, graph, AS_SENT if sent else max(p, 0)])


def parts_of(triple: a.TriplePattern) -> tuple[TermOrVariable, TermOrVariable, TermOrVariable]:
    return triple.subject, triple.predicate, triple.object


def scan(planner: "Planner", triple: a.TriplePattern, place: a.Place, target: "Target", *, copied: bool = True) -> None:
    """Plan rows for what a stream brings, and for what there is of the background unless it is looked up."""
    parts = parts_of(triple)
    read(planner, place, parts, [planner.column(t) if isinstance(t, Variable) else c.NONE for t in parts], target)
    bound = columns_of(planner, triple, place)
    rows = planner.names.facts(triple, place) if copied else NOTHING
    reads(planner, triple, rows, COPIED)
    own = planner.names.own(rows)
    planner.fragment.facts.append(Fact(*target, True, tuple(bound), own[:, list(bound.values())], rows))


def columns_of(planner: "Planner", triple: a.TriplePattern, place: a.Place) -> dict[int, int]:
    """Return the columns that a triple pattern binds, each with the part of a triple and its graph that it takes."""
    parts = (*parts_of(triple), place.graph)
    return {planner.column(part): k for k, part in enumerate(parts) if isinstance(part, Variable)}


def empty(planner: "Planner", place: a.Place, target: "Target") -> None:
    """Plan the solution of a group without triple patterns; under GRAPH there is one for each graph, from its first instant."""
    if place.graph is None:
        planner.fragment.facts.append(fact(*target, False, {}))
        return
    at, n = planner.slots([place.graph])
    column = planner.column(place.graph)
    once = planner.move(target, [(column, column)], once=True), c.LEFT  # a stream's graphs stay, those of the background may go
    first = planner.node(c.FIRST, once, KEY_AT=at, KEY_N=n, LIFE_LEFT=c.FOREVER)
    read(planner, place, parts_of(ANY_TRIPLE), (c.NONE,) * 3, (first, c.LEFT), sent=True)
    planner.fragment.facts.append(_graphs(planner, place, once, column))


def _graphs(planner: "Planner", place: a.Place, target: "Target", column: int) -> Fact:
    """Return a fact with a row for each graph of the background."""
    return Fact(*target, True, (column,), np.array(planner.names.graphs(place), np.int64).reshape(-1, 1))


def values(planner: "Planner", pattern: a.Values, target: "Target") -> None:
    """Plan timeless rows; a hidden number tells them apart."""
    number = planner.column(planner.fresh("row"))
    for k, row in enumerate(pattern.rows):
        cells = {planner.column(v): planner.names.term(str(t)) for v, t in zip(pattern.variables, row, strict=True) if t is not None}
        cells[number] = planner.names.term(str(Literal(str(k), XSD + "integer")))
        planner.fragment.facts.append(fact(*target, False, cells))


def graph(planner: "Planner", pattern: a.Graph, target: "Target", span: int) -> None:
    """Plan GRAPH: the hidden graph meets its name, and timeless solutions take the intervals of an event graph's occurrences.

    The nodes are the same whatever the background holds, which may change under them; they are only reached while there may be timeless solutions.
    """
    place = pattern.place
    assert place.graph is not None
    hidden = planner.column(place.graph)
    if isinstance(pattern.name, Variable):
        target = planner.move(target, [(hidden, planner.column(pattern.name))], keep=True), c.LEFT
    split = planner.node(c.PASS, None)
    timed = planner.node(c.PASS, target, FILTER=c.TIMED_ONLY)
    at, n = planner.slots(of_place(place))
    ticks = planner.node(c.JOIN, target, RELATION=c.ANY, TIMELESS=1, LIFE_LEFT=c.FOREVER, LIFE_RIGHT=0, KEY_AT=at, KEY_N=n)
    timeless = planner.node(c.PASS, (ticks, c.LEFT), FILTER=c.TIMELESS_ONLY)
    planner.targets(split, [(timed, c.LEFT), (timeless, c.LEFT), (_lasting(planner, place, target), c.LEFT)])
    planner.pattern(pattern.pattern, (split, c.LEFT), span)
    once = planner.move((ticks, c.RIGHT), [(hidden, hidden)], once=True)
    if planner.scope(pattern.pattern).timeless:
        read(planner, place, parts_of(ANY_TRIPLE), (c.NONE,) * 3, (once, c.LEFT), sent=True)
    else:
        planner.assign(split, EDGE_N=1)


def _lasting(planner: "Planner", place: a.Place, target: "Target") -> int:
    """Plan where timeless solutions go: those that lie in a graph of the background stay what they are."""
    assert place.graph is not None
    at, n = planner.slots([place.graph])
    join = planner.node(c.JOIN, target, RELATION=c.ANY, TIMELESS=1, LIFE_LEFT=c.FOREVER, LIFE_RIGHT=c.FOREVER, KEY_AT=at, KEY_N=n)
    planner.fragment.facts.append(_graphs(planner, place, (join, c.RIGHT), planner.column(place.graph)))
    return planner.node(c.PASS, (join, c.LEFT), FILTER=c.TIMELESS_ONLY)
