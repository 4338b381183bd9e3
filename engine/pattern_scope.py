"""This module finds what a pattern binds, certainly or possibly, how long its solutions last, and whether one may be
timeless.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, assert_never, get_args

from engine.expressions.background_functions import BACKGROUND_FUNCTIONS
from engine.expressions.temporal import duration_micros
from engine.kernel.state.layout import FOREVER
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.solutions.policies import UNRESTRICTED
from epsparql.terms import XSD, Literal, TermOrVariable, Variable
from epsparql.trees import list_fields, replace_fields

Variables = frozenset[Variable]
Matches = Callable[[a.TriplePattern, a.Place], bool]
"""The function returns whether a background triple matches a triple pattern at its place."""
IDENTIFYING = frozenset({"RAND", "UUID", "STRUUID", "BNODE"})
"""These functions depend on the solution as a whole, and on their place in the query."""
_EXPRESSIONS = frozenset(get_args(a.Expression))
_TIMED = frozenset({"NOW", *BACKGROUND_FUNCTIONS})
ANY_TRIPLE = a.TriplePattern(Variable("s"), Variable("p"), Variable("o"))


@dataclass(frozen=True, slots=True)
class Scope:
    """Describes a pattern's solutions: `certain` variables are bound in every solution, `possible` ones in some or in
    none.

    A solution may be `timeless` or `timed`; timed ones last at most `longest` µs, whatever the background has.
    """

    certain: Variables
    possible: Variables
    timeless: bool
    timed: bool = True
    longest: int = FOREVER

    def joined(self, other: "Scope") -> "Scope":
        """Return the scope of joins with solutions of another."""
        timed = self.timed or other.timed
        return Scope(self.certain | other.certain, self.possible | other.possible, self.timeless and other.timeless, timed)

    def limited(self, longest: int) -> "Scope":
        """Return the scope of those solutions that last no longer than this."""
        return replace_fields(self, longest=min(self.longest, longest))

    def related(self, other: "Scope", relation: a.Relation | None) -> "Scope":
        """Return the scope of joins with right solutions that stand in a relation to it; None is EQUALS.

        Any operand may become timeless when the background changes, and satisfies every relation then. So a join may
        last as long as either operand.
        """
        if relation in (a.Relation.MEETS, a.Relation.OVERLAPS, a.Relation.PAR):
            return self.joined(other).limited(self.longest + other.longest)
        return self.joined(other).limited(max(self.longest, other.longest))


Policed = a.Join | a.SeqJoin | a.RelationJoin | a.SeqWithout | a.JoinWithout
"""A policy may choose which solutions of its operands such a pattern joins."""


def is_policed(pattern: a.Pattern, policy: str) -> bool:
    """Return whether a policy acts on a pattern itself."""
    match pattern:
        case a.RelationJoin() | a.JoinWithout():
            return policy != UNRESTRICTED
        case a.Join() | a.SeqJoin() | a.SeqWithout():
            return policy != UNRESTRICTED and not pattern.unrestricted
        case _:
            return False


EMPTY = Scope(frozenset(), frozenset(), True, timed=False)


def find_scope(pattern: a.Pattern, matches: Matches, occurrence: int = FOREVER) -> Scope:
    """Return the scope of a pattern's solutions, where an occurrence of its streams lasts at most `occurrence` µs."""
    find = partial(find_scope, matches=matches, occurrence=occurrence)
    match pattern:
        case a.Bgp(triples, place):
            bound = _variables(t for triple in triples for t in (triple.subject, triple.predicate, triple.object)) | find_place_variables(place)
            lasts = occurrence if len(triples) == 1 else FOREVER
            return Scope(bound, bound, all(matches(triple, place) for triple in triples), timed=bool(triples), longest=lasts)
        case a.Path(subject, _, other, place):
            bound = _variables((subject, other)) | find_place_variables(place)
            return Scope(bound, bound, not isinstance(subject, Variable) or not isinstance(other, Variable) or matches(ANY_TRIPLE, place))
        case a.Values(variables, rows):
            certain = frozenset(v for k, v in enumerate(variables) if all(row[k] is not None for row in rows))
            return Scope(certain, frozenset(variables), True, timed=False)
        case a.Graph(name, inner, place):
            x = find(inner)
            bound = _variables((name,))
            return Scope(x.certain | bound, x.possible | bound, x.timeless and matches(ANY_TRIPLE, place), longest=max(x.longest, occurrence))
        case a.InWindow(_, inner) | a.Minus(inner, _):
            return find(inner)
        case a.Group(inner, keys, aggregates, _):
            return Scope(find(inner).certain & frozenset(keys), frozenset(keys) | {variable for variable, _ in aggregates}, False)
        case a.SubSelect(inner, projection):
            x = find(inner)
            return Scope(x.certain & frozenset(projection), frozenset(projection), x.timeless, x.timed, x.longest)
        case a.Join() | a.SeqJoin() | a.EqJoin() | a.RelationJoin() | a.SeqWithout() | a.JoinWithout():
            return _join_scopes(pattern, find(pattern.left), find(pattern.right))
        case a.Union(left, right):
            x, y = find(left), find(right)
            return Scope(x.certain & y.certain, x.possible | y.possible, x.timeless or y.timeless, x.timed or y.timed, max(x.longest, y.longest))
        case a.Filter(condition, inner):
            x, conditions = find(inner), list_conjuncts(condition)
            bound = frozenset(e.variable for e in conditions if isinstance(e, a.Bound))
            return replace_fields(x, certain=x.certain | bound & x.possible).limited(span_of(conditions))
        case a.Within(inner, limit):
            return find(inner).limited(limit)
        case a.Extend(inner, variable, _):
            x = find(inner)
            return Scope(x.certain, x.possible | {variable}, x.timeless, x.timed, x.longest)
        case a.LeftJoin(kept, other, _) | a.EqLeftJoin(kept, other, _) | a.SeqRightJoin(other, kept, _):
            x, y = find(kept), find(other)
            lasts = max(x.longest, y.longest) if isinstance(pattern, a.EqLeftJoin) else FOREVER
            return Scope(x.certain, x.possible | y.possible, x.timeless, longest=lasts)
        case a.WithoutFor(inner, _, _) | a.Alarm(inner, _):
            x = find(inner)
            return Scope(x.certain, x.possible, False)
        case a.Instant():
            return Scope(frozenset(), frozenset(), False, longest=0)
        case _:
            assert_never(pattern)


