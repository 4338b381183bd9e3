"""Consumption policies: which pairs SEQ, SEQ ... WITHOUT and the interval relations join under `recent` and `chronological` (semantics.md section 9).

Left goals are stored as they come, in their chain by age (end, start, terms). When the instant closes, at its stratum's turn and phase by phase:
the host orders those that only their terms tell apart (ORDER); left goals meet right ones that came before them (LEFT_CHOICE); right goals choose
(RIGHT_CHOICE); what is replaced or consumed goes (SETTLE). A pair with a timeless goal is unrestricted. The span and the conditions look at the
pair that was chosen, for a goal that is too old must be taken all the same.
"""

from engine.kernel import inlined, jit
from engine.kernel.operators.emission import emit_elsewhere
from engine.kernel.operators.join import join_rows
from engine.kernel.operators.negation import is_blocked, store_side
from engine.kernel.state.goal_store import (
    discount_goals,
    find_newest,
    find_newest_timeless,
    has_same_bindings,
    hash_stored_key,
    link_goal,
    store_goal,
    store_of,
    unlink_goal,
)
from engine.kernel.state.layout import (
    BIG,
    BLOCKER,
    CHRONOLOGICAL,
    CHUNK,
    DECIDE_LEFT,
    GO_ON_STORED_LEFT,
    LEFT,
    LEFT_CHOICE,
    NEVER,
    NEWER,
    NONE,
    OLDER,
    ORDER,
    PAR,
    RECENT,
    RIGHT,
    RIGHT_CHOICE,
    SEQ,
    SETTLE,
)
from engine.kernel.state.rows import copy_row, free_row, is_timeless
from engine.kernel.state.seen_solutions import meet_first
from engine.kernel.state.tasks import goes_on, goes_on_stored, life_of, opposite_of, side_of, task_to_go_on
from engine.kernel.state.temporal_relations import has_same_key, holds_relation, is_compatible
from engine.kernel.state.work_queues import gather_row, push_frame_below, wait_for_close

RIGHT_TAG = 1 << 32  # sets right goals apart from left ones among what an instant has met at a node
MOST_STEPS = 64  # to the place of a goal among those of its instant; the host sorts larger crowds


@jit
def arrive_policy(net, node, task, x, goal):
    if task == BLOCKER:
        store_side(net, node, BLOCKER, x)
    elif task == LEFT:
        arrive_left(net, node, x)
    elif task == RIGHT:
        arrive_right(net, node, x)
    elif goes_on(task):
        go_on_policy(net, node, task, x, goal)
    elif task == DECIDE_LEFT:
        pair_timeless_left(net, node, x)
    elif task == ORDER:
        gather_row(net, node, ORDER, x)
    elif task == LEFT_CHOICE:
        choose_left(net, node, x)
    elif task == RIGHT_CHOICE:
        choose_right(net, node, x)
    elif task == SETTLE:
        settle_goal(net, node, x)
    else:
        make_youngest(net, node, x)


# ---------------------------------------------------------------- arrival
@jit
def arrive_left(net, node, x):
    """Store a new left goal at once; one without a time waits, for it has no place in the order."""
    if not is_new(net, node, LEFT, x):
        free_row(net, x)
    elif is_timeless(net, x):
        wait_for_close(net, node, DECIDE_LEFT, x)
    else:
        store_left(net, node, x)
        if net.stores[store_of(node, RIGHT)].count > 0:
            wait_for_close(net, node, LEFT_CHOICE, x)
        if net.nodes[node].kind == RECENT:
            await_settlement(net, node, x)


@jit
def arrive_right(net, node, y):
    if is_new(net, node, RIGHT, y):
        wait_for_close(net, node, RIGHT_CHOICE, y)
    else:
        free_row(net, y)


@jit
def is_new(net, node, side, x):
    """Return whether x is new. Goals are a set: none is a goal twice at one instant, nor a timeless one at any."""
    return meet_first(net, node + (RIGHT_TAG if side == RIGHT else 0), x) and not (is_timeless(net, x) and is_stored_timeless(net, node, side, x))


@jit
def is_stored_timeless(net, node, side, x):
    rows = net.rows
    hash_ = hash_policy_key(net, node, side, x)
    goal = find_newest_timeless(net, hash_)
    while goal != NONE:
        if rows[goal].hash == hash_ and has_same_bindings(net, goal, x):
            return True
        goal = rows[goal].older
    return False


