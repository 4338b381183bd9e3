"""Figure 3 of the EP-SPARQL paper (Figure 6 of the Semantic Web journal article): agents who deliver goods in Milan,
and routes that are not accessible.

Neither the ontology of Milan nor the patterns are printed, so both are reconstructed. Roads are a generated grid, or
the connections of a GTFS feed.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from bench.measurement import WrongCount
from bench.papers.datasets import read_gtfs
from bench.papers.feeds import BEGIN, SECOND, Event, Result, batches, iri, run, value_of
from bench.papers.figures import Figure, Row, Size

_PARAMETERS = (
    "1 and 10 agents with 20 locations each. Over 50 % of the connections are not accessible at any time. The time at a location is ignored."
)
_DIFFERS = "The patterns and the background are not printed. The roads are 684 between 100 crossings; 55 % are closed, others for each location."
FIGURES = {
    "003-3a": Figure("Milan Sightseeing: time", "EP-SPARQL paper, Figure 3(a)", "locations", "ms", _PARAMETERS, _DIFFERS, axis="0 to 1500 ms"),
    "003-3b": Figure(
        "Milan Sightseeing: memory", "EP-SPARQL paper, Figure 3(b)", "locations", "kB", "As for the time.",
        "As for the time. Memory is the state of the queries after the last location, as they count it.", axis="0 to 2000 kB",
    ),
}  # fmt: skip
PAPER = {
    ("003-3a", 1): (31, 94, 109, 130),
    ("003-3a", 10): (510, 889, 1_076, 1_295),
    ("003-3b", 1): (35, 86, 119, 165),
    ("003-3b", 10): (204, 810, 1_039, 1_503),
}
"""The text has these numbers without saying which are times: those that fit the axis of (a) are taken for (a)."""
LOCATIONS, AGENTS = (5, 10, 15, 20), (1, 10)
CLOSED_PERCENT = 55
_SIDE = 10
RULES = {
    "now": "CONSTRUCT { :now :asked true } WHERE { ?agent :asks ?next }",
    "open": """CONSTRUCT { ?x :openTo ?y } WHERE { { :now :asked true . ?road :from ?x ; :to ?y } WITHIN 0
  OPTIONAL { ?road :inaccessible ?closed FILTER(getDURATION() < "PT1M"^^xsd:duration) } FILTER(!BOUND(?closed)) }""",
    "asked": "CONSTRUCT { ?next :reachedBy ?agent } WHERE { ?agent :asks ?next }",
    "reached": "CONSTRUCT { ?x :reachedBy ?agent } WHERE { { ?y :reachedBy ?agent } EQUALS { ?x :openTo ?y } }",
}
"""When an agent asks, a road is open that was not reported closed within the last minute.

