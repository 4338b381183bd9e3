"""This module derives reports of a group: what its aggregates are over, worked out by the set functions that running
queries have.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from engine.aggregation.set_functions import accumulator
from engine.aggregation.term_values import TermValues, Value
from engine.dictionary.term_dictionary import TermTable
from engine.kernel.state import layout as c
from engine.messages import Micros
from engine.provenance.model import Members, Proof
from engine.provenance.runs import RunReports, ValueOf
from engine.rewrite.rename_hidden import is_seen
from epsparql import algebra as a
from epsparql.terms import Term, Variable

SHOWN = 100
"""At most this many members of a group are told one by one."""
AbsentOf = Callable[[Mapping[Variable, Term]], Sequence[Proof]]
"""The function gives the solutions of a run's UNTIL that agree with a group's key."""


def reports(group: a.Group, solutions: Iterator[Proof], value_of: ValueOf, t0: Micros, asked: Micros, absent: AbsentOf) -> Iterator[Proof]:
    """Yield the reports of each group up to the instant `asked`, the latest first.

    `solutions` are those of its pattern up to there; `absent` gives those of a run's UNTIL that agree with a key.
    """
    members: dict[tuple[Term | None, ...], dict[object, Proof]] = {} if group.keys else {(): {}}
    for x in solutions:
        key = tuple(x.bindings.get(v) for v in group.keys)
        members.setdefault(key, {}).setdefault((frozenset(x.bindings.items()), x.start, x.end), x)
    for key, found in members.items():
        bound = {v: term for v, term in zip(group.keys, key, strict=True) if term is not None}
        ordered = sorted(found.values(), key=lambda x: _order_key(x, t0))
        if isinstance(group.window, a.RunWindow):
            runs = RunReports(group.window, absent(bound), value_of, t0, asked)
            for inside, instant in sorted(runs.list_reports(ordered), key=lambda report: -report[1]):
                yield _reported(group, bound, inside, min(t0 if x.start is None else x.start for x in inside), instant, value_of)
            continue
        for instant in sorted(_instants(group, [_end_of(x, t0) for x in ordered], asked), reverse=True):
            inside = _within(group, ordered, t0, instant)
            if inside or not group.keys:
                start = min((t0 if x.start is None else x.start for x in inside), default=instant)
                if isinstance(group.window, a.RangeWindow) and group.window.step is not None:
                    start = instant - group.window.length
                yield _reported(group, bound, inside, start, instant, value_of)


def _reported(group: a.Group, bound: Mapping[Variable, Term], inside: Sequence[Proof], start: Micros, end: Micros, value_of: ValueOf) -> Proof:
    return Proof({**bound, **_totals(group, inside, value_of)}, start, end, (Members(len(inside), tuple(inside[:SHOWN])),))


def _end_of(x: Proof, t0: Micros) -> Micros:
    return t0 if x.end is None else x.end


def _order_key(x: Proof, t0: Micros) -> tuple[Micros, Micros, list[tuple[str, str]]]:
    return _end_of(x, t0), t0 if x.start is None else x.start, sorted((v.name, str(term)) for v, term in x.bindings.items())


def _instants(group: a.Group, ends: Sequence[Micros], asked: Micros) -> set[Micros]:
    """Return when the group is reported: where it gains a solution, or at the steps of its window; `asked` is among
    them if it may be.
    """
    if isinstance(group.window, a.RangeWindow) and group.window.step is not None:
        step = group.window.step
        return {t for end in ends for t in range(-(-end // step) * step, min(end + group.window.length - 1, asked) + 1, step)}
    return {*ends, *(() if group.keys or ends else (asked,))}


def _within(group: a.Group, ordered: Sequence[Proof], t0: Micros, instant: Micros) -> list[Proof]:
    inside = [x for x in ordered if _end_of(x, t0) <= instant]
    match group.window:
        case a.RangeWindow(length):
            return [x for x in inside if _end_of(x, t0) > instant - length]
        case a.RowsWindow(count):
            return inside[-count:]
        case None:
            return inside
        case a.RunWindow():
            raise AssertionError("a run reports by itself")


def _totals(group: a.Group, inside: Sequence[Proof], value_of: ValueOf) -> dict[Variable, Term]:
    terms, worth = TermTable(), TermValues()
    worth.over(terms)
    totals: dict[Variable, Term] = {}
    for variable, aggregate in group.aggregates:
        held = accumulator(aggregate, sliding=False)
        values = [_aggregate_value(aggregate, x, value_of, terms) for x in inside]
        for value in values:
            held.add(value, worth)
        term = terms.term(held.result(aggregate.function, values, worth))
        if term is not None:
            totals[variable] = term
    return totals


def _aggregate_value(aggregate: a.Aggregate, x: Proof, value_of: ValueOf, terms: TermTable) -> Value:
    if aggregate.argument is None:
        return tuple(terms.intern(f"{v.name}\n{term}") for v, term in sorted(x.bindings.items(), key=lambda each: each[0].name) if is_seen(v))
    term = value_of(aggregate.argument, x)
    return c.UNBOUND if term is None else terms.intern(str(term))
