"""This module defines expressions and aggregates (semantics.md section 4)."""

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from epsparql.terms import Term, Variable

if TYPE_CHECKING:
    from epsparql.algebra.patterns import Pattern


@dataclass(frozen=True, slots=True)
class Constant:
    term: Term


@dataclass(frozen=True, slots=True)
class Var:
    variable: Variable


@dataclass(frozen=True, slots=True)
class Or:
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class And:
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class Not:
    operand: "Expression"


class Comparison(Enum):
    EQUAL = "="
    UNEQUAL = "!="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="


@dataclass(frozen=True, slots=True)
class Compare:
    op: Comparison
    left: "Expression"
    right: "Expression"


class Operator(Enum):
    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"


@dataclass(frozen=True, slots=True)
class Arithmetic:
    op: Operator
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class Negate:
    """Represents unary minus."""

    operand: "Expression"


@dataclass(frozen=True, slots=True)
class Bound:
    variable: Variable


@dataclass(frozen=True, slots=True)
class If:
    condition: "Expression"
    then: "Expression"
    otherwise: "Expression"


@dataclass(frozen=True, slots=True)
class In:
    """Represents `operand IN (members)`; NOT IN is `Not` of it."""

    operand: "Expression"
    members: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Coalesce:
    operands: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Call:
    """Calls a built-in function by its SPARQL name in capitals (`STR`), or a cast or extension by its IRI in `<>`."""

    function: str
    arguments: tuple["Expression", ...]


class TimeFunction(Enum):
    DURATION = "getDURATION"
    START = "getSTARTTIME"
    END = "getENDTIME"


@dataclass(frozen=True, slots=True)
class Time:
    """Represents getDURATION(), getSTARTTIME() or getENDTIME() of the solution that the expression is applied to."""

    function: TimeFunction


@dataclass(frozen=True, slots=True)
class Exists:
    """Represents EXISTS { pattern }; NOT EXISTS is `Not` of it."""

    pattern: "Pattern"


Expression = Constant | Var | Or | And | Not | Compare | Arithmetic | Negate | Bound | If | In | Coalesce | Call | Time | Exists


class AggregateFunction(Enum):
    COUNT = "COUNT"
    SUM = "SUM"
    MIN = "MIN"
    MAX = "MAX"
    AVG = "AVG"
    SAMPLE = "SAMPLE"
    GROUP_CONCAT = "GROUP_CONCAT"
    FIRST = "FIRST"
    LAST = "LAST"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Represents a set function over a group's solutions (SPARQL 1.1, 18.5.1); without `argument` it is COUNT(*)."""

    function: AggregateFunction
    argument: Expression | None
    distinct: bool = False
    separator: str = " "  # the separator of GROUP_CONCAT
