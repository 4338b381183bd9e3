"""This module plans EXISTS wherever an expression has it: as a node that decides, or as a mark that a condition looks at."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from engine.errors import Refusal
from engine.expressions.literals import FALSE, TRUE
from engine.kernel.state import layout as c
from engine.pattern_scope import Scope, Variables, has_exists, list_conjuncts, list_subexpressions, looks_at_time, variables_of
from engine.physical_plan.plan import Node, RowRange
from engine.planner.builder.background_probe import plan_undecided
from engine.planner.builder.plan_builder import Conditions, PlanBuilder, Target
from engine.planner.builder.predicate_pushdown import check_functions
from engine.rewrite.rename_hidden import find_variables
from epsparql import algebra as a
from epsparql.terms import Variable

Scopes = Callable[[a.Pattern], Scope]
"""The function returns the scope of a pattern."""


def plan_exists(builder: PlanBuilder, kind: int, kept: Scope, other: a.Pattern, target: Target) -> Target:
    """Plan EXISTS or NOTEXISTS of `other`; return where the solutions kept are to go."""
    node = builder.add_node(Node(kind, life_left=c.NEVER), target)
    _plan_sought(builder, node, kept, other)
    builder.fragment.deciding[node, c.LEFT] = kept.timeless
    return node, c.LEFT


def _plan_sought(builder: PlanBuilder, number: int, kept: Scope, pattern: a.Pattern) -> None:
    """Plan the pattern of an EXISTS as the right side of a node. What of it looks at the outer solution becomes the node's condition."""
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
    node.key, node.rest = builder.key_columns(kept, y)
    inside = replace(builder, outer=builder.outer | kept.certain)
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


def plan_marks(builder: PlanBuilder, wanted: Conditions, kept: Scope) -> tuple[list[int], list[a.Expression]]:
    """Return nodes that keep the solutions of the EXISTS in the conditions, and the conditions with variables in the place of each EXISTS."""
    patterns = dict.fromkeys(part for condition in wanted for part in list_subexpressions(condition) if isinstance(part, a.Exists))
    marks: list[int] = []
    variables: dict[a.Exists, list[Variable]] = {}
    for exists in patterns:
        for pattern in alternatives(exists.pattern):
            variable = builder.add_variable("exists")
            node = builder.add_node(Node(c.EXISTS, column=builder.column(variable)))
            _plan_sought(builder, node, kept, pattern)
            marks.append(node)
            variables.setdefault(exists, []).append(variable)
    return marks, [_put_marks(condition, variables) for condition in wanted]


def alternatives(pattern: a.Pattern) -> list[a.Pattern]:
    """Return the operands of a UNION, which has a solution where one of its operands has."""
    match pattern:
        case a.Union(left, right):
            return alternatives(left) + alternatives(right)
        case _:
            return [pattern]


def _put_marks(node: Any, variables: dict[a.Exists, list[Variable]]) -> Any:
    if isinstance(node, a.Exists):
        whole: a.Expression = a.Var(variables[node][0])
        for variable in variables[node][1:]:
            whole = a.Or(whole, a.Var(variable))
        return whole
    if isinstance(node, tuple):
        return tuple(_put_marks(part, variables) for part in node)
    if isinstance(node, a.Expression) and is_dataclass(node) and not isinstance(node, a.Constant):
        return type(node)(*(_put_marks(getattr(node, field.name), variables) for field in fields(node)))
    return node


# ---------------------------------------------------------------- what looks at the outer solution
def essential(pattern: a.Pattern, kept: Scope, scope: Scopes) -> a.Pattern:
    """Return the part of `pattern` that decides whether it has a solution.

    An optional part decides nothing until a change of the background takes it away where it was found. It is left out where the outer solution says
    what it finds, because it could not be planned.
    """
    match pattern:
        case a.LeftJoin(left, other, condition) | a.EqLeftJoin(left, other, condition) | a.SeqRightJoin(other, left, condition):
            inner, looked_at = essential(left, kept, scope), find_variables((other, condition)) & kept.possible
            apart = inner is left and looked_at <= scope(left).certain and not find_free_variables(pattern, scope) & kept.possible
            return pattern if apart else inner
        case a.Extend(inner, variable, _) if variable not in kept.possible:
            return essential(inner, kept, scope)
        case _:
            return pattern


def is_correlated(builder: PlanBuilder, pattern: a.Pattern, kept: Scope) -> bool:
    """Return whether what an EXISTS finds depends on the outer solution otherwise than by compatibility."""
    pattern = essential(pattern, kept, builder.scope)
    if isinstance(pattern, a.Union):
        return any(is_correlated(builder, part, kept) for part in alternatives(pattern))
    return bool(lift_conditions(builder, pattern, kept)[1])


Lifted = tuple[a.Pattern, list[a.Expression], dict[Variable, a.Expression]]
"""The parts are the rest of a pattern, the conditions taken out of it, and what the BINDs that went with them stood for."""


