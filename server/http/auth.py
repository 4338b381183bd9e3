"""Decides who may do what: bearer tokens have scopes, and browsers may come from some origins only."""

import base64
import hashlib
import hmac
import logging
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from starlette.datastructures import Headers

from epsparql.errors import explain_unreadable
from server.http.problem_details import Fault, Problem
from server.settings import EVERY_ORIGIN, SettingsError, is_loopback

ADMIN, METRICS = "admin", "metrics"
TOKEN_PROTOCOL = "epsparql.bearer."
_log = logging.getLogger("epsparql.tokens")
_origins_log = logging.getLogger("epsparql.origins")
_REFUSED_ORIGINS, _ORIGIN_CHARACTERS = 100, 200
"""The log names so many refused origins, and so much of each."""
NOBODY = "anybody on this machine"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_SCOPE = re.compile(r"admin|metrics|(ingest|read):\S+")
_AUTHORITY = re.compile(r"(?:([A-Za-z0-9.-]+)|\[([0-9A-Fa-f:.]+)\])(?::\d{1,5})?")
_COMMENT = re.compile(r"(^|\s)#.*")


def ingest_scope(stream: str) -> str:
    return f"ingest:{stream}"


def read_scope(query: str) -> str:
    return f"read:{query}"


@dataclass(frozen=True, slots=True)
class Grant:
    """Holds a token's SHA-256 and what the token allows; `ingest:*` and `read:*` stand for all names."""

    digest: bytes
    scopes: frozenset[str]

    def allows(self, scope: str) -> bool:
        """Return whether the token holds `scope`; for a kind alone, such as `read:`, whether it holds a scope of that
        kind.
        """
        if scope.endswith(":"):
            return ADMIN in self.scopes or any(each.startswith(scope) for each in self.scopes)
        return includes_scope(self.scopes, scope)


def includes_scope(scopes: frozenset[str], scope: str) -> bool:
    """Return whether `scope` is among the scopes, by its name, by a star, or through admin."""
    return not scopes.isdisjoint((ADMIN, scope, scope.partition(":")[0] + ":*"))


@dataclass(frozen=True, slots=True)
class Caller:
    """Identifies who asks, as the server's logs name them, and whether they may learn of names that they did not ask
    for.
    """

    who: str
    all_names: bool
    scopes: frozenset[str] = frozenset((ADMIN,))

    def may(self, scope: str) -> bool:
        """Return whether the caller's scopes hold `scope`, by its name, by a star, or through admin."""
        return includes_scope(self.scopes, scope)


class TokenFile:
    """Holds the grants of a token file, which is read again when it has changed.

    While it cannot be read, the grants before it hold.
    """

    def __init__(self, path: Path) -> None:
        """Read the file. Raises: SettingsError."""
        self._path, self._signature = path, _signature_of(path)
        self._grants = load_grants(path)

    def read_grants(self) -> Sequence[Grant]:
        """Return the grants as the file has them now."""
        signature = _signature_of(self._path)
        if signature != self._signature:
            self._signature = signature
            try:
                self._grants = load_grants(self._path)
                _log.info("%s was read again: it holds %d tokens", self._path, len(self._grants))
            except SettingsError as fault:
                _log.error("the tokens of before hold, because the new ones cannot be read: %s", fault)
        return self._grants


