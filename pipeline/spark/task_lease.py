"""This module decides which attempt at a resident task may work: the latest, for as long as its driver wants one.

A small file lies on the storage that driver and tasks share. The lock of the solution log keeps two attempts from
writing at a time. The claim makes the older one give way, so that the younger one gets that lock.
"""

import os
import time
from contextlib import suppress
from pathlib import Path

from epsparql.deferred_methods import dataclass

_LOOK_S = 0.05
NOBODY = -1
"""A driver starts with this attempt."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Names an attempt at a task.

    `run` is the driver's own name for itself; `attempt` grows with each task that Spark starts for it.
    """

    path: Path
    run: str
    attempt: int = NOBODY

    def take_lease(self) -> bool:
        """Take the claim. Return False where the driver wants none any more, or a later attempt has come before."""
        found = self._found()
        if found is None or found > self.attempt:
            return False
        making = self.path.with_name(f"{self.path.name}.{self.attempt}.tmp")
        with suppress(FileNotFoundError):  # the driver has just left, and its directory with it
            making.write_text(f"{self.run} {self.attempt}\n", encoding="ascii")
            making.replace(self.path)
        return self.is_held()

    def offer(self) -> None:
        """Offer the claim, as the driver: from now on attempts may take it."""
        self.path.write_text(f"{self.run} {NOBODY}\n", encoding="ascii")

    def withdraw(self) -> None:
        """Withdraw the claim, as the driver: its holder is to end in an orderly way."""
        self.path.unlink(missing_ok=True)

    def offered(self) -> bool:
        """Tell whether the driver wants a task."""
        return self._found() is not None

    def is_held(self) -> bool:
        return self._found() == self.attempt

    def _found(self) -> int | None:
        """Return the attempt that holds the claim, if it is this run's."""
        try:
            run, attempt = self.path.read_text(encoding="ascii").split()
        except FileNotFoundError:
            return None
        return int(attempt) if run == self.run else None


class Tenure:
    """Tells a task when it is over: when its claim is lost, or when the process that looks after its worker is gone."""

    def __init__(self, claim: Claim) -> None:
        self._claim, self._parent = claim, os.getppid()

    @property
    def orphaned(self) -> bool:
        return os.getppid() != self._parent

    def is_set(self) -> bool:
        return not self._claim.is_held() or self.orphaned

    def wait(self, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while not (over := self.is_set()) and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(_LOOK_S, left))
        return over
