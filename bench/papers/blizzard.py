"""Tables 2 to 4 and Figures 4 to 6 of the article in Applied Artificial Intelligence: blizzards at weather stations,
their areas, and places nearby.

The article's formulas are pictures that the text lacks. So patterns (39) to (42) are reconstructed from its prose.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from math import asin, cos, radians, sin, sqrt
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from bench.measurement import WrongCount
from bench.papers.datasets import Place, read_airports, read_weather
from bench.papers.feeds import BEGIN, SECOND, Event, Result, batches, iri, number_term, rate, run, value_of
from bench.papers.figures import Chart, Figure, Row, Size
from engine.messages import INSTANT, OCCURRENCES, Micros
from epsparql.etalis.streams import SentEvent
from epsparql.etalis.translator import query_text
from epsparql.solutions.policies import RECENT
from epsparql.terms import XSD, Literal

_SOURCE = "AAI article"
FIGURES = {
    "000-t2": Figure(
        "Complex events from live sensor data", f"{_SOURCE}, Table 2", "station", "pattern (40)",
        "Wind of 15 mph or more, and visibility below a quarter of a mile. Four readings over three to six hours. Areas within 300 km and 9 hours.",
        "Each further warning of an area must be of another station. The MesoWest data are not available. The stations are fifteen "
            "Californian airports, and their readings are generated: 50,000 each, one each half hour, 6 % of them in storms. The weather of "
            "New York is real.", Chart.NONE,
    ),
    "000-t3": Figure(
        "Computation for pattern (42) from live sensor data", f"{_SOURCE}, Table 3", "area", "iterations",
        "As Table 2.", "Only New York's areas are listed, with a visibility of at most 2 miles; with the paper's condition "
            "there are none.", Chart.NONE,
    ),
    "000-t4": Figure(
        "GeoNames locations nearby KSFO weather station", f"{_SOURCE}, Table 4", "place", "distance, km",
        "Places within a radius of the station KSFO, by the article's formula (43).",
        "GeoNames is not available: the places are airports of the United States within 50 km.", Chart.BARS,
    ),
    "000-4": Figure(
        "The fifteen stations", f"{_SOURCE}, Figure 4", "longitude", "latitude", "Fifteen stations in California.",
        "The map's stations are not legible; these are airports.", Chart.POINTS,
    ),
    "000-5": Figure(
        "Wind areas", f"{_SOURCE}, Figure 5", "longitude", "latitude", "Stations with a blizzard in an area.",
        "The stations of one area of the generated readings.", Chart.POINTS,
    ),
    "000-6a": Figure(
        "Complex event throughput", f"{_SOURCE}, Figure 6(a)", "patterns", "events/s",
        "Patterns (39), (39) with (40), and (39) to (42) over all readings; the time between readings is ignored.",
        "The generated readings of Table 2.", Chart.BARS,
    ),
    "000-6b": Figure(
        "Memory consumption", f"{_SOURCE}, Figure 6(b)", "patterns", "kB",
        "The memory after the last reading of Figure 6(a).", "The paper's figure is the memory of the whole process; ours is the state "
            "that the queries report.", Chart.BARS,
    ),
}  # fmt: skip
STATIONS = ("ACV", "AVX", "BFL", "FAT", "IPL", "LAX", "MRY", "PSP", "RDD", "SAN", "SBA", "SFO", "SJC", "SMF", "TVL")
PATTERNS = {
    "(39)": ("settling 1", "settling"),
    "(40)": ("settling 1", "settling", "warning"),
    "(42)": ("settling 1", "settling", "warning", "area 1", "area"),
}
_PAPER_RATES = {"(39)": 24_696, "(40)": 37_437, "(42)": 3_900}
_PERIOD: Micros = 1_800 * SECOND
_QUANTITIES = ("temp", "wind_speed", "condition", "visib")
PROGRAM = """settling(Id, 1) <- sensor(Id, Temp, Wind, Cond, Visib) where (Wind >= 15, Visib < 0.25).
settling(Id, C + 1) <- (settling(Id, C) seq sensor(Id, Temp, Wind, Cond, Visib)).6h where (Wind >= 15, Visib < 0.25).
print_trigger(settling/2).
"""
_WARNINGS = """blizzardWarning(Id) <- settling(Id, C) check (C >= 4, t1(A), t2(B), datime_minus_datime(B, A, D), D >= 10800).
print_trigger(blizzardWarning/1).
"""
_NEAR = "?st :lat ?lat1 . ?st :long ?long1"


def blizzard_rules(visibility: str) -> dict[str, str]:
    """Return patterns (39) to (42) as rules, for a condition on the visibility in miles.

    `settling` is (39), `warning` (40), `area` (41). An area is (42) from its second warning on.
    """
    reading = f"{{ {{ ?st :wind_speed ?wind FILTER(?wind >= 15) }} EQUALS {{ ?st :visib ?visib FILTER(?visib {visibility}) }} }}"
    return {
        "settling 1": f"CONSTRUCT {{ ?st :settling 1 }} WHERE {reading}",
        "settling": f"""CONSTRUCT {{ ?st :settling ?c }} WHERE {{
  {{ ?st :settling ?n }} SEQ {reading} WITHIN "PT6H"^^xsd:duration BIND(?n + 1 AS ?c) }}""",
        "warning": """CONSTRUCT { ?st :blizzard true }
