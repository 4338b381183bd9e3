"""What a pattern binds: certainly, possibly; and whether a solution of it may be timeless."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from epsparql import algebra as a
from epsparql.terms import Variable

Variables = frozenset[Variable]
Matches = Callable[[a.TriplePattern], bool]
"""Whether a background triple matches a triple pattern."""


@dataclass(frozen=True, slots=True)
class Scope:
    """`certain` variables are bound in every solution, `possible` ones in some; `timeless`: a solution may be."""

    certain: Variables
    possible: Variables
    timeless: bool


EMPTY = Scope(frozenset(), frozenset(), True)


def scope(pattern: a.Pattern, matches: Matches) -> Scope:
    """The scope of a pattern's solutions."""
    match pattern:
        case a.Bgp(triples):
            bound = frozenset(t for triple in triples for t in (triple.subject, triple.predicate, triple.object) if isinstance(t, Variable))
            return Scope(bound, bound, all(matches(triple) for triple in triples))
        case a.Join(left, right) | a.SeqJoin(left, right) | a.EqJoin(left, right) | a.RelationJoin(_, left, right) | a.SeqWithout(left, right, _, _):
            return _joined(scope(left, matches), scope(right, matches))
        case a.Union(left, right):
            x, y = scope(left, matches), scope(right, matches)
            return Scope(x.certain & y.certain, x.possible | y.possible, x.timeless or y.timeless)
        case a.Filter(_, inner) | a.Within(inner, _) | a.Minus(inner, _):
            return scope(inner, matches)
        case a.Extend(inner, variable, _):
            x = scope(inner, matches)
            return Scope(x.certain, x.possible | {variable}, x.timeless)
        case a.LeftJoin(kept, other, _) | a.EqLeftJoin(kept, other, _) | a.SeqRightJoin(other, kept, _):
            x, y = scope(kept, matches), scope(other, matches)
            return Scope(x.certain, x.possible | y.possible, x.timeless)
        case a.WithoutFor(inner, _, _):
            x = scope(inner, matches)
            return Scope(x.certain, x.possible, False)
        case _:
            assert_never(pattern)


def _joined(x: Scope, y: Scope) -> Scope:
    return Scope(x.certain | y.certain, x.possible | y.possible, x.timeless and y.timeless)


def variables_of(expression: a.Expression) -> Variables:
    """The variables an expression looks at, those inside EXISTS apart."""
    match expression:
        case a.Var(variable) | a.Bound(variable):
            return frozenset({variable})
        case a.Constant() | a.Time() | a.Exists():
            return frozenset()
        case a.Not(operand) | a.Negate(operand):
            return variables_of(operand)
        case a.And(left, right) | a.Or(left, right) | a.Compare(_, left, right) | a.Arithmetic(_, left, right):
            return variables_of(left) | variables_of(right)
        case a.If(condition, then, otherwise):
            return variables_of(condition) | variables_of(then) | variables_of(otherwise)
        case a.In(operand, members):
            return variables_of(operand).union(*map(variables_of, members))
        case a.Coalesce(operands) | a.Call(_, operands):
            return frozenset().union(*map(variables_of, operands))
        case _:
            assert_never(expression)


def all_variables(pattern: a.Pattern) -> Variables:
    """Every variable that occurs in a pattern, also where its solutions do not bind it."""
    match pattern:
        case a.Bgp(triples):
            return frozenset(t for triple in triples for t in (triple.subject, triple.predicate, triple.object) if isinstance(t, Variable))
        case a.Filter(condition, inner):
            patterns = [part.pattern for part in parts(condition) if isinstance(part, a.Exists)]
            return all_variables(inner).union(*map(all_variables, patterns))
        case a.Within(inner, _):
            return all_variables(inner)
        case a.Extend(inner, variable, _):
            return all_variables(inner) | {variable}
        case (
            a.Join(left, right) | a.SeqJoin(left, right) | a.EqJoin(left, right) | a.RelationJoin(_, left, right) | a.Union(left, right)
            | a.Minus(left, right) | a.WithoutFor(left, right, _) | a.LeftJoin(left, right, _) | a.EqLeftJoin(left, right, _)
            | a.SeqRightJoin(left, right, _)
        ):  # fmt: skip
            return all_variables(left) | all_variables(right)
        case a.SeqWithout(left, right, absent, _):
            return all_variables(left) | all_variables(right) | all_variables(absent)
        case _:
            assert_never(pattern)


def looks_at_time(expression: a.Expression) -> bool:
    """Whether the expression depends on its solution's interval."""
    return any(isinstance(e, a.Time) or (isinstance(e, a.Call) and e.function == "NOW") for e in parts(expression))


def parts(expression: a.Expression) -> list[a.Expression]:
    """The expression and all its sub-expressions, patterns of EXISTS not entered."""
    found, pending = [], [expression]
    while pending:
        e = pending.pop()
        found.append(e)
        match e:
            case a.Not(operand) | a.Negate(operand):
                pending.append(operand)
            case a.And(left, right) | a.Or(left, right) | a.Compare(_, left, right) | a.Arithmetic(_, left, right):
                pending += (left, right)
            case a.If(condition, then, otherwise):
                pending += (condition, then, otherwise)
            case a.In(operand, members):
                pending += (operand, *members)
            case a.Coalesce(operands) | a.Call(_, operands):
                pending += operands
            case _:
                pass
    return found


def conjuncts(expression: a.Expression) -> list[a.Expression]:
    """The operands of a conjunction, in order: of FILTER, only a true whole passes, so each must be true."""
    match expression:
        case a.And(left, right):
            return conjuncts(left) + conjuncts(right)
        case _:
            return [expression]
