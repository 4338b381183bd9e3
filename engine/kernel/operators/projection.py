"""These operators take a row by itself: MOVE and FIRST project it, EXTEND binds a variable, COLLECT leaves it to the host.

EARLIEST and LATEST hand on the shortest of rows that bind the same terms, and start, or end, together.
"""

from engine.kernel import inlined, jit
from engine.kernel.operators.emission import emit_elsewhere
from engine.kernel.operators.filter import find_answer
from engine.kernel.state.goal_store import (
    find_newest,
    find_newest_timeless,
    has_same_bindings,
    hash_bindings,
    hash_bindings_and_start,
    hash_in_store,
    hash_stored_key,
    keep_timeless_once,
    store_goal,
    store_of,
)
from engine.kernel.state.layout import ANSWER_COST, BIG, DECIDE_LEFT, FOREVER, LEFT, NONE, OPEN_QUESTION, UNBOUND
from engine.kernel.state.rows import copy_row, free_row, is_timeless, make_row
from engine.kernel.state.seen_solutions import meet_first
from engine.kernel.state.tasks import task_to_decide
from engine.kernel.state.temporal_relations import has_same_key
from engine.kernel.state.work_queues import count_looks, count_made, park_frame, wait_for_close


@jit
def project_row(net, node, x):
    """Hand on x with its columns moved, and without those that the node hides, if they are what they must be.

    Of equal rows of this instant only the first goes on where the node says so.
    """
    here, fits = net.nodes[node], True
    z = copy_row(net, x) if here.keep != 0 else make_row(net, net.rows[x].start, net.rows[x].end)
    for m in range(here.move_at, here.move_at + here.move_n):
        source, target = net.moves[m].source, net.moves[m].target
        term = net.rows[x, source] if source >= 0 else -source
        if term == UNBOUND:
            continue
        if target < 0:
            fits = fits and term == -target
        elif net.rows[z, target] == UNBOUND:
            net.rows[z, target] = term
        else:
            fits = fits and net.rows[z, target] == term
    for k in range(here.hide_at, here.hide_at + here.hide_n):
        net.rows[z, net.slots[k]] = UNBOUND
    free_row(net, x)
    if fits and (here.once_only == 0 or is_first_at_node(net, node, z)):
        emit_elsewhere(net, node, z)
    else:
        free_row(net, z)


@inlined
def is_first_at_node(net, node, x):
    """Return whether a node meets x for the first time: at this instant, or ever if x is timeless.

    A timeless x exists from the instant that brought it.
    """
    return not keep_timeless_once(net, node, x) if is_timeless(net, x) else meet_first(net, node, x)


@jit
def emit_first_of_key(net, node, x):
    """Hand on x, as a timeless row, if none with its key came before, at whatever instant."""
    key_at, key_n = net.nodes[node].key_at, net.nodes[node].key_n
    hash_ = hash_stored_key(net, store_of(node, LEFT), x, key_at, key_n)
    goal = find_newest_timeless(net, hash_)
    while goal != NONE:
        if net.rows[goal].hash == hash_ and has_same_key(net, goal, x, key_at, key_n):
            free_row(net, x)
            return
        goal = net.rows[goal].older
    net.rows[x].start, net.rows[x].end = BIG, -BIG
    store_goal(net, store_of(node, LEFT), hash_, copy_row(net, x), FOREVER)
    emit_elsewhere(net, node, x)


@jit
def emit_earliest(net, node, x):
    """Hand on a timed x, unless a row that differs in its end alone has come before: that one ends earlier."""
    rows, store = net.rows, store_of(node, LEFT)
    hash_ = hash_in_store(store, hash_bindings_and_start(net, x))
    goal = find_newest(net, hash_)
    while goal != NONE:
        if rows[goal].hash == hash_ and rows[goal].start == rows[x].start and has_same_bindings(net, goal, x):
            free_row(net, x)
            return
        goal = rows[goal].older
    store_goal(net, store, hash_, copy_row(net, x), net.nodes[node].life_left)
    count_made(net, node, 1)
    emit_elsewhere(net, node, x)


@jit
def arrive_latest(net, node, x):
    """Let a timed x wait for the close of its instant, and keep a copy for those that differ from it in their starts alone."""
    store = store_of(node, LEFT)
    store_goal(net, store, hash_in_store(store, hash_bindings(net, x)), copy_row(net, x), net.nodes[node].life_left)
    wait_for_close(net, node, DECIDE_LEFT, x)


@jit
def decide_latest(net, node, x):
    """Hand on x, unless a row of this instant differs from it in a later start alone."""
    rows, store = net.rows, store_of(node, LEFT)
    hash_ = hash_in_store(store, hash_bindings(net, x))
    goal = find_newest(net, hash_)
    while goal != NONE and rows[goal].end == rows[x].end:
        if rows[goal].hash == hash_ and rows[goal].start > rows[x].start and has_same_bindings(net, goal, x):
            free_row(net, x)
            return
        goal = rows[goal].older
    emit_elsewhere(net, node, x)


@jit
def bind_answer(net, node, x):
    """Write the host's answer to a BIND, UNBOUND for an error, to the node's column."""
    answer = find_answer(net, net.nodes[node].ask, x)
    if answer == OPEN_QUESTION:
        net.stores[store_of(node, LEFT)].taken -= 1  # it comes again
        park_frame(net, node, LEFT, x)
        return
    count_looks(net, node, ANSWER_COST)
    net.rows[x, net.nodes[node].column] = answer
    emit_elsewhere(net, node, x)


@jit
def arrive_collect(net, node, side, x):
    """Let a solution, once for an instant, or a wake of a collector wait for the close of the instant."""
    if side == LEFT and not is_first_at_node(net, node, x):
        free_row(net, x)
    else:
        wait_for_close(net, node, task_to_decide(side), x)
