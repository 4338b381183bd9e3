"""This module reads what the frames of both logs hold.

A payload is a stream of Arrow, whose metadata hold the entries as JSON, or such streams in slices.
"""

import json
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyoxigraph as ox

from epsparql.terms import BlankNode, Iri, Literal, Term, TripleTerm
from verification.definitions.model import Micros, Triple
from verification.frames import Frame, Unreadable, read_begin, read_frames, read_head, unseal

SLICED = struct.Struct("<4sIII")
SLICED_MAGIC = b"\xffEPS"
KNOWN_FLAGS = 0b111
"""The flags of the input log say that a frame has late rows, rejected rows, or slices."""
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
"""The members of each kind of entry that this program uses, in the order in which they are stored.

Other kinds change no solution.
"""
PATIENCE_S = 1.0
"""A server that runs has this long to evaluate the last entries of the log."""
OCCURRENCE_COLUMNS = ("s", "p", "o", "g", "start", "end")


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


# ---------------------------------------------------------------- the input log
def read_log(data_dir: Path) -> Iterator[tuple[Frame, list[Entry], pa.Table]]:
    """Yield each frame, its entries and its rows: OCCURRENCE_COLUMNS (times in µs), `late`, and the `offset` of each
    row's entry.

    Raises: Unreadable, FileNotFoundError.
    """
    for frame in read_frames(data_dir / "log"):
        first, flags, payload = frame.first, frame.flags, frame.payload
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
        yield frame, entries, rows.append_column("offset", pa.array(offsets, pa.int64()))


def _entry(offset: int, kind: str, values: Sequence[Any]) -> Entry:
    return Entry(offset, kind, dict(zip(FIELDS.get(kind, ()), values, strict=False)))


def _read_plain(payload: memoryview) -> tuple[list[Any], list[pa.RecordBatch], None]:
    reader = pa.ipc.open_stream(pa.py_buffer(payload))
    return json.loads(reader.schema.metadata[b"entries"]), list(reader), None


def _read_sliced(payload: memoryview) -> tuple[list[Any], list[pa.RecordBatch], list[int]]:
    """Read rows that stand in slices; the last result has the place of each row of the log among those of the slices,
    one after the other.
    """
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
@dataclass
class SolutionLog:
    """Holds the solution log: those of each registration in order, the changes of state, and the log positions that
    it covers.

    A change is a registration, the entry that brought it, the state, and the reason. A mark is of the frame of the
    input log that holds the entry before a position.
    """

    begin: int = 0
    position: int = 0
    emitted: dict[int, list[Emitted]] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    changes: list[tuple[int, int, str, str]] = field(default_factory=list)
    marks: list[tuple[int, int]] = field(default_factory=list)


def read_solutions(data_dir: Path) -> SolutionLog:
    """Read the solution log; one that is not there is empty. Raises: Unreadable."""
    found = SolutionLog()
    if not (data_dir / "solutions").exists():
        return found
    found.position = found.begin = read_begin(data_dir / "solutions")
    for frame in read_frames(data_dir / "solutions"):
        found.position = frame.after
        found.marks += [(frame.after, frame.flags)] if frame.flags else []
        if not frame.payload:
            continue
        reader = pa.ipc.open_stream(pa.py_buffer(frame.payload))
        changes = json.loads(reader.schema.metadata[b"summary"])[1]
        found.changes += [(registered, entry, state, reason) for registered, _, entry, state, reason in changes]
        for batch in reader:
            columns = [batch.column(name) for name in ("registered", "query", "entry", "start", "end", "ordinal", "values")]
            columns[3:5] = [column.cast(pa.int64()) for column in columns[3:5]]
            for registered, name, entry, start, end, ordinal, values in zip(*(column.to_pylist() for column in columns), strict=True):
                found.emitted.setdefault(registered, []).append(Emitted(entry, start, end, ordinal, tuple(values)))
                found.names.setdefault(registered, name)
    return found


def wait_for_solutions(data_dir: Path) -> int:
    """Return the log's position, after a moment in which a server that runs may evaluate the entries before it.

    Raises: Unreadable, FileNotFoundError.
    """
    _, _, position = read_head(data_dir / "log")
    deadline = time.monotonic() + PATIENCE_S
    while (data_dir / "solutions").exists() and time.monotonic() < deadline:
        _, _, reached = read_head(data_dir / "solutions")
        if reached >= position:
            break
        time.sleep(PATIENCE_S / 20)
    return position


def read_saved_mark(data_dir: Path) -> tuple[int, int]:
    """Return the log position at which the catalog was saved, and its mark; zeros where it is not there, or is made
    again from the log.
    """
    with suppress(OSError, ValueError, KeyError, TypeError):
        data = unseal(found := (data_dir / "catalogue.json").read_bytes())
        saved = json.loads(found if data is None else data)  # version 0.1.0 did not seal it
        return int(saved["position"]), int(saved.get("mark", 0))
    return 0, 0


# ---------------------------------------------------------------- terms
@lru_cache(maxsize=200_000)
def parse_term(text: str) -> Term:
    """Return a term of N-Triples. Raises: SyntaxError."""
    return parse_triples(f"<x:s> <x:p> {text} .")[0][2]


def parse_triples(text: str) -> list[Triple]:
    """Return the triples of a text of N-Triples. Raises: SyntaxError."""
    found = ox.parse(text, format=ox.RdfFormat.N_TRIPLES, lenient=True)  # earlier versions could store IRIs that are not valid
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
