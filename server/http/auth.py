"""Decides who may do what: bearer tokens have scopes, and browsers may come from some origins only."""

import base64
import hashlib
import hmac
import logging
import re
import secrets
from collections.abc import Sequence
from http import HTTPStatus

from starlette.datastructures import Headers

from epsparql.deferred_methods import dataclass
from server.http.problem_details import Fault, Problem
from server.settings import EVERY_ORIGIN, is_loopback
from server.tokens.issuer_keys import IssuerSilent
from server.tokens.jwt_verification import JwtVerifier, TokenRefused
from server.tokens.reloaded_file import ReloadedFile
from server.tokens.scopes import ADMIN, Grant, includes_scope
from server.tokens.sign_in import SignIn

TOKEN_PROTOCOL = "epsparql.bearer."
_origins_log = logging.getLogger("epsparql.origins")
_REFUSED_ORIGINS, _ORIGIN_CHARACTERS = 100, 200
"""The log names so many refused origins, and so much of each."""
NOBODY = "anybody on this machine"
_DOTS_OF_A_JWT = 2
_AUTHORITY = re.compile(r"(?:([A-Za-z0-9.-]+)|\[([0-9A-Fa-f:.]+)\])(?::\d{1,5})?")


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


class Gate:
    """Decides on requests. Without tokens and JWTs (loopback only) every request is allowed."""

    def __init__(
        self, tokens: ReloadedFile[Grant] | None, origins: Sequence[str] = (), jwts: JwtVerifier | None = None, sign_in: SignIn | None = None
    ) -> None:
        self._tokens, self._jwts, self._origins = tokens, jwts, frozenset(origins)
        self.sign_in = sign_in
        self._is_open = tokens is None and jwts is None
        self._issued: dict[str, Grant] = {}
        self._refused = set[str]()

    def issue_token(self, holder: str, scope: str) -> str | None:
        """Return a token for what the server itself starts, which allows `scope` alone, in place of the holder's
        token before.

        The result is None where no request needs a token.
        """
        if self._is_open:
            return None
        token = secrets.token_urlsafe(32)
        self._issued[holder] = Grant(hashlib.sha256(token.encode()).digest(), frozenset((scope,)))
        return token

    async def authorize(self, headers: Headers, scope: str, wider: str | None = None) -> Caller:
        """Return who asks, named by the beginning of the token's digest, or by the subject of a JWT. A token with the
        scope `wider` will do, too.

        Raises: Fault 401 without a known token; 403 for a token that lacks `scope`, for a foreign origin, or for a
        host that is not this machine; 503 for a JWT while the keys of its issuer cannot be read.
        """
        self.check_origin(headers)
        if self._is_open:
            self._check_host(headers.get("host", ""))
            return Caller(NOBODY, all_names=True)
        grant = await self._find_grant(_token_of(headers))
        if not grant.allows(scope) and (wider is None or not grant.allows(wider)):
            place = "the token file" if grant.subject is None else "the file of --oidc-scopes, for one of the token's claims"
            detail = f"the token lacks the scope '{scope}{'…' * scope.endswith(':')}'; the operator may add it to {place}"
            raise Fault(Problem(HTTPStatus.FORBIDDEN, "not-allowed", detail))
        return Caller(grant.holder, grant.allows(scope.partition(":")[0] + ":*"), grant.scopes)

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

    async def _find_grant(self, token: str | None) -> Grant:
        """Return what a token allows. Raises: Fault 401, 503."""
        if token is not None:
            known = self._find_known(hashlib.sha256(token.encode()).digest())
            if known is not None:
                return known
            if self._jwts is not None and token.count(".") == _DOTS_OF_A_JWT:
                return await self._verify_jwt(self._jwts, token)
        detail = "a known bearer token is needed: 'Authorization: Bearer <token>'"
        if self._jwts is not None:
            detail += f"; {self._jwts.issuer} gives tokens, too"
        raise Fault(Problem(HTTPStatus.UNAUTHORIZED, "no-token", detail, headers={"WWW-Authenticate": "Bearer"}))

    def _find_known(self, digest: bytes) -> Grant | None:
        """Return the grant of a token of the token file, or of one that the server issued."""
        found = None
        granted = () if self._tokens is None else self._tokens.read_current()
        for grant in (*granted, *self._issued.values()):  # always all of them, so that timing tells nothing
            if hmac.compare_digest(grant.digest, digest):
                found = grant
        return found

    async def _verify_jwt(self, jwts: JwtVerifier, token: str) -> Grant:
        """Return what a JWT allows. Raises: Fault 401, 503."""
        try:
            return await jwts.verify(token)
        except TokenRefused as fault:
            challenge = {"WWW-Authenticate": 'Bearer error="invalid_token"'}  # RFC 6750, section 3
            raise Fault(Problem(HTTPStatus.UNAUTHORIZED, "invalid-token", str(fault), headers=challenge)) from None
        except IssuerSilent as fault:
            headers = {"Retry-After": str(fault.retry_after_s)}
            raise Fault(Problem(HTTPStatus.SERVICE_UNAVAILABLE, "issuer-silent", str(fault), headers=headers)) from None

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
