"""Consumption policies: which pairs SEQ, SEQ ... WITHOUT and the interval relations join under `recent` and `chronological` (semantics.md section 9).

Left goals are stored as they come, in their chain by age (end, start, terms). When the instant closes, at its stratum's turn and phase by phase:
the host orders those that only their terms tell apart (ORDER); left goals meet right ones that came before them (LEFT_CHOICE); right goals choose
(RIGHT_CHOICE); what is replaced or consumed goes (SETTLE). A pair with a timeless goal is unrestricted. The span and the conditions look at the
pair that was chosen, for a goal that is too old must be taken all the same.
"""

from engine.kernel import inlined, jit
from engine.kernel.operators.emit import copied, gather, hand_on, wait
from engine.kernel.operators.join import merged
from engine.kernel.operators.negation import blocked, keep_side
from engine.kernel.state.goal_store import (
    fewer,
    first_time,
    is_timeless,
    key_hash,
    link,
    newest,
    newest_timeless,
    push_below,
    release,
    store_goal,
    store_of,
    unlink,
)
from engine.kernel.state.layout import *
from engine.kernel.state.temporal_relations import compatible, holds, same_key

RIGHT_TAG = 1 << 32  # sets right goals apart from left ones among what an instant has met at a node
MOST_STEPS = 64  # to the place of a goal among those of its instant; the host sorts larger crowds


@jit
def arrive_policy(net, node, side, x, goal):
    if side == BLOCKER:
        keep_side(net, node, side, x)
    elif side == LEFT:
        arrive_left(net, node, x)
    elif side == RIGHT:
        arrive_right(net, node, x)
    elif side < DECIDE:
        go_on_policy(net, node, side, x, goal)
    elif side == DECIDE + LEFT:
        meet_timeless(net, node, x)
    elif side == DECIDE + ORDER:
        gather(net, node, ORDER, x)
    elif side == DECIDE + LEFT_CHOICE:
        choose_left(net, node, x)
    elif side == DECIDE + RIGHT_CHOICE:
        choose_right(net, node, x)
    elif side == DECIDE + SETTLE:
        settle_goal(net, node, x)
    else:
        make_youngest(net, node, x)


# ---------------------------------------------------------------- arrival
@jit
def arrive_left(net, node, x):
    """Store a new left goal at once; one without a time waits, for it has no place in the order."""
    if not is_new(net, node, LEFT, x):
        release(net, x)
    elif is_timeless(net, x):
        wait(net, node, LEFT, x)
    else:
        keep_left(net, node, x)
        if net.stores[store_of(node, RIGHT), COUNT] > 0:
            wait(net, node, LEFT_CHOICE, x)
        if net.nodes[node, KIND] == RECENT:
            await_settlement(net, node, x)


@jit
def arrive_right(net, node, y):
    if is_new(net, node, RIGHT, y):
        wait(net, node, RIGHT_CHOICE, y)
    else:
        release(net, y)


@jit
def is_new(net, node, side, x):
    """Return whether x is new. Goals are a set: none is a goal twice at one instant, nor a timeless one at any."""
    return first_time(net, node + side * RIGHT_TAG, x) and not (is_timeless(net, x) and is_kept(net, node, side, x))


@jit
def is_kept(net, node, side, x):
    rows = net.rows
    hash_ = hash_of(net, node, side, x)
    goal = newest_timeless(net, hash_)
    while goal != NONE:
        if rows[goal, HASH] == hash_ and same_bindings(net, goal, x):
            return True
        goal = rows[goal, OLDER]
    return False


@inlined
def same_bindings(net, x, y):
    for v in range(VAR, net.rows.shape[1]):
        if net.rows[x, v] != net.rows[y, v]:
            return False
    return True


@inlined
def hash_of(net, node, side, x):
    return key_hash(net, store_of(node, side), x, net.nodes[node, KEY_AT], net.nodes[node, KEY_N])


@inlined
def of_key(net, node, hash_, goal, x):
    """Return whether `goal` is of the chain's key that hashes to `hash_`; x has that key."""
    return net.rows[goal, HASH] == hash_ and same_key(net, goal, x, net.nodes[node, KEY_AT], net.nodes[node, KEY_N])


