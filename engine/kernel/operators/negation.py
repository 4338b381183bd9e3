"""These operators decide on absence: OPTIONAL, OPTIONALSEQ, EQUALSOPTIONAL, MINUS, EXISTS, WITHOUT in both forms.

The decided side waits until its stratum's turn at the close of its instant; then all that can count against it is stored.
"""

from engine.kernel import inlined, jit
from engine.kernel.operators.background_lookup import first_found, forget_found, has_finds, next_found
from engine.kernel.operators.batched_groups import defer
from engine.kernel.operators.emit import copied, count_looks, gather, hand_on, park, plain_out, wait, write_union
from engine.kernel.operators.filter import judge
from engine.kernel.operators.join import fits, key_of, merged, terms_of
from engine.kernel.operators.timers import set_timer
from engine.kernel.state.goal_store import (
    count_for,
    in_store,
    is_timeless,
    key_hash,
    newest,
    newest_timeless,
    push_below,
    release,
    store_goal,
    store_of,
)
from engine.kernel.state.layout import *
from engine.kernel.state.temporal_relations import compatible, same_key, share_a_variable

SHARED = BY_RIGHT  # of MINUS: a variable that both sides certainly bind
ROOM_TO_ASK = 4  # left in the memo, or a step that asks for many goals waits for answers first
CARRY_ON, DESCEND = -1, -2  # besides verdicts


@jit
def decided_side(kind):
    return RIGHT if kind == OPTIONALSEQ else LEFT


@jit
def arrive_negative(net, node, side, x):
    nodes = net.nodes
    kind = nodes[node, KIND]
    if kind == WITHOUTFOR and side == LEFT:
        set_timer(net, node, x)
    elif side != decided_side(kind):
        keep_side(net, node, side, x)
    elif kind == OPTIONALSEQ and nodes[node, TIMELESS] == 0 and nodes[node, MARK_N] == 0:
        decide(net, node, side, x)  # all that counts ended before this instant
    else:
        wait(net, node, side, x)


@jit
def arrive_without(net, node, side, x):
    if side != RIGHT:
        if side == LEFT and net.nodes[node, TIMELESS] != 0:
            wait(net, node, side, copied(net, x))  # for the timeless right goals
        keep_side(net, node, side, x)
    elif net.nodes[node, TIMELESS] == 0:
        decide_without(net, node, side, x)  # all that counts ended before this instant
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
    count_for(net, node, 1)


@jit
def decide(net, node, side, x):
    """Decide on x, and count what the decision took."""
    decide_by_kind(net, node, side, x)
    count_looks(net, node, 0)


@jit
def decide_by_kind(net, node, side, x):
    kind = net.nodes[node, KIND]
    if kind != WITHOUT:
        net.at[CREDIT] = 0  # it may ask as much as there is room for
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
def go_on_negative(net, node, side, x, goal):
    if net.nodes[node, KIND] == WITHOUT:
        pair_without(net, node, side, x, goal, key_of(net, node, x))
    else:
        emit_joins(net, node, side, x, goal)


@jit
def opposite(net, node, side, x, timeless):
    """Return the newest goal of the chain that holds what may join x."""
    hash_ = in_store(store_of(node, LEFT + RIGHT - side), key_of(net, node, x))
    return newest_timeless(net, hash_) if timeless else newest(net, hash_)


@jit
def decide_optional(net, node, side, x):
    """Hand on the joins of x where the condition holds, or x alone. Nothing leaves before every verdict is known."""
    verdict = any_join(net, node, side, x)
    if verdict == PENDING:
        park(net, node, DECIDE + side, x)
    elif verdict == FALSE:
        hand_on(net, node, x)
    else:
        goal = opposite(net, node, side, x, False)
        emit_joins(net, node, side, x, goal if goal != NONE else opposite(net, node, side, x, True))


@jit
def any_join(net, node, side, x):
    """Return whether a goal joins x: TRUE, FALSE or PENDING, which outdoes TRUE."""
    verdict = any_join_in(net, node, side, x, opposite(net, node, side, x, False))
    if verdict == PENDING or net.nodes[node, TIMELESS] == 0:
        return verdict
    verdict = max(verdict, any_join_in(net, node, side, x, opposite(net, node, side, x, True)))
    if verdict == PENDING or not has_finds(net, node):
        return verdict
    return max(verdict, any_looked_up(net, node, x))


