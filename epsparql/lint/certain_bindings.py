"""This module finds the variables that every solution of the written query binds, so that the others may be unbound
in some.

BIND counts as an error only where a variable of its expression may be unbound. An answer may be too wide, so a doubt
about a variable is sound.
"""

from functools import reduce
from typing import assert_never

from epsparql.lint.scopes import Scopes, needed, parts
from epsparql.parser import ast as s

Names = frozenset[str]
_GUARDS = ("BOUND", "COALESCE", "IF")
"""These functions may have a value where a variable in them has none."""


def bound_in_body(body: s.Body, scopes: Scopes) -> Names:
    """Return the names that every solution of a pattern binds, with the VALUES and the named keys that follow it."""
    found = bound_in_group(body.where, scopes)
    if body.values is not None:
        found |= _bound_by_values(body.values)
    return found | {key.variable.name for key in body.modifier.keys if key.variable is not None and _has_value(key.expression, found)}


def bound_in_group(group: s.GroupGraphPattern, scopes: Scopes) -> Names:
    """Return the names that every solution of a group binds."""
    found: Names = frozenset()
    for element in group.elements:
        if isinstance(element, s.BindElement):
            found |= {element.variable.name} if _has_value(element.expression, found) else frozenset()
        elif isinstance(element, s.FilterElement):
            continue
        else:
            found |= _bound_by_element(element, scopes)
    return found.union(*(_passed_by(element.condition) for element in group.elements if isinstance(element, s.FilterElement)))


def _bound_by_element(element: s.TriplesSameSubject | s.Applied, scopes: Scopes) -> Names:
    match element:
        case s.TriplesSameSubject():
            return scopes.element(element)
        case s.OptionalElement() | s.MinusElement() | s.BindElement():
            return frozenset()
        case s.Chain():
            return _bound_by_chain(element, scopes)
        case s.GraphElement(name, group, _) | s.WindowElement(name, group, _) | s.ServiceElement(_, name, group, _):
            return bound_in_group(group, scopes) | ({name.name} if isinstance(name, s.VariableName) else frozenset())
        case s.ValuesElement():
            return _bound_by_values(element)
        case s.SubSelectElement(select, _):
            return _bound_by_select(select, scopes)
    assert_never(element)


def _bound_by_chain(chain: s.Chain, scopes: Scopes) -> Names:
    found = bound_in_group(chain.first, scopes)
    for step in chain.steps:
        match step:
            case s.Combine(s.ChainOperator.UNION, group, _):
                found &= bound_in_group(group, scopes)
            case s.Combine(s.ChainOperator.OPTIONALSEQ, group, _):
                found = bound_in_group(group, scopes)
            case s.Combine(operator, group, _) if operator is not s.ChainOperator.EQUALSOPTIONAL:
                found |= bound_in_group(group, scopes)
    return found


def _bound_by_values(values: s.ValuesElement) -> Names:
    return frozenset(v.name for k, v in enumerate(values.variables) if all(k < len(row.terms) and row.terms[k] is not None for row in values.rows))


def _bound_by_select(select: s.SelectForm, scopes: Scopes) -> Names:
    found = bound_in_body(select.body, scopes)
    if not select.items:
        return found
    own = {item.variable.name for item in select.items if item.expression is not None and _has_value(item.expression, found)}
    return frozenset(own | {item.variable.name for item in select.items if item.expression is None and item.variable.name in found})


def _has_value(expression: s.Expression, bound: Names) -> bool:
    """Return whether an expression has a value as far as its variables are concerned; COUNT always has one."""
    return all(place.name in bound for place in needed(expression)) or (isinstance(expression, s.AggregateCall) and expression.name == "COUNT")


def _passed_by(condition: s.Expression) -> Names:
    """Return the names that are bound in each solution for which a condition is true."""
    match condition:
        case s.Binary(s.BinaryOperator.AND, left, right, _):
            return reduce(frozenset.union, map(_passed_by, (left, right)))
        case s.BuiltInCall("BOUND", (s.VariableName(name, _),), _):
            return frozenset({name})
        case s.Binary(operator, _, _, _) if operator not in (s.BinaryOperator.OR, s.BinaryOperator.IN, s.BinaryOperator.NOT_IN):
            guarded = any(
                isinstance(part, s.ExistsCall) or (isinstance(part, s.BuiltInCall) and part.name in _GUARDS) for part in parts((condition,))
            )
            return frozenset() if guarded else frozenset(place.name for place in needed(condition))
        case _:
            return frozenset()
