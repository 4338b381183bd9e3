"""This module defines what was written inside of patterns: terms, paths, expressions, groups, every node with its
`Span`.

What stands around them is in ast_queries.py.
"""

from enum import Enum

from msgspec import Struct

from epsparql.errors import Span


# ---------------------------------------------------------------- terms
class IriRef(Struct, frozen=True):
    """Represents `<text>`, neither resolved nor checked."""

    text: str
    span: Span


class PrefixedName(Struct, frozen=True):
    """Represents `prefix:local`, the local part without its escapes."""

    prefix: str
    local: str
    span: Span


class TypeVerb(Struct, frozen=True):
    """Represents the predicate `a`."""

    span: Span


class BlankLabel(Struct, frozen=True):
    """Represents `_:label`."""

    label: str
    span: Span


class Anonymous(Struct, frozen=True):
    """Represents `[]`."""

    span: Span


class StringLiteral(Struct, frozen=True):
    """Represents a quoted literal, its escapes decoded, with a language or a datatype or neither; a base direction
    follows the language.
    """

    lexical: str
    language: str | None
    datatype: "IriName | None"
    span: Span


class NumericLiteral(Struct, frozen=True):
    text: str
    span: Span


class BooleanLiteral(Struct, frozen=True):
    text: str
    span: Span


class VariableName(Struct, frozen=True):
    """Represents `?name` or `$name`."""

    name: str
    span: Span


class Collection(Struct, frozen=True):
    """Represents `( item ... )`; without items it is rdf:nil."""

    items: tuple["Node", ...]
    span: Span


class Property(Struct, frozen=True):
    """Holds one verb with its objects."""

    verb: "Verb"
    objects: tuple["Node | Annotated", ...]


class BlankProperties(Struct, frozen=True):
    """Represents `[ :p ?o ; ... ]`."""

    properties: tuple[Property, ...]
    span: Span


class TripleNode(Struct, frozen=True):
    """Represents `<<( s p o )>>`, a triple as a term."""

    subject: "Node"
    verb: "PlainVerb"
    object: "Node"
    span: Span


class Reifier(Struct, frozen=True):
    """Represents `~ name`; without a name it is `Anonymous`."""

    name: "VariableName | IriRef | PrefixedName | BlankLabel | Anonymous"
    span: Span


class ReifiedTriple(Struct, frozen=True):
    """Represents `<< s p o ~ name >>`, which stands for its reifier."""

    subject: "Node"
    verb: "PlainVerb"
    object: "Node"
    reifier: Reifier | None
    span: Span


class AnnotationBlock(Struct, frozen=True):
    """Represents `{| :p ?o ; ... |}`, what is said of the reifier before it."""

    properties: tuple[Property, ...]
    span: Span


class Annotated(Struct, frozen=True):
    """Holds an object with the reifiers and annotations of its triple."""

    node: "Node"
    annotations: tuple[Reifier | AnnotationBlock, ...]
    span: Span


IriName = IriRef | PrefixedName


# ---------------------------------------------------------------- property paths
class InversePath(Struct, frozen=True):
    """Represents `^path`."""

    path: "Path"
    span: Span


class SequencePath(Struct, frozen=True):
    """Represents `path/path/...`, two parts or more."""

    parts: tuple["Path", ...]
    span: Span


class AlternativePath(Struct, frozen=True):
    """Represents `path|path|...`, two parts or more."""

    parts: tuple["Path", ...]
    span: Span


class RepeatedPath(Struct, frozen=True):
    """Represents a path followed by `modifier`: `?`, `*` or `+`."""

    path: "Path"
    modifier: str
    span: Span


class NegatedPath(Struct, frozen=True):
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


class Binary(Struct, frozen=True):
    operator: BinaryOperator
    left: "Expression"
    right: "Expression"
    span: Span


class Unary(Struct, frozen=True):
    operator: UnaryOperator
    operand: "Expression"
    span: Span


class ExpressionList(Struct, frozen=True):
    """Holds the members of IN and NOT IN, or the arguments of a call."""

    members: tuple["Expression", ...]
    span: Span


class BuiltInCall(Struct, frozen=True):
    """Represents a call of a built-in function by its name in capitals."""

    name: str
    arguments: tuple["Expression", ...]
    span: Span


class AggregateCall(Struct, frozen=True):
    """Represents a call of a set function by its name in capitals; without an argument it is COUNT(*)."""

    name: str
    distinct: bool
    argument: "Expression | None"
    separator: str | None
    span: Span


class PreviousCall(Struct, frozen=True):
    """Represents `PREV(argument)`, in the WHILE of a run alone."""

    argument: "Expression"
    span: Span


class FunctionCall(Struct, frozen=True):
    """Represents a call of a cast or an extension function."""

    function: IriName
    arguments: tuple["Expression", ...]
    span: Span


class ExistsCall(Struct, frozen=True):
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


class TriplesSameSubject(Struct, frozen=True):
    """Holds one subject with all that is said of it."""

    subject: Node
    properties: tuple[Property, ...]
    span: Span


class FilterElement(Struct, frozen=True):
    condition: Expression
    span: Span


class BindElement(Struct, frozen=True):
    expression: Expression
    variable: VariableName
    span: Span