# ---------------------------------------------------------------- the store of left goals
@jit
def keep(net, node, side, goal):
    """Store a goal with what lets it leave from the middle of its store's queue."""
    store = store_of(node, side)
    net.links[goal, BEFORE], net.links[goal, MARKED] = net.stores[store, TAIL], -BIG
    store_goal(net, store, hash_of(net, node, side, goal), goal, net.nodes[node, LIFE_LEFT + side])


@jit
def keep_again(net, node, side, goal, marked):
    """Store a goal of a snapshot, as the youngest of its chain."""
    keep(net, node, side, goal)
    net.links[goal, MARKED] = marked
    if side == LEFT and has_oldest(net, node) and not is_timeless(net, goal):
        enter_oldest(net, node, goal)


@jit
def discard(net, store, goal):
    """Discard a timed goal from its store, wherever it stands in the queue."""
    rows, stores, links = net.rows, net.stores, net.links
    after, before = rows[goal, QUEUE], links[goal, BEFORE]
    if stores[store, HEAD] == goal:
        stores[store, HEAD] = after
    else:
        rows[before, QUEUE] = after
    if stores[store, TAIL] == goal:
        stores[store, TAIL] = before
    else:
        links[after, BEFORE] = before
    stores[store, COUNT] -= 1
    fewer(net, store, 1)
    unlink(net, net.heads, goal)
    release(net, goal)


@jit
def keep_left(net, node, x):
    """Store x in its chain behind the younger ones of its instant. If the order depends on their terms, or takes long, the host is to order them."""
    rows = net.rows
    keep(net, node, LEFT, x)
    hash_, younger, steps = rows[x, HASH], NONE, 0
    goal = rows[x, OLDER]
    while goal != NONE and rows[goal, END] == net.at[NOW]:
        if of_key(net, node, hash_, goal, x):
            if rows[goal, START] == rows[x, START]:
                wait(net, node, ORDER, x)
                break
            if rows[goal, START] < rows[x, START]:
                break
            younger = goal
        steps += 1
        if steps == MOST_STEPS:
            wait(net, node, ORDER, x)
            break
        goal = rows[goal, OLDER]
    if younger != NONE:
        unlink(net, net.heads, x)
        link_behind(net, younger, x)
    if has_oldest(net, node):
        enter_oldest(net, node, x)


@jit
def link_behind(net, younger, x):
    rows = net.rows
    older = rows[younger, OLDER]
    rows[x, OLDER], rows[x, NEWER], rows[younger, OLDER] = older, younger, x
    if older != NONE:
        rows[older, NEWER] = x


@jit
def make_youngest(net, node, x):
    """Move x to the young end of its chain; called for all left goals of an instant and key, in order of age."""
    if has_oldest(net, node):
        leave_oldest(net, node, x)
    unlink(net, net.heads, x)
    link(net, net.heads, x)
    if has_oldest(net, node):
        enter_oldest(net, node, x)


# ---------------------------------------------------------------- the oldest goal of a key
@inlined
def has_oldest(net, node):
    """Return whether a node's search goes up from the oldest goal.

    Under the other relations a goal that is old enough cannot fit, so the search goes down from the youngest.
    """
    return net.nodes[node, KIND] == CHRONOLOGICAL and net.nodes[node, RELATION] == SEQ


@inlined
def youngest(net, node, hash_, x):
    """Return the youngest left goal of x's key."""
    goal = newest(net, hash_)
    while goal != NONE and not of_key(net, node, hash_, goal, x):
        goal = net.rows[goal, OLDER]
    return goal


@inlined
def next_of_key(net, node, direction, x):
    """Return the next goal of x's key in its chain, OLDER or NEWER."""
    goal = net.rows[x, direction]
    while goal != NONE and not of_key(net, node, net.rows[x, HASH], goal, x):
        goal = net.rows[goal, direction]
    return goal


@jit
def enter_oldest(net, node, x):
    """Note the oldest goal of the key after x has entered its chain; the youngest goal of each key knows the oldest."""
    links = net.links
    young = youngest(net, node, net.rows[x, HASH], x)
    if young == x:
        older = next_of_key(net, node, OLDER, x)
        links[x, OLDEST] = x if older == NONE else links[older, OLDEST]
    elif links[young, OLDEST] == next_of_key(net, node, NEWER, x):
        links[young, OLDEST] = x


