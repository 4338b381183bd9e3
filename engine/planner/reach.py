"""This module tells how far back occurrences matter to the solutions of an instant (docs/decisions/0083-slices.md).

If a query's reach is bounded, it can be evaluated over a part of the log that begins as far back as the reach.
"""

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import NamedTuple, assert_never

from engine.kernel.state import layout as c
from engine.messages import Micros
from engine.pattern_scope import Matches, asks_identity, find_scope, has_exists, is_policed, list_conjuncts, span_of
from engine.planner.builder.interval_network import NO_NETWORK, IntervalNetwork, find_network, find_waiting
from engine.planner.groups_and_modifiers import has_window
from engine.planner.operators.path_reachability import may_be_empty
from engine.planner.operators.property_paths import keeps_steps
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.recursion import deep_stack
from epsparql.solutions.policies import UNRESTRICTED
from epsparql.terms import Variable


class _Back(NamedTuple):
    """Says how far back the occurrences end on which a solution depends, in µs: before its end, and before its start."""

    end: Micros
    start: Micros


_NONE = _Back(0, 0)
_UNBOUNDED = _Back(c.FOREVER, c.FOREVER)


@dataclass(frozen=True, slots=True)
class Reach:
    """Says how long before an instant an occurrence may end on which the query's solutions at that instant depend, in
    µs.

    None stands for no bound, and `reason` says what has none. If `opens`, what a query finds at its first instant
    depends on where it begins to read.
    """

    micros: Micros | None
    reason: str = ""
    opens: bool = False

    @property
    def settled(self) -> Micros | None:
        """Return the reach of a query whose solutions do not depend on where it begins to read; None for any other."""
        return None if self.opens else self.micros


def find_longest(reaches: Iterable[Reach]) -> Micros:
    """Return the longest reach; FOREVER without a bound, or where solutions depend on where a query begins to read."""
    return max((c.FOREVER if reach.settled is None else reach.settled for reach in reaches), default=0)


@dataclass(frozen=True, slots=True)
class Asked:
    """Holds a query, which has been rewritten, and its policy."""

    query: a.StreamQuery
    policy: str = UNRESTRICTED


def find_reaches(queries: Sequence[Asked], matches: Matches) -> list[Reach]:
    """Return the reach of each query, through those of them that are rules.

    `matches` tells what the background has, which must not change.
    """
    derived: dict[str, _Back] = {}
    rules = sum(a.written_stream(asked.query) is not None for asked in queries)
    with deep_stack():
        for round_ in range(2 * rules + 2):
            finders = [_Finder(matches, asked.policy, _widest(*(derived.get(stream, _NONE) for stream in asked.query.streams))) for asked in queries]
            found = [finder.find_query(asked.query) for finder, asked in zip(finders, queries, strict=True)]
            before, derived = derived, {}
            for asked, finder, back in zip(queries, finders, found, strict=True):
                if (into := a.written_stream(asked.query)) is not None:
                    grows = round_ > rules and back.end > before.get(into, _NONE).end  # only a cycle of rules grows for so long
                    derived[into] = _widest(derived.get(into, _NONE), _UNBOUNDED if grows or finder.opens else back)
            if derived == before:
                break
    return [finder.make_reach(back) for finder, back in zip(finders, found, strict=True)]


def _finds_in_empty_windows(pattern: a.Pattern) -> bool:
    """Return whether a query may have solutions although its windows are empty.

    It may have a group of all, what comes from elsewhere, or a constant that a path of no length pairs with itself.
    """
    match pattern:
        case a.Bgp(triples, place):
            return not triples or place.window is None
        case a.Path(subject, path, other, place):
            has_constant = not (isinstance(subject, Variable) and isinstance(other, Variable))
            return place.window is None or (has_constant and may_be_empty(path))
        case a.Join(left, right):
            return _finds_in_empty_windows(left) and _finds_in_empty_windows(right)
        case a.Union(left, right):
            return _finds_in_empty_windows(left) or _finds_in_empty_windows(right)
        case a.LeftJoin(left) | a.Minus(left):
            return _finds_in_empty_windows(left)
        case a.Filter(_, inner) | a.Extend(inner) | a.SubSelect(inner):
            return _finds_in_empty_windows(inner)
        case a.Group(inner, keys):
            return not keys or _finds_in_empty_windows(inner)
        case _:
            return True


