"""Lets users of the console sign in at the issuer: the authorization code flow with PKCE (RFC 6749, RFC 7636).

1. The console sends its user to the issuer's page, with a challenge.
2. The issuer leads back to the console, with a code.
3. The console sends the code and its verifier to the server, which passes them on to the issuer's token endpoint.
4. The issuer's tokens go back to the console.

The server passes the third step on, so that pages need not reach the issuer. It adds no secret, and keeps nothing.
"""

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

from server.settings import Settings, SettingsError
from server.tokens.issuer_documents import FetchFailed, IssuerReader
from server.tokens.issuer_keys import IssuerKeys, KeySet

_AT_ONCE = 4
_WORDS = 300  # characters of the issuer's reason
_TOLD = ("access_token", "refresh_token", "expires_in")
_OWN = ("client_id", "response_type", "redirect_uri", "state", "code_challenge", "code_challenge_method", "response_mode")


class SignInRefused(Exception):
    """Signals that the issuer gave no tokens; the message says why."""


class SignIn:
    """Speaks with the issuer for the console. Runs on the event loop."""

    def __init__(self, settings: Settings, keys: IssuerKeys) -> None:
        """Take settings whose `oidc_client_id` is given. Raises: SettingsError."""
        self._keys, self._client_id = keys, settings.oidc_client_id or ""
        self._asked = dict(parse_qsl(settings.oidc_request))
        if not self._asked or not self._asked.keys().isdisjoint(_OWN):
            raise SettingsError(
                f"--oidc-request {settings.oidc_request!r}: give parameters such as scope=openid&audience=epsparql, without {_OWN[0]}"
            )
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def describe_offer(self) -> dict[str, Any]:
        """Return where the console sends its user, and with which parameters beside its own. Raises: as the others."""
        keys = await self._read_endpoints()
        return {"address": keys.authorization_endpoint, "parameters": {**self._asked, "client_id": self._client_id, "response_type": "code"}}

    async def exchange_code(self, code: str, verifier: str, redirect_uri: str) -> dict[str, Any]:
        """Return the tokens for a code. Raises: SignInRefused, IssuerSilent."""
        return await self._request_tokens({"grant_type": "authorization_code", "code": code, "code_verifier": verifier, "redirect_uri": redirect_uri})

    async def refresh_tokens(self, refresh_token: str) -> dict[str, Any]:
        """Return new tokens for a refresh token. Raises: SignInRefused, IssuerSilent."""
        return await self._request_tokens({"grant_type": "refresh_token", "refresh_token": refresh_token})

    async def _read_endpoints(self) -> KeySet:
        """Return what is known of the issuer, with both endpoints. Raises: SignInRefused, IssuerSilent."""
        keys = await self._keys.read_keys()
        if not keys.authorization_endpoint or not keys.token_endpoint:
            raise SignInRefused(f"{self._keys.issuer} names no endpoints with https to sign in at; enter a token")
        return keys

    async def _request_tokens(self, form: Mapping[str, str]) -> dict[str, Any]:
        endpoint = (await self._read_endpoints()).token_endpoint
        async with self._turns:
            return await asyncio.to_thread(_post_form, endpoint, {**form, "client_id": self._client_id})


def _post_form(endpoint: str, form: Mapping[str, str]) -> dict[str, Any]:
    """Return the tokens that the issuer gives for a form. Raises: SignInRefused."""
    try:
        with IssuerReader() as reader:
            status, found = reader.read_document(endpoint, form)
    except FetchFailed as fault:
        raise SignInRefused(f"the issuer cannot be asked: {fault}") from None
    if status != HTTPStatus.OK or not isinstance(found.get("access_token"), str):
        reason = str(found.get("error_description") or found.get("error") or f"it answered {status}")[:_WORDS]
        raise SignInRefused(f"the issuer gives no token: {reason}; sign in again")
    return {name: found[name] for name in _TOLD if name in found}
