"""A sweep runs through many instants of one node: solutions come and leave, and groups report (semantics.md section 7)."""

from engine.aggregation.native import native
from engine.aggregation.native.borrowing import borrowed
from engine.aggregation.native.hash_groups import (
    TOGETHER,
    absorb_solution,
    enter_window,
    fetch_groups,
    find_group,
    free_group,
    leave_window,
    make_group,
)
from engine.aggregation.native.layout import (
    A_TERM,
    AN_INTEGER,
    CODE,
    COUNT,
    COUNTED,
    DONE,
    END,
    EVER,
    FIRST,
    FIRST_OUT,
    FOUND,
    GROUP,
    GROUPS_TOP,
    HORIZON,
    IN_GROUP,
    IN_SOLUTION,
    KEY,
    LAST_IN,
    LATEST,
    LEAST,
    LENGTH,
    LIMBS_TOP,
    LIVE,
    M_END,
    M_ENTRY,
    M_NOW,
    M_SIDE,
    M_START,
    MOMENT,
    NEED,
    NEWEST,
    NEXT,
    NONE,
    OF,
    OLDEST,
    OP,
    R_END,
    R_ENTRY,
    R_KEY,
    R_START,
    RANGE,
    RESULT,
    RESULT_HIGH,
    RESULT_WIDTH,
    ROOM,
    S_FIRST,
    SOLUTION,
    SOLUTIONS_TOP,
    STAMP,
    STAMPED,
    START,
    STEP,
    SUM,
    TERM,
    WAKE,
    WINDOW,
    N,
)
from engine.aggregation.native.sums import report_sum


@native.entry_point
def sweep(t, came, gained, out):
    """Take in `moments` from at[MOMENT] on, and return DONE, or ROOM where an instant may need more room than there is.

    With ROOM, `at[NEED]` is what each table needs.

    t: Tables; came: MomentColumns; gained: room for a group a moment; out: at[FOUND] reports.
    """
    t, came, (gained, out) = borrowed(t), borrowed(came), borrowed((gained, out))
    moments, i = came.moments, t.at[MOMENT]
    while i < len(moments):
        after = i + 1
        while after < len(moments) and moments[after, M_NOW] == moments[i, M_NOW]:
            after += 1
        if not has_room(t, out, after - i):
            return ROOM
        sweep_instant(t, came, gained, out, i, after)
        t.at[MOMENT] = i = after
    return DONE


@native.jit
def has_room(t, out, n):
    """Return whether there is room for n moments of an instant.

    They may bring as many new solutions and groups, and a report for each group that then is.
    """
    at = t.at
    at[NEED] = n + at[LIVE] if at[STEP] > 0 else n
    return (
        at[FOUND] + at[NEED] <= len(out)
        and at[GROUPS_TOP] + n <= len(t.groups)
        and at[LIMBS_TOP] + n * len(t.program) <= len(t.limbs)
        and (at[WINDOW] == EVER or at[SOLUTIONS_TOP] + n <= len(t.solutions))
    )


@native.jit
def sweep_instant(t, came, gained, out, first, after):
    at, groups, moments, key_n = t.at, t.groups, came.moments, came.keys.shape[1]
    now, entry = moments[first, M_NOW], moments[first, M_ENTRY]
    at[STAMPED] += 1
    n, woken = 0, NONE
    for i in range(first, after):
        if i % TOGETHER == 0:
            fetch_groups(t, None, came.keys, i)
        if moments[i, M_SIDE] == SOLUTION:
            g = find_group(groups, t.heads, came.keys, i)
            if g == NONE:
                g = make_group(t, came.keys, i)
            take_solution(t, g, came, i)
            if groups[g, STAMP] != at[STAMPED]:
                groups[g, STAMP] = at[STAMPED]
                gained[n] = g
                n += 1
            if now <= at[HORIZON]:
                at[LATEST] = now
        elif moments[i, M_SIDE] == WAKE:
            woken = i
    if at[WINDOW] == RANGE:
        expire_solutions(t, key_n, now - at[LENGTH])
    if at[STEP] > 0:
        if now % at[STEP] == 0 and at[LATEST] > now - at[LENGTH]:
            report_all(t, key_n, out, entry, now)
        return
    for k in range(n):
        least = groups[gained[k], LEAST] if at[WINDOW] == EVER else t.solutions[groups[gained[k], S_FIRST], START]
        report_group(t, gained[k], key_n, out, entry, min(least, now), now)
    if woken != NONE:
        report_implicit(t, came.keys, woken, out, entry, now)


