"""This module stores the rows of a frame in slices by the hash of their keys (most often their subjects). So a
partition reads and decodes only its own rows.

    prefix | number of each row's slice, entries and index | end of each row | slice 0 | slice 1 | ...

A slice is a stream of OCCURRENCES with dictionaries of its own, compressed as a whole. Each part has its own
checksum, and begins at a multiple of 8 bytes. The numbers of slices tell the order of the rows. There are as many
slices as the server has partitions. A partition of another number reads the slices that it overlaps, and leaves rows
out.
"""

import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from itertools import accumulate, pairwise
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.dictionary.arrow_encoding import joined_terms
from engine.messages import NO_END, NO_ROWS, OCCURRENCES, TERM, Block, Events, MessageKey, Micros
from engine.partitioning import (
    NO_KEYS,
    PartitionShare,
    PlainRows,
    events_of,
    find_latest_ends,
    find_partitions,
    join_crcs,
    key_column,
    number_bodies,
    source_of,
)
from epsparql.deferred_methods import dataclass
from pipeline.log.encoding.arrow_ipc import Part, pack_rows, unpack_rows
from pipeline.log.encoding.renumber import renumber

MAGIC = b"\xffEPS"  # another stream begins by 0xffffffff
SLICE_ROWS = 512
"""A slice has so many rows on average at least: its schema takes about a kilobyte."""
_PREFIX = struct.Struct("<4sIII")  # magic, rows, bytes of entries and index, checksum of what comes before the ends
Ints = NDArray[np.int64]
NO_BODIES = np.empty(0, np.int64)
Fetch = Callable[[int, int, int | None], memoryview]
"""Reads bytes of a payload: the first one, how many, and their checksum (None: it is not known yet)."""


class _Index(msgspec.Struct, frozen=True, array_like=True):
    """Holds the entries as the codec encodes them, and where the rows are.

    `latest` has the latest timely end of each entry that has rows in time, by offset. Ends are numbers of `width`
    bytes, counted from `low`; `parts` has the bytes and checksums of the ends and of each slice.
    """

    entries: msgspec.Raw
    latest: list[tuple[int, Micros]]
    low: Micros
    width: int
    parts: list[tuple[int, int]]


# ---------------------------------------------------------------- writing
def encode_slices(
    entries: bytes, events: Sequence[Events], rows: pa.RecordBatch, slices: int, keys: Mapping[str, MessageKey] = NO_KEYS
) -> tuple[list[Part], int]:
    """Return a payload, in parts, with the `rows` of some entries in so many slices, and its checksum.

    `keys` are those that streams declare.
    """
    which = find_partitions(key_column(rows, number_bodies(events), events, keys), slices)
    dealt = [pack_rows(batch) if batch.num_rows else b"" for batch in _deal(rows, which, slices)]
    ends = PlainRows(rows).read_ends()
    low, beyond = _pack_ends(ends)
    packed = _padded(beyond.tobytes())
    parts = [(len(part), zlib.crc32(part)) for part in (packed, *dealt)]
    index = msgspec.json.encode(_Index(msgspec.Raw(entries), list(find_latest_ends(ends, events).items()), low, beyond.itemsize, parts))
    head = _padded(which.astype(np.uint8).tobytes() + index)
    prefix = _PREFIX.pack(MAGIC, rows.num_rows, len(index), zlib.crc32(head))
    crc = zlib.crc32(head, zlib.crc32(prefix))
    for length, other in parts:
        crc = join_crcs(crc, other, length)
    return [prefix, head, packed, *dealt], crc


def _pack_ends(ends: Ints) -> tuple[Micros, NDArray[Any]]:
    """Return the least end in time, and what each row's is beyond it, -1 for NO_END, in 4 or 8 bytes."""
    timely = ends != NO_END
    low = int(ends.min(where=timely, initial=np.iinfo(np.int64).max)) if timely.any() else 0
    beyond = np.where(timely, ends - low, -1)
    return low, beyond.astype(np.int32 if beyond.max(initial=0) <= np.iinfo(np.int32).max else np.int64)


def _padded(data: bytes) -> bytes:
    """Return the bytes and as many zeros as make them a multiple of 8."""
    return data + bytes(-len(data) % 8)


