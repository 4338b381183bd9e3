"""This module finds decisions on what one node lacks.

If the node is local, they need not wait for the instant (semantics.md section 5).
"""

from collections.abc import Callable

from engine.planner.builder.plan_builder import PlanBuilder
from engine.planner.builder.scans import streams_of
from epsparql import algebra as a
from epsparql.terms import Variable


def note_subject(builder: PlanBuilder, number: int, kept: a.Pattern, absent: a.Pattern) -> None:
    """Note at a node that decides on solutions of `kept` which of their nodes all of `absent` describes, and the
    stream that has both.

    Nothing is noted where `absent` describes several nodes, looks at several streams, or may be timeless.
    """
    node = builder.node(number)
    while isinstance(absent, a.Filter):
        absent = absent.pattern
    if not isinstance(absent, a.Bgp) or node.timeless or node.marks.n:
        return
    subjects, streams = {triple.subject for triple in absent.triples}, streams_of(builder, absent.place)
    subject = subjects.pop() if len(subjects) == 1 else None
    if not isinstance(subject, Variable) or len(streams) != 1:
        return

    def is_of_stream(triple: a.TriplePattern, place: a.Place) -> bool:
        return triple.subject == subject and streams_of(builder, place) == streams

    if _rests_on(kept, subject, is_of_stream):
        node.subject, node.source = builder.column(subject), builder.names.stream(streams[0])
        is_declared = streams[0] in builder.options.local
        # the background may describe any node but one of a message, and then the stream's triples about it may come later
        node.local = int(
            is_declared and _rests_on(kept, subject, lambda triple, place: is_of_stream(triple, place) and not builder.names.matches(triple, place))
        )


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
