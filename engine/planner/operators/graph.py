"""This module plans GRAPH, VALUES and the group without patterns: what has solutions without a triple that matches;
and UNION, which forgets graphs.
"""

from engine.kernel.state import layout as c
from engine.pattern_scope import ANY_TRIPLE, find_place_variables, sort_by_name
from engine.physical_plan.plan import Node, fact
from engine.planner.builder.correlation import alternatives
from engine.planner.builder.plan_builder import Conditions, PlanBuilder, Target
from engine.planner.builder.scans import NO_COLUMNS, add_scans, graph_rows, parts_of
from engine.rewrite.rename_hidden import find_variables
from epsparql import algebra as a
from epsparql.terms import XSD, Literal, Variable
from epsparql.trees import walk_nodes


def plan_empty_group(builder: PlanBuilder, place: a.Place, target: Target) -> None:
    """Plan the solution of a group without triple patterns; under GRAPH there is one for each graph, from its first
    instant.
    """
    if place.graph is None:
        builder.fragment.facts.append(fact(*target, False, {}))
        return
    key = builder.add_slots([place.graph])
    column = builder.column(place.graph)
    once = builder.add_move(target, [(column, column)], once=True), c.LEFT  # a stream's graphs stay, those of the background may go
    first = builder.add_node(Node(c.FIRST, key=key, life_left=c.FOREVER), once)
    add_scans(builder, place, parts_of(ANY_TRIPLE), NO_COLUMNS, (first, c.LEFT), sent=True)
    builder.fragment.facts.append(graph_rows(builder, place, once, column))


def plan_values(builder: PlanBuilder, pattern: a.Values, target: Target) -> None:
    """Plan timeless rows; a hidden number tells them apart."""
    number = builder.column(builder.add_variable("row"))
    for k, row in enumerate(pattern.rows):
        cells = {builder.column(v): builder.names.term(str(t)) for v, t in zip(pattern.variables, row, strict=True) if t is not None}
        cells[number] = builder.names.term(str(Literal(str(k), XSD + "integer")))
        builder.fragment.facts.append(fact(*target, False, cells))


def plan_graph(builder: PlanBuilder, pattern: a.Graph, target: Target, span: int) -> None:
    """Plan GRAPH: the hidden graph meets its name, and timeless solutions take the intervals of an event graph's
    occurrences.

    The nodes are the same whatever the background holds, which may change under them; they are only reached while
    there may be timeless solutions.
    """
    place = pattern.place
    assert place.graph is not None
    hidden = builder.column(place.graph)
    if isinstance(pattern.name, Variable):
        target = builder.add_move(target, [(hidden, builder.column(pattern.name))], keep=True), c.LEFT
    split = builder.add_node(Node(c.PASS))
    timed = builder.add_node(Node(c.PASS, filter=c.TIMED_ONLY), target)
    key = builder.add_slots(find_place_variables(place))
    ticks = builder.add_node(Node(c.JOIN, c.ANY, key=key, life_left=c.FOREVER, timeless=1), target)
    timeless = builder.add_node(Node(c.PASS, filter=c.TIMELESS_ONLY), (ticks, c.LEFT))
    builder.set_targets(split, [(timed, c.LEFT), (timeless, c.LEFT), (_plan_lasting(builder, place, target), c.LEFT)])
    builder.plan_pattern(pattern.pattern, (split, c.LEFT), span)
    once = builder.add_move((ticks, c.RIGHT), [(hidden, hidden)], once=True)
    if builder.scope(pattern.pattern).timeless:
        add_scans(builder, place, parts_of(ANY_TRIPLE), NO_COLUMNS, (once, c.LEFT), sent=True)
    else:
        builder.limit_targets(split, 1)


def _plan_lasting(builder: PlanBuilder, place: a.Place, target: Target) -> int:
    """Plan where timeless solutions go: those that lie in a graph of the background stay what they are."""
    assert place.graph is not None
    key = builder.add_slots([place.graph])
    join = builder.add_node(Node(c.JOIN, c.ANY, key=key, life_left=c.FOREVER, life_right=c.FOREVER, timeless=1), target)
    builder.fragment.facts.append(graph_rows(builder, place, (join, c.RIGHT), builder.column(place.graph)))
    return builder.add_node(Node(c.PASS, filter=c.TIMELESS_ONLY), (join, c.LEFT))


def plan_union(builder: PlanBuilder, pattern: a.Union, target: Target, span: int, wanted: Conditions) -> None:
    """Plan UNION. The hidden graph of a GRAPH goes no further than its operand, because it would tell equal solutions
    of two operands apart.

    Elsewhere it tells none apart: there it follows from the other columns, or all solutions have the same.
    """
    for operand in alternatives(pattern):
        graphs = {node.place.graph for node in walk_nodes(operand) if isinstance(node, a.Graph)}
        if not graphs:
            builder.plan_pattern(operand, target, span, wanted)
            continue
        before = set(builder.fragment.columns)
        forget = builder.add_move(target, [])
        builder.plan_pattern(operand, (forget, c.LEFT), span, wanted)
        kept = (find_variables(operand) | set(builder.fragment.columns) - before) - graphs
        builder.set_moves(forget, [(column, column) for column in map(builder.column, sort_by_name(kept))])
