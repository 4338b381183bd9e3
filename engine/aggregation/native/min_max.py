"""MIN, MAX, FIRST and LAST keep the best so far without window; in one, the values that may yet be it, oldest first, none better than the one before."""

from engine.aggregation.native import native
from engine.aggregation.native.layout import (
    CLASS,
    FIRST,
    FIRST_VALUE,
    LAST,
    LAST_VALUE,
    LOW,
    MIN,
    NEWER,
    NONE,
    OLDER,
    S_FIRST,
    S_LAST,
    S_NEWER,
    S_OLDER,
    START,
    TERM,
    VALUE,
)


@native.inlined
def beats(op, class_, value, low, table, row, at):
    """Return whether a value is better than the one whose TERM stands at column `at`; an equal one is not.

    The first value is better than all others, or the last one is.
    """
    if op >= FIRST_VALUE:
        return op == LAST_VALUE
    other = table[row, at + CLASS]
    if class_ != other:
        return (class_ < other) == (op == MIN)
    other = table[row, at + VALUE]
    if value != other:
        return (value < other) == (op == MIN)
    other = table[row, at + LOW]
    return low != other and (low < other) == (op == MIN)


@native.inlined
def keep_better(groups, g, at, op, values, i, v):
    """Take the value at columns v of row i in without window, if it is better."""
    class_, value, low = values[i, v + CLASS], values[i, v + VALUE], values[i, v + LOW]
    if groups[g, at + TERM] == 0 or beats(op, class_, value, low, groups, g, at):
        groups[g, at + TERM], groups[g, at + CLASS], groups[g, at + VALUE], groups[g, at + LOW] = values[i, v + TERM], class_, value, low


@native.jit
def append_value(groups, g, at, op, solutions, s, k):
    """Make solution s, with its value at columns k, the last that may yet be the answer."""
    last = groups[g, at + LAST]
    while last != NONE and beats(op, solutions[s, k + CLASS], solutions[s, k + VALUE], solutions[s, k + LOW], solutions, last, k):
        last = solutions[last, k + OLDER]
    solutions[s, k + OLDER], solutions[s, k + NEWER] = last, NONE
    if last == NONE:
        groups[g, at + FIRST] = s
    else:
        solutions[last, k + NEWER] = s
    groups[g, at + LAST] = s


@native.jit
def remove_value(groups, g, at, solutions, s, k):
    """Let the oldest solution leave."""
    if groups[g, at + FIRST] != s:
        return
    first = solutions[s, k + NEWER]
    groups[g, at + FIRST] = first
    if first == NONE:
        groups[g, at + LAST] = NONE
    else:
        solutions[first, k + OLDER] = NONE


@native.jit
def append_start(groups, g, solutions, s):
    """Append a solution, as `append_value` does, for the least start."""
    last = groups[g, S_LAST]
    while last != NONE and solutions[s, START] < solutions[last, START]:
        last = solutions[last, S_OLDER]
    solutions[s, S_OLDER], solutions[s, S_NEWER] = last, NONE
    if last == NONE:
        groups[g, S_FIRST] = s
    else:
        solutions[last, S_NEWER] = s
    groups[g, S_LAST] = s


@native.jit
def remove_start(groups, g, solutions, s):
    """Let the oldest solution leave, as `remove_value` does, for the least start."""
    if groups[g, S_FIRST] != s:
        return
    first = solutions[s, S_NEWER]
    groups[g, S_FIRST] = first
    if first == NONE:
        groups[g, S_LAST] = NONE
    else:
        solutions[first, S_OLDER] = NONE
