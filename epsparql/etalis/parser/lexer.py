"""This module cuts a program of the ETALIS Language for Events into tokens, which are Prolog's."""

import re
from dataclasses import dataclass
from typing import NoReturn

from epsparql.errors import Span
from epsparql.etalis.parser.syntax import EleRefused
from epsparql.literals import MAX_LENGTH, MAX_WORDS

_SKIP = re.compile(r"(?:\s+|%[^\n]*|/\*.*?\*/)+", re.DOTALL)
_TOKEN = re.compile(
    r"""(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?P<unit>[A-Za-z_]\w*)?
    |(?P<local>[a-z]\w*:[A-Za-z_]\w*)
    |(?P<name>[a-z]\w*)
    |(?P<variable>[A-Z_]\w*)
    |'(?P<quoted>(?:[^'\\]|''|\\.)*)'
    |"(?P<string>(?:[^"\\]|""|\\.)*)"
    |(?P<sign>←|<-|:-|->|=\.\.|=:=|=\\=|\\==|==|\\=|=<|>=|\\\+|\*\*|//|/\\|\\/|[-+*/^=<>,;|()\[\]{}!:\#])
    |(?P<dot>\.)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"\\(.)|''|\"\"", re.DOTALL)
_NAMED = {"n": "\n", "t": "\t", "r": "\r"}
END = "end"


@dataclass(frozen=True, slots=True)
class Lexeme:
    """Represents a token: `kind` is number, local, name, variable, quoted, string, sign, dot or end; `glued` says that no blank stands before it."""

    kind: str
    text: str
    span: Span
    glued: bool
    unit: str = ""

    @property
    def operator_word(self) -> str:
        """Return the word by which an operator is known, without case."""
        return self.text.casefold() if self.kind in ("name", "variable", "quoted") else ""


def refuse(message: str, span: Span, text: str, expected: str = "") -> NoReturn:
    """Raise EleRefused."""
    raise EleRefused(message, span, text, expected)


def read_tokens(text: str, *, bounded: bool = True) -> list[Lexeme]:
    """Return the tokens of a text; a dot before white space, a comment or the end closes a clause. A program is `bounded`. Raises EleRefused."""
    if bounded and len(text) > MAX_LENGTH:
        refuse(f"the program has {len(text):,} characters; at most {MAX_LENGTH:,} are read", Span(MAX_LENGTH, len(text)), text, "a shorter program")
    found: list[Lexeme] = []
    at, glued = 0, False
    while at < len(text):
        if (skipped := _SKIP.match(text, at)) is not None:
            at, glued = skipped.end(), False
            continue
        match = _TOKEN.match(text, at)
        if match is None or text.startswith("/*", at):
            _refuse_character(text, at)
        found.append(_make_token(match, text, glued))
        at, glued = match.end(), True
        if bounded and len(found) > MAX_WORDS:
            refuse(f"the program has more than {MAX_WORDS:,} words and signs", Span(at, len(text)), text, "several smaller programs")
    if found and found[-1].kind != END:
        found.append(Lexeme("eof", "the end of the text", Span(len(text), len(text)), False))
    return found


def _make_token(match: re.Match[str], text: str, glued: bool) -> Lexeme:
    kind, span = match.lastgroup or "", Span(*match.span())
    if match["number"] is not None:
        return Lexeme("number", match["number"], span, glued, match["unit"] or "")
    if kind == "dot" and (match.end() == len(text) or text[match.end()] in " \t\r\n%" or text.startswith("/*", match.end())):
        return Lexeme(END, ".", span, glued)
    return Lexeme(kind, _unescape(match[kind]) if kind in ("quoted", "string") else match[kind], span, glued)


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda found: _NAMED.get(found[1], found[1]) if found[1] else found[0][0], text)


def _refuse_character(text: str, at: int) -> NoReturn:
    if text[at] in "'\"":
        refuse("this quote is not closed", Span(at, at + 1), text, f"a closing {text[at]}")
    if text.startswith("/*", at):
        refuse("this comment is not closed", Span(at, at + 2), text, "*/")
    refuse(f"unexpected character {text[at]!r}", Span(at, at + 1), text, "a clause of the ETALIS Language for Events")
