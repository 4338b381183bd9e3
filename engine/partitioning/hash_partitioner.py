"""This module deals out events by the value of one part of their triples, and tells which partition has each value."""

import zlib
from dataclasses import field
from enum import Enum

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.partitioning.crc32 import MIX, NO_PARTITION, mark_partitions
from engine.triples.quads import Quad
from epsparql.deferred_methods import dataclass


class Part(Enum):
    """Names the part of every triple pattern of a query at which a partition key stands; MESSAGE for the key of the
    message that brings the triple.
    """

    MESSAGE = "message"
    SUBJECT = "subject"
    OBJECT = "object"
    GRAPH = "graph"

    @property
    def column(self) -> str:
        """Return the name of the part's column in OCCURRENCES; a message's key has none."""
        return self.value[0]

    def read_part(self, quad: Quad) -> str:
        """Return the N-Triples text of a background triple's part; "" for no graph.

        A node of the background is its own key.
        """
        term = quad[{Part.MESSAGE: 0, Part.SUBJECT: 0, Part.OBJECT: 2, Part.GRAPH: 3}[self]]
        return "" if term is None else str(term)


def partition_of(text: str, partitions: int) -> int:
    """Return the partition of a term's N-Triples text, by a hash that is the same in all versions: state lies where
    it says.
    """
    return (zlib.crc32(text.encode()) * MIX & 0xFFFFFFFF) * partitions >> 32


@dataclass(frozen=True, slots=True)
class PartitionShare:
    """Represents one engine's share of all values: those of `partition`, of so many `partitions`."""

    partition: int = 0
    partitions: int = 1
    whole: bool = field(init=False, compare=False)  # the only one; each call of the engine asks

    def __post_init__(self) -> None:
        object.__setattr__(self, "whole", self.partitions == 1)

    def has(self, text: str) -> bool:
        return partition_of(text, self.partitions) == self.partition

    def select_rows(self, column: pa.DictionaryArray) -> NDArray[np.bool_]:
        """Return which rows of a column of terms are in the share; null, no graph, is in none."""
        own: NDArray[np.bool_] = find_partitions(column, self.partitions) == self.partition
        return own

    def overlaps(self, other: "PartitionShare") -> bool:
        """Return whether some hash may belong to both shares, which need not be of one number of partitions."""
        return (
            self.partition * other.partitions < (other.partition + 1) * self.partitions
            and other.partition * self.partitions < (self.partition + 1) * other.partitions
        )

    def contains(self, other: "PartitionShare") -> bool:
        """Return whether all hashes of the other share belong to this one."""
        return (
            self.partition * other.partitions <= other.partition * self.partitions
            and (other.partition + 1) * self.partitions <= (self.partition + 1) * other.partitions
        )


def find_partitions(column: pa.DictionaryArray, partitions: int) -> NDArray[np.int16]:
    """Return the partition of each row of a column of terms, NO_PARTITION for null."""
    texts = column.dictionary
    _, offsets, data = texts.buffers()
    indices = column.indices.fill_null(NO_PARTITION) if column.indices.null_count else column.indices
    if not len(texts):
        return np.full(len(indices), NO_PARTITION, np.int16)
    return mark_partitions(
        np.frombuffer(offsets, np.int32, len(texts) + 1, 4 * texts.offset), np.frombuffer(data, np.uint8), indices.to_numpy(), partitions
    )


ONE = PartitionShare()