def lift_conditions(builder: PlanBuilder, pattern: a.Pattern, kept: Scope, around: Variables = frozenset()) -> Lifted:
    """Return a pattern of EXISTS without the conditions that look at variables of the outer solution.

    `around` are the variables that its siblings may bind.
    """
    match pattern:
        case a.Filter():
            return _lift_filter(builder, pattern, kept, around)
        case a.Join() | a.SeqJoin() | a.EqJoin() | a.RelationJoin():
            left, from_left, bound_left = lift_conditions(builder, pattern.left, kept, around | builder.scope(pattern.right).possible)
            right, from_right, bound_right = lift_conditions(builder, pattern.right, kept, around | builder.scope(pattern.left).possible)
            return replace(pattern, left=left, right=right), from_left + from_right, bound_left | bound_right
        case a.Graph() | a.Within():
            inner, lifted, bound = lift_conditions(builder, pattern.pattern, kept, around)
            return replace(pattern, pattern=inner), lifted, bound
        case a.Extend(inner, variable, expression) if looks_outside(expression, builder.scope(inner), kept) and not looks_at_time(expression):
            inner, lifted, bound = lift_conditions(builder, inner, kept, around)
            expression = put_values(expression, bound)
            return inner, [_agrees(variable, expression), *lifted], bound | {variable: expression}
        case a.Minus(left, _) if not shares_inside(builder, pattern, kept):
            return lift_conditions(builder, left, kept, around)  # nothing is taken away
        case a.Minus(left, right) if (builder.scope(left).certain & builder.scope(right).certain) - kept.possible and is_correlated(
            builder, right, kept
        ):
            left, lifted, bound = lift_conditions(builder, left, kept, around)
            return left, [a.Not(a.Exists(right)), *lifted], bound  # they share a variable that is no term by then, so this is NOT EXISTS
        case _:
            return pattern, [], {}


def _lift_filter(builder: PlanBuilder, pattern: a.Filter, kept: Scope, around: Variables) -> Lifted:
    inner, lifted, bound = lift_conditions(builder, pattern.pattern, kept, around)
    here = builder.scope(inner)
    outer: list[a.Expression] = []
    for condition in list_conjuncts(pattern.condition):
        known = put_values(condition, bound)
        if (known != condition or looks_outside(condition, here, kept)) and may_leave(known, here, kept, around):
            outer.append(known)
        elif known != condition:
            raise correlation_refusal()
        else:
            inner = a.Filter(condition, inner)
    return inner, [*outer, *lifted], bound


def put_values(node: Any, values: Mapping[Variable, a.Expression]) -> Any:
    """Return an expression with variables replaced by what they stand for; EXISTS is left as it is."""
    match node:
        case a.Var(variable):
            return values.get(variable, node)
        case a.Bound(variable) if variable in values:  # where its expression is no error
            return a.Coalesce((a.Call("SAMETERM", (values[variable], values[variable])), a.Constant(FALSE)))
        case tuple():
            return tuple(put_values(part, values) for part in node)
        case a.Exists() | a.Constant():
            return node
        case _ if values and is_dataclass(node) and isinstance(node, a.Expression):
            return replace(node, **{field.name: put_values(getattr(node, field.name), values) for field in fields(node)})
        case _:
            return node


def shares_inside(builder: PlanBuilder, minus: a.Minus, kept: Scope) -> bool:
    """Return whether both sides share a variable that is one still when the outer solution has been put in."""
    shared = builder.scope(minus.left).possible & builder.scope(minus.right).possible
    return any(not v.hidden for v in shared - kept.certain)


def _agrees(variable: Variable, expression: a.Expression) -> a.Expression:
    """Return the condition that replaces a BIND: where both have a value, it is the same term."""
    same = a.Call("SAMETERM", (a.Var(variable), expression))
    return a.Coalesce((same, a.Constant(TRUE)))


def may_leave(condition: a.Expression, here: Scope, kept: Scope, around: Variables) -> bool:
    """Return whether a condition means the same outside of its group.

    Its time is the inner solution's, and what only a sibling binds is unbound in it.
    """
    return not looks_at_time(condition) and not (variables_of(condition) - here.certain - kept.certain) & around


def looks_outside(condition: a.Expression, here: Scope, kept: Scope) -> bool:
    """Return whether a condition needs a variable that the outer solution may bind and its own group does not."""
    used = variables_of(condition) | {v for part in list_subexpressions(condition) if isinstance(part, a.Exists) for v in find_variables(part)}
    return bool((used - here.certain) & kept.possible)


def refuse_correlation(builder: PlanBuilder, pattern: a.Pattern, kept: Scope) -> None:
    if find_free_variables(pattern, builder.scope) & kept.possible:
        raise correlation_refusal()


def correlation_refusal() -> Refusal:
    where = "in an OPTIONAL, a UNION within another pattern, or with getDURATION() and its kin"
    return Refusal(f"a FILTER or BIND inside EXISTS ({where}) that uses a variable of the group outside", "EXISTS")


def find_free_variables(pattern: a.Pattern, scope: Scopes) -> frozenset[Variable]:
    """Return the variables that conditions inside `pattern` use and their own group does not bind."""
    if isinstance(pattern, a.SubSelect | a.Group):
        return find_free_variables(pattern.pattern, scope)
    below = [getattr(pattern, field.name) for field in fields(pattern)]
    inner = [part for part in below if isinstance(part, a.Pattern)]
    bound = frozenset[Variable]().union(*(scope(part).possible for part in inner))
    own = frozenset[Variable]().union(*(variables_of(part) - bound for part in below if isinstance(part, a.Expression)))
    return own.union(*(find_free_variables(part, scope) for part in inner))
