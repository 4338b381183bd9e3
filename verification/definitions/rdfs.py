"""RDFS in the reference evaluator: semantics.md section 10, rule by rule until nothing new comes."""

from collections.abc import Iterable, Iterator

from epsparql.terms import RDF, Iri, Literal, Term
from verification.definitions.model import Fact, Occurrence, Triple

RDFS = "http://www.w3.org/2000/01/rdf-schema#"
TYPE, PROPERTY = Iri(RDF + "type"), Iri(RDF + "Property")
DOMAIN, RANGE, SUBCLASS, SUBPROPERTY = (Iri(RDFS + name) for name in ("domain", "range", "subClassOf", "subPropertyOf"))


def closed(facts: Iterable[Fact]) -> frozenset[Fact]:
    """The facts with what they entail; the schema of all graphs applies, and what is entailed lies in its data
    premise's graph.
    """
    known = frozenset(facts)
    while True:
        schema = frozenset(fact.triple for fact in known)
        found = {Fact(triple, fact.graph) for fact in known for triple in (*_entailed(fact.triple, schema), *_reflexive(fact.triple))}
        if found <= known:
            return known
        known |= found


def entailed(occurrences: Iterable[Occurrence], facts: frozenset[Fact]) -> frozenset[Occurrence]:
    """The occurrences with what the closed facts' schema gives them, on their intervals and in their graphs."""
    schema, known = frozenset(fact.triple for fact in facts), frozenset(occurrences)
    while True:
        found = {Occurrence(triple, o.start, o.end, o.graph) for o in known for triple in _given(o.triple, schema)}
        if found <= known:
            return known
        known |= found


def _given(data: Triple, schema: frozenset[Triple]) -> Iterator[Triple]:
    """rdfs2, rdfs3, rdfs7, rdfs9: what a data triple entails by the schema."""
    subject, predicate, object_ = data
    for of, relation, value in schema:
        match relation:
            case _ if relation == DOMAIN and of == predicate:
                yield from _typed(subject, value)
            case _ if relation == RANGE and of == predicate:
                yield from _typed(object_, value)
            case _ if relation == SUBPROPERTY and of == predicate and isinstance(value, Iri):
                yield subject, value, object_
            case _ if relation == SUBCLASS and predicate == TYPE and of == object_:
                yield from _typed(subject, value)


def _typed(subject: Term, of: Term) -> Iterator[Triple]:
    if not isinstance(subject, Literal):
        yield subject, TYPE, of


def _entailed(data: Triple, schema: frozenset[Triple]) -> Iterator[Triple]:
    """And rdfs5, rdfs11."""
    yield from _given(data, schema)
    subject, predicate, object_ = data
    if predicate in (SUBCLASS, SUBPROPERTY):
        for of, relation, value in schema:
            if relation == predicate and of == object_:
                yield subject, predicate, value


def _reflexive(triple: Triple) -> Iterator[Triple]:
    subject, predicate, object_ = triple
    classes = [object_] if predicate in (TYPE, DOMAIN, RANGE) else [subject, object_] if predicate == SUBCLASS else []
    properties = [predicate, *((subject, object_) if predicate == SUBPROPERTY else ())]
    yield from ((term, SUBCLASS, term) for term in classes if not isinstance(term, Literal))
    for term in properties:
        if not isinstance(term, Literal):
            yield term, SUBPROPERTY, term
            yield term, TYPE, PROPERTY
