"""This module says where and how a text stopped making sense, and reads the words and brackets around that place."""

import re
from collections.abc import Collection, Iterator

from epsparql.deferred_methods import dataclass
from epsparql.errors import Edit
from epsparql.literals import show_lexical

_BLANKS = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*+)*+")
_NUMBER = r"[+-]?(?:[0-9]+\.[0-9]*[eE][+-]?[0-9]+|\.?[0-9]+[eE][+-]?[0-9]+|[0-9]*\.[0-9]+|[0-9]+)"
LEXEME = re.compile(
    "|".join(  # only what a fault shows, so \\w is near enough
        (
            r'"""(?:"{0,2}(?:[^"\\]|\\.))*"""',
            r"'''(?:'{0,2}(?:[^'\\]|\\.))*'''",
            r'"(?!"")(?:[^"\\\n\r]|\\[tbnrf\\"\'uU])*+"',
            r"'(?!'')(?:[^'\\\n\r]|\\[tbnrf\\\"'uU])*+'",
            r'<[^<>"{}|^`\\\x00-\x20]*+>',
            r"[?$]\w+",
            r"(?:\w[\w.\-]{0,100}+)?:[\w:]*",
            r"_:[\w.\-]+",
            r"@[\w\-]+",
            _NUMBER,
            r"\w[\w\-]*",
            r"&&|\|\||[<>!]=|\^\^|.",
        )
    ),
    re.S,
)
_NAMES_ITSELF = re.compile(r"""[-+?$<"':@.]?[\w:]|["'<_]""")
OPENS, CLOSES = {"{": "}", "(": ")", "[": "]"}, {"}": "{", ")": "(", "]": "["}


def quote_sign(lexeme: str) -> str:
    """Return a sign in quotes, and other lexemes as they are: after a bare semicolon a message seems to end."""
    return lexeme if _NAMES_ITSELF.match(lexeme) else repr(lexeme)


@dataclass(frozen=True, slots=True)
class Slip:
    """Says what was probably meant. `edits` write it, and `remedy` shows it, unless nothing is likely.

    A slip may have a `message` of its own, with what was `expected`. It is about the stretch `start` to `end` of the
    text. Where it has none, the grammar's words are used.
    """

    edits: tuple[Edit, ...] = ()
    remedy: str = ""
    message: str = ""
    expected: str = ""
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """Says that a text stopped making sense at `at` with `lexeme`, where `expected` was."""

    text: str
    at: int
    lexeme: str
    expected: Collection[str]
    functions: Collection[str]
    """These are names of functions and aggregates, in capitals."""
    elements: Collection[str]
    """These keywords go on with a pattern; they are in capitals."""
    keywords: Collection[str]
    """These are all keywords, in capitals."""

    @property
    def end(self) -> int:
        return self.at + len(self.lexeme)

    @property
    def word(self) -> str:
        return self.lexeme.upper()

    @property
    def is_word(self) -> bool:
        """Return whether the lexeme is a word without a sign, which may be a keyword."""
        return self.lexeme[:1].isalpha() and ":" not in self.lexeme

    def write_instead(self, text: str, start: int | None = None, end: int | None = None, message: str = "") -> Slip:
        """Return the slip of a stretch, by default of the lexeme, that is to be replaced by `text`."""
        start, end = self.at if start is None else start, self.end if end is None else end
        edits = (Edit(start, end, text),)
        return Slip(edits, show_lexical(text), message, start=start, end=end) if message else Slip(edits, show_lexical(text))


def list_lexemes(text: str, start: int = 0, end: int | None = None) -> Iterator[re.Match[str]]:
    """Yield the lexemes of a stretch of the text; blanks and comments are none."""
    end = len(text) if end is None else end
    at = skip_blanks(text, start)
    while at < end:
        found = LEXEME.match(text, at)
        assert found is not None, "its last alternative matches every character"
        yield found
        at = skip_blanks(text, found.end())


def skip_blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    assert found is not None, "it may be empty"
    return found.end()


def next_lexeme(text: str, at: int) -> str:
    """Return the lexeme at or after a place; "" at the end of the text."""
    return next((found[0] for found in list_lexemes(text, at)), "")


def last_lexeme(text: str, at: int) -> re.Match[str] | None:
    """Return the last lexeme before a place."""
    last = None
    for found in list_lexemes(text, 0, at):
        last = found
    return last


def list_open(text: str, at: int) -> list[tuple[str, int]]:
    """Return the brackets that are open at a place, with their own places, outermost first."""
    opened: list[tuple[str, int]] = []
    for found in list_lexemes(text, 0, at):
        if found[0] in OPENS:
            opened.append((found[0], found.start()))
        elif opened and CLOSES.get(found[0]) == opened[-1][0]:
            opened.pop()
    return opened


def find_close(text: str, at: int) -> int | None:
    """Return the place of the bracket that closes the one at `at`."""
    depth = 0
    for found in list_lexemes(text, at):
        depth += (found[0] in OPENS) - (found[0] in CLOSES)
        if depth == 0:
            return found.start()
    return None


def find_region(text: str, start: int, ends: Collection[str]) -> tuple[int, int]:
    """Return the end of the stretch from `start` on, and its number of lexemes.

    It ends before a word of `ends` (in capitals), before a brace, or before a bracket that closes an outer one.
    """
    depth, end, count = 0, start, 0
    for found in list_lexemes(text, start):
        if depth == 0 and (found[0] in CLOSES or found[0] == "{" or found[0].upper() in ends):
            break
        depth += (found[0] in OPENS) - (found[0] in CLOSES)
        end, count = found.end(), count + 1
    return end, count