def _join_scopes(pattern: a.Join | a.SeqJoin | a.EqJoin | a.RelationJoin | a.SeqWithout | a.JoinWithout, x: Scope, y: Scope) -> Scope:
    match pattern:
        case a.EqJoin():
            return x.related(y, None)
        case a.RelationJoin(relation, _, _):
            return x.related(y, relation)
        case a.SeqWithout(_, _, _, int(within)) | a.JoinWithout(_, _, _, int(within)):
            return x.joined(y).limited(within)
        case _:
            return x.joined(y)


def find_place_variables(place: a.Place) -> Variables:
    return frozenset() if place.graph is None else frozenset({place.graph})


def _variables(parts: Iterable[TermOrVariable]) -> Variables:
    return frozenset(part for part in parts if isinstance(part, Variable))


def sort_by_name(variables: Iterable[Variable]) -> tuple[Variable, ...]:
    return tuple(sorted(set(variables), key=lambda v: v.name))


def variables_of(expression: a.Expression) -> Variables:
    """Return the variables an expression looks at, except those inside EXISTS."""
    return frozenset(e.variable for e in list_subexpressions(expression) if isinstance(e, a.Var | a.Bound))


def looks_at_time(expression: a.Expression) -> bool:
    """Return whether the expression depends on its solution's interval, or on the background at its end."""
    return any(isinstance(e, a.Time) or (isinstance(e, a.Call) and e.function in _TIMED) for e in list_subexpressions(expression))


def asks_identity(expression: a.Expression) -> bool:
    """Return whether the expression's value may depend on more than its variables and its solution's interval."""
    return any(isinstance(e, a.Call) and (e.function in _TIMED or e.function in IDENTIFYING) for e in list_subexpressions(expression))


def looks_at_background(expression: a.Expression) -> bool:
    """Return whether a function of the expression looks into the background."""
    return any(isinstance(e, a.Call) and e.function in BACKGROUND_FUNCTIONS for e in list_subexpressions(expression))


def list_subexpressions(expression: a.Expression) -> list[a.Expression]:
    """Return the expression and all its sub-expressions, patterns of EXISTS not entered."""
    found, pending = list[a.Expression](), list[Any]([expression])
    while pending:
        part = pending.pop()
        if isinstance(part, tuple):
            pending += part
        elif type(part) in _EXPRESSIONS:
            found.append(part)
            if not isinstance(part, a.Exists):
                pending += [getattr(part, name) for name in list_fields(type(part)) or ()]
    return found


def list_conjuncts(expression: a.Expression) -> list[a.Expression]:
    """Return the operands of a conjunction, in order. FILTER lets only a true whole pass, so each must be true."""
    match expression:
        case a.And(left, right):
            return list_conjuncts(left) + list_conjuncts(right)
        case _:
            return [expression]


def duration_constant(e: a.Expression) -> int | None:
    """Return the µs of a constant day-time duration; None for anything else."""
    match e:
        case a.Constant(Literal(lexical, datatype)) if datatype in (XSD + "duration", XSD + "dayTimeDuration"):
            return duration_micros(lexical)
        case _:
            return None


def duration_limit(condition: a.Expression) -> int | None:
    """Return the longest duration (µs) that `getDURATION() < d`, `= d` and their kin admit; None for other conditions."""
    match condition:
        case a.Compare(
            a.Comparison.LESS | a.Comparison.LESS_OR_EQUAL | a.Comparison.EQUAL as op, a.Time(a.TimeFunction.DURATION), a.Constant() as constant
        ):
            micros, strict = duration_constant(constant), op is a.Comparison.LESS
        case a.Compare(a.Comparison.GREATER | a.Comparison.GREATER_OR_EQUAL | a.Comparison.EQUAL as op, constant, a.Time(a.TimeFunction.DURATION)):
            micros, strict = duration_constant(constant), op is a.Comparison.GREATER
        case _:
            return None
    return None if micros is None else min(micros - strict, FOREVER)


def span_of(conditions: Iterable[a.Expression]) -> int:
    """Return the longest duration (µs) that all of these conditions admit."""
    limits = (limit for e in conditions if (limit := duration_limit(e)) is not None)
    return max(min(limits, default=FOREVER), 0)


def has_exists(expression: a.Expression) -> bool:
    """Return whether EXISTS stands in an expression."""
    return any(isinstance(part, a.Exists) for part in list_subexpressions(expression))
