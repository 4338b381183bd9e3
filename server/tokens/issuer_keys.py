"""Holds the public keys by which an issuer signs its tokens (OpenID Connect Discovery 1.0; RFC 7517).

The keys are fetched in a thread, so the event loop goes on meanwhile:

- Keys younger than _FRESH_S are used. A request whose token has an unknown key waits for a fetch.
- Older ones are used, too, and a request starts a fetch without waiting for it.
- Without keys, or with those older than _STALE_S, a request waits for a fetch.

One fetch runs at a time, and all who need it wait for this one. A fetch starts _PAUSE_S after the one before it at the
earliest, so tokens with invented keys cannot make the server ask the issuer often.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from epsparql.deferred_methods import dataclass
from server.settings import SettingsError
from server.tokens.issuer_documents import FetchFailed, IssuerReader, is_safe

if TYPE_CHECKING:
    from jwt import PyJWK

_FRESH_S, _STALE_S, _PAUSE_S = 300.0, 3600.0, 5.0
_MOST_KEYS = 100
"""So many keys of an issuer count."""
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


@dataclass(frozen=True, slots=True)
class KeySet:
    """Holds one version of an issuer's keys as JWKs, by their ids, and where users sign in; empty where it does not
    say.
    """

    by_id: Mapping[str, Mapping[str, Any]]
    authorization_endpoint: str = ""
    token_endpoint: str = ""
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
        if not is_safe(issuer):
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
    with IssuerReader() as reader:
        status, about = reader.read_document(issuer.rstrip("/") + _DISCOVERY)
        if status != HTTPStatus.OK:
            raise FetchFailed(f"{issuer.rstrip('/')}{_DISCOVERY} answered {status}; --oidc-issuer is the URL before {_DISCOVERY}")
        if about.get("issuer") != issuer:
            raise FetchFailed(f"its discovery document is that of {str(about.get('issuer'))[:200]!r}; give this URL as --oidc-issuer")
        address = about.get("jwks_uri")
        if not is_safe(address):
            raise FetchFailed(f"its jwks_uri is {str(address)[:200]!r}; it has to be a URL with https")
        listed = reader.read_document(str(address)).document.get("keys")
    keys = {each["kid"]: each for each in (listed if isinstance(listed, list) else [])[:_MOST_KEYS] if _is_signing_key(each)}
    if not keys:
        raise FetchFailed(f"{address} has no public key for signatures with an id")
    return KeySet(keys, _safe_address(about, "authorization_endpoint"), _safe_address(about, "token_endpoint"))


def _safe_address(about: Mapping[str, Any], name: str) -> str:
    return str(about[name]) if is_safe(about.get(name)) else ""


def _is_signing_key(found: object) -> bool:
    """Return whether a member of `keys` is a public key with an id that may verify signatures."""
    if not isinstance(found, Mapping) or not isinstance(found.get("kid"), str):
        return False
    operations = found.get("key_ops", ["verify"])
    return found.get("kty") in KEY_TYPES.values() and found.get("use", "sig") == "sig" and isinstance(operations, list) and "verify" in operations
