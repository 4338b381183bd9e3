"""GROUP BY, aggregates and their windows in the reference evaluator (semantics.md sections 7 and 13)."""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from math import inf, isfinite
from typing import assert_never

from epsparql.algebra import Aggregate, AggregateFunction, Expression, Group, RangeWindow, RowsWindow, RunReport, RunWindow
from epsparql.deferred_methods import dataclass
from epsparql.terms import Literal, Term, Variable
from verification.definitions.expressions import (
    DECIMAL,
    DOUBLE,
    FLOAT,
    INTEGER,
    Failure,
    calculate,
    decimal,
    double,
    integer,
    length,
    numeric,
    string,
    total_seconds,
    truth,
)
from verification.definitions.model import Interval, Micros, Solution, Solutions, compatible, projected, visible
from verification.definitions.ordering import Value, by_terms, rank

ZERO = Literal("0", INTEGER)
Key = tuple[Term | None, ...]
NONE: Solutions = frozenset()


def reports(
    group: Group, found: Iterable[Solution], first: Micros | None, horizon: Micros, value: Value, absent: Solutions = NONE
) -> Iterator[Solution]:
    """Yield what each group reports at each of its instants.

    `first` is where timeless solutions stand and the one implicit group comes to be; `absent` are the solutions of a
    run's UNTIL.
    """
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
        if isinstance(group.window, RunWindow):
            named = Solution(frozenset((variable, term) for variable, term in zip(group.keys, key, strict=True) if term is not None))
            between = frozenset(z for z in absent if compatible(Solution(projected(z, group.keys)), named))
            runs = RunReports(group.window, between, horizon, value)
            for elements, instant in runs.reports([Element(x, content[x]) for x in ordered]):
                least = min(x.starts_at for x in elements)
                yield Solution(frozenset(_row(group, key, [x.given for x in elements], value)), least, instant)
            continue
        for instant in _instants(group, ordered, everyone, first, horizon):
            seen = _window_content(group, ordered, instant)
            if not seen and (isinstance(group.window, RangeWindow) and group.window.step):
                continue
            start, end = _report_interval(group, seen, instant)
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


def _window_content(group: Group, ordered: list[Solution], instant: Micros) -> list[Solution]:
    seen = [x for x in ordered if x.end is not None and x.end <= instant]
    match group.window:
        case None:
            return seen
        case RangeWindow(length):
            return [x for x in seen if x.end is not None and x.end > instant - length]
        case RowsWindow(count):
            return seen[-count:]
        case RunWindow():
            raise AssertionError("a run reports by itself")
    assert_never(group.window)


def _report_interval(group: Group, seen: list[Solution], instant: Micros) -> Interval:
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


# ---------------------------------------------------------------- runs (section 13)
@dataclass(frozen=True, slots=True)
class Element:
    """A solution of a group as it `stands`; expressions see it as it was `given`, which may be timeless."""

    stands: Solution
    given: Solution

    @property
    def starts_at(self) -> Micros:
        assert self.stands.start is not None
        return self.stands.start

    @property
    def end(self) -> Micros:
        assert self.stands.end is not None
        return self.stands.end


@dataclass(frozen=True, slots=True)
class RunReports:
    """The runs of one group; `absent` are the solutions of UNTIL that agree with its key, `last` is the last instant
    of the finished streams.
    """

    window: RunWindow
    absent: Solutions
    last: Micros
    value: Value

    @property
    def lasting(self) -> bool:
        """Return whether its runs have no deadline."""
        return self.window.gap is None and self.window.within is None

    def runs(self, elements: Sequence[Element]) -> list[list[Element]]:
        found: list[list[Element]] = []
        for y in elements:
            if found and self.links(found[-1], y):
                found[-1].append(y)
            else:
                found.append([y])
        return found

    def links(self, run: list[Element], y: Element) -> bool:
        x, window = run[-1], self.window
        if window.condition is not None and not self.continues(window.condition, run, y):
            return False
        if window.gap is not None and y.end - x.end > window.gap:
            return False
        if window.within is not None and y.end - min(each.starts_at for each in (*run, y)) > window.within:
            return False
        if window.report is RunReport.CLOSED and self.lasting and x.end <= self.last < y.end:
            return False
        return not any(z.start is None or z.end is None or (x.end < z.start and z.end < y.end) for z in self.absent)

    def continues(self, condition: Expression, run: list[Element], y: Element) -> bool:
        known: dict[Variable, Term | None] = {variable: self.value(each, run[-1].given) for variable, each in self.window.previous}
        for variable, aggregate in self.window.aggregates:
            try:
                known[variable] = aggregated(aggregate, [each.given for each in (*run, y)], self.value)
            except Failure:
                known[variable] = None
        found = truth(condition, lambda v: known[v] if v in known else y.given.lookup(v), y.given.start, y.given.end, {})
        return found is True

    def reports(self, elements: Sequence[Element]) -> Iterator[tuple[list[Element], Micros]]:
        """The elements of each report, with its instant."""
        runs = self.runs(elements)
        for k, run in enumerate(runs):
            if self.window.report is RunReport.EACH:
                for instant in {x.end for x in run}:
                    yield [x for x in run if x.end <= instant], instant
            else:
                over = [*self.ends(run), *(following[0].end for following in runs[k + 1 : k + 2])]
                if over:
                    yield run, min(over)

    def ends(self, run: list[Element]) -> Iterator[Micros]:
        """The instants (b), (c) and (d)."""
        end, window = run[-1].end, self.window
        deadlines = [] if window.gap is None else [end + window.gap]
        if window.within is not None:
            deadlines.append(max(end, min(x.starts_at for x in run) + window.within))
        if end <= self.last:
            yield min(deadlines) if deadlines else self.last
        yield from (z.end for z in self.absent if z.start is not None and z.end is not None and end < z.start)


# ---------------------------------------------------------------- set functions (SPARQL 1.1, 18.5.1)
def aggregated(aggregate: Aggregate, seen: list[Solution], value: Value) -> Term | None:
    """None where there is nothing to choose from. Raises: Failure."""
    if aggregate.argument is None:
        return _count_values({visible(x) for x in seen} if aggregate.distinct else seen)
    argument = aggregate.argument
    values = [value(argument, x) for x in seen]
    if aggregate.distinct:
        values = list(dict.fromkeys(values))
    present = [term for term in values if term is not None]
    match aggregate.function:
        case AggregateFunction.COUNT:
            return _count_values(present)
        case AggregateFunction.SAMPLE | AggregateFunction.FIRST:
            return next(iter(present), None)
        case AggregateFunction.LAST:
            return next(iter(reversed(present)), None)
        case AggregateFunction.MIN:
            return min(present, key=rank, default=None)
        case AggregateFunction.MAX:
            return max(present, key=rank, default=None)
        case AggregateFunction.SUM:
            return _sum(values)
        case AggregateFunction.AVG:
            return calculate("/", _sum(values), _count_values(values)) if values else ZERO
        case AggregateFunction.GROUP_CONCAT:
            return Literal(aggregate.separator.join(map(_lexical, values)))
    assert_never(aggregate.function)


def _count_values(values: Iterable[object]) -> Literal:
    return Literal(str(len(list(values))), INTEGER)


def _sum(values: Sequence[Term | None]) -> Term:
    """The exact sum of the values, as the highest of their types; where that is a double, rounded once."""
    seconds = [None if term is None else total_seconds(term) for term in values]
    if values and None not in seconds:
        return length(sum((each for each in seconds if each is not None), Fraction(0)))
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
