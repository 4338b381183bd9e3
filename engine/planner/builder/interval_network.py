"""This module finds what conditions on time say of the intervals of a group's operands.

Idea: the operands of joins, and the conditions that each joined solution has to pass, form one network. An interval is
two variables. A condition such as `?s - ?e < "PT1H"`, where BIND made ?s and ?e of start and end times, bounds the
difference of two variables; so do SEQ, WITHIN and the interval relations. The closure of all bounds says how long
after its end a solution may still find a partner (docs/decisions/0053-bounds-on-durations.md).

1. A reader gives each pattern an interval, and collects conditions and what BIND makes of times.
2. A condition that compares times makes its intervals timed: getENDTIME() of a timeless solution is an error, and the
   error removes the solution. A relation bounds intervals that are certainly timed, because a timeless solution
   satisfies each relation, and the background may make most operands timeless later.
3. The bounds are closed. They hold beside timeless operands too: let the interval of such an operand be the start of
   the joined one, and no bound is broken.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from engine.expressions.temporal import instant
from engine.kernel.state import layout as c
from engine.pattern_scope import duration_constant, find_scope, list_conjuncts
from engine.planner.builder.difference_bounds import MOST_VARIABLES, Contradiction, DifferenceBounds
from engine.planner.builder.temporal_relations import RELATION_BOUNDS, relation_of
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.terms import XSD, Literal, Variable
from epsparql.trees import walk_nodes

EPOCH = 0
"""This variable is the instant 0, for constants."""
MOST_TERMS = 8
"""A sum of more variables is not read: BINDs of BINDs may double it again and again."""
Bound = tuple[int, int, int]
"""The first variable minus the second one is at most so many µs."""


class Interval(NamedTuple):
    """Names the two variables of a pattern's interval."""

    start: int
    end: int


class TimeSum(NamedTuple):
    """Represents a sum of variables, of negative variables and of µs.

    One more `plus` than `minus` makes an instant, as many of both a duration.
    """

    plus: tuple[int, ...] = ()
    minus: tuple[int, ...] = ()
    micros: int = 0

    def negated(self) -> "TimeSum":
        return TimeSum(self.minus, self.plus, -self.micros)

    def added(self, other: "TimeSum") -> "TimeSum":
        plus, minus = [*self.plus, *other.plus], [*self.minus, *other.minus]
        for variable in [each for each in plus if each in minus]:
            if variable in minus:
                plus.remove(variable)
                minus.remove(variable)
        return TimeSum(tuple(plus), tuple(minus), self.micros + other.micros)


Times = Mapping[Variable, TimeSum]
"""Says what BIND has made of times."""


@dataclass(frozen=True, slots=True)
class IntervalNetwork:
    """Holds the intervals of patterns, by the identity of each pattern, and what bounds them.

    `bounds` is None where no condition compares times of two operands. If `contradicts`, no solution passes all
    conditions. Nothing else may take the identity of a pattern of `root`, which is kept here.
    """

    root: a.Pattern
    intervals: Mapping[int, Interval]
    bounds: DifferenceBounds | None = None
    contradicts: bool = False

    def has_interval(self, pattern: a.Pattern) -> bool:
        return id(pattern) in self.intervals

    def find_lives(self, left: a.Pattern, right: a.Pattern) -> tuple[int, int]:
        """Return how long (µs) after its end a left, or right, solution may still find a partner.

        NEVER is returned for a side whose partner always comes before.
        """
        x, y = self.intervals.get(id(left)), self.intervals.get(id(right))
        if x is None or y is None:
            return c.FOREVER, c.FOREVER
        return max(self._find_most(y.end, x.end), c.NEVER), max(self._find_most(x.end, y.end), c.NEVER)

    def _find_most(self, x: int, y: int) -> int:
        """Return the greatest value of `x - y`; where nothing passes, each value is as good."""
        return c.NEVER if self.contradicts else c.FOREVER if self.bounds is None else self.bounds.find_most(x, y)

    def find_longest(self, pattern: a.Pattern) -> int:
        """Return how long (µs) those solutions of a pattern last at most that may pass all conditions."""
        interval = self.intervals.get(id(pattern))
        return c.FOREVER if interval is None else max(self._find_most(interval.end, interval.start), 0)

    def find_lag(self, joined: a.Pattern, part: a.Pattern) -> int:
        """Return how long (µs) before a joined solution a solution of one of its parts ends at most."""
        whole, interval = self.intervals.get(id(joined)), self.intervals.get(id(part))
        return c.FOREVER if whole is None or interval is None else max(self._find_most(whole.end, interval.end), 0)

    def find_blocking(self, pattern: a.SeqWithout | a.JoinWithout) -> tuple[tuple[int, int], int]:
        """Return how long (µs) after its end a left, or right, operand of a WITHOUT waits for the other one.

        Also return how long one of what is absent may decide: it lies between the operands of SEQ, or inside the
        joined interval.
        """
        lives = self.find_lives(pattern.left, pattern.right)
        return lives, max(lives[0], 0) if isinstance(pattern, a.SeqWithout) else self.find_longest(pattern)


