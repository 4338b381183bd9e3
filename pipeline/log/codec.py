"""This module encodes frames of the input log as bytes: an Arrow stream of OCCURRENCES whose schema metadata holds
the entries as JSON.

Many rows are compressed, and stand in slices where the server has several partitions
(`pipeline/log/encoding/sliced_rows.py`).
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, fields
from operator import attrgetter
from typing import Any

import msgspec
import pyarrow as pa

from engine.messages import (
    CatchUp,
    ChangeInstances,
    Drop,
    DropStream,
    Entail,
    Entry,
    Events,
    Facts,
    Fail,
    Finish,
    MessageKey,
    Micros,
    Pause,
    Promote,
    Register,
    Resume,
    Revise,
    SetStream,
    Tick,
    Withdraw,
)  # fmt: skip
from engine.partitioning import NO_KEYS
from epsparql.deferred_methods import dataclass
from pipeline.log.encoding.arrow_ipc import Part, open_rows, write_rows
from pipeline.log.encoding.sliced_rows import SLICE_ROWS, Fetch, SlicedFrame, SlicedRows, encode_slices, fetch_from, is_sliced
from pipeline.rejected_rows import Rejected

HAS_LATE = 1
"""This frame flag says that some of its rows are late."""
HAS_REJECTED = 2
"""This frame flag says that rows of some of its bodies were rejected."""
HAS_SLICES = 4
"""This frame flag says that the rows are in slices."""

_KINDS: dict[str, type[Any]] = {
    "events": Events, "tick": Tick, "finish": Finish, "set": SetStream, "unset": DropStream, "register": Register, "drop": Drop, "facts": Facts,
    "pause": Pause, "resume": Resume, "catch up": CatchUp,
    "promote": Promote, "withdraw": Withdraw, "fail": Fail,
    "entail": Entail, "revise": Revise, "instances": ChangeInstances,
}  # fmt: skip
_NAMES = {kind: name for name, kind in _KINDS.items()}
_FIELDS = {kind: tuple(f.name for f in fields(kind) if f.name != "offset") for kind in _NAMES}
_TRIPLE_BYTES = 100
_NOT_TOLD: tuple[Any, ...] = ((), (), 0, None)
"""These are the last members of entries of logs that do not have them."""
_EVENTS_VALUES = attrgetter(*_FIELDS[Events])


class Record(msgspec.Struct, frozen=True):
    """Holds an entry with what its writer knew about it. It is a struct, which is made in a tenth of the time,
    because each body makes one.

    For Events: the number of late rows, the watermark they missed, the stream's latest end after it, and whether all
    rows took the arrival time. Then it has the latest end of the source's events so far, the rows that did not map,
    and the retractions without a target. `skipped` counts rows that did not map and were left out. `max_ahead` is
    that of a stream that the events created.
    """

    entry: Entry
    late: int = 0
    missed: Micros | None = None
    latest: Micros | None = None
    by_clock: bool = False
    source_latest: Micros | None = None
    rejected: tuple[Rejected, ...] = ()
    untargeted: tuple[tuple[int, int], ...] = ()
    skipped: int = 0
    max_ahead: Micros | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """Represents a decoded frame; `at` is the clock when it was written."""

    at: Micros
    records: tuple[Record, ...]
    rows: pa.RecordBatch


def rows_of(entry: Entry) -> int:
    return entry.rows if isinstance(entry, Events) else 0


def count_triples(entry: Entry) -> int:
    """Return about how many triples of the background an entry brings, by the size of their text."""
    return len(entry.triples) // _TRIPLE_BYTES if isinstance(entry, Facts) else 0


def encode(
    at: Micros, records: Sequence[Record], rows: pa.RecordBatch, slices: int = 1, keys: Mapping[str, MessageKey] = NO_KEYS
) -> tuple[list[Part], int, int]:
    """Return a frame's payload in parts, its flags and its checksum.

    `slices` is how many slices the rows are to be in, if there are enough of them. `keys` are those that streams
    declare. A frame in which they may change has no slices.
    """
    entries, flags = msgspec.json.encode((at, [_plain(record) for record in records])), 0
    for record in records:
        flags |= (HAS_LATE if record.late else 0) | (HAS_REJECTED if record.rejected else 0)
    if slices > 1 and rows.num_rows > slices * SLICE_ROWS and not any(isinstance(record.entry, SetStream | DropStream) for record in records):
        events = [record.entry for record in records if isinstance(record.entry, Events)]
        parts, crc = encode_slices(entries, events, rows, slices, keys)
        return parts, flags | HAS_SLICES, crc
    sink = pa.BufferOutputStream()
    write_rows(sink, rows.replace_schema_metadata({b"entries": entries}))
    payload = memoryview(sink.getvalue())
    return [payload], flags, zlib.crc32(payload)


def _plain(record: Record) -> tuple[Any, ...]:
    """Return an entry's kind and members, and what the writer knew, in the order of Record's fields."""
    entry = record.entry
    values = _EVENTS_VALUES(entry) if type(entry) is Events else [getattr(entry, name) for name in _FIELDS[type(entry)]]
    known = _NAMES[type(entry)], values, record.late, record.missed, record.latest, record.by_clock, record.source_latest
    if not (record.rejected or record.untargeted or record.skipped or record.max_ahead is not None):
        return known
    return *known, [astuple(row) for row in record.rejected], record.untargeted, record.skipped, record.max_ahead


def decode_records(first: int, payload: memoryview) -> tuple[Micros, tuple[Record, ...], Callable[[], pa.RecordBatch]]:
    """Decode the entries alone, and return what reads the rows."""
    if is_sliced(payload):
        at, records, rows = decode_slices(first, fetch_from(payload))
        return at, records, rows.read_all
    reader = open_rows(payload)
    at, records = _decode_entries(first, reader.schema.metadata[b"entries"])
    return at, records, lambda: reader.read_next_batch().replace_schema_metadata(None)


def decode_slices(first: int, fetch: Fetch) -> tuple[Micros, tuple[Record, ...], SlicedRows]:
    """Decode the entries of a frame with slices, which are read when they are asked for.

    Raises: whatever `fetch` raises.
    """
    frame = SlicedFrame.from_payload(fetch)
    return *_decode_entries(first, frame.index.entries), SlicedRows(frame, 0, len(frame.which))


def _decode_entries(first: int, entries: bytes | msgspec.Raw) -> tuple[Micros, tuple[Record, ...]]:
    at, plain = msgspec.json.decode(entries)
    return at, tuple(_record(first + i, *members) for i, members in enumerate(plain))


def _record(offset: int, kind: str, values: list[Any], *known: Any) -> Record:
    """Return an entry. In logs of 0.1.0 less is known, and only entries that need them have the last members."""
    found = Record(_entry(offset, kind, values), *known[:5])
    if len(known) <= 5:
        return found
    rejected, untargeted, skipped, max_ahead, *_ = [*known[5:], *_NOT_TOLD[len(known) - 5 :]]
    return msgspec.structs.replace(
        found,
        rejected=tuple(Rejected(*row) for row in rejected),
        untargeted=tuple((begin, after) for begin, after in untargeted),
        skipped=skipped,
        max_ahead=max_ahead,
    )


def _entry(offset: int, kind: str, values: list[Any]) -> Entry:
    found: Entry = _KINDS[kind](offset, *(tuple(value) if isinstance(value, list) else value for value in values))
    return found


def decode(first: int, payload: memoryview) -> Content:
    at, records, read_rows = decode_records(first, payload)
    return Content(at, records, read_rows())
