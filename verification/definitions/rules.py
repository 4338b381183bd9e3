"""CONSTRUCT rules of the reference evaluator: the least fixpoint of semantics.md section 6, instant by instant.

Inside an instant positive parts grow to their least fixpoint while negative parts look at the round before; rounds
are repeated until one changes nothing. For the recursion that section 6 allows that is the stratified model, without
computing any strata: each round settles what depends on nothing but what earlier rounds settled.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha1

from epsparql import algebra
from epsparql.algebra import Query, TriplePattern
from epsparql.terms import BlankNode, Iri, Term, TermOrVariable, TripleTerm, TripleTermPattern, Variable
from verification.definitions.model import Fact, Interval, Micros, Occurrence, Solution, Triple
from verification.definitions.patterns import USUAL, Settings
from verification.definitions.queries import Given, Streams, found, seen
from verification.definitions.rdfs import entailed

ConstructRow = tuple[frozenset[Triple], Interval]
"""A solution's triples with their interval."""
ROUNDS = 100
"""More than any allowed recursion needs over the tests' few triples."""


@dataclass
class Rules:
    """The rules among the queries, over finished input streams."""

    queries: Mapping[str, Query]
    streams: Streams
    facts: frozenset[Fact]
    horizons: Mapping[str, Micros]
    settings: Mapping[str, Settings]
    constructed: dict[str, set[ConstructRow]] = field(default_factory=dict)
    silent: dict[str, Micros] = field(default_factory=dict)
    """t0 of the rules whose streams end without an occurrence."""

    def __post_init__(self) -> None:
        self.rules = {name: query for name, query in self.queries.items() if isinstance(query, algebra.Construct)}
        self.writable = frozenset(rule.into for rule in self.rules.values())

    def run(self) -> Streams:
        """Input and derived occurrences of every stream."""
        while self.rules:
            closed = self._closed()
            waiting = {name: self.horizons[name] for name, rule in self.rules.items() if name not in self.silent and not seen(rule, closed)}
            if not waiting:
                return closed
            first = min(waiting.values())
            self.silent |= {name: instant for name, instant in waiting.items() if instant == first}
        return self.streams

    def _closed(self) -> Streams:
        """Instant by instant, in order of time; what a rule will find later, should nothing else happen, is looked at
        when it is due.
        """
        closed: Streams = {}
        self.constructed = {name: set() for name in self.rules}
        agenda = {occurrence.end for stream in self.streams.values() for occurrence in stream} | set(self.silent.values())
        while agenda:
            instant = min(agenda)
            agenda.remove(instant)
            closed = self._settle(instant, closed)
            for name, rule in self.rules.items():
                rows = list(self._derive_rows(name, rule, closed, closed))
                self.constructed[name] |= {row for row in rows if row[1][1] == instant}
                agenda |= {end for _, (_, end) in rows if end > instant}
        return closed

    def _settle(self, instant: Micros, closed: Streams) -> Streams:
        """`closed` (all before the instant) with what holds at the instant."""
        names = set(self.streams) | self.writable
        arrived = {name: closed.get(name, frozenset()) | {o for o in self.streams.get(name, frozenset()) if o.end == instant} for name in names}
        settled: Streams = arrived
        for _ in range(ROUNDS):
            following = self._grown(instant, arrived, settled)
            if following == settled:
                return settled
            settled = following
        raise AssertionError("recursion through a negative part at one instant")

    def _grown(self, instant: Micros, arrived: Streams, settled: Streams) -> Streams:
        """The least fixpoint of the positive parts, where negative parts look at `settled`."""
        grown = arrived
        while True:
            more = {name: set(stream) for name, stream in grown.items()}
            for name, rule in self.rules.items():
                for triples, (start, end) in self._derive_rows(name, rule, grown, settled):
                    if end == instant:
                        more[rule.into] |= entailed((Occurrence(triple, start, end) for triple in triples), self.facts)
            following = {name: frozenset(stream) for name, stream in more.items()}
            if following == grown:
                return grown
            grown = following

    def _derive_rows(self, name: str, rule: algebra.Construct, streams: Streams, settled: Streams) -> Iterator[ConstructRow]:
        given = Given(streams, settled, self.facts, self.silent.get(name), self.horizons[name], self.settings.get(name, USUAL))
        for x in found(rule, given):
            assert x.start is not None
            assert x.end is not None
            if triples := frozenset(instantiated(name, rule.template, x)):
                yield triples, (x.start, x.end)


def instantiated(rule: str, template: tuple[TriplePattern, ...], x: Solution) -> Iterator[Triple]:
    """A triple with an unbound variable, or that is none of RDF, is left out alone."""
    identity = sha1(repr((rule, sorted(map(str, x.bindings)), x.start, x.end)).encode()).hexdigest()[:16]

    def instantiate_term(part: TermOrVariable) -> Term | None:
        match part:
            case BlankNode(label):
                return BlankNode(f"{label}x{identity}")
            case TripleTermPattern():
                subject, predicate, object_ = instantiate_term(part.subject), instantiate_term(part.predicate), instantiate_term(part.object)
                known = isinstance(subject, Iri | BlankNode) and isinstance(predicate, Iri) and object_ is not None
                return TripleTerm(subject, predicate, object_) if known else None  # type: ignore[arg-type]  # which `known` says
            case Variable():
                return x.lookup(part)
        return part

    for pattern in template:
        subject, predicate, object_ = instantiate_term(pattern.subject), instantiate_term(pattern.predicate), instantiate_term(pattern.object)
        if isinstance(subject, Iri | BlankNode) and isinstance(predicate, Iri) and object_ is not None:
            yield subject, predicate, object_
