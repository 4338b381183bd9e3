"""This module reads published data sets: heights of the sea, weather and airports, speeds on roads, and timetables as
GTFS feeds.
"""

import csv
import io
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import IO

from bench.measurement import UnusableInput
from bench.papers.feeds import SECOND, Event, iri, number_term
from engine.messages import Micros
from server.cli.demo_data import find

MOST_CONNECTIONS = 100_000
"""A network with more connections is refused, because each experiment holds them all."""


def micros(text: str) -> Micros:
    """Return an ISO time, in UTC where it names no zone."""
    at = datetime.fromisoformat(text)
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()) * SECOND


# ---------------------------------------------------------------- the sea
def read_buoy(path: Path) -> list[Event]:
    """Return a DART buoy's heights in m, one an instant: of several the one with the lowest T code; 9999 stands for
    none.
    """
    known: dict[Micros, tuple[int, str]] = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("#") or not line.strip():
            continue
        year, month, day, hour, minute, second, code, height = line.split()[:8]
        if float(height) < 9999:
            at = micros(f"{year}-{month}-{day}T{hour}:{minute}:{second}")
            known[at] = min(known.get(at, (int(code), height)), (int(code), height), key=lambda one: one[0])
    return [Event(iri(f"buoy/{path.name[:5]}"), iri("height"), number_term(height), at) for at, (_, height) in sorted(known.items())]


def read_tideless(path: Path, earthquake: Micros) -> list[Event]:
    """Return the heights in m of a file of two columns: seconds after the earthquake, and the height without the tide.

    The first of an instant counts.
    """
    known: dict[Micros, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        seconds, height = line.split()
        known.setdefault(earthquake + round(float(seconds)) * SECOND, f"{float(height):.6f}")
    return [Event(iri(f"buoy/{path.name[:5]}"), iri("height"), number_term(height), at) for at, height in sorted(known.items())]


# ---------------------------------------------------------------- weather and places
@dataclass(frozen=True, slots=True)
class Place:
    """Represents a place with its coordinates in degrees."""

    code: str
    name: str
    latitude: str
    longitude: str

    def coordinate_triples(self) -> str:
        """Return the coordinates as N-Triples text."""
        lines = zip(("lat", "long"), (self.latitude, self.longitude), strict=True)
        return "".join(f"{iri(f'station/{self.code}')} {iri(name)} {number_term(value)} .\n" for name, value in lines)


def read_airports() -> dict[str, Place]:
    """Return the airports that come with the demo's data, by code. Raises: NoData."""
    with (find().parent / "airports.csv").open(newline="", encoding="utf-8") as file:
        return {row["faa"]: Place(row["faa"], row["name"], row["lat"], row["lon"]) for row in csv.DictReader(file)}


def read_weather(quantities: Sequence[str]) -> list[Event]:
    """Return the readings of the demo's data, in order of time; a missing value gives none. Raises: NoData."""
    with find().open(newline="", encoding="utf-8") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: row["time_hour"])
    return [
        Event(iri(f"station/{row['origin']}"), iri(quantity), number_term(row[quantity]), micros(row["time_hour"]))
        for row in rows
        for quantity in quantities
        if row[quantity] not in ("", "NA")
    ]


# ---------------------------------------------------------------- timetables
def read_gtfs(path: Path) -> list[tuple[str, str]]:
    """Return the connections of a GTFS feed, a directory or a zip file: pairs of stops that follow each other on a
    trip, each once, in order.

    Raises: UnusableInput.
    """
    trips: dict[str, list[tuple[int, str]]] = {}
    with _open_table(path, "stop_times.txt") as file:
        for row in csv.DictReader(file):
            try:
                trips.setdefault(row["trip_id"], []).append((int(row["stop_sequence"]), row["stop_id"]))
            except (KeyError, ValueError) as error:
                raise UnusableInput(f"{path}/stop_times.txt: a row without {error}; expected trip_id, stop_id and stop_sequence") from None
    found = dict.fromkeys((one, other) for stops in trips.values() for (_, one), (_, other) in pairwise(sorted(stops)) if one != other)
    if not 0 < len(found) <= MOST_CONNECTIONS:
        raise UnusableInput(f"{path} has {len(found)} connections; expected 1 to {MOST_CONNECTIONS}. Give a part of the feed")
    return sorted(found)


def _open_table(path: Path, name: str) -> IO[str]:
    try:
        if path.is_dir():
            return (path / name).open(newline="", encoding="utf-8-sig")
        return io.TextIOWrapper(io.BytesIO(zipfile.ZipFile(path).read(name)), encoding="utf-8-sig", newline="")
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise UnusableInput(f"{path} has no {name}: {error}; expected a GTFS feed, as a directory or a zip file") from None


def read_speeds(path: Path) -> Iterator[tuple[Micros, str]]:
    """Yield the times and values of a sensor's file."""
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            yield micros(row["timestamp"]), row["value"]
