"""This module merges what several partitions found of one range of the log, as one engine would have given it."""

import math
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.dictionary.arrow_encoding import one_after_another
from engine.messages import SOLUTIONS, Outcome, StateChange, int64s
from engine.runtime.result_assembly import Orders, rank_starts, read_orders, read_sort_key
from pipeline.head_poll import HeadPoll
from pipeline.log.reader import Published
from pipeline.runners.host_messages import Advance
from pipeline.solutions.partition_log import PartitionLogs, PartitionReader
from pipeline.solutions.solution_log import SolutionReader, SolutionWriter

Ints = NDArray[np.int64]
_SWEEP_S = 5.0


class Merger:
    """Merges range after range.

    A query that failed in one partition has no later solutions, though others may go on finding some.
    """

    def __init__(self, ended: Iterable[StateChange] = ()) -> None:
        """Begin with `ended`, the changes of state that are known already.

        They may be of ranges to come, since a range may be tried again.
        """
        self._ended = {change.registered: change.entry for change in ended}

    def merged(self, lo: int, outcomes: Sequence[Outcome]) -> Outcome:
        """Merge the `outcomes` of one range from `lo` on, one a partition, which have TIED solutions."""
        ended = {registered: entry for registered, entry in self._ended.items() if entry < lo}
        first: dict[int, StateChange] = {}
        for change in sorted((change for outcome in outcomes for change in outcome.changes), key=lambda change: (change.entry, change.registered)):
            if change.registered not in ended:
                first.setdefault(change.registered, change)
        found = {change.registered: change.entry for change in first.values()}
        self._ended |= found
        solutions = merge_emitted([outcome.solutions for outcome in outcomes])
        return Outcome(_until(solutions, ended | found), tuple(first.values()))


class PartitionLogMerge:
    """Merges the logs of partitions on, as a host of engines would find solutions. One thread at a time."""

    def __init__(self, logs: PartitionLogs, number: int, ended: Iterable[StateChange]) -> None:
        """Open the logs. `ended` has the changes of state that the solution log holds."""
        self._logs = logs
        self._readers, self._merger = [PartitionReader(logs, partition) for partition in range(number)], Merger(ended)
        self._swept_at = time.monotonic()

    def run(self, lo: int, hi: int, max_rows: int = 0) -> Generator[Advance, None, None]:  # partitions have cut the log already
        """Yield what the entries [lo, hi), which all partitions have read, brought.

        Each piece lies in one frame of each partition.
        """
        while lo < hi:
            after = min(hi, *(reader.find_frame_end(lo) for reader in self._readers))
            yield Advance(lo, after, self._merger.merged(lo, [reader.read(lo, after) for reader in self._readers]))
            lo = after

    @property
    def published(self) -> Published | None:
        """Return None, since the partitions' logs are read as they are on disk."""
        return None

    def tell(self) -> None:
        """Do nothing: each partition's task reports its engine."""

    def save(self) -> None:
        """Do nothing: each partition's task saves its engine."""

    @property
    def unswept(self) -> bool:
        """Tell whether it is time to make solutions durable, so that tasks may drop snapshots, and the merged parts
        of their logs can go.
        """
        return time.monotonic() - self._swept_at >= _SWEEP_S

    def sweep(self, committed: int) -> None:
        self._swept_at = time.monotonic()
        self._logs.note_merged(committed)
        for reader in self._readers:
            reader.drop_segments(committed)

    def close(self) -> None:
        for reader in self._readers:
            reader.close()


class MergeWork:
    """Follows the logs of all partitions, and merges them into the solution log (`log_follower.Work`)."""

    def __init__(self, data: Path, logs: PartitionLogs, number: int) -> None:
        self._data, self._logs, self._number = data, logs, number
        self._readers = [PartitionReader(logs, partition) for partition in range(number)]
        self._poll = HeadPoll(*(reader.head_file for reader in self._readers))
        self._opened_at = logs.begin  # partitions that have not begun do not fall behind this

    def head(self) -> int:
        """Return the position that all partitions have reached."""
        return max(self._opened_at, min(reader.position for reader in self._readers))

    def wait(self, position: int, timeout: float) -> int:
        return self._poll.wait(self.head, position, timeout)

    def open_output(self) -> SolutionWriter:
        writer = SolutionWriter(self._data)
        self._opened_at = writer.position
        return writer

    def open_host(self, _: object) -> PartitionLogMerge:
        with closing(SolutionReader(self._data)) as solutions:
            return PartitionLogMerge(self._logs, self._number, solutions.changes)


