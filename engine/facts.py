"""The background's triples, by predicate: what a triple pattern matches of them at its place."""

from collections.abc import Iterable, Iterator
from functools import cached_property

from engine.describe import Descriptions
from engine.entailment import Entailment
from engine.quads import GraphName, Quad, name_of
from engine.rewrite.places import BACKGROUND
from engine.schema import Schema, schema_of
from epsparql import algebra as a
from epsparql.terms import Term, Variable


class FactIndex:
    """Background triples, each with the graph that it lies in, None for none."""

    def __init__(self, quads: Iterable[Quad] = (), owl: bool = False) -> None:
        """`owl`: what the schema says in OWL's words counts for streams too."""
        self._owl = owl
        self._by_predicate: dict[Term, list[Quad]] = {}
        for quad in dict.fromkeys(quads):
            self._by_predicate.setdefault(quad[1], []).append(quad)

    @cached_property
    def descriptions(self) -> Descriptions:
        return Descriptions(quad[:3] for quad in self)

    @cached_property
    def schema(self) -> Schema[Term]:
        return schema_of(self, self._owl)

    @cached_property
    def entailment(self) -> Entailment:
        return Entailment(self.schema)

    def __iter__(self) -> Iterator[Quad]:
        return (quad for quads in self._by_predicate.values() for quad in quads)

    def matching(self, pattern: a.TriplePattern, place: a.Place) -> Iterator[Quad]:
        """Under GRAPH a triple counts once for each graph that it lies in, elsewhere once."""
        if place.window not in (None, BACKGROUND):
            return  # a window holds what came on its stream
        seen: set[tuple[Term, Term, Term]] = set()
        for quad in self._candidates(pattern.predicate):
            if not lies_in(quad[3], place) or not is_instance(quad, pattern):
                continue
            if place.graph is None:
                if quad[:3] in seen:
                    continue
                seen.add(quad[:3])
            yield quad

    def _candidates(self, predicate: Term | Variable) -> Iterable[Quad]:
        return self if isinstance(predicate, Variable) else self._by_predicate.get(predicate, ())


def lies_in(graph: GraphName | None, place: a.Place) -> bool:
    if place.among is None:
        return place.graph is None or graph is not None
    return name_of(graph) in place.among


def is_instance(quad: Quad, pattern: a.TriplePattern) -> bool:
    """Whether a triple is an instance of a pattern."""
    bound: dict[Variable, Term] = {}
    for part, term in zip((pattern.subject, pattern.predicate, pattern.object), quad, strict=False):
        if isinstance(part, Variable):
            if bound.setdefault(part, term) != term:  # type: ignore[arg-type]  # only the graph, which the shorter pattern leaves out, may be None
                return False
        elif part != term:
            return False
    return True
