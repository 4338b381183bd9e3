"""This module plans property paths (SPARQL 1.1, 18.4): walks of at least one step, and the pairs that a path of no
length gives.

Inside a path a step of no length costs no time; only where the whole path has none do its ends say where the pair
stands.
"""

from dataclasses import field
from typing import assert_never

import numpy as np

from engine.kernel.state import layout as c
from engine.pattern_scope import ANY_TRIPLE
from engine.physical_plan.filter_compiler import add_slots
from engine.physical_plan.plan import COPIED, Fact, Node, Unit
from engine.planner.builder.plan_builder import Conditions, PlanBuilder, Target
from engine.planner.builder.scans import add_scans, note_read, parts_of
from engine.planner.operators.path_reachability import Sleep, may_be_empty, plan_link, wake_tables
from engine.rewrite.resolve_datasets import join_graph_names
from engine.triples.relation import distinct
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.terms import TermOrVariable, Variable
from epsparql.trees import walk_nodes

Pairs = list[tuple[int, int]]
Leaves = list[tuple[Target, Target]]
"""Each leaf is a store of what came of the stream alone, with the place where its solutions go in again (`Unit`)."""


def plan_path(builder: PlanBuilder, pattern: a.Path, target: Target, span: int, wanted: Conditions, sleep: Sleep | None = None) -> None:
    """Plan the pairs of a path, as a set, to `target`.

    A path that sleeps takes in the background when a stream brings a first link.
    """
    target = builder.enforce(target, c.FOREVER, wanted)
    subject, other = pattern.subject, pattern.object
    ends = [builder.column(v) for v in dict.fromkeys((subject, other, pattern.place.graph)) if isinstance(v, Variable)]
    root = builder.add_move(target, [(k, k) for k in ends], once=True)  # only the ends tell pairs apart
    target = root, c.LEFT
    if may_be_empty(pattern.path):
        _plan_empty_path(builder, subject, other, pattern.place, target)
    walks = _Walks(builder, pattern.place, span, sleep)
    if subject == other and isinstance(subject, Variable):
        other = builder.add_variable("end")
        here = builder.column(subject)
        target = builder.add_move(target, [(here, here), (builder.column(other), here), *walks.graph]), c.LEFT
    walks.plan_walks(pattern.path, subject, other, target, loose=False)
    if sleep is not None:
        wake_tables(builder, sleep)
    if walks.leaves:
        nodes, kept = range(root, len(builder.fragment.nodes)), {store for store, _ in walks.leaves}
        stores = [(node, side) for node in nodes if builder.node(node).kind == c.JOIN for side in (c.LEFT, c.RIGHT)]
        builder.fragment.units.append(Unit(root, nodes, tuple(walks.leaves), tuple(store for store in stores if store not in kept)))


def keeps_steps(path: a.PropertyPath) -> bool:
    """Return whether walks of a path wait for further steps."""
    return any(isinstance(node, a.Sequence | a.ZeroOrMore | a.OneOrMore) for node in walk_nodes(path))


