"""N-Triples as the tests read it, by another parser than the engine's."""

from functools import lru_cache

import pyoxigraph as ox

from epsparql.terms import Term
from tests.reference.evaluator import Triple
from verification.log_files import convert_term


def parse_statement(statement: str) -> Triple:
    """`s p o .`, the full stop optional."""
    text = statement.strip()
    triples = list(ox.parse(text if text.endswith(" .") else f"{text} .", format=ox.RdfFormat.N_TRIPLES))
    assert len(triples) == 1, statement
    return convert_term(triples[0].subject), convert_term(triples[0].predicate), convert_term(triples[0].object)


def parse_statements(text: str) -> list[Triple]:
    return [parse_statement(line) for line in text.splitlines() if line.strip()]


@lru_cache(maxsize=10_000)
def parse_term(text: str) -> Term:
    return parse_statement(f"<x:s> <x:p> {text} .")[2]
