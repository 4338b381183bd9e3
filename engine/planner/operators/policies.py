"""This module plans SEQ, SEQ ... WITHOUT and the interval relations under a consumption policy (semantics.md section 9).

A policy chooses among all goals of an operator, so what is asked of the joined solution is asked after the choice. Only under `recent`
what is asked of the right goal alone may come before it, because no right goal takes anything from another.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.kernel.state import layout as c
from engine.messages import RECENT
from engine.planner.operators import joins
from engine.planner.operators.negation import absent_span, blocking_life, expires
from epsparql import algebra as a

if TYPE_CHECKING:
    from engine.planner.planner import Planner, Target


def chosen(
    planner: "Planner", pattern: a.SeqJoin | a.RelationJoin | a.SeqWithout, target: "Target", span: int, wanted: Sequence[a.Expression]
) -> None:
    """Plan one of the operators that a policy acts on."""
    absent = pattern.absent if isinstance(pattern, a.SeqWithout) else None
    relation = c.SEQ if isinstance(pattern, a.SeqWithout) else joins.relation_of(pattern)
    if isinstance(pattern, a.SeqWithout) and pattern.within is not None:
        span = min(span, pattern.within)
    policy, x, y = planner.names.policy, planner.scope(pattern.left), planner.scope(pattern.right)
    timeless = x.timeless or y.timeless
    lives = lives_of(policy, relation, span, timeless=timeless)
    node = planner.node(
        c.RECENT if policy == RECENT else c.CHRONOLOGICAL, target, RELATION=relation, SPAN=span, FILTER=planner.filter(wanted),
        TIMELESS=timeless, LIFE_LEFT=lives[0], LIFE_RIGHT=lives[1], LIFE_BLOCKER=c.NEVER, **planner.keys(x, y),
    )  # fmt: skip
    if relation in joins.LOOKS_BACK and not y.timeless:
        planner.fragment.strict |= {(node, c.LEFT), (node, c.BLOCKER)}
    if absent is not None:
        z, blocking = planner.scope(absent), blocking_life(x, span, expires=expires(planner))
        planner.assign(node, TIMELESS=timeless or z.timeless, LIFE_BLOCKER=blocking, **planner.keys(x.joined(y), z, "2"))
        planner.pattern(absent, (node, c.BLOCKER), absent_span(blocking, span))
    planner.pattern(pattern.left, (node, c.LEFT))
    if policy == RECENT:
        planner.pattern(pattern.right, (node, c.RIGHT), span, joins.distributed(wanted, frozenset(), y.certain)[1])
    else:
        planner.pattern(pattern.right, (node, c.RIGHT))


def lives_of(policy: str, relation: int, span: int, *, timeless: bool) -> tuple[int, int]:
    """Return how long goals are kept.

    Goals of `chronological` are kept until they are consumed, because a goal that is gone takes no right goal from a later one.

    A timeless left goal may come later in its instant than right ones, which so must be there where one can come.
    """
    longest = span if policy == RECENT else c.FOREVER
    left, right = (longest if life is joins.WINDOW else life for life in joins.LIVES[relation])
    return left, max(right, 0) if timeless else right
