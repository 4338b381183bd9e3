"""This module defines RDF terms and variables, as the language and its algebra use them."""

from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class BlankNode:
    """Represents a blank node; `label` is without the `_:`."""

    label: str

    def __str__(self) -> str:
        return f"_:{self.label}"


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


Term = Iri | BlankNode | Literal
"""A term's canonical N-Triples text is `str(term)`, which is how terms travel outside the language."""

TermOrVariable = Term | Variable
