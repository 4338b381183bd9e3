"""This module writes the answers of one-shot queries in the media types of the SPARQL 1.1 Protocol, in pieces, up to
a limit of bytes.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

import numpy as np
import pyarrow as pa
import pyoxigraph as ox

from engine.messages import INSTANT
from epsparql.ntriples import parse_term
from epsparql.terms import XSD_STRING, BlankNode, Iri, Literal, Term, TripleTerm
from pipeline.formats.rdf.rdf_version import RDF_1_1, RDF_1_2, VERSIONS, WITHOUT_TRIPLE_TERMS, version_of_terms
from pipeline.formats.rdf.stored_statements import parse_stored
from pipeline.solutions.formats import show_plain
from pipeline.solutions.json_encoder import bindings
from pipeline.solutions.result_kinds import Bindings
from pipeline.solutions.solution_ids import STORED

JSON, XML, CSV, TSV = "application/sparql-results+json", "application/sparql-results+xml", "text/csv", "text/tab-separated-values"
TABLES = (JSON, XML, CSV, TSV)
TURTLE = "text/turtle"
GRAPHS = {
    TURTLE: ox.RdfFormat.TURTLE,
    "application/n-triples": ox.RdfFormat.N_TRIPLES,
    "application/rdf+xml": ox.RdfFormat.RDF_XML,
    "application/ld+json": ox.RdfFormat.JSON_LD,
}
_RESULTS, _ITS = "http://www.w3.org/2005/sparql-results#", "http://www.w3.org/2005/11/its"
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""XML 1.0 has no notation for these characters."""


class TooLarge(Exception):
    """Signals an answer that is larger than it may be."""


class NotWritable(Exception):
    """Signals an answer that the media type cannot hold; the text says why."""


class Text(NamedTuple):
    """Holds an answer, and the version of RDF that it needs.

    A media type that has no triple terms gets no text for them.
    """

    version: str
    text: bytes


class _Pieces:
    """Collects an answer of at most `most` bytes. Raises: TooLarge."""

    def __init__(self, most: int) -> None:
        self._pieces, self._left = list[bytes](), most

    def add(self, text: str) -> None:
        piece = text.encode()
        self._left -= len(piece)
        if self._left < 0:
            raise TooLarge
        self._pieces.append(piece)

    def join(self) -> bytes:
        return b"".join(self._pieces)


def write_verdict(media_type: str, verdict: bool) -> Text:
    """Write the answer to an ASK."""
    word = "true" if verdict else "false"
    match media_type:
        case "application/sparql-results+json":
            text = f'{{"head":{{}},"boolean":{word}}}'
        case "application/sparql-results+xml":
            text = f'<?xml version="1.0"?><sparql xmlns="{_RESULTS}"><head></head><boolean>{word}</boolean></sparql>'
        case _:
            text = word
    return Text(RDF_1_1, text.encode())


def write_table(media_type: str, variables: tuple[str, ...], solutions: Iterable[pa.ListArray], most: int) -> Text:
    """Write the solutions of a SELECT, whose terms are in the order of the variables. Raises: TooLarge, NotWritable."""
    begin, write, end = _TABLES[media_type]
    pieces, version, is_first = _Pieces(most), RDF_1_1, True
    pieces.add(begin(variables))
    for part in solutions:
        version = max(version, version_of_terms(part.values), key=VERSIONS.index)
        if version == RDF_1_2 and media_type in WITHOUT_TRIPLE_TERMS:
            return Text(version, b"")
        if media_type == JSON and not is_first:
            pieces.add(",")
        pieces.add(write(variables, part))
        is_first = False
    pieces.add(end)
    return Text(version, pieces.join())


def write_graph(media_type: str, triples: Iterable[pa.ListArray], most: int) -> Text:
    """Write triples, no two of which are equal. Raises: TooLarge."""
    pieces, version = _Pieces(most), RDF_1_1
    for part in triples:
        version = max(version, version_of_terms(part.values), key=VERSIONS.index)
        if version == RDF_1_2 and media_type in WITHOUT_TRIPLE_TERMS:
            return Text(version, b"")
        pieces.add("".join(f"{s} {p} {o} .\n" for s, p, o in part.to_pylist()))
    written = ox.serialize(parse_stored(pieces.join().decode()), format=GRAPHS[media_type])
    assert written is not None
    if len(written) > most:
        raise TooLarge
    return Text(version, written)


