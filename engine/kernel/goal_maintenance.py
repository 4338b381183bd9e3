"""This module maintains stores as a whole.

Goals that have outlived their life are freed though no goal comes, and goals are read out and entered again for snapshots.
"""

from engine.kernel import entry_point, inlined, jit
from engine.kernel.operators.policies import restore_policy_goal
from engine.kernel.state.goal_store import (
    count_goal,
    discount_goals,
    expire_goals,
    find_newest,
    hash_bindings,
    hash_bindings_and_start,
    hash_in_store,
    hash_stored_key,
    link_goal_in_order,
    store_goal,
    unlink_goal,
)
from engine.kernel.state.handle import as_net, prefetch
from engine.kernel.state.hash_table import head_of
from engine.kernel.state.layout import (
    BLOCKER,
    CHRONOLOGICAL,
    COLLECT,
    EARLIEST,
    FIRST,
    FOREVER,
    LATEST,
    LEFT,
    MOVE,
    NONE,
    OLDER,
    OUT,
    RECENT,
    SIDES,
    WITHOUTFOR,
)
from engine.kernel.state.rows import free_row, is_timeless, read_cell, take_row, write_cell
from engine.kernel.state.seen_solutions import meet_first
from engine.kernel.state.tasks import life_of

TOGETHER = 32  # goals that are entered at the same time
SWEPT_AT_ONCE = 16
"""Stores that a feed sweeps besides one for each of its events: each gets its turn, and one event never pays for all."""


@jit
def sweep_stores_in_turn(net):
    """Free what nothing needs any more in the stores whose turn it is. Goals of a stream that fell silent go as the others' time passes."""
    at, n = net.at, min(len(net.stores), SIDES * len(net.nodes))  # both have room for more, but not for equally many
    for _ in range(min(n, SWEPT_AT_ONCE + at.events)):
        at.swept = (at.swept + 1) % n
        sweep_store(net, at.swept)


@jit
def sweep_store(net, store):
    """Free the goals of a store that no solution from this instant on can meet. Goals that any step has begun with stay, for they are younger.

    Goals of a timer and of FIRST wait for no partner; those of a policy may be on their way to be settled.
    """
    node, side = store // SIDES, store % SIDES
    kind = net.nodes[node].kind
    if net.stores[store].count > 0 and not (kind == WITHOUTFOR and side == LEFT) and kind != FIRST and not is_policy_store(net, store):
        expire_goals(net, store, net.at.now - life_of(net.nodes[node], side))