@inlined
def hash_policy_key(net, node, side, x):
    return hash_stored_key(net, store_of(node, side), x, net.nodes[node].key_at, net.nodes[node].key_n)


@inlined
def has_key(net, node, hash_, goal, x):
    """Return whether `goal` is of the chain's key that hashes to `hash_`; x has that key."""
    return net.rows[goal].hash == hash_ and has_same_key(net, goal, x, net.nodes[node].key_at, net.nodes[node].key_n)


# ---------------------------------------------------------------- the store of left goals
@jit
def store_policy_goal(net, node, side, goal):
    """Store a goal with what lets it leave from the middle of its store's queue."""
    store = store_of(node, side)
    net.links[goal].before, net.links[goal].marked = net.stores[store].tail, -BIG
    store_goal(net, store, hash_policy_key(net, node, side, goal), goal, life_of(net.nodes[node], side))


@jit
def restore_policy_goal(net, node, side, goal, marked):
    """Store a goal of a snapshot, as the youngest of its chain."""
    store_policy_goal(net, node, side, goal)
    net.links[goal].marked = marked
    if side == LEFT and has_oldest(net, node) and not is_timeless(net, goal):
        enter_oldest(net, node, goal)


@jit
def discard_goal(net, store, goal):
    """Discard a timed goal from its store, wherever it stands in the queue."""
    rows, stores, links = net.rows, net.stores, net.links
    after, before = rows[goal].queue, links[goal].before
    if stores[store].head == goal:
        stores[store].head = after
    else:
        rows[before].queue = after
    if stores[store].tail == goal:
        stores[store].tail = before
    else:
        links[after].before = before
    stores[store].count -= 1
    discount_goals(net, store, 1)
    unlink_goal(net, net.heads, goal)
    free_row(net, goal)


@jit
def store_left(net, node, x):
    """Store x in its chain behind the younger ones of its instant. If the order depends on their terms, or takes long, the host is to order them."""
    rows = net.rows
    store_policy_goal(net, node, LEFT, x)
    hash_, younger, steps = rows[x].hash, NONE, 0
    goal = rows[x].older
    while goal != NONE and rows[goal].end == net.at.now:
        if has_key(net, node, hash_, goal, x):
            if rows[goal].start == rows[x].start:
                wait_for_close(net, node, ORDER, x)
                break
            if rows[goal].start < rows[x].start:
                break
            younger = goal
        steps += 1
        if steps == MOST_STEPS:
            wait_for_close(net, node, ORDER, x)
            break
        goal = rows[goal].older
    if younger != NONE:
        unlink_goal(net, net.heads, x)
        link_goal_behind(net, younger, x)
    if has_oldest(net, node):
        enter_oldest(net, node, x)


@jit
def link_goal_behind(net, younger, x):
    rows = net.rows
    older = rows[younger].older
    rows[x].older, rows[x].newer, rows[younger].older = older, younger, x
    if older != NONE:
        rows[older].newer = x


@jit
def make_youngest(net, node, x):
    """Move x to the young end of its chain; called for all left goals of an instant and key, in order of age."""
    if has_oldest(net, node):
        leave_oldest(net, node, x)
    unlink_goal(net, net.heads, x)
    link_goal(net, net.heads, x)
    if has_oldest(net, node):
        enter_oldest(net, node, x)


# ---------------------------------------------------------------- the oldest goal of a key
@inlined
def has_oldest(net, node):
    """Return whether a node's search goes up from the oldest goal.

    Under the other relations a goal that is old enough cannot fit, so the search goes down from the youngest.
    """
    return net.nodes[node].kind == CHRONOLOGICAL and net.nodes[node].relation == SEQ


@inlined
def find_youngest(net, node, hash_, x):
    """Return the youngest left goal of x's key."""
    goal = find_newest(net, hash_)
    while goal != NONE and not has_key(net, node, hash_, goal, x):
        goal = net.rows[goal].older
    return goal


@inlined
def find_next_of_key(net, node, direction, x):
    """Return the next goal of x's key in its chain, OLDER or NEWER."""
    goal = net.rows[x, direction]
    while goal != NONE and not has_key(net, node, net.rows[x].hash, goal, x):
        goal = net.rows[goal, direction]
    return goal


