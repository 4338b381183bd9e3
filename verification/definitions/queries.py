"""This module finds what one query of the reference evaluator gives for the streams and facts it sees: its solutions
as reported, in their order.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, assert_never

from epsparql import algebra
from epsparql.algebra import PLAIN, Expression, Query
from epsparql.deferred_methods import dataclass
from epsparql.terms import XSD, Iri, Literal, Term, TripleTerm, Variable
from epsparql.trees import is_node, map_fields, replace_fields
from verification.definitions import windows
from verification.definitions.model import Bindings, Fact, Micros, Occurrence, Solution, Solutions, projected
from verification.definitions.ordering import Setting, modified
from verification.definitions.patterns import USUAL, Evaluation, Settings, World, ordered_by, run_keys, windowed

Streams = Mapping[str, frozenset[Occurrence]]


@dataclass(frozen=True, slots=True)
class Given:
    """Holds what a query is evaluated over.

    Negative parts look at `settled`, which is another world only while a rule's fixpoint is sought.
    """

    streams: Streams
    settled: Streams
    facts: frozenset[Fact]
    silent: Micros | None
    """t0 if nothing ever occurs in the query's streams; None while that is not known."""
    horizon: Micros
    settings: Settings = field(default=USUAL)
    first: Micros | None = None
    """t0 where the streams are a part of what occurred; otherwise it is their first instant."""


def seen(query: Query, streams: Streams) -> frozenset[Occurrence]:
    return frozenset().union(*(streams.get(name, frozenset()) for name in query.streams))


def found(query: Query, given: Given) -> list[Solution]:
    """The query's solutions, each with its interval; those that SELECT orders, in that order.

    An ASK has at most one: the first.
    """
    solutions = list(_reports(query, given) if query.sources.windows else _once(query, *_worlds(query, given)))
    if isinstance(query, algebra.Ask):
        return sorted(solutions, key=lambda x: (x.end, x.start))[:1]
    return solutions


def reported(query: Query) -> list[Variable]:
    """The variables whose values a query's solutions show."""
    match query:
        case algebra.Select(_, projection):
            return list(projection)
        case algebra.Construct(template):
            return [part for triple in template for part in (triple.subject, triple.predicate, triple.object) if isinstance(part, Variable)]
        case algebra.Describe(targets):
            return [target for target in targets if isinstance(target, Variable)]
        case algebra.Ask() | algebra.BackgroundRule():
            return []
    assert_never(query)


def _worlds(query: Query, given: Given) -> tuple[World, World]:
    occurrences, settled = seen(query, given.streams), seen(query, given.settled)
    known = [] if given.silent is None else [given.silent]  # a rule's own triples, derived from then on, do not change it
    t0 = given.first if given.first is not None else min([*known, *(o.end for o in occurrences)], default=None)
    world = World(occurrences, given.facts, t0, given.horizon, given.settings, query.sources.dataset)
    if settled == occurrences:
        return world, world
    return world, World(settled, given.facts, t0, given.horizon, given.settings, query.sources.dataset)


def _once(query: Query, world: World, settled: World) -> list[Solution]:
    evaluation = Evaluation(world, settled)
    standing = _standing(evaluation.evaluate(query.pattern), world.t0)
    distinct, modifiers = (query.distinct, query.modifiers) if isinstance(query, algebra.Select) else (False, PLAIN)

    def value_under(expression: Expression, x: Solution) -> Term | None:
        return evaluation.decided.value_of(expression, standing[x])

    keys = run_keys(query.pattern)
    if keys is not None:  # of equal reports of two runs, one stays
        names = (*keys, *reported(query), *ordered_by(modifiers))
        told_apart = {(projected(x, names), x.start, x.end): x for x in standing}
        standing = {x: standing[x] for x in told_apart.values()}
    return modified(
        standing, reported(query), distinct, modifiers, windowed(query.pattern), Setting(world.t0, value_under, evaluation.find_resets(modifiers))
    )


def _standing(solutions: Solutions, t0: Micros | None) -> dict[Solution, Solution]:
    """Solutions as they stand, each with itself: timeless ones at t0, where an equal timed one is the same."""
    timeless = {x.at(t0, t0): x for x in solutions if x.timeless and t0 is not None}
    return timeless | {x: x for x in solutions if not x.timeless}


def _reports(query: Query, given: Given) -> Iterator[Solution]:
    """Over named windows everything is a negative part."""

    def evaluated(moment: windows.Moment) -> list[Solution]:
        now, dataset = moment.instant, query.sources.dataset
        world = World(frozenset(), given.facts, now, now, given.settings, dataset, moment.contents)
        return _once(query, world, world)

    def shown(x: Solution) -> Bindings:
        return projected(x, reported(query))

    return windows.reported(query.sources, given.settled, given.horizon, evaluated, shown)


# ---------------------------------------------------------------- PARAMETERS
_TRUE = Literal("true", XSD + "boolean")


def substitute(query: algebra.Select, terms: Mapping[Variable, Term]) -> algebra.Select:
    """The query of one instance, which gives each parameter a term.

    Where SELECT or ONCE PER names a parameter, the term is bound to its name.
    """
    pattern: algebra.Pattern = _replace(query.pattern, terms)
    keys = () if query.modifiers.once is None else query.modifiers.once.keys
    for variable in dict.fromkeys((*query.projection, *keys)):
        if variable in terms:
            pattern = algebra.Extend(pattern, variable, algebra.Constant(terms[variable]))
    return replace_fields(query, pattern=pattern, parameters=())


def _replace(node: Any, terms: Mapping[Variable, Term]) -> Any:
    match node:
        case algebra.Var(variable) if variable in terms:
            return algebra.Constant(terms[variable])
        case algebra.Bound(variable) if variable in terms:
            return algebra.Constant(_TRUE)
        case Variable():
            return terms.get(node, node)
        case Iri() | Literal() | TripleTerm() | str():
            return node
        case tuple():
            return tuple(_replace(part, terms) for part in node)
        case _ if is_node(node):
            return map_fields(node, lambda part: _replace(part, terms))
        case _:
            return node
