"""Reads the rules that turn the claims of a JWT into scopes.

A line gives scopes to the tokens whose claim has a value, or names a claim whose values are scopes themselves:

    groups=operators      read:* ingest:readings
    "groups=Plant admins" admin
    realm_access.roles=epsparql-reader  read:*
    permissions
"""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from epsparql.deferred_methods import dataclass
from server.settings import SettingsError
from server.tokens.scopes import is_scope
from server.tokens.token_file import check_scopes, read_lines

_FORM = "a line is '<claim>=<value> <scopes>', or '<claim>' where its values are scopes"
_MOST_VALUES = 1_000


@dataclass(frozen=True, slots=True)
class ClaimRule:
    """Gives `scopes` to a token whose `claim` has the `value`; without a value, those of the claim's values that are
    scopes.
    """

    claim: str
    value: str | None
    scopes: frozenset[str]

    def find_scopes(self, claims: Mapping[str, Any]) -> frozenset[str]:
        """Return the scopes that the rule gives to a token with these claims."""
        values = list_values(claims, self.claim)
        if self.value is None:
            return frozenset(filter(is_scope, values))
        return self.scopes if self.value in values else frozenset()


def list_values(claims: Mapping[str, Any], name: str) -> list[str]:
    """Return the values of a claim as texts: those of a list, or the text and its words.

    Dots lead into objects, where no claim has the whole name. The first _MOST_VALUES values of a claim count.
    """
    found: Any = claims
    for step in [name] if name in claims else name.split("."):
        found = found.get(step) if isinstance(found, Mapping) else None
    match found:
        case str():
            return [found, *found.split()[:_MOST_VALUES]]  # `scope` holds words (RFC 8693, section 4.2)
        case list():
            return [each for each in found[:_MOST_VALUES] if isinstance(each, str)]
        case bool():
            return ["true" if found else "false"]
        case _:
            return []


def load_claim_rules(path: Path) -> Sequence[ClaimRule]:
    """Read the file of --oidc-scopes. Raises: SettingsError with the line."""
    rules = tuple(_rule_of(f"{path}:{number}", line) for number, line in read_lines("--oidc-scopes", path))
    if not rules:
        raise SettingsError(f"--oidc-scopes {path} holds no rule; {_FORM}")
    return rules


def _rule_of(place: str, line: str) -> ClaimRule:
    try:
        subject, *scopes = shlex.split(line)
    except ValueError as fault:
        raise SettingsError(f"{place}: {str(fault).lower()}; {_FORM}") from None
    claim, equals, value = subject.partition("=")
    if not claim or bool(equals) != bool(scopes) or bool(equals) != bool(value):
        raise SettingsError(f"{place}: found {line[:100]!r}; {_FORM}")
    return ClaimRule(claim, value, check_scopes(place, scopes)) if equals else ClaimRule(claim, None, frozenset())
