"""PARAMETERS become a relation that the pattern is joined with: a row for each instance, with its id, the entry that
added it, and its terms.

The law: substitution of constants commutes with positive operators. So the pattern is evaluated once, with each
parameter as a variable, and its solutions are joined with the rows (semantics.md section 16).

1. The join stands below all that is applied to the whole pattern: FILTER, BIND, WITHIN, and the operands of UNION.
2. A FILTER further down that looks at a parameter goes above the join, where the parameter is bound.
"""

from functools import reduce

from engine.errors import Refusal
from engine.pattern_scope import find_scope, list_conjuncts, looks_at_time, variables_of
from epsparql import algebra as a
from epsparql.terms import Variable
from epsparql.trees import replace_fields

INSTANCE = Variable("!instance")
"""The variable holds an instance's id. No variable of a text has this name, and it is before all of them by name."""
ADDED = Variable("_:added")
"""The variable holds the offset of the entry that added the row."""
WORD = "PARAMETERS"
Lifted = tuple[a.Pattern, list[a.Expression]]


def join_instances(query: a.Query) -> a.Query:
    """Return a query whose pattern is joined with its instances, the first of what it shows. Raises Refusal."""
    if not isinstance(query, a.Select) or not query.parameters:
        return query
    relation = a.Values((INSTANCE, ADDED, *query.parameters), ())
    once, modifiers = query.modifiers.once, query.modifiers
    if once is not None:
        modifiers = replace_fields(modifiers, once=replace_fields(once, keys=(INSTANCE, ADDED, *once.keys)))
    pattern = _join_below(query.pattern, relation)
    return replace_fields(query, pattern=pattern, projection=(INSTANCE, *query.projection), modifiers=modifiers)


def is_relation(pattern: a.Pattern) -> bool:
    """Return whether a pattern stands for the instances of a query."""
    return isinstance(pattern, a.Values) and pattern.variables[:2] == (INSTANCE, ADDED)


def _join_below(pattern: a.Pattern, relation: a.Values) -> a.Pattern:
    match pattern:
        case a.Filter(_, inner) | a.Extend(inner, _, _) | a.Within(inner, _):
            return replace_fields(pattern, pattern=_join_below(inner, relation))
        case a.Union(left, right):
            return a.Union(_join_below(left, relation), _join_below(right, relation))
        case _:
            inner, conditions = _lift(pattern, frozenset(relation.variables))
            joined: a.Pattern = a.Join(inner, relation)
            return joined if not conditions else a.Filter(reduce(a.And, conditions), joined)


def _lift(pattern: a.Pattern, parameters: frozenset[Variable]) -> Lifted:
    """Return a pattern without the conditions that look at parameters, and these. Raises Refusal."""
    match pattern:
        case a.Filter(condition, inner):
            return _lift_conditions(condition, _lift(inner, parameters), parameters)
        case a.Join(left, right) | a.SeqJoin(left, right) | a.EqJoin(left, right) | a.RelationJoin(_, left, right):
            (x, to_left), (y, to_right) = _lift(left, parameters), _lift(right, parameters)
            return replace_fields(pattern, left=x, right=y), to_left + to_right
        case a.Within(inner, _):
            below, conditions = _lift(inner, parameters)
            return replace_fields(pattern, pattern=below), conditions
        case a.Extend(inner, variable, expression):
            below, conditions = _lift(inner, parameters)
            if (variables_of(expression) & parameters) - _find_certain(inner):
                raise Refusal(f"a parameter in the BIND of {variable} in a group that is joined (put the BIND behind all groups)", WORD)
            return replace_fields(pattern, pattern=below), conditions
        case a.Union(left, right):
            (x, to_left), (y, to_right) = _lift(left, parameters), _lift(right, parameters)
            if to_left or to_right:
                raise Refusal("a parameter in the FILTER of a UNION that is joined (put the FILTER behind all groups)", WORD)
            return a.Union(x, y), []
        case _:
            return pattern, []


def _lift_conditions(condition: a.Expression, inner: Lifted, parameters: frozenset[Variable]) -> Lifted:
    """Return a pattern under the conjuncts that look at no parameter, with all others and those of the pattern."""
    pattern, lifted = inner
    certain, rest = _find_certain(pattern), list[a.Expression]()
    for each in list_conjuncts(condition):
        if not variables_of(each) & parameters:
            rest.append(each)
        elif looks_at_time(each):
            raise Refusal("a parameter beside getDURATION() and the like in a group that is joined (put the FILTER behind all groups)", WORD)
        elif variables_of(each) - parameters - certain:
            raise Refusal("a parameter beside a variable that may be unbound in a group that is joined (put the FILTER behind all groups)", WORD)
        else:
            lifted = [*lifted, each]
    return (a.Filter(reduce(a.And, rest), pattern) if rest else pattern), lifted


def _find_certain(pattern: a.Pattern) -> frozenset[Variable]:
    return find_scope(pattern, lambda triple, place: True).certain
