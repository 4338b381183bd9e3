"""This module plans a group of triple patterns: a chain of joins of scans, each of which may look up the background."""

from engine.kernel.state import layout as c
from engine.physical_plan.plan import Unit
from engine.planner.builder.join_nodes import add_join, shorten_lives
from engine.planner.builder.join_order import order_triples
from engine.planner.builder.local_subjects import note_star
from engine.planner.builder.plan_builder import Conditions, PlanBuilder, Target
from engine.planner.builder.scans import add_lookup, add_triples, is_deep
from engine.planner.operators.graph import plan_empty_group
from epsparql import algebra as a


def plan_triples(builder: PlanBuilder, pattern: a.Bgp, target: Target, span: int, wanted: Conditions) -> None:
    ordered = order_triples(pattern.triples, builder.options.order)
    if not ordered:
        plan_empty_group(builder, pattern.place, builder.enforce(target, c.FOREVER, wanted))
        return
    alone = [builder.scope(a.Bgp((triple,), pattern.place)) for triple in ordered]
    before = [alone[0]]
    for scope in alone[1:-1]:
        before.append(before[-1].joined(scope))
    joins, first, longest = list[int](), len(builder.fragment.nodes), builder.network.find_longest(pattern)
    for k in range(len(ordered) - 1, 0, -1):  # a loop, because a group may have a thousand patterns
        node, wanted, to_right = add_join(builder, before[k - 1], alone[k], c.ANY, target, span, wanted)
        shorten_lives(builder.node(node), (longest, longest))
        note_star(builder, node, a.Bgp(tuple(ordered[: k + 1]), pattern.place))
        _plan_looked_up(builder, node, ordered[k], pattern.place, to_right)
        target = node, c.LEFT
        joins.append(node)
    add_triples(builder, ordered[0], pattern.place, builder.enforce(target, c.FOREVER, wanted))
    if len(joins) > 1:
        builder.fragment.units.append(_unit_of(joins, range(first, len(builder.fragment.nodes))))


def _plan_looked_up(builder: PlanBuilder, node: int, triple: a.TriplePattern, place: a.Place, wanted: Conditions) -> None:
    """Plan a scan at the right side of a join. If the background has much for it, solutions of the left side look
    that up; else it is copied.

    A plan's tables are the same either way.
    """
    via = builder.enforce((node, c.EMIT), c.FOREVER, wanted)[0] if wanted else c.NONE
    target = builder.enforce((node, c.RIGHT), c.FOREVER, wanted)
    deep = is_deep(builder, triple, place)
    add_lookup(builder, node, triple, place, deep, via=via)
    add_triples(builder, triple, place, target, copied=not deep)


def _unit_of(joins: list[int], nodes: range) -> Unit:
    leaves = [(node, c.RIGHT) for node in joins[1:]] + [(joins[-1], c.LEFT)]
    return Unit(joins[0], nodes, tuple((leaf, leaf) for leaf in leaves), tuple((node, c.LEFT) for node in joins[:-1]))
