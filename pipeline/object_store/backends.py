"""This module reaches directories, and object stores through obstore: S3, Google Cloud Storage and Azure. An object there is whole, and stays."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from posixpath import basename
from secrets import token_hex
from typing import Any, Protocol
from urllib.parse import unquote

import obstore
import pyarrow as pa
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import AzureStore, GCSStore, S3Store

from pipeline.errors import Locked, StoreFailed
from pipeline.log.lock import DirectoryLock
from pipeline.log.segments import sync_directory

STORE = "EPSPARQL_STORE"
"""This variable names the store in which a data directory is kept."""
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_NO_SECRETS = (
    "region", "scheme", "endpoint_override", "retry_limit_seconds", "project_id",
    "allow_delayed_open", "blob_storage_authority", "dfs_storage_authority", "enable_tls", "credential_kind",
)  # fmt: skip
_IGNORED = ("scheme", "endpoint_override", "retry_limit_seconds", "project_id", "allow_delayed_open", "enable_tls")
"""These parameters of a URI are no settings of obstore's clients by these names."""
_HIDDEN = "***"
_SHORTEST = 4
"""A secret of at least this many letters is looked for in messages: shorter ones are words."""
_LONGEST_KEY = 1024
"""S3, GCS and Azure have no longer keys, in bytes."""
_STORE_S = 10.0
_WAITS: Any = {"connect_timeout": "5s", "read_timeout": "10s", "timeout": "120s"}
"""A client waits this long for a connection, for the next bytes of an answer, and for all of a request."""
_RETRIES: Any = {"max_retries": 2, "retry_timeout": timedelta(seconds=20)}
_Client = S3Store | GCSStore | AzureStore


class ObjectStore(Protocol):
    """A store holds objects by relative names, with `/`. `str` of a store is for messages: it holds no secret."""

    patience_s: float | None
    """A stop waits for the store for this long; None for as long as it takes."""

    def read(self, name: str) -> bytes | None: ...
    def put(self, name: str, data: pa.Buffer | bytes) -> None: ...
    def create(self, name: str, data: bytes) -> bool:
        """Put an object unless there is one of that name; return whether it was put. A call that fails may have put it."""

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, without the folder's own and in order; a name that is a folder itself ends in `/`."""

    def remove(self, name: str) -> None:
        """Remove an object, if it is there."""

    def close(self) -> None: ...


def open_store(given: str, *, locked: bool = True) -> ObjectStore:
    """Return the store at a path or a URI. With `locked` a directory is for one process at a time. Raises: Locked, OSError, StoreFailed."""
    if not _URI.match(given):
        return DirectoryStore(Path(given), locked=locked)
    uri = StoreUri(given)
    if uri.scheme == "file":
        return DirectoryStore(Path(f"/{unquote(uri.path)}"), locked=locked)
    return RemoteStore(connect_client(uri), uri)


def connect_store(given: str) -> ObjectStore:
    """Return a store that answers, for all who share it. Raises: OSError, StoreFailed."""
    store = open_store(given, locked=False)
    store.names("manifests")
    return store


def redact_uri(given: str) -> str:
    """Return a path or URI as messages show it."""
    return str(StoreUri(given)) if _URI.match(given) else given


class DirectoryStore:
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
        self._write_temporary(path, data).replace(path)
        sync_directory(path.parent)

    def create(self, name: str, data: bytes) -> bool:
        path = self._path / name
        temporary = self._write_temporary(path, data)
        try:
            os.link(temporary, path)  # fails where there is one
        except FileExistsError:
            return False
        finally:
            temporary.unlink()
        sync_directory(path.parent)
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


class RemoteStore:
    """Keeps objects in a store that is reached by HTTP. Its faults are StoreFailed."""

    patience_s: float | None = _STORE_S

    def __init__(self, client: _Client, uri: "StoreUri") -> None:
        self._client, self._uri = client, uri

    def __str__(self) -> str:
        return str(self._uri)

    def read(self, name: str) -> bytes | None:
        with self._uri.redact_faults():
            try:
                return bytes(obstore.get(self._client, name).bytes())
            except FileNotFoundError:
                return None

    def put(self, name: str, data: pa.Buffer | bytes) -> None:
        with self._uri.redact_faults():
            obstore.put(self._client, name, memoryview(data).cast("B"))  # Arrow's are of signed bytes

    def create(self, name: str, data: bytes) -> bool:
        with self._uri.redact_faults():
            try:
                obstore.put(self._client, name, data, mode="create", use_multipart=False)
            except AlreadyExistsError:
                return False
        return True

    def names(self, folder: str) -> list[str]:
        if len(folder.encode()) > _LONGEST_KEY:
            return []  # no store has such an object, and the client panics at a URI of 64 KiB
        with self._uri.redact_faults():
            found = obstore.list_with_delimiter(self._client, f"{folder}/")
        listed = [f"{basename(each.rstrip('/'))}/" for each in found["common_prefixes"]]
        listed += [basename(each["path"]) for each in found["objects"] if each["path"] != folder]  # other clients mark a folder by an object
        return sorted(name for name in listed if not name.startswith("."))

    def remove(self, name: str) -> None:
        with self._uri.redact_faults():
            try:
                obstore.delete(self._client, name)
            except FileNotFoundError:
                return

    def close(self) -> None:
        pass


