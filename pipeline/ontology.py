"""Bodies and files of background knowledge: RDF in any of its syntaxes, read into graphs of N-Triples text. Nothing is fetched."""

import re
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from xml.parsers import expat

import pyoxigraph as ox

from pipeline.errors import FormatError
from pipeline.formats import LD_JSON, N_QUADS, N_TRIPLES, TRIG, TURTLE
from pipeline.ntriples import canonical
from pipeline.occurrences import Labels
from pipeline.rdf import parse_quads, place_of, term_text

RDF_XML = "application/rdf+xml"
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
"""In RDF/XML as it is written: an element without a name, which is none, for a predicate that has none."""
NO_GRAPH = ""
Graphs = dict[str, str]
"""By graph its triples as N-Triples text, each once."""

_ENTITY = re.compile(rb"""<!ENTITY\s+(%?)\s*([^\s"'%]+)\s+("[^"]*"|'[^']*'|\S+)""")
_QUOTED = re.compile(r"'([^']+)'")
_DEPTH = 512
_GROWTH = 1 << 20
"""Bytes that entities may add to a document, beside as many again as it has."""


def syntax_of(path: Path) -> str:
    """By the file's suffix. Raises: FormatError."""
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise FormatError("media-type", f"no format of background is known by the suffix {suffix!r}", expected=", ".join(_SUFFIXES))
    return _SUFFIXES[suffix]


def read_graphs(body: bytes, media_type: str, name: str = NO_GRAPH) -> Graphs:
    """The graphs of a body; `name` is the graph of triples in none, and the base of relative IRIs. An empty body is that graph, empty. Raises: FormatError.

    Blank nodes are named after the body, so that they are the same whenever it is read, and no other's.
    """
    kind = media_type.partition(";")[0].strip().lower()
    if kind not in _FORMATS:
        raise FormatError("media-type", f"{kind!r} is no format of background here", expected=", ".join(SYNTAXES))
    labels = Labels(body, None)
    graphs: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for quad in _quads(body, kind, name):
        graph = name if isinstance(quad.graph_name, ox.DefaultGraph) else term_text(quad.graph_name, labels, body)
        terms = (term_text(term, labels, body) for term in (quad.subject, quad.predicate, quad.object))
        graphs[graph.removeprefix("<").removesuffix(">")][" ".join(terms) + " .\n"] = None
    return {graph: "".join(lines) for graph, lines in graphs.items()} or {name: ""}


def read_graph(body: bytes, media_type: str, name: str) -> str:
    """The triples of a body that is about one graph. Raises: FormatError, also where it names another one."""
    graphs = read_graphs(body, media_type, name)
    for other in graphs:
        if other != name:
            raise FormatError("other-graph", f"the body has triples of the graph {other!r}", *place_of(body, other), expected="triples of one graph")
    return graphs.get(name, "")


def checked_name(name: str) -> str:
    """A graph's name: an absolute IRI, or nothing. Raises: FormatError."""
    if name == NO_GRAPH:
        return name
    try:
        if canonical(f"<{name}>") == f"<{name}>":
            return name
    except FormatError:
        pass
    raise FormatError("graph-name", f"{name!r} cannot name a graph", expected="an absolute IRI")


def _quads(body: bytes, kind: str, base: str) -> list[ox.Quad]:
    if kind == RDF_XML:
        _refuse_entities(body)
        _refuse_depth(body)
    try:
        return parse_quads(body, _FORMATS[kind], base or None)
    except FormatError as fault:
        raise fault if fault.line is not None else _placed(fault, body, kind) from None


def _refuse_entities(body: bytes) -> None:
    """Raises: FormatError for entities that stand for files, for parts of the declarations or for each other, and for too many of the others."""
    growth = 0
    for found in _ENTITY.finditer(body) if b"<!DOCTYPE" in body else ():
        value = found[3]
        if found[1] or value[:1] not in b"\"'" or b"&" in value or b"%" in value:
            what = f"the entity {found[2].decode('utf-8', 'replace')!r} stands for more than text, and nothing is fetched or expanded twice"
            raise FormatError("entity", what, *place_of(body, found[0].decode("utf-8", "replace")), "entities with plain text in quotes")
        growth += body.count(b"&" + found[2] + b";") * len(value)
    if growth > len(body) + _GROWTH:
        raise FormatError("entity", f"the entities would add {growth} bytes to the document", 1, 1, "an expanded document")


def _refuse_depth(body: bytes) -> None:
    """Raises: FormatError for elements inside each other beyond _DEPTH, over which the parser takes time that grows with its square."""
    parser, depth = expat.ParserCreate(), 0

    def begin(_name: str, _attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEPTH:
            raise FormatError("too-deep", f"elements are nested deeper than {_DEPTH}", parser.CurrentLineNumber, parser.CurrentColumnNumber + 1)

    def end(_name: str) -> None:
        nonlocal depth
        depth -= 1

    parser.StartElementHandler, parser.EndElementHandler = begin, end
    with suppress(expat.ExpatError):  # told with what is expected when it is read
        parser.Parse(body, True)


def _placed(fault: FormatError, body: bytes, kind: str) -> FormatError:
    """The fault with a place, which this syntax's parser does not tell."""
    if kind == RDF_XML:
        parser = expat.ParserCreate(namespace_separator=" ")
        try:
            parser.Parse(body, True)
        except expat.ExpatError as malformed:
            return FormatError(fault.code, fault.message, malformed.lineno, malformed.offset + 1, fault.expected)
    culprit = _QUOTED.search(fault.message)
    return FormatError(fault.code, fault.message, *place_of(body, culprit[1] if culprit else "\0"), fault.expected)
