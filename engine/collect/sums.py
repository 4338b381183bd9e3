"""SUM and AVG: exact for integers and decimals, from the left for floats and doubles, whose sum depends on the order."""

from collections import deque
from collections.abc import Iterable
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from functools import reduce
from operator import add
from typing import Any

from engine import numbers
from engine.collect.worth import Value, Worth
from engine.expressions import ExpressionError, number, parse_term
from engine.kernel import columns as c
from engine.values import Kind, Number
from epsparql.algebra import AggregateFunction

ZERO = Number(Kind.INTEGER, 0)
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)  # numbers.DIGITS bounds what is added


def _folded(values: Iterable[Number]) -> Number:
    """The sum from the left: what floats and doubles sum to depends on the order."""
    rest = iter(values)
    total = ZERO
    for value in rest:
        total = numbers.add(total, value)
        if total.kind is Kind.DOUBLE:
            doubles = (numbers.to_float(number.value) for number in rest)
            return Number(Kind.DOUBLE, reduce(add, doubles, numbers.to_float(total.value)))
    return total


def _shown(function: AggregateFunction, total: Number, n: int, worth: Worth) -> int:
    try:
        found = numbers.divide(total, Number(Kind.INTEGER, n)) if function is AggregateFunction.AVG and n else total
    except ExpressionError:
        return c.UNBOUND
    if isinstance(found.value, int):
        return worth.integer(found.value)
    return worth.terms.intern(f'"{numbers.lexical(found)}"^^<{numbers.DATATYPES[found.kind]}>')


class Sum:
    """SUM or AVG of all values since the start; None after an error."""

    def __init__(self) -> None:
        self.n = 0
        self.total: Number | None = ZERO

    def add(self, value: Value, worth: Worth) -> None:
        found = worth.number(value)
        self.n += 1
        try:
            self.total = None if found is None or self.total is None else numbers.add(self.total, found)
        except ExpressionError:
            self.total = None

    def drop(self, value: Value, worth: Worth) -> None:
        raise AssertionError("nothing leaves a group without window")

    def result(self, function: AggregateFunction, values: Iterable[Value], worth: Worth) -> int:
        return c.UNBOUND if self.total is None else _shown(function, self.total, self.n, worth)

    def state(self) -> Any:
        return [self.n, None if self.total is None else str(numbers.literal(self.total))]

    def restore(self, state: Any) -> None:
        self.n, text = state
        self.total = None if text is None else number(parse_term(text))


class SlidingSum:
    """SUM or AVG of a window: exact numbers are added and taken away; with a float or double in it, it is summed anew.

    `doubles` has the doubles in order, where values leave in the order in which they came.
    """

    def __init__(self, distinct: bool) -> None:
        self.distinct = distinct
        self.n = self.errors = self.decimals = self.floats = 0
        self.integer, self.decimal = 0, Decimal(0)
        self.doubles: deque[float] = deque()
        self.total: Number | None = None  # once asked for, until a value comes or leaves

    def add(self, value: Value, worth: Worth) -> None:
        number = worth.number(value)
        self._count(number, 1)
        if number is not None and number.kind is Kind.DOUBLE and not self.distinct:
            self.doubles.append(numbers.to_float(number.value))

    def drop(self, value: Value, worth: Worth) -> None:
        number = worth.number(value)
        self._count(number, -1)
        if number is not None and number.kind is Kind.DOUBLE and not self.distinct:
            self.doubles.popleft()

    def _count(self, number: Number | None, by: int) -> None:
        self.n += by
        self.total = None
        if number is None:
            self.errors += by
        elif isinstance(number.value, int):
            self.integer += by * number.value
        elif isinstance(number.value, Decimal):
            self.decimals += by
            self.decimal = _EXACT.add(self.decimal, number.value) if by > 0 else _EXACT.subtract(self.decimal, number.value)
        else:
            self.floats += by

    def result(self, function: AggregateFunction, values: Iterable[Value], worth: Worth) -> int:
        if self.errors:
            return c.UNBOUND
        if self.total is None:
            try:
                self.total = self._sum(values, worth)
            except ExpressionError:
                return c.UNBOUND
        return _shown(function, self.total, self.n, worth)

    def _sum(self, values: Iterable[Value], worth: Worth) -> Number:
        if not self.floats:
            whole = numbers.bounded(self.integer)
            return numbers.add(whole, Number(Kind.DECIMAL, self.decimal)) if self.decimals else whole
        if len(self.doubles) == self.n:
            return Number(Kind.DOUBLE, reduce(add, self.doubles, 0.0))
        return _folded(number for number in map(worth.number, values) if number is not None)

    def state(self) -> Any:
        raise AssertionError("a window's sum is made anew")

    def restore(self, state: Any) -> None:
        raise AssertionError("a window's sum is made anew")
