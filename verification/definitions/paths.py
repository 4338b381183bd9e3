"""Property paths of the reference evaluator: the walks of a path as a relation between nodes (SPARQL 1.1, 18.4;
semantics.md section 3).
"""

from collections.abc import Iterable, Iterator
from itertools import count
from typing import assert_never

from epsparql import algebra
from epsparql.algebra import PropertyPath
from epsparql.deferred_methods import dataclass
from epsparql.terms import Term, TermOrVariable, Variable
from verification.definitions.model import Micros, Solution, Triple, bind, compatible, join_solutions, likely_pairs

Edge = tuple[Triple, Micros | None, Micros | None]
"""A triple with its interval; None, None for a background triple."""


@dataclass(frozen=True, slots=True)
class Walk:
    """Leads from one node to another over at least one triple, with the least start and the greatest end along it."""

    first: Term
    last: Term
    start: Micros | None
    end: Micros | None


@dataclass(frozen=True, slots=True)
class Walks:
    """A path's walks, and whether staying where one is belongs to it: an empty step inside a walk costs no time."""

    walks: frozenset[Walk]
    empty: bool


def pairs(pattern: algebra.Path, edges: frozenset[Edge]) -> Iterator[Solution]:
    """Yield the solutions of a path.

    An alternative is a union, and a sequence in it a join over a hidden node; a repeated path gives pairs alone.
    """
    return _path_solutions(pattern.path, pattern.subject, pattern.object, edges, count())


def _path_solutions(
    path: PropertyPath, subject: TermOrVariable, object_: TermOrVariable, edges: frozenset[Edge], numbers: Iterator[int]
) -> Iterator[Solution]:
    match path:
        case algebra.Inverse(inner):
            yield from _path_solutions(inner, object_, subject, edges, numbers)
        case algebra.Alternative(left, right):
            yield from _path_solutions(left, subject, object_, edges, numbers)
            yield from _path_solutions(right, subject, object_, edges, numbers)
        case algebra.Sequence(left, right):
            middle = Variable(f"_:inner node {next(numbers)}")
            xs = frozenset(_path_solutions(left, subject, middle, edges, numbers))
            ys = frozenset(_path_solutions(right, middle, object_, edges, numbers))
            yield from (join_solutions(x, y) for x, y in likely_pairs(xs, ys) if compatible(x, y))
        case _:
            yield from _pairs(path, (subject, object_), edges)


def _pairs(path: PropertyPath, ends: tuple[TermOrVariable, TermOrVariable], edges: frozenset[Edge]) -> Iterator[Solution]:
    found = _walks(path, edges)
    walks = {*found.walks, *(_zero_length(ends, edges) if found.empty else ())}
    for walk in walks:
        bound: dict[Variable, Term] = {}
        for end, node in zip(ends, (walk.first, walk.last), strict=True):
            if not bind(end, node, bound):
                break
        else:
            yield Solution(frozenset(bound.items()), walk.start, walk.end)


def _zero_length(ends: tuple[TermOrVariable, TermOrVariable], edges: Iterable[Edge]) -> set[Walk]:
    """Section 1: constants are timeless; between two variables each node stands on the interval of each occurrence it
    is in.
    """
    constants = {end for end in ends if not isinstance(end, Variable)}
    if constants:
        return {Walk(node, node, None, None) for node in constants}
    return {Walk(node, node, start, end) for (subject, _, object_), start, end in edges for node in (subject, object_)}


def _walks(path: PropertyPath, edges: frozenset[Edge]) -> Walks:
    match path:
        case algebra.Link(predicate):
            return Walks(frozenset(Walk(s, o, start, end) for (s, p, o), start, end in edges if p == predicate), False)
        case algebra.Negated(forward, backward):
            return Walks(frozenset(_others(forward, backward, edges)), False)
        case algebra.Inverse(inner):
            found = _walks(inner, edges)
            return Walks(frozenset(Walk(w.last, w.first, w.start, w.end) for w in found.walks), found.empty)
        case algebra.Sequence(left, right):
            one, two = _walks(left, edges), _walks(right, edges)
            kept = (one.walks if two.empty else frozenset()) | (two.walks if one.empty else frozenset())
            return Walks(_composed(one.walks, two.walks) | kept, one.empty and two.empty)
        case algebra.Alternative(left, right):
            one, two = _walks(left, edges), _walks(right, edges)
            return Walks(one.walks | two.walks, one.empty or two.empty)
        case algebra.ZeroOrOne(inner):
            return Walks(_walks(inner, edges).walks, True)
        case algebra.ZeroOrMore(inner):
            return Walks(_closed(_walks(inner, edges).walks), True)
        case algebra.OneOrMore(inner):
            found = _walks(inner, edges)
            return Walks(_closed(found.walks), found.empty)
    assert_never(path)


def _others(forward: Iterable[Term] | None, backward: Iterable[Term] | None, edges: frozenset[Edge]) -> Iterator[Walk]:
    for (subject, predicate, object_), start, end in edges:
        if forward is not None and predicate not in forward:
            yield Walk(subject, object_, start, end)
        if backward is not None and predicate not in backward:
            yield Walk(object_, subject, start, end)


def _composed(one: frozenset[Walk], two: frozenset[Walk]) -> frozenset[Walk]:
    return frozenset(_after(a, b) for a in one for b in two if a.last == b.first)


def _after(a: Walk, b: Walk) -> Walk:
    starts = [s for s in (a.start, b.start) if s is not None]
    ends = [e for e in (a.end, b.end) if e is not None]
    return Walk(a.first, b.last, min(starts, default=None), max(ends, default=None))


def _closed(steps: frozenset[Walk]) -> frozenset[Walk]:
    """The least fixpoint."""
    found = steps
    while not (longer := _composed(found, steps)) <= found:
        found |= longer
    return found
