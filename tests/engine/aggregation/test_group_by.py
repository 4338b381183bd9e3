"""Groups by themselves: tables with answers derived by hand from semantics.md section 7, and the definition as the
reference evaluator has it.
"""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.aggregation import Collector, GroupCollector, RowBatch
from engine.aggregation.native_group_by import fits
from engine.aggregation.row_batch import no_rows
from engine.aggregation.set_functions import folding
from engine.dictionary.term_dictionary import TermTable
from engine.expressions.nondeterministic import Naming
from engine.kernel.state import layout as c
from epsparql import algebra as a
from epsparql.algebra import Aggregate, AggregateFunction, RangeWindow, RowsWindow
from epsparql.terms import Variable
from tests.engine.aggregation.harness import G, Host, K, Later, V, W, grouping, rows, run, shown, solutions, term
from verification.definitions.groups import reports
from verification.definitions.model import Solution

EVER = [
    ("COUNT", "a 1@1, a 2@2, b 5@2, a ?@3", "a 1@1-1, a 2@1-2, b 1@2-2, a 2@1-3"),
    ("COUNT *", "a 1@1, a ?@2", "a 1@1-1, a 2@1-2"),
    ("COUNT DISTINCT", "a 1@1, a 1@2, a 2@3", "a 1@1-1, a 1@1-2, a 2@1-3"),
    ("COUNT DISTINCT *", "a 1@1, a 1@2, a 2@3, a ?@4", "a 1@1-1, a 1@1-2, a 2@1-3, a 3@1-4"),
    ("SUM", "a 1@1, a 2.5@2, a 1e0@3, a 1@4", "a 1@1-1, a 3.5@1-2, a 4.5E0@1-3, a 5.5E0@1-4"),
    ("SUM", "a 1@1, a x@2, a 1@3", "a 1@1-1, a ?@1-2, a ?@1-3"),
    ("SUM", "a 0.1@1, a 0.2@2", "a 0.1@1-1, a 0.3@1-2"),
    ("SUM", "a 0.1e0@1, a 0.2e0@1, a 0.3e0@1", "a 6.0E-1@1-1"),  # exact, and rounded once: not (0.1 + 0.2) + 0.3
    ("SUM", "a 1e0@1, a 1e100@2, a -1e100@3", "a 1.0E0@1-1, a 1.0E100@1-2, a 1.0E0@1-3"),
    ("SUM", "a 1e308@1, a 1.1e308@2, a -1e308@3", "a 1.0E308@1-1, a INF@1-2, a 1.1E308@1-3"),
    ("SUM", "a INF@1, a 1@2, a '-INF'^double@3", "a INF@1-1, a INF@1-2, a NaN@1-3"),
    ("SUM", "a '-0.0'^double@1, a '-0.0'^double@2", "a 0.0E0@1-1, a 0.0E0@1-2"),
    ("SUM", "a 0.1@1, a 1e0@2, a 4.9e-324@3", "a 0.1@1-1, a 1.1E0@1-2, a 1.1E0@1-3"),
    ("SUM", "a '1.5'^float@1, a 16777216@2, a 1e0@3", "a '1.5E0'@1-1, a '1.6777218E7'@1-2, a 1.67772185E7@1-3"),
    (
        "SUM",
        "a 9223372036854775807@1, a 9223372036854775807@2, a 0.5@3",
        "a 9223372036854775807@1-1, a 18446744073709551614@1-2, a 18446744073709551614.5@1-3",
    ),
    ("SUM DISTINCT", "a 1@1, a 1@2, a 1.0@3", "a 1@1-1, a 1@1-2, a 2.0@1-3"),
    ("AVG", "a 1@1, a 2@2, a 2@3", "a 1.0@1-1, a 1.5@1-2, a 1.666666666666666666666666666666667@1-3"),
    ("AVG", "a 1e0@1, a 2@2, a ?@3", "a 1.0E0@1-1, a 1.5E0@1-2, a ?@1-3"),
    ("AVG DISTINCT", "a 1@1, a 1@2, a 4@3", "a 1.0@1-1, a 1.0@1-2, a 2.5@1-3"),
    ("MIN", "a 3@1, a 1.0@2, a 1@3, a ?@4, a x@5", "a 3@1-1, a 1.0@1-2, a 1.0@1-3, a 1.0@1-4, a x@1-5"),
    ("MAX", "a 3@1, a 'z'@2, a 7@3", "a 3@1-1, a 'z'@1-2, a 'z'@1-3"),
    ("SAMPLE", "a ?@1, a 2@2, a 1@2, a 0@3", "a ?@1-1, a 1@1-2, a 1@1-3"),
    ("GROUP_CONCAT", "a 'x'@1, a 'y'@en@2, a 1@3, a i@4", "a 'x'@1-1, a 'x|y'@1-2, a 'x|y|1'@1-3, a 'x|y|1|i'@1-4"),
    ("GROUP_CONCAT", "a 'x'@1, a _:b@2, a 'x'@3", "a 'x'@1-1, a ?@1-2, a ?@1-3"),
    ("GROUP_CONCAT DISTINCT", "a 'x'@1, a 'y'@2, a 'x'@3", "a 'x'@1-1, a 'x|y'@1-2, a 'x|y'@1-3"),
    ("COUNT,SUM", "a 1@0-3, a 2@2-3, a 2@1-3, ? 1@4", "a 3 5@0-3, ? 1 1@4-4"),
    ("COUNT", "a 1@, a 2@0, a 3@-5-0", "a 3@-5-0"),  # a timeless solution stands where it is given
    ("COUNT", "a 1@, a 1@0", "a 1@0-0"),  # where an equal timed solution is the same one
]


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(("aggregates", "feed", "found"), EVER)
def test_groups_without_window(aggregates: str, feed: str, found: str, cut: bool) -> None:
    assert run(grouping(aggregates, None), feed, cut) == found.split(", ")
    assert sorted(Later(grouping(aggregates, None), [1], cut).run(feed, {}, True)) == sorted(found.split(", "))


