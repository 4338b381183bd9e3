"""These operators decide on absence: OPTIONAL, OPTIONALSEQ, EQUALSOPTIONAL, MINUS, EXISTS, WITHOUT in both forms.

The decided side waits until its stratum's turn at the close of its instant; then all that can count against it is stored. The store of that side
has no partners. It keeps the timeless rows that were not handed on by themselves (docs/decisions/0056-what-was-decided-is-kept.md).
"""

from engine.kernel import inlined, jit
from engine.kernel.operators.background_lookup import find_first_row, find_next_row, free_found_rows, has_finds
from engine.kernel.operators.batched_groups import defer_row
from engine.kernel.operators.emission import emit_elsewhere
from engine.kernel.operators.filter import judge_filter
from engine.kernel.operators.join import count_given, hash_join_key, is_joinable, join_rows, read_terms
from engine.kernel.operators.output import find_plain_out, write_joined
from engine.kernel.operators.projection import decide_latest
from engine.kernel.operators.timers import start_timer
from engine.kernel.state.goal_store import find_newest, find_newest_timeless, hash_in_store, hash_stored_key, store_goal, store_of
from engine.kernel.state.layout import (
    ANY,
    BIG,
    BLOCKER,
    CHUNK,
    COLLECT,
    DECIDE_LEFT,
    DECIDE_RIGHT,
    EXISTS,
    FALSE,
    FIND_ON,
    JOIN_COST,
    LATEST,
    LEFT,
    LOOKED_UP,
    LOOKS,
    MARK,
    MINUS,
    NONE,
    NOTEXISTS,
    OPTIONALSEQ,
    PENDING,
    RIGHT,
    TIMED,
    TIMELESS_TOO,
    TRUE,
    WITHOUT,
    WITHOUTFOR,
)
from engine.kernel.state.rows import copy_row, free_row, is_timeless
from engine.kernel.state.tasks import life_of, opposite_of, task_to_decide, task_to_go_on
from engine.kernel.state.temporal_relations import has_same_key, is_compatible, shares_variable
from engine.kernel.state.work_queues import count_looks, count_made, gather_row, park_frame, push_frame_below, wait_for_close

ROOM_TO_ASK = 4  # left in the memo, or a step that asks for many goals waits for answers first
CARRY_ON, DESCEND = -1, -2  # besides verdicts


@jit
def decided_side(kind):
    return RIGHT if kind == OPTIONALSEQ else LEFT


@jit
def arrive_negative(net, node, side, x):
    nodes = net.nodes
    kind = nodes[node].kind
    if kind == WITHOUTFOR and side == LEFT:
        start_timer(net, node, x)
    elif side != decided_side(kind):
        store_side(net, node, side, x)
    elif kind == OPTIONALSEQ and nodes[node].timeless == 0 and nodes[node].mark_n == 0:
        decide(net, node, side, x)  # all that counts ended before this instant
    else:
        wait_for_close(net, node, task_to_decide(side), x)


@jit
def arrive_without(net, node, side, x):
    if net.nodes[node].relation == ANY and side != BLOCKER:
        if net.nodes[node].timeless == 0:
            decide_without(net, node, side, x)  # all that counts ended before this instant
        else:
            wait_for_close(net, node, task_to_decide(side), x)
    elif side != RIGHT:
        if side == LEFT and net.nodes[node].timeless != 0:
            wait_for_close(net, node, DECIDE_LEFT, copy_row(net, x))  # for the timeless right goals
        store_side(net, node, side, x)
    elif net.nodes[node].timeless == 0:
        decide_without(net, node, side, x)  # all that counts ended before this instant
    else:
        wait_for_close(net, node, DECIDE_RIGHT, x)


@jit
def arrive_mark(net, node, x):
    wait_for_close(net, node, DECIDE_LEFT, x)


