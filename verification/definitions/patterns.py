"""The patterns of semantics.md section 3 by brute force: every operator is the sentence of its definition; nothing is
indexed or incremental.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import assert_never

from epsparql import algebra
from epsparql.algebra import Dataset, Pattern, TriplePattern
from epsparql.terms import Literal, Term, TripleTermPattern, Variable
from epsparql.trees import walk_nodes
from verification.definitions import groups, paths, policies
from verification.definitions.expressions import Failure, evaluate, exists_in, instant, truth
from verification.definitions.model import (
    Fact,
    Micros,
    Occurrence,
    Solution,
    Solutions,
    Test,
    apart,
    before,
    compatible,
    join_solutions,
    likely_pairs,
    match_triple,
    projected,
    related,
    row_marker,
    same_interval,
    shared_variables,
    short_enough,
    substituted,
)
from verification.definitions.ordering import Setting, modified


@dataclass(frozen=True, slots=True)
class Settings:
    """How a query is registered."""

    policy: str = "unrestricted"
    default_graph: str = "all"


USUAL = Settings()


@dataclass(frozen=True, slots=True)
class World:
    """All that a query sees.

    `contents` holds the named windows' occurrences; outside of those such a query sees the facts alone.
    """

    occurrences: frozenset[Occurrence]
    facts: frozenset[Fact]
    t0: Micros | None
    horizon: Micros
    """The last instant of the finished streams: later solutions set no timers."""
    settings: Settings = USUAL
    dataset: Dataset | None = None
    contents: Mapping[str, frozenset[Occurrence]] = field(default_factory=dict)

    def plain(self, graph: Term | None) -> bool:
        """Return whether plain patterns see the triples of the graph."""
        if self.dataset is not None:
            return graph is not None and _name(graph) in self.dataset.default
        return graph is None or self.settings.default_graph == "all"

    def named(self, graph: Term) -> bool:
        """Return whether GRAPH sees the graph."""
        return self.dataset is None or _name(graph) in self.dataset.named


def _name(graph: Term) -> str | None:
    return graph.value if isinstance(graph, algebra.Iri) else None


@dataclass
class Evaluation:
    """Patterns over the active graph (none: what plain patterns see) of a window (none: the whole).

    Positive parts look at `world`. Negative parts look at `decided`, which while a rule's fixpoint is sought is
    another world.
    """

    world: World
    settled: World
    graph: Term | None = None
    window: str | None = None

    def __post_init__(self) -> None:
        self._found: dict[Pattern, Solutions] = {}
        self._inside: dict[tuple[Term | None, str | None], Evaluation] = {}
        seen = self.world.occurrences if self.window is None else self.world.contents[self.window]
        facts = self.world.facts if self.window is None else frozenset()
        named = {o.graph for o in seen} | {fact.graph for fact in facts}
        self.graphs = {graph for graph in named if graph is not None and self.world.named(graph)}
        self.seen = frozenset(o for o in seen if self._active(o.graph))
        self.facts = frozenset(fact for fact in facts if self._active(fact.graph))
        self.decided = self if self.world is self.settled else Evaluation(self.settled, self.settled, self.graph, self.window)
        self.edges = frozenset((o.triple, o.start, o.end) for o in self.seen) | frozenset((fact.triple, None, None) for fact in self.facts)
        self._of_predicate: dict[Term, list[paths.Edge]] = {}
        for edge in self.edges:
            self._of_predicate.setdefault(edge[0][1], []).append(edge)

    def _active(self, graph: Term | None) -> bool:
        return self.world.plain(graph) if self.graph is None else graph == self.graph

    @property
    def first(self) -> Micros | None:
        """Return where a timeless solution stands: t0, or in an event graph that graph's first instant."""
        if self.graph is None or self.facts:
            return self.world.t0
        return min((o.end for o in self.seen), default=None)

    def inside(self, graph: Term | None, window: str | None) -> "Evaluation":
        if (graph, window) not in self._inside:
            self._inside[graph, window] = Evaluation(self.world, self.settled, graph, window)
        return self._inside[graph, window]

    # ------------------------------------------------------------ one definition each
    def evaluate(self, pattern: Pattern) -> Solutions:
        if pattern not in self._found:
            self._found[pattern] = frozenset(self._find_solutions(pattern))
        return self._found[pattern]

    def _find_solutions(self, pattern: Pattern) -> Iterable[Solution]:
        match pattern:
            case algebra.Bgp(triples):
                return self._bgp(triples)
            case algebra.Path():
                return paths.pairs(pattern, self.edges)
            case algebra.Values(variables, rows):
                return (Solution(frozenset((v, term) for v, term in zip(variables, row, strict=True) if term is not None)) for row in rows)
            case algebra.Join(left, right, True):
                return self._joins(left, right, lambda x, y: True)
            case algebra.Join(left, right):
                return (join_solutions(x, y) for x, y in self._and_pairs(left, right))
            case algebra.Union(left, right):
                return self.evaluate(left) | self.evaluate(right)
            case algebra.Filter(condition, inner):
                return (x for x in self.evaluate(inner) if self.deciding(x, inner).holds(condition, x))
            case algebra.Extend():
                return self._extend(pattern)
            case algebra.SeqJoin(left, right, True):
                return self._joins(left, right, before)
            case algebra.SeqJoin(left, right):
                return (join_solutions(x, y) for x, y in self._policy_pairs(left, right, before))
            case algebra.EqJoin(left, right):
                return self._joins(left, right, same_interval)
            case algebra.RelationJoin(relation, left, right):
                return (join_solutions(x, y) for x, y in self._policy_pairs(left, right, lambda x, y: related(relation, x, y)))
            case _:
                return self._find_decided(pattern)

    def _find_decided(self, pattern: Pattern) -> Iterable[Solution]:
        """Return the solutions of the operators that are not joins of what is there: negative ones, graphs, windows,
        groups.
        """
        match pattern:
            case algebra.LeftJoin(left, right, condition):
                return self._optional_joins(pattern, left, right, condition, lambda x, y: True)
            case algebra.EqLeftJoin(left, right, condition):
                return self._optional_joins(pattern, left, right, condition, same_interval)
            case algebra.SeqRightJoin(left, right, condition):  # the right operand is the one that stays
                return self._optional_joins(pattern, right, left, condition, lambda y, x: before(x, y))
            case algebra.Minus(left, right):
                return self._minus(left, right)
            case algebra.SeqWithout():
                return self._seq_without(pattern)
            case algebra.JoinWithout():
                return self._join_without(pattern)
            case algebra.WithoutFor():
                return self._without_for(pattern)
            case algebra.Alarm():
                return self._alarms(pattern)
            case algebra.Instant(at):
                return [Solution(frozenset(), at, at)]
            case algebra.Within(inner, limit):
                return (x for x in self.evaluate(inner) if short_enough(x, limit))
            case algebra.Graph(name, inner):
                return self._graph(name, inner)
            case algebra.InWindow(name, inner):
                return self.inside(self.graph, name).evaluate(inner)
            case algebra.Group():
                until = pattern.window.until if isinstance(pattern.window, algebra.RunWindow) else None
                absent = groups.NONE if until is None else self.decided.evaluate(until)
                return groups.reports(pattern, self.decided.evaluate(pattern.pattern), self.first, self.world.horizon, self.decided.value_of, absent)
            case algebra.SubSelect():
                return self._sub_select(pattern)
        assert_never(pattern)  # type: ignore[arg-type]  # the others are in `_find_solutions`

    def deciding(self, x: Solution, pattern: Pattern) -> "Evaluation":
        """Who decides what is absent for a solution x of a pattern."""
        return self

    def stands(self, z: Solution, x: Solution, pattern: Pattern) -> bool:
        """Return whether a join z with an optional part still stands, for an x that was decided on."""
        return True

    def _counts(self, z: Solution, x: Solution) -> bool:
        """Return whether z counts for x: z ends no later than x; a timeless x stands at the first instant."""
        if z.end is None:
            return True
        instant = self.first if x.end is None else x.end
        return instant is not None and z.end <= instant

    def _bgp(self, triples: tuple[TriplePattern, ...]) -> set[Solution]:
        found = {Solution(frozenset())}
        for triple in triples:
            matches = set(self._matches(triple))
            found = {join_solutions(x, y) for x, y in likely_pairs(found, matches) if compatible(x, y)}
        return found

    def _matches(self, pattern: TriplePattern) -> Iterator[Solution]:
        fixed = not isinstance(pattern.predicate, Variable | TripleTermPattern)
        for triple, start, end in self._of_predicate.get(pattern.predicate, ()) if fixed else self.edges:  # type: ignore[arg-type]  # a term then
            if (bindings := match_triple(pattern, triple)) is not None:
                yield Solution(bindings, start, end)

    def _joins(self, left: Pattern, right: Pattern, relation: Test) -> Iterator[Solution]:
        for x, y in likely_pairs(self.evaluate(left), self.evaluate(right), same_interval=relation is same_interval):
            if compatible(x, y) and relation(x, y):
                yield join_solutions(x, y)

    def _policy_pairs(self, left: Pattern, right: Pattern, relation: Test) -> Iterator[tuple[Solution, Solution]]:
        """The pairs that the query's policy lets SEQ and the interval relations join; a policy is a negative part."""
        policy = self.world.settings.policy
        if policy.startswith("recent"):
            shared = shared_variables(left, right)
            return policies.recent(self.decided.evaluate(left), self.decided.evaluate(right), shared, relation, policy)
        if policy == "chronological":
            return policies.chronological(self.decided.evaluate(left), self.decided.evaluate(right), relation)
        return ((x, y) for x, y in likely_pairs(self.evaluate(left), self.evaluate(right)) if compatible(x, y) and relation(x, y))

    def _and_pairs(self, left: Pattern, right: Pattern) -> Iterator[tuple[Solution, Solution]]:
        """The pairs that the query's policy lets AND join."""
        policy = self.world.settings.policy
        if policy.startswith("recent"):
            return policies.recent_and(self.decided.evaluate(left), self.decided.evaluate(right), shared_variables(left, right), policy)
        if policy == "chronological":
            return policies.chronological_and(self.decided.evaluate(left), self.decided.evaluate(right))
        return ((x, y) for x, y in likely_pairs(self.evaluate(left), self.evaluate(right)) if compatible(x, y))

    def _extend(self, pattern: algebra.Extend) -> Iterator[Solution]:
        for x in self.evaluate(pattern.pattern):
            value = self.deciding(x, pattern.pattern).value_of(pattern.expression, x)
            yield x if value is None else Solution(x.bindings | {(pattern.variable, value)}, x.start, x.end)

    def _optional_joins(
        self, pattern: Pattern, kept: Pattern, optional: Pattern, condition: algebra.Expression | None, partners: Test
    ) -> Iterator[Solution]:
        """The three optional joins: the filter sees the joined mapping and the joined interval, in both parts alike."""

        def extensions(x: Solution, at: Evaluation, side: Evaluation) -> Iterator[Solution]:
            for y in side.evaluate(optional):
                if compatible(x, y) and at._counts(y, x) and partners(x, y) and (condition is None or at.holds(condition, join_solutions(x, y))):
                    yield join_solutions(x, y)

        for x in self.evaluate(kept):
            at = self.deciding(x, kept)
            yield from (z for z in extensions(x, at, at) if self.stands(z, x, pattern))
            if not any(True for _ in extensions(x, at, at.decided)):
                yield x

    def _minus(self, left: Pattern, right: Pattern) -> Iterator[Solution]:
        for x in self.evaluate(left):
            at = self.deciding(x, left)
            if not any(compatible(x, y) and _share(x, y) and at._counts(y, x) for y in at.decided.evaluate(right)):
                yield x

    def _seq_without(self, pattern: algebra.SeqWithout) -> Iterator[Solution]:
        absent = self.decided.evaluate(pattern.absent)
        for x, y in self._policy_pairs(pattern.left, pattern.right, before):
            both = join_solutions(x, y)
            if short_enough(both, pattern.within) and not any(
                compatible(both, z) and before(x, z) and before(z, y) and self._counts(z, both) for z in absent
            ):
                yield both

    def _join_without(self, pattern: algebra.JoinWithout) -> Iterator[Solution]:
        absent = self.decided.evaluate(pattern.absent)
        for x, y in self._and_pairs(pattern.left, pattern.right):
            if short_enough(both := join_solutions(x, y), pattern.within):
                gap = apart(x, y)
                if not any(compatible(both, z) and before(gap, z) and before(z, gap) and self._counts(z, both) for z in absent):
                    yield both

    def _without_for(self, pattern: algebra.WithoutFor) -> Iterator[Solution]:
        absent = self.decided.evaluate(pattern.absent)
        for x in self.evaluate(pattern.pattern):
            start, end = (self.first, self.first) if x.end is None else (x.start, x.end)
            if start is None or end is None or end > self.world.horizon:
                continue
            stands, due = x.at(start, end), end + pattern.duration
            if not any(compatible(x, z) and before(stands, z) and (z.end is None or z.end <= due) for z in absent):
                yield x.at(start, due)

    def _alarms(self, pattern: algebra.Alarm) -> Iterator[Solution]:
        for x in self.evaluate(pattern.pattern):
            exact = None if (term := x.lookup(pattern.at)) is None else instant(term)
            at = None if exact is None else ceil(exact)
            if at is not None and x.start is not None and x.end is not None and x.end < at and x.end <= self.world.horizon:
                yield x.at(x.start, at)

    def _graph(self, name: Term | Variable, pattern: Pattern) -> Iterator[Solution]:
        for graph in self.graphs:
            inside = self.inside(graph, self.window)
            named = Solution(frozenset({(name, graph)})) if isinstance(name, Variable) else Solution(frozenset())
            if not isinstance(name, Variable) and name != graph:
                continue
            for x in inside.evaluate(pattern):
                if not compatible(x, named):
                    continue
                y = join_solutions(x, named)
                if not y.timeless or inside.facts:
                    yield y
                if y.timeless:
                    yield from (y.at(o.start, o.end) for o in inside.seen)

    def _sub_select(self, pattern: algebra.SubSelect) -> Iterator[Solution]:
        """One row an inner solution, told apart by the hidden marker; with DISTINCT, one a projection and interval."""
        counted = pattern.modifiers.offset > 0 or pattern.modifiers.limit is not None or pattern.modifiers.once is not None
        side = self.decided if counted else self
        found: Iterable[Solution] = side.evaluate(pattern.pattern)
        if counted:
            found = modified(
                found if self.first is not None else (),
                [variable for variable in pattern.projection if not variable.hidden],
                pattern.distinct,
                pattern.modifiers,
                windowed(pattern.pattern),
                Setting(self.first, side.value_of, self.find_resets(pattern.modifiers)),
            )
        keys = run_keys(pattern.pattern)
        for x in found:
            bindings = projected(x, pattern.projection)
            if (marker := row_marker(pattern)) is not None:
                told_apart = x.bindings if keys is None else projected(x, (*keys, *pattern.projection, *ordered_by(pattern.modifiers)))
                bindings |= {(marker, Literal(repr(sorted(map(str, told_apart)))))}
            yield Solution(bindings, x.start, x.end)

    def find_resets(self, modifiers: algebra.Modifiers) -> Solutions:
        """The solutions for which ONCE PER ... UNTIL waits."""
        once = modifiers.once
        return frozenset() if once is None or once.until is None else self.decided.evaluate(once.until)

    # ------------------------------------------------------------ expressions of a solution
    def _outcomes(self, expression: algebra.Expression, x: Solution) -> dict[algebra.Exists, bool]:
        return {node: self._exists(node, x) for node in exists_in(expression)}

    def _exists(self, node: algebra.Exists, x: Solution) -> bool:
        return any(compatible(x, z) and self._counts(z, x) for z in self.decided.evaluate(substituted(node.pattern, dict(x.bindings))))

    def holds(self, condition: algebra.Expression, x: Solution) -> bool:
        return truth(condition, x.lookup, x.start, x.end, self._outcomes(condition, x), self.world.facts) is True

    def value_of(self, expression: algebra.Expression, x: Solution) -> Term | None:
        """None stands for an error."""
        try:
            return evaluate(expression, x.lookup, x.start, x.end, self._outcomes(expression, x), self.world.facts)
        except Failure:
            return None


def _share(x: Solution, y: Solution) -> bool:
    return any(not variable.hidden for variable in {variable for variable, _ in x.bindings} & {variable for variable, _ in y.bindings})


def run_keys(pattern: Pattern) -> tuple[Variable, ...] | None:
    """Return the keys of the select's own group if it has runs: they and SELECT's values tell its reports apart."""
    match pattern:
        case algebra.Extend(inner) | algebra.Filter(_, inner) | algebra.Join(inner, algebra.Values()):
            return run_keys(inner)
        case algebra.Group(_, keys, _, algebra.RunWindow()):
            return keys
    return None


def ordered_by(modifiers: algebra.Modifiers) -> set[Variable]:
    return {node for node in walk_nodes(modifiers.order) if isinstance(node, Variable)}


def windowed(pattern: Pattern) -> bool:
    """Return whether the select's own group has a window: then LIMIT counts per report."""
    match pattern:
        case algebra.Extend(inner) | algebra.Filter(_, inner) | algebra.Join(inner, algebra.Values()):
            return windowed(inner)
        case algebra.Group():
            return pattern.window is not None
    return False
