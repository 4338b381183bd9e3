"""This module finds what the pattern of an EXISTS asks of the outer solution: parts that are taken out of it, and
parts that cannot be planned.

SPARQL puts the outer solution's terms in the place of its variables. For what joins, this is compatibility. For what
decides on absence it is not: `?w` in a MINUS inside EXISTS stands for one term, and not for each that the part finds.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from engine.errors import Refusal
from engine.expressions.literals import FALSE, TRUE
from engine.pattern_scope import Scope, Variables, has_exists, list_conjuncts, list_subexpressions, looks_at_time, variables_of
from engine.planner.builder.plan_builder import PlanBuilder
from engine.rewrite.rename_hidden import find_variables, is_seen
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.terms import Variable
from epsparql.trees import list_fields, map_fields, replace_fields

Scopes = Callable[[a.Pattern], Scope]
"""The function returns the scope of a pattern."""
OptionalJoin: TypeAlias = a.LeftJoin | a.EqLeftJoin | a.SeqRightJoin


def essential(pattern: a.Pattern, kept: Scope, scope: Scopes) -> a.Pattern:
    """Return the part of `pattern` that decides whether it has a solution.

    An optional part decides nothing until a change of the background takes it away where it was found. It is left out
    where the outer solution says what it finds, unless `find_optional` knows how to plan it.
    """
    match pattern:
        case a.LeftJoin() | a.EqLeftJoin() | a.SeqRightJoin():
            left, _ = sides_of(pattern)
            inner = essential(left, kept, scope)
            apart = inner is left and not find_open_variables(pattern, kept, scope)
            return pattern if apart or find_optional(pattern, kept, scope) else inner
        case a.Extend(inner, variable, _) if variable not in kept.possible:
            return essential(inner, kept, scope)
        case a.Union(left, right):
            return a.Union(essential(left, kept, scope), essential(right, kept, scope))
        case _:
            return pattern


def sides_of(pattern: OptionalJoin) -> tuple[a.Pattern, a.Pattern]:
    """Return the side of an optional join that stays, and the optional part."""
    return (pattern.right, pattern.left) if isinstance(pattern, a.SeqRightJoin) else (pattern.left, pattern.right)


def alternatives(pattern: a.Pattern) -> list[a.Pattern]:
    """Return the operands of a UNION, which has a solution where one of its operands has."""
    match pattern:
        case a.Union(left, right):
            return alternatives(left) + alternatives(right)
        case _:
            return [pattern]


def is_correlated(builder: PlanBuilder, pattern: a.Pattern, kept: Scope) -> bool:
    """Return whether what an EXISTS finds depends on the outer solution otherwise than by compatibility."""
    pattern = essential(pattern, kept, builder.scope)
    if isinstance(pattern, a.Union):
        return any(is_correlated(builder, part, kept) for part in alternatives(pattern))
    return find_optional(pattern, kept, builder.scope) is not None or bool(lift_conditions(builder, pattern, kept)[1])


# ---------------------------------------------------------------- an optional part that the outer solution decides on
@dataclass(frozen=True, slots=True)
class OptionalInside:
    """Holds an optional join whose part uses variables of the outer solution.

    `pattern` has the conditions of its part that do not, `found` has the others. `whole` are the conditions behind
    the join.
    """

    pattern: OptionalJoin
    found: tuple[a.Expression, ...]
    whole: tuple[a.Expression, ...]


def find_optional(pattern: a.Pattern, kept: Scope, scope: Scopes) -> OptionalInside | None:
    """Return the optional join that is the pattern, but for conditions behind it; None where there is none of the
    kind, or it cannot be planned.
    """
    whole: list[a.Expression] = []
    while isinstance(pattern, a.Filter):
        whole += list_conjuncts(pattern.condition)
        pattern = pattern.pattern
    if not isinstance(pattern, a.LeftJoin | a.EqLeftJoin | a.SeqRightJoin) or not find_open_variables(pattern, kept, scope):
        return None
    left, other = sides_of(pattern)
    conditions = [] if pattern.condition is None else list_conjuncts(pattern.condition)
    bound = scope(left).certain | scope(other).certain
    found = [part for part in conditions if (_variables_within(part) - bound) & kept.possible]
    if any(looks_at_time(part) or has_exists(part) for part in (*found, *whole)):
        return None
    if scope(left).possible != scope(left).certain or any(find_open_variables(side, kept, scope) for side in (left, other)):
        return None
    rest = conjunction([part for part in conditions if part not in found])
    return OptionalInside(replace_fields(pattern, condition=rest), tuple(found), tuple(whole))


def conjunction(conditions: list[a.Expression]) -> a.Expression | None:
    whole = None
    for part in conditions:
        whole = part if whole is None else a.And(whole, part)
    return whole


# ---------------------------------------------------------------- conditions that are taken out
Lifted = tuple[a.Pattern, list[a.Expression], dict[Variable, a.Expression]]
"""The parts are the rest of a pattern, the conditions taken out of it, and what the BINDs that went with them stood
for.
"""


def lift_conditions(builder: PlanBuilder, pattern: a.Pattern, kept: Scope, around: Variables | None = None) -> Lifted:
    """Return a pattern of EXISTS without the conditions that look at variables of the outer solution.

    `around` are the variables that its siblings may bind, None where it has none. With siblings, what decides on
    absence stays: its time is the pattern's own.
    """
    match pattern:
        case a.Filter():
            return _lift_filter(builder, pattern, kept, around)
        case a.Join() | a.SeqJoin() | a.EqJoin() | a.RelationJoin():
            beside = around or frozenset()
            left, from_left, bound_left = lift_conditions(builder, pattern.left, kept, beside | builder.scope(pattern.right).possible)
            right, from_right, bound_right = lift_conditions(builder, pattern.right, kept, beside | builder.scope(pattern.left).possible)
            return replace_fields(pattern, left=left, right=right), from_left + from_right, bound_left | bound_right
        case a.Graph() | a.Within():
            inner, lifted, bound = lift_conditions(builder, pattern.pattern, kept, around)
            return replace_fields(pattern, pattern=inner), lifted, bound
        case a.Extend(inner, variable, expression) if looks_outside(expression, builder.scope(inner), kept) and not looks_at_time(expression):
            inner, lifted, bound = lift_conditions(builder, inner, kept, around)
            expression = put_values(expression, bound)
            return inner, [_agrees(variable, expression), *lifted], bound | {variable: expression}
        case a.Minus(left, _) if not shares_inside(builder, pattern, kept):
            return lift_conditions(builder, left, kept, around)  # nothing is taken away
        case a.Minus(left, right) if around is None and is_exists(builder, pattern, kept):
            left, lifted, bound = lift_conditions(builder, left, kept, around)
            return left, [a.Not(a.Exists(right)), *lifted], bound  # they share a variable that is no term by then, so this is NOT EXISTS
        case _:
            return pattern, [], {}


def is_exists(builder: PlanBuilder, minus: a.Minus, kept: Scope) -> bool:
    """Return whether a MINUS depends on the outer solution, and both sides share a variable whatever that binds."""
    x, y = builder.scope(minus.left), builder.scope(minus.right)
    shared = any(is_seen(v) for v in (x.certain & y.certain) - kept.possible)
    return shared and (bool((y.possible - x.certain) & kept.possible) or is_correlated(builder, minus.right, kept))


def _lift_filter(builder: PlanBuilder, pattern: a.Filter, kept: Scope, around: Variables | None) -> Lifted:
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
        case _ if values and isinstance(node, a.Expression):
            return map_fields(node, lambda part: put_values(part, values))
        case _:
            return node


def shares_inside(builder: PlanBuilder, minus: a.Minus, kept: Scope) -> bool:
    """Return whether both sides share a variable that is one still when the outer solution has been put in."""
    shared = builder.scope(minus.left).possible & builder.scope(minus.right).possible
    return any(is_seen(v) for v in shared - kept.certain)


def _agrees(variable: Variable, expression: a.Expression) -> a.Expression:
    """Return the condition that replaces a BIND: where both have a value, it is the same term."""
    same = a.Call("SAMETERM", (a.Var(variable), expression))
    return a.Coalesce((same, a.Constant(TRUE)))


def may_leave(condition: a.Expression, here: Scope, kept: Scope, around: Variables | None) -> bool:
    """Return whether a condition means the same outside of its group.

    Its time is the inner solution's, and what only a sibling binds is unbound in it. An EXISTS decides at that time.
    """
    if around is None:
        return not looks_at_time(condition)
    return not (looks_at_time(condition) or has_exists(condition)) and not (variables_of(condition) - here.certain - kept.certain) & around


def looks_outside(condition: a.Expression, here: Scope, kept: Scope) -> bool:
    """Return whether a condition needs a variable that the outer solution may bind and its own group does not."""
    return bool((_variables_within(condition) - here.certain) & kept.possible)


def _variables_within(expression: a.Expression) -> Variables:
    """Return the variables that an expression looks at, those inside EXISTS too."""
    return variables_of(expression) | {v for part in list_subexpressions(expression) if isinstance(part, a.Exists) for v in find_variables(part)}


# ---------------------------------------------------------------- what cannot be planned
def refuse_correlation(builder: PlanBuilder, pattern: a.Pattern, kept: Scope) -> None:
    if find_open_variables(pattern, kept, builder.scope):
        raise correlation_refusal()


def correlation_refusal() -> Refusal:
    where = "an OPTIONAL, MINUS, WITHOUT, LIMIT or nested UNION, or in a FILTER or BIND in one or with getDURATION() and its kin"
    return Refusal(f"inside EXISTS, in {where}, a variable of the group outside that the group inside need not bind", "EXISTS")


def find_open_variables(pattern: a.Pattern, kept: Scope, scope: Scopes) -> Variables:
    """Return the variables of the outer solution that say more than compatibility in `pattern`.

    Conditions use them, or what decides on absence, and their own group or the kept side does not certainly bind them.
    """
    found = frozenset[Variable]()
    match pattern:
        case a.SubSelect(inner, projection, _, modifiers):
            cut = modifiers.limit is not None or modifiers.offset > 0 or modifiers.once is not None
            return frozenset(projection) & (find_open_variables(inner, kept, scope) | (scope(inner).possible & kept.possible if cut else found))
        case a.LeftJoin() | a.EqLeftJoin() | a.SeqRightJoin():
            left, other = sides_of(pattern)
            found = scope(other).possible - scope(left).certain
        case a.Minus(left, right):
            if not any(is_seen(v) for v in (scope(left).possible & scope(right).possible) - kept.certain):
                return find_open_variables(left, kept, scope)  # nothing is taken away
            found = scope(right).possible - scope(left).certain
        case a.SeqWithout(left, right, absent) | a.JoinWithout(left, right, absent):
            found = scope(absent).possible - scope(left).certain - scope(right).certain
        case a.WithoutFor(left, absent):
            found = scope(absent).possible - scope(left).certain
        case _:
            pass
    below = [getattr(pattern, name) for name in list_fields(type(pattern)) or ()]
    inside = [part for part in below if isinstance(part, a.Pattern)]
    bound = frozenset[Variable]().union(*(scope(part).certain for part in inside))
    found = found.union(*(_variables_within(part) - bound for part in below if isinstance(part, a.Expression)))
    return (found & kept.possible).union(*(find_open_variables(part, kept, scope) for part in inside))