RANGE = [
    ("COUNT", "a 1@1, a 2@5, a 3@11, a 4@15", "a 1@1-1, a 2@1-5, a 2@5-11, a 2@11-15"),  # (t - 10, t]
    ("COUNT", "a 1@1, b 2@20, a 3@21", "a 1@1-1, b 1@20-20, a 1@21-21"),
    ("COUNT *", "a 1@0-9, a 2@3-10, a 3@1-12, a 4@19, a 5@25", "a 1@0-9, a 2@0-10, a 3@0-12, a 3@1-19, a 2@19-25"),
    ("COUNT DISTINCT", "a 1@1, a 1@2, a 2@3, a 2@11, a 2@12", "a 1@1-1, a 1@1-2, a 2@1-3, a 2@2-11, a 1@3-12"),
    ("SUM", "a 1@1, a 2.5@2, a 3@11, a 4@12", "a 1@1-1, a 3.5@1-2, a 5.5@2-11, a 7@11-12"),
    ("SUM", "a 1@1, a x@2, a 3@11, a 4@12", "a 1@1-1, a ?@1-2, a ?@2-11, a 7@11-12"),
    ("SUM", "a 0.1e0@1, a 1e20@2, a -1e20@3, a 0.1@11, a 1@12", "a 1.0E-1@1-1, a 1.0E20@1-2, a 1.0E-1@1-3, a 1.0E-1@2-11, a -1.0E20@3-12"),
    ("SUM DISTINCT", "a 1@1, a 2@2, a 1@3, a 0@11, a 0@12, a 0@13", "a 1@1-1, a 3@1-2, a 3@1-3, a 3@2-11, a 1@3-12, a 0@11-13"),
    ("AVG", "a 1@1, a 2@5, a 6@11", "a 1.0@1-1, a 1.5@1-5, a 4.0@5-11"),
    ("AVG DISTINCT", "a 1e0@1, a 1e0@2, a 4e0@3, a 4e0@12", "a 1.0E0@1-1, a 1.0E0@1-2, a 2.5E0@1-3, a 4.0E0@3-12"),
    ("MIN", "a 1@1, a 3@2, a 2@3, a 1.0@4, a 5@11, a 6@14", "a 1@1-1, a 1@1-2, a 1@1-3, a 1@1-4, a 1.0@2-11, a 5@11-14"),
    ("MAX", "a 9@1, a 3@2, a 5@3, a ?@11, a 1@13", "a 9@1-1, a 9@1-2, a 9@1-3, a 5@2-11, a 1@11-13"),
    ("MAX DISTINCT", "a 9@1, a 3@2, a 9@3, a 3@11, a 2@12, a 2@13", "a 9@1-1, a 9@1-2, a 9@1-3, a 9@2-11, a 9@3-12, a 3@11-13"),
    ("SAMPLE", "a ?@1, a 2@2, a 1@3, a 1@12, a ?@24", "a ?@1-1, a 2@1-2, a 2@1-3, a 1@3-12, a ?@24-24"),
    ("SAMPLE DISTINCT", "a 2@1, a 1@2, a 2@3, a 1@11", "a 2@1-1, a 2@1-2, a 2@1-3, a 1@2-11"),
    ("GROUP_CONCAT", "a 'x'@1, a _:b@2, a 'y'@11, a 'z'@12", "a 'x'@1-1, a ?@1-2, a ?@2-11, a 'y|z'@11-12"),
    ("GROUP_CONCAT DISTINCT", "a 'x'@1, a 'y'@2, a 'x'@3, a 'z'@11", "a 'x'@1-1, a 'x|y'@1-2, a 'x|y'@1-3, a 'y|x|z'@2-11"),
]


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(("aggregates", "feed", "found"), RANGE)
def test_range(aggregates: str, feed: str, found: str, cut: bool) -> None:
    assert run(grouping(aggregates, RangeWindow(10)), feed, cut) == found.split(", ")


