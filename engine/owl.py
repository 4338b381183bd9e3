"""OWL 2 RL: what follows from the background beyond RDFS, which is left to the closure. The rules are those of the package `reasonable`.

What holds of everything there is (that it is an owl:Thing, that it is the same as itself) is left out. What is entailed lies in no graph.
For triples of streams the schema says some of it again, in words that schema.py reads: inverses both ways, a symmetric property as its own inverse,
and the domain that a restriction amounts to (someValuesFrom, where the property's range is known to be of the class asked for).
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from engine.quads import Quad
from engine.schema import RDFS
from epsparql.terms import RDF, BlankNode, Iri, Literal, Term

if TYPE_CHECKING:
    from rdflib.term import Node  # imported where it is asked for, as the reasoner is: they are large

OWL = "http://www.w3.org/2002/07/owl#"
_INVERSE = OWL + "inverseOf"
Triple = tuple[Term, Term, Term]
_NUMBERED = "urn:epsparql:term:"
"""Literals and blank nodes, which the rules only compare, go through the reasoner as IRIs: it would bring some into another form."""


class Reasoner(Protocol):
    def from_graph(self, triples: "list[tuple[Node, Node, Node]]", /) -> None: ...
    def reason(self) -> "list[tuple[Node, Node, Node]]": ...


def with_owl(facts: Iterable[Quad]) -> list[Quad]:
    """The facts, and then what OWL 2 RL entails that is not among them, in an order that is the same on every run."""
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

    reasoner = _reasoner()
    reasoner.from_graph([(named(s), named(p), named(o)) for s, p, o, _ in given])
    known = {quad[:3] for quad in given}
    found: set[Triple] = set()
    for triple in reasoner.reason():
        s, p, o = (numbered.get(str(part)) or Iri(str(part)) for part in triple)
        if not isinstance(s, Literal) and isinstance(p, Iri) and (s, p, o) not in known and not _idle(s, p, o):
            found.add((s, p, o))
    found |= _for_streams(known | found) - known
    return [*given, *((s, p, o, None) for s, p, o in sorted(found, key=str))]


def _for_streams(facts: set[Triple]) -> set[Triple]:
    """What the facts say of properties, in the words of a schema."""
    by_predicate: dict[Term, list[Triple]] = {}
    for triple in facts:
        by_predicate.setdefault(triple[1], []).append(triple)
    stated = {name: by_predicate.get(Iri(name), []) for name in (_INVERSE, RDF + "type", OWL + "someValuesFrom", OWL + "onProperty", RDFS + "range")}
    found: set[Triple] = {(o, Iri(_INVERSE), s) for s, _, o in stated[_INVERSE]}
    for equivalent, below in (("equivalentClass", "subClassOf"), ("equivalentProperty", "subPropertyOf")):
        pairs = {(s, o) for s, _, o in by_predicate.get(Iri(OWL + equivalent), ())}
        found |= {(one, Iri(RDFS + below), other) for s, o in pairs for one, other in ((s, o), (o, s))}
    found |= {(s, Iri(_INVERSE), s) for s, _, o in stated[RDF + "type"] if o == Iri(OWL + "SymmetricProperty")}
    above = {(s, o) for s, _, o in by_predicate.get(Iri(RDFS + "subClassOf"), ())}
    ranges = {(s, o) for s, _, o in stated[RDFS + "range"]}
    properties: dict[Term, list[Term]] = {}
    for s, _, o in stated[OWL + "onProperty"]:
        properties.setdefault(s, []).append(o)
    for restriction, _, kind in stated[OWL + "someValuesFrom"]:
        for property_ in properties.get(restriction, ()):
            if kind == Iri(OWL + "Thing") or any(p == property_ and (of == kind or (of, kind) in above) for p, of in ranges):
                found.add((property_, Iri(RDFS + "domain"), restriction))
    return found


def _idle(s: Term, p: Iri, o: Term) -> bool:
    """Whether a triple only says what holds of everything."""
    if p.value == OWL + "sameAs":
        return s == o
    return (p.value == RDF + "type" and o == Iri(OWL + "Thing")) or s in (Iri(OWL + "Thing"), Iri(OWL + "Nothing"))


def _reasoner() -> Reasoner:
    import reasonable

    found: Reasoner = reasonable.PyReasoner()
    return found
