"""This module finds the places where a query states the conditions and durations that its plan may apply further down."""

from dataclasses import field

from engine.explain.algebra_outline import exists_in, operands
from engine.pattern_scope import duration_limit, list_conjuncts
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass

FREE = (a.Bgp, a.Filter, a.Within, a.Union, a.Path, a.Values, a.Graph, a.InWindow, a.Group, a.SubSelect)
"""These nodes make no two-sided operator and bind nothing."""


@dataclass(frozen=True, slots=True)
class Written:
    """Counts how many operators stand above a place in the query, by condition and by longest duration (µs).

    Of several places the greatest count is taken.
    """

    conditions: dict[a.Expression, int] = field(default_factory=dict)
    limits: dict[int, int] = field(default_factory=dict)

    @classmethod
    def from_pattern(cls, pattern: a.Pattern) -> "Written":
        found = cls()
        pending = [(pattern, 0)]
        while pending:
            node, depth = pending.pop()
            below = depth + (0 if isinstance(node, FREE) else 1)
            if isinstance(node, a.Filter):
                below += sum(1 for each in list_conjuncts(node.condition) if exists_in(each))
                found.conditions.update((each, max(below, found.conditions.get(each, 0))) for each in list_conjuncts(node.condition))
            found.limits.update((limit, max(depth, found.limits.get(limit, 0))) for limit in limits_of(node))
            pending += [(part, below) for part in operands(node)]
        return found


def limits_of(pattern: a.Pattern) -> list[int]:
    """Return the durations that a node bounds solutions with."""
    conditions: list[a.Expression] = []
    limits: list[int | None] = []
    match pattern:
        case a.Within(_, limit):
            limits = [limit]
        case a.SeqWithout(_, _, _, within) | a.JoinWithout(_, _, _, within):
            limits = [within]
        case a.Filter(condition, _):
            conditions = list_conjuncts(condition)
        case a.LeftJoin(_, _, own) | a.EqLeftJoin(_, _, own) | a.SeqRightJoin(_, _, own) if own is not None:
            conditions = list_conjuncts(own)
        case _:
            pass
    return [limit for limit in (*limits, *map(duration_limit, conditions)) if limit is not None]
