"""This module plans SEQ, AND, these two with WITHOUT, and the interval relations under a consumption policy
(semantics.md section 9).

A policy chooses among all goals of an operator, so what is asked of the joined solution is asked after the choice.
Only under `recent` what is asked of the right goal alone may come before it, because no right goal takes anything
from another. Those of an AND replace each other.
"""

from engine.kernel.state import layout as c
from engine.pattern_scope import Policed, Scope
from engine.physical_plan.plan import Node
from engine.planner.builder.plan_builder import Conditions, PlanBuilder, Target
from engine.planner.builder.predicate_pushdown import split_conditions
from engine.planner.builder.temporal_relations import find_pair_lives, looks_back, relation_of
from engine.planner.operators.without import absent_span, blocking_life
from engine.rewrite.rename_hidden import restore_name
from epsparql import algebra as a
from epsparql.solutions.policies import RECENT_LONGEST, find_deciding_variable, is_recent


def plan_under_policy(builder: PlanBuilder, pattern: Policed, target: Target, span: int, wanted: Conditions) -> None:
    """Plan one of the operators that a policy acts on."""
    relation, span, policy = policed_relation(pattern), policed_span(pattern, span), builder.options.policy
    x, y = builder.scope(pattern.left), builder.scope(pattern.right)
    timeless = x.timeless or y.timeless
    left, right = lives_of(policy, relation, span, timeless=timeless)
    condition = builder.compile_conditions(wanted)
    key, rest = builder.key_columns(x, y)
    kind = c.RECENT if is_recent(policy) else c.CHRONOLOGICAL
    node = Node(kind, relation, span, key, rest, condition, left, right, c.NEVER, timeless)
    _set_choice(builder, node, x.joined(y) if relation == c.ANY else x)
    number = builder.add_node(node, target)
    if looks_back(relation) and not y.timeless:
        builder.fragment.strict |= {(number, c.LEFT), (number, c.BLOCKER)}
    if isinstance(pattern, a.SeqWithout | a.JoinWithout):
        z = builder.scope(pattern.absent)
        starting = x if relation == c.SEQ else x.joined(y)
        node.timeless, node.life_blocker = timeless or z.timeless, blocking_life(starting, span, expires=builder.options.expires)
        node.key2, node.rest2 = builder.key_columns(x.joined(y), z)
        builder.plan_pattern(pattern.absent, (number, c.BLOCKER), absent_span(node.life_blocker, span))
    builder.plan_pattern(pattern.left, (number, c.LEFT))
    if is_recent(policy) and relation != c.ANY:
        builder.plan_pattern(pattern.right, (number, c.RIGHT), span, split_conditions(wanted, frozenset(), y.certain)[1])
    else:
        builder.plan_pattern(pattern.right, (number, c.RIGHT))


def _set_choice(builder: PlanBuilder, node: Node, chosen: Scope) -> None:
    """Say which goal is the latest of several that end together."""
    policy = builder.options.policy
    name = find_deciding_variable(policy)
    variable = None if name is None else next((v for v in chosen.possible if restore_name(v) == name), None)
    if policy == RECENT_LONGEST:
        node.keep = c.LONGEST
    elif variable is not None:
        node.keep, node.column = c.GREATEST, builder.column(variable)


def policed_relation(pattern: Policed) -> int:
    """Return the relation of the solutions that a policy lets an operator join."""
    match pattern:
        case a.SeqWithout():
            return c.SEQ
        case a.JoinWithout():
            return c.ANY
        case _:
            return relation_of(pattern)


def policed_span(pattern: Policed, span: int) -> int:
    """Return how long the solutions of an operator may last, if at most `span` is asked of it."""
    return min(span, pattern.within) if isinstance(pattern, a.SeqWithout | a.JoinWithout) and pattern.within is not None else span


def lives_of(policy: str, relation: int, span: int, *, timeless: bool) -> tuple[int, int]:
    """Return how long goals are kept.

    Goals of `chronological` are kept until they are consumed, because a goal that is gone takes no right goal from a
    later one.

    A timeless left goal may come later in its instant than right ones, which so must be there where one can come.
    """
    longest = span if is_recent(policy) else c.FOREVER
    left, right = (min(life, longest) for life in find_pair_lives(relation))
    return left, max(right, 0) if timeless else right
