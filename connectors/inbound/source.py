"""Defines what every system that is read from does."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from epsparql.deferred_methods import dataclass
from epsparql.events.media_types import LINES, N_QUADS, N_TRIPLES, NDJSON

BY_LINE = (NDJSON, N_TRIPLES, N_QUADS, LINES)
"""In these formats each line stands for itself."""


@dataclass(frozen=True, slots=True)
class Message:
    """Represents a message with the position after it. Whoever resumes there is given the next message first.

    `media_type` is its own format, where that is not the connector's. A body of messages begins with their `head`,
    such as the header of CSV. `part` names the part of the system that the position belongs to, where each part has
    positions of its own. `origin` says where the message came from, such as its topic, for whoever must mend it.
    """

    payload: bytes
    position: str
    media_type: str | None = None
    head: bytes = b""
    part: str = ""
    origin: str = ""


def find_kind(media_type: str) -> str:
    """Return a media type without its parameters."""
    return media_type.partition(";")[0].strip().lower()


class Source(Protocol):
    """Reads the messages of a system in order. Every method raises SystemFault where the system does not answer."""

    has_positions: bool = True
    """Says whether `seek` can resume at a position; otherwise the system itself remembers what was confirmed."""

    has_parts: bool = False
    """Says whether parts of the system, such as partitions, have positions of their own."""

    def seek(self, position: str | None) -> None:
        """Connect, and resume after a position; None: from the first message.

        Each class has its own `seek` or its own `seek_parts`.
        """
        self.seek_parts({} if position is None else {"": position})

    def seek_parts(self, positions: Mapping[str, str]) -> None:
        """Do as `seek` does, with the positions by part. A system without parts has one, whose name is empty."""
        self.seek(positions.get(""))

    def read(self, most: int, wait_s: float) -> Sequence[Message]:
        """Return up to `most` of the next messages; wait for a first one for about `wait_s`.

        The log holds those that were returned before.
        """

    def confirm(self, position: str) -> None:
        """Tell the system that the log holds all messages up to a position; nothing, where the system stores no
        position.
        """
        return

    def get_lag(self) -> int | None:
        """Return how many messages are there that `read` has not returned, if the system tells."""
        return None

    def count_missed(self) -> int:
        """Return how many messages were gone before they could be read, since `seek`."""
        return 0

    def close(self) -> None:
        """Disconnect. This raises nothing, and may be called twice."""