def _until(solutions: pa.RecordBatch, ended: dict[int, int]) -> pa.RecordBatch:
    """Return the solutions without those after the entry at which their query ended."""
    if not ended or not solutions.num_rows:
        return solutions
    registered, entry = int64s(solutions.column("registered")), int64s(solutions.column("entry"))
    which, place = np.unique(registered, return_inverse=True)
    last = np.array([ended.get(number, np.iinfo(np.int64).max) for number in which.tolist()], np.int64)
    good = entry <= last[place]
    return solutions if good.all() else solutions.filter(pa.array(good))


def merge_emitted(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return TIED solutions of several partitions, each in order of emission, as SOLUTIONS in order of emission."""
    filled = [part for part in parts if part.num_rows]
    if not filled:
        return pa.RecordBatch.from_pylist([], schema=SOLUTIONS)
    if len(filled) == 1:
        return _plain(filled[0])
    whole = one_after_another([_plain(part) for part in filled])
    partition = np.repeat(np.arange(len(filled)), [part.num_rows for part in filled])
    registered, entry, end = (int64s(whole.column(name)) for name in ("registered", "entry", "end"))
    columns = [entry, end, rank_starts(whole, partition), _ranks(registered, whole.column("query"))]
    key = _keys(columns)
    falls = np.flatnonzero((np.diff(key) < 0) & (np.diff(partition) == 0))
    if len(falls):  # a query caught up, in one partition: what an entry let it find stays in its order
        caught = np.isin(entry, entry[falls])
        key = _keys([entry, *(np.where(caught, 0, column) for column in columns[1:])])
    order = np.argsort(key, kind="stable")  # the sort sees that each partition's rows are sorted, and only merges
    begins = np.cumsum([0, *(part.num_rows for part in filled)])
    orders: list[Orders] = []

    def terms_of(row: int) -> tuple[tuple[bool, bytes], ...]:
        k = partition[row]
        return _key(read_sort_key(filled[k], int(row - begins[k]), orders[k]))

    if ties := _ties(key[order], partition[order]):
        orders += map(read_orders, filled)
    for first, after in ties:
        order[first:after] = sorted(order[first:after].tolist(), key=terms_of)
    return whole.take(pa.array(order))


def _keys(columns: Sequence[Ints]) -> Ints:
    """Return a number for each row, by which rows sort as by the columns one after the other."""
    lows = [int(column.min()) for column in columns]
    spans = [int(column.max()) - low + 1 for column, low in zip(columns, lows, strict=True)]
    key: Ints
    if math.prod(spans) > np.iinfo(np.int64).max:
        order = np.lexsort(list(columns)[::-1])
        differs = np.zeros(len(order), np.int64)
        for column in columns:
            differs[1:] |= np.diff(column[order]) != 0
        key = np.empty(len(order), np.int64)
        key[order] = np.cumsum(differs)
        return key
    key = np.zeros(len(columns[0]), np.int64)
    for column, low, span in zip(columns, lows, spans, strict=True):
        key *= span
        key += column
        key -= low
    return key


def _plain(tied: pa.RecordBatch) -> pa.RecordBatch:
    return tied.select(SOLUTIONS.names).replace_schema_metadata(None)


def _ranks(registered: Ints, names: pa.DictionaryArray) -> Ints:
    """Return ranks of registrations by name, then by number."""
    if registered.min() == registered.max():
        return np.zeros(len(registered), np.int64)
    numbers, first, which = np.unique(registered, return_index=True, return_inverse=True)
    order = sorted(range(len(numbers)), key=lambda k: (names[int(first[k])].as_py(), int(numbers[k])))
    rank = np.empty(len(numbers), np.int64)
    rank[order] = np.arange(len(numbers))
    found: Ints = rank[which]
    return found


def _ties(key: Ints, partition: Ints) -> list[tuple[int, int]]:
    """Return stretches of rows with one key that more than one partition gave. In each they stand by partition."""
    same = np.diff(key) == 0
    if not (same & (np.diff(partition) != 0)).any():
        return []
    first = np.flatnonzero(np.append(True, ~same))
    after = np.append(first[1:], len(key))
    mixed = partition[first] != partition[after - 1]
    return list(zip(first[mixed].tolist(), after[mixed].tolist(), strict=True))


def _key(values: Sequence[str | None]) -> tuple[tuple[bool, bytes], ...]:
    """Return a sort key that puts unbound values first, then orders by code points."""
    return tuple((value is not None, (value or "").encode()) for value in values)
