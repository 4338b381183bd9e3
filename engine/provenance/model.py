"""This module describes what a derivation rests on, and where that is looked for: occurrences, the background, and
what either entails.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from engine.background.fact_store import FactIndex, lies_in
from engine.background.reasoning.rdfs_schema import Triple, entailed
from engine.expressions.background_functions import ShortestRoute
from engine.messages import RDFS, Micros
from engine.provenance.inference import DerivedTriples, Given, Steps
from engine.rewrite.resolve_datasets import BACKGROUND
from engine.triples.quads import GraphName, Quad
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.terms import Term, TermOrVariable, Variable

Bindings = Mapping[Variable, Term]


class TooMuch(Exception):
    """Signals that the search would take more work than is granted."""


@dataclass(slots=True)
class StepBudget:
    """Counts how many steps the search may still take."""

    left: int

    def spend(self, steps: int = 1) -> None:
        self.left -= steps
        if self.left < 0:
            raise TooMuch


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Represents a triple of a stream.

    It was accepted at the log position `offset`, or the rule `rule` derived it by its solution `solution`.
    """

    triple: Triple
    stream: str
    start: Micros
    end: Micros
    graph: GraphName | None = None
    offset: int | None = None
    rule: str | None = None
    solution: str | None = None


@dataclass(frozen=True, slots=True)
class BackgroundFact:
    """Represents a triple of the background."""

    triple: Triple
    graph: GraphName | None


@dataclass(frozen=True, slots=True)
class Used:
    """Holds a triple pattern with the triple that it matched: what was given, and the steps by which the triple
    follows from that.
    """

    pattern: str
    triple: Triple
    given: Occurrence | BackgroundFact
    steps: Steps = ()


@dataclass(frozen=True, slots=True)
class Absence:
    """Says that triple patterns together have no solution that counts (semantics.md section 3) up to `until`; None:
    for a timeless solution.
    """

    operator: str
    patterns: tuple[str, ...]
    until: Micros | None


@dataclass(frozen=True, slots=True)
class Members:
    """Holds solutions that an aggregate is over: how many, and the first of them."""

    count: int
    shown: "tuple[Proof, ...]"


@dataclass(frozen=True, slots=True)
class OwnEvent:
    """Says that a program's rule, by its label, derived an event, which is given as text; and what that rests on."""

    text: str
    rule: str
    proof: "Proof"


Step = Used | Absence | Members | OwnEvent


@dataclass(frozen=True, slots=True)
class Proof:
    """Represents a solution of a pattern, timeless where start and end are None, with what it rests on."""

    bindings: Bindings
    start: Micros | None = None
    end: Micros | None = None
    steps: tuple[Step, ...] = ()

    def lookup(self, variable: Variable) -> Term | None:
        return self.bindings.get(variable)


@dataclass(frozen=True, slots=True)
class TimeBounds:
    """Limits the search to what starts at `lo` or later, and ends at `hi` or before; None: whenever."""

    lo: Micros | None = None
    hi: Micros | None = None

    def contains(self, start: Micros, end: Micros) -> bool:
        return (self.lo is None or start >= self.lo) and (self.hi is None or end <= self.hi)


@dataclass(frozen=True, slots=True)
class Edge:
    """Represents a triple that can be matched."""

    triple: Triple
    given: Occurrence | BackgroundFact


class World:
    """Holds all that a query saw up to a solution.

    `windows` has the contents of named windows, from after the one instant to the other.
    """

    def __init__(
        self,
        occurrences: Iterable[Occurrence],
        facts: Iterable[Quad],
        known: FactIndex,
        windows: Mapping[str, tuple[str, Micros, Micros]],
        budget: StepBudget,
    ) -> None:
        self.windows, self.budget, self.given = windows, budget, Given((quad[:3] for quad in facts), owl=known.regime != RDFS)
        self._known = known
        self.first: Micros | None = None  # end
        self._by_predicate: dict[Term, list[Edge]] = {}
        self._by_subject: dict[tuple[Term, Term], list[Edge]] = {}
        self._by_object: dict[tuple[Term, Term], list[Edge]] = {}
        self.nodes: dict[Term, list[Edge]] = {}
        for occurrence in occurrences:
            budget.spend()
            self.first = occurrence.end if self.first is None else min(self.first, occurrence.end)
            for triple in (occurrence.triple, *entailed(occurrence.triple, known.schema)):
                self._add_edge(Edge(triple, occurrence))
        for s, p, o, graph in known:
            self._add_edge(Edge((s, p, o), BackgroundFact((s, p, o), graph)))

    def find_route(self, arguments: Sequence[Term]) -> ShortestRoute | None:
        """Return the shortest route in the background for the arguments of ep:route. Raises: ExpressionError."""
        return self._known.find_route(arguments)

    def _add_edge(self, edge: Edge) -> None:
        s, p, o = edge.triple
        self._by_predicate.setdefault(p, []).append(edge)
        self._by_subject.setdefault((p, s), []).append(edge)
        self._by_object.setdefault((p, o), []).append(edge)
        for node in {s, o}:
            self.nodes.setdefault(node, []).append(edge)

    def edges(self, s: TermOrVariable, p: TermOrVariable, o: TermOrVariable, place: a.Place, span: TimeBounds) -> Iterator[Edge]:
        """Yield the edges that may match at a place."""
        for edge in self._candidates(s, p, o):
            self.budget.spend()
            if self.visible(edge, place, span):
                yield edge

    def _candidates(self, s: TermOrVariable, p: TermOrVariable, o: TermOrVariable) -> Iterable[Edge]:
        if isinstance(p, Variable):
            for end in (s, o):
                if not isinstance(end, Variable):
                    return self.nodes.get(end, ())
            return (edge for edges in self._by_predicate.values() for edge in edges)
        if not isinstance(s, Variable):
            return self._by_subject.get((p, s), ())
        if not isinstance(o, Variable):
            return self._by_object.get((p, o), ())
        return self._by_predicate.get(p, ())

    def visible(self, edge: Edge, place: a.Place, span: TimeBounds) -> bool:
        given = edge.given
        if not lies_in(given.graph, place):
            return False
        if isinstance(given, BackgroundFact):
            return place.window in (None, BACKGROUND)
        if place.window is None:
            return span.contains(given.start, given.end)
        if place.window == BACKGROUND:
            return False
        if place.window not in self.windows:  # it is a stream
            return given.stream == place.window and span.contains(given.start, given.end)
        stream, after, until = self.windows[place.window]
        return given.stream == stream and after < given.end <= until

    def used(self, pattern: str, edge: Edge) -> Used:
        """Return the edge as a step, with what it follows from."""
        occurrence = edge.given.triple if isinstance(edge.given, Occurrence) else None
        steps = self.given.explained(edge.triple, occurrence)
        if steps is None and occurrence is None and self._known.rules:
            steps = self._derived.explained(edge.triple)
        return Used(pattern, edge.triple, edge.given, steps or ())

    @cached_property
    def _derived(self) -> DerivedTriples:
        return DerivedTriples(self._known, self.given)
