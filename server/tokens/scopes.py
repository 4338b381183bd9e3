"""Defines scopes: what a token may be allowed."""

import re

from epsparql.deferred_methods import dataclass

ADMIN, METRICS = "admin", "metrics"
EXPECTED_SCOPES = "admin, metrics, ingest:<stream>, read:<query>, read:<query>/<instance>, instances:<query>"
_SCOPE = re.compile(r"admin|metrics|(ingest|read|instances):\S+")


def ingest_scope(stream: str) -> str:
    return f"ingest:{stream}"


def read_scope(query: str) -> str:
    return f"read:{query}"


def instance_scope(query: str, instance: str) -> str:
    """Return the scope for the solutions of one instance of a query with PARAMETERS."""
    return f"read:{query}/{instance}"


def instances_scope(query: str) -> str:
    """Return the scope for adding, changing and removing instances of a query."""
    return f"instances:{query}"


def is_scope(text: str) -> bool:
    """Return whether a token may be given this scope; names in it have no spaces."""
    return _SCOPE.fullmatch(text) is not None


def includes_scope(scopes: frozenset[str], scope: str) -> bool:
    """Return whether `scope` is among the scopes, by its name, by a star, or through admin."""
    return not scopes.isdisjoint((ADMIN, scope, scope.partition(":")[0] + ":*"))


@dataclass(frozen=True, slots=True)
class Grant:
    """Holds a token's SHA-256 and what the token allows; `ingest:*`, `read:*` and `instances:*` stand for all names.

    `subject` is the subject of a JWT; other tokens have none.
    """

    digest: bytes
    scopes: frozenset[str]
    subject: str | None = None

    @property
    def holder(self) -> str:
        """Return how the server's logs name the token's holder."""
        return f"token {self.digest.hex()[:12]}" if self.subject is None else f"subject {self.subject}"

    def allows(self, scope: str) -> bool:
        """Return whether the token holds `scope`; for a kind alone, such as `read:`, whether it holds a scope of that
        kind.
        """
        if scope.endswith(":"):
            return ADMIN in self.scopes or any(each.startswith(scope) for each in self.scopes)
        return includes_scope(self.scopes, scope)
