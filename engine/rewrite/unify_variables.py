"""Two variables that must be the same term become one, which joins are keyed by; the other is bound to it afterwards."""

from engine.pattern_scope import find_scope, has_exists, list_conjuncts
from engine.rewrite.rename_hidden import rename_variables
from engine.rewrite.transform import replace_patterns
from epsparql import algebra as a
from epsparql.terms import Variable


def unify_variables(query: a.Query) -> a.Query:
    """Return the query where FILTER(sameTerm(?x, ?y)) has become one variable.

    The filter stands over triple patterns and positive joins that bind both.
    """
    return replace_patterns(query, _keyed)


def _keyed(pattern: a.Pattern) -> a.Pattern:
    below = replace_patterns(pattern, _keyed)
    if not isinstance(below, a.Filter) or not is_positive(below.pattern):
        return below
    inner, conditions = below.pattern, list_conjuncts(below.condition)
    certain = find_scope(inner, lambda triple, where: True).certain
    for condition in conditions:
        match condition:
            case a.Call("SAMETERM", (a.Var(kept), a.Var(other))) if kept != other and {kept, other} <= certain:
                return _as_one(inner, kept, other, [each for each in conditions if each is not condition])
    return below


def _as_one(inner: a.Pattern, kept: Variable, other: Variable, rest: list[a.Expression]) -> a.Pattern:
    found: a.Pattern = a.Extend(rename_variables(inner, {other: kept}), other, a.Var(kept))
    for condition in rest:
        found = a.Filter(condition, found)
    return found


def is_positive(pattern: a.Pattern) -> bool:
    """Return whether a pattern is made of triple patterns, positive joins and conditions: each solution binds all of
    its variables.
    """
    match pattern:
        case a.Bgp(triples):
            return bool(triples)
        case a.Join(left, right) | a.SeqJoin(left, right) | a.EqJoin(left, right) | a.RelationJoin(_, left, right):
            return is_positive(left) and is_positive(right)
        case a.Within(inner, _):
            return is_positive(inner)
        case a.Filter(condition, inner):
            return not has_exists(condition) and is_positive(inner)
        case _:
            return False
