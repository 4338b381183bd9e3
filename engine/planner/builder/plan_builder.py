"""This module builds the plan of one query: its nodes, edges, columns and conditions. It knows no operator.

An operator has its operands planned by `PlanBuilder.plan_pattern`, which hands them to the function that knows all
operators.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import reduce
from itertools import count

import numpy as np
from numpy.typing import NDArray

from engine.expressions.nondeterministic import NAMELESS, Naming
from engine.kernel.state import layout as c
from engine.pattern_scope import ANY_TRIPLE, Scope, Variables, find_scope
from engine.physical_plan import filter_compiler
from engine.physical_plan.join_trees import PlanShape
from engine.physical_plan.plan import Fragment, Inquiry, Node, RowRange
from engine.planner.builder.interval_network import NO_NETWORK, IntervalNetwork, find_network
from engine.planner.builder.join_order import Rates
from engine.rewrite.operands import Operands
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.solutions.policies import UNRESTRICTED
from epsparql.terms import TermOrVariable, Variable
from epsparql.trees import replace_fields

Target = tuple[int, int]
"""A target is the node and side that a pattern's solutions go to."""
Conditions = Sequence[a.Expression]
Ints = NDArray[np.int64]


CHOICES = ("filters", "windows", "order", "expiry", "suppression", "pairs", "passing", "bounds", "sums")
"""A plan could do without these choices.

Conditions and windows go down as far as they decide, and joins are made in the order that the rates ask for. What
decides on absence is kept for its window alone. The right side of a SEQ keeps nothing that no left solution precedes.
An EQUALSOPTIONAL that asks for pairs with nothing between them makes no other pairs. A WITHOUT discards the goals
that its blockers have passed. Conditions that compare times of several operands bound how long their joins keep
solutions. Aggregates over a chain make no matches.
"""
IN_PARTITIONS = frozenset({"suppression"})
"""A partition is planned without these choices, so that fewer changes of the background make it read the log again."""


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """Says how a query is planned. `without` names those of CHOICES that are not made."""

    naming: Naming = NAMELESS
    policy: str = UNRESTRICTED
    rates: Rates = field(default_factory=dict)  # how often triples occur
    shape: PlanShape | None = None  # that of a plan that stands already; None: as the rates and the background ask for
    without: frozenset[str] = frozenset()
    occurrence: int = c.FOREVER  # how long an occurrence of the query's streams lasts at most (µs)
    local: frozenset[str] = frozenset()  # the streams of which no two entries describe one subject

    @property
    def passes(self) -> bool:
        """Return whether a WITHOUT discards the goals that its blockers have passed."""
        return self.expires and "passing" not in self.without

    @property
    def expires(self) -> bool:
        """Return whether what may count against a solution, or be added to it, is kept no longer than a window."""
        return "expiry" not in self.without

    @property
    def suppresses(self) -> bool:
        """Return whether the right side of a SEQ keeps nothing that no left solution precedes."""
        return self.expires and "suppression" not in self.without

    @property
    def nears(self) -> bool:
        """Return whether an EQUALSOPTIONAL that asks for pairs with nothing between them makes no other pairs."""
        return self.expires and "pairs" not in self.without

    @property
    def sums(self) -> bool:
        """Return whether aggregates over a chain make no matches."""
        return self.expires and "sums" not in self.without

    @property
    def bounds(self) -> bool:
        """Return whether conditions that compare times bound what joins keep. A policy chooses before conditions do."""
        return self.policy == UNRESTRICTED and not self.without & {"bounds", "windows"}

    @property
    def order(self) -> Rates:
        """Return the rates by which joins are ordered."""
        return {} if "order" in self.without else self.rates


