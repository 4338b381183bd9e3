"""This module holds what the server says to a client, and the errors of both clients."""

import json
from collections.abc import Mapping
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode

from epsparql.deferred_methods import dataclass
from epsparql.solutions.solution import Solution, solution_of


class ApiError(Exception):
    """Carries the server's problem document for a request or a frame."""

    def __init__(self, problem: Mapping[str, Any]) -> None:
        super().__init__(problem)
        self.problem = problem

    @property
    def status(self) -> int:
        return int(self.problem.get("status", 0))

    @property
    def code(self) -> str:
        return str(self.problem.get("code", ""))

    def __str__(self) -> str:
        place = f"line {self.problem['line']}, column {self.problem.get('column')}: " if "line" in self.problem else ""
        return f"{self.status} {self.code}: {place}{self.problem.get('detail', '')}"


class Unreachable(Exception):
    """The server did not answer within the client's patience."""


class Closed(Exception):
    """The server closed a WebSocket for good; `code` says why (interfaces.md)."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(code, reason)
        self.code, self.reason = code, reason

    def __str__(self) -> str:
        return f"closed with {self.code}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Progress:
    """Says that no solution with an `end` below `watermark` will follow; with `finished`, none at all."""

    watermark: str
    finished: bool


@dataclass(frozen=True, slots=True)
class Gap:
    """Says that a subscriber with the policy `drop-oldest` was too slow for some solutions.

    There are `missed` of them, beyond the id `after`, up to the id `resume`.
    """

    after: str
    resume: str
    missed: int


@dataclass(frozen=True, slots=True)
class Promoted:
    """Says that another text took the query's place at the log position `position`: later solutions are those of
    version `after`.

    `before` and `after` are numbers of versions, and `sha256` is that of the new text. The subscription resumes after
    `id`.
    """

    id: str
    position: int
    before: int
    after: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Change:
    """Says which solutions of a revised query came, or stand no more. Reading resumes after `seq`.

    What ends before `settled` is decided for good: an xsd:dateTime in UTC, None before there is one, or `finished`.
    With `more`, the next change belongs to the same entry of the log.
    """

    query: str
    seq: str
    added: tuple[Solution, ...]
    withdrawn: tuple[Solution, ...]
    settled: str | None
    more: bool = False


def change_of(document: Mapping[str, Any]) -> Change:
    """Return the change of a line of ndjson, or of a message, that the server sent."""
    query, seq = document["query"], document["seq"]
    added, withdrawn = (tuple(solution_of({"query": query, **each}) for each in document[member]) for member in ("added", "withdrawn"))
    return Change(query, seq, added, withdrawn, document["settled"], document.get("more", False))


class StandingSolutions(dict[str, Solution]):
    """Holds the solutions of a revised query that stand, by id, once its changes were given to `apply`."""

    def apply(self, change: Change) -> None:
        for solution in change.withdrawn:
            del self[solution.id]
        self.update((solution.id, solution) for solution in change.added)


@dataclass(frozen=True, slots=True)
class Source:
    """Says where a body comes from: it takes the source `id` from the position `after` (None: from its beginning) to
    `position`.

    The server accepts it once. With `position` None the stream forgets the source; `reset` accepts the body whatever
    position is stored.
    """

    id: str
    after: str | None
    position: str | None
    reset: bool = False

    def to_json(self) -> str:
        """Return the value of the header Epsparql-Source, in ASCII."""
        found = {"id": self.id, "after": self.after, "position": self.position}
        return json.dumps(found | {"reset": True} if self.reset else found)


@dataclass(frozen=True, slots=True)
class Accepted:
    """Says what the server accepted.

    `offset` is the log position after the events; a `duplicate` was accepted before, as its source position says.
    `rejected` counts rows that did not map, and `first_rejected` says what is wrong with the first one. A `warning`
    names a time of the body that was not read as the events' own, or a source that the stream does not declare.
    """

    offset: int
    accepted: int
    late: int
    warning: str = ""
    duplicate: bool = False
    rejected: int = 0
    first_rejected: Mapping[str, Any] | None = None


def accepted_of(found: Mapping[str, Any]) -> Accepted:
    """Return what an answer to a body says."""
    return Accepted(
        found["offset"],
        found["accepted"],
        found.get("late", 0),
        found.get("warning", ""),
        found.get("duplicate", False),
        found.get("rejected", 0),
        found.get("first_rejected"),
    )


Word: TypeAlias = Solution | Change | Progress | Gap | Promoted


def query_path(query: str, instance: str | None = None) -> str:
    """Return the path of a query, or of one of its instances."""
    return f"/queries/{segment(query)}" + ("" if instance is None else f"/instances/{segment(instance)}")


class SubscriptionCursor:
    """Remembers how far a subscription is: `last` is the id of the newest solution or notice received, where to resume."""

    def __init__(self, query: str, after: str | None, policy: str, instance: str | None = None) -> None:
        self._place, self.last, self._policy = query_path(query, instance), after, policy

    @property
    def path(self) -> str:
        parameters = {"policy": self._policy} | ({"after": self.last} if self.last else {})
        return f"{self._place}/feed?{urlencode(parameters)}"

    def told(self, message: Mapping[str, Any]) -> Word | None:
        """Return what a message says; None for a message of a kind that is not known."""
        if "solution" in message:
            solution = solution_of(message["solution"])
            self.last = solution.id
            return solution
        if "change" in message:
            change = change_of(message["change"])
            self.last = change.seq
            return change
        if "gap" in message:
            gap = Gap(**message["gap"])
            self.last = gap.resume
            return gap
        if "promoted" in message:
            told = message["promoted"]
            self.last = told["id"]
            return Promoted(told["id"], told["position"], told["from"]["version"], told["to"]["version"], told["to"]["sha256"])
        if "progress" in message:
            return Progress(message["progress"]["watermark"], bool(message["progress"].get("finished")))
        return None


def segment(name: str) -> str:
    """Return a name as one path segment."""
    return quote(name, safe="")


def from_source(frame: str, source: Source | None) -> str:
    """Return a frame with the line that names its source."""
    return frame if source is None else f'{{"source": {source.to_json()}}}\n{frame}'
