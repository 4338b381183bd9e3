"""This module reads bodies and files of background knowledge, RDF in any of its syntaxes, into graphs of N-Triples
text. Nothing is fetched.

A body is read in pieces, so that a large file takes little memory. Pieces of N-Triples and N-Quads go through the
compiled scanner of events, and Turtle and TriG are parsed into such pieces. The exact path reads all else, statement
by statement: other syntaxes, and a piece that the scanner refuses, whose fault it places.

    N-Triples, N-Quads ──────── lines ──▶ scanner ──▶ canonical lines by graph.
    Turtle, TriG ──▶ parser ──▶ lines ──▶    │ refuses
    others ─────────────────────────────▶ statement by statement ──▶
"""

import io
import re
from codecs import BOM_UTF8
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from hashlib import blake2b, file_digest
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import pyoxigraph as ox

from pipeline.errors import FormatError
from pipeline.formats.batches.batch_builder import DIGEST_BYTES, Labels
from pipeline.formats.batches.expansion_budget import ExpansionBudget, size_of
from pipeline.formats.batches.fast_path import canonical_lines
from pipeline.formats.batches.ntriples import canonical, labelled
from pipeline.formats.body_parser import LD_JSON, N_QUADS, N_TRIPLES, RDF_XML, TRIG, TURTLE
from pipeline.formats.rdf.rdf import Node, parse_quads, place_of, unlabelled_text
from pipeline.formats.rdf.rdf_xml import placed, plain_xml
from pipeline.formats.rdf.turtle_lexer import is_small_when_resolved, longest_iri

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
"""Maps each graph to its triples as N-Triples text."""
Part = tuple[str, str]
"""A graph and some of its triples as N-Triples text, each once."""
PIECE = 8 << 20
"""About so many bytes are read at a time."""

_GRANTED, _FACTOR = 64 << 20, 16
"""A body may give this many bytes of triples, and this many more for each of its own bytes: a name is written out in
each triple anew.
"""
_IRIS = 6
"""A statement has at most so many IRIs that a prefix or a base writes out, with the datatype of a literal."""
_LABEL = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_-]*")


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
    graphs = defaultdict[str, list[str]](list)
    for graph, lines in read_parts(io.BytesIO(body.removeprefix(BOM_UTF8)), media_type, name):
        graphs[graph].append(lines)
    return {graph: "".join(parts) for graph, parts in graphs.items()} or {name: ""}


def read_graph(body: bytes, media_type: str, name: str) -> str:
    """Return the triples of a body that is about one graph.

    Raises: FormatError, also where the body names another graph.
    """
    graphs = read_graphs(body, media_type, name)
    for other in graphs:
        if other != name:
            raise FormatError("other-graph", f"the body has triples of the graph {other!r}", *place_of(body, other), expected="triples of one graph")
    return graphs.get(name, "")


def read_parts(file: BinaryIO, media_type: str, name: str = NO_GRAPH) -> Iterator[Part]:
    """Yield the graphs of a file or body from where it stands, like `read_graphs`, in parts of about a piece.

    A triple may be in several parts. Raises: FormatError.
    """
    kind = media_type.partition(";")[0].strip().lower()
    if kind not in _FORMATS:
        raise FormatError("media-type", f"{kind!r} is no format of background here", expected=", ".join(SYNTAXES))
    reader, waiting = _Reader(file, kind, name), defaultdict[str, list[str]](list)
    sizes = defaultdict[str, int](int)
    for graph, lines in reader.read_all():
        if not sizes[graph]:
            reader.budget.spend(size_of(graph))
        waiting[graph].append(lines)
        sizes[graph] += len(lines)
        if sizes[graph] >= PIECE:
            yield graph, "".join(waiting.pop(graph))
            sizes[graph] = 1  # its name is counted
    if not sizes:
        yield name, ""
    for graph, parts in waiting.items():
        yield graph, "".join(parts)


