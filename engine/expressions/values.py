"""What terms are worth in expressions: the value spaces that SPARQL's operators know (semantics.md section 4)."""

from dataclasses import dataclass
from decimal import Decimal
from enum import IntEnum

from epsparql.terms import BlankNode, Iri, Literal

Micros = int


MAX_TEXT = 1 << 20
"""Code points of a computed string: a longer one is an error, so that no query makes strings without bound."""


class ExpressionError(Exception):
    """SPARQL's error value: what an expression gives when it has no value. Never shown to users."""


class Kind(IntEnum):
    """Numeric types in order of promotion: the greater kind of two operands is the kind of the result."""

    INTEGER = 0
    DECIMAL = 1
    FLOAT = 2
    DOUBLE = 3


@dataclass(frozen=True, slots=True)
class Number:
    """`value` is an int for INTEGER, a Decimal for DECIMAL, else a float (rounded to 32 bits for FLOAT)."""

    kind: Kind
    value: int | Decimal | float


@dataclass(frozen=True, slots=True)
class Text:
    """A string; `language` is set for rdf:langString."""

    value: str
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Instant:
    """An xsd:dateTime; `zone` is its offset in minutes, None if it had none and was read as UTC."""

    micros: Micros
    zone: int | None = 0


@dataclass(frozen=True, slots=True)
class Day:
    """An xsd:date: the instant at which it begins in its zone, or in UTC if it has none."""

    micros: Micros
    zone: int | None


@dataclass(frozen=True, slots=True)
class Duration:
    """Months and microseconds, which no exchange rate joins."""

    months: int
    micros: Micros


Value = bool | Number | Text | Instant | Day | Duration | Iri | BlankNode | Literal
"""A Literal stands for itself where its datatype is unknown or does not have its lexical form."""
