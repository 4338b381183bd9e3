"""This module tells which source feeds which in a plan, as far as people want to read of it."""

from collections.abc import Sequence

from engine.kernel.state import layout as c
from engine.physical_plan.plan import Fragment, Node, Scan
from engine.planner.operators.without import LIFTED
from epsparql.deferred_methods import dataclass


@dataclass(frozen=True, slots=True)
class Feeds:
    """Lists, for each source of rows (as `Reader` numbers them), its feeders with their sides, in order of the sides.

    The marks of EXISTS come last.
    """

    nodes: list[Node]
    into: dict[int, list[tuple[int, int]]]

    @classmethod
    def from_fragment(cls, fragment: Fragment, rows: Sequence[tuple[int, int]]) -> "Feeds":
        """Build the feeds of a fragment; `rows` are the (node, side) that timeless rows of the query come to."""
        nodes = fragment.nodes
        into: dict[int, list[tuple[int, int]]] = {source: [] for source in range(len(nodes) + len(fragment.scans) + len(rows))}
        for source in range(len(nodes)):
            for target, side in fragment.edges_of(source):
                into[target].append((side, source))
            into[source] += [(c.EMIT, mark) for mark in fragment.marks_of(source)]
        for number, scan in enumerate(fragment.scans, len(nodes)):
            into[scan.node].append((scan.side, number))
            into[number] += [(c.LEFT, out) for out in fragment.rules if _writes(fragment, out, scan)]
        for number, (node, side) in enumerate(rows, len(nodes) + len(fragment.scans)):
            into[node].append((side, number))
        return cls(nodes, {target: sorted(found) for target, found in into.items()})

    def without_dead_sources(self) -> dict[int, list[int]]:
        """Return the feeds without dead sources. A source that only hands on is replaced by what feeds it."""
        alive = self._alive()
        return {
            target: list(dict.fromkeys(known for _, source in found for known in self._behind(source) if known in alive))
            for target, found in self.into.items()
        }

    def list_sides(self, target: int) -> dict[int, int]:
        """Return the side at which each feeder that `without_dead_sources` names comes in."""
        return {known: side for side, source in self.into[target] for known in self._behind(source)}

    def _behind(self, source: int) -> list[int]:
        if source >= len(self.nodes) or not hands_on(self.nodes[source]):
            return [source]
        return [known for _, below in self.into[source] for known in self._behind(below)]

    def _alive(self) -> set[int]:
        """Return the sources that rows can come from as long as the background is empty; a join needs both of its
        sides.
        """
        found = {s for s in self.into if s >= len(self.nodes) or self.nodes[s].kind in (c.COLLECT, c.EXISTS, c.NOTEXISTS)}
        readers: dict[int, list[tuple[int, int]]] = {source: [] for source in self.into}
        for target, feeds in self.into.items():
            for side, source in feeds:
                readers[source].append((side, target))
        fed: dict[int, set[int]] = {target: set() for target in self.into}
        pending = list(found)
        while pending:
            for side, target in readers[pending.pop()]:
                fed[target].add(side)
                if target not in found and (self.nodes[target].kind != c.JOIN or len(fed[target]) > 1):
                    found.add(target)
                    pending.append(target)
        return found


def _writes(fragment: Fragment, out: int, scan: Scan) -> bool:
    """Return whether a rule of the query itself writes what a scan reads."""
    first, n = fragment.nodes[out].templates
    return not fragment.nodes[out].by_right and any(
        t.stream == scan.stream and (t.predicate == scan.predicate or t.predicate < 0) for t in fragment.templates[first : first + n]
    )


def hands_on(row: Node) -> bool:
    """Return whether a node does no more than give what comes to others, or give it once where it is timeless."""
    plain = row.kind == c.PASS and row.filter == c.NONE and row.span >= LIFTED
    return plain or (row.kind == c.MOVE and row.keep == 1 and row.moves.n == 0)
