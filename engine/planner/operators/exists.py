"""This module plans EXISTS wherever an expression has it: as a node that decides, or as a mark that a condition looks
at.
"""

from typing import Any

from engine.expressions.literals import TRUE
from engine.kernel.state import layout as c
from engine.pattern_scope import Scope, has_exists, list_subexpressions
from engine.physical_plan.plan import LastingSide, Node, RowRange
from engine.planner.builder.background_probe import plan_undecided
from engine.planner.builder.correlation import (
    OptionalInside,
    OptionalJoin,
    alternatives,
    essential,
    find_optional,
    lift_conditions,
    refuse_correlation,
    sides_of,
)
from engine.planner.builder.interval_network import find_waiting
from engine.planner.builder.local_subjects import note_subject
from engine.planner.builder.plan_builder import Conditions, PlanBuilder, Target
from engine.planner.builder.predicate_pushdown import check_functions
from epsparql import algebra as a
from epsparql.terms import Literal, Variable
from epsparql.trees import map_fields, replace_fields

INTERVAL = a.Coalesce(
    (
        a.Call("CONCAT", tuple(a.Call("STR", (a.Time(function),)) for function in (a.TimeFunction.START, a.TimeFunction.END))),
        a.Constant(Literal("")),
    )
)
"""It tells solutions on different intervals apart; timeless ones have the empty text."""


def plan_exists(builder: PlanBuilder, kind: int, pattern: a.Pattern, other: a.Pattern, target: Target) -> Target:
    """Plan EXISTS or NOTEXISTS of `other`; return where the solutions of `pattern` are to go."""
    node, kept = builder.add_node(Node(kind, life_left=c.NEVER), target), builder.scope(pattern)
    _plan_sought(builder, node, kept, other, pattern)
    note_subject(builder, node, pattern, other)
    builder.fragment.deciding[node, c.LEFT] = kept.timeless
    return node, c.LEFT


def _plan_sought(builder: PlanBuilder, number: int, kept: Scope, pattern: a.Pattern, around: a.Pattern | None = None) -> None:
    """Plan the pattern of an EXISTS as the right side of a node.

    What of it looks at the outer solution becomes the node's condition. `around` is the pattern of the outer solution,
    if times that it binds may bound how long what is sought may decide.
    """
    node = builder.node(number)
    other, lifted, _ = lift_conditions(builder, essential(pattern, kept, builder.scope), kept)
    y = builder.scope(other)
    if lifted:
        joint = kept.joined(y)
        plain = [e for e in lifted if not has_exists(e)]
        marks, conditions = plan_marks(builder, [e for e in lifted if has_exists(e)], joint)
        check_functions([*plain, *conditions])
        node.condition = builder.compile_conditions([*plain, *conditions])
        set_marks(builder, number, marks)
    refuse_correlation(builder, other, kept)
    node.life_right, node.timeless = c.FOREVER, kept.timeless or y.timeless
    if around is not None and builder.options.expires and builder.options.bounds:
        node.life_right = find_waiting(around, other, lifted, builder.options.occurrence)
    node.key, node.rest = builder.key_columns(kept, y)
    inside = replace_fields(builder, outer=builder.outer | kept.certain)
    plan_undecided(inside, other, (number, c.RIGHT), kept)


# ---------------------------------------------------------------- marks
def add_marks(builder: PlanBuilder, marks: list[int], kept: Scope, target: Target) -> Target:
    """Return where solutions enter a node that notes in their columns what the EXISTS find."""
    node = builder.add_node(Node(c.MARK), target)
    set_marks(builder, node, marks)
    builder.fragment.deciding[node, c.LEFT] = kept.timeless
    return node, c.LEFT


def set_marks(builder: PlanBuilder, node: int, marks: list[int]) -> None:
    builder.node(node).marks = RowRange(len(builder.fragment.edges), len(marks))
    builder.fragment.edges += [(mark, c.RIGHT) for mark in marks]


