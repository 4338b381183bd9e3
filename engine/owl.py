"""OWL 2 RL: what follows from the background beyond RDFS, which is left to the closure. The rules are those of the
package `reasonable`, and of owl_rules.py, which has what it lacks.

What holds of everything there is (that it is an owl:Thing, that it is the same as itself) is left out. What is entailed lies in no graph.
For triples of streams the schema says some of it again, in words that schema.py reads: inverses both ways, a symmetric property as its own inverse,
and the domain that a restriction amounts to (someValuesFrom, where the property's range is known to be of the class asked for).
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from engine.literals import parse_term
from engine.owl_rules import OWL, SAME, THING, TYPE, Triple, beyond, by_predicate, is_literal, listed
from engine.quads import Quad
from engine.schema import RDFS
from epsparql.terms import Term

if TYPE_CHECKING:
    from rdflib.term import Node  # imported where it is asked for, as the reasoner is: they are large

_INVERSE, _NOTHING = OWL + "inverseOf", f"<{OWL}Nothing>"
_NUMBERED = "urn:epsparql:term:"
"""Literals and blank nodes, which the rules only compare, go through the reasoner as IRIs: it would bring some into another form."""


class Reasoner(Protocol):
    def from_graph(self, triples: "list[tuple[Node, Node, Node]]", /) -> None: ...
    def reason(self) -> "list[tuple[Node, Node, Node]]": ...


def with_owl(facts: Iterable[Quad]) -> list[Quad]:
    """The facts, and then what OWL 2 RL entails that is not among them, in an order that is the same on every run."""
    given = list(facts)
    terms: dict[str, Term] = {str(term): term for quad in given for term in quad[:3]}
    known = {(str(s), str(p), str(o)) for s, p, o, _ in given}
    found = _reasoned(known)
    while more := beyond(found) - found:  # rare: few ontologies have what these rules are about
        found = _reasoned(found | more)
    new = sorted((found | _for_streams(found)) - known)
    terms |= {text: parse_term(text) for triple in new for text in triple if text not in terms}
    return [*given, *((terms[s], terms[p], terms[o], None) for s, p, o in new)]


def _reasoned(facts: set[Triple]) -> set[Triple]:
    """The facts with what the reasoner makes of them."""
    from rdflib.term import URIRef

    nodes: dict[str, Node] = {}
    texts: dict[str, str] = {}  # by IRI of the nodes
    for text in {text for triple in facts for text in triple}:
        iri = text[1:-1] if text.startswith("<") else f"{_NUMBERED}{len(nodes)}"
        texts[iri], nodes[text] = text, URIRef(iri)
    reasoner = _reasoner()
    reasoner.from_graph([(nodes[s], nodes[p], nodes[o]) for s, p, o in facts])
    found = set(facts)
    for triple in reasoner.reason():
        s, p, o = (texts.get(str(part)) or f"<{part}>" for part in triple)
        if not is_literal(s) and p.startswith("<") and not _idle(s, p, o):
            found.add((s, p, o))
    return found


def _for_streams(facts: set[Triple]) -> set[Triple]:
    """What the facts say of properties, in the words of a schema."""
    pairs = by_predicate(facts)

    def stated(name: str) -> list[tuple[str, str]]:
        return pairs.get(f"<{name}>", [])

    found: set[Triple] = {(o, f"<{_INVERSE}>", s) for s, o in stated(_INVERSE)}
    found |= {(s, f"<{_INVERSE}>", s) for s, o in pairs.get(TYPE, ()) if o == f"<{OWL}SymmetricProperty>"}
    for equivalent, below in (("equivalentClass", "subClassOf"), ("equivalentProperty", "subPropertyOf")):
        found |= {(one, f"<{RDFS}{below}>", other) for s, o in stated(OWL + equivalent) for one, other in ((s, o), (o, s))}
    found |= {(kind, f"<{RDFS}subClassOf>", part) for kind, head in stated(OWL + "intersectionOf") for part in listed(head, pairs)}
    found |= {(part, f"<{RDFS}subClassOf>", kind) for kind, head in stated(OWL + "unionOf") for part in listed(head, pairs)}
    above, ranges = set(stated(RDFS + "subClassOf")), stated(RDFS + "range")
    for restriction, kind in stated(OWL + "someValuesFrom"):
        for each, property_ in stated(OWL + "onProperty"):
            if each == restriction and (kind == THING or any(p == property_ and (of == kind or (of, kind) in above) for p, of in ranges)):
                found.add((property_, f"<{RDFS}domain>", restriction))
    return found


def _idle(s: str, p: str, o: str) -> bool:
    """Whether a triple only says what holds of everything."""
    if p == SAME:
        return s == o
    return (p == TYPE and o == THING) or s in (THING, _NOTHING)


def _reasoner() -> Reasoner:
    import reasonable

    found: Reasoner = reasonable.PyReasoner()
    return found
