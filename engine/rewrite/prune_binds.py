"""BINDs whose variable nothing looks at are left out, and so nobody is asked for their values."""

from collections import Counter
from collections.abc import Iterator
from functools import partial

from engine.pattern_scope import Variables, find_scope, has_exists, looks_at_time, variables_of
from engine.rewrite.transform import replace_patterns
from epsparql import algebra as a
from epsparql.terms import Variable
from epsparql.trees import list_fields, replace_fields


def prune_binds(query: a.Query) -> a.Query:
    """Return the query without BINDs to a variable that stands nowhere else, if certain variables alone decide the
    value.

    Sub-SELECTs do not project such variables.

    A solution is one with such a BIND and without it. Under UNION two that differ in its variable alone would become
    one. Where solutions are put in order or counted, the variable has a say in which comes first.
    """
    if query.sources.windows or (isinstance(query, a.Select) and query.modifiers != a.PLAIN):
        return query
    while True:
        found = replace_patterns(query, partial(_needed, looked_at=Counter(_looked_at(query))))
        if found == query:
            return query
        query = found


def _needed(pattern: a.Pattern, looked_at: Counter[Variable]) -> a.Pattern:
    match pattern:
        case a.Union() | a.Group():
            return pattern
        case a.SubSelect(_, projection, distinct, modifiers):
            if distinct or modifiers != a.PLAIN:
                return pattern
            pattern = replace_fields(pattern, projection=tuple(v for v in projection if looked_at[v]))
        case a.Extend(inner, variable, expression) if not looked_at[variable] and _is_of(_determined(inner), expression):
            return _needed(inner, looked_at)
    return replace_patterns(pattern, partial(_needed, looked_at=looked_at))


def _determined(pattern: a.Pattern) -> Variables:
    """Return the variables that are always bound, and those that BIND makes of them alone."""
    match pattern:
        case a.Extend(inner, variable, expression):
            known = _determined(inner)
            return known | {variable} if _is_of(known, expression) else known
        case a.Filter(_, inner):
            return _determined(inner)
        case _:
            return find_scope(pattern, lambda triple, where: True).certain


def _is_of(known: Variables, expression: a.Expression) -> bool:
    """Return whether solutions that agree on these variables agree on an expression."""
    return not has_exists(expression) and not looks_at_time(expression) and variables_of(expression) <= known


def _looked_at(node: object) -> Iterator[Variable]:
    """Yield each place where a variable stands, except where BIND makes it and where a sub-SELECT hands it on."""
    pending = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, Variable):
            yield part
        elif isinstance(part, tuple):
            pending += part
        elif (names := list_fields(type(part))) is not None:
            handed_on = (
                {"variable"} if isinstance(part, a.Extend) else {"projection"} if isinstance(part, a.SubSelect) and not part.distinct else set()
            )
            pending += [getattr(part, name) for name in names if name not in handed_on]
