"""This module holds the planner: what every operator's plan shares, and which function plans which node.

Goals are binary: every operator joins two sides. Windows and filters go down as far as they decide early.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from engine.errors import Refusal
from engine.expressions.evaluator import supported
from engine.kernel.state import layout as c
from engine.messages import POLICIES, UNRESTRICTED
from engine.physical_plan import filter_compiler
from engine.physical_plan.join_trees import Segment, Shape
from engine.physical_plan.plan import Fragment, Inquiry
from engine.planner import groups_and_modifiers, queries
from engine.planner.operators import background_probe, joins, policies, property_paths, triple_patterns
from engine.planner.operators import filter_bind_exists as conditions
from engine.planner.operators import negation as negative
from engine.planner.operators.batched_groups import defer
from engine.planner.operators.join_order import Rates
from engine.planner.operators.path_reachability import Sleep
from engine.rewrite.rename_hidden import variables_below
from engine.scope import ANY_TRIPLE, Matches, Scope, Variables, parts, scope
from epsparql import algebra as a
from epsparql.recursion import deep_stack
from epsparql.terms import Variable

Target = tuple[int, int]
"""A target is the node and side that a pattern's solutions go to."""
Conditions = list[a.Expression]
Ints = NDArray[np.int64]


CHOICES = ("filters", "windows", "order", "expiry")
"""A plan could do without these choices.

Conditions and windows go down as far as they decide, and joins are made in the order that the rates ask for. What decides on absence is kept for its
window alone.
"""


@dataclass(frozen=True, slots=True)
class Names:
    """Gives a network's numbers for what a plan names."""

    term: Callable[[str], int]
    stream: Callable[[str], int]
    facts: Callable[[a.TriplePattern, a.Place], Ints]  # s, p, o, g of the background triples that match a pattern at its place
    graphs: Callable[[a.Place], list[int]]  # the graphs of a place that hold a background triple, by name
    any: Callable[[a.Place], bool]  # tells whether a place holds a background triple
    query: str = ""  # its name
    policy: str = UNRESTRICTED
    rates: Rates = field(default_factory=dict)  # how often triples occur
    shape: Shape | None = None  # the order of joins of a chain of SEQs; None: as the rates ask for
    without: frozenset[str] = frozenset()  # those of CHOICES that are not made
    once: Callable[[a.Select, Mapping[str, Ints], int], Ints] | None = None  # solves a query over contents of windows at one instant
    owned: Callable[[Ints], Ints] | None = None  # those of the facts that are not for another bucket to take in; None: all

    @property
    def order(self) -> Rates:
        """Return the rates by which joins are ordered."""
        return {} if "order" in self.without else self.rates

    def own(self, facts: Ints) -> Ints:
        """Return the facts that are to be taken in. A plan is the same in every bucket."""
        return facts if self.owned is None else self.owned(facts)

    def matches(self, pattern: a.TriplePattern, place: a.Place) -> bool:
        return self.any(place) if pattern is ANY_TRIPLE else len(self.facts(pattern, place)) > 0


def plan(query: a.Query, names: Names) -> Fragment:
    """Return the fragment of a query, which has been rewritten. Raises Refusal."""
    if names.policy not in POLICIES:
        raise Refusal(f"the policy {names.policy!r}")
    planner = Planner(query, names)
    for variable in sorted(variables_below(query), key=lambda v: v.name):
        planner.column(variable)
    for stream in query.streams:
        names.stream(stream)  # also of one that no scan reads
    with deep_stack():
        queries.query(planner)
        background_probe.plan_beside(planner)
    defer(planner.fragment)
    return planner.fragment


