"""RDFS over the background: rule by rule, and against the reference evaluator."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.background.fact_store import FactIndex
from engine.background.reasoning.rdfs_entailment import close_triples
from engine.background.reasoning.rdfs_schema import RDFS, Triple, entailed, schema_of
from engine.dictionary.term_dictionary import TermTable
from engine.triples.quads import Quad
from epsparql.terms import RDF, BlankNode, Iri, Literal, Term
from verification.definitions import rdfs
from verification.definitions.model import Fact, Occurrence

VOCABULARY = {
    "type": RDF + "type", "Property": RDF + "Property",
    "domain": RDFS + "domain", "range": RDFS + "range", "class<": RDFS + "subClassOf", "prop<": RDFS + "subPropertyOf",
}  # fmt: skip


def term(text: str) -> Term:
    if text.startswith("_:"):
        return BlankNode(text[2:])
    return Literal(text[1:]) if text.startswith("'") else Iri(VOCABULARY.get(text, text))


def quads(text: str) -> list[Quad]:
    """`s p o` or `s p o graph`, comma between."""
    found: list[Quad] = []
    for line in filter(None, text.split(",")):
        s, p, o, *graph = map(term, line.split())
        found.append((s, p, o, Iri(str(graph[0])[1:-1]) if graph else None))
    return found


RULES = [
    ("rdfs2", "p domain C g, x p y h", "x type C h"),
    ("rdfs3", "p range C g, x p y h", "y type C h"),
    ("rdfs3 of a literal", "p range C, x p 'y", ""),
    ("rdfs5", "p prop< q g, q prop< r h", "p prop< r g, q prop< r g"),
    ("rdfs7", "p prop< q g, x p y h", "x q y h, p prop< q h"),
    ("rdfs7 to a blank node", "p prop< _:q, x p y, _:q prop< r", "x r y, p prop< r"),
    ("rdfs9", "C class< D g, x type C h", "x type D h, C class< D h"),
    ("rdfs11", "C class< D g, D class< E h", "C class< E g, D class< E g"),
    ("superclass of a domain", "p domain C, C class< D, x p y", "x type C, x type D"),
    ("domain of a superproperty", "p prop< q, q domain C, x p y", "x q y, x type C"),
    ("a circle of classes", "C class< D, D class< C, x type C", "x type D"),
    ("a superproperty of type", "p prop< type, C class< D, x p C", "x type C, x type D"),
    ("schema that is entailed", "sub prop< class<, C sub D, x type C", "C class< D, x type D"),
    ("a domain of type", "type domain T, x type C", "x type T"),
]


@pytest.mark.parametrize(("given", "found"), [pytest.param(given, found, id=name) for name, given, found in RULES])
def test_rules(given: str, found: str) -> None:
    """Reflexive facts and what is said of the vocabulary aside.

    What a reflexive fact brings stays: C class< C in a graph of an instance meets C class< D of another.
    """
    known = quads(given)
    new = [quad for quad in closure(known) if quad not in known and not is_reflexive(quad)]
    assert {quad for quad in new if str(quad[0])[1:-1] not in VOCABULARY.values()} == set(quads(found))


def closure(known: list[Quad]) -> list[Quad]:
    """Return all that holds."""
    return list(FactIndex.from_quads(known, TermTable()))


def is_reflexive(quad: Quad) -> bool:
    s, p, o, _ = quad
    return (s == o and p in (term("class<"), term("prop<"))) or (p, o) == (term("type"), term("Property"))


REFLEXIVE = [
    ("x type C g", "C class< C g, type prop< type g, type type Property g, Property class< Property g, class< prop< class< g"),
    ("p domain C g, p range D h", "C class< C g, D class< D h, domain prop< domain g, range prop< range h"),
    ("C class< D", "C class< C, D class< D"),
    ("p prop< q", "p prop< p, q prop< q, p type Property, q type Property"),
    ("x p y g, x p z h", "p prop< p g, p type Property g, p prop< p h, p type Property h"),
]


@pytest.mark.parametrize(("given", "found"), REFLEXIVE)
def test_reflexive_facts(given: str, found: str) -> None:
    assert set(quads(found)) <= set(closure(quads(given)))


def test_nothing_is_said_of_literals() -> None:
    closed = closure(quads("x type 'C, p domain 'D, x p 'y, p range C, C class< 'E, p prop< 'q"))
    assert not any(isinstance(s, Literal) for s, *_ in closed)
    assert not any(isinstance(p, Literal) for _, p, *_ in closed)


def test_nothing_of_nothing() -> None:
    assert closure([]) == []


SUBJECTS = st.sampled_from([term(text) for text in ("C", "D", "p", "q", "_:b", "type", "class<", "prop<", "Property")])
PREDICATES = st.sampled_from([term(text) for text in ("p", "q", "type", "domain", "range", "class<", "prop<")])
OBJECTS = st.one_of(SUBJECTS, st.just(Literal("l")))
QUADS = st.tuples(SUBJECTS, PREDICATES, OBJECTS, st.sampled_from([None, Iri("g"), Iri("h")]))


@given(st.lists(QUADS, max_size=7))
def test_agrees_with_the_rules_applied_one_by_one(known: list[Quad]) -> None:
    expected = rdfs.closed([Fact((s, p, o), graph) for s, p, o, graph in known])
    closed = closure(known)
    assert {(quad[:3], quad[3]) for quad in closed} == {(fact.triple, fact.graph) for fact in expected}
    assert len(set(closed)) == len(closed)


@given(st.lists(QUADS, max_size=6), st.tuples(SUBJECTS, PREDICATES, OBJECTS))
def test_what_a_streams_triple_entails(known: list[Quad], triple: Triple) -> None:
    closed = closure(known)
    expected = rdfs.entailed([Occurrence(triple, 1, 2)], frozenset(Fact((s, p, o), graph) for s, p, o, graph in closed))
    found = entailed(triple, schema_of(closed))
    assert {*found, triple} == {occurrence.triple for occurrence in expected}
    assert len(set(found)) == len(found)
    assert triple not in found


@given(st.lists(QUADS, max_size=7))
def test_rounds_give_what_one_gives(known: list[Quad]) -> None:
    """One round is enough where the schema leaves RDFS's own words alone. The rounds for all others agree with it."""
    index = FactIndex.from_quads(known, TermTable())
    closed = close_triples(index.given, index.terms, index.vocabulary)
    assert {index.quad(s, p, o, g) for p, rows in closed.items() for s, o, g in rows.tolist()} == set(index)