ROWS = [
    (1, "COUNT,SAMPLE", "a 1@1, a 2@2, b 1@2", "a 1 1@1-1, a 1 2@2-2, b 1 1@2-2"),
    (2, "SUM", "a 1@0-1, a 2@2, b 9@3, a 3@3, a 4@3", "a 1@0-1, a 3@0-2, a 7@3-3, b 9@3-3"),
    (2, "GROUP_CONCAT", "a 3@5-9, a 1@6-9, a 2@5-9", "a '3|1'@5-9"),  # the last two by end, start, terms
    (3, "COUNT *", "a 1@1, a 2@1, a 3@1, a 4@1, a 5@2", "a 3@1-1, a 3@1-2"),
]


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(("count", "aggregates", "feed", "found"), ROWS)
def test_rows(count: int, aggregates: str, feed: str, found: str, cut: bool) -> None:
    assert run(grouping(aggregates, RowsWindow(count)), feed, cut) == found.split(", ")


STEP = [
    (10, 5, "COUNT", "a 1@1, a 2@5, b 3@6", "a 2@-5-5, a 2@0-10, b 1@0-10, b 1@5-15"),
    (10, 5, "SUM", "a 1@0, a 2@1", "a 1@-10-0, a 3@-5-5, a 2@0-10"),
    (4, 10, "COUNT", "a 1@3, a 2@6, a 3@7, b 4@20", "a 1@6-10, b 1@16-20"),  # what lies between the windows is never seen
    (10, 5, "COUNT", "a 1@-7, a 2@-5", "a 2@-15--5, a 2@-10-0"),
    (10, 5, "MAX", "a 1@", "a 1@-10-0, a 1@-5-5"),
    (10, 10, "COUNT", "a 1@0-2, a 2@1-30", "a 1@0-10, a 1@20-30"),
]


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(("length", "step", "aggregates", "feed", "found"), STEP)
def test_steps(length: int, step: int, aggregates: str, feed: str, found: str, cut: bool) -> None:
    assert run(grouping(aggregates, RangeWindow(length, step)), feed, cut) == found.split(", ")


