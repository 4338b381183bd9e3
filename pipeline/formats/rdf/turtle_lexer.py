"""This module finds the tokens of Turtle and its family, as far as they must be told apart before a parser is asked."""

import re
from collections.abc import Iterator

from pipeline.errors import FormatError
from pipeline.formats.batches.expansion_budget import ExpansionBudget

MAX_DEPTH = 64
"""Constructs may be nested this deep. The parsers recurse, and the machine's stack ends before a body does."""
_STRINGS = rb'"""(?:[^"\\]|\\.|""?(?!"))*"""' rb"|'''(?:[^'\\]|\\.|''?(?!'))*'''" rb'|"(?:[^"\\\n\r]|\\.)*"' rb"|'(?:[^'\\\n\r]|\\.)*'"
_NAME = rb"[^\s<>\"'{}\[\]();,.#]+(?:\.+[^\s<>\"'{}\[\]();,.#]+)*"
TOKEN = re.compile(
    rb"(?P<blank>\s+|#[^\n\r]*)|(?P<string>" + _STRINGS + rb")|(?P<iri><[^<>\"{}|^`\x00-\x20]*>)|(?P<name>" + _NAME + rb")|<<|>>|.", re.DOTALL
)
_JSON = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]', re.DOTALL)
_PREFIX, _BASE = re.compile(rb"(?i:prefix)"), re.compile(rb"(?i:base)")
_LONG = re.compile(rb"<[^<>\"{}|^`\x00-\x20]{200,}")
_SHORT = 1 << 13  # bytes of a text of which a parser makes some megabytes at most
_USUAL = 200  # bytes that IRIs seldom have
_ABSOLUTE = re.compile(rb"<[A-Za-z][A-Za-z0-9+.-]*:")

Token = re.Match[bytes]


def tokens(text: bytes) -> Iterator[Token]:
    """Yield all tokens but blanks and comments, in order."""
    return (found for found in TOKEN.finditer(text) if found.lastgroup != "blank")


def check_terms(text: bytes) -> None:
    """Refuse triple terms nested deeper than MAX_DEPTH. Raises: FormatError."""
    if text.count(b"<<") > MAX_DEPTH:
        _check(text, ((found.start(), {b"<<": 1, b">>": -1}.get(found[0], 0)) for found in tokens(text)), "triple terms")


def check_names(text: bytes, budget: ExpansionBudget) -> None:
    """Refuse names for which a parser of Turtle would keep more than the budget allows: resolved prefixes, and names in nested brackets.

    Raises: FormatError. Counting shows that most texts are harmless; only the tokens of the others are looked at.
    """
    if len(text) <= _SHORT:
        return
    longest = max(map(len, _LONG.findall(text)), default=_USUAL)
    names = len(_PREFIX.findall(text)) + text.count(b"[") + text.count(b"(")
    if names and names * (len(_BASE.findall(text)) + 1) * longest > budget.most:
        _check_names(text, budget)


def _check_names(text: bytes, budget: ExpansionBudget) -> None:
    base = longest = kept = depth = 0
    sizes: dict[bytes, int] = {}
    found = tokens(text)
    for token in found:
        match token[0].lower():
            case b"[" | b"(":
                depth += 1
            case b"]" | b")":
                depth -= 1
            case b"prefix" | b"@prefix":
                name, iri = next(found, None), next(found, None)
                size = _resolved(iri, base)
                if name is not None:
                    kept, sizes[name[0]] = kept + size - sizes.get(name[0], 0), size
                longest = max(longest, size)
            case b"base" | b"@base":
                base = _resolved(next(found, None), base)
                longest = max(longest, base)
        if kept + depth * longest > budget.most:
            raise budget.fault(*place(text, token.start()))


def _resolved(iri: Token | None, base: int) -> int:
    """Return the most bytes that an IRI can have when it is resolved against a base of `base` bytes."""
    return 0 if iri is None else len(iri[0]) + (0 if _ABSOLUTE.match(iri[0]) else base)


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
