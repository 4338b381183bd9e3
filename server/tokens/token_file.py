"""Reads a token file: each line has a token's SHA-256 in hex and its scopes."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from epsparql.errors import explain_unreadable
from server.settings import SettingsError
from server.tokens.scopes import EXPECTED_SCOPES, Grant, is_scope

_DIGEST = re.compile(r"[0-9a-f]{64}")
_COMMENT = re.compile(r"(^|\s)#.*")


def load_grants(path: Path) -> tuple[Grant, ...]:
    """Read the file of --token-file. Raises: SettingsError with the line."""
    grants = tuple(_grant_of(f"{path}:{number}", line.split()) for number, line in read_lines("--token-file", path))
    if not grants:
        raise SettingsError(f"--token-file {path} holds no token; a line is '<sha256 of the token in hex> <scopes>'")
    return grants


def read_lines(flag: str, path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not empty without their comment, with their numbers from 1.

    `#` starts a comment, but not within a word, because IRIs contain it. Raises: SettingsError, which names the `flag`.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{flag} {path} cannot be read: {explain_unreadable(error)}") from None
    return ((number, text) for number, line in enumerate(lines, 1) if (text := _COMMENT.sub("", line).strip()))


def check_scopes(place: str, scopes: Sequence[str]) -> frozenset[str]:
    """Return the scopes of a line as a set. Raises: SettingsError for what is no scope, or for a line without any."""
    wrong = [scope for scope in scopes if not is_scope(scope)]
    if wrong or not scopes:
        raise SettingsError(f"{place}: expected scopes out of {EXPECTED_SCOPES}" + (f", found {wrong[0]!r}" if wrong else ""))
    return frozenset(scopes)


def _grant_of(place: str, words: Sequence[str]) -> Grant:
    digest, *scopes = words
    if not _DIGEST.fullmatch(digest):
        raise SettingsError(f"{place}: expected the SHA-256 of a token as 64 hex digits (printf %s TOKEN | sha256sum)")
    return Grant(bytes.fromhex(digest), check_scopes(place, scopes))
