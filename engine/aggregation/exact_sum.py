"""SUM and AVG give the exact sum of numbers or of day-time durations, whatever their order; a sum of floats and
doubles is rounded once.
"""

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from engine.aggregation.term_values import TermValues, Total, Value
from engine.expressions import numeric, temporal
from engine.expressions.evaluator import ExpressionError, term_of
from engine.expressions.values import Duration, Number, NumericType
from engine.kernel.state import layout as c
from epsparql.algebra import AggregateFunction

SMALLEST = 1074
"""Every finite double is a multiple of 2 to minus this."""
_INFINITY = float("inf")
_NOTHING: int | Fraction = 0  # µs


class Sum:
    """Keeps SUM or AVG of values that come and, in windows, leave.

    It counts the values of each kind, and holds what they add up to.
    """

    def __init__(self) -> None:
        self.n = self.errors = self.decimals = self.singles = self.doubles = self.nans = self.rises = self.falls = 0
        self.integer, self.decimal = 0, Decimal(0)
        self.floating = 0  # what finite floats and doubles add up to, in units of 2 ** -SMALLEST
        self.durations, self.micros = 0, _NOTHING
        self._total: Number | Duration | None = None  # once asked for, until a value comes or leaves

    def add(self, value: Value, worth: TermValues) -> None:
        if isinstance(value, dict):
            self._count_total(value, 1)
        else:
            self._count_addend(worth.read_addend(value), 1)

    def drop(self, value: Value, worth: TermValues) -> None:
        if isinstance(value, dict):
            self._count_total(value, -1)
        else:
            self._count_addend(worth.read_addend(value), -1)

    def _count_total(self, total: Total, by: int) -> None:
        """Count what many addends are together. Beside doubles, integers count as their part of the floating sum."""
        self.n += by * total["n"]
        self._total = None
        if total["shift"] and total["wide"]:
            self.doubles += by * total["wide"]
            self.floating += by * total["units"] << SMALLEST - total["shift"]
        elif total["wide"]:
            self.decimals += by * total["wide"]
            self.decimal = numeric.WHOLE.add(self.decimal, by * Decimal(total["units"]).scaleb(-total["scale"], numeric.WHOLE))
        else:
            self.integer += by * (total["units"] >> total["shift"]) // 10 ** total["scale"]

    def _count_addend(self, number: Number | Duration | None, by: int) -> None:
        self.n += by
        self._total = None
        if number is None:
            self.errors += by
        elif isinstance(number, Duration):
            self.durations += by
            self.micros += by * number.micros
        elif isinstance(number.value, int):
            self.integer += by * number.value
        elif isinstance(number.value, Decimal):
            self.decimals += by
            self.decimal = numeric.WHOLE.add(self.decimal, number.value) if by > 0 else numeric.WHOLE.subtract(self.decimal, number.value)
        else:
            self.singles += by * (number.kind is NumericType.FLOAT)
            self.doubles += by * (number.kind is NumericType.DOUBLE)
            self._count_float(number.value, by)

    def _count_float(self, value: float, by: int) -> None:
        if value != value:
            self.nans += by
        elif value in (_INFINITY, -_INFINITY):
            self.rises += by * (value > 0)
            self.falls += by * (value < 0)
        else:
            numerator, denominator = value.as_integer_ratio()
            self.floating += by * (numerator << SMALLEST + 1 - denominator.bit_length())

    def result(self, function: AggregateFunction, values: Iterable[Value], worth: TermValues) -> int:
        if self.errors:
            return c.UNBOUND
        try:
            self._total = self._total or self.total()
            found = _divide(self._total, self.n) if function is AggregateFunction.AVG and self.n else self._total
        except ExpressionError:
            return c.UNBOUND
        if isinstance(found, Number) and isinstance(found.value, int):
            return worth.integer(found.value)
        return worth.terms.intern(str(term_of(found)))

    def total(self) -> Number | Duration:
        """Return the sum.

        Raises: ExpressionError for an exact one of too many digits, and for numbers beside durations.
        """
        if self.durations:
            if self.durations < self.n:
                raise ExpressionError
            return temporal.day_time_duration(self.micros)
        if self.singles or self.doubles:
            return self._float()
        whole = numeric.bounded(self.integer)
        return numeric.add(whole, Number(NumericType.DECIMAL, self.decimal)) if self.decimals else whole

    def _float(self) -> Number:
        kind = NumericType.DOUBLE if self.doubles else NumericType.FLOAT
        if self.nans or (self.rises and self.falls):
            return Number(kind, float("nan"))
        if self.rises or self.falls:
            return Number(kind, _INFINITY if self.rises else -_INFINITY)
        exact = Fraction(self.floating, 1 << SMALLEST) + self.integer + Fraction(self.decimal)
        return Number(kind, numeric.to_float(exact) if kind is NumericType.DOUBLE else numeric.nearest_single(exact))

    def state(self) -> Any:
        counts = [self.n, self.errors, self.decimals, self.singles, self.doubles, self.nans, self.rises, self.falls]
        return [counts, self.integer, str(self.decimal), self.floating, *([self.durations, str(self.micros)] if self.durations else [])]

    def restore(self, state: Any) -> None:
        if isinstance(state, dict):
            self._count_total(state, 1)
            return
        counts, self.integer, decimal, self.floating, *lengths = state
        self.durations, self.micros = (lengths[0], Fraction(lengths[1])) if lengths else (0, 0)
        self.n, self.errors, self.decimals, self.singles, self.doubles, self.nans, self.rises, self.falls = counts
        self.decimal = Decimal(decimal)


def _divide(total: Number | Duration, n: int) -> Number | Duration:
    by = Number(NumericType.INTEGER, n)
    return numeric.divide(total, by) if isinstance(total, Number) else temporal.divide(total, by)
