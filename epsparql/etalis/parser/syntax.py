"""This module defines the syntax tree of the ETALIS Language for Events: terms as in Prolog, each with its place."""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import reduce
from typing import NoReturn

from epsparql.deferred_methods import dataclass
from epsparql.errors import QueryError, Span


class EleRefused(QueryError):
    """Signals a program that is not in the language, or that is refused on purpose, with the reason."""

    code = "ele-refused"


def refuse(message: str, span: Span, text: str, expected: str = "") -> NoReturn:
    """Raise EleRefused."""
    raise EleRefused(message, span, text, expected)


@dataclass(frozen=True, slots=True)
class Name:
    """Represents a constant, or a predicate without arguments; `iri` is set for a prefixed name."""

    text: str
    span: Span
    iri: bool = False


@dataclass(frozen=True, slots=True)
class VariableTerm:
    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Num:
    """Represents a number with the unit that is written next to it, or ""."""

    value: Decimal
    unit: str
    span: Span


@dataclass(frozen=True, slots=True)
class Str:
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Struct:
    """Represents `name(args)`, an operator with its operands, or a goal; `span` is the place of the name."""

    name: str
    args: tuple["Term", ...]
    span: Span
    iri: bool = False

    @property
    def indicator(self) -> str:
        """Return name and arity, such as `price/1`: the predicate indicator of Prolog."""
        return f"{self.name}/{len(self.args)}"


@dataclass(frozen=True, slots=True)
class ListTerm:
    """Represents `[items]`, or with a `tail` `[items|Tail]`; a tail is a variable."""

    items: tuple["Term", ...]
    span: Span
    tail: "VariableTerm | None" = None


Term = Name | VariableTerm | Num | Str | Struct | ListTerm


@dataclass(frozen=True, slots=True)
class ParsedClause:
    """Represents a clause: `kind` is fact, static, event or directive; `body` is what stands behind the arrow,
    `label` what stands before the head.
    """

    kind: str
    head: Term
    body: Term | None
    span: Span
    label: Term | None = None


def list_variables(term: Term) -> Iterator[VariableTerm]:
    """Yield each place where a variable stands."""
    match term:
        case VariableTerm():
            yield term
        case Struct(args=parts) | ListTerm(items=parts):
            for part in parts:
                yield from list_variables(part)
            if isinstance(term, ListTerm) and term.tail is not None:
                yield term.tail


def as_struct(term: Term) -> Struct | None:
    """Return an atom as a struct, without arguments if it is a name; None if it is neither."""
    if isinstance(term, Name):
        return Struct(term.text, (), term.span, term.iri)
    return term if isinstance(term, Struct) else None


_PIECE = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|%[^\n]*|/\*.*?\*/|[()]", re.S)
"""Quoted text and comments, which may have brackets in them, and brackets."""


def extend_to_close(text: str, span: Span) -> Span:
    """Return the place of an atom with its arguments, from that of its name."""
    if text[span.end : span.end + 1] != "(":
        return span
    depth = 0
    for found in _PIECE.finditer(text, span.end):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if depth == 0:
            return Span(span.start, found.end())
    return span


def count_open(text: str) -> int:
    """Return how many parentheses of a part of a program are not closed in it."""
    signs = [found[0] for found in _PIECE.finditer(text)]
    return max(signs.count("(") - signs.count(")"), 0)


def list_conjuncts(term: Term) -> list[Term]:
    """Return the goals that commas join, from left to right."""
    found, pending = [], [term]
    while pending:
        each = pending.pop()
        if isinstance(each, Struct) and each.name == "," and len(each.args) == 2:
            pending += reversed(each.args)
        else:
            found.append(each)
    return found


def join_goals(goals: Sequence[Term], span: Span, operator: str = ",") -> Term:
    """Return goals as one that holds where all of them do (or, with ";", where one does); none are `true`."""
    return reduce(lambda whole, goal: Struct(operator, (whole, goal), span), goals) if goals else Name("true", span)
