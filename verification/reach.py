"""This module finds how far back in time a query looks, so that a slice of the log can be evaluated by itself."""

from collections.abc import Iterable
from math import floor
from typing import assert_never

from epsparql import algebra
from epsparql.algebra import Expression, Pattern, Query
from epsparql.deferred_methods import dataclass
from epsparql.trees import walk_nodes
from verification.definitions.expressions import duration, exists_in
from verification.definitions.model import Micros
from verification.definitions.patterns import Settings

NEGATIVE = (
    algebra.LeftJoin | algebra.EqLeftJoin | algebra.SeqRightJoin | algebra.Minus | algebra.SeqWithout | algebra.JoinWithout
    | algebra.WithoutFor | algebra.Alarm | algebra.Group | algebra.Exists
)  # fmt: skip
_ROUNDS = 50
"""Rules that reach further back with each round have no bound."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Says on which occurrences a solution depends: on none that ends more than `back` µs before it ends (None: on
    all before it).

    `inside` says that it depends on those within its own interval alone.
    """

    back: Micros | None
    inside: bool


@dataclass(frozen=True, slots=True)
class Scope:
    """Holds what is known of the streams that are read: how far back derived triples reach, and whether they depend
    on their intervals alone.
    """

    derived: Micros | None = 0
    inside: bool = True
    restricted: bool = False
    """A consumption policy other than `unrestricted` depends on all that came before."""
    facts: bool = False


_STREAMS_ALONE = Scope()


def reach_of(query: Query, settings: Settings, scope: Scope = _STREAMS_ALONE) -> Reach:
    if query.sources.windows:
        longest = max(window.length + window.step for window in query.sources.windows)
        return Reach(_sum(2 * longest, scope.derived), False)
    if isinstance(query, algebra.Ask | algebra.Describe):
        return Reach(None, False)
    if isinstance(query, algebra.Select) and _counts(query.modifiers):
        return Reach(None, False)
    restricted = settings.policy != "unrestricted"
    return _pattern(query.pattern, Scope(scope.derived, scope.inside, restricted, scope.facts))


def reach_through_rules(query: Query, settings: Settings, rules: Iterable[tuple[Query, Settings]], facts: bool) -> Reach:
    """Return the reach of a query that reads what rules derive, in occurrences that were sent."""
    rules = list(rules)
    scope = Scope(facts=facts)
    for _ in range(_ROUNDS):
        found = [reach_of(rule, chosen, scope) for rule, chosen in rules]
        backs = [each.back for each in found]
        further = Scope(
            None if None in backs else max((back for back in backs if back is not None), default=0), all(r.inside for r in found), facts=facts
        )
        if further == scope:
            break
        scope = further
    else:
        scope = Scope(None, False, facts=facts)
    own = reach_of(query, settings, scope)
    return Reach(own.back, own.inside and scope.inside)


def is_positive(query: Query, settings: Settings) -> bool:
    """Return whether more occurrences never take a solution away."""
    counted = (node.modifiers for node in walk_nodes(query.pattern) if isinstance(node, algebra.SubSelect))
    return (
        settings.policy == "unrestricted"
        and not query.sources.windows
        and not any(isinstance(node, NEGATIVE) for node in walk_nodes(query.pattern))
        and not any(map(_counts, counted))
    )


