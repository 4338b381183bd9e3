"""A sweep runs through many instants of one node: solutions come and leave, and groups report (semantics.md section 7)."""

from engine.aggregation.native import native
from engine.aggregation.native.hash_groups import absorb, enter, exit_, find, forget, make
from engine.aggregation.native.layout import *
from engine.aggregation.native.sums import give_sum


@native.entry_point
def sweep(at, program, groups, heads, solutions, limbs, gained, moments, keys, values, out):
    """Take in `moments` from at[MOMENT] on, and return DONE, or ROOM where an instant may need more room than there is.

    With ROOM, `at[NEED]` is what each table needs.

    keys: a row a moment; values: VALUE_WIDTH columns a set function; gained: room for a group a moment; out: at[FOUND] reports.
    """
    i = at[MOMENT]
    while i < len(moments):
        after = i + 1
        while after < len(moments) and moments[after, M_NOW] == moments[i, M_NOW]:
            after += 1
        if not has_room(at, program, groups, solutions, limbs, out, after - i):
            return ROOM
        instant(at, program, groups, heads, solutions, limbs, gained, moments, keys, values, out, i, after)
        at[MOMENT] = i = after
    return DONE


@native.jit
def has_room(at, program, groups, solutions, limbs, out, n):
    """Return whether there is room for n moments of an instant.

    They may bring as many new solutions and groups, and a report for each group that then is.
    """
    at[NEED] = n + at[LIVE] if at[STEP] > 0 else n
    return (
        at[FOUND] + at[NEED] <= len(out)
        and at[GROUPS_TOP] + n <= len(groups)
        and at[LIMBS_TOP] + n * len(program) <= len(limbs)
        and (at[WINDOW] == EVER or at[SOLUTIONS_TOP] + n <= len(solutions))
    )


@native.jit
def instant(at, program, groups, heads, solutions, limbs, gained, moments, keys, values, out, first, after):
    now, entry = moments[first, M_NOW], moments[first, M_ENTRY]
    at[STAMPED] += 1
    n, woken = 0, NONE
    for i in range(first, after):
        if moments[i, M_SIDE] == SOLUTION:
            g = find(groups, heads, keys, i)
            if g == NONE:
                g = make(at, program, groups, heads, keys, i)
            come(at, program, groups, g, solutions, limbs, moments, values, i)
            if groups[g, STAMP] != at[STAMPED]:
                groups[g, STAMP] = at[STAMPED]
                gained[n] = g
                n += 1
            if now <= at[HORIZON]:
                at[LATEST] = now
        elif moments[i, M_SIDE] == WAKE:
            woken = i
    if at[WINDOW] == RANGE:
        expire(at, program, groups, heads, solutions, limbs, keys.shape[1], now - at[LENGTH])
    if at[STEP] > 0:
        if now % at[STEP] == 0 and at[LATEST] > now - at[LENGTH]:
            report_all(at, program, groups, solutions, limbs, keys.shape[1], out, entry, now)
        return
    for k in range(n):
        least = groups[gained[k], LEAST] if at[WINDOW] == EVER else solutions[groups[gained[k], S_FIRST], START]
        report(at, program, groups, gained[k], solutions, limbs, keys.shape[1], out, entry, min(least, now), now)
    if woken != NONE:
        wake(at, program, groups, heads, solutions, limbs, keys, woken, out, entry, now)


@native.jit
def come(at, program, groups, g, solutions, limbs, moments, values, i):
    """Let a solution come to its group; of the last so many, the oldest leaves."""
    start, end = moments[i, M_START], moments[i, M_END]
    if at[WINDOW] == EVER:
        absorb(at, program, groups, g, limbs, values, i, start)
        return
    s = enter(at, program, groups, g, solutions, limbs, values, i, start, end)
    if at[WINDOW] == RANGE:
        if at[LAST_IN] == NONE:
            at[FIRST_OUT] = s
        else:
            solutions[at[LAST_IN], NEXT] = s
        at[LAST_IN] = s
        return
    if groups[g, NEWEST] == NONE:
        groups[g, OLDEST] = s
    else:
        solutions[groups[g, NEWEST], NEXT] = s
    groups[g, NEWEST] = s
    if groups[g, N] > at[LENGTH]:
        oldest = groups[g, OLDEST]
        groups[g, OLDEST] = solutions[oldest, NEXT]
        exit_(at, program, groups, solutions, limbs, oldest)


@native.jit
def expire(at, program, groups, heads, solutions, limbs, key_n, until):
    """Drop solutions that have left a RANGE window, and groups that have none."""
    while at[FIRST_OUT] != NONE and solutions[at[FIRST_OUT], END] <= until:
        s = at[FIRST_OUT]
        g = solutions[s, GROUP]
        at[FIRST_OUT] = solutions[s, NEXT]
        exit_(at, program, groups, solutions, limbs, s)
        if groups[g, N] == 0:
            forget(at, program, groups, heads, limbs, key_n, g)
    if at[FIRST_OUT] == NONE:
        at[LAST_IN] = NONE


@native.jit
def report_all(at, program, groups, solutions, limbs, key_n, out, entry, now):
    for g in range(at[GROUPS_TOP]):
        if groups[g, N] > 0:
            report(at, program, groups, g, solutions, limbs, key_n, out, entry, now - at[LENGTH], now)


@native.jit
def wake(at, program, groups, heads, solutions, limbs, keys, i, out, entry, now):
    """Let the one implicit group report when it comes into being, though it be empty."""
    g = find(groups, heads, keys, i)
    if g != NONE and groups[g, STAMP] == at[STAMPED]:
        return
    new = g == NONE
    if new:
        g = make(at, program, groups, heads, keys, i)
    least = groups[g, LEAST] if groups[g, S_FIRST] == NONE else solutions[groups[g, S_FIRST], START]
    report(at, program, groups, g, solutions, limbs, keys.shape[1], out, entry, min(least, now), now)
    if new:
        forget(at, program, groups, heads, limbs, keys.shape[1], g)


@native.jit
def report(at, program, groups, g, solutions, limbs, key_n, out, entry, start, now):
    r = at[FOUND]
    at[FOUND] = r + 1
    out[r, R_ENTRY], out[r, R_START], out[r, R_END] = entry, start, now
    for k in range(key_n):
        out[r, R_KEY + k] = groups[g, KEY + k]
    for a in range(len(program)):
        op, column, k = program[a, OP], program[a, IN_GROUP], R_KEY + key_n + RESULT_WIDTH * a
        out[r, k + OF] = groups[g, N]
        if op == SUM:
            give_sum(groups, g, column, limbs, out, r, k)
            continue
        out[r, k + RESULT_HIGH] = 0
        if op == COUNT:
            out[r, k + CODE], out[r, k + RESULT] = AN_INTEGER, groups[g, column + COUNTED]
        elif at[WINDOW] == EVER:
            out[r, k + CODE], out[r, k + RESULT] = A_TERM, groups[g, column + TERM]
        else:
            best = groups[g, column + FIRST]
            out[r, k + CODE], out[r, k + RESULT] = A_TERM, 0 if best == NONE else solutions[best, program[a, IN_SOLUTION] + TERM]
