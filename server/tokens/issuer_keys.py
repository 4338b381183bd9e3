"""Holds the public keys by which an issuer signs its tokens (OpenID Connect Discovery 1.0; RFC 7517).

The keys are fetched in a thread, so the event loop goes on meanwhile:

- Keys younger than _FRESH_S are used. A request whose token has an unknown key waits for a fetch.
- Older ones are used, too, and a request starts a fetch without waiting for it.
- Without keys, or with those older than _STALE_S, a request waits for a fetch.

One fetch runs at a time, and all who need it wait for this one. A fetch starts _PAUSE_S after the one before it at the
earliest, so tokens with invented keys cannot make the server ask the issuer often.
"""

import asyncio
import json
import logging
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from epsparql.deferred_methods import dataclass
from server.settings import SettingsError, is_loopback

if TYPE_CHECKING:
    import httpx
    from jwt import PyJWK

_FRESH_S, _STALE_S, _PAUSE_S = 300.0, 3600.0, 5.0
_TIMEOUT_S, _ALL_S = 5.0, 10.0
"""A part of an answer may take so long, and a fetch as a whole."""
_MOST_BYTES, _MOST_KEYS = 1 << 18, 100
"""A document of the issuer may have so many bytes, and so many of its keys count."""
_CHUNK = 1 << 14
_DISCOVERY = "/.well-known/openid-configuration"
KEY_TYPES = (
    {f"{family}{bits}": "RSA" for family in ("RS", "PS") for bits in (256, 384, 512)}
    | {f"ES{bits}": "EC" for bits in (256, 384, 512)}
    | {"EdDSA": "OKP"}
)
"""The algorithms that count, each with the type of its keys. None takes a secret, so no public key can pass for one."""
_log = logging.getLogger("epsparql.tokens")


class IssuerSilent(Exception):
    """Signals that the issuer's keys cannot be had; the message says why."""

    def __init__(self, reason: str, retry_after_s: int) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


class FetchFailed(Exception):
    """Signals that a document of the issuer cannot be used; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class KeySet:
    """Holds one version of an issuer's keys as JWKs, by their ids."""

    by_id: Mapping[str, Mapping[str, Any]]
    _parsed: dict[tuple[str, str], "PyJWK"] = field(default_factory=dict, compare=False)

    def find_key(self, key_id: str, algorithm: str) -> "PyJWK | None":
        """Return a key for an algorithm of KEY_TYPES; None where the issuer has no such key.

        Raises: jwt.PyJWTError for a key that is malformed.
        """
        from jwt import PyJWK

        known = self.by_id.get(key_id)
        if known is None or known.get("kty") != KEY_TYPES[algorithm] or known.get("alg", algorithm) != algorithm:
            return None
        if (key_id, algorithm) not in self._parsed:
            self._parsed[key_id, algorithm] = PyJWK(dict(known), algorithm)
        return self._parsed[key_id, algorithm]


