"""This module finds doubts that only planning has: what is kept for ever, and parts that meet in every pair.

It applies the planner's rules to the query as written.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import field, replace
from typing import assert_never

from engine.kernel.state import layout as c
from engine.pattern_scope import Matches, Policed, Scope, Variables, find_scope, is_policed, list_conjuncts, list_subexpressions, span_of
from engine.physical_plan.operator_names import RELATION_WORDS
from engine.planner.builder.correlation import alternatives, essential
from engine.planner.builder.interval_network import NO_NETWORK, IntervalNetwork, find_network, find_waiting, list_positive_conditions
from engine.planner.builder.join_nodes import lives_of
from engine.planner.builder.join_order import order_triples
from engine.planner.builder.temporal_relations import relation_of
from engine.planner.groups_and_modifiers import longest_gap
from engine.planner.operators import policies
from engine.planner.operators.minus import visible
from engine.planner.operators.optional import bounds_of
from engine.planner.operators.property_paths import keeps_steps
from engine.planner.operators.without import blocking_life, find_passing
from epsparql import algebra as a
from epsparql.algebra.in_scope_variables import visible_variables
from epsparql.deferred_methods import dataclass
from epsparql.errors import Span, Warning_
from epsparql.solutions.policies import UNRESTRICTED, find_deciding_variable, is_recent
from epsparql.terms import Variable
from epsparql.translate.source_map import beginning
from epsparql.translate.translator import ParsedQuery
from epsparql.trees import walk_nodes

MOST = 10
"""At most this many warnings of one code are spelled out."""

UNBOUNDED, NEVER_MATCHES = "unbounded-state", "never-matches"
_CONTRADICTION = "nothing matches here: its conditions on start and end times contradict each other; change one of them"
_OR_INSTANTS = "; if no event of its streams lasts, their setting instants: true bounds it too"
_BOUND = 'FILTER(getDURATION() < "PT1H"^^xsd:duration)'
_TIME_BETWEEN = 'a FILTER in it on the time between both, such as ?end1 - ?end2 < "PT1H"^^xsd:duration'
_IN_GROUP = f"{_BOUND} in its group bounds that"
_ON_CHAIN = f"WITHIN after it, or {_BOUND} in its group, bounds that"
_LIKE_ABSENCE = f"WITHOUT ... FOR, SEQ ... WITHOUT with WITHIN, or OPTIONAL with {_BOUND} in its group and FILTER(!BOUND(...)) after it keep less"
_LIKE_PRESENCE = f"a join, or OPTIONAL with {_BOUND} in its group and FILTER(BOUND(...)) after it, keeps less"
_INSTEAD = {"MINUS": _LIKE_ABSENCE, "NOT EXISTS": _LIKE_ABSENCE, "EXISTS": _LIKE_PRESENCE}
_SIDES = {(True, False): "on its left", (False, True): "on its right", (True, True): "on both sides"}
_PAIRS = {
    c.ANY: "every solution of one is joined with every solution of the other",
    c.SEQ: "every solution on the left is joined with every later one on the right",
    c.MEETS: "every solution on the left is joined with every one on the right that starts where it ends",
    c.DURING: "every solution on the left is joined with every one on the right that begins before it and ends after it",
    c.STARTS: "every solution on the left is joined with every one on the right that starts with it and ends later",
    c.OVERLAPS: "every solution on the left is joined with every one on the right that it overlaps",
    c.PAR: "every solution on the left is joined with every one on the right that shares time with it",
}
Joining = a.Join | a.SeqJoin | a.EqJoin | a.RelationJoin


@dataclass(frozen=True, slots=True)
class Under:
    """Says where a pattern stands.

    The fields are the longest duration (µs) that is wanted of it, a place, and the variables that an EXISTS around it
    puts in. `graphed` says whether one graph joins its parts. `network` has what conditions say of its interval.
    """

    span: int
    at: Span
    outer: Variables = frozenset()
    graphed: bool = False
    network: IntervalNetwork = NO_NETWORK


def doubts(parsed: ParsedQuery, matches: Matches, policy: str = UNRESTRICTED, *, instants: bool = False) -> tuple[Warning_, ...]:
    """Return the doubts in the order of the text. `instants` says whether no event that the query reads lasts.

    Named windows bound what they hold, and the translation of a program tells of its state.
    """
    query, of_policy = parsed.query, tuple(_doubt_policy(parsed, policy))
    if query.sources.windows or (isinstance(query, a.Select) and query.program):
        return of_policy
    found = _find_doubts(parsed, matches, policy, 0 if instants else c.FOREVER)
    if not instants and any(code == UNBOUNDED for _, code, _ in found):
        left = {(span, code) for span, code, _ in _find_doubts(parsed, matches, policy, 0)}
        found = [(span, code, text if code != UNBOUNDED or (span, code) in left else text + _OR_INSTANTS) for span, code, text in found]
    return (*of_policy, *_first_of_each(sorted(found, key=lambda each: each[0].start)))


def _doubt_policy(parsed: ParsedQuery, policy: str) -> Iterable[Warning_]:
    """Yield a doubt if the variable of `recent-by ?v` never decides."""
    name = find_deciding_variable(policy)
    policed = [node for node in walk_nodes(parsed.query) if isinstance(node, Policed) and is_policed(node, policy)]
    choosing = (side for node in policed for side in ((node.left, node.right) if policies.policed_relation(node) == c.ANY else (node.left,)))
    if name is not None and not any(Variable(name) in visible_variables(side) for side in choosing):
        message = f"the policy is {policy}, but no left operand of SEQ or of an interval relation, and no operand of AND, has ?{name}: it is recent"
        yield Warning_("policy-variable", message, Span(0, min(1, len(parsed.text))))


def find_bounded_by_instants(parsed: ParsedQuery, matches: Matches, policy: str = UNRESTRICTED) -> Span | None:
    """Return the place of the first part that keeps less if no event that the query reads lasts; None if there is none."""
    return next((doubt.span for doubt in doubts(parsed, matches, policy) if doubt.message.endswith(_OR_INSTANTS)), None)


def _find_doubts(parsed: ParsedQuery, matches: Matches, policy: str, occurrence: int) -> list[tuple[Span, str, str]]:
    """Return the doubts of a query whose events last at most `occurrence` µs."""
    reader, query = _Reader(parsed, matches, policy, occurrence), parsed.query
    under = Under(c.FOREVER, Span(0, min(1, len(parsed.text))))
    reader.read_pattern(query.pattern, under)
    if isinstance(query, a.Select):
        reader.read_modifiers(query, under)
    return reader.found


def _first_of_each(found: list[tuple[Span, str, str]]) -> Iterable[Warning_]:
    """Yield at most `MOST` warnings of a code, and how many more there are."""
    total = Counter(code for _, code, _ in found)
    seen: Counter[str] = Counter()
    for span, code, message in found:
        seen[code] += 1
        if seen[code] <= MOST:
            yield Warning_(code, message, span)
        elif seen[code] == MOST + 1:
            yield Warning_(code, f"and {total[code] - MOST} more from here on", span)


@dataclass(frozen=True, slots=True)
class _Reader:
    parsed: ParsedQuery
    matches: Matches
    policy: str
    occurrence: int
    found: list[tuple[Span, str, str]] = field(default_factory=list)

    def scope(self, pattern: a.Pattern) -> Scope:
        return find_scope(pattern, self.matches, self.occurrence)

    def _at(self, node: object, under: Under) -> Span:
        return self.parsed.places.find_span(node) or under.at

    def _written(self, span: Span) -> str:
        return self.parsed.text[span.start : span.end].upper()

    def _warn(self, span: Span, message: str, code: str = UNBOUNDED) -> None:
        self.found.append((span, code, message))

    # ------------------------------------------------ patterns
    def read_pattern(self, pattern: a.Pattern, under: Under) -> None:
        if self.policy == UNRESTRICTED and not under.network.has_interval(pattern):
            under = replace(under, network=find_network(pattern, under.span, (), self.occurrence))
            if under.network.contradicts and not any(doubt.code == NEVER_MATCHES for doubt in self.parsed.warnings):
                self._warn(self._at(pattern, under), _CONTRADICTION, NEVER_MATCHES)
        match pattern:
            case a.Join() | a.SeqJoin() | a.RelationJoin() | a.SeqWithout() | a.JoinWithout() if is_policed(pattern, self.policy):
                self._chosen(pattern, under)
            case a.Bgp():
                self._read_triples(pattern, under)
            case a.Join() | a.SeqJoin() | a.EqJoin() | a.RelationJoin():
                self._join(pattern, under)
            case a.Union(left, right):
                self.read_pattern(left, under)
                self.read_pattern(right, under)
            case a.Filter(condition, inner):
                self.expressions((condition,), self.scope(inner), under, inner)
                self.read_pattern(inner, replace(under, span=min(under.span, span_of(list_conjuncts(condition)))))
            case a.Within(inner, limit):
                self.read_pattern(inner, replace(under, span=min(under.span, limit)))
            case a.Extend(inner, _, expression):
                self.expressions((expression,), self.scope(inner), under, inner)
                self.read_pattern(inner, under)
            case a.Minus():
                self._minus(pattern, under)
            case a.LeftJoin() | a.EqLeftJoin() | a.SeqRightJoin():
                self._optional(pattern, under)
            case a.SeqWithout() | a.JoinWithout():
                self._read_without(pattern, under)
            case a.WithoutFor(inner, absent, duration):
                self.read_pattern(inner, replace(under, span=c.FOREVER))
                self.read_pattern(absent, replace(under, span=duration))
            case a.Path():
                if under.span == c.FOREVER and keeps_steps(pattern.path):
                    self._warn(self._at(pattern, under), f"the steps of this path are kept for ever: {_IN_GROUP}")
            case a.Values() | a.Instant():
                pass
            case a.Alarm(inner, _):
                self.read_pattern(inner, replace(under, span=c.FOREVER))
            case a.Graph(name, inner):
                self.read_pattern(inner, replace(under, graphed=under.graphed or isinstance(name, a.Variable)))
            case a.InWindow(_, inner):
                self.read_pattern(inner, under)
            case a.Group():
                self._read_group(pattern, under)
            case a.SubSelect():
                self._read_select(pattern, under)
            case _:
                assert_never(pattern)

    def _read_triples(self, bgp: a.Bgp, under: Under) -> None:
        """Warn of cross joins, and of triple patterns that are kept for ever.

        A cross join is where a triple shares no variable with those that it is joined to before, in the plan's order.
        """
        ordered = order_triples(bgp.triples, {})
        alone = [self.scope(a.Bgp((triple,))) for triple in ordered]
        before, kept = alone[0] if alone else self.scope(bgp), False
        for triple, other in zip(ordered[1:], alone[1:], strict=True):
            if c.FOREVER in lives_of(c.ANY, before, other, min(under.span, under.network.find_longest(bgp))):
                kept = True
                if not before.possible & other.possible and not under.graphed:
                    message = (
                        "this triple pattern shares no variable with the others: every match of it is joined with every match of "
                        "theirs, and no duration bounds that"
                    )
                    self._warn(self._at(triple, under), message, "cross-join")
            before = before.joined(other)
        if kept:
            self._warn(self._at(bgp, under), f"what these triple patterns match is kept for ever: {_IN_GROUP}")

    def _join(self, join: Joining, under: Under) -> None:
        x, y, relation = self.scope(join.left), self.scope(join.right), relation_of(join)
        at, bounds = self._at(join, under), under.network.find_lives(join.left, join.right)
        left, right = map(min, lives_of(relation, x, y, under.span), bounds)
        kept = left == c.FOREVER and x.timed, right == c.FOREVER and y.timed
        if any(kept):
            self._warn(at, self._kept_by(join, at, kept))
            if not x.possible & y.possible and not under.graphed:
                parts_ = "the parts of this group" if self._stands_beside(join, at) else f"the sides of {RELATION_WORDS[relation]}"
                self._warn(at, f"{parts_} share no variable: {_PAIRS[relation]}, and no duration bounds that", "cross-join")
        self.read_pattern(join.left, under)
        self.read_pattern(join.right, under)

    def _stands_beside(self, join: Joining, at: Span) -> bool:
        """Return whether no operator is written."""
        return isinstance(join, a.Join) and self._written(at) != "AND"

    def _kept_by(self, join: Joining, at: Span, kept: tuple[bool, bool]) -> str:
        if not self._stands_beside(join, at):
            return f"{self._written(at)} keeps the solutions {_SIDES[kept]} for ever: {_ON_CHAIN}"
        what = {(True, False): "what stands before this", (False, True): "this", (True, True): "this and what stands before it"}[kept]
        return f"the solutions of {what} in the group are kept for ever: {_IN_GROUP}"

    def _chosen(self, pattern: Policed, under: Under) -> None:
        """Warn of what an operator keeps under a policy: `recent` replaces goals, `chronological` keeps them until
        they are consumed.
        """
        x, y, at = self.scope(pattern.left), self.scope(pattern.right), self._at(pattern, under)
        relation, span, recent = policies.policed_relation(pattern), policies.policed_span(pattern, under.span), is_recent(self.policy)
        if isinstance(pattern, a.SeqWithout | a.JoinWithout):
            self._absent(pattern, x if relation == c.SEQ else x.joined(y), span, at)
        lives = policies.lives_of(self.policy, relation, span, timeless=x.timeless or y.timeless)
        many, both = not recent or bool(x.possible & y.possible), relation == c.ANY
        kept = lives[0] == c.FOREVER and x.timed and many, lives[1] == c.FOREVER and y.timed and (many or not both)
        name = RELATION_WORDS[relation]
        if any(kept) and not recent:
            until = "others consume" if both else "a right one consumes"
            self._warn(at, f"{name} keeps the solutions {_SIDES[kept]} until {until} them, however old they are")
        elif any(kept):
            replaced = "of each side" if both else "on the left"
            self._warn(
                at, f"{name} keeps the solutions {_SIDES[kept]} for ever, {replaced} the last one for each value of what both share: {_ON_CHAIN}"
            )
        self.read_pattern(pattern.left, replace(under, span=c.FOREVER))
        self.read_pattern(pattern.right, replace(under, span=span if recent and not both else c.FOREVER))

    # ------------------------------------------------ absence
    def _minus(self, minus: a.Minus, under: Under) -> None:
        x, y = self.scope(minus.left), self.scope(minus.right)
        if visible(x.possible & y.possible) - under.outer:
            self._sought("MINUS", self._at(minus, under), y.timed)
            self.read_pattern(minus.right, replace(under, span=c.FOREVER))
        self.read_pattern(minus.left, under)

    def _sought(self, name: str, at: Span, timed: bool) -> None:
        if timed:
            bound = "nothing bounds that" if name == "MINUS" else f"only {_TIME_BETWEEN}, bounds that"
            self._warn(at, f"{name} keeps the solutions of its group for ever, and {bound}; {_INSTEAD[name]}")

    def _optional(self, join: a.LeftJoin | a.EqLeftJoin | a.SeqRightJoin, under: Under) -> None:
        x, y, at = self.scope(join.left), self.scope(join.right), self._at(join, under)
        kept = y if isinstance(join, a.SeqRightJoin) else x
        bounds = bounds_of(join, under.span, kept, occurrence=self.occurrence, bounds=self.policy == UNRESTRICTED)
        if c.FOREVER in bounds.lives and (x if isinstance(join, a.SeqRightJoin) else y).timed:
            side, group = ("on its left", "the left group") if isinstance(join, a.SeqRightJoin) else ("of its group", "the group")
            limits = f"{_BOUND} directly in {group} bounds that, and so does {_TIME_BETWEEN}"
            self._warn(at, f"{self._written(at)} keeps the solutions {side} for ever: {limits}")
        if join.condition is not None:
            self.expressions((join.condition,), x.joined(y), under)
        self.read_pattern(join.left, replace(under, span=bounds.spans[0]))
        self.read_pattern(join.right, replace(under, span=bounds.spans[1]))

    def _read_without(self, pattern: a.SeqWithout | a.JoinWithout, under: Under) -> None:
        span = under.span if pattern.within is None else min(under.span, pattern.within)
        x, y, at, ordered = self.scope(pattern.left), self.scope(pattern.right), self._at(pattern, under), isinstance(pattern, a.SeqWithout)
        sides, kept = ("on its left", x) if ordered else ("on both sides", x.joined(y))
        lives, between = under.network.find_blocking(pattern)
        waiting = lives[0] if ordered else max(lives)
        _, lag = find_passing(x, y, self.scope(pattern.absent), ordered=ordered)
        if lag < c.FOREVER:
            pass  # what is absent bounds what is kept, as long as it comes
        elif min(span, waiting) == c.FOREVER and (x.timed or not ordered):
            self._warn(at, f"{'SEQ' if ordered else 'AND'} ... WITHOUT keeps the solutions {sides} and of what is absent for ever: {_ON_CHAIN}")
        else:
            self._absent(pattern, kept, min(span, between), at)
        for side in (pattern.left, pattern.right):
            self.read_pattern(side, replace(under, span=span))
        self.read_pattern(pattern.absent, replace(under, span=blocking_life(kept, min(span, between))))

    def _absent(self, pattern: a.SeqWithout | a.JoinWithout, kept: Scope, span: int, at: Span) -> None:
        if blocking_life(kept, span) == c.FOREVER and self.scope(pattern.absent).timed:
            left = "what is on the left of SEQ" if isinstance(pattern, a.SeqWithout) else "what AND joins"
            why = f", and nothing bounds that, for {left} may be timeless" if span < c.FOREVER else f": {_ON_CHAIN}"
            self._warn(at, f"WITHOUT keeps the solutions of its group for ever{why}")

    # ------------------------------------------------ selections
    def _read_group(self, group: a.Group, under: Under) -> None:
        if group.keys and group.window is None and not group.aggregates:
            self._warn(self._at(group, under), "GROUP BY without a WINDOW keeps every group for ever: WINDOW [RANGE ...] after it bounds that")
        arguments = (aggregate.argument for _, aggregate in group.aggregates if aggregate.argument is not None)
        self.expressions(arguments, self.scope(group.pattern), under)
        self.read_pattern(group.pattern, replace(under, span=c.FOREVER))
        if isinstance(group.window, a.RunWindow) and group.window.until is not None:
            self.read_pattern(group.window.until, replace(under, span=longest_gap(group.window)))

    def _read_select(self, select: a.SubSelect, under: Under) -> None:
        self.read_modifiers(select, under)
        self.read_pattern(select.pattern, under if select.modifiers == a.PLAIN else replace(under, span=c.FOREVER))

    def read_modifiers(self, select: a.Select | a.SubSelect, under: Under) -> None:
        once = select.modifiers.once
        self.expressions((key.expression for key in select.modifiers.order), self.scope(select.pattern), under)
        if once is not None and once.until is not None:
            message = "ONCE PER ... UNTIL keeps each key from the solution that it lets through until its group resets it"
            self._warn(self._at(once, under), f"{message}: ONCE PER ... WITHIN bounds that")
            self.read_pattern(once.until, replace(under, span=c.FOREVER))

    # ------------------------------------------------ EXISTS
    def expressions(self, expressions: Iterable[a.Expression], kept: Scope, under: Under, around: a.Pattern | None = None) -> None:
        """Warn of what EXISTS in the expressions looks for, beside the solutions of which they are asked.

        `around` is the pattern of these solutions, if it is one.
        """
        for expression in expressions:
            for part in list_subexpressions(expression):
                if isinstance(part, a.Exists):
                    self._exists(part, kept, under, around)

    def _waits(self, sought: a.Pattern, around: a.Pattern | None) -> bool:
        """Return whether no condition bounds for how long what is sought may decide on a solution of `around`."""
        if around is None or self.policy != UNRESTRICTED:
            return True
        return find_waiting(around, sought, list_positive_conditions(sought), self.occurrence) == c.FOREVER

    def _exists(self, exists: a.Exists, kept: Scope, under: Under, around: a.Pattern | None) -> None:
        at = self._at(exists, under)
        wanted = [essential(pattern, kept, self.scope) for pattern in alternatives(exists.pattern)]
        name = "NOT EXISTS" if self._written(beginning(at, "NOT")) == "NOT" else "EXISTS"
        self._sought(name, at, any(self.scope(pattern).timed and self._waits(pattern, around) for pattern in wanted))
        for pattern in wanted:
            self.read_pattern(pattern, replace(under, span=c.FOREVER, outer=under.outer | kept.certain))
