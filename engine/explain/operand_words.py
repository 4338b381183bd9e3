"""This module names the operands of a query's chain by the query's own words."""

from itertools import accumulate

from engine.explain.algebra_outline import Outliner
from engine.rewrite import rewrite_query
from engine.rewrite.operands import find_operands
from epsparql import algebra as a
from epsparql.etalis.header import is_program
from epsparql.etalis.parser.syntax import count_open
from epsparql.solutions.policies import UNRESTRICTED
from epsparql.translate.translator import ParsedQuery
from epsparql.trees import walk_nodes

_DEPTHS = {"{": 1, "}": -1}


def name_operands(parsed: ParsedQuery, default_graph: str = "all", policy: str = UNRESTRICTED) -> tuple[tuple[str, ...], ...]:
    """Return the words of each operand that a plan of the query joins, in order, chain by chain
    (engine/rewrite/operands.py).

    Where the text has none, or rewriting joined the operands otherwise, an operand is written as the outline of the
    algebra writes it.
    """
    if isinstance(parsed.query, a.BackgroundRule):
        return ()
    rewritten = rewrite_query(parsed.query, default_graph, policy)
    assert not isinstance(rewritten, a.BackgroundRule), "only a static rule is rewritten to one"
    planned, written = find_operands(rewritten), find_operands(parsed.query)
    outliner = Outliner.from_query(rewritten)
    names = [" ".join((type(operand).__name__, outliner.detail(operand))).strip() for operand in planned.patterns]
    if planned.chains == written.chains:
        names = [_find_words(parsed, operand) or outline for operand, outline in zip(written.patterns, names, strict=True)]
    return tuple(tuple(names[first : last + 1]) for first, last in planned.chains)


def _find_words(parsed: ParsedQuery, pattern: a.Pattern) -> str:
    spans = [span for node in walk_nodes(pattern) if (span := parsed.places.find_span(node)) is not None]
    if not spans:
        return ""
    text = parsed.text[min(span.start for span in spans) : max(span.end for span in spans)]
    if is_program(parsed.text):
        return f"{' '.join(text.split())}{')' * count_open(text)}"
    words = " ".join(text.split())
    depths = list(accumulate((_DEPTHS.get(character, 0) for character in words), initial=0))
    return f"{'{ ' * -min(depths)}{words}{' }' * (depths[-1] - min(depths))}"
