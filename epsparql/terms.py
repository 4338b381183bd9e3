"""This module defines RDF terms and variables, as the language, its algebra and the clients use them.

A literal keeps its text as written. `to_python()` gives a term's value in Python, `from_python()` the way back.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from epsparql.extras import load_extra
from epsparql.python_values import PythonValue, python_value, written_value

if TYPE_CHECKING:
    import rdflib

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
XSD_STRING = XSD + "string"
RDF_LANG_STRING = RDF + "langString"
RDF_DIR_LANG_STRING = RDF + "dirLangString"
DIRECTIONS = ("ltr", "rtl")
"""A string with a language may have one of these base directions (RDF 1.2)."""

_NAMED = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_ESCAPES = str.maketrans({chr(k): f"\\u{k:04X}" for k in (*range(32), 127, 0xFFFE, 0xFFFF)} | _NAMED)


@dataclass(frozen=True, slots=True)
class Iri:
    """Represents an IRI, absolute unless its query had no BASE."""

    value: str

    def __str__(self) -> str:
        return f"<{self.value}>"

    def to_python(self) -> str:
        """Return the IRI's text."""
        return self.value

    def to_rdflib(self) -> "rdflib.URIRef":
        """Return the IRI as a term of rdflib. Raises: MissingExtra."""
        term: rdflib.URIRef = _load_rdflib().URIRef(self.value)
        return term


@dataclass(frozen=True, slots=True)
class BlankNode:
    """Represents a blank node; `label` is without the `_:`."""

    label: str

    def __str__(self) -> str:
        return f"_:{self.label}"

    def to_python(self) -> str:
        """Return the label, with its `_:`."""
        return str(self)

    def to_rdflib(self) -> "rdflib.BNode":
        """Return the blank node as a term of rdflib, with the same label. Raises: MissingExtra."""
        term: rdflib.BNode = _load_rdflib().BNode(self.label)
        return term


@dataclass(frozen=True, slots=True, repr=False)
class Literal:
    """Represents a literal; `datatype` is an IRI's text.

    `language` is set only for rdf:langString and rdf:dirLangString, and `direction`, "ltr" or "rtl", only for the latter.
    """

    lexical: str
    datatype: str = XSD_STRING
    language: str | None = None
    direction: str | None = None

    def __repr__(self) -> str:
        """Return what makes the literal. Snapshots name plans by it, so a literal without a direction has the text that it had in 0.1.0."""
        direction = "" if self.direction is None else f", direction={self.direction!r}"
        return f"Literal(lexical={self.lexical!r}, datatype={self.datatype!r}, language={self.language!r}{direction})"

    def __str__(self) -> str:
        quoted = f'"{self.lexical.translate(_ESCAPES)}"'
        if self.tag is not None:
            return f"{quoted}@{self.tag.lower()}"  # tags compare without case
        return quoted if self.datatype == XSD_STRING else f"{quoted}^^<{self.datatype}>"

    @property
    def tag(self) -> str | None:
        """Return the language with the base direction, if there is one, as in `ar--rtl`."""
        return self.language if self.direction is None else f"{self.language}--{self.direction}"

    @classmethod
    def from_tag(cls, lexical: str, tag: str) -> Self:
        """Return the literal with a language, and with a base direction if `tag` has one, as in `ar--rtl`."""
        language, has_direction, direction = tag.partition("--")
        return cls(lexical, RDF_DIR_LANG_STRING, language, direction) if has_direction else cls(lexical, RDF_LANG_STRING, language)

    @classmethod
    def from_python(cls, value: PythonValue) -> Self:
        """Return the literal of a Python value: an int is an xsd:integer, a float an xsd:double, a timedelta an xsd:dayTimeDuration.

        Raises: TypeError for a value of any other type.
        """
        lexical, datatype = written_value(value)
        return cls(lexical, XSD + datatype)

    def to_python(self) -> "PythonValue | Literal":
        """Return the value: bool, int, Decimal, float, str, bytes, datetime, date, time or timedelta, each exactly equal to the text.

        The float of an xsd:float or xsd:double is the nearest one. A datetime has a time zone if the text has one. A literal without
        such a value is returned itself: one of another datatype, an ill-typed one, a duration with months, a year beyond 9999.
        """
        if self.language is not None:
            return self.lexical
        value = python_value(self.lexical, self.datatype.removeprefix(XSD)) if self.datatype.startswith(XSD) else None
        return self if value is None else value

    def to_rdflib(self) -> "rdflib.Literal":
        """Return the literal as a term of rdflib with the text as written; rdflib would write `01` as `1`.

        Raises: MissingExtra; NotInRdflib for a base direction.
        """
        if self.direction is not None:
            raise NotInRdflib(f"rdflib cannot hold the base direction of {self}")
        datatype = None if self.datatype == XSD_STRING or self.language else self.datatype
        term: rdflib.Literal = _load_rdflib().Literal(self.lexical, lang=self.language, datatype=datatype, normalize=False)
        return term


@dataclass(frozen=True, slots=True)
class Variable:
    """Represents a query variable; `name` is without the `?`. A blank node of a pattern is a variable whose name starts with `_:`."""

    name: str

    def __str__(self) -> str:
        return f"?{self.name}"

    @property
    def hidden(self) -> bool:
        """Return whether `SELECT *` leaves the variable out (semantics.md section 2)."""
        return self.name.startswith("_:")


def _load_rdflib() -> Any:
    return load_extra("rdflib", "to_rdflib()")


class NotInRdflib(ValueError):
    """Signals what rdflib cannot hold, or what only rdflib can hold; the message names it."""


MAX_TRIPLE_DEPTH = 50
"""Triple terms stand in one another at most this deep."""


@dataclass(frozen=True, slots=True)
class TripleTerm:
    """Represents a triple: a statement of a CONSTRUCT, or a triple that is itself a term (RDF 1.2)."""

    subject: Iri | BlankNode
    predicate: Iri
    object: "Term"

    def __str__(self) -> str:
        return f"<<( {self.subject} {self.predicate} {self.object} )>>"

    @property
    def depth(self) -> int:
        """Return how many triple terms stand in one another, with this one."""
        depth, inner = 1, self.object
        while isinstance(inner, TripleTerm):
            depth, inner = depth + 1, inner.object
        return depth

    def to_python(self) -> "TripleTerm":
        """Return the triple term itself."""
        return self

    def to_rdflib(self) -> "rdflib.term.Node":
        """Refuse: rdflib has no triple terms. Raises: NotInRdflib, always."""
        raise NotInRdflib(f"rdflib cannot hold the triple term {self}")


Term = Iri | BlankNode | Literal | TripleTerm
"""A term's canonical N-Triples text is `str(term)`, which is how terms travel outside the language."""


@dataclass(frozen=True, slots=True)
class TripleTermPattern(Variable):
    """Represents the hidden variable of a triple term that has these parts, of which some are variables.

    A subject that no triple has makes it match nothing. The engine takes it apart before it plans a query.
    """

    name: str = field(default="_:<<>>", init=False)
    subject: "TermOrVariable"
    predicate: Iri | Variable
    object: "TermOrVariable"


TermOrVariable = Term | Variable