@jit
def store_side(net, node, side, x):
    nodes = net.nodes
    store = store_of(node, side)
    at, n = (nodes[node].key2_at, nodes[node].key2_n) if side == BLOCKER else (nodes[node].key_at, nodes[node].key_n)
    store_goal(net, store, hash_stored_key(net, store, x, at, n), x, life_of(nodes[node], side))
    count_made(net, node, 1)


@jit
def decide(net, node, side, x):
    """Decide on x, and count what the decision took."""
    decide_by_kind(net, node, side, x)
    count_looks(net, node, 0)


@jit
def decide_by_kind(net, node, side, x):
    kind = net.nodes[node].kind
    if kind != WITHOUT:
        net.at.credit = 0  # it may ask as much as there is room for
    if kind == MINUS or kind == EXISTS or kind == NOTEXISTS:
        decide_minus(net, node, x)
    elif kind == MARK:
        decide_mark(net, node, x)
    elif kind == COLLECT:
        if net.nodes[node].deferred != 0:
            defer_row(net, node, side, x)
        else:
            gather_row(net, node, side, x)
    elif kind == WITHOUT:
        decide_without(net, node, side, x)
    elif kind == WITHOUTFOR:
        decide_timer(net, node, x)
    elif kind == LATEST:
        decide_latest(net, node, x)
    else:
        decide_optional(net, node, side, x)


@jit
def go_on_negative(net, node, side, x, goal):
    if net.nodes[node].kind == WITHOUT:
        pair_without(net, node, side, x, goal, hash_join_key(net, node, x))
    else:
        emit_joins(net, node, side, x, goal)


@jit
def find_newest_partner(net, node, side, x, timeless):
    """Return the newest goal of the chain that holds what may join x."""
    hash_ = hash_in_store(store_of(node, opposite_of(side)), hash_join_key(net, node, x))
    return find_newest_timeless(net, hash_) if timeless else find_newest(net, hash_)


@jit
def decide_optional(net, node, side, x):
    """Hand on the joins of x where the condition holds, or x alone. Nothing leaves before every verdict is known."""
    verdict = judge_joins(net, node, side, x)
    if verdict == PENDING:
        park_frame(net, node, task_to_decide(side), x)
    elif verdict == FALSE:
        emit_elsewhere(net, node, x)
    else:
        if is_timeless(net, x):
            store_side(net, node, side, copy_row(net, x))
        goal = find_newest_partner(net, node, side, x, False)
        emit_joins(net, node, side, x, goal if goal != NONE else find_newest_partner(net, node, side, x, True))


@jit
def judge_joins(net, node, side, x):
    """Return whether a goal joins x: TRUE, FALSE or PENDING, which outdoes TRUE."""
    verdict = judge_joins_in(net, node, side, x, find_newest_partner(net, node, side, x, False))
    if verdict == PENDING or net.nodes[node].timeless == 0:
        return verdict
    verdict = max(verdict, judge_joins_in(net, node, side, x, find_newest_partner(net, node, side, x, True)))
    if verdict == PENDING or not has_finds(net, node):
        return verdict
    return max(verdict, judge_background(net, node, x))


@jit
def judge_joins_in(net, node, side, x, goal):
    rows, at, terms, found = net.rows, net.at, read_terms(net, node, side, x, hash_join_key(net, node, x)), FALSE
    until = -BIG if goal != NONE and is_timeless(net, goal) else terms.until
    while goal != NONE and rows[goal].end >= until:
        left, right = (goal, x) if side == RIGHT else (x, goal)
        at.spent += rows[goal].hash == terms.hash_
        if rows[goal].hash == terms.hash_ and is_joinable(net, terms, left, right):
            if net.nodes[node].condition == NONE:
                return TRUE
            at.spent += JOIN_COST
            if len(net.questions) - net.at.asked < ROOM_TO_ASK:
                return PENDING
            z = join_rows(net, left, right)
            found = max(found, judge_join(net, node, z))
            free_row(net, z)
        goal = rows[goal].older
    return found


