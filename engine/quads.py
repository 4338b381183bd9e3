"""Triples of the background in their graphs, and how graphs are named."""

from epsparql.terms import BlankNode, Iri, Term

GraphName = Iri | BlankNode
Quad = tuple[Term, Term, Term, GraphName | None]
"""A background triple and the graph that it lies in."""


def graph_named(text: str) -> GraphName | None:
    """The graph of a name as log entries have it: an IRI without brackets, `_:label`, or nothing for none."""
    if not text:
        return None
    return BlankNode(text[2:]) if text.startswith("_:") else Iri(text)


def name_of(graph: GraphName | None) -> str:
    """What `graph_named` takes."""
    return "" if graph is None else graph.value if isinstance(graph, Iri) else str(graph)
