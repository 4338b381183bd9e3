"""Plans of triple patterns, VALUES and GRAPH: what starts rows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.kernel import columns as c
from engine.planning import joins, shapes
from engine.program import Fact
from engine.rewrite.places import BACKGROUND
from engine.scans import AS_SENT
from engine.scope import ANY_TRIPLE, of_place
from epsparql import algebra as a
from epsparql.terms import XSD, Iri, Literal, TermOrVariable, Variable

if TYPE_CHECKING:
    from engine.planning.planner import Planner, Target


def bgp(planner: "Planner", pattern: a.Bgp, target: "Target", span: int, wanted: Sequence[a.Expression]) -> None:
    ordered = shapes.in_order(pattern.triples, planner.names.rates)
    if not ordered:
        empty(planner, pattern.place, planner.after(target, c.FOREVER, wanted))
        return
    alone = [planner.scope(a.Bgp((triple,), pattern.place)) for triple in ordered]
    before = [alone[0]]
    for scope in alone[1:-1]:
        before.append(before[-1].joined(scope))
    for k in range(len(ordered) - 1, 0, -1):  # a loop, because a group may have a thousand patterns
        node, wanted, other = joins.join_node(planner, before[k - 1], alone[k], c.ANY, target, span, wanted)
        scan(planner, ordered[k], pattern.place, planner.after((node, c.RIGHT), c.FOREVER, other))
        target = node, c.LEFT
    scan(planner, ordered[0], pattern.place, planner.after(target, c.FOREVER, wanted))


def streams_of(planner: "Planner", place: a.Place) -> tuple[str, ...]:
    if place.window is not None:
        return () if place.window == BACKGROUND else (place.window,)
    return tuple(dict.fromkeys(planner.query.streams))


def graphs_of(planner: "Planner", place: a.Place) -> list[int]:
    """What A_GRAPH of the scans is: one scan for each graph that is named."""
    if place.among is None:
        return [c.NONE if place.graph is None else c.NAMED]
    return [planner.names.term(str(Iri(name))) if name else c.UNBOUND for name in dict.fromkeys(place.among)]


def read(
    planner: "Planner", place: a.Place, sought: Sequence[TermOrVariable], columns: Sequence[int], target: "Target", *, sent: bool = False
) -> None:
    """Scans of all streams and graphs of a place for the triple pattern `sought`, or only for what was `sent` there and not what that entails.

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


def scan(planner: "Planner", triple: a.TriplePattern, place: a.Place, target: "Target") -> None:
    parts = parts_of(triple)
    read(planner, place, parts, [planner.column(t) if isinstance(t, Variable) else c.NONE for t in parts], target)
    for fact in planner.names.own(triple, place):
        cells = {planner.column(part): planner.names.term(str(term)) for part, term in zip(parts, fact, strict=False) if isinstance(part, Variable)}
        if place.graph is not None:
            cells[planner.column(place.graph)] = planner.names.term(str(fact[3]))
        planner.fragment.facts.append(Fact(*target, True, cells))


def empty(planner: "Planner", place: a.Place, target: "Target") -> None:
    """The solution of a group without triple patterns; under GRAPH one for each graph, from its first instant."""
    if place.graph is None:
        planner.fragment.facts.append(Fact(*target, False, {}))
        return
    at, n = planner.slots([place.graph])
    first = planner.node(c.FIRST, target, KEY_AT=at, KEY_N=n, LIFE_LEFT=c.FOREVER)
    read(planner, place, parts_of(ANY_TRIPLE), (c.NONE,) * 3, (first, c.LEFT), sent=True)
    column = planner.column(place.graph)
    for name in sorted({str(fact[3]) for fact in planner.names.own(ANY_TRIPLE, place)}):
        planner.fragment.facts.append(Fact(first, c.LEFT, True, {column: planner.names.term(name)}))


def values(planner: "Planner", pattern: a.Values, target: "Target") -> None:
    """Timeless rows; a hidden number tells them apart."""
    number = planner.column(planner.fresh("row"))
    for k, row in enumerate(pattern.rows):
        cells = {planner.column(v): planner.names.term(str(t)) for v, t in zip(pattern.variables, row, strict=True) if t is not None}
        cells[number] = planner.names.term(str(Literal(str(k), XSD + "integer")))
        planner.fragment.facts.append(Fact(*target, False, cells))


def graph(planner: "Planner", pattern: a.Graph, target: "Target", span: int) -> None:
    """GRAPH: the hidden graph meets its name, and timeless solutions take the intervals of an event graph's occurrences.

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
    """Where timeless solutions go: those that lie in a graph of the background stay what they are."""
    assert place.graph is not None
    at, n = planner.slots([place.graph])
    join = planner.node(c.JOIN, target, RELATION=c.ANY, TIMELESS=1, LIFE_LEFT=c.FOREVER, LIFE_RIGHT=c.FOREVER, KEY_AT=at, KEY_N=n)
    for name in sorted({str(fact[3]) for fact in planner.names.facts(ANY_TRIPLE, place)}):
        planner.fragment.facts.append(Fact(join, c.RIGHT, True, {planner.column(place.graph): planner.names.term(name)}))
    return planner.node(c.PASS, (join, c.LEFT), FILTER=c.TIMELESS_ONLY)
