"""The reference evaluator over a background that changes: semantics.md section 10, instant by instant of a query.

Of each pattern, what ends at an instant is what its definition gives with the background of that instant; what ended
before stands. A timeless solution is there while its triples are, and a negative part decides on it at the instant
that brings it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from epsparql import algebra
from epsparql.algebra import Pattern
from epsparql.terms import Term
from epsparql.trees import replace_fields
from tests.reference.evaluator import EMPTY_STREAM, SelectRow
from verification.definitions import groups
from verification.definitions.model import Fact, Micros, Occurrence, Solution, Solutions, compatible, join_solutions, marked, projected
from verification.definitions.patterns import USUAL, Evaluation, Settings, World
from verification.definitions.rdfs import closed, entailed

Version = tuple[Micros, frozenset[Fact]]
"""The background as it is given from the first instant after this one on."""


class ChangingMoment(Evaluation):
    """A pattern's solutions that end by an instant, and its timeless ones there."""

    def __init__(self, world: World, previous: "ChangingMoment | None", graph: Term | None = None) -> None:
        super().__init__(world, world, graph)
        self.previous = previous
        self.places: dict[Term | None, ChangingMoment] = {}

    @property
    def instant(self) -> Micros:
        assert self.world.t0 is not None
        return self.world.t0

    def inside(self, graph: Term | None, window: str | None) -> "ChangingMoment":
        assert window is None
        if graph not in self.places:
            before = None if self.previous is None else self.previous.inside(graph, None)
            self.places[graph] = ChangingMoment(self.world, before, graph)
        return self.places[graph]

    @property
    def first(self) -> Micros:
        return self.instant

    def standing(self, pattern: Pattern) -> Solutions:
        """All that a pattern has had up to here; what was timeless, at the instant that brought it."""
        before = Solutions() if self.previous is None else self.previous.standing(pattern)
        there = Solutions() if self.previous is None else self.previous.evaluate(pattern)
        new = (x.at(self.instant, self.instant) if x.timeless else x for x in self.evaluate(pattern) - there)
        return before.union(new)

    def _find_solutions(self, pattern: Pattern) -> Iterable[Solution]:
        if isinstance(pattern, algebra.Group):
            begun = self
            while begun.previous is not None:
                begun = begun.previous
            return groups.reports(pattern, self.standing(pattern.pattern), begun.instant, self.world.horizon, self.value_of)
        return super()._find_solutions(pattern)

    def evaluate(self, pattern: Pattern) -> Solutions:
        if pattern not in self._found:
            now = {x for x in self._find_solutions(pattern) if x.end is None or x.end == self.instant}
            past = () if self.previous is None else (x for x in self.previous.evaluate(pattern) if not x.timeless)
            self._found[pattern] = frozenset(now.union(past))
        return self._found[pattern]

    def deciding(self, x: Solution, pattern: Pattern) -> Evaluation:
        """The moment that brought x, if it is timeless."""
        at = self
        while x.timeless and at.previous is not None and x in at.previous.evaluate(pattern):
            at = at.previous
        return at

    def stands(self, z: Solution, x: Solution, pattern: Pattern) -> bool:
        """Return whether z stands: what an optional part added to a timeless x is there as long as its triples have
        been.
        """
        if not x.timeless or self.deciding(x, _kept(pattern)) is self:
            return True
        if self.previous is None or z not in self.previous.evaluate(pattern):
            return False
        return not z.timeless or any(compatible(x, y) and join_solutions(x, y) == z for y in self.evaluate(_optional(pattern)))


def _kept(pattern: Pattern) -> Pattern:
    return _operands(pattern)[0]


def _optional(pattern: Pattern) -> Pattern:
    return _operands(pattern)[1]


def _operands(pattern: Pattern) -> tuple[Pattern, Pattern]:
    """Return the side of an optional join that stays, and the optional part."""
    match pattern:
        case algebra.LeftJoin(left, right, _) | algebra.EqLeftJoin(left, right, _) | algebra.SeqRightJoin(right, left, _):
            return left, right
    raise AssertionError("no optional join")


def solutions(query: algebra.Select, stream: Sequence[Occurrence], versions: Sequence[Version], settings: Settings = USUAL) -> Counter[SelectRow]:
    """All solutions of a SELECT without modifiers over one finished stream; the first version holds from the
    beginning on.
    """
    instants = sorted({o.end for o in stream}) or [EMPTY_STREAM]
    known = {instant: closed([facts for after, facts in versions if after < instant or not stream][-1]) for instant in instants}
    seen = frozenset().union(*(entailed([o], known[o.end]) for o in stream))
    query = replace_fields(query, pattern=marked(query.pattern))
    moment: ChangingMoment | None = None
    found: Counter[SelectRow] = Counter()
    there: frozenset[Solution] = frozenset()
    for instant in instants:
        moment = ChangingMoment(World(seen, known[instant], instant, instants[-1], settings, query.sources.dataset), moment)
        timeless = frozenset(x for x in moment.evaluate(query.pattern) if x.timeless)
        if query.distinct:
            timeless = frozenset(Solution(projected(x, query.projection)) for x in timeless)
        standing = {x.at(instant, instant) for x in timeless - there}
        timed = {x for x in moment.evaluate(query.pattern) if x.end == instant}
        rows = [(projected(x, query.projection), (instant if x.start is None else x.start, instant)) for x in standing | timed]
        found += Counter(set(rows) if query.distinct else rows)
        there = timeless
    return found