@inlined
def is_in_span(net, node, x):
    """Return whether x alone is short enough to be joined."""
    return net.rows[x].start >= net.at.now - net.nodes[node].span


@jit
def judge_background(net, node, x):
    """Return what `judge_joins` does, for what the background has for x."""
    z, found = find_first_row(net, node, x) if is_in_span(net, node, x) else NONE, FALSE
    while z != NONE:
        unconditional = net.nodes[node].condition == NONE
        if unconditional or len(net.questions) - net.at.asked < ROOM_TO_ASK:
            free_found_rows(net, x, z)
            return TRUE if unconditional else PENDING
        found = max(found, judge_join(net, node, z))
        z = find_next_row(net, x, z)
    return found


@jit
def judge_join(net, node, z):
    """Return whether a join satisfies the condition of the optional part: TRUE, FALSE or PENDING."""
    condition = net.nodes[node].condition
    if condition == NONE:
        return TRUE
    return PENDING if set_marks(net, node, z) == PENDING else judge_filter(net, condition, z)


@jit
def emit_joins(net, node, side, x, goal):
    """Hand on the joins of x from `goal` on, whose verdicts are all known; timeless goals come after the timed ones.

    A join of a timeless x ends where its timed goal does. If that was before now, it goes on only as a mark, in nodes with a column for it.
    """
    rows, depth, made, past = net.rows, net.at.depth, 0, net.nodes[node].column
    terms = read_terms(net, node, side, x, hash_join_key(net, node, x))
    timeless = goal != NONE and is_timeless(net, goal)
    until = net.at.now if is_timeless(net, x) and past == 0 else terms.until
    while True:
        while goal != NONE and (timeless or rows[goal].end >= until):
            left, right = (goal, x) if side == RIGHT else (x, goal)
            if rows[goal].hash == terms.hash_ and is_joinable(net, terms, left, right):
                if made == CHUNK:
                    push_frame_below(net, depth, node, task_to_go_on(side, False), x, goal)
                    return
                made += 1
                z = join_rows(net, left, right)
                if judge_join(net, node, z) != TRUE:
                    free_row(net, z)
                else:
                    if past != 0 and is_timeless(net, x) and not timeless and rows[goal].end < net.at.now:
                        rows[z].start, rows[z].end, rows[z, past] = BIG, -BIG, net.at.true_term
                    emit_elsewhere(net, node, z)
            goal = rows[goal].older
        if timeless or net.nodes[node].timeless == 0:
            break
        timeless, goal = True, find_newest_partner(net, node, side, x, True)
    if has_finds(net, node) and is_in_span(net, node, x):
        push_frame_below(net, net.at.depth, node, FIND_ON, x, NONE)  # another step's results
    else:
        free_row(net, x)


@jit
def emit_looked_up(net, node, x, z):
    """Hand on the joins of x with what the background has for it, from z on. Their verdicts are all known."""
    depth, made = net.at.depth, 0
    z = find_first_row(net, node, x) if z == NONE else z
    while z != NONE:
        if made == CHUNK:
            push_frame_below(net, depth, node, FIND_ON, x, z)
            return
        made += 1
        if judge_join(net, node, z) == TRUE:
            emit_elsewhere(net, node, copy_row(net, z))
        z = find_next_row(net, x, z)
    free_row(net, x)


@jit
def decide_minus(net, node, x):
    verdict = judge_exists(net, node, x, BIG)
    if verdict == PENDING:
        park_frame(net, node, DECIDE_LEFT, x)
    elif (verdict == TRUE) == (net.nodes[node].kind == EXISTS):
        emit_elsewhere(net, node, x)
    elif is_timeless(net, x):
        store_side(net, node, LEFT, x)
    else:
        free_row(net, x)