NO_NETWORK = IntervalNetwork(a.Values((), ()), {})


def find_network(pattern: a.Pattern, span: int = c.FOREVER, wanted: Iterable[a.Expression] = (), occurrence: int = c.FOREVER) -> IntervalNetwork:
    """Return the network of a pattern. Those of its solutions are wanted that last at most `span` µs and satisfy all
    of the conditions; an occurrence lasts at most `occurrence` µs.
    """
    reader = _Reader()
    times = reader.visit(pattern)
    interval = reader.intervals[id(pattern)]
    reader.limits.append((interval, span))
    reader.conditions += [(condition, interval, times) for condition in wanted]
    compared = [bound for condition in reader.conditions for bound in _read_bounds(*condition)]
    if not any(_joins_intervals(*bound) for bound in compared) or reader.n > MOST_VARIABLES:
        return IntervalNetwork(pattern, reader.intervals)
    bounds, intervals = reader.make_bounds(compared, occurrence), reader.list_unambiguous()
    try:
        bounds.close()
    except Contradiction:
        return IntervalNetwork(pattern, intervals, bounds, True)
    return IntervalNetwork(pattern, intervals, bounds)


def find_waiting(kept: a.Pattern, other: a.Pattern, conditions: Iterable[a.Expression], occurrence: int = c.FOREVER) -> int:
    """Return how long (µs) after its end a solution of `other` may decide on one of `kept`: both satisfy all of the
    conditions.
    """
    return max(find_network(a.Join(kept, other), wanted=conditions, occurrence=occurrence).find_lives(kept, other)[1], 0)


def list_positive_conditions(pattern: a.Pattern) -> list[a.Expression]:
    """Return the conditions that each solution of a pattern passes, as part of it or with what is around it."""
    match pattern:
        case a.Filter(condition, inner):
            return list_conjuncts(condition) + list_positive_conditions(inner)
        case a.Join() | a.SeqJoin() | a.EqJoin() | a.RelationJoin():
            return list_positive_conditions(pattern.left) + list_positive_conditions(pattern.right)
        case a.Within(inner) | a.Extend(inner) | a.Graph(_, inner):
            return list_positive_conditions(inner)
        case _:
            return []


def _joins_intervals(x: int, y: int, _most: int) -> bool:
    """Return whether a bound is about two intervals. WITHIN and the like alone need no network."""
    return EPOCH not in (x, y) and (x - 1) // 2 != (y - 1) // 2


