"""This module turns bodies of the usual shape into OCCURRENCES, by compiled scanners (engine/native/source/formats.c).

Any other body gives None, and the exact path then judges it. What is taken here is what the exact path would take,
with the same rows: the scanners pass only what is canonical as it stands, and hand each other term, once a body, to
`pipeline.formats.batches.ntriples`.
"""

import os
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.dictionary.batch_layout import ARROW_WORDS
from engine.messages import INSTANT, OCCURRENCES
from engine.native.entries import cells_of, clauses_of, columns_of, events_of, flags_of, lines_of, make_batch, renamed, rows_of_events, timed
from engine.native.formats_layout import CLOSE, NODE_SIZE, OTHERWISE, PLAIN, SIZE, SPAN_WIDTH, START, VALUE_ROOM
from engine.native.openssl import find_openssl
from pipeline.errors import FormatError
from pipeline.formats.batches.batch_builder import Interval, Labels
from pipeline.formats.batches.expansion_budget import ROW_BYTES, ExpansionBudget
from pipeline.formats.batches.ntriples import OBJECTS, TRIPLE

LONGEST = 1 << 30
"""A body of at most this many bytes is read here, for offsets are of 32 bits."""

_AROUND = 16  # bytes of room beside each term of a line
_AT_ONCE = 1 << 20  # bytes: what is compared at once stays in the caches
_SEED = int.from_bytes(os.urandom(8), "little")
"""This seed of the hashes keeps anybody from preparing a body whose terms all collide. No output depends on it."""

Ints = NDArray[np.int64]
Cells = NDArray[np.int32]
Bytes = NDArray[np.uint8]


def quads_batch(body: bytes, default: Interval, *, graphs: bool, rounds: bool = False) -> pa.RecordBatch | None:
    """Return the rows of N-Triples or, with `graphs`, of N-Quads; None for the exact path."""
    scanned = _scan_statements(body, graphs=graphs)
    if scanned is None:
        return None
    text, spans, cells = scanned
    rows, count = len(cells), len(spans)
    columns, start, end = np.empty((4, rows), np.int32), np.empty(rows, np.int64), np.empty(rows, np.int64)
    kept, untimed = timed(text, spans, count, cells, rows, default.start, default.end, rounds, columns, start, end)
    if kept == OTHERWISE:
        return None
    text = _labelled(body, text, spans, default if untimed else None)
    return _batch(text, spans, columns, start[:kept], end[:kept])


def canonical_lines(body: bytes, name: Callable[[str], str], *, graphs: bool) -> list[tuple[str, str]] | None:
    """Return the graphs ("" for none) of N-Triples or, with `graphs`, of N-Quads, with their triples as canonical lines
    of N-Triples, each once; None for the exact path.

    `name` gives the term of a blank node's label. It is asked in the order in which a reader of statements meets the
    nodes, a statement's graph first.
    """
    scanned = _scan_statements(body, graphs=graphs)
    if scanned is None:
        return None
    text, spans, cells = scanned
    text = _named(body, text, spans, cells, name)
    order = np.argsort(cells[:, 3], kind="stable") if graphs else np.arange(len(cells))
    edges = np.flatnonzero(np.diff(cells[order, 3], prepend=-2)).tolist()  # no graph is -1
    found = []
    for first, after in pairwise([*edges, len(cells)]):
        part = cells[order[first:after]]
        graph = "" if part[0, 3] < 0 else _piece(text, spans[part[0, 3]]).decode()
        lines = np.empty(int(spans[part[:, :3], SIZE].sum()) + 3 * _AROUND * len(part), np.uint8)
        found.append((graph, lines[: lines_of(text, spans, len(spans), part, _SEED, lines)].tobytes().decode()))
    return found


