"""Consumption policies say which matches the operators of a query may use (docs/language/time.md, Consumption policies)."""

import re

UNRESTRICTED, RECENT, RECENT_LONGEST, CHRONOLOGICAL = ("unrestricted", "recent", "recent-longest", "chronological")
POLICIES = (UNRESTRICTED, RECENT, RECENT_LONGEST, "recent-by ?v", CHRONOLOGICAL)
"""These are the policies as a reader is told of them; `?v` stands for any variable."""
_RECENT_BY = re.compile(r"recent-by\s+[?$]([^\W\d]\w*|\d\w*)")


class PolicyFault(ValueError):
    """Reports that a requested policy, or the query that it was requested for, does not exist."""


def read_policy(text: str) -> str:
    """Return a policy as it is stored, `recent-by ?v` with one blank and a question mark. Raises: PolicyFault."""
    if (found := _RECENT_BY.fullmatch(text.strip())) is not None:
        return f"recent-by ?{found[1]}"
    if text in (UNRESTRICTED, RECENT, RECENT_LONGEST, CHRONOLOGICAL):
        return text
    raise PolicyFault(f"{text!r} is no policy; expected {', '.join(POLICIES[:-1])} or {POLICIES[-1]}")


def is_recent(policy: str) -> bool:
    """Return whether a policy keeps the latest match alone, whichever of several that end together that is."""
    return policy.startswith(RECENT)


def find_deciding_variable(policy: str) -> str | None:
    """Return the name of the variable of `recent-by ?v`, None for the other policies."""
    return policy.partition("?")[2] or None
