"""This module finds the operands of a query's chain, and makes the query of its first operands."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce

from engine.pattern_scope import asks_identity, find_scope, has_exists, list_conjuncts, looks_at_time, span_of, variables_of
from epsparql import algebra as a
from epsparql.algebra.in_scope_variables import visible_variables
from epsparql.recursion import deep_stack


@dataclass(frozen=True, slots=True)
class Operands:
    """Holds the operands that a pattern joins, in the order of its text. What only limits or extends the solutions of
    an operand belongs to it.

    `segments` says, by the identity of each part of the pattern, which operands it joins: the first and the last,
    counted from 0.
    """

    patterns: tuple[a.Pattern, ...] = ()
    segments: Mapping[int, tuple[int, int]] = field(default_factory=dict)


def find_operands(pattern: a.Pattern) -> Operands:
    """Return the operands of SEQ, AND, EQUALS, the interval relations and WITHOUT.

    A pattern that must be absent is none.
    """
    found, segments = list[a.Pattern](), dict[int, tuple[int, int]]()

    def visit(node: a.Pattern, *, outermost: bool) -> None:
        first = len(found)
        joined, inner = _list_joined(node), _find_inner(node, outermost=outermost)
        for part in joined:
            visit(part, outermost=False)
        if inner is not None:
            visit(inner, outermost=outermost)
        if not joined and (inner is None or (first == len(found) - 1 and not isinstance(node, a.WithoutFor))):
            found[first:] = [node]
        segments[id(node)] = first, len(found) - 1

    with deep_stack():
        visit(pattern, outermost=True)
    return Operands(tuple(found), segments)


def _list_joined(pattern: a.Pattern) -> tuple[a.Pattern, ...]:
    match pattern:
        case a.Join() | a.SeqJoin() | a.EqJoin() | a.RelationJoin() | a.SeqWithout() | a.JoinWithout():
            return pattern.left, pattern.right
        case _:
            return ()


def _find_inner(pattern: a.Pattern, *, outermost: bool) -> a.Pattern | None:
    """Return the pattern whose solutions a pattern limits or extends; the outermost one may group them too."""
    match pattern:
        case a.Filter() | a.Within() | a.Extend() | a.WithoutFor() | a.Alarm():
            return pattern.pattern
        case a.Group() | a.SubSelect() if outermost:
            return pattern.pattern
        case _:
            return None


def select_first_operands(query: a.Query, n: int) -> a.Select | None:
    """Return the query of the solutions of a chain's first `n` operands; None if they are no part of it by themselves.

    Of the conditions on the whole chain, it has those that the first operands decide, and the longest duration.
    """
    if isinstance(query, a.BackgroundRule) or query.sources.windows or (isinstance(query, a.Select) and query.program):
        return None
    operands = find_operands(query.pattern)
    pattern, conditions, limits = query.pattern, list[a.Expression](), list[int]()
    if not 0 < n < len(operands.patterns):
        return None
    while operands.segments[id(pattern)] != (0, n - 1):
        joined = _list_joined(pattern)
        inner = joined[0] if joined else _find_inner(pattern, outermost=True)
        if inner is None or operands.segments[id(inner)][1] < n - 1:
            return None
        match pattern:
            case a.Filter(condition):
                conditions += list_conjuncts(condition)
            case a.Within(_, limit) | a.SeqWithout(within=int(limit)) | a.JoinWithout(within=int(limit)):
                limits.append(limit)
            case a.Group() | a.SubSelect():
                conditions.clear()
            case _:
                pass
        pattern = inner
    certain = find_scope(pattern, lambda *_: False).certain
    decided = [each for each in conditions if variables_of(each) <= certain and not (has_exists(each) or looks_at_time(each) or asks_identity(each))]
    span = min([span_of(conditions), *limits])
    shown = tuple(variable for variable in visible_variables(pattern) if not variable.hidden)
    whole = pattern if span >= span_of(()) else a.Within(pattern, span)
    return a.Select(a.Filter(reduce(a.And, decided), whole) if decided else whole, shown, False, query.streams, sources=query.sources)
