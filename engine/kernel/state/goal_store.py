"""The store holds rows, chains by key, queues in order of end, and what an instant has met already."""

import numpy as np

from engine.kernel import entry_point, inlined, jit
from engine.kernel.state.handle import as_net
from engine.kernel.state.layout import *

MIX = np.int64(-7046029254386353131)
SALT = np.int64(-4417276706812531889)


@inlined
def take(net):
    """Take a row: the one given back last, else one never used."""
    at = net.at
    if at[FREE] > 0:
        at[FREE] -= 1
        return net.free[at[FREE]]
    at[USED] += 1
    return at[USED] - 1


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
def push_below(net, depth, node, side, row, goal):
    """Push a frame that goes on at `goal` below those that its step has pushed since `depth`, so that their work is done first."""
    stack, top = net.stack, net.at[DEPTH]
    for column in range(FRAME_WIDTH):
        stack[top, column] = stack[depth, column]
    stack[depth, FRAME_NODE], stack[depth, FRAME_SIDE], stack[depth, FRAME_ROW], stack[depth, FRAME_GOAL] = node, side, row, goal
    net.at[DEPTH] = top + 1


@inlined
def mixed(hash_, term):
    hash_ = (hash_ ^ term) * MIX
    return hash_ ^ (hash_ >> 29)


@inlined
def store_of(node, side):
    return SIDES * node + side


@inlined
def hash_of(net, row, key_at, key_n):
    """Return the hash of a row's key."""
    hash_ = 0
    for k in range(key_at, key_at + key_n):
        hash_ = mixed(hash_, net.rows[row, net.slots[k]])
    return hash_


@inlined
def in_store(store, hash_):
    """Return the hash of a store and a key, from the key's: all stores share one table of chains. Stores of one key never collide."""
    return hash_ ^ (store * SALT)


@inlined
def key_hash(net, store, row, key_at, key_n):
    return in_store(store, hash_of(net, row, key_at, key_n))


@inlined
def is_timeless(net, row):
    return net.rows[row, START] > net.rows[row, END]


@inlined
def head_of(heads, hash_):
    return hash_ & (len(heads) - 1)


@inlined
def newest(net, hash_):
    """Return the timed goal that came last among those whose chain this is."""
    return net.heads[head_of(net.heads, hash_)]


@inlined
def newest_timeless(net, hash_):
    return net.timeless[head_of(net.timeless, hash_)]


@jit
def link_in_order(net, goal):
    """Link a timed goal that comes late, as `link` does; its place is behind the goals that end after it."""
    rows = net.rows
    head, after, before = head_of(net.heads, rows[goal, HASH]), newest(net, rows[goal, HASH]), NONE
    while after != NONE and rows[after, END] > rows[goal, END]:
        before, after = after, rows[after, OLDER]
    rows[goal, OLDER], rows[goal, NEWER] = after, before
    if after != NONE:
        rows[after, NEWER] = goal
    if before != NONE:
        rows[before, OLDER] = goal
    else:
        net.heads[head] = goal


@inlined
def link(net, heads, goal):
    """Link a goal to the head of its chain. Chains fall in end: goals come in order of end, and timeless ones have chains of their own."""
    rows = net.rows
    head = head_of(heads, rows[goal, HASH])
    after = heads[head]
    rows[goal, OLDER], rows[goal, NEWER] = after, NONE
    if after != NONE:
        rows[after, NEWER] = goal
    heads[head] = goal


@inlined
def unlink(net, heads, goal):
    rows = net.rows
    older, newer = rows[goal, OLDER], rows[goal, NEWER]
    if newer != NONE:
        rows[newer, OLDER] = older
    else:
        heads[head_of(heads, rows[goal, HASH])] = older
    if older != NONE:
        rows[older, NEWER] = newer


