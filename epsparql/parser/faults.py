"""This module words the fault of a text that is not in the grammar: the lexeme at the furthest place, and what was expected there."""

import difflib
import re

from epsparql.errors import QueryError, Span, SyntaxFault, Unsupported
from epsparql.parser.elements import QueryText
from epsparql.parser.keywords import AGGREGATES, BUILT_INS, KEYWORDS, MODIFIERS, OPERATOR_NAMES
from epsparql.parser.suggestions import Stop, likely_slip
from epsparql.parser.terminals import IRIREF, NUMBER, STRING

SEQOPTIONAL = (
    "SEQOPTIONAL is refused: a later right operand would make an emitted solution invalid; use OPTIONALSEQ, or WITHOUT ... FOR with a duration"
)
_LEXEME = re.compile(
    "|".join(  # only what a fault shows, so \\w is near enough
        (STRING, IRIREF, r"[?$]\w+", r"(?:\w[\w.\-]*)?:[\w:]*", r"_:[\w.\-]+", r"@[\w\-]+", NUMBER, r"\w[\w\-]*", r"&&|\|\||[<>!]=|\^\^|.")
    ),
    re.S,
)
_WORD = re.compile("[A-Za-z_]+")
_WORD_BEFORE = re.compile(r"(?<![A-Za-z_])([A-Za-z_]++)[ \t\r\n]*+\Z")  # begins at a word only, or a long one would be tried from each of its letters
_AFTER_GROUPS = dict.fromkeys(OPERATOR_NAMES, "{ ... }") | {"WITHIN": "10", "WITHOUT": '{ ... } FOR "PT1H"^^xsd:duration'}
"""These keywords stand after a group in braces; the value is what follows the keyword in turn."""
_APPLIED = ("FILTER", "BIND", "OPTIONAL", "MINUS")
_MISPLACED = {
    "SELECT": ("a triple pattern", "a SELECT inside a group stands alone in braces of its own: { SELECT ... }"),
    "FROM": ("the end of the query", "FROM comes too late: what a query reads is said before WHERE"),
    "INTO": ("the end of the query", "INTO STREAM and INTO BACKGROUND are allowed only in a CONSTRUCT, after its template"),
}
"""These keywords are known by what was expected in their place."""


def explain_fault(source: QueryText) -> QueryError:
    """Return the fault at the furthest place: the lexeme found there, and what was expected instead."""
    at = source.furthest
    found = _LEXEME.match(source, at)
    lexeme = found[0] if found else ""
    if lexeme.upper() == "SEQOPTIONAL":  # also without the braces that an operator needs, as the paper prints it
        return Unsupported(SEQOPTIONAL, Span(at, at + len(lexeme)), source.text)
    slip = likely_slip(Stop(source, at, lexeme, source.expected, (*BUILT_INS, *AGGREGATES), (*_AFTER_GROUPS, *_APPLIED)))
    if slip is not None:
        return SyntaxFault(slip.message, Span(slip.start, slip.end), source.text, slip.expected)
    span = Span(at, at + len(lexeme))
    return SyntaxFault(_message(source, at, lexeme), span, source.text, _expectation(source, at, lexeme))


def _message(source: QueryText, at: int, lexeme: str) -> str:
    if not lexeme:
        return "the query ends too early"
    if lexeme in ('"', "'"):
        return "a string that does not end, or with a bad escape, starts here"
    if lexeme == "<" and "an operator" not in source.expected:
        return "an IRI that does not end, or with a character that no IRI has, starts here"
    if lexeme[0] == "<" and "an operator" in source.expected:
        return f"{lexeme} reads as an IRI here, since the longest token counts; a comparison needs a blank after '<'"
    misplaced = _misplaced(source, lexeme.upper())
    if misplaced is not None:
        return misplaced
    if lexeme.upper() in _AFTER_GROUPS:
        return f"{lexeme} has no group in braces directly on its left"
    near = _near_keyword(lexeme)
    if near is not None:
        return f"unexpected {lexeme}; was {near} meant?"
    if not lexeme.isprintable():
        return f"unexpected character U+{ord(lexeme[0]):04X}"
    return f"unexpected {lexeme if len(lexeme) <= 40 else lexeme[:40] + '...'}"


def _misplaced(source: QueryText, word: str) -> str | None:
    """Return what is said of a keyword that has its place elsewhere."""
    if word in MODIFIERS and "VALUES" in source.expected:
        return f"{word} comes too late or twice: the order is GROUP BY, HAVING, WINDOW, ONCE PER, ORDER BY, LIMIT and OFFSET"
    expected, message = _MISPLACED.get(word, ("", None))
    return message if expected in source.expected else None


def _near_keyword(lexeme: str) -> str | None:
    if not _WORD.fullmatch(lexeme) or lexeme.upper() in KEYWORDS:
        return None
    near = difflib.get_close_matches(lexeme.upper(), KEYWORDS, 1, 0.7) or difflib.get_close_matches(
        lexeme.upper(), [keyword for keyword in KEYWORDS if len(keyword) == len(lexeme)], 1, 0.66
    )  # two letters of three, as in SEK
    return near[0] if near else None


def _expectation(source: QueryText, at: int, lexeme: str) -> str:
    """Return what was expected, in human words. After a keyword the keyword is named, since that is what the writer sees."""
    expected = list(source.expected)
    if len(expected) > 1 and lexeme.upper() in _AFTER_GROUPS:
        return f"{{ ... }} {lexeme.upper()} {_AFTER_GROUPS[lexeme.upper()]}"
    if _misplaced(source, lexeme.upper()) is not None:
        return ""
    before = _WORD_BEFORE.search(source, 0, at)
    if len(expected) == 1 and before is not None and before[1].upper() in (*KEYWORDS, *BUILT_INS):
        return f"{expected[0]} after {before[1]}"
    if len(expected) < 2:
        return "".join(expected)
    return f"{', '.join(expected[:-1])} or {expected[-1]}"