WHERE { ?st :settling ?c FILTER(?c >= 4 && getDURATION() >= "PT3H"^^xsd:duration) }""",
        "area 1": "CONSTRUCT { ?st :area 1 ; :with ?st } WHERE { ?st :blizzard true }",
        "area": """CONSTRUCT { ?first :area ?c ; :with ?st } WHERE {
  { ?first :area ?n . ?first :lat ?lat1 . ?first :long ?long1 } SEQ { ?st :blizzard true . ?st :lat ?lat2 . ?st :long ?long2 }
  WITHIN "PT9H"^^xsd:duration
  FILTER(?st != ?first && ep:distance(?lat1, ?long1, ?lat2, ?long2) < 300000) BIND(?n + 1 AS ?c) }""",
    }


AREAS = {"areas": "SELECT ?first ?c ?st WHERE { { ?first :area ?c FILTER(?c >= 2) } EQUALS { ?first :with ?st } }"}
NEARBY = """SELECT ?place ?km WHERE {
  ?station :detects ?what . ?station :lat ?lat1 . ?station :long ?long1 . ?place :lat ?lat2 . ?place :long ?long2
  FILTER(?place != ?station) BIND(ep:distance(?lat1, ?long1, ?lat2, ?long2) / 1000 AS ?km) FILTER(?km < 50) }"""


def measure(size: Size) -> Iterator[Row]:
    """Yield the rows of all these tables and figures. Raises: NoData, WrongCount."""
    airports = read_airports()
    stations = [airports[code] for code in STATIONS]
    background = "".join(place.coordinate_triples() for place in stations)
    yield from _throughput(size, background)
    yield from _detections(size, stations, background)
    yield from _new_york(size, airports)
    yield from _nearby(airports)


# ---------------------------------------------------------------- Figure 6
def _throughput(size: Size, background: str) -> Iterator[Row]:
    n = size.of(50_000, 400)
    readings, asked = Readings.generate(n), blizzard_rules("< 0.25")
    for pattern, names in PATTERNS.items():
        queries = {name: asked[name] for name in names}
        run(queries, Readings.generate(200).batches(), background)  # compiled code is loaded
        found = run(queries, readings.batches(), background)
        complex_events = sum(found.counts[name] for name in names[-2:])
        more = {"n": readings.count, "complex_events": complex_events, "cpu_s": round(found.cpu_s, 3)}
        ours = rate(readings.count, found.cpu_s)
        yield Row(
            "000-6a", "rules, all matches", pattern, ours, _PAPER_RATES[pattern], more | {"times_the_paper": round(ours / _PAPER_RATES[pattern], 1)}
        )
        yield Row("000-6b", "rules, all matches", pattern, round(found.state_bytes / 1_000, 1), more={"process_grew_mb": found.grown_mb})
    few = Readings.generate(size.of(1_000, 20))
    for pattern, text in (("(39)", PROGRAM), ("(40)", PROGRAM + _WARNINGS)):
        program, policy = query_text(text, RECENT)
        run({"program": program}, Readings.generate(10).program_batches(), policy=policy)
        found = run({"program": program}, few.program_batches(), policy=policy)
        more = {"n": few.count, "complex_events": found.counts["program"], "cpu_s": round(found.cpu_s, 3)}
        yield Row("000-6a", "ETALIS program, recent", pattern, rate(few.count, found.cpu_s), None, more)


class Readings:
    """Holds readings of all stations, one each half hour: matrices of a row for each time and a column for each
    station.

    Storms come to each station by themselves. They last three readings in the mean, and 47 others lie between them.
    """

    def __init__(self, wind: np.ndarray, hundredths: np.ndarray, temperature: np.ndarray) -> None:
        self._wind, self._hundredths, self._temperature = wind, hundredths, temperature
        self.count = wind.size

    @classmethod
    def generate(cls, n: int) -> "Readings":
        rng = np.random.default_rng(42)
        storm = np.zeros((n, len(STATIONS)), np.bool_)
        for station in range(len(STATIONS)):
            at = 0
            while at < n:
                at += int(rng.exponential(47)) + 1
                length = int(rng.geometric(1 / 3))
                storm[at : at + length, station] = True
                at += length
        wind = np.where(storm, rng.integers(15, 60, storm.shape), rng.integers(0, 40, storm.shape))
        return cls(wind, np.where(storm, rng.integers(0, 25, storm.shape), rng.integers(25, 1_000, storm.shape)), rng.integers(0, 100, storm.shape))

    def qualifying(self) -> list[int]:
        """Return how many readings of each station satisfy the condition."""
        counts: list[int] = ((self._wind >= 15) & (self._hundredths < 25)).sum(0).tolist()
        return counts

    def batches(self, times: int = 700) -> Iterator[pa.RecordBatch]:
        """Yield the readings as four triples each."""
        subjects, predicates = (pa.array([iri(name) for name in names]) for names in ((f"station/{code}" for code in STATIONS), _QUANTITIES))
        values = pa.array([*(number_term(k) for k in range(100)), *(number_term(f"{k / 100:.2f}") for k in range(1_000))])
        for first in range(0, len(self._wind), times):
            part = slice(first, first + times)
            columns = (self._temperature[part], self._wind[part], self._temperature[part] % 5, 100 + self._hundredths[part])
            objects = np.stack([column.ravel() for column in columns], 1).ravel()
            n, rows = len(self._wind[part]), len(objects)
            at = pa.array(np.repeat(np.arange(first, first + n) * _PERIOD + BEGIN, 4 * len(STATIONS))).cast(INSTANT)
            yield pa.RecordBatch.from_arrays(
                [
                    pa.DictionaryArray.from_arrays(pa.array(np.repeat(np.tile(np.arange(len(STATIONS)), n), 4).astype(np.int32)), subjects),
                    pa.DictionaryArray.from_arrays(pa.array(np.tile(np.arange(4), rows // 4).astype(np.int32)), predicates),
                    pa.DictionaryArray.from_arrays(pa.array(objects.astype(np.int32)), values),
                    pa.DictionaryArray.from_arrays(pa.nulls(rows, pa.int32()), pa.array([], pa.utf8())),
                    at, at, pa.array(np.zeros(rows, np.bool_)),
                ],
                schema=OCCURRENCES,
            )  # fmt: skip

    def program_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the readings as events of a program: `sensor(Id, Temp, Wind, Cond, Visib)`."""
        sent = (
            SentEvent(
                "sensor", (Literal(code, XSD + "string"), *(_integer(int(value)) for value in (cold, wind, cold % 5)), _decimal(hundredths)), at, at
            )
            for at, row in ((BEGIN + k * _PERIOD, k) for k in range(len(self._wind)))
            for code, cold, wind, hundredths in zip(STATIONS, self._temperature[row], self._wind[row], self._hundredths[row], strict=True)
        )
        return batches(Event(*triple, event.start) for event in sent for triple in event.triples())