@jit
def leave_oldest(net, node, x):
    """Note the oldest goal of the key before x leaves its chain."""
    links = net.links
    young = youngest(net, node, net.rows[x, HASH], x)
    if young == x:
        older = next_of_key(net, node, OLDER, x)
        if older != NONE:
            links[older, OLDEST] = links[x, OLDEST]
    elif links[young, OLDEST] == x:
        links[young, OLDEST] = next_of_key(net, node, NEWER, x)


# ---------------------------------------------------------------- pairs
@inlined
def joins(net, node, x, y):
    """Return whether left x and right y join, however long the joined solution lasts."""
    rows, nodes = net.rows, net.nodes
    return (
        holds(nodes[node, RELATION], rows[x, START], rows[x, END], rows[y, START], rows[y, END])
        and same_key(net, x, y, nodes[node, KEY_AT], nodes[node, KEY_N])
        and compatible(net, x, y, nodes[node, REST_AT], nodes[node, REST_N])
    )


@jit
def give(net, node, x, y):
    """Hand on the pair, if it is not too long and no blocker lies between."""
    rows, nodes = net.rows, net.nodes
    if min(rows[x, START], rows[y, START]) < net.at[NOW] - nodes[node, SPAN]:
        return
    z = merged(net, x, y)
    if nodes[node, LIFE_BLOCKER] != NEVER and blocked(net, node, z, rows[x, END], rows[y, START] - 1):
        release(net, z)
    else:
        hand_on(net, node, z)


@jit
def give_all(net, node, side, x, goal):
    """Give the pairs of x, on `side`, with the goals of a chain from `goal` on; beyond a chunk a copy of x goes on.

    Goals leave in later phases alone.
    """
    if goal == NONE:
        return
    rows, until = net.rows, oldest_given(net, node, side, x, goal)
    hash_, depth, made = hash_of(net, node, LEFT + RIGHT - side, x), net.at[DEPTH], 0
    while goal != NONE and rows[goal, END] >= until:
        left, right = (goal, x) if side == RIGHT else (x, goal)
        if rows[goal, HASH] == hash_ and joins(net, node, left, right):
            if made == CHUNK:
                push_below(net, depth, node, GO_ON + side, copied(net, x), goal)
                return
            made += 1
            give(net, node, left, right)
        goal = rows[goal, OLDER]


@inlined
def oldest_given(net, node, side, x, goal):
    """Return the end of the oldest goals of a chain that x is given with.

    A timeless x has the timed goals of this instant, for others are of the past.
    """
    if is_timeless(net, goal):
        return -BIG
    if is_timeless(net, x):
        return net.at[NOW]
    return net.rows[x, START] if side == LEFT else net.at[NOW] - net.nodes[node, SPAN]


@jit
def go_on_policy(net, node, side, x, goal):
    if side < GO_ON_STORED:
        give_all(net, node, side - GO_ON, x, goal)
        release(net, x)
    else:
        serve_waiting(net, node, x, goal)


@jit
def give_untimed(net, node, side, x):
    """Give the pairs of x with the timeless goals of the other side, and those of a timeless x with timed ones."""
    if net.nodes[node, TIMELESS] == 0:
        return
    hash_ = hash_of(net, node, LEFT + RIGHT - side, x)
    give_all(net, node, side, x, newest_timeless(net, hash_))
    if is_timeless(net, x):
        give_all(net, node, side, x, newest(net, hash_))


@jit
def meet_timeless(net, node, x):
    """Pair and store a timeless left goal.

    Right goals of this instant are stored by now only if it comes so late that they have chosen without it.
    """
    give_untimed(net, node, LEFT, x)
    keep(net, node, LEFT, x)


@jit
def choose_left(net, node, x):
    """Give the pairs of a timed left goal with right goals that were there before it."""
    nodes = net.nodes
    give_untimed(net, node, LEFT, x)
    if nodes[node, RELATION] != PAR:
        return
    y = newest(net, hash_of(net, node, RIGHT, x))
    if nodes[node, KIND] == RECENT:
        give_all(net, node, LEFT, x, y)
    else:
        serve_waiting(net, node, x, y)


