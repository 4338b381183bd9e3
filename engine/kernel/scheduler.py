"""The loop goes instant by instant in order of end; inside one, it runs the fixpoint, then the waiting strata from the lowest."""

from engine.kernel import entry_point, inlined, jit
from engine.kernel.goal_maintenance import sweep
from engine.kernel.operators.background_lookup import forget_found
from engine.kernel.operators.batched_groups import MOST_DEFERRED, report
from engine.kernel.operators.emit import (
    arrive_collect,
    count_made,
    extend,
    fan_out,
    first,
    hand_on,
    move,
    new_occurrence,
    occur,
    open_query,
    remember_few,
    write,
)
from engine.kernel.operators.join import arrive_join, go_on_join, look_up
from engine.kernel.operators.negation import arrive_mark, arrive_negative, arrive_without, decide, emit_looked_up, go_on_negative
from engine.kernel.operators.policies import arrive_policy
from engine.kernel.operators.timers import call_timer, next_due, wind
from engine.kernel.state.goal_store import push, release
from engine.kernel.state.handle import as_net
from engine.kernel.state.layout import *


@jit
def replenish(net):
    """Give credit for steps: each is sure to find room for what it adds, at most `MARGIN` to a pool, so none breaks off."""
    at = net.at
    if at[ENDLESS] != NONE:
        return EXCEEDED
    unanswered = at[ASKED] - at[ANSWERED]
    if unanswered >= MOST_OPEN:
        return HOST
    spare = min(len(net.rows) - at[USED] + at[FREE], len(net.out) - at[FOUND], len(net.stack) - at[DEPTH])
    aside = min(len(net.parked) - at[PARKED], len(net.waiting) - at[WAITING], len(net.gathered) - at[GATHERED])
    seen = len(net.seen) - at[SEEN_N] - MOST_FEW  # for those that enter when the kernel returns
    at[CREDIT] = min(spare, aside, seen, len(net.questions) - at[ASKED], len(net.deferred) - at[DEFERRED_N]) // at[MARGIN]
    at[CREDIT] = min(at[CREDIT], 1 + (MOST_OPEN - unanswered) // at[MARGIN])
    return DONE if at[CREDIT] > 0 else GROW


@inlined
def holds_goal(side):
    """Return whether a frame's row is a stored goal, which its store frees."""
    return (side >= DECIDE + ORDER and side != DECIDE + RIGHT_CHOICE and side < LOOK_ON) or side == LOOK_ON_STORED


@jit
def go_on(net, node, side, x, goal):
    """Take another step of a row that had more results than a chunk."""
    count_made(net, node, 1)
    if net.nodes[node, KIND] == JOIN:
        stored = side >= GO_ON_STORED
        go_on_join(net, node, side - (GO_ON_STORED if stored else GO_ON), x, goal, stored)
    else:
        go_on_negative(net, node, side - GO_ON, x, goal)


@jit
def arrive_elsewhere(net, node, side, x, goal):
    """Take one step for one solution at one node, off the hottest path, which is in `run`."""
    kind = net.nodes[node, KIND]
    if kind == DROPPED:
        if side == FIND_ON and goal != NONE:
            forget_found(net, x, goal)
        if not (holds_goal(side) or GO_ON_STORED <= side < DECIDE):
            release(net, x)
    elif side == EMIT:
        hand_on(net, node, x)
    elif side == FAN:
        fan_out(net, node, x)
    elif side == FIND_ON:
        emit_looked_up(net, node, x, goal)
    elif side >= LOOK_ON:
        look_up(net, node, side, x, goal)
    elif kind == RECENT or kind == CHRONOLOGICAL:
        arrive_policy(net, node, side, x, goal)
    elif side >= DECIDE:
        decide(net, node, side - DECIDE, x)
    elif side >= GO_ON:
        go_on(net, node, side, x, goal)
    elif kind == OUT:
        write(net, node, x)
    elif kind == PASS:
        if net.rows[x, START] < net.at[NOW] - net.nodes[node, SPAN]:
            release(net, x)
        else:
            hand_on(net, node, x)
    elif kind == EXTEND:
        extend(net, node, x)
    elif kind == MOVE:
        move(net, node, x)
    elif kind == COLLECT:
        arrive_collect(net, node, side, x)
    elif kind == MARK:
        arrive_mark(net, node, x)
    elif kind == FIRST:
        first(net, node, x)
    else:
        arrive_negative(net, node, side, x)


@inlined
def turn(net, k):
    """Return when waiting work is called: by its stratum, and of a policy's node by its phase."""
    return PHASES * net.nodes[net.waiting[k, FRAME_NODE], STRATUM] + max(net.waiting[k, FRAME_SIDE] - BLOCKER, 0)


@jit
def call_stratum(net):
    """Move the waiting work whose turn is next to the stack."""
    at, waiting = net.at, net.waiting
    lowest = turn(net, 0)
    for k in range(1, at[WAITING]):
        lowest = min(lowest, turn(net, k))
    kept = 0
    for k in range(at[WAITING]):
        if turn(net, k) == lowest:
            push(net, waiting[k, FRAME_NODE], DECIDE + waiting[k, FRAME_SIDE], waiting[k, FRAME_ROW])
        else:
            for column in range(waiting.shape[1]):
                waiting[kept, column] = waiting[k, column]
            kept += 1
    at[WAITING] = kept
    at[CREDIT] = 0  # the stack has taken what no step adds


@inlined
def open_instant(net, now):
    at = net.at
    at[NOW] = now
    at[SEEN_FIRST] += at[SEEN_N]
    at[SEEN_MOST] = max(at[SEEN_MOST], at[SEEN_N])
    at[SEEN_N], at[FEW_FROM] = 0, at[FOUND]
    at[MOST_NOW] = at[MOST_MADE]
    if at[ASKED] > at[MEMO_LIMIT] and at[ANSWERED] == at[ASKED]:  # nothing is parked between instants, so all answers may go
        net.question_heads[:] = NONE
        at[ASKED], at[ANSWERED] = 0, 0


@inlined
def close_part(net, until, entry):
    """Do one part of closing what lies before `until`: timers due, then the lowest waiting stratum. Return False when all is closed."""
    at = net.at
    due = next_due(net)
    if due < until and (due <= at[NOW] or at[WAITING] == 0):
        if due > at[NOW] and due != AT_END:
            open_instant(net, due)
        at[ENTRY] = entry
        call_timer(net)
        return True
    if at[WAITING] > 0:
        at[ENTRY] = entry
        call_stratum(net)
        return True
    return False


@inlined
def take_in(net, i):
    """Take in one column of the feed, at its instant."""
    at, feed = net.at, net.feed
    at[EVENT] = i + 1
    at[ENTRY] = feed[IN_ENTRY, i]
    if feed[IN_KIND, i] == OPENING:
        open_query(net, feed[IN_S, i])
    elif feed[IN_END, i] < at[NOW]:
        at[LATE] += 1  # a stream fed after its readers' time had passed without it
    else:
        at[MOST_NOW] += at[MOST_EACH]
        s, p, o, g, start, end = feed[IN_S, i], feed[IN_P, i], feed[IN_O, i], feed[IN_G, i], feed[IN_START, i], feed[IN_END, i]
        alone = at[FED_ALONE] != 0 and 0 < i < at[EVENTS] - 1 and feed[IN_END, i + 1] != end and feed[IN_END, i - 1] != end
        if alone or new_occurrence(net, feed[IN_STREAM, i], s, p, o, g, start, end, feed[IN_SINCE, i]):
            occur(net, feed[IN_STREAM, i], s, p, o, g, start, end, feed[IN_SINCE, i])


@jit
def advance(net):
    """Go on where nothing is on the stack; return ONWARD, or why the kernel returns.

    Every instant closes before a later one opens or time passes it.
    """
    at, feed = net.at, net.feed
    i = at[EVENT]
    if at[REPORTS] == 0 and at[DEFERRED_N] > (MOST_DEFERRED if i < at[EVENTS] else 0):
        return DECISION
    if at[REPORTS] == 0 and i == at[EVENTS]:
        if at[ENDLESS] != NONE:
            return EXCEEDED
        sweep(net)
        return DONE
    if at[CREDIT] == 0:
        code = replenish(net)
        if code != DONE:
            return code
    at[CREDIT] -= 1
    if at[REPORTS] > 0:
        report(net)
        return ONWARD
    if at[WAITING] > len(net.stack):
        return GROW
    end, kind = feed[IN_END, i], feed[IN_KIND, i]
    if kind == LAST:
        at[HORIZON], at[EVENT] = end, i + 1
        return ONWARD
    if end > at[NOW]:
        if at[NOW] > -BIG and close_part(net, end, feed[IN_ENTRY, i]):
            return ONWARD
        if kind != TICK:
            open_instant(net, end)
    if kind == TICK:
        at[EVENT] = i + 1
    else:
        take_in(net, i)
    return ONWARD


@entry_point
def run(address):
    """Work until the feed is done or the host is needed; the code says which.

    The stack is worked off first, which is the positive fixpoint of the instant; only then is there more of the feed. Every level of calls
    compiles all that is below it once more, so the hottest steps stand here.
    """
    net = as_net(address)
    at, stack, code = net.at, net.stack, ONWARD
    at[CREDIT] = 0  # the host may have filled pools
    wind(net)
    while code == ONWARD:
        if at[DEPTH] == 0:
            code = HOST if at[PARKED] > 0 else COLLECTION if at[GATHERED] > 0 else advance(net)
            continue
        if at[CREDIT] == 0:
            found = replenish(net)
            if found != DONE:
                code = found
                continue
        at[CREDIT] -= 1
        top = at[DEPTH] - 1
        at[DEPTH] = top
        node, side, x, goal = stack[top, FRAME_NODE], stack[top, FRAME_SIDE], stack[top, FRAME_ROW], stack[top, FRAME_GOAL]
        kind = net.nodes[node, KIND]
        if kind == JOIN and side <= RIGHT:
            arrive_join(net, node, side, x)
        elif kind == WITHOUT and side <= BLOCKER:
            arrive_without(net, node, side, x)
        else:
            arrive_elsewhere(net, node, side, x, goal)
    remember_few(net, at[FOUND])  # the host may take them, and the instant goes on
    return code
