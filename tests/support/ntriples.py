"""N-Triples as the tests read it, by another parser than the engine's."""

from functools import lru_cache

import pyoxigraph as ox

from epsparql.terms import BlankNode, Iri, Literal, Term
from tests.reference.evaluator import Triple


def parse_statement(statement: str) -> Triple:
    """`s p o .`, the full stop optional."""
    text = statement.strip()
    triples = list(ox.parse(text if text.endswith(" .") else f"{text} .", format=ox.RdfFormat.N_TRIPLES))
    assert len(triples) == 1, statement
    return _term(triples[0].subject), _term(triples[0].predicate), _term(triples[0].object)


def parse_statements(text: str) -> list[Triple]:
    return [parse_statement(line) for line in text.splitlines() if line.strip()]


@lru_cache(maxsize=10_000)
def parse_term(text: str) -> Term:
    return parse_statement(f"<x:s> <x:p> {text} .")[2]


def _term(term: object) -> Term:
    match term:
        case ox.NamedNode():
            return Iri(term.value)
        case ox.BlankNode():
            return BlankNode(term.value)
        case ox.Literal():
            return Literal(term.value, term.datatype.value, term.language)
    raise TypeError(term)
