"""Names in the reference evaluator: what tells rows apart, which variables operands share, and EXISTS's substitution
(SPARQL 1.1, 18.6).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import count
from typing import assert_never

from epsparql import algebra
from epsparql.algebra import Pattern, Relation, TriplePattern
from epsparql.deferred_methods import dataclass
from epsparql.terms import XSD, BlankNode, Iri, Literal, Term, TermOrVariable, TripleTerm, TripleTermPattern, Variable
from epsparql.trees import is_node, list_fields, map_fields

TRUE = algebra.Constant(Literal("true", XSD + "boolean"))
ROW = "_:row of "


def marked(node: Pattern) -> Pattern:
    """The pattern with a hidden column of its own in each VALUES and each sub-SELECT without DISTINCT (section 2)."""
    result = _marked(node, count())
    assert isinstance(result, Pattern)
    return result


def _marked(node: object, numbers: Iterator[int]) -> object:
    match node:
        case algebra.Values(variables, rows):
            tagged = tuple((*row, Literal(str(number))) for number, row in enumerate(rows))
            return algebra.Values((*variables, Variable(f"{ROW}{next(numbers)}")), tagged)
        case algebra.SubSelect(pattern, projection, distinct, modifiers):
            hidden = () if distinct else (Variable(f"{ROW}{next(numbers)}"),)
            inner, order = _marked(pattern, numbers), _marked(modifiers, numbers)
            return algebra.SubSelect(inner, (*projection, *hidden), distinct, order)  # type: ignore[arg-type]  # a copy of each part's kind
        case Iri() | BlankNode() | Literal() | Variable():
            return node
        case tuple():
            return tuple(_marked(part, numbers) for part in node)
        case _ if is_node(node):
            return map_fields(node, lambda part: _marked(part, numbers))
    return node


def row_marker(pattern: algebra.SubSelect) -> Variable | None:
    return next((variable for variable in pattern.projection if variable.name.startswith(ROW)), None)


def shared_variables(left: Pattern, right: Pattern) -> list[Variable]:
    return sorted(_in_scope(left) & _in_scope(right), key=str)


def _in_scope(node: object) -> set[Variable]:
    match node:
        case Variable():
            return {node}
        case algebra.SubSelect(_, projection):
            return set(projection)
        case algebra.Group(_, keys, aggregates):
            return {*keys, *(variable for variable, _ in aggregates)}
        case algebra.Minus(left):
            return _in_scope(left)
        case algebra.SeqWithout(left, right) | algebra.JoinWithout(left, right):
            return _in_scope(left) | _in_scope(right)
        case algebra.WithoutFor(inner) | algebra.Filter(_, inner):
            return _in_scope(inner)
        case algebra.Extend(inner, variable):
            return _in_scope(inner) | {variable}
        case algebra.LeftJoin(left, right) | algebra.EqLeftJoin(left, right) | algebra.SeqRightJoin(left, right):
            return _in_scope(left) | _in_scope(right)
        case tuple():
            return {variable for part in node for variable in _in_scope(part)}
    return {variable for name in list_fields(type(node)) or () for variable in _in_scope(getattr(node, name))}


def substituted(node: Pattern, bindings: Mapping[Variable, Term]) -> Pattern:
    """The pattern with the solution's terms in place of its variables."""
    result = _substitute(node, bindings)
    assert isinstance(result, Pattern)
    return result


def _substitute(node: object, bindings: Mapping[Variable, Term]) -> object:
    """Replace variables by their bindings.

    A node that names a new variable keeps it: its value is compared with the solution afterwards. A sub-SELECT's own
    variables are others.
    """
    match node:
        case TripleTermPattern(subject, predicate, object_):
            return TripleTermPattern(*(_substitute(part, bindings) for part in (subject, predicate, object_)))  # type: ignore[arg-type]
        case Variable():
            return bindings.get(node, node)
        case algebra.Var(variable):
            return algebra.Constant(bindings[variable]) if variable in bindings else node
        case algebra.Bound(variable):
            return algebra.Bound(variable) if variable not in bindings else TRUE
        case algebra.Extend(inner, variable, expression):
            return type(node)(_substitute(inner, bindings), variable, _substitute(expression, bindings))  # type: ignore[arg-type]
        case algebra.Group(inner, keys, aggregates, window):
            replaced = tuple((variable, _substitute(aggregate, bindings)) for variable, aggregate in aggregates)
            return type(node)(_substitute(inner, bindings), keys, replaced, window)  # type: ignore[arg-type]
        case algebra.SubSelect(inner, projection, distinct, modifiers):
            visible = {variable: term for variable, term in bindings.items() if variable in projection}
            return type(node)(_substitute(inner, visible), projection, distinct, _substitute(modifiers, visible))  # type: ignore[arg-type]
        case algebra.Once(keys, within, until):
            return type(node)(tuple(key for key in keys if key not in bindings), within, _substitute(until, bindings))  # type: ignore[arg-type]
        case Iri() | BlankNode() | Literal() | TripleTerm() | algebra.Values():
            return node
        case tuple():
            return tuple(_substitute(part, bindings) for part in node)
        case _ if is_node(node):
            return map_fields(node, lambda part: _substitute(part, bindings))
    return node


