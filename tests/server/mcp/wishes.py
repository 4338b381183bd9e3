"""Wishes about the weather in plain words, with their queries, and how often each is fulfilled by a count in Python.

The counts share no code with the server: they are loops over the readings of weather.csv.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise

from server.cli import demo_data

INSTANTS = 1_100
"""So many hours of the year are sent: until the middle of February."""
_PREFIXES = "PREFIX : <http://example.org/weather#> PREFIX s: <http://example.org/station/>\n"
HOUR, DAY = 3_600, 86_400
Reading = tuple[str, int, Decimal]
"""A station, seconds since 1970, and a value."""


@dataclass(frozen=True)
class Weather:
    """Readings in order of time, by quantity."""

    of: dict[str, list[Reading]] = field(default_factory=dict)

    def readings(self, quantity: str, test: Callable[[Decimal], bool] = lambda _: True) -> list[Reading]:
        return [reading for reading in self.of[quantity] if test(reading[2])]

    def count(self, quantity: str, test: Callable[[Decimal], bool]) -> int:
        return len(self.readings(quantity, test))

    def at_once(self, one: str, other: str) -> Iterator[tuple[Decimal, Decimal]]:
        """Yield pairs of two quantities of a station at one instant."""
        others = {(station, at): value for station, at, value in self.of[other]}
        yield from ((value, others[station, at]) for station, at, value in self.of[one] if (station, at) in others)

    def in_turn(self, first: list[Reading], second: list[Reading], within_s: int, *, same: bool = True) -> Iterator[tuple[Decimal, Decimal]]:
        """Yield pairs of which the second is later, by a time at most."""
        by_station: dict[str, list[tuple[int, Decimal]]] = {}
        for station, at, value in second:
            by_station.setdefault(station if same else "", []).append((at, value))
        for station, at, value in first:
            yield from ((value, other) for then, other in by_station.get(station if same else "", []) if 0 < then - at <= within_s)

    def next_ones(self, quantity: str) -> Iterator[tuple[Reading, Reading]]:
        """Yield each reading of a station with the next one."""
        for station in {station for station, _, _ in self.of[quantity]}:
            yield from pairwise(reading for reading in self.of[quantity] if reading[0] == station)

    def days(self, quantity: str) -> dict[tuple[str, int], list[Decimal]]:
        """Return the values of each station and day of UTC that has any, without the last day, which is not over."""
        found: dict[tuple[str, int], list[Decimal]] = {}
        last = (self.of[quantity][-1][1] - 1) // DAY
        for station, at, value in self.of[quantity]:
            if (day := (at - 1) // DAY) < last:  # a window has its end, and not its beginning
                found.setdefault((station, day), []).append(value)
        return found


def read_weather() -> tuple[Weather, str]:
    """Return the readings, and the body of events with them."""
    weather, frames = Weather(), []
    for instant in demo_data.instants(demo_data.find())[:INSTANTS]:
        frames.append(instant.frame)
        at = int(datetime.fromisoformat(instant.at).replace(tzinfo=UTC).timestamp())
        for line in json.loads(instant.frame)["triples"].splitlines():
            subject, predicate, value = line.split(" ")[:3]
            quantity = predicate.rpartition("#")[2].rstrip(">")
            weather.of.setdefault(quantity, []).append((subject.rpartition("/")[2].rstrip(">"), at, Decimal(value.split('"')[1])))
    return weather, "\n".join(frames)


@dataclass(frozen=True)
class Wish:
    """A wish in plain words, its query's text without prefixes, and how often it is fulfilled."""

    words: str
    text: str
    count: Callable[[Weather], int]

    @property
    def query(self) -> str:
        return _PREFIXES + self.text


def select(pattern: str, variables: str = "*") -> str:
    return f"SELECT {variables} FROM STREAM <weather> WHERE {pattern}"


def number(found: Iterator[object]) -> int:
    return sum(1 for _ in found)


