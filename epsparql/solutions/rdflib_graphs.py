"""This module puts the triples of solutions into a graph of rdflib. Texts of literals stay as written, and labels of blank nodes stay."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from epsparql.extras import load_extra
from epsparql.solutions.solution import Solution
from epsparql.terms import NotInRdflib

if TYPE_CHECKING:
    import rdflib


def graph_of(solutions: Iterable[Solution]) -> "rdflib.Graph":
    """Return the triples of CONSTRUCT or DESCRIBE solutions as one graph. Raises: MissingExtra; NotInRdflib for triple terms."""
    graph: rdflib.Graph = load_extra("rdflib", "a graph of solutions").Graph()
    for solution in solutions:
        if solution.triples is None:
            raise NotInRdflib(f"the solutions of {solution.query!r} are no triples; only CONSTRUCT and DESCRIBE give a graph")
        for triple in solution.statements():
            graph.add((triple.subject.to_rdflib(), triple.predicate.to_rdflib(), triple.object.to_rdflib()))
    return graph
