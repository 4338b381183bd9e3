"""This module reads the fields of JSON: one object, an array, or objects one after the other (ndjson), with paths into them.

Values are taken as they are written (`msgspec.Raw`), so numbers lose no digit. Where all rows are objects, one call decodes them all. Otherwise they
are decoded one by one, so that a row that is none is a fault of its own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import GenericAlias
from typing import Any, TypeAlias

import msgspec
import numpy as np
from msgspec import Raw

from pipeline.errors import FormatError, InvalidMapping
from pipeline.formats.batches.expansion_budget import ExpansionBudget
from pipeline.mapping.columns import Column, RowFault, Table, column_of_tokens
from pipeline.mapping.mapping import Mapping, steps_of

ROOT = "$."
"""A field that begins so is looked up in the whole document, not in the row that `items` leads to."""
_CELL_BYTES = 16
_EACH = "one object, an array of objects, or one object per line"
_RAWS = msgspec.json.Decoder(list[Raw])
_RAW = msgspec.json.Decoder(Raw)
Token: TypeAlias = "Raw | bytes"


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads some fields of objects: the type of a row, and the attributes that lead to each field."""

    row: Any
    rows: Any
    paths: tuple[tuple[str, ...], ...]

    def columns(self, rows: Sequence[Any]) -> list[Column]:
        return [column_of_tokens(_tokens(rows, path)) for path in self.paths]


def _tokens(rows: Sequence[Any], path: tuple[str, ...]) -> list[Raw]:
    for name in path[:-1]:
        rows = [None if row is None else getattr(row, name) for row in rows]
    last = path[-1]
    if len(path) == 1:
        return [getattr(row, last) for row in rows]
    nothing = Raw()
    return [nothing if row is None else getattr(row, last) for row in rows]


@lru_cache(maxsize=256)
def reader_of(fields: tuple[str, ...]) -> _Reader:
    """Return the reader of these fields. Raises: InvalidMapping where one is a value and an object."""
    tree: dict[str, Any] = {}
    paths = []
    for field in fields:
        steps, path = steps_of(field), list[str]()
        node: Any = tree
        for depth, step in enumerate(steps):
            inner = depth < len(steps) - 1
            known = node.setdefault(step, {} if inner else None)
            if (known is None) == inner:
                raise InvalidMapping(field, "is both a value and an object with members", "fields that do not contain each other")
            path.append(f"f{list(node).index(step)}")
            if inner:
                node = known
        paths.append(tuple(path))
    row = _struct_of(tree)
    rows: Any = GenericAlias(list, (row,))
    return _Reader(msgspec.json.Decoder(row), msgspec.json.Decoder(rows), tuple(paths))


def check_fields(mapping: Mapping) -> None:
    """Check that the mapping's fields can be read from one object, where they are not columns of CSV. Raises: InvalidMapping."""
    if mapping.format != "csv":
        for in_root in (False, True):
            reader_of(tuple(field.removeprefix(ROOT) for field in mapping.fields if field.startswith(ROOT) == in_root))


def _struct_of(tree: dict[str, Any]) -> Any:
    members = [
        (f"f{k}", Raw, msgspec.field(default=Raw(), name=name)) if inner is None else (f"f{k}", _struct_of(inner) | None, msgspec.field(default=None, name=name))
        for k, (name, inner) in enumerate(tree.items())
    ]  # fmt: skip
    return msgspec.defstruct("Row", members, gc=False)


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


def _read_all(body: bytes, reader: _Reader) -> list[Any] | None:
    """Return the rows if each is an object whose fields can be read; None for the way row by row."""
    body = body.removeprefix(b"\xef\xbb\xbf")
    try:
        found: list[Any] = reader.rows.decode(body) if body.lstrip()[:1] == b"[" else reader.row.decode_lines(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found


def split_documents(body: bytes) -> list[Token]:
    """Return the elements of an array, a document alone, or each line. Raises: FormatError where an array is malformed."""
    text = body.removeprefix(b"\xef\xbb\xbf").strip()
    if text[:1] == b"[":
        try:
            return list(_RAWS.decode(text))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
            raise FormatError("json", f"the array cannot be read: {fault}", expected=_EACH) from None
    try:
        return [_RAW.decode(text)] if text else []
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return list(msgspec.json.Decoder(Raw).decode_lines(text))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return [line for line in text.split(b"\n") if line.strip()]


def read_documents(documents: Sequence[Token], mapping: Mapping) -> Table:
    """Return the rows of documents: what `items` leads to in each, or each itself."""
    found = _rows_of(documents, mapping.items)
    in_row = tuple(field for field in mapping.fields if not field.startswith(ROOT))
    in_root = tuple(field for field in mapping.fields if field.startswith(ROOT))
    reader, faults = reader_of(in_row), list[RowFault]()
    rows, numbers = [], []
    for number, (_, token, reason) in enumerate(found):
        row = _decode(token, reader, number, reason, faults)
        if row is not None:
            rows.append(row)
            numbers.append(number)
    owners = np.array([found[number][0] for number in numbers], np.int64)
    columns = dict(zip(in_row, reader.columns(rows), strict=True))
    if in_root:
        columns |= _root_columns(documents, in_root, owners)
    texts = [token for _, token, _ in found]
    return Table(len(rows), columns, np.array(numbers, np.int64), lambda wanted: _texts(texts, wanted), tuple(faults), owners)


def _decode(token: Token, reader: _Reader, number: int, reason: str, faults: list[RowFault]) -> Any:
    """Return a row, or None with its fault."""
    if not reason:
        try:
            return reader.row.decode(token)
        except msgspec.ValidationError as fault:
            reason = str(fault).partition(" - at ")[0]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
            reason = f"the row is no JSON: {fault}"
    faults.append(RowFault(number, "", reason))
    return None


def _root_columns(documents: Sequence[Token], fields: tuple[str, ...], owners: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> dict[str, Column]:
    """Return the fields that stand in the documents, each for the rows of its document. A document that is no object has none of them."""
    reader = reader_of(tuple(field.removeprefix(ROOT) for field in fields))
    empty = reader.row.decode(b"{}")
    roots = [empty if (row := _decode(document, reader, 0, "", [])) is None else row for document in documents]
    return {field: Column(c.indices[owners], c.texts, c.kinds) for field, c in zip(fields, reader.columns(roots), strict=True)}


def _rows_of(documents: Sequence[Token], items: tuple[str, ...]) -> list[tuple[int, Token, str]]:
    """Return each row with the number of its document; where the path leads to none, the document with the reason."""
    found: list[tuple[int, Token, str]] = [(number, document, "") for number, document in enumerate(documents)]
    for step in items:
        found = [each for row in found for each in ([row] if row[2] else _step(*row[:2], step, items))]
    return found


def _step(number: int, token: Token, step: str, items: tuple[str, ...]) -> Iterable[tuple[int, Token, str]]:
    path = "".join("[*]" if name == "*" else f".{name}" for name in items).lstrip(".")
    try:
        if step == "*":
            return [(number, each, "") for each in _RAWS.decode(token)]
        inner = reader_of((step.replace(".", "\\."),)).row.decode(token).f0
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        return [(number, token, f"items {path!r} leads to no rows: {fault}")]
    return [(number, inner, "")] if bytes(inner) else [(number, token, f"items {path!r} leads to no rows: there is no {step!r}")]


def _texts(tokens: Sequence[Token], wanted: Sequence[int]) -> list[str]:
    return [bytes(tokens[number]).strip().decode(errors="backslashreplace") for number in wanted]
