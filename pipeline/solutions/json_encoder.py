"""This module writes batches of solutions as JSON text, by compiled writers
(engine/native/source/formats/json_writer.c).
"""

import json
from collections.abc import Mapping
from enum import IntEnum
from functools import lru_cache
from itertools import pairwise
from typing import Any, assert_never

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.messages import END_OF_TIME, int64s
from engine.native import formats_layout as layout
from engine.native.entries import put_solutions
from engine.revision import change_rows
from engine.runtime.watermarks import NO_TIME
from epsparql.deferred_methods import dataclass
from pipeline.solutions.event_lines import write_event, write_event_change
from pipeline.solutions.result_kinds import Bindings, Changes, Form, Triples, Verdict, find_program_form
from pipeline.solutions.solution_ids import solution_id
from pipeline.solutions.websocket_frames import encode_text_frame

Ints = NDArray[np.int64]
_FEWEST_BYTES = 1 << 12
assert (layout.INSTANT_WIDTH, layout.UNSETTLED, layout.END_OF_TIME) == (change_rows.INSTANT_WIDTH, NO_TIME, END_OF_TIME), "they name the same"


class Envelope(IntEnum):
    """Says what each solution's JSON object is written as."""

    LINE = layout.LINES
    """This is a line of ndjson."""
    MESSAGE = layout.MESSAGES
    """This is a line that says what it is: `{"solution":…}`."""
    FRAME = layout.FRAMES
    """This is such a message as a WebSocket text frame."""
    EVENT = layout.EVENTS
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
    """Write each solution as stored (`pipeline.solutions.solution_ids.STORED`); `forms` has the kind of each query's
    solutions.
    """
    programs = {query: found for query, form in forms.items() if (found := find_program_form(form)) is not None}
    if not programs or programs.keys().isdisjoint(solutions.column("query").dictionary.to_pylist()):
        return _written(envelope, _parts(solutions, forms))
    lines = [_write_row(solutions.slice(row, 1), forms, programs, envelope) for row in range(solutions.num_rows)]
    return Lines(b"".join(lines), np.cumsum([len(line) for line in lines], dtype=np.int64))


def _write_row(row: pa.RecordBatch, forms: Mapping[str, Form], programs: Mapping[str, Bindings], envelope: Envelope) -> bytes:
    """Write one solution or change, where some queries' solutions are events."""
    query = row.column("query")[0].as_py()
    if query not in programs:
        return _written(envelope, _parts(row, forms)).text
    kind, write = (b"change", write_event_change) if isinstance(forms[query], Changes) else (b"solution", write_event)
    return _enveloped(_identify(row), kind, write(row, listed="args" in programs[query].variables), envelope)


def _identify(row: pa.RecordBatch) -> str:
    return solution_id(row.column("end").view(pa.int64())[0].as_py(), row.column("ordinal")[0].as_py())


def _enveloped(identifier: str, kind: bytes, line: bytes, envelope: Envelope) -> bytes:
    match envelope:
        case Envelope.LINE:
            return line
        case Envelope.MESSAGE:
            return b'{"%b":%b}\n' % (kind, line[:-1])
        case Envelope.FRAME:
            return encode_text_frame(b'{"%b":%b}' % (kind, line[:-1]))
        case Envelope.EVENT:
            return b"id: %b\ndata: %b\n" % (identifier.encode(), line)
        case _:
            assert_never(envelope)


def bindings(solutions: pa.RecordBatch, form: Bindings) -> str:
    """Write only the bindings, of one SELECT, with commas between them."""
    forms = dict.fromkeys(solutions.column("query").dictionary.to_pylist(), form)
    return _written(layout.OBJECTS, _parts(solutions, forms)).text.decode()


def heads(solutions: pa.RecordBatch, form: Form) -> str:
    """Write the id, start and end of each solution of a query, and its instance if it has one, with commas between them."""
    forms = dict.fromkeys(solutions.column("query").dictionary.to_pylist(), form)
    return _written(layout.HEADS, _parts(solutions, forms)).text.decode()


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """Holds what is written, as `put_solutions` takes it, the number of rows, and bytes enough for nearly all batches
    like it.
    """

    page: tuple[Any, ...]
    rows: int
    room: int


def _written(kind: int, parts: _Parts) -> Lines:
    """Write until all rows are there, with more room each time."""
    out, ends, at, row = np.empty(parts.room, np.uint8), np.empty(parts.rows, np.int64), 0, 0
    while row < parts.rows:
        row, at = put_solutions(kind, out, at, row, ends, *parts.page)
        if row < parts.rows:
            out = np.concatenate([out[:at], np.empty(2 * len(out), np.uint8)])
    return Lines(out[:at].tobytes(), ends)


def _parts(solutions: pa.RecordBatch, forms: Mapping[str, Form]) -> _Parts:
    rows, queries = solutions.num_rows, solutions.column("query")
    lists, offsets, valid, first, text = _values(solutions.column("values"))
    times = [int64s(solutions.column(name)) for name in ("start", "end", "ordinal")]
    fragments = _fragments(tuple(queries.dictionary.to_pylist()), tuple(forms.items()))
    size = int(offsets[lists[-1]]) - int(offsets[lists[0]]) if rows else 0
    terms = int(lists[-1]) - int(lists[0]) if rows else 0
    room = _FEWEST_BYTES + 2 * size + 160 * rows + 40 * terms
    return _Parts((lists, offsets, valid, first, text, *times, queries.indices.to_numpy(), *fragments), rows, room)


def _values(lists: pa.ListArray) -> tuple[Any, ...]:
    """Return offsets of the lists, offsets of their texts, their validity bits (none: all valid) and the first one's
    place; and the texts.
    """
    texts = lists.values
    valid, offsets, data = texts.buffers()
    begins = _of_buffer(lists.buffers()[1], np.int32)[lists.offset :][: len(lists) + 1]
    bits = _of_buffer(valid if texts.null_count else None, np.uint8)
    return begins, _of_buffer(offsets, np.int32)[texts.offset :], bits, texts.offset, _of_buffer(data, np.uint8)


def _of_buffer(buffer: pa.Buffer | None, kind: type[np.generic]) -> NDArray[Any]:
    return np.frombuffer(buffer, kind) if buffer is not None and buffer.size else np.empty(0, kind)


@lru_cache(maxsize=64)
def _fragments(queries: tuple[str, ...], known: tuple[tuple[str, Form], ...]) -> tuple[bytes, Ints, Ints]:
    """Return the first fragment of each query's lines, and its variables; where they begin and end; and a table with
    a row a query.

    A row has the query's form, its first fragment and the one after its last.
    """
    texts, forms = list[bytes](), dict(known)
    table = np.zeros((len(queries), 3), np.int64)
    for k, query in enumerate(queries):
        form, first = forms.get(query, Verdict()), len(texts)
        changed = layout.CHANGED if isinstance(form, Changes) else 0
        first_member = '"instance":' if isinstance(form, Bindings) and form.instances else '"seq":"' if changed else '"id":"'
        texts.append(f'{{"query":{_quoted(query)},{first_member}'.encode())
        match form.of if isinstance(form, Changes) else form:
            case Bindings(variables, instances=instances):
                texts += [f"{_quoted(name)}:".encode() for name in variables]
                kind = layout.OF_INSTANCE if instances else layout.BINDINGS
            case Triples():
                kind = layout.TRIPLES
            case Verdict():
                kind = layout.VERDICT
            case other:
                assert_never(other)
        table[k] = kind + changed, first, len(texts)
    return b"".join(texts), np.cumsum([0, *map(len, texts)], dtype=np.int64), table


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
