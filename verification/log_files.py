"""This module reads both logs of a data directory by itself, so that a fault of the server's own reader cannot hide a fault of what was written.

A log is a folder of segments. A segment is frames, each a header and a payload that is padded to 8 bytes:

    magic 4 | payload bytes u32 | first position i64 | position after i64 | rows u32 | flags u32 | crc of the payload u32 | crc of the header u32

The record in `head` says how much is published. A payload is a stream of Arrow, whose metadata hold the entries as JSON, or such streams in slices.
"""

import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyoxigraph as ox

from epsparql.terms import BlankNode, Iri, Literal, Term, TripleTerm
from verification.definitions.model import Micros, Triple

HEADER = struct.Struct("<4sIqqIIII")
HEAD = struct.Struct("<4sqqqI")
SLICED = struct.Struct("<4sIII")
MAGIC, SLICED_MAGIC = b"\xffEPF", b"\xffEPS"
LINK = 1 << 31
"""A frame with this flag names the segment before, and covers no positions."""
KNOWN_FLAGS = LINK | 0b111
"""The other flags of the input log say that a frame has late rows, rejected rows, or slices. Those of the solution log hold a mark."""
FIELDS: Mapping[str, tuple[str, ...]] = {
    "events": ("stream", "rows", "watermark", "key", "source", "revises", "retracts"),
    "tick": ("stream", "watermark"),
    "finish": ("stream",),
    "unset": ("stream",),
    "register": (
        "name",
        "text",
        "policy",
        "default_graph",
        "max_derivations",
        "max_goals",
        "max_state_bytes",
        "reads_from",
        "holds",
        "waits_for",
        "emit",
    ),
    "drop": ("registered", "name"),
    "pause": ("registered", "name"),
    "resume": ("registered", "name"),
    "promote": ("registered", "name"),
    "facts": ("graph", "triples", "change"),
    "entail": ("regime",),
}
"""The members of each kind of entry that this program uses, in the order in which they are stored. Other kinds change no solution."""
OCCURRENCE_COLUMNS = ("s", "p", "o", "g", "start", "end")


class Unreadable(Exception):
    """Reports files that are damaged, or in a format that this program does not know; the message names the file and the byte."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Represents an entry of the input log: its offset, its kind, and the members of FIELDS."""

    offset: int
    kind: str
    members: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.members[name]


@dataclass(frozen=True, slots=True)
class Emitted:
    """Represents a solution as it was emitted; `values` are texts of N-Triples, None where a variable is unbound."""

    entry: int
    start: Micros
    end: Micros
    ordinal: int
    values: tuple[str | None, ...]


# ---------------------------------------------------------------- frames
def read_frames(directory: Path) -> Iterator[tuple[int, int, int, memoryview]]:
    """Yield first position, position after, flags and payload of each published frame, in order. Raises: Unreadable, FileNotFoundError."""
    _, last, size, position, crc = HEAD.unpack(record := (directory / "head").read_bytes())
    if zlib.crc32(record[:-4]) != crc:
        raise Unreadable(f"{directory / 'head'} is damaged: its checksum does not hold")
    paths = sorted(path for path in directory.glob("*.frames") if int(path.stem) <= last)
    reached = None
    for path in paths:
        data = memoryview(path.read_bytes())
        data, byte = data[:size] if int(path.stem) == last else data, 0
        while byte < len(data):
            first, after, flags, payload, end = _frame_at(path, data, byte)
            if not flags & LINK:
                if reached not in (None, first):
                    raise Unreadable(f"{path} is damaged at byte {byte}: the frame begins at position {first}, not at {reached}")
                reached = after
                yield first, after, flags, payload
            byte = end
    if (reached or 0) != position and paths:
        raise Unreadable(f"{directory} is damaged: its frames end at position {reached}, and `head` says {position}")


def _frame_at(path: Path, data: memoryview, byte: int) -> tuple[int, int, int, memoryview, int]:
    header = data[byte : byte + HEADER.size]
    if len(header) < HEADER.size:
        raise Unreadable(f"{path} is damaged at byte {byte}: the header is incomplete")
    magic, length, first, after, _, flags, crc, own = HEADER.unpack(header)
    if magic != MAGIC or zlib.crc32(header[:-4]) != own:
        raise Unreadable(f"{path} is damaged at byte {byte}: no frame begins here")
    begin = byte + HEADER.size
    payload = data[begin : begin + length]
    if len(payload) < length or zlib.crc32(payload) != crc:
        raise Unreadable(f"{path} is damaged at byte {byte}: the payload's checksum does not hold")
    return first, after, flags, payload, begin + length + -length % 8


# ---------------------------------------------------------------- the input log
def read_log(data_dir: Path) -> Iterator[tuple[list[Entry], pa.Table]]:
    """Yield the entries of each frame with its rows: OCCURRENCE_COLUMNS (times in µs), `late`, and the `offset` of each row's entry.

    Raises: Unreadable, FileNotFoundError.
    """
    for first, _, flags, payload in read_frames(data_dir / "log"):
        if flags & ~KNOWN_FLAGS:
            raise Unreadable(f"the frame of {data_dir / 'log'} at position {first} has flags {flags:#x}, which this program does not know")
        (_, stored), batches, order = _read_sliced(payload) if payload[:4] == SLICED_MAGIC else _read_plain(payload)
        entries = [_entry(first + k, kind, values) for k, (kind, values, *_) in enumerate(stored)]
        rows = pa.Table.from_batches([_plain_rows(batch) for batch in batches]) if batches else None
        offsets = [entry.offset for entry in entries if entry.kind == "events" for _ in range(entry["rows"])]
        if rows is None or rows.num_rows != len(offsets):
            raise Unreadable(f"the frame of {data_dir / 'log'} at position {first} has another number of rows than its entries say")
        if order is not None:
            rows = rows.take(pa.array(order, pa.int64()))
        yield entries, rows.append_column("offset", pa.array(offsets, pa.int64()))


