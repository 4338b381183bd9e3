"""This module takes the URIs of object stores apart, and shows them in messages without their secrets."""

import re
from urllib.parse import unquote

URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_NO_SECRETS = (
    "region", "scheme", "endpoint_override", "retry_limit_seconds", "project_id",
    "allow_delayed_open", "blob_storage_authority", "dfs_storage_authority", "enable_tls", "credential_kind",
)  # fmt: skip
_HIDDEN = "***"
_SHORTEST = 4
"""A secret of at least this many letters is looked for in messages: shorter ones are words."""


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

    def redact(self, message: str) -> str:
        message = message.partition("\n\nDebug source:")[0].replace(self._given, self._shown)
        for secret in self._secrets:
            message = message.replace(secret, _HIDDEN)
        return " ".join(message.split())  # some have lines


def redact_uri(given: str) -> str:
    """Return a path or URI as messages show it."""
    return str(StoreUri(given)) if URI.match(given) else given
