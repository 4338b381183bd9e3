"""Writes events of a stream as lines.

An event's id is the log position after its body, and its number in the body, such as 42-1.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from pipeline.formats.batches.timestamps import iso
from pipeline.inspection.recent_rows import RecentRows

_ID = re.compile(r"(\d{1,18})-(\d{1,18})", re.ASCII)


class EventId(NamedTuple):
    """Identifies an event of a stream; ids grow in the order of arrival."""

    offset: int
    number: int

    def __str__(self) -> str:
        return f"{self.offset}-{self.number}"


def parse_event_id(text: str) -> EventId:
    """Return the id that a text gives. Raises: ValueError."""
    found = _ID.fullmatch(text)
    if found is None or int(found[1]) < 1:
        raise ValueError(f"{text[:40]!r} is not the id of an event; expected one such as 42-1")
    return EventId(int(found[1]), int(found[2]))


class EventLine(NamedTuple):
    """Holds one event as a line of JSON."""

    id: EventId
    text: str


def write_events(piece: RecentRows) -> Iterator[EventLine]:
    """Yield the events in the order of the piece."""
    columns = {name: piece.rows.column(name) for name in piece.rows.schema.names}
    arrived = iso(piece.arrived)
    for row in range(piece.rows.num_rows):
        number = EventId(piece.offset + 1, piece.first + row + 1)
        terms = {name: columns[name][row].as_py() for name in "spog"}
        times = {name: iso(columns[name][row].value) for name in ("start", "end")}
        event = {"id": str(number), **terms, **times, "arrived": arrived, "late": columns["late"][row].as_py(), "offset": number.offset}
        yield EventLine(number, json.dumps(event, ensure_ascii=False))


def write_event_texts(piece: RecentRows) -> Iterator[str]:
    return (event.text for event in write_events(piece))


def write_quads(piece: RecentRows) -> Iterator[str]:
    """Yield the events as N-Quads, without their times."""
    for row in range(piece.rows.num_rows):
        yield " ".join(term for name in "spog" if (term := piece.rows.column(name)[row].as_py()) is not None) + " ."


LineWriter = Callable[[RecentRows], Iterator[str]]