def _integer(value: int) -> Literal:
    return Literal(str(value), XSD + "integer")


def _decimal(hundredths: int) -> Literal:
    text = f"{hundredths / 100:.2f}".rstrip("0")
    return _integer(hundredths // 100) if text.endswith(".") else Literal(text, XSD + "decimal")


# ---------------------------------------------------------------- Tables 2 and 3, Figures 4 and 5
def _detections(size: Size, stations: Sequence[Place], background: str) -> Iterator[Row]:
    yield Row("000-t2", "MesoWest", "KAVAX", None, 161, {"pattern_39": 2_995, "pattern_42": 4, "note": "all areas: 11"})
    readings = Readings.generate(size.of(50_000, 1_500))
    found = run(blizzard_rules("< 0.25") | AREAS, readings.batches(), background, keep=True)
    areas = list_areas(found)
    for row, qualifying in zip(count_by_station(found, STATIONS), readings.qualifying(), strict=True):
        counts = dict(zip(("pattern_39", "pattern_42"), row[2:], strict=True))
        yield Row("000-t2", "generated", row[0], row[1], None, {"readings": readings.count // len(STATIONS), "in_storms": qualifying} | counts)
    for place in stations:
        yield Row("000-4", place.code, float(place.longitude), float(place.latitude), more={"name": place.name})
    for place in stations:
        if areas and place.code in areas[0].stations:
            yield Row("000-5", place.code, float(place.longitude), float(place.latitude), more={"area": areas[0].first})


def _new_york(size: Size, airports: Mapping[str, Place]) -> Iterator[Row]:
    codes = ("EWR", "JFK", "LGA")
    weather = read_weather(("wind_speed", "visib"))
    weather = weather[: size.of(len(weather), 15_000)]
    for visibility in ("< 0.25", "<= 0.25", "<= 2"):
        found = run(blizzard_rules(visibility) | AREAS, batches(weather), "".join(airports[code].coordinate_triples() for code in codes), keep=True)
        readings = [sum(event.s == iri(f"station/{code}") for event in weather) // 2 for code in codes]
        for row, n in zip(count_by_station(found, codes), readings, strict=True):
            more = {"readings": n} | dict(zip(("pattern_39", "pattern_42"), row[2:], strict=True))
            yield Row("000-t2", f"New York 2013, visibility {visibility} miles", row[0], row[1], None, more)
    areas = list_areas(found)
    for k, area in enumerate(areas[:11], 1):
        about = {"stations": " ".join(area.stations), "start": _iso(area.start), "end": _iso(area.end)}
        yield Row("000-t3", "New York 2013, visibility <= 2 miles", k, area.iterations, more=about)


class Area(NamedTuple):
    """Represents an event of pattern (42): where it began, its iterations and its stations."""

    first: str
    iterations: int
    stations: tuple[str, ...]
    start: Micros
    end: Micros


def list_areas(found: Result) -> list[Area]:
    """Return the areas in order of emission: solutions of one beginning, interval and count are one area, whose first
    station is in it.
    """
    each = (
        (value_of(first or ""), int(value_of(count or "")), start, end, value_of(st or ""))
        for _, start, end, (first, count, st) in found.list_solutions("areas")
    )
    areas: dict[tuple[str, int, Micros, Micros], set[str]] = {}
    for first, count, start, end, station in each:
        areas.setdefault((first, count, start, end), {first}).add(station)
    return [Area(first, count, tuple(sorted(stations)), start, end) for (first, count, start, end), stations in areas.items()]


def count_by_station(found: Result, codes: Sequence[str]) -> list[tuple[str, int, int, int]]:
    """Return how many events of (40), (39) and (42) each station has; an area counts for each of its stations."""
    settled = _subjects(found, "settling 1") + _subjects(found, "settling")
    warned, areas = _subjects(found, "warning"), Counter(code for area in list_areas(found) for code in area.stations)
    return [(code, warned[code], settled[code], areas[code]) for code in codes]


def _subjects(found: Result, rule: str) -> Counter[str]:
    """Count a rule's events by their subject; derived twice on one interval, an event is one."""
    events = {(start, end, values[0]) for _, start, end, values in found.list_solutions(rule)}
    return Counter(value_of((statement or "").split(" ", 1)[0]) for _, _, statement in events)


def _iso(at: Micros) -> str:
    return f"{datetime.fromtimestamp(at // SECOND, UTC):%Y-%m-%d %H:%M}"


# ---------------------------------------------------------------- Table 4
def _nearby(airports: Mapping[str, Place]) -> Iterator[Row]:
    """Yield the places near KSFO, nearest first. Raises: WrongCount."""
    yield Row("000-t4", "GeoNames", "all", None, 51, {"note": "places; seven are listed, none is legible but one at 0.9813 miles"})
    event = Event(iri("station/SFO"), iri("detects"), iri("BlizzardWarning"), BEGIN)
    found = run({"nearby": NEARBY}, batches([event]), "".join(place.coordinate_triples() for place in airports.values()), keep=True)
    near = sorted((float(value_of(km or "")), value_of(place or "")) for place, km in (each.values for each in found.list_solutions("nearby")))
    expected = sum(0 < kilometres(airports["SFO"], place) < 50 for place in airports.values())
    if len(near) != expected:
        raise WrongCount("papers: places near KSFO", len(near), expected)
    for km, code in near:
        yield Row("000-t4", "airports within 50 km", code, round(km, 2), None, {"name": airports[code].name, "miles": round(km / 1.609344, 2)})


def kilometres(one: Place, other: Place) -> float:
    """Return the distance of two places by the article's formula (43), on a sphere of 6378.137 km."""
    lat1, long1, lat2, long2 = (radians(float(degrees)) for degrees in (one.latitude, one.longitude, other.latitude, other.longitude))
    half = sin((lat1 - lat2) / 2) ** 2 + cos(lat1) * cos(lat2) * sin((long1 - long2) / 2) ** 2
    return 2 * 6378.137 * asin(sqrt(half))
