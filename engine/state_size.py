"""This module counts the size of a query's state, and limits it by quotas.

Sizes are counted, not measured, so that a limit is met at the same entry of the log on every machine and by every
version.
"""

from epsparql.deferred_methods import dataclass

GOAL_BYTES, VARIABLE_BYTES = 64, 8
"""A goal has bytes for its links with its share of the index, and bytes for each variable of its query."""
INSTANCE_BYTES, PARAMETER_BYTES = 256, 96
"""An instance has bytes for its id and its row, and bytes for the term of each parameter, with its cells in tables."""


@dataclass(frozen=True, slots=True)
class Quota:
    """Limits how many goals a query may keep, and how many bytes of state; 0 is no limit."""

    goals: int = 0
    state_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """Counts the goals that a query keeps, and the bytes of its whole state, with its instances."""

    goals: int
    state_bytes: int


@dataclass(frozen=True, slots=True)
class Own:
    """Counts what the engine keeps for all queries: terms, answers to the kernel's questions, and the bytes of all
    its arrays, used or in reserve.

    Queries that reach the same streams share one of the `networks`; those that are behind have others.
    """

    terms: int
    answers: int
    reserved_bytes: int
    networks: int = 0


def goal_bytes(variables: int) -> int:
    """Return the bytes of a goal of a query with so many variables."""
    return GOAL_BYTES + VARIABLE_BYTES * variables


def instance_bytes(parameters: int) -> int:
    """Return the bytes of an instance of a query with so many parameters."""
    return INSTANCE_BYTES + PARAMETER_BYTES * parameters


def excess(name: str, usage: Usage, quota: Quota) -> str | None:
    """Return why a query is stopped; None while it is within its limits."""
    if 0 < quota.goals < usage.goals:
        found = f"stores {usage.goals} partial matches, more than the limit of {quota.goals} (max_partial_matches)"
    elif 0 < quota.state_bytes < usage.state_bytes:
        found = f"keeps {usage.state_bytes} bytes of state, more than the limit of {quota.state_bytes} (max_state_bytes)"
    else:
        return None
    limited = "WITHIN, FILTER(getDURATION() < ...), a WINDOW, fewer instances or a known end of a path"
    return f"{name} {found}: limit its state with {limited}, or raise the limit"
