"""This module names the operands of a query's chain by the query's own words."""

from itertools import accumulate

from engine.explain.algebra_outline import Outliner
from engine.rewrite import rewrite_query
from engine.rewrite.operands import find_operands
from epsparql import algebra as a
from epsparql.solutions.policies import UNRESTRICTED
from epsparql.translate.translator import ParsedQuery
from epsparql.trees import walk_nodes

_DEPTHS = {"{": 1, "}": -1}


def name_operands(parsed: ParsedQuery, default_graph: str = "all", policy: str = UNRESTRICTED) -> tuple[str, ...]:
    """Return the words of each operand that a plan of the query joins, in order.

    Where the text has none, or rewriting joined the operands otherwise, an operand is written as the outline of the
    algebra writes it.
    """
    if isinstance(parsed.query, a.BackgroundRule) or (isinstance(parsed.query, a.Select) and parsed.query.program):
        return ()
    rewritten = rewrite_query(parsed.query, default_graph, policy)
    assert not isinstance(rewritten, a.BackgroundRule), "only a static rule is rewritten to one"
    planned, written = find_operands(rewritten.pattern).patterns, find_operands(parsed.query.pattern).patterns
    outliner = Outliner.from_query(rewritten)
    outlines = [" ".join((type(operand).__name__, outliner.detail(operand))).strip() for operand in planned]
    if len(planned) != len(written):
        return tuple(outlines)
    return tuple(_find_words(parsed, operand) or outline for operand, outline in zip(written, outlines, strict=True))


def _find_words(parsed: ParsedQuery, pattern: a.Pattern) -> str:
    spans = [span for node in walk_nodes(pattern) if (span := parsed.places.find_span(node)) is not None]
    if not spans:
        return ""
    words = " ".join(parsed.text[min(span.start for span in spans) : max(span.end for span in spans)].split())
    depths = list(accumulate((_DEPTHS.get(character, 0) for character in words), initial=0))
    return f"{'{ ' * -min(depths)}{words}{' }' * (depths[-1] - min(depths))}"
