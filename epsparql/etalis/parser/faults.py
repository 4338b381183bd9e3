"""This module words the faults of programs: the token at the furthest place that parsing came to, and what was
expected there.
"""

import re
from collections.abc import Iterator
from itertools import islice

from epsparql.deferred_methods import dataclass
from epsparql.errors import Span
from epsparql.etalis.parser.lexemes import SKIP, content_of
from epsparql.etalis.parser.syntax import EleRefused, refuse
from epsparql.etalis.parser.terminals import LEXEME, TOKEN
from epsparql.literals import MAX_LENGTH, MAX_WORDS
from epsparql.parser.elements import QueryText

CLOSES_CLAUSE = "an operator, or a dot that closes the clause"
CLOSES_PARENTHESIS = "the end of a parenthesis"
AMOUNT = "a number"
TERM = "a term"
_END_OF_TEXT = "end of text"
_GOALS = ("prolog", "not")
_TOKEN = re.compile(f"(?:{LEXEME}){SKIP}")
_TOKENS = re.compile(f"{SKIP}(?:(?:{TOKEN}){SKIP})*+")
_CLOSING = {")": "(", "]": "[", "}": "{"}


@dataclass(frozen=True, slots=True)
class Lexeme:
    """Represents a token: `kind` is a group of `LEXEME`, and `blank` is where the blanks after it end."""

    kind: str
    text: str
    span: Span
    blank: int


def check_size(text: str) -> None:
    """Check that a program is not too large. Raises EleRefused."""
    if len(text) > MAX_LENGTH:
        refuse(f"the program has {len(text):,} characters; at most {MAX_LENGTH:,} are read", Span(MAX_LENGTH, len(text)), text, "a shorter program")
    beyond = next(islice(list_lexemes(text), MAX_WORDS, None), None) if len(text) > MAX_WORDS else None
    if beyond is not None:
        refuse(f"the program has more than {MAX_WORDS:,} words and signs", Span(beyond.span.end, len(text)), text, "several smaller programs")


def check_tokens(text: str) -> None:
    """Check that a text consists of tokens. Raises EleRefused."""
    found = _TOKENS.match(text)
    assert found is not None
    at = found.end()
    if at == len(text):
        return
    if text[at] in "'\"":
        refuse("this quote is not closed", Span(at, at + 1), text, f"a closing {text[at]}")
    if text.startswith("/*", at):
        refuse("this comment is not closed", Span(at, at + 2), text, "*/")
    refuse(f"unexpected character {text[at]!r}", Span(at, at + 1), text, "a clause of the ETALIS Language for Events")


def list_lexemes(text: str) -> Iterator[Lexeme]:
    """Yield the tokens of a text as far as it has any."""
    at = re.match(SKIP, text).end()  # type: ignore[union-attr]  # it matches everywhere
    while (found := _TOKEN.match(text, at)) is not None:
        kind = found.lastgroup or ""
        kind = "number" if kind == "unit" else kind
        end = found.end("unit") if found["unit"] else found.end(kind)
        yield Lexeme(kind, content_of(found[kind]) if kind in ("quoted", "string") else found[kind], Span(at, end), found.end())
        at = found.end()


def explain_fault(source: QueryText) -> EleRefused:
    """Return the fault at the furthest place."""
    before: list[Lexeme] = []
    for found in list_lexemes(source):
        if found.span.start >= source.furthest:
            break
        before.append(found)
    else:
        found = Lexeme(_END_OF_TEXT, "the end of the text", Span(len(source), len(source)), len(source))
    expected = source.expected[0] if source.expected else _continuation(before)
    opened = _open_brackets(before)
    if expected == AMOUNT:
        return EleRefused(f"'{before[-1].text}' without a number", found.span, source.text, expected)
    if opened and found.kind in ("end", _END_OF_TEXT) and (expected == CLOSES_PARENTHESIS or (expected == TERM and _lacks_argument(before))):
        return EleRefused("this parenthesis is not closed", opened[-1][1].span, source.text, ")")
    return _unexpected(source, found, ")" if expected == CLOSES_PARENTHESIS else expected)


def unexpected_operator(source: QueryText, span: Span, expected: str = "") -> EleRefused:
    """Return the fault of an operator that binds too weakly for its place; what may continue is expected, if nothing
    else is.
    """
    before = [found for found in list_lexemes(source[: span.end]) if found.span.start <= span.start]
    return _unexpected(source, before[-1], expected or _continuation(before[:-1]))


def _unexpected(source: QueryText, found: Lexeme, expected: str) -> EleRefused:
    what = "the end of the clause" if found.kind == "end" else found.text if found.kind == _END_OF_TEXT else f"'{found.text}'"
    return EleRefused(f"unexpected {what}", found.span, source.text, expected)


def _open_brackets(before: list[Lexeme]) -> list[tuple[str, Lexeme]]:
    """Return the brackets that are open after some tokens, each with the token that opened it: the name, for arguments."""
    opened: list[tuple[str, Lexeme]] = []
    for k, found in enumerate(before):
        if found.kind == "end":
            opened = []
        elif found.kind == "sign" and found.text in "([{":
            has_name = k > 0 and before[k - 1].kind in ("name", "quoted", "prefixed") and before[k - 1].span.end == found.span.start
            opened.append(("name(", before[k - 1]) if has_name and found.text == "(" else (found.text, found))
        elif opened and found.kind == "sign" and found.text in ")]}":
            opened.pop()
    return opened


def _lacks_argument(before: list[Lexeme]) -> bool:
    """Return whether an argument is to come after some tokens."""
    kind, name = _open_brackets(before)[-1]
    return kind == "name(" and (before[-1].text == "(" or (before[-1].text == "," and name.text not in _GOALS))


def _continuation(before: list[Lexeme]) -> str:
    """Return what may stand after a term or a goal."""
    opened = _open_brackets(before)
    if not opened:
        return CLOSES_CLAUSE
    bracket, opening = opened[-1]
    if bracket == "[" and any(found.text == "|" for found in before if found.span.start > opening.span.start):
        return "]"
    return {"name(": ",", "[": ",", "(": ")", "{": TERM}[bracket]
