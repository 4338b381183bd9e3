"""Concise bounded descriptions, by hand and against the reference evaluator."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.background.describe import Descriptions
from engine.dictionary.term_dictionary import TermTable
from engine.triples.relation import distinct
from engine.triples.row_index import RowIndex
from epsparql.terms import RDF, BlankNode, Iri, Literal, Term
from tests.reference import describe

Triple = tuple[Term, Term, Term]

VOCABULARY = {"S": "subject", "P": "predicate", "O": "object", "T": "type"}


def term(text: str) -> Term:
    if text.startswith("_:"):
        return BlankNode(text[2:])
    if text.startswith("'"):
        return Literal(text.strip("'"))
    return Iri(RDF + VOCABULARY[text]) if text in VOCABULARY else Iri(text)


def facts(text: str) -> list[Triple]:
    found = [tuple(map(term, line.split())) for line in text.split(",") if line.strip()]
    return [(s, p, o) for s, p, o in found]


def description(targets: Iterable[Term], known: Iterable[Triple]) -> list[str]:
    terms = TermTable()
    rows = distinct(terms.intern_all([str(part) for triple in known for part in triple]).reshape(-1, 3))
    indexes = {part: RowIndex.from_column(rows[:, part]) for part in range(3)}
    return Descriptions(lambda part, wanted: rows[indexes[part].find_rows(wanted)], terms).describe_terms(targets)


def written(known: Iterable[Triple]) -> list[str]:
    return [f"{s} {p} {o} ." for s, p, o in known]


CASES = [
    ("a", "a p b, a p 'x', b p c", "a p 'x', a p b"),
    ("a b", "b p c, a p b", "a p b, b p c"),
    ("a", "a p _:b, _:b p _:c, _:c p a, b p _:b", "a p _:b, _:b p _:c, _:c p a"),
    ("_:b", "_:b p _:b, a p _:b", "_:b p _:b"),
    ("a", "a p b, r S a, r P p, r O b, r certain 'yes', r2 S a, r2 P p, r2 O c", "a p b, r certain 'yes', r O b, r P p, r S a"),
    (
        "a",
        "a p b, _:r S a, _:r P p, _:r O b, q S _:r, q P S, q O a",
        "a p b, q O a, q P S, q S _:r, _:r O b, _:r P p, _:r S a",
    ),  # one reifies another
    ("a", "r S a, r P p", ""),
    ("'x'", "a p 'x'", ""),
    ("", "a p b", ""),
    ("a", "a p b, a p b", "a p b"),
]


@pytest.mark.parametrize(("targets", "known", "found"), CASES)
def test_descriptions(targets: str, known: str, found: str) -> None:
    assert description(map(term, targets.split()), facts(known)) == written(facts(found))


def test_long_chains_of_blank_nodes() -> None:
    chain: list[Triple] = [(BlankNode(f"b{k:05}"), Iri("p"), BlankNode(f"b{k + 1:05}")) for k in range(20_000)]
    assert description([BlankNode("b00000")], reversed(chain)) == written(chain)


NAMES = st.sampled_from([*map(term, ("a", "b", "_:x", "_:y", "_:z")), Iri(RDF + "subject"), Iri("p")])
PREDICATES = st.sampled_from([term(text) for text in ("p", "q", "S", "P", "O")])


@given(st.lists(st.tuples(NAMES, PREDICATES, NAMES), max_size=25), st.lists(NAMES, max_size=2))
def test_agrees_with_the_definition(known: list[Triple], targets: list[Term]) -> None:
    expected = describe.description(targets, frozenset(known))
    assert set(description(targets, known)) == set(written(expected))