def _entry(offset: int, kind: str, values: Sequence[Any]) -> Entry:
    return Entry(offset, kind, dict(zip(FIELDS.get(kind, ()), values, strict=False)))


def _read_plain(payload: memoryview) -> tuple[list[Any], list[pa.RecordBatch], None]:
    reader = pa.ipc.open_stream(pa.py_buffer(payload))
    return json.loads(reader.schema.metadata[b"entries"]), list(reader), None


def _read_sliced(payload: memoryview) -> tuple[list[Any], list[pa.RecordBatch], list[int]]:
    """Read rows that stand in slices; the last result has the place of each row of the log among those of the slices, one after the other."""
    _, rows, size, _ = SLICED.unpack(payload[: SLICED.size])
    begin = SLICED.size
    which = bytes(payload[begin : begin + rows])
    entries, _, _, _, parts = json.loads(bytes(payload[begin + rows : begin + rows + size]))
    begin += rows + size + -(rows + size) % 8 + parts[0][0]  # the ends, which the rows have too
    batches, starts, count = [], [], 0
    for length, _ in parts[1:]:
        starts.append(count)
        if length:
            found = list(pa.ipc.open_stream(_unpack_slice(payload[begin : begin + length])))
            count += sum(batch.num_rows for batch in found)
            batches += found
        begin += length
    order = []
    for number in which:
        order.append(starts[number])
        starts[number] += 1
    return entries, batches, order


def _unpack_slice(part: memoryview) -> pa.Buffer:
    """Return the Arrow stream of a slice, which may be compressed as a whole."""
    if bytes(part[:4]) != b"zstd":
        return pa.py_buffer(part)
    size, packed = struct.unpack_from("<II", part, 4)
    return pa.Codec("zstd").decompress(pa.py_buffer(part[12 : 12 + packed]), size)


def _plain_rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows with their terms as texts and their times as integers."""
    names = (*OCCURRENCE_COLUMNS, "late")
    kinds = [pa.int64() if name in ("start", "end") else pa.bool_() if name == "late" else pa.large_string() for name in names]
    return pa.RecordBatch.from_arrays([batch.column(name).cast(kind) for name, kind in zip(names, kinds, strict=True)], names)


# ---------------------------------------------------------------- the solution log
def read_solutions(data_dir: Path) -> tuple[int, dict[int, list[Emitted]], list[tuple[int, int, str, str]]]:
    """Return the log position up to which solutions are there, those of each registration in order, and the changes of state.

    A change is a registration, the entry that brought it, the state, and the reason. Raises: Unreadable.
    """
    position, found = 0, dict[int, list[Emitted]]()
    changes: list[tuple[int, int, str, str]] = []
    if not (data_dir / "solutions" / "head").exists():
        return position, found, changes
    for _, after, _, payload in read_frames(data_dir / "solutions"):
        position = after
        if not payload:
            continue
        reader = pa.ipc.open_stream(pa.py_buffer(payload))
        changes += [(registered, entry, state, reason) for registered, _, entry, state, reason in json.loads(reader.schema.metadata[b"summary"])[1]]
        for batch in reader:
            columns = [batch.column(name) for name in ("registered", "entry", "start", "end", "ordinal", "values")]
            columns[2:4] = [column.cast(pa.int64()) for column in columns[2:4]]
            for registered, entry, start, end, ordinal, values in zip(*(column.to_pylist() for column in columns), strict=True):
                found.setdefault(registered, []).append(Emitted(entry, start, end, ordinal, tuple(values)))
    return position, found, changes


# ---------------------------------------------------------------- terms
@lru_cache(maxsize=200_000)
def parse_term(text: str) -> Term:
    """Return a term of N-Triples. Raises: SyntaxError."""
    return parse_triples(f"<x:s> <x:p> {text} .")[0][2]


def parse_triples(text: str) -> list[Triple]:
    """Return the triples of a text of N-Triples. Raises: SyntaxError."""
    found = ox.parse(text, format=ox.RdfFormat.N_TRIPLES)
    return [(convert_term(each.subject), convert_term(each.predicate), convert_term(each.object)) for each in found]


def convert_term(term: object) -> Term:
    """Return a term of the language as pyoxigraph read it."""
    match term:
        case ox.NamedNode():
            return Iri(term.value)
        case ox.BlankNode():
            return BlankNode(term.value)
        case ox.Literal():
            return Literal(term.value, term.datatype.value, term.language, None if term.direction is None else str(term.direction))
        case ox.Triple():
            return TripleTerm(convert_term(term.subject), convert_term(term.predicate), convert_term(term.object))  # type: ignore[arg-type]  # as it was parsed
    raise TypeError(term)
