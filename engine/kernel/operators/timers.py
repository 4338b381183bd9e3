"""Timers: nodes that act at instants of their own, in a heap by the instant at which each is due.

A timer is a row of `timers`; the heap is its column T_HEAP, whose first `at[TIMERS_DUE]` cells are the rows of the timers that are due some time.
"""

from engine.kernel import inlined, jit
from engine.kernel.state.goal_store import discount_goals, hash_stored_key, store_goal, store_of, unlink_goal
from engine.kernel.state.layout import BIG, COLLECT, DECIDE_LEFT, DECIDE_RIGHT, FOREVER, LEFT, NONE, WITHOUTFOR
from engine.kernel.state.rows import free_row, is_timeless, take_row
from engine.kernel.state.work_queues import wait_for_close


# ---------------------------------------------------------------- the heap
@jit
def enter_timers(net):
    """Enter all timers anew: since the kernel ran, the host has changed them in their rows alone."""
    timers, nodes = net.timers, net.nodes
    net.at.timers_due = 0
    for k in range(net.at.timer_nodes):
        node = timers[k].node
        kind = nodes[node].kind
        due = find_oldest_due(net, node) if kind == WITHOUTFOR else timers[k].due if kind == COLLECT else FOREVER
        nodes[node].timer, timers[k].place = k, NONE
        set_due(net, k, due)


@inlined
def find_next_due(net):
    """Return the least instant at which a timer is due, FOREVER if there is none."""
    return net.timers[net.timers[0].heap].due if net.at.timers_due > 0 else FOREVER


@jit
def set_due(net, k, due):
    """Make timer k due at `due`, or at no time if that is FOREVER."""
    timers, at = net.timers, net.at
    timers[k].due = due
    place = timers[k].place
    if due >= FOREVER:
        if place != NONE:
            timers[k].place = NONE
            at.timers_due -= 1
            if place < at.timers_due:
                move_timer(net, timers[at.timers_due].heap, place)
    elif place == NONE:
        at.timers_due += 1
        move_timer(net, k, at.timers_due - 1)
    else:
        move_timer(net, k, place)


@jit
def move_timer(net, k, place):
    """Put timer k at `place` of the heap, which is free or its own, and then up or down to where it belongs."""
    timers, n = net.timers, net.at.timers_due
    while place > 0 and is_earlier(net, k, timers[(place - 1) >> 1].heap):
        put_timer(net, timers[(place - 1) >> 1].heap, place)
        place = (place - 1) >> 1
    while 2 * place + 1 < n:
        below = 2 * place + 1
        if below + 1 < n and is_earlier(net, timers[below + 1].heap, timers[below].heap):
            below += 1
        if not is_earlier(net, timers[below].heap, k):
            break
        put_timer(net, timers[below].heap, place)
        place = below
    put_timer(net, k, place)


@inlined
def put_timer(net, k, place):
    net.timers[place].heap, net.timers[k].place = k, place


@inlined
def is_earlier(net, k, other):
    """Return whether timer k comes before the other one; of timers due together, the first one made does."""
    due, others = net.timers[k].due, net.timers[other].due
    return due < others or (due == others and k < other)


@jit
def call_timer(net):
    """Move what is due first to the work that waits for the close of this instant."""
    k = net.timers[0].heap
    node = net.timers[k].node
    if net.nodes[node].kind == COLLECT:
        set_due(net, k, FOREVER)  # its collector will say when next
        row = take_row(net)
        net.rows[row].start, net.rows[row].end = BIG, -BIG
        wait_for_close(net, node, DECIDE_RIGHT, row)
        return
    store = store_of(node, LEFT)
    goal = net.stores[store].head
    net.stores[store].head = net.rows[goal].queue
    net.stores[store].count -= 1
    discount_goals(net, store, 1)
    unlink_goal(net, net.heads, goal)
    set_due(net, k, find_oldest_due(net, node))
    wait_for_close(net, node, DECIDE_LEFT, goal)


# ---------------------------------------------------------------- the timers of WITHOUT ... FOR
@inlined
def find_oldest_due(net, node):
    oldest = net.stores[store_of(node, LEFT)].head
    return FOREVER if oldest == NONE else net.rows[oldest].end + net.nodes[node].life_left


@jit
def start_timer(net, node, x):
    """Let x wait in the node's left store, in order of end; a timeless x stands at this instant, its query's t0."""
    if net.at.now > net.at.horizon:  # solutions of the timers that run on after the end set no further ones
        free_row(net, x)
        return
    if is_timeless(net, x):
        net.rows[x].start, net.rows[x].end = net.at.now, net.at.now
    store = store_of(node, LEFT)
    first = net.stores[store].head == NONE
    store_goal(net, store, hash_stored_key(net, store, x, 0, 0), x, FOREVER)
    if first:
        set_due(net, net.nodes[node].timer, find_oldest_due(net, node))
