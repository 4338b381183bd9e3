"""Applications on real data: the queries of docs/applications.md, with the numbers of the specification's
`conformance/apps.md`.
"""

import json
import re
import runpy
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest

from bench.papers.blizzard import AREAS, NEARBY, blizzard_rules, kilometres
from bench.papers.datasets import Place, micros, read_airports, read_buoy, read_speeds, read_tideless, read_weather
from bench.papers.delivery import ROUTES, RULES, Journey, grid, is_closed
from bench.papers.feeds import BEGIN, SECOND, Event, iri, number_term
from bench.papers.tsunami import CHILE, QUERY
from epsparql.client import Client
from pipeline.query_tests.timelines import declare_prefixes
from server.cli.commands import main
from tests.docs.test_docs import ROOT
from tests.server.conftest import serving

pytestmark = pytest.mark.slow

DATA = ROOT.parent / "shared" / "data"
PAGE = (ROOT / "docs" / "applications.md").read_text(encoding="utf-8")
PROGRAMS = ROOT / "examples" / "papers"
EXAMPLE = "http://example.org/"
DISTANCE = "PREFIX ep: <urn:epsparql:function:>\n"
"""The experiments declare the prefix where they run."""
EARTHQUAKE = "2011-03-11T05:46:24Z"
MINUTE, HOUR = 60_000_000, 3_600_000_000
Solution = dict[str, str]
"""A solution's values by variable, and its `start` and `end`."""