The closure goes back from the next location.
"""
ROUTES = {
    "routes": """SELECT ?agent ?here ?via WHERE {
  { ?agent :at ?here } SEQ { { ?here :openTo ?via } EQUALS { ?via :reachedBy ?agent } } WITHOUT { ?agent :at ?moved }
    WITHIN "PT1M"^^xsd:duration }""",
}
"""Each solution is a place to go on to from the present one, from which the next location can be reached."""


@dataclass(frozen=True, slots=True)
class Journey:
    """Describes where agents go: the roads, and for each agent its locations."""

    roads: Sequence[tuple[str, str]]
    visits: Sequence[Sequence[str]]

    @classmethod
    def draw(cls, roads: Sequence[tuple[str, str]], agents: int, locations: int) -> "Journey":
        """Return agents who visit so many locations, and one more to which they go on; no two in a row are the same."""
        rng, places = np.random.default_rng(42), sorted({place for road in roads for place in road})
        return cls(roads, [[places[k] for k in rng.permutation(len(places))[: locations + 1]] for _ in range(agents)])

    def background(self) -> str:
        return "".join(f"{_road(x, y)} {iri('from')} {_place_term(x)} .\n{_road(x, y)} {iri('to')} {_place_term(y)} .\n" for x, y in self.roads)

    def events(self) -> Iterator[Event]:
        """Yield, for each location: the agents arrive, roads are reported closed, and the agents ask for the way to
        the next location.
        """
        true = '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>'
        for step in range(len(self.visits[0]) - 1):
            at = BEGIN + step * 120 * SECOND
            yield from (Event(_agent(k), iri("at"), _place_term(places[step]), at) for k, places in enumerate(self.visits))
            yield from (Event(_road(x, y), iri("inaccessible"), true, at + SECOND) for x, y in self.roads if is_closed(x, y, step))
            yield from (Event(_agent(k), iri("asks"), _place_term(places[step + 1]), at + 2 * SECOND) for k, places in enumerate(self.visits))

    def expected(self) -> set[tuple[int, str, str, str]]:
        """Return what must come out, found by breadth-first search: step, agent, location, and a place to go on to."""
        found = set()
        for step in range(len(self.visits[0]) - 1):
            reverse, onward = dict[str, list[str]](), dict[str, list[str]]()
            for x, y in self.roads:
                if not is_closed(x, y, step):
                    reverse.setdefault(y, []).append(x)
                    onward.setdefault(x, []).append(y)
            for agent, places in enumerate(self.visits):
                reached = _reach(places[step + 1], reverse)
                found |= {(step, f"{agent}", places[step], via) for via in onward.get(places[step], ()) if via in reached}
        return found


def is_closed(x: str, y: str, step: int) -> bool:
    return crc32(f"{x}>{y}|{step}".encode()) % 100 < CLOSED_PERCENT


def grid() -> list[tuple[str, str]]:
    """Return the roads of a square of crossings, each with up to eight others."""
    near = [(dx, dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1) if (dx, dy) != (0, 0)]
    ends = [((x, y), (x + dx, y + dy)) for x in range(_SIDE) for y in range(_SIDE) for dx, dy in near]
    return [(f"{x}-{y}", f"{v}-{w}") for (x, y), (v, w) in ends if 0 <= v < _SIDE and 0 <= w < _SIDE]


def deliver(journey: Journey) -> Result:
    """Run the agents' day. Raises: WrongCount, if other ways come out than a search finds."""
    found = run(RULES | ROUTES, batches(journey.events(), 1), journey.background(), keep=True)
    ways = {((each.start - BEGIN) // (120 * SECOND), *(value_of(term or "") for term in each.values)) for each in found.list_solutions("routes")}
    if ways != journey.expected():
        raise WrongCount("papers: ways of the agents", len(ways), len(journey.expected()))
    return found


def measure(size: Size) -> Iterator[Row]:
    """Yield the rows of both figures. Raises: WrongCount, UnusableInput."""
    roads = read_gtfs(size.network) if size.network is not None else grid()
    deliver(Journey.draw(roads, 1, 2))  # compiled code is loaded
    for agents in AGENTS[:1] if size.quick else AGENTS:
        for k, locations in enumerate(LOCATIONS[:1] if size.quick else LOCATIONS):
            found = deliver(Journey.draw(roads, agents, locations))
            series, more = f"{agents} visitor{'s' if agents > 1 else ''}", {"roads": len(roads), "ways": found.counts["routes"]}
            yield Row(
                "003-3a", series, locations, round(found.cpu_s * 1_000), PAPER["003-3a", agents][k], more | {"wall_ms": round(found.wall_s * 1_000)}
            )
            yield Row(
                "003-3b", series, locations, round(found.state_bytes / 1_000), PAPER["003-3b", agents][k], more | {"process_grew_mb": found.grown_mb}
            )


def _reach(start: str, roads: dict[str, list[str]]) -> set[str]:
    reached, pending = {start}, deque([start])
    while pending:
        for place in roads.get(pending.popleft(), ()):
            if place not in reached:
                reached.add(place)
                pending.append(place)
    return reached


def _place_term(name: str) -> str:
    return iri(f"place/{name}")


def _road(x: str, y: str) -> str:
    return iri(f"road/{x}/{y}")


def _agent(k: int) -> str:
    return iri(f"agent/{k}")
