"""This module defines RDF terms and variables, as the language, its algebra and the clients use them.

A literal keeps its text as written. Clients give and take terms of rdflib, which `epsparql.rdf_exchange` converts.
"""

from dataclasses import field
from typing import Self

from msgspec import Struct

from epsparql.deferred_methods import dataclass
from epsparql.python_values import PythonValue, written_value

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
XSD_STRING = XSD + "string"
RDF_LANG_STRING = RDF + "langString"
RDF_DIR_LANG_STRING = RDF + "dirLangString"
DIRECTIONS = ("ltr", "rtl")
"""A string with a language may have one of these base directions (RDF 1.2)."""

_NAMED = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_ESCAPES = str.maketrans({chr(k): f"\\u{k:04X}" for k in (*range(32), 127, 0xFFFE, 0xFFFF)} | _NAMED)


class Iri(Struct, frozen=True):
    """Represents an IRI, absolute unless its query had no BASE."""

    value: str

    def __str__(self) -> str:
        return f"<{self.value}>"


class BlankNode(Struct, frozen=True):
    """Represents a blank node; `label` is without the `_:`."""

    label: str

    def __str__(self) -> str:
        return f"_:{self.label}"


class Literal(Struct, frozen=True):
    """Represents a literal; `datatype` is an IRI's text.

    `language` is set only for rdf:langString and rdf:dirLangString, and `direction`, "ltr" or "rtl", only for the
    latter.
    """

    lexical: str
    datatype: str = XSD_STRING
    language: str | None = None
    direction: str | None = None

    def __repr__(self) -> str:
        """Return what makes the literal.

        Snapshots name plans by it, so a literal without a direction has the text that it had in 0.1.0.
        """
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
        """Return the literal of a Python value: an int is an xsd:integer, a float an xsd:double, a timedelta an
        xsd:dayTimeDuration.

        Raises: TypeError for a value of any other type.
        """
        lexical, datatype = written_value(value)
        return cls(lexical, XSD + datatype)


@dataclass(frozen=True, slots=True)
class Variable:
    """Represents a query variable; `name` is without the `?`.

    A blank node of a pattern is a variable whose name starts with `_:`.
    """

    name: str

    def __str__(self) -> str:
        return f"?{self.name}"

    @property
    def hidden(self) -> bool:
        """Return whether `SELECT *` leaves the variable out (semantics.md section 2)."""
        return self.name.startswith("_:")


MAX_TRIPLE_DEPTH = 50
"""Triple terms stand in one another at most this deep."""


class TripleTerm(Struct, frozen=True):
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
