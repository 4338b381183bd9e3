"""This module reads the triples of background graphs out of the log entries that brought them."""

from collections.abc import Iterable

from engine.messages import Facts
from pipeline.log import LogReader
from pipeline.log.catalog import BackgroundGraph

Lines = dict[str, None]
"""Holds triples, each once, as a line of N-Triples without its end."""


def lines_of(ntriples: str) -> Lines:
    return dict.fromkeys(line for line in ntriples.split("\n") if line)


def graph_lines(reader: LogReader, graph: BackgroundGraph) -> Lines:
    """Return the triples of a graph, in the order in which they came."""
    found: Lines = {}
    for offset in graph.entries:
        found |= lines_of(_facts(reader, offset).triples)
    return found


def nquads(reader: LogReader, graphs: Iterable[BackgroundGraph]) -> str:
    """Return the triples of graphs, each in its own, as N-Quads."""
    return "".join(quads_of(graph_lines(reader, graph), graph.name) for graph in graphs)


def quads_of(lines: Iterable[str], graph: str) -> str:
    """Return the triples in a graph ("" for none) as N-Quads."""
    place = f" <{graph}> .\n" if graph else " .\n"
    return "".join(line.removesuffix(" .") + place for line in lines)


def _facts(reader: LogReader, offset: int) -> Facts:
    entry = reader.entry(offset)
    assert isinstance(entry, Facts), f"the catalogue names entry {offset}, which is {entry}"
    return entry
