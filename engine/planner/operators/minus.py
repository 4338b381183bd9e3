"""This module plans MINUS: a solution is taken away if another one agrees with it and shares a variable with it."""

from engine.kernel.state import layout as c
from engine.pattern_scope import Variables
from engine.physical_plan.plan import Node
from engine.planner.builder.background_probe import plan_undecided
from engine.planner.builder.local_subjects import note_subject
from engine.planner.builder.plan_builder import Conditions, PlanBuilder, Target
from engine.rewrite.rename_hidden import is_seen
from epsparql import algebra as a


def visible(variables: Variables) -> Variables:
    return frozenset(v for v in variables if is_seen(v))


def plan_minus(builder: PlanBuilder, pattern: a.Minus, target: Target, span: int, wanted: Conditions) -> None:
    """Plan MINUS. Solutions are taken away only by those that share a variable with them; hidden variables do not
    count.

    Inside EXISTS nor do those that the outer solution has put a term in place of.
    """
    x, y = builder.scope(pattern.left), builder.scope(pattern.right)
    if visible(x.possible & y.possible) - builder.outer:
        shared = bool(visible(x.certain & y.certain) - builder.outer)
        key, rest = builder.key_columns(x, y)
        timeless = x.timeless or y.timeless
        node = builder.add_node(
            Node(c.MINUS, key=key, rest=rest, life_left=c.NEVER, life_right=c.FOREVER, timeless=timeless, by_right=shared), target
        )
        if shared:
            note_subject(builder, node, pattern.left, pattern.right)
            plan_undecided(builder, pattern.right, (node, c.RIGHT), x)
        else:
            builder.plan_pattern(pattern.right, (node, c.RIGHT))
        target = node, c.LEFT
        builder.fragment.deciding[target] = x.timeless
    builder.plan_pattern(pattern.left, target, span, wanted)
