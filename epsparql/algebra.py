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


class AggregateFunction(Enum):
    COUNT = "COUNT"
    SUM = "SUM"
    MIN = "MIN"
    MAX = "MAX"
    AVG = "AVG"
    SAMPLE = "SAMPLE"
    GROUP_CONCAT = "GROUP_CONCAT"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A set function over a group's solutions (SPARQL 1.1, 18.5.1); without `argument` it is COUNT(*)."""

    function: AggregateFunction
    argument: Expression | None
    distinct: bool = False
    separator: str = " "  # of GROUP_CONCAT


# ---------------------------------------------------------------- property paths (SPARQL 1.1, 18.1.7)
@dataclass(frozen=True, slots=True)
class Link:
    predicate: Iri


@dataclass(frozen=True, slots=True)
class Inverse:
    path: "PropertyPath"


@dataclass(frozen=True, slots=True)
class Sequence:
    left: "PropertyPath"
    right: "PropertyPath"


@dataclass(frozen=True, slots=True)
class Alternative:
    left: "PropertyPath"
    right: "PropertyPath"


@dataclass(frozen=True, slots=True)
class ZeroOrOne:
    path: "PropertyPath"


@dataclass(frozen=True, slots=True)
class ZeroOrMore:
    path: "PropertyPath"


@dataclass(frozen=True, slots=True)
class OneOrMore:
    path: "PropertyPath"


@dataclass(frozen=True, slots=True)
class Negated:
    """`!(:p | ^:q)`: a triple whose predicate is none of `forward`, or one read backwards whose predicate is none of `backward`.

    Without any `backward` (None) no triple is read backwards, and the other way round.
    """

    forward: tuple[Iri, ...] | None
    backward: tuple[Iri, ...] | None


PropertyPath = Link | Inverse | Sequence | Alternative | ZeroOrOne | ZeroOrMore | OneOrMore | Negated


# ---------------------------------------------------------------- patterns (semantics.md section 3)
@dataclass(frozen=True, slots=True)
class TriplePattern:
    subject: TermOrVariable
    predicate: TermOrVariable
    object: TermOrVariable


@dataclass(frozen=True, slots=True)
class Place:
    """Where triples are looked for. Only the engine's rewriting of GRAPH, FROM and WINDOW sets it; parse leaves it open.

    `graph` is bound to the name of the graph; `among` are the graphs to look at ("" is no graph), None every one; `window` names a window.
    """

    graph: Variable | None = None
    among: tuple[str, ...] | None = None
    window: str | None = None


ANYWHERE = Place()


@dataclass(frozen=True, slots=True)
class Bgp:
    """One occurrence (or background triple) per pattern; no order is implied. With no pattern, the empty group."""

    triples: tuple[TriplePattern, ...]
    place: Place = ANYWHERE


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


@dataclass(frozen=True, slots=True)
class Path:
    """Pairs of nodes joined by `path`, as a set; its interval is the least start and the greatest end along the path.

    Links, inverses and sequences that stand alone are triple patterns already (SPARQL 1.1, 18.2.2.4), with hidden inner nodes.
    """

    subject: TermOrVariable
    path: PropertyPath
    object: TermOrVariable
    place: Place = ANYWHERE


