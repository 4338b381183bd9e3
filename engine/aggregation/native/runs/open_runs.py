"""Open runs stand in a list by their last elements, which is the order of their ends by GAP, and in a heap by when WITHIN ends them."""

from engine.aggregation.native import native
from engine.aggregation.native.hash_groups import empty_group, free_group
from engine.aggregation.native.layout import HORIZON, LEAST, NONE, STAMPED
from engine.aggregation.native.runs.layout import (
    CLOSING,
    COMING,
    DUE_AT,
    FOREVER,
    GAP,
    HEAPED,
    LAST_END,
    NEWER_RUN,
    NEWEST_RUN,
    OLDER_RUN,
    OLDEST_RUN,
    PLACE,
    REPEATED,
    REPORTED,
    WITHIN,
)
from engine.aggregation.native.sweep import report_group


# ---------------------------------------------------------------- the list
@native.inlined
def append_run(runs, g):
    """Make the run of a group, which is in no list, the one with the newest last element."""
    clock, links = runs.clock, runs.links
    last = clock[NEWEST_RUN]
    links[g, OLDER_RUN], links[g, NEWER_RUN] = last, NONE
    if last == NONE:
        clock[OLDEST_RUN] = g
    else:
        links[last, NEWER_RUN] = g
    clock[NEWEST_RUN] = g


@native.inlined
def unlink_run(runs, g):
    clock, links = runs.clock, runs.links
    older, newer = links[g, OLDER_RUN], links[g, NEWER_RUN]
    if older == NONE:
        clock[OLDEST_RUN] = newer
    else:
        links[older, NEWER_RUN] = newer
    if newer == NONE:
        clock[NEWEST_RUN] = older
    else:
        links[newer, OLDER_RUN] = older


# ---------------------------------------------------------------- the heap
@native.inlined
def put_run(runs, g, place):
    runs.heap[place] = g
    runs.links[g, PLACE] = place


@native.jit
def move_run(runs, g, place):
    """Put a group's run at `place` of the heap, which is free or its own, and then up or down to where it belongs."""
    links, heap, n = runs.links, runs.heap, runs.clock[HEAPED]
    due = links[g, DUE_AT]
    while place > 0 and due < links[heap[(place - 1) >> 1], DUE_AT]:
        put_run(runs, heap[(place - 1) >> 1], place)
        place = (place - 1) >> 1
    while 2 * place + 1 < n:
        below = 2 * place + 1
        if below + 1 < n and links[heap[below + 1], DUE_AT] < links[heap[below], DUE_AT]:
            below += 1
        if links[heap[below], DUE_AT] >= due:
            break
        put_run(runs, heap[below], place)
        place = below
    put_run(runs, g, place)


@native.jit
def set_due(t, runs, g):
    """Enter when WITHIN ends the run of a group. With CLOSED, a run with an element after the last instant of the streams has no deadline."""
    clock, links = runs.clock, runs.links
    end = links[g, LAST_END]
    due = max(end, t.groups[g, LEAST] + clock[WITHIN])
    if clock[CLOSING] != 0 and end > t.at[HORIZON]:
        due = FOREVER
    if links[g, PLACE] == NONE:
        links[g, DUE_AT], place = due, clock[HEAPED]
        clock[HEAPED] += 1
        move_run(runs, g, place)
    elif links[g, DUE_AT] != due:
        links[g, DUE_AT] = due
        move_run(runs, g, links[g, PLACE])


@native.jit
def unset_due(runs, g):
    place = runs.links[g, PLACE]
    if place != NONE:
        runs.links[g, PLACE] = NONE
        runs.clock[HEAPED] -= 1
        n = runs.clock[HEAPED]
        if place < n:
            move_run(runs, runs.heap[n], place)


# ---------------------------------------------------------------- deadlines, and the ends of runs
@native.inlined
def next_deadline(t, runs):
    """Return the group whose run time ends first, and when; NONE if time ends none.

    A run without deadline reports, with CLOSED, at the last instant of the streams, once that is known.
    """
    clock, links, horizon = runs.clock, runs.links, t.at[HORIZON]
    g, due, head = NONE, FOREVER, clock[OLDEST_RUN]
    if head != NONE and (clock[CLOSING] == 0 or links[head, LAST_END] <= horizon):
        if clock[GAP] < FOREVER:
            g, due = head, links[head, LAST_END] + clock[GAP]
        elif clock[WITHIN] == FOREVER and clock[CLOSING] != 0 and horizon < FOREVER:
            g, due = head, horizon
    if clock[HEAPED] > 0 and links[runs.heap[0], DUE_AT] < due:
        g, due = runs.heap[0], links[runs.heap[0], DUE_AT]
    return g, due


@native.entry_point
def find_deadline(t, runs):
    """Return when time ends the first run, FOREVER if it ends none."""
    return next_deadline(t, runs)[1]


@native.jit
def report_run(t, runs, g, key_n, out, entry, now):
    """Report the run of a group, on its least start and this instant."""
    if runs.links[g, REPORTED] == t.at[STAMPED]:
        runs.clock[REPEATED] = 1
    runs.links[g, REPORTED] = t.at[STAMPED]
    report_group(t, g, key_n, out, entry, t.groups[g, LEAST], now)


@native.jit
def close_run(t, runs, g, key_n):
    """Take out the run of a group, and the group too if none of its moments is to come."""
    unlink_run(runs, g)
    unset_due(runs, g)
    if runs.links[g, COMING] == 0:
        free_group(t, key_n, g)
    else:
        empty_group(t, key_n, g)
