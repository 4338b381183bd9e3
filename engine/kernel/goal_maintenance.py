"""This module maintains stores as a whole.

Goals that have outlived their life are freed though no goal comes, and goals are read out and entered again for snapshots.
"""

from engine.kernel import entry_point, inlined, jit
from engine.kernel.operators.policies import keep_again
from engine.kernel.state.goal_store import (
    expire,
    fewer,
    first_time,
    hash_of_terms,
    in_store,
    is_timeless,
    key_hash,
    link_in_order,
    one_more,
    release,
    store_goal,
    take,
    unlink,
)
from engine.kernel.state.handle import as_net
from engine.kernel.state.layout import *

SWEPT_AT_ONCE = 16
"""Stores that a feed sweeps besides one for each of its events: each gets its turn, and one event never pays for all."""


@jit
def sweep(net):
    """Free what nothing needs any more in the stores whose turn it is. Goals of a stream that fell silent go as the others' time passes."""
    at, n = net.at, min(len(net.stores), SIDES * len(net.nodes))  # both have room for more, but not for equally many
    for _ in range(min(n, SWEPT_AT_ONCE + at[EVENTS])):
        at[SWEPT] = (at[SWEPT] + 1) % n
        sweep_store(net, at[SWEPT])


@jit
def sweep_store(net, store):
    """Free the goals of a store that no solution from this instant on can meet. Goals that any step has begun with stay, for they are younger.

    Goals of a timer and of FIRST wait for no partner; those of a policy may be on their way to be settled.
    """
    node, side = store // SIDES, store % SIDES
    kind = net.nodes[node, KIND]
    if net.stores[store, COUNT] > 0 and not (kind == WITHOUTFOR and side == LEFT) and kind != FIRST and not of_policy(net, store):
        expire(net, store, net.at[NOW] - net.nodes[node, LIFE_LEFT + side])


@inlined
def of_policy(net, store):
    """Return whether a policy chooses among the goals of a store."""
    kind = net.nodes[store // SIDES, KIND]
    return (kind == RECENT or kind == CHRONOLOGICAL) and store % SIDES != BLOCKER


@entry_point
def sweep_stores(address, first, after):
    """Free what nothing needs any more in the stores `first` to `after` (exclusive)."""
    net = as_net(address)
    for store in range(first, after):
        sweep_store(net, store)


# ---------------------------------------------------------------- snapshots
@entry_point
def forget_timeless(address, store, dead):
    """Free timeless goals of a store, the newest first, where `dead` says so."""
    net = as_net(address)
    rows, stores = net.rows, net.stores
    goal, newer = stores[store, TIMELESS_HEAD], NONE
    for k in range(len(dead)):
        after = rows[goal, QUEUE]
        if dead[k] == 0:
            newer = goal
        else:
            if newer == NONE:
                stores[store, TIMELESS_HEAD] = after
            else:
                rows[newer, QUEUE] = after
            unlink(net, net.timeless, goal)
            release(net, goal)
            net.at[TIMELESS_GOALS] -= 1
            stores[store, COUNT] -= 1
            fewer(net, store, 1)
        goal = after


@entry_point
def read_goals(address, columns, first, after, stores, numbers, cells):
    """List the goals of the stores `first` to `after` (exclusive): store, row and what these columns hold.

    They come store by store, the timed ones in order of end and then the timeless ones.
    """
    net, n = as_net(address), 0
    for store in range(first, after):
        if net.stores[store, COUNT] == 0:  # its row may be no query's
            continue
        goal = net.stores[store, HEAD]
        while goal != NONE:
            stores[n], numbers[n] = store, goal
            read_goal(net, goal, columns, cells, n)
            n += 1
            goal = net.rows[goal, QUEUE]
        k = n = n + timeless_goals(net, store)
        goal = net.stores[store, TIMELESS_HEAD]
        while goal != NONE:  # the newest first
            k -= 1
            stores[k], numbers[k] = store, goal
            read_goal(net, goal, columns, cells, k)
            goal = net.rows[goal, QUEUE]


@inlined
def read_goal(net, goal, columns, cells, k):
    for column in range(len(columns)):
        cells[k, column] = net.rows[goal, columns[column]]


@jit
def timeless_goals(net, store):
    n, goal = 0, net.stores[store, TIMELESS_HEAD]
    while goal != NONE:
        n += 1
        goal = net.rows[goal, QUEUE]
    return n


@entry_point
def read_ages(address, ages):
    """Number timed goals by row so that those of one chain rise as the chain does, which a policy orders."""
    net, age = as_net(address), 0
    for head in range(len(net.heads)):
        goal = net.heads[head]
        while goal != NONE and net.rows[goal, OLDER] != NONE:
            goal = net.rows[goal, OLDER]
        while goal != NONE:
            ages[goal] = age
            age += 1
            goal = net.rows[goal, NEWER]


@entry_point
def enter_rows(address, columns, cells, numbers):
    """Take a row for each of the `cells` (of these columns, the others zero) and give their numbers. The room was made."""
    net = as_net(address)
    for k in range(len(cells)):
        row = numbers[k] = take(net)
        for column in range(net.rows.shape[1]):
            net.rows[row, column] = 0
        for column in range(len(columns)):
            net.rows[row, columns[column]] = cells[k, column]


@entry_point
def enter_goals(address, stores, numbers, marked):
    """Store rows as goals, in this order, which falls nowhere in end: chains need that. `marked` is for those of policies."""
    net = as_net(address)
    for k in range(len(stores)):
        store, goal = stores[k], numbers[k]
        if of_policy(net, store):
            keep_again(net, store // SIDES, store % SIDES, goal, marked[k])
        else:
            store_goal(net, store, stored_hash(net, store, goal), goal, FOREVER)


@entry_point
def keep_again_in_order(address, stores, numbers):
    """Store rows as goals between feeds, though others of their chains may end later. Those of one store come in order of end."""
    net = as_net(address)
    for k in range(len(stores)):
        store, goal = stores[k], numbers[k]
        if is_timeless(net, goal):
            store_goal(net, store, stored_hash(net, store, goal), goal, FOREVER)
            continue
        net.rows[goal, HASH], net.rows[goal, QUEUE] = stored_hash(net, store, goal), NONE
        link_in_order(net, goal)
        if net.stores[store, HEAD] == NONE:
            net.stores[store, HEAD] = goal
        else:
            net.rows[net.stores[store, TAIL], QUEUE] = goal
        net.stores[store, TAIL] = goal
        net.stores[store, COUNT] += 1
        one_more(net, store)


@inlined
def stored_hash(net, store, row):
    """Return the hash under which a node keeps a goal of a side."""
    nodes, node, side = net.nodes, store // SIDES, store % SIDES
    kind = nodes[node, KIND]
    if side == LEFT and (kind == OUT or kind == MOVE or kind == COLLECT):  # `stands_already`
        return in_store(store, hash_of_terms(net, row))
    if nodes[node, KIND] == WITHOUTFOR and side == LEFT:
        return key_hash(net, store, row, 0, 0)
    if side == BLOCKER:
        return key_hash(net, store, row, nodes[node, KEY2_AT], nodes[node, KEY2_N])
    return key_hash(net, store, row, nodes[node, KEY_AT], nodes[node, KEY_N])


@entry_point
def meet_again(address, tags, numbers):
    """Enter what the instant has met before, by rows, which are freed."""
    net = as_net(address)
    for k in range(len(tags)):
        first_time(net, tags[k], numbers[k])
        release(net, numbers[k])