def test_steps_wait_while_the_stream_runs() -> None:
    assert run(grouping("COUNT", RangeWindow(10, 5)), "a 1@1, a 2@5, b 3@6", False, finished=False) == ["a 2@-5-5"]


def test_what_timers_bring_after_the_end_schedules_nothing() -> None:
    collector, terms = grouping("COUNT", RangeWindow(10, 5))(), TermTable()
    none = no_rows(2)

    def decide(now: int, feed: str, horizon: int | None) -> int:
        return len(collector.decide(now, rows(solutions(feed), 2, terms) if feed else none, none, horizon, terms))

    assert decide(1, "a 1@1", None) == 0
    assert collector.due() == 5
    assert [decide(5, "", 3), collector.due()] == [1, 10]
    assert [decide(8, "b 1@1-8", 3), collector.due()] == [0, 10]
    assert [decide(10, "", 3), collector.due()] == [2, c.FOREVER]
    assert decide(15, "c 1@15", 3) == 0


ALL_OF_NOTHING = "COUNT,COUNT *,SUM,AVG,GROUP_CONCAT,MIN,MAX,SAMPLE,COUNT DISTINCT"
IMPLICIT = [
    (None, ALL_OF_NOTHING, "", "0 0 0 0 '' ? ? ? 0@0-0"),
    (RangeWindow(10), ALL_OF_NOTHING, "", "0 0 0 0 '' ? ? ? 0@0-0"),
    (RowsWindow(3), ALL_OF_NOTHING, "", "0 0 0 0 '' ? ? ? 0@0-0"),
    (None, "COUNT", "a 1@5, b 2@6", "0@0-0, 1@5-5, 2@5-6"),
    (None, "COUNT", "a 1@-3-0, b 2@6", "1@-3-0, 2@-3-6"),
    (None, "COUNT,SUM", "a 1@, b 2@6", "1 1@0-0, 2 3@0-6"),
    (RangeWindow(10), "COUNT", "a 1@5, b 2@20", "0@0-0, 1@5-5, 1@20-20"),
    (RowsWindow(1), "SUM", "a 1@5, b 2@20", "0@0-0, 1@5-5, 2@20-20"),
    (RangeWindow(10, 5), "COUNT", "a 1@3", "1@-5-5, 1@0-10"),
]


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(("window", "aggregates", "feed", "found"), IMPLICIT)
def test_the_implicit_group(window: RangeWindow | RowsWindow | None, aggregates: str, feed: str, found: str, cut: bool) -> None:
    assert run(grouping(aggregates, window, ()), feed, cut, {0: ["?"]}) == found.split(", ")


@pytest.mark.parametrize("cut", [False, True])
def test_each_graph_has_an_implicit_group(cut: bool) -> None:
    def make() -> Collector:
        return GroupCollector((G,), ((V, Aggregate(AggregateFunction.COUNT, None)),), None, (K, G), G)

    assert run(make, "a g@1, a g@3", cut, {0: ["h"], 1: ["g"], 2: ["i"]}) == ["h 0@0-0", "g 1@1-1", "i 0@2-2", "g 2@1-3"]


def test_wakes_are_not_for_groups_by_key() -> None:
    assert run(grouping("COUNT", None), "a 1@1", False, {0: ["?"]}) == ["a 1@1-1"]


def test_keys_and_arguments_that_nothing_binds() -> None:
    def make() -> Collector:
        return GroupCollector((W,), ((V, Aggregate(AggregateFunction.COUNT, a.Var(W))),), None, (K, V))

    assert run(make, "a 1@1, b 1@1", False) == ["? 0@1-1"]