@jit
def judge_exists(net, node, x, until):
    """Return whether a goal of the right side that ends by `until` is compatible with x and, joined with it, satisfies the node's condition.

    TRUE, FALSE or PENDING. What an EXISTS in the condition looks at ends by the goal's end, since it is the goal that it decides on. Levels of
    EXISTS in EXISTS are rows of `nests`, because numba cannot be relied on to load a recursive function from its cache.
    """
    nests, level = net.nests, 0
    enter_level(net, level, node, x, until)
    while True:
        verdict = step_level(net, level)
        if verdict == DESCEND:
            level += 1
            enter_marked_level(net, level)
        elif verdict != CARRY_ON:
            leave_level(net, level)
            if level == 0:
                return verdict
            level -= 1
            other = net.edges[net.nodes[nests[level].node].mark_at + nests[level].mark].node
            net.rows[nests[level].joined, net.nodes[other].column] = net.at.true_term if verdict == TRUE else net.at.false_term
            if verdict == PENDING:
                nests[level].unmarked = 1
            nests[level].mark += 1


@jit
def enter_level(net, level, node, x, until):
    """Begin to look through the goals of a node for those that join x."""
    nests = net.nests
    hash_ = hash_stored_key(net, store_of(node, RIGHT), x, net.nodes[node].key_at, net.nodes[node].key_n)
    nests[level].node, nests[level].row, nests[level].until, nests[level].hash = node, x, until, hash_
    nests[level].goal, nests[level].timeless, nests[level].mark, nests[level].pending = find_newest(net, hash_), TIMED, NONE, 0


@inlined
def leave_level(net, level):
    """Free the row that the level stands at, where the row has been looked up."""
    if net.nests[level].timeless == LOOKED_UP and net.nests[level].goal != NONE:
        free_found_rows(net, net.nests[level].row, net.nests[level].goal)


@jit
def enter_marked_level(net, level):
    """Begin with the EXISTS that the level above has come to, for the goal that it has joined."""
    nests = net.nests
    node, goal = nests[level - 1].node, nests[level - 1].goal
    other = net.edges[net.nodes[node].mark_at + nests[level - 1].mark].node
    latest = net.queries[net.nodes[node].query].t0 if nests[level - 1].timeless != TIMED else net.rows[goal].end
    enter_level(net, level, other, nests[level - 1].joined, latest)


@jit
def step_level(net, level):
    """Look at one goal, or at one EXISTS of its condition. Return the level's verdict, CARRY_ON, or DESCEND to the EXISTS whose turn it is."""
    nests, nodes = net.nests, net.nodes
    node = nests[level].node
    if nests[level].mark == NONE:
        goal = find_next_match(net, level)
        if goal == NONE:
            return PENDING if nests[level].pending != 0 else FALSE
        if nodes[node].condition == NONE:
            return TRUE
        if len(net.questions) - net.at.asked < ROOM_TO_ASK:
            return PENDING
        nests[level].joined, nests[level].mark, nests[level].unmarked = join_at_level(net, level), 0, 0
        net.at.spent += JOIN_COST
    if nests[level].mark < nodes[node].mark_n:
        return DESCEND
    verdict = PENDING if nests[level].unmarked != 0 else judge_filter(net, nodes[node].condition, nests[level].joined)
    free_row(net, nests[level].joined)
    if verdict == TRUE:
        return TRUE
    if verdict == PENDING:
        nests[level].pending = 1
    nests[level].mark = NONE
    if nests[level].timeless == LOOKED_UP:
        nests[level].goal = find_next_row(net, nests[level].row, nests[level].goal)
    else:
        nests[level].goal = net.rows[nests[level].goal].older
    return CARRY_ON


@jit
def join_at_level(net, level):
    """Return the level's row joined with its goal, or with what it has looked up."""
    nests = net.nests
    if nests[level].timeless == LOOKED_UP:
        return copy_row(net, nests[level].goal)
    return join_rows(net, nests[level].row, nests[level].goal)


