"""Decodes the messages of PostgreSQL's output plugin pgoutput, version 1 of its protocol, into rows of JSON.

Source: https://www.postgresql.org/docs/15/protocol-logicalrep-message-formats.html
"""

import json
import struct
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from epsparql.deferred_methods import dataclass

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_BOOL, _NUMBERS, _JSON, _TIMES = 16, frozenset({20, 21, 23, 700, 701, 1700}), frozenset({114, 3802}), frozenset({1114, 1184})
"""Types by their object ids, which PostgreSQL never changes."""
_NOT_FINITE = frozenset({"NaN", "Infinity", "-Infinity"})
_OPERATIONS = {b"I": "insert", b"U": "update", b"D": "delete"}
Row = dict[str, str]
"""A row: the JSON text of each column's value."""


@dataclass(frozen=True, slots=True)
class Relation:
    """Describes a table: its name, and the names and types of its columns."""

    name: str
    columns: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Change:
    """Represents a change: insert, update, delete or truncate.

    A deleted row has the columns of the table's replica identity.
    """

    operation: str
    table: str
    row: Row


@dataclass(frozen=True, slots=True)
class Begin:
    """Opens a transaction; `lsn` is that of its commit, by which transactions are in order."""

    lsn: int
    time: str


@dataclass(frozen=True, slots=True)
class Commit:
    """Closes a transaction; `end` is the LSN after it."""

    end: int


class Reader:
    """Reads the fields of one message."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def consume(self, size: int) -> bytes:
        self._at += size
        return self._data[self._at - size : self._at]

    def integer(self, form: str) -> int:
        found: int
        (found,) = struct.unpack(f">{form}", self.consume(struct.calcsize(form)))
        return found

    def string(self) -> str:
        end = self._data.index(b"\0", self._at)
        found = self.consume(end - self._at).decode()
        self._at += 1
        return found


class Decoder:
    """Decodes the messages of one call, which repeats the description of each table before its first change."""

    def __init__(self) -> None:
        self._relations: dict[int, Relation] = {}

    def decode(self, data: bytes) -> Sequence[Begin | Commit | Change]:
        """Return what a message says; nothing for kinds that concern no row."""
        reader = Reader(data)
        match reader.consume(1):
            case b"B":
                lsn, micros = reader.integer("q"), reader.integer("q")
                return [Begin(lsn, (_EPOCH + timedelta(microseconds=micros)).isoformat().replace("+00:00", "Z"))]
            case b"C":
                reader.consume(9)  # flags, and the LSN of the commit
                return [Commit(reader.integer("q"))]
            case b"R":
                self._take_relation(reader)
            case (b"I" | b"U" | b"D") as kind:
                return [self._read_change(_OPERATIONS[kind], reader)]
            case b"T":
                count = reader.integer("i")
                reader.consume(1)
                return [Change("truncate", self._relations[reader.integer("i")].name, {}) for _ in range(count)]
        return ()

    def _take_relation(self, reader: Reader) -> None:
        number, schema, name = reader.integer("i"), reader.string(), reader.string()
        reader.consume(1)
        columns = []
        for _ in range(reader.integer("h")):
            reader.consume(1)
            columns.append((reader.string(), reader.integer("i")))
            reader.consume(4)
        self._relations[number] = Relation(name if schema == "public" else f"{schema}.{name}", tuple(columns))

    def _read_change(self, operation: str, reader: Reader) -> Change:
        relation = self._relations[reader.integer("i")]
        kind, row = reader.consume(1), _read_row(relation, reader)
        if operation == "update" and kind != b"N":  # the old row, or its key, comes first
            reader.consume(1)
            row = _read_row(relation, reader)
        return Change(operation, relation.name, row if kind != b"K" or operation == "update" else _without_nulls(row))


def _read_row(relation: Relation, reader: Reader) -> Row:
    """Read a row. A large value that an update did not change is not sent, so its column is absent."""
    row = {}
    for (name, kind), _ in zip(relation.columns, range(reader.integer("h")), strict=True):
        match reader.consume(1):
            case b"n":
                row[name] = "null"
            case b"t":
                row[name] = json_of(reader.consume(reader.integer("i")).decode(), kind)
    return row


def _without_nulls(row: Row) -> Row:
    """Return a key, whose message has null for each column that is no part of it."""
    return {name: value for name, value in row.items() if value != "null"}


def json_of(text: str, kind: int) -> str:
    """Return PostgreSQL's text of a value, of a type with this object id, as JSON. Numbers keep their digits."""
    if kind == _BOOL:
        return "true" if text in ("t", "true") else "false"
    if (kind in _NUMBERS and text not in _NOT_FINITE) or kind in _JSON:
        return text.replace("\n", " ")
    if kind in _TIMES:
        day, _, time = text.partition(" ")
        return json.dumps(f"{day}T{time.replace('+00', 'Z')}" if time else day)
    return json.dumps(text)
