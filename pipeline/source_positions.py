"""This module has source positions: how far the system that a body comes from was read, so that each part of it is
accepted once (docs/sources.md).

stored position      None      "17"      "17"
body                after None after "17" after "12"
                    to "17"   to "30"   to "17"
answer              accepted  accepted  duplicate: it is in the log already; anything else is refused
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from engine.messages import Micros
from epsparql.deferred_methods import dataclass
from pipeline.errors import FormatError, SourceConflict, TooManySources

LONGEST_ID = 255
LONGEST_POSITION = 2048
"""A source's id and a position have at most this many characters."""
MOST_SOURCES = 10_000
"""A stream stores the positions of at most this many sources."""
MOST_DECLARED = 1000
"""A stream declares at most this many sources."""
LONGEST_HEADER = 12 * (2 * LONGEST_POSITION + LONGEST_ID) + 200
"""A source as JSON in ASCII has at most this many characters: the escape of one character has up to twelve."""
_EXPECTED = (
    'an object such as {"id": "readings-0", "after": "41", "position": "57"}, '
    f"with an id of at most {LONGEST_ID} and positions of at most {LONGEST_POSITION} characters"
)

Position = Annotated[str, Meta(min_length=1, max_length=LONGEST_POSITION)]


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Says where a body comes from: it takes the source `id` from the position `after` (None: from its beginning) to
    `position`.

    With `position` None the stream forgets the source. `reset` accepts the body whatever position is stored.
    """

    id: Annotated[str, Meta(min_length=1, max_length=LONGEST_ID)]
    position: Position | None
    after: Position | None = None
    reset: bool = False


@dataclass(frozen=True, slots=True)
class SourceState:
    """Represents a source as of some log position.

    `offset` is the log position after the entry that stored `position`, `arrived` the clock then. `latest` is the
    greatest end of all its events.
    """

    position: str
    offset: int
    arrived: Micros
    latest: Micros | None = None


def parse_source(text: str | bytes) -> Source:
    """Read a source from its JSON. Raises: FormatError."""
    try:
        found = msgspec.json.decode(text, type=Source)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as fault:
        raise FormatError("source", f"the source cannot be read: {fault}", expected=_EXPECTED) from None
    if found.position == found.after and not found.reset:
        raise FormatError("source", "the source's position is the one after which it comes; each body has a new position", expected=_EXPECTED)
    return found


def judge_source(stream: str, source: Source, stored: SourceState | None, known: int, rows: int) -> bool:
    """Return whether a body of so many `rows` is to be accepted; False where the log has it already. `known` counts
    the stream's sources.

    Raises: SourceConflict, TooManySources, FormatError.
    """
    position = None if stored is None else stored.position
    if source.position is None and rows:
        raise FormatError("source", "a body that lets the stream forget its source has events; send it without any", expected="a position")
    if source.reset or source.after == position:
        if stored is None and source.position is not None and known >= MOST_SOURCES:
            raise TooManySources(stream, known)
        return True
    if source.position == position:
        return False
    raise SourceConflict(stream, source.id, source.after, position)
