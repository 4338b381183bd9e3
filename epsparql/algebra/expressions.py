"""This module defines expressions and aggregates (semantics.md section 4)."""

from enum import Enum
from typing import TYPE_CHECKING

from msgspec import Struct

from epsparql.terms import Term, Variable

if TYPE_CHECKING:
    from epsparql.algebra.patterns import Pattern


class Constant(Struct, frozen=True):
    term: Term


class Var(Struct, frozen=True):
    variable: Variable


class Or(Struct, frozen=True):
    left: "Expression"
    right: "Expression"


class And(Struct, frozen=True):
    left: "Expression"
    right: "Expression"


class Not(Struct, frozen=True):
    operand: "Expression"


class Comparison(Enum):
    EQUAL = "="
    UNEQUAL = "!="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="


class Compare(Struct, frozen=True):
    op: Comparison
    left: "Expression"
    right: "Expression"


class Operator(Enum):
    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"


class Arithmetic(Struct, frozen=True):
    op: Operator
    left: "Expression"
    right: "Expression"


class Negate(Struct, frozen=True):
    """Represents unary minus."""

    operand: "Expression"


class Bound(Struct, frozen=True):
    variable: Variable


class If(Struct, frozen=True):
    condition: "Expression"
    then: "Expression"
    otherwise: "Expression"


class In(Struct, frozen=True):
    """Represents `operand IN (members)`; NOT IN is `Not` of it."""

    operand: "Expression"
    members: tuple["Expression", ...]


class Coalesce(Struct, frozen=True):
    operands: tuple["Expression", ...]


class Call(Struct, frozen=True):
    """Calls a built-in function by its SPARQL name in capitals (`STR`), or a cast or extension by its IRI in `<>`."""

    function: str
    arguments: tuple["Expression", ...]


class TimeFunction(Enum):
    DURATION = "getDURATION"
    START = "getSTARTTIME"
    END = "getENDTIME"


class Time(Struct, frozen=True):
    """Represents getDURATION(), getSTARTTIME() or getENDTIME() of the solution that the expression is applied to."""

    function: TimeFunction


class Exists(Struct, frozen=True):
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


class Aggregate(Struct, frozen=True):
    """Represents a set function over a group's solutions (SPARQL 1.1, 18.5.1); without `argument` it is COUNT(*)."""

    function: AggregateFunction
    argument: Expression | None
    distinct: bool = False
    separator: str = " "  # the separator of GROUP_CONCAT
