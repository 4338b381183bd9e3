"""rdflib's graphs and terms, both ways: texts stay as written, and what either side cannot hold is refused."""

import pytest
import rdflib

from epsparql.events.rdflib_events import is_rdflib_graph, n_quads_of, term_from_rdflib
from epsparql.solutions.rdflib_graphs import graph_of
from epsparql.solutions.solution import Solution
from epsparql.terms import RDF_LANG_STRING, XSD, BlankNode, Iri, Literal, NotInRdflib, Term, TripleTerm

A, B = Iri("http://example.org/a"), Iri("http://example.org/b")
TERMS: list[Term] = [
    A,
    BlankNode("b1"),
    Literal("x"),
    Literal('say "hi"\n'),
    Literal("hi", RDF_LANG_STRING, "en"),
    Literal("001.50", XSD + "decimal"),
    Literal("01", XSD + "integer"),
    Literal("TRUE", XSD + "boolean"),
    Literal("2026-01-01T10:00:00.000Z", XSD + "dateTime"),
    Literal("x", "http://example.org/type"),
]


@pytest.mark.parametrize("term", TERMS, ids=str)
def test_a_term_comes_back_as_written(term: Term) -> None:
    graph = rdflib.Graph().add((A.to_rdflib(), B.to_rdflib(), term.to_rdflib()))
    ((_, _, found),) = graph
    assert term_from_rdflib(found) == term
    assert n_quads_of(graph) == f"{A} {B} {term} .\n"


def test_a_dataset_keeps_its_graphs() -> None:
    dataset = rdflib.Dataset()
    triple = A.to_rdflib(), B.to_rdflib(), rdflib.Literal("x")
    dataset.graph(A.to_rdflib()).add(triple)
    dataset.graph(rdflib.BNode("g")).add(triple)
    dataset.default_graph.add(triple)
    assert sorted(n_quads_of(dataset).splitlines()) == sorted([f'{A} {B} "x" .', f'{A} {B} "x" {A} .', f'{A} {B} "x" _:g .'])


def test_a_conjunctive_graphs_own_graph_has_no_name() -> None:
    with pytest.warns(DeprecationWarning, match="ConjunctiveGraph"):
        graph = rdflib.ConjunctiveGraph()
    graph.add((A.to_rdflib(), B.to_rdflib(), rdflib.Literal("x")))
    assert n_quads_of(graph) == f'{A} {B} "x" .\n'


IRI = rdflib.URIRef("http://example.org/a")
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


def test_what_rdflib_cannot_hold_is_refused() -> None:
    with pytest.raises(NotInRdflib, match="rdflib cannot hold the triple term <<"):
        graph_of([constructed(f"{A} {B} {TripleTerm(A, B, A)} .")])
    with pytest.raises(NotInRdflib, match="'q' are no triples; only CONSTRUCT and DESCRIBE"):
        graph_of([Solution("q", "1-0", "", "", {}, None)])


def test_graphs_are_recognised() -> None:
    found: list[object] = [rdflib.Graph(), rdflib.Dataset(), "text", {}]
    assert [is_rdflib_graph(each) for each in found] == [True, True, False, False]
