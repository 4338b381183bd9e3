"""This module keeps objects in directories, and opens object stores by their URIs.

An object in a store is whole, and stays.
"""

import os
from pathlib import Path
from secrets import token_hex
from typing import Protocol
from urllib.parse import unquote

import pyarrow as pa

from epsparql.durable_files import sync_path
from pipeline.errors import Locked
from pipeline.log.lock import DirectoryLock
from pipeline.object_store.store_uri import URI, StoreUri

STORE = "EPSPARQL_STORE"
"""This variable names the store in which a data directory is kept."""


class ObjectStore(Protocol):
    """A store holds objects by relative names, with `/`. `str` of a store is for messages: it holds no secret."""

    patience_s: float | None
    """A stop waits for the store for this long; None for as long as it takes."""

    def read(self, name: str) -> bytes | None: ...
    def put(self, name: str, data: pa.Buffer | bytes) -> None: ...
    def create(self, name: str, data: bytes) -> bool:
        """Put an object unless there is one of that name; return whether it was put. A call that fails may have put it."""

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, without the folder's own and in order; a name that is a folder itself ends in
        `/`.
        """

    def remove(self, name: str) -> None:
        """Remove an object, if it is there."""

    def close(self) -> None: ...


def open_store(given: str, *, locked: bool = True) -> ObjectStore:
    """Return the store at a path or a URI.

    With `locked` a directory is for one process at a time. Raises: Locked, OSError, StoreFailed.
    """
    if not URI.match(given):
        return DirectoryStore(Path(given), locked=locked)
    uri = StoreUri(given)
    if uri.scheme == "file":
        return DirectoryStore(Path(f"/{unquote(uri.path)}"), locked=locked)
    from pipeline.object_store.remote_store import RemoteStore, connect_client  # obstore takes 4 MB, and most servers have no such store

    return RemoteStore(connect_client(uri), uri)


def connect_store(given: str) -> ObjectStore:
    """Return a store that answers, for all who share it. Raises: OSError, StoreFailed."""
    store = open_store(given, locked=False)
    store.names("manifests")
    return store


class DirectoryStore:
    """Keeps objects in a directory of this machine's file system.

    An object that is put there outlives the machine's fall.
    """

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
        self._write_temporary(path, data).replace(path)
        sync_path(path.parent)

    def create(self, name: str, data: bytes) -> bool:
        path = self._path / name
        temporary = self._write_temporary(path, data)
        try:
            os.link(temporary, path)  # fails where there is one
        except FileExistsError:
            return False
        finally:
            temporary.unlink()
        sync_path(path.parent)
        return True

    def names(self, folder: str) -> list[str]:
        path = self._path / folder
        found = path.iterdir() if path.is_dir() else ()
        return sorted(f"{each.name}/" if each.is_dir() else each.name for each in found if not each.name.startswith("."))

    def remove(self, name: str) -> None:
        (self._path / name).unlink(missing_ok=True)

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()

    @staticmethod
    def _write_temporary(path: Path, data: pa.Buffer | bytes) -> Path:
        """Write a file beside `path` whose name begins with `.`, which readers of Parquet pass over."""
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{token_hex(8)}.tmp")
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return temporary


__all__ = ["STORE", "DirectoryStore", "ObjectStore", "connect_store", "open_store"]