def events_batch(
    body: bytes, default: Interval, *, frame: bool, read_term: Callable[[bytes], str], rounds: bool = False
) -> tuple[pa.RecordBatch, str | None] | None:
    """Return the rows of ndjson, with the first line's id, if it has one and `frame` allows it; None for the exact
    path.

    `read_term` gives N-Triples syntax for a string without its quotes, or for an object; it raises FormatError or
    ValueError.
    """
    if len(body) > LONGEST:
        return None
    text = np.frombuffer(body, np.uint8)
    most = _most(text, 8)
    columns, (spans, flags) = np.empty((4, most), np.int32), _terms_for(4 * most)
    start, end = np.empty(most, np.int64), np.empty(most, np.int64)
    rows, count, first, after = events_of(body, _SEED, frame, rounds, default.start, default.end, columns, start, end, spans, flags)
    if rows == OTHERWISE:
        return None
    odd = np.flatnonzero(flags[:count])
    if len(odd):
        pieces = [body[place : place + size] for place, size in spans[odd][:, [START, SIZE]].tolist()]
        found = _read_terms(pieces, read_term, ExpansionBudget(len(body)))
        if found is None:
            return None
        alone = odd[[term.startswith(TRIPLE.encode()) or (piece[:1] == b"{" and term[:1] == b'"') for piece, term in zip(pieces, found, strict=True)]]
        if len(alone) and np.isin(columns[[0, 1, 3], :rows], alone).any():  # a triple term or a literal is an object alone
            return None
        text, places = _appended(body, found)
        spans[odd, START], spans[odd, SIZE] = places[:, 0], places[:, 1]
    batch = _batch(text, spans[:count], columns, start[:rows], end[:rows])
    return batch, body[first:after].decode() if first >= 0 else None


def clauses_batch(body: bytes, now: int, *, is_file: bool, read_term: Callable[[str], str], predicates: Sequence[str]) -> pa.RecordBatch | None:
    """Return the rows of clauses of ETALIS's events; None for the exact path. `now` (µs) is the time before the first
    clause.

    `read_term` gives N-Triples syntax for an argument; it raises ValueError. `predicates` are those of the type and the
    arguments.
    """
    if len(body) > LONGEST:
        return None
    most, commas = body.count(b"event("), body.count(b",")
    names, firsts, arguments = np.empty(most, np.int32), np.empty(most + 1, np.int32), np.empty(most + commas, np.int32)
    start, end, (spans, flags) = np.empty(most, np.int64), np.empty(most, np.int64), _terms_for(3 * most + commas + len(predicates))
    events, count, terms = clauses_of(body, _SEED, now, is_file, names, firsts, arguments, start, end, spans, flags)
    if events == OTHERWISE or not events or np.diff(firsts[: events + 1]).max() >= len(predicates):
        return None
    odd, rows, budget = np.flatnonzero(flags[:terms]), events + count, ExpansionBudget(len(body))
    try:
        found = [read_term(_piece(body, spans[k]).decode()).encode() for k in odd]
        budget.spend(rows * ROW_BYTES + events * NODE_SIZE + sum(map(len, found)) + int(spans[:terms, SIZE].sum()) + VALUE_ROOM * terms)
    except (FormatError, ValueError):
        return None
    text, places = _appended(body, [*found, *(each.encode() for each in predicates)])
    given = terms + len(predicates)
    spans[terms:given] = 0
    spans[odd, START : SIZE + 1], spans[terms:given, START : SIZE + 1] = places[: len(odd)], places[len(odd) :]
    columns, starts, ends = np.empty((4, rows), np.int32), np.empty(rows, np.int64), np.empty(rows, np.int64)
    text, nodes, openssl = np.concatenate([text, np.zeros(events * NODE_SIZE, np.uint8)]), len(text), np.array(find_openssl(), np.int64)
    of_events = names[:events], firsts[: events + 1], arguments[:count], start[:events], end[:events]
    n = rows_of_events(text, nodes, spans, given, *of_events, terms, openssl, columns, starts, ends)
    return _batch(text, spans[:n], columns, starts, ends)


def _scan_statements(body: bytes, *, graphs: bool) -> tuple[Bytes, Ints, Cells] | None:
    """Return a text, spans of canonical terms in it, and a row of their numbers for each statement of the body; None
    for the exact path. Blank nodes keep their labels.
    """
    if len(body) > LONGEST:
        return None
    text = np.frombuffer(body, np.uint8)
    most = _most(text, 10)
    cells, (spans, flags) = np.empty((most, 4), np.int32), _terms_for(4 * most)
    rows, count = cells_of(body, 4 if graphs else 3, _SEED, cells, spans, flags)
    if rows == OTHERWISE:
        return None
    odd = np.flatnonzero(flags[:count])
    if len(odd):
        found = _canonical([_piece(body, spans[k]) for k in odd])
        if found is None:
            return None
        text, places = _appended(body, found)
        if not renamed(text, _SEED, odd, places, spans, count, cells[:rows]):
            return None
    return text, spans[:count], cells[:rows]


