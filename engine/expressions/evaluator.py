"""SPARQL's expressions are evaluated exactly (semantics.md section 4).

An error is an exception here, `ExpressionError`; `truth` gives the three-valued answer that FILTER and the kernel need.
"""

from collections.abc import Callable
from typing import assert_never

from engine.expressions import numeric, temporal
from engine.expressions.background_functions import BACKGROUND_FUNCTIONS, call_background_function
from engine.expressions.functions import call
from engine.expressions.functions import supported as in_library
from engine.expressions.literals import FALSE, TRUE, effective, parse_number, parse_term, term_of, value_of
from engine.expressions.nondeterministic import INDIVIDUAL, Identity, individual, now
from engine.expressions.temporal import duration_micros, format_duration, format_instant, instant_micros
from engine.expressions.values import DateTime, Day, Duration, ExactMicros, ExpressionError, Number, Text, TimeOfDay, Value
from epsparql import algebra
from epsparql.algebra import Comparison, Operator, TimeFunction
from epsparql.terms import BlankNode, Iri, Literal, Term, TripleTerm, Variable

Lookup = Callable[[Variable], Term | None]
Micros = int


def supported(function: str) -> bool:
    """Return whether `evaluate` knows the function, a built-in's name in capitals or an IRI in `<>`."""
    return function == "NOW" or function in INDIVIDUAL or in_library(function)


def evaluate(expression: algebra.Expression, lookup: Lookup, start: Micros | None, end: Micros | None, identity: Identity | None = None) -> Term:
    """Return the expression's value for the solution `lookup` on [start, end], both None if it is timeless.

    Raises: ExpressionError.

    `identity` tells solution and expression from all others, which only the functions of nondeterministic.py ask for.
    """
    match expression:
        case algebra.Constant(term):
            return term
        case algebra.Var(variable):
            return _bound(lookup(variable))
        case algebra.If(condition, then, otherwise):
            chosen, place = (then, 1) if effective(_evaluate_exactly(condition, lookup, start, end, _inside(identity, 0))) else (otherwise, 2)
            return evaluate(chosen, lookup, start, end, _inside(identity, place))
        case algebra.Coalesce(operands):
            return _first(operands, lookup, start, end, identity)
        case algebra.Call("NOW", ()):
            return now(end, identity)
        case algebra.Call(function, arguments):
            terms = [evaluate(argument, lookup, start, end, _inside(identity, k)) for k, argument in enumerate(arguments)]
            if function in BACKGROUND_FUNCTIONS:
                return call_background_function(function, terms, None if identity is None else identity.search)
            return individual(function, terms, identity) if function in INDIVIDUAL else call(function, terms)
        case _:
            return term_of(_evaluate_exactly(expression, lookup, start, end, identity))


def truth(expression: algebra.Expression, lookup: Lookup, start: Micros | None, end: Micros | None, identity: Identity | None = None) -> bool | None:
    """Return the effective boolean value; None for an error."""
    try:
        return effective(_evaluate_exactly(expression, lookup, start, end, identity))
    except ExpressionError:
        return None


def _evaluate_exactly(expression: algebra.Expression, lookup: Lookup, start: Micros | None, end: Micros | None, identity: Identity | None) -> Value:
    """Return the value that `evaluate` gives, without the way over lexical forms."""

    def value(operand: algebra.Expression, place: int = 0) -> Value:
        return _evaluate_exactly(operand, lookup, start, end, _inside(identity, place))

    def holds(operand: algebra.Expression, place: int) -> bool | None:
        return truth(operand, lookup, start, end, _inside(identity, place))

    match expression:
        case algebra.Or(left, right):
            return _either(holds(left, 0), holds(right, 1), decisive=True)
        case algebra.And(left, right):
            return _either(holds(left, 0), holds(right, 1), decisive=False)
        case algebra.Not(operand):
            return not effective(value(operand))
        case algebra.Compare(op, left, right):
            return compare(op, value(left, 0), value(right, 1))
        case algebra.Arithmetic(operator, left, right):
            return calculate(operator, value(left, 0), value(right, 1))
        case algebra.Negate(operand):
            return numeric.negate(_numeric(value(operand)))
        case algebra.Bound(variable):
            return lookup(variable) is not None
        case algebra.In(operand, members):
            return _among(value(operand), members, value)
        case algebra.Time(function):
            return _time(function, start, end)
        case algebra.Exists():
            raise ExpressionError  # decided by the engine before an expression gets here
        case algebra.Constant() | algebra.Var() | algebra.If() | algebra.Coalesce() | algebra.Call():
            return value_of(evaluate(expression, lookup, start, end, identity))
    assert_never(expression)


