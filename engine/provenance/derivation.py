"""This module derives a pattern's solutions: every operator is the sentence of its definition (semantics.md section
3), with what it rests on.

What is known of the solution goes down into the pattern. So nearly every triple pattern is ground where it is looked
up, and little is gone through.
"""

from collections.abc import Callable, Iterator
from math import ceil
from typing import Any, assert_never

from engine.expressions.background_functions import BACKGROUND_FUNCTIONS
from engine.expressions.evaluator import ExpressionError, evaluate, truth
from engine.expressions.literals import FALSE, TRUE, value_of
from engine.expressions.nondeterministic import NAMELESS, Identity
from engine.expressions.values import DateTime
from engine.messages import Micros
from engine.provenance.aggregates import reports
from engine.provenance.model import Absence, Bindings, Edge, Occurrence, Proof, TimeBounds, World
from engine.provenance.path_proofs import PathProof, Ways
from engine.rewrite.rename_hidden import is_seen
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.terms import Term, TermOrVariable, Variable
from epsparql.trees import map_fields, replace_fields, walk_nodes

NOTHING: Bindings = {}
Related = Callable[[Proof, Proof], bool]


@dataclass(frozen=True, slots=True)
class Derivation:
    """Derives solutions in a world.

    `t0` is where a timeless solution stands; `report` is the instant at which groups are reported.
    """

    world: World
    t0: Micros
    report: Micros

    def proofs(self, pattern: a.Pattern, wanted: Bindings, span: TimeBounds) -> Iterator[Proof]:
        """Yield derivations of the pattern's solutions that agree with `wanted`, from what the span holds."""
        self.world.budget.spend()
        match pattern:
            case a.Bgp(triples, place):
                yield from self._derive_triples(triples, place, Proof(NOTHING), wanted, span)
            case a.Path():
                yield from self._derive_path(pattern, wanted, span)
            case a.Values() | a.Alarm() | a.Instant():
                yield from self._derive_given(pattern, wanted, span)
            case a.Join(left, right):
                yield from self._joins(left, right, wanted, span, lambda x, y: True)
            case a.Union(left, right):
                yield from self.proofs(left, wanted, span)
                yield from self.proofs(right, wanted, span)
            case a.Filter(condition, inner):
                yield from filter(None, (self._filtered(condition, x) for x in self.proofs(inner, wanted, span)))
            case a.Extend():
                yield from self._extended(pattern, wanted, span)
            case a.SeqJoin(left, right):
                yield from self._joins(left, right, wanted, span, _before)
            case a.EqJoin(left, right):
                yield from self._joins(left, right, wanted, span, _same_interval)
            case a.RelationJoin(relation, left, right):
                yield from self._joins(left, right, wanted, span, lambda x, y: _related(relation, x, y))
            case a.LeftJoin(left, right, condition):
                yield from self._optional(left, right, condition, wanted, span, "OPTIONAL", self._counts)
            case a.EqLeftJoin(left, right, condition):
                yield from self._optional(left, right, condition, wanted, span, "EQUALSOPTIONAL", self._counts_together)
            case a.SeqRightJoin(left, right, condition):
                yield from self._optional(right, left, condition, wanted, span, "OPTIONALSEQ", lambda x, y: self._counts(x, y) and _before(x, y))
            case a.Minus():
                yield from self._minus(pattern, wanted, span)
            case a.SeqWithout() | a.JoinWithout():
                yield from self._without(pattern, wanted, span)
            case a.WithoutFor():
                yield from self._without_for(pattern, wanted, span)
            case a.Within(inner, limit):
                yield from (x for x in self.proofs(inner, wanted, span) if x.start is None or x.end is None or x.end - x.start <= limit)
            case a.Graph(name, inner, place):
                yield from self._derive_graph(name, inner, place, wanted, span)
            case a.InWindow(_, inner):
                yield from self.proofs(inner, wanted, span)
            case a.Group():
                yield from self._derive_group(pattern, wanted)
            case a.SubSelect():
                yield from self._sub_select(pattern, wanted, span)
            case _:
                assert_never(pattern)

    def _derive_given(self, pattern: a.Values | a.Alarm | a.Instant, wanted: Bindings, span: TimeBounds) -> Iterator[Proof]:
        match pattern:
            case a.Values():
                yield from _match_rows(pattern, wanted)
            case a.Instant(at):
                yield Proof(NOTHING, at, at)
            case a.Alarm(inner, variable):
                yield from filter(None, (_at_alarm(x, variable) for x in self.proofs(inner, wanted, span)))

    # ------------------------------------------------------------ triples
    def _derive_triples(self, triples: tuple[a.TriplePattern, ...], place: a.Place, x: Proof, wanted: Bindings, span: TimeBounds) -> Iterator[Proof]:
        if not triples:
            yield x
            return
        known = {**wanted, **x.bindings}
        chosen = min(triples, key=lambda t: sum(isinstance(_under(part, known), Variable) for part in (t.subject, t.predicate, t.object)))
        rest = tuple(t for t in triples if t is not chosen)
        s, p, o = (_under(part, known) for part in (chosen.subject, chosen.predicate, chosen.object))
        for edge in self.world.edges(s, p, o, place, span):
            bound = _matched((chosen.subject, chosen.predicate, chosen.object), edge, place)
            if bound is not None and _agree(bound, known):
                y = _proof(
                    edge, bound, self.world.used(f"{_show_part(chosen.subject)} {_show_part(chosen.predicate)} {_show_part(chosen.object)}", edge)
                )
                yield from self._derive_triples(rest, place, _joined(x, y), wanted, span)

    def _derive_path(self, path: a.Path, wanted: Bindings, span: TimeBounds) -> Iterator[Proof]:
        ways = Ways(self.world, path.place, span)
        s, o = _under(path.subject, wanted), _under(path.object, wanted)
        if not isinstance(s, Variable):
            found: Iterator[tuple[Term, PathProof]] = ((s, way) for way in ways.along(path.path, s))
        elif not isinstance(o, Variable):
            found = ((way.node, replace_fields(way, node=o)) for way in ways.along(path.path, o, back=True))
        else:
            found = ((node, way) for node in list(self.world.nodes) for way in ways.along(path.path, node))
        for begin, way in found:
            bound = _bound(((path.subject, begin), (path.object, way.node)), path.place.graph, _graph_of(way))
            if bound is not None and _agree(bound, wanted):
                yield from self._placed(path, Proof(bound, way.start, way.end, way.steps), begin, span)

    def _placed(self, path: a.Path, x: Proof, node: Term, span: TimeBounds) -> Iterator[Proof]:
        """Yield a way with its place: a way of no length between two variables stands where its node does."""
        if x.steps or not isinstance(path.subject, Variable) or not isinstance(path.object, Variable):
            yield x
            return
        for edge in self.world.nodes.get(node, ()):
            if self.world.visible(edge, path.place, span):
                yield _joined(x, _proof(edge, NOTHING, self.world.used(_show_part(path.subject), edge)))

    # ------------------------------------------------------------ joins
    def _joins(self, left: a.Pattern, right: a.Pattern, wanted: Bindings, span: TimeBounds, relation: Related) -> Iterator[Proof]:
        for x in self.proofs(left, wanted, span):
            for y in self.proofs(right, {**wanted, **x.bindings}, span):
                if relation(x, y):
                    yield _joined(x, y)

    def _optional(
        self,
        kept: a.Pattern,
        optional: a.Pattern,
        condition: a.Expression | None,
        wanted: Bindings,
        span: TimeBounds,
        operator: str,
        partners: Related,
    ) -> Iterator[Proof]:
        for x in self.proofs(kept, wanted, span):
            found = False
            for y in self.proofs(optional, x.bindings, self._past(x)):
                both = _joined(x, y)
                if partners(y, x) and (condition is None or self._holds(condition, both)):
                    found = True
                    if _agree(both.bindings, wanted):
                        yield both
            if not found:
                yield self._derive_without(x, operator, optional)

    def _minus(self, pattern: a.Minus, wanted: Bindings, span: TimeBounds) -> Iterator[Proof]:
        for x in self.proofs(pattern.left, wanted, span):
            if not any(_share(x, y) and self._counts(y, x) for y in self.proofs(pattern.right, x.bindings, self._past(x))):
                yield self._derive_without(x, "MINUS", pattern.right)

    def _without(self, pattern: a.SeqWithout | a.JoinWithout, wanted: Bindings, span: TimeBounds) -> Iterator[Proof]:
        ordered = isinstance(pattern, a.SeqWithout)
        for x in self.proofs(pattern.left, wanted, span):
            for y in self.proofs(pattern.right, {**wanted, **x.bindings}, span):
                both = _joined(x, y)
                if (ordered and not _before(x, y)) or (
                    pattern.within is not None and both.start is not None and both.end is not None and both.end - both.start > pattern.within
                ):
                    continue
                blocks = _is_after if ordered else _is_between
                absent = self.proofs(pattern.absent, both.bindings, self._past(both))
                if not any(blocks(x, z, y) and self._counts(z, both) for z in absent):
                    yield self._derive_without(both, "WITHOUT", pattern.absent)

    def _without_for(self, pattern: a.WithoutFor, wanted: Bindings, span: TimeBounds) -> Iterator[Proof]:
        for x in self.proofs(pattern.pattern, wanted, span):
            start, end = (self.t0, self.t0) if x.start is None or x.end is None else (x.start, x.end)
            stands, due = replace_fields(x, start=start, end=end), end + pattern.duration
            if not any(_before(stands, z) and (z.end is None or z.end <= due) for z in self.proofs(pattern.absent, x.bindings, TimeBounds(hi=due))):
                yield self._derive_without(replace_fields(stands, end=due), "WITHOUT ... FOR", pattern.absent)

    def _derive_graph(self, name: TermOrVariable, inner: a.Pattern, place: a.Place, wanted: Bindings, span: TimeBounds) -> Iterator[Proof]:
        graph = _under(name, wanted)
        below = wanted if place.graph is None or isinstance(graph, Variable) else {**wanted, place.graph: graph}
        for x in self.proofs(inner, below, span):
            found = None if place.graph is None else x.bindings.get(place.graph)
            if isinstance(name, Variable) and found is not None:
                if _agree({name: found}, {**wanted, **x.bindings}):
                    yield replace_fields(x, bindings={**x.bindings, name: found})
            else:
                yield x

    def _sub_select(self, pattern: a.SubSelect, wanted: Bindings, span: TimeBounds) -> Iterator[Proof]:
        shown = {v: term for v, term in wanted.items() if v in pattern.projection}
        for x in self.proofs(pattern.pattern, shown, span):
            yield replace_fields(x, bindings={v: term for v, term in x.bindings.items() if v in pattern.projection})

    def _derive_group(self, group: a.Group, wanted: Bindings) -> Iterator[Proof]:
        keys = {key: wanted[key] for key in group.keys if key in wanted}
        found = self.proofs(group.pattern, keys, TimeBounds(hi=self.report))
        until = group.window.until if isinstance(group.window, a.RunWindow) else None

        def list_absent(key: Bindings) -> list[Proof]:
            return [] if until is None else [z for z in self.proofs(until, key, TimeBounds(hi=self.report)) if _agree(z.bindings, key)]

        for x in reports(group, found, self._evaluate_for, self.t0, self.report, list_absent):
            if _agree(x.bindings, wanted):
                yield x if until is None else self._derive_without(x, "UNTIL", until)

    # ------------------------------------------------------------ expressions
    def _extended(self, pattern: a.Extend, wanted: Bindings, span: TimeBounds) -> Iterator[Proof]:
        below = {v: term for v, term in wanted.items() if v != pattern.variable}
        for x in self.proofs(pattern.pattern, below, span):
            value = self._evaluate_for(pattern.expression, x)
            bound = x.bindings if value is None else {**x.bindings, pattern.variable: value}
            if _agree(bound, wanted):
                yield replace_fields(x, bindings=bound)

    def _filtered(self, condition: a.Expression, x: Proof) -> Proof | None:
        """Return the solution, with what is absent for the condition to hold; None where it does not hold."""
        if not self._holds(condition, x):
            return None
        for node in walk_nodes(condition):
            if isinstance(node, a.Exists):
                proof = self._existing(node, x)
                x = self._derive_without(x, "NOT EXISTS", node.pattern) if proof is None else replace_fields(x, steps=(*x.steps, *proof.steps))
        return x

    def _existing(self, node: a.Exists, x: Proof) -> Proof | None:
        return next((z for z in self.proofs(node.pattern, x.bindings, self._past(x)) if self._counts(z, x)), None)

    def _decided(self, expression: a.Expression, x: Proof) -> a.Expression:
        """Return the expression with its EXISTS decided."""
        decided: a.Expression = _rebuilt(expression, lambda node: a.Constant(TRUE if self._existing(node, x) else FALSE))
        return decided

    def _holds(self, condition: a.Expression, x: Proof) -> bool:
        return truth(self._decided(condition, x), x.lookup, x.start, x.end, self._search_for(condition)) is True

    def _evaluate_for(self, expression: a.Expression, x: Proof) -> Term | None:
        try:
            return evaluate(self._decided(expression, x), x.lookup, x.start, x.end, self._search_for(expression))
        except (ExpressionError, ValueError, ArithmeticError):
            return None

    def _search_for(self, expression: a.Expression) -> Identity | None:
        """Return what a function needs that looks into the background; None if the expression has none."""
        if not any(isinstance(node, a.Call) and node.function in BACKGROUND_FUNCTIONS for node in walk_nodes(expression)):
            return None
        return Identity(NAMELESS, "", (), search=self.world.find_route)

    # ------------------------------------------------------------ what counts
    def _counts(self, z: Proof, x: Proof) -> bool:
        return z.end is None or z.end <= (self.t0 if x.end is None else x.end)

    def _counts_together(self, z: Proof, x: Proof) -> bool:
        return self._counts(z, x) and _same_interval(x, z)

    def _past(self, x: Proof) -> TimeBounds:
        return TimeBounds(hi=self.t0 if x.end is None else x.end)

    def _derive_without(self, x: Proof, operator: str, pattern: a.Pattern) -> Proof:
        texts = dict.fromkeys(text for node in walk_nodes(pattern) if (text := _pattern_text(node, x.bindings)) is not None)
        return replace_fields(x, steps=(*x.steps, Absence(operator, tuple(texts), x.end)))