def _widest(*backs: _Back) -> _Back:
    return _Back(max((back.end for back in backs), default=0), max((back.start for back in backs), default=0))


def _further(back: Micros, more: Micros) -> Micros:
    return min(back + more, c.FOREVER)


@dataclass(slots=True)
class _Finder:
    """Finds how far back a query's solutions depend on occurrences; `derived` is how far back those of its streams do."""

    matches: Matches
    policy: str
    derived: _Back
    reasons: list[str] = field(default_factory=list)
    opens: bool = False
    network: IntervalNetwork = NO_NETWORK  # that of the pattern that is looked at
    outermost: a.Pattern | None = None  # the pattern whose solutions are the query's, but for conditions and what BIND adds

    def make_reach(self, back: _Back) -> Reach:
        if back.end < c.FOREVER:
            return Reach(back.end, opens=self.opens)
        return Reach(None, self.reasons[0] if self.reasons else "a rule that writes a stream of it, whose own reach has no bound")

    # ------------------------------------------------------------ queries
    def find_query(self, query: a.StreamQuery) -> _Back:
        self._read_own_rules(query)
        windows = query.sources.windows
        if windows:
            if query.sources.report is not a.Report.RSTREAM and _finds_in_empty_windows(query.pattern):
                return self._none("a report of differences that finds something in empty windows: the report before may be of any time")
            # what was reported before is compared, at the step before
            back = max(window.length for window in windows) + 2 * max(window.step for window in windows)
            return _Back(_further(back, self.derived.end), c.FOREVER)
        if isinstance(query, a.Ask):
            return self._none("ASK, which looks at all that came")
        if isinstance(query, a.Select) and (counting := self._look_at_modifiers(query)) is not None:
            return counting
        self.opens = find_scope(query.pattern, self.matches).timeless
        self.outermost = query.pattern
        while isinstance(self.outermost, a.Filter | a.Extend):
            self.outermost = self.outermost.pattern
        return self.look_back(query.pattern, c.FOREVER)

    def _read_own_rules(self, query: a.StreamQuery) -> None:
        """Take in how far back the query's own rules reach."""
        rules = [rule for rule in query.rules if rule.into != query.into] if isinstance(query, a.Select) else []
        given, before = self.derived, self.derived
        for _ in range(len(rules) + 1):
            self.derived = _widest(given, *(self.look_back(rule.pattern, c.FOREVER) for rule in rules))
            if self.derived == before:
                return
            before = self.derived
        self.derived = self._none("rules that feed each other")

    def _none(self, reason: str) -> _Back:
        """Return that nothing bounds how far back occurrences matter."""
        self.reasons.append(reason)
        return _UNBOUNDED

    # ------------------------------------------------------------ patterns
    def look_back(self, pattern: a.Pattern, span: Micros) -> _Back:
        """Return how far back solutions of a pattern that last at most `span` µs depend on occurrences."""
        outer = self.network
        if self.policy == UNRESTRICTED and not outer.has_interval(pattern):
            self.network = find_network(pattern, span)
        found = self._look_back(pattern, min(span, self.network.find_longest(pattern)))
        self.network = outer
        return found

    def _look_back(self, pattern: a.Pattern, span: Micros) -> _Back:
        match pattern:
            case a.Bgp(triples):
                return self.derived if len(triples) < 2 else self._within(span, self.derived.start, "a group's triples, which may lie any time apart")
            case a.Path(_, path):
                return self._within(span, self.derived.start, "a path, whose steps may lie any time apart") if keeps_steps(path) else self.derived
            case a.Values():
                return _NONE
            case a.Union(left, right):
                return _widest(self.look_back(left, span), self.look_back(right, span))
            case a.Join() | a.SeqJoin() | a.EqJoin() | a.RelationJoin():
                return self._find_join(pattern, span)
            case a.SeqWithout() | a.JoinWithout():
                return self._find_without(pattern, span)
            case a.Filter(condition, inner):
                return self._decided(condition, inner) or self.look_back(inner, min(span, span_of(list_conjuncts(condition))))
            case a.Within(inner, limit):
                return self.look_back(inner, min(span, limit))
            case a.Extend(inner, _, expression):
                return self._decided(expression, inner) or self.look_back(inner, span)
            case a.Minus():
                return self._none("MINUS, which looks at all that came before")
            case a.LeftJoin() | a.EqLeftJoin() | a.SeqRightJoin():
                return self._find_optional(pattern, span)
            case a.WithoutFor() | a.Alarm() | a.Instant():
                return self._find_timer(pattern, span)
            case a.Graph(_, inner):
                return _widest(self.look_back(inner, span), self.derived)
            case a.Group():
                return self._find_group(pattern)
            case a.SubSelect(inner, modifiers=modifiers):
                if modifiers == a.PLAIN:
                    return self.look_back(inner, span)
                if (counting := self._look_at_modifiers(pattern)) is not None:
                    return counting
                return self._timed(inner, "ORDER BY") or self.look_back(inner, c.FOREVER)
            case a.InWindow():
                raise AssertionError("the rewriting of places leaves none")
            case _:
                assert_never(pattern)

    def _look_at_modifiers(self, select: a.Select | a.SubSelect) -> _Back | None:
        """Return that nothing bounds how far back a SELECT's modifiers look, if they look at more than an instant or
        a report.
        """
        if select.modifiers.once is not None:
            return self._none("ONCE PER, which goes by the solutions that it has let through")
        if _counts(select.modifiers) and not has_window(select.pattern):
            return self._none("LIMIT and OFFSET, which count from the beginning")
        return None

    def _within(self, span: Micros, before: Micros, reason: str) -> _Back:
        """Return how far back a solution depends on what lies in its interval, and on what lies so long before its
        start.
        """
        end = _further(span, before)
        if end >= c.FOREVER:
            self.reasons.append(f"{reason}: WITHIN bounds that")
        return _Back(end, before)

    def _timed(self, pattern: a.Pattern, operator: str) -> _Back | None:
        """Return that nothing bounds an operator that gives timeless solutions a time, or decides on them, if there
        may be any.
        """
        if not find_scope(pattern, self.matches).timeless:
            return None
        return self._none(f"{operator} over what the background or VALUES gives, which is decided at the first instant")

    def _decided(self, condition: a.Expression, inner: a.Pattern) -> _Back | None:
        """Return that nothing bounds a condition on a pattern, if it looks beyond its solutions and their time."""
        if has_exists(condition):
            return self._none("EXISTS, which looks at all that came before")
        return self._timed(inner, "NOW()") if asks_identity(condition) else None

    def _find_join(self, pattern: a.Join | a.SeqJoin | a.EqJoin | a.RelationJoin, span: Micros) -> _Back:
        if is_policed(pattern, self.policy):
            return self._none(f"the policy {self.policy}")
        span = min(span, find_scope(pattern, self.matches).longest)
        sides = [side for side in (pattern.left, pattern.right) if not _is_untimed(side)]
        found = [self.look_back(side, span) for side in sides]
        if len(found) < 2:
            return _widest(*found)
        widest = _widest(*found)
        if isinstance(pattern, a.EqJoin) or (isinstance(pattern, a.RelationJoin) and pattern.relation is a.Relation.FINISHES):
            return _Back(min(widest.end, _further(span, widest.start)), widest.start)  # both sides end where the join does
        lagging = max(_further(back.end, self.network.find_lag(pattern, side)) for back, side in zip(found, sides, strict=True))
        if lagging < c.FOREVER:
            return _Back(min(lagging, _further(span, widest.start)), widest.start)
        return self._within(span, widest.start, "a join, whose sides may lie any time apart")

    def _find_without(self, pattern: a.SeqWithout | a.JoinWithout, span: Micros) -> _Back:
        if is_policed(pattern, self.policy):
            return self._none(f"the policy {self.policy}")
        for side in (pattern.left, pattern.right):
            if (unbounded := self._timed(side, "WITHOUT")) is not None:
                return unbounded
        span = min(span, find_scope(pattern, self.matches).longest, *(() if pattern.within is None else (pattern.within,)))
        sides = (self.look_back(side, span) for side in (pattern.left, pattern.right, pattern.absent))
        return self._within(span, _widest(*sides).start, "WITHOUT, whose sides may lie any time apart")

    def _find_optional(self, pattern: a.LeftJoin | a.EqLeftJoin | a.SeqRightJoin, span: Micros) -> _Back:
        """Return how far back an optional join looks: what counts ends before the kept side, and lies within the
        bound of the condition.
        """
        kept, other = (pattern.right, pattern.left) if isinstance(pattern, a.SeqRightJoin) else (pattern.left, pattern.right)
        unbounded = self._timed(kept, "an optional part") or (None if pattern.condition is None else self._decided(pattern.condition, kept))
        if unbounded is not None:
            return unbounded
        x = self.look_back(kept, span)
        if _is_untimed(other):
            return x
        if isinstance(pattern, a.EqLeftJoin):
            return _widest(x, self.look_back(other, min(span, find_scope(kept, self.matches).longest)))
        conditions = [] if pattern.condition is None else list_conjuncts(pattern.condition)
        own, waiting = span_of(conditions), find_waiting(kept, other, conditions) if self.policy == UNRESTRICTED else c.FOREVER
        if min(own, waiting) >= c.FOREVER:
            return self._none("an optional part: FILTER(getDURATION() < ...) in its group bounds that")
        seen = self.look_back(other, own)
        back = min(_further(own, seen.start), _further(waiting, seen.end))
        return _widest(x, _Back(back, back))

    def _find_timer(self, pattern: a.WithoutFor | a.Alarm | a.Instant, span: Micros) -> _Back:
        if isinstance(pattern, a.Instant):
            return self._none("an instant, which a query finds where it reads from there or before")
        if (unbounded := self._timed(pattern.pattern, "a timer")) is not None:
            return unbounded
        if isinstance(pattern, a.Alarm):
            return self._within(span, self.look_back(pattern.pattern, span).start, "an alarm, which may be any time ahead")
        left = span if span >= c.FOREVER else max(span - pattern.duration, 0)
        x, z = self.look_back(pattern.pattern, left), self.look_back(pattern.absent, pattern.duration)
        return _Back(_further(pattern.duration, max(x.end, z.start)), max(x.start, z.start))

    def _find_group(self, pattern: a.Group) -> _Back:
        window = pattern.window
        if not isinstance(window, a.RangeWindow):
            return self._none("aggregates without WINDOW [RANGE ...], which look at all that came")
        graphs = [key for key in pattern.keys if key.name.startswith("_:graph#")]
        if not set(pattern.keys) - {*graphs}:
            if graphs or pattern is not self.outermost:
                return self._none("aggregates without GROUP BY inside a pattern or GRAPH, which report where the query or the graph begins")
            self.opens = True
        if (unbounded := self._timed(pattern.pattern, "an aggregate")) is not None:
            return unbounded
        back = _further(self.look_back(pattern.pattern, c.FOREVER).end, window.length)
        return _Back(back, back)


def _counts(modifiers: a.Modifiers) -> bool:
    return bool(modifiers.offset) or modifiers.limit is not None


def _is_untimed(pattern: a.Pattern) -> bool:
    """Return whether a pattern has timeless solutions alone, whatever the background and the streams hold."""
    match pattern:
        case a.Values():
            return True
        case a.Bgp(triples, place):
            return not triples and place.graph is None
        case a.Join(left, right):
            return _is_untimed(left) and _is_untimed(right)
        case _:
            return False
