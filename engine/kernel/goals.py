"""The store: rows, chains by key, queues in order of end, and what an instant has met already."""

import numpy as np

from engine.kernel.columns import *
from engine.kernel.compile import entry_point, inlined, jit
from engine.kernel.net import as_net

MIX = np.int64(-7046029254386353131)
SALT = np.int64(-4417276706812531889)


@inlined
def take(net):
    net.at[FREE] -= 1
    return net.free[net.at[FREE]]


@inlined
def release(net, row):
    net.free[net.at[FREE]] = row
    net.at[FREE] += 1


@inlined
def push(net, node, side, row):
    depth = net.at[DEPTH]
    net.stack[depth, FRAME_NODE], net.stack[depth, FRAME_SIDE], net.stack[depth, FRAME_ROW] = node, side, row
    net.at[DEPTH] = depth + 1


@inlined
def mixed(hash_, term):
    hash_ = (hash_ ^ term) * MIX
    return hash_ ^ (hash_ >> 29)


@inlined
def store_of(node, side):
    return SIDES * node + side


@inlined
def key_hash(net, store, row, key_at, key_n):
    """Hash of a store and a key; all stores share one table of chains."""
    hash_ = store * SALT
    for k in range(key_at, key_at + key_n):
        hash_ = mixed(hash_, net.rows[row, net.slots[k]])
    return hash_ ^ ((hash_ >> 32) & 0xFFFFFFFF)


@inlined
def is_timeless(net, row):
    return net.rows[row, START] > net.rows[row, END]


@inlined
def timed_head(net, hash_):
    return hash_ & ((len(net.heads) >> 1) - 1)


@inlined
def timeless_head(net, hash_):
    return timed_head(net, hash_) + (len(net.heads) >> 1)


@inlined
def link(net, head, goal):
    """Chains fall in end: goals come in order of end, and timeless ones have chains of their own."""
    rows = net.rows
    newest = net.heads[head]
    rows[goal, OLDER], rows[goal, NEWER] = newest, NONE
    if newest != NONE:
        rows[newest, NEWER] = goal
    net.heads[head] = goal


@jit
def unlink(net, head, goal):
    rows = net.rows
    older, newer = rows[goal, OLDER], rows[goal, NEWER]
    if newer != NONE:
        rows[newer, OLDER] = older
    else:
        net.heads[head] = older
    if older != NONE:
        rows[older, NEWER] = newer


@inlined
def store_goal(net, store, hash_, goal, life):
    """Keeps `goal` in its store for `life` µs after its end; expires what has outlived it."""
    rows, stores = net.rows, net.stores
    rows[goal, HASH] = hash_
    stores[store, COUNT] += 1
    if is_timeless(net, goal):
        link(net, timeless_head(net, hash_), goal)
        rows[goal, QUEUE] = stores[store, TIMELESS_HEAD]
        stores[store, TIMELESS_HEAD] = goal
        return
    link(net, timed_head(net, hash_), goal)
    rows[goal, QUEUE] = NONE
    oldest = stores[store, HEAD]
    if oldest != NONE and rows[oldest, END] < net.at[NOW] - life:
        expire(net, store, net.at[NOW] - life)
    if stores[store, HEAD] == NONE:
        stores[store, HEAD] = goal
    else:
        rows[stores[store, TAIL], QUEUE] = goal
    stores[store, TAIL] = goal


@jit
def expire(net, store, horizon):
    """Frees the timed goals of a store that ended before `horizon`."""
    rows = net.rows
    goal = net.stores[store, HEAD]
    while goal != NONE and rows[goal, END] < horizon:
        after = rows[goal, QUEUE]
        unlink(net, timed_head(net, rows[goal, HASH]), goal)
        release(net, goal)
        net.stores[store, COUNT] -= 1
        goal = after
    net.stores[store, HEAD] = goal


@jit
def clear_store(net, store):
    """Frees all goals of a store, the timeless ones too."""
    rows, stores = net.rows, net.stores
    goal = stores[store, HEAD]
    while goal != NONE:
        after = rows[goal, QUEUE]
        unlink(net, timed_head(net, rows[goal, HASH]), goal)
        release(net, goal)
        goal = after
    goal = stores[store, TIMELESS_HEAD]
    while goal != NONE:
        after = rows[goal, QUEUE]
        unlink(net, timeless_head(net, rows[goal, HASH]), goal)
        release(net, goal)
        goal = after
    stores[store, HEAD], stores[store, TAIL], stores[store, TIMELESS_HEAD], stores[store, COUNT] = NONE, NONE, NONE, 0


@entry_point
def clear_stores(address, first, after):
    """Frees all goals of the stores `first` to `after` (exclusive)."""
    net = as_net(address)
    for store in range(first, after):
        clear_store(net, store)


@entry_point
def spread(address, heads):
    """Moves all chains to the larger table `heads`: each chain splits, so the order of end survives."""
    net = as_net(address)
    rows = net.rows
    old_half, new_half = len(net.heads) >> 1, len(heads) >> 1
    for head in range(len(net.heads)):
        goal = net.heads[head]
        while goal != NONE and rows[goal, OLDER] != NONE:
            goal = rows[goal, OLDER]
        base = 0 if head < old_half else new_half
        while goal != NONE:  # from the oldest on
            newer = rows[goal, NEWER]
            new_head = base + (rows[goal, HASH] & (new_half - 1))
            newest = heads[new_head]
            rows[goal, OLDER], rows[goal, NEWER] = newest, NONE
            if newest != NONE:
                rows[newest, NEWER] = goal
            heads[new_head] = goal
            goal = newer


@inlined
def first_time(net, tag, row):
    """Whether this instant meets this solution (or, under tags below zero, triple) for the first time at `tag`."""
    rows, seen = net.rows, net.seen
    hash_ = (tag * SALT) ^ (rows[row, START] * MIX)
    for v in range(VAR, rows.shape[1]):
        hash_ += rows[row, v] * (SALT + 2 * v)  # a sum: its multiplications overlap
    hash_ = mixed(hash_, 0)
    head = hash_ & (len(net.seen_heads) - 1)
    first = net.at[SEEN_FIRST]  # entries of earlier instants have lower numbers: nothing needs clearing
    entry = net.seen_heads[head]
    while entry >= first:
        known = entry - first
        if seen[known, SEEN_HASH] == hash_ and seen[known, SEEN_TAG] == tag and same_solution(net, known, row):
            return False
        entry = seen[known, SEEN_NEXT]
    new = net.at[SEEN_N]
    seen[new, SEEN_NEXT], seen[new, SEEN_HASH], seen[new, SEEN_TAG], seen[new, SEEN_START] = net.seen_heads[head], hash_, tag, rows[row, START]
    for v in range(VAR, rows.shape[1]):
        seen[new, SEEN_VAR + v - VAR] = rows[row, v]
    net.seen_heads[head] = first + new
    net.at[SEEN_N] = new + 1
    return True


@inlined
def same_solution(net, known, row):
    if net.seen[known, SEEN_START] != net.rows[row, START]:
        return False
    for v in range(VAR, net.rows.shape[1]):
        if net.seen[known, SEEN_VAR + v - VAR] != net.rows[row, v]:
            return False
    return True


@entry_point
def spread_seen(address, heads):
    """Enters what this instant has met into the larger table `heads`."""
    net = as_net(address)
    for known in range(net.at[SEEN_N]):
        head = net.seen[known, SEEN_HASH] & (len(heads) - 1)
        net.seen[known, SEEN_NEXT] = heads[head]
        heads[head] = net.at[SEEN_FIRST] + known
