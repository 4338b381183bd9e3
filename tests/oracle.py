"""The naive reference evaluator: semantics.md section 3 by brute force over finished streams.

It shares no code with the engine but the algebra and the terms. Every operator is the sentence of its definition; nothing is indexed,
nothing is incremental. Rules are evaluated instant by instant. Negation inside an instant is the well-founded semantics (the alternating
fixpoint), which for the recursion that section 6 allows is total and equals the stratified one, without computing any strata.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha1
from itertools import product
from typing import assert_never

from epsparql import algebra
from epsparql.algebra import Pattern, Query, Relation, TriplePattern
from epsparql.terms import BlankNode, Iri, Literal, Term, TermOrVariable, Variable
from tests.oracle_expressions import Failure, evaluate, exists_in, truth

Micros = int
Triple = tuple[Term, Term, Term]
Interval = tuple[Micros, Micros]
Bindings = frozenset[tuple[Variable, Term]]
EMPTY_STREAM: Micros = 0
"""t0 of a finished stream without occurrences: 1970-01-01T00:00:00Z."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A triple with an interval."""

    triple: Triple
    start: Micros
    end: Micros


@dataclass(frozen=True, slots=True)
class Solution:
    """A mapping with an interval; both instants are None for a timeless one."""

    bindings: Bindings
    start: Micros | None = None
    end: Micros | None = None

    @property
    def timeless(self) -> bool:
        return self.end is None

    def lookup(self, variable: Variable) -> Term | None:
        return dict(self.bindings).get(variable)


Solutions = frozenset[Solution]
SelectRow = tuple[Bindings, Interval]
"""Projected bindings with an interval."""
ConstructRow = tuple[frozenset[Triple], Interval]
"""A solution's constructed triples with their interval."""


# ---------------------------------------------------------------- solutions and intervals (section 2)
def compatible(x: Solution, y: Solution) -> bool:
    mine = dict(x.bindings)
    return all(mine.get(variable, term) == term for variable, term in y.bindings)


def joined(x: Solution, y: Solution) -> Solution:
    """`x >< y` of compatible x, y; `none` is the neutral element of min and max."""
    starts = [s for s in (x.start, y.start) if s is not None]
    ends = [e for e in (x.end, y.end) if e is not None]
    return Solution(x.bindings | y.bindings, min(starts, default=None), max(ends, default=None))


def before(x: Solution, y: Solution) -> bool:
    return x.end is None or y.start is None or x.end < y.start


def same_interval(x: Solution, y: Solution) -> bool:
    return x.timeless or y.timeless or (x.start, x.end) == (y.start, y.end)


def related(relation: Relation, x: Solution, y: Solution) -> bool:
    if x.start is None or x.end is None or y.start is None or y.end is None:
        return True  # `none` satisfies every temporal relation
    match relation:
        case Relation.MEETS:
            return x.end == y.start
        case Relation.DURING:
            return y.start < x.start and x.end < y.end
        case Relation.STARTS:
            return x.start == y.start and x.end < y.end
        case Relation.FINISHES:
            return x.end == y.end and x.start > y.start
        case Relation.OVERLAPS:
            return x.start < y.start < x.end < y.end
        case Relation.PAR:
            return max(x.start, y.start) < min(x.end, y.end)
    assert_never(relation)


def short_enough(x: Solution, limit: Micros | None) -> bool:
    return limit is None or x.start is None or x.end is None or x.end - x.start <= limit


