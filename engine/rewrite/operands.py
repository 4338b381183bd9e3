"""This module finds the operands of a query's chain, and makes the query of its first operands."""

from collections.abc import Mapping
from dataclasses import field
from functools import reduce

from engine.pattern_scope import asks_identity, find_scope, has_exists, list_conjuncts, looks_at_time, span_of, variables_of
from epsparql import algebra as a
from epsparql.algebra.in_scope_variables import visible_variables
from epsparql.deferred_methods import dataclass
from epsparql.recursion import deep_stack
from epsparql.terms import Variable
from epsparql.trees import replace_fields, walk_nodes


@dataclass(frozen=True, slots=True)
class Operands:
    """Holds the operands that the chains of a query join, in the order of its text. What only limits or extends the
    solutions of an operand belongs to it.

    A chain is the query's pattern, an alternative of it that UNION stands before, or a rule of a program. `chains` has
    the first and the last operand of each, counted from 0. `segments` says, by the identity of each part of a chain,
    which operands it joins.
    """

    patterns: tuple[a.Pattern, ...] = ()
    segments: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    chains: tuple[tuple[int, int], ...] = ()


def find_operands(query: a.StreamQuery) -> Operands:
    """Return the operands of SEQ, AND, EQUALS, the interval relations and WITHOUT.

    A pattern that must be absent is none.
    """
    reader = _Reader()
    with deep_stack():
        for rule in query.rules if isinstance(query, a.Select) else ():
            reader.add_chains(rule.pattern)
        reader.add_chains(query.pattern)
    return Operands(tuple(reader.found), reader.segments, tuple(reader.chains))


@dataclass(frozen=True, slots=True)
class _Reader:
    found: list[a.Pattern] = field(default_factory=list)
    segments: dict[int, tuple[int, int]] = field(default_factory=dict)
    chains: list[tuple[int, int]] = field(default_factory=list)

    def add_chains(self, pattern: a.Pattern) -> None:
        """Add the chain that a pattern is, or the chains of its alternatives."""
        first = len(self.found)
        if self._visit(pattern, outermost=True):
            self.chains.append((first, len(self.found) - 1))

    def _visit(self, node: a.Pattern, *, outermost: bool) -> bool:
        """Add the operands of a part of a chain, and return whether it is a part of one chain alone."""
        first = len(self.found)
        if outermost and isinstance(node, a.Union) and _has_join(node):
            self.add_chains(node.left)
            self.add_chains(node.right)
            return False
        joined, inner = _list_joined(node), _find_inner(node, outermost=outermost)
        for part in joined:
            self._visit(part, outermost=False)
        if inner is not None and not self._visit(inner, outermost=outermost):
            return False
        if not joined and (inner is None or (first == len(self.found) - 1 and not isinstance(node, a.WithoutFor))):
            self.found[first:] = [node]
        self.segments[id(node)] = first, len(self.found) - 1
        return True


def _has_join(pattern: a.Pattern) -> bool:
    """Return whether a pattern, or an alternative of it, joins operands."""
    pending = [pattern]
    while pending:
        node = pending.pop()
        if _list_joined(node):
            return True
        inner = _find_inner(node, outermost=True)
        pending += [node.left, node.right] if isinstance(node, a.Union) else [] if inner is None else [inner]
    return False


def _list_joined(pattern: a.Pattern) -> tuple[a.Pattern, ...]:
    match pattern:
        case a.EqJoin() if _is_star(pattern):
            return ()
        case a.Join() | a.SeqJoin() | a.EqJoin() | a.RelationJoin() | a.SeqWithout() | a.JoinWithout():
            return pattern.left, pattern.right
        case _:
            return ()


