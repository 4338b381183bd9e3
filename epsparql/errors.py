"""This module defines the faults in the text of a query."""

import re
from typing import ClassVar

from epsparql.deferred_methods import dataclass

LANGUAGE_LINE = re.compile(r"[#%]!etalis ([\w-]+(?: \?\w+)?)\n")
"""A query's text that begins with this line is an ETALIS program, under the policy that the line names.

The line itself has no number.
"""


@dataclass(frozen=True, slots=True)
class Span:
    """Marks a stretch of a query's text: code points `start` to `end` (exclusive), counted from 0."""

    start: int
    end: int

    def place(self, text: str) -> tuple[int, int]:
        """Return the line and code-point column of the start, both counted from 1."""
        before = text[: self.start]
        return before.count("\n") + (LANGUAGE_LINE.match(text) is None), self.start - (before.rfind("\n") + 1) + 1


def explain_unreadable(error: OSError | UnicodeDecodeError) -> str:
    """Return in words why a file cannot be read, without the number of the system's error."""
    return "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror or str(error)


@dataclass(frozen=True, slots=True)
class Edit:
    """Replaces the code points `start` to `end` (exclusive) of a query's text by `text`."""

    start: int
    end: int
    text: str


class QueryError(Exception):
    """Signals a fault in the query text; `code` is stable, wording is not.

    `expected` says what would have been accepted at the place, or is empty where only `message` can say. `edits` turn
    the text into the one that was probably meant. They are in order and do not overlap; there are none where nothing
    is likely.
    """

    code: ClassVar[str] = "query"

    def __init__(self, message: str, span: Span, text: str, expected: str = "", edits: tuple[Edit, ...] = ()) -> None:
        super().__init__(message, span, text, expected, edits)  # all five: unpickling on the Spark driver calls cls(*args)
        self.message, self.span, self.text, self.expected, self.edits = message, span, text, expected, edits

    @property
    def line(self) -> int:
        return self.span.place(self.text)[0]

    @property
    def column(self) -> int:
        return self.span.place(self.text)[1]

    def __str__(self) -> str:
        hint = f"; expected {self.expected}" if self.expected else ""
        return f"line {self.line}, column {self.column}: {self.message}{hint}"


class SyntaxFault(QueryError):
    """The text is not in the grammar."""

    code = "syntax"


class UnknownPrefix(QueryError):
    """Signals a prefixed name whose prefix no PREFIX line declares."""

    code = "unknown-prefix"


class InvalidLiteral(QueryError):
    """Signals a literal whose lexical form its datatype does not have, such as `"P1H"^^xsd:duration`."""

    code = "invalid-literal"


class InvalidRegex(QueryError):
    """Signals a constant pattern, replacement or flags of REGEX or REPLACE for which the function has no value."""

    code = "invalid-regex"


class ScopeFault(QueryError):
    """Signals a variable assigned or used where SPARQL's scoping rules forbid it."""

    code = "scope"


class Unsupported(QueryError):
    """Signals a query that is legal in the language, and not evaluated by this version; or refused on purpose, with
    the reason.
    """

    code = "unsupported"


class CyclicNegation(QueryError):
    """Signals recursion through a negative part without a strict step (semantics.md section 6)."""

    code = "cyclic-negation"


@dataclass(frozen=True, slots=True)
class Warning_:
    """Reports a doubt about a query that is accepted all the same; `code` is stable."""

    code: str
    message: str
    span: Span | None = None