@jit
def find_next_match(net, level):
    """Return the level's goal, or the next one, that joins its row; timeless goals come after the timed ones, and then what is looked up."""
    nests, rows = net.nests, net.rows
    node, hash_ = nests[level].node, nests[level].hash
    while nests[level].timeless != LOOKED_UP:
        goal = nests[level].goal
        while goal != NONE:
            net.at.spent += rows[goal].hash == hash_
            in_time = nests[level].timeless != TIMED or rows[goal].end <= nests[level].until
            if in_time and rows[goal].hash == hash_ and is_counted_match(net, node, nests[level].row, goal):
                nests[level].goal = goal
                return goal
            goal = rows[goal].older
        if net.nodes[node].timeless == 0:
            return NONE
        if nests[level].timeless == TIMED:
            nests[level].timeless, nests[level].goal = TIMELESS_TOO, find_newest_timeless(net, hash_)
        elif not has_finds(net, node):
            return NONE
        else:
            nests[level].timeless, nests[level].goal = LOOKED_UP, find_first_row(net, node, nests[level].row)
    return nests[level].goal


@inlined
def is_counted_match(net, node, x, goal):
    """Return whether x and a right goal are compatible; for MINUS they must also share a variable."""
    nodes = net.nodes
    return (
        has_same_key(net, x, goal, nodes[node].key_at, nodes[node].key_n)
        and is_compatible(net, x, goal, nodes[node].rest_at, nodes[node].rest_n)
        and (nodes[node].kind != MINUS or nodes[node].by_right != 0 or shares_variable(net, x, goal, nodes[node].rest_at, nodes[node].rest_n))
    )


@jit
def set_marks(net, node, row):
    """Write into the row whether each EXISTS that the node's condition asks of has a solution for it. Return TRUE when done, or PENDING."""
    for k in range(net.nodes[node].mark_at, net.nodes[node].mark_at + net.nodes[node].mark_n):
        other = net.edges[k].node
        verdict = judge_exists(net, other, row, BIG)
        if verdict == PENDING:
            return PENDING
        net.rows[row, net.nodes[other].column] = net.at.true_term if verdict == TRUE else net.at.false_term
    return TRUE


@jit
def decide_mark(net, node, x):
    if set_marks(net, node, x) == PENDING:
        park_frame(net, node, DECIDE_LEFT, x)
    else:
        if is_timeless(net, x):
            store_side(net, node, LEFT, copy_row(net, x))
        emit_elsewhere(net, node, x)


@jit
def decide_without(net, node, side, x):
    """Pair right x with its left goals that have no blocker between, or left x (a copy) with its timeless right goals.

    Under AND either side is kept and meets all goals of the other one that were kept before it, so each pair meets once.
    """
    key, goal, unordered = hash_join_key(net, node, x), NONE, net.nodes[node].relation == ANY
    if unordered:
        y, x = x, copy_row(net, x)
        store_side(net, node, side, y)
    if side == RIGHT or unordered:
        goal = find_newest(net, hash_in_store(store_of(node, opposite_of(side)), key))
    if goal == NONE and net.nodes[node].timeless != 0:
        goal = find_newest_partner(net, node, side, x, True)
    pair_without(net, node, side, x, goal, key)


@jit
def find_latest_blocker(net, node, y):
    """Return the greatest start of a blocker that ends before y starts. A left goal is free of blockers iff it does not end before that."""
    rows, nodes = net.rows, net.nodes
    hash_ = hash_stored_key(net, store_of(node, BLOCKER), y, nodes[node].key2_at, nodes[node].key2_n)
    last = -BIG
    c = find_newest(net, hash_)
    while c != NONE and rows[c].end > last:  # start <= end: nothing older can raise it
        if (
            rows[c].hash == hash_
            and rows[c].end < rows[y].start
            and rows[c].start > last
            and has_same_key(net, c, y, nodes[node].key2_at, nodes[node].key2_n)
        ):
            last = rows[c].start
        c = rows[c].older
    return last


