"""Where an export goes: a directory, or a store that `pyarrow.fs` reaches by a URI. What is there is there whole, and stays."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from posixpath import dirname, join, split
from typing import Protocol
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import fs

from pipeline.errors import Locked, StoreFailed
from pipeline.frames import sync_directory
from pipeline.lock import DirectoryLock

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_WHOLE = ("s3", "gcs")
"""An object appears there when its upload ends, and replaces what was there. Elsewhere an open file is seen, and a finished one is moved."""
_NO_SECRETS = (
    "region", "scheme", "endpoint_override", "retry_limit_seconds", "project_id",
    "blob_storage_authority", "dfs_storage_authority", "enable_tls", "credential_kind",
)  # fmt: skip
_HIDDEN = "***"
_SHORTEST = 4
"""Letters of a secret that is looked for in messages: shorter ones are words."""
_STORE_S = 10.0


class Place(Protocol):
    """Names are relative, with `/`. `str` of it is for messages: it holds no secret."""

    patience_s: float | None
    """How long a stop waits for it; None for as long as it takes."""

    def read(self, name: str) -> bytes | None: ...
    def put(self, name: str, data: pa.Buffer | bytes) -> None: ...
    def close(self) -> None: ...


def place_at(given: str) -> Place:
    """Of a path or a URI. Raises: Locked, OSError, StoreFailed."""
    if not _URI.match(given):
        return Directory(Path(given))
    uri = Uri(given)
    with uri.telling():
        files, path = fs.FileSystem.from_uri(given)
    return Directory(Path(path)) if isinstance(files, fs.LocalFileSystem) else Store(files, path, uri)


def named(given: str) -> str:
    """A path or URI as messages have it."""
    return str(Uri(given)) if _URI.match(given) else given


class Directory:
    """Of this machine, for one exporter at a time. What is put there outlives the machine's fall."""

    patience_s: float | None = None

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._lock = DirectoryLock(path / "_epsparql.lock")  # what begins with _ is no data, to those who read
        except Locked as taken:
            raise Locked(taken.path, taken.holder, "--export") from None

    def __str__(self) -> str:
        return str(self._path)

    def read(self, name: str) -> bytes | None:
        path = self._path / name
        return path.read_bytes() if path.exists() else None

    def put(self, name: str, data: pa.Buffer | bytes) -> None:
        path = self._path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(_temporary(path.name))
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_directory(path.parent)

    def close(self) -> None:
        self._lock.close()


class Store:
    """A file system of `pyarrow.fs`, which has no locks. Its faults are StoreFailed."""

    patience_s: float | None = _STORE_S

    def __init__(self, files: fs.FileSystem, path: str, uri: "Uri") -> None:
        self._files, self._path, self._uri = files, path.rstrip("/"), uri
        self._whole = files.type_name in _WHOLE
        if self._whole and not self._path:
            raise StoreFailed("it names no bucket")

    def __str__(self) -> str:
        return str(self._uri)

    def read(self, name: str) -> bytes | None:
        found = self._found(name)
        if found is None and not self._whole:  # HDFS makes room before it moves: what ended in between is there under the other name
            found = self._found(_temporary(name))
        return found

    def put(self, name: str, data: pa.Buffer | bytes) -> None:
        path = join(self._path, name)
        with self._uri.telling():
            if self._whole:
                self._write(path, data)
            else:
                temporary = join(self._path, _temporary(name))
                self._files.create_dir(dirname(path), recursive=True)
                self._write(temporary, data)
                self._files.move(temporary, path)

    def close(self) -> None:
        pass

    def _found(self, name: str) -> bytes | None:
        with self._uri.telling():
            try:
                with self._files.open_input_stream(join(self._path, name), compression=None) as stream:
                    found: bytes = stream.read()
            except FileNotFoundError:
                return None
        return found

    def _write(self, path: str, data: pa.Buffer | bytes) -> None:
        """In one call: what fails halfway is never closed as if it were complete."""
        with self._files.open_output_stream(path, compression=None) as stream:
            stream.write(data)


def _temporary(name: str) -> str:
    """What begins with `.` is not read by those who read Parquet."""
    folder, last = split(name)
    return join(folder, f".{last}.tmp")


class Uri:
    """As given, for messages: credentials may stand before its `@`, and among its parameters."""

    def __init__(self, given: str) -> None:
        scheme, rest = re.split(r"(?<=:)/+", given, maxsplit=1)
        user, at, rest = rest.rpartition("@")  # the last one, for a secret that should have been encoded may hold any letter
        place, _, query = rest.partition("?")
        parameters = [part for part in query.split("&") if part]
        told = [part for part in parameters if part.partition("=")[0] in _NO_SECRETS]
        hidden = [part for part in parameters if part not in told]
        self._given = given
        self._shown = (
            f"{scheme}//{_HIDDEN if at else ''}{at}{place}" + ("?" if parameters else "") + "&".join([*told, *([_HIDDEN] if hidden else [])])
        )
        secrets = [user, *re.split("[:?&=]", user), *hidden, *(part.partition("=")[2] for part in hidden)]
        self._secrets = sorted({each for secret in secrets for each in (secret, unquote(secret)) if len(each) >= _SHORTEST}, key=len, reverse=True)

    def __str__(self) -> str:
        return self._shown

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Faults of Arrow become StoreFailed, without what is secret."""
        try:
            yield
        except (OSError, ValueError, pa.ArrowException) as fault:  # ValueError: text that is no UTF-8
            raise StoreFailed(self.cleaned(str(fault))) from None

    def cleaned(self, message: str) -> str:
        message = message.replace(self._given, self._shown)
        for secret in self._secrets:
            message = message.replace(secret, _HIDDEN)
        return " ".join(message.split())  # some have lines


__all__ = ["Directory", "Place", "Store", "Uri", "named", "place_at"]
