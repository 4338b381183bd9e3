"""This module writes batches of solutions as JSON text, by the compiled writers of pipeline/formats/native."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from itertools import pairwise
from typing import Any, assert_never

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.messages import int64s
from pipeline.formats.native import json_writer as native
from pipeline.solutions.event_lines import write_event
from pipeline.solutions.result_kinds import Bindings, Changes, Form, Triples, Verdict
from pipeline.solutions.solution_ids import solution_id
from pipeline.solutions.websocket_frames import encode_text_frame

Ints = NDArray[np.int64]
_FEWEST_BYTES = 1 << 12


class Envelope(IntEnum):
    """Says what each solution's JSON object is written as."""

    LINE = native.LINES
    """This is a line of ndjson."""
    MESSAGE = native.MESSAGES
    """This is a line that says what it is: `{"solution":…}`."""
    FRAME = native.FRAMES
    """This is such a message as a WebSocket text frame."""
    EVENT = native.EVENTS
    """This is a Server-Sent Event with the solution's id."""


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Holds `text`, and where each solution ends in it, its envelope included."""

    text: bytes
    ends: Ints

    def each(self) -> list[str]:
        """Return the lines without their newlines."""
        begins = [0, *self.ends.tolist()]
        return [self.text[begin : end - 1].decode() for begin, end in pairwise(begins)]


def ndjson(solutions: pa.RecordBatch, forms: Mapping[str, Form], envelope: Envelope = Envelope.LINE) -> Lines:
    """Write each solution as stored (`pipeline.solutions.solution_ids.STORED`); `forms` has the kind of each query's solutions."""
    named = {query: "args" in form.variables for query, form in forms.items() if isinstance(form, Bindings) and form.events}
    if not named or named.keys().isdisjoint(solutions.column("query").dictionary.to_pylist()):
        return _written(envelope, _parts(solutions, forms))
    lines = [_write_row(solutions.slice(row, 1), forms, named, envelope) for row in range(solutions.num_rows)]
    return Lines(b"".join(lines), np.cumsum([len(line) for line in lines], dtype=np.int64))


def _write_row(row: pa.RecordBatch, forms: Mapping[str, Form], named: Mapping[str, bool], envelope: Envelope) -> bytes:
    """Write one solution, where some queries' solutions are events."""
    query = row.column("query")[0].as_py()
    return (
        _enveloped(_identify(row), write_event(row, listed=named[query]), envelope) if query in named else _written(envelope, _parts(row, forms)).text
    )


def _identify(row: pa.RecordBatch) -> str:
    return solution_id(row.column("end").view(pa.int64())[0].as_py(), row.column("ordinal")[0].as_py())


def _enveloped(identifier: str, line: bytes, envelope: Envelope) -> bytes:
    match envelope:
        case Envelope.LINE:
            return line
        case Envelope.MESSAGE:
            return b'{"solution":%b}\n' % line[:-1]
        case Envelope.FRAME:
            return encode_text_frame(b'{"solution":%b}' % line[:-1])
        case Envelope.EVENT:
            return b"id: %b\ndata: %b\n" % (identifier.encode(), line)
        case _:
            assert_never(envelope)


def bindings(solutions: pa.RecordBatch, variables: tuple[str, ...]) -> str:
    """Write only the bindings, of one SELECT, with commas between them."""
    forms = dict.fromkeys(solutions.column("query").dictionary.to_pylist(), Bindings(variables))
    return _written(native.OBJECTS, _parts(solutions, forms)).text.decode()


def heads(solutions: pa.RecordBatch) -> str:
    """Write the id, start and end of each solution, with commas between them."""
    return _written(native.HEADS, _parts(solutions, {})).text.decode()


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """Holds what is written, the number of rows, and bytes enough for nearly all batches like it."""

    page: native.Page
    rows: int
    room: int


def _written(kind: int, parts: _Parts) -> Lines:
    """Write until all rows are there, with more room each time."""
    out, ends, at, row = np.empty(parts.room, np.uint8), np.empty(parts.rows, np.int64), 0, 0
    while row < parts.rows:
        row, at = native.put_solutions(int(kind), out, at, row, ends, parts.page)
        if row < parts.rows:
            out = np.concatenate([out[:at], np.empty(2 * len(out), np.uint8)])
    return Lines(out[:at].tobytes(), ends)


def _parts(solutions: pa.RecordBatch, forms: Mapping[str, Form]) -> _Parts:
    rows, queries = solutions.num_rows, solutions.column("query")
    values, text = _values(solutions.column("values"))
    times = [_fixed(int64s(solutions.column(name)) if rows else np.empty(0, np.int64)) for name in ("start", "end", "ordinal")]
    fragments, table = _fragments(tuple(queries.dictionary.to_pylist()), tuple(forms.items()))
    size = int(values[1][values[0][-1]]) - int(values[1][values[0][0]]) if rows else 0
    terms = int(values[0][-1]) - int(values[0][0]) if rows else 0
    room = _FEWEST_BYTES + 2 * size + 160 * rows + 40 * terms
    return _Parts(native.Page(values, text, tuple(times), _fixed(queries.indices.to_numpy()), fragments, table), rows, room)


def _values(lists: pa.ListArray) -> tuple[tuple[Any, ...], NDArray[np.uint8]]:
    """Return offsets of the lists, offsets of their texts, their validity bits (none: all valid) and the first one's place; and the texts."""
    texts = lists.values
    valid, offsets, data = texts.buffers()
    places = _of_buffer(offsets, np.int32)[texts.offset :]
    bits = _of_buffer(valid if texts.null_count else None, np.uint8)
    return (_of_buffer(lists.buffers()[1], np.int32)[lists.offset :][: len(lists) + 1], places, bits, texts.offset), _of_buffer(data, np.uint8)


def _of_buffer(buffer: pa.Buffer | None, kind: type[np.generic]) -> NDArray[Any]:
    return _fixed(np.frombuffer(buffer, kind) if buffer is not None and buffer.size else np.empty(0, kind))


def _fixed(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array if it is not writable, else a view that is not. The compiled code knows only such arrays."""
    if not array.flags.writeable:
        return array
    found = array.view()
    found.setflags(write=False)
    return found


@lru_cache(maxsize=64)
def _fragments(queries: tuple[str, ...], known: tuple[tuple[str, Form], ...]) -> tuple[tuple[NDArray[np.uint8], Ints], Ints]:
    """Return the first fragment of each query's lines, and its variables; and a table with a row a query.

    A row has the query's form, its first fragment and the one after its last.
    """
    texts, forms = list[bytes](), dict(known)
    table = np.zeros((len(queries), 3), np.int64)
    for k, query in enumerate(queries):
        form, first = forms.get(query, Verdict()), len(texts)
        changed = native.CHANGED if isinstance(form, Changes) else 0
        texts.append(f'{{"query":{_quoted(query)},"{"seq" if changed else "id"}":"'.encode())
        match form.of if isinstance(form, Changes) else form:
            case Bindings(variables):
                texts += [f"{_quoted(name)}:".encode() for name in variables]
                kind = native.BINDINGS
            case Triples():
                kind = native.TRIPLES
            case Verdict():
                kind = native.VERDICT
            case other:
                assert_never(other)
        table[k] = kind + changed, first, len(texts)
    places = np.cumsum([0, *map(len, texts)])
    return (_of_buffer(pa.py_buffer(b"".join(texts)), np.uint8), _fixed(places)), _fixed(table)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
