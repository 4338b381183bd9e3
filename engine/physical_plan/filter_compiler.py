"""This module compiles conditions to the kernel's bytecode; what the bytecode lacks becomes a question to the host."""

from collections.abc import Callable

from engine.dictionary.float_bounds import approximation, constant_micros
from engine.kernel.state import layout as c
from engine.pattern_scope import duration_constant, list_subexpressions, looks_at_time, variables_of
from engine.physical_plan.plan import Fragment, Inquiry, RowRange
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.terms import Literal, Variable

_COMPARISONS = {
    a.Comparison.EQUAL: c.EQ,
    a.Comparison.UNEQUAL: c.NE,
    a.Comparison.LESS: c.LT,
    a.Comparison.LESS_OR_EQUAL: c.LE,
    a.Comparison.GREATER: c.GT,
    a.Comparison.GREATER_OR_EQUAL: c.GE,
}
_ARITHMETIC = {a.Operator.ADD: c.ADD, a.Operator.SUBTRACT: c.SUB, a.Operator.MULTIPLY: c.MUL}
_OPERANDS = {c.PUSH_VAR: c.WITH_VAR, c.PUSH_CONST: c.WITH_CONST}
_DEPTH = 48  # the kernel's filter stack holds 64

Code = list[tuple[int, int]]
DURATION = a.Time(a.TimeFunction.DURATION)


def add_slots(fragment: Fragment, columns: list[int]) -> RowRange:
    """Put row columns on the fragment's list of slots."""
    rows = RowRange(len(fragment.slots), len(columns))
    fragment.slots += columns
    return rows


def add_question(fragment: Fragment, inquiry: Inquiry) -> int:
    """Add a question to the fragment and return its number."""
    columns = [fragment.columns[v] for v in inquiry.variables] + ([c.START, c.END] if inquiry.timed else [])
    fragment.asks.append(add_slots(fragment, columns))
    fragment.inquiries.append(inquiry)
    return len(fragment.asks) - 1


def find_arguments(fragment: Fragment, expression: a.Expression) -> tuple[tuple[Variable, ...], bool]:
    """Return the variables that an expression's answer depends on, and whether it depends on time; a variable without
    a column is bound nowhere.
    """
    known = [v for v in variables_of(expression) if v in fragment.columns]
    return tuple(sorted(known, key=lambda v: v.name)), looks_at_time(expression)


def compile_filter(fragment: Fragment, condition: a.Expression, number: Callable[[str], int]) -> int:
    """Compile a condition and return where its code begins in the fragment; the code's head names the question to ask
    where the code is unsure.

    `number` gives the number of a constant's term.
    """
    variables, timed = find_arguments(fragment, condition)
    at = len(fragment.code)
    fragment.code.append((add_question(fragment, Inquiry(variables, timed, condition=condition)), 0))
    body: Code = []
    if len(list_subexpressions(condition)) > _DEPTH or not _Compiler(fragment, number).compile_verdict(condition, body):
        body = [(c.ASK_HOST, 0)]
    fragment.code += [*fuse_operands(body), (c.STOP, 0)]
    return at


def fuse_operands(code: Code) -> Code:
    """Fuse operations on numbers with a variable or constant that is pushed just before: they take it as their own
    operand.
    """
    found: Code = []
    for op, argument in code:
        before = found[-1][0] if found else c.STOP
        if c.LT <= op <= c.MUL and before in _OPERANDS:
            found[-1] = (op + _OPERANDS[before], found[-1][1])
        else:
            found.append((op, argument))
    return found


