"""This module adds the node of a positive join, and says how long its two sides wait for each other."""

from typing import NamedTuple

from engine.kernel.state import layout as c
from engine.pattern_scope import Scope
from engine.physical_plan.plan import Node
from engine.planner.builder.plan_builder import Conditions, PlanBuilder, Target
from engine.planner.builder.predicate_pushdown import compile_join_filter, split_conditions
from engine.planner.builder.temporal_relations import find_pair_lives, looks_back


class PlacedJoin(NamedTuple):
    """Names the node of a join, and the conditions that its left and right side are to satisfy."""

    node: int
    to_left: Conditions
    to_right: Conditions


def add_join(builder: PlanBuilder, x: Scope, y: Scope, relation: int, target: Target, span: int, wanted: Conditions) -> PlacedJoin:
    """Add a join of what has these scopes."""
    # what BIND or OPTIONAL may leave unbound is decided below too, where the other side cannot bind it
    to_left, to_right, own = split_conditions(wanted, x.certain | (x.possible - y.possible), y.certain | (y.possible - x.possible))
    left, right = lives_of(relation, x, y, span)
    condition = compile_join_filter(builder, own, span)
    key, rest = builder.key_columns(x, y)
    timeless = x.timeless or y.timeless
    number = builder.add_node(Node(c.JOIN, relation, span, key, rest, condition, left, right, timeless=timeless, gate=builder.gate), target)
    if looks_back(relation) and not y.timeless:
        builder.fragment.strict.add((number, c.LEFT))
    return PlacedJoin(number, to_left, to_right)


def lives_of(relation: int, x: Scope, y: Scope, span: int) -> tuple[int, int]:
    """Return how long goals of the left and right side live (µs).

    What has no time is there from the first instant on, so nothing need wait for it.
    """
    lives = find_pair_lives(relation, span, (x.longest, y.longest))
    left, right = (max(life, 0) for life in lives) if x.timeless or y.timeless else lives
    return min(left, c.FOREVER if y.timed else 0), min(right, c.FOREVER if x.timed else 0)


def shorten_lives(node: Node, lives: tuple[int, int]) -> None:
    """Let goals of a join live no longer than conditions on time let them find a partner."""
    left, right = (max(life, 0) for life in lives) if node.timeless else lives
    node.life_left, node.life_right = min(node.life_left, left), min(node.life_right, right)