def test_groups_without_aggregates() -> None:
    def make() -> Collector:
        return GroupCollector((K,), (), None, (K, V))

    assert run(make, "a 1@1, a 2@1, b 1@2", False) == ["a@1-1", "b@2-2"]


ARGUMENTS = [
    (a.Arithmetic(a.Operator.MULTIPLY, a.Var(V), a.Constant(term("2"))), "a 1@1, a 2@2", "a 2@1-1, a 6@1-2"),
    (a.Call("SECONDS", (a.Time(a.TimeFunction.END),)), "a 1@1000000, a 1@2000000", "a 1.0@1000000-1000000, a 3.0@1000000-2000000"),
    (a.Call("SECONDS", (a.Call("NOW", ()),)), "a 1@, a 1@2000000", "a 0.0@0-0, a 2.0@0-2000000"),
    (a.Call("SECONDS", (a.Time(a.TimeFunction.END),)), "a 1@, b 1@0, b 1@", "a ?@0-0, b 0.0@0-0"),  # a timeless solution has no times
]


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(("argument", "feed", "found"), ARGUMENTS)
def test_arguments(argument: a.Expression, feed: str, found: str, cut: bool) -> None:
    def make() -> Collector:
        return GroupCollector((K,), ((W, Aggregate(AggregateFunction.SUM, argument)),), None, (K, V))

    assert run(make, feed, cut) == found.split(", ")


def test_random_arguments_differ_by_solution_and_not_by_run() -> None:
    def make() -> Collector:
        return GroupCollector((K,), ((W, Aggregate(AggregateFunction.COUNT, a.Call("BNODE", ()), True)),), None, (K, V), naming=Naming("q", 1))

    assert run(make, "a 1@1, a 2@1, a 1@2", False) == ["a 2@1-1", "a 3@1-2"]

    def sample() -> Collector:
        return GroupCollector((K,), ((W, Aggregate(AggregateFunction.SAMPLE, a.Call("UUID", ()))),), None, (K, V), naming=Naming("q", 1))

    assert run(sample, "a 1@1", False) == run(sample, "a 1@1", True)


# ---------------------------------------------------------------- the definition, as the reference evaluator has it
ALL = tuple(
    (Variable(f"_:agg#{k}"), Aggregate(function, a.Var(V), distinct, "|"))
    for k, (function, distinct) in enumerate((function, distinct) for function in AggregateFunction for distinct in (False, True))
    if not distinct or function not in (AggregateFunction.FIRST, AggregateFunction.LAST)  # which the grammar refuses
)
WINDOWS = st.one_of(
    st.none(),
    st.builds(RowsWindow, st.integers(1, 4)),
    st.builds(RangeWindow, st.integers(1, 8)),
    st.builds(RangeWindow, st.integers(1, 8), st.integers(1, 5)),
)
VALUES = st.sampled_from(["?", "1", "2", "1.0", "0.5", "1.5e0", "0.1e0", "NaN", "x", "_:b", "'s'", "'PT1H'^duration"])
LENGTHS = st.sampled_from(["'PT1H'^duration", "'-PT0.5S'^dayTimeDuration", "'PT0.0000001S'^duration", "'PT7S'^duration", "'P1M'^duration", "1", "?"])
SOLUTIONS, DURATIONS = (
    st.lists(st.tuples(st.sampled_from("ab?"), values, st.integers(0, 5), st.integers(0, 12)), max_size=14) for values in (VALUES, LENGTHS)
)