@jit
def pair_without(net, node, side, x, goal, key):
    """Hand on the pairs of x from `goal` on; timeless goals come after the timed ones."""
    rows, nodes, depth, made = net.rows, net.nodes, net.at.depth, 0
    terms, out = read_terms(net, node, side, x, key), find_plain_out(net, node)
    by_right, timeless = nodes[node].by_right != 0, goal != NONE and is_timeless(net, goal)
    until = net.at.now if is_timeless(net, x) else terms.until
    if by_right and goal != NONE:
        until = max(until, find_latest_blocker(net, node, x))
    while True:
        while goal != NONE and (timeless or rows[goal].end >= until):
            left, right = (goal, x) if side == RIGHT else (x, goal)
            if rows[goal].hash == terms.hash_ and is_joinable(net, terms, left, right):
                if made == CHUNK:
                    push_frame_below(net, depth, node, task_to_go_on(side, False), x, goal)
                    count_looks(net, node, made * (LOOKS if by_right and out != NONE else JOIN_COST))
                    return
                made += 1
                if not by_right:
                    emit_unblocked(net, node, left, right)
                elif out != NONE:
                    write_joined(net, out, left, right)
                    count_given(net, node, out, 1)
                else:
                    emit_elsewhere(net, node, join_rows(net, left, right))
            goal = rows[goal].older
        if timeless or nodes[node].timeless == 0:
            break
        timeless, goal = True, find_newest_partner(net, node, side, x, True)
    count_looks(net, node, made * (LOOKS if by_right and out != NONE else JOIN_COST))
    if side == RIGHT and is_timeless(net, x) and nodes[node].relation != ANY:
        store_side(net, node, side, x)
    else:
        free_row(net, x)


@jit
def emit_unblocked(net, node, x, y):
    z, rows = join_rows(net, x, y), net.rows
    after, until = rows[x].end, rows[y].start
    if net.nodes[node].relation == ANY and not is_timeless(net, x):
        until = rows[x].start if is_timeless(net, y) else max(rows[x].start, until)
        after = after if is_timeless(net, y) else min(after, rows[y].end)
    elif net.nodes[node].relation == ANY and not is_timeless(net, y):
        after = rows[y].end
    if is_blocked(net, node, z, after, until - 1):
        free_row(net, z)
    else:
        emit_elsewhere(net, node, z)


@jit
def is_blocked(net, node, z, after, until):
    """Return whether a compatible blocker starts after `after` and ends at `until` at the latest. A compatible timeless blocker counts too."""
    hash_ = hash_stored_key(net, store_of(node, BLOCKER), z, net.nodes[node].key2_at, net.nodes[node].key2_n)
    if is_blocked_by(net, node, z, after, until, find_newest(net, hash_), hash_):
        return True
    return net.nodes[node].timeless != 0 and is_blocked_by(net, node, z, after, until, find_newest_timeless(net, hash_), hash_)


@jit
def is_blocked_by(net, node, z, after, until, c, hash_):
    rows, nodes = net.rows, net.nodes
    while c != NONE and (rows[c].end > after or is_timeless(net, c)):  # the chain falls in end, and what ended before began before
        net.at.spent += rows[c].hash == hash_
        if (
            rows[c].hash == hash_
            and after < rows[c].start
            and rows[c].end <= until
            and has_same_key(net, c, z, nodes[node].key2_at, nodes[node].key2_n)
            and is_compatible(net, c, z, nodes[node].rest2_at, nodes[node].rest2_n)
        ):
            return True
        c = rows[c].older
    return False


# ---------------------------------------------------------------- WITHOUT ... FOR
@jit
def decide_timer(net, node, x):
    """Hand on x, if nothing compatible came after it in time, on [its start, its end + duration]."""
    rows = net.rows
    if is_blocked(net, node, x, rows[x].end, net.at.now):
        free_row(net, x)
        return
    rows[x].end = net.at.now
    emit_elsewhere(net, node, x)
