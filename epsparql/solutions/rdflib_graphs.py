"""This module puts the triples of solutions into a graph of rdflib.

Texts of literals stay as written, and labels of blank nodes stay.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from epsparql.rdf_exchange.client_terms import DirectionalString, NotInRdflib, Triple
from epsparql.solutions.solution import Solution

if TYPE_CHECKING:
    import rdflib


def graph_of(solutions: Iterable[Solution]) -> "rdflib.Graph":
    """Return the triples of CONSTRUCT or DESCRIBE solutions as one graph.

    Raises: NotInRdflib for what rdflib has no term for.
    """
    import rdflib  # loaded here, because it takes longer to load than a client

    graph = rdflib.Graph()
    for solution in solutions:
        if solution.triples is None:
            raise NotInRdflib(f"the solutions of {solution.query!r} are no triples; only CONSTRUCT and DESCRIBE give a graph")
        for subject, predicate, object_ in solution.statements():
            if isinstance(object_, Triple | DirectionalString):
                kind = "triple term" if isinstance(object_, Triple) else "string with a base direction"
                raise NotInRdflib(f"a graph of rdflib cannot hold the {kind} {object_.n3()}; solution.statements() has it")
            graph.add((subject, predicate, object_))
    return graph
