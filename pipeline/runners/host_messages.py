"""This module defines what a host of engines yields, and what it is told of a data directory elsewhere."""

from pathlib import Path

from engine.messages import Outcome, StateChange
from epsparql.deferred_methods import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Advance:
    """Holds what the entries [lo, hi) brought."""

    lo: int
    hi: int
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Names a data directory that is on another machine, and kept in a store that this one reaches.

    `near` is where this machine may keep a copy of the log; `ended` are the changes of state that are known.
    """

    store: str
    near: Path
    ended: tuple[StateChange, ...] = ()