@jit
def any_join_in(net, node, side, x, goal):
    rows, at, terms, found = net.rows, net.at, terms_of(net, node, side, x, key_of(net, node, x)), FALSE
    until = -BIG if goal != NONE and is_timeless(net, goal) else terms.until
    while goal != NONE and rows[goal, END] >= until:
        left, right = (goal, x) if side == RIGHT else (x, goal)
        at[SPENT] += rows[goal, HASH] == terms.hash_
        if rows[goal, HASH] == terms.hash_ and fits(net, terms, left, right):
            if net.nodes[node, CONDITION] == NONE:
                return TRUE
            at[SPENT] += JOIN_COST
            if len(net.questions) - net.at[ASKED] < ROOM_TO_ASK:
                return PENDING
            z = merged(net, left, right)
            found = max(found, verdict_of(net, node, z))
            release(net, z)
        goal = rows[goal, OLDER]
    return found


@inlined
def in_span(net, node, x):
    """Return whether x alone is short enough to be joined."""
    return net.rows[x, START] >= net.at[NOW] - net.nodes[node, SPAN]


@jit
def any_looked_up(net, node, x):
    """Return what `any_join` does, for what the background has for x."""
    z, found = first_found(net, node, x) if in_span(net, node, x) else NONE, FALSE
    while z != NONE:
        unconditional = net.nodes[node, CONDITION] == NONE
        if unconditional or len(net.questions) - net.at[ASKED] < ROOM_TO_ASK:
            forget_found(net, x, z)
            return TRUE if unconditional else PENDING
        found = max(found, verdict_of(net, node, z))
        z = next_found(net, x, z)
    return found


@jit
def verdict_of(net, node, z):
    """Return whether a join satisfies the condition of the optional part: TRUE, FALSE or PENDING."""
    condition = net.nodes[node, CONDITION]
    if condition == NONE:
        return TRUE
    return PENDING if set_marks(net, node, z) == PENDING else judge(net, condition, z)


@jit
def emit_joins(net, node, side, x, goal):
    """Hand on the joins of x from `goal` on, whose verdicts are all known; timeless goals come after the timed ones."""
    rows, depth, made = net.rows, net.at[DEPTH], 0
    terms = terms_of(net, node, side, x, key_of(net, node, x))
    timeless = goal != NONE and is_timeless(net, goal)
    until = net.at[NOW] if is_timeless(net, x) else terms.until  # a join with a timeless x ends where its timed goal does
    while True:
        while goal != NONE and (timeless or rows[goal, END] >= until):
            left, right = (goal, x) if side == RIGHT else (x, goal)
            if rows[goal, HASH] == terms.hash_ and fits(net, terms, left, right):
                if made == CHUNK:
                    push_below(net, depth, node, GO_ON + side, x, goal)
                    return
                made += 1
                z = merged(net, left, right)
                if verdict_of(net, node, z) == TRUE:
                    hand_on(net, node, z)
                else:
                    release(net, z)
            goal = rows[goal, OLDER]
        if timeless or net.nodes[node, TIMELESS] == 0:
            break
        timeless, goal = True, opposite(net, node, side, x, True)
    if has_finds(net, node) and in_span(net, node, x):
        push_below(net, net.at[DEPTH], node, FIND_ON, x, NONE)  # another step's results
    else:
        release(net, x)