def _is_star(join: a.EqJoin) -> bool:
    """Return whether triples about one hidden node are joined, which are one event of a program."""
    subject: object = None
    for node in walk_nodes(join):
        if isinstance(node, a.TriplePattern):
            if not (isinstance(node.subject, Variable) and node.subject.hidden) or subject not in (None, node.subject):
                return False
            subject = node.subject
    return True


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
    """Return the query of the solutions of the first `n` operands of each chain that has more; None if there is none, or
    they are no part of a chain by themselves, or have no instances of their own.

    Of the conditions on the whole chain, it has those that the first operands decide, and the longest duration.
    """
    if isinstance(query, a.BackgroundRule) or query.sources.windows or (isinstance(query, a.Select) and (query.program or query.parameters)):
        return None
    operands = find_operands(query)
    if n < 1 or all(last - first < n for first, last in operands.chains):
        return None
    pattern = _select_part(operands, query.pattern, n, (), ())
    if pattern is None:
        return None
    shown = tuple(variable for variable in visible_variables(pattern) if not variable.hidden)
    return a.Select(pattern, shown, False, query.streams, sources=query.sources)


_Conditions = tuple[a.Expression, ...]


def _select_part(operands: Operands, pattern: a.Pattern, n: int, conditions: _Conditions, limits: tuple[int, ...]) -> a.Pattern | None:
    """Return the pattern of the first `n` operands of a part, under these conditions and durations of the whole chain.

    Alternatives with fewer operands are left out.
    """
    segment = operands.segments.get(id(pattern))
    while segment is None or segment[1] - segment[0] >= n:
        match pattern:
            case a.Union(left, right):
                return _select_alternatives(operands, (left, right), n, conditions, limits)
            case a.Filter(condition):
                conditions += tuple(list_conjuncts(condition))
            case a.Within(_, limit) | a.SeqWithout(within=int(limit)) | a.JoinWithout(within=int(limit)):
                limits += (limit,)
            case a.Group() | a.SubSelect():
                conditions = ()
            case _:
                pass
        joined = _list_joined(pattern)
        inner = joined[0] if joined else _find_inner(pattern, outermost=True)
        if inner is None:
            return None
        after = operands.segments.get(id(inner))
        if joined and after is not None and after[1] - after[0] + 1 < n:
            nested = _select_nested(operands, pattern, n - (after[1] - after[0] + 1))
            return None if nested is None else _limit_part(nested, conditions, limits)
        pattern, segment = inner, after
    return _limit_part(pattern, conditions, limits) if segment[1] - segment[0] == n - 1 else None


def _select_alternatives(
    operands: Operands, sides: tuple[a.Pattern, a.Pattern], n: int, conditions: _Conditions, limits: tuple[int, ...]
) -> a.Pattern | None:
    found = list[a.Pattern]()
    for side in sides:
        if _count_operands(operands, side) > n:
            part = _select_part(operands, side, n, conditions, limits)
            if part is None:
                return None
            found.append(part)
    return reduce(a.Union, found)


def _count_operands(operands: Operands, pattern: a.Pattern) -> int:
    """Return how many operands the longest chain of a part has."""
    segment = operands.segments.get(id(pattern))
    if segment is not None:
        return segment[1] - segment[0] + 1
    inner = (pattern.left, pattern.right) if isinstance(pattern, a.Union) else (_find_inner(pattern, outermost=True),)
    return max(_count_operands(operands, part) for part in inner if part is not None)


def _select_nested(operands: Operands, pattern: a.Pattern, n: int) -> a.Pattern | None:
    """Return a join of the whole left operand with the first `n` operands of the right one.

    A solution of SEQ or AND begins with such a join; the start of the right operand is none of its first operands
    under other relations, so they say nothing of these.
    """
    if not isinstance(pattern, a.SeqJoin | a.Join):
        return None
    part = _select_part(operands, pattern.right, n, (), ())
    return None if part is None else replace_fields(pattern, right=part)


def _limit_part(pattern: a.Pattern, conditions: _Conditions, limits: tuple[int, ...]) -> a.Pattern:
    """Return a part under those conditions of the whole chain that the part decides."""
    certain = find_scope(pattern, lambda *_: False).certain
    decided = [each for each in conditions if variables_of(each) <= certain and not (has_exists(each) or looks_at_time(each) or asks_identity(each))]
    span = min([span_of(list(conditions)), *limits])
    whole = pattern if span >= span_of(()) else a.Within(pattern, span)
    return a.Filter(reduce(a.And, decided), whole) if decided else whole
