"""Observers: the webhooks of queries, each with what it was told. One small file each, so that a restart goes on where deliveries were."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

KEPT = 100
"""Deliveries given up that are still told of; `given_up` counts all of them."""
_DETAIL = 300  # characters of an error


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A solution that its receiver did not take; it is still in the solution log."""

    id: str
    attempts: int
    error: str
    at: str


@dataclass(slots=True)
class Observer:
    """`registered` is the registration whose solutions `last` counts among: the id of the newest one delivered or given up.

    `state` is active or disabled, the latter after the receiver answered 410 Gone. `attempts` are those of the delivery at work.
    """

    query: str
    id: str
    url: str
    secret: str
    registered: int
    last: str | None
    created: str
    state: str = "active"
    delivered: int = 0
    given_up: int = 0
    attempts: int = 0
    error: str | None = None
    next_try: str | None = None
    dead: list[GivenUp] = field(default_factory=list)

    def failed(self, error: str, next_try: str | None) -> None:
        self.attempts += 1
        self.error, self.next_try = error[:_DETAIL], next_try

    def done(self, solution: str) -> None:
        self.last, self.attempts, self.error, self.next_try = solution, 0, None, None
        self.delivered += 1

    def give_up(self, solution: str, at: str) -> None:
        """Of the delivery at work. The error stays, so that it can be seen why."""
        self.dead = [*self.dead[1 - KEPT :], GivenUp(solution, self.attempts, self.error or "", at)]
        self.last, self.attempts, self.next_try = solution, 0, None
        self.given_up += 1


class ObserverFiles:
    """The observers of a data directory. Secrets are in there, so only the owner may read it."""

    def __init__(self, data: Path) -> None:
        self._directory = data / "observers"

    def load(self) -> Iterator[Observer]:
        """Raises: ValueError for a file that holds no observer, naming it."""
        for path in sorted(self._directory.glob("*.json")):
            try:
                yield msgspec.json.decode(path.read_bytes(), type=Observer)
            except msgspec.MsgspecError as error:
                raise ValueError(f"{path} holds no observer: {error}; delete it, or restore it from a copy") from None

    def save(self, observer: Observer, *, durable: bool = False) -> None:
        """In one step. A position that a crash of the machine takes back is only delivered again; what was asked for (`durable`) must not go."""
        self._directory.mkdir(mode=0o700, exist_ok=True)
        path = self.path(observer.query, observer.id)
        temporary = path.with_suffix(".tmp")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(observer))
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
        if durable:
            self._sync()

    def delete(self, query: str, id_: str) -> None:
        with suppress(FileNotFoundError):
            self.path(query, id_).unlink()
            self._sync()

    def _sync(self) -> None:
        descriptor = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def path(self, query: str, id_: str) -> Path:
        """By a digest: names may be longer than a file's may, and hold what it may not."""
        digest = hashlib.sha256(f"{query}\0{id_}".encode()).hexdigest()
        return self._directory / f"{digest[:32]}.json"
