"""Timers: nodes that act at instants of their own, in a heap by the instant at which each is due.

A timer is a row of `timers`; the heap is its column T_HEAP, whose first `at[TIMERS_DUE]` cells are the rows of the timers that are due some time.
"""

from engine.kernel import inlined, jit
from engine.kernel.operators.emit import wait
from engine.kernel.state.goal_store import fewer, is_timeless, key_hash, release, store_goal, store_of, take, unlink
from engine.kernel.state.layout import *


# ---------------------------------------------------------------- the heap
@jit
def wind(net):
    """Enter all timers anew: since the kernel ran, the host has changed them in their rows alone."""
    timers, nodes = net.timers, net.nodes
    net.at[TIMERS_DUE] = 0
    for k in range(net.at[TIMER_NODES]):
        node = timers[k, T_NODE]
        kind = nodes[node, KIND]
        due = oldest_due(net, node) if kind == WITHOUTFOR else timers[k, T_DUE] if kind == COLLECT else FOREVER
        nodes[node, TIMER], timers[k, T_PLACE] = k, NONE
        set_due(net, k, due)


@inlined
def next_due(net):
    """Return the least instant at which a timer is due, FOREVER if there is none."""
    return net.timers[net.timers[0, T_HEAP], T_DUE] if net.at[TIMERS_DUE] > 0 else FOREVER


@jit
def set_due(net, k, due):
    """Make timer k due at `due`, or at no time if that is FOREVER."""
    timers, at = net.timers, net.at
    timers[k, T_DUE] = due
    place = timers[k, T_PLACE]
    if due >= FOREVER:
        if place != NONE:
            timers[k, T_PLACE] = NONE
            at[TIMERS_DUE] -= 1
            if place < at[TIMERS_DUE]:
                move_timer(net, timers[at[TIMERS_DUE], T_HEAP], place)
    elif place == NONE:
        at[TIMERS_DUE] += 1
        move_timer(net, k, at[TIMERS_DUE] - 1)
    else:
        move_timer(net, k, place)


@jit
def move_timer(net, k, place):
    """Put timer k at `place` of the heap, which is free or its own, and then up or down to where it belongs."""
    timers, n = net.timers, net.at[TIMERS_DUE]
    while place > 0 and earlier(net, k, timers[(place - 1) >> 1, T_HEAP]):
        put_timer(net, timers[(place - 1) >> 1, T_HEAP], place)
        place = (place - 1) >> 1
    while 2 * place + 1 < n:
        below = 2 * place + 1
        if below + 1 < n and earlier(net, timers[below + 1, T_HEAP], timers[below, T_HEAP]):
            below += 1
        if not earlier(net, timers[below, T_HEAP], k):
            break
        put_timer(net, timers[below, T_HEAP], place)
        place = below
    put_timer(net, k, place)


@inlined
def put_timer(net, k, place):
    net.timers[place, T_HEAP], net.timers[k, T_PLACE] = k, place


@inlined
def earlier(net, k, other):
    """Return whether timer k comes before the other one; of timers due together, the first one made does."""
    due, others = net.timers[k, T_DUE], net.timers[other, T_DUE]
    return due < others or (due == others and k < other)


@jit
def call_timer(net):
    """Move what is due first to the work that waits for the close of this instant."""
    k = net.timers[0, T_HEAP]
    node = net.timers[k, T_NODE]
    if net.nodes[node, KIND] == COLLECT:
        set_due(net, k, FOREVER)  # its collector will say when next
        row = take(net)
        net.rows[row, START], net.rows[row, END] = BIG, -BIG
        wait(net, node, RIGHT, row)
        return
    store = store_of(node, LEFT)
    goal = net.stores[store, HEAD]
    net.stores[store, HEAD] = net.rows[goal, QUEUE]
    net.stores[store, COUNT] -= 1
    fewer(net, store, 1)
    unlink(net, net.heads, goal)
    set_due(net, k, oldest_due(net, node))
    wait(net, node, LEFT, goal)


# ---------------------------------------------------------------- the timers of WITHOUT ... FOR
@inlined
def oldest_due(net, node):
    oldest = net.stores[store_of(node, LEFT), HEAD]
    return FOREVER if oldest == NONE else net.rows[oldest, END] + net.nodes[node, LIFE_LEFT]


@jit
def set_timer(net, node, x):
    """Let x wait in the node's left store, in order of end; a timeless x stands at this instant, its query's t0."""
    if net.at[NOW] > net.at[HORIZON]:  # solutions of the timers that run on after the end set no further ones
        release(net, x)
        return
    if is_timeless(net, x):
        net.rows[x, START], net.rows[x, END] = net.at[NOW], net.at[NOW]
    store = store_of(node, LEFT)
    first = net.stores[store, HEAD] == NONE
    store_goal(net, store, key_hash(net, store, x, 0, 0), x, FOREVER)
    if first:
        set_due(net, net.nodes[node, TIMER], oldest_due(net, node))
