"""The loop goes instant by instant in order of end; inside one, it runs the fixpoint, then the waiting strata from the lowest."""

from engine.kernel import entry_point, inlined, jit
from engine.kernel.goal_maintenance import sweep_stores_in_turn
from engine.kernel.operators.background_lookup import free_found_rows
from engine.kernel.operators.batched_groups import MOST_DEFERRED, emit_report
from engine.kernel.operators.emission import emit_elsewhere, fan_out_row
from engine.kernel.operators.join import arrive_join, go_on_join, join_background
from engine.kernel.operators.negation import arrive_mark, arrive_negative, arrive_without, decide, emit_looked_up, go_on_negative
from engine.kernel.operators.output import remember_few, write_solution
from engine.kernel.operators.policies import arrive_policy
from engine.kernel.operators.projection import arrive_collect, arrive_latest, bind_answer, emit_earliest, emit_first_of_key, project_row
from engine.kernel.operators.scan import TimedTriple, enter_occurrence, open_query, scan_occurrence
from engine.kernel.operators.timers import call_timer, enter_timers, find_next_due
from engine.kernel.state.handle import as_net
from engine.kernel.state.layout import (
    AT_END,
    BIG,
    BLOCKER,
    CHRONOLOGICAL,
    COLLECT,
    COLLECTION,
    DECISION,
    DONE,
    DROPPED,
    EARLIEST,
    EMIT,
    EXCEEDED,
    EXTEND,
    FAN,
    FIND_ON,
    FIRST,
    GROW,
    HOST,
    IN_END,
    IN_ENTRY,
    IN_G,
    IN_KIND,
    IN_O,
    IN_P,
    IN_S,
    IN_SINCE,
    IN_START,
    IN_STREAM,
    JOIN,
    LAST,
    LATEST,
    LEFT,
    LOOK_ON,
    LOOK_ON_STORED,
    MARK,
    MOST_FEW,
    MOST_OPEN,
    MOVE,
    NONE,
    ONWARD,
    OPENING,
    OUT,
    PASS,
    RECENT,
    RIGHT,
    SIDES,
    TASKS_OF_CLOSE,
    TICK,
    WITHOUT,
)
from engine.kernel.state.rows import free_row
from engine.kernel.state.tasks import decides, goes_on, goes_on_stored, holds_goal, phase_of, side_of
from engine.kernel.state.work_queues import count_made, push_frame