@inlined
def count_for(net, node, n):
    """Count n more that the node's query has made at this instant.

    If that is more than any may, the query is marked, and the host looks into it before the next step.
    """
    queries, query = net.queries, net.nodes[node, QUERY]
    if queries[query, Q_MADE_AT] != net.at[NOW]:
        queries[query, Q_MADE_AT], queries[query, Q_MADE] = net.at[NOW], 0
    queries[query, Q_MADE] += n
    if queries[query, Q_MADE] > net.at[MOST_NOW]:
        net.at[ENDLESS], net.at[CREDIT] = query, 0


@inlined
def one_more(net, store):
    """Count one goal more that the store's query keeps. A query beyond its limit is marked, and the host looks into it before the next step."""
    query = net.nodes[store // SIDES, QUERY]
    net.queries[query, Q_GOALS] += 1
    if net.queries[query, Q_GOALS] > net.queries[query, Q_LIMIT]:
        net.at[ENDLESS], net.at[CREDIT] = query, 0


@inlined
def fewer(net, store, n):
    """Count `n` goals fewer that the store's query keeps."""
    net.queries[net.nodes[store // SIDES, QUERY], Q_GOALS] -= n


@inlined
def store_goal(net, store, hash_, goal, life):
    """Keep `goal` in its store for `life` µs after its end; expire what has outlived it."""
    rows, stores = net.rows, net.stores
    rows[goal, HASH] = hash_
    stores[store, COUNT] += 1
    if is_timeless(net, goal):
        link(net, net.timeless, goal)
        net.at[TIMELESS_GOALS] += 1
        rows[goal, QUEUE] = stores[store, TIMELESS_HEAD]
        stores[store, TIMELESS_HEAD] = goal
        one_more(net, store)
        return
    link(net, net.heads, goal)
    rows[goal, QUEUE] = NONE
    oldest = stores[store, HEAD]
    if oldest != NONE and rows[oldest, END] < net.at[NOW] - life:
        expire(net, store, net.at[NOW] - life)
    if stores[store, HEAD] == NONE:
        stores[store, HEAD] = goal
    else:
        rows[stores[store, TAIL], QUEUE] = goal
    stores[store, TAIL] = goal
    one_more(net, store)


@inlined
def expire(net, store, horizon):
    """Free the timed goals of a store that ended before `horizon`."""
    rows, freed = net.rows, 0
    goal = net.stores[store, HEAD]
    while goal != NONE and rows[goal, END] < horizon:
        after = rows[goal, QUEUE]
        unlink(net, net.heads, goal)
        release(net, goal)
        freed += 1
        goal = after
    net.stores[store, HEAD] = goal
    net.stores[store, COUNT] -= freed
    fewer(net, store, freed)


@jit
def clear_store(net, store):
    """Free all goals of a store, the timeless ones too."""
    rows, stores = net.rows, net.stores
    goal = stores[store, HEAD]
    while goal != NONE:
        after = rows[goal, QUEUE]
        unlink(net, net.heads, goal)
        release(net, goal)
        goal = after
    goal = stores[store, TIMELESS_HEAD]
    while goal != NONE:
        after = rows[goal, QUEUE]
        unlink(net, net.timeless, goal)
        net.at[TIMELESS_GOALS] -= 1
        release(net, goal)
        goal = after
    fewer(net, store, stores[store, COUNT])
    stores[store, HEAD], stores[store, TAIL], stores[store, TIMELESS_HEAD], stores[store, COUNT] = NONE, NONE, NONE, 0


@entry_point
def clear_stores(address, first, after):
    """Free all goals of the stores `first` to `after` (exclusive)."""
    net = as_net(address)
    for store in range(first, after):
        clear_store(net, store)


@entry_point
def spread(address, heads):
    """Move the timed goals to the larger table `heads`."""
    net = as_net(address)
    spread_chains(net, net.heads, heads)


@entry_point
def spread_timeless(address, heads):
    """Move the timeless goals to the larger table `heads`."""
    net = as_net(address)
    spread_chains(net, net.timeless, heads)


@jit
def spread_chains(net, before, heads):
    """Split each chain, from its oldest goal on, so the order of end survives."""
    rows = net.rows
    for head in range(len(before)):
        goal = before[head]
        while goal != NONE and rows[goal, OLDER] != NONE:
            goal = rows[goal, OLDER]
        while goal != NONE:
            newer = rows[goal, NEWER]
            link(net, heads, goal)
            goal = newer


@inlined
def first_time(net, tag, row):
    """Return whether this instant meets this solution (or, under tags below zero, triple) for the first time at `tag`."""
    return first_time_of(net, tag, net.rows, row, START, VAR)


@inlined
def first_time_of(net, tag, table, row, start, first):
    """Do as `first_time` does for a row of any table, with its start and its first variable in these columns."""
    seen, width = net.seen, net.rows.shape[1] - VAR
    hash_ = (tag * SALT) ^ (table[row, start] * MIX)
    a, b, c, d = table[row, first], table[row, first + 1], table[row, first + 2], table[row, first + 3]
    hash_ += a * SALT + b * (SALT + 2) + c * (SALT + 4) + d * (SALT + 6)  # a sum: its multiplications overlap
    for v in range(LEAST_WIDTH, width):
        hash_ += table[row, first + v] * (SALT + 2 * v)
    hash_ = mixed(hash_, 0)
    head = head_of(net.seen_heads, hash_)
    earliest = net.at[SEEN_FIRST]  # entries of earlier instants have lower numbers: nothing needs clearing
    entry = net.seen_heads[head]
    while entry >= earliest:
        known = entry - earliest
        if seen[known, SEEN_HASH] == hash_ and seen[known, SEEN_TAG] == tag and same_solution(net, known, table, row, start, first):
            return False
        entry = seen[known, SEEN_NEXT]
    new = net.at[SEEN_N]
    seen[new, SEEN_NEXT], seen[new, SEEN_HASH], seen[new, SEEN_TAG], seen[new, SEEN_START] = net.seen_heads[head], hash_, tag, table[row, start]
    seen[new, SEEN_VAR], seen[new, SEEN_VAR + 1], seen[new, SEEN_VAR + 2], seen[new, SEEN_VAR + 3] = a, b, c, d
    for v in range(LEAST_WIDTH, width):
        seen[new, SEEN_VAR + v] = table[row, first + v]
    net.seen_heads[head] = earliest + new
    net.at[SEEN_N] = new + 1
    return True


@inlined
def same_solution(net, known, table, row, start, first):
    if net.seen[known, SEEN_START] != table[row, start]:
        return False
    for v in range(net.rows.shape[1] - VAR):
        if net.seen[known, SEEN_VAR + v] != table[row, first + v]:
            return False
    return True


@jit
def stands_already(net, node, x):
    """Return whether a timeless row like x has come to a node before, at whatever instant; if not, its left store keeps a copy."""
    rows, store = net.rows, store_of(node, LEFT)
    hash_ = in_store(store, hash_of_terms(net, x))
    goal = newest_timeless(net, hash_)
    while goal != NONE:
        if rows[goal, HASH] == hash_ and same_terms(net, goal, x):
            return True
        goal = rows[goal, OLDER]
    new = take(net)
    for column in range(rows.shape[1]):
        rows[new, column] = rows[x, column]
    store_goal(net, store, hash_, new, FOREVER)
    count_for(net, node, 1)
    return False


@jit
def hash_of_terms(net, row):
    """Return the hash of all that a row binds, however wide it is."""
    hash_ = 0
    for v in range(VAR, net.rows.shape[1]):
        hash_ += net.rows[row, v] * (SALT + 2 * v)
    return mixed(hash_, 0)


@inlined
def same_terms(net, x, y):
    for v in range(VAR, net.rows.shape[1]):
        if net.rows[x, v] != net.rows[y, v]:
            return False
    return True


@entry_point
def spread_seen(address, heads):
    """Enter what this instant has met into the larger table `heads`."""
    net = as_net(address)
    for known in range(net.at[SEEN_N]):
        head = net.seen[known, SEEN_HASH] & (len(heads) - 1)
        net.seen[known, SEEN_NEXT] = heads[head]
        heads[head] = net.at[SEEN_FIRST] + known