@dataclass(slots=True)
class Planner:
    """Plans one query as a fragment."""

    query: a.Query
    names: Names
    fragment: Fragment = field(default_factory=Fragment)
    outer: Variables = frozenset()  # what the solutions outside of an EXISTS certainly bind while its pattern is planned
    sleeping: Sleep | None = None  # the sleep of the path that is planned
    segments: dict[int, Segment] = field(default_factory=dict)  # the parts of a chain of SEQs that is shaped, by identity of their patterns
    beside: list[background_probe.Finds] = field(default_factory=list)  # look-ups that are planned after all else
    _fresh: int = 0

    @property
    def matches(self) -> Matches:
        return self.names.matches

    def scope(self, pattern: a.Pattern) -> Scope:
        return scope(pattern, self.matches)

    def column(self, variable: Variable) -> int:
        return self.fragment.columns.setdefault(variable, c.VAR + len(self.fragment.columns))

    def fresh(self, what: str) -> Variable:
        """Return a hidden variable of the plan's own."""
        self._fresh += 1
        variable = Variable(f"_:{what}@{self._fresh}")
        self.column(variable)
        return variable

    # ------------------------------------------------------------ nodes
    def node(self, kind: int, target: Target | None, **values: int) -> int:
        row = [0] * c.NODE_WIDTH
        row[c.KIND], row[c.SPAN], row[c.FILTER], row[c.CONDITION], row[c.EDGE_AT] = kind, c.FOREVER, c.NONE, c.NONE, len(self.fragment.edges)
        row[c.LOOK] = row[c.LOOK_VIA] = c.NONE
        if target is not None:
            self.fragment.edges.append(target)
            row[c.EDGE_N] = 1
        self.fragment.nodes.append(row)
        number = len(self.fragment.nodes) - 1
        self.assign(number, **values)
        return number

    def assign(self, node: int, **values: int) -> None:
        for name, value in values.items():
            self.fragment.nodes[node][getattr(c, name)] = value

    def targets(self, node: int, targets: Sequence[Target]) -> None:
        """Give a node its readers, which may be made after it."""
        self.assign(node, EDGE_AT=len(self.fragment.edges), EDGE_N=len(targets))
        self.fragment.edges += targets

    def move(self, target: Target | None, pairs: Sequence[tuple[int, int]], *, keep: bool = False, once: bool = False) -> int:
        """Add a node that moves columns: (source, target column, or -term that the source must be)."""
        at = len(self.fragment.moves)
        self.fragment.moves += pairs
        return self.node(c.MOVE, target, MOVE_AT=at, MOVE_N=len(pairs), KEEP=keep, ONCE_ONLY=once)

    def slots(self, variables: Iterable[Variable]) -> tuple[int, int]:
        return filter_compiler.slots(self.fragment, [self.column(v) for v in sorted(variables, key=lambda v: v.name)])

    def filter(self, conditions: Sequence[a.Expression]) -> int:
        if not conditions:
            return c.NONE
        whole = conditions[0]
        for condition in conditions[1:]:
            whole = a.And(whole, condition)
        return filter_compiler.compile_filter(self.fragment, whole, self.names.term)

    def extend_node(self, variable: Variable, inquiry: Inquiry, target: Target) -> int:
        ask = filter_compiler.question(self.fragment, inquiry)
        return self.node(c.EXTEND, target, ASK=ask, COLUMN=self.column(variable))

    def after(self, target: Target, span: int, conditions: Sequence[a.Expression]) -> Target:
        """Return a node before `target` for a span and conditions that nothing below enforces."""
        if span == c.FOREVER and not conditions:
            return target
        return self.node(c.PASS, target, SPAN=span, FILTER=self.filter(conditions)), c.LEFT

    def keys(self, x: Scope, y: Scope, suffix: str = "") -> dict[str, int]:
        """Return the key columns of a join. Only variables certainly bound on both sides may key a goal; the rest that they may share is checked."""
        key = x.certain & y.certain
        key_at, key_n = self.slots(key)
        rest_at, rest_n = self.slots((x.possible & y.possible) - key)
        return {f"KEY{suffix}_AT": key_at, f"KEY{suffix}_N": key_n, f"REST{suffix}_AT": rest_at, f"REST{suffix}_N": rest_n}

    def check(self, conditions: Sequence[a.Expression]) -> None:
        for part in (part for condition in conditions for part in parts(condition)):
            if isinstance(part, a.Call) and not supported(part.function):
                raise Refusal(f"the function {part.function}", part.function)

    # ------------------------------------------------------------ patterns
    def pattern(self, pattern: a.Pattern, target: Target, span: int = c.FOREVER, wanted: Sequence[a.Expression] = ()) -> None:
        """Plan `pattern` so that its solutions which last at most `span` µs and satisfy all conditions `wanted` reach `target`."""
        if "filters" in self.names.without:
            target, wanted = self.after(target, c.FOREVER, wanted), ()
        if "windows" in self.names.without:
            target, span = self.after(target, span, ()), c.FOREVER
        match pattern:
            case a.SeqJoin() | a.RelationJoin() | a.SeqWithout() if self.names.policy != UNRESTRICTED:
                policies.chosen(self, pattern, target, span, wanted)
            case a.Bgp():
                triple_patterns.bgp(self, pattern, target, span, wanted)
            case a.Join() | a.SeqJoin() | a.EqJoin() | a.RelationJoin():
                joins.join(self, pattern, target, span, wanted)
            case a.Union(left, right):
                self.pattern(left, target, span, wanted)
                self.pattern(right, target, span, wanted)
            case a.Filter(condition, inner):
                conditions.filtered(self, condition, inner, target, span, wanted)
            case a.Within(inner, limit):
                limit = min(span, limit)
                self.pattern(inner, joins.passing(self, inner, target, limit), limit, wanted)
            case a.Extend():
                conditions.extended(self, pattern, target, span, wanted)
            case a.Minus():
                negative.minus(self, pattern, target, span, wanted)
            case a.LeftJoin() | a.EqLeftJoin() | a.SeqRightJoin():
                negative.optional(self, pattern, target, span, wanted)
            case a.SeqWithout():
                negative.without(self, pattern, target, span, wanted)
            case a.WithoutFor():
                negative.without_for(self, pattern, target, span, wanted)
            case a.Path():
                property_paths.path(self, pattern, target, span, wanted)
            case a.Values():
                triple_patterns.values(self, pattern, self.after(target, span, wanted))
            case a.Graph():
                triple_patterns.graph(self, pattern, self.after(target, c.FOREVER, wanted), span)
            case a.Group():
                groups_and_modifiers.group(self, pattern, self.after(target, span, wanted))
            case a.SubSelect():
                groups_and_modifiers.sub_select(self, pattern, target, span, wanted)
            case a.InWindow():
                raise AssertionError("the rewriting of places leaves none")
            case _:
                assert_never(pattern)
