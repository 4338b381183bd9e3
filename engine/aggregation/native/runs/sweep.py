"""A sweep links the elements of many instants to runs, and ends runs.

element y of the group ── links to the open run ──▶ the run grows ─────────────┐
                 └─────── does not ──▶ the run is over (a), y begins another ──┴▶ EACH: runs that grew report
UNTIL's z after the last element (c), the deadline (b), the last instant (d) ──▶ the run is over ──▶ CLOSED: it reports
"""

from engine.aggregation.native import native
from engine.aggregation.native.borrowing import borrowed
from engine.aggregation.native.hash_groups import absorb_solution, empty_group, find_group, make_group
from engine.aggregation.native.layout import (
    DONE,
    FOUND,
    KEY,
    LEAST,
    LIVE,
    M_END,
    M_ENTRY,
    M_NOW,
    M_SIDE,
    M_START,
    MOMENT,
    NEED,
    NONE,
    ROOM,
    SOLUTION,
    STAMP,
    STAMPED,
    WAKE,
    N,
)
from engine.aggregation.native.runs.layout import (
    CERTAIN,
    CLOSING,
    COMING,
    FOREVER,
    GAP,
    LAST_END,
    LIMIT,
    NEWER_RUN,
    OLDEST_RUN,
    PLACE,
    PREVIOUS,
    WITHIN,
)
from engine.aggregation.native.runs.open_runs import append_run, close_run, next_deadline, report_run, set_due, unlink_run


@native.entry_point
def place_elements(t, runs, came):
    """Give each element its group, which is made if there is none, and what PREV is at it. There is room for a group an element."""
    t, runs, came = borrowed(t), borrowed(runs), borrowed(came)
    links, moments, width = runs.links, came.moments, came.previous.shape[1]
    for i in range(len(moments)):
        if moments[i, M_SIDE] != SOLUTION:
            continue
        g = find_group(t.groups, t.heads, came.keys, i)
        if g == NONE:
            g = make_group(t, came.keys, i)
            links[g, :] = 0
            links[g, PLACE] = NONE
        came.group[i] = g
        links[g, COMING] += 1
        for k in range(width):
            came.lag[i, k] = links[g, PREVIOUS + k]
            links[g, PREVIOUS + k] = came.previous[i, k]


@native.entry_point
def sweep_runs(t, runs, came, gained, out):
    """Take in the moments from at[MOMENT] on, then end all runs whose deadlines come before LIMIT.

    Return DONE, or ROOM where `at[NEED]` more reports may be than there is room for. A report of a deadline has no entry (NONE).

    t: Tables; runs: RunTables; came: ElementColumns; gained: room for a group a moment; out: at[FOUND] reports.
    """
    t, runs, came, (gained, out) = borrowed(t), borrowed(runs), borrowed(came), borrowed((gained, out))
    moments, key_n, i = came.moments, came.keys.shape[1], t.at[MOMENT]
    while i < len(moments):
        now = moments[i, M_NOW]
        if not expire_runs(t, runs, key_n, out, now):
            return ROOM
        after, wakes = i, 0
        while after < len(moments) and moments[after, M_NOW] == now:
            wakes += moments[after, M_SIDE] == WAKE
            after += 1
        t.at[NEED] = after - i + (t.at[LIVE] if wakes > 0 else 0)
        if t.at[FOUND] + t.at[NEED] > len(out):
            return ROOM
        sweep_run_instant(t, runs, came, gained, out, i, after)
        t.at[MOMENT] = i = after
    if not expire_runs(t, runs, key_n, out, runs.clock[LIMIT]):
        return ROOM
    return DONE


