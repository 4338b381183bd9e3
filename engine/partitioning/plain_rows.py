"""This module reads one partition's rows out of rows that are there as a whole."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.messages import NO_END, Block, Events, MessageKey, Micros, RowSource, int64s
from engine.partitioning.hash_partitioner import PartitionShare
from engine.partitioning.message_keys import key_column, number_bodies
from epsparql.deferred_methods import dataclass

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class PlainRows:
    """Gives OCCURRENCES as a `RowSource`."""

    rows: pa.RecordBatch

    @property
    def num_rows(self) -> int:
        found: int = self.rows.num_rows
        return found

    def read_all(self) -> pa.RecordBatch:
        return self.rows

    def read_own(self, partition: int, partitions: int, events: Sequence[Events], keys: Mapping[str, MessageKey]) -> tuple[pa.RecordBatch, Ints]:
        column = key_column(self.rows, number_bodies(events), events, keys)
        places = np.flatnonzero(PartitionShare(partition, partitions).select_rows(column))
        return self.rows.take(pa.array(places)), places

    def read_some(self, wanted: NDArray[np.bool_]) -> tuple[pa.RecordBatch, Ints]:
        places = np.flatnonzero(wanted)
        return self.rows.take(pa.array(places)), places

    def read_ends(self) -> Ints:
        end, late = int64s(self.rows.column("end")), self.rows.column("late").to_numpy(zero_copy_only=False)
        return np.where(late, NO_END, end) if late.any() else end

    def find_latest_ends(self, events: Sequence[Events]) -> dict[int, Micros]:
        return find_latest_ends(self.read_ends(), events)


def find_latest_ends(ends: Ints, events: Sequence[Events]) -> dict[int, Micros]:
    """Return, by offset, the latest of the ends that each entry has; none where all of them are NO_END."""
    filled = [event for event in events if event.rows]
    if not filled:
        return {}
    latest = np.maximum.reduceat(ends, np.cumsum([0, *(event.rows for event in filled[:-1])]))
    return {event.offset: end for event, end in zip(filled, latest.tolist(), strict=True) if end != NO_END}


def source_of(block: Block) -> RowSource:
    return PlainRows(block.source) if isinstance(block.source, pa.RecordBatch) else block.source


def events_of(block: Block) -> list[Events]:
    return [entry for entry in block.entries if isinstance(entry, Events)]
