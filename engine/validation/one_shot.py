"""This module refuses what a query over the background alone cannot ask: it reads no stream, and the background's
triples hold always.
"""

import re

from engine.validation.validate import place_of, refuse_functions
from epsparql import algebra as a
from epsparql.errors import Span, Unsupported
from epsparql.translate.translator import ParsedQuery
from epsparql.trees import walk_nodes

_TIMED = (
    a.SeqJoin, a.EqJoin, a.RelationJoin, a.SeqRightJoin, a.EqLeftJoin, a.SeqWithout, a.JoinWithout, a.WithoutFor, a.Alarm, a.Instant, a.Within,
    a.RangeWindow, a.RowsWindow, a.RunWindow, a.InWindow, a.Once, a.Time,
)  # fmt: skip
_EXPECTED = "SPARQL 1.1; register queries over streams at /queries"


def refuse_streams(parsed: ParsedQuery) -> None:
    """Raise Unsupported at what asks for streams or times, and at a function that is not known."""
    query = parsed.query
    refuse_functions(parsed)
    if isinstance(query, a.BackgroundRule) or (isinstance(query, a.Construct) and query.into != a.DEFAULT_STREAM):
        raise Unsupported("INTO is refused here: an answer goes to the client alone", place_of([query], parsed), parsed.text, _EXPECTED)
    if query.streams != (a.DEFAULT_STREAM,) or (isinstance(query, a.Select) and query.program):
        raise Unsupported("a stream is refused here: only the background is read", place_of([query], parsed), parsed.text, _EXPECTED)
    owner: object = query
    for node in walk_nodes(query):
        owner = node if parsed.places.find_span(node) is not None else owner
        if isinstance(node, _TIMED):
            message = "an operator over time is refused here: the triples of the background hold always"
            raise Unsupported(message, _find_place(node, owner, parsed), parsed.text, _EXPECTED)


def _find_place(node: object, owner: object, parsed: ParsedQuery) -> Span:
    """Return the place of a function of the interval by its name in the text.

    For any other node, return what the query has noted.
    """
    named = re.search(re.escape(node.function.value), parsed.text, re.IGNORECASE) if isinstance(node, a.Time) else None
    return Span(*named.span()) if named else place_of([node, owner], parsed)