def _deal(rows: pa.RecordBatch, which: NDArray[np.int16], slices: int) -> list[pa.RecordBatch]:
    """Return the rows of each slice, in order, with dictionaries of their own."""
    order = np.argsort(which, kind="stable")
    bounds = np.cumsum([0, *np.bincount(which, minlength=slices)])
    spans = list(pairwise(bounds.tolist()))
    columns = [
        _deal_terms(rows.column(k), order, bounds, spans) if kind == TERM else _cut_spans(rows.column(k).take(pa.array(order)), spans)
        for k, kind in enumerate(OCCURRENCES.types)
    ]
    return [pa.RecordBatch.from_arrays(list(each), schema=OCCURRENCES) for each in zip(*columns, strict=True)]


def _cut_spans(column: pa.Array, spans: Sequence[tuple[int, int]]) -> list[pa.Array]:
    return [column.slice(begin, end - begin) for begin, end in spans]


def _deal_terms(column: pa.DictionaryArray, order: Ints, bounds: Ints, spans: Sequence[tuple[int, int]]) -> list[pa.DictionaryArray]:
    """Return the terms of each slice, over a dictionary that has each of them once."""
    if column.null_count == len(column):
        return _cut_spans(column, spans)
    indices, missing = column.indices, None
    if indices.null_count:
        missing, indices = indices.is_null().to_numpy(zero_copy_only=False)[order], indices.fill_null(-1)
    numbers, used, begins = renumber(indices.to_numpy(), order, bounds, len(column.dictionary))
    dealt, texts = pa.array(numbers, mask=missing), column.dictionary.take(pa.array(used))
    return [
        pa.DictionaryArray.from_arrays(dealt.slice(begin, end - begin), texts.slice(first, after - first), safe=False)
        for (begin, end), (first, after) in zip(spans, pairwise(begins.tolist()), strict=True)
    ]


# ---------------------------------------------------------------- reading
def is_sliced(payload: memoryview) -> bool:
    return payload[: len(MAGIC)] == MAGIC


def fetch_from(payload: memoryview) -> Fetch:
    """Return what reads a payload whose checksum held."""
    return lambda begin, length, _: payload[begin : begin + length]


@dataclass(frozen=True, slots=True, eq=False)
class SlicedFrame:
    """Reads the parts of one frame, each when it is asked for, and slices once."""

    which: NDArray[np.uint8]
    index: _Index
    begin: int  # of the ends
    fetch: Fetch
    _known: dict[int, pa.RecordBatch] = field(default_factory=dict)

    @classmethod
    def from_payload(cls, fetch: Fetch) -> "SlicedFrame":
        """Read what comes before the ends. Raises: whatever `fetch` raises."""
        _, rows, size, crc = _PREFIX.unpack(fetch(0, _PREFIX.size, None))
        length = rows + size + -(rows + size) % 8
        head = fetch(_PREFIX.size, length, crc)
        index = msgspec.json.decode(head[rows : rows + size], type=_Index)
        return cls(np.frombuffer(head, np.uint8, rows), index, _PREFIX.size + length, fetch)

    def read_slice(self, number: int) -> pa.RecordBatch:
        if number not in self._known:
            self._known[number] = unpack_rows(self._part(1 + number))
        return self._known[number]

    def read_ends(self) -> Ints:
        """Return the end of each row, NO_END for a late one."""
        beyond = np.frombuffer(self._part(0), f"<i{self.index.width}", len(self.which))
        return np.where(beyond < 0, NO_END, beyond + np.int64(self.index.low))

    def _part(self, number: int) -> memoryview:
        begin = self.begin + sum(length for length, _ in self.index.parts[:number])
        return self.fetch(begin, *self.index.parts[number])