@native.inlined
def expire_runs(t, runs, key_n, out, until):
    """End the runs whose deadlines come before `until`, each at its own; return whether there was room for their reports."""
    at, closing = t.at, runs.clock[CLOSING] != 0
    g, due = next_deadline(t, runs)
    while g != NONE and due < until:
        if closing:
            if at[FOUND] == len(out):
                at[NEED] = at[LIVE]
                return False
            report_run(t, runs, g, key_n, out, NONE, due)
        close_run(t, runs, g, key_n)
        g, due = next_deadline(t, runs)
    return True


@native.inlined
def sweep_run_instant(t, runs, came, gained, out, first, after):
    at, moments, key_n = t.at, came.moments, came.keys.shape[1]
    now, entry, closing = moments[first, M_NOW], moments[first, M_ENTRY], runs.clock[CLOSING] != 0
    at[STAMPED] += 1
    n = 0
    for i in range(first, after):
        if moments[i, M_SIDE] == SOLUTION:
            g = came.group[i]
            if t.groups[g, N] > 0 and not links_to_run(t, runs, came, g, i):
                if closing or t.groups[g, STAMP] == at[STAMPED]:
                    report_run(t, runs, g, key_n, out, entry, now)
                unlink_run(runs, g)
                empty_group(t, key_n, g)
            take_element(t, runs, came, g, i)
            if t.groups[g, STAMP] != at[STAMPED]:
                t.groups[g, STAMP] = at[STAMPED]
                gained[n] = g
                n += 1
    for i in range(first, after):
        if moments[i, M_SIDE] == WAKE:
            break_links(t, runs, came, i, out)
    if not closing:
        for k in range(n):
            report_run(t, runs, gained[k], key_n, out, entry, now)


@native.inlined
def links_to_run(t, runs, came, g, i):
    """Return whether element i continues the open run of its group."""
    clock, start, end = runs.clock, came.moments[i, M_START], came.moments[i, M_END]
    near = end - runs.links[g, LAST_END] <= clock[GAP] and end - min(t.groups[g, LEAST], start) <= clock[WITHIN]
    return near and came.linked[i] != 0


@native.inlined
def take_element(t, runs, came, g, i):
    """Let element i continue the open run of its group, or begin one."""
    if t.groups[g, N] > 0:
        unlink_run(runs, g)
    absorb_solution(t, g, came.values, i, came.moments[i, M_START])
    append_run(runs, g)
    runs.links[g, LAST_END] = came.moments[i, M_END]
    runs.links[g, COMING] -= 1
    if runs.clock[WITHIN] < FOREVER:
        set_due(t, runs, g)


@native.jit
def break_links(t, runs, came, i, out):
    """End the runs of groups that agree with UNTIL's solution i whose last elements end before it starts."""
    moments, keys, key_n, clock, links = came.moments, came.keys, came.keys.shape[1], runs.clock, runs.links
    start, bound = moments[i, M_START], clock[CERTAIN] != 0
    for k in range(key_n):
        bound = bound and keys[i, k] != 0
    if bound:
        g = find_group(t.groups, t.heads, keys, i)
        if g != NONE and t.groups[g, N] > 0 and links[g, LAST_END] < start:
            break_run(t, runs, came, g, i, out)
        return
    g = clock[OLDEST_RUN]
    while g != NONE and links[g, LAST_END] < start:
        newer = links[g, NEWER_RUN]
        if agrees(t.groups, keys, g, i):
            break_run(t, runs, came, g, i, out)
        g = newer


@native.inlined
def agrees(groups, keys, g, i):
    """Return whether a group's key agrees with that of moment i; an unbound part agrees with all."""
    agreed = True
    for k in range(keys.shape[1]):
        mine, theirs = keys[i, k], groups[g, KEY + k]
        agreed = agreed and (mine == 0 or theirs == 0 or mine == theirs)
    return agreed


@native.jit
def break_run(t, runs, came, g, i, out):
    if runs.clock[CLOSING] != 0:
        report_run(t, runs, g, came.keys.shape[1], out, came.moments[i, M_ENTRY], came.moments[i, M_NOW])
    close_run(t, runs, g, came.keys.shape[1])
