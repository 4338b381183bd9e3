"""This module defines what was written inside of patterns: terms, paths, expressions, groups, every node with its
`Span`.

What stands around them is in ast_queries.py.
"""

from dataclasses import dataclass
from enum import Enum

from epsparql.errors import Span


# ---------------------------------------------------------------- terms
@dataclass(frozen=True, slots=True)
class IriRef:
    """Represents `<text>`, neither resolved nor checked."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class PrefixedName:
    """Represents `prefix:local`, the local part without its escapes."""

    prefix: str
    local: str
    span: Span


@dataclass(frozen=True, slots=True)
class TypeVerb:
    """Represents the predicate `a`."""

    span: Span


@dataclass(frozen=True, slots=True)
class BlankLabel:
    """Represents `_:label`."""

    label: str
    span: Span


@dataclass(frozen=True, slots=True)
class Anonymous:
    """Represents `[]`."""

    span: Span


@dataclass(frozen=True, slots=True)
class StringLiteral:
    """Represents a quoted literal, its escapes decoded, with a language or a datatype or neither; a base direction
    follows the language.
    """

    lexical: str
    language: str | None
    datatype: "IriName | None"
    span: Span


@dataclass(frozen=True, slots=True)
class NumericLiteral:
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class BooleanLiteral:
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class VariableName:
    """Represents `?name` or `$name`."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Collection:
    """Represents `( item ... )`; without items it is rdf:nil."""

    items: tuple["Node", ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Property:
    """Holds one verb with its objects."""

    verb: "Verb"
    objects: tuple["Node | Annotated", ...]


@dataclass(frozen=True, slots=True)
class BlankProperties:
    """Represents `[ :p ?o ; ... ]`."""

    properties: tuple[Property, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class TripleNode:
    """Represents `<<( s p o )>>`, a triple as a term."""

    subject: "Node"
    verb: "PlainVerb"
    object: "Node"
    span: Span


@dataclass(frozen=True, slots=True)
class Reifier:
    """Represents `~ name`; without a name it is `Anonymous`."""

    name: "VariableName | IriRef | PrefixedName | BlankLabel | Anonymous"
    span: Span


@dataclass(frozen=True, slots=True)
class ReifiedTriple:
    """Represents `<< s p o ~ name >>`, which stands for its reifier."""

    subject: "Node"
    verb: "PlainVerb"
    object: "Node"
    reifier: Reifier | None
    span: Span


@dataclass(frozen=True, slots=True)
class AnnotationBlock:
    """Represents `{| :p ?o ; ... |}`, what is said of the reifier before it."""

    properties: tuple[Property, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Annotated:
    """Holds an object with the reifiers and annotations of its triple."""

    node: "Node"
    annotations: tuple[Reifier | AnnotationBlock, ...]
    span: Span


IriName = IriRef | PrefixedName


# ---------------------------------------------------------------- property paths
@dataclass(frozen=True, slots=True)
class InversePath:
    """Represents `^path`."""

    path: "Path"
    span: Span


@dataclass(frozen=True, slots=True)
class SequencePath:
    """Represents `path/path/...`, two parts or more."""

    parts: tuple["Path", ...]
    span: Span


@dataclass(frozen=True, slots=True)
class AlternativePath:
    """Represents `path|path|...`, two parts or more."""

    parts: tuple["Path", ...]
    span: Span


@dataclass(frozen=True, slots=True)
class RepeatedPath:
    """Represents a path followed by `modifier`: `?`, `*` or `+`."""

    path: "Path"
    modifier: str
    span: Span


@dataclass(frozen=True, slots=True)
class NegatedPath:
    """Represents `!(:p|^:q|...)`; an inverse one stands as `InversePath`."""

    parts: tuple["IriRef | PrefixedName | TypeVerb | InversePath", ...]
    span: Span


Path = IriRef | PrefixedName | TypeVerb | InversePath | SequencePath | AlternativePath | RepeatedPath | NegatedPath
Verb = Path | VariableName
PlainVerb = IriRef | PrefixedName | TypeVerb | VariableName
Node = (
    IriRef | PrefixedName | BlankLabel | Anonymous | StringLiteral | NumericLiteral | BooleanLiteral | VariableName | Collection | BlankProperties
    | TripleNode | ReifiedTriple
)  # fmt: skip


# ---------------------------------------------------------------- expressions
class BinaryOperator(Enum):
    """Names the operators between two operands, with their binding strength."""

    OR = ("||", 1)
    AND = ("&&", 2)
    EQUAL = ("=", 3)
    UNEQUAL = ("!=", 3)
    LESS = ("<", 3)
    LESS_OR_EQUAL = ("<=", 3)
    GREATER = (">", 3)
    GREATER_OR_EQUAL = (">=", 3)
    IN = ("IN", 3)
    NOT_IN = ("NOT IN", 3)
    ADD = ("+", 4)
    SUBTRACT = ("-", 4)
    MULTIPLY = ("*", 5)
    DIVIDE = ("/", 5)

    def __init__(self, symbol: str, strength: int) -> None:
        self.symbol = symbol
        self.strength = strength


class UnaryOperator(Enum):
    NOT = "!"
    PLUS = "+"
    MINUS = "-"


@dataclass(frozen=True, slots=True)
class Binary:
    operator: BinaryOperator
    left: "Expression"
    right: "Expression"
    span: Span


@dataclass(frozen=True, slots=True)
class Unary:
    operator: UnaryOperator
    operand: "Expression"
    span: Span


@dataclass(frozen=True, slots=True)
class ExpressionList:
    """Holds the members of IN and NOT IN, or the arguments of a call."""

    members: tuple["Expression", ...]
    span: Span


@dataclass(frozen=True, slots=True)
class BuiltInCall:
    """Represents a call of a built-in function by its name in capitals."""

    name: str
    arguments: tuple["Expression", ...]
    span: Span


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """Represents a call of a set function by its name in capitals; without an argument it is COUNT(*)."""

    name: str
    distinct: bool
    argument: "Expression | None"
    separator: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class PreviousCall:
    """Represents `PREV(argument)`, in the WHILE of a run alone."""

    argument: "Expression"
    span: Span


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """Represents a call of a cast or an extension function."""

    function: IriName
    arguments: tuple["Expression", ...]
    span: Span


@dataclass(frozen=True, slots=True)
class ExistsCall:
    negated: bool
    group: "GroupGraphPattern"
    span: Span


Expression = (
    IriRef | PrefixedName | TypeVerb | StringLiteral | NumericLiteral | BooleanLiteral | VariableName | Binary | Unary | ExpressionList | BuiltInCall
    | AggregateCall | PreviousCall | FunctionCall | ExistsCall
)  # fmt: skip


# ---------------------------------------------------------------- patterns
class ChainOperator(Enum):
    """Names the operators between two groups."""

    UNION = "UNION"
    AND = "AND"
    SEQ = "SEQ"
    EQUALS = "EQUALS"
    OPTIONALSEQ = "OPTIONALSEQ"
    EQUALSOPTIONAL = "EQUALSOPTIONAL"
    MEETS = "MEETS"
    DURING = "DURING"
    STARTS = "STARTS"
    FINISHES = "FINISHES"
    OVERLAPS = "OVERLAPS"
    PAR = "PAR"


@dataclass(frozen=True, slots=True)
class TriplesSameSubject:
    """Holds one subject with all that is said of it."""

    subject: Node
    properties: tuple[Property, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class FilterElement:
    condition: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class BindElement:
    expression: Expression
    variable: VariableName
    span: Span


@dataclass(frozen=True, slots=True)
class OptionalElement:
    group: "GroupGraphPattern"
    span: Span


@dataclass(frozen=True, slots=True)
class MinusElement:
    group: "GroupGraphPattern"
    span: Span


@dataclass(frozen=True, slots=True)
class DurationText:
    """Represents a duration as written: `lexical` of a string or bare duration, or a number of seconds."""

    lexical: str
    seconds: bool
    datatype: IriName | None
    span: Span


@dataclass(frozen=True, slots=True)
class Combine:
    """Holds an operator and the group on its right; `span` is the operator's."""

    operator: ChainOperator
    group: "GroupGraphPattern"
    span: Span


@dataclass(frozen=True, slots=True)
class WithinStep:
    duration: DurationText
    span: Span


@dataclass(frozen=True, slots=True)
class WithoutStep:
    """Represents WITHOUT, with its duration where FOR stands; `span` is that of the keyword."""

    group: "GroupGraphPattern"
    duration: DurationText | None
    span: Span


Step = Combine | WithinStep | WithoutStep


@dataclass(frozen=True, slots=True)
class Chain:
    """Holds a group and the steps after it, which apply from left to right."""

    first: "GroupGraphPattern"
    steps: tuple[Step, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class GraphElement:
    """Represents `GRAPH name { group }`."""

    name: IriName | VariableName
    group: "GroupGraphPattern"
    span: Span


@dataclass(frozen=True, slots=True)
class ServiceElement:
    """Represents `SERVICE name { group }`; `silent` where SILENT stands."""

    silent: bool
    name: IriName | VariableName
    group: "GroupGraphPattern"
    span: Span


@dataclass(frozen=True, slots=True)
class WindowElement:
    """Represents RSP-QL's `WINDOW name { group }`."""

    name: IriName | VariableName
    group: "GroupGraphPattern"
    span: Span


@dataclass(frozen=True, slots=True)
class ValuesRow:
    """Holds one row of VALUES; None is UNDEF."""

    terms: tuple["DataTerm | None", ...]
    span: Span


@dataclass(frozen=True, slots=True)
class ValuesElement:
    """Represents `VALUES`, in a group or after a query."""

    variables: tuple[VariableName, ...]
    rows: tuple[ValuesRow, ...]
    span: Span


Constant = IriRef | PrefixedName | StringLiteral | NumericLiteral | BooleanLiteral
DataTerm = Constant | TripleNode
"""The TripleNode of a DataTerm has DataTerms alone."""


@dataclass(frozen=True, slots=True)
class SubSelectElement:
    """Represents a SELECT as the only content of a group; `span` is that of the keyword."""

    select: "SelectForm"
    span: Span


Applied = (
    BindElement | OptionalElement | MinusElement | Chain | GraphElement | ServiceElement | WindowElement | ValuesElement | SubSelectElement
)  # fmt: skip
"""These elements are applied to what stands before them in their group, and so part its triples."""
Element = TriplesSameSubject | FilterElement | Applied


@dataclass(frozen=True, slots=True)
class GroupGraphPattern:
    elements: tuple[Element, ...]
    span: Span


# ---------------------------------------------------------------- SELECT and what follows a pattern
@dataclass(frozen=True, slots=True)
class SelectItem:
    """Represents `?v`, or `(expression AS ?v)`."""

    expression: Expression | None
    variable: VariableName
    span: Span


@dataclass(frozen=True, slots=True)
class GroupKey:
    """Represents a key of GROUP BY, named by `variable` where AS stands."""

    expression: Expression
    variable: VariableName | None
    span: Span


@dataclass(frozen=True, slots=True)
class WindowClause:
    """Represents `WINDOW [RANGE length STEP step]` or `WINDOW [ROWS rows]`."""

    length: DurationText | None
    step: DurationText | None
    rows: NumericLiteral | None
    span: Span


@dataclass(frozen=True, slots=True)
class RunClause:
    """Represents `WINDOW [RUN ...]` or `WINDOW [SESSION gap]`; `closed` where each run is reported once, when it is
    over.
    """

    condition: Expression | None
    gap: DurationText | None
    until: GroupGraphPattern | None
    within: DurationText | None
    closed: bool
    span: Span


@dataclass(frozen=True, slots=True)
class OnceClause:
    """Represents `ONCE PER keys WITHIN within` or `ONCE PER keys UNTIL until`."""

    keys: tuple[VariableName, ...]
    within: DurationText | None
    until: GroupGraphPattern | None
    span: Span


@dataclass(frozen=True, slots=True)
class OrderCondition:
    expression: Expression
    descending: bool
    span: Span


@dataclass(frozen=True, slots=True)
class SolutionModifier:
    """Holds what may follow a pattern, each empty or None where it does not stand; `span` is None where nothing does."""

    keys: tuple[GroupKey, ...]
    having: tuple[Expression, ...]
    window: WindowClause | RunClause | None
    once: OnceClause | None
    order: tuple[OrderCondition, ...]
    limit: NumericLiteral | None
    offset: NumericLiteral | None
    span: Span | None


@dataclass(frozen=True, slots=True)
class Body:
    """Holds what all forms of a query share: a pattern and what follows it.

    `where` is an empty group where DESCRIBE has none.
    """

    where: GroupGraphPattern
    modifier: SolutionModifier
    values: ValuesElement | None


@dataclass(frozen=True, slots=True)
class SelectForm:
    """Represents a SELECT, the query or one inside a pattern; `items` is empty for `SELECT *`.

    `span` is that of the keyword.
    """

    distinct: bool
    items: tuple[SelectItem, ...]
    body: Body
    span: Span
