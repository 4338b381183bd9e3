"""GROUP BY, aggregates and their windows in the reference evaluator (semantics.md section 7)."""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from math import inf, isfinite
from typing import assert_never

from epsparql.algebra import Aggregate, AggregateFunction, Group, RangeWindow, RowsWindow
from epsparql.terms import Literal, Term, Variable
from tests.reference.expressions import DECIMAL, DOUBLE, FLOAT, INTEGER, Failure, calculate, decimal, double, integer, numeric, string
from tests.reference.model import Interval, Micros, Solution, visible
from tests.reference.ordering import Value, by_terms, rank

ZERO = Literal("0", INTEGER)
Key = tuple[Term | None, ...]


def reports(group: Group, found: Iterable[Solution], first: Micros | None, horizon: Micros, value: Value) -> Iterator[Solution]:
    """Yield what each group reports at each of its instants. `first` is where timeless solutions stand and the one implicit group comes to be."""
    members: dict[Key, dict[Solution, Solution]] = {} if group.keys or first is None else {(): {}}
    for x in sorted(found, key=lambda x: x.timeless):  # so a timed one is kept of two that are the same
        stands = x
        if x.timeless:
            if first is None:
                continue
            stands = x.at(first, first)
        members.setdefault(tuple(map(x.lookup, group.keys)), {}).setdefault(stands, x)
    everyone = [stands for content in members.values() for stands in content]
    for key, content in members.items():
        ordered = _in_order(content)
        for instant in _instants(group, ordered, everyone, first, horizon):
            seen = _window(group, ordered, instant)
            if not seen and (isinstance(group.window, RangeWindow) and group.window.step):
                continue
            start, end = _interval(group, seen, instant)
            yield Solution(frozenset(_row(group, key, [content[x] for x in seen], value)), start, end)


def _in_order(content: Iterable[Solution]) -> list[Solution]:
    """Sort solutions by end, start, then terms of the visible variables."""
    solutions = list(content)
    variables = sorted({variable for x in solutions for variable, _ in visible(x)}, key=str)
    return sorted(solutions, key=lambda x: (x.end, x.start, by_terms(x, variables)))


def _instants(group: Group, mine: list[Solution], everyone: list[Solution], first: Micros | None, horizon: Micros) -> set[Micros]:
    if isinstance(group.window, RangeWindow) and group.window.step is not None:
        return set(_multiples(group.window.length, group.window.step, everyone, horizon))
    gained = {x.end for x in mine if x.end is not None}
    return gained if group.keys or first is None else gained | {first}


def _multiples(length: Micros, step: Micros, everyone: list[Solution], horizon: Micros) -> Iterator[Micros]:
    """The multiples of the step at which the window holds a solution from before the end, and those before the end."""
    ends = {x.end for x in everyone if x.end is not None}
    for instant in {multiple for end in ends for multiple in range(-(-end // step) * step, end + length, step)}:
        if instant <= horizon or any(instant - length < end <= instant and end <= horizon for end in ends):
            yield instant


def _window(group: Group, ordered: list[Solution], instant: Micros) -> list[Solution]:
    seen = [x for x in ordered if x.end is not None and x.end <= instant]
    match group.window:
        case None:
            return seen
        case RangeWindow(length):
            return [x for x in seen if x.end is not None and x.end > instant - length]
        case RowsWindow(count):
            return seen[-count:]
    assert_never(group.window)


def _interval(group: Group, seen: list[Solution], instant: Micros) -> Interval:
    if isinstance(group.window, RangeWindow) and group.window.step is not None:
        return instant - group.window.length, instant
    return min((x.start for x in seen if x.start is not None), default=instant), instant


def _row(group: Group, key: Key, seen: list[Solution], value: Value) -> Iterator[tuple[Variable, Term]]:
    for variable, term in zip(group.keys, key, strict=True):
        if term is not None:
            yield variable, term
    for variable, aggregate in group.aggregates:
        try:
            result = aggregated(aggregate, seen, value)
        except Failure:
            continue
        if result is not None:
            yield variable, result


# ---------------------------------------------------------------- set functions (SPARQL 1.1, 18.5.1)
def aggregated(aggregate: Aggregate, seen: list[Solution], value: Value) -> Term | None:
    """None where there is nothing to choose from. Raises: Failure."""
    if aggregate.argument is None:
        return _count({visible(x) for x in seen} if aggregate.distinct else seen)
    argument = aggregate.argument
    values = [value(argument, x) for x in seen]
    if aggregate.distinct:
        values = list(dict.fromkeys(values))
    present = [term for term in values if term is not None]
    match aggregate.function:
        case AggregateFunction.COUNT:
            return _count(present)
        case AggregateFunction.SAMPLE:
            return next(iter(present), None)
        case AggregateFunction.MIN:
            return min(present, key=rank, default=None)
        case AggregateFunction.MAX:
            return max(present, key=rank, default=None)
        case AggregateFunction.SUM:
            return _sum(values)
        case AggregateFunction.AVG:
            return calculate("/", _sum(values), _count(values)) if values else ZERO
        case AggregateFunction.GROUP_CONCAT:
            return Literal(aggregate.separator.join(map(_lexical, values)))
    assert_never(aggregate.function)


def _count(values: Iterable[object]) -> Literal:
    return Literal(str(len(list(values))), INTEGER)


def _sum(values: Iterable[Term | None]) -> Term:
    """The exact sum of the values, as the highest of their types; where that is a double, rounded once."""
    total, kind = Fraction(0), INTEGER
    special = 0.0  # NaN and infinities add as IEEE says, whatever their order
    for term in values:
        number = None if term is None else numeric(term)
        if number is None:
            raise Failure
        assert isinstance(term, Literal)
        assert term.datatype != FLOAT, "the random tests calculate with no single floats"
        kind = max(kind, term.datatype, key=(INTEGER, DECIMAL, DOUBLE).index)
        if isinstance(number, float) and not isfinite(number):
            special += number
        else:
            total += Fraction(number)
    if kind == DOUBLE:
        return double(special if special != 0 else _rounded(total))
    return integer(total) if kind == INTEGER else decimal(total)


def _rounded(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return inf if exact > 0 else -inf


def _lexical(term: Term | None) -> str:
    if term is None:
        raise Failure
    shown = string(term)
    assert isinstance(shown, Literal)
    return shown.lexical
