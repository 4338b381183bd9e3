"""What decides on absence: OPTIONAL, OPTIONALSEQ, EQUALSOPTIONAL, MINUS, EXISTS, WITHOUT in both forms.

The decided side waits until its stratum's turn at the close of its instant; then all that can count against it is stored.
"""

from engine.kernel.columns import *
from engine.kernel.compile import inlined, jit
from engine.kernel.deferred import defer
from engine.kernel.filters import judge
from engine.kernel.flow import copied, gather, hand_on, park, wait
from engine.kernel.goals import is_timeless, key_hash, release, store_goal, store_of, take, timed_head, timeless_head, unlink
from engine.kernel.joins import fits, merged, terms_of
from engine.kernel.relations import compatible, same_key, share_a_variable

SHARED = BY_RIGHT  # of MINUS: a variable that both sides certainly bind
MOST_ASKED = 512  # questions that one step of EXISTS puts to the host before it waits for answers
ROOM_TO_ASK = 4
CARRY_ON, DESCEND = -1, -2  # besides verdicts


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
    elif (kind == OPTIONALSEQ or kind == WITHOUT) and nodes[node, TIMELESS] == 0 and nodes[node, MARK_N] == 0:
        decide(net, node, side, x)  # all that counts ended before this instant
    else:
        wait(net, node, side, x)


@jit
def arrive_mark(net, node, x):
    wait(net, node, LEFT, x)


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
    elif kind == MARK:
        decide_mark(net, node, x)
    elif kind == COLLECT:
        if net.nodes[node, DEFERRED] != 0:
            defer(net, node, side, x)
        else:
            gather(net, node, side, x)
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
            if net.nodes[node, MARK_N] > 0 and (len(net.questions) - net.at[ASKED] < ROOM_TO_ASK or set_marks(net, node, z) == PENDING):
                release(net, z)
                return PENDING
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
    verdict = exists(net, node, x, BIG)
    if verdict == PENDING:
        park(net, node, DECIDE, x)
    elif (verdict == TRUE) != (net.nodes[node, KIND] == EXISTS):
        release(net, x)
    else:
        hand_on(net, node, x)


@jit
def exists(net, node, x, until):
    """Whether a goal of the right side that ends by `until` is compatible with x and, joined with it, satisfies the node's condition.

    TRUE, FALSE or PENDING. What an EXISTS in the condition looks at ends by the goal's end, since it is the goal that it decides on. Levels of
    EXISTS in EXISTS are rows of `nests`, because numba cannot be relied on to load a recursive function from its cache.
    """
    nests, level = net.nests, 0
    enter(net, level, node, x, until)
    while True:
        verdict = step(net, level)
        if verdict == DESCEND:
            level += 1
            enter_mark(net, level)
        elif verdict != CARRY_ON:
            if level == 0:
                return verdict
            level -= 1
            other = net.edges[net.nodes[nests[level, N_NODE], MARK_AT] + nests[level, N_MARK], 0]
            net.rows[nests[level, N_JOINED], net.nodes[other, COLUMN]] = net.at[TRUE_TERM] if verdict == TRUE else net.at[FALSE_TERM]
            if verdict == PENDING:
                nests[level, N_UNMARKED] = 1
            nests[level, N_MARK] += 1


@jit
def enter(net, level, node, x, until):
    """Begins to look through the goals of a node for those that join x."""
    nests = net.nests
    hash_ = key_hash(net, store_of(node, RIGHT), x, net.nodes[node, KEY_AT], net.nodes[node, KEY_N])
    nests[level, N_NODE], nests[level, N_ROW], nests[level, N_UNTIL], nests[level, N_HASH] = node, x, until, hash_
    nests[level, N_GOAL], nests[level, N_TIMELESS], nests[level, N_MARK], nests[level, N_PENDING] = net.heads[timed_head(net, hash_)], 0, NONE, 0


@jit
def enter_mark(net, level):
    """Begins with the EXISTS that the level above has come to, for the goal that it has joined."""
    nests = net.nests
    node, goal = nests[level - 1, N_NODE], nests[level - 1, N_GOAL]
    other = net.edges[net.nodes[node, MARK_AT] + nests[level - 1, N_MARK], 0]
    latest = net.queries[net.nodes[node, QUERY], Q_T0] if nests[level - 1, N_TIMELESS] != 0 else net.rows[goal, END]
    enter(net, level, other, nests[level - 1, N_JOINED], latest)


