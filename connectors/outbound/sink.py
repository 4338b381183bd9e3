"""Defines what every system that is written to does."""

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

from epsparql.client import segment
from epsparql.deferred_methods import dataclass


@dataclass(frozen=True, slots=True)
class Cursor:
    """Says how far a sink is: the registration of the query, the id of the last solution of it, and how many there
    were up to it.
    """

    registered: int
    id: str
    written: int

    def __str__(self) -> str:
        return f"{self.registered}/{self.id}/{self.written}"


def parse_cursor(text: str) -> Cursor:
    """Parse what `str` of a cursor gave. Raises: ValueError."""
    registered, id_, written = text.split("/")
    return Cursor(int(registered), id_, int(written))


@dataclass(frozen=True, slots=True)
class SolutionMessage:
    """Represents a solution to write: `document` is what the server wrote as `text`. `cursor` is that of the sink
    after it.

    A solution that is `withdrawn` stands no more.
    """

    document: dict[str, Any]
    text: bytes
    cursor: Cursor
    withdrawn: bool = False

    @property
    def key(self) -> str:
        """Return what tells the solution apart from all others of this server: query, registration and id."""
        return f"{segment(self.document['query'])}/{self.cursor.registered}-{self.cursor.id}"


class Sink(Protocol):
    """Writes solutions to a system, which also stores how far it is. Every method raises SystemFault where the system
    does not answer.

    Only a sink that `takes_changes` is given solutions that are withdrawn.
    """

    takes_changes: ClassVar[bool] = False

    def fetch_cursor(self) -> Cursor | None:
        """Connect. Return the stored cursor, None if there is none."""

    def write(self, solutions: Sequence[SolutionMessage]) -> None:
        """Write solutions and the cursor after the last one."""

    def close(self) -> None:
        """Disconnect. This raises nothing, and may be called twice."""
