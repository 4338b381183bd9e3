"""An alternative path that has a sequence becomes a UNION (SPARQL 1.1, 18.4): solutions of a sequence are told apart
by its inner nodes.
"""

from collections.abc import Iterator
from itertools import count

from engine.rewrite.transform import replace_patterns
from epsparql import algebra as a
from epsparql.terms import TermOrVariable, Variable


def part_alternatives(query: a.Query) -> a.Query:
    """Return the query without alternatives of sequences, but for those that are repeated: a repeated path finds each
    pair of ends once.
    """
    numbers = count()

    def part_path(pattern: a.Pattern) -> a.Pattern:
        if isinstance(pattern, a.Path):
            return _write_out(pattern, numbers) if _has_alternatives_of_sequences(pattern.path) else pattern
        return replace_patterns(pattern, part_path)

    return replace_patterns(query, part_path)


def _has_alternatives_of_sequences(path: a.PropertyPath) -> bool:
    match path:
        case a.Alternative(left, right):
            return _has_sequence(left) or _has_sequence(right)
        case a.Inverse(inner):
            return _has_alternatives_of_sequences(inner)
        case _:
            return False


def _has_sequence(path: a.PropertyPath) -> bool:
    match path:
        case a.Sequence():
            return True
        case a.Alternative(left, right):
            return _has_sequence(left) or _has_sequence(right)
        case a.Inverse(inner):
            return _has_sequence(inner)
        case _:
            return False


def _write_out(pattern: a.Path, numbers: Iterator[int]) -> a.Pattern:
    """Return a path as a UNION of its alternatives, with a hidden variable for each inner node of their sequences; no
    label has a slash.
    """
    place = pattern.place

    def write_out(path: a.PropertyPath, start: TermOrVariable, end: TermOrVariable) -> a.Pattern:
        match path:
            case a.Link(predicate):
                return a.Bgp((a.TriplePattern(start, predicate, end),), place)
            case a.Inverse(inner):
                return write_out(inner, end, start)
            case a.Alternative(left, right) if _has_sequence(path):
                return a.Union(write_out(left, start, end), write_out(right, start, end))
            case a.Sequence(left, right):
                middle = Variable(f"_:step/{next(numbers)}")
                return _join(write_out(left, start, middle), write_out(right, middle, end))
            case _:
                return a.Path(start, path, end, place)

    return write_out(pattern.path, pattern.subject, pattern.object)


def _join(left: a.Pattern, right: a.Pattern) -> a.Pattern:
    """Join two patterns of one place; triples are one basic graph pattern."""
    if isinstance(left, a.Bgp) and isinstance(right, a.Bgp):
        return a.Bgp((*left.triples, *right.triples), left.place)
    return a.Join(left, right)
