"""Runs in tables against the host's: many instants at once, however they are cut and restored, give what instant by
instant gives.
"""

import json
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.aggregation.operator import AT_LAST
from engine.aggregation.row_batch import Moments, Passage, RowBatch, no_rows, rows_of
from engine.aggregation.runs import RunCollector, RunShape
from engine.dictionary.term_dictionary import TermTable
from engine.expressions.nondeterministic import Naming
from engine.kernel.state import layout as c
from engine.messages import NODE_NAMES
from engine.pattern_scope import variables_of
from epsparql import algebra as a
from epsparql.algebra import Aggregate, AggregateFunction, RunReport, RunWindow
from epsparql.terms import XSD, Literal, Variable
from tests.engine.aggregation.harness import G, K, V, rows, shown

PREVIOUS = Variable("_:prev#0")
READS = (G, K, V)  # G: whether a timeless solution of UNTIL breaks the link
Cells = tuple[str, str, str]
Report = tuple[int, int, int, tuple[str, ...]]
"""An entry, start, end and the values."""

RISES = a.Compare(a.Comparison.GREATER, a.Var(V), a.Var(PREVIOUS))
NEAR = a.Compare(a.Comparison.LESS, a.Var(V), a.Arithmetic(a.Operator.ADD, a.Var(PREVIOUS), a.Constant(Literal("1.5", XSD + "decimal"))))
SAME = a.Or(a.Compare(a.Comparison.EQUAL, a.Var(V), a.Var(PREVIOUS)), a.Not(RISES))
PLAIN: list[a.Expression | None] = [None, RISES, NEAR, SAME]
GROWN = {name: Variable(f"_:run#{k}") for k, name in enumerate(("COUNT *", "COUNT", "SUM", "AVG", "MIN", "MAX", "FIRST", "LAST"))}
"""Aggregates of WHILE, by the hidden variables that stand for them."""
LIMITS = [a.Constant(Literal(text, XSD + kind)) for text, kind in (("2", "integer"), ("3.5", "decimal"), ("1.0", "decimal"), ("4e0", "double"))]


def grown_conditions() -> st.SearchStrategy[a.Expression]:
    """Comparisons with aggregates of the run: limits, spreads, and an element against its run."""
    aggregates = st.sampled_from([a.Var(variable) for variable in GROWN.values()])
    spread = st.builds(
        a.Arithmetic, st.sampled_from((a.Operator.SUBTRACT, a.Operator.ADD, a.Operator.MULTIPLY)), aggregates, aggregates | st.just(a.Var(V))
    )
    others = st.sampled_from((*LIMITS, a.Var(V), a.Var(PREVIOUS)))
    compared: st.SearchStrategy[a.Expression] = st.builds(a.Compare, st.sampled_from(a.Comparison), aggregates | spread, others)
    return st.one_of(compared, compared, st.builds(a.Or, compared, st.just(a.Bound(PREVIOUS))), st.builds(a.And, compared, st.just(a.Not(RISES))))


NATIVE = ("COUNT *", "COUNT", "SUM", "AVG", "MIN", "MAX", "FIRST", "LAST", "SAMPLE")


def terms_of() -> st.SearchStrategy[str]:
    """Numbers that are near each other, other terms, and now and then one that no table takes."""
    usual = st.sampled_from(("0", "1", "2", "3", "1.0", "1.5", "2e0", "0.5e0", "?", "x"))
    return st.one_of(usual, usual, usual, usual, st.sampled_from(("'1.5'^float", "'z'", "9223372036854775807")))


@dataclass(frozen=True)
class Instant:
    """Holds the elements of one instant with their starts, and the starts and keys of UNTIL's solutions."""

    now: int
    elements: tuple[tuple[int, Cells], ...]
    wakes: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Feed:
    instants: tuple[Instant, ...]
    last: int  # the number of the last instant of the streams; what comes after it, timers bring

    @property
    def ends(self) -> list[int]:
        return [*(instant.now for instant in self.instants), c.FOREVER]

    @property
    def horizon(self) -> int:
        return self.instants[self.last].now


@st.composite
def feeds(draw: st.DrawFn) -> Feed:
    keys, lengths, marks = st.sampled_from(("a", "a", "b", "?")), st.integers(0, 3), st.sampled_from(("?", "?", "?", "true"))
    now, instants = 0, []
    for _ in range(draw(st.integers(1, 14))):
        now += draw(st.sampled_from((1, 1, 2, 3, 7)))
        elements = draw(st.lists(st.tuples(lengths, st.tuples(marks, keys, terms_of())), max_size=3, unique=True))
        wakes = draw(st.lists(st.tuples(lengths, keys), max_size=1))
        instants.append(Instant(now, tuple((now - length, cells) for length, cells in elements), tuple((now - length, key) for length, key in wakes)))
    return Feed(tuple(instants), draw(st.integers(max(0, len(instants) - 3), len(instants) - 1)))


