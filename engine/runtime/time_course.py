"""This module remembers how far the streams had come at some positions of the log, so that another engine can begin
to read there.

The positions lie the closer together, the later they are.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict, field, replace
from typing import Any

from engine.messages import Micros
from engine.runtime.watermarks import StreamTime
from epsparql.deferred_methods import dataclass

_MOST_PLACES, _THINNED = 64, 48
_MOST_STREAMS = 256
"""With more streams, what a place holds costs too much."""
_STEP = 16
"""Places are so many entries apart at least."""


@dataclass(frozen=True, slots=True)
class Place:
    """Holds the streams' times before the entry at a position."""

    position: int
    streams: dict[str, StreamTime]


@dataclass(slots=True)
class TimeCourse:
    """Holds places of a log, in its order, and the last entry that changed the background or dropped a stream."""

    places: list[Place] = field(default_factory=list)
    last_break: int = -1
    _due: int = 0  # the position from which on another place is noted

    def note(self, position: int, streams: Mapping[str, StreamTime]) -> None:
        """Note how far the streams have come before a position."""
        if position < self._due or len(streams) > _MOST_STREAMS:
            return
        self.places.append(Place(position, {name: replace(stream) for name, stream in streams.items()}))
        self._due = position + _STEP + len(streams)
        if len(self.places) > _MOST_PLACES:
            self.places[:_THINNED] = self.places[:_THINNED:2]

    def find_place(self, since: Micros, streams: Collection[str], begun: int) -> Place | None:
        """Return the last place that no event of these streams comes before which ends at `since` or later; None if
        there is none after the last break.

        Events before the entry `begun` do not count.
        """
        for place in reversed(self.places):
            if place.position <= self.last_break:
                return None
            if place.position <= begun or all(place.streams[name].latest < since for name in streams if name in place.streams):
                return place
        return None

    def to_json(self) -> dict[str, Any]:
        """Return the course as JSON, which `restored` takes."""
        places = [[place.position, {name: asdict(stream) for name, stream in place.streams.items()}] for place in self.places]
        return {"last_break": self.last_break, "places": places}

    @classmethod
    def restored(cls, kept: Mapping[str, Any]) -> "TimeCourse":
        places = [Place(position, {name: StreamTime(**values) for name, values in streams.items()}) for position, streams in kept["places"]]
        due = places[-1].position + _STEP + len(places[-1].streams) if places else 0
        return cls(places, kept["last_break"], due)
