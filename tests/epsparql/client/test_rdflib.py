"""rdflib's graphs and terms, both ways: texts stay as written, and what either side cannot hold is refused."""

import copy
import pickle

import pytest
import rdflib

from epsparql.events.event_text import term_text
from epsparql.events.rdflib_events import is_rdflib_graph, n_quads_of
from epsparql.rdf_exchange.client_terms import DirectionalString, NotInRdflib, Triple
from epsparql.rdf_exchange.conversion import from_client_term, to_client_term
from epsparql.solutions.rdflib_graphs import graph_of
from epsparql.solutions.solution import Solution
from epsparql.terms import RDF_DIR_LANG_STRING, RDF_LANG_STRING, XSD, BlankNode, Iri, Literal, Term, TripleTerm

A, B = Iri("http://example.org/a"), Iri("http://example.org/b")
IRI, IRI_B = rdflib.URIRef("http://example.org/a"), rdflib.URIRef("http://example.org/b")
TERMS: list[Term] = [
    A,
    BlankNode("b1"),
    Literal("x"),
    Literal('say "hi"\n'),
    Literal("hi", RDF_LANG_STRING, "en-gb"),
    Literal("001.50", XSD + "decimal"),
    Literal("01", XSD + "integer"),
    Literal("many", XSD + "integer"),
    Literal("TRUE", XSD + "boolean"),
    Literal(" a  b\t", XSD + "token"),
    Literal("a\nb", XSD + "normalizedString"),
    Literal("2026-01-01T10:00:00.000Z", XSD + "dateTime"),
    Literal("P1Y2M", XSD + "duration"),
    Literal("x", "http://example.org/type"),
]
WITHOUT_RDFLIB: list[Term] = [
    Literal("x", RDF_DIR_LANG_STRING, "ar", "rtl"),
    TripleTerm(A, B, Literal("01", XSD + "integer")),
    TripleTerm(BlankNode("b1"), B, TripleTerm(A, B, Literal("x", RDF_DIR_LANG_STRING, "ar", "rtl"))),
]


@pytest.mark.parametrize("term", TERMS, ids=str)
def test_a_graph_gives_a_term_back_as_written(term: Term) -> None:
    found = to_client_term(term)
    assert isinstance(found, rdflib.term.Identifier)
    graph = rdflib.Graph().add((IRI, IRI_B, found))
    assert n_quads_of(graph) == f"{A} {B} {term} .\n"


@pytest.mark.parametrize("term", TERMS + WITHOUT_RDFLIB, ids=str)
def test_a_term_stays_as_written_through_pickle_and_copy(term: Term) -> None:
    found = to_client_term(term)
    for same in (found, pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert (from_client_term(same), same, hash(same)) == (term, found, hash(found))
        assert term_text(same, "o") == str(term)


def test_a_literal_is_the_one_of_rdflib() -> None:
    found = to_client_term(Literal("01", XSD + "integer"))
    same = rdflib.Literal("01", datatype=rdflib.XSD.integer, normalize=False)
    assert (found, hash(found), found.toPython(), found.n3()) == (same, hash(same), 1, same.n3())


def test_terms_that_rdflib_lacks_have_texts_and_values() -> None:
    direction, triple = DirectionalString("x", "ar", "rtl"), Triple(IRI, IRI_B, rdflib.Literal(1))
    assert (direction.n3(), direction.toPython()) == ('"x"@ar--rtl', "x")
    assert (triple.n3(), triple.toPython()) == (f'<<( {A} {B} "1"^^<{XSD}integer> )>>', triple)


def test_a_dataset_keeps_its_graphs() -> None:
    dataset = rdflib.Dataset()
    triple = IRI, IRI_B, rdflib.Literal("x")
    dataset.graph(IRI).add(triple)
    dataset.graph(rdflib.BNode("g")).add(triple)
    dataset.default_graph.add(triple)
    assert sorted(n_quads_of(dataset).splitlines()) == sorted([f'{A} {B} "x" .', f'{A} {B} "x" {A} .', f'{A} {B} "x" _:g .'])


def test_a_conjunctive_graphs_own_graph_has_no_name() -> None:
    with pytest.warns(DeprecationWarning, match="ConjunctiveGraph"):
        graph = rdflib.ConjunctiveGraph()
    graph.add((IRI, IRI_B, rdflib.Literal("x")))
    assert n_quads_of(graph) == f'{A} {B} "x" .\n'


REFUSED = [
    pytest.param((rdflib.Literal("x"), IRI, IRI), "no triple of RDF", id="literal as subject"),
    pytest.param((IRI, rdflib.BNode(), IRI), "no triple of RDF", id="blank node as predicate"),
    pytest.param((IRI, IRI, rdflib.Variable("x")), "no term of RDF", id="variable"),
    pytest.param((rdflib.URIRef("x:a> <x:b> <x:c> .\n<x:d"), IRI, IRI), "'>' is not allowed", id="IRI that would be a triple"),
    pytest.param((rdflib.BNode("a b"), IRI, IRI), "no label of a blank node", id="label"),
    pytest.param((IRI, IRI, rdflib.Literal("x", datatype=rdflib.URIRef("a b"))), "' ' is not allowed", id="datatype"),
]


@pytest.mark.parametrize(("triple", "fault"), REFUSED)
def test_what_rdf_does_not_have_is_refused(triple: tuple[rdflib.term.Node, rdflib.term.Node, rdflib.term.Node], fault: str) -> None:
    with pytest.raises(NotInRdflib, match=fault):
        n_quads_of(rdflib.Graph().add(triple))


def test_a_formula_is_refused() -> None:
    graph = rdflib.Graph(store="Memory")
    graph.add((rdflib.graph.QuotedGraph(graph.store, IRI), IRI, IRI))
    with pytest.raises(NotInRdflib, match="no term of RDF"):
        n_quads_of(graph)


def constructed(triples: str) -> Solution:
    return Solution("q", "1-0", "", "", None, triples)


def test_solutions_become_one_graph() -> None:
    lines = [f'{A} {B} "01"^^<{XSD}integer> .', f'{A} {B} "x"@en .']
    graph = graph_of([constructed("\n".join(lines)), constructed(lines[0])])
    assert sorted(n_quads_of(graph).splitlines()) == sorted(lines)


@pytest.mark.parametrize(("term", "kind"), [*zip(WITHOUT_RDFLIB[:2], ["string with a base direction", "triple term"], strict=True)])
def test_a_graph_cannot_hold_what_rdflib_lacks(term: Term, kind: str) -> None:
    solution = constructed(f"{A} {B} {term} .")
    with pytest.raises(NotInRdflib, match=f"a graph of rdflib cannot hold the {kind} "):
        graph_of([solution])
    assert [from_client_term(each.object) for each in solution.statements()] == [term]


def test_only_triples_become_a_graph() -> None:
    with pytest.raises(NotInRdflib, match="'q' are no triples; only CONSTRUCT and DESCRIBE"):
        graph_of([Solution("q", "1-0", "", "", {}, None)])


def test_graphs_are_recognised() -> None:
    found: list[object] = [rdflib.Graph(), rdflib.Dataset(), "text", {}]
    assert [is_rdflib_graph(each) for each in found] == [True, True, False, False]
