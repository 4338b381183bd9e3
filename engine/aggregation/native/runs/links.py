"""WHILE is decided for one element at a time, by code that computes in float64 with error bounds, as the kernel's filters do.

Where the bounds leave a comparison unsure, the host decides that element exactly.
"""

import math

import numpy as np

from engine.aggregation.native import native
from engine.aggregation.native.exact_double_sum import MASK
from engine.aggregation.native.layout import (
    CLASS,
    COUNT,
    COUNTED,
    DECIMAL,
    DOUBLE,
    DOUBLES,
    ERROR,
    ERRORS,
    FALLS,
    HIGH,
    IN_GROUP,
    LOW,
    NANS,
    OP,
    REST,
    RISES,
    SUM,
    TERM,
    VALUE,
    VALUE_WIDTH,
    N,
)
from engine.aggregation.native.min_max import beats
from engine.aggregation.native.runs.layout import (
    AND,
    ELSE,
    EXACT,
    FAILED,
    FALSE,
    GREATER,
    GREATER_OR_EQUAL,
    IDENTITY,
    LESS,
    LESS_OR_EQUAL,
    LITERAL_KIND,
    MEAN,
    MULTIPLY,
    NOT,
    NUMBER,
    OR,
    SAME,
    SUBTRACT,
    TINY,
    TRUE,
    ULP,
    UNEQUAL,
    UNSURE,
    VERDICT,
)
from engine.aggregation.native.sums import total_double


@native.inlined
def judge_link(t, came, g, i):
    """Return whether WHILE lets element i continue the run of group g: TRUE, FALSE, FAILED or UNSURE."""
    row, numbers, stack, top = came.row, came.numbers, came.stack, 0
    for k in range(len(came.code)):
        op, place = came.code[k, 0], came.code[k, 1]
        if op == NOT:
            if stack[top - 1, 0] <= TRUE:
                stack[top - 1, 0] = 1.0 - stack[top - 1, 0]
        elif op > NOT:
            top -= 1
            stack[top - 1, 0], stack[top - 1, 1] = calculate_link(op, stack[top - 1, 0], stack[top - 1, 1], stack[top, 0], stack[top, 1])
        else:
            if op == NUMBER:
                x, slack = numbers[row[i, place], 0], numbers[row[i, place], 1]
            elif op == IDENTITY:
                x, slack = float(row[i, place]), float(came.kinds[row[i, place]])
            elif op == VERDICT:
                x, slack = float(row[i, place]), 0.0
            else:
                x, slack = grown_number(t, came, g, i, place, op == MEAN)
            stack[top, 0], stack[top, 1] = x, slack
            top += 1
    return int(stack[0, 0])


# ---------------------------------------------------------------- aggregates
@native.inlined
def grown_number(t, came, g, i, a, mean):
    """Return a set function of the run with element i as a number with its error bound: nan for an error, inf for what is no number."""
    groups, values, v, column = t.groups, came.values, VALUE_WIDTH * a, t.program[a, IN_GROUP]
    op = t.program[a, OP]
    if op == COUNT:
        return float(groups[g, column + COUNTED] + (values[i, v + TERM] != 0)), 0.0
    if op == SUM:
        total, slack = grown_sum(t, came, g, i, a)
        n = float(groups[g, N] + 1)
        if not mean:
            return total, slack
        quotient = total / n
        exact = slack == 0.0 and quotient == math.floor(quotient) and quotient * n == total
        return quotient, 0.0 if exact else slack / n + abs(quotient) * ULP + TINY
    term = groups[g, column + TERM]
    new = values[i, v + TERM]
    if new != 0 and (term == 0 or beats(op, values[i, v + CLASS], values[i, v + VALUE], values[i, v + LOW], groups, g, column)):
        term = new
    return came.numbers[term, 0], came.numbers[term, 1]


