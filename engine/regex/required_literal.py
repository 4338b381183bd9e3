"""This module finds a text that stands in each match of a pattern."""

from collections.abc import Iterator

from epsparql.regex.pattern_parser import parse_pattern
from epsparql.regex.syntax import Anchor, CharacterClass, Concatenation, Node, Parentheses, Range, Repeat

_GAP = ""
"""What a match has here is not known; each other piece is a character."""


def find_required_literal(pattern: str, flags: str) -> str:
    """Return the longest text that the pattern names one character after the other; "" if it names none.

    Raises: PatternFault.
    """
    runs = [""]
    for piece in _list_pieces(parse_pattern(pattern, flags).root):
        if piece == _GAP:
            runs.append("")
        else:
            runs[-1] += piece
    return max(runs, key=len)


def _list_pieces(node: Node) -> Iterator[str]:
    match node:
        case CharacterClass((Range(first, last),), False, None) if first == last:
            yield chr(first)
        case Anchor():
            pass
        case Parentheses(inner):
            yield from _list_pieces(inner)
        case Concatenation(parts):
            for part in parts:
                yield from _list_pieces(part)
        case Repeat(inner, least) if least > 0:
            yield _GAP
            yield from _list_pieces(inner)
            yield _GAP
        case _:
            yield _GAP
