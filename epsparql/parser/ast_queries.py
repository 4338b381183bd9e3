"""This module defines the forms of a query and what it reads, every node with its `Span`."""

from dataclasses import dataclass

from epsparql.errors import Span
from epsparql.parser.ast import (
    Body,
    DurationText,
    IriName,
    IriRef,
    SelectForm,
    TriplesSameSubject,
    VariableName,
)


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
class GraphName:
    """Represents `BACKGROUND name`, the graph that a static rule writes."""

    iri: IriName
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

    `template` is what the pattern holds where that is the template too (`CONSTRUCT WHERE`). `span` is that of the
    keyword.
    """

    template: tuple[TriplesSameSubject, ...]
    into: StreamName | GraphName | None
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