class IssuerKeys:
    """Fetches an issuer's keys when they are needed. Runs on the event loop, and fetches in a thread."""

    def __init__(self, issuer: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Take the issuer's URL, and a clock in seconds. Raises: SettingsError."""
        if not _is_safe(issuer):
            raise SettingsError(f"--oidc-issuer {issuer!r}: give a URL with https; http is taken for this machine alone")
        self.issuer, self._clock = issuer, clock
        self._keys: KeySet | None = None
        self._fetched_s = self._tried_s = float("-inf")
        self._failure = "they have not been fetched yet"
        self._fetching: asyncio.Task[None] | None = None

    async def read_keys(self) -> KeySet:
        """Return the keys, fetched where there are none that may still be used. Raises: IssuerSilent."""
        age_s = self._clock() - self._fetched_s
        if age_s > _FRESH_S:
            fetching = self._start_fetch()
            if age_s > _STALE_S and fetching is not None:
                await asyncio.shield(fetching)
        if self._keys is None or self._clock() - self._fetched_s > _STALE_S:
            raise self._explain_silence()
        return self._keys

    async def read_new_keys(self) -> KeySet:
        """Return the keys after a fetch, or those that are there where one has just been made. Raises: IssuerSilent."""
        fetching = self._start_fetch()
        if fetching is not None:
            await asyncio.shield(fetching)
        if self._failure:
            raise self._explain_silence()
        return await self.read_keys()

    def _explain_silence(self) -> IssuerSilent:
        pause_s = max(1, round(_PAUSE_S - (self._clock() - self._tried_s) + 0.5))
        return IssuerSilent(f"the keys of {self.issuer} cannot be read: {self._failure}", pause_s)

    def _start_fetch(self) -> "asyncio.Task[None] | None":
        """Return the fetch that runs, or a new one; None where the last one is not over for _PAUSE_S."""
        if self._fetching is None and self._clock() - self._tried_s >= _PAUSE_S:
            self._fetching = asyncio.create_task(self._fetch())
        return self._fetching

    async def _fetch(self) -> None:
        """Replace the keys, if the issuer has others by now: the same object stands for the same keys."""
        try:
            found = await asyncio.to_thread(fetch_keys, self.issuer)
            if self._keys is None or self._keys != found:
                self._keys = found
                _log.info("%s has %d keys: %s", self.issuer, len(found.by_id), ", ".join(found.by_id))
            self._fetched_s, self._failure = self._clock(), ""
        except FetchFailed as fault:
            self._failure = str(fault)
            _log.warning("the keys of %s cannot be read: %s", self.issuer, fault)
        finally:
            self._tried_s, self._fetching = self._clock(), None


def fetch_keys(issuer: str) -> KeySet:
    """Fetch the issuer's discovery document, and the keys that it names. Raises: FetchFailed."""
    import httpx

    ends_s = time.monotonic() + _ALL_S
    try:
        client = httpx.Client(verify=ssl.create_default_context(), timeout=_TIMEOUT_S, follow_redirects=False)  # the system's certificates
    except (OSError, ValueError) as error:  # what SSL_CERT_FILE or a variable of a proxy names
        raise FetchFailed(f"no connection can be made: {error}") from None
    with client:
        about = _fetch_document(client, issuer.rstrip("/") + _DISCOVERY, ends_s)
        if about.get("issuer") != issuer:
            raise FetchFailed(f"its discovery document is that of {str(about.get('issuer'))[:200]!r}; give this URL as --oidc-issuer")
        address = about.get("jwks_uri")
        if not isinstance(address, str) or not _is_safe(address):
            raise FetchFailed(f"its jwks_uri is {str(address)[:200]!r}; it has to be a URL with https")
        document = _fetch_document(client, address, ends_s)
    listed = document.get("keys")
    keys = {each["kid"]: each for each in (listed if isinstance(listed, list) else [])[:_MOST_KEYS] if _is_signing_key(each)}
    if not keys:
        raise FetchFailed(f"{address} has no public key for signatures with an id")
    return KeySet(keys)


def _is_signing_key(found: object) -> bool:
    """Return whether a member of `keys` is a public key with an id that may verify signatures."""
    if not isinstance(found, Mapping) or not isinstance(found.get("kid"), str):
        return False
    operations = found.get("key_ops", ["verify"])
    return found.get("kty") in KEY_TYPES.values() and found.get("use", "sig") == "sig" and isinstance(operations, list) and "verify" in operations


def _fetch_document(client: "httpx.Client", address: str, ends_s: float) -> dict[str, Any]:
    """Return a JSON object. Raises: FetchFailed, also where it is too large or comes too slowly."""
    import httpx

    try:
        with client.stream("GET", address, headers={"Accept": "application/json"}) as answer:
            if answer.status_code != httpx.codes.OK:
                raise FetchFailed(f"{address} answered {answer.status_code}; --oidc-issuer is the URL before {_DISCOVERY}")
            body = b""
            for part in answer.iter_bytes(_CHUNK):
                body += part
                if len(body) > _MOST_BYTES:
                    raise FetchFailed(f"{address} has more than {_MOST_BYTES} bytes")
                if time.monotonic() > ends_s:
                    raise FetchFailed(f"{address} took more than {_ALL_S:g} s")
        found = json.loads(body)
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise FetchFailed(f"{address}: {str(error) or type(error).__name__}; check that this machine reaches it") from None
    except (ValueError, RecursionError):
        raise FetchFailed(f"{address} is no JSON") from None
    if not isinstance(found, dict):
        raise FetchFailed(f"{address} is no JSON object")
    return found


def _is_safe(address: str) -> bool:
    """Return whether nobody on the way can change what comes from a URL."""
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)))
