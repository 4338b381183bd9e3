"""Compiled code finds the partition of each row of a column: CRC-32 of each text that a row has, once, eight bytes a step. It also joins the CRCs of parts.

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
NO_PARTITION, UNSEEN = -1, -2


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
def _mark_partitions(tables: Any, texts: Any, indices: Any, partitions: int, found: Any) -> None:
    offsets, data = texts
    seen = np.full(len(offsets) - 1, UNSEEN, np.int16)
    for row in range(len(indices)):
        which = indices[row]
        if which < 0:
            found[row] = NO_PARTITION
            continue
        if seen[which] == UNSEEN:
            mixed = find_crc(tables, data, offsets[which], offsets[which + 1]) * MIX & _WORD
            seen[which] = mixed * partitions >> 32
        found[row] = seen[which]


def mark_partitions(offsets: NDArray[np.int32], data: NDArray[np.uint8], indices: NDArray[np.int32], partitions: int) -> NDArray[np.int16]:
    """Return the partition of each row's text. `indices` names it among those between `offsets`; a row below 0 has none, and NO_PARTITION."""
    found = np.empty(len(indices), np.int16)
    _mark_partitions(_TABLES, (offsets, data), indices, partitions, found)
    return found


@_native.inlined
def _multiply(a: int, b: int) -> int:
    """Return the product of two polynomials modulo the CRC's; the highest bit is the constant term."""
    product, bit = 0, 1 << 31
    while bit:
        if a & bit:
            product ^= b
        b = b >> 1 ^ _POLYNOMIAL if b & 1 else b >> 1
        bit >>= 1
    return product


@_native.entry_point
def join_crcs(first: int, second: int, length: int) -> int:
    """Return the CRC-32 of bytes followed by `length` others, from the CRCs of both."""
    power, factor = 1 << 23, 1 << 31  # x to the 8th, for a byte, and 1
    while length:
        if length & 1:
            factor = _multiply(power, factor)
        power = _multiply(power, power)
        length >>= 1
    return _multiply(factor, first) ^ second