# ---------------------------------------------------------------- patterns (section 3)
@dataclass
class Evaluation:
    """The patterns of one query over what it sees.

    `known` are the occurrences that surely exist, `possible` those that may (the same set outside of a rule's fixpoint). `evaluate` with
    `sure` gives only solutions that surely exist, without it all that may; a negative part asks the opposite question.
    """

    known: frozenset[Occurrence]
    possible: frozenset[Occurrence]
    background: frozenset[Triple]
    t0: Micros | None
    horizon: Micros
    """The last instant of the finished streams: later solutions set no timers."""
    _cache: dict[tuple[Pattern, bool], Solutions] = field(default_factory=dict)

    def evaluate(self, pattern: Pattern, sure: bool) -> Solutions:
        key = (pattern, sure or self.known is self.possible)
        if key not in self._cache:
            self._cache[key] = frozenset(self._solutions(pattern, sure))
        return self._cache[key]

    def _solutions(self, pattern: Pattern, sure: bool) -> Iterable[Solution]:
        match pattern:
            case algebra.Bgp(triples):
                return self._bgp(triples, sure)
            case algebra.Join(left, right):
                return self._joins(left, right, sure, lambda x, y: True)
            case algebra.Union(left, right):
                return self.evaluate(left, sure) | self.evaluate(right, sure)
            case algebra.Filter(condition, inner):
                return (x for x in self.evaluate(inner, sure) if self._holds(condition, x, sure))
            case algebra.Extend():
                return self._extend(pattern, sure)
            case algebra.SeqJoin(left, right):
                return self._joins(left, right, sure, before)
            case algebra.EqJoin(left, right):
                return self._joins(left, right, sure, same_interval)
            case algebra.RelationJoin(relation, left, right):
                return self._joins(left, right, sure, lambda x, y: related(relation, x, y))
            case algebra.LeftJoin(left, right, condition):
                return self._optional(left, right, condition, sure, lambda x, y: self._counts(y, x))
            case algebra.EqLeftJoin(left, right, condition):
                return self._optional(left, right, condition, sure, lambda x, y: self._counts(y, x) and same_interval(x, y))
            case algebra.SeqRightJoin(left, right, condition):  # the right operand is the one that stays
                return self._optional(right, left, condition, sure, lambda y, x: self._counts(x, y) and before(x, y))
            case algebra.Minus(left, right):
                return self._minus(left, right, sure)
            case algebra.SeqWithout():
                return self._seq_without(pattern, sure)
            case algebra.WithoutFor():
                return self._without_for(pattern, sure)
            case algebra.Within(inner, limit):
                return (x for x in self.evaluate(inner, sure) if short_enough(x, limit))
        assert_never(pattern)

    def _counts(self, z: Solution, x: Solution) -> bool:
        """What counts: z ends no later than x; a timeless x stands at t0."""
        if z.end is None:
            return True
        instant = self.t0 if x.end is None else x.end
        return instant is not None and z.end <= instant

    def _bgp(self, triples: tuple[TriplePattern, ...], sure: bool) -> set[Solution]:
        found = {Solution(frozenset())}
        for triple in triples:
            matches = set(self._matches(triple, sure))
            found = {joined(x, y) for x in found for y in matches if compatible(x, y)}
        return found

    def _matches(self, pattern: TriplePattern, sure: bool) -> Iterator[Solution]:
        for occurrence in self.known if sure else self.possible:
            if (bindings := match_triple(pattern, occurrence.triple)) is not None:
                yield Solution(bindings, occurrence.start, occurrence.end)
        for triple in self.background:
            if (bindings := match_triple(pattern, triple)) is not None:
                yield Solution(bindings)

    def _joins(self, left: Pattern, right: Pattern, sure: bool, relation: Callable[[Solution, Solution], bool]) -> Iterator[Solution]:
        for x, y in product(self.evaluate(left, sure), self.evaluate(right, sure)):
            if compatible(x, y) and relation(x, y):
                yield joined(x, y)

    def _extend(self, pattern: algebra.Extend, sure: bool) -> Iterator[Solution]:
        for x in self.evaluate(pattern.pattern, sure):
            values = self._values(pattern.expression, x, sure)
            if sure and len(values) > 1:
                continue  # not settled yet
            for value in values:
                yield x if value is None else Solution(x.bindings | {(pattern.variable, value)}, x.start, x.end)

    def _optional(
        self,
        kept: Pattern,
        optional: Pattern,
        condition: algebra.Expression | None,
        sure: bool,
        partners: Callable[[Solution, Solution], bool],
    ) -> Iterator[Solution]:
        """The three optional joins: the filter sees the joined mapping and the joined interval, in both parts alike."""

        def extensions(x: Solution, sure: bool) -> Iterator[Solution]:
            for y in self.evaluate(optional, sure):
                if compatible(x, y) and partners(x, y) and (condition is None or self._holds(condition, joined(x, y), sure)):
                    yield joined(x, y)

        for x in self.evaluate(kept, sure):
            yield from extensions(x, sure)
            if not any(True for _ in extensions(x, not sure)):
                yield x

    def _minus(self, left: Pattern, right: Pattern, sure: bool) -> Iterator[Solution]:
        for x in self.evaluate(left, sure):
            if not any(compatible(x, y) and _share(x, y) and self._counts(y, x) for y in self.evaluate(right, not sure)):
                yield x

    def _seq_without(self, pattern: algebra.SeqWithout, sure: bool) -> Iterator[Solution]:
        for x, y in product(self.evaluate(pattern.left, sure), self.evaluate(pattern.right, sure)):
            if not compatible(x, y) or not before(x, y):
                continue
            both = joined(x, y)
            if short_enough(both, pattern.within) and not any(
                compatible(both, z) and before(x, z) and before(z, y) and self._counts(z, both) for z in self.evaluate(pattern.absent, not sure)
            ):
                yield both

    def _without_for(self, pattern: algebra.WithoutFor, sure: bool) -> Iterator[Solution]:
        for x in self.evaluate(pattern.pattern, sure):
            start, end = (self.t0, self.t0) if x.end is None else (x.start, x.end)
            if end is None or end > self.horizon:
                continue
            stands, due = Solution(x.bindings, start, end), end + pattern.duration
            if not any(compatible(x, z) and before(stands, z) and (z.end is None or z.end <= due) for z in self.evaluate(pattern.absent, not sure)):
                yield Solution(x.bindings, start, due)

    # ------------------------------------------------------------ expressions of a solution
    def _choices(self, expression: algebra.Expression, x: Solution) -> Iterator[dict[algebra.Exists, bool]]:
        """Every way in which the EXISTS of the expression may come out for x; one way where all is settled."""
        nodes = exists_in(expression)
        for outcomes in product(*(sorted({self._exists(node, x, True), self._exists(node, x, False)}) for node in nodes)):
            yield dict(zip(nodes, outcomes, strict=True))

    def _exists(self, node: algebra.Exists, x: Solution, sure: bool) -> bool:
        return any(compatible(x, z) and self._counts(z, x) for z in self.evaluate(substituted(node.pattern, dict(x.bindings)), sure))

    def _holds(self, condition: algebra.Expression, x: Solution, sure: bool) -> bool:
        outcomes = [truth(condition, x.lookup, x.start, x.end, choice) is True for choice in self._choices(condition, x)]
        return all(outcomes) if sure else any(outcomes)

    def _values(self, expression: algebra.Expression, x: Solution, sure: bool) -> set[Term | None]:
        """The possible values; None stands for an error."""
        found: set[Term | None] = set()
        for choice in self._choices(expression, x):
            try:
                found.add(evaluate(expression, x.lookup, x.start, x.end, choice))
            except Failure:
                found.add(None)
        return found


