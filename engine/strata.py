"""Strata: in which order the negative parts of one instant decide, and the recursion that has no such order."""

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


def strata(kinds: list[int], wires: list[Wire]) -> list[int]:
    """The stratum of each node: how many negative parts decide before it at an instant. Raises Cycle."""
    level = [0] * len(kinds)
    into: list[list[int]] = [[] for _ in kinds]
    for wire in wires:
        if not wire.strict:
            into[wire.target].append(wire.source)
    pending = set(range(len(kinds)))
    for _ in range(len(kinds) + 2):
        changed = set()
        for node in pending:
            least = max((level[source] + (kinds[source] in NEGATIVE) for source in into[node]), default=0)
            if least > level[node]:
                level[node] = least
                changed.add(node)
        if not changed:
            return level
        pending = {wire.target for wire in wires if wire.source in changed and not wire.strict}
    raise Cycle(negative_cycle(kinds, wires))


def negative_cycle(kinds: list[int], wires: list[Wire]) -> list[int]:
    """A shortest cycle inside an instant through some negative part, from that part on; there is one."""
    onwards: list[list[int]] = [[] for _ in kinds]
    for wire in wires:
        if not wire.strict:
            onwards[wire.source].append(wire.target)
    ways = (way for node, kind in enumerate(kinds) if kind in NEGATIVE and (way := _way_back(node, onwards)))
    return min(ways, key=len)


def _way_back(node: int, onwards: list[list[int]]) -> list[int] | None:
    """The nodes of a shortest way from a node to itself."""
    came_from: dict[int, int] = {}
    edge = [node]
    while edge and node not in came_from:
        following: list[int] = []
        for source in edge:
            for target in onwards[source]:
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


def on_cycles(n: int, wires: list[Wire]) -> set[int]:
    """Of n nodes those on a cycle inside an instant, or on a way from one cycle to another: the others are trimmed, end by end."""
    onwards: list[list[int]] = [[] for _ in range(n)]
    back: list[list[int]] = [[] for _ in range(n)]
    for wire in wires:
        if not wire.strict:
            onwards[wire.source].append(wire.target)
            back[wire.target].append(wire.source)
    left = set(range(n))
    for following, preceding in ((onwards, back), (back, onwards)):
        degree = [len([node for node in preceding[k] if node in left]) for k in range(n)]
        loose = [k for k in left if not degree[k]]
        while loose:
            node = loose.pop()
            left.discard(node)
            for other in following[node]:
                degree[other] -= 1
                if not degree[other] and other in left:
                    loose.append(other)
    return left
