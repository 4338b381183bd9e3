"""This module reads the numbers of terms out of N-Triples by a compiled scanner
(engine/native/source/formats/nquads.c).

The scanner passes only terms that are canonical as they stand. Each other term is parsed once, and any other text is
left to the parser.
"""

import os

import numpy as np
import pyarrow as pa
import pyoxigraph
from numpy.typing import NDArray

from engine.dictionary.term_dictionary import TermTable
from engine.expressions.literals import parse_term
from engine.native.entries import cells_of, columns_of
from engine.native.formats_layout import OTHERWISE, SIZE, SPAN_WIDTH, START
from engine.triples.quads import written

Ints = NDArray[np.int64]
_LONGEST = 1 << 30
"""A text of at most this many bytes is scanned, for offsets are of 32 bits."""
_SHORTEST_LINE = 10
_SEED = int.from_bytes(os.urandom(8), "little")
"""This seed of the hashes keeps anybody from preparing a text whose terms all collide."""


def scan_triples(ntriples: bytes, terms: TermTable) -> Ints | None:
    """Return the numbers of subject, predicate and object, a triple a row; None for a text that the parser has to read."""
    if len(ntriples) > _LONGEST:
        return None
    most = min(ntriples.count(b"\n") + 1, len(ntriples) // _SHORTEST_LINE + 1)
    cells, spans, flags = np.empty((most, 4), np.int32), np.empty((4 * most, SPAN_WIDTH), np.int64), np.empty(4 * most, np.uint8)
    rows, count = cells_of(ntriples, 3, _SEED, cells, spans, flags)
    if rows == OTHERWISE:
        return None
    spans, odd = spans[:count], np.flatnonzero(flags[:count])
    found = _find_canonical([ntriples[start : start + size] for start, size in spans[odd][:, [START, SIZE]].tolist()])
    if found is None:
        return None
    sizes = np.array([len(text) for text in found], np.int64)
    spans[odd, START], spans[odd, SIZE] = np.cumsum(sizes) - sizes + len(ntriples), sizes
    text = np.frombuffer(b"".join([ntriples, *found]), np.uint8) if found else np.frombuffer(ntriples, np.uint8)
    return _intern_cells(text, spans, np.ascontiguousarray(cells[:rows, :3]).reshape(1, -1), terms)


def _find_canonical(pieces: list[bytes]) -> list[bytes] | None:
    """Return the canonical texts of terms; None where one is no term, or may be the beginning of a triple term."""
    if any(piece.startswith(b"<<") for piece in pieces):
        return None
    try:
        triples = pyoxigraph.parse(b"".join(b"<x:s> <x:p> %b .\n" % piece for piece in pieces), format=pyoxigraph.RdfFormat.N_TRIPLES)
        texts = [written(triple.object) for triple in triples]
    except SyntaxError:
        return None
    return [(text if text.startswith(("<", "_")) else str(parse_term(text))).encode() for text in texts] if len(texts) == len(pieces) else None


def _intern_cells(text: NDArray[np.uint8], spans: Ints, cells: NDArray[np.int32], terms: TermTable) -> Ints:
    """Return the numbers of the terms in `cells` (1 x three for each triple), which count the terms of the text."""
    n = cells.shape[1]
    indices, offsets = np.empty((1, n), np.int32), np.empty(min(n, len(spans)) + 1, np.int32)
    texts, sizes = np.empty(len(text) + 8, np.uint8), np.empty((1, 2), np.int64)
    columns_of(text, spans, cells, n, indices, offsets, texts, sizes)
    count, size = sizes[0].tolist()
    strings = pa.StringArray.from_buffers(count, pa.py_buffer(offsets[: count + 1]), pa.py_buffer(texts[:size]))
    numbers: Ints = terms.intern_strings(strings)[indices[0]].reshape(-1, 3)
    return numbers
