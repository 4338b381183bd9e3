"""This module reaches object stores through obstore: S3, Google Cloud Storage and Azure."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from posixpath import basename
from typing import Any
from urllib.parse import unquote

import obstore
import pyarrow as pa
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import AzureStore, GCSStore, S3Store

from pipeline.errors import StoreFailed
from pipeline.object_store.store_uri import StoreUri

_IGNORED = ("scheme", "endpoint_override", "retry_limit_seconds", "project_id", "allow_delayed_open", "enable_tls")
"""These parameters of a URI are no settings of obstore's clients by these names."""
_LONGEST_KEY = 1024
"""S3, GCS and Azure have no longer keys, in bytes."""
_STORE_S = 10.0
_WAITS: Any = {"connect_timeout": "5s", "read_timeout": "10s", "timeout": "120s"}
"""A client waits this long for a connection, for the next bytes of an answer, and for all of a request."""
_RETRIES: Any = {"max_retries": 2, "retry_timeout": timedelta(seconds=20)}
_Client = S3Store | GCSStore | AzureStore


class RemoteStore:
    """Keeps objects in a store that is reached by HTTP. Its faults are StoreFailed."""

    patience_s: float | None = _STORE_S

    def __init__(self, client: _Client, uri: StoreUri) -> None:
        self._client, self._uri = client, uri

    def __str__(self) -> str:
        return str(self._uri)

    def read(self, name: str) -> bytes | None:
        with _redact_faults(self._uri):
            try:
                return bytes(obstore.get(self._client, name).bytes())
            except FileNotFoundError:
                return None

    def put(self, name: str, data: pa.Buffer | bytes) -> None:
        with _redact_faults(self._uri):
            obstore.put(self._client, name, memoryview(data).cast("B"))  # Arrow's are of signed bytes

    def create(self, name: str, data: bytes) -> bool:
        with _redact_faults(self._uri):
            try:
                obstore.put(self._client, name, data, mode="create", use_multipart=False)
            except AlreadyExistsError:
                return False
        return True

    def names(self, folder: str) -> list[str]:
        if len(folder.encode()) > _LONGEST_KEY:
            return []  # no store has such an object, and the client panics at a URI of 64 KiB
        with _redact_faults(self._uri):
            found = obstore.list_with_delimiter(self._client, f"{folder}/")
        listed = [f"{basename(each.rstrip('/'))}/" for each in found["common_prefixes"]]
        listed += [basename(each["path"]) for each in found["objects"] if each["path"] != folder]  # other clients mark a folder by an object
        return sorted(name for name in listed if not name.startswith("."))

    def remove(self, name: str) -> None:
        with _redact_faults(self._uri):
            try:
                obstore.delete(self._client, name)
            except FileNotFoundError:
                return

    def close(self) -> None:
        pass


@contextmanager
def _redact_faults(uri: StoreUri) -> Iterator[None]:
    """Turn faults of the client into StoreFailed, without secrets."""
    try:
        yield
    except (BaseError, OSError, ValueError) as fault:  # ValueError: text that is no UTF-8
        raise StoreFailed(uri.redact(str(fault))) from None


def connect_client(uri: StoreUri) -> _Client:
    """Return the client that a URI describes.

    Parameters of Arrow's URIs mean what they meant; others are obstore's. Raises: StoreFailed.
    """
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
    with _redact_faults(uri):
        return kind(unquote(bucket), prefix=unquote(prefix) or None, client_options=_WAITS | {"allow_http": http}, retry_config=_RETRIES, **settings)
