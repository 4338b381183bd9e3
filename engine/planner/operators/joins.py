"""This module plans the positive two-sided operators."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.kernel.state import layout as c
from engine.physical_plan import filter_compiler
from engine.planner.operators import join_order, path_reachability
from engine.scope import Scope, Variables, looks_at_time, variables_of
from epsparql import algebra as a

if TYPE_CHECKING:
    from engine.planner.planner import Conditions, Planner, Target

RELATIONS = {
    a.Relation.MEETS: c.MEETS,
    a.Relation.DURING: c.DURING,
    a.Relation.STARTS: c.STARTS,
    a.Relation.FINISHES: c.FINISHES,
    a.Relation.OVERLAPS: c.OVERLAPS,
    a.Relation.PAR: c.PAR,
}
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
LOOKS_BACK = frozenset({c.SEQ, c.DURING, c.STARTS, c.OVERLAPS})
"""The left operand of these relations ends strictly before the right one."""


def relation_of(pattern: a.Join | a.SeqJoin | a.EqJoin | a.RelationJoin) -> int:
    match pattern:
        case a.Join():
            return c.ANY
        case a.SeqJoin():
            return c.SEQ
        case a.EqJoin():
            return c.EQUALS
        case a.RelationJoin(relation, _, _):
            return RELATIONS[relation]


def join(
    planner: "Planner", pattern: a.Join | a.SeqJoin | a.EqJoin | a.RelationJoin, target: "Target", span: int, wanted: Sequence[a.Expression]
) -> None:
    if isinstance(pattern, a.SeqJoin) and id(pattern) not in planner.segments:
        pattern = join_order.shaped(planner, pattern, span)
    joined(planner, pattern.left, pattern.right, relation_of(pattern), target, span, wanted)


def joined(planner: "Planner", left: a.Pattern, right: a.Pattern, relation: int, target: "Target", span: int, wanted: Sequence[a.Expression]) -> None:
    x, y = planner.scope(left), planner.scope(right)
    node, to_left, to_right = join_node(planner, x, y, relation, target, span, wanted)
    for operand, side in ((left, c.LEFT), (right, c.RIGHT)):
        if (segment := planner.segments.get(id(operand))) is not None:
            planner.fragment.segments[segment] = node, side
    if relation == c.ANY and path_reachability.leads_on(right, x):
        _following(planner, (left, x), right, (node, c.LEFT), span, (to_left, to_right))
    elif relation == c.ANY and path_reachability.leads_on(left, y):
        _following(planner, (right, y), left, (node, c.RIGHT), span, (to_right, to_left))
    else:
        planner.pattern(left, (node, c.LEFT), span, to_left)
        planner.pattern(right, (node, c.RIGHT), span, to_right)


def _following(
    planner: "Planner", operand: tuple[a.Pattern, Scope], path: a.Pattern, target: "Target", span: int, wanted: tuple["Conditions", "Conditions"]
) -> None:  # fmt: skip
    """Plan a join with a path. The path's walks over the background are found from the solutions of the other operand, which go to `target`."""
    assert isinstance(path, a.Path)
    (pattern, scope), (node, side), deep = operand, target, path_reachability.is_deep(planner, path)
    split = planner.node(c.PASS, None, SPAN=span)
    planner.pattern(pattern, (split, c.LEFT), span, wanted[0])
    found = planner.after((node, c.EMIT), c.FOREVER, wanted[1])
    planner.targets(split, [target, path_reachability.followed(planner, path, scope, found)])
    if not deep:
        planner.assign(split, EDGE_N=1)
    planner.sleeping = path_reachability.asleep(planner, deep)
    planner.pattern(path, (node, c.LEFT + c.RIGHT - side), span, wanted[1])


