"""This module reaches the place of an export: a directory, or a store that `pyarrow.fs` reaches by a URI. An object there is whole, and stays."""

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
from pipeline.log.lock import DirectoryLock
from pipeline.log.segments import sync_directory

STORE = "EPSPARQL_STORE"
"""This variable names the store in which a data directory is kept."""
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_WHOLE = ("s3", "gcs")
"""An object appears in these stores when its upload ends, and replaces an earlier one.

Elsewhere an open file is seen, and a finished one is moved.
"""
_NO_SECRETS = (
    "region", "scheme", "endpoint_override", "retry_limit_seconds", "project_id",
    "allow_delayed_open", "blob_storage_authority", "dfs_storage_authority", "enable_tls", "credential_kind",
)  # fmt: skip
_DELAYED = "allow_delayed_open"
_HIDDEN = "***"
_SHORTEST = 4
"""A secret of at least this many letters is looked for in messages: shorter ones are words."""
_STORE_S = 10.0


class Place(Protocol):
    """A place holds objects by relative names, with `/`. `str` of a place is for messages: it holds no secret."""

    patience_s: float | None
    """A stop waits for the place for this long; None for as long as it takes."""

    def read(self, name: str) -> bytes | None: ...
    def put(self, name: str, data: pa.Buffer | bytes) -> None: ...
    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, without the folder's own and in order; a name that is a folder itself ends in `/`."""

    def remove(self, name: str) -> None:
        """Remove an object, if it is there."""

    def close(self) -> None: ...


def place_at(given: str, *, locked: bool = True) -> Place:
    """Return the place at a path or a URI. With `locked` a directory is for one process at a time. Raises: Locked, OSError, StoreFailed."""
    if not _URI.match(given):
        return Directory(Path(given), locked=locked)
    uri = Uri(given)
    with uri.telling():
        files, path = fs.FileSystem.from_uri(_in_one_request(given))
    return Directory(Path(path), locked=locked) if isinstance(files, fs.LocalFileSystem) else Store(files, path, uri)


def _in_one_request(given: str) -> str:
    """Make S3 take a small object in one request, where Arrow would begin, send and complete an upload in parts."""
    if not given.startswith("s3:") or _DELAYED in given:
        return given
    return f"{given}{'&' if '?' in given else '?'}{_DELAYED}=true"


def reached(given: str) -> Place:
    """Return a place that answers, for all who share it. Raises: OSError, StoreFailed."""
    place = place_at(given, locked=False)
    place.names("claims")
    return place


def named(given: str) -> str:
    """Return a path or URI as messages show it."""
    return str(Uri(given)) if _URI.match(given) else given


class Directory:
    """Keeps objects in a directory of this machine's file system. An object that is put there outlives the machine's fall."""

    patience_s: float | None = None

    def __init__(self, path: Path, *, locked: bool = True) -> None:
        """Open the directory; with `locked` it is for one exporter at a time."""
        self._path = path
        try:
            self._lock = DirectoryLock(path / "_epsparql.lock") if locked else None  # readers take no file that begins with _ for data
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

    def names(self, folder: str) -> list[str]:
        path = self._path / folder
        found = path.iterdir() if path.is_dir() else ()
        return sorted(f"{each.name}/" if each.is_dir() else each.name for each in found if not each.name.startswith("."))

    def remove(self, name: str) -> None:
        (self._path / name).unlink(missing_ok=True)

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()


class Store:
    """Keeps objects in a file system of `pyarrow.fs`, which has no locks. Its faults are StoreFailed."""

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

    def names(self, folder: str) -> list[str]:
        with self._uri.telling():
            found = self._files.get_file_info(fs.FileSelector(join(self._path, folder), allow_not_found=True))
        listed = [f"{each.base_name}/" if each.type == fs.FileType.Directory else each.base_name for each in found]
        return sorted(name for name in listed if not name.startswith("."))

    def remove(self, name: str) -> None:
        path = join(self._path, name)
        with self._uri.telling():
            try:
                self._files.delete_file(path)
            except OSError:  # not there; or it is gone, and the store does not take the empty object by which Arrow keeps the folder
                if self._files.get_file_info(path).type != fs.FileType.NotFound:
                    raise

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
        """Write an object in one call: an object that fails halfway is never closed as if it were complete."""
        with self._files.open_output_stream(path, compression=None) as stream:
            stream.write(data)


def _temporary(name: str) -> str:
    """Return a name that begins with `.`, which readers of Parquet pass over."""
    folder, last = split(name)
    return join(folder, f".{last}.tmp")


class Uri:
    """Shows a URI in messages: credentials may stand before its `@`, and among its parameters."""

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
        """Turn faults of Arrow into StoreFailed, without secrets."""
        try:
            yield
        except (OSError, ValueError, pa.ArrowException) as fault:  # ValueError: text that is no UTF-8
            raise StoreFailed(self.cleaned(str(fault))) from None

    def cleaned(self, message: str) -> str:
        message = message.replace(self._given, self._shown)
        for secret in self._secrets:
            message = message.replace(secret, _HIDDEN)
        return " ".join(message.split())  # some have lines


__all__ = ["STORE", "Directory", "Place", "Store", "Uri", "named", "place_at", "reached"]