@native.jit
def take_solution(t, g, came, i):
    """Let a solution come to its group; of the last so many, the oldest leaves."""
    at, groups, solutions, moments = t.at, t.groups, t.solutions, came.moments
    start, end = moments[i, M_START], moments[i, M_END]
    if at[WINDOW] == EVER:
        absorb_solution(t, g, came.values, i, start)
        return
    s = enter_window(t, g, came.values, i, start, end)
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
        leave_window(t, oldest)


@native.jit
def expire_solutions(t, key_n, until):
    """Drop solutions that have left a RANGE window, and groups that have none."""
    at, groups, solutions = t.at, t.groups, t.solutions
    while at[FIRST_OUT] != NONE and solutions[at[FIRST_OUT], END] <= until:
        s = at[FIRST_OUT]
        g = solutions[s, GROUP]
        at[FIRST_OUT] = solutions[s, NEXT]
        leave_window(t, s)
        if groups[g, N] == 0:
            free_group(t, key_n, g)
    if at[FIRST_OUT] == NONE:
        at[LAST_IN] = NONE


@native.jit
def report_all(t, key_n, out, entry, now):
    for g in range(t.at[GROUPS_TOP]):
        if t.groups[g, N] > 0:
            report_group(t, g, key_n, out, entry, now - t.at[LENGTH], now)


@native.jit
def report_implicit(t, keys, i, out, entry, now):
    """Let the one implicit group report when it comes into being, though it be empty."""
    at, groups, solutions = t.at, t.groups, t.solutions
    g = find_group(groups, t.heads, keys, i)
    if g != NONE and groups[g, STAMP] == at[STAMPED]:
        return
    new = g == NONE
    if new:
        g = make_group(t, keys, i)
    least = groups[g, LEAST] if groups[g, S_FIRST] == NONE else solutions[groups[g, S_FIRST], START]
    report_group(t, g, keys.shape[1], out, entry, min(least, now), now)
    if new:
        free_group(t, keys.shape[1], g)


@native.jit
def report_group(t, g, key_n, out, entry, start, now):
    at, program, groups, solutions = t.at, t.program, t.groups, t.solutions
    r = at[FOUND]
    at[FOUND] = r + 1
    out[r, R_ENTRY], out[r, R_START], out[r, R_END] = entry, start, now
    for k in range(key_n):
        out[r, R_KEY + k] = groups[g, KEY + k]
    for a in range(len(program)):
        op, column, k = program[a, OP], program[a, IN_GROUP], R_KEY + key_n + RESULT_WIDTH * a
        out[r, k + OF] = groups[g, N]
        if op == SUM:
            report_sum(groups, g, column, t.limbs, out, r, k)
            continue
        out[r, k + RESULT_HIGH] = 0
        if op == COUNT:
            out[r, k + CODE], out[r, k + RESULT] = AN_INTEGER, groups[g, column + COUNTED]
        elif at[WINDOW] == EVER:
            out[r, k + CODE], out[r, k + RESULT] = A_TERM, groups[g, column + TERM]
        else:
            best = groups[g, column + FIRST]
            out[r, k + CODE], out[r, k + RESULT] = A_TERM, 0 if best == NONE else solutions[best, program[a, IN_SOLUTION] + TERM]