@dataclass(slots=True)
class _Reader:
    """Reads patterns. What is not joined to the others, such as an operand of UNION, has a network of its own."""

    n: int = 1  # variables
    intervals: dict[int, Interval] = field(default_factory=dict)
    operands: list[tuple[a.Pattern, Interval]] = field(default_factory=list)
    apart: list[a.Pattern] = field(default_factory=list)
    repeated: set[int] = field(default_factory=set)
    limits: list[tuple[Interval, int]] = field(default_factory=list)
    conditions: list[tuple[a.Expression, Interval, Times]] = field(default_factory=list)
    hulls: list[tuple[Interval, list[Interval], bool]] = field(default_factory=list)  # the inner ones first, and whether they are no wider
    relations: list[tuple[int, Interval, Interval]] = field(default_factory=list)

    def visit(self, pattern: a.Pattern) -> Times:
        """Give the pattern an interval, and return what BIND makes of times in it."""
        if id(pattern) in self.intervals:
            self.repeated.add(id(pattern))
        match pattern:
            case a.Join() | a.SeqJoin() | a.EqJoin() | a.RelationJoin() | a.SeqWithout() | a.JoinWithout():
                return self._visit_join(pattern)
            case a.LeftJoin(kept, other, _) | a.EqLeftJoin(kept, other, _) | a.SeqRightJoin(other, kept, _):
                self.apart.append(other)
                times = self.visit(kept)
                self.hulls.append((self._add_interval(pattern), [self.intervals[id(kept)]], False))
                return _leave_out_rebound(times, other)
            case a.Filter() | a.Within() | a.Extend() | a.Minus():
                return self._visit_limit(pattern)
            case a.SubSelect(inner, projection, False, modifiers) if modifiers == a.PLAIN:
                times = self.visit(inner)
                self.intervals[id(pattern)] = self.intervals[id(inner)]
                return {variable: time for variable, time in times.items() if variable in projection}
            case _:
                self.operands.append((pattern, self._add_interval(pattern)))
                return {}

    def _add_interval(self, pattern: a.Pattern) -> Interval:
        interval = self.intervals[id(pattern)] = Interval(self.n, self.n + 1)
        self.n += 2
        return interval

    def _visit_limit(self, pattern: a.Filter | a.Within | a.Extend | a.Minus) -> Times:
        """Visit what leaves each solution its interval."""
        inner = pattern.left if isinstance(pattern, a.Minus) else pattern.pattern
        times = self.visit(inner)
        interval = self.intervals[id(pattern)] = self.intervals[id(inner)]
        match pattern:
            case a.Filter(condition):
                self.conditions += [(each, interval, times) for each in list_conjuncts(condition)]
            case a.Within(_, limit):
                self.limits.append((interval, limit))
            case a.Extend(_, variable, expression):
                made = _read_time(expression, interval, times)
                return times if made is None else {**times, variable: made}
            case a.Minus(_, other):
                self.apart.append(other)
        return times

    def _visit_join(self, pattern: a.Join | a.SeqJoin | a.EqJoin | a.RelationJoin | a.SeqWithout | a.JoinWithout) -> Times:
        times = _leave_out_rebound(self.visit(pattern.left), pattern.right) | _leave_out_rebound(self.visit(pattern.right), pattern.left)
        x, y = self.intervals[id(pattern.left)], self.intervals[id(pattern.right)]
        joined = self._add_interval(pattern)
        self.hulls.append((joined, [x, y], True))
        match pattern:
            case a.SeqWithout() | a.JoinWithout():
                self.apart.append(pattern.absent)
                self.relations.append((c.SEQ if isinstance(pattern, a.SeqWithout) else c.ANY, x, y))
                self.limits.append((joined, c.FOREVER if pattern.within is None else pattern.within))
            case _:
                self.relations.append((relation_of(pattern), x, y))
        return times

    def list_unambiguous(self) -> dict[int, Interval]:
        """Return the intervals of those patterns that stand at one place: rewriting may have copied one."""
        elsewhere = {id(node) for part in (*self.apart, *(operand for operand, _ in self.operands)) for node in walk_nodes(part)}
        elsewhere -= {id(operand) for operand, _ in self.operands}
        return {node: interval for node, interval in self.intervals.items() if node not in elsewhere | self.repeated}

    def make_bounds(self, compared: Sequence[Bound], occurrence: int) -> DifferenceBounds:
        """Return all bounds, which are not closed yet."""
        bounds = DifferenceBounds(self.n)
        timed = {Interval(x - (x + 1) % 2, x + x % 2) for x in {each for bound in compared for each in bound[:2]} - {EPOCH}}
        for operand, interval in self.operands:
            scope = find_scope(operand, lambda *_: True, occurrence)
            bounds.limit(interval.end, interval.start, scope.longest)
            timed |= set() if scope.timeless else {interval}
        for interval, parts, exact in self.hulls:
            timed |= {interval} if timed & {*parts} else set()
            if exact:
                bounds.add_hull(*interval, parts)
            else:  # an optional part that counts ends no later than what it is added to, if that has an end
                bounds.limit(interval.start, parts[0].start, 0)
                bounds.limit(parts[0].end, interval.end, 0)
                bounds.limit(interval.end, parts[0].end, 0 if parts[0] in timed else c.FOREVER)
        for start in range(1, self.n, 2):
            bounds.limit(start, start + 1, 0)
        for interval, most in self.limits:
            bounds.limit(interval.end, interval.start, most)
        related = [(each, x, y) for relation, x, y in self.relations if x in timed and y in timed for each in RELATION_BOUNDS[relation]]
        for (first, second, most), x, y in related:
            bounds.limit((*x, *y)[first], (*x, *y)[second], most)
        for first, second, most in compared:
            bounds.limit(first, second, most)
        return bounds