def plan_marks(builder: PlanBuilder, wanted: Conditions, kept: Scope, around: a.Pattern | None = None) -> tuple[list[int], list[a.Expression]]:
    """Return nodes that keep the solutions of the EXISTS in the conditions, and the conditions with variables in the
    place of each EXISTS.

    `around` is the pattern whose solutions are judged, if it is one.
    """
    patterns = dict.fromkeys(part for condition in wanted for part in list_subexpressions(condition) if isinstance(part, a.Exists))
    marks: list[int] = []
    variables: dict[a.Exists, list[Variable]] = {}
    for exists in patterns:
        for pattern in alternatives(exists.pattern):
            optional = find_optional(essential(pattern, kept, builder.scope), kept, builder.scope)
            if optional is None:
                node, variable = _add_mark(builder)
                _plan_sought(builder, node, kept, pattern, around)
                found = [(node, variable)]
            else:
                found = _plan_optional_inside(builder, kept, optional)
            marks += [node for node, _ in found]
            variables.setdefault(exists, []).extend(variable for _, variable in found)
    return marks, [_put_marks(condition, variables) for condition in wanted]


def _add_mark(builder: PlanBuilder) -> tuple[int, Variable]:
    variable = builder.add_variable("exists")
    return builder.add_node(Node(c.EXISTS, column=builder.column(variable))), variable


def _plan_optional_inside(builder: PlanBuilder, kept: Scope, optional: OptionalInside) -> list[tuple[int, Variable]]:
    """Plan an optional join inside EXISTS whose part uses variables of the outer solution; return two marks, one of
    which is true where it is.

    The joins are made whatever the outer solution is. EXISTS is true if a join agrees with the outer solution, or a
    solution of the kept side for which no such join was found. So the joins that were found are kept although the
    background lets them go (docs/decisions/0036-what-a-window-let-go.md).
    """
    left, other = sides_of(optional.pattern)
    found, moment, past = (builder.add_variable(name) for name in ("found", "moment", "past"))
    staying, part = a.Extend(left, moment, INTERVAL), a.Extend(other, found, a.Constant(TRUE))
    pattern = _with_sides(optional.pattern, staying, part)
    (joins, joined), (alone, by_itself), (was_found, any_found) = (_add_mark(builder) for _ in range(3))
    _accept(builder, joins, kept, pattern, [a.Bound(found), a.Not(a.Bound(past)), *optional.found, *optional.whole])
    _accept(builder, was_found, kept.joined(builder.scope(staying)), pattern, [a.Bound(found), *optional.found])
    _accept(builder, alone, kept, staying, [a.Not(a.Var(any_found)), *optional.whole])
    set_marks(builder, alone, [was_found])
    inside = replace_fields(builder, outer=builder.outer | kept.certain)
    fork, first = builder.add_fork([(joins, c.RIGHT), (was_found, c.RIGHT)]), len(builder.fragment.nodes)
    inside.plan_pattern(pattern, fork)
    decides = next(node for node in range(first, len(builder.fragment.nodes)) if fork in builder.fragment.edges_of(node))
    builder.node(decides).column = builder.column(past)
    side = c.RIGHT if isinstance(pattern, a.SeqRightJoin) else c.LEFT
    columns = frozenset(builder.column(variable) for variable in builder.scope(staying).possible)
    builder.fragment.lasting[was_found, c.RIGHT] = LastingSide((decides, side), columns)
    inside.plan_pattern(staying, (alone, c.RIGHT))
    return [(joins, joined), (alone, by_itself)]


def _with_sides(pattern: OptionalJoin, left: a.Pattern, other: a.Pattern) -> OptionalJoin:
    """Return an optional join of another side that stays and another part."""
    return replace_fields(pattern, right=left, left=other) if isinstance(pattern, a.SeqRightJoin) else replace_fields(pattern, left=left, right=other)


def _accept(builder: PlanBuilder, number: int, kept: Scope, pattern: a.Pattern, conditions: Conditions) -> None:
    """Let a node of EXISTS look for solutions of `pattern` that agree with a solution of `kept` and satisfy the
    conditions together with it.
    """
    node, y = builder.node(number), builder.scope(pattern)
    check_functions(conditions)
    node.condition = builder.compile_conditions(conditions)
    node.life_right, node.timeless = c.FOREVER, kept.timeless or y.timeless
    node.key, node.rest = builder.key_columns(kept, y)


def _put_marks(node: Any, variables: dict[a.Exists, list[Variable]]) -> Any:
    if isinstance(node, a.Exists):
        whole: a.Expression = a.Var(variables[node][0])
        for variable in variables[node][1:]:
            whole = a.Or(whole, a.Var(variable))
        return whole
    if isinstance(node, tuple):
        return tuple(_put_marks(part, variables) for part in node)
    if isinstance(node, a.Expression) and not isinstance(node, a.Constant):
        return map_fields(node, lambda part: _put_marks(part, variables))
    return node
