"""This module holds the fields of a body column by column: each distinct text once, and for each row the number of
its text.
"""

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from epsparql.deferred_methods import dataclass

Indices = NDArray[np.int32]
Kinds = NDArray[np.uint8]
Flags = NDArray[np.bool_]

ABSENT = -1
CELL, STRING, NUMBER, BOOLEAN, NESTED, BROKEN, NULL = range(7)
"""A text is a cell of CSV, or what JSON says that it is.

A nested one is an object or array; a broken one is no Unicode text.
"""


class RowFault(NamedTuple):
    """Says why a row does not map. `row` counts the rows of the body from 0."""

    row: int
    field: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """Holds the distinct texts of a field, of what kind each is, and their numbers by row, ABSENT where a row has none."""

    indices: Indices
    texts: pa.Array  # utf8
    kinds: Kinds

    def without(self, words: Sequence[str]) -> "Column":
        """Return the column in which these texts are absent, and `null` of JSON."""
        absent = self.kinds == NULL
        if words and len(self.texts):
            absent = absent | pc.is_in(self.texts, value_set=pa.array(words, pa.utf8())).to_numpy(zero_copy_only=False)
        if not absent.any():
            return self
        return Column(with_absent(self.indices, absent), self.texts, self.kinds)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Holds the rows of a body that could be read. `numbers` says which rows of the body they are; `faults` has the
    others.

    `documents` says in which document of the body each row stands; None: each row is one. With `has_header`, all rows
    name all fields.
    """

    count: int
    columns: dict[str, Column]
    numbers: NDArray[np.int64]
    text_of: Callable[[Sequence[int]], list[str]]
    """Return the texts of rows of the body, for messages and the dead-letter feed."""
    faults: tuple[RowFault, ...] = ()
    documents: NDArray[np.int64] | None = None
    has_header: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class TermColumn:
    """Holds the distinct terms of a place of the triple, their numbers by row, and why some of them are no terms."""

    indices: Indices
    terms: pa.Array  # utf8
    faults: dict[int, str] = field(default_factory=dict)

    def find_faults(self) -> Flags | None:
        """Return which rows have a term at fault; None where no row has."""
        if not self.faults:
            return None
        bad = np.zeros(len(self.terms) + 1, np.bool_)
        bad[list(self.faults)] = True
        found: Flags = bad[self.indices]  # ABSENT is the last place, which is False
        return found


def with_absent(indices: Indices, absent: Flags) -> Indices:
    """Return the numbers with ABSENT in place of the texts that are marked."""
    marked = np.append(absent, True)  # ABSENT, the last place, stays so
    return np.where(marked[indices], np.int32(ABSENT), indices)


def column_of_cells(cells: pa.Array) -> Column:
    """Return the column of binary CSV cells; space around them does not count, and a cell of nothing else is absent,
    whatever means no value.
    """
    encoded = cells.dictionary_encode()
    texts, broken = _as_texts(encoded.dictionary)
    trimmed = pc.ascii_trim_whitespace(texts)
    kinds = np.where(broken, np.uint8(BROKEN), np.uint8(CELL))
    column = _merged(Column(encoded.indices.fill_null(ABSENT).to_numpy().astype(np.int32, copy=False), trimmed, kinds))
    empty = pc.equal(column.texts, "").to_numpy(zero_copy_only=False)
    return Column(with_absent(column.indices, empty), column.texts, column.kinds) if empty.any() else column


def column_of_tokens(tokens: list[msgspec.Raw]) -> Column:
    """Return the column of JSON values as written; an empty one is absent."""
    joined = b"\0".join(tokens) + b"\0"  # no JSON text has this character as it is
    data = np.frombuffer(joined, np.uint8)
    offsets = np.zeros(len(tokens) + 1, np.int32)
    if tokens:
        offsets[1:] = np.flatnonzero(data == 0) + 1
    values = pa.Array.from_buffers(pa.binary(), len(tokens), [None, pa.py_buffer(offsets), pa.py_buffer(joined)])
    encoded = values.dictionary_encode()
    return _decoded(encoded.indices.to_numpy(), pc.binary_slice(encoded.dictionary, 0, -1))


def _decoded(indices: Indices, tokens: pa.Array) -> Column:
    """Return the column of distinct JSON tokens."""
    texts, broken = _as_texts(tokens)
    firsts = _first_bytes(texts)
    kinds = _KIND_OF_FIRST[firsts]
    kinds[broken] = BROKEN
    absent = firsts == 0
    strings = kinds == STRING
    if strings.any():
        inner = pc.utf8_slice_codeunits(texts, 1, -1)
        escaped = strings & pc.match_substring(texts, "\\").to_numpy(zero_copy_only=False)
        texts = inner if strings.all() else pc.if_else(pa.array(strings), inner, texts)
        if escaped.any():
            texts, kinds = _unescaped(texts, tokens, np.flatnonzero(escaped), kinds)
    return Column(with_absent(indices, absent) if absent.any() else indices, texts, kinds)


def _unescaped(texts: pa.Array, tokens: pa.Array, places: NDArray[np.int64], kinds: Kinds) -> tuple[pa.Array, Kinds]:
    found = texts.to_pylist()
    for k in places.tolist():
        try:
            found[k] = msgspec.json.decode(tokens[k].as_py(), type=str)
        except msgspec.DecodeError:
            found[k], kinds[k] = repr(tokens[k].as_py())[2:-1], BROKEN
    return pa.array(found, pa.utf8()), kinds


_KIND_OF_FIRST = np.full(256, NUMBER, np.uint8)
for _first, _kind in (('"', STRING), ("t", BOOLEAN), ("f", BOOLEAN), ("{", NESTED), ("[", NESTED), ("n", NULL)):
    _KIND_OF_FIRST[ord(_first)] = _kind


def _first_bytes(texts: pa.Array) -> NDArray[np.uint8]:
    """Return the first byte of each text, 0 for an empty one."""
    _, offsets, data = texts.buffers()
    starts = np.frombuffer(offsets, np.int32)[texts.offset :][: len(texts) + 1] if offsets is not None else np.zeros(1, np.int32)
    if data is None or not data.size:
        return np.zeros(len(texts), np.uint8)
    found: NDArray[np.uint8] = np.frombuffer(data, np.uint8)[np.minimum(starts[:-1], data.size - 1)].copy()
    found[starts[1:] == starts[:-1]] = 0
    return found


def _as_texts(values: pa.Array) -> tuple[pa.Array, Flags]:
    """Return the values as texts, and which of them are no UTF-8; these are shown with their bytes written out."""
    try:
        return values.cast(pa.utf8()), np.zeros(len(values), np.bool_)
    except pa.ArrowInvalid:
        texts, broken = [], np.zeros(len(values), np.bool_)
        for k, value in enumerate(values.to_pylist()):
            try:
                texts.append(value.decode())
            except UnicodeDecodeError:
                texts.append(value.decode(errors="backslashreplace"))
                broken[k] = True
        return pa.array(texts, pa.utf8()), broken


def _merged(column: Column) -> Column:
    """Return the column with each text once: trimming may have made texts equal."""
    if (column.kinds == BROKEN).any():
        return column
    unified = column.texts.dictionary_encode()
    if len(unified.dictionary) == len(column.texts):
        return column
    numbers = np.append(unified.indices.to_numpy(), np.int32(ABSENT)).astype(np.int32, copy=False)
    return Column(numbers[column.indices], unified.dictionary, np.zeros(len(unified.dictionary), np.uint8))


def join_texts(columns: Sequence[Column]) -> Column:
    """Return the column of several fields' texts with a space between them; a row in which one is absent has none."""
    if len(columns) == 1:
        return columns[0]
    indices, numbers = combine(columns)
    texts = [column.texts.take(pa.array(number)) for column, number in zip(columns, numbers, strict=True)]
    kinds = np.max([column.kinds[number] for column, number in zip(columns, numbers, strict=True)], axis=0)
    return Column(indices, pc.binary_join_element_wise(*texts, " "), np.where(kinds == NUMBER, np.uint8(STRING), kinds).astype(np.uint8))


def combine(columns: Sequence[Column | TermColumn]) -> tuple[Indices, list[Indices]]:
    """Return the number of each row's combination, ABSENT where one of the columns has none, and each column's
    numbers by combination.
    """
    first, *others = columns
    codes = first.indices.astype(np.int64)
    absent = first.indices == ABSENT
    for other in others:
        size = max(int(other.indices.max(initial=0)), 0) + 1
        codes = pc.dictionary_encode(pa.array(codes)).indices.to_numpy().astype(np.int64) * size + other.indices  # stays within int64
        absent |= other.indices == ABSENT
    encoded = pa.array(codes, mask=absent).dictionary_encode()
    numbers = encoded.indices.fill_null(ABSENT).to_numpy().astype(np.int32, copy=False)
    rows = np.zeros(len(encoded.dictionary), np.int64)
    rows[numbers[~absent]] = np.flatnonzero(~absent)
    return numbers, [column.indices[rows] for column in columns]