NATIVE = tuple((variable, aggregate) for variable, aggregate in ALL if fits(folding([aggregate]).held))
WORTHS = st.one_of(
    VALUES,
    st.sampled_from(["-1", "01", "1e0", "-0.0e0", "2.50", "-0.125", "1e308", "-1e308", "4.9e-324", "INF", "'-INF'^double", "0.1e0", "1e16", "true"]),
    st.sampled_from(
        ["9007199254740993", "9007199254740992e0", "4611686018427387903", "4611686018427387904", "-4611686018427387903", "99999999999999999999"]
    ),
    st.sampled_from(
        ["0.1", "0.123456789012345678", "0.1234567890123456789", "1000000000000.5", "'1.5'^float", "'7'^int", "'2013-01-01T00:00:00Z'^dateTime"]
    ),
    st.integers(-(1 << 70), 1 << 70).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda x: f"'{x!r}'^double"),
)


@given(
    WINDOWS,
    st.sampled_from([(K,), ()]),
    st.lists(st.tuples(st.sampled_from("ab?"), WORTHS | LENGTHS, st.integers(0, 5), st.integers(0, 12)), max_size=14),
    st.lists(st.sampled_from(NATIVE), max_size=3),
    st.lists(st.integers(0, 4), max_size=3),
    st.booleans(),
)
def test_deferred_groups_report_the_same(
    window: RangeWindow | RowsWindow | None,
    keys: tuple[Variable, ...],
    rows_: list[tuple[str, str, int, int]],
    aggregates: list[tuple[Variable, Aggregate]],
    cuts: list[int],
    restored: bool,
) -> None:
    def make() -> Collector:
        return GroupCollector(keys, tuple(dict(aggregates).items()), window, (K, V))

    feed = ", ".join(sorted({f"{k} {v}@{end - length}-{end}" for k, v, length, end in rows_}, key=lambda text: int(text.rpartition("-")[2])))
    wakes = {} if keys else {0: ["?"]}
    assert sorted(Later(make, cuts, restored).run(feed, wakes, True)) == sorted(Host(make, False).run(feed, wakes, True))


@given(WINDOWS, st.sampled_from([(K,), ()]), SOLUTIONS | DURATIONS, st.booleans())
def test_groups_agree_with_the_definition(
    window: RangeWindow | RowsWindow | None, keys: tuple[Variable, ...], rows_: list[tuple[str, str, int, int]], cut: bool
) -> None:
    group = a.Group(a.Bgp(()), keys, ALL, window)
    feed = ", ".join(sorted({f"{k} {v}@{end - length}-{end}" for k, v, length, end in rows_}, key=lambda text: int(text.rpartition("-")[2])))
    host = Host(lambda: GroupCollector(keys, ALL, window, (K, V)), cut)
    host.run(feed, {} if keys else {0: ["?"]}, True)
    found = {oracle(cells, interval) for interval, cells in solutions(feed)} if feed else set()
    horizon = max((x.end for x in found if x.end is not None), default=0)
    expected = reports(group, found, 0, horizon, lambda e, x: x.lookup(e.variable) if isinstance(e, a.Var) else None)
    assert sorted(host.found) == sorted(written(x, (*keys, *(v for v, _ in ALL))) for x in expected)


def oracle(cells: list[str], interval: tuple[int, int] | None) -> Solution:
    start, end = interval or (None, None)
    return Solution(frozenset((v, term(text)) for v, text in zip((K, V), cells, strict=True) if text != "?"), start, end)


def written(x: Solution, variables: Sequence[Variable]) -> str:
    terms = TermTable()
    return " ".join(shown(terms.intern(str(x.lookup(v))) if x.lookup(v) else 0, terms) for v in variables) + f"@{x.start}-{x.end}"


def test_windows_forget_groups() -> None:
    collector, terms = GroupCollector((K,), ((W, Aggregate(AggregateFunction.COUNT, a.Var(V))),), RangeWindow(10), (K, V)), TermTable()
    cells = np.array([[terms.intern(f"<{n}>"), terms.intern('"1"')] for n in range(100)], np.int64)
    for n in range(100):
        at = np.array([n], np.int64)
        collector.decide(n, RowBatch(at, at, cells[n : n + 1]), no_rows(2), None, terms)
    kept = collector.state()
    assert isinstance(kept, list)
    assert len(kept[2]) == 10
