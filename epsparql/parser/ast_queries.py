"""This module defines the forms of a query and what it reads, every node with its `Span`."""

from msgspec import Struct

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
class BaseDeclaration(Struct, frozen=True):
    iri: IriRef
    span: Span


class PrefixDeclaration(Struct, frozen=True):
    prefix: str
    iri: IriRef
    span: Span


Declaration = BaseDeclaration | PrefixDeclaration


class StreamName(Struct, frozen=True):
    """Represents the name of a stream; without an IRI it is `default`."""

    iri: IriName | None
    span: Span


class GraphName(Struct, frozen=True):
    """Represents `BACKGROUND name`, the graph that a static rule writes."""

    iri: IriName
    span: Span


class FromStream(Struct, frozen=True):
    """Represents `FROM STREAM name`."""

    name: StreamName
    span: Span


class FromGraph(Struct, frozen=True):
    """Represents `FROM name` or `FROM NAMED name`."""

    name: IriName
    named: bool
    span: Span


class FromWindow(Struct, frozen=True):
    """Represents `FROM NAMED WINDOW name ON stream [RANGE length STEP step]`."""

    name: IriName
    stream: StreamName
    length: DurationText
    step: DurationText
    span: Span


class Parameters(Struct, frozen=True):
    """Represents `PARAMETERS (?a ?b)`, which stands after the sources."""

    names: tuple[VariableName, ...]
    span: Span


Source = FromStream | FromGraph | FromWindow | Parameters


class SelectQuery(Struct, frozen=True):
    select: SelectForm
    sources: tuple[Source, ...]

    @property
    def body(self) -> Body:
        return self.select.body


class ConstructQuery(Struct, frozen=True):
    """Represents a CONSTRUCT.

    `template` is what the pattern holds where that is the template too (`CONSTRUCT WHERE`). `span` is that of the
    keyword.
    """

    template: tuple[TriplesSameSubject, ...]
    into: StreamName | GraphName | None
    sources: tuple[Source, ...]
    body: Body
    span: Span


class AskQuery(Struct, frozen=True):
    sources: tuple[Source, ...]
    body: Body


class DescribeQuery(Struct, frozen=True):
    """Represents a DESCRIBE; `targets` is empty for `DESCRIBE *`."""

    targets: tuple[IriName | VariableName, ...]
    sources: tuple[Source, ...]
    body: Body


QueryForm = SelectQuery | ConstructQuery | AskQuery | DescribeQuery


class RegisterClause(Struct, frozen=True):
    """Represents `REGISTER operator output AS`: RSTREAM, ISTREAM or DSTREAM, with the stream that it writes."""

    operator: str
    output: StreamName
    span: Span


class Document(Struct, frozen=True):
    declarations: tuple[Declaration, ...]
    registration: RegisterClause | None
    query: QueryForm