@st.composite
def shapes(draw: st.DrawFn) -> RunShape:
    functions = draw(st.lists(st.sampled_from(NATIVE), min_size=1, max_size=4))
    aggregates = tuple((Variable(f"_:agg#{k}"), _aggregate(name)) for k, name in enumerate(functions))
    parts = st.one_of(st.none(), st.sampled_from((1, 2, 3)))
    condition = draw(st.sampled_from(PLAIN)) if draw(st.booleans()) else draw(grown_conditions())
    looked_at = frozenset() if condition is None else variables_of(condition)
    window = RunWindow(
        condition,
        () if condition is None else ((PREVIOUS, a.Var(V)),),
        tuple((variable, _aggregate(name)) for name, variable in GROWN.items() if variable in looked_at),
        gap=draw(parts),
        within=draw(st.one_of(parts, st.just(0))),
        report=draw(st.sampled_from(RunReport)),
    )
    return RunShape((K,), aggregates, window, G, certain=False)


def _aggregate(name: str) -> Aggregate:
    function, *rest = name.split()
    return Aggregate(AggregateFunction(function), None if rest else a.Var(V), False)


def collector(shape: RunShape, deferred: bool) -> RunCollector:
    made = RunCollector(shape, READS, (K, V), Naming("q", NODE_NAMES))
    assert not deferred or made.defer()
    return made


def batches(instant: Instant, terms: TermTable) -> tuple[RowBatch, RowBatch]:
    elements = rows([((start, instant.now), list(cells)) for start, cells in instant.elements], 3, terms)
    wakes = rows([((start, instant.now), ["?", key, "?"]) for start, key in instant.wakes], 3, terms)
    return elements, wakes


def host_reports(shape: RunShape, feed: Feed) -> Counter[Report]:
    """Call the host's collector at each instant and deadline; an entry is the first column of the feed after an
    instant.
    """
    made, terms, found, none = collector(shape, False), TermTable(), Counter[Report](), no_rows(3)

    def call(now: int, elements: RowBatch, wakes: RowBatch, horizon: int | None) -> None:
        given = made.decide(now, elements, wakes, horizon, terms)
        entry = next(k for k, end in enumerate(feed.ends) if end > now)
        _note(found, np.full(len(given), entry), given, terms)

    def pass_deadlines(until: int, horizon: int | None) -> None:
        while True:
            due = made.due()
            due = (c.FOREVER if horizon is None else horizon) if due == AT_LAST else due
            if due >= until:
                return
            call(due, none, none, horizon)

    for k, instant in enumerate(feed.instants):
        horizon = feed.horizon if k >= feed.last else None
        pass_deadlines(instant.now, horizon)
        call(instant.now, *batches(instant, terms), horizon)
    pass_deadlines(c.FOREVER, feed.horizon)
    return found


def deferred_reports(shape: RunShape, feed: Feed, cuts: list[int], restored: bool, native: bool = True) -> Counter[Report]:
    """Let a deferred collector decide, the columns of the feed cut before each of `cuts`."""
    made, terms, found = collector(shape, native), TermTable(), Counter[Report]()
    edges = [0, *cuts, len(feed.ends)]
    for first, after in pairwise(edges):
        closed = range(max(first - 1, 0), after - 1)
        given = [
            (feed.instants[k].now, k + 1, side, part)
            for k in closed
            for side, part in zip((c.LEFT, c.BLOCKER), batches(feed.instants[k], terms), strict=True)
        ]
        passage = Passage(np.array(feed.ends[first:after], np.int64), np.arange(first, after))
        horizon = feed.horizon if after - 1 > feed.last else None
        if not any(len(part) for *_, part in given):
            due = made.due()
            due = (c.FOREVER if horizon is None else horizon) if due == AT_LAST else due
            if due >= feed.ends[after - 1]:
                continue  # nobody asks
            entry = next(k for k, end in enumerate(feed.ends) if end > due)
            given = [(due, entry, c.RIGHT, rows_of([c.BIG], [-c.BIG], [[0] * 3], 3))]
        reports = made.decide_all(_moments(given), passage, horizon, terms)
        _note(found, reports.entry, reports.rows, terms)
        if made.closing and not made.shape.lasting:
            assert made.due() >= feed.ends[after - 1]
        if restored:
            state, tables = json.loads(json.dumps(made.state())), {name: array.copy() for name, array in made.tables().items()}
            made = collector(shape, True)  # which goes on as the host's collector with the state of one
            made.restore(state)
            made.restore_tables(tables)
    return found


def _moments(given: list[tuple[int, int, int, RowBatch]]) -> Moments:
    def column(k: int) -> np.ndarray:
        return np.concatenate([np.zeros(0, np.int64), *(np.full(len(each[3]), each[k], np.int64) for each in given)])

    parts = [rows_of([], [], [], 3), *(part for *_, part in given)]
    start, end, cells = (np.concatenate([getattr(part, name) for part in parts]) for name in ("start", "end", "cells"))
    return Moments(column(0), column(1), column(2), RowBatch(start, end, cells))


def _note(found: Counter[Report], entries: np.ndarray, given: RowBatch, terms: TermTable) -> None:
    for entry, start, end, cells in zip(entries.tolist(), given.start.tolist(), given.end.tolist(), given.cells.tolist(), strict=True):
        found[entry, start, end, tuple(shown(n, terms) for n in cells)] += 1


