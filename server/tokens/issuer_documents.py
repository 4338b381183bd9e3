"""Reads documents of an issuer over HTTP, in bounds of size and time. Its functions block: call them in a thread."""

import json
import ssl
import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

from server.settings import is_loopback

_TIMEOUT_S, _ALL_S = 5.0, 10.0
"""A part of an answer may take so long, and all answers that one client reads."""
_MOST_BYTES, _CHUNK = 1 << 18, 1 << 14


class FetchFailed(Exception):
    """Signals that a document of the issuer cannot be used; the message says why, and what to do."""


class IssuerAnswer(NamedTuple):
    """Holds the status of an answer and its JSON object, which is empty where an answer of a fault has none."""

    status: int
    document: dict[str, Any]


class IssuerReader:
    """Reads JSON objects, all within _ALL_S. Use it as a context manager."""

    def __init__(self) -> None:
        """Trust the certificates that the system trusts, as clients do. Raises: FetchFailed."""
        import httpx

        self._ends_s = time.monotonic() + _ALL_S
        try:
            self._client = httpx.Client(verify=ssl.create_default_context(), timeout=_TIMEOUT_S, follow_redirects=False)
        except (OSError, ValueError) as error:  # what SSL_CERT_FILE or a variable of a proxy names
            raise FetchFailed(f"no connection can be made: {error}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def read_document(self, address: str, form: Mapping[str, str] | None = None) -> IssuerAnswer:
        """Return the answer to a GET, or to the POST of a form. Raises: FetchFailed."""
        import httpx

        method, headers = "GET" if form is None else "POST", {"Accept": "application/json"}
        try:
            with self._client.stream(method, address, headers=headers, data=form) as answer:
                body = b""
                for part in answer.iter_bytes(_CHUNK):
                    body += part
                    if len(body) > _MOST_BYTES:
                        raise FetchFailed(f"{address} has more than {_MOST_BYTES} bytes")
                    if time.monotonic() > self._ends_s:
                        raise FetchFailed(f"{address} took more than {_ALL_S:g} s")
            found = _parse_json(body)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise FetchFailed(f"{address}: {str(error) or type(error).__name__}; check that this machine reaches it") from None
        if found is None and answer.status_code == HTTPStatus.OK:
            raise FetchFailed(f"{address} is no JSON object")
        return IssuerAnswer(answer.status_code, found or {})


def _parse_json(body: bytes) -> dict[str, Any] | None:
    """Return a JSON object; None for what is none."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def is_safe(address: object) -> bool:
    """Return whether this is a URL such that nobody on the way can change what comes from it."""
    try:
        parts = urlsplit(address if isinstance(address, str) else "")
        host = parts.hostname or ""
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)))
