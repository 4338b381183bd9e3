"""This module writes graphs of rdflib as N-Quads.

Texts of literals and labels of blank nodes stay. It loads rdflib only if it has a graph.
"""

from collections.abc import Iterator
from typing import Any

from epsparql.terms import TripleTerm


def is_rdflib_graph(found: object) -> bool:
    """Return whether an object is a Graph or Dataset of rdflib, which is then loaded already."""
    return any(each.__module__ == "rdflib.graph" and each.__name__ == "Graph" for each in type(found).__mro__)


def n_quads_of(graph: Any) -> str:
    """Return a Graph or Dataset of rdflib as N-Quads.

    Raises: NotInRdflib for what RDF does not have, such as a literal as subject.
    """
    return "".join(f"{line} .\n" for line in _statements(graph))


def _statements(graph: Any) -> Iterator[str]:
    from rdflib.graph import DATASET_DEFAULT_GRAPH_ID

    from epsparql.rdf_exchange.conversion import from_client_term, from_client_triple

    if not hasattr(graph, "quads"):  # a Dataset has it, and so has the ConjunctiveGraph before it
        for triple in graph:
            yield _statement_of(from_client_triple(triple))
        return
    default = getattr(graph, "default_graph", None)  # only a Dataset's has a name that is the same everywhere
    unnamed = {DATASET_DEFAULT_GRAPH_ID, getattr(graph.default_context if default is None else default, "identifier", None), None}
    for *triple, context in graph.quads():
        name = getattr(context, "identifier", context)  # a Dataset gives names, a ConjunctiveGraph graphs
        yield f"{_statement_of(from_client_triple(triple))}{'' if name in unnamed else f' {from_client_term(name)}'}"


def _statement_of(triple: TripleTerm) -> str:
    return f"{triple.subject} {triple.predicate} {triple.object}"
