"""This module finds decisions on what one node lacks, and stars: parts of a pattern that describe one node alone.

If the node is local, such decisions need not wait for the instant, and stars keep nothing (semantics.md section 5).
"""

from collections.abc import Callable

from engine.pattern_scope import has_exists, is_policed
from engine.planner.builder.plan_builder import PlanBuilder
from engine.planner.builder.scans import streams_of
from epsparql import algebra as a
from epsparql.terms import Variable

Star = tuple[Variable, str]
"""A node that a pattern describes, and the stream that has its triples."""


def note_subject(builder: PlanBuilder, number: int, kept: a.Pattern, absent: a.Pattern) -> None:
    """Note at a node that decides on solutions of `kept` which of their nodes all of `absent` describes, and the
    stream that has both.

    Nothing is noted where `absent` describes several nodes, looks at several streams, or may be timeless.
    """
    node, group = builder.node(number), _strip_conditions(absent)
    found = None if group is None or node.timeless or node.marks.n else _find_described(builder, group)
    if found is None:
        return
    subject, stream = found

    def is_of_stream(triple: a.TriplePattern, place: a.Place) -> bool:
        return triple.subject == subject and streams_of(builder, place) == (stream,)

    if _rests_on(kept, subject, is_of_stream):
        node.subject, node.source = builder.column(subject), builder.names.stream(stream)
        is_declared = stream in builder.options.local
        # the background may describe any node but one of a message, and then the stream's triples about it may come later
        node.local = int(
            is_declared and _rests_on(kept, subject, lambda triple, place: is_of_stream(triple, place) and not builder.names.matches(triple, place))
        )
        node.star = int(_find_star(builder, kept) == _find_star(builder, absent) == found)


def note_star(builder: PlanBuilder, number: int, *sides: a.Pattern) -> None:
    """Note at a join that its sides describe one node, if they do: for a local node, all partners are at hand."""
    stars = {_find_star(builder, side) for side in sides}
    star = stars.pop()
    if star is not None and not stars:
        node, (subject, stream) = builder.node(number), star
        node.subject, node.source, node.star = builder.column(subject), builder.names.stream(stream), 1
        node.local = int(stream in builder.options.local)


def _find_star(builder: PlanBuilder, pattern: a.Pattern) -> Star | None:
    """Return the node that a pattern describes, and the stream of all its triples; None unless it is one of each.

    The background matches none of them. Solutions come when the last of their triples does, or at the entry's end.
    """
    match pattern:
        case a.Bgp(triples, place):
            is_known = any(builder.names.matches(triple, place) for triple in triples)
            return None if is_known else _find_described(builder, pattern)
        case a.Join(left, right) | a.EqJoin(left, right) if not is_policed(pattern, builder.options.policy):
            return _find_common_star(builder, left, right)
        case a.LeftJoin(left, right, condition) | a.EqLeftJoin(left, right, condition) if condition is None or not has_exists(condition):
            return _find_common_star(builder, left, right) if _strip_conditions(right) is not None else None  # others decide later
        case a.Filter(condition, inner) if not has_exists(condition):
            return _find_star(builder, inner)
        case _:
            return None


def _find_common_star(builder: PlanBuilder, left: a.Pattern, right: a.Pattern) -> Star | None:
    star = _find_star(builder, left)
    return star if star is not None and _find_star(builder, right) == star else None


def _find_described(builder: PlanBuilder, group: a.Bgp) -> Star | None:
    """Return the node that all of a group describes, and the stream that the group looks at; None if one of them are
    several.
    """
    subjects, streams = {triple.subject for triple in group.triples}, streams_of(builder, group.place)
    subject = subjects.pop() if len(subjects) == 1 else None
    return (subject, streams[0]) if isinstance(subject, Variable) and len(streams) == 1 else None


def _strip_conditions(pattern: a.Pattern) -> a.Bgp | None:
    """Return the group of a pattern that is one, with conditions on it that are decided at once."""
    while isinstance(pattern, a.Filter) and not has_exists(pattern.condition):
        pattern = pattern.pattern
    return pattern if isinstance(pattern, a.Bgp) else None


def _rests_on(pattern: a.Pattern, subject: Variable, is_one: Callable[[a.TriplePattern, a.Place], bool]) -> bool:
    """Return whether each solution of a pattern rests on one of these triples, and binds the subject."""
    match pattern:
        case a.Bgp(triples, place):
            return any(is_one(triple, place) for triple in triples)
        case a.Union(left, right):
            return _rests_on(left, subject, is_one) and _rests_on(right, subject, is_one)
        case a.Join(left, right) | a.SeqJoin(left, right) | a.EqJoin(left, right) | a.RelationJoin(_, left, right):
            return _rests_on(left, subject, is_one) or _rests_on(right, subject, is_one)
        case a.Filter(_, inner) | a.Within(inner) | a.Extend(inner):
            return _rests_on(inner, subject, is_one)
        case a.LeftJoin(kept) | a.EqLeftJoin(kept) | a.Minus(kept):
            return _rests_on(kept, subject, is_one)
        case a.SubSelect(inner, projection):
            return subject in projection and _rests_on(inner, subject, is_one)
        case _:
            return False