Micros = int
Triple = tuple[Term, Term, Term]
Interval = tuple[Micros, Micros]
Bindings = frozenset[tuple[Variable, Term]]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A triple with an interval, in an event graph if it was sent in one."""

    triple: Triple
    start: Micros
    end: Micros
    graph: Term | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """A background triple, in a graph or in none."""

    triple: Triple
    graph: Term | None = None


@dataclass(frozen=True, slots=True)
class Solution:
    """A mapping with an interval; both instants are None for a timeless one."""

    bindings: Bindings
    start: Micros | None = None
    end: Micros | None = None

    @property
    def timeless(self) -> bool:
        return self.end is None

    def lookup(self, variable: Variable) -> Term | None:
        return dict(self.bindings).get(variable)

    def at(self, start: Micros, end: Micros) -> "Solution":
        return Solution(self.bindings, start, end)


Solutions = frozenset[Solution]
Test = Callable[[Solution, Solution], bool]


def compatible(x: Solution, y: Solution) -> bool:
    mine = dict(x.bindings)
    return all(mine.get(variable, term) == term for variable, term in y.bindings)


def likely_pairs(xs: Collection[Solution], ys: Collection[Solution], *, same_interval: bool = False) -> Iterator[tuple[Solution, Solution]]:
    """Yield all pairs but those that differ in a variable that every one of the solutions binds: which of them fit is
    for the caller to say.

    With `same_interval`, pairs of timed solutions with other intervals are left out too.
    """
    keys = sorted(_bound_by_all(xs) & _bound_by_all(ys), key=str)
    intervals = same_interval and not any(x.timeless for x in (*xs, *ys))
    partners: dict[object, list[Solution]] = {}

    def join_key(x: Solution) -> object:
        bound = dict(x.bindings)
        return tuple(bound[key] for key in keys), (x.start, x.end) if intervals else None

    for y in ys:
        partners.setdefault(join_key(y), []).append(y)
    for x in xs:
        for y in partners.get(join_key(x), ()):
            yield x, y


def _bound_by_all(xs: Collection[Solution]) -> set[Variable]:
    common: set[Variable] | None = None
    for x in xs:
        names = {variable for variable, _ in x.bindings}
        common = names if common is None else common & names
    return common or set()


def join_solutions(x: Solution, y: Solution) -> Solution:
    """`x >< y` of compatible x, y; `none` is the neutral element of min and max."""
    starts = [s for s in (x.start, y.start) if s is not None]
    ends = [e for e in (x.end, y.end) if e is not None]
    return Solution(x.bindings | y.bindings, min(starts, default=None), max(ends, default=None))


def projected(x: Solution, variables: Iterable[Variable]) -> Bindings:
    kept = set(variables)
    return frozenset((variable, term) for variable, term in x.bindings if variable in kept)


def visible(x: Solution) -> Bindings:
    return frozenset((variable, term) for variable, term in x.bindings if not variable.hidden)


# ---------------------------------------------------------------- how intervals may lie (section 3)
def apart(x: Solution, y: Solution) -> Solution:
    """Return what ends at min(x.end, y.end) and starts at max(x.start, y.start); `none` is the neutral element of min
    and max.
    """
    starts = [s for s in (x.start, y.start) if s is not None]
    ends = [e for e in (x.end, y.end) if e is not None]
    return Solution(frozenset(), max(starts, default=None), min(ends, default=None))


def before(x: Solution, y: Solution) -> bool:
    return x.end is None or y.start is None or x.end < y.start


def same_interval(x: Solution, y: Solution) -> bool:
    return x.timeless or y.timeless or (x.start, x.end) == (y.start, y.end)


def related(relation: Relation, x: Solution, y: Solution) -> bool:
    if x.start is None or x.end is None or y.start is None or y.end is None:
        return True  # `none` satisfies every temporal relation
    match relation:
        case Relation.MEETS:
            return x.end == y.start
        case Relation.DURING:
            return y.start < x.start and x.end < y.end
        case Relation.STARTS:
            return x.start == y.start and x.end < y.end
        case Relation.FINISHES:
            return x.end == y.end and x.start > y.start
        case Relation.OVERLAPS:
            return x.start < y.start < x.end < y.end
        case Relation.PAR:
            return max(x.start, y.start) < min(x.end, y.end)
    assert_never(relation)


def short_enough(x: Solution, limit: Micros | None) -> bool:
    return limit is None or x.start is None or x.end is None or x.end - x.start <= limit


# ---------------------------------------------------------------- triples
def match_triple(pattern: TriplePattern, triple: Triple) -> Bindings | None:
    found: dict[Variable, Term] = {}
    for wanted, term in zip((pattern.subject, pattern.predicate, pattern.object), triple, strict=True):
        if not bind(wanted, term, found):
            return None
    return frozenset(found.items())


def bind(wanted: TermOrVariable, term: Term, found: dict[Variable, Term]) -> bool:
    """Bind what a pattern has at the place of a term, and say whether it fits.

    A triple term is the value of a hidden variable, and its parts fit.
    """
    if isinstance(wanted, TripleTermPattern):
        if not isinstance(term, TripleTerm):
            return False
        pairs = (wanted.subject, term.subject), (wanted.predicate, term.predicate), (wanted.object, term.object)
        return all(bind(inner, part, found) for inner, part in pairs) and found.setdefault(wanted, term) == term
    return found.setdefault(wanted, term) == term if isinstance(wanted, Variable) else wanted == term
