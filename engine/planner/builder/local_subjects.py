"""This module finds decisions on what one node lacks.

If the node is local, they need not wait for the instant (semantics.md section 5).
"""

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
    if isinstance(subject, Variable) and len(streams) == 1 and _describes(builder, kept, subject, streams):
        node.subject, node.source = builder.column(subject), builder.names.stream(streams[0])


def _describes(builder: PlanBuilder, pattern: a.Pattern, subject: Variable, streams: tuple[str, ...]) -> bool:
    """Return whether each solution of a pattern rests on a triple that these streams have of the subject."""
    match pattern:
        case a.Bgp(triples, place):
            return streams_of(builder, place) == streams and any(triple.subject == subject for triple in triples)
        case a.Union(left, right):
            return _describes(builder, left, subject, streams) and _describes(builder, right, subject, streams)
        case a.Join(left, right) | a.SeqJoin(left, right) | a.EqJoin(left, right) | a.RelationJoin(_, left, right):
            return _describes(builder, left, subject, streams) or _describes(builder, right, subject, streams)
        case a.Filter(_, inner) | a.Within(inner) | a.Extend(inner):
            return _describes(builder, inner, subject, streams)
        case a.LeftJoin(kept) | a.EqLeftJoin(kept) | a.Minus(kept):
            return _describes(builder, kept, subject, streams)
        case a.SubSelect(inner, projection):
            return subject in projection and _describes(builder, inner, subject, streams)
        case _:
            return False