@dataclass(frozen=True, slots=True)
class Values:
    """Timeless solutions, one a row, which is told apart from an equal row; None is UNDEF."""

    variables: tuple[Variable, ...]
    rows: tuple[tuple[Term | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """`pattern` over the triples of one graph, event graph or background graph, whose name is `name`.

    `place` is that of the pattern's triples, once the engine has rewritten it.
    """

    name: Iri | Variable
    pattern: "Pattern"
    place: Place = ANYWHERE


@dataclass(frozen=True, slots=True)
class InWindow:
    """RSP-QL's WINDOW `name` { `pattern` }, over the content of a named window of the query."""

    name: str
    pattern: "Pattern"


@dataclass(frozen=True, slots=True)
class RangeWindow:
    """`WINDOW [RANGE length]`, or with a `step` (both µs)."""

    length: Micros
    step: Micros | None = None


@dataclass(frozen=True, slots=True)
class RowsWindow:
    """`WINDOW [ROWS count]`."""

    count: int


@dataclass(frozen=True, slots=True)
class Group:
    """Solutions of `pattern` grouped by `keys`, a row per report with the keys and the aggregates (semantics.md section 7).

    Keys that are expressions are `Extend`s of `pattern`; without keys there is one group. The aggregates' variables are hidden ones.
    """

    pattern: "Pattern"
    keys: tuple[Variable, ...]
    aggregates: tuple[tuple[Variable, Aggregate], ...]
    window: RangeWindow | RowsWindow | None = None


@dataclass(frozen=True, slots=True)
class OrderKey:
    """One comparator of ORDER BY."""

    expression: Expression
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Modifiers:
    """ORDER BY, OFFSET, LIMIT. They count solutions from the start, or per report where `pattern` has a window."""

    order: tuple[OrderKey, ...] = ()
    offset: int = 0
    limit: int | None = None


PLAIN = Modifiers()


@dataclass(frozen=True, slots=True)
class SubSelect:
    """A SELECT inside a pattern: variables that it does not project are hidden ones of its own."""

    pattern: "Pattern"
    projection: tuple[Variable, ...]
    distinct: bool = False
    modifiers: Modifiers = PLAIN


Pattern = (
    Bgp | Join | Union | Filter | Extend | SeqJoin | EqJoin | RelationJoin | LeftJoin | SeqRightJoin | EqLeftJoin
    | Minus | SeqWithout | WithoutFor | Within | Path | Values | Graph | InWindow | Group | SubSelect
)  # fmt: skip


# ---------------------------------------------------------------- what a query reads
@dataclass(frozen=True, slots=True)
class Dataset:
    """FROM and FROM NAMED: names of graphs, event graphs and background graphs alike."""

    default: tuple[str, ...] = ()
    named: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NamedWindow:
    """`FROM NAMED WINDOW <name> ON stream [RANGE length STEP step]` (µs); `name` as resolved, `stream` as written."""

    name: str
    stream: str
    length: Micros
    step: Micros


class Report(Enum):
    """What of a window's solutions is reported: all, the new ones, those that are no longer there."""

    RSTREAM = "RSTREAM"
    ISTREAM = "ISTREAM"
    DSTREAM = "DSTREAM"


@dataclass(frozen=True, slots=True)
class Sources:
    """FROM and FROM NAMED (None without either), and the named windows, which take the place of streams."""

    dataset: Dataset | None = None
    windows: tuple[NamedWindow, ...] = ()
    report: Report | None = None  # set exactly where there are windows


WHOLE = Sources()


# ---------------------------------------------------------------- queries
@dataclass(frozen=True, slots=True)
class Select:
    """`projection` holds the reported variables in their order; expressions of SELECT are `Extend`s of `pattern`.

    `streams` are those of the windows where the query has any.
    """

    pattern: Pattern
    projection: tuple[Variable, ...]
    distinct: bool
    streams: tuple[str, ...] = (DEFAULT_STREAM,)
    modifiers: Modifiers = PLAIN
    sources: Sources = WHOLE


@dataclass(frozen=True, slots=True)
class Construct:
    """A rule: each solution adds `template`'s triples, with its interval, to the stream `into`.

    Blank nodes of the template stand as BlankNode terms in it. Solution modifiers are a SubSelect of all variables in `pattern`.
    """

    template: tuple[TriplePattern, ...]
    pattern: Pattern
    streams: tuple[str, ...] = (DEFAULT_STREAM,)
    into: str = DEFAULT_STREAM
    sources: Sources = WHOLE


@dataclass(frozen=True, slots=True)
class Ask:
    """Whether `pattern` has a solution: true at the first one, false where finished streams end without."""

    pattern: Pattern
    streams: tuple[str, ...] = (DEFAULT_STREAM,)
    sources: Sources = WHOLE


@dataclass(frozen=True, slots=True)
class Describe:
    """The concise bounded description, over the background, of the `targets` of each solution of `pattern`."""

    targets: tuple[Iri | Variable, ...]
    pattern: Pattern
    streams: tuple[str, ...] = (DEFAULT_STREAM,)
    sources: Sources = WHOLE


Query = Select | Construct | Ask | Describe

__all__ = [
    "ANYWHERE", "DEFAULT_STREAM", "PLAIN", "WHOLE", "Aggregate", "AggregateFunction", "Alternative", "And", "Arithmetic", "Ask", "Bgp", "Bound", "Call", "Coalesce",
    "Compare", "Comparison", "Constant", "Construct", "Dataset", "Describe", "EqJoin", "EqLeftJoin", "Exists", "Expression", "Extend", "Filter",
    "Graph", "Group", "If", "In", "InWindow", "Inverse", "Iri", "Join", "LeftJoin", "Link", "Literal", "Micros", "Minus", "Modifiers", "NamedWindow",
    "Negate", "Negated", "Not", "OneOrMore", "Operator", "Or", "OrderKey", "Path", "Pattern", "Place", "PropertyPath", "Query", "RangeWindow", "Relation",
    "RelationJoin", "Report", "RowsWindow", "Select", "SeqJoin", "SeqRightJoin", "SeqWithout", "Sequence", "Sources", "SubSelect", "Term", "Time",
    "TimeFunction", "TriplePattern", "Union", "Values", "Var", "Variable", "Within", "WithoutFor", "ZeroOrMore", "ZeroOrOne",
]  # fmt: skip
