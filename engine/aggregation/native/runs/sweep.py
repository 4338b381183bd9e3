"""A sweep links the elements of many instants to runs, and ends runs.

element y of the group ── links to the open run ──▶ the run grows ─────────────┐
                 └─────── does not ──▶ the run is over (a), y begins another ──┴▶ EACH: runs that grew report
UNTIL's z after the last element (c), the deadline (b), the last instant (d) ──▶ the run is over ──▶ CLOSED: it reports
"""

from engine.aggregation.native import native
from engine.aggregation.native.borrowing import borrowed, prefetch_row
from engine.aggregation.native.hash_groups import TOGETHER, absorb_solution, empty_group, fetch_groups, find_group, make_group
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
    FALSE,
    FIRST_MOMENT,
    FOREVER,
    GAINED,
    GAP,
    LAST_END,
    LIMIT,
    NEWER_RUN,
    OLDEST_RUN,
    PLACE,
    PREVIOUS,
    TRUE,
    UNDECIDED,
    UNSURE,
    WITHIN,
)
from engine.aggregation.native.runs.links import judge_link
from engine.aggregation.native.runs.open_runs import append_run, close_run, next_deadline, report_run, set_due, unlink_run


@native.entry_point
def place_elements(t, runs, came):
    """Give each element its group, which is made if there is none, and what PREV is at it. There is room for a group an element."""
    t, runs, came = borrowed(t), borrowed(runs), borrowed(came)
    links, moments, row, width = runs.links, came.moments, came.row, came.previous.shape[1]
    for i in range(len(moments)):
        if i % TOGETHER == 0:
            fetch_groups(t, links, came.keys, i)
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
            row[i, k] = links[g, PREVIOUS + k]
            links[g, PREVIOUS + k] = came.previous[i, k]


@native.entry_point
def judge_elements(t, came):
    """Say in `linked` what WHILE says of each element, where nothing in it depends on the run."""
    t, came = borrowed(t), borrowed(came)
    for i in range(len(came.moments)):
        if came.linked[i] == UNSURE:
            came.linked[i] = judge_link(t, came, 0, i) if len(came.code) > 0 else TRUE


@native.entry_point
def sweep_runs(t, runs, came, gained, out):
    """Take in the moments from at[MOMENT] on, then end all runs whose deadlines come before LIMIT.

    Return DONE; ROOM where `at[NEED]` more reports may be than there is room for; or UNDECIDED, where the host has to decide the link of at[MOMENT].
    A report of a deadline has no entry (NONE).

    t: Tables; runs: RunTables; came: ElementColumns; gained: room for a group a moment; out: at[FOUND] reports.
    """
    t, runs, came, (gained, out) = borrowed(t), borrowed(runs), borrowed(came), borrowed((gained, out))
    at, moments, key_n = t.at, came.moments, came.keys.shape[1]
    while at[MOMENT] < len(moments):
        now = moments[at[MOMENT], M_NOW]
        if came.begun[FIRST_MOMENT] == NONE and not begin_instant(t, runs, came, out, now):
            return ROOM
        while at[MOMENT] < len(moments) and moments[at[MOMENT], M_NOW] == now:
            if at[MOMENT] % TOGETHER == 0:
                fetch_runs(t, runs, came, at[MOMENT])
            if moments[at[MOMENT], M_SIDE] == SOLUTION and not take_element(t, runs, came, gained, out, at[MOMENT]):
                return UNDECIDED
            at[MOMENT] += 1
        end_instant(t, runs, came, gained, out, now)
    if not expire_runs(t, runs, key_n, out, runs.clock[LIMIT]):
        return ROOM
    return DONE


@native.inlined
def fetch_runs(t, runs, came, first):
    """Let the cache fetch the groups and links of TOGETHER moments from `first` on, since those of a whole feed do not stay in it."""
    for i in range(first, min(first + TOGETHER, len(came.group))):
        prefetch_row(t.groups, came.group[i])
        prefetch_row(runs.links, came.group[i])


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
def begin_instant(t, runs, came, out, now):
    """Begin the instant of at[MOMENT]; return whether there is room for its reports."""
    at, moments, after, wakes = t.at, came.moments, t.at[MOMENT], 0
    if not expire_runs(t, runs, came.keys.shape[1], out, now):
        return False
    while after < len(moments) and moments[after, M_NOW] == now:
        wakes += moments[after, M_SIDE] == WAKE
        after += 1
    at[NEED] = after - at[MOMENT] + (at[LIVE] if wakes > 0 else 0)
    if at[FOUND] + at[NEED] > len(out):
        return False
    at[STAMPED] += 1
    came.begun[FIRST_MOMENT], came.begun[GAINED] = at[MOMENT], 0
    return True


@native.inlined
def end_instant(t, runs, came, gained, out, now):
    """Let UNTIL's solutions break links, and with EACH the runs that grew report."""
    moments, begun, first = came.moments, came.begun, came.begun[FIRST_MOMENT]
    for i in range(first, t.at[MOMENT]):
        if moments[i, M_SIDE] == WAKE:
            break_links(t, runs, came, i, out)
    if runs.clock[CLOSING] == 0:
        for k in range(begun[GAINED]):
            report_run(t, runs, gained[k], came.keys.shape[1], out, moments[first, M_ENTRY], now)
    begun[FIRST_MOMENT] = NONE


@native.inlined
def take_element(t, runs, came, gained, out, i):
    """Let element i continue the open run of its group, or begin one; return False if the host has to decide that."""
    at, g, key_n = t.at, came.group[i], came.keys.shape[1]
    if t.groups[g, N] > 0:
        verdict = judge_element(t, runs, came, g, i)
        if verdict == UNSURE:
            return False
        unlink_run(runs, g)
        if verdict != TRUE:
            if runs.clock[CLOSING] != 0 or t.groups[g, STAMP] == at[STAMPED]:
                report_run(t, runs, g, key_n, out, came.moments[i, M_ENTRY], came.moments[i, M_NOW])
            empty_group(t, key_n, g)
    absorb_solution(t, g, came.values, i, came.moments[i, M_START])
    append_run(runs, g)
    runs.links[g, LAST_END] = came.moments[i, M_END]
    runs.links[g, COMING] -= 1
    if runs.clock[WITHIN] < FOREVER:
        set_due(t, runs, g)
    if t.groups[g, STAMP] != at[STAMPED]:
        t.groups[g, STAMP] = at[STAMPED]
        gained[came.begun[GAINED]] = g
        came.begun[GAINED] += 1
    return True


@native.inlined
def judge_element(t, runs, came, g, i):
    """Return whether element i continues the open run of its group."""
    clock, start, end = runs.clock, came.moments[i, M_START], came.moments[i, M_END]
    if end - runs.links[g, LAST_END] > clock[GAP] or end - min(t.groups[g, LEAST], start) > clock[WITHIN]:
        return FALSE
    return judge_link(t, came, g, i) if came.linked[i] == UNSURE else came.linked[i]


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
