"""Work is on the stack, or waits: for the close of the instant, for the host's answers, for its collectors. All of it is counted."""

from engine.kernel import inlined, jit
from engine.kernel.state.layout import FRAME_WIDTH, LOOKS
from engine.kernel.state.tasks import decides


@inlined
def set_frame(frame, node, task, row):
    frame.node, frame.task, frame.row = node, task, row


@inlined
def append_frame(frames, n, node, task, row):
    """Set the frame behind the first n, and return how many there are now."""
    set_frame(frames[n], node, task, row)
    return n + 1


@inlined
def push_frame(net, node, task, row):
    """Push a frame: a node and what it is to do with a row."""
    net.at.depth = append_frame(net.stack, net.at.depth, node, task, row)


@inlined
def push_frame_below(net, depth, node, task, row, goal):
    """Push a frame that goes on at `goal` below those that its step has pushed since `depth`, so that their work is done first."""
    stack, top = net.stack, net.at.depth
    for column in range(FRAME_WIDTH):
        stack[top, column] = stack[depth, column]
    set_frame(stack[depth], node, task, row)
    stack[depth].goal = goal
    net.at.depth = top + 1


@jit
def park_frame(net, node, task, row):
    """Set work aside until the host has answered."""
    net.at.parked = append_frame(net.parked, net.at.parked, node, task, row)
    if decides(task):
        net.at.spent = 0  # all of it is done, and counted, once more


@jit
def wait_for_close(net, node, task, row):
    """Set work aside until the instant closes."""
    net.at.waiting = append_frame(net.waiting, net.at.waiting, node, task, row)
    count_made(net, node, 1)


@jit
def gather_row(net, node, task, x):
    """Set x aside for the host's collector."""
    net.at.gathered = append_frame(net.gathered, net.at.gathered, node, task, x)


@inlined
def count_made(net, node, n):
    """Count n more that the node's query has made at this instant: goals, solutions, what waits for the close, and the work on the way.

    If that is more than any may, the query is marked, and the host looks into it before the next step.
    """
    number = net.nodes[node].query
    query = net.queries[number]
    if query.made_at != net.at.now:
        query.made_at, query.made = net.at.now, 0
    query.made += n
    if query.made > net.at.most_now:
        net.at.endless, net.at.credit = number, 0


@jit
def count_looks(net, node, looks):
    """Count `looks`, and what else the step has spent, as `count_made` does: LOOKS of them count as one row made."""
    looks += net.at.spent
    net.at.spent = 0
    if looks >= LOOKS:
        count_made(net, node, looks // LOOKS)
