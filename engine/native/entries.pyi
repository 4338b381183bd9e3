"""The functions of the compiled code. Arrays are contiguous; those that are written are said to be filled or changed."""

import numpy as np
from numpy.typing import NDArray

Bytes = bytes | bytearray | memoryview | NDArray[np.uint8] | NDArray[np.int8]
Shorts = NDArray[np.int16]
Ints32 = NDArray[np.int32]
Ints = NDArray[np.int64]
Doubles = NDArray[np.float64]

def has_avx2() -> int:
    """Return whether this processor runs the build `avx2`."""

# ---------------------------------------------------------------- checksums of partitions
def mark_partitions(offsets: Ints32, data: Bytes, indices: Ints32, partitions: int, found: Shorts, /) -> None:
    """Fill `found` with the partition of each row's text, which `indices` names among those between `offsets`; a row below 0 has NO_PARTITION."""

def join_crcs(first: int, second: int, length: int, /) -> int:
    """Return the CRC-32 of bytes followed by `length` others, from the CRCs of both."""

# ---------------------------------------------------------------- the heap of occurrences that wait for their time
def add_to_heap(rows: Ints, n: int, columns: Ints, end: int, number: int, came: int, /) -> None:
    """Take in the columns of a feed, the first as number `came`, beside the n rows that are there; `rows` has room."""

def count_due(rows: Ints, n: int, time: int, end: int, /) -> int:
    """Return how many of n rows end at `time` or before."""

def take_from_heap(rows: Ints, n: int, columns: Ints, end: int, number: int, /) -> None:
    """Fill the columns of a feed with the first of n rows, in order; these rows leave."""

# ---------------------------------------------------------------- bodies and solutions (formats.c)

# ---------------------------------------------------------------- terms (dictionary.c)

# ---------------------------------------------------------------- groups and runs (aggregation.c)

# ---------------------------------------------------------------- the kernel (kernel.c)
