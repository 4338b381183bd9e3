"""This module defines what a host of engines yields."""

from dataclasses import dataclass

from engine.messages import Outcome


@dataclass(frozen=True, slots=True, eq=False)
class Advance:
    """Holds what the entries [lo, hi) brought. Many solutions may lie in a file instead; then its name is here, and no solutions."""

    lo: int
    hi: int
    outcome: Outcome
    file: str | None = None