# ---------------------------------------------------------------- walks
@dataclass(frozen=True, slots=True)
class _Walks:
    """Plans walks of one step or more between two different nodes of the plan."""

    builder: PlanBuilder
    place: a.Place
    span: int
    sleep: Sleep | None
    leaves: Leaves = field(default_factory=list)

    @property
    def graph(self) -> Pairs:
        return [] if self.place.graph is None else [(self.builder.column(self.place.graph),) * 2]

    def plan_walks(self, path: a.PropertyPath, start: TermOrVariable, end: TermOrVariable, target: Target, *, loose: bool) -> None:
        """Plan walks from `start` to `end`.

        `loose`: they go where longer walks are kept too, so that its triples need a store of their own among the
        `leaves`.
        """
        match path:
            case a.Link(predicate):
                self._plan_link(a.TriplePattern(start, predicate, end), self._remember(target) if loose else target)
            case a.Inverse(inner):
                self.plan_walks(inner, end, start, target, loose=loose)
            case a.Sequence():
                self._plan_sequence(path, start, end, target)
            case a.Alternative(left, right):
                self.plan_walks(left, start, end, target, loose=loose)
                self.plan_walks(right, start, end, target, loose=loose)
            case a.ZeroOrOne(inner):
                self.plan_walks(inner, start, end, target, loose=loose)
            case a.ZeroOrMore(inner) | a.OneOrMore(inner):
                self._plan_closure(inner, start, end, target)
            case a.Negated():
                self._plan_negated(path, start, end, self._remember(target) if loose else target)
            case _:
                assert_never(path)

    def _plan_link(self, triple: a.TriplePattern, target: Target) -> None:
        if self.sleep is not None:
            plan_link(self.builder, triple, self.place, target, self.sleep)
        else:
            self.builder.plan_pattern(a.Bgp((triple,), self.place), target, self.span)

    def _remember(self, target: Target) -> Target:
        """Plan, before `target`, a join of nothing that keeps what comes of the stream."""
        store = self.builder.add_node(Node(c.JOIN, c.ANY, self.span, life_left=self.span, life_right=c.NEVER))
        timed = self.builder.add_node(Node(c.PASS, filter=c.TIMED_ONLY), (store, c.LEFT))
        self.leaves.append(((store, c.LEFT), target))
        return self.builder.add_fork([target, (timed, c.LEFT)])

    def _keep_apart(self, path: a.PropertyPath, store: Target, entry: Target) -> bool:
        """Note a store if only triples reach it; return whether it is one."""
        if not keeps_steps(path):
            self.leaves.append((store, entry))
        return not keeps_steps(path)

    def _add_step_join(self, variable: Variable, target: Target | None) -> int:
        """Add a join of steps that meet in this variable, and in their graph."""
        columns = [self.builder.column(variable), *(column for column, _ in self.graph)]
        key = add_slots(self.builder.fragment, columns)
        return self.builder.add_node(Node(c.JOIN, c.ANY, self.span, key, life_left=self.span, life_right=self.span, timeless=1), target)

    def _same(self, end: TermOrVariable) -> Pairs:
        return [(self.builder.column(end),) * 2] if isinstance(end, Variable) else []

    def _plan_sequence(self, path: a.Sequence, start: TermOrVariable, end: TermOrVariable, target: Target) -> None:
        """Plan walks of both parts that meet, and those of one part where the other may be empty."""
        builder, middle = self.builder, self.builder.add_variable("step")
        join = self._add_step_join(middle, target)
        left: list[Target] = [(join, c.LEFT)]
        right: list[Target] = [(join, c.RIGHT)]
        here = builder.column(middle)
        if may_be_empty(path.right):
            left.append((builder.add_move(target, [*self._same(start), (here, builder.column_or_constant(end)), *self.graph]), c.LEFT))
        if may_be_empty(path.left):
            right.append((builder.add_move(target, [*self._same(end), (here, builder.column_or_constant(start)), *self.graph]), c.LEFT))
        before, after = builder.add_fork(left), builder.add_fork(right)
        apart = self._keep_apart(path.left, (join, c.LEFT), before)
        self.plan_walks(path.left, start, middle, before, loose=not apart)
        apart = self._keep_apart(path.right, (join, c.RIGHT), after)
        self.plan_walks(path.right, middle, end, after, loose=not apart)

    def _plan_negated(self, path: a.Negated, start: TermOrVariable, end: TermOrVariable, target: Target) -> None:
        """Plan `!(...)`: a triple, read forwards or backwards, whose predicate is none of those named."""
        for excluded, (s, o) in ((path.forward, (start, end)), (path.backward, (end, start))):
            if excluded is None:
                continue
            predicate = self.builder.add_variable("predicate")
            wanted = [a.Not(a.In(a.Var(predicate), tuple(map(a.Constant, excluded))))] if excluded else []
            self.builder.plan_pattern(a.Bgp((a.TriplePattern(s, predicate, o),), self.place), target, c.FOREVER, wanted)

    def _plan_closure(self, inner: a.PropertyPath, start: TermOrVariable, end: TermOrVariable, target: Target) -> None:
        """Plan steps joined to what has been reached, as a set.

        They start from a constant end where there is one, so that only what that reaches is kept.
        """
        if isinstance(start, Variable) and not isinstance(end, Variable):
            start, end, inner = end, start, a.Inverse(inner)
        builder = self.builder
        origin, reached, following = (builder.add_variable(what) for what in ("origin", "reached", "next"))
        starts = [(builder.column(origin), builder.column_or_constant(start))] if isinstance(start, Variable) else []
        at, then = builder.column(reached), builder.column(following)
        last = [*(self._same(origin) if starts else []), *self.graph]
        found = builder.add_move(None, [(at, at), *last], once=True)
        join = self._add_step_join(reached, None)
        builder.set_targets(join, [(builder.add_move((found, c.LEFT), [(then, at), *last]), c.LEFT)])
        first = (at, builder.column_or_constant(origin if starts else start))
        base = builder.add_move((found, c.LEFT), [first, (then, at), *self.graph])
        step = builder.add_move(None, [(at, at), (then, then), *self.graph], once=True)
        builder.set_targets(step, [(join, c.RIGHT), (base, c.LEFT)])
        leave = builder.add_move(target, [*starts, (at, builder.column_or_constant(end)), *self.graph])
        builder.set_targets(found, [(join, c.LEFT), (leave, c.LEFT)])
        apart = self._keep_apart(inner, (join, c.RIGHT), (step, c.LEFT))
        self.plan_walks(inner, reached, following, (step, c.LEFT), loose=not apart)


# ---------------------------------------------------------------- the path of no length
def _plan_empty_path(builder: PlanBuilder, subject: TermOrVariable, other: TermOrVariable, place: a.Place, target: Target) -> None:
    """Plan each node with itself: a constant end timelessly, else on the interval of each occurrence that it stands in."""
    if isinstance(subject, Variable) and isinstance(other, Variable):
        _plan_every_node(builder, subject, other, place, target)
    elif not isinstance(subject, Variable) and not isinstance(other, Variable):
        if subject == other:
            builder.plan_pattern(a.Bgp((), place), target)
    else:
        variable, constant = (subject, other) if isinstance(subject, Variable) else (other, subject)
        assert isinstance(variable, Variable)
        assert not isinstance(constant, Variable)
        builder.plan_pattern(join_graph_names(a.Values((variable,), ((constant,),)), place), target)


def _plan_every_node(builder: PlanBuilder, subject: Variable, other: Variable, place: a.Place, target: Target) -> None:
    here = builder.column(builder.add_variable("node"))
    bound = (here,) if place.graph is None else (here, builder.column(place.graph))
    pairs = [(here, builder.column(subject)), (here, builder.column(other)), *((column, column) for column in bound[1:])]
    twice = builder.add_move(target, pairs, once=True), c.LEFT
    for columns in ((here, c.NONE, c.NONE), (c.NONE, c.NONE, here)):
        add_scans(builder, place, parts_of(ANY_TRIPLE), columns, twice)
    known = builder.names.facts(ANY_TRIPLE, place)
    note_read(builder, ANY_TRIPLE, known, COPIED)
    nodes = distinct(np.concatenate([known[:, [0, 3]], known[:, [2, 3]]]))
    builder.fragment.facts.append(Fact(*twice, True, bound, nodes[:, : len(bound)]))