# ---------------------------------------------------------------- bindings
def _under(part: TermOrVariable, bound: Bindings) -> TermOrVariable:
    return bound.get(part, part) if isinstance(part, Variable) else part


def _at_alarm(x: Proof, variable: Variable) -> Proof | None:
    """Return a solution as the alarm that it sets; None if that is not later."""
    due = value_of(x.bindings[variable]) if variable in x.bindings else None
    at = ceil(due.micros) if isinstance(due, DateTime) else None
    return replace_fields(x, end=at) if at is not None and x.end is not None and at > x.end else None


def _match_rows(pattern: a.Values, wanted: Bindings) -> Iterator[Proof]:
    for row in pattern.rows:
        bound = {v: term for v, term in zip(pattern.variables, row, strict=True) if term is not None}
        if _agree(bound, wanted):
            yield Proof(bound)


def _agree(bound: Bindings, wanted: Bindings) -> bool:
    return all(wanted.get(v, term) == term for v, term in bound.items())


def _bound(pairs: tuple[tuple[TermOrVariable, Term], ...], graph: Variable | None, lies_in: Term | None) -> dict[Variable, Term] | None:
    bound: dict[Variable, Term] = {}
    for part, term in pairs:
        if isinstance(part, Variable):
            if bound.setdefault(part, term) != term:
                return None
        elif part != term:
            return None
    if graph is not None and lies_in is not None:
        bound[graph] = lies_in
    return bound


