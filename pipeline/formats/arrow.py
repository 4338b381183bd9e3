"""This module reads application/vnd.apache.arrow.stream: occurrences as columns s, p, o, optionally g, start and end,
and retract.

Terms may be dictionary-encoded; each distinct term is looked at once. An error names the row, counted from 1, and the
column.
"""

import struct
from collections.abc import Callable, Iterator
from itertools import groupby

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.messages import END_OF_TIME, INSTANT, OCCURRENCES
from pipeline.errors import FormatError
from pipeline.formats.batches.batch_builder import Interval, Labels
from pipeline.formats.batches.expansion_budget import ROW_BYTES, ExpansionBudget
from pipeline.formats.batches.fast_path import batch_of_columns, odd_terms, used_terms
from pipeline.formats.batches.ntriples import GRAPHS, OBJECTS, PREDICATES, SUBJECTS, CanonicalTerms, labelled

_PLACES = {"s": SUBJECTS, "p": PREDICATES, "o": OBJECTS, "g": GRAPHS}
_TIMES = ("start", "end")
RETRACT = "retract"
_KINDS = {**dict.fromkeys(_TIMES, INSTANT), RETRACT: pa.bool_()}
_EXPECTED = "s, p and o of utf8 or dictionary<utf8>; optionally g; start and end of timestamp[us, tz=UTC], or neither; optionally retract of bool"
_TEXTS = (pa.utf8(), pa.large_utf8(), pa.string_view())
_HEADER, _COMPRESSION, _DATA = 2, 3, 1  # fields of Message, RecordBatch and DictionaryBatch in Arrow's Message.fbs


def parse_arrow(body: bytes, default: Interval) -> pa.RecordBatch:
    """Return OCCURRENCES of a stream of record batches; `default` is the time of a stream without times.

    Raises: FormatError.
    """
    budget = ExpansionBudget(len(body))
    table = _read_table(body, budget)
    budget.spend(table.num_rows * ROW_BYTES)
    timed = "start" in table.schema.names
    start, end = _times(table) if timed else (np.full(table.num_rows, at, np.int64) for at in (default.start, default.end))
    labels = Labels(body, None if timed else default)
    columns = [terms_of(table, name, labels.written) for name in _PLACES]
    found = batch_of_columns(columns, start, end)
    if RETRACT not in table.schema.names:
        return found
    marks = table.column(RETRACT).fill_null(False).combine_chunks()  # pyarrow takes it in this place
    return found.set_column(OCCURRENCES.get_field_index("late"), OCCURRENCES.field("late"), marks)


# ---------------------------------------------------------------- the stream
def _read_table(body: bytes, budget: ExpansionBudget) -> pa.Table:
    try:
        if any(map(_compressed, pa.ipc.MessageReader.open_stream(pa.py_buffer(body)))):
            raise FormatError("arrow", "the stream's batches are compressed", expected="batches without compression")
        with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
            _check_schema(reader.schema)
            table = pa.Table.from_batches(_bounded(reader, budget), reader.schema)
    except (pa.ArrowException, OSError, UnicodeDecodeError, struct.error) as fault:
        raise FormatError("arrow", f"this is no stream of Arrow record batches: {fault}", expected="Arrow's IPC streaming format") from None
    return table


def _bounded(reader: pa.RecordBatchStreamReader, budget: ExpansionBudget) -> Iterator[pa.RecordBatch]:
    """Yield the valid batches, each after its expanded size was spent from the budget.

    That size counts views, and dictionaries, which a message may extend and thereby make anew.
    """
    known: dict[str, object] = {}
    for batch in reader:
        batch.validate(full=True)
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            texts = column.dictionary if pa.types.is_dictionary(column.type) else column
            if known.get(name) != (identity := _identity(texts)):
                known[name] = identity
                budget.spend(_text_bytes(texts))
        yield batch


def _identity(array: pa.Array) -> tuple[int, ...]:
    """Return a value that is equal for arrays over the same memory."""
    return len(array), array.offset, *(0 if buffer is None else buffer.address for buffer in array.buffers())


def _text_bytes(array: pa.Array) -> int:
    """Return the bytes that the texts have together, which views may repeat; for arrays without views, the bytes that
    they hold.
    """
    if array.type != pa.string_view():
        return int(array.nbytes)
    _, views, *_ = array.buffers()
    lengths = np.frombuffer(views or b"", np.int32)[::4][array.offset :][: len(array)]
    return int(lengths.sum(dtype=np.int64))


def _compressed(message: pa.Message) -> bool:
    """Tell whether a message's buffers are compressed: nobody knows their expanded size beforehand."""
    data = message.metadata.to_pybytes()
    header = _field(data, _table_at(data, 0), _HEADER)
    if message.type == "dictionary" and header is not None:
        header = _field(data, _table_at(data, header), _DATA)
    return message.type in ("record batch", "dictionary") and header is not None and _field(data, _table_at(data, header), _COMPRESSION) is not None