@jit
def emit_looked_up(net, node, x, z):
    """Hand on the joins of x with what the background has for it, from z on. Their verdicts are all known."""
    depth, made = net.at[DEPTH], 0
    z = first_found(net, node, x) if z == NONE else z
    while z != NONE:
        if made == CHUNK:
            push_below(net, depth, node, FIND_ON, x, z)
            return
        made += 1
        if verdict_of(net, node, z) == TRUE:
            hand_on(net, node, copied(net, z))
        z = next_found(net, x, z)
    release(net, x)


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
    """Return whether a goal of the right side that ends by `until` is compatible with x and, joined with it, satisfies the node's condition.

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
            leave(net, level)
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
    """Begin to look through the goals of a node for those that join x."""
    nests = net.nests
    hash_ = key_hash(net, store_of(node, RIGHT), x, net.nodes[node, KEY_AT], net.nodes[node, KEY_N])
    nests[level, N_NODE], nests[level, N_ROW], nests[level, N_UNTIL], nests[level, N_HASH] = node, x, until, hash_
    nests[level, N_GOAL], nests[level, N_TIMELESS], nests[level, N_MARK], nests[level, N_PENDING] = newest(net, hash_), TIMED, NONE, 0


@inlined
def leave(net, level):
    """Free the row that the level stands at, where the row has been looked up."""
    if net.nests[level, N_TIMELESS] == LOOKED_UP and net.nests[level, N_GOAL] != NONE:
        forget_found(net, net.nests[level, N_ROW], net.nests[level, N_GOAL])


@jit
def enter_mark(net, level):
    """Begin with the EXISTS that the level above has come to, for the goal that it has joined."""
    nests = net.nests
    node, goal = nests[level - 1, N_NODE], nests[level - 1, N_GOAL]
    other = net.edges[net.nodes[node, MARK_AT] + nests[level - 1, N_MARK], 0]
    latest = net.queries[net.nodes[node, QUERY], Q_T0] if nests[level - 1, N_TIMELESS] != TIMED else net.rows[goal, END]
    enter(net, level, other, nests[level - 1, N_JOINED], latest)


@jit
def step(net, level):
    """Look at one goal, or at one EXISTS of its condition. Return the level's verdict, CARRY_ON, or DESCEND to the EXISTS whose turn it is."""
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
        nests[level, N_JOINED], nests[level, N_MARK], nests[level, N_UNMARKED] = joined_at(net, level), 0, 0
        net.at[SPENT] += JOIN_COST
    if nests[level, N_MARK] < nodes[node, MARK_N]:
        return DESCEND
    verdict = PENDING if nests[level, N_UNMARKED] != 0 else judge(net, nodes[node, CONDITION], nests[level, N_JOINED])
    release(net, nests[level, N_JOINED])
    if verdict == TRUE:
        return TRUE
    if verdict == PENDING:
        nests[level, N_PENDING] = 1
    nests[level, N_MARK] = NONE
    if nests[level, N_TIMELESS] == LOOKED_UP:
        nests[level, N_GOAL] = next_found(net, nests[level, N_ROW], nests[level, N_GOAL])
    else:
        nests[level, N_GOAL] = net.rows[nests[level, N_GOAL], OLDER]
    return CARRY_ON


@jit
def joined_at(net, level):
    """Return the level's row joined with its goal, or with what it has looked up."""
    nests = net.nests
    if nests[level, N_TIMELESS] == LOOKED_UP:
        return copied(net, nests[level, N_GOAL])
    return merged(net, nests[level, N_ROW], nests[level, N_GOAL])


@jit
def next_match(net, level):
    """Return the level's goal, or the next one, that joins its row; timeless goals come after the timed ones, and then what is looked up."""
    nests, rows = net.nests, net.rows
    node, hash_ = nests[level, N_NODE], nests[level, N_HASH]
    while nests[level, N_TIMELESS] != LOOKED_UP:
        goal = nests[level, N_GOAL]
        while goal != NONE:
            net.at[SPENT] += rows[goal, HASH] == hash_
            in_time = nests[level, N_TIMELESS] != TIMED or rows[goal, END] <= nests[level, N_UNTIL]
            if in_time and rows[goal, HASH] == hash_ and meets(net, node, nests[level, N_ROW], goal):
                nests[level, N_GOAL] = goal
                return goal
            goal = rows[goal, OLDER]
        if net.nodes[node, TIMELESS] == 0:
            return NONE
        if nests[level, N_TIMELESS] == TIMED:
            nests[level, N_TIMELESS], nests[level, N_GOAL] = TIMELESS_TOO, newest_timeless(net, hash_)
        elif not has_finds(net, node):
            return NONE
        else:
            nests[level, N_TIMELESS], nests[level, N_GOAL] = LOOKED_UP, first_found(net, node, nests[level, N_ROW])
    return nests[level, N_GOAL]


@inlined
def meets(net, node, x, goal):
    """Return whether x and a right goal are compatible; for MINUS they must also share a variable."""
    nodes = net.nodes
    return (
        same_key(net, x, goal, nodes[node, KEY_AT], nodes[node, KEY_N])
        and compatible(net, x, goal, nodes[node, REST_AT], nodes[node, REST_N])
        and (nodes[node, KIND] != MINUS or nodes[node, SHARED] != 0 or share_a_variable(net, x, goal, nodes[node, REST_AT], nodes[node, REST_N]))
    )


