"""This module keeps what texts of queries mean in a file, so that a later process need not parse them again
(docs/decisions/0086-many-queries.md).

    name of the language's version | record record ...        a record is a checksum, its length, the digest of the text, and the pickled meaning

The text stays the truth. A file of another version of this package is written anew, and records after a damaged one
are ignored.
"""

import io
import os
import pickle
import struct
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from epsparql.recursion import deep_stack

_RECORD = struct.Struct("<II16s")  # checksum of the rest, bytes of the pickle, digest of the text
_CRC_BYTES, _DIGEST_BYTES = 4, 16
_FEW = 100
_NAME, _PACKAGE = "parsed-texts", "epsparql"


@cache
def _language() -> bytes:
    """Return the digest of everything that decides what a text means: this package's files, and the versions of
    pyparsing and Python.
    """
    from importlib.metadata import version  # it takes a fiftieth of a start, and only a server keeps texts

    digest = blake2b(f"{sys.version} {version('pyparsing')}".encode(), digest_size=_DIGEST_BYTES)
    for file in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.digest()


class ParsedTexts:
    """Reads the file in a directory, and appends to it. Any number of processes may read; one appends."""

    def __init__(self, directory: Path) -> None:
        """Open the file, if there is one, and find its records. Raises: OSError."""
        self._path = directory / _NAME
        self._fd = os.open(self._path, os.O_RDWR) if self._path.exists() else -1
        self._places: dict[bytes, tuple[int, int]] = {}  # first byte and bytes of the pickle, by the digest of the text
        self._end = self._find_records()

    def __contains__(self, text: str) -> bool:
        return _digest(text) in self._places

    def find_meaning(self, text: str) -> Any:
        """Return what `keep_meaning` was given for a text; None where it was given nothing, or that cannot be read."""
        first, length = self._places.get(_digest(text), (0, 0))
        try:
            return MeaningReader.load_bytes(os.pread(self._fd, length, first)) if length else None
        except Exception:  # noqa: BLE001  # whatever is wrong with it, the text tells the same
            return None

    def keep_meaning(self, text: str, meaning: object) -> None:
        """Append what a text means. It is not made durable, because the text can be parsed again. Raises: OSError."""
        with deep_stack():
            self._append(_digest(text), pickle.dumps(meaning, pickle.HIGHEST_PROTOCOL))

    def drop_others(self, texts: Iterable[str]) -> None:
        """Write the file anew if most of its records are of other texts than these. Raises: OSError."""
        kept = {digest: self._places[digest] for digest in map(_digest, texts) if digest in self._places}
        if len(self._places) > 2 * len(kept) + _FEW:
            records = [(digest, os.pread(self._fd, length, first)) for digest, (first, length) in kept.items()]
            self._places, self._end = {}, 0
            for record in records:
                self._append(*record)
            os.truncate(self._fd, self._end)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)

    def _append(self, digest: bytes, data: bytes) -> None:
        if self._fd < 0:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        if not self._end:
            os.truncate(self._fd, 0)
            self._end = os.pwrite(self._fd, _language(), 0)
        rest = _RECORD.pack(0, len(data), digest)[_CRC_BYTES:] + data
        os.pwrite(self._fd, zlib.crc32(rest).to_bytes(_CRC_BYTES, "little") + rest, self._end)
        self._places[digest] = self._end + _RECORD.size, len(data)
        self._end += _RECORD.size + len(data)

    def _find_records(self) -> int:
        """Note the records as far as they hold, and return the byte after them; 0 where the file is of no use."""
        data = b"" if self._fd < 0 else os.pread(self._fd, os.fstat(self._fd).st_size, 0)
        if not data.startswith(_language()):
            return 0
        at, view = len(_language()), memoryview(data)
        while at + _RECORD.size <= len(data):
            crc, length, digest = _RECORD.unpack(view[at : at + _RECORD.size])
            end = at + _RECORD.size + length
            if end > len(data) or zlib.crc32(view[at + _CRC_BYTES : end]) != crc:
                break
            self._places[digest] = at + _RECORD.size, length
            at = end
        return at


class MeaningReader(pickle.Unpickler):
    """Makes nothing but what a meaning consists of, whatever the file says."""

    @classmethod
    def load_bytes(cls, data: bytes) -> Any:
        """Return what was pickled.

        Raises: UnpicklingError for anything else than classes of this package, and what pickle raises.
        """
        return cls(io.BytesIO(data)).load()

    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] != _PACKAGE:
            raise pickle.UnpicklingError(f"{module}.{name} is no part of a query")
        found = super().find_class(module, name)
        if not isinstance(found, type):
            raise pickle.UnpicklingError(f"{module}.{name} is no class")
        return found


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()


_known: ContextVar[ParsedTexts | None] = ContextVar("known_texts", default=None)


@contextmanager
def looking_up(texts: ParsedTexts) -> Iterator[None]:
    """Let `parse` look texts up, before it parses them, while the block runs."""
    token = _known.set(texts)
    try:
        yield
    finally:
        _known.reset(token)


def look_up(text: str) -> Any:
    """Return what a text means, if it is looked up and known."""
    known = _known.get()
    return None if known is None else known.find_meaning(text)