class _Reader:
    """Reads one file or body into parts of its graphs."""

    def __init__(self, file: BinaryIO, kind: str, name: str) -> None:
        self._file, self._begin, self._kind, self._name = file, file.tell(), kind, name
        size = file.seek(0, io.SEEK_END) - self._begin
        file.seek(self._begin)
        self.budget = ExpansionBudget(size, _GRANTED, _FACTOR)

    def read_all(self) -> Iterator[Part]:
        if self._kind in (N_TRIPLES, N_QUADS):
            yield from self._read_lines()
        elif self._kind in (TURTLE, TRIG) and is_small_when_resolved(self._body):
            yield from self._read_serialized()
        else:
            yield from self._read_statements(self._body, self._kind)

    @cached_property
    def _body(self) -> bytes:
        """Return the whole body, and leave the file's position as it is."""
        place = self._file.tell()
        self._file.seek(self._begin)
        found = self._file.read()
        self._file.seek(place)
        return found

    # ------------------------------------------------------------ blank nodes
    @cached_property
    def _labels(self) -> Labels:
        return Labels(self._body, None)

    @cached_property
    def _prefix(self) -> str:
        """Return the beginning of the name of each node that has a label in the body, as `Labels` has it.

        The body is read once more for that.
        """
        place = self._file.tell()
        self._file.seek(self._begin)
        found = file_digest(self._file, lambda: blake2b(digest_size=DIGEST_BYTES)).hexdigest()  # type: ignore[arg-type]  # typeshed asks for more than is used
        self._file.seek(place)
        return f"_:m{found}"

    def _name_node(self, label: str) -> str:
        """Return the term for the label of a blank node. A label of N-Triples and N-Quads is surely written in them."""
        if self._kind in (N_TRIPLES, N_QUADS) and _LABEL.fullmatch(label):
            return self._prefix + label
        return self._labels.blank_node(label)

    # ------------------------------------------------------------ ways to read
    def _read_lines(self) -> Iterator[Part]:
        line = 1
        while piece := self._file.read(PIECE):
            piece += self._file.readline()
            try:
                yield from self._read_piece(piece)
            except FormatError as fault:
                place = None if fault.line is None else fault.line + line - 1
                raise FormatError(fault.code, fault.message, place, fault.column, fault.expected) from None
            line += piece.count(b"\n")

    def _read_piece(self, piece: bytes) -> Iterator[Part]:
        """Yield the graphs of some lines of N-Triples or N-Quads."""
        found = canonical_lines(piece, self._name_node, graphs=self._kind == N_QUADS)
        if found is None:
            yield from self._read_statements(piece, self._kind)
        else:
            yield from self._charge(piece, found)

    def _read_serialized(self) -> Iterator[Part]:
        """Yield the graphs of Turtle or TriG, as the parser's statements that are written as N-Quads."""
        quads = parse_quads(self._body, _FORMATS[self._kind], self._name or None, budget=self.budget)
        count = max(PIECE // (_IRIS * longest_iri(self._body)), 1)  # so that a piece is bounded: all but IRIs stands in the body as it is
        while piece := ox.serialize(islice(quads, count), format=ox.RdfFormat.N_QUADS):
            found = canonical_lines(piece, self._name_node, graphs=True)
            if found is None:
                yield from self._group(ox.parse(piece, ox.RdfFormat.N_QUADS, lenient=True), self._body)
            else:
                yield from self._charge(piece, found)

    def _read_statements(self, text: bytes, kind: str) -> Iterator[Part]:
        plain = plain_xml(text, self.budget) if kind == RDF_XML else text
        try:
            yield from self._group(parse_quads(plain, _FORMATS[kind], self._name or None, budget=self.budget), text)
        except FormatError as fault:
            raise placed(fault, text) from None

    def _charge(self, piece: bytes, found: list[Part]) -> Iterator[Part]:
        """Yield what the scanner found in a piece, and count what it takes."""
        self.budget.count_written(len(piece))
        for graph, lines in found:
            self.budget.spend(size_of(lines))
            yield self._name_graph(graph), lines

    def _group(self, quads: Iterable[ox.Quad], text: bytes) -> Iterator[Part]:
        """Yield the graphs of statements of a text."""
        graphs = defaultdict[str, dict[str, None]](dict)
        for s, p, o, g in quads:
            graph = "" if isinstance(g, ox.DefaultGraph) else self._spell(g, text)
            line = " ".join(self._spell(term, text) for term in (s, p, o)) + " .\n"
            self.budget.count_written(len(line))
            if line not in (lines := graphs[graph]):
                self.budget.spend(size_of(line))
                lines[line] = None
        for graph, lines in graphs.items():
            yield self._name_graph(graph), "".join(lines)

    def _spell(self, term: Node, text: bytes) -> str:
        return labelled(unlabelled_text(term, text), self._name_node)

    def _name_graph(self, term: str) -> str:
        return term.removeprefix("<").removesuffix(">") if term else self._name


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