D = Decimal
WISHES = [
    Wish("When does the wind blow with more than 35 miles an hour?", select("{ ?st :wind_speed ?v FILTER(?v > 35) }"),
         lambda w: w.count("wind_speed", lambda v: v > 35)),
    Wish("When does it freeze at JFK?", select("{ s:JFK :temp ?t FILTER(?t < 32) }"),
         lambda w: sum(st == "JFK" for st, _, _ in w.readings("temp", lambda v: v < 32))),
    Wish("Tell me of fog: a sight of a quarter mile or less.", select("{ ?st :visib ?v FILTER(?v <= 0.25) }"),
         lambda w: w.count("visib", lambda v: v <= D("0.25"))),
    Wish("Which gusts are over 45?", select("{ ?st :wind_gust ?g FILTER(?g > 45) }"), lambda w: w.count("wind_gust", lambda v: v > 45)),
    Wish("Which measurements of the wind cannot be true?", select("{ ?st :wind_speed ?v FILTER(?v > 200) }"),
         lambda w: w.count("wind_speed", lambda v: v > 200)),
    Wish("It rains more than a fifth of an inch in an hour.", select("{ ?st :precip ?p FILTER(?p > 0.2) }"),
         lambda w: w.count("precip", lambda v: v > D("0.2"))),
    Wish("The pressure is under 990.", select("{ ?st :pressure ?p FILTER(?p < 990) }"), lambda w: w.count("pressure", lambda v: v < 990)),
    Wish("Either it is colder than 15 degrees, or the wind is over 30.",
         select("{ { ?st :temp ?v FILTER(?v < 15) } UNION { ?st :wind_speed ?v FILTER(?v > 30) } }"),
         lambda w: w.count("temp", lambda v: v < 15) + w.count("wind_speed", lambda v: v > 30)),
    Wish("Cold and windy at once: under 25 degrees, and wind over 20.",
         select("{ { ?st :temp ?t } EQUALS { ?st :wind_speed ?v } FILTER(?t < 25 && ?v > 20) }"),
         lambda w: sum(t < 25 and v > 20 for t, v in w.at_once("temp", "wind_speed"))),
    Wish("When is a gust at least twice the wind?",
         select("{ { ?st :wind_speed ?v } EQUALS { ?st :wind_gust ?g } FILTER(?v > 0 && ?g >= 2 * ?v) }"),
         lambda w: sum(v > 0 and g >= 2 * v for v, g in w.at_once("wind_speed", "wind_gust"))),
    Wish("Something falls from the sky while it freezes.", select("{ { ?st :precip ?p } EQUALS { ?st :temp ?t } FILTER(?p > 0 && ?t < 32) }"),
         lambda w: sum(p > 0 and t < 32 for p, t in w.at_once("precip", "temp"))),
    Wish("The air is nearly saturated: less than a degree above the dew point.",
         select("{ { ?st :temp ?t } EQUALS { ?st :dewp ?d } FILTER(?t - ?d < 1) }"), lambda w: sum(t - d < 1 for t, d in w.at_once("temp", "dewp"))),
    Wish("Fog at JFK and at LGA at the same time.", select("{ { s:JFK :visib ?a } EQUALS { s:LGA :visib ?b } FILTER(?a <= 0.5 && ?b <= 0.5) }"),
         lambda w: len({at for st, at, v in w.readings("visib") if st == "JFK" and v <= D("0.5")}
                       & {at for st, at, v in w.readings("visib") if st == "LGA" and v <= D("0.5")})),
    Wish("The temperature falls by ten degrees within three hours.",
         select('{ { ?st :temp ?a } SEQ { ?st :temp ?b } WITHIN "PT3H" FILTER(?b <= ?a - 10) }'),
         lambda w: sum(b <= a - 10 for a, b in w.in_turn(w.readings("temp"), w.readings("temp"), 3 * HOUR))),
    Wish("The wind doubles from one hour to the next, to over 15.",
         select('{ { ?st :wind_speed ?a } SEQ { ?st :wind_speed ?b } WITHIN "PT1H" FILTER(?b >= 2 * ?a && ?b > 15) }'),
         lambda w: sum(b >= 2 * a and b > 15 for a, b in w.in_turn(w.readings("wind_speed"), w.readings("wind_speed"), HOUR))),
    Wish("The pressure falls by eight in six hours.",
         select('{ { ?st :pressure ?a } SEQ { ?st :pressure ?b } WITHIN "PT6H" FILTER(?a - ?b >= 8) }'),
         lambda w: sum(a - b >= 8 for a, b in w.in_turn(w.readings("pressure"), w.readings("pressure"), 6 * HOUR))),
    Wish("Rain follows a gust over 40 within two hours.",
         select('{ { ?st :wind_gust ?g FILTER(?g > 40) } SEQ { ?st :precip ?p FILTER(?p > 0) } WITHIN "PT2H" }'),
         lambda w: number(w.in_turn(w.readings("wind_gust", lambda v: v > 40), w.readings("precip", lambda v: v > 0), 2 * HOUR))),
    Wish("It freezes within three hours of rain.",
         select('{ { ?st :precip ?p FILTER(?p > 0) } SEQ { ?st :temp ?t FILTER(?t < 32) } WITHIN "PT3H" }'),
         lambda w: number(w.in_turn(w.readings("precip", lambda v: v > 0), w.readings("temp", lambda v: v < 32), 3 * HOUR))),
    Wish("The wind is strong at EWR, and at most two hours later at JFK.",
         select('{ { s:EWR :wind_speed ?a FILTER(?a > 25) } SEQ { s:JFK :wind_speed ?b FILTER(?b > 25) } WITHIN "PT2H" }'),
         lambda w: number(w.in_turn([r for r in w.readings("wind_speed", lambda v: v > 25) if r[0] == "EWR"],
                                    [r for r in w.readings("wind_speed", lambda v: v > 25) if r[0] == "JFK"], 2 * HOUR, same=False))),
    Wish("From one reading to the next, the temperature jumps by more than six degrees.",
         select("{ { ?st :temp ?a } SEQ { ?st :temp ?b } WITHOUT { ?st :temp ?c } FILTER(?b - ?a > 6) }"),
         lambda w: sum(b[2] - a[2] > 6 for a, b in w.next_ones("temp"))),
    Wish("Two readings of the pressure in a row fall by more than two.",
         select("{ { ?st :pressure ?a } SEQ { ?st :pressure ?b } WITHOUT { ?st :pressure ?c } FILTER(?a - ?b > 2) }"),
         lambda w: sum(a[2] - b[2] > 2 for a, b in w.next_ones("pressure"))),
    Wish("The barometer of a station is silent for two hours.",
         select('{ { ?st :pressure ?a } WITHOUT { ?st :pressure ?b } FOR "PT2H" }'),
         lambda w: sum(b[1] - a[1] > 2 * HOUR for a, b in w.next_ones("pressure"))),
    Wish("After a gust over 40, three hours without rain.",
         select('{ { ?st :wind_gust ?g FILTER(?g > 40) } WITHOUT { ?st :precip ?p FILTER(?p > 0) } FOR "PT3H" }'),
         lambda w: sum(not any(st == other and 0 < then - at <= 3 * HOUR for other, then, _ in w.readings("precip", lambda v: v > 0))
                       for st, at, _ in w.readings("wind_gust", lambda v: v > 40))),
    Wish("Days that are colder than 25 degrees on average, by station.",
         select('{ ?st :temp ?t } GROUP BY ?st HAVING(AVG(?t) < 25) WINDOW [RANGE "P1D" STEP "P1D"]', "?st (AVG(?t) AS ?mean)"),
         lambda w: sum(sum(values) / len(values) < 25 for values in w.days("temp").values())),
    Wish("Days with more than half an inch of rain, by station.",
         select('{ ?st :precip ?p } GROUP BY ?st HAVING(SUM(?p) > 0.5) WINDOW [RANGE "P1D" STEP "P1D"]', "?st (SUM(?p) AS ?rain)"),
         lambda w: sum(sum(values) > D("0.5") for values in w.days("precip").values())),
    Wish("Days with fog in at least three readings, by station.",
         select('{ ?st :visib ?v FILTER(?v <= 0.5) } GROUP BY ?st HAVING(COUNT(*) >= 3) WINDOW [RANGE "P1D" STEP "P1D"]', "?st (COUNT(*) AS ?n)"),
         lambda w: sum(sum(v <= D("0.5") for v in values) >= 3 for values in w.days("visib").values())),
    Wish("How cold is it at most, on each day and at each station?",
         select('{ ?st :temp ?t } GROUP BY ?st WINDOW [RANGE "P1D" STEP "P1D"]', "?st (MIN(?t) AS ?least)"), lambda w: len(w.days("temp"))),
    Wish("Mark storms, so that other queries can read them.",
         "CONSTRUCT { ?st :storm ?v } INTO STREAM <storms> FROM STREAM <weather> WHERE { ?st :wind_speed ?v FILTER(?v > 30) }",
         lambda w: w.count("wind_speed", lambda v: v > 30)),
    Wish("When does the wind blow from the north, with more than 20?",
         select("{ { ?st :wind_dir ?d } EQUALS { ?st :wind_speed ?v } FILTER((?d <= 20 || ?d >= 340) && ?v > 20) }"),
         lambda w: sum((d <= 20 or d >= 340) and v > 20 for d, v in w.at_once("wind_dir", "wind_speed"))),
    Wish("Is there wind of 3,500 miles an hour?", select("{ ?st :wind_speed ?v FILTER(?v > 3500) }"), lambda w: w.count("wind_speed", lambda v: v > 3500)),
]  # fmt: skip
"""Thirty wishes."""

SLIPS = [
    (WISHES[0].query.replace("FILTER", "FLITER"), WISHES[0].query),
    (WISHES[2].query.replace("0.25)", "0.25 "), WISHES[2].query.replace("0.25)", "0.25 )")),
]
"""Texts with slips, and the texts that were meant."""
