"""This module finds ways along a property path, with the triples that they go by (SPARQL 1.1, 18.1.7)."""

from collections.abc import Iterator
from typing import assert_never

from engine.messages import Micros
from engine.provenance.model import Edge, Occurrence, TimeBounds, Used, World
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.terms import Iri, Term, Variable

_ANY = Variable("_:any")


@dataclass(frozen=True, slots=True)
class PathProof:
    """Says how far one came along a path, with the interval of all that was passed."""

    node: Term
    start: Micros | None = None
    end: Micros | None = None
    steps: tuple[Used, ...] = ()

    def on(self, other: "PathProof") -> "PathProof":
        starts = [t for t in (self.start, other.start) if t is not None]
        ends = [t for t in (self.end, other.end) if t is not None]
        return PathProof(other.node, min(starts, default=None), max(ends, default=None), (*self.steps, *other.steps))


@dataclass(frozen=True, slots=True)
class Ways:
    world: World
    place: a.Place
    span: TimeBounds

    def along(self, path: a.PropertyPath, node: Term, *, back: bool = False) -> Iterator[PathProof]:
        """Yield all ways from a node, or `back` to it."""
        match path:
            case a.Link(predicate):
                yield from self._by(predicate, node, back)
            case a.Inverse(inner):
                yield from self.along(inner, node, back=not back)
            case a.Sequence(left, right):
                first, second = (right, left) if back else (left, right)
                for way in self.along(first, node, back=back):
                    yield from (way.on(further) for further in self.along(second, way.node, back=back))
            case a.Alternative(left, right):
                yield from self.along(left, node, back=back)
                yield from self.along(right, node, back=back)
            case a.ZeroOrOne(inner):
                yield PathProof(node)
                yield from self.along(inner, node, back=back)
            case a.ZeroOrMore(inner):
                yield PathProof(node)
                yield from self._repeated(inner, node, back)
            case a.OneOrMore(inner):
                yield from self._repeated(inner, node, back)
            case a.Negated(forward, backward):
                if forward is not None:
                    yield from self._but(forward, node, back)
                if backward is not None:
                    yield from self._but(backward, node, not back)
            case _:
                assert_never(path)

    def _repeated(self, path: a.PropertyPath, node: Term, back: bool) -> Iterator[PathProof]:
        """Yield ways that repeat a path one or more times; of the ways to one node on one interval, only the first."""
        seen: set[tuple[Term, Micros | None, Micros | None]] = set()
        pending = [PathProof(node)]
        while pending:
            reached = []
            for way in pending:
                for step in self.along(path, way.node, back=back):
                    further = way.on(step)
                    if (key := (further.node, further.start, further.end)) not in seen:
                        seen.add(key)
                        reached.append(further)
                        yield further
            pending = reached

    def _by(self, predicate: Iri, node: Term, back: bool) -> Iterator[PathProof]:
        s, o = (_ANY, node) if back else (node, _ANY)
        for edge in self.world.edges(s, predicate, o, self.place, self.span):
            yield self._way(edge, back, str(predicate))

    def _but(self, predicates: tuple[Iri, ...], node: Term, back: bool) -> Iterator[PathProof]:
        s, o = (_ANY, node) if back else (node, _ANY)
        for edge in self.world.edges(s, _ANY, o, self.place, self.span):
            if edge.triple[2 if back else 0] == node and edge.triple[1] not in predicates:
                yield self._way(edge, back, "!(" + "|".join(map(str, predicates)) + ")")

    def _way(self, edge: Edge, back: bool, pattern: str) -> PathProof:
        used = (self.world.used(pattern, edge),)
        node = edge.triple[0 if back else 2]
        return PathProof(node, edge.given.start, edge.given.end, used) if isinstance(edge.given, Occurrence) else PathProof(node, steps=used)