@given(shapes(), feeds(), st.booleans(), st.data())
def test_runs_in_tables_are_those_of_the_host(shape: RunShape, feed: Feed, restored: bool, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, len(feed.instants)), max_size=3)))
    expected = host_reports(shape, feed)
    assert deferred_reports(shape, feed, cuts, restored) == expected
    assert deferred_reports(shape, feed, cuts, restored, native=False) == expected


@pytest.mark.parametrize("report", RunReport)
@pytest.mark.parametrize(("gap", "within"), [(2, None), (None, 30), (2, 30)])
def test_many_runs_need_more_room_than_their_feeds_bring(report: RunReport, gap: int | None, within: int | None) -> None:
    """All open runs end before the one element that comes at last."""
    instants = [Instant(k // 4, tuple((k // 4 - k % 3, ("?", f"s{k + j}", "1")) for j in range(4)), ()) for k in range(0, 400, 4)]
    instants.append(Instant(1_000, ((1_000, ("?", "s0", "1")),), ((900, "?"),)))
    aggregates = ((Variable("n"), Aggregate(AggregateFunction.SUM, a.Var(V), False)),)
    shape = RunShape((K,), aggregates, RunWindow(gap=gap, within=within, report=report), G, certain=False)
    feed = Feed(tuple(instants), len(instants) - 1)
    expected = host_reports(shape, feed)
    for cuts in ([], [len(instants) - 1], list(range(1, len(instants)))):
        assert deferred_reports(shape, feed, cuts, True) == expected
    assert expected.total() == 401


def test_a_group_without_open_run_leaves_nothing() -> None:
    shape = RunShape((K,), ((Variable("n"), _aggregate("COUNT *")),), RunWindow(gap=2, report=RunReport.CLOSED), G, certain=False)
    made, terms = collector(shape, True), TermTable()
    for k in range(0, 3_000, 3):
        given = [(k, k, c.LEFT, rows([((k, k), ["?", f"s{k}", "1"])], 3, terms))]
        made.decide_all(_moments(given), Passage(np.array([k + 3]), np.array([k + 3])), None, terms)
    assert made.size() == 0
    assert all(len(table) <= 128 for table in made.tables().values())


# ---------------------------------------------------------------- WHILE
VALUES = (
    "0",
    "1",
    "1.0",
    "2",
    "0.1",
    "0.1e0",
    "3e0",
    "NaN",
    "INF",
    "'1.5'^float",
    "9007199254740993",
    "9007199254740992e0",
    "x",
    "'z'",
    "'1'",
    "true",
    "?",
)
X, Y = a.Var(V), a.Var(PREVIOUS)
COMPARED = tuple(product(a.Comparison, ((X, Y), (X, a.Constant(Literal("1", XSD + "integer"))), (a.Constant(Literal("z")), Y))))


def operands() -> st.SearchStrategy[a.Expression]:
    plain: st.SearchStrategy[a.Expression] = st.sampled_from(
        (X, Y, a.Constant(Literal("0.1", XSD + "decimal")), a.Constant(Literal("3", XSD + "integer")))
    )
    operators = st.sampled_from((a.Operator.ADD, a.Operator.SUBTRACT, a.Operator.MULTIPLY, a.Operator.DIVIDE))
    return st.recursive(plain, lambda inner: st.builds(a.Arithmetic, operators, inner, inner), max_leaves=4)


def conditions() -> st.SearchStrategy[a.Expression]:
    compared = st.builds(a.Compare, st.sampled_from(a.Comparison), operands(), operands())
    parts: st.SearchStrategy[a.Expression] = st.one_of(compared, st.just(a.Bound(PREVIOUS)))
    return st.recursive(
        parts,
        lambda inner: st.one_of(st.builds(a.And, inner, inner), st.builds(a.Or, inner, inner), st.builds(a.Not, inner)),
        max_leaves=4,
    )


def check_condition(condition: a.Expression) -> None:
    """Each group has two elements with one pair of values; the second continues the run, or begins another."""
    pairs = list(enumerate(product(VALUES, VALUES)))
    instants = [Instant(now, tuple((now, ("?", f"k{k}", pair[now])) for k, pair in pairs), ()) for now in (0, 1)]
    window = RunWindow(condition, ((PREVIOUS, a.Var(V)),))
    shape, feed = RunShape((K,), ((Variable("n"), _aggregate("COUNT *")),), window, G, certain=True), Feed(tuple(instants), 1)
    assert deferred_reports(shape, feed, [], False) == host_reports(shape, feed)


@pytest.mark.parametrize("compared", COMPARED, ids=str)
def test_a_comparison_is_what_the_expression_says(compared: tuple[a.Comparison, tuple[a.Expression, a.Expression]]) -> None:
    op, (left, right) = compared
    check_condition(a.Compare(op, left, right))


@given(conditions())
def test_a_condition_is_what_the_expression_says(condition: a.Expression) -> None:
    check_condition(condition)