def _matched(parts: tuple[TermOrVariable, TermOrVariable, TermOrVariable], edge: Edge, place: a.Place) -> dict[Variable, Term] | None:
    return _bound(tuple(zip(parts, edge.triple, strict=True)), place.graph, edge.given.graph)


def _graph_of(way: PathProof) -> Term | None:
    return next((step.given.graph for step in way.steps), None)


def _proof(edge: Edge, bound: Bindings, used: object) -> Proof:
    given = edge.given
    if isinstance(given, Occurrence):
        return Proof(bound, given.start, given.end, (used,))  # type: ignore[arg-type]  # a step
    return Proof(bound, steps=(used,))  # type: ignore[arg-type]  # a step


def _joined(x: Proof, y: Proof) -> Proof:
    starts = [t for t in (x.start, y.start) if t is not None]
    ends = [t for t in (x.end, y.end) if t is not None]
    return Proof({**x.bindings, **y.bindings}, min(starts, default=None), max(ends, default=None), (*x.steps, *y.steps))


def _share(x: Proof, y: Proof) -> bool:
    return any(is_seen(v) for v in x.bindings.keys() & y.bindings.keys())


def _rebuilt(node: Any, decide: Callable[[a.Exists], a.Constant]) -> Any:
    """Return an expression with its outermost EXISTS decided."""
    if isinstance(node, a.Exists):
        return decide(node)
    if isinstance(node, tuple):
        return tuple(_rebuilt(part, decide) for part in node)
    if isinstance(node, a.Expression):
        return map_fields(node, lambda part: _rebuilt(part, decide))
    return node