def _table_at(data: bytes, place: int) -> int:
    """Return the place of the flatbuffers table to which the offset at `place` leads."""
    return place + int(struct.unpack_from("<I", data, place)[0])


def _field(data: bytes, table: int, number: int) -> int | None:
    """Return the place of a table's field, or None if it is absent. Source: FlatBuffers internals, vtables."""
    vtable = table - int(struct.unpack_from("<i", data, table)[0])
    entry = 4 + 2 * number
    if entry >= struct.unpack_from("<H", data, vtable)[0]:
        return None
    offset = int(struct.unpack_from("<H", data, vtable + entry)[0])
    return table + offset if offset else None


def _check_schema(schema: pa.Schema) -> None:
    names = schema.names
    for name in names:
        if name not in (*_PLACES, *_TIMES, RETRACT):
            raise FormatError("field", f"unknown column {name!r}", expected=_EXPECTED)
        if names.count(name) > 1:
            raise FormatError("field", f"the column {name!r} is there twice", expected=_EXPECTED)
        kind = schema.field(name).type
        fits = kind == _KINDS[name] if name in _KINDS else (kind.value_type if pa.types.is_dictionary(kind) else kind) in _TEXTS
        if not fits:
            raise FormatError("field", f"the column {name!r} is of {kind}", expected=_EXPECTED)
    missing = [name for name in "spo" if name not in names] or ([name for name in _TIMES if name not in names] if {*_TIMES} & {*names} else [])
    if missing:
        raise FormatError("field", f"the column {missing[0]!r} is missing", expected=_EXPECTED)


# ---------------------------------------------------------------- times
def _times(table: pa.Table) -> Iterator[NDArray[np.int64]]:
    columns = []
    for name in _TIMES:
        column = table.column(name)
        if column.null_count:
            raise _fault("time", column.is_null().to_numpy(), f"{name} is null")
        columns.append(column.cast(pa.int64()).to_numpy())
        beyond = (columns[-1] <= -END_OF_TIME) | (columns[-1] >= END_OF_TIME)
        if beyond.any():
            raise _fault("time", beyond, f"{name} is beyond the years that instants reach")
    if (columns[0] > columns[1]).any():
        raise _fault("interval", columns[0] > columns[1], "start is after end")
    yield from columns


def _fault(code: str, where: NDArray[np.bool_], message: str, expected: str = "") -> FormatError:
    return FormatError(code, f"row {int(np.argmax(where)) + 1}: {message}", expected=expected)


# ---------------------------------------------------------------- terms
def terms_of(table: pa.Table, name: str, written: Callable[[str], str]) -> pa.DictionaryArray:
    """Return the column's canonical terms, each once in the dictionary; `written` gives the term of a blank node's
    label.

    Raises: FormatError.
    """
    if name not in table.schema.names:
        return pa.DictionaryArray.from_arrays(pa.nulls(table.num_rows, pa.int32()), pa.array([], pa.utf8()))
    column = _encoded(table.column(name))
    if column.null_count and name != "g":
        raise _fault("term", column.is_null().to_numpy(zero_copy_only=False), f"{name} is null", "a term")
    column = used_terms(column)
    odd = odd_terms(column.dictionary, _PLACES[name].kinds)
    if not len(odd):
        return column
    texts = column.dictionary.to_pylist()
    for k in odd.tolist():
        texts[k] = _canonical(column, k, name, _PLACES[name], texts[k], written)
    unified = pa.array(texts, pa.utf8()).dictionary_encode()
    return pa.DictionaryArray.from_arrays(unified.indices.take(column.indices), unified.dictionary)


def _canonical(column: pa.DictionaryArray, k: int, name: str, terms: CanonicalTerms, text: str, written: Callable[[str], str]) -> str:
    try:
        term = terms[text]
    except FormatError as fault:
        where = column.indices.fill_null(-1).to_numpy() == k
        raise _fault(fault.code, where, f"{name}: {fault.message}", fault.expected) from None
    return labelled(term, written)


def _encoded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """Return one dictionary array of utf8 with int32 indices."""
    if pa.types.is_dictionary(column.type):
        if any(chunk.dictionary.null_count for chunk in column.chunks):
            raise FormatError("term", "a dictionary has a null in it", expected="nulls in a column's indices alone")
        chunks = []
        for _, run in groupby(column.chunks, lambda chunk: _identity(chunk.dictionary)):  # many batches may have one dictionary, which is read once
            alike = list(run)
            indices = pa.concat_arrays([chunk.indices for chunk in alike]).cast(pa.int32())
            chunks.append(pa.DictionaryArray.from_arrays(indices, alike[0].dictionary.cast(pa.utf8())))
    else:
        chunks = [chunk.cast(pa.utf8()).dictionary_encode() for chunk in column.chunks]
    whole = pa.chunked_array(chunks, pa.dictionary(pa.int32(), pa.utf8())).unify_dictionaries()
    return pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], whole.type)
