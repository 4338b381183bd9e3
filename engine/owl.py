"""OWL 2 RL: what follows from the background beyond RDFS, which is left to the closure. The rules are those of the package `reasonable`.

What holds of everything there is (that it is an owl:Thing, that it is the same as itself) is left out. What is entailed lies in no graph.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from engine.quads import Quad
from epsparql.terms import RDF, BlankNode, Iri, Literal, Term

if TYPE_CHECKING:
    from rdflib.term import Node  # imported where it is asked for, as the reasoner is: they are large

OWL = "http://www.w3.org/2002/07/owl#"
_COUNTED = {Iri(OWL + name) for name in ("cardinality", "maxCardinality", "maxQualifiedCardinality", "minCardinality", "qualifiedCardinality")}
"""Properties whose values the rules read; all other literals and blank nodes are only compared, and go through the reasoner by number."""
_NUMBERED = "urn:epsparql:term:"


class Reasoner(Protocol):
    def from_graph(self, triples: "list[tuple[Node, Node, Node]]", /) -> None: ...
    def reason(self) -> "list[tuple[Node, Node, Node]]": ...


def with_owl(facts: Iterable[Quad]) -> list[Quad]:
    """The facts, and then what OWL 2 RL entails that is not among them, in an order that is the same on every run."""
    from rdflib.term import Literal as PlainLiteral
    from rdflib.term import URIRef

    given = list(facts)
    numbered: dict[str, Term] = {}
    numbers: dict[Term, Node] = {}

    def named(term: Term) -> "Node":
        match term:
            case Iri():
                return URIRef(term.value)
            case BlankNode() | Literal():
                known = numbers.get(term)
                if known is None:
                    text = f"{_NUMBERED}{len(numbers)}"
                    numbered[text], known = term, URIRef(text)
                    numbers[term] = known
                return known

    def counted(predicate: Term, value: Term) -> "Node | None":
        """A value that the rules read."""
        if predicate in _COUNTED and isinstance(value, Literal):
            return PlainLiteral(value.lexical, datatype=URIRef(value.datatype))
        return None

    reasoner = _reasoner()
    reasoner.from_graph([(named(s), named(p), counted(p, o) or named(o)) for s, p, o, _ in given])
    known = {quad[:3] for quad in given}
    found: set[tuple[Term, Term, Term]] = set()
    for triple in reasoner.reason():
        if any(isinstance(part, PlainLiteral) for part in triple):
            continue  # one of those that were given to be counted
        s, p, o = (numbered.get(str(part)) or Iri(str(part)) for part in triple)
        if not isinstance(s, Literal) and isinstance(p, Iri) and (s, p, o) not in known and not _idle(s, p, o):
            found.add((s, p, o))
    return [*given, *((s, p, o, None) for s, p, o in sorted(found, key=str))]


def _idle(s: Term, p: Iri, o: Term) -> bool:
    """Whether a triple only says what holds of everything."""
    if p.value == OWL + "sameAs":
        return s == o
    return (p.value == RDF + "type" and o == Iri(OWL + "Thing")) or s in (Iri(OWL + "Thing"), Iri(OWL + "Nothing"))


def _reasoner() -> Reasoner:
    import reasonable

    found: Reasoner = reasonable.PyReasoner()
    return found
