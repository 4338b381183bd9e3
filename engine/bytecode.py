"""Conditions to the kernel's bytecode; what it lacks becomes a question to the host."""

from engine import times
from engine.approximation import approximation, constant_micros
from engine.kernel import columns as c
from engine.program import Fragment, Inquiry
from engine.scope import looks_at_time, parts, variables_of
from epsparql import algebra as a
from epsparql.terms import XSD, Literal, Variable

_COMPARISONS = {
    a.Comparison.EQUAL: c.EQ,
    a.Comparison.UNEQUAL: c.NE,
    a.Comparison.LESS: c.LT,
    a.Comparison.LESS_OR_EQUAL: c.LE,
    a.Comparison.GREATER: c.GT,
    a.Comparison.GREATER_OR_EQUAL: c.GE,
}
_ARITHMETIC = {a.Operator.ADD: c.ADD, a.Operator.SUBTRACT: c.SUB, a.Operator.MULTIPLY: c.MUL}
_DEPTH = 48  # of the kernel's filter stack of 64

Code = list[tuple[int, int]]
DURATION = a.Time(a.TimeFunction.DURATION)


def slots(fragment: Fragment, columns: list[int]) -> tuple[int, int]:
    """Puts row columns on the fragment's list: where, how many."""
    at = len(fragment.slots)
    fragment.slots += columns
    return at, len(columns)


def question(fragment: Fragment, inquiry: Inquiry) -> int:
    """Number of a new question of the fragment."""
    columns = [fragment.columns[v] for v in inquiry.variables] + ([c.START, c.END] if inquiry.timed else [])
    fragment.asks.append(slots(fragment, columns))
    fragment.inquiries.append(inquiry)
    return len(fragment.asks) - 1


def arguments(fragment: Fragment, expression: a.Expression) -> tuple[tuple[Variable, ...], bool]:
    """What an expression's answer depends on; a variable without a column is bound nowhere."""
    known = [v for v in variables_of(expression) if v in fragment.columns]
    return tuple(sorted(known, key=lambda v: v.name)), looks_at_time(expression)


def compile_filter(fragment: Fragment, condition: a.Expression) -> int:
    """Where the code of a condition begins in the fragment; its head names the question to ask where it is unsure."""
    variables, timed = arguments(fragment, condition)
    at = len(fragment.code)
    fragment.code.append((question(fragment, Inquiry(variables, timed, condition=condition)), 0))
    body: Code = []
    if len(parts(condition)) > _DEPTH or not _verdict(fragment, condition, body):
        body = [(c.ASK_HOST, 0)]
    fragment.code += [*body, (c.STOP, 0)]
    return at


def _verdict(fragment: Fragment, e: a.Expression, code: Code) -> bool:
    """Appends code that leaves a verdict; False where the bytecode cannot say anything of the whole."""
    match e:
        case a.And(left, right) | a.Or(left, right):
            known = _part(fragment, left, code) | _part(fragment, right, code)
            code.append((c.AND if isinstance(e, a.And) else c.OR, 0))
            return known
        case a.Not(operand):
            known = _part(fragment, operand, code)
            code.append((c.NOT, 0))
            return known
        case a.Bound(variable):
            code.append((c.BOUND_VAR, fragment.columns[variable]) if variable in fragment.columns else (c.ASK_HOST, 0))
            return variable in fragment.columns
        case a.Compare(op, left, right):
            return _comparison(fragment, _COMPARISONS[op], left, right, code)
        case _:
            return False


def _part(fragment: Fragment, e: a.Expression, code: Code) -> bool:
    """As `_verdict`, but what cannot be said is left unsure, which the rest may outweigh."""
    before, consts = len(code), len(fragment.consts)
    if _verdict(fragment, e, code):
        return True
    del code[before:], fragment.consts[consts:]
    code.append((c.ASK_HOST, 0))
    return False


def _comparison(fragment: Fragment, op: int, left: a.Expression, right: a.Expression, code: Code) -> bool:
    operands: Code = []
    consts = len(fragment.consts)
    if DURATION in (left, right):
        known = _duration(fragment, left, operands) and _duration(fragment, right, operands)
    else:
        known = _value(fragment, left, operands) and _value(fragment, right, operands)
    if not known:
        del fragment.consts[consts:]
        return False
    code += [*operands, (op, 0)]
    return True


def _duration(fragment: Fragment, e: a.Expression, code: Code) -> bool:
    """getDURATION() or a day-time duration, both as µs."""
    if e == DURATION:
        code.append((c.PUSH_DURATION, 0))
        return True
    micros = duration_constant(e)
    if micros is None:
        return False
    _constant(fragment, constant_micros(micros), code)
    return True


def duration_constant(e: a.Expression) -> int | None:
    """The µs of a constant day-time duration."""
    match e:
        case a.Constant(Literal(lexical, datatype)) if datatype in (XSD + "duration", XSD + "dayTimeDuration"):
            return times.duration_micros(lexical)
        case _:
            return None


def _value(fragment: Fragment, e: a.Expression, code: Code) -> bool:
    """Appends code that leaves a number with its error bound."""
    match e:
        case a.Var(variable) if variable in fragment.columns:
            code.append((c.PUSH_VAR, fragment.columns[variable]))
            return True
        case a.Constant(Literal() as literal):
            value, slack = approximation(str(literal))
            if slack == float("inf"):
                return False
            _constant(fragment, (value, slack), code)
            return True
        case a.Arithmetic(op, left, right) if op in _ARITHMETIC:
            if not (_value(fragment, left, code) and _value(fragment, right, code)):
                return False
            code.append((_ARITHMETIC[op], 0))
            return True
        case _:
            return False


def _constant(fragment: Fragment, constant: tuple[float, float], code: Code) -> None:
    fragment.consts.append(constant)
    code.append((c.PUSH_CONST, len(fragment.consts) - 1))
