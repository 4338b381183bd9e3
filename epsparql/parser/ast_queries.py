"""This module defines what was written around patterns, every node with its `Span`.

That is SELECT clauses, solution modifiers, the forms of a query, and what it reads.
"""

from dataclasses import dataclass

from epsparql.errors import Span
from epsparql.parser.ast import (
    DurationText,
    Expression,
    GroupGraphPattern,
    IriName,
    IriRef,
    NumericLiteral,
    TriplesSameSubject,
    ValuesElement,
    VariableName,
)


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
class OrderCondition:
    expression: Expression
    descending: bool
    span: Span


@dataclass(frozen=True, slots=True)
class SolutionModifier:
    """Holds what may follow a pattern, each empty or None where it does not stand; `span` is None where nothing does."""

    keys: tuple[GroupKey, ...]
    having: tuple[Expression, ...]
    window: WindowClause | None
    order: tuple[OrderCondition, ...]
    limit: NumericLiteral | None
    offset: NumericLiteral | None
    span: Span | None


@dataclass(frozen=True, slots=True)
class Body:
    """Holds what all forms of a query share: a pattern and what follows it. `where` is an empty group where DESCRIBE has none."""

    where: GroupGraphPattern
    modifier: SolutionModifier
    values: ValuesElement | None


@dataclass(frozen=True, slots=True)
class SelectForm:
    """Represents a SELECT, the query or one inside a pattern; `items` is empty for `SELECT *`. `span` is that of the keyword."""

    distinct: bool
    items: tuple[SelectItem, ...]
    body: Body
    span: Span


# ---------------------------------------------------------------- queries
@dataclass(frozen=True, slots=True)
class BaseDeclaration:
    iri: IriRef
    span: Span


@dataclass(frozen=True, slots=True)
class PrefixDeclaration:
    prefix: str
    iri: IriRef
    span: Span


Declaration = BaseDeclaration | PrefixDeclaration


@dataclass(frozen=True, slots=True)
class StreamName:
    """Represents the name of a stream; without an IRI it is `default`."""

    iri: IriName | None
    span: Span


@dataclass(frozen=True, slots=True)
class FromStream:
    """Represents `FROM STREAM name`."""

    name: StreamName
    span: Span


@dataclass(frozen=True, slots=True)
class FromGraph:
    """Represents `FROM name` or `FROM NAMED name`."""

    name: IriName
    named: bool
    span: Span


@dataclass(frozen=True, slots=True)
class FromWindow:
    """Represents `FROM NAMED WINDOW name ON stream [RANGE length STEP step]`."""

    name: IriName
    stream: StreamName
    length: DurationText
    step: DurationText
    span: Span


Source = FromStream | FromGraph | FromWindow


@dataclass(frozen=True, slots=True)
class SelectQuery:
    select: SelectForm
    sources: tuple[Source, ...]

    @property
    def body(self) -> Body:
        return self.select.body


@dataclass(frozen=True, slots=True)
class ConstructQuery:
    """Represents a CONSTRUCT.

    `template` is what the pattern holds where that is the template too (`CONSTRUCT WHERE`). `span` is that of the keyword.
    """

    template: tuple[TriplesSameSubject, ...]
    into: StreamName | None
    sources: tuple[Source, ...]
    body: Body
    span: Span


@dataclass(frozen=True, slots=True)
class AskQuery:
    sources: tuple[Source, ...]
    body: Body


@dataclass(frozen=True, slots=True)
class DescribeQuery:
    """Represents a DESCRIBE; `targets` is empty for `DESCRIBE *`."""

    targets: tuple[IriName | VariableName, ...]
    sources: tuple[Source, ...]
    body: Body


QueryForm = SelectQuery | ConstructQuery | AskQuery | DescribeQuery


@dataclass(frozen=True, slots=True)
class RegisterClause:
    """Represents `REGISTER operator output AS`: RSTREAM, ISTREAM or DSTREAM, with the stream that it writes."""

    operator: str
    output: StreamName
    span: Span


@dataclass(frozen=True, slots=True)
class Document:
    declarations: tuple[Declaration, ...]
    registration: RegisterClause | None
    query: QueryForm
