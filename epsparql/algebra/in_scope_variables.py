"""This module finds the variables that are in scope after a pattern (SPARQL 18.2.1)."""

from typing import assert_never

from epsparql import algebra as a
from epsparql.terms import Variable


def visible_variables(pattern: a.Pattern) -> tuple[Variable, ...]:
    """Return the variables in scope after `pattern` (SPARQL 18.2.1), hidden ones included, in the order in which they
    first appear.
    """
    return tuple(_visible(pattern))


def _visible(pattern: a.Pattern) -> dict[Variable, None]:
    match pattern:
        case a.Bgp(triples):
            return {variable: None for triple in triples for variable in a.variables_in(triple.subject, triple.predicate, triple.object)}
        case a.Filter(_, inner) | a.Within(inner, _) | a.WithoutFor(inner, _, _) | a.Alarm(inner, _) | a.Minus(inner, _) | a.InWindow(_, inner):
            return _visible(inner)
        case a.Extend(inner, variable, _):
            return _visible(inner) | {variable: None}
        case (
            a.Join(left, right) | a.Union(left, right) | a.SeqJoin(left, right) | a.EqJoin(left, right) | a.RelationJoin(_, left, right)
            | a.LeftJoin(left, right, _) | a.SeqRightJoin(left, right, _) | a.EqLeftJoin(left, right, _) | a.SeqWithout(left, right, _, _)
            | a.JoinWithout(left, right, _, _)
        ):  # fmt: skip
            return _visible(left) | _visible(right)
        case a.Path(subject, _, object_):
            return dict.fromkeys(a.variables_in(subject, object_))
        case a.Values(variables, _) | a.SubSelect(_, variables, _, _):
            return dict.fromkeys(variables)
        case a.Graph(name, inner):
            return ({name: None} if isinstance(name, Variable) else {}) | _visible(inner)
        case a.Group(_, keys, aggregates, _):
            return dict.fromkeys(keys) | {variable: None for variable, _ in aggregates}
        case a.Instant():
            return {}
    assert_never(pattern)
