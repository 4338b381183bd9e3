"""Groups are found by their key, and hold the solutions of their windows."""

import numpy as np

from engine.aggregation.native import native
from engine.aggregation.native.borrowing import prefetch, prefetch_row
from engine.aggregation.native.layout import (
    CHAINED,
    CLASS,
    COUNT,
    COUNTED,
    END,
    EVER,
    FIRST,
    FREE_GROUP,
    FREE_SOLUTION,
    GROUP,
    GROUPS_TOP,
    IN_GROUP,
    IN_SOLUTION,
    KEY,
    LAST,
    LEAST,
    LIMBS,
    LIVE,
    LOW,
    MIN,
    NEWEST,
    NEXT,
    NONE,
    OLDEST,
    OP,
    S_FIRST,
    S_LAST,
    SOLUTIONS_TOP,
    START,
    SUM,
    TERM,
    VALUE,
    VALUE_WIDTH,
    WINDOW,
    N,
)
from engine.aggregation.native.min_max import append_start, append_value, keep_better, remove_start, remove_value
from engine.aggregation.native.sums import add_value, free_limbs

MIX = np.int64(-7046029254386353131)
FAR = 1 << 62
TOGETHER = 32  # so many moments fetch their groups at the same time


@native.inlined
def head_of(heads, keys, i):
    hash_ = np.int64(0)
    for k in range(keys.shape[1]):
        hash_ = (hash_ ^ keys[i, k]) * MIX
        hash_ ^= (hash_ >> 29) & 0x7FFFFFFFF
    return hash_ & (len(heads) - 1)


@native.entry_point
def spread(groups, top, key_n, heads):
    """Enter the groups into the larger table `heads`."""
    for g in range(top):
        if groups[g, N] > 0:
            head = head_of(heads, groups[:, KEY : KEY + key_n], g)
            groups[g, CHAINED] = heads[head]
            heads[head] = g


@native.jit
def fetch_groups(t, beside, keys, first):
    """Let the cache fetch the groups of TOGETHER moments from `first` on, and their rows of the table `beside`, or None.

    Tables of many groups are in no cache. So the moments wait for memory at the same time, first for all heads and then for all rows.
    """
    heads, groups, after = t.heads, t.groups, min(first + TOGETHER, len(keys))
    for i in range(first, after):
        prefetch(heads, head_of(heads, keys, i))
    for i in range(first, after):
        g = heads[head_of(heads, keys, i)]
        if g != NONE:
            prefetch_row(groups, g)
            if beside is not None:
                prefetch_row(beside, g)
    for i in range(first, after):
        g = heads[head_of(heads, keys, i)]
        if g != NONE and groups[g, CHAINED] != NONE and keys.shape[1] > 0 and groups[g, KEY] != keys[i, 0]:
            prefetch_row(groups, groups[g, CHAINED])
            if beside is not None:
                prefetch_row(beside, groups[g, CHAINED])


@native.jit
def find_group(groups, heads, keys, i):
    """Return the group of a key, NONE if there is none."""
    g = heads[head_of(heads, keys, i)]
    while g != NONE:
        same = True
        for k in range(keys.shape[1]):
            same = same and groups[g, KEY + k] == keys[i, k]
        if same:
            return g
        g = groups[g, CHAINED]
    return NONE


@native.jit
def make_group(t, keys, i):
    """Make a new group, for which there is room."""
    at, program, groups, heads = t.at, t.program, t.groups, t.heads
    g = at[FREE_GROUP]
    if g == NONE:
        g = at[GROUPS_TOP]
        at[GROUPS_TOP] += 1
    else:
        at[FREE_GROUP] = groups[g, CHAINED]
    groups[g, :] = 0
    for k in range(keys.shape[1]):
        groups[g, KEY + k] = keys[i, k]
    groups[g, OLDEST], groups[g, NEWEST], groups[g, S_FIRST], groups[g, S_LAST], groups[g, LEAST] = NONE, NONE, NONE, NONE, FAR
    for a in range(len(program)):
        column = program[a, IN_GROUP]
        if program[a, OP] == SUM:
            groups[g, column + LIMBS] = NONE  # until a double comes
        elif program[a, OP] >= MIN and at[WINDOW] != EVER:
            groups[g, column + FIRST], groups[g, column + LAST] = NONE, NONE
    head = head_of(heads, keys, i)
    groups[g, CHAINED] = heads[head]
    heads[head] = g
    at[LIVE] += 1
    return g