@jit
def step(net, level):
    """One goal, or one EXISTS of its condition: the level's verdict, CARRY_ON, or DESCEND to the EXISTS whose turn it is."""
    nests, nodes = net.nests, net.nodes
    node = nests[level, N_NODE]
    if nests[level, N_MARK] == NONE:
        goal = next_match(net, level)
        if goal == NONE:
            return PENDING if nests[level, N_PENDING] != 0 else FALSE
        if nodes[node, CONDITION] == NONE:
            return TRUE
        if len(net.questions) - net.at[ASKED] < ROOM_TO_ASK:
            return PENDING
        nests[level, N_JOINED], nests[level, N_MARK], nests[level, N_UNMARKED] = merged(net, nests[level, N_ROW], goal), 0, 0
    if nests[level, N_MARK] < nodes[node, MARK_N]:
        return DESCEND
    verdict = PENDING if nests[level, N_UNMARKED] != 0 else judge(net, nodes[node, CONDITION], nests[level, N_JOINED])
    release(net, nests[level, N_JOINED])
    if verdict == TRUE:
        return TRUE
    if verdict == PENDING:
        nests[level, N_PENDING] = 1
    nests[level, N_MARK], nests[level, N_GOAL] = NONE, net.rows[nests[level, N_GOAL], OLDER]
    return CARRY_ON


@jit
def next_match(net, level):
    """The level's goal, or the next one, that joins its row; timeless goals come after the timed ones."""
    nests, rows = net.nests, net.rows
    node, hash_ = nests[level, N_NODE], nests[level, N_HASH]
    while True:
        goal = nests[level, N_GOAL]
        while goal != NONE:
            in_time = nests[level, N_TIMELESS] != 0 or rows[goal, END] <= nests[level, N_UNTIL]
            if in_time and rows[goal, HASH] == hash_ and meets(net, node, nests[level, N_ROW], goal):
                nests[level, N_GOAL] = goal
                return goal
            goal = rows[goal, OLDER]
        if nests[level, N_TIMELESS] != 0 or net.nodes[node, TIMELESS] == 0:
            return NONE
        nests[level, N_TIMELESS], nests[level, N_GOAL] = 1, net.heads[timeless_head(net, hash_)]


@inlined
def meets(net, node, x, goal):
    """Whether x and a right goal are compatible; for MINUS they must also share a variable."""
    nodes = net.nodes
    return (
        same_key(net, x, goal, nodes[node, KEY_AT], nodes[node, KEY_N])
        and compatible(net, x, goal, nodes[node, REST_AT], nodes[node, REST_N])
        and (nodes[node, KIND] != MINUS or nodes[node, SHARED] != 0 or share_a_variable(net, x, goal, nodes[node, REST_AT], nodes[node, REST_N]))
    )


@jit
def set_marks(net, node, row):
    """Writes into the row whether each EXISTS that the node's condition asks of has a solution for it: TRUE when done, or PENDING."""
    for k in range(net.nodes[node, MARK_AT], net.nodes[node, MARK_AT] + net.nodes[node, MARK_N]):
        other = net.edges[k, 0]
        verdict = exists(net, other, row, BIG)
        if verdict == PENDING:
            return PENDING
        net.rows[row, net.nodes[other, COLUMN]] = net.at[TRUE_TERM] if verdict == TRUE else net.at[FALSE_TERM]
    return TRUE


@jit
def decide_mark(net, node, x):
    if set_marks(net, node, x) == PENDING:
        park(net, node, DECIDE, x)
    else:
        hand_on(net, node, x)


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
    if net.at[NOW] > net.at[HORIZON]:  # solutions of the timers that run on after the end set no further ones
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
        due = min(due, due_of(net, k))
    return due


@inlined
def due_of(net, k):
    node = net.timers[k, T_NODE]
    if net.nodes[node, KIND] == COLLECT:
        return net.timers[k, T_DUE]
    oldest = net.stores[store_of(node, LEFT), HEAD]
    if oldest == NONE or net.nodes[node, KIND] != WITHOUTFOR:
        return FOREVER
    return net.rows[oldest, END] + net.nodes[node, LIFE_LEFT]


@jit
def call_timer(net, due):
    """Moves one timer that is due at `due` to the work that waits for the close of this instant."""
    for k in range(net.at[TIMER_NODES]):
        if due_of(net, k) > due:
            continue
        node = net.timers[k, T_NODE]
        if net.nodes[node, KIND] == COLLECT:
            net.timers[k, T_DUE] = FOREVER  # its collector will say when next
            row = take(net)
            net.rows[row, START], net.rows[row, END] = BIG, -BIG
            wait(net, node, RIGHT, row)
            return
        store = store_of(node, LEFT)
        goal = net.stores[store, HEAD]
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
