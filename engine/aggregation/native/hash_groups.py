"""Groups are found by their key, and hold the solutions of their windows."""

import numpy as np

from engine.aggregation.native import native
from engine.aggregation.native.layout import *
from engine.aggregation.native.min_max import append, append_start, improve, leave, leave_start
from engine.aggregation.native.sums import count, free_limbs

MIX = np.int64(-7046029254386353131)
FAR = 1 << 62


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
def find(groups, heads, keys, i):
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
def make(at, program, groups, heads, keys, i):
    """Make a new group, for which there is room."""
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
def forget(at, program, groups, heads, limbs, key_n, g):
    """Free an empty group."""
    head = head_of(heads, groups[:, KEY : KEY + key_n], g)
    if heads[head] == g:
        heads[head] = groups[g, CHAINED]
    else:
        before = heads[head]
        while groups[before, CHAINED] != g:
            before = groups[before, CHAINED]
        groups[before, CHAINED] = groups[g, CHAINED]
    for a in range(len(program)):
        if program[a, OP] == SUM:
            free_limbs(at, limbs, groups[g, program[a, IN_GROUP] + LIMBS])
    groups[g, N] = 0
    groups[g, CHAINED] = at[FREE_GROUP]
    at[FREE_GROUP] = g
    at[LIVE] -= 1


@native.jit
def absorb(at, program, groups, g, limbs, values, i, start):
    """Take a solution's values into a group without window."""
    groups[g, N] += 1
    groups[g, LEAST] = min(groups[g, LEAST], start)
    for a in range(len(program)):
        op, column, v = program[a, OP], program[a, IN_GROUP], VALUE_WIDTH * a
        if op == COUNT:
            groups[g, column + COUNTED] += values[i, v + TERM] != 0
        elif op == SUM:
            count(at, groups, g, column, values[i, v + CLASS], values[i, v + VALUE], 1, limbs)
        elif values[i, v + TERM] != 0:
            improve(groups, g, column, op, values[i, v + TERM], values[i, v + CLASS], values[i, v + VALUE], values[i, v + LOW])


@native.jit
def enter(at, program, groups, g, solutions, limbs, values, i, start, end):
    """Take a solution into a window."""
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
            count(at, groups, g, column, values[i, v + CLASS], values[i, v + VALUE], 1, limbs)
        elif values[i, v + TERM] != 0:
            append(groups, g, column, op, solutions, s, k)
    return s


@native.jit
def exit_(at, program, groups, solutions, limbs, s):
    """Let the oldest solution of its group leave the window."""
    g = solutions[s, GROUP]
    groups[g, N] -= 1
    leave_start(groups, g, solutions, s)
    for a in range(len(program)):
        op, column, k = program[a, OP], program[a, IN_GROUP], program[a, IN_SOLUTION]
        if op == COUNT:
            groups[g, column + COUNTED] -= solutions[s, k + TERM] != 0
        elif op == SUM:
            count(at, groups, g, column, solutions[s, k + CLASS], solutions[s, k + VALUE], -1, limbs)
        else:
            leave(groups, g, column, solutions, s, k)
    solutions[s, NEXT] = at[FREE_SOLUTION]
    at[FREE_SOLUTION] = s
