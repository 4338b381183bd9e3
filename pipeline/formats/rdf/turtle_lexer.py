"""This module finds the tokens of Turtle and its family, as far as they must be told apart before a parser is asked."""

import re
from collections.abc import Iterator

from pipeline.errors import FormatError

MAX_DEPTH = 64
"""Constructs may be nested this deep. The parsers recurse, and the machine's stack ends before a body does."""
# Repetitions are possessive: for others, `re` notes a place to return to at each step, 120 bytes for each byte of a long string.
_STRINGS = rb'"""(?:[^"\\]++|\\.|""?(?!"))*+"""' rb"|'''(?:[^'\\]++|\\.|''?(?!'))*+'''" rb'|"(?:[^"\\\n\r]++|\\.)*+"' rb"|'(?:[^'\\\n\r]++|\\.)*+'"
_NAME = rb"[^\s<>\"'{}\[\]();,.#]++(?:\.++[^\s<>\"'{}\[\]();,.#]++)*+"
TOKEN = re.compile(
    rb"(?P<blank>\s+|#[^\n\r]*)|(?P<string>" + _STRINGS + rb")|(?P<iri><[^<>\"{}|^`\x00-\x20]*>)|(?P<name>" + _NAME + rb")|<<|>>|.", re.DOTALL
)
_JSON = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
_LONG = re.compile(rb"<[^<>\"{}|^`\x00-\x20]{200,}")
_MOST = 16 << 20
_SHORT = 1 << 13  # bytes of a text of which a parser makes some megabytes at most
_USUAL = 200  # bytes that IRIs seldom have
_AT_ONCE = 1 << 16

Token = re.Match[bytes]


def tokens(text: bytes) -> Iterator[Token]:
    """Yield all tokens but blanks and comments, in order."""
    return (found for found in TOKEN.finditer(text) if found.lastgroup != "blank")


def check_terms(text: bytes) -> None:
    """Refuse triple terms nested deeper than MAX_DEPTH. Raises: FormatError."""
    if text.count(b"<<") > MAX_DEPTH:
        _check(text, ((found.start(), {b"<<": 1, b">>": -1}.get(found[0], 0)) for found in tokens(text)), "triple terms")


def is_small_when_resolved(text: bytes) -> bool:
    """Tell whether a parser of Turtle surely holds little of a text: resolved prefixes and bases, and the names in
    brackets that are open.

    A keyword has no escapes, and its words in other places only make the estimate higher.
    """
    if len(text) <= _SHORT:
        return True
    names = _count_word(text, b"prefix") + text.count(b"[") + text.count(b"(")
    return names * longest_iri(text) <= _MOST


def longest_iri(text: bytes) -> int:
    """Return about how many bytes a parser's longest IRI has at most, beside a local name that stands in the text."""
    return (_count_word(text, b"base") + 1) * max(map(len, _LONG.findall(text)), default=_USUAL)


def _count_word(text: bytes, word: bytes) -> int:
    """Return how often a word stands in a text, in letters of either case."""
    return sum(text[at : at + _AT_ONCE + len(word) - 1].lower().count(word) for at in range(0, len(text), _AT_ONCE))


def check_json(text: bytes) -> None:
    """Refuse arrays and objects nested deeper than MAX_DEPTH. Raises: FormatError."""
    steps = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}
    _check(text, ((found.start(), steps.get(found[0], 0)) for found in _JSON.finditer(text)), "arrays and objects")


def _check(text: bytes, steps: Iterator[tuple[int, int]], what: str) -> None:
    depth = 0
    for at, step in steps:
        depth = max(depth + step, 0)
        if depth > MAX_DEPTH:
            raise FormatError("too-deep", f"{what} are nested deeper than {MAX_DEPTH}", *place(text, at))


def place(text: bytes, at: int) -> tuple[int, int]:
    """Return line and code-point column, from 1, of a byte."""
    line = text.rfind(b"\n", 0, at) + 1
    return text.count(b"\n", 0, at) + 1, len(text[line:at].decode("utf-8", "replace")) + 1