@native.jit
def empty_group(t, key_n, g):
    """Bring a group without window to where it has no solution."""
    groups = t.groups
    free_sums(t, g)
    groups[g, N], groups[g, LEAST] = 0, FAR
    for column in range(KEY + key_n, groups.shape[1]):
        groups[g, column] = 0
    for a in range(len(t.program)):
        if t.program[a, OP] == SUM:
            groups[g, t.program[a, IN_GROUP] + LIMBS] = NONE


@native.inlined
def free_sums(t, g):
    for a in range(len(t.program)):
        if t.program[a, OP] == SUM:
            free_limbs(t.at, t.limbs, t.groups[g, t.program[a, IN_GROUP] + LIMBS])


@native.jit
def free_group(t, key_n, g):
    """Free an empty group."""
    at, groups, heads = t.at, t.groups, t.heads
    head = head_of(heads, groups[:, KEY : KEY + key_n], g)
    if heads[head] == g:
        heads[head] = groups[g, CHAINED]
    else:
        before = heads[head]
        while groups[before, CHAINED] != g:
            before = groups[before, CHAINED]
        groups[before, CHAINED] = groups[g, CHAINED]
    free_sums(t, g)
    groups[g, N] = 0
    groups[g, CHAINED] = at[FREE_GROUP]
    at[FREE_GROUP] = g
    at[LIVE] -= 1


@native.inlined
def absorb_solution(t, g, values, i, start):
    """Take a solution's values into a group without window."""
    program, groups = t.program, t.groups
    groups[g, N] += 1
    groups[g, LEAST] = min(groups[g, LEAST], start)
    for a in range(len(program)):
        op, column, v = program[a, OP], program[a, IN_GROUP], VALUE_WIDTH * a
        if op == COUNT:
            groups[g, column + COUNTED] += values[i, v + TERM] != 0
        elif op == SUM:
            add_value(t, g, column, values[i, v + CLASS], values[i, v + VALUE], 1)
        elif values[i, v + TERM] != 0:
            keep_better(groups, g, column, op, values, i, v)


@native.jit
def enter_window(t, g, values, i, start, end):
    """Take a solution into a window."""
    at, program, groups, solutions = t.at, t.program, t.groups, t.solutions
    s = at[FREE_SOLUTION]
    if s == NONE:
        s = at[SOLUTIONS_TOP]
        at[SOLUTIONS_TOP] += 1
    else:
        at[FREE_SOLUTION] = solutions[s, NEXT]
    solutions[s, START], solutions[s, END], solutions[s, GROUP], solutions[s, NEXT] = start, end, g, NONE
    groups[g, N] += 1
    append_start(groups, g, solutions, s)
    for a in range(len(program)):
        op, column, k, v = program[a, OP], program[a, IN_GROUP], program[a, IN_SOLUTION], VALUE_WIDTH * a
        solutions[s, k + TERM] = values[i, v + TERM]
        if op == COUNT:
            groups[g, column + COUNTED] += values[i, v + TERM] != 0
            continue
        solutions[s, k + CLASS], solutions[s, k + VALUE], solutions[s, k + LOW] = values[i, v + CLASS], values[i, v + VALUE], values[i, v + LOW]
        if op == SUM:
            add_value(t, g, column, values[i, v + CLASS], values[i, v + VALUE], 1)
        elif values[i, v + TERM] != 0:
            append_value(groups, g, column, op, solutions, s, k)
    return s


@native.jit
def leave_window(t, s):
    """Let the oldest solution of its group leave the window."""
    at, program, groups, solutions = t.at, t.program, t.groups, t.solutions
    g = solutions[s, GROUP]
    groups[g, N] -= 1
    remove_start(groups, g, solutions, s)
    for a in range(len(program)):
        op, column, k = program[a, OP], program[a, IN_GROUP], program[a, IN_SOLUTION]
        if op == COUNT:
            groups[g, column + COUNTED] -= solutions[s, k + TERM] != 0
        elif op == SUM:
            add_value(t, g, column, solutions[s, k + CLASS], solutions[s, k + VALUE], -1)
        else:
            remove_value(groups, g, column, solutions, s, k)
    solutions[s, NEXT] = at[FREE_SOLUTION]
    at[FREE_SOLUTION] = s
