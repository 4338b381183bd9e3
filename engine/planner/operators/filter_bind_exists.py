"""This module plans FILTER and BIND, and EXISTS wherever an expression has it."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from engine.errors import Refusal
from engine.expressions.literals import FALSE, TRUE
from engine.kernel.state import layout as c
from engine.physical_plan import filter_compiler
from engine.physical_plan.plan import Inquiry
from engine.planner.operators import background_probe, joins
from engine.rewrite.rename_hidden import variables_below
from engine.scope import IDENTIFYING, Scope, Variables, asks, conjuncts, in_name_order, looks_at_time, parts, variables_of
from epsparql import algebra as a
from epsparql.terms import Variable

if TYPE_CHECKING:
    from engine.planner.planner import Planner, Target


def identifies(expression: a.Expression) -> bool:
    return any(isinstance(part, a.Call) and part.function in IDENTIFYING for part in parts(expression))


# ---------------------------------------------------------------- FILTER
def filtered(planner: "Planner", condition: a.Expression, inner: a.Pattern, target: "Target", span: int, wanted: Sequence[a.Expression]) -> None:
    plain: list[a.Expression] = []
    decided: list[tuple[int, a.Pattern]] = []
    marked: list[a.Expression] = []
    kept = planner.scope(inner)
    for part in conjuncts(condition):
        match part:
            case a.Exists(pattern) if not correlated(planner, pattern, kept):
                decided.append((c.EXISTS, pattern))
            case a.Not(a.Exists(pattern)) if not correlated(planner, pattern, kept):
                decided.append((c.NOTEXISTS, pattern))
            case _ if asks(part):
                marked.append(part)
            case _:
                plain.append(part)
    planner.check([*plain, *marked])
    if marked:
        target = _marking(planner, marked, kept, target)
    for kind, pattern in decided:
        target = absence(planner, kind, kept, pattern, target)
    early = [part for part in plain if not identifies(part)]
    for part in plain:
        if identifies(part):
            target = _judged_whole(planner, part, inner, target)
    planner.pattern(inner, target, min(span, joins.span_of(early)), [*early, *wanted])


def _judged_whole(planner: "Planner", condition: a.Expression, inner: a.Pattern, target: "Target") -> "Target":
    """Plan a condition that depends on the solution as a whole: its value is bound first."""
    verdict = planner.fresh("verdict")
    judge = planner.node(c.PASS, target, FILTER=planner.filter([a.Var(verdict)]))
    return planner.extend_node(verdict, inquiry(planner, condition, inner), (judge, c.LEFT)), c.LEFT


def _marking(planner: "Planner", wanted: Sequence[a.Expression], kept: Scope, target: "Target") -> "Target":
    """Plan a node that finds out what the EXISTS of the conditions say, before one that judges."""
    marks, conditions = marks_of(planner, wanted, kept)
    judge = planner.node(c.PASS, target, FILTER=planner.filter(conditions))
    return mark_node(planner, marks, (judge, c.LEFT)), c.LEFT


def mark_node(planner: "Planner", marks: Sequence[int], target: "Target") -> int:
    node = planner.node(c.MARK, target)
    assign_marks(planner, node, marks)
    return node


def assign_marks(planner: "Planner", node: int, marks: Sequence[int]) -> None:
    planner.assign(node, MARK_AT=len(planner.fragment.edges), MARK_N=len(marks))
    planner.fragment.edges += [(mark, c.RIGHT) for mark in marks]


def marks_of(planner: "Planner", wanted: Sequence[a.Expression], kept: Scope) -> tuple[list[int], list[a.Expression]]:
    """Return nodes that keep the solutions of the EXISTS in the conditions, and the conditions with variables in the place of each EXISTS."""
    patterns = dict.fromkeys(part for condition in wanted for part in parts(condition) if isinstance(part, a.Exists))
    marks: list[int] = []
    variables: dict[a.Exists, list[Variable]] = {}
    for exists in patterns:
        for pattern in alternatives(exists.pattern):
            variable = planner.fresh("exists")
            node = planner.node(c.EXISTS, None, COLUMN=planner.column(variable))
            _keep(planner, node, kept, pattern)
            marks.append(node)
            variables.setdefault(exists, []).append(variable)
    return marks, [_with_marks(condition, variables) for condition in wanted]


def alternatives(pattern: a.Pattern) -> list[a.Pattern]:
    """Return the operands of a UNION, which has a solution where one of its operands has."""
    match pattern:
        case a.Union(left, right):
            return alternatives(left) + alternatives(right)
        case _:
            return [pattern]


def _with_marks(node: Any, variables: dict[a.Exists, list[Variable]]) -> Any:
    if isinstance(node, a.Exists):
        whole: a.Expression = a.Var(variables[node][0])
        for variable in variables[node][1:]:
            whole = a.Or(whole, a.Var(variable))
        return whole
    if isinstance(node, tuple):
        return tuple(_with_marks(part, variables) for part in node)
    if isinstance(node, a.Expression) and is_dataclass(node) and not isinstance(node, a.Constant):
        return type(node)(*(_with_marks(getattr(node, field.name), variables) for field in fields(node)))
    return node


# ---------------------------------------------------------------- EXISTS
def absence(planner: "Planner", kind: int, kept: Scope, other: a.Pattern, target: "Target") -> "Target":
    """Plan EXISTS or NOTEXISTS of `other`; return where the solutions kept are to go."""
    node = planner.node(kind, target, LIFE_LEFT=c.NEVER)
    _keep(planner, node, kept, other)
    return node, c.LEFT


def _keep(planner: "Planner", node: int, kept: Scope, pattern: a.Pattern) -> None:
    """Plan the pattern of an EXISTS as the right side of a node. What of it looks at the outer solution becomes the node's condition."""
    other, lifted, _ = lifted_from(planner, essential(pattern, kept), kept)
    y = planner.scope(other)
    if lifted:
        joint = kept.joined(y)
        plain = [e for e in lifted if not asks(e)]
        marks, conditions = marks_of(planner, [e for e in lifted if asks(e)], joint)
        planner.check([*plain, *conditions])
        planner.assign(node, CONDITION=planner.filter([*plain, *conditions]))
        assign_marks(planner, node, marks)
    refuse_correlation(planner, other, kept)
    planner.assign(node, LIFE_RIGHT=c.FOREVER, TIMELESS=kept.timeless or y.timeless, **planner.keys(kept, y))
    outer, planner.outer = planner.outer, planner.outer | kept.certain
    background_probe.side(planner, other, (node, c.RIGHT), kept)
    planner.outer = outer