def _pattern(pattern: Pattern, scope: Scope) -> Reach:
    match pattern:
        case algebra.Bgp(triples):
            return Reach(scope.derived if len(triples) <= 1 else None, scope.inside)
        case algebra.Path():
            return Reach(None, scope.inside)
        case algebra.Values() | algebra.Instant():
            return Reach(0, True)
        case algebra.Union(left, right) | algebra.EqJoin(left, right):
            return _both(_pattern(left, scope), _pattern(right, scope))
        case algebra.Join(left, right, True):
            return Reach(None, _both(_pattern(left, scope), _pattern(right, scope)).inside)
        case algebra.Join(left, right) | algebra.SeqJoin(left, right) | algebra.RelationJoin(_, left, right):
            return Reach(None, _both(_pattern(left, scope), _pattern(right, scope)).inside and not scope.restricted)
        case algebra.Filter(condition, inner):
            return _bounded(_pattern(inner, scope), longest(condition)) if not exists_in(condition) else Reach(None, False)
        case algebra.Extend(inner, _, expression):
            return _pattern(inner, scope) if not exists_in(expression) else Reach(None, False)
        case algebra.Within(inner, limit):
            return _bounded(_pattern(inner, scope), limit)
        case algebra.LeftJoin(kept, optional, condition) | algebra.SeqRightJoin(optional, kept, condition):
            bound = None if condition is None or exists_in(condition) or not _pattern(optional, scope).inside else longest(condition)
            return Reach(None if bound is None else _both(_pattern(kept, scope), Reach(bound, True)).back, False)
        case algebra.EqLeftJoin(left, right, condition):
            both = _both(_pattern(left, scope), _pattern(right, scope))
            return Reach(None if condition is not None and exists_in(condition) else both.back, False)
        case algebra.Minus():
            return Reach(None, False)
        case algebra.SeqWithout(left, right, absent, within) | algebra.JoinWithout(left, right, absent, within):
            inside = all(_pattern(each, scope).inside for each in (left, right, absent)) and not scope.restricted
            return Reach(within if inside else None, inside)
        case algebra.WithoutFor(inner, absent, wait):
            found, other = _pattern(inner, scope), _pattern(absent, scope)
            return Reach(_sum(found.back, wait) if other.inside else None, found.inside and other.inside)
        case algebra.Alarm(inner):
            return Reach(None, _pattern(inner, scope).inside)
        case algebra.Graph(_, inner):
            return _pattern(inner, scope) if not scope.facts else Reach(None, False)
        case algebra.InWindow():
            return Reach(None, False)
        case algebra.Group(inner, window=algebra.RangeWindow(length, step)):
            return Reach(_sum(_pattern(inner, scope).back, length + (step or 0)), False)
        case algebra.Group():
            return Reach(None, False)
        case algebra.SubSelect(inner, modifiers=modifiers):
            return Reach(None, False) if _counts(modifiers) else _pattern(inner, scope)
    assert_never(pattern)


def _counts(modifiers: algebra.Modifiers) -> bool:
    """Return whether a solution depends on the solutions before it."""
    return bool(modifiers.offset) or modifiers.limit is not None or modifiers.once is not None


def _bounded(reach: Reach, limit: Micros | None) -> Reach:
    """Return the reach of solutions that are at most so long."""
    if limit is None or not reach.inside:
        return reach
    return Reach(limit if reach.back is None else min(limit, reach.back), True)


def _both(one: Reach, other: Reach) -> Reach:
    back = None if one.back is None or other.back is None else max(one.back, other.back)
    return Reach(back, one.inside and other.inside)


def _sum(*parts: Micros | None) -> Micros | None:
    return None if None in parts else sum(part for part in parts if part is not None)


def longest(condition: Expression) -> Micros | None:
    """Return a bound on the duration of solutions for which a condition holds, None where it gives none."""
    match condition:
        case algebra.And(left, right):
            return min((bound for bound in map(longest, (left, right)) if bound is not None), default=None)
        case algebra.Compare(
            algebra.Comparison.LESS | algebra.Comparison.LESS_OR_EQUAL | algebra.Comparison.EQUAL,
            algebra.Time(algebra.TimeFunction.DURATION),
            algebra.Constant(term),
        ):
            months, micros = duration(term) or (1, 0)
            return None if months else floor(micros)  # intervals have whole microseconds
        case algebra.Compare(
            algebra.Comparison.GREATER | algebra.Comparison.GREATER_OR_EQUAL, algebra.Constant(), algebra.Time(algebra.TimeFunction.DURATION)
        ):
            return longest(algebra.Compare(algebra.Comparison.LESS_OR_EQUAL, condition.right, condition.left))
    return None