@dataclass(frozen=True, slots=True, eq=False)
class SlicedRows:
    """Gives `num_rows` rows of a frame from number `begin` on, as a `RowSource`."""

    frame: SlicedFrame
    begin: int
    num_rows: int

    def slice(self, begin: int, count: int) -> "SlicedRows":
        return SlicedRows(self.frame, self.begin + begin, count)

    def read_all(self) -> pa.RecordBatch:
        return self.read_own(0, 1, (), NO_KEYS)[0]

    def read_own(self, partition: int, partitions: int, events: Sequence[Events], keys: Mapping[str, MessageKey]) -> tuple[pa.RecordBatch, Ints]:
        share, slices = PartitionShare(partition, partitions), len(self.frame.index.parts) - 1
        found: list[tuple[pa.RecordBatch, Ints]] = []
        for number in range(slices):
            held = PartitionShare(number, slices)
            if share.overlaps(held) and (part := self._read_slice(number)) is not None:
                rows, places = part
                if not share.contains(held):
                    own = share.select_rows(key_column(rows, number_bodies(events)[places] if keys else NO_BODIES, events, keys))
                    rows, places = rows.filter(pa.array(own)), places[own]
                found.append((rows, places))
        return self._put_together(found)

    def read_some(self, wanted: NDArray[np.bool_]) -> tuple[pa.RecordBatch, Ints]:
        found = list[tuple[pa.RecordBatch, Ints]]()
        for number in range(len(self.frame.index.parts) - 1):
            if (part := self._read_slice(number)) is not None:
                rows, places = part
                own = wanted[places]
                found.append((rows.filter(pa.array(own)), places[own]))
        return self._put_together(found)

    def _put_together(self, found: Sequence[tuple[pa.RecordBatch, Ints]]) -> tuple[pa.RecordBatch, Ints]:
        """Return the rows of several slices in their order, and their places."""
        if len(found) == 1:
            return found[0]
        places = np.concatenate([np.empty(0, np.int64), *(places for _, places in found)])
        order = np.full(self.num_rows, -1)
        order[places] = np.arange(len(places))
        order = order[order >= 0]
        return join_rows([rows for rows, _ in found]).take(pa.array(order)), places[order]

    def read_ends(self) -> Ints:
        return self.frame.read_ends()[self.begin : self.begin + self.num_rows]

    def find_latest_ends(self, events: Sequence[Events]) -> dict[int, Micros]:
        return dict(self.frame.index.latest)

    def _read_slice(self, number: int) -> tuple[pa.RecordBatch, Ints] | None:
        """Return the rows of a slice with their places, None if it has none here."""
        places = np.flatnonzero(self.frame.which == number)
        first, after = places.searchsorted((self.begin, self.begin + self.num_rows)).tolist()
        return None if first == after else (self.frame.read_slice(number).slice(first, after - first), places[first:after] - self.begin)


@dataclass(frozen=True, slots=True, eq=False)
class JoinedRows:
    """Gives the rows of consecutive blocks as a `RowSource`."""

    blocks: Sequence[Block]

    @property
    def num_rows(self) -> int:
        return sum(block.num_rows for block in self.blocks)

    def read_all(self) -> pa.RecordBatch:
        return join_rows([block.rows for block in self.blocks])

    def read_own(self, partition: int, partitions: int, events: Sequence[Events], keys: Mapping[str, MessageKey]) -> tuple[pa.RecordBatch, Ints]:
        parts = [source_of(block).read_own(partition, partitions, events_of(block), keys) for block in self.blocks]
        begins = accumulate((block.num_rows for block in self.blocks), initial=0)
        return join_rows([rows for rows, _ in parts]), np.concatenate([places + begin for (_, places), begin in zip(parts, begins, strict=False)])

    def read_some(self, wanted: NDArray[np.bool_]) -> tuple[pa.RecordBatch, Ints]:
        found, begin = list[tuple[pa.RecordBatch, Ints]](), 0
        for block in self.blocks:
            own = wanted[begin : begin + block.num_rows]
            if own.any():  # the others are not decoded
                rows, places = source_of(block).read_some(own)
                found.append((rows, places + begin))
            begin += block.num_rows
        return join_rows([rows for rows, _ in found]), np.concatenate([np.empty(0, np.int64), *(places for _, places in found)])

    def read_ends(self) -> Ints:
        return np.concatenate([source_of(block).read_ends() for block in self.blocks])

    def find_latest_ends(self, events: Sequence[Events]) -> dict[int, Micros]:
        found: dict[int, Micros] = {}
        for block in self.blocks:
            found |= source_of(block).find_latest_ends(events_of(block))
        return found


def join_rows(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of several batches.

    Each keeps its dictionaries: the engine tells terms apart, and need not wait for others to.
    """
    filled = [part for part in parts if part.num_rows]
    if len(filled) <= 1:
        return filled[0] if filled else NO_ROWS
    columns = []
    for k, kind in enumerate(OCCURRENCES.types):
        column = [part.column(k) for part in filled]
        columns.append(joined_terms(column) if kind == TERM else pa.concat_arrays(column))
    return pa.RecordBatch.from_arrays(columns, schema=OCCURRENCES)