def _share(x: Solution, y: Solution) -> bool:
    return bool({variable for variable, _ in x.bindings} & {variable for variable, _ in y.bindings})


def match_triple(pattern: TriplePattern, triple: Triple) -> Bindings | None:
    found: dict[Variable, Term] = {}
    for wanted, term in zip((pattern.subject, pattern.predicate, pattern.object), triple, strict=True):
        if isinstance(wanted, Variable):
            if found.setdefault(wanted, term) != term:
                return None
        elif wanted != term:
            return None
    return frozenset(found.items())


# ---------------------------------------------------------------- EXISTS: substitution (SPARQL 1.1, 18.6)
def substituted(node: Pattern, bindings: Mapping[Variable, Term]) -> Pattern:
    """The pattern with the solution's terms in place of its variables."""
    result = _substitute(node, bindings)
    assert isinstance(result, Pattern)
    return result


def _substitute(node: object, bindings: Mapping[Variable, Term]) -> object:
    match node:
        case Variable():
            return bindings.get(node, node)
        case algebra.Var(variable):
            return algebra.Constant(bindings[variable]) if variable in bindings else node
        case algebra.Bound(variable):
            return algebra.Bound(variable) if variable not in bindings else TRUE
        case algebra.Extend(inner, variable, expression):
            return type(node)(_substitute(inner, bindings), variable, _substitute(expression, bindings))  # type: ignore[arg-type]
        case tuple():
            return tuple(_substitute(part, bindings) for part in node)
        case Iri() | BlankNode() | Literal():
            return node
        case _ if hasattr(node, "__dataclass_fields__"):
            return type(node)(*(_substitute(getattr(node, name), bindings) for name in node.__dataclass_fields__))
    return node


