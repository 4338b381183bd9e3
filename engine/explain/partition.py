"""By which variable a query's solutions could be sought apart, in buckets of the streams (architecture.md, "Route")."""

from dataclasses import dataclass
from typing import assert_never

from engine.scope import parts
from epsparql import algebra as a
from epsparql.terms import TermOrVariable, Variable


@dataclass(frozen=True, slots=True)
class Partition:
    """The partition key, or why there is none."""

    key: Variable | None
    reason: str


@dataclass(frozen=True, slots=True)
class Demand:
    """A part of a query that can be evaluated apart for each value of any one of `keys`; `why` says so, or what keeps it from more."""

    keys: frozenset[Variable]
    why: str


def partition(query: a.Query) -> Partition:
    """The first variable by name that all parts of a query agree on."""
    demands = [*_of_query(query), *_of_pattern(query.pattern)]
    if not demands:
        return Partition(None, "no triple pattern reads the streams; one bucket")
    common = demands[0].keys
    for demand in demands:
        if not common & demand.keys:
            return Partition(None, f"{demand.why}; one bucket")
        common &= demand.keys
    return Partition(min(common, key=lambda v: v.name), "every triple pattern binds it")


def _of_query(query: a.Query) -> list[Demand]:
    match query:
        case a.Select(_, projection, distinct, _, modifiers, sources):
            return [*_windows(sources), *_distinct(projection, distinct), *_modified(modifiers)]
        case a.Construct(sources=sources) | a.Describe(sources=sources):
            return _windows(sources)
        case a.Ask():
            return [Demand(frozenset(), "ASK looks for a first solution of all")]
        case _:
            assert_never(query)


def _windows(sources: a.Sources) -> list[Demand]:
    return [Demand(frozenset(), "named windows report together")] if sources.windows else []


def _distinct(projection: tuple[Variable, ...], distinct: bool) -> list[Demand]:
    return [Demand(frozenset(projection), "DISTINCT compares solutions that share no selected variable with every part")] if distinct else []


def _modified(modifiers: a.Modifiers) -> list[Demand]:
    return [] if modifiers == a.PLAIN else [Demand(frozenset(), "ORDER BY, LIMIT and OFFSET put all solutions into one order")]


def _of_pattern(pattern: a.Pattern) -> list[Demand]:
    """The demands of a pattern and all its parts; VALUES and the empty group make none, for they are the same in every bucket."""
    match pattern:
        case a.Bgp(triples):
            return [_of_triple(triple.subject, triple.object) for triple in triples]
        case a.Path():
            return [Demand(frozenset(), "a property path goes through triples of any key")]
        case a.Values():
            return []
        case a.Filter(condition, inner) | a.Extend(inner, _, condition):
            return _of_pattern(inner) + _of_expression(condition)
        case a.LeftJoin(left, right, condition) | a.EqLeftJoin(left, right, condition) | a.SeqRightJoin(left, right, condition):
            return _of_pattern(left) + _of_pattern(right) + ([] if condition is None else _of_expression(condition))
        case (
            a.Join(left, right) | a.Union(left, right) | a.SeqJoin(left, right) | a.EqJoin(left, right) | a.RelationJoin(_, left, right)
            | a.Minus(left, right) | a.WithoutFor(left, right, _)
        ):  # fmt: skip
            return _of_pattern(left) + _of_pattern(right)
        case a.SeqWithout(left, right, absent, _):
            return _of_pattern(left) + _of_pattern(right) + _of_pattern(absent)
        case a.Within(inner, _) | a.Graph(_, inner) | a.InWindow(_, inner):
            return _of_pattern(inner)
        case a.Group(inner, keys, aggregates, _):
            own = Demand(
                frozenset(keys), "a group gathers solutions that need not agree on more than its keys" if keys else "there is one group of all"
            )
            return [own, *_of_pattern(inner), *(d for _, g in aggregates if g.argument is not None for d in _of_expression(g.argument))]
        case a.SubSelect(inner, projection, distinct, modifiers):
            inside = [*_distinct(projection, distinct), *_modified(modifiers), *_of_pattern(inner)]
            return [Demand(demand.keys & frozenset(projection), demand.why) for demand in inside]
        case _:
            assert_never(pattern)


def _of_triple(subject: TermOrVariable, object_: TermOrVariable) -> Demand:
    keys = frozenset(term for term in (subject, object_) if isinstance(term, Variable))
    return Demand(keys, "no variable is bound by every triple pattern")


def _of_expression(expression: a.Expression) -> list[Demand]:
    return [demand for part in parts(expression) if isinstance(part, a.Exists) for demand in _of_pattern(part.pattern)]


__all__ = ["Partition", "partition"]
