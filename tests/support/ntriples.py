"""N-Triples as the tests read it, by another parser than the engine's."""

from functools import lru_cache

import pyoxigraph as ox

from epsparql.terms import BlankNode, Iri, Literal, Term, TripleTerm
from tests.reference.evaluator import Triple


def parse_statement(statement: str) -> Triple:
    """`s p o .`, the full stop optional."""
    text = statement.strip()
    triples = list(ox.parse(text if text.endswith(" .") else f"{text} .", format=ox.RdfFormat.N_TRIPLES))
    assert len(triples) == 1, statement
    return term_of(triples[0].subject), term_of(triples[0].predicate), term_of(triples[0].object)


def parse_statements(text: str) -> list[Triple]:
    return [parse_statement(line) for line in text.splitlines() if line.strip()]


@lru_cache(maxsize=10_000)
def parse_term(text: str) -> Term:
    return parse_statement(f"<x:s> <x:p> {text} .")[2]


def term_of(term: object) -> Term:
    """A term as pyoxigraph reads it, as the language has it."""
    match term:
        case ox.NamedNode():
            return Iri(term.value)
        case ox.BlankNode():
            return BlankNode(term.value)
        case ox.Literal():
            return Literal(term.value, term.datatype.value, term.language, None if term.direction is None else str(term.direction))
        case ox.Triple():
            subject, predicate = term_of(term.subject), term_of(term.predicate)
            assert isinstance(subject, Iri | BlankNode)
            assert isinstance(predicate, Iri)
            return TripleTerm(subject, predicate, term_of(term.object))
    raise TypeError(term)