@dataclass(frozen=True, slots=True)
class NetworkNames:
    """Gives a network's numbers for what a plan names, and what the background has for it."""

    term: Callable[[str], int]
    stream: Callable[[str], int]
    facts: Callable[[a.TriplePattern, a.Place], Ints]  # s, p, o, g of the background triples that match a pattern at its place
    graphs: Callable[[a.Place], list[int]]  # the graphs of a place that hold a background triple, by name
    any: Callable[[a.Place], bool]  # tells whether a place holds a background triple
    options: PlanOptions = field(default_factory=PlanOptions)
    once: Callable[[a.Select, Mapping[str, Ints], int], Ints] | None = None  # solves a query over contents of windows at one instant
    owned: Callable[[Ints], Ints] | None = None  # those of the facts that are not for another partition to take in; None: all

    def own(self, facts: Ints) -> Ints:
        """Return the facts that are to be taken in. A plan is the same in every partition."""
        return facts if self.owned is None else self.owned(facts)

    def matches(self, pattern: a.TriplePattern, place: a.Place) -> bool:
        return self.any(place) if pattern is ANY_TRIPLE else len(self.facts(pattern, place)) > 0


PatternPlanner = Callable[["PlanBuilder", a.Pattern, Target, int, Conditions], None]
"""It plans a pattern so that its solutions which last at most so many µs and satisfy all conditions reach the target."""


