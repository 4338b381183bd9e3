"""Verifies the JWTs of an issuer (RFC 7519, RFC 8725), and finds their scopes.

1. The header names an algorithm with public keys and a key: neither decides which algorithms count.
2. The key is one of the issuer's, which are fetched anew where it is not among them.
3. The signature holds. Only then are claims looked at: issuer, audience, times, subject.
4. Rules turn the claims into scopes.

A verified token is remembered until it expires, or until the keys or the rules change.
"""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from epsparql.extras import load_extra
from server.settings import Settings, SettingsError
from server.tokens.claim_rules import ClaimRule, load_claim_rules
from server.tokens.issuer_keys import KEY_TYPES, IssuerKeys, KeySet
from server.tokens.reloaded_file import ReloadedFile
from server.tokens.scopes import Grant

if TYPE_CHECKING:
    from jwt import PyJWK

_MOST_BYTES, _MOST_REMEMBERED = 1 << 14, 4096
_TYPES = ("jwt", "at+jwt", "application/at+jwt")
"""A token of another type, such as a logout token, is not for this use (RFC 8725, section 3.11)."""
_REQUIRED = ["exp", "iss", "aud", "sub"]
_SHOWN = 100  # characters of what a token says


class TokenRefused(Exception):
    """Signals a JWT that does not count; the message says why, and what to do."""


class _Verified(NamedTuple):
    grant: Grant
    expires_s: float