def _read_terms(pieces: list[bytes], read_term: Callable[[bytes], str], budget: ExpansionBudget) -> list[bytes] | None:
    """Return canonical texts of terms of ndjson; None where one is no term, has a blank node or takes too much, so
    that the exact path says why.

    The scanner has already checked where each may stand, but for triple terms and objects.
    """
    found = []
    try:
        for piece in pieces:
            text = read_term(piece)
            if text.startswith("_:") or (text.startswith(TRIPLE) and "_:" in text):
                return None
            term = OBJECTS[text].encode()
            budget.spend(len(term))
            found.append(term)
    except (FormatError, ValueError, RecursionError):
        return None
    return found


def _most(text: Bytes, shortest: int) -> int:
    """Return the greatest number of rows, for lines that are not blank and have at least `shortest` bytes."""
    lines = sum(int(np.count_nonzero(text[at : at + _AT_ONCE] == ord("\n"))) for at in range(0, len(text), _AT_ONCE))
    return min(lines + 1, len(text) // shortest + 1)


def _terms_for(most: int) -> tuple[Ints, Bytes]:
    return np.empty((most, SPAN_WIDTH), np.int64), np.empty(most, np.uint8)


def _piece(body: bytes | Bytes, span: Ints) -> bytes:
    start = int(span[START])
    return bytes(body[start : start + int(span[SIZE])])


def _canonical(pieces: list[bytes]) -> list[bytes] | None:
    """Return canonical texts of terms of N-Triples; None where one is no term, so that the exact path says why, or
    may be part of a triple term.
    """
    try:
        texts = [piece.decode() for piece in pieces]
        return None if any(text.startswith(TRIPLE) for text in texts) else [OBJECTS[text].encode() for text in texts]
    except (FormatError, ValueError):
        return None


def _appended(body: bytes | memoryview, found: list[bytes]) -> tuple[Bytes, Ints]:
    """Return the body with the texts appended, and where each of them stands. A line ends after each, as after a term that
    the scanner finds.
    """
    sizes = np.array([len(text) for text in found], np.int64)
    ends = np.cumsum(sizes + 1) + len(body)
    return np.frombuffer(b"\n".join([body, *found, b""]), np.uint8), np.column_stack([ends - sizes, sizes])


def _labelled(body: bytes, text: Bytes, spans: Ints, when: Interval | None) -> Bytes:
    """Return the text with the body's names (`Labels`) for its blank nodes appended, to which their spans then point."""
    blank = np.flatnonzero(text[spans[:, START]] == ord("_"))
    if not len(blank):
        return text
    labels = Labels(body, when)
    found = [labels.written(_piece(body, spans[k])[2:].decode()).encode() for k in blank]
    longer, places = _appended(text.data, found)
    spans[blank, START], spans[blank, SIZE] = places[:, 0], places[:, 1]
    return longer


def _named(body: bytes, text: Bytes, spans: Ints, cells: Cells, name: Callable[[str], str]) -> Bytes:
    """Return the text with the names that `name` gives blank nodes appended, to which their spans then point."""
    if not len(spans) or not (is_blank := text[spans[:, START]] == ord("_")).any():
        return text
    numbers = cells[:, [3, 0, 1, 2]].reshape(-1)
    blank = numbers[(numbers >= 0) & is_blank[numbers]]
    _, firsts = np.unique(blank, return_index=True)
    blank = blank[np.sort(firsts)]
    longer, places = _appended(text.data, [name(_piece(body, spans[k])[2:].decode()).encode() for k in blank])
    spans[blank, START], spans[blank, SIZE] = places[:, 0], places[:, 1]
    return longer


def _batch(text: Bytes, spans: Ints, columns: Cells, start: Ints, end: Ints) -> pa.RecordBatch:
    """Return OCCURRENCES, none late; `columns` has a row of numbers for each of s, p, o and g."""
    struct = np.zeros(ARROW_WORDS, np.int64)
    address = struct.__array_interface__["data"][0]
    indices, offsets, texts, sizes = _columns_of(text, spans, columns, len(start))
    make_batch(indices, offsets, texts, sizes, start, end, address)
    return pa.RecordBatch._import_from_c(address, OCCURRENCES)


def _columns_of(text: Bytes, spans: Ints, cells: Cells, rows: int) -> tuple[Cells, Cells, Bytes, Ints]:
    """Return a dictionary column for the first `rows` numbers in each row of `cells`; -1 is null.

    It consists of indices (a row each). The offsets into the dictionaries' texts, from 0 each, and these texts stand
    one after another. The last result counts each dictionary's terms and its bytes.
    """
    n = len(cells)
    indices, offsets = np.empty((n, rows), np.int32), np.empty(n * (min(rows, len(spans)) + 1), np.int32)
    room = n * len(text) + VALUE_ROOM * (int(np.count_nonzero(spans[:, CLOSE] < 0)) + 1)  # a term stands in the text once, and a value in one column
    texts, sizes = np.empty(room, np.uint8), np.empty((n, 2), np.int64)
    columns_of(text, spans, cells, rows, indices, offsets, texts, sizes)
    return indices, offsets, texts, sizes


def batch_of_columns(terms: list[pa.DictionaryArray], start: Ints, end: Ints) -> pa.RecordBatch:
    """Return OCCURRENCES of s, p, o and g, none late."""
    times = [pa.array(column).view(INSTANT) for column in (start, end)]
    return pa.RecordBatch.from_arrays([*terms, *times, pa.array(np.zeros(len(start), np.bool_))], schema=OCCURRENCES)


def batch_of_numbers(terms: pa.Array, cells: Cells, start: Ints, end: Ints) -> pa.RecordBatch:
    """Return OCCURRENCES whose s, p, o and g are numbers of terms (-1: none), a row of `cells` each."""
    text, spans = _spans_of(terms)
    return _batch(text, spans, cells, start, end)


def used_terms(column: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return the column with a dictionary of the terms that stand in some row, in order of first appearance."""
    text, spans = _spans_of(column.dictionary)
    cells = column.indices.fill_null(-1).to_numpy().reshape(1, -1).copy()
    (indices,), offsets, texts, ((count, size),) = _columns_of(text, spans, cells, len(column))
    buffers = pa.py_buffer(offsets[: count + 1].tobytes()), pa.py_buffer(texts[:size].tobytes())  # copies, as the arrays have room for all terms
    terms = pa.Array.from_buffers(pa.utf8(), count, [None, *buffers])
    return pa.DictionaryArray.from_arrays(pa.array(indices, mask=indices < 0) if column.null_count else pa.array(indices), terms, safe=False)


def _spans_of(terms: pa.Array) -> tuple[Bytes, Ints]:
    """Return the bytes of utf8 texts, and where in them each text stands."""
    text, offsets = _texts_of(terms)
    spans = np.zeros((len(offsets) - 1, 4), np.int64)
    spans[:, START], spans[:, SIZE] = offsets[:-1], np.diff(offsets)
    return text, spans


def odd_terms(terms: pa.Array, kinds: str) -> Ints:
    """Return which terms the parser has to judge.

    These include blank nodes and every term that begins with none of `kinds` (pipeline/formats/batches/ntriples.py,
    `Terms`).
    """
    text, offsets = _texts_of(terms)
    flags = np.empty(len(terms), np.uint8)
    flags_of(text, offsets, flags)
    firsts = text[np.minimum(offsets[:-1], len(text) - 1)] if len(text) else flags
    found: Ints = np.flatnonzero((flags != PLAIN) | ~np.isin(firsts, [ord(kind) for kind in kinds if kind != "_"]))
    return found


def _texts_of(terms: pa.Array) -> tuple[Bytes, Cells]:
    """Return the bytes of utf8 texts, and the offsets of each text."""
    _, offsets, data = terms.buffers()
    places = np.frombuffer(offsets, np.int32)[terms.offset :][: len(terms) + 1] if offsets is not None else np.zeros(1, np.int32)
    return np.frombuffer(data if data is not None and data.size else b"", np.uint8), places
