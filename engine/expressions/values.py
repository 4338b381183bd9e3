"""Terms have values in expressions, of the value spaces that SPARQL's operators know (semantics.md section 4)."""

from decimal import Decimal
from enum import IntEnum
from fractions import Fraction

from epsparql.deferred_methods import dataclass
from epsparql.terms import BlankNode, Iri, Literal, TripleTerm

Micros = int
ExactMicros = int | Fraction
"""Microseconds are a fraction where a literal is finer, for its value is exact."""

MAX_TEXT = 1 << 20
"""A computed string has at most so many code points: a longer one is an error, so that no query makes strings without
bound.
"""


class ExpressionError(Exception):
    """SPARQL's error value says that an expression has no value; it is never shown to users."""


class NumericType(IntEnum):
    """The numeric types are in order of promotion: the greater kind of two operands is the kind of the result."""

    INTEGER = 0
    DECIMAL = 1
    FLOAT = 2
    DOUBLE = 3


@dataclass(frozen=True, slots=True)
class Number:
    """Represents a number: `value` is an int for INTEGER, a Decimal for DECIMAL, else a float (rounded to 32 bits for
    FLOAT).
    """

    kind: NumericType
    value: int | Decimal | float


@dataclass(frozen=True, slots=True)
class Text:
    """Represents a string; `language` is set for rdf:langString, and with the direction, as in `ar--rtl`, for
    rdf:dirLangString.
    """

    value: str
    language: str | None = None


@dataclass(frozen=True, slots=True)
class DateTime:
    """Represents an xsd:dateTime; `zone` is its offset in minutes, None if it had none and was read as UTC."""

    micros: ExactMicros
    zone: int | None = 0


@dataclass(frozen=True, slots=True)
class Day:
    """Represents an xsd:date by the instant at which it begins in its zone, or in UTC if it has none."""

    micros: ExactMicros
    zone: int | None


@dataclass(frozen=True, slots=True)
class TimeOfDay:
    """Represents an xsd:time by the microseconds since midnight in UTC, which a zone may move beyond a day; without a
    zone it is read as UTC.
    """

    micros: ExactMicros
    zone: int | None


@dataclass(frozen=True, slots=True)
class Duration:
    """Represents months and microseconds, which no exchange rate joins.

    A part of a microsecond is there if it was written or calculated.
    """

    months: int
    micros: ExactMicros


Value = bool | Number | Text | DateTime | Day | TimeOfDay | Duration | Iri | BlankNode | Literal | TripleTerm
"""A Literal stands for itself where its datatype is unknown or does not have its lexical form."""