class StoreUri:
    """Takes a URI apart, and shows it in messages: credentials may stand before its `@`, and among its parameters."""

    def __init__(self, given: str) -> None:
        scheme, rest = re.split(r"(?<=:)/+", given, maxsplit=1)
        user, at, rest = str(rest).rpartition("@")  # the last one, for a secret that should have been encoded may hold any letter
        path, _, query = rest.partition("?")
        self.user, self.path = user, path
        parameters = [part for part in query.split("&") if part]
        told = [part for part in parameters if part.partition("=")[0] in _NO_SECRETS]
        hidden = [part for part in parameters if part not in told]
        self.scheme = scheme[:-1]
        self.parameters = {name: unquote(value) for name, _, value in (part.partition("=") for part in parameters)}
        self._given = given
        self._shown = f"{scheme}//{_HIDDEN if at else ''}{at}{path}" + ("?" if parameters else "") + "&".join([*told, *([_HIDDEN] if hidden else [])])
        secrets = [user, *re.split("[:?&=]", user), *hidden, *(part.partition("=")[2] for part in hidden)]
        self._secrets = sorted({each for secret in secrets for each in (secret, unquote(secret)) if len(each) >= _SHORTEST}, key=len, reverse=True)

    def __str__(self) -> str:
        return self._shown

    @contextmanager
    def redact_faults(self) -> Iterator[None]:
        """Turn faults of the client into StoreFailed, without secrets."""
        try:
            yield
        except (BaseError, OSError, ValueError) as fault:  # ValueError: text that is no UTF-8
            raise StoreFailed(self.redact(str(fault))) from None

    def redact(self, message: str) -> str:
        message = message.partition("\n\nDebug source:")[0].replace(self._given, self._shown)
        for secret in self._secrets:
            message = message.replace(secret, _HIDDEN)
        return " ".join(message.split())  # some have lines


def connect_client(uri: StoreUri) -> _Client:
    """Return the client that a URI describes. Parameters of Arrow's URIs mean what they meant; others are obstore's. Raises: StoreFailed."""
    parameters = uri.parameters
    settings: dict[str, Any] = {name: value for name, value in parameters.items() if name not in _IGNORED}
    http = parameters.get("scheme") == "http"
    endpoint = f"{'http' if http else 'https'}://{parameters['endpoint_override']}" if "endpoint_override" in parameters else None
    bucket, _, prefix = uri.path.strip("/").partition("/")
    user, _, secret = (unquote(part) for part in uri.user.partition(":"))
    kind: type[_Client]
    match uri.scheme:
        case "s3":
            kind = S3Store
            keys = {"access_key_id": user, "secret_access_key": secret, "endpoint": endpoint}
        case "gs" | "gcs":
            kind = GCSStore
            keys = {"skip_signature": "true" if user == "anonymous" else None, "base_url": endpoint}
        case "abfs" | "abfss":
            kind = AzureStore
            keys = {"account_name": bucket.partition(".")[0], "account_key": secret, "endpoint": endpoint}
            bucket, _, prefix = (user, "", prefix) if user else prefix.partition("/")
        case other:
            raise StoreFailed(f"{other}: is not the scheme of a store; give s3:, gs:, abfs: or a directory")
    if not bucket:
        raise StoreFailed("it names no bucket")
    settings |= {name: value for name, value in keys.items() if value}
    with uri.redact_faults():
        return kind(unquote(bucket), prefix=unquote(prefix) or None, client_options=_WAITS | {"allow_http": http}, retry_config=_RETRIES, **settings)


__all__ = ["STORE", "DirectoryStore", "ObjectStore", "RemoteStore", "StoreUri", "connect_store", "open_store", "redact_uri"]
