"""What decides on absence: OPTIONAL, OPTIONALSEQ, EQUALSOPTIONAL, MINUS, EXISTS, WITHOUT in both forms.

The decided side waits until its stratum's turn at the close of its instant; then all that can count against it is stored.
"""

from engine.kernel.columns import *
from engine.kernel.compile import jit
from engine.kernel.filters import judge
from engine.kernel.flow import copied, hand_on, park, wait
from engine.kernel.goals import is_timeless, key_hash, release, store_goal, store_of, timed_head, timeless_head, unlink
from engine.kernel.joins import fits, merged, terms_of
from engine.kernel.relations import compatible, same_key, share_a_variable


@jit
def decided_side(kind):
    return RIGHT if kind == OPTIONALSEQ or kind == WITHOUT else LEFT


@jit
def arrive_negative(net, node, side, x):
    nodes = net.nodes
    kind = nodes[node, KIND]
    if kind == WITHOUTFOR and side == LEFT:
        set_timer(net, node, x)
    elif side != decided_side(kind):
        if kind == WITHOUT and side == LEFT and nodes[node, TIMELESS] != 0:
            wait(net, node, side, copied(net, x))  # for the timeless right goals
        keep_side(net, node, side, x)
    elif (kind == OPTIONALSEQ or kind == WITHOUT) and nodes[node, TIMELESS] == 0:
        decide(net, node, side, x)  # all that counts ended before this instant
    else:
        wait(net, node, side, x)


@jit
def keep_side(net, node, side, x):
    nodes = net.nodes
    store = store_of(node, side)
    at, n = (nodes[node, KEY2_AT], nodes[node, KEY2_N]) if side == BLOCKER else (nodes[node, KEY_AT], nodes[node, KEY_N])
    store_goal(net, store, key_hash(net, store, x, at, n), x, nodes[node, LIFE_LEFT + side])


@jit
def decide(net, node, side, x):
    kind = net.nodes[node, KIND]
    if kind == MINUS or kind == EXISTS or kind == NOTEXISTS:
        decide_minus(net, node, x)
    elif kind == WITHOUT:
        decide_without(net, node, side, x)
    elif kind == WITHOUTFOR:
        decide_timer(net, node, x)
    else:
        decide_optional(net, node, side, x)


@jit
def decide_optional(net, node, side, x):
    """Joins of x where the condition holds, or x alone. Nothing leaves before every verdict is known."""
    if net.nodes[node, CONDITION] != NONE and visit(net, node, side, x, True) == PENDING:
        park(net, node, DECIDE + side, x)
        return
    if visit(net, node, side, x, False) == TRUE:
        release(net, x)
    else:
        hand_on(net, node, x)


@jit
def visit(net, node, side, x, only_ask):
    """Goes through the goals that join x: TRUE, FALSE (none) or PENDING."""
    first = visit_chain(net, node, side, x, only_ask, False)
    if net.nodes[node, TIMELESS] == 0:
        return first
    return max(first, visit_chain(net, node, side, x, only_ask, True))


@jit
def visit_chain(net, node, side, x, only_ask, timeless):
    rows, condition, terms = net.rows, net.nodes[node, CONDITION], terms_of(net, node)
    hash_ = key_hash(net, store_of(node, LEFT + RIGHT - side), x, terms.key_at, terms.key_n)
    goal = net.heads[timeless_head(net, hash_) if timeless else timed_head(net, hash_)]
    result = FALSE
    while goal != NONE and (timeless or rows[goal, END] >= terms.oldest):
        left, right = (goal, x) if side == RIGHT else (x, goal)
        if rows[goal, HASH] == hash_ and fits(net, terms, left, right):
            z = merged(net, left, right)
            verdict = TRUE if condition == NONE else judge(net, condition, z)
            if verdict == TRUE and not only_ask:
                hand_on(net, node, z)
            else:
                release(net, z)
            result = max(result, verdict)
        goal = rows[goal, OLDER]
    return result


@jit
def decide_minus(net, node, x):
    found = finds_any(net, node, x, False) or (net.nodes[node, TIMELESS] != 0 and finds_any(net, node, x, True))
    if found != (net.nodes[node, KIND] == EXISTS):
        release(net, x)
    else:
        hand_on(net, node, x)


@jit
def finds_any(net, node, x, timeless):
    rows, nodes = net.rows, net.nodes
    key_at, key_n, rest_at, rest_n = nodes[node, KEY_AT], nodes[node, KEY_N], nodes[node, REST_AT], nodes[node, REST_N]
    hash_ = key_hash(net, store_of(node, RIGHT), x, key_at, key_n)
    goal = net.heads[timeless_head(net, hash_) if timeless else timed_head(net, hash_)]
    while goal != NONE:
        if (
            rows[goal, HASH] == hash_
            and same_key(net, x, goal, key_at, key_n)
            and compatible(net, x, goal, rest_at, rest_n)
            and (nodes[node, KIND] != MINUS or key_n > 0 or share_a_variable(net, x, goal, rest_at, rest_n))
        ):
            return True
        goal = rows[goal, OLDER]
    return False