@jit
def grant_credit(net):
    """Give credit for steps: each is sure to find room for what it adds, at most `MARGIN` to a pool, so none breaks off."""
    at = net.at
    if at.endless != NONE:
        return EXCEEDED
    unanswered = at.asked - at.answered
    if unanswered >= MOST_OPEN:
        return HOST
    spare = min(len(net.rows) - at.used + at.free, len(net.out) - at.found, len(net.stack) - at.depth)
    aside = min(len(net.parked) - at.parked, len(net.waiting) - at.waiting, len(net.gathered) - at.gathered)
    seen = len(net.seen) - at.seen_n - MOST_FEW  # for those that enter when the kernel returns
    at.credit = min(spare, aside, seen, len(net.questions) - at.asked, len(net.deferred) - at.deferred_n) // at.margin
    at.credit = min(at.credit, 1 + (MOST_OPEN - unanswered) // at.margin)
    return DONE if at.credit > 0 else GROW


@jit
def go_on(net, node, task, x, goal):
    """Take another step of a row that had more results than a chunk."""
    count_made(net, node, 1)
    if net.nodes[node].kind == JOIN:
        go_on_join(net, node, side_of(task), x, goal, goes_on_stored(task))
    else:
        go_on_negative(net, node, side_of(task), x, goal)


@jit
def arrive_elsewhere(net, node, task, x, goal):
    """Take one step for one solution at one node, off the hottest path, which is in `run`."""
    kind = net.nodes[node].kind
    if kind == DROPPED:
        if task == FIND_ON and goal != NONE:
            free_found_rows(net, x, goal)
        if not holds_goal(task):
            free_row(net, x)
    elif task == EMIT:
        emit_elsewhere(net, node, x)
    elif task == FAN:
        fan_out_row(net, node, x)
    elif task == FIND_ON:
        emit_looked_up(net, node, x, goal)
    elif task == LOOK_ON or task == LOOK_ON_STORED:
        join_background(net, node, task, x, goal)
    elif kind == RECENT or kind == CHRONOLOGICAL:
        arrive_policy(net, node, task, x, goal)
    elif decides(task):
        decide(net, node, side_of(task), x)
    elif goes_on(task):
        go_on(net, node, task, x, goal)
    elif kind == OUT:
        write_solution(net, node, x)
    elif kind == PASS:
        if net.rows[x].start < net.at.now - net.nodes[node].span:
            free_row(net, x)
        else:
            emit_elsewhere(net, node, x)
    elif kind == EXTEND:
        bind_answer(net, node, x)
    elif kind == MOVE:
        project_row(net, node, x)
    elif kind == COLLECT:
        arrive_collect(net, node, task, x)
    elif kind == MARK:
        arrive_mark(net, node, x)
    elif kind == FIRST:
        emit_first_of_key(net, node, x)
    elif kind == EARLIEST:
        emit_earliest(net, node, x)
    elif kind == LATEST:
        arrive_latest(net, node, x)
    else:
        arrive_negative(net, node, task, x)


@inlined
def turn_of(net, k):
    """Return when waiting work is called: by its stratum, and of a policy's node by its phase."""
    return TASKS_OF_CLOSE * net.nodes[net.waiting[k].node].stratum + phase_of(net.waiting[k].task)


@jit
def call_stratum(net):
    """Move the waiting work whose turn is next to the stack."""
    at, waiting = net.at, net.waiting
    lowest = turn_of(net, 0)
    for k in range(1, at.waiting):
        lowest = min(lowest, turn_of(net, k))
    kept = 0
    for k in range(at.waiting):
        if turn_of(net, k) == lowest:
            push_frame(net, waiting[k].node, waiting[k].task, waiting[k].row)
        else:
            for column in range(waiting.shape[1]):
                waiting[kept, column] = waiting[k, column]
            kept += 1
    at.waiting = kept
    at.credit = 0  # the stack has taken what no step adds


@inlined
def open_instant(net, now):
    at = net.at
    at.now = now
    at.seen_first += at.seen_n
    at.seen_most = max(at.seen_most, at.seen_n)
    at.seen_n, at.few_from = 0, at.found
    at.most_now = at.most_made
    if at.asked > at.memo_limit and at.answered == at.asked:  # nothing is parked between instants, so all answers may go
        net.question_heads[:] = NONE
        at.asked, at.answered = 0, 0


@inlined
def close_part(net, until, entry):
    """Do one part of closing what lies before `until`: timers due, then the lowest waiting stratum. Return False when all is closed."""
    at = net.at
    due = find_next_due(net)
    if due < until and (due <= at.now or at.waiting == 0):
        if due > at.now and due != AT_END:
            open_instant(net, due)
        at.entry = entry
        call_timer(net)
        return True
    if at.waiting > 0:
        at.entry = entry
        call_stratum(net)
        return True
    return False


@inlined
def take_in_event(net, i):
    """Take in one column of the feed, at its instant."""
    at, feed = net.at, net.feed
    at.event = i + 1
    at.entry = feed[IN_ENTRY, i]
    if feed[IN_KIND, i] == OPENING:
        open_query(net, feed[IN_S, i])
    elif feed[IN_END, i] < at.now:
        at.late += 1  # a stream fed after its readers' time had passed without it
    else:
        at.most_now += at.most_each
        stream, since, end = feed[IN_STREAM, i], feed[IN_SINCE, i], feed[IN_END, i]
        occurrence = TimedTriple(feed[IN_S, i], feed[IN_P, i], feed[IN_O, i], feed[IN_G, i], feed[IN_START, i], end)
        alone = at.fed_alone != 0 and 0 < i < at.events - 1 and feed[IN_END, i + 1] != end and feed[IN_END, i - 1] != end
        if alone or enter_occurrence(net, stream, occurrence, since):
            scan_occurrence(net, stream, occurrence, since)


@jit
def advance_feed(net):
    """Go on where nothing is on the stack; return ONWARD, or why the kernel returns.

    Every instant closes before a later one opens or time passes it.
    """
    at, feed = net.at, net.feed
    i = at.event
    if at.reports == 0 and at.deferred_n > (MOST_DEFERRED if i < at.events else 0):
        return DECISION
    if at.reports == 0 and i == at.events:
        if at.endless != NONE:
            return EXCEEDED
        sweep_stores_in_turn(net)
        return DONE
    if at.credit == 0:
        code = grant_credit(net)
        if code != DONE:
            return code
    at.credit -= 1
    if at.reports > 0:
        emit_report(net)
        return ONWARD
    if at.waiting > len(net.stack):
        return GROW
    end, kind = feed[IN_END, i], feed[IN_KIND, i]
    if kind == LAST:
        at.horizon, at.event = end, i + 1
        return ONWARD
    if end > at.now:
        if at.now > -BIG and close_part(net, end, feed[IN_ENTRY, i]):
            return ONWARD
        if kind != TICK:
            open_instant(net, end)
    if kind == TICK:
        at.event = i + 1
    else:
        take_in_event(net, i)
    return ONWARD


@entry_point
def run(address):
    """Work until the feed is done or the host is needed; the code says which.

    The stack is worked off first, which is the positive fixpoint of the instant; only then is there more of the feed. Every level of calls
    compiles all that is below it once more, so the hottest steps stand here.
    """
    net = as_net(address)
    at, stack, code = net.at, net.stack, ONWARD
    at.credit = 0  # the host may have filled pools
    enter_timers(net)
    while code == ONWARD:
        if at.depth == 0:
            code = HOST if at.parked > 0 else COLLECTION if at.gathered > 0 else advance_feed(net)
            continue
        if at.credit == 0:
            found = grant_credit(net)
            if found != DONE:
                code = found
                continue
        at.credit -= 1
        top = at.depth - 1
        at.depth = top
        frame = stack[top]
        node, task, x, goal = frame.node, frame.task, frame.row, frame.goal
        kind = net.nodes[node].kind
        if task <= BLOCKER:
            net.stores[SIDES * node + task].taken += 1
        if kind == JOIN and (task == LEFT or task == RIGHT):
            arrive_join(net, node, task, x)
        elif kind == WITHOUT and (task == LEFT or task == RIGHT or task == BLOCKER):
            arrive_without(net, node, task, x)
        else:
            arrive_elsewhere(net, node, task, x, goal)
    remember_few(net, at.found)  # the host may take them, and the instant goes on
    return code
