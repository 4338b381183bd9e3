"""Triples of the background lie in graphs, and graphs have names."""

from collections.abc import Iterator

import pyoxigraph

from engine.expressions.literals import parse_term
from epsparql.terms import BlankNode, Iri, Term

GraphName = Iri | BlankNode
Quad = tuple[Term, Term, Term, GraphName | None]
"""A quad is a background triple and the graph that it lies in."""
Triple = tuple[Term, Term, Term]


def graph_named(text: str) -> GraphName | None:
    """Return the graph of a name as log entries have it: an IRI without brackets, `_:label`, or nothing for none."""
    if not text:
        return None
    return BlankNode(text[2:]) if text.startswith("_:") else Iri(text)


def name_of(graph: GraphName | None) -> str:
    """Return the name of a graph, as `graph_named` takes it."""
    return "" if graph is None else graph.value if isinstance(graph, Iri) else str(graph)


def quads_of(nquads: str) -> Iterator[Quad]:
    """Yield the quads of an N-Quads text."""
    for quad in pyoxigraph.parse(nquads.encode(), format=pyoxigraph.RdfFormat.N_QUADS):
        graph = None if isinstance(quad.graph_name, pyoxigraph.DefaultGraph) else graph_named(quad.graph_name.value)
        yield parse_term(str(quad.subject)), parse_term(str(quad.predicate)), parse_term(written(quad.object)), graph


def written(term: pyoxigraph.NamedNode | pyoxigraph.BlankNode | pyoxigraph.Literal | pyoxigraph.Triple) -> str:
    """Return the N-Triples text of a term. (For a triple, `str` gives the text of a statement.)"""
    return f"<<( {term} )>>" if isinstance(term, pyoxigraph.Triple) else str(term)


def triples_of(ntriples: str) -> list[Triple]:
    """Return the triples of an N-Triples text."""
    return [quad[:3] for quad in quads_of(ntriples)]
