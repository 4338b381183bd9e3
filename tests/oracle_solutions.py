"""What the reference evaluator speaks of: occurrences, facts, solutions and how they compare (semantics.md sections 1 and 2)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import assert_never

from epsparql.algebra import Relation, TriplePattern
from epsparql.terms import Term, Variable

Micros = int
Triple = tuple[Term, Term, Term]
Interval = tuple[Micros, Micros]
Bindings = frozenset[tuple[Variable, Term]]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A triple with an interval, in an event graph if it was sent in one."""

    triple: Triple
    start: Micros
    end: Micros
    graph: Term | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """A background triple, in a graph or in none."""

    triple: Triple
    graph: Term | None = None


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

    def at(self, start: Micros, end: Micros) -> "Solution":
        return Solution(self.bindings, start, end)


Solutions = frozenset[Solution]
Test = Callable[[Solution, Solution], bool]


def compatible(x: Solution, y: Solution) -> bool:
    mine = dict(x.bindings)
    return all(mine.get(variable, term) == term for variable, term in y.bindings)


def joined(x: Solution, y: Solution) -> Solution:
    """`x >< y` of compatible x, y; `none` is the neutral element of min and max."""
    starts = [s for s in (x.start, y.start) if s is not None]
    ends = [e for e in (x.end, y.end) if e is not None]
    return Solution(x.bindings | y.bindings, min(starts, default=None), max(ends, default=None))


def projected(x: Solution, variables: Iterable[Variable]) -> Bindings:
    kept = set(variables)
    return frozenset((variable, term) for variable, term in x.bindings if variable in kept)


def visible(x: Solution) -> Bindings:
    return frozenset((variable, term) for variable, term in x.bindings if not variable.hidden)


# ---------------------------------------------------------------- how intervals may lie (section 3)
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


# ---------------------------------------------------------------- triples
def match_triple(pattern: TriplePattern, triple: Triple) -> Bindings | None:
    found: dict[Variable, Term] = {}
    for wanted, term in zip((pattern.subject, pattern.predicate, pattern.object), triple, strict=True):
        if isinstance(wanted, Variable):
            if found.setdefault(wanted, term) != term:
                return None
        elif wanted != term:
            return None
    return frozenset(found.items())
