"""This module adds the node of a positive join, and says how long its two sides wait for each other."""

from typing import NamedTuple

from engine.kernel.state import layout as c
from engine.pattern_scope import Scope
from engine.physical_plan.plan import Node
from engine.planner.builder.plan_builder import Conditions, PlanBuilder, Target
from engine.planner.builder.predicate_pushdown import compile_join_filter, split_conditions

WINDOW = None
LIVES: dict[int, tuple[int | None, int | None]] = {
    # how long goals of the left and right side live, given that input comes in order of end: WINDOW, 0 this instant, NEVER not stored
    c.ANY: (WINDOW, WINDOW),
    c.SEQ: (WINDOW, c.NEVER),
    c.EQUALS: (0, 0),
    c.MEETS: (WINDOW, 0),
    c.DURING: (WINDOW, c.NEVER),
    c.STARTS: (WINDOW, c.NEVER),
    c.FINISHES: (0, 0),
    c.OVERLAPS: (WINDOW, c.NEVER),
    c.PAR: (WINDOW, WINDOW),
}
SHARES_TIME = {c.MEETS: (True, False), c.DURING: (True, False), c.STARTS: (True, False), c.OVERLAPS: (True, False), c.PAR: (True, True)}
"""For these relations a goal of the left, or right, side ends no earlier than its partner starts.

So it waits as long as a partner may last.
"""
LOOKS_BACK = frozenset({c.SEQ, c.DURING, c.STARTS, c.OVERLAPS})
"""The left operand of these relations ends strictly before the right one."""


class PlacedJoin(NamedTuple):
    """Names the node of a join, and the conditions that its left and right side are to satisfy."""

    node: int
    to_left: Conditions
    to_right: Conditions


def add_join(builder: PlanBuilder, x: Scope, y: Scope, relation: int, target: Target, span: int, wanted: Conditions) -> PlacedJoin:
    """Add a join of what has these scopes."""
    to_left, to_right, own = split_conditions(wanted, x.certain, y.certain)
    left, right = lives_of(relation, x, y, span)
    condition = compile_join_filter(builder, own, span)
    key, rest = builder.key_columns(x, y)
    timeless = x.timeless or y.timeless
    number = builder.add_node(Node(c.JOIN, relation, span, key, rest, condition, left, right, timeless=timeless, gate=builder.gate), target)
    if relation in LOOKS_BACK and not y.timeless:
        builder.fragment.strict.add((number, c.LEFT))
    return PlacedJoin(number, to_left, to_right)


def lives_of(relation: int, x: Scope, y: Scope, span: int) -> tuple[int, int]:
    """Return how long goals of the left and right side live (µs).

    What has no time is there from the first instant on, so nothing need wait for it.
    """
    timeless = x.timeless or y.timeless
    lasts = (other if waits else c.FOREVER for other, waits in zip((y.longest, x.longest), SHARES_TIME.get(relation, (False, False)), strict=True))
    left, right = (
        min(span, last) if life is WINDOW else max(life, 0) if timeless else life for life, last in zip(LIVES[relation], lasts, strict=True)
    )
    return min(left, c.FOREVER if y.timed else 0), min(right, c.FOREVER if x.timed else 0)