@native.inlined
def grown_sum(t, came, g, i, a):
    groups, at = t.groups, t.program[a, IN_GROUP]
    class_, value = came.values[i, VALUE_WIDTH * a + CLASS], came.values[i, VALUE_WIDTH * a + VALUE]
    if class_ == ERROR or groups[g, at + ERRORS] > 0:
        return 0.0, np.nan
    if class_ > DOUBLE or groups[g, at + NANS] > 0 or groups[g, at + RISES] > 0 or groups[g, at + FALLS] > 0:
        return 0.0, np.inf
    if class_ <= DECIMAL and groups[g, at + DOUBLES] == 0:
        return divide_units(groups[g, at + HIGH] + (value >> 32), groups[g, at + REST] + (value & MASK), came.powers[a])
    before, slack = divide_units(groups[g, at + HIGH], groups[g, at + REST], 1.0)
    if groups[g, at + DOUBLES] > 0:
        before = np.int64(total_double(groups, g, at, t.limbs)).view(np.float64)
        slack = abs(before) * ULP
    total = before + (np.int64(value).view(np.float64) if class_ == DOUBLE else float(value))
    return total, bound_error(total, slack, slack + abs(total) * ULP + TINY)


@native.inlined
def divide_units(high, rest, power):
    """Return (high * 2**32 + rest) / power, which is exact where it is a whole number that a double holds."""
    whole = float(high) * 4294967296.0 + float(rest)
    total = whole / power
    exact = abs(whole) < EXACT and total == math.floor(total) and total * power == whole
    return total, 0.0 if exact else abs(total) * 2.0 * ULP


# ---------------------------------------------------------------- operators
@native.inlined
def calculate_link(op, x, slack_x, y, slack_y):
    """Return the number that two make with its error bound, or a verdict."""
    if op == AND:
        return join_verdicts(float(FALSE), x, y), 0.0
    if op == OR:
        return join_verdicts(float(TRUE), x, y), 0.0
    if op == SAME:
        return match_terms(x, slack_x, y, slack_y), 0.0
    if op == ELSE:
        return (y if x == UNSURE else x), 0.0
    slack = slack_x + slack_y
    if op == MULTIPLY:
        product = x * y
        whole = slack_x == 0.0 and slack_y == 0.0 and abs(product) < EXACT and x == math.floor(x) and y == math.floor(y)
        bound = abs(x) * slack_y + abs(y) * slack_x + slack_x * slack_y + abs(product) * ULP + TINY
        return product, 0.0 if whole else bound_error(product, slack, bound)
    if op <= SUBTRACT:
        if op == SUBTRACT:
            y = -y
        total = x + y
        part = total - x
        error = (x - (total - part)) + (y - part)  # Knuth's two-sum
        return total, slack if error == 0.0 else bound_error(total, slack, slack + abs(total) * ULP)
    return float(compare_bounded(op, x, y, slack)), 0.0


@native.inlined
def compare_bounded(op, x, y, slack):
    """Compare numbers, where their error bounds allow it. A nan bound is an operand without value."""
    if slack != slack:
        return FAILED
    if slack != 0.0 and not abs(x - y) > slack:
        return UNSURE
    if op == LESS:
        found = x < y
    elif op == LESS_OR_EQUAL:
        found = x <= y
    elif op == GREATER:
        found = x > y
    elif op == GREATER_OR_EQUAL:
        found = x >= y
    else:
        found = (x != y) == (op == UNEQUAL)
    return TRUE if found else FALSE


@native.inlined
def match_terms(x, kind_x, y, kind_y):
    """Return whether two terms are equal; if both are literals with values, these decide."""
    if x == 0.0 or y == 0.0:
        return float(FAILED)
    if kind_x >= LITERAL_KIND and kind_y >= LITERAL_KIND and (kind_x == LITERAL_KIND or kind_y == LITERAL_KIND):
        return float(UNSURE)
    return float(TRUE if x == y else FALSE)


@native.inlined
def join_verdicts(dominant, x, y):
    """Return AND (dominant FALSE) or OR (dominant TRUE) of SPARQL's logic, with UNSURE above FAILED."""
    if x == dominant or y == dominant:
        return dominant
    if x == UNSURE or y == UNSURE:
        return float(UNSURE)
    return float(FAILED) if x == FAILED or y == FAILED else 1.0 - dominant


@native.inlined
def bound_error(result, operands, bound):
    """Return the bound of a result: nan if an operand has no value, inf where the result or its bound is beyond float64."""
    if operands != operands:
        return np.nan
    return bound if math.isfinite(result) and math.isfinite(bound) else np.inf
