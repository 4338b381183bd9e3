"""This module plans the optional joins: OPTIONAL, EQUALSOPTIONAL and OPTIONALSEQ."""

from typing import NamedTuple

from engine.kernel.state import layout as c
from engine.pattern_scope import Scope, list_conjuncts, span_of
from engine.physical_plan.plan import Node
from engine.planner.builder.background_probe import plan_undecided
from engine.planner.builder.plan_builder import Conditions, PlanBuilder, Target
from engine.planner.builder.predicate_pushdown import check_functions, split_conditions
from engine.planner.operators.exists import plan_marks, set_marks
from engine.planner.operators.without import absent_span
from epsparql import algebra as a


class OptionalBounds(NamedTuple):
    """Says how far an optional join looks: its own span, how long goals of its left and right side live, and the spans of these (µs)."""

    span: int
    lives: tuple[int, int]
    spans: tuple[int, int]


def bounds_of(pattern: a.LeftJoin | a.EqLeftJoin | a.SeqRightJoin, span: int, kept: Scope, *, expires: bool = True) -> OptionalBounds:
    """Return how far an optional join looks whose `kept` side has this scope; `span` is that of the solutions that are wanted of it.

    If nothing `expires`, it looks at all that ever came. Equal intervals are equally long, so EQUALSOPTIONAL looks at no longer ones than are wanted,
    unless the kept side may be timeless: then a longer one still decides on it (docs/decisions/0053-bounds-on-durations.md).
    """
    own = span_of([] if pattern.condition is None else list_conjuncts(pattern.condition))
    life, own = (own, own) if expires else (c.FOREVER, absent_span(c.FOREVER, own))
    match pattern:
        case a.LeftJoin():
            return OptionalBounds(own, (c.NEVER, life), (span, own))
        case a.EqLeftJoin():
            equal = min(span, own, kept.longest)
            inner = equal if expires and not kept.timeless else min(own, absent_span(c.FOREVER, equal))
            return OptionalBounds(own, (c.NEVER, 0 if expires else life), (span, inner))
        case a.SeqRightJoin():
            return OptionalBounds(own, (life, c.NEVER), (own, span))


KINDS = {a.LeftJoin: (c.OPTIONAL, c.ANY), a.EqLeftJoin: (c.EQUALSOPTIONAL, c.EQUALS), a.SeqRightJoin: (c.OPTIONALSEQ, c.SEQ)}


def plan_optional(builder: PlanBuilder, pattern: a.LeftJoin | a.EqLeftJoin | a.SeqRightJoin, target: Target, span: int, wanted: Conditions) -> None:
    x, y = builder.scope(pattern.left), builder.scope(pattern.right)
    check_functions([] if pattern.condition is None else [pattern.condition])
    kind, relation = KINDS[type(pattern)]
    kept = y if kind == c.OPTIONALSEQ else x
    bounds = bounds_of(pattern, span, kept, expires=builder.options.expires)
    down, _, own = split_conditions(wanted, kept.certain, frozenset())
    marks, conditions = plan_marks(builder, [] if pattern.condition is None else [pattern.condition], x.joined(y))
    node = Node(kind, relation, bounds.span, timeless=x.timeless or y.timeless)
    node.life_left, node.life_right = bounds.lives
    node.filter, node.condition = builder.compile_conditions(own), builder.compile_conditions(conditions)
    node.key, node.rest = builder.key_columns(x, y)
    number = builder.add_node(node, target)
    set_marks(builder, number, marks)
    if kept.timeless and c.FOREVER not in bounds.lives:
        builder.fragment.forgetful.add(number)
    builder.fragment.deciding[number, c.RIGHT if kind == c.OPTIONALSEQ else c.LEFT] = kept.timeless
    if kind == c.OPTIONALSEQ:
        if not y.timeless:
            builder.fragment.strict.add((number, c.LEFT))
        plan_undecided(builder, pattern.left, (number, c.LEFT), y, bounds.spans[0])
        builder.plan_pattern(pattern.right, (number, c.RIGHT), bounds.spans[1], down)
    else:
        builder.plan_pattern(pattern.left, (number, c.LEFT), bounds.spans[0], down)
        plan_undecided(builder, pattern.right, (number, c.RIGHT), x, bounds.spans[1])
