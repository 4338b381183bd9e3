"""This module holds a solution as a client sees it. rdflib is loaded when a first term is asked for."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from epsparql.deferred_methods import dataclass
from epsparql.ntriples import parse_statements
from epsparql.rdf_exchange.client_terms import ClientTerm, Triple
from epsparql.terms import XSD_STRING, BlankNode, Iri, Literal, Term, TripleTerm


@dataclass(frozen=True, slots=True)
class Solution:
    """Represents a solution as the server sends it.

    It has the `binding` of a SELECT, `triples` (N-Triples) of a CONSTRUCT or DESCRIBE, or the `boolean` of an ASK. An
    ETALIS program gives an `event` with its `args`. A query with PARAMETERS gives the id of its `instance`.

    `start` and `end` are xsd:dateTime texts in UTC. `solution["x"]` is the term of the variable `x`; `in` tells
    whether it is bound.

    Terms are rdflib's: a URIRef, a BNode, or a Literal whose text is the one that was sent. rdflib has no triple
    terms and no strings with a base direction, so these are a Triple and a DirectionalString of
    `epsparql.rdf_exchange.client_terms`.
    """

    query: str
    id: str
    start: str
    end: str
    binding: Mapping[str, Mapping[str, Any]] | None
    triples: str | None
    boolean: bool | None = None
    event: str | None = None
    args: Sequence[Any] | None = None
    instance: str | None = None

    def __getitem__(self, variable: str) -> ClientTerm:
        """Return the term of a variable. Raises: KeyError where it is not bound, which names the variables that are."""
        term = self.get(variable)
        if term is None:
            bound = ", ".join(self) or "no variable"
            raise KeyError(f"{variable!r} is not bound in this solution of {self.query!r}; it binds {bound}")
        return term

    def get(self, variable: str) -> "ClientTerm | None":
        """Return the term of a variable, or None where it is not bound."""
        from epsparql.rdf_exchange.conversion import to_client_term

        found = (self.binding or {}).get(variable)
        return None if found is None else to_client_term(term_of(found))

    def __contains__(self, variable: object) -> bool:
        return variable in (self.binding or {})

    def __iter__(self) -> Iterator[str]:
        """Iterate over the bound variables."""
        return iter(self.binding or {})

    def statements(self) -> list[Triple]:
        """Return the triples of a CONSTRUCT or DESCRIBE solution; none for another query's."""
        from epsparql.rdf_exchange.conversion import to_client_triple

        return [to_client_triple(triple) for triple in parse_statements(self.triples or "")]


def solution_of(document: Mapping[str, Any]) -> Solution:
    """Return the solution of a line of ndjson, or of a message, that the server sent."""
    times = document["query"], document["id"], document["start"], document["end"]
    reported = (document.get(member) for member in ("binding", "triples", "boolean", "event", "args", "instance"))
    return Solution(*times, *reported)


def term_of(value: Mapping[str, Any]) -> Term:
    """Return a term of SPARQL's JSON results as the language has it. Raises: ValueError for a type that is not known."""
    match value["type"]:
        case "uri":
            return Iri(value["value"])
        case "bnode":
            return BlankNode(value["value"])
        case "literal" | "typed-literal":
            if language := value.get("xml:lang"):
                return Literal.from_tag(value["value"], f"{language}--{direction}" if (direction := value.get("its:dir")) else language)
            return Literal(value["value"], value.get("datatype", XSD_STRING))
        case "triple":
            subject, predicate, object_ = (term_of(value["value"][place]) for place in ("subject", "predicate", "object"))
            if isinstance(subject, Iri | BlankNode) and isinstance(predicate, Iri):
                return TripleTerm(subject, predicate, object_)
    raise ValueError(f"no RDF term is known in {value}")
