"""EXISTS inside an aggregate or an ORDER BY is set aside.

A hidden variable of the rows below takes the value of the whole expression.
"""

from collections.abc import Callable
from itertools import count
from typing import TypeVar

from engine.pattern_scope import has_exists
from engine.rewrite.transform import replace_patterns
from epsparql import algebra as a
from epsparql.terms import Variable
from epsparql.trees import replace_fields

Selecting = TypeVar("Selecting", a.Select, a.SubSelect)


def hoist_exists(query: a.Query) -> a.Query:
    """Return the query with no EXISTS in an aggregate or ORDER BY."""
    numbers = count()

    def fresh() -> Variable:
        return Variable(f"_:aside#{next(numbers)}")

    def hoist_from_pattern(pattern: a.Pattern) -> a.Pattern:
        below = replace_patterns(pattern, hoist_from_pattern)
        match below:
            case a.Group():
                return _hoist_from_group(below, fresh)
            case a.SubSelect():
                return _ordered(below, fresh)
            case _:
                return below

    below = replace_patterns(query, hoist_from_pattern)
    return _ordered(below, fresh) if isinstance(below, a.Select) else below


def _hoist_from_group(group: a.Group, fresh: Callable[[], Variable]) -> a.Group:
    pattern = group.pattern
    aggregates = []
    for variable, aggregate in group.aggregates:
        if aggregate.argument is not None and has_exists(aggregate.argument):
            new = fresh()
            pattern = a.Extend(pattern, new, aggregate.argument)
            aggregate = replace_fields(aggregate, argument=a.Var(new))
        aggregates.append((variable, aggregate))
    return replace_fields(group, pattern=pattern, aggregates=tuple(aggregates))


def _ordered(select: Selecting, fresh: Callable[[], Variable]) -> Selecting:
    pattern = select.pattern
    order = []
    for key in select.modifiers.order:
        if has_exists(key.expression):
            new = fresh()
            pattern = a.Extend(pattern, new, key.expression)
            key = replace_fields(key, expression=a.Var(new))
        order.append(key)
    return replace_fields(select, pattern=pattern, modifiers=replace_fields(select.modifiers, order=tuple(order)))
