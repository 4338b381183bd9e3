"""The loop: instant by instant in order of end; inside one, the fixpoint, then the waiting strata from the lowest."""

from engine.kernel.columns import *
from engine.kernel.compile import entry_point, inlined, jit
from engine.kernel.deferred import MOST_DEFERRED, report
from engine.kernel.flow import arrive_collect, extend, fan_out, first, hand_on, move, new_occurrence, occur, open_query, write
from engine.kernel.goals import push, release, store_of
from engine.kernel.joins import arrive_join
from engine.kernel.negation import MOST_ASKED, arrive_mark, arrive_negative, call_timer, decide, next_due
from engine.kernel.net import as_net
from engine.kernel.policies import arrive_policy


@inlined
def room(net, need):
    """Whether a step that makes at most `need` rows is sure to fit. A step starts only then, so none stops half-way."""
    at = net.at
    if (
        need > at[FREE]
        or at[FOUND] + need > len(net.out)
        or at[SEEN_N] + need > len(net.seen)
        or at[DEPTH] + need > len(net.stack)
        or at[ASKED] + need > len(net.questions)
        or at[PARKED] + need > len(net.parked)
        or at[WAITING] + need > len(net.waiting)
        or at[GATHERED] + need > len(net.gathered)
        or at[DEFERRED_N] + need > len(net.deferred)
    ):
        at[NEED] = need
        return False
    return True


@inlined
def need_of(net, node, side):
    """Rows that one step at a node can make at most: one per goal that it may meet, one per reader, and a margin."""
    kind = net.nodes[node, KIND]
    if kind == JOIN:
        return net.stores[store_of(node, LEFT + RIGHT - side), COUNT] + 4 if side <= RIGHT else net.nodes[node, EDGE_N] + 4
    if kind == OUT:
        return net.at[MARGIN] * (1 + net.nodes[node, TEMPLATE_N])
    if kind == PASS or kind == EXTEND or kind == MOVE or kind == FIRST or kind == COLLECT:
        return net.nodes[node, EDGE_N] + 4
    if kind == MARK or kind == EXISTS or kind == NOTEXISTS:
        return net.nodes[node, EDGE_N] + MOST_ASKED
    asking = MOST_ASKED if net.nodes[node, MARK_N] > 0 else 4
    return net.stores[store_of(node, LEFT), COUNT] + net.stores[store_of(node, RIGHT), COUNT] + net.nodes[node, EDGE_N] + asking


@inlined
def holds_goal(side):
    """Whether a frame's row is a stored goal, which its store frees."""
    return side >= DECIDE + ORDER and side != DECIDE + RIGHT_CHOICE


@jit
def arrive_out(net, node, x):
    write(net, node, x)


@inlined
def arrive(net, node, side, x):
    """One step for one solution at one node."""
    kind = net.nodes[node, KIND]
    if kind == JOIN and side <= RIGHT:
        arrive_join(net, node, side, x)
    elif kind == DROPPED:
        if not holds_goal(side):
            release(net, x)
    elif side == EMIT:
        hand_on(net, node, x)
    elif side == FAN:
        fan_out(net, node, x)
    elif kind == RECENT or kind == CHRONOLOGICAL:
        arrive_policy(net, node, side, x)
    elif side >= DECIDE:
        decide(net, node, side - DECIDE, x)
    elif kind == OUT:
        arrive_out(net, node, x)
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
def settle(net):
    """Works off the stack: the positive fixpoint of the instant."""
    at, stack = net.at, net.stack
    while at[DEPTH] > 0:
        top = at[DEPTH] - 1
        node, side, row = stack[top, FRAME_NODE], stack[top, FRAME_SIDE], stack[top, FRAME_ROW]
        if not room(net, need_of(net, node, side)):
            return GROW
        if at[ENDLESS] != NONE:
            return EXCEEDED
        at[DEPTH] = top
        arrive(net, node, side, row)
    if at[PARKED] > 0:
        return HOST
    return COLLECTION if at[GATHERED] > 0 else DONE


@inlined
def turn(net, k):
    """When waiting work is called: by its stratum, and of a policy's node by its phase."""
    return PHASES * net.nodes[net.waiting[k, FRAME_NODE], STRATUM] + max(net.waiting[k, FRAME_SIDE] - BLOCKER, 0)


@jit
def call_stratum(net):
    """Moves the waiting work whose turn is next to the stack."""
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


@inlined
def open_instant(net, now):
    at = net.at
    at[NOW] = now
    at[SEEN_FIRST] += at[SEEN_N]
    at[SEEN_N] = 0
    if at[ASKED] > at[MEMO_LIMIT] and at[ANSWERED] == at[ASKED]:  # nothing is parked between instants, so all answers may go
        net.question_heads[:] = NONE
        at[ASKED], at[ANSWERED] = 0, 0


@inlined
def close_part(net, until, entry):
    """One part of closing what lies before `until`: timers due, then the lowest waiting stratum. False: all is closed."""
    at = net.at
    due = next_due(net) if at[TIMER_NODES] > 0 else FOREVER
    if due < until and (due <= at[NOW] or at[WAITING] == 0):
        if due > at[NOW] and due != AT_END:
            open_instant(net, due)
        at[ENTRY] = entry
        call_timer(net, due)
        return True
    if at[WAITING] > 0:
        at[ENTRY] = entry
        call_stratum(net)
        return True
    return False


@inlined
def take_in(net, i):
    """One column of the feed, at its instant."""
    at, feed = net.at, net.feed
    at[EVENT] = i + 1
    at[ENTRY] = feed[IN_ENTRY, i]
    if feed[IN_KIND, i] == OPENING:
        open_query(net, feed[IN_S, i])
    elif feed[IN_END, i] < at[NOW]:
        at[LATE] += 1  # a stream fed after its readers' time had passed without it
    else:
        s, p, o, g, start, end = feed[IN_S, i], feed[IN_P, i], feed[IN_O, i], feed[IN_G, i], feed[IN_START, i], feed[IN_END, i]
        alone = at[FED_ALONE] != 0 and 0 < i < at[EVENTS] - 1 and feed[IN_END, i + 1] != end and feed[IN_END, i - 1] != end
        if alone or new_occurrence(net, feed[IN_STREAM, i], s, p, o, g, start, end):
            occur(net, feed[IN_STREAM, i], s, p, o, g, start, end, feed[IN_SINCE, i])


@inlined
def loop(net):
    """Takes in the feed from where it stopped; every instant closes before a later one opens or time passes it."""
    at, feed = net.at, net.feed
    while True:
        code = settle(net)
        if code != DONE:
            return code
        if at[REPORTS] > 0:
            if not room(net, 1):
                return GROW
            report(net)
            continue
        i = at[EVENT]
        if at[DEFERRED_N] > (MOST_DEFERRED if i < at[EVENTS] else 0):
            return DECISION
        if i == at[EVENTS]:
            return DONE
        if not room(net, at[MARGIN] + at[WAITING]):
            return GROW
        end, kind = feed[IN_END, i], feed[IN_KIND, i]
        if kind == LAST:
            at[HORIZON], at[EVENT] = end, i + 1
            continue
        if end > at[NOW]:
            if at[NOW] > -BIG and close_part(net, end, feed[IN_ENTRY, i]):
                continue
            if kind != TICK:
                open_instant(net, end)
        if kind == TICK:
            at[EVENT] = i + 1
        else:
            take_in(net, i)


@entry_point
def run(address):
    """Works until the feed is done or the host is needed; the code says which."""
    return loop(as_net(address))