def _inside(identity: Identity | None, operand: int) -> Identity | None:
    return None if identity is None else identity.inside(operand)


def _bound(term: Term | None) -> Term:
    if term is None:
        raise ExpressionError
    return term


def _first(operands: tuple[algebra.Expression, ...], lookup: Lookup, start: Micros | None, end: Micros | None, identity: Identity | None) -> Term:
    for k, operand in enumerate(operands):
        try:
            return evaluate(operand, lookup, start, end, _inside(identity, k))
        except ExpressionError:
            continue
    raise ExpressionError


def _either(left: bool | None, right: bool | None, *, decisive: bool) -> bool:
    """Decide || by one true operand, && by one false one, whatever the other is (SPARQL 1.1, 17.2)."""
    if left is decisive or right is decisive:
        return decisive
    if left is None or right is None:
        raise ExpressionError
    return not decisive


def _among(value: Value, members: tuple[algebra.Expression, ...], evaluated: Callable[[algebra.Expression, int], Value]) -> bool:
    """Return whether a value is IN the members, which is a chain of = joined by ||."""
    error: ExpressionError | None = None
    for k, member in enumerate(members, 1):
        try:
            if equal(value, evaluated(member, k)):
                return True
        except ExpressionError as raised:
            error = raised
    if error is not None:
        raise error
    return False


def _time(function: TimeFunction, start: Micros | None, end: Micros | None) -> DateTime | Duration:
    if start is None or end is None:
        raise ExpressionError
    match function:
        case TimeFunction.DURATION:
            return Duration(0, end - start)
        case TimeFunction.START:
            return DateTime(start)
        case TimeFunction.END:
            return DateTime(end)
    assert_never(function)


def _numeric(value: Value) -> Number:
    if isinstance(value, Number):
        return value
    raise ExpressionError


# ---------------------------------------------------------------- operators
def compare(op: Comparison, left: Value, right: Value) -> bool:
    """Return whether a comparison of two values holds (SPARQL 1.1, 17.3).

    Raises: ExpressionError.
    """
    match op:
        case Comparison.EQUAL:
            return equal(left, right)
        case Comparison.UNEQUAL:
            return not equal(left, right)
        case Comparison.LESS:
            return _less(left, right)
        case Comparison.GREATER:
            return _less(right, left)
        case Comparison.LESS_OR_EQUAL:
            return _less(left, right, or_equal=True)
        case Comparison.GREATER_OR_EQUAL:
            return _less(right, left, or_equal=True)
    assert_never(op)


def equal(left: Value, right: Value) -> bool:
    match left, right:
        case Number(), Number():
            a, b = numeric.comparable(left, right)
            return a == b
        case Text(a, tag), Text(b, other):
            return a == b and (tag or "").lower() == (other or "").lower()
        case Duration(), Duration():
            return left == right  # XML Schema: the same months and the same seconds
        case (DateTime(a), DateTime(b)) | (TimeOfDay(a), TimeOfDay(b)):
            return a == b
        case Day(), Day():
            return _ordered(temporal.order_days(left, right)) == 0
        case TripleTerm(), TripleTerm():
            return _equal_triples(left, right)
        case Literal(), _:
            return _same_term(left, right)
        case _, Literal():
            return _same_term(right, left)
    return type(left) is type(right) and left == right  # values of two known types are different


