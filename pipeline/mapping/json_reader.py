"""This module reads the fields of JSON: one object, an array, or objects one after the other (ndjson), with paths
into them.

Values are taken as they are written (`msgspec.Raw`), so numbers lose no digit. Where all rows are objects, one call
decodes them all. Otherwise they are decoded one by one, so that a row that is none is a fault of its own.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Raw

from pipeline.errors import FormatError, InvalidMapping
from pipeline.formats.batches.expansion_budget import ExpansionBudget
from pipeline.mapping.columns import Column, RowFault, Table
from pipeline.mapping.json_fields import FAULTS, RAWS, FieldReader, Token, member_of, reader_of
from pipeline.mapping.mapping import Mapping, parse_items

ROOT = "$."
"""A field that begins so is looked up in the whole document, or in an element around the row (`$.devices[*].name`)."""
_CELL_BYTES = 16
_EMPTY = b"{}"
_EACH = "one object, an array of objects, or one object per line"
_RAW = msgspec.json.Decoder(Raw)


def read_json(body: bytes, mapping: Mapping, budget: ExpansionBudget) -> Table:
    """Return the rows of a body. Raises: FormatError where there are none to tell apart."""
    fields = mapping.fields
    budget.spend(_CELL_BYTES * (len(fields) + 1) * (body.count(b"{") + body.count(b",") // 8 + body.count(b"\n")))
    if not mapping.items and not any(field.startswith(ROOT) for field in fields):
        reader = reader_of(fields)
        rows = _read_all(body, reader)
        if rows is not None:
            columns = dict(zip(fields, reader.columns(rows), strict=True))
            return Table(len(rows), columns, np.arange(len(rows)), lambda wanted: _texts(split_documents(body), wanted))
    return read_documents(split_documents(body), mapping)


def _read_all(body: bytes, reader: FieldReader) -> list[Any] | None:
    """Return the rows if each is an object whose fields can be read; None for the way row by row."""
    if not reader.of_objects:
        return None
    try:
        found: list[Any] = reader.rows.decode(body) if body.lstrip()[:1] == b"[" else reader.row.decode_lines(body)
    except FAULTS:
        return None
    return found


def split_documents(body: bytes) -> list[Token]:
    """Return the elements of an array, a document alone, or each line. Raises: FormatError where an array is malformed."""
    text = body.strip()
    if text[:1] == b"[":
        try:
            return list(RAWS.decode(text))
        except FAULTS as fault:
            raise FormatError("json", f"the array cannot be read: {fault}", expected=_EACH) from None
    try:
        return [_RAW.decode(text)] if text else []
    except FAULTS:
        pass
    try:
        return list(msgspec.json.Decoder(Raw).decode_lines(text))
    except FAULTS:
        return [line for line in text.split(b"\n") if line.strip()]


def check_fields(mapping: Mapping) -> None:
    """Check that the mapping's fields can be read from rows of JSON, where they are not columns of CSV.

    Raises: InvalidMapping.
    """
    if mapping.format in (None, "json"):
        reader_of(tuple(field for field in mapping.fields if not field.startswith(ROOT)))
        for around, fields in _split_root_fields(mapping).items():
            if around and all(path[: len(around)] != around for path in mapping.items):
                raise InvalidMapping(next(iter(fields)), "leads to no element around the rows", "a path that begins as items does")
            reader_of(tuple(fields.values()))


def _split_root_fields(mapping: Mapping) -> dict[tuple[str, ...], dict[str, str]]:
    """Return the fields that stand around rows, by the path to the element that has them: () for the document."""
    found: dict[tuple[str, ...], dict[str, str]] = {}
    for field in mapping.fields:
        if field.startswith(ROOT):
            path, star, rest = field.removeprefix(ROOT).rpartition("[*]")
            found.setdefault(parse_items(path + star) if star else (), {})[field] = rest.removeprefix(".")
    return found


# ---------------------------------------------------------------- rows within documents
class _Row(NamedTuple):
    """Represents a row: the number of its document, its text, and the elements around it, of which the document is
    the first.

    `path` is the path that led to it. Where that leads to no row, `reason` says why.
    """

    document: int
    token: Token
    around: tuple[Token, ...]
    path: tuple[str, ...]
    reason: str = ""


def read_documents(documents: Sequence[Token], mapping: Mapping) -> Table:
    """Return the rows of documents: what `items` leads to in each, or each itself."""
    found = [row for number, document in enumerate(documents) for row in _rows_of(number, document, mapping.items)]
    in_row = tuple(field for field in mapping.fields if not field.startswith(ROOT))
    reader, faults = reader_of(in_row), list[RowFault]()
    rows, kept = list[Any](), list[_Row]()
    numbers = []
    for number, row in enumerate(found):
        decoded = _decode(row.token, reader, number, row.reason, faults)
        if decoded is not None:
            rows.append(decoded)
            kept.append(row)
            numbers.append(number)
    columns = dict(zip(in_row, reader.columns(rows), strict=True))
    for around, fields in _split_root_fields(mapping).items():
        columns |= _columns_around(kept, around, fields)
    texts = [row.token for row in found]
    owners = np.array([row.document for row in kept], np.int64)
    return Table(len(rows), columns, np.array(numbers, np.int64), lambda wanted: _texts(texts, wanted), tuple(faults), owners)


def _decode(token: Token, reader: FieldReader, number: int, reason: str, faults: list[RowFault]) -> Any:
    """Return a row, or None with its fault."""
    if not reason:
        try:
            return reader.decode(token)
        except msgspec.ValidationError as fault:
            reason = str(fault).partition(" - at ")[0]
        except FAULTS as fault:
            reason = f"the row is no JSON: {fault}"
    faults.append(RowFault(number, "", reason))
    return None


def _columns_around(rows: Sequence[_Row], path: tuple[str, ...], fields: dict[str, str]) -> dict[str, Column]:
    """Return the fields of the elements around rows that a path leads to.

    An element is decoded once, and one that is no object has no fields.
    """
    reader, level = reader_of(tuple(fields.values())), path.count("*")
    numbers, elements = dict[int, int](), list[Token]()
    owners = np.zeros(len(rows), np.int64)
    for k, row in enumerate(rows):
        element = row.around[level] if row.path[: len(path)] == path else _EMPTY
        if id(element) not in numbers:
            numbers[id(element)] = len(elements)
            elements.append(element)
        owners[k] = numbers[id(element)]
    empty = reader.decode(_EMPTY if reader.of_objects else b"[]")
    decoded = [empty if (row := _decode(element, reader, 0, "", [])) is None else row for element in elements]
    return {field: Column(c.indices[owners], c.texts, c.kinds) for field, c in zip(fields, reader.columns(decoded), strict=True)}


def _rows_of(number: int, document: Token, items: tuple[tuple[str, ...], ...]) -> list[_Row]:
    """Return the rows of a document. Where no path leads to one, it is the document with the reason."""
    found = [row for path in items or ((),) for row in _follow(_Row(number, document, (document,), path))]
    if len(items) <= 1:
        return found
    return [row for row in found if not row.reason] or found[:1]


def _follow(start: _Row) -> list[_Row]:
    rows = [start]
    for step in start.path:
        rows = [each for row in rows for each in ([row] if row.reason else _step(row, step))]
    return rows


def _step(row: _Row, step: str) -> Iterable[_Row]:
    shown = "".join("[*]" if name == "*" else f".{name}" for name in row.path).lstrip(".")
    try:
        if step == "*":
            return [row._replace(token=each, around=(*row.around, each)) for each in RAWS.decode(row.token)]
        inner = member_of(row.token, step)
    except FAULTS as fault:
        return [row._replace(reason=f"items {shown!r} leads to no rows: {fault}")]
    return [row._replace(token=inner) if bytes(inner) else row._replace(reason=f"items {shown!r} leads to no rows: there is no {step!r}")]


def _texts(tokens: Sequence[Token], wanted: Sequence[int]) -> list[str]:
    return [bytes(tokens[number]).strip().decode(errors="backslashreplace") for number in wanted]
