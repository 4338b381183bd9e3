"""This module plans what a path over the background reaches from the solutions that it is joined with, step by step through tables.

So no walk is kept.

Walks with a triple of the stream in them need those of the background before it too. The path's own loop of nodes takes the background in as soon as
the stream has brought a first triple for it, and sleeps until then.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

from engine.kernel.state import layout as c
from engine.physical_plan.plan import WAITING
from engine.planner.operators import triple_patterns
from engine.scope import Scope
from epsparql import algebra as a
from epsparql.terms import TermOrVariable, Variable

if TYPE_CHECKING:
    from engine.planner.planner import Planner, Target


@dataclass(slots=True)
class Sleep:
    """Represents a path whose nodes take in the background when they are woken.

    It is not `deep` where they have the background from the beginning, because it is little.
    """

    deep: bool
    waker: int  # the node at which triples of the stream wake it
    first: int  # the node that passes on the first of them
    tables: "list[Target]" = field(default_factory=list)  # sides of joins that give all triples of a link to the path's nodes


def leads_on(pattern: a.Pattern, other: Scope) -> bool:
    """Return whether what a pattern matches of the background can be found from the solutions of the other operand."""
    if not isinstance(pattern, a.Path) or pattern.place.graph is not None or pattern.subject == pattern.object:
        return False
    known = [not isinstance(end, Variable) or end in other.certain for end in (pattern.subject, pattern.object)]
    return any(known) and any(_links(pattern)) and not _with_more_than_links(pattern.path)


def _with_more_than_links(path: a.PropertyPath) -> bool:
    match path:
        case a.Link():
            return False
        case a.Negated():
            return True
        case a.Inverse(inner) | a.OneOrMore(inner) | a.ZeroOrOne(inner) | a.ZeroOrMore(inner):
            return _with_more_than_links(inner)
        case a.Sequence(left, right) | a.Alternative(left, right):
            return _with_more_than_links(left) or _with_more_than_links(right)
        case _:
            assert_never(path)


def _links(pattern: a.Path) -> Iterator[a.TriplePattern]:
    pending: list[a.PropertyPath] = [pattern.path]
    while pending:
        match pending.pop():
            case a.Link(predicate):
                yield a.TriplePattern(Variable("s"), predicate, Variable("o"))
            case a.Inverse(inner) | a.OneOrMore(inner) | a.ZeroOrOne(inner) | a.ZeroOrMore(inner):
                pending.append(inner)
            case a.Sequence(left, right) | a.Alternative(left, right):
                pending += (left, right)
            case a.Negated():
                pass


def is_deep(planner: "Planner", pattern: a.Path) -> bool:
    """Return whether the background has too much for the path to be copied."""
    return any(len(planner.names.facts(link, pattern.place)) > triple_patterns.FEW for link in _links(pattern))


def followed(planner: "Planner", pattern: a.Path, other: Scope, target: "Target") -> "Target":
    """Return where solutions of the other operand enter, to go on to `target` with each end that the path has for them."""
    forward = not isinstance(pattern.subject, Variable) or pattern.subject in other.certain
    if not isinstance(pattern.subject, Variable) and pattern.object in other.certain:
        forward = False  # there may be many solutions that this constant leads to
    start, end = (pattern.subject, pattern.object) if forward else (pattern.object, pattern.subject)
    carried = tuple(planner.fragment.columns.values())
    at, then = planner.fresh("reached"), planner.fresh("next")
    reach = _Reach(planner, pattern.place, at, then, carried, 0 if other.timeless else c.NEVER, is_deep(planner, pattern))
    leave = planner.move(target, [*reach.kept, (planner.column(at), _must_be(planner, end))]), c.LEFT
    entry = reach.way(with_a_step(pattern.path), leave, back=not forward)
    return planner.move(entry, [(_must_be(planner, start), planner.column(at))], keep=True), c.LEFT


def with_a_step(path: a.PropertyPath) -> a.PropertyPath:
    """Return a path for the walks that have one step or more; for a walk without steps, its ends say where the pair stands."""
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


def _must_be(planner: "Planner", end: TermOrVariable) -> int:
    return planner.column(end) if isinstance(end, Variable) else -planner.names.term(str(end))


@dataclass(frozen=True, slots=True)
class _Reach:
    """Plans steps over solutions with what they have reached (`at`) and, between two nodes, with what they reach next (`then`)."""

    planner: "Planner"
    place: a.Place
    at: Variable
    then: Variable
    carried: tuple[int, ...]
    life: int  # timeless solutions are kept, since a change of the background leads them on
    deep: bool

    @property
    def kept(self) -> list[tuple[int, int]]:
        return [(column, column) for column in self.carried]

    def way(self, path: a.PropertyPath, target: "Target", *, back: bool) -> "Target":
        """Return where solutions enter that go on to `target` with each end of the path from where they are; `back`: from its end to its start."""
        match path:
            case a.Link(predicate):
                return self._step(predicate, target, back=back)
            case a.Inverse(inner):
                return self.way(inner, target, back=not back)
            case a.Sequence(left, right):
                first, last = (right, left) if back else (left, right)
                return self.way(first, self.way(last, target, back=back), back=back)
            case a.Alternative(left, right):
                return self._both(self.way(left, target, back=back), self.way(right, target, back=back))
            case a.ZeroOrOne(inner):
                return self._both(self.way(inner, target, back=back), target)
            case a.OneOrMore(inner):
                return self._closure(inner, target, back=back)
            case a.ZeroOrMore(inner):
                return self._both(self._closure(inner, target, back=back), target)
            case a.Negated():
                raise AssertionError("`leads_on` looks for them")
            case _:
                assert_never(path)

    def _step(self, predicate: TermOrVariable, target: "Target", *, back: bool) -> "Target":
        planner = self.planner
        at, then = planner.column(self.at), planner.column(self.then)
        onwards = planner.move(target, [*self.kept, (then, at)]), c.LEFT
        key, n = len(planner.fragment.slots), 1
        planner.fragment.slots.append(at)
        join = planner.node(c.JOIN, onwards, RELATION=c.ANY, TIMELESS=1, LIFE_LEFT=self.life, LIFE_RIGHT=c.NEVER, KEY_AT=key, KEY_N=n)
        start, end = (self.then, self.at) if back else (self.at, self.then)
        triple_patterns.look_up(planner, join, c.NONE, a.TriplePattern(start, predicate, end), self.place, self.deep)
        return join, c.LEFT

    def _both(self, one: "Target", other: "Target") -> "Target":
        node = self.planner.node(c.PASS, None)
        self.planner.targets(node, [one, other])
        return node, c.LEFT

    def _closure(self, inner: a.PropertyPath, target: "Target", *, back: bool) -> "Target":
        at = self.planner.column(self.at)
        found = self.planner.move(None, [*self.kept, (at, at)], once=True)
        entry = self.way(inner, (found, c.LEFT), back=back)
        self.planner.targets(found, [entry, target])
        return entry


# ---------------------------------------------------------------- the path's own nodes
def asleep(planner: "Planner", deep: bool) -> Sleep:
    first = planner.node(c.FIRST, None, LIFE_LEFT=c.FOREVER)
    return Sleep(deep, planner.move((first, c.LEFT), []), first)


def woken(planner: "Planner", sleep: Sleep) -> None:
    """Give the waker, when all links are planned, what it wakes."""
    planner.targets(sleep.first, sleep.tables)


def link(planner: "Planner", triple: a.TriplePattern, place: a.Place, target: "Target", sleep: Sleep) -> None:
    """Plan the triples of a link: those of the stream wake the path, and those of the background come when it is woken."""
    table = planner.node(c.JOIN, target, RELATION=c.ANY, TIMELESS=1, LIFE_LEFT=c.FOREVER, LIFE_RIGHT=c.NEVER)
    sleep.tables.append((table, c.LEFT))
    triple_patterns.look_up(planner, table, c.NONE, triple, place, sleep.deep, WAITING)
    both = planner.node(c.PASS, None)
    planner.targets(both, [target, (sleep.waker, c.LEFT)])
    if not sleep.deep:
        planner.assign(both, EDGE_N=1)
    triple_patterns.scan(planner, triple, place, (both, c.LEFT), copied=not sleep.deep)
