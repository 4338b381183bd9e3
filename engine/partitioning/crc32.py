"""Compiled code finds which rows of a column are in a share: CRC-32 of each text that a row has, once, eight bytes a step.

The numbers are zlib's. Table j gives the effect of a byte that j more bytes follow, so eight look-ups stand for eight steps of the plain algorithm.
Source: Kounavis and Berry, "A Systematic Approach to Building High Performance Software-Based CRC Generators" (2005).
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.jit import Native

_native = Native.of(Path(__file__))
MIX = 0x9E3779B1
"""The sum of bits that a CRC is would deal texts that differ in a digit or two unevenly, hence this multiplication."""
_POLYNOMIAL, _SLICE, _WORD = 0xEDB88320, 8, 0xFFFFFFFF
UNSEEN, OTHER, OWN = range(3)


def _make_tables() -> NDArray[np.int64]:
    tables = np.zeros((_SLICE, 256), np.int64)
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
        tables[0, byte] = crc
    for j in range(1, _SLICE):
        tables[j] = tables[j - 1] >> 8 ^ tables[0][tables[j - 1] & 0xFF]
    return tables


_TABLES = _make_tables()


@_native.inlined
def find_crc(tables: Any, data: Any, begin: int, end: int) -> int:
    """Return the CRC-32 of some bytes."""
    crc, k = _WORD, begin
    while k + _SLICE <= end:
        low = crc ^ (data[k] | np.int64(data[k + 1]) << 8 | np.int64(data[k + 2]) << 16 | np.int64(data[k + 3]) << 24)
        crc = (
            tables[7, low & 0xFF]
            ^ tables[6, low >> 8 & 0xFF]
            ^ tables[5, low >> 16 & 0xFF]
            ^ tables[4, low >> 24]
            ^ tables[3, data[k + 4]]
            ^ tables[2, data[k + 5]]
            ^ tables[1, data[k + 6]]
            ^ tables[0, data[k + 7]]
        )
        k += _SLICE
    while k < end:
        crc = crc >> 8 ^ tables[0, (crc ^ data[k]) & 0xFF]
        k += 1
    return crc ^ _WORD


@_native.entry_point
def _mark_share(tables: Any, texts: Any, indices: Any, bucket: int, buckets: int, found: Any) -> None:
    offsets, data = texts
    seen = np.zeros(len(offsets) - 1, np.uint8)
    for row in range(len(indices)):
        which = indices[row]
        if which < 0:
            found[row] = False
            continue
        if seen[which] == UNSEEN:
            mixed = find_crc(tables, data, offsets[which], offsets[which + 1]) * MIX & _WORD
            seen[which] = OWN if mixed * buckets >> 32 == bucket else OTHER
        found[row] = seen[which] == OWN


def mark_share(offsets: NDArray[np.int32], data: NDArray[np.uint8], indices: NDArray[np.int32], bucket: int, buckets: int) -> NDArray[np.bool_]:
    """Return which rows have a text of the bucket. `indices` names each row's text among those between `offsets`; below 0 is none."""
    found = np.empty(len(indices), np.bool_)
    _mark_share(_TABLES, (offsets, data), indices, bucket, buckets, found)
    return found
