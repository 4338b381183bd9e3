"""This module plans property paths (SPARQL 1.1, 18.4): walks of at least one step, and the pairs that a path of no length gives.

Inside a path a step of no length costs no time; only where the whole path has none do its ends say where the pair stands.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, assert_never

import numpy as np

from engine.kernel.state import layout as c
from engine.physical_plan.plan import COPIED, Fact, Unit
from engine.planner.operators import path_reachability, triple_patterns
from engine.planner.operators.path_reachability import may_be_empty
from engine.rewrite.resolve_datasets import in_each_graph
from engine.scope import ANY_TRIPLE
from engine.triples.relation import distinct
from epsparql import algebra as a
from epsparql.terms import TermOrVariable, Variable

if TYPE_CHECKING:
    from engine.planner.planner import Planner, Target

Pairs = list[tuple[int, int]]
Leaves = list[tuple[tuple[int, int], tuple[int, int]]]
"""Each leaf is a store of what came of the stream alone, with the place where its solutions go in again (`Unit`)."""


def path(planner: "Planner", pattern: a.Path, target: "Target", span: int, wanted: Sequence[a.Expression]) -> None:
    """Plan the pairs of a path, as a set, to `target`."""
    target = planner.after(target, c.FOREVER, wanted)
    subject, other = pattern.subject, pattern.object
    ends = [planner.column(v) for v in dict.fromkeys((subject, other, pattern.place.graph)) if isinstance(v, Variable)]
    root = planner.move(target, [(k, k) for k in ends], once=True)  # only the ends tell pairs apart
    target = root, c.LEFT
    if may_be_empty(pattern.path):
        _empty(planner, subject, other, pattern.place, target)
    if subject == other and isinstance(subject, Variable):
        other = planner.fresh("end")
        target = (
            planner.move(target, [(planner.column(subject),) * 2, (planner.column(other), planner.column(subject)), *_graph(planner, pattern.place)]),
            c.LEFT,
        )
    leaves: Leaves = []
    _walks(planner, pattern.path, subject, other, pattern.place, target, span, leaves, loose=False)
    if planner.sleeping is not None:
        path_reachability.woken(planner, planner.sleeping)
        planner.sleeping = None
    if leaves:
        nodes, kept = range(root, len(planner.fragment.nodes)), {store for store, _ in leaves}
        stores = [(node, side) for node in nodes if planner.fragment.nodes[node][c.KIND] == c.JOIN for side in (c.LEFT, c.RIGHT)]
        planner.fragment.units.append(Unit(root, nodes, tuple(leaves), tuple(store for store in stores if store not in kept)))


def keeps_steps(path: a.PropertyPath) -> bool:
    """Return whether walks of a path wait for further steps."""
    match path:
        case a.Link() | a.Negated():
            return False
        case a.Inverse(inner) | a.ZeroOrOne(inner):
            return keeps_steps(inner)
        case a.Alternative(left, right):
            return keeps_steps(left) or keeps_steps(right)
        case a.Sequence() | a.ZeroOrMore() | a.OneOrMore():
            return True
        case _:
            assert_never(path)


def _graph(planner: "Planner", place: a.Place) -> Pairs:
    return [] if place.graph is None else [(planner.column(place.graph),) * 2]


def _goal(planner: "Planner", end: TermOrVariable) -> int:
    """Return where a MOVE takes an end of a path: its column, or the constant that it must be."""
    return planner.column(end) if isinstance(end, Variable) else -planner.names.term(str(end))


def _kept(planner: "Planner", *ends: TermOrVariable) -> Pairs:
    return [(planner.column(v),) * 2 for v in ends if isinstance(v, Variable)]


# ---------------------------------------------------------------- walks
def _walks(
    planner: "Planner",
    path: a.PropertyPath,
    start: TermOrVariable,
    end: TermOrVariable,
    place: a.Place,
    target: "Target",
    span: int,
    leaves: Leaves,
    *,
    loose: bool,
) -> None:
    """Plan walks of one step or more from `start` to `end`, two different nodes of the plan.

    `loose`: they go where longer walks are kept too, so that its triples need a store of their own among the `leaves`.
    """
    match path:
        case a.Link(predicate):
            target = _remembered(planner, target, span, leaves) if loose else target
            triple = a.TriplePattern(start, predicate, end)
            if planner.sleeping is not None:
                path_reachability.link(planner, triple, place, target, planner.sleeping)
            else:
                planner.pattern(a.Bgp((triple,), place), target, span)
        case a.Inverse(inner):
            _walks(planner, inner, end, start, place, target, span, leaves, loose=loose)
        case a.Sequence():
            _sequence(planner, path, start, end, place, target, span, leaves)
        case a.Alternative(left, right):
            _walks(planner, left, start, end, place, target, span, leaves, loose=loose)
            _walks(planner, right, start, end, place, target, span, leaves, loose=loose)
        case a.ZeroOrOne(inner):
            _walks(planner, inner, start, end, place, target, span, leaves, loose=loose)
        case a.ZeroOrMore(inner) | a.OneOrMore(inner):
            _closure(planner, inner, start, end, place, target, span, leaves)
        case a.Negated():
            target = _remembered(planner, target, span, leaves) if loose else target
            _negated(planner, path, start, end, place, target)
        case _:
            assert_never(path)


def _remembered(planner: "Planner", target: "Target", span: int, leaves: Leaves) -> "Target":
    """Plan, before `target`, a join of nothing that keeps what comes of the stream."""
    store = planner.node(c.JOIN, None, RELATION=c.ANY, SPAN=span, LIFE_LEFT=span, LIFE_RIGHT=c.NEVER)
    timed = planner.node(c.PASS, (store, c.LEFT), FILTER=c.TIMED_ONLY)
    leaves.append(((store, c.LEFT), target))
    return _to_all(planner, [target, (timed, c.LEFT)])


def _kept_apart(path: a.PropertyPath, store: tuple[int, int], entry: "Target", leaves: Leaves) -> bool:
    """Note a store if only triples reach it; return whether it is one."""
    if not keeps_steps(path):
        leaves.append((store, entry))
    return not keeps_steps(path)


def _sequence(
    planner: "Planner",
    path: a.Sequence,
    start: TermOrVariable,
    end: TermOrVariable,
    place: a.Place,
    target: "Target",
    span: int,
    leaves: Leaves,
) -> None:
    """Plan walks of both parts that meet, and those of one part where the other may be empty."""
    middle = planner.fresh("step")
    graph = _graph(planner, place)
    join = planner.node(
        c.JOIN, target, RELATION=c.ANY, SPAN=span, TIMELESS=1, LIFE_LEFT=span, LIFE_RIGHT=span, **_on(planner, [middle], graph)
    )  # fmt: skip
    left: list[Target] = [(join, c.LEFT)]
    right: list[Target] = [(join, c.RIGHT)]
    here = planner.column(middle)
    if may_be_empty(path.right):
        left.append((planner.move(target, [*_kept(planner, start), (here, _goal(planner, end)), *graph]), c.LEFT))
    if may_be_empty(path.left):
        right.append((planner.move(target, [*_kept(planner, end), (here, _goal(planner, start)), *graph]), c.LEFT))
    before, after = _to_all(planner, left), _to_all(planner, right)
    apart = _kept_apart(path.left, (join, c.LEFT), before, leaves)
    _walks(planner, path.left, start, middle, place, before, span, leaves, loose=not apart)
    apart = _kept_apart(path.right, (join, c.RIGHT), after, leaves)
    _walks(planner, path.right, middle, end, place, after, span, leaves, loose=not apart)


def _to_all(planner: "Planner", targets: "list[Target]") -> "Target":
    if len(targets) == 1:
        return targets[0]
    node = planner.node(c.PASS, None)
    planner.targets(node, targets)
    return node, c.LEFT


def _on(planner: "Planner", variables: Sequence[Variable], graph: Pairs) -> dict[str, int]:
    at = len(planner.fragment.slots)
    planner.fragment.slots += [*(planner.column(v) for v in variables), *(column for column, _ in graph)]
    return {"KEY_AT": at, "KEY_N": len(variables) + len(graph)}


def _negated(planner: "Planner", path: a.Negated, start: TermOrVariable, end: TermOrVariable, place: a.Place, target: "Target") -> None:
    """Plan `!(...)`: a triple, read forwards or backwards, whose predicate is none of those named."""
    for excluded, (s, o) in ((path.forward, (start, end)), (path.backward, (end, start))):
        if excluded is None:
            continue
        predicate = planner.fresh("predicate")
        wanted = [a.Not(a.In(a.Var(predicate), tuple(map(a.Constant, excluded))))] if excluded else []
        planner.pattern(a.Bgp((a.TriplePattern(s, predicate, o),), place), target, c.FOREVER, wanted)


def _closure(
    planner: "Planner",
    inner: a.PropertyPath,
    start: TermOrVariable,
    end: TermOrVariable,
    place: a.Place,
    target: "Target",
    span: int,
    leaves: Leaves,
) -> None:
    """Plan steps joined to what has been reached, as a set.

    They start from a constant end where there is one, so that only what that reaches is kept.
    """
    if isinstance(start, Variable) and not isinstance(end, Variable):
        start, end, inner = end, start, a.Inverse(inner)
    origin, reached, following = (planner.fresh(what) for what in ("origin", "reached", "next"))
    graph = _graph(planner, place)
    last = [*(_kept(planner, origin) if isinstance(start, Variable) else []), *graph]
    at, then = planner.column(reached), planner.column(following)
    found = planner.move(None, [(at, at), *last], once=True)
    join = planner.node(c.JOIN, None, RELATION=c.ANY, SPAN=span, TIMELESS=1, LIFE_LEFT=span, LIFE_RIGHT=span, **_on(planner, [reached], graph))
    planner.targets(join, [(planner.move((found, c.LEFT), [(then, at), *last]), c.LEFT)])
    base = planner.move((found, c.LEFT), [(at, _goal(planner, origin if isinstance(start, Variable) else start)), (then, at), *graph])
    step = planner.move(None, [(at, at), (then, then), *graph], once=True)
    planner.targets(step, [(join, c.RIGHT), (base, c.LEFT)])
    first = [(planner.column(origin), _goal(planner, start))] if isinstance(start, Variable) else []
    planner.targets(found, [(join, c.LEFT), (planner.move(target, [*first, (at, _goal(planner, end)), *graph]), c.LEFT)])
    apart = _kept_apart(inner, (join, c.RIGHT), (step, c.LEFT), leaves)
    _walks(planner, inner, reached, following, place, (step, c.LEFT), span, leaves, loose=not apart)


# ---------------------------------------------------------------- the path of no length
def _empty(planner: "Planner", subject: TermOrVariable, other: TermOrVariable, place: a.Place, target: "Target") -> None:
    """Plan each node with itself: a constant end timelessly, else on the interval of each occurrence that it stands in."""
    if isinstance(subject, Variable) and isinstance(other, Variable):
        _empty_everywhere(planner, subject, other, place, target)
    elif not isinstance(subject, Variable) and not isinstance(other, Variable):
        if subject == other:
            planner.pattern(a.Bgp((), place), target)
    else:
        variable, constant = (subject, other) if isinstance(subject, Variable) else (other, subject)
        assert isinstance(variable, Variable)
        assert not isinstance(constant, Variable)
        planner.pattern(in_each_graph(a.Values((variable,), ((constant,),)), place), target)


def _empty_everywhere(planner: "Planner", subject: Variable, other: Variable, place: a.Place, target: "Target") -> None:
    here = planner.column(planner.fresh("node"))
    twice = planner.move(target, [(here, planner.column(subject)), (here, planner.column(other)), *_graph(planner, place)], once=True), c.LEFT
    for columns in ((here, c.NONE, c.NONE), (c.NONE, c.NONE, here)):
        triple_patterns.read(planner, place, triple_patterns.parts_of(ANY_TRIPLE), columns, twice)
    known = planner.names.facts(ANY_TRIPLE, place)
    triple_patterns.reads(planner, ANY_TRIPLE, known, COPIED)
    nodes = distinct(np.concatenate([known[:, [0, 3]], known[:, [2, 3]]]))
    bound = (here,) if place.graph is None else (here, planner.column(place.graph))
    planner.fragment.facts.append(Fact(*twice, True, bound, nodes[:, : len(bound)]))
