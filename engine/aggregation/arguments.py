"""Arguments of aggregates and comparators of ORDER BY are expressions over rows."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine.aggregation.row_batch import Ints, RowBatch
from engine.dictionary.term_dictionary import TermTable
from engine.expressions.evaluator import ExpressionError, evaluate
from engine.expressions.nondeterministic import Identity, Naming
from engine.kernel.state import layout as c
from engine.pattern_scope import asks_identity, looks_at_time, variables_of
from epsparql import algebra as a
from epsparql.terms import Term, Variable

_KEPT = 1 << 14
Take = Callable[[RowBatch, int, TermTable], Sequence[Any]]
"""The function returns what is taken of each row, at an instant."""


class Argument:
    """Evaluates one expression, and remembers its value for equal bindings."""

    def __init__(self, expression: a.Expression, reads: tuple[Variable, ...], naming: Naming, site: str) -> None:
        self.expression = expression
        self.columns = {v: k for k, v in enumerate(reads)}
        self.naming, self.site = naming, site
        self.looked_at = sorted(self.columns[v] for v in variables_of(expression) if v in self.columns)
        self.alone, self.timed = asks_identity(expression), looks_at_time(expression)
        self._known: dict[tuple[int, ...], int] = {}
        self._generation = 0  # of the terms in `_known`

    def numbers(self, rows: RowBatch, now: int, terms: TermTable) -> list[int]:
        """Return the number of the value's term for each row; c.UNBOUND for an error.

        NOW() of a timeless solution is `now`.
        """
        if isinstance(self.expression, a.Var):
            column = self.columns.get(self.expression.variable)
            return [c.UNBOUND] * len(rows) if column is None else rows.cells[:, column].tolist()
        starts, ends = rows.start.tolist(), rows.end.tolist()
        return [self.evaluate_row(*row, now, terms) for row in zip(rows.cells.tolist(), starts, ends, strict=True)]

    def evaluate_row(self, cells: list[int], start: int, end: int, now: int, terms: TermTable) -> int:
        """Return the number of the value's term for one row, whose cells stand in the columns of `reads`."""
        if self._generation != terms.generation:
            self._known, self._generation = {}, terms.generation
        if self.alone:
            return self._read_number(cells, start, end, now, terms)
        asked = (*(cells[k] for k in self.looked_at), *((start, end) if self.timed else ()))
        found = self._known.get(asked)
        if found is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            found = self._known[asked] = self._read_number(cells, start, end, now, terms)
        return found

    def _read_number(self, cells: list[int], start: int, end: int, now: int, terms: TermTable) -> int:
        def lookup(variable: Variable) -> Term | None:
            column = self.columns.get(variable)
            return None if column is None else terms.term(cells[column])

        identity = Identity(self.naming, self.site, (*(terms.text(k) for k in cells), str(start), str(end)), now) if self.alone else None
        timeless = start > end
        try:
            return terms.intern(str(evaluate(self.expression, lookup, None if timeless else start, None if timeless else end, identity)))
        except (ExpressionError, ValueError, ArithmeticError, RecursionError):  # what a library makes of an odd term is SPARQL's error as well
            return c.UNBOUND


def terms_of_many(argument: Argument | None, rows: RowBatch, now: Ints, terms: TermTable) -> Ints | list[int]:
    """Return the numbers of an argument's terms for rows of several instants; 1 of each for COUNT(*), which has none."""
    if argument is None:
        return np.ones(len(rows), np.int64)
    if isinstance(argument.expression, a.Var) and argument.expression.variable in argument.columns:
        return rows.cells[:, argument.columns[argument.expression.variable]]
    if not rows.timeless:
        return argument.numbers(rows, 0, terms)
    chosen = [rows.where(np.array([k])) for k in range(len(rows))]  # only a timeless row may ask for its instant
    return [argument.numbers(row, at, terms)[0] for row, at in zip(chosen, now.tolist(), strict=True)]