TRUE = algebra.Constant(Literal("true", "http://www.w3.org/2001/XMLSchema#boolean"))


# ---------------------------------------------------------------- rules (section 6)
Streams = Mapping[str, frozenset[Occurrence]]


def _seen(query: Query, streams: Streams) -> frozenset[Occurrence]:
    return frozenset().union(*(streams.get(name, frozenset()) for name in query.streams))


def _standing(found: Solutions, t0: Micros | None) -> set[Solution]:
    """Timeless solutions stand at t0; an equal timed one is the same."""
    return {Solution(x.bindings, t0, t0) if x.timeless else x for x in found if not x.timeless or t0 is not None}


def _delays(node: object) -> set[Micros]:
    """How long after an occurrence a WITHOUT ... FOR of the pattern may come due: sums of their durations, as they may be nested."""
    sums = {0}
    for duration in _durations(node):
        sums |= {duration + delay for delay in sums}
    return sums - {0}


def _durations(node: object) -> list[Micros]:
    parts = node if isinstance(node, tuple) else [getattr(node, name) for name in getattr(node, "__dataclass_fields__", ())]
    mine = [node.duration] if isinstance(node, algebra.WithoutFor) else []
    return mine + [duration for part in parts for duration in _durations(part)]


@dataclass
class Rules:
    """The least fixpoint of CONSTRUCT rules over finished input streams."""

    queries: Mapping[str, Query]
    streams: Streams
    background: frozenset[Triple]
    horizons: Mapping[str, Micros]
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
            waiting = {name: self.horizons[name] for name, rule in self.rules.items() if name not in self.silent and not _seen(rule, closed)}
            if not waiting:
                return closed
            first = min(waiting.values())
            self.silent |= {name: instant for name, instant in waiting.items() if instant == first}
        return self.streams

    def _closed(self) -> Streams:
        """Instant by instant, in order of time."""
        closed: Streams = {}
        self.constructed = {name: set() for name in self.rules}
        delays, standing = set().union(*(_delays(rule.pattern) for rule in self.rules.values())), set(self.silent.values())
        agenda = {occurrence.end for stream in self.streams.values() for occurrence in stream} | standing
        while agenda:
            instant = min(agenda)
            agenda.remove(instant)
            closed = self._settle(instant, closed)
            happened = any(occurrence.end == instant for stream in closed.values() for occurrence in stream)
            if instant <= max(self.horizons.values()) and (happened or instant in standing):
                agenda |= {instant + delay for delay in delays}
        return closed

    def _settle(self, instant: Micros, closed: Streams) -> Streams:
        """`closed` (all before the instant) with what holds at the instant: the alternating fixpoint."""
        names = set(self.streams) | self.writable
        arrived = {name: closed.get(name, frozenset()) | {o for o in self.streams.get(name, frozenset()) if o.end == instant} for name in names}
        known: Streams = arrived
        while True:  # what is surely so grows, what is possibly so shrinks, until they meet
            possible = self._grown(instant, arrived, known, sure=False)
            if possible == known:
                break
            settled = self._grown(instant, arrived, possible, sure=True)
            assert settled != known, "recursion through a negative part at one instant"
            known = settled
        for name, rule in self.rules.items():
            self.constructed[name] |= {row for row in self._derived(name, rule, known, known, True) if row[1][1] == instant}
        return known

    def _grown(self, instant: Micros, arrived: Streams, other: Streams, *, sure: bool) -> Streams:
        """The least fixpoint of the positive parts, where negative parts look at `other`."""
        grown = arrived
        while True:
            more = {name: set(stream) for name, stream in grown.items()}
            for name, rule in self.rules.items():
                for triples, (start, end) in self._derived(name, rule, grown, other, sure):
                    if end == instant:
                        more[rule.into] |= {Occurrence(triple, start, end) for triple in triples}
            following = {name: frozenset(stream) for name, stream in more.items()}
            if following == grown:
                return grown
            grown = following

    def _derived(self, name: str, rule: algebra.Construct, mine: Streams, other: Streams, sure: bool) -> Iterator[ConstructRow]:
        known, possible = (mine, other) if sure else (other, mine)
        t0 = min((occurrence.end for occurrence in _seen(rule, mine)), default=self.silent.get(name))
        evaluation = Evaluation(_seen(rule, known), _seen(rule, possible), self.background, t0, self.horizons[name])
        for x in _standing(evaluation.evaluate(rule.pattern, sure), t0):
            assert x.start is not None
            assert x.end is not None
            if triples := frozenset(_instantiated(name, rule.template, x)):
                yield triples, (x.start, x.end)


