"""Plans of SEQ, SEQ ... WITHOUT and the interval relations under a consumption policy (semantics.md section 9).

A policy chooses among all goals of an operator, so what is asked of the joined solution is asked after the choice. Only under `recent`
what is asked of the right goal alone may come before it, because no right goal takes anything from another.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.collect.policy import Absent, PolicyCollector
from engine.entries import RECENT
from engine.kernel import columns as c
from engine.literals import TRUE
from engine.planning import joins
from engine.planning.negation import blocking_life
from engine.rewrite.hidden import variables_below
from engine.scope import Scope
from epsparql import algebra as a
from epsparql.terms import Variable

if TYPE_CHECKING:
    from engine.planning.planner import Planner, Target


def chosen(
    planner: "Planner", pattern: a.SeqJoin | a.RelationJoin | a.SeqWithout, target: "Target", span: int, wanted: Sequence[a.Expression]
) -> None:
    """One of the operators that a policy acts on: its pairs go through the span and the conditions."""
    relation = c.SEQ if isinstance(pattern, a.SeqWithout) else joins.relation_of(pattern)
    if isinstance(pattern, a.SeqWithout) and pattern.within is not None:
        span = min(span, pattern.within)
    left, right, policy = pattern.left, pattern.right, planner.names.policy
    x, y = planner.scope(left), planner.scope(right)
    left_life, right_life = lives_of(policy, relation, span)
    after = planner.after(target, span, wanted)
    node = planner.node(c.COLLECT, after, RELATION=relation, SPAN=span, LIFE_LEFT=left_life, LIFE_RIGHT=right_life, **planner.keys(x, y))
    if relation in joins.LOOKS_BACK and not y.timeless:
        planner.fragment.strict.add((node, c.LEFT))
    before = set(planner.fragment.columns)
    absent = _absent(planner, pattern, node, span) if isinstance(pattern, a.SeqWithout) else None
    planner.pattern(left, (node, c.LEFT))
    if policy == RECENT:
        planner.pattern(right, (node, c.BLOCKER), span, joins.distributed(wanted, frozenset(), y.certain)[1])
    else:
        planner.pattern(right, (node, c.BLOCKER))
    made = {v for v in planner.fragment.columns if v not in before}
    reads = tuple(sorted(variables_below(pattern) | made, key=lambda v: v.name))
    planner.fragment.collectors[node] = _collector(policy, relation, reads, x, y, span, absent)


def _absent(planner: "Planner", pattern: a.SeqWithout, node: int, span: int) -> Absent:
    """The group after WITHOUT: its solutions come with the right ones, and a mark."""
    x, y, z = planner.scope(pattern.left), planner.scope(pattern.right), planner.scope(pattern.absent)
    joint, blocking = x.joined(y), blocking_life(x, span)
    planner.assign(node, LIFE_BLOCKER=blocking, **planner.keys(joint, z, "2"))
    mark = planner.fresh("absent")
    marking = planner.move((node, c.BLOCKER), [(-planner.names.term(str(TRUE)), planner.column(mark))], keep=True)
    if not y.timeless:
        planner.fragment.strict.add((marking, c.LEFT))
    planner.pattern(pattern.absent, (marking, c.LEFT), blocking)
    return Absent(mark, joint.possible & z.possible, joint.certain & z.certain, blocking)


def _collector(policy: str, relation: int, reads: tuple[Variable, ...], x: Scope, y: Scope, span: int, absent: Absent | None) -> PolicyCollector:
    lasting = joins.LIVES[relation][0] is joins.WINDOW, joins.LIVES[relation][1] is joins.WINDOW
    return PolicyCollector(policy, relation, reads, x.possible & y.possible, x.certain & y.certain, lasting, span, absent)


def lives_of(policy: str, relation: int, span: int) -> tuple[int, int]:
    """How long goals are kept: of `chronological`, until they are consumed, for one that were gone could take no right goal from a later one."""
    longest = span if policy == RECENT else c.FOREVER
    left, right = (longest if life is joins.WINDOW else 0 for life in joins.LIVES[relation])
    return left, right
