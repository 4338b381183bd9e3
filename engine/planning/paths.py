"""Plans of property paths (SPARQL 1.1, 18.4): walks of at least one step, and the pairs that a path of no length gives.

Inside a path a step of no length costs no time; only where the whole path has none do its ends say where the pair stands.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, assert_never

from engine.kernel import columns as c
from engine.planning import triples
from engine.program import Fact
from engine.rewrite.places import in_each_graph
from engine.scope import ANY_TRIPLE
from epsparql import algebra as a
from epsparql.terms import TermOrVariable, Variable

if TYPE_CHECKING:
    from engine.planning.planner import Planner, Target

Pairs = list[tuple[int, int]]


def path(planner: "Planner", pattern: a.Path, target: "Target", span: int, wanted: Sequence[a.Expression]) -> None:
    """The pairs of a path, as a set, to `target`."""
    target = planner.after(target, c.FOREVER, wanted)
    subject, other = pattern.subject, pattern.object
    ends = [planner.column(v) for v in dict.fromkeys((subject, other, pattern.place.graph)) if isinstance(v, Variable)]
    target = planner.move(target, [(k, k) for k in ends], once=True), c.LEFT  # only the ends tell pairs apart
    if _may_be_empty(pattern.path):
        _empty(planner, subject, other, pattern.place, target)
    if subject == other and isinstance(subject, Variable):
        other = planner.fresh("end")
        target = (
            planner.move(target, [(planner.column(subject),) * 2, (planner.column(other), planner.column(subject)), *_graph(planner, pattern.place)]),
            c.LEFT,
        )
    _walks(planner, pattern.path, subject, other, pattern.place, target, span)


def _may_be_empty(path: a.PropertyPath) -> bool:
    match path:
        case a.Link() | a.Negated():
            return False
        case a.Inverse(inner) | a.OneOrMore(inner):
            return _may_be_empty(inner)
        case a.ZeroOrOne() | a.ZeroOrMore():
            return True
        case a.Sequence(left, right):
            return _may_be_empty(left) and _may_be_empty(right)
        case a.Alternative(left, right):
            return _may_be_empty(left) or _may_be_empty(right)
        case _:
            assert_never(path)


def keeps_steps(path: a.PropertyPath) -> bool:
    """Whether walks of it wait for further steps."""
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
    """Where a MOVE takes an end of a path: its column, or the constant that it must be."""
    return planner.column(end) if isinstance(end, Variable) else -planner.names.term(str(end))


def _kept(planner: "Planner", *ends: TermOrVariable) -> Pairs:
    return [(planner.column(v),) * 2 for v in ends if isinstance(v, Variable)]


# ---------------------------------------------------------------- walks
def _walks(planner: "Planner", path: a.PropertyPath, start: TermOrVariable, end: TermOrVariable, place: a.Place, target: "Target", span: int) -> None:
    """Walks of one step or more from `start` to `end`, two different nodes of the plan."""
    match path:
        case a.Link(predicate):
            planner.pattern(a.Bgp((a.TriplePattern(start, predicate, end),), place), target, span)
        case a.Inverse(inner):
            _walks(planner, inner, end, start, place, target, span)
        case a.Sequence():
            _sequence(planner, path, start, end, place, target, span)
        case a.Alternative(left, right):
            _walks(planner, left, start, end, place, target, span)
            _walks(planner, right, start, end, place, target, span)
        case a.ZeroOrOne(inner):
            _walks(planner, inner, start, end, place, target, span)
        case a.ZeroOrMore(inner) | a.OneOrMore(inner):
            _closure(planner, inner, start, end, place, target, span)
        case a.Negated():
            _negated(planner, path, start, end, place, target)
        case _:
            assert_never(path)


def _sequence(planner: "Planner", path: a.Sequence, start: TermOrVariable, end: TermOrVariable, place: a.Place, target: "Target", span: int) -> None:
    """Walks of both parts that meet; and those of one part, where the other may be empty."""
    middle = planner.fresh("step")
    graph = _graph(planner, place)
    join = planner.node(
        c.JOIN, target, RELATION=c.ANY, SPAN=span, TIMELESS=1, LIFE_LEFT=span, LIFE_RIGHT=span, **_on(planner, [middle], graph)
    )  # fmt: skip
    left: list[Target] = [(join, c.LEFT)]
    right: list[Target] = [(join, c.RIGHT)]
    here = planner.column(middle)
    if _may_be_empty(path.right):
        left.append((planner.move(target, [*_kept(planner, start), (here, _goal(planner, end)), *graph]), c.LEFT))
    if _may_be_empty(path.left):
        right.append((planner.move(target, [*_kept(planner, end), (here, _goal(planner, start)), *graph]), c.LEFT))
    _walks(planner, path.left, start, middle, place, _to_all(planner, left), span)
    _walks(planner, path.right, middle, end, place, _to_all(planner, right), span)


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
    """`!(...)`: a triple, read forwards or backwards, whose predicate is none of those named."""
    for excluded, (s, o) in ((path.forward, (start, end)), (path.backward, (end, start))):
        if excluded is None:
            continue
        predicate = planner.fresh("predicate")
        wanted = [a.Not(a.In(a.Var(predicate), tuple(map(a.Constant, excluded))))] if excluded else []
        planner.pattern(a.Bgp((a.TriplePattern(s, predicate, o),), place), target, c.FOREVER, wanted)


def _closure(
    planner: "Planner", inner: a.PropertyPath, start: TermOrVariable, end: TermOrVariable, place: a.Place, target: "Target", span: int
) -> None:
    """Steps joined to what has been reached, as a set. It starts from a constant end where there is one, so that only what that reaches is kept."""
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
    _walks(planner, inner, reached, following, place, (step, c.LEFT), span)


# ---------------------------------------------------------------- the path of no length
def _empty(planner: "Planner", subject: TermOrVariable, other: TermOrVariable, place: a.Place, target: "Target") -> None:
    """Each node with itself: a constant end timelessly, else on the interval of each occurrence that it stands in."""
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
        triples.read(planner, place, triples.parts_of(ANY_TRIPLE), columns, twice)
    nodes = {(term, fact[3]) for fact in planner.names.facts(ANY_TRIPLE, place) for term in (fact[0], fact[2])}
    for term, name in sorted(nodes, key=str):
        cells = {here: planner.names.term(str(term))}
        if place.graph is not None:
            cells[planner.column(place.graph)] = planner.names.term(str(name))
        planner.fragment.facts.append(Fact(*twice, True, cells))