def _equal_triples(left: TripleTerm, right: TripleTerm) -> bool:
    """Decide whether the parts of two triple terms are equal as values: one part that differs decides, whatever an
    error in the others says.
    """
    if left.subject != right.subject or left.predicate != right.predicate:
        return False
    return equal(value_of(left.object), value_of(right.object))


def _same_term(unknown: Literal, other: Value) -> bool:
    """Decide RDFterm-equal for a literal of unknown value: nobody can tell whether it equals another literal."""
    if isinstance(other, Iri | BlankNode | TripleTerm) or (isinstance(other, Text) and other.language is not None):
        return False
    if unknown == other:
        return True
    raise ExpressionError


def _less(left: Value, right: Value, *, or_equal: bool = False) -> bool:
    match left, right:
        case Number(), Number():
            a, b = numeric.comparable(left, right)
            return a < b or (or_equal and a == b)
        case Text(a, None), Text(b, None):
            return a < b or (or_equal and a == b)
        case (bool(), bool()) as flags:
            return flags[0] < flags[1] or (or_equal and flags[0] == flags[1])
        case (DateTime(a), DateTime(b)) | (TimeOfDay(a), TimeOfDay(b)):
            return a < b or (or_equal and a == b)
        case Day(), Day():
            order = _ordered(temporal.order_days(left, right))
        case Duration(), Duration():
            order = _ordered(temporal.order_durations(left, right))
        case _:
            raise ExpressionError
    return order < 0 or (or_equal and order == 0)


def _ordered(order: ExactMicros | None) -> ExactMicros:
    if order is None:
        raise ExpressionError
    return order


_NUMERIC: dict[Operator, Callable[[Number, Number], Number]] = {
    Operator.ADD: numeric.add,
    Operator.SUBTRACT: numeric.subtract,
    Operator.MULTIPLY: numeric.multiply,
    Operator.DIVIDE: numeric.divide,
}


def calculate(operator: Operator, left: Value, right: Value) -> Value:
    """Return what an operator makes of numbers, instants and durations (SPARQL 1.1, 17.3; of durations XPath,
    op:add-dayTimeDurations and its kin).

    Raises: ExpressionError.
    """
    match operator, left, right:
        case _, Number(), Number():
            return _NUMERIC[operator](left, right)
        case _, Duration(), Duration():
            return _calculate_durations(operator, left, right)
        case (Operator.MULTIPLY, Duration() as length, Number() as by) | (Operator.MULTIPLY, Number() as by, Duration() as length):
            return temporal.multiply(length, by)
        case Operator.DIVIDE, Duration(), Number():
            return temporal.divide(left, right)
        case Operator.SUBTRACT, DateTime(a), DateTime(b):
            return temporal.day_time_duration(a - b)
        case (Operator.ADD, DateTime() as when, Duration() as by) | (Operator.ADD, Duration() as by, DateTime() as when):
            return temporal.shifted(when, by, 1)
        case Operator.SUBTRACT, DateTime(), Duration():
            return temporal.shifted(left, right, -1)
    raise ExpressionError


def _calculate_durations(operator: Operator, left: Duration, right: Duration) -> Value:
    a, b = temporal.day_time_micros(left), temporal.day_time_micros(right)
    match operator:
        case Operator.ADD:
            return temporal.day_time_duration(a + b)
        case Operator.SUBTRACT:
            return temporal.day_time_duration(a - b)
        case Operator.DIVIDE:
            return numeric.divide(temporal.total_seconds(left), temporal.total_seconds(right))
        case Operator.MULTIPLY:
            raise ExpressionError
    assert_never(operator)


__all__ = [
    "FALSE", "TRUE", "ExpressionError", "Identity", "Lookup", "compare", "duration_micros", "effective", "equal", "evaluate", "format_duration",
    "format_instant", "instant_micros", "parse_number", "parse_term", "supported", "term_of", "truth", "value_of",
]  # fmt: skip
