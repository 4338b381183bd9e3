"""This module plans what a path over the background reaches from the solutions that it is joined with, step by step
through tables.

So no walk is kept.

Walks with a triple of the stream in them need those of the background before it too. The path's own loop of nodes
sleeps until the stream has a first triple for it, and reads the background then.
"""

from collections.abc import Iterator
from dataclasses import field
from typing import assert_never

from engine.kernel.state import layout as c
from engine.pattern_scope import Scope
from engine.physical_plan.filter_compiler import add_slots
from engine.physical_plan.plan import WAITING, Node
from engine.planner.builder.plan_builder import PlanBuilder, Target
from engine.planner.builder.scans import add_lookup, add_triples, is_deep
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.terms import TermOrVariable, Variable
from epsparql.trees import walk_nodes


@dataclass(slots=True)
class Sleep:
    """Represents a path whose nodes take in the background when they are woken.

    It is not `deep` where they have the background from the beginning, because it is little.
    """

    deep: bool
    waker: int  # the node at which triples of the stream wake it
    first: int  # the node that passes on the first of them
    tables: list[Target] = field(default_factory=list)  # sides of joins that give all triples of a link to the path's nodes


def is_reachable(pattern: a.Pattern, other: Scope) -> bool:
    """Return whether what a pattern matches of the background can be found from the solutions of the other operand."""
    if not isinstance(pattern, a.Path) or pattern.place.graph is not None or pattern.subject == pattern.object:
        return False
    known = [not isinstance(end, Variable) or end in other.certain for end in (pattern.subject, pattern.object)]
    return any(known) and any(_links(pattern)) and not any(isinstance(node, a.Negated) for node in walk_nodes(pattern.path))


def _links(pattern: a.Path) -> Iterator[a.TriplePattern]:
    return (a.TriplePattern(Variable("s"), node.predicate, Variable("o")) for node in walk_nodes(pattern.path) if isinstance(node, a.Link))


def is_path_deep(builder: PlanBuilder, pattern: a.Path) -> bool:
    """Return whether the background has too much for the path to be copied."""
    return any(is_deep(builder, link, pattern.place) for link in _links(pattern))


def plan_reachable(builder: PlanBuilder, pattern: a.Path, other: Scope, target: Target) -> Target:
    """Return where solutions of the other operand enter, to go on to `target` with each end that the path has for them."""
    forward = not isinstance(pattern.subject, Variable) or pattern.subject in other.certain
    if not isinstance(pattern.subject, Variable) and pattern.object in other.certain:
        forward = False  # there may be many solutions that this constant leads to
    start, end = (pattern.subject, pattern.object) if forward else (pattern.object, pattern.subject)
    carried = tuple(builder.fragment.columns.values())
    at, then = builder.add_variable("reached"), builder.add_variable("next")
    reach = _Reach(builder, pattern.place, at, then, carried, 0 if other.timeless else c.NEVER, is_path_deep(builder, pattern))
    leave = builder.add_move(target, [*reach.kept, (builder.column(at), builder.column_or_constant(end))]), c.LEFT
    entry = reach.plan_steps(with_a_step(pattern.path), leave, back=not forward)
    return builder.add_move(entry, [(builder.column_or_constant(start), builder.column(at))], keep=True), c.LEFT


def with_a_step(path: a.PropertyPath) -> a.PropertyPath:
    """Return a path for the walks that have one step or more; for a walk without steps, its ends say where the pair
    stands.
    """
    match path:
        case a.Link() | a.Negated():
            return path
        case a.Inverse(inner):
            return a.Inverse(with_a_step(inner))
        case a.ZeroOrOne(inner):
            return with_a_step(inner)
        case a.ZeroOrMore(inner) | a.OneOrMore(inner):
            return a.OneOrMore(with_a_step(inner))
        case a.Alternative(left, right):
            return a.Alternative(with_a_step(left), with_a_step(right))
        case a.Sequence(left, right):
            return a.Alternative(a.Sequence(with_a_step(left), right), with_a_step(right)) if may_be_empty(left) and may_be_empty(right) else path
        case _:
            assert_never(path)


