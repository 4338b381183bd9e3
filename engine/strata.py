"""Strata: in which order the negative parts of one instant decide, and the recursion that has no such order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.kernel import columns as c

POLICIES = frozenset({c.RECENT, c.CHRONOLOGICAL})
NEGATIVE = frozenset(
    {c.OPTIONAL, c.OPTIONALSEQ, c.EQUALSOPTIONAL, c.MINUS, c.EXISTS, c.NOTEXISTS, c.WITHOUT, c.WITHOUTFOR, c.MARK, c.COLLECT} | POLICIES
)


@dataclass(frozen=True, slots=True)
class Wire:
    """One way a solution goes inside an instant; over a strict edge it only matters in later ones."""

    source: int
    target: int
    strict: bool


class Cycle(Exception):
    """Recursion through a negative part without a strict step; `nodes` are the cycle in its order, `way` is what a reader is told of it."""

    def __init__(self, nodes: list[int], way: str = "") -> None:
        super().__init__(nodes, way)
        self.nodes = nodes
        self.way = way

    def __str__(self) -> str:
        reason = "recursion through a negative part (optional join, MINUS, EXISTS, WITHOUT, aggregate, window, ORDER BY, LIMIT, policy) without a strict step in time"
        return f"{reason}: {self.way}" if self.way else reason


def strata(kinds: Mapping[int, int], wires: Sequence[Wire], settled: Mapping[int, int]) -> dict[int, int]:
    """The stratum of each node of `kinds`: how many negative parts decide before it at an instant. `settled` are those of other
    sources, which are positive. Raises Cycle."""
    level = dict.fromkeys(kinds, 0)
    into: dict[int, list[int]] = {node: [] for node in kinds}
    onwards: dict[int, list[int]] = {node: [] for node in kinds}
    for wire in wires:
        if not wire.strict:
            into[wire.target].append(wire.source)
            onwards.setdefault(wire.source, []).append(wire.target)
    least_of = {node: max((settled[source] for source in sources if source not in kinds), default=0) for node, sources in into.items()}
    pending = set(kinds)
    for _ in range(len(kinds) + 2):
        changed = set()
        for node in pending:
            least = max((level[source] + (kinds[source] in NEGATIVE) for source in into[node] if source in kinds), default=0)
            least = max(least, least_of[node])
            if least > level[node]:
                level[node] = least
                changed.add(node)
        if not changed:
            return level
        pending = {target for node in changed for target in onwards[node]}
    raise Cycle(negative_cycle(kinds, onwards))


def negative_cycle(kinds: Mapping[int, int], onwards: Mapping[int, list[int]]) -> list[int]:
    """A shortest cycle inside an instant through some negative part, from that part on; there is one."""
    ways = (way for node, kind in kinds.items() if kind in NEGATIVE and (way := _way_back(node, onwards)))
    return min(ways, key=len)


def _way_back(node: int, onwards: Mapping[int, list[int]]) -> list[int] | None:
    """The nodes of a shortest way from a node to itself."""
    came_from: dict[int, int] = {}
    edge = [node]
    while edge and node not in came_from:
        following: list[int] = []
        for source in edge:
            for target in onwards.get(source, ()):
                if target not in came_from:
                    came_from[target] = source
                    following.append(target)
        edge = following
    if node not in came_from:
        return None
    way = [came_from[node]]
    while way[-1] != node:
        way.append(came_from[way[-1]])
    return way[::-1]


def on_cycle(node: int, wires: Sequence[Wire]) -> bool:
    """Whether a node's solutions come back to it inside an instant."""
    onwards: dict[int, list[int]] = {}
    for wire in wires:
        if not wire.strict:
            onwards.setdefault(wire.source, []).append(wire.target)
    return _way_back(node, onwards) is not None