def _instantiated(rule: str, template: tuple[TriplePattern, ...], x: Solution) -> Iterator[Triple]:
    """A triple with an unbound variable, or that is none of RDF, is left out alone."""
    identity = sha1(repr((rule, sorted(map(str, x.bindings)), x.start, x.end)).encode()).hexdigest()[:16]

    def term(part: TermOrVariable) -> Term | None:
        if isinstance(part, BlankNode):
            return BlankNode(f"{part.label}x{identity}")
        return x.lookup(part) if isinstance(part, Variable) else part

    for pattern in template:
        subject, predicate, object_ = term(pattern.subject), term(pattern.predicate), term(pattern.object)
        if isinstance(subject, Iri | BlankNode) and isinstance(predicate, Iri) and object_ is not None:
            yield subject, predicate, object_


# ---------------------------------------------------------------- queries
def _reached(query: Query, queries: Mapping[str, Query]) -> frozenset[str]:
    """The streams a query reads, through rules too."""
    reached = set(query.streams)
    while True:
        further = {stream for other in queries.values() if isinstance(other, algebra.Construct) and other.into in reached for stream in other.streams}
        if further <= reached:
            return frozenset(reached)
        reached |= further


def _horizon(query: Query, queries: Mapping[str, Query], streams: Streams) -> Micros:
    """The last instant of the input streams that a query reaches: where their watermarks stood when they ended."""
    ends = [occurrence.end for name in _reached(query, queries) for occurrence in streams.get(name, frozenset())]
    return max(ends, default=EMPTY_STREAM)


def _rows(query: algebra.Select, found: Iterable[Solution]) -> Counter[SelectRow]:
    rows: Counter[SelectRow] = Counter()
    for x in found:
        assert x.start is not None
        assert x.end is not None
        projected = frozenset((variable, term) for variable, term in x.bindings if variable in query.projection)
        rows[projected, (x.start, x.end)] += 1
    return Counter(set(rows)) if query.distinct else rows


def solutions(
    queries: Mapping[str, Query],
    streams: Mapping[str, Sequence[Occurrence]],
    background: Iterable[Triple] = (),
) -> dict[str, Counter[SelectRow] | set[ConstructRow]]:
    """All solutions of each query over the finished streams: a multiset for SELECT, a set for CONSTRUCT.

    `background` is taken as it is: closing it, and the streams, under RDFS is the caller's first step once there is one.
    """
    facts = frozenset(background)
    inputs = {name: frozenset(stream) for name, stream in streams.items()}
    horizons = {name: _horizon(query, queries, inputs) for name, query in queries.items()}
    rules = Rules(queries, inputs, facts, horizons)
    everything = rules.run()
    found: dict[str, Counter[SelectRow] | set[ConstructRow]] = dict(rules.constructed)
    for name, query in queries.items():
        if isinstance(query, algebra.Select):
            seen = _seen(query, everything)
            t0 = min((occurrence.end for occurrence in seen), default=horizons[name])
            evaluation = Evaluation(seen, seen, facts, t0, horizons[name])
            found[name] = _rows(query, _standing(evaluation.evaluate(query.pattern, True), t0))
    return found
