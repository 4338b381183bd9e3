"""UNTIL gets variables of its own, and reports of a group's runs that are the same solution become one (semantics.md
section 13).
"""

from typing import TypeVar

from engine.rewrite.rename_hidden import find_variables
from engine.rewrite.transform import replace_patterns
from epsparql import algebra as a
from epsparql.algebra.in_scope_variables import visible_variables
from epsparql.terms import Variable
from epsparql.trees import replace_fields

Selecting = TypeVar("Selecting", a.Select, a.SubSelect)
_MERGED = "_:merged"
"""A hidden variable of this name, which nothing binds, marks the sub-SELECT that merges reports."""


def separate_runs(query: a.Query) -> a.Query:
    """Return the query whose runs and ONCE PER share only their keys with UNTIL.

    Its reports are told apart by the key, SELECT's values and interval.
    """
    below = replace_patterns(query, _separate)
    if not isinstance(below, a.Select):
        return below
    return _separate_select(below)


def merges_reports(select: a.SubSelect) -> bool:
    """Return whether a sub-SELECT stands only to merge reports."""
    return any(variable.name.startswith(_MERGED) for variable in select.projection)


def _separate(pattern: a.Pattern) -> a.Pattern:
    below = replace_patterns(pattern, _separate)
    match below:
        case a.Group(_, keys, _, a.RunWindow(until=until) as run) if until is not None:
            return replace_fields(below, window=replace_fields(run, until=_project_until(until, keys)))
        case a.SubSelect():
            return _separate_select(below)
        case _:
            return below


def _separate_select(select: Selecting) -> Selecting:
    once = select.modifiers.once
    if once is not None and once.until is not None:
        select = replace_fields(
            select, modifiers=replace_fields(select.modifiers, once=replace_fields(once, until=_project_until(once.until, once.keys)))
        )
    return replace_fields(select, pattern=_merge_reports(select.pattern, select.projection, select.modifiers))


def _project_until(until: a.Pattern, keys: tuple[Variable, ...]) -> a.SubSelect:
    return a.SubSelect(until, tuple(variable for variable in visible_variables(until) if variable in keys), distinct=True)


def _merge_reports(pattern: a.Pattern, projection: tuple[Variable, ...], modifiers: a.Modifiers) -> a.Pattern:
    """Return the pattern of a SELECT so that no two of its reports are the same solution."""
    apart = _tell_apart(pattern, projection)
    if apart is None:
        return pattern
    asked = find_variables(modifiers.order) | set(modifiers.once.keys if modifiers.once is not None else ())
    ordered_by = sorted(asked, key=lambda variable: variable.name)
    return a.SubSelect(pattern, tuple(dict.fromkeys((*apart, *ordered_by, Variable(_MERGED)))), distinct=True)


def _tell_apart(pattern: a.Pattern, projection: tuple[Variable, ...]) -> tuple[Variable, ...] | None:
    """Return what tells the reports of a SELECT's own runs apart; None if its aggregates are all shown, since what
    differs in one differs there.
    """
    group = _find_run_group(pattern)
    if group is None:
        return None
    shown = set(projection)
    shown |= {value.variable for value in _list_assigned(pattern, shown) if isinstance(value, a.Var)}
    return None if all(variable in shown for variable, _ in group.aggregates) else (*projection, *group.keys)


def _find_run_group(pattern: a.Pattern) -> a.Group | None:
    """Return the SELECT's own group, if it has runs."""
    match pattern:
        case a.Extend(inner, _, _) | a.Filter(_, inner) | a.Join(inner, a.Values()):
            return _find_run_group(inner)
        case a.Group(_, _, _, a.RunWindow()):
            return pattern
        case _:
            return None


def _list_assigned(pattern: a.Pattern, shown: set[Variable]) -> list[a.Expression]:
    """Return the expressions that SELECT assigns to variables that are shown."""
    found = []
    while isinstance(pattern, a.Extend):
        if pattern.variable in shown:
            found.append(pattern.expression)
        pattern = pattern.pattern
    return found