def blocks(title: str, language: str = "sparql") -> list[str]:
    """The blocks of a section in a language, up to the next heading."""
    [section] = re.findall(rf"^##+ {re.escape(title)}\n(.*?)(?=^##+ |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    return re.findall(rf"^```{language}\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)


class Replays:
    """Runs `epsparql replay` in this process."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.directory, self._capsys = directory, capsys

    def file(self, name: str, text: str) -> str:
        path = self.directory / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    def queries(self, texts: Mapping[str, str], events: Iterable[Event | dict[str, str]], background: str = "") -> list[Solution]:
        """Return the solutions of the last query."""
        lines = (json.dumps(event if isinstance(event, dict) else written(event)) for event in events)
        given = [self.file(f"{name}.rq", declare_prefixes(text)) for name, text in texts.items()]
        arguments = ["replay", "--stream", self.file("stream.ndjson", "\n".join(lines)), *(part for path in given for part in ("--query", path))]
        found = self._run([*arguments, *(["--background", self.file("background.nt", background)] if background else [])])
        return [flat(line) for line in found if line["query"] == list(texts)[-1]]

    def program(self, text: str, stream: str, *more: str) -> Counter[tuple[str, ...]]:
        """Return the events as name, arguments, start and end."""
        arguments = ["replay", "--rules", self.file("program.event", text), "--stream", self.file("stream.stream", stream), *more]
        return Counter((line["event"], *map(str, line["args"]), line["start"], line["end"]) for line in self._run(arguments))

    def _run(self, arguments: list[str]) -> list[dict[str, Any]]:
        assert main(arguments) == 0
        return [json.loads(line) for line in self._capsys.readouterr().out.splitlines()]


@pytest.fixture
def replays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Replays:
    return Replays(tmp_path, capsys)


def flat(line: dict[str, Any]) -> Solution:
    values = {name: term["value"] for name, term in line["binding"].items()}
    return values | {"start": str(line["start"]), "end": str(line["end"])}


def time(micros: int) -> str:
    return f"{datetime.fromtimestamp(micros / 1e6, UTC):%Y-%m-%dT%H:%M:%SZ}"


def written(event: Event) -> dict[str, str]:
    return {"s": event.s, "p": event.p, "o": event.o, "at": time(event.at)}


def local(value: str) -> str:
    return value.rpartition("/")[2]


# ---------------------------------------------------------------- tsunami
@pytest.fixture(scope="module")
def ocean() -> list[Event]:
    """The heights on the quarter hour."""
    files = sorted((DATA / "dart-tohoku").glob("[0-9]*.txt"))
    assert len(files) == 17
    return [event._replace(s=iri(path.name[:5])) for path in files for event in read_buoy(path) if event.at % (15 * MINUTE) == 0]


def test_heights_with_a_prediction(ocean: list[Event], replays: Replays) -> None:
    [alarm] = blocks("From readings")
    assert len(replays.queries({"q": alarm.replace("FILTER(?off > 0.030)", "")}, ocean)) == 8818


def test_the_tsunami(ocean: list[Event], replays: Replays) -> None:
    alarms = replays.queries({"q": blocks("From readings")[0]}, ocean)
    assert len(alarms) == 1132
    assert alarms[0]["end"] > EARTHQUAKE
    first = next(alarm for alarm in alarms if alarm["buoy"] == f"{EXAMPLE}21418")
    assert (first["end"], round(float(first["off"]), 6)) == ("2011-03-11T06:15:00Z", 0.192852)


WEIGHTS = [Decimal(weight) for weight in ("1.16818457031250", "-0.28197558593750", "0.14689746093750", "-0.03310644531250")]


def test_the_tsunami_from_averages(replays: Replays) -> None:
    """Each prediction is computed again, from the mean of each hour."""
    heights = read_tideless(DATA / "dart-32412" / "32412_notide.txt", CHILE)
    hours: dict[int, list[Decimal]] = {}
    for event in heights:
        hours.setdefault(-(-event.at // HOUR), []).append(value(event))
    expected = {}
    for event in heights:
        hour, late = divmod(event.at - 1, HOUR)
        if late < 315_000_000 and all(hour - k in hours for k in range(4)):
            expected[time(event.at)] = value(event) - sum(weight * sum(hours[hour - k]) / len(hours[hour - k]) for k, weight in enumerate(WEIGHTS))
    found = {solution["end"]: Decimal(solution["off"]) for solution in replays.queries({"q": QUERY}, heights)}
    assert found.keys() == expected.keys()
    assert all(abs(found[at] - off) < Decimal("1e-12") for at, off in expected.items())
    over = [at for at, off in found.items() if abs(off) > Decimal("0.030")]
    assert (len(heights), len(found), len(over)) == (1285, 165, 11)
    assert time(CHILE) < over[0]
    assert micros(over[-1]) - micros(over[0]) < 7 * HOUR


def value(event: Event) -> Decimal:
    return Decimal(event.o.split('"')[1])


def squeezed(text: str) -> str:
    return "".join(re.sub(r"^PREFIX .*$", "", text, flags=re.MULTILINE).split())


# ---------------------------------------------------------------- goods delivery
def test_goods_delivery(replays: Replays) -> None:
    [shown] = blocks("Goods delivery")
    assert squeezed(shown) == squeezed(list(ROUTES.values())[-1])
    journey = Journey.draw(grid(), 2, 3)
    elsewhere = Event(iri("agent/0"), iri("at"), iri("place/nowhere"), BEGIN - SECOND)
    events = [elsewhere, *journey.events()]
    found = {
        (local(each["agent"]), local(each["here"]), local(each["via"])) for each in replays.queries(RULES | ROUTES, events, journey.background())
    }
    assert found == {(agent, here, via) for _, agent, here, via in journey.expected()}
    assert len(found) > 5


def test_an_agent_who_follows_its_routes_arrives(tmp_path: Path) -> None:
    """Roads close and open between its questions; each step that it takes is along a road that is open then."""
    rule, query = (declare_prefixes(text) for text in blocks("Whole routes"))
    journey, waits = Journey.draw(grid(), 1, 3), 0
    here, *goals = journey.visits[0]
    last: str | None = None
    with serving(tmp_path) as url:
        client = Client(url)
        client.load_background("roads", journey.background(), "application/n-triples")
        client.register("link", rule)
        client.register("route", query)
        for step in range(60):
            closed = {(x, y) for x, y in journey.roads if is_closed(x, y, step)}
            client.load_background("closed", "".join(f"{iri(f'road/{x}/{y}')} {iri('inaccessible')} true .\n" for x, y in closed))
            at = BEGIN + 10 * step * SECOND
            for predicate, place, instant in (("at", here, at), ("asks", goals[0], at + SECOND), ("at", here, at + 2 * SECOND)):
                client.send("default", json.dumps(written(Event(iri("agent/0"), iri(predicate), iri(f"place/{place}"), instant))))
            (found,) = client.solutions("route", after=last, wait_s=30)
            last = found.id
            assert str(found["here"]) == f"{EXAMPLE}place/{here}"
            if "route" not in found:
                waits += 1
                continue
            way = [place.rpartition("/")[2] for place in str(found["route"]).replace(">", "").split()]
            assert (way[0], way[-1]) == (here, goals[0])
            assert set(pairwise(way)) <= set(journey.roads) - closed
            here = way[-(-len(way) // 2)] if len(way) > 2 else way[-1]
            if here == goals[0]:
                goals.pop(0)
            if not goals:
                break
    assert not goals
    assert step > 6 + waits


# ---------------------------------------------------------------- flowers
FLOWERS = ROOT / "examples" / "flowers"
ITS_EVENT = re.compile(r"event\((\w+)\((.*)\), '(.*)'\)\.")
LIMIT, MORE, TOO_LATE = 20, 5, 600_000_000
"""Deliveries for a rank, as many late ones as do not lower it, and how much later than asked a delivery may be."""


class Days:
    """Says what must come out of a stream of Fast Flower Delivery, by a search over its events for each question."""

    def __init__(self, stream: str, town: Mapping[str, Any]) -> None:
        self.stores: dict[str, tuple[str, int, bool]] = town["STORES"]
        self.drivers: list[str] = town["DRIVERS"]
        self.inputs: dict[str, list[tuple[int, list[str]]]] = {}
        for name, arguments, at in ITS_EVENT.findall(stream):
            self.inputs.setdefault(name, []).append((micros_of(at), arguments.split(", ")))
        self.requests = {name: (at, *self.stores[store], int(minutes)) for at, (name, store, _, minutes) in self.inputs["request"]}
        self.delivered = {name: at for at, (name, _) in self.inputs["delivered"]}
        self.days = range(max(int(day) for _, (_, day) in self.inputs["shift"]) + 1)
        self.found = Counter[tuple[str, ...]]()

    def expect(self) -> Counter[tuple[str, ...]]:
        for request in self.requests:
            self._expect_request(request)
        for driver in self.drivers:
            self._expect_ranks(driver)
            self._expect_activity(driver)
        return self.found

    def _add(self, *event: object) -> None:
        self.found[tuple(map(str, event))] = 1

    def _latest(self, name: str, driver: str, before: int) -> str:
        """Return the second argument of a driver's latest event of this name, before an instant."""
        return [arguments[1] for at, arguments in self.inputs[name] if arguments[0] == driver and at < before][-1]

    def _expect_request(self, request: str) -> None:
        asked, region, least, automatic, _ = self.requests[request]
        regions = {driver: "west" if float(self._latest("gps", driver, asked)) < 10 else "east" for driver in self.drivers}
        ranks = {driver: int(self._latest("rank", driver, asked)) for driver in self.drivers}
        able = {driver for driver in self.drivers if regions[driver] == region and ranks[driver] >= least}
        for driver in able:
            self._add("bidRequest", request, driver)
        bids = [(-ranks[d], int(d[1:]), d, int(m)) for at, (q, d, m) in self.inputs["bid"] if q == request and d in able and at < asked + 2 * MINUTE]
        chosen = [(at, d) for at, (q, d) in self.inputs["assign"] if q == request]
        won = [(asked + 2 * MINUTE, *min(bids)[2:])] if automatic and bids else [(at, d, m) for at, d in chosen for _, _, e, m in bids if d == e]
        if not bids:
            self._add("noBidders", request)
        elif not automatic and not chosen:
            self._add("unassigned", request)
        for at, driver, promised in won:
            self._add("assigned", request, driver)
            fetched = [when for when, (q, d, _) in self.inputs["pickup"] if (q, d) == (request, driver)]
            if not fetched or fetched[0] > at + (promised + 5) * MINUTE:
                self._add("pickupAlert", request, driver)
            if self._is_late(request):
                self._add("deliveryAlert", request, driver)

    def _is_late(self, request: str) -> bool:
        asked, *_, minutes = self.requests[request]
        return request not in self.delivered or self.delivered[request] > asked + minutes * MINUTE + TOO_LATE

    def _expect_ranks(self, driver: str) -> None:
        ranks = [(at, int(rank)) for at, (d, rank) in self.inputs["rank"] if d == driver]
        for (since, rank), (until, _) in pairwise([*ranks, (10**18, 0)]):
            late = [self._is_late(q) for at, (q, d) in self.inputs["delivered"] if d == driver and since < at < until][:LIMIT]
            if len(late) == LIMIT and not any(late):
                self._add("rankUp", driver, rank + 1)
            if len(late) == LIMIT and sum(late) > MORE:
                self._add("rankDown", driver, rank - 1)

    def _expect_activity(self, driver: str) -> None:
        fetched = [sum(each[1:] == [driver, str(day)] for _, each in self.inputs["pickup"]) for day in self.days]
        for day, number in enumerate(fetched):
            if number < MORE:
                self._add("weak" if number else "idle", driver, day)
            if day and number > fetched[day - 1]:
                self._add("improving", driver, day)


def micros_of(at: str) -> int:
    return round(datetime.fromisoformat(at).timestamp() * 1e6)


def test_fast_flower_delivery(replays: Replays) -> None:
    """The numbers of the page are those of seed 7 and five days; another seed is compared too."""
    page = blocks("Fast Flower Delivery", "prolog")
    program, town = (FLOWERS / "flowers.event").read_text(encoding="utf-8"), runpy.run_path(str(FLOWERS / "generate.py"))
    assert all(rule in program for block in page for rule in block.splitlines())
    for seed, days in ((7, 5), (8, 2)):
        stream = "\n".join(town["Town"](seed, days).run())
        found = replays.program(program, stream, "--static", str(FLOWERS / "stores.pl"))
        assert Counter(each[:-2] for each in found) == Days(stream, town).expect()
        assert all(number == 1 for number in found.values())
        names = Counter(name for name, *_ in found)
        if seed == 7:
            assert {name: int(number) for name, number in re.findall(r"^\| `(\w+)` \| (\d+) \|", PAGE, re.MULTILINE)} == names
            assert stated("Fast Flower Delivery", "([\\d,]+) events") == stream.count("\n") + 1


# ---------------------------------------------------------------- traffic
def readings_of(sensor: str) -> list[tuple[int, str]]:
    return list(read_speeds(DATA / "nab-traffic" / f"{sensor}.csv"))


@pytest.mark.parametrize(("sensor", "pairs"), [("speed_6005", 26), ("speed_7578", 305)])
def test_slow_readings(sensor: str, pairs: int, replays: Replays) -> None:
    events = [Event(iri(sensor), iri("speed"), number_term(speed), at) for at, speed in readings_of(sensor)]
    assert len(replays.queries({"q": blocks("Slow readings")[0]}, events)) == pairs


ROADS = {"rd1": ("speed_7578", 40, "a1", "4043, 7359"), "rd2": ("speed_6005", 30, "a2", "4046, 7362"), "rd3": ("speed_t4013", 50, "a3", "4049, 7364")}
"""Each road's sensor, threshold, area and place."""


def test_bottleneck_areas(replays: Replays) -> None:
    program = (PROGRAMS / "bottleneck.event").read_text(encoding="utf-8")
    events, expected = [], set()
    for road, (sensor, threshold, area, place) in ROADS.items():
        readings = readings_of(sensor)[-500:]
        events += [(at, f"event(trafficEvent({road}, {speed}, {place}), '{time(at)}').") for at, speed in readings]
        slow = [at for at, speed in readings if float(speed) < threshold]
        expected |= {("bottleneckArea", area, time(one), time(other)) for one in slow for other in slow if 0 < other - one <= 30 * MINUTE}
    found = replays.program(program, "\n".join(text for _, text in sorted(events)))
    assert set(found) == expected
    assert stated("Bottleneck areas", "There are (\\d+) events") == len(expected) == found.total()


def test_causes_of_slow_traffic(replays: Replays) -> None:
    page = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8").partition("## Slow traffic")[2]
    query = page.partition("### With the misprints mended\n```sparql\n")[2].partition("```")[0]
    background = ox.serialize(ox.parse(page.partition("```turtle\n")[2].partition("```")[0], ox.RdfFormat.TURTLE), format=ox.RdfFormat.N_TRIPLES)
    slow = [(at, "Observ_3" if time(at)[11:] < "16:00" else "Observ_1") for at, speed in readings_of("speed_7578") if float(speed) < 30]
    events = [Event(iri("e6"), iri("slowTrafficDue"), iri(cause), at) for at, cause in slow]
    found = replays.queries({"q": query}, events, (background or b"").decode())
    speeds = {"Observ_3": "40", "Observ_1": "70"}
    expected = Counter(
        (speeds[cause], time(one), time(other)) for one, cause in slow for other, same in slow if same == cause and 0 < other - one < HOUR
    )
    assert Counter((each["speed"], each["start"], each["end"]) for each in found) == expected
    assert stated("Causes", "There are (\\d+) solutions") == expected.total()


def stated(title: str, sentence: str) -> int:
    """The number that a section states."""
    [section] = re.findall(rf"^##+ {re.escape(title)}\n(.*?)(?=^##+ |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    [number] = re.findall(sentence, section)
    return int(number.replace(",", ""))


# ---------------------------------------------------------------- weather of New York
STATIONS = ("EWR", "JFK", "LGA")


def weather(quantities: Sequence[str], first: str, last: str) -> list[Event]:
    """The readings of some quantities between two times."""
    return [event for event in read_weather(quantities) if micros(first) <= event.at <= micros(last)]


def test_blizzards_and_their_areas(replays: Replays) -> None:
    """Warnings and areas are searched for again among all chains of readings."""
    texts = {name.replace(" ", "_"): DISTANCE + text for name, text in (blizzard_rules("<= 2") | AREAS).items()}
    [shown] = blocks("Blizzards and their areas")
    assert squeezed(shown) in map(squeezed, texts.values())
    events = weather(("wind_speed", "visib"), "2013-02-08T00:00", "2013-02-09T23:59")
    airports = {code: place for code, place in read_airports().items() if code in STATIONS}
    known = {(event.s, event.p, event.at): value(event) for event in events}
    rough = {
        code: [at for s, p, at in known if (s, p) == (iri(f"station/{code}"), iri("wind_speed")) and is_rough(known, s, at)] for code in STATIONS
    }
    warnings = {
        (code, one, other) for code in STATIONS for one in rough[code] for other in rough[code]
        if 3 * HOUR <= other - one <= 6 * HOUR and sum(one <= at <= other for at in rough[code]) >= 4
    }  # fmt: skip
    areas = {
        (one, other, start, end) for one, start, left in warnings for other, right, end in warnings
        if one != other and left < right and end - start <= 9 * HOUR and kilometres(airports[one], airports[other]) < 300
    }  # fmt: skip
    found = replays.queries(texts, events, "".join(place.coordinate_triples() for place in airports.values()))
    assert {(local(each["first"]), local(each["st"]), micros(each["start"]), micros(each["end"])) for each in found} == areas
    assert stated("Blizzards and their areas", "there are then (\\d+) warnings") == len(warnings)
    assert stated("Blizzards and their areas", "(\\d+) areas\\.") == len(areas)


def is_rough(known: Mapping[tuple[str, str, int], Decimal], station: str, at: int) -> bool:
    visibility = known.get((station, iri("visib"), at))
    return visibility is not None and visibility <= 2 and known[station, iri("wind_speed"), at] >= 15


def test_heat(replays: Replays) -> None:
    program = (PROGRAMS / "heat.event").read_text(encoding="utf-8")
    events = weather(("temp", "humid"), "2013-07-14T00:00", "2013-07-20T23:59")
    names = {iri("temp"): "temp", iri("humid"): "humidity"}
    found = replays.program(program, "\n".join(f"event({names[e.p]}('{local(e.s)[:-1]}', {value(e)}), '{time(e.at)}')." for e in events))
    known = {(event.s, event.p, event.at): float(value(event)) for event in events}
    expected = Counter[str]()
    for (station, quantity, at), t in known.items():
        rh = known.get((station, iri("humid"), at))
        if quantity == iri("temp") and rh is not None and t >= 80 and rh >= 40:
            expected[heat_class(t, rh)] += 1
    assert Counter(name for event, _, name, *_ in found if event == "heatNote") == +expected
    in_queens = {(note, start) for event, place, note, start, _ in found if event == "heatNote" and place in ("JFK", "LGA")}
    assert {(note, start) for event, place, note, start, _ in found if (event, place) == ("heatArea", "queens")} == in_queens
    assert stated("Heat index", "(\\d+) notes of caution") == expected["caution"]
    assert stated("Heat index", "(\\d+) of extreme caution") == expected["extremeCaution"]


def heat_class(t: float, rh: float) -> str:
    index = -42.379 + 2.04901523 * t + 10.14333127 * rh - 0.22475541 * t * rh - 0.00683783 * t * t - 0.05481717 * rh * rh
    index += 0.00122874 * t * t * rh + 0.00085282 * t * rh * rh - 0.00000199 * t * t * rh * rh
    return next(
        name for name, least in {"extremeDanger": 130, "danger": 105, "extremeCaution": 90, "caution": 80, "": -100}.items() if index >= least
    )


FIRE = "2013-01-31T00:30:00Z", "2013-01-31T06:00:00Z"


def test_wind_and_fire(replays: Replays) -> None:
    program, classes = ((PROGRAMS / f"wind_and_fire.{suffix}").read_text(encoding="utf-8") for suffix in ("event", "ttl"))
    events = [event for event in weather(("wind_speed", "precip"), "2013-01-30T00:00", "2013-01-31T23:59") if event.s == iri("station/JFK")]
    names = {iri("wind_speed"): "windSpeed", iri("precip"): "precipitation"}
    lines = [(time(e.at), f"event({names[e.p]}('JFK', {value(e)}), '{time(e.at)}').") for e in events]
    lines += [(at, f"event({name}('JFK'), '{at}').") for name, at in zip(("fireStarts", "fireEnds"), FIRE, strict=True)]
    found = replays.program(program, "\n".join(text for _, text in sorted(lines)), "--background", replays.file("classes.ttl", classes))
    wind = {e.at: value(e) for e in events if e.p == iri("wind_speed")}
    rises = {(one, other) for one in wind for other in wind if 0 < other - one <= 3 * HOUR and 0 < wind[one] * Decimal("1.1") <= wind[other]}
    start, end = (micros(at) for at in FIRE)
    alarms = {(time(start), time(other)) for one, other in rises if start < one and other - start <= 3 * HOUR}
    enhanced = {(time(min(at, start)), time(max(at, start))) for at, speed in wind.items() if speed >= 25 and abs(at - start) <= 3 * HOUR}
    assert {each[-2:] for each in found if each[0] == "windSpeedIncrease"} == {(time(one), time(other)) for one, other in rises}
    assert {each[-2:] for each in found if each[0] == "fireAlarm"} == alarms
    assert {each[1:] for each in found if each[0] == "enhancedFire"} == {("JFK", "http://example.org/weather#Sundowner", *at) for at in enhanced}
    assert [each for each in found if each[0] == "fireDuration"] == [("fireDuration", "JFK", str((end - start) // 1_000_000), *FIRE)]
    assert (stated("Wind and fire", "(\\d+) alarms"), stated("Wind and fire", "(\\d+) enhanced fires")) == (len(alarms), len(enhanced))


# ---------------------------------------------------------------- airports
def test_places_nearby(replays: Replays) -> None:
    airports = read_airports()
    assert len(airports) == 1458
    detected = Event(iri("station/SFO"), iri("detects"), iri("BlizzardWarning"), micros("2013-01-01T00:00"))
    near = {
        local(each["place"]): float(each["km"])
        for each in replays.queries({"q": DISTANCE + NEARBY}, [detected], "".join(p.coordinate_triples() for p in airports.values()))
    }
    distances = {code: kilometres(airports["SFO"], place) for code, place in airports.items() if code != "SFO"}
    assert near == pytest.approx({code: km for code, km in distances.items() if km < 50})
    assert (len(near), min(near, key=lambda code: near[code]), round(min(near.values()), 1)) == (8, "SQL", 16.3)


def test_clear_air_turbulence(replays: Replays) -> None:
    program = (PROGRAMS / "turbulence.event").read_text(encoding="utf-8")
    airports = sorted((read_airports()[code] for code in ("SFO", "DEN", "ORD", "JFK", "BOS")), key=lambda place: float(place.longitude))
    links = "".join(f"linked({west.code.lower()}, {nearest_east(west, airports).code.lower()}).\n" for west in airports[:-1])
    stream = "event(cat(ord), '2013-01-30T12:00:00Z').\nevent(airplane(west, sfo), '2013-01-30T13:00:00Z').\nevent(airplane(east, jfk), '2013-01-30T13:00:00Z').\n"
    found = replays.program(program, stream, "--static", replays.file("links.pl", links))
    assert set(found) == {("jetStreamWarning", "west", "ord", "2013-01-30T12:00:00Z", "2013-01-30T13:00:00Z")}


def nearest_east(west: Place, places: Sequence[Place]) -> Place:
    return min((place for place in places if float(place.longitude) > float(west.longitude)), key=lambda place: kilometres(west, place))


def test_the_page_marks_each_application() -> None:
    """Each row of the table leads to a section, and says which kind it is."""
    rows = re.findall(r"^\| \[(.*?)\]\((.*?)\) \| (.*?) \| (.*?) \| (.*?) \|$", PAGE, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^##+ (.*)$", PAGE, re.MULTILINE)}
    assert {link.removeprefix("#") for _, link, *_ in rows if link.startswith("#")} <= anchors
    assert all(re.search("printed|reconstructed|variant|ours", kind) for _, _, _, kind, _ in rows)
    assert len(rows) == 14


# ---------------------------------------------------------------- weather stations
@pytest.fixture(scope="module")
def stations() -> list[dict[str, str]]:
    """The batches as messages, each at its sampling time."""
    found = []
    for path in sorted((DATA / "csrbench" / "data").glob("*.ttl")):
        text = path.read_text(encoding="utf-8")
        (sampled,) = set(re.findall(r"samplingTime sens-obs:Instant_(\d{4})_(\d\d)_(\d\d)_(\d\d)_(\d\d)_(\d\d)", text))
        found.append({"triples": text, "at": "{}-{}-{}T{}:{}:{}Z".format(*sampled)})
    assert len(found) == 34
    return found


STATIONS_SAY = """
PREFIX om: <http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#>
PREFIX weather: <http://knoesis.wright.edu/ssw/ont/weather.owl#>
SELECT ?sensor ?observation ?value WHERE {{
  {{ ?observation om:observedProperty weather:{property} ; om:procedure ?sensor ; om:result ?result . ?result om:floatValue ?value }} WITHIN 0
  FILTER({condition})
}}
"""
PAIRS = """
PREFIX om: <http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#>
PREFIX weather: <http://knoesis.wright.edu/ssw/ont/weather.owl#>
SELECT ?sensor ?one ?other WHERE {
  { { ?one om:observedProperty weather:_AirTemperature ; om:procedure ?sensor } WITHIN 0 }
  SEQ { { ?other om:observedProperty weather:_AirTemperature ; om:procedure ?sensor } WITHIN 0 }
}
"""
STATIONS_FOUND = [
    pytest.param(STATIONS_SAY.format(property="_AirTemperature", condition="?value > 80"), 15, id="hot"),
    pytest.param(STATIONS_SAY.format(property="_RelativeHumidity", condition="?value > 24 && ?value < 49"), 12, id="dry"),
    pytest.param(PAIRS, 3990, id="pairs"),
]


@pytest.mark.parametrize(("query", "solutions"), STATIONS_FOUND)
def test_weather_stations(stations: list[dict[str, str]], query: str, solutions: int, replays: Replays) -> None:
    assert len(replays.queries({"q": query}, stations)) == solutions