@inlined
def is_policy_store(net, store):
    """Return whether a policy chooses among the goals of a store."""
    kind = net.nodes[store // SIDES].kind
    return (kind == RECENT or kind == CHRONOLOGICAL) and store % SIDES != BLOCKER


@entry_point
def sweep_stores(address, first, after):
    """Free what nothing needs any more in the stores `first` to `after` (exclusive)."""
    net = as_net(address)
    for store in range(first, after):
        sweep_store(net, store)


# ---------------------------------------------------------------- snapshots
@entry_point
def free_timeless_goals(address, store, dead):
    """Free timeless goals of a store, the newest first, where `dead` says so."""
    net = as_net(address)
    rows, stores = net.rows, net.stores
    goal, newer = stores[store].timeless_head, NONE
    for k in range(len(dead)):
        after = rows[goal].queue
        if dead[k] == 0:
            newer = goal
        else:
            if newer == NONE:
                stores[store].timeless_head = after
            else:
                rows[newer].queue = after
            unlink_goal(net, net.timeless, goal)
            free_row(net, goal)
            net.at.timeless_goals -= 1
            stores[store].count -= 1
            discount_goals(net, store, 1)
        goal = after


@entry_point
def read_goals(address, columns, first, after, stores, numbers, cells):
    """List the goals of the stores `first` to `after` (exclusive): store, row and what these columns hold.

    They come store by store, the timed ones in order of end and then the timeless ones.
    """
    net, n = as_net(address), 0
    for store in range(first, after):
        if net.stores[store].count == 0:  # its row may be no query's
            continue
        goal = net.stores[store].head
        while goal != NONE:
            stores[n], numbers[n] = store, goal
            read_goal(net, goal, columns, cells, n)
            n += 1
            goal = net.rows[goal].queue
        k = n = n + count_timeless_goals(net, store)
        goal = net.stores[store].timeless_head
        while goal != NONE:  # the newest first
            k -= 1
            stores[k], numbers[k] = store, goal
            read_goal(net, goal, columns, cells, k)
            goal = net.rows[goal].queue


@inlined
def read_goal(net, goal, columns, cells, k):
    for column in range(len(columns)):
        cells[k, column] = read_cell(net, goal, columns[column])


@jit
def count_timeless_goals(net, store):
    n, goal = 0, net.stores[store].timeless_head
    while goal != NONE:
        n += 1
        goal = net.rows[goal].queue
    return n


@entry_point
def read_ages(address, ages):
    """Number timed goals by row so that those of one chain rise as the chain does, which a policy orders."""
    net, age = as_net(address), 0
    for head in range(len(net.heads)):
        goal = net.heads[head]
        while goal != NONE and net.rows[goal].older != NONE:
            goal = net.rows[goal].older
        while goal != NONE:
            ages[goal] = age
            age += 1
            goal = net.rows[goal].newer


@entry_point
def enter_rows(address, columns, cells, numbers):
    """Take a row for each of the `cells` (of these columns, the others zero) and give their numbers. The room was made."""
    net = as_net(address)
    for k in range(len(cells)):
        numbers[k] = enter_row(net, columns, cells[k])


@inlined
def enter_row(net, columns, cells):
    row = take_row(net)
    net.rows[row].start, net.rows[row].end, net.rows[row].hash = 0, 0, 0
    for column in range(OLDER, net.rows.shape[1]):
        net.rows[row, column] = 0
    for column in range(len(columns)):
        write_cell(net, row, columns[column], cells[column])
    return row


@entry_point
def enter_goals(address, columns, cells, stores, order, marked, numbers):
    """Store `cells` (of these columns, the others zero) as goals, and give their numbers. The room was made.

    They are entered in `order`, which falls nowhere in end, since chains need that; an empty one is theirs. `marked` is for those of policies. A table of
    many goals is in no cache, so some goals wait for their chains at the same time.
    """
    net = as_net(address)
    for first in range(0, len(cells), TOGETHER):
        after = min(first + TOGETHER, len(cells))
        for k in range(first, after):
            place = order[k] if len(order) else k
            numbers[place] = goal = enter_row(net, columns, cells[place])
            net.rows[goal].hash = hash_stored_goal(net, stores[place], goal)
            prefetch(net.heads, head_of(net.heads, net.rows[goal].hash))
        for k in range(first, after):
            newest = find_newest(net, net.rows[numbers[order[k] if len(order) else k]].hash)
            prefetch(net.rows, max(newest, 0))
        for k in range(first, after):
            place = order[k] if len(order) else k
            store, goal = stores[place], numbers[place]
            if is_policy_store(net, store):
                restore_policy_goal(net, store // SIDES, store % SIDES, goal, marked[place])
            else:
                store_goal(net, store, net.rows[goal].hash, goal, FOREVER)


@entry_point
def store_goals_in_order(address, stores, numbers):
    """Store rows as goals between feeds, though others of their chains may end later. Those of one store come in order of end."""
    net = as_net(address)
    for k in range(len(stores)):
        store, goal = stores[k], numbers[k]
        if is_timeless(net, goal):
            store_goal(net, store, hash_stored_goal(net, store, goal), goal, FOREVER)
            continue
        net.rows[goal].hash, net.rows[goal].queue = hash_stored_goal(net, store, goal), NONE
        link_goal_in_order(net, goal)
        if net.stores[store].head == NONE:
            net.stores[store].head = goal
        else:
            net.rows[net.stores[store].tail].queue = goal
        net.stores[store].tail = goal
        net.stores[store].count += 1
        count_goal(net, store)


@inlined
def hash_stored_goal(net, store, row):
    """Return the hash under which a node keeps a goal of a side."""
    nodes, node, side = net.nodes, store // SIDES, store % SIDES
    kind = nodes[node].kind
    if side == LEFT and (kind == OUT or kind == MOVE or kind == COLLECT or kind == LATEST):  # the first three: `keep_timeless_once`
        return hash_in_store(store, hash_bindings(net, row))
    if kind == EARLIEST:
        return hash_in_store(store, hash_bindings_and_start(net, row))
    if nodes[node].kind == WITHOUTFOR and side == LEFT:
        return hash_stored_key(net, store, row, 0, 0)
    if side == BLOCKER:
        return hash_stored_key(net, store, row, nodes[node].key2_at, nodes[node].key2_n)
    return hash_stored_key(net, store, row, nodes[node].key_at, nodes[node].key_n)


@entry_point
def restore_seen(address, tags, numbers):
    """Enter what the instant has met before, by rows, which are freed."""
    net = as_net(address)
    for k in range(len(tags)):
        meet_first(net, tags[k], numbers[k])
        free_row(net, numbers[k])