# ---------------------------------------------------------------- intervals
def _before(x: Proof, y: Proof) -> bool:
    return x.end is None or y.start is None or x.end < y.start


def _is_after(x: Proof, z: Proof, y: Proof) -> bool:
    """Return whether z lies after x and before y, strictly on both sides."""
    return _before(x, z) and _before(z, y)


def _is_between(x: Proof, z: Proof, y: Proof) -> bool:
    """Return whether z lies between x and y, whichever of them comes first. What has no time takes up none."""
    ends, starts = [p.end for p in (x, y) if p.end is not None], [p.start for p in (x, y) if p.start is not None]
    return z.start is None or z.end is None or not ends or (min(ends) < z.start and z.end < max(starts))


def _same_interval(x: Proof, y: Proof) -> bool:
    return x.end is None or y.end is None or (x.start, x.end) == (y.start, y.end)


def _related(relation: a.Relation, x: Proof, y: Proof) -> bool:
    if x.start is None or x.end is None or y.start is None or y.end is None:
        return True
    match relation:
        case a.Relation.MEETS:
            return x.end == y.start
        case a.Relation.DURING:
            return y.start < x.start and x.end < y.end
        case a.Relation.STARTS:
            return x.start == y.start and x.end < y.end
        case a.Relation.FINISHES:
            return x.end == y.end and x.start > y.start
        case a.Relation.OVERLAPS:
            return x.start < y.start < x.end < y.end
        case a.Relation.PAR:
            return max(x.start, y.start) < min(x.end, y.end)
    assert_never(relation)


# ---------------------------------------------------------------- texts
def _show_part(part: TermOrVariable) -> str:
    return part.name if isinstance(part, Variable) and part.hidden else str(part)


def _pattern_text(node: object, bound: Bindings) -> str | None:
    match node:
        case a.TriplePattern(s, p, o):
            return " ".join(_show_part(_under(part, bound)) for part in (s, p, o))
        case a.Path(s, path, o):
            links = "|".join(str(each.predicate) for each in walk_nodes(path) if isinstance(each, a.Link))
            return f"{_show_part(_under(s, bound))} path({links}) {_show_part(_under(o, bound))}"
        case _:
            return None