class OptionalElement(Struct, frozen=True):
    group: "GroupGraphPattern"
    span: Span


class MinusElement(Struct, frozen=True):
    group: "GroupGraphPattern"
    span: Span


class DurationText(Struct, frozen=True):
    """Represents a duration as written: `lexical` of a string or bare duration, or a number of seconds."""

    lexical: str
    seconds: bool
    datatype: IriName | None
    span: Span


class Combine(Struct, frozen=True):
    """Holds an operator and the group on its right; `span` is the operator's."""

    operator: ChainOperator
    group: "GroupGraphPattern"
    span: Span


class WithinStep(Struct, frozen=True):
    duration: DurationText
    span: Span


class WithoutStep(Struct, frozen=True):
    """Represents WITHOUT, with its duration where FOR stands; `span` is that of the keyword."""

    group: "GroupGraphPattern"
    duration: DurationText | None
    span: Span


Step = Combine | WithinStep | WithoutStep


class Chain(Struct, frozen=True):
    """Holds a group and the steps after it, which apply from left to right."""

    first: "GroupGraphPattern"
    steps: tuple[Step, ...]
    span: Span


class GraphElement(Struct, frozen=True):
    """Represents `GRAPH name { group }`."""

    name: IriName | VariableName
    group: "GroupGraphPattern"
    span: Span


class ServiceElement(Struct, frozen=True):
    """Represents `SERVICE name { group }`; `silent` where SILENT stands."""

    silent: bool
    name: IriName | VariableName
    group: "GroupGraphPattern"
    span: Span


class WindowElement(Struct, frozen=True):
    """Represents RSP-QL's `WINDOW name { group }`."""

    name: IriName | VariableName
    group: "GroupGraphPattern"
    span: Span


class ValuesRow(Struct, frozen=True):
    """Holds one row of VALUES; None is UNDEF."""

    terms: tuple["DataTerm | None", ...]
    span: Span


class ValuesElement(Struct, frozen=True):
    """Represents `VALUES`, in a group or after a query."""

    variables: tuple[VariableName, ...]
    rows: tuple[ValuesRow, ...]
    span: Span


Constant = IriRef | PrefixedName | StringLiteral | NumericLiteral | BooleanLiteral
DataTerm = Constant | TripleNode
"""The TripleNode of a DataTerm has DataTerms alone."""


class SubSelectElement(Struct, frozen=True):
    """Represents a SELECT as the only content of a group; `span` is that of the keyword."""

    select: "SelectForm"
    span: Span


Applied = (
    BindElement | OptionalElement | MinusElement | Chain | GraphElement | ServiceElement | WindowElement | ValuesElement | SubSelectElement
)  # fmt: skip
"""These elements are applied to what stands before them in their group, and so part its triples."""
Element = TriplesSameSubject | FilterElement | Applied


class GroupGraphPattern(Struct, frozen=True):
    elements: tuple[Element, ...]
    span: Span


# ---------------------------------------------------------------- SELECT and what follows a pattern
class SelectItem(Struct, frozen=True):
    """Represents `?v`, or `(expression AS ?v)`."""

    expression: Expression | None
    variable: VariableName
    span: Span


class GroupKey(Struct, frozen=True):
    """Represents a key of GROUP BY, named by `variable` where AS stands."""

    expression: Expression
    variable: VariableName | None
    span: Span


class WindowClause(Struct, frozen=True):
    """Represents `WINDOW [RANGE length STEP step]` or `WINDOW [ROWS rows]`."""

    length: DurationText | None
    step: DurationText | None
    rows: NumericLiteral | None
    span: Span


class RunClause(Struct, frozen=True):
    """Represents `WINDOW [RUN ...]` or `WINDOW [SESSION gap]`; `closed` where each run is reported once, when it is
    over.
    """

    condition: Expression | None
    gap: DurationText | None
    until: GroupGraphPattern | None
    within: DurationText | None
    closed: bool
    span: Span


class OnceClause(Struct, frozen=True):
    """Represents `ONCE PER keys WITHIN within` or `ONCE PER keys UNTIL until`."""

    keys: tuple[VariableName, ...]
    within: DurationText | None
    until: GroupGraphPattern | None
    span: Span


class OrderCondition(Struct, frozen=True):
    expression: Expression
    descending: bool
    span: Span


class SolutionModifier(Struct, frozen=True):
    """Holds what may follow a pattern, each empty or None where it does not stand; `span` is None where nothing does."""

    keys: tuple[GroupKey, ...]
    having: tuple[Expression, ...]
    window: WindowClause | RunClause | None
    once: OnceClause | None
    order: tuple[OrderCondition, ...]
    limit: NumericLiteral | None
    offset: NumericLiteral | None
    span: Span | None


class Body(Struct, frozen=True):
    """Holds what all forms of a query share: a pattern and what follows it.

    `where` is an empty group where DESCRIBE has none.
    """

    where: GroupGraphPattern
    modifier: SolutionModifier
    values: ValuesElement | None


class SelectForm(Struct, frozen=True):
    """Represents a SELECT, the query or one inside a pattern; `items` is empty for `SELECT *`.

    `span` is that of the keyword.
    """

    distinct: bool
    items: tuple[SelectItem, ...]
    body: Body
    span: Span