@jit
def set_marks(net, node, row):
    """Write into the row whether each EXISTS that the node's condition asks of has a solution for it. Return TRUE when done, or PENDING."""
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
    """Pair right x with its left goals that have no blocker between, or left x (a copy) with its timeless right goals."""
    key, goal = key_of(net, node, x), NONE
    if side == RIGHT:
        goal = newest(net, in_store(store_of(node, LEFT), key))
    if goal == NONE and net.nodes[node, TIMELESS] != 0:
        goal = opposite(net, node, side, x, True)
    pair_without(net, node, side, x, goal, key)


@jit
def latest_blocker(net, node, y):
    """Return the greatest start of a blocker that ends before y starts. A left goal is free of blockers iff it does not end before that."""
    rows, nodes = net.rows, net.nodes
    hash_ = key_hash(net, store_of(node, BLOCKER), y, nodes[node, KEY2_AT], nodes[node, KEY2_N])
    last = -BIG
    c = newest(net, hash_)
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
def pair_without(net, node, side, x, goal, key):
    """Hand on the pairs of x from `goal` on; timeless goals come after the timed ones."""
    rows, nodes, depth, made = net.rows, net.nodes, net.at[DEPTH], 0
    terms, out = terms_of(net, node, side, x, key), plain_out(net, node)
    by_right, timeless = nodes[node, BY_RIGHT] != 0, goal != NONE and is_timeless(net, goal)
    until = net.at[NOW] if is_timeless(net, x) else terms.until
    if by_right and goal != NONE:
        until = max(until, latest_blocker(net, node, x))
    while True:
        while goal != NONE and (timeless or rows[goal, END] >= until):
            left, right = (goal, x) if side == RIGHT else (x, goal)
            if rows[goal, HASH] == terms.hash_ and fits(net, terms, left, right):
                if made == CHUNK:
                    push_below(net, depth, node, GO_ON + side, x, goal)
                    count_looks(net, node, made * (LOOKS if by_right and out != NONE else JOIN_COST))
                    return
                made += 1
                if not by_right:
                    emit_unblocked(net, node, left, right)
                elif out != NONE:
                    write_union(net, out, left, right)
                else:
                    hand_on(net, node, merged(net, left, right))
            goal = rows[goal, OLDER]
        if timeless or nodes[node, TIMELESS] == 0:
            break
        timeless, goal = True, opposite(net, node, side, x, True)
    count_looks(net, node, made * (LOOKS if by_right and out != NONE else JOIN_COST))
    if side == RIGHT and is_timeless(net, x):
        keep_side(net, node, side, x)
    else:
        release(net, x)


@jit
def emit_unblocked(net, node, x, y):
    z = merged(net, x, y)
    if blocked(net, node, z, net.rows[x, END], net.rows[y, START] - 1):
        release(net, z)
    else:
        hand_on(net, node, z)


@jit
def blocked(net, node, z, after, until):
    """Return whether a compatible blocker starts after `after` and ends at `until` at the latest. A compatible timeless blocker counts too."""
    hash_ = key_hash(net, store_of(node, BLOCKER), z, net.nodes[node, KEY2_AT], net.nodes[node, KEY2_N])
    if blocked_by(net, node, z, after, until, newest(net, hash_), hash_):
        return True
    return net.nodes[node, TIMELESS] != 0 and blocked_by(net, node, z, after, until, newest_timeless(net, hash_), hash_)


@jit
def blocked_by(net, node, z, after, until, c, hash_):
    rows, nodes = net.rows, net.nodes
    while c != NONE and (rows[c, END] > after or is_timeless(net, c)):  # the chain falls in end, and what ended before began before
        net.at[SPENT] += rows[c, HASH] == hash_
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
def decide_timer(net, node, x):
    """Hand on x, if nothing compatible came after it in time, on [its start, its end + duration]."""
    rows = net.rows
    if blocked(net, node, x, rows[x, END], net.at[NOW]):
        release(net, x)
        return
    rows[x, END] = net.at[NOW]
    hand_on(net, node, x)