@jit
def serve_waiting(net, node, x, y):
    """Serve the right goals of PAR, from y on, that left x lets choose."""
    rows, hash_, depth, made = net.rows, hash_of(net, node, RIGHT, x), net.at[DEPTH], 0
    while y != NONE and rows[y, END] > rows[x, START]:
        older = rows[y, OLDER]
        if rows[y, HASH] == hash_ and joins(net, node, x, y):
            if made == CHUNK:
                push_below(net, depth, node, GO_ON_STORED + LEFT, x, y)
                return
            made += 1
            take_oldest(net, node, y)
            discard(net, store_of(node, RIGHT), y)
        y = older


@jit
def choose_right(net, node, y):
    nodes = net.nodes
    give_untimed(net, node, RIGHT, y)
    served = False
    if not is_timeless(net, y):
        if nodes[node, KIND] == RECENT:
            goal = newest(net, hash_of(net, node, LEFT, y))
            give_all(net, node, RIGHT, y, goal)
        else:
            served = take_oldest(net, node, y)
    if is_timeless(net, y) or (nodes[node, LIFE_RIGHT] != NEVER and not (served and nodes[node, RELATION] == PAR)):
        keep(net, node, RIGHT, y)
    else:
        release(net, y)


# ---------------------------------------------------------------- consumption and replacement
@jit
def take_oldest(net, node, y):
    """Let y take the oldest left goal that it may have, which is gone after the instant. Return False if there is none."""
    x = oldest_before(net, node, y) if has_oldest(net, node) else oldest_joined(net, node, y)
    if x == NONE:
        return False
    give(net, node, x, y)
    if net.links[x, MARKED] != net.at[NOW]:
        net.links[x, MARKED] = net.at[NOW]
        wait(net, node, SETTLE, x)
    return True


@jit
def oldest_before(net, node, y):
    """Return the oldest goal that joins y by SEQ, or NONE. The search goes upwards from the oldest goal of the key."""
    rows = net.rows
    hash_ = hash_of(net, node, LEFT, y)
    young = youngest(net, node, hash_, y)
    if young == NONE:
        return NONE
    x = net.links[young, OLDEST]
    while x != NONE and rows[x, END] < rows[y, START]:
        if rows[x, HASH] == hash_ and joins(net, node, x, y):
            return x
        x = rows[x, NEWER]
    return NONE


@jit
def oldest_joined(net, node, y):
    """Return the oldest goal that joins y by a relation other than SEQ, or NONE. A goal that ended before y starts cannot fit."""
    rows = net.rows
    hash_ = hash_of(net, node, LEFT, y)
    found = NONE
    x = newest(net, hash_)
    while x != NONE and rows[x, END] >= rows[y, START]:
        if rows[x, HASH] == hash_ and joins(net, node, x, y):
            found = x
        x = rows[x, OLDER]
    return found


@jit
def await_settlement(net, node, x):
    """Let x wait to be settled at the end of the instant. A goal alone in its chain replaces none; the mark says that it has had its turn."""
    if net.rows[x, OLDER] == NONE and net.rows[x, NEWER] == NONE:
        net.links[x, MARKED] = net.at[NOW]
    else:
        wait(net, node, SETTLE, x)


@jit
def settle_goal(net, node, x):
    """Settle x, as its instant is over. It goes if it was consumed, or if a younger one replaces it, as it replaces the one before."""
    store = store_of(node, LEFT)
    if net.nodes[node, KIND] == CHRONOLOGICAL:
        if has_oldest(net, node):
            leave_oldest(net, node, x)
        discard(net, store, x)
        return
    older = next_alike(net, node, OLDER, x)
    while older != NONE and (net.rows[older, END] < net.at[NOW] or net.links[older, MARKED] == net.at[NOW]):
        discard(net, store, older)
        older = next_alike(net, node, OLDER, x)
    net.links[x, MARKED] = net.at[NOW]
    if next_alike(net, node, NEWER, x) != NONE:
        discard(net, store, x)


@inlined
def next_alike(net, node, direction, x):
    """Return the next goal in x's chain that binds what both sides may share as x does."""
    rest_at, rest_n = net.nodes[node, REST_AT], net.nodes[node, REST_N]
    goal = next_of_key(net, node, direction, x)
    while goal != NONE and not same_key(net, goal, x, rest_at, rest_n):
        goal = next_of_key(net, node, direction, goal)
    return goal