def essential(pattern: a.Pattern, kept: Scope) -> a.Pattern:
    """Return the part of `pattern` that decides whether it has a solution: an optional part never does."""
    match pattern:
        case a.LeftJoin(left, _, _) | a.EqLeftJoin(left, _, _) | a.SeqRightJoin(_, left, _):
            return essential(left, kept)
        case a.Extend(inner, variable, _) if variable not in kept.possible:
            return essential(inner, kept)
        case _:
            return pattern


def correlated(planner: "Planner", pattern: a.Pattern, kept: Scope) -> bool:
    """Return whether what an EXISTS finds depends on the outer solution otherwise than by compatibility."""
    pattern = essential(pattern, kept)
    if isinstance(pattern, a.Union):
        return any(correlated(planner, part, kept) for part in alternatives(pattern))
    return bool(lifted_from(planner, pattern, kept)[1])


Lifted = tuple[a.Pattern, list[a.Expression], dict[Variable, a.Expression]]
"""The parts are the rest of a pattern, the conditions taken out of it, and what the BINDs that went with them stood for."""


def lifted_from(planner: "Planner", pattern: a.Pattern, kept: Scope, around: Variables = frozenset()) -> Lifted:
    """Return a pattern of EXISTS without the conditions that look at variables of the outer solution.

    `around` are the variables that its siblings may bind.
    """
    match pattern:
        case a.Filter():
            return _lifted_from_filter(planner, pattern, kept, around)
        case a.Join() | a.SeqJoin() | a.EqJoin() | a.RelationJoin():
            left, from_left, bound_left = lifted_from(planner, pattern.left, kept, around | planner.scope(pattern.right).possible)
            right, from_right, bound_right = lifted_from(planner, pattern.right, kept, around | planner.scope(pattern.left).possible)
            return replace(pattern, left=left, right=right), from_left + from_right, bound_left | bound_right
        case a.Graph() | a.Within():
            inner, lifted, bound = lifted_from(planner, pattern.pattern, kept, around)
            return replace(pattern, pattern=inner), lifted, bound
        case a.Extend(inner, variable, expression) if looks_outside(expression, planner.scope(inner), kept) and not looks_at_time(expression):
            inner, lifted, bound = lifted_from(planner, inner, kept, around)
            expression = with_values(expression, bound)
            return inner, [_agrees(variable, expression), *lifted], bound | {variable: expression}
        case a.Minus(left, _) if not shared_inside(planner, pattern, kept):
            return lifted_from(planner, left, kept, around)  # nothing is taken away
        case a.Minus(left, right) if (planner.scope(left).certain & planner.scope(right).certain) - kept.possible and correlated(
            planner, right, kept
        ):
            left, lifted, bound = lifted_from(planner, left, kept, around)
            return left, [a.Not(a.Exists(right)), *lifted], bound  # they share a variable that is no term by then, so this is NOT EXISTS
        case _:
            return pattern, [], {}