# ---------------------------------------------------------------- tables
def _begin_json(variables: tuple[str, ...]) -> str:
    return f'{{"head":{{"vars":{json.dumps(variables, ensure_ascii=False)}}},"results":{{"bindings":['


def _write_json(variables: tuple[str, ...], part: pa.ListArray) -> str:
    n = len(part)
    query = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array(["sparql"], pa.utf8()))
    numbers = pa.array(np.zeros(n, np.int64))
    instants = numbers.cast(INSTANT)
    return bindings(pa.RecordBatch.from_arrays([query, numbers, numbers, instants, instants, part, numbers], schema=STORED), Bindings(variables))


def _begin_csv(variables: tuple[str, ...]) -> str:
    return ",".join(variables) + "\r\n"


def _write_csv(variables: tuple[str, ...], part: pa.ListArray) -> str:
    out = io.StringIO()
    csv.writer(out).writerows(_encode_rows(variables, part, show_plain))
    return out.getvalue()


def _begin_tsv(variables: tuple[str, ...]) -> str:
    return "\t".join(f"?{name}" for name in variables) + "\n"


def _write_tsv(variables: tuple[str, ...], part: pa.ListArray) -> str:
    return "".join("\t".join(row) + "\n" for row in _encode_rows(variables, part, lambda term: term.replace("\t", "\\t")))


def _begin_xml(variables: tuple[str, ...]) -> str:
    names = "".join(f"<variable name={quoteattr(name)}/>" for name in variables)
    return f'<?xml version="1.0"?><sparql xmlns="{_RESULTS}"><head>{names}</head><results>'


def _write_xml(variables: tuple[str, ...], part: pa.ListArray) -> str:
    begins = [f"<binding name={quoteattr(name)}>" for name in variables]
    rows = _encode_rows(variables, part, lambda term: _show_xml(parse_term(term)))
    return "".join(f"<result>{''.join(f'{begin}{term}</binding>' for begin, term in zip(begins, row, strict=True) if term)}</result>" for row in rows)


def _show_xml(term: Term) -> str:
    match term:
        case Iri(value):
            return f"<uri>{_escape_xml(value)}</uri>"
        case BlankNode(label):
            return f"<bnode>{label}</bnode>"
        case TripleTerm(subject, predicate, object_):
            parts = zip(("subject", "predicate", "object"), (subject, predicate, object_), strict=True)
            return f"<triple>{''.join(f'<{name}>{_show_xml(part)}</{name}>' for name, part in parts)}</triple>"
        case Literal(lexical, datatype, language, direction):
            about = "" if language is None and datatype == XSD_STRING else f" datatype={quoteattr(datatype)}"
            if language is not None:
                about = f' xml:lang="{language}"'
            if direction is not None:
                about += f' xmlns:its="{_ITS}" its:version="2.0" its:dir="{direction}"'
            return f"<literal{about}>{_escape_xml(lexical)}</literal>"


def _escape_xml(text: str) -> str:
    if found := _NOT_XML.search(text):
        raise NotWritable(f"XML has no notation for the character U+{ord(found[0]):04X}")
    return escape(text, {"\r": "&#13;"})


def _encode_rows(variables: tuple[str, ...], part: pa.ListArray, encode: Callable[[str], str]) -> Iterator[list[str]]:
    """Yield the terms of each solution, encoded, with an empty text for an unbound variable; each term is encoded once."""
    terms = part.values.dictionary_encode()
    encoded = [*map(encode, terms.dictionary.to_pylist()), ""]
    cells = [encoded[k] for k in terms.indices.fill_null(len(encoded) - 1).to_pylist()]
    width = len(variables)
    return (cells[row * width : (row + 1) * width] for row in range(len(part)))


_TABLES: dict[str, tuple[Callable[[tuple[str, ...]], str], Callable[[tuple[str, ...], pa.ListArray], str], str]] = {
    JSON: (_begin_json, _write_json, "]}}"),
    XML: (_begin_xml, _write_xml, "</results></sparql>"),
    CSV: (_begin_csv, _write_csv, ""),
    TSV: (_begin_tsv, _write_tsv, ""),
}
"""How a table begins, how some of its solutions are written, and how it ends."""
