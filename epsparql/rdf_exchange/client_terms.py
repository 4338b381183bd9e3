"""This module defines the terms of RDF 1.2 that rdflib lacks, as clients take and give them.

It loads rdflib only for its types.
"""

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from epsparql.deferred_methods import dataclass
from epsparql.terms import Literal

if TYPE_CHECKING:
    import rdflib

ClientTerm: TypeAlias = "rdflib.URIRef | rdflib.BNode | rdflib.Literal | DirectionalString | Triple"
"""The terms of a solution, and those of events that a program sends."""


class NotInRdflib(ValueError):
    """Signals what rdflib cannot hold, or what only rdflib can hold; the message names it."""


@dataclass(frozen=True, slots=True)
class DirectionalString:
    """Represents a string with a language and a base direction, which is "ltr" or "rtl" (rdf:dirLangString)."""

    value: str
    language: str
    direction: str

    def n3(self) -> str:
        """Return the text as N-Triples 1.2 has it."""
        return str(Literal.from_tag(self.value, f"{self.language}--{self.direction}"))

    def toPython(self) -> str:  # named like rdflib's
        """Return the string alone."""
        return self.value


class Triple(NamedTuple):
    """Represents a statement of a solution, or a triple that is itself a term.

    It is a tuple, as `rdflib.Graph.add` takes one.
    """

    subject: "rdflib.URIRef | rdflib.BNode"
    predicate: "rdflib.URIRef"
    object: ClientTerm

    def n3(self) -> str:
        """Return the text of the triple as a term, as Turtle 1.2 has it."""
        return f"<<( {self.subject.n3()} {self.predicate.n3()} {self.object.n3()} )>>"

    def toPython(self) -> "Triple":  # named like rdflib's
        """Return the triple itself."""
        return self
