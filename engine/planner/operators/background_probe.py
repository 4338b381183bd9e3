"""This module plans the undecided sides of nodes that decide on absence: the solutions that decided ones are held against.

If the background has much for a group of triple patterns, what the group matches of it alone is looked up for each solution that is decided
(docs/decisions/0017-knowledge-looked-up.md). So only what takes a triple of a stream is kept, and that looks up the rest of the group.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from engine.kernel.state import layout as c
from engine.physical_plan.plan import Unit
from engine.planner.operators import join_order, joins, triple_patterns
from engine.scope import Scope, Variables
from epsparql import algebra as a

if TYPE_CHECKING:
    from engine.planner.planner import Planner, Target


@dataclass(frozen=True, slots=True)
class Finds:
    """Says which triple patterns a node is to look up for solutions that bind these variables."""

    node: int
    patterns: Sequence[a.TriplePattern]
    bound: Variables
    place: a.Place
    deep: bool


def plan_beside(planner: "Planner") -> None:
    """Plan the FINDs behind all other nodes.

    They keep nothing, and what others keep stays in its place (docs/decisions/0015-snapshots-in-names.md).
    """
    for finds in planner.beside:
        first, _ = _looked_up(planner, c.FIND, finds.patterns, finds.bound, finds.place, (finds.node, c.EMIT), finds.deep)
        planner.assign(finds.node, LOOK_VIA=first)


def side(planner: "Planner", pattern: a.Pattern, target: "Target", decided: Scope, span: int = c.FOREVER) -> None:
    """Plan `pattern` so that its solutions count at the side `target` of a node that decides on solutions with the scope `decided`."""
    match pattern:
        case a.Bgp(patterns, place) if 0 < len(patterns) <= c.MOST_FINDS:
            deep = any(len(planner.names.facts(triple, place)) > triple_patterns.FEW for triple in patterns)
            ordered = join_order.in_order(patterns, planner.names.order)
            planner.beside.append(Finds(target[0], ordered, decided.certain, place, deep))
            _with_a_stream(planner, ordered, place, target, span, deep)
        case _:
            planner.pattern(pattern, target, span)


def _with_a_stream(planner: "Planner", ordered: Sequence[a.TriplePattern], place: a.Place, target: "Target", span: int, deep: bool) -> None:
    """Plan the solutions of a group that take a triple of a stream, and all others too where the background has little.

    The last of its patterns that a stream's triple matches joins what streams have brought for those before it, or looks them up. The patterns behind
    it are looked up. So each choice of patterns for the stream's triples is made once.
    """
    alone = [planner.scope(a.Bgp((triple,), place)) for triple in ordered]
    before = list(accumulate(alone, Scope.joined))
    first, made = len(planner.fragment.nodes), list[int]()
    leaves: list[tuple[Target, Target]] = []
    for k in range(len(ordered) - 1, 0, -1):
        node, _, _ = joins.join_node(planner, before[k - 1], alone[k], c.ANY, target, span, ())
        triple_patterns.look_up(planner, node, c.NONE, ordered[k], place, deep)
        rest = _looked_up(planner, c.JOIN, ordered[:k], alone[k].certain, place, (node, c.EMIT), deep)
        entry = planner.node(c.PASS, None, SPAN=span)
        planner.targets(entry, [(node, c.RIGHT), rest])
        if not deep:
            planner.assign(entry, EDGE_N=1)
        triple_patterns.scan(planner, ordered[k], place, (entry, c.LEFT), copied=not deep)
        made.append(node)
        leaves.append(((node, c.RIGHT), (entry, c.LEFT)))
        target = node, c.LEFT
    triple_patterns.scan(planner, ordered[0], place, target, copied=not deep)
    if len(made) > 1:
        inner = tuple((node, c.LEFT) for node in made[:-1])
        planner.fragment.units.append(Unit(made[0], range(first, len(planner.fragment.nodes)), (*leaves, (target, target)), inner))


def _looked_up(
    planner: "Planner", kind: int, patterns: Sequence[a.TriplePattern], bound: Variables, place: a.Place, target: "Target", deep: bool
) -> "Target":
    """Return where solutions that bind these variables enter, to look up one pattern after the other.

    Each pattern shares a variable with what is known where that can be, and the pattern of which least is unknown comes first.
    """
    rest, chosen = list(patterns), list[tuple[a.TriplePattern, Variables]]()
    while rest:
        unknown = [len(join_order.variables_of(triple) - bound) for triple in rest]
        known = [bool(join_order.variables_of(triple) & bound) or not unknown[k] for k, triple in enumerate(rest)]
        following = rest[max(range(len(rest)), key=lambda k: (known[k], -unknown[k]))]
        rest.remove(following)
        chosen.append((following, bound))
        bound |= planner.scope(a.Bgp((following,), place)).certain
    for triple, before in reversed(chosen):
        key_at, key_n = planner.slots(planner.scope(a.Bgp((triple,), place)).certain & before)
        node = planner.node(kind, target, RELATION=c.ANY, TIMELESS=1, LIFE_LEFT=c.NEVER, LIFE_RIGHT=c.NEVER, KEY_AT=key_at, KEY_N=key_n)
        triple_patterns.look_up(planner, node, c.NONE, triple, place, deep)
        target = node, c.LEFT
    return target
