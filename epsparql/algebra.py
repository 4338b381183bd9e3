"""What a query means: semantics.md section 3, one node per definition. No spans, no spelling, no I/O.

Times and durations are integers of microseconds (`Micros`).
"""

from dataclasses import dataclass
from enum import Enum

from epsparql.terms import Iri, Literal, Term, TermOrVariable, Variable

Micros = int
DEFAULT_STREAM = "default"


# ---------------------------------------------------------------- expressions (semantics.md section 4)
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
    """Unary minus."""

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
    """`operand IN (members)`; NOT IN is `Not` of it."""

    operand: "Expression"
    members: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Coalesce:
    operands: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A built-in function by its SPARQL name in capitals (`STR`), or a cast or extension by its IRI in `<>`."""

    function: str
    arguments: tuple["Expression", ...]


class TimeFunction(Enum):
    DURATION = "getDURATION"
    START = "getSTARTTIME"
    END = "getENDTIME"


@dataclass(frozen=True, slots=True)
class Time:
    """getDURATION(), getSTARTTIME() or getENDTIME() of the solution that the expression is applied to."""

    function: TimeFunction


@dataclass(frozen=True, slots=True)
class Exists:
    """EXISTS { pattern }; NOT EXISTS is `Not` of it."""

    pattern: "Pattern"


Expression = Constant | Var | Or | And | Not | Compare | Arithmetic | Negate | Bound | If | In | Coalesce | Call | Time | Exists


# ---------------------------------------------------------------- patterns (semantics.md section 3)
@dataclass(frozen=True, slots=True)
class TriplePattern:
    subject: TermOrVariable
    predicate: TermOrVariable
    object: TermOrVariable


@dataclass(frozen=True, slots=True)
class Bgp:
    """One occurrence (or background triple) per pattern; no order is implied. With no pattern, the empty group."""

    triples: tuple[TriplePattern, ...]


@dataclass(frozen=True, slots=True)
class Join:
    """`x >< y` for compatible x, y: juxtaposed groups, AND."""

    left: "Pattern"
    right: "Pattern"


@dataclass(frozen=True, slots=True)
class Union:
    left: "Pattern"
    right: "Pattern"


@dataclass(frozen=True, slots=True)
class Filter:
    condition: Expression
    pattern: "Pattern"


@dataclass(frozen=True, slots=True)
class Extend:
    """BIND: `variable` is added where `expression` is no error; the interval stays."""

    pattern: "Pattern"
    variable: Variable
    expression: Expression


@dataclass(frozen=True, slots=True)
class SeqJoin:
    """Joins of a `left` and a `right` solution where the left one ends before the right one starts."""

    left: "Pattern"
    right: "Pattern"


@dataclass(frozen=True, slots=True)
class EqJoin:
    """Joins where both intervals are the same."""

    left: "Pattern"
    right: "Pattern"


class Relation(Enum):
    """Interval relations after Allen and ETALIS; x is left, y is right."""

    MEETS = "MEETS"
    DURING = "DURING"
    STARTS = "STARTS"
    FINISHES = "FINISHES"
    OVERLAPS = "OVERLAPS"
    PAR = "PAR"


@dataclass(frozen=True, slots=True)
class RelationJoin:
    """Joins where `relation` holds between the intervals."""

    relation: Relation
    left: "Pattern"
    right: "Pattern"


@dataclass(frozen=True, slots=True)
class LeftJoin:
    """OPTIONAL: `x >< y` where y counts for x and `condition` holds of the join; and each x with no such y."""

    left: "Pattern"
    right: "Pattern"
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class SeqRightJoin:
    """OPTIONALSEQ: `x >< y` where x counts for y, ends before y starts and `condition` holds; and each right y with no such x."""

    left: "Pattern"
    right: "Pattern"
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class EqLeftJoin:
    """EQUALSOPTIONAL: as LeftJoin, where the intervals are the same."""

    left: "Pattern"
    right: "Pattern"
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class Minus:
    left: "Pattern"
    right: "Pattern"


@dataclass(frozen=True, slots=True)
class SeqWithout:
    """`{left} SEQ {right} WITHOUT {absent}`; `within` (µs) is a WITHIN that stood between SEQ and WITHOUT."""

    left: "Pattern"
    right: "Pattern"
    absent: "Pattern"
    within: Micros | None = None


@dataclass(frozen=True, slots=True)
class WithoutFor:
    """`{pattern} WITHOUT {absent} FOR duration`: the mapping on [x.start, x.end + duration]."""

    pattern: "Pattern"
    absent: "Pattern"
    duration: Micros


@dataclass(frozen=True, slots=True)
class Within:
    """Solutions with `end - start <= limit`; timeless ones pass."""

    pattern: "Pattern"
    limit: Micros


Pattern = (
    Bgp | Join | Union | Filter | Extend | SeqJoin | EqJoin | RelationJoin | LeftJoin | SeqRightJoin | EqLeftJoin
    | Minus | SeqWithout | WithoutFor | Within
)  # fmt: skip


# ---------------------------------------------------------------- queries
@dataclass(frozen=True, slots=True)
class Select:
    """`projection` holds the reported variables in their order; expressions of SELECT are `Extend`s of `pattern`."""

    pattern: Pattern
    projection: tuple[Variable, ...]
    distinct: bool
    streams: tuple[str, ...] = (DEFAULT_STREAM,)


@dataclass(frozen=True, slots=True)
class Construct:
    """A rule: each solution adds `template`'s triples, with its interval, to the stream `into`.

    Blank nodes of the template stand as BlankNode terms in it.
    """

    template: tuple[TriplePattern, ...]
    pattern: Pattern
    streams: tuple[str, ...] = (DEFAULT_STREAM,)
    into: str = DEFAULT_STREAM


Query = Select | Construct

__all__ = [
    "DEFAULT_STREAM", "And", "Arithmetic", "Bgp", "Bound", "Call", "Coalesce", "Compare", "Comparison", "Constant", "Construct", "EqJoin",
    "EqLeftJoin", "Exists", "Expression", "Extend", "Filter", "If", "In", "Iri", "Join", "LeftJoin", "Literal", "Micros", "Minus", "Negate",
    "Not", "Operator", "Or", "Pattern", "Query", "Relation", "RelationJoin", "Select", "SeqJoin", "SeqRightJoin", "SeqWithout", "Term", "Time",
    "TimeFunction", "TriplePattern", "Union", "Var", "Variable", "Within", "WithoutFor",
]  # fmt: skip