@dataclass(frozen=True, slots=True)
class _Compiler:
    """Compiles conditions of one fragment; each method appends code and says whether it could."""

    fragment: Fragment
    number: Callable[[str], int]

    def compile_verdict(self, e: a.Expression, code: Code) -> bool:
        """Append code that leaves a verdict; return False where the bytecode cannot say anything of the whole."""
        match e:
            case a.And(left, right) | a.Or(left, right):
                known = self._compile_part(left, code) | self._compile_part(right, code)
                code.append((c.AND if isinstance(e, a.And) else c.OR, 0))
                return known
            case a.Not(operand):
                known = self._compile_part(operand, code)
                code.append((c.NOT, 0))
                return known
            case a.Bound(variable):
                columns = self.fragment.columns
                code.append((c.BOUND_VAR, columns[variable]) if variable in columns else (c.ASK_HOST, 0))
                return variable in columns
            case a.Call("SAMETERM", (left, right)):
                return self._compile_identity(left, right, code)
            case a.Compare(a.Comparison.EQUAL | a.Comparison.UNEQUAL as op, left, right):
                return self._compile_equality(op, left, right, code)
            case a.Compare(op, left, right):
                return self._compile_comparison(_COMPARISONS[op], left, right, code)
            case _:
                return False

    def _compile_part(self, e: a.Expression, code: Code) -> bool:
        """Append code as `compile_verdict` does, but leave unsure what cannot be said, which the rest may outweigh."""
        before, consts = len(code), len(self.fragment.consts)
        if self.compile_verdict(e, code):
            return True
        del code[before:], self.fragment.consts[consts:]
        code.append((c.ASK_HOST, 0))
        return False

    def _compile_equality(self, op: a.Comparison, left: a.Expression, right: a.Expression, code: Code) -> bool:
        """Append code for the equality of two terms.

        Terms are equal or not by what they are, unless both are literals with values. Then the numbers that they
        stand for decide, if they stand for any.
        """
        operands: Code = []
        if not (self._push_term(left, operands) and self._push_term(right, operands)):
            return self._compile_comparison(_COMPARISONS[op], left, right, code)
        code += [*operands, (c.SAME, 0), *([(c.NOT, 0)] if op is a.Comparison.UNEQUAL else [])]
        if self._compile_comparison(_COMPARISONS[op], left, right, code):
            code.append((c.ELSE, 0))
        return True

    def _compile_identity(self, left: a.Expression, right: a.Expression, code: Code) -> bool:
        """Append code for sameTerm, whatever the terms' values are."""
        operands: Code = []
        if not (self._push_term(left, operands) and self._push_term(right, operands)):
            return False
        code += [*operands, (c.IDENTICAL, 0)]
        return True

    def _push_term(self, e: a.Expression, code: Code) -> bool:
        match e:
            case a.Var(variable) if variable in self.fragment.columns:
                code.append((c.PUSH_TERM, self.fragment.columns[variable]))
                return True
            case a.Constant(term):
                code.append((c.PUSH_KNOWN, self.number(str(term))))
                return True
            case _:
                return False

    def _compile_comparison(self, op: int, left: a.Expression, right: a.Expression, code: Code) -> bool:
        operands: Code = []
        consts = len(self.fragment.consts)
        operand = self._push_duration if DURATION in (left, right) else self._push_value
        if not (operand(left, operands) and operand(right, operands)):
            del self.fragment.consts[consts:]
            return False
        code += [*operands, (op, 0)]
        return True

    def _push_duration(self, e: a.Expression, code: Code) -> bool:
        """Append getDURATION() or a day-time duration, both as µs."""
        if e == DURATION:
            code.append((c.PUSH_DURATION, 0))
            return True
        micros = duration_constant(e)
        if micros is None:
            return False
        self._push_constant(constant_micros(micros), code)
        return True

    def _push_value(self, e: a.Expression, code: Code) -> bool:
        """Append a number with its error bound."""
        match e:
            case a.Var(variable) if variable in self.fragment.columns:
                code.append((c.PUSH_VAR, self.fragment.columns[variable]))
                return True
            case a.Constant(Literal() as literal):
                value, slack = approximation(str(literal))
                if slack == float("inf"):
                    return False
                self._push_constant((value, slack), code)
                return True
            case a.Arithmetic(op, left, right) if op in _ARITHMETIC:
                if not (self._push_value(left, code) and self._push_value(right, code)):
                    return False
                code.append((_ARITHMETIC[op], 0))
                return True
            case _:
                return False

    def _push_constant(self, constant: tuple[float, float], code: Code) -> None:
        self.fragment.consts.append(constant)
        code.append((c.PUSH_CONST, len(self.fragment.consts) - 1))