@jit
def enter_oldest(net, node, x):
    """Note the oldest goal of the key after x has entered its chain; the youngest goal of each key knows the oldest."""
    links = net.links
    young = find_youngest(net, node, net.rows[x].hash, x)
    if young == x:
        older = find_next_of_key(net, node, OLDER, x)
        links[x].oldest = x if older == NONE else links[older].oldest
    elif links[young].oldest == find_next_of_key(net, node, NEWER, x):
        links[young].oldest = x


@jit
def leave_oldest(net, node, x):
    """Note the oldest goal of the key before x leaves its chain."""
    links = net.links
    young = find_youngest(net, node, net.rows[x].hash, x)
    if young == x:
        older = find_next_of_key(net, node, OLDER, x)
        if older != NONE:
            links[older].oldest = links[x].oldest
    elif links[young].oldest == x:
        links[young].oldest = find_next_of_key(net, node, NEWER, x)


# ---------------------------------------------------------------- pairs
@inlined
def is_pair(net, node, x, y):
    """Return whether left x and right y join, however long the joined solution lasts."""
    rows, nodes = net.rows, net.nodes
    return (
        holds_relation(nodes[node].relation, rows[x].start, rows[x].end, rows[y].start, rows[y].end)
        and has_same_key(net, x, y, nodes[node].key_at, nodes[node].key_n)
        and is_compatible(net, x, y, nodes[node].rest_at, nodes[node].rest_n)
    )


@jit
def emit_pair(net, node, x, y):
    """Hand on the pair, if it is not too long and no blocker lies between."""
    rows, nodes = net.rows, net.nodes
    if min(rows[x].start, rows[y].start) < net.at.now - nodes[node].span:
        return
    z = join_rows(net, x, y)
    if nodes[node].life_blocker != NEVER and is_blocked(net, node, z, rows[x].end, rows[y].start - 1):
        free_row(net, z)
    else:
        emit_elsewhere(net, node, z)


@jit
def emit_pairs(net, node, side, x, goal):
    """Give the pairs of x, on `side`, with the goals of a chain from `goal` on; beyond a chunk a copy of x goes on.

    Goals leave in later phases alone.
    """
    if goal == NONE:
        return
    rows, until = net.rows, find_oldest_end(net, node, side, x, goal)
    hash_, depth, made = hash_policy_key(net, node, opposite_of(side), x), net.at.depth, 0
    while goal != NONE and rows[goal].end >= until:
        left, right = (goal, x) if side == RIGHT else (x, goal)
        if rows[goal].hash == hash_ and is_pair(net, node, left, right):
            if made == CHUNK:
                push_frame_below(net, depth, node, task_to_go_on(side, False), copy_row(net, x), goal)
                return
            made += 1
            emit_pair(net, node, left, right)
        goal = rows[goal].older


@inlined
def find_oldest_end(net, node, side, x, goal):
    """Return the end of the oldest goals of a chain that x is given with.

    A timeless x has the timed goals of this instant, for others are of the past.
    """
    if is_timeless(net, goal):
        return -BIG
    if is_timeless(net, x):
        return net.at.now
    return net.rows[x].start if side == LEFT else net.at.now - net.nodes[node].span


@jit
def go_on_policy(net, node, task, x, goal):
    if goes_on_stored(task):
        serve_waiting(net, node, x, goal)
    else:
        emit_pairs(net, node, side_of(task), x, goal)
        free_row(net, x)


@jit
def emit_timeless_pairs(net, node, side, x):
    """Give the pairs of x with the timeless goals of the other side, and those of a timeless x with timed ones."""
    if net.nodes[node].timeless == 0:
        return
    hash_ = hash_policy_key(net, node, opposite_of(side), x)
    emit_pairs(net, node, side, x, find_newest_timeless(net, hash_))
    if is_timeless(net, x):
        emit_pairs(net, node, side, x, find_newest(net, hash_))


@jit
def pair_timeless_left(net, node, x):
    """Pair and store a timeless left goal.

    Right goals of this instant are stored by now only if it comes so late that they have chosen without it.
    """
    emit_timeless_pairs(net, node, LEFT, x)
    store_policy_goal(net, node, LEFT, x)


@jit
def choose_left(net, node, x):
    """Give the pairs of a timed left goal with right goals that were there before it."""
    nodes = net.nodes
    emit_timeless_pairs(net, node, LEFT, x)
    if nodes[node].relation != PAR:
        return
    y = find_newest(net, hash_policy_key(net, node, RIGHT, x))
    if nodes[node].kind == RECENT:
        emit_pairs(net, node, LEFT, x, y)
    else:
        serve_waiting(net, node, x, y)


