"""This module plans the undecided sides of nodes that decide on absence: the solutions that decided ones are held
against.

If the background has many matches for a group of triple patterns, they are looked up for each solution that is
decided (docs/decisions/0017-knowledge-looked-up.md). So only what takes a triple of a stream is kept, and that looks
up the rest of the group.
"""

from collections.abc import Sequence
from functools import partial
from itertools import accumulate

from engine.kernel.state import layout as c
from engine.pattern_scope import Scope, Variables
from engine.physical_plan.plan import Node, Unit
from engine.planner.builder.join_nodes import add_join
from engine.planner.builder.join_order import order_triples, variables_of
from engine.planner.builder.local_subjects import note_star
from engine.planner.builder.plan_builder import PlanBuilder, Target
from engine.planner.builder.scans import add_lookup, add_triples, is_deep
from epsparql import algebra as a


def plan_undecided(builder: PlanBuilder, pattern: a.Pattern, target: Target, decided: Scope, span: int = c.FOREVER) -> None:
    """Plan `pattern` so that its solutions count at the side `target` of a node that decides on solutions with the
    scope `decided`.

    The FINDs come behind all other nodes. They keep nothing, and what others keep stays in its place
    (docs/decisions/0015-snapshots-in-names.md).
    """
    match pattern:
        case a.Bgp(patterns, place) if 0 < len(patterns) <= c.MOST_FINDS:
            deep = any(is_deep(builder, triple, place) for triple in patterns)
            ordered = order_triples(patterns, builder.options.order)
            builder.postponed.append(partial(_plan_finds, builder, target[0], ordered, decided.certain, place, deep))
            _plan_with_stream(builder, ordered, place, target, span, deep)
        case _:
            builder.plan_pattern(pattern, target, span)


def _plan_finds(builder: PlanBuilder, node: int, patterns: Sequence[a.TriplePattern], bound: Variables, place: a.Place, deep: bool) -> None:
    """Let a node look up triple patterns for the solutions that it decides, which bind these variables."""
    builder.node(node).look_via, _ = _plan_lookups(builder, c.FIND, patterns, bound, place, (node, c.EMIT), deep)


def _plan_with_stream(builder: PlanBuilder, ordered: Sequence[a.TriplePattern], place: a.Place, target: Target, span: int, deep: bool) -> None:
    """Plan the solutions of a group that take a triple of a stream, and all others too where the background has little.

    The last of its patterns that a stream's triple matches joins what streams have brought for those before it, or
    looks them up. The patterns behind it are looked up. So each choice of patterns for the stream's triples is made
    once.
    """
    alone = [builder.scope(a.Bgp((triple,), place)) for triple in ordered]
    before = list(accumulate(alone, Scope.joined))
    first, joins = len(builder.fragment.nodes), list[int]()
    leaves: list[tuple[Target, Target]] = []
    for k in range(len(ordered) - 1, 0, -1):
        node, _, _ = add_join(builder, before[k - 1], alone[k], c.ANY, target, span, ())
        note_star(builder, node, a.Bgp(tuple(ordered[: k + 1]), place))
        add_lookup(builder, node, ordered[k], place, deep)
        rest = _plan_lookups(builder, c.JOIN, ordered[:k], alone[k].certain, place, (node, c.EMIT), deep)
        entry = builder.add_node(Node(c.PASS, span=span))
        builder.set_targets(entry, [(node, c.RIGHT), rest])
        if not deep:
            builder.limit_targets(entry, 1)
        add_triples(builder, ordered[k], place, (entry, c.LEFT), copied=not deep)
        joins.append(node)
        leaves.append(((node, c.RIGHT), (entry, c.LEFT)))
        target = node, c.LEFT
    add_triples(builder, ordered[0], place, target, copied=not deep)
    if len(joins) > 1:
        inner = tuple((node, c.LEFT) for node in joins[:-1])
        builder.fragment.units.append(Unit(joins[0], range(first, len(builder.fragment.nodes)), (*leaves, (target, target)), inner))


def _plan_lookups(
    builder: PlanBuilder, kind: int, patterns: Sequence[a.TriplePattern], bound: Variables, place: a.Place, target: Target, deep: bool
) -> Target:
    """Return where solutions that bind these variables enter, to look up one pattern after the other.

    Each pattern shares a variable with what is known where that can be, and the pattern of which least is unknown
    comes first.
    """
    rest, chosen = list(patterns), list[tuple[a.TriplePattern, Variables]]()
    while rest:
        unknown = [len(variables_of(triple) - bound) for triple in rest]
        known = [bool(variables_of(triple) & bound) or not unknown[k] for k, triple in enumerate(rest)]
        following = rest[max(range(len(rest)), key=lambda k: (known[k], -unknown[k]))]
        rest.remove(following)
        chosen.append((following, bound))
        bound |= builder.scope(a.Bgp((following,), place)).certain
    for triple, before in reversed(chosen):
        key = builder.add_slots(builder.scope(a.Bgp((triple,), place)).certain & before)
        node = builder.add_node(Node(kind, c.ANY, key=key, life_left=c.NEVER, life_right=c.NEVER, timeless=1), target)
        add_lookup(builder, node, triple, place, deep)
        target = node, c.LEFT
    return target
