"""An engine's state as bytes: a header in JSON, then the arrays as they lie in memory.

A snapshot is good for the very code that wrote it, which its header names; with other code the log is read anew.
"""

import hashlib
import json
import struct
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import epsparql
from engine.errors import SnapshotMismatch

MAGIC = b"EPSNAP01"
_LENGTH = struct.Struct("<Q")


@cache
def code_digest() -> str:
    """Names the code whose plans and arrays a snapshot holds."""
    digest = hashlib.sha256()
    for package in (Path(__file__).parent, Path(epsparql.__file__).parent):
        for file in sorted(package.rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:32]


def pack(meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> bytes:
    """`meta` is JSON; arrays are of any shape and of an 8-byte or 1-byte type."""
    listed = [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()]
    header = json.dumps({"code": code_digest(), "meta": meta, "arrays": listed}, ensure_ascii=False).encode()
    parts = [MAGIC, _LENGTH.pack(len(header)), header, *(np.ascontiguousarray(array).tobytes() for array in arrays.values())]
    return b"".join(parts)


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What `pack` was given; the arrays may be written to. Raises SnapshotMismatch."""
    if data[: len(MAGIC)] != MAGIC:
        raise SnapshotMismatch("not a snapshot of this format")
    begin = len(MAGIC) + _LENGTH.size
    (length,) = _LENGTH.unpack(data[len(MAGIC) : begin])
    header = json.loads(data[begin : begin + length])
    if header["code"] != code_digest():
        raise SnapshotMismatch("written by another version of the engine")
    arrays: dict[str, NDArray[Any]] = {}
    at = begin + length
    for name, dtype, shape in header["arrays"]:
        size = int(np.dtype(dtype).itemsize * np.prod(shape, dtype=np.int64))
        if at + size > len(data):
            raise SnapshotMismatch("the snapshot is cut short")
        arrays[name] = np.frombuffer(data, dtype, count=size // np.dtype(dtype).itemsize, offset=at).reshape(shape).copy()
        at += size
    return header["meta"], arrays
