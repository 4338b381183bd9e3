"""WHILE without aggregates is decided for many elements at once: in float64 with error bounds where that is certain, else by the expression itself.

The bounds are those of the kernel's filters (engine/kernel/operators/filter.py).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.aggregation.arguments import Argument
from engine.aggregation.row_batch import Ints, RowBatch
from engine.dictionary.float_bounds import approximation
from engine.dictionary.term_dictionary import LITERAL, TermTable
from engine.expressions.literals import TRUE as TRUE_LITERAL
from engine.kernel.state.layout import ERROR, EXACT, FALSE, TINY, TRUE, ULP, UNBOUND, UNSURE
from engine.pattern_scope import list_subexpressions
from epsparql import algebra as a
from epsparql.terms import Literal

Floats = NDArray[np.float64]
Verdicts = NDArray[np.int64]
_MOST_PARTS = 48  # of a condition that is looked into, as of a filter
_COMPARISONS: dict[a.Comparison, Callable[[Floats, Floats], NDArray[np.bool_]]] = {
    a.Comparison.EQUAL: np.equal,
    a.Comparison.UNEQUAL: np.not_equal,
    a.Comparison.LESS: np.less,
    a.Comparison.LESS_OR_EQUAL: np.less_equal,
    a.Comparison.GREATER: np.greater,
    a.Comparison.GREATER_OR_EQUAL: np.greater_equal,
}


def decide_condition(condition: a.Expression, exact: Argument, rows: RowBatch, now: Ints, terms: TermTable) -> NDArray[np.bool_]:
    """Return where a condition is true; `exact` has its value by itself, over the columns of `rows`."""
    verdicts = np.full(len(rows), UNSURE)
    if len(list_subexpressions(condition)) <= _MOST_PARTS:
        with np.errstate(all="ignore"):  # an operand without bound is beyond float64
            verdicts = _Columns(exact, rows, terms).decide(condition)
    true = terms.intern(str(TRUE_LITERAL))
    for k in np.flatnonzero(verdicts == UNSURE).tolist():
        number = exact.evaluate_row(rows.cells[k].tolist(), int(rows.start[k]), int(rows.end[k]), int(now[k]), terms)
        verdicts[k] = TRUE if number == true else FALSE
    found: NDArray[np.bool_] = verdicts == TRUE
    return found


@dataclass(frozen=True, slots=True)
class _Columns:
    """Decides parts of a condition over rows; a verdict is TRUE, FALSE, ERROR or UNSURE."""

    exact: Argument
    rows: RowBatch
    terms: TermTable

    def decide(self, e: a.Expression) -> Verdicts:
        match e:
            case a.And(left, right):
                return _combined(FALSE, self.decide(left), self.decide(right))
            case a.Or(left, right):
                return _combined(TRUE, self.decide(left), self.decide(right))
            case a.Not(operand):
                verdict = self.decide(operand)
                return np.where(verdict <= TRUE, 1 - verdict, verdict)
            case a.Compare(a.Comparison.EQUAL | a.Comparison.UNEQUAL as op, left, right):
                return self._decide_equality(op, left, right)
            case a.Compare(op, left, right):
                return self._compare(op, left, right)
            case _:
                return np.full(len(self.rows), UNSURE)

    def _compare(self, op: a.Comparison, left: a.Expression, right: a.Expression) -> Verdicts:
        """Compare numbers, where their error bounds allow it. A nan bound is an unbound operand."""
        one, other = self._approximate(left), self._approximate(right)
        if one is None or other is None:
            return np.full(len(self.rows), UNSURE)
        (x, slack_x), (y, slack_y) = one, other
        slack = slack_x + slack_y
        verdict = np.where(_COMPARISONS[op](x, y), TRUE, FALSE)
        verdict[(slack != 0.0) & ~(np.abs(x - y) > slack)] = UNSURE
        verdict[np.isnan(slack)] = ERROR
        return verdict

    def _decide_equality(self, op: a.Comparison, left: a.Expression, right: a.Expression) -> Verdicts:
        """Decide by what terms are, unless both are literals with values; then by the numbers that they stand for, if they stand for any."""
        compared = self._compare(op, left, right)
        one, other = self._read_terms(left), self._read_terms(right)
        if one is None or other is None:
            return compared
        kinds = self.terms.kinds
        valued = (kinds[one] >= LITERAL) & (kinds[other] >= LITERAL) & ((kinds[one] == LITERAL) | (kinds[other] == LITERAL))
        verdict = np.where((one == other) == (op is a.Comparison.EQUAL), TRUE, FALSE)
        verdict[valued] = compared[valued]
        verdict[(one == UNBOUND) | (other == UNBOUND)] = ERROR
        return verdict

    def _read_terms(self, e: a.Expression) -> Ints | None:
        """Return the numbers of terms; None if the expression is none."""
        match e:
            case a.Var(variable) if variable in self.exact.columns:
                return self.rows.cells[:, self.exact.columns[variable]]
            case a.Constant(term):
                return np.full(len(self.rows), self.terms.intern(str(term)))
            case _:
                return None

    def _approximate(self, e: a.Expression) -> tuple[Floats, Floats] | None:
        """Return values and their error bounds; None if the expression has none that are known."""
        match e:
            case a.Var():
                column = self._read_terms(e)
                found = None if column is None else self.terms.numbers[column]
                return None if found is None else (found[:, 0], found[:, 1])
            case a.Constant(Literal() as literal):
                value, slack = approximation(str(literal))
                return np.full(len(self.rows), value), np.full(len(self.rows), slack)
            case a.Arithmetic(a.Operator.ADD | a.Operator.SUBTRACT | a.Operator.MULTIPLY as op, left, right):
                one, other = self._approximate(left), self._approximate(right)
                return None if one is None or other is None else _calculated(op, *one, *other)
            case _:
                return None


def _combined(dominant: int, x: Verdicts, y: Verdicts) -> Verdicts:
    """Return AND (dominant FALSE) or OR (dominant TRUE) of SPARQL's logic, with UNSURE above ERROR."""
    rest = np.where((x == ERROR) | (y == ERROR), ERROR, 1 - dominant)
    rest = np.where((x == UNSURE) | (y == UNSURE), UNSURE, rest)
    return np.where((x == dominant) | (y == dominant), dominant, rest)


def _calculated(op: a.Operator, x: Floats, slack_x: Floats, y: Floats, slack_y: Floats) -> tuple[Floats, Floats]:
    slack = slack_x + slack_y
    if op is a.Operator.MULTIPLY:
        product = x * y
        whole = (slack_x == 0.0) & (slack_y == 0.0) & (np.abs(product) < EXACT) & (x == np.floor(x)) & (y == np.floor(y))
        bound = np.abs(x) * slack_y + np.abs(y) * slack_x + slack_x * slack_y + np.abs(product) * ULP + TINY
        return product, np.where(whole, 0.0, _bounded(product, slack, bound))
    if op is a.Operator.SUBTRACT:
        y = -y
    total = x + y
    part = total - x
    error = (x - (total - part)) + (y - part)  # Knuth's two-sum
    return total, np.where(error == 0.0, slack, _bounded(total, slack, slack + np.abs(total) * ULP))


def _bounded(result: Floats, operands: Floats, bound: Floats) -> Floats:
    """Return the bound of a result: nan if an operand is unbound, inf where the result or its bound is beyond float64."""
    found = np.where(np.isfinite(result) & np.isfinite(bound), bound, np.inf)
    return np.where(np.isnan(operands), np.nan, found)