def _lifted_from_filter(planner: "Planner", pattern: a.Filter, kept: Scope, around: Variables) -> Lifted:
    inner, lifted, bound = lifted_from(planner, pattern.pattern, kept, around)
    here = planner.scope(inner)
    outer: list[a.Expression] = []
    for condition in conjuncts(pattern.condition):
        known = with_values(condition, bound)
        if (known != condition or looks_outside(condition, here, kept)) and may_leave(known, here, kept, around):
            outer.append(known)
        elif known != condition:
            raise refusal_of_correlation()
        else:
            inner = a.Filter(condition, inner)
    return inner, [*outer, *lifted], bound


def with_values(node: Any, values: Mapping[Variable, a.Expression]) -> Any:
    """Return an expression with variables replaced by what they stand for; EXISTS is left as it is."""
    match node:
        case a.Var(variable):
            return values.get(variable, node)
        case a.Bound(variable) if variable in values:  # where its expression is no error
            return a.Coalesce((a.Call("SAMETERM", (values[variable], values[variable])), a.Constant(FALSE)))
        case tuple():
            return tuple(with_values(part, values) for part in node)
        case a.Exists() | a.Constant():
            return node
        case _ if values and is_dataclass(node) and isinstance(node, a.Expression):
            return replace(node, **{field.name: with_values(getattr(node, field.name), values) for field in fields(node)})
        case _:
            return node


def shared_inside(planner: "Planner", minus: a.Minus, kept: Scope) -> bool:
    """Return whether both sides share a variable that is one still when the outer solution has been put in."""
    shared = planner.scope(minus.left).possible & planner.scope(minus.right).possible
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
    used = variables_of(condition) | {v for part in parts(condition) if isinstance(part, a.Exists) for v in variables_below(part)}
    return bool((used - here.certain) & kept.possible)


def refuse_correlation(planner: "Planner", pattern: a.Pattern, kept: Scope) -> None:
    if free_variables(planner, pattern) & kept.possible:
        raise refusal_of_correlation()


def refusal_of_correlation() -> Refusal:
    where = "in an OPTIONAL, a UNION within another pattern, or with getDURATION() and its kin"
    return Refusal(f"a FILTER or BIND inside EXISTS ({where}) that uses a variable of the group outside", "EXISTS")


def free_variables(planner: "Planner", pattern: a.Pattern) -> frozenset[Variable]:
    """Return the variables that conditions inside `pattern` use and their own group does not bind."""
    if isinstance(pattern, a.SubSelect | a.Group):
        return free_variables(planner, pattern.pattern)
    below = [getattr(pattern, field.name) for field in fields(pattern)]
    inner = [part for part in below if isinstance(part, a.Pattern)]
    bound = frozenset[Variable]().union(*(planner.scope(part).possible for part in inner))
    own = frozenset[Variable]().union(*(variables_of(part) - bound for part in below if isinstance(part, a.Expression)))
    return own.union(*(free_variables(planner, part) for part in inner))


# ---------------------------------------------------------------- BIND
def extended(planner: "Planner", pattern: a.Extend, target: "Target", span: int, wanted: Sequence[a.Expression]) -> None:
    planner.check([pattern.expression])
    kept = planner.scope(pattern.pattern)
    marks, (expression,) = marks_of(planner, [pattern.expression], kept)
    own = [e for e in wanted if pattern.variable in variables_of(e)]
    if isinstance(pattern.expression, a.Var):  # nothing to ask the host
        column = planner.column(pattern.expression.variable), planner.column(pattern.variable)
        node = planner.move(planner.after(target, c.FOREVER, own), [column], keep=True)
        planner.pattern(pattern.pattern, (node, c.LEFT), span, [e for e in wanted if e not in own])
        return
    node = planner.extend_node(pattern.variable, inquiry(planner, expression, pattern.pattern), target)
    planner.assign(node, FILTER=planner.filter(own))
    if marks:
        node = mark_node(planner, marks, (node, c.LEFT))
    planner.pattern(pattern.pattern, (node, c.LEFT), span, [e for e in wanted if e not in own])


def inquiry(planner: "Planner", expression: a.Expression, below: a.Pattern) -> Inquiry:
    """Return the question that the host answers. A function of the whole solution is asked with all of it, but without what BIND added."""
    variables, timed = filter_compiler.arguments(planner.fragment, expression)
    if not identifies(expression):
        return Inquiry(variables, timed, expression=expression)
    while isinstance(below, a.Extend):
        below = below.pattern
    solution = in_name_order(planner.scope(below).possible)
    site = f"expression {len(planner.fragment.inquiries)}"
    return Inquiry(in_name_order({*variables, *solution}), True, expression=expression, site=site, solution=solution)
