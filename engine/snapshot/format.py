"""This module writes an engine's state as bytes: a JSON header, then arrays as they lie in memory.

Large arrays come in pieces that may be kept apart.

The format has a number; what is in it has names. So another version of the engine can take it, if it knows the names
and plans the queries alike.
"""

import hashlib
import json
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import SnapshotMismatch

FORMAT, OLDEST = 3, 2
"""The format number is raised with every change after which an older snapshot would mean something else; a new name
needs no new number.
"""
MAGIC = b"EPSNAP"
_LENGTH = struct.Struct("<HQ")  # format, and bytes of the header
LARGE = 1 << 18
"""An array of this many bytes or more comes in pieces."""
_ROWS_APART = 14  # bits: one row in 16,384 begins a piece
_LONGEST = 8 << _ROWS_APART
_EARLIER_BYTES = 16
_MIX = np.uint64(0x9E3779B97F4A7C15)

Put = Callable[[str, memoryview], None]
Fetch = Callable[[str], bytes]
"""A fetch gives the piece of a digest, or b"" where there is none."""


def pack(meta: Any, arrays: dict[str, NDArray[Any]], put: Put | None = None) -> bytes:
    """Pack `meta`, which is JSON but for arrays in it, and the arrays into bytes.

    `put` takes the pieces of large arrays, each under the digest of its bytes. Without `put` the returned bytes hold
    everything.
    """
    within: dict[str, NDArray[Any]] = {}

    def lifted(value: Any) -> dict[str, str]:
        assert isinstance(value, np.ndarray), f"{type(value).__name__} is not fit for a snapshot"
        within[f"meta.{len(within)}"] = value
        return {_LIFTED: f"meta.{len(within) - 1}"}

    text = json.dumps(meta, ensure_ascii=False, default=lifted)
    listed, parts = [], []
    for name, array in (arrays | within).items():
        pieces = list[tuple[int, str]]()
        if put is None or array.nbytes < LARGE:
            parts.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
            pieces.append((array.nbytes, ""))
        else:
            for piece in pieces_of(np.ascontiguousarray(array)):
                digest = digest_of(piece)
                pieces.append((len(piece), digest))
                put(digest, piece)
        listed.append([name, array.dtype.str, list(array.shape), pieces])
    header = json.dumps({"meta": text, "arrays": listed}, ensure_ascii=False).encode()
    return b"".join([MAGIC, _LENGTH.pack(FORMAT, len(header)), header, *parts])


_LIFTED = "\x00array"  # no key of ours


def pieces_of(array: NDArray[Any]) -> Iterator[memoryview]:
    """Cut the bytes of a contiguous array where its contents say so.

    Unchanged rows give the same pieces even if rows before them go.
    """
    if array.nbytes < LARGE or array.ndim != 2:
        data = array.reshape(-1).view(np.uint8).data
        yield from (data[at : at + (LARGE << 2)] for at in range(0, len(data), LARGE << 2))
        return
    first = 0
    for after in [*_cuts(array), len(array)]:
        while first < after:
            upto = min(after, first + _LONGEST)
            yield array[first:upto].reshape(-1).view(np.uint8).data
            first = upto


def _cuts(array: NDArray[Any]) -> list[int]:
    """Return the rows that begin a piece, chosen by a hash of their cells."""
    cells = array.view(np.uint64)
    hashes = np.zeros(len(cells), np.uint64)
    for column in range(cells.shape[1]):
        hashes = (hashes ^ cells[:, column]) * _MIX
    found: list[int] = np.flatnonzero(hashes >> np.uint64(64 - _ROWS_APART) == 0).tolist()
    return found


def unpack(data: bytes, fetch: Fetch | None = None) -> tuple[Any, dict[str, NDArray[Any]]]:
    """Return what `pack` was given, in arrays that may be written to.

    `fetch` gives the pieces that were kept apart. Raises SnapshotMismatch.
    """
    header, at = _header(data)
    arrays: dict[str, NDArray[Any]] = {}
    for name, dtype, shape, pieces in header["arrays"]:
        array = np.empty(shape, dtype)
        into, k = array.reshape(-1).view(np.uint8), 0
        for size, digest in pieces:
            piece = memoryview(data)[at : at + size] if not digest else _fetched(fetch, digest)
            at += 0 if digest else size
            if len(piece) != size or k + size > len(into):
                raise SnapshotMismatch("the snapshot is cut short")
            into[k : k + size] = np.frombuffer(piece, np.uint8)
            k += size
        if k != len(into):
            raise SnapshotMismatch("the snapshot is cut short")
        arrays[name] = array
    meta = json.loads(header["meta"], object_hook=lambda found: arrays[found[_LIFTED]] if _LIFTED in found else found)
    return meta, arrays


def _fetched(fetch: Fetch | None, digest: str) -> bytes:
    piece = b"" if fetch is None else fetch(digest)
    if not piece:
        raise SnapshotMismatch(f"piece {digest} of the snapshot is missing")
    return piece


def digest_of(piece: bytes | memoryview) -> str:
    """Return the digest that names a piece. Processors have instructions for it."""
    return hashlib.sha256(piece).hexdigest()


def is_digest(digest: str, piece: bytes | memoryview) -> bool:
    """Return whether a digest is that of a piece. Earlier versions named pieces by shorter ones."""
    found = digest_of(piece) if len(digest) > 2 * _EARLIER_BYTES else hashlib.blake2b(piece, digest_size=_EARLIER_BYTES).hexdigest()
    return found == digest


def apart(data: bytes) -> set[str]:
    """Return the digests of the pieces that a snapshot needs beside its own bytes. Raises SnapshotMismatch."""
    header, _ = _header(data)
    return {digest for *_, pieces in header["arrays"] for _, digest in pieces if digest}


def _header(data: bytes) -> tuple[Any, int]:
    """Return the header, and the position at which the parts begin."""
    begin = len(MAGIC) + _LENGTH.size
    if data[: len(MAGIC)] != MAGIC or len(data) < begin:
        raise SnapshotMismatch("not a snapshot of an engine")
    number, length = _LENGTH.unpack(data[len(MAGIC) : begin])
    if not OLDEST <= number <= FORMAT:
        raise SnapshotMismatch(f"a snapshot of format {number}; this version reads {OLDEST} to {FORMAT}")
    if len(data) < begin + length:
        raise SnapshotMismatch("the snapshot is cut short")
    return json.loads(data[begin : begin + length]), begin + length
