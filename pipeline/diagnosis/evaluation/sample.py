"""This module holds the recent events that a diagnosis examines, in order of their ends, and reads them from the end
of a log.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import field
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.messages import OCCURRENCES, Events, Micros, int64s
from epsparql.deferred_methods import dataclass
from pipeline.inspection.backward_reader import BackwardReader
from pipeline.log.encoding.own_terms import with_own_terms

MOST_EVENTS = 131_072
MOST_BYTES, MOST_READ_S = 64 << 20, 0.5
"""A diagnosis examines at most this many events, for which it reads so many bytes and seconds of the log."""
_FIRST_BLOCK, _LARGEST_BLOCK = 64, 2_048
"""A LIMIT takes effect after a block, and all pairs of some thousands of events are millions."""
_MOST_OTHERS, _OTHER_EVENTS, _OTHERS_S = 32, 20_000, 0.2
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TermCodes:
    """Holds the terms of one column: a number for each row, -1 for none, and the term of each number."""

    codes: Ints
    terms: list[str]

    def mark_rows(self, term: str) -> NDArray[np.bool_]:
        """Return which rows have the term."""
        found = np.zeros(len(self.codes), bool)
        if term in self.terms:
            found = self.codes == self.terms.index(term)
        return found

    def count_terms(self, rows: NDArray[np.bool_]) -> dict[str, int]:
        """Return how often each term stands in these rows."""
        codes = self.codes[rows]
        counts = np.bincount(codes[codes >= 0], minlength=len(self.terms))
        return {self.terms[code]: int(counts[code]) for code in np.flatnonzero(counts).tolist()}


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Holds events (OCCURRENCES) in order of their ends, with the number of each one's stream.

    `bounded` if older ones were left out.
    """

    rows: pa.Table
    streams: Ints
    offsets: Ints
    names: tuple[str, ...]
    bounded: bool = False
    _columns: dict[str, TermCodes] = field(default_factory=dict)

    @classmethod
    def from_batches(cls, streams: Mapping[str, Sequence[tuple[int, pa.RecordBatch]]], bounded: bool = False) -> "Sample":
        """Sort the rows of streams. Each batch comes with the offset of the log entry that brought it."""
        pieces = [piece for parts in streams.values() for piece in parts]
        table = pa.Table.from_batches([batch for _, batch in pieces], OCCURRENCES).unify_dictionaries().combine_chunks()
        numbers = np.repeat(np.arange(len(streams)), [sum(batch.num_rows for _, batch in parts) for parts in streams.values()])
        offsets = np.repeat(np.array([offset for offset, _ in pieces], np.int64), [batch.num_rows for _, batch in pieces])
        order = np.argsort(_read_instants(table, "end"), kind="stable")
        left_out = max(len(order) - MOST_EVENTS, 0)
        order = order[left_out:]
        rows = table.take(pa.array(order)).combine_chunks()
        return cls(rows, numbers[order], offsets[order], tuple(streams), bounded or left_out > 0)

    def select(self, wanted: NDArray[np.bool_]) -> "Sample":
        """Return the sample of some of the rows."""
        return Sample(self.rows.filter(pa.array(wanted)).combine_chunks(), self.streams[wanted], self.offsets[wanted], self.names, self.bounded)

    def __len__(self) -> int:
        return len(self.streams)

    @property
    def start(self) -> Ints:
        return _read_instants(self.rows, "start")

    @property
    def end(self) -> Ints:
        return _read_instants(self.rows, "end")

    @property
    def late(self) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = self.rows.column("late").to_numpy()
        return found

    def of_stream(self, name: str) -> NDArray[np.bool_]:
        """Return which rows are of a stream."""
        return self.of_streams((name,))

    def of_streams(self, names: Collection[str]) -> NDArray[np.bool_]:
        """Return which rows are of some streams."""
        return np.isin(self.streams, [number for number, name in enumerate(self.names) if name in names])

    def get_column(self, name: str) -> TermCodes:
        """Return the terms of `s`, `p`, `o` or `g`."""
        if name not in self._columns:
            column = (
                self.rows.column(name).combine_chunks()
                if len(self)
                else pa.DictionaryArray.from_arrays(pa.array([], pa.int32()), pa.array([], pa.utf8()))
            )
            codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
            self._columns[name] = TermCodes(codes, column.dictionary.to_pylist())
        return self._columns[name]

    def read_blocks(self, first: int) -> Iterator[tuple[list[tuple[str, Micros]], pa.RecordBatch, list[int]]]:
        """Yield the rows from number `first` on in ever larger blocks: the streams with their last ends, the rows by
        stream, and their counts.
        """
        ends, size = self.end, _FIRST_BLOCK
        while first < len(self):
            part = np.arange(first, min(first + size, len(self)))
            first, size = first + size, min(2 * size, _LARGEST_BLOCK)
            by_stream = [part[self.streams[part] == number] for number in range(len(self.names))]
            parts = [(name, rows) for name, rows in zip(self.names, by_stream, strict=True) if len(rows)]
            taken = self.rows.take(pa.array(np.concatenate([rows for _, rows in parts]))).combine_chunks().to_batches()[0]
            plain = taken.set_column(taken.schema.get_field_index("late"), OCCURRENCES.field("late"), pa.array(np.zeros(len(part), bool)))
            yield [(name, int(ends[rows[-1]])) for name, rows in parts], with_own_terms(plain), [len(rows) for _, rows in parts]


def read_sample(data: Path, streams: Mapping[str, int], most: int = MOST_EVENTS, most_s: float = MOST_READ_S) -> Sample:
    """Read the last events of streams, which are given with the log positions of their creation."""
    found: dict[str, list[tuple[int, pa.RecordBatch]]] = {}
    bounded = False
    for name, created in streams.items():
        share = max(len(streams), 1)
        with closing(BackwardReader(data, MOST_BYTES // share, most_s / share)) as reader:
            look = reader.read_last(name, created, most // share)
        found[name] = [(piece.offset, piece.rows) for piece in reversed(look.pieces)]
        bounded |= look.is_cut or (look.read_from > created and sum(piece.rows.num_rows for piece in look.pieces) >= most // share)
    return Sample.from_batches(found, bounded)


def read_others(data: Path, streams: Mapping[str, int]) -> Sample:
    """Read some of the last events of streams that the query does not read."""
    some = dict(list(streams.items())[:_MOST_OTHERS])
    return read_sample(data, some, _OTHER_EVENTS, _OTHERS_S)


def list_entries(first: int, streams: Sequence[tuple[str, Micros]], counts: Sequence[int]) -> tuple[Events, ...]:
    """Return the entries of a block; a watermark stays before the last instant, of which the next block may have more."""
    pairs = zip(streams, counts, strict=True)
    return tuple(Events(first + k, name, count, end - 1) for k, ((name, end), count) in enumerate(pairs))


def _read_instants(table: pa.Table, name: str) -> Ints:
    column = table.column(name).combine_chunks()
    return int64s(column) if len(column) else np.empty(0, np.int64)