@dataclass(slots=True)
class PlanBuilder:
    """Builds the plan of one query as a fragment."""

    query: a.StreamQuery
    names: NetworkNames
    pattern_planner: PatternPlanner
    fragment: Fragment = field(default_factory=Fragment)
    outer: Variables = frozenset()  # what the solutions around the pattern certainly bind, where it stands in an EXISTS
    moments: list[Variable] = field(default_factory=list)  # where scans have noted the last change of instances before their entries
    notes_moments: bool = False
    gate: int = c.NONE  # the SEQ whose right side is planned, where that keeps nothing without a left solution
    network: IntervalNetwork = NO_NETWORK  # that of the pattern that is planned
    operands: Operands = field(default_factory=Operands)  # of the query's pattern
    postponed: list[Callable[[], None]] = field(default_factory=list)  # plan what comes behind all other nodes
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    @property
    def options(self) -> PlanOptions:
        return self.names.options

    def scope(self, pattern: a.Pattern) -> Scope:
        found = find_scope(pattern, self.names.matches, self.options.occurrence)
        return replace_fields(found, longest=c.FOREVER) if "windows" in self.options.without else found

    # ------------------------------------------------------------ columns and terms
    def column(self, variable: Variable) -> int:
        return self.fragment.columns.setdefault(variable, c.VAR + len(self.fragment.columns))

    def add_variable(self, what: str) -> Variable:
        """Return a hidden variable of the plan's own."""
        variable = Variable(f"_:{what}@{next(self._numbers)}")
        self.column(variable)
        return variable

    def column_or_constant(self, part: TermOrVariable) -> int:
        """Return where a move takes a value: a variable's column, or minus the term that it must be."""
        return self.column(part) if isinstance(part, Variable) else -self.names.term(str(part))

    def add_slots(self, variables: Iterable[Variable]) -> RowRange:
        return filter_compiler.add_slots(self.fragment, [self.column(v) for v in sorted(variables, key=lambda v: v.name)])

    def key_columns(self, x: Scope, y: Scope) -> tuple[RowRange, RowRange]:
        """Return the columns by which a join compares its sides: its key, and the rest.

        Only variables certainly bound on both sides may key a goal; the rest that they may share is checked.
        """
        key = x.certain & y.certain
        return self.add_slots(key), self.add_slots((x.possible & y.possible) - key)

    # ------------------------------------------------------------ nodes
    def node(self, number: int) -> Node:
        return self.fragment.nodes[number]

    def add_node(self, node: Node, target: Target | None = None) -> int:
        """Add a node, whose solutions go to `target`, and return its number."""
        node.edges = RowRange(len(self.fragment.edges), 0 if target is None else 1)
        if target is not None:
            self.fragment.edges.append(target)
        self.fragment.nodes.append(node)
        return len(self.fragment.nodes) - 1

    def set_targets(self, node: int, targets: Sequence[Target]) -> None:
        """Give a node its readers, which may be made after it."""
        self.node(node).edges = RowRange(len(self.fragment.edges), len(targets))
        self.fragment.edges += targets

    def limit_targets(self, node: int, n: int) -> None:
        """Leave a node the first of its readers."""
        self.node(node).edges = RowRange(self.node(node).edges.first, n)

    def add_move(self, target: Target | None, pairs: Sequence[tuple[int, int]], *, keep: bool = False, once: bool = False) -> int:
        """Add a node that moves columns: (source, target column, or -term that the source must be)."""
        node = self.add_node(Node(c.MOVE, keep=keep, once=once), target)
        self.set_moves(node, pairs)
        return node

    def set_moves(self, node: int, pairs: Sequence[tuple[int, int]]) -> None:
        """Give a node that moves columns its pairs, which may be known after it."""
        self.node(node).moves = RowRange(len(self.fragment.moves), len(pairs))
        self.fragment.moves += pairs

    def add_extend(self, variable: Variable, inquiry: Inquiry, target: Target) -> int:
        ask = filter_compiler.add_question(self.fragment, inquiry)
        return self.add_node(Node(c.EXTEND, ask=ask, column=self.column(variable)), target)

    def add_fork(self, targets: Sequence[Target]) -> Target:
        """Return where solutions enter that go to all of the targets."""
        if len(targets) == 1:
            return targets[0]
        node = self.add_node(Node(c.PASS))
        self.set_targets(node, targets)
        return node, c.LEFT

    @contextmanager
    def noting_moments(self) -> Iterator[list[Variable]]:
        """Let each triple pattern note, in a variable of its own, the last change of instances before its entry."""
        self.notes_moments, before, found = True, len(self.moments), list[Variable]()
        yield found
        self.notes_moments = False
        found += self.moments[before:]

    @contextmanager
    def gated_by(self, gate: int) -> Iterator[None]:
        """Plan joins that keep nothing unless the SEQ `gate` has a left solution that precedes it; NONE: as they come."""
        outer, self.gate = self.gate, gate
        yield
        self.gate = outer

    @contextmanager
    def networked(self, pattern: a.Pattern, span: int, wanted: Conditions) -> Iterator[None]:
        """Plan a pattern in the network that it is part of, or in one of its own."""
        outer = self.network
        if self.options.bounds and not outer.has_interval(pattern):
            self.network = find_network(pattern, span, wanted, self.options.occurrence)
        yield
        self.network = outer

    # ------------------------------------------------------------ conditions
    def compile_conditions(self, conditions: Conditions) -> int:
        """Compile the conjunction of conditions and return where its code begins."""
        if not conditions:
            return c.NONE
        return filter_compiler.compile_filter(self.fragment, reduce(a.And, conditions), self.names.term)

    def enforce(self, target: Target, span: int, conditions: Conditions) -> Target:
        """Return a node before `target` for a span and conditions that nothing below enforces."""
        if span == c.FOREVER and not conditions:
            return target
        return self.add_node(Node(c.PASS, span=span, filter=self.compile_conditions(conditions)), target), c.LEFT

    # ------------------------------------------------------------ patterns
    def plan_pattern(self, pattern: a.Pattern, target: Target, span: int = c.FOREVER, wanted: Conditions = ()) -> None:
        """Plan `pattern` so that its solutions which last at most `span` µs and satisfy all conditions `wanted` reach
        `target`.
        """
        self.pattern_planner(self, pattern, *self.settle(target, span, wanted))

    def settle(self, target: Target, span: int, wanted: Conditions) -> tuple[Target, int, Conditions]:
        """Return where solutions are to go, and what may go down with the pattern.

        What may not is enforced before the target.
        """
        if "filters" in self.options.without:
            target, wanted = self.enforce(target, c.FOREVER, wanted), ()
        if "windows" in self.options.without:
            target, span = self.enforce(target, span, ()), c.FOREVER
        return target, span, wanted
