"""The store holds rows, chains by key, queues in order of end, and what an instant has met already."""

from engine.kernel import entry_point, inlined, jit
from engine.kernel.state.handle import as_net
from engine.kernel.state.hash_table import SALT, head_of, mix_hash
from engine.kernel.state.layout import FOREVER, LEFT, NONE, SIDES, VAR
from engine.kernel.state.rows import copy_row, free_row, is_timeless
from engine.kernel.state.work_queues import count_made


@inlined
def store_of(node, side):
    return SIDES * node + side


@inlined
def hash_key(net, row, key_at, key_n):
    """Return the hash of a row's key."""
    hash_ = 0
    for k in range(key_at, key_at + key_n):
        hash_ = mix_hash(hash_, net.rows[row, net.slots[k]])
    return hash_


@inlined
def hash_in_store(store, hash_):
    """Return the hash of a store and a key, from the key's: all stores share one table of chains. Stores of one key never collide."""
    return hash_ ^ (store * SALT)


@inlined
def hash_stored_key(net, store, row, key_at, key_n):
    return hash_in_store(store, hash_key(net, row, key_at, key_n))


@inlined
def find_newest(net, hash_):
    """Return the timed goal that came last among those whose chain this is."""
    return net.heads[head_of(net.heads, hash_)]


@inlined
def find_newest_timeless(net, hash_):
    return net.timeless[head_of(net.timeless, hash_)]


@jit
def link_goal_in_order(net, goal):
    """Link a timed goal that comes late, as `link_goal` does; its place is behind the goals that end after it."""
    rows = net.rows
    head, after, before = head_of(net.heads, rows[goal].hash), find_newest(net, rows[goal].hash), NONE
    while after != NONE and rows[after].end > rows[goal].end:
        before, after = after, rows[after].older
    rows[goal].older, rows[goal].newer = after, before
    if after != NONE:
        rows[after].newer = goal
    if before != NONE:
        rows[before].older = goal
    else:
        net.heads[head] = goal


@inlined
def link_goal(net, heads, goal):
    """Link a goal to the head of its chain. Chains fall in end: goals come in order of end, and timeless ones have chains of their own."""
    rows = net.rows
    head = head_of(heads, rows[goal].hash)
    after = heads[head]
    rows[goal].older, rows[goal].newer = after, NONE
    if after != NONE:
        rows[after].newer = goal
    heads[head] = goal


@inlined
def unlink_goal(net, heads, goal):
    rows = net.rows
    older, newer = rows[goal].older, rows[goal].newer
    if newer != NONE:
        rows[newer].older = older
    else:
        heads[head_of(heads, rows[goal].hash)] = older
    if older != NONE:
        rows[older].newer = newer


@inlined
def count_goal(net, store):
    """Count one goal more that the store's query keeps. A query beyond its limit is marked, and the host looks into it before the next step."""
    query = net.nodes[store // SIDES].query
    net.queries[query].goals += 1
    if net.queries[query].goals > net.queries[query].limit:
        net.at.endless, net.at.credit = query, 0


@inlined
def discount_goals(net, store, n):
    """Count `n` goals fewer that the store's query keeps."""
    net.queries[net.nodes[store // SIDES].query].goals -= n


@inlined
def store_goal(net, store, hash_, goal, life):
    """Keep `goal` in its store for `life` µs after its end; expire what has outlived it."""
    rows, stores = net.rows, net.stores
    rows[goal].hash = hash_
    stores[store].count += 1
    if is_timeless(net, goal):
        link_goal(net, net.timeless, goal)
        net.at.timeless_goals += 1
        rows[goal].queue = stores[store].timeless_head
        stores[store].timeless_head = goal
        count_goal(net, store)
        return
    link_goal(net, net.heads, goal)
    rows[goal].queue = NONE
    oldest = stores[store].head
    if oldest != NONE and rows[oldest].end < net.at.now - life:
        expire_goals(net, store, net.at.now - life)
    if stores[store].head == NONE:
        stores[store].head = goal
    else:
        rows[stores[store].tail].queue = goal
    stores[store].tail = goal
    count_goal(net, store)


@inlined
def expire_goals(net, store, horizon):
    """Free the timed goals of a store that ended before `horizon`."""
    rows, freed = net.rows, 0
    goal = net.stores[store].head
    while goal != NONE and rows[goal].end < horizon:
        after = rows[goal].queue
        unlink_goal(net, net.heads, goal)
        free_row(net, goal)
        freed += 1
        goal = after
    net.stores[store].head = goal
    net.stores[store].count -= freed
    discount_goals(net, store, freed)


@jit
def clear_store(net, store):
    """Free all goals of a store, the timeless ones too."""
    rows, stores = net.rows, net.stores
    goal = stores[store].head
    while goal != NONE:
        after = rows[goal].queue
        unlink_goal(net, net.heads, goal)
        free_row(net, goal)
        goal = after
    goal = stores[store].timeless_head
    while goal != NONE:
        after = rows[goal].queue
        unlink_goal(net, net.timeless, goal)
        net.at.timeless_goals -= 1
        free_row(net, goal)
        goal = after
    discount_goals(net, store, stores[store].count)
    stores[store].head, stores[store].tail, stores[store].timeless_head, stores[store].count = NONE, NONE, NONE, 0


@entry_point
def clear_stores(address, first, after):
    """Free all goals of the stores `first` to `after` (exclusive)."""
    net = as_net(address)
    for store in range(first, after):
        clear_store(net, store)


@entry_point
def spread_goals(address, heads):
    """Move the timed goals to the larger table `heads`."""
    net = as_net(address)
    spread_chains(net, net.heads, heads)


@entry_point
def spread_timeless_goals(address, heads):
    """Move the timeless goals to the larger table `heads`."""
    net = as_net(address)
    spread_chains(net, net.timeless, heads)


@jit
def spread_chains(net, before, heads):
    """Split each chain, from its oldest goal on, so the order of end survives."""
    rows = net.rows
    for head in range(len(before)):
        goal = before[head]
        while goal != NONE and rows[goal].older != NONE:
            goal = rows[goal].older
        while goal != NONE:
            newer = rows[goal].newer
            link_goal(net, heads, goal)
            goal = newer


@jit
def keep_timeless_once(net, node, x):
    """Return whether a timeless row like x has come to a node before, at whatever instant; if not, its left store keeps a copy."""
    rows, store = net.rows, store_of(node, LEFT)
    hash_ = hash_in_store(store, hash_bindings(net, x))
    goal = find_newest_timeless(net, hash_)
    while goal != NONE:
        if rows[goal].hash == hash_ and has_same_bindings(net, goal, x):
            return True
        goal = rows[goal].older
    store_goal(net, store, hash_, copy_row(net, x), FOREVER)
    count_made(net, node, 1)
    return False


@jit
def hash_bindings(net, row):
    """Return the hash of all that a row binds, however wide it is."""
    hash_ = 0
    for v in range(VAR, net.rows.shape[1]):
        hash_ += net.rows[row, v] * (SALT + 2 * v)
    return mix_hash(hash_, 0)


@inlined
def hash_bindings_and_start(net, row):
    return mix_hash(hash_bindings(net, row), net.rows[row].start)


@inlined
def has_same_bindings(net, x, y):
    for v in range(VAR, net.rows.shape[1]):
        if net.rows[x, v] != net.rows[y, v]:
            return False
    return True
