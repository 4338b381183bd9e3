"""This module reads bodies and files of background knowledge, RDF in any of its syntaxes, into graphs of N-Triples
text. Nothing is fetched.
"""

import re
from codecs import BOM_UTF8
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pyoxigraph as ox

from pipeline.errors import FormatError
from pipeline.formats.batches.batch_builder import Labels
from pipeline.formats.batches.expansion_budget import ExpansionBudget, size_of
from pipeline.formats.batches.ntriples import canonical
from pipeline.formats.body_parser import LD_JSON, N_QUADS, N_TRIPLES, RDF_XML, TRIG, TURTLE
from pipeline.formats.rdf.rdf import parse_quads, place_of, term_text
from pipeline.formats.rdf.rdf_xml import placed, plain_xml

_FORMATS = {
    TURTLE: ox.RdfFormat.TURTLE,
    RDF_XML: ox.RdfFormat.RDF_XML,
    N_TRIPLES: ox.RdfFormat.N_TRIPLES,
    LD_JSON: ox.RdfFormat.JSON_LD,
    TRIG: ox.RdfFormat.TRIG,
    N_QUADS: ox.RdfFormat.N_QUADS,
}
SYNTAXES = tuple(_FORMATS)
_SUFFIXES = {
    ".ttl": TURTLE,
    ".rdf": RDF_XML,
    ".owl": RDF_XML,
    ".xml": RDF_XML,
    ".nt": N_TRIPLES,
    ".jsonld": LD_JSON,
    ".trig": TRIG,
    ".nq": N_QUADS,
}  # fmt: skip
UNNAMED_ELEMENT = b"<oxprefix: "
"""Serialised RDF/XML has this element where a predicate has no name: it is not valid RDF/XML."""
NO_GRAPH = ""
PLAIN = "urn:epsparql:graph:"
"""A plain name stands for the graph whose IRI has this beginning."""
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._~-]+")
Graphs = dict[str, str]
"""Maps each graph to its triples as N-Triples text, each once."""

_GRANTED, _FACTOR = 64 << 20, 16
"""A body may give this many bytes of triples, and this many more for each of its own bytes: a name is written out in
each triple anew.
"""


def syntax_of(path: Path) -> str:
    """Return the syntax that the file's suffix names. Raises: FormatError."""
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise FormatError("media-type", f"no format of background is known by the suffix {suffix!r}", expected=", ".join(_SUFFIXES))
    return _SUFFIXES[suffix]


def read_graphs(body: bytes, media_type: str, name: str = NO_GRAPH) -> Graphs:
    """Return the graphs of a body. Triples in no graph go to the graph `name`, which is also the base of relative IRIs.

    An empty body is that graph, empty. Raises: FormatError. Blank nodes are named after the body, so their names are
    the same at each reading and are no other body's.
    """
    kind = media_type.partition(";")[0].strip().lower()
    if kind not in _FORMATS:
        raise FormatError("media-type", f"{kind!r} is no format of background here", expected=", ".join(SYNTAXES))
    body = body.removeprefix(BOM_UTF8)
    labels, budget = Labels(body, None), ExpansionBudget(len(body), _GRANTED, _FACTOR)
    graphs: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for s, p, o, g in _quads(body, kind, name, budget):
        graph = name if isinstance(g, ox.DefaultGraph) else term_text(g, labels, body)
        terms = (term_text(term, labels, body) for term in (s, p, o))
        line, graph = " ".join(terms) + " .\n", graph.removeprefix("<").removesuffix(">")
        budget.count_written(len(line))
        if graph not in graphs:
            budget.spend(size_of(graph))
        if line not in (lines := graphs[graph]):
            budget.spend(size_of(line))
            lines[line] = None
    return {graph: "".join(lines) for graph, lines in graphs.items()} or {name: ""}


def read_graph(body: bytes, media_type: str, name: str) -> str:
    """Return the triples of a body that is about one graph.

    Raises: FormatError, also where the body names another graph.
    """
    graphs = read_graphs(body, media_type, name)
    for other in graphs:
        if other != name:
            raise FormatError("other-graph", f"the body has triples of the graph {other!r}", *place_of(body, other), expected="triples of one graph")
    return graphs.get(name, "")


def graph_of(name: str) -> str:
    """Return the graph that a name stands for, which is an IRI or a plain name. Raises: FormatError."""
    return f"{PLAIN}{name}" if _PLAIN_NAME.fullmatch(name) else checked_name(name)


def checked_name(name: str) -> str:
    """Return a graph's name, an absolute IRI or nothing, after a check. Raises: FormatError."""
    if name == NO_GRAPH:
        return name
    try:
        if canonical(f"<{name}>") == f"<{name}>" and not name.startswith("<"):
            return name
    except FormatError:
        pass
    raise FormatError("graph-name", f"{name!r} cannot name a graph", expected="an absolute IRI, or letters, digits, '.', '_', '~' and '-'")


def _quads(body: bytes, kind: str, base: str, budget: ExpansionBudget) -> Iterator[ox.Quad]:
    text = plain_xml(body, budget) if kind == RDF_XML else body
    try:
        yield from parse_quads(text, _FORMATS[kind], base or None, budget=budget)
    except FormatError as fault:
        raise placed(fault, body) from None