def _leave_out_rebound(times: Times, other: a.Pattern) -> dict[Variable, TimeSum]:
    """Leave out variables that another pattern may bind too, where the first one leaves them unbound."""
    if not times:
        return {}
    bound = find_scope(other, lambda *_: True).possible
    return {variable: time for variable, time in times.items() if variable not in bound}


# ---------------------------------------------------------------- expressions
def _read_time(expression: a.Expression, interval: Interval, times: Times) -> TimeSum | None:
    """Return the time that an expression makes of the solution's interval and of bound times; None for other values."""
    match expression:
        case a.Var(variable):
            return times.get(variable)
        case a.Time(a.TimeFunction.START):
            return TimeSum((interval.start,))
        case a.Time(a.TimeFunction.END):
            return TimeSum((interval.end,))
        case a.Time(a.TimeFunction.DURATION):
            return TimeSum((interval.end,), (interval.start,))
        case a.Constant(Literal(lexical, datatype)) if datatype == XSD + "dateTime":
            when = instant(lexical)
            return TimeSum((EPOCH,), (), when.micros) if when is not None and isinstance(when.micros, int) else None
        case a.Constant():
            length = duration_constant(expression)
            return None if length is None else TimeSum((), (), length)
        case a.Arithmetic(a.Operator.ADD | a.Operator.SUBTRACT as op, left, right):
            x, y = _read_time(left, interval, times), _read_time(right, interval, times)
            if x is None or y is None or len(x.plus + x.minus + y.plus + y.minus) > MOST_TERMS:
                return None
            return x.added(y if op is a.Operator.ADD else y.negated())
        case _:
            return None


_NEGATED = {
    a.Comparison.LESS: a.Comparison.GREATER_OR_EQUAL,
    a.Comparison.LESS_OR_EQUAL: a.Comparison.GREATER,
    a.Comparison.GREATER: a.Comparison.LESS_OR_EQUAL,
    a.Comparison.GREATER_OR_EQUAL: a.Comparison.LESS,
    a.Comparison.UNEQUAL: a.Comparison.EQUAL,
    a.Comparison.EQUAL: a.Comparison.UNEQUAL,
}


def _read_bounds(condition: a.Expression, interval: Interval, times: Times) -> Iterator[Bound]:
    """Yield the bounds that a true comparison of two times sets."""
    match condition:
        case a.Not(a.Compare(op, left, right)):
            yield from _read_bounds(a.Compare(_NEGATED[op], left, right), interval, times)
        case a.Compare(op, left, right):
            x, y = _read_time(left, interval, times), _read_time(right, interval, times)
            difference = None if x is None or y is None else x.added(y.negated())
            if difference is not None and len(difference.plus) == len(difference.minus) == 1:
                yield from _bound(op, difference.plus[0], difference.minus[0], difference.micros)


def _bound(op: a.Comparison, first: int, second: int, micros: int) -> Iterator[Bound]:
    """Yield the bounds of `first - second + micros op 0`."""
    if op in (a.Comparison.LESS, a.Comparison.LESS_OR_EQUAL, a.Comparison.EQUAL):
        yield first, second, -micros - (op is a.Comparison.LESS)
    if op in (a.Comparison.GREATER, a.Comparison.GREATER_OR_EQUAL, a.Comparison.EQUAL):
        yield second, first, micros - (op is a.Comparison.GREATER)