def may_be_empty(path: a.PropertyPath) -> bool:
    match path:
        case a.Link() | a.Negated():
            return False
        case a.Inverse(inner) | a.OneOrMore(inner):
            return may_be_empty(inner)
        case a.ZeroOrOne() | a.ZeroOrMore():
            return True
        case a.Sequence(left, right):
            return may_be_empty(left) and may_be_empty(right)
        case a.Alternative(left, right):
            return may_be_empty(left) or may_be_empty(right)
        case _:
            assert_never(path)


@dataclass(frozen=True, slots=True)
class _Reach:
    """Plans steps over solutions with what they have reached (`at`) and, between two nodes, with what they reach next
    (`then`).
    """

    builder: PlanBuilder
    place: a.Place
    at: Variable
    then: Variable
    carried: tuple[int, ...]
    life: int  # timeless solutions are kept, since a change of the background leads them on
    deep: bool

    @property
    def kept(self) -> list[tuple[int, int]]:
        return [(column, column) for column in self.carried]

    def plan_steps(self, path: a.PropertyPath, target: Target, *, back: bool) -> Target:
        """Return where solutions enter that go on to `target` with each end of the path from where they are; `back`:
        from its end to its start.
        """
        match path:
            case a.Link(predicate):
                return self._plan_step(predicate, target, back=back)
            case a.Inverse(inner):
                return self.plan_steps(inner, target, back=not back)
            case a.Sequence(left, right):
                first, last = (right, left) if back else (left, right)
                return self.plan_steps(first, self.plan_steps(last, target, back=back), back=back)
            case a.Alternative(left, right):
                return self.builder.add_fork([self.plan_steps(left, target, back=back), self.plan_steps(right, target, back=back)])
            case a.ZeroOrOne(inner):
                return self.builder.add_fork([self.plan_steps(inner, target, back=back), target])
            case a.OneOrMore(inner):
                return self._plan_closure(inner, target, back=back)
            case a.ZeroOrMore(inner):
                return self.builder.add_fork([self._plan_closure(inner, target, back=back), target])
            case a.Negated():
                raise AssertionError("`is_reachable` looks for them")
            case _:
                assert_never(path)

    def _plan_step(self, predicate: TermOrVariable, target: Target, *, back: bool) -> Target:
        builder = self.builder
        at, then = builder.column(self.at), builder.column(self.then)
        onwards = builder.add_move(target, [*self.kept, (then, at)]), c.LEFT
        key = add_slots(builder.fragment, [at])
        join = builder.add_node(Node(c.JOIN, c.ANY, key=key, life_left=self.life, life_right=c.NEVER, timeless=1), onwards)
        start, end = (self.then, self.at) if back else (self.at, self.then)
        add_lookup(builder, join, a.TriplePattern(start, predicate, end), self.place, self.deep)
        return join, c.LEFT

    def _plan_closure(self, inner: a.PropertyPath, target: Target, *, back: bool) -> Target:
        at = self.builder.column(self.at)
        found = self.builder.add_move(None, [*self.kept, (at, at)], once=True)
        entry = self.plan_steps(inner, (found, c.LEFT), back=back)
        self.builder.set_targets(found, [entry, target])
        return entry


# ---------------------------------------------------------------- the path's own nodes
def add_sleep(builder: PlanBuilder, deep: bool) -> Sleep:
    first = builder.add_node(Node(c.FIRST, life_left=c.FOREVER))
    return Sleep(deep, builder.add_move((first, c.LEFT), []), first)


def wake_tables(builder: PlanBuilder, sleep: Sleep) -> None:
    """Give the waker, when all links are planned, what it wakes."""
    builder.set_targets(sleep.first, sleep.tables)


def plan_link(builder: PlanBuilder, triple: a.TriplePattern, place: a.Place, target: Target, sleep: Sleep) -> None:
    """Plan the triples of a link: those of the stream wake the path, and those of the background come when it is woken."""
    table = builder.add_node(Node(c.JOIN, c.ANY, life_left=c.FOREVER, life_right=c.NEVER, timeless=1), target)
    sleep.tables.append((table, c.LEFT))
    add_lookup(builder, table, triple, place, sleep.deep, use=WAITING)
    both, _ = builder.add_fork([target, (sleep.waker, c.LEFT)])
    if not sleep.deep:
        builder.limit_targets(both, 1)
    add_triples(builder, triple, place, (both, c.LEFT), copied=not sleep.deep)