@jit
def serve_waiting(net, node, x, y):
    """Serve the right goals of PAR, from y on, that left x lets choose."""
    rows, hash_, depth, made = net.rows, hash_policy_key(net, node, RIGHT, x), net.at.depth, 0
    while y != NONE and rows[y].end > rows[x].start:
        older = rows[y].older
        if rows[y].hash == hash_ and is_pair(net, node, x, y):
            if made == CHUNK:
                push_frame_below(net, depth, node, GO_ON_STORED_LEFT, x, y)
                return
            made += 1
            take_oldest(net, node, y)
            discard_goal(net, store_of(node, RIGHT), y)
        y = older


@jit
def choose_right(net, node, y):
    nodes = net.nodes
    emit_timeless_pairs(net, node, RIGHT, y)
    served = False
    if not is_timeless(net, y):
        if nodes[node].kind == RECENT:
            goal = find_newest(net, hash_policy_key(net, node, LEFT, y))
            emit_pairs(net, node, RIGHT, y, goal)
        else:
            served = take_oldest(net, node, y)
    if is_timeless(net, y) or (nodes[node].life_right != NEVER and not (served and nodes[node].relation == PAR)):
        store_policy_goal(net, node, RIGHT, y)
    else:
        free_row(net, y)


# ---------------------------------------------------------------- consumption and replacement
@jit
def take_oldest(net, node, y):
    """Let y take the oldest left goal that it may have, which is gone after the instant. Return False if there is none."""
    x = oldest_before(net, node, y) if has_oldest(net, node) else oldest_joined(net, node, y)
    if x == NONE:
        return False
    emit_pair(net, node, x, y)
    if net.links[x].marked != net.at.now:
        net.links[x].marked = net.at.now
        wait_for_close(net, node, SETTLE, x)
    return True


@jit
def oldest_before(net, node, y):
    """Return the oldest goal that joins y by SEQ, or NONE. The search goes upwards from the oldest goal of the key."""
    rows = net.rows
    hash_ = hash_policy_key(net, node, LEFT, y)
    young = find_youngest(net, node, hash_, y)
    if young == NONE:
        return NONE
    x = net.links[young].oldest
    while x != NONE and rows[x].end < rows[y].start:
        if rows[x].hash == hash_ and is_pair(net, node, x, y):
            return x
        x = rows[x].newer
    return NONE


@jit
def oldest_joined(net, node, y):
    """Return the oldest goal that joins y by a relation other than SEQ, or NONE. A goal that ended before y starts cannot fit."""
    rows = net.rows
    hash_ = hash_policy_key(net, node, LEFT, y)
    found = NONE
    x = find_newest(net, hash_)
    while x != NONE and rows[x].end >= rows[y].start:
        if rows[x].hash == hash_ and is_pair(net, node, x, y):
            found = x
        x = rows[x].older
    return found


@jit
def await_settlement(net, node, x):
    """Let x wait to be settled at the end of the instant. A goal alone in its chain replaces none; the mark says that it has had its turn."""
    if net.rows[x].older == NONE and net.rows[x].newer == NONE:
        net.links[x].marked = net.at.now
    else:
        wait_for_close(net, node, SETTLE, x)


@jit
def settle_goal(net, node, x):
    """Settle x, as its instant is over. It goes if it was consumed, or if a younger one replaces it, as it replaces the one before."""
    store = store_of(node, LEFT)
    if net.nodes[node].kind == CHRONOLOGICAL:
        if has_oldest(net, node):
            leave_oldest(net, node, x)
        discard_goal(net, store, x)
        return
    older = find_next_alike(net, node, OLDER, x)
    while older != NONE and (net.rows[older].end < net.at.now or net.links[older].marked == net.at.now):
        discard_goal(net, store, older)
        older = find_next_alike(net, node, OLDER, x)
    net.links[x].marked = net.at.now
    if find_next_alike(net, node, NEWER, x) != NONE:
        discard_goal(net, store, x)


@inlined
def find_next_alike(net, node, direction, x):
    """Return the next goal in x's chain that binds what both sides may share as x does."""
    rest_at, rest_n = net.nodes[node].rest_at, net.nodes[node].rest_n
    goal = find_next_of_key(net, node, direction, x)
    while goal != NONE and not has_same_key(net, goal, x, rest_at, rest_n):
        goal = find_next_of_key(net, node, direction, goal)
    return goal
