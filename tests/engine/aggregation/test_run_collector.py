"""These tests bound what open runs keep. Their answers are compared in tests/engine/semantics."""

import pytest

from engine.aggregation.row_batch import no_rows
from engine.aggregation.runs.open_run import RunShape
from engine.aggregation.runs.run_collector import RunCollector
from engine.dictionary.term_dictionary import TermTable
from engine.kernel.state.layout import FOREVER
from epsparql.algebra import Aggregate, AggregateFunction, RunReport, RunWindow
from epsparql.terms import Variable
from tests.engine.aggregation.harness import G, K, rows

N = 5_000


def runs(window: RunWindow, broken: bool = False) -> RunCollector:
    shape = RunShape((K,), ((Variable("n"), Aggregate(AggregateFunction.COUNT, None, False)),), window, G if broken else None, True)
    return RunCollector(shape, (K, G), (K,))


@pytest.mark.parametrize("report", RunReport)
def test_one_run_has_few_deadlines_however_often_its_deadline_moves_forward(report: RunReport) -> None:
    """Each element starts before all others, so WITHIN ends the run earlier each time."""
    collector, terms, most = runs(RunWindow(within=10 * N, report=report)), TermTable(), 0
    for k in range(N):
        collector.decide(2 * N + k, rows([((2 * N - k, 2 * N + k), ["a", "?"])], 2, terms), no_rows(2), None, terms)
        most = max(most, len(collector._deadlines))
    assert most < 100
    if report is RunReport.CLOSED:
        assert collector.due() == 2 * N - (N - 1) + 10 * N
        (row,) = collector.decide(collector.due(), no_rows(2), no_rows(2), None, terms).cells.tolist()
        assert str(terms.term(row[1])).startswith(f'"{N}"')


@pytest.mark.parametrize("report", RunReport)
def test_runs_that_end_before_their_deadline_leave_few_entries(report: RunReport) -> None:
    """Each element begins a run of its own, whose deadline is far ahead."""
    collector, terms, most = runs(RunWindow(gap=10 * N, report=report), broken=True), TermTable(), 0
    for k in range(N):
        collector.decide(k, rows([((k, k), ["a", "true"])], 2, terms), no_rows(2), None, terms)
        most = max(most, len(collector._deadlines))
    assert most < 100
    assert collector.due() == (N - 1 + 10 * N if report is RunReport.CLOSED else FOREVER)