def _signature_of(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


class Gate:
    """Decides on requests. Without tokens (loopback only) every request is allowed."""

    def __init__(self, tokens: TokenFile | None, origins: Sequence[str] = ()) -> None:
        self._tokens, self._origins = tokens, frozenset(origins)
        self._issued: dict[str, Grant] = {}
        self._refused = set[str]()

    def issue_token(self, holder: str, scope: str) -> str | None:
        """Return a token for what the server itself starts, which allows `scope` alone, in place of the holder's
        token before.

        The result is None where no request needs a token.
        """
        if self._tokens is None:
            return None
        token = secrets.token_urlsafe(32)
        self._issued[holder] = Grant(hashlib.sha256(token.encode()).digest(), frozenset((scope,)))
        return token

    def authorize(self, headers: Headers, scope: str) -> Caller:
        """Return who asks, named by the beginning of the token's digest.

        Raises: Fault 401 without a known token; 403 for a token that lacks `scope`, for a foreign origin, or for a
        host that is not this machine.
        """
        self.check_origin(headers)
        if self._tokens is None:
            self._check_host(headers.get("host", ""))
            return Caller(NOBODY, all_names=True)
        grant = self._find_grant(headers)
        if grant is None:
            challenge = {"WWW-Authenticate": "Bearer"}
            raise Fault(
                Problem(HTTPStatus.UNAUTHORIZED, "no-token", "a known bearer token is needed: 'Authorization: Bearer <token>'", headers=challenge)
            )
        if not grant.allows(scope):
            raise Fault(
                Problem(
                    HTTPStatus.FORBIDDEN,
                    "not-allowed",
                    f"the token lacks the scope '{scope}{'…' * scope.endswith(':')}'; the operator may add it to the token file",
                )
            )
        return Caller(f"token {grant.digest.hex()[:12]}", grant.allows(scope.partition(":")[0] + ":*"), grant.scopes)

    def check_origin(self, headers: Headers) -> None:
        """Refuse the pages of a foreign origin.

        Raises: Fault 403, which names the setting that allows the origin; the log has it once for each origin.
        """
        if self.same_origin(headers):
            return
        origin = headers["origin"][:_ORIGIN_CHARACTERS]
        detail = f"pages of {origin} may not use this server; to allow them, add the origin to --origins (EPSPARQL_ORIGINS)"
        if origin not in self._refused and len(self._refused) < _REFUSED_ORIGINS:
            self._refused.add(origin)
            _origins_log.warning("%s", detail)
        raise Fault(Problem(HTTPStatus.FORBIDDEN, "foreign-origin", detail))

    def _check_host(self, host: str) -> None:
        """Accept only names of this machine where there are no tokens.

        Any other name that leads here is a web page's trick to pass for the server itself.

        Raises: Fault 403.
        """
        if not is_loopback(_host_of(host)) and host not in map(_authority_of, self._origins):
            detail = f"{host!r} is not this machine; use localhost, or add its origin to EPSPARQL_ORIGINS"
            raise Fault(Problem(HTTPStatus.FORBIDDEN, "foreign-host", detail))

    def _find_grant(self, headers: Headers) -> Grant | None:
        token = _token_of(headers)
        if token is None:
            return None
        digest = hashlib.sha256(token.encode()).digest()
        found = None
        granted = () if self._tokens is None else self._tokens.read_grants()
        for grant in (*granted, *self._issued.values()):  # always all of them, so that timing tells nothing
            if hmac.compare_digest(grant.digest, digest):
                found = grant
        return found

    def same_origin(self, headers: Headers) -> bool:
        """Return whether the request has no Origin, which browsers send, or that of the server itself, or one that
        the operator named.
        """
        origin = headers.get("origin")
        if origin is None or origin in self._origins or EVERY_ORIGIN in self._origins:
            return True
        return _authority_of(origin) == headers.get("host")


def _token_of(headers: Headers) -> str | None:
    """Return the token of the `Authorization` header, or the one in the subprotocols, in base64url.

    Pages send it there, because they cannot choose the headers of their WebSockets.
    """
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    offered = (each.strip() for each in headers.get("sec-websocket-protocol", "").split(","))
    coded = next((each.removeprefix(TOKEN_PROTOCOL) for each in offered if each.startswith(TOKEN_PROTOCOL)), None)
    if coded is None:
        return None
    try:
        return base64.urlsafe_b64decode(coded + "=" * (-len(coded) % 4)).decode()
    except ValueError:  # no base64, or no text
        return None


def _authority_of(origin: str) -> str:
    return origin.partition("://")[2]


def _host_of(authority: str) -> str:
    """Return the host of a Host header, without a port.

    The result is empty for what is no such header, though a reader of URLs would find a host in it.
    """
    found = _AUTHORITY.fullmatch(authority)
    return (found[1] or found[2]).lower() if found else ""


def load_grants(path: Path) -> tuple[Grant, ...]:
    """Read a token file: each line has a token's SHA-256 in hex and its scopes.

    `#` starts a comment, but not within a word, because IRIs contain it.

    Raises: SettingsError with the line.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"--token-file {path} cannot be read: {explain_unreadable(error)}") from None
    grants = [_grant_of(path, number, words) for number, line in enumerate(lines, 1) if (words := _COMMENT.sub("", line).split())]
    if not grants:
        raise SettingsError(f"--token-file {path} holds no token; a line is '<sha256 of the token in hex> <scopes>'")
    return tuple(grants)


def _grant_of(path: Path, number: int, words: Sequence[str]) -> Grant:
    digest, *scopes = words
    if not _DIGEST.fullmatch(digest):
        raise SettingsError(f"{path}:{number}: expected the SHA-256 of a token as 64 hex digits (printf %s TOKEN | sha256sum)")
    wrong = [scope for scope in scopes if not _SCOPE.fullmatch(scope)]
    if wrong or not scopes:
        raise SettingsError(
            f"{path}:{number}: expected scopes out of admin, metrics, ingest:<stream>, read:<query>" + (f", found {wrong[0]!r}" if wrong else "")
        )
    return Grant(bytes.fromhex(digest), frozenset(scopes))