class JwtVerifier:
    """Verifies the tokens of one issuer. Runs on the event loop."""

    def __init__(self, settings: Settings, keys: IssuerKeys) -> None:
        """Read the rules of the settings, whose `oidc_issuer` is that of the keys. Raises: SettingsError, MissingExtra."""
        self._jwt = load_extra("oidc", "--oidc-issuer", "jwt")
        self._decoder = self._jwt.PyJWT({"enforce_minimum_key_length": True})
        if not settings.oidc_audience or settings.oidc_scopes is None:
            raise SettingsError(
                "--oidc-issuer needs --oidc-audience (whom the tokens are for) and --oidc-scopes (a file of '<claim>=<value> <scopes>')"
            )
        self._keys, self._audience, self._leeway_s = keys, settings.oidc_audience, settings.oidc_leeway_s
        self._rules = ReloadedFile(settings.oidc_scopes, load_claim_rules, "rules")
        self._remembered = OrderedDict[bytes, _Verified]()
        self._basis: tuple[KeySet, Sequence[ClaimRule]] | None = None

    @property
    def issuer(self) -> str:
        return self._keys.issuer

    async def verify(self, token: str) -> Grant:
        """Return what a token allows. Raises: TokenRefused; IssuerSilent where the issuer's keys cannot be had."""
        if len(token) > _MOST_BYTES:
            raise TokenRefused(f"the token has more than {_MOST_BYTES} bytes; have the issuer put fewer claims in it")
        digest, rules, keys = hashlib.sha256(token.encode()).digest(), self._rules.read_current(), await self._keys.read_keys()
        known = self._recall(digest, keys, rules)
        if known is not None:
            return known
        algorithm, key_id = self._read_header(token)
        key = self._find_key(keys, key_id, algorithm)
        if key is None:
            keys = await self._keys.read_new_keys()
            key = self._find_key(keys, key_id, algorithm)
        if key is None:
            raise TokenRefused(f"the token's key {key_id[:_SHOWN]!r} is none of {self._keys.issuer} for {algorithm}; get a token from there")
        claims = self._check_claims(token, key, algorithm)
        scopes = frozenset[str]().union(*(rule.find_scopes(claims) for rule in rules))
        grant = Grant(digest, scopes, _printable(claims["sub"]))
        self._remember(keys, rules, _Verified(grant, float(claims["exp"]) + self._leeway_s))
        return grant

    def _recall(self, digest: bytes, keys: KeySet, rules: Sequence[ClaimRule]) -> Grant | None:
        """Return what a token allows that was verified with these very keys and rules, and has not expired."""
        if self._basis is None or self._basis[0] is not keys or self._basis[1] is not rules:
            self._remembered.clear()
            self._basis = keys, rules
        known = self._remembered.get(digest)
        if known is None or known.expires_s <= time.time():
            return None
        self._remembered.move_to_end(digest)
        return known.grant

    def _remember(self, keys: KeySet, rules: Sequence[ClaimRule], verified: _Verified) -> None:
        """Remember a token, unless the keys or the rules have changed while it was verified."""
        if self._basis is None or self._basis[0] is not keys or self._basis[1] is not rules:
            return
        self._remembered[verified.grant.digest] = verified
        if len(self._remembered) > _MOST_REMEMBERED:
            self._remembered.popitem(last=False)

    def _read_header(self, token: str) -> tuple[str, str]:
        """Return the algorithm and the id of the key. Raises: TokenRefused."""
        try:
            header: Mapping[str, Any] = self._jwt.get_unverified_header(token)
        except self._jwt.PyJWTError as fault:
            raise TokenRefused(f"the token is no JWT: {fault}; send it as {self._keys.issuer} gave it") from None
        algorithm, key_id, kind = str(header.get("alg")), header.get("kid"), header.get("typ", "JWT")
        if algorithm not in KEY_TYPES:
            raise TokenRefused(f"the token's algorithm is {_printable(algorithm)!r}; it has to be one of {', '.join(KEY_TYPES)}")
        if str(kind).lower() not in _TYPES:
            raise TokenRefused(f"the token's type is {_printable(kind)!r}; send an access token")
        if not isinstance(key_id, str):
            raise TokenRefused("the token names no key ('kid' of its header); have the issuer name it")
        return algorithm, key_id

    def _find_key(self, keys: KeySet, key_id: str, algorithm: str) -> "PyJWK | None":
        try:
            return keys.find_key(key_id, algorithm)
        except self._jwt.PyJWTError as fault:
            raise TokenRefused(f"the key {key_id[:_SHOWN]!r} of {self._keys.issuer} cannot be used: {fault}") from None

    def _check_claims(self, token: str, key: "PyJWK", algorithm: str) -> Mapping[str, Any]:
        """Return the claims of a token whose signature, issuer, audience and times are right. Raises: TokenRefused."""
        jwt, issuer = self._jwt, self._keys.issuer
        try:
            claims: Mapping[str, Any] = self._decoder.decode(
                token, key, algorithms=[algorithm], audience=self._audience, issuer=issuer, leeway=self._leeway_s, options={"require": _REQUIRED}
            )
        except jwt.InvalidSignatureError:
            reason = f"its signature is not that of {issuer}; send it as the issuer gave it"
        except jwt.ExpiredSignatureError:
            reason = f"it has expired, and it is {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} here; get a new one from {issuer}"
        except (jwt.ImmatureSignatureError, jwt.InvalidIssuedAtError):
            reason = f"it is not valid yet, and it is {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} here; compare the clocks, or raise --oidc-leeway-s"
        except jwt.InvalidAudienceError:
            reason = f"it is for another audience; ask {issuer} for one with 'aud' {' or '.join(self._audience)}"
        except jwt.InvalidIssuerError:
            reason = f"its 'iss' is another issuer; get one from {issuer}"
        except jwt.MissingRequiredClaimError as fault:
            reason = f"it lacks the claim '{fault.claim}'; have {issuer} add it"
        except (jwt.PyJWTError, ValueError, OverflowError) as fault:
            reason = f"{_printable(fault)}; get another one from {issuer}"
        else:
            return claims
        raise TokenRefused(f"the token is refused: {reason}")


def _printable(said: object) -> str:
    """Return what a token says for a message or a log, without control characters."""
    return "".join(each if each.isprintable() else "\ufffd" for each in str(said)[:_SHOWN])
