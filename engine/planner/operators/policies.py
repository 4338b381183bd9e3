"""This module plans SEQ, SEQ ... WITHOUT and the interval relations under a consumption policy (semantics.md section
9).

A policy chooses among all goals of an operator, so what is asked of the joined solution is asked after the choice.
Only under `recent` what is asked of the right goal alone may come before it, because no right goal takes anything
from another.
"""

from engine.kernel.state import layout as c
from engine.messages import RECENT
from engine.physical_plan.plan import Node
from engine.planner.builder.plan_builder import Conditions, PlanBuilder, Target
from engine.planner.builder.predicate_pushdown import split_conditions
from engine.planner.builder.temporal_relations import find_pair_lives, looks_back, relation_of
from engine.planner.operators.without import absent_span, blocking_life
from epsparql import algebra as a


def plan_under_policy(
    builder: PlanBuilder, pattern: a.SeqJoin | a.RelationJoin | a.SeqWithout, target: Target, span: int, wanted: Conditions
) -> None:
    """Plan one of the operators that a policy acts on."""
    absent = pattern.absent if isinstance(pattern, a.SeqWithout) else None
    relation = c.SEQ if isinstance(pattern, a.SeqWithout) else relation_of(pattern)
    if isinstance(pattern, a.SeqWithout) and pattern.within is not None:
        span = min(span, pattern.within)
    policy, x, y = builder.options.policy, builder.scope(pattern.left), builder.scope(pattern.right)
    timeless = x.timeless or y.timeless
    left, right = lives_of(policy, relation, span, timeless=timeless)
    condition = builder.compile_conditions(wanted)
    key, rest = builder.key_columns(x, y)
    kind = c.RECENT if policy == RECENT else c.CHRONOLOGICAL
    node = Node(kind, relation, span, key, rest, condition, left, right, c.NEVER, timeless)
    number = builder.add_node(node, target)
    if looks_back(relation) and not y.timeless:
        builder.fragment.strict |= {(number, c.LEFT), (number, c.BLOCKER)}
    if absent is not None:
        z = builder.scope(absent)
        node.timeless, node.life_blocker = timeless or z.timeless, blocking_life(x, span, expires=builder.options.expires)
        node.key2, node.rest2 = builder.key_columns(x.joined(y), z)
        builder.plan_pattern(absent, (number, c.BLOCKER), absent_span(node.life_blocker, span))
    builder.plan_pattern(pattern.left, (number, c.LEFT))
    if policy == RECENT:
        builder.plan_pattern(pattern.right, (number, c.RIGHT), span, split_conditions(wanted, frozenset(), y.certain)[1])
    else:
        builder.plan_pattern(pattern.right, (number, c.RIGHT))


def lives_of(policy: str, relation: int, span: int, *, timeless: bool) -> tuple[int, int]:
    """Return how long goals are kept.

    Goals of `chronological` are kept until they are consumed, because a goal that is gone takes no right goal from a
    later one.

    A timeless left goal may come later in its instant than right ones, which so must be there where one can come.
    """
    longest = span if policy == RECENT else c.FOREVER
    left, right = (min(life, longest) for life in find_pair_lives(relation))
    return left, max(right, 0) if timeless else right
