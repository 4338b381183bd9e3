"""This module defines RDF terms and variables, as the language, its algebra and the clients use them.

A literal keeps its text as written. `to_python()` gives a term's value in Python, `from_python()` the way back.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from epsparql.extras import load_extra
from epsparql.python_values import PythonValue, python_value, written_value

if TYPE_CHECKING:
    import rdflib

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
XSD_STRING = XSD + "string"
RDF_LANG_STRING = RDF + "langString"

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


@dataclass(frozen=True, slots=True)
class Literal:
    """Represents a literal; `datatype` is an IRI's text, and `language` is set only for rdf:langString."""

    lexical: str
    datatype: str = XSD_STRING
    language: str | None = None

    def __str__(self) -> str:
        quoted = f'"{self.lexical.translate(_ESCAPES)}"'
        if self.language is not None:
            return f"{quoted}@{self.language.lower()}"  # tags compare without case
        return quoted if self.datatype == XSD_STRING else f"{quoted}^^<{self.datatype}>"

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
        """Return the literal as a term of rdflib with the text as written; rdflib would write `01` as `1`. Raises: MissingExtra."""
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


Term = Iri | BlankNode | Literal
"""A term's canonical N-Triples text is `str(term)`, which is how terms travel outside the language."""

TermOrVariable = Term | Variable


class NotInRdflib(ValueError):
    """Signals what rdflib cannot hold, or what only rdflib can hold; the message names it."""


@dataclass(frozen=True, slots=True)
class TripleTerm:
    """Represents a triple: a statement of a CONSTRUCT, or a triple that is itself a term (RDF 1.2)."""

    subject: Iri | BlankNode
    predicate: Iri
    object: "SolutionTerm"

    def __str__(self) -> str:
        return f"<<( {self.subject} {self.predicate} {self.object} )>>"

    def to_python(self) -> "TripleTerm":
        """Return the triple term itself."""
        return self

    def to_rdflib(self) -> "rdflib.term.Node":
        """Refuse: rdflib has no triple terms. Raises: NotInRdflib, always."""
        raise NotInRdflib(f"rdflib cannot hold the triple term {self}")


SolutionTerm = Term | TripleTerm
"""A solution binds a variable to one of these."""
