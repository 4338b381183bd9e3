"""This module plans WITHOUT in its three forms: SEQ ... WITHOUT, AND ... WITHOUT and WITHOUT ... FOR."""

from engine.kernel.state import layout as c
from engine.pattern_scope import Scope, looks_at_time
from engine.physical_plan.plan import Node
from engine.planner.builder.join_nodes import shorten_lives
from engine.planner.builder.plan_builder import Conditions, PlanBuilder, Target
from engine.planner.builder.predicate_pushdown import compile_join_filter, split_conditions
from epsparql import algebra as a

LIFTED = c.FOREVER - 1
"""This span without bound stands in the place of a window."""


def blocking_life(x: Scope, span: int, *, expires: bool = True) -> int:
    """Return how long a goal of what is absent lives: it lies inside the joined interval only where x has an end."""
    return span if expires and not x.timeless else c.FOREVER


def absent_span(blocking: int, span: int) -> int:
    """Return the span of what is absent: a plan has a node for each window, also where a background that changes
    lifts it.
    """
    return LIFTED if span < blocking else blocking


def find_passing(x: Scope, y: Scope, z: Scope, *, ordered: bool) -> tuple[int, int]:
    """Return how a WITHOUT finds the goals that a blocker has passed, and how long after its end a blocker is due
    (µs); FOREVER if it never is.

    A later solution starts no more than its longest duration before it comes. What a blocker has passed must follow
    from the goal alone, so the goal certainly binds all that it may share with the blocker. A timeless goal is never
    passed.
    """
    kept = x if ordered else x.joined(y)
    deciding = x.certain if ordered else x.certain & y.certain
    joined, lag = x.joined(y), y.longest if ordered else max(x.longest, y.longest)
    if lag >= c.FOREVER or kept.timeless or not joined.possible & z.possible <= deciding & z.certain:
        return c.NOT_PASSING, c.FOREVER
    has_one_key = x.certain & y.certain == joined.certain & z.certain
    return c.PASSING_BY_KEY if has_one_key else c.PASSING_BY_SWEEP, lag


def plan_without(builder: PlanBuilder, pattern: a.SeqWithout | a.JoinWithout, target: Target, span: int, wanted: Conditions) -> None:
    span = span if pattern.within is None else min(span, pattern.within)
    x, y, z = builder.scope(pattern.left), builder.scope(pattern.right), builder.scope(pattern.absent)
    to_left, to_right, own = split_conditions(wanted, x.certain, y.certain)
    joined, ordered = x.joined(y), isinstance(pattern, a.SeqWithout)
    relation, life_right = (c.SEQ, c.FOREVER) if ordered else (c.ANY, span)
    node = Node(c.WITHOUT, relation, span, life_left=span, life_right=life_right, timeless=x.timeless or y.timeless or z.timeless)
    lives, between = builder.network.find_blocking(pattern)
    shorten_lives(node, (lives[0], c.FOREVER) if ordered else lives)  # SEQ stores no right side, whose partners come before
    node.key2, node.rest2 = builder.key_columns(joined, z)
    blocking = node.life_blocker = blocking_life(x if ordered else joined, min(span, between), expires=builder.options.expires)
    passing, lag = find_passing(x, y, z, ordered=ordered)
    if builder.options.passes and lag < blocking:
        node.keep, node.life_blocker = passing, lag
    node.by_right = ordered and not node.timeless and node.rest2.n == 0 and joined.certain & z.certain <= y.certain
    node.filter = compile_join_filter(builder, own, span)
    node.key, node.rest = builder.key_columns(x, y)
    number = builder.add_node(node, target)
    if ordered and not y.timeless:
        builder.fragment.strict |= {(number, c.LEFT), (number, c.BLOCKER)}
    builder.plan_pattern(pattern.absent, (number, c.BLOCKER), absent_span(blocking, min(span, between)))
    builder.plan_pattern(pattern.left, (number, c.LEFT), span, to_left)
    builder.plan_pattern(pattern.right, (number, c.RIGHT), span, to_right)


def plan_without_for(builder: PlanBuilder, pattern: a.WithoutFor, target: Target, wanted: Conditions) -> None:
    x, z = builder.scope(pattern.pattern), builder.scope(pattern.absent)
    timed = [e for e in wanted if looks_at_time(e)]
    target = builder.enforce(target, c.FOREVER, timed)
    node = Node(c.WITHOUTFOR, life_left=pattern.duration, life_blocker=pattern.duration, timeless=x.timeless or z.timeless)
    node.key2, node.rest2 = builder.key_columns(x, z)
    number = builder.add_node(node, target)
    builder.fragment.strict.add((number, c.LEFT))
    builder.fragment.deciding[number, c.LEFT] = x.timeless
    builder.plan_pattern(pattern.absent, (number, c.BLOCKER), pattern.duration)
    builder.fragment.timed.append(range(number + 1, len(builder.fragment.nodes)))
    builder.plan_pattern(pattern.pattern, (number, c.LEFT), c.FOREVER, [e for e in wanted if e not in timed])