def join_node(
    planner: "Planner", x: Scope, y: Scope, relation: int, target: "Target", span: int, wanted: Sequence[a.Expression]
) -> tuple[int, "Conditions", "Conditions"]:
    """Plan a join of what has these scopes; return its node, and the conditions that its left and right side are to satisfy."""
    to_left, to_right, own = distributed(wanted, x.certain, y.certain)
    timeless = x.timeless or y.timeless
    lives = lives_of(relation, x, y, span)
    node = planner.node(
        c.JOIN, target, RELATION=relation, SPAN=span, FILTER=filter_of(planner, own, span), TIMELESS=timeless,
        LIFE_LEFT=lives[0], LIFE_RIGHT=lives[1], **planner.keys(x, y),
    )  # fmt: skip
    if relation in LOOKS_BACK and not y.timeless:
        planner.fragment.strict.add((node, c.LEFT))
    return node, to_left, to_right


def lives_of(relation: int, x: Scope, y: Scope, span: int) -> list[int]:
    """Return how long goals of the left and right side live (µs).

    What has no time is there from the first instant on, so nothing need wait for it.
    """
    timeless = x.timeless or y.timeless
    lives = [span if life is WINDOW else max(life, 0) if timeless else life for life in LIVES[relation]]
    return [min(life, c.FOREVER if other.timed else 0) for life, other in zip(lives, (y, x), strict=True)]


def passing(planner: "Planner", inner: a.Pattern, target: "Target", span: int) -> "Target":
    """Return a target before which the span is enforced, as `Planner.after` does; a join enforces its span itself."""
    enforces = isinstance(inner, a.Join | a.SeqJoin | a.EqJoin | a.RelationJoin | a.SeqWithout)
    return target if enforces or (isinstance(inner, a.Bgp) and len(inner.triples) > 1) else planner.after(target, span, [])


def filter_of(planner: "Planner", wanted: Sequence[a.Expression], span: int) -> int:
    """Compile the conditions that a join of this span does not enforce by itself."""
    implied = [e for e in wanted if not is_equality(e) and (limit := duration_limit(e)) is not None and span <= limit and limit >= 0]
    rest = [e for e in wanted if e not in implied]
    if implied and not rest:
        return c.TIMED_ONLY
    return planner.filter(rest + implied[:1])


def duration_limit(condition: a.Expression) -> int | None:
    """Return the longest duration (µs) that `getDURATION() < d`, `= d` and their kin admit; None for other conditions."""
    match condition:
        case a.Compare(
            a.Comparison.LESS | a.Comparison.LESS_OR_EQUAL | a.Comparison.EQUAL as op, a.Time(a.TimeFunction.DURATION), a.Constant() as constant
        ):
            micros, strict = filter_compiler.duration_constant(constant), op is a.Comparison.LESS
        case a.Compare(a.Comparison.GREATER | a.Comparison.GREATER_OR_EQUAL | a.Comparison.EQUAL as op, constant, a.Time(a.TimeFunction.DURATION)):
            micros, strict = filter_compiler.duration_constant(constant), op is a.Comparison.GREATER
        case _:
            return None
    return None if micros is None else min(micros - strict, c.FOREVER)


def is_equality(condition: a.Expression) -> bool:
    return isinstance(condition, a.Compare) and condition.op is a.Comparison.EQUAL


def span_of(conditions: Sequence[a.Expression]) -> int:
    """Return the longest duration (µs) that all of these conditions admit."""
    limits = (limit for e in conditions if (limit := duration_limit(e)) is not None)
    return max(min(limits, default=c.FOREVER), 0)


def distributed(wanted: Sequence[a.Expression], left: Variables, right: Variables) -> tuple["Conditions", "Conditions", "Conditions"]:
    """Divide conditions by the side that decides them, where their variables are certain: for the left, for the right, for neither."""
    sides: tuple[Conditions, Conditions, Conditions] = ([], [], [])
    for condition in wanted:
        looks = variables_of(condition)
        if looks_at_time(condition) or not looks:
            sides[2].append(condition)
        elif looks <= left:
            sides[0].append(condition)
        else:
            sides[1 if looks <= right else 2].append(condition)
    return sides