@jit
def decide_without(net, node, side, x):
    """Right x: its left goals with no blocker between. Left x (a copy): its timeless right goals."""
    if side == RIGHT:
        last = latest_blocker(net, node, x) if net.nodes[node, BY_RIGHT] else -BIG
        pair_without(net, node, side, x, last, False)
    if net.nodes[node, TIMELESS] != 0:
        pair_without(net, node, side, x, -BIG, True)
    if side == RIGHT and is_timeless(net, x):
        keep_side(net, node, side, x)
    else:
        release(net, x)


@jit
def latest_blocker(net, node, y):
    """Greatest start of a blocker that ends before y starts: a left goal is free of blockers iff it does not end before that."""
    rows, nodes = net.rows, net.nodes
    hash_ = key_hash(net, store_of(node, BLOCKER), y, nodes[node, KEY2_AT], nodes[node, KEY2_N])
    last = -BIG
    c = net.heads[timed_head(net, hash_)]
    while c != NONE and rows[c, END] > last:  # start <= end: nothing older can raise it
        if (
            rows[c, HASH] == hash_
            and rows[c, END] < rows[y, START]
            and rows[c, START] > last
            and same_key(net, c, y, nodes[node, KEY2_AT], nodes[node, KEY2_N])
        ):
            last = rows[c, START]
        c = rows[c, OLDER]
    return last


@jit
def pair_without(net, node, side, x, last, timeless):
    rows, by_right, terms = net.rows, net.nodes[node, BY_RIGHT], terms_of(net, node)
    hash_ = key_hash(net, store_of(node, LEFT + RIGHT - side), x, terms.key_at, terms.key_n)
    goal = net.heads[timeless_head(net, hash_) if timeless else timed_head(net, hash_)]
    oldest = net.at[NOW] if is_timeless(net, x) else terms.oldest
    while goal != NONE and (timeless or rows[goal, END] >= oldest):
        left, right = (goal, x) if side == RIGHT else (x, goal)
        if rows[goal, HASH] == hash_ and rows[left, END] >= last and fits(net, terms, left, right):
            if by_right:
                hand_on(net, node, merged(net, left, right))
            else:
                emit_unblocked(net, node, left, right)
        goal = rows[goal, OLDER]


@jit
def emit_unblocked(net, node, x, y):
    z = merged(net, x, y)
    if blocked(net, node, z, net.rows[x, END], net.rows[y, START] - 1):
        release(net, z)
    else:
        hand_on(net, node, z)


@jit
def blocked(net, node, z, after, until):
    """Whether a compatible blocker starts after `after` and ends at `until` at the latest; a timeless one does."""
    hash_ = key_hash(net, store_of(node, BLOCKER), z, net.nodes[node, KEY2_AT], net.nodes[node, KEY2_N])
    if blocked_by(net, node, z, after, until, net.heads[timed_head(net, hash_)], hash_):
        return True
    return net.nodes[node, TIMELESS] != 0 and blocked_by(net, node, z, after, until, net.heads[timeless_head(net, hash_)], hash_)


@jit
def blocked_by(net, node, z, after, until, c, hash_):
    rows, nodes = net.rows, net.nodes
    while c != NONE:
        if (
            rows[c, HASH] == hash_
            and after < rows[c, START]
            and rows[c, END] <= until
            and same_key(net, c, z, nodes[node, KEY2_AT], nodes[node, KEY2_N])
            and compatible(net, c, z, nodes[node, REST2_AT], nodes[node, REST2_N])
        ):
            return True
        c = rows[c, OLDER]
    return False


# ---------------------------------------------------------------- WITHOUT ... FOR
@jit
def set_timer(net, node, x):
    """x waits in the node's left store, in order of end; a timeless x stands at this instant, its query's t0."""
    if net.at[ENDING] != 0:  # solutions of the timers that run on after the end set no further ones
        release(net, x)
        return
    if is_timeless(net, x):
        net.rows[x, START], net.rows[x, END] = net.at[NOW], net.at[NOW]
    store = store_of(node, LEFT)
    store_goal(net, store, key_hash(net, store, x, 0, 0), x, FOREVER)


@jit
def next_due(net):
    """The least instant at which a timer is due, FOREVER if there is none."""
    due = FOREVER
    for k in range(net.at[TIMER_NODES]):
        node = net.timers[k]
        oldest = net.stores[store_of(node, LEFT), HEAD]
        if oldest != NONE and net.nodes[node, KIND] == WITHOUTFOR:
            due = min(due, net.rows[oldest, END] + net.nodes[node, LIFE_LEFT])
    return due


@jit
def call_timers(net):
    """Moves the timers due at this instant, as many as there is room for, to the work that waits for its close."""
    for k in range(net.at[TIMER_NODES]):
        node = net.timers[k]
        store = store_of(node, LEFT)
        goal = net.stores[store, HEAD]
        if goal != NONE and net.nodes[node, KIND] == WITHOUTFOR and net.rows[goal, END] + net.nodes[node, LIFE_LEFT] <= net.at[NOW]:
            net.stores[store, HEAD] = net.rows[goal, QUEUE]
            net.stores[store, COUNT] -= 1
            unlink(net, timed_head(net, net.rows[goal, HASH]), goal)
            wait(net, node, LEFT, goal)
            return


@jit
def decide_timer(net, node, x):
    """x, if nothing compatible came after it in time, on [its start, its end + duration]."""
    rows = net.rows
    if blocked(net, node, x, rows[x, END], net.at[NOW]):
        release(net, x)
        return
    rows[x, END] = net.at[NOW]
    hand_on(net, node, x)
