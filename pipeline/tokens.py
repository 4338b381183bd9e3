"""The tokens of Turtle and its family, as far as they must be told apart before a parser is asked."""

import re
from collections.abc import Iterator

from pipeline.errors import FormatError

MAX_DEPTH = 64
"""Of what may stand in itself. The parsers recurse, and the machine's stack ends before a body does."""
_STRINGS = rb'"""(?:[^"\\]|\\.|""?(?!"))*"""' rb"|'''(?:[^'\\]|\\.|''?(?!'))*'''" rb'|"(?:[^"\\\n\r]|\\.)*"' rb"|'(?:[^'\\\n\r]|\\.)*'"
_NAME = rb"[^\s<>\"'{}\[\]();,.#]+(?:\.+[^\s<>\"'{}\[\]();,.#]+)*"
TOKEN = re.compile(
    rb"(?P<blank>\s+|#[^\n\r]*)|(?P<string>" + _STRINGS + rb")|(?P<iri><[^<>\"{}|^`\x00-\x20]*>)|(?P<name>" + _NAME + rb")|<<|>>|.", re.DOTALL
)
_JSON = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]', re.DOTALL)


Token = re.Match[bytes]


def tokens(text: bytes) -> Iterator[Token]:
    """All but blanks and comments, in order."""
    return (found for found in TOKEN.finditer(text) if found.lastgroup != "blank")


def check_terms(text: bytes) -> None:
    """Raises: FormatError for triple terms inside each other beyond MAX_DEPTH."""
    if text.count(b"<<") > MAX_DEPTH:
        _check(text, ((found.start(), {b"<<": 1, b">>": -1}.get(found[0], 0)) for found in tokens(text)), "triple terms")


def check_json(text: bytes) -> None:
    """Raises: FormatError for arrays and objects inside each other beyond MAX_DEPTH."""
    steps = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}
    _check(text, ((found.start(), steps.get(found[0], 0)) for found in _JSON.finditer(text)), "arrays and objects")


def _check(text: bytes, steps: Iterator[tuple[int, int]], what: str) -> None:
    depth = 0
    for at, step in steps:
        depth = max(depth + step, 0)
        if depth > MAX_DEPTH:
            raise FormatError("too-deep", f"{what} are nested deeper than {MAX_DEPTH}", *place(text, at))


def place(text: bytes, at: int) -> tuple[int, int]:
    """Line and code-point column, from 1, of a byte."""
    line = text.rfind(b"\n", 0, at) + 1
    return text.count(b"\n", 0, at) + 1, len(text[line:at].decode("utf-8", "replace")) + 1
