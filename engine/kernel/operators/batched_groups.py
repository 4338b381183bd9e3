"""This module serves collectors that nothing inside the instant waits for.

Their solutions are kept for the end of the feed, and their reports come back in one go.
"""

from engine.kernel import jit
from engine.kernel.operators.timers import set_due
from engine.kernel.state.layout import EMIT, FOREVER, G_VAR, LEFT, VAR
from engine.kernel.state.rows import take_row
from engine.kernel.state.work_queues import push_frame, set_frame

MOST_DEFERRED = 1 << 16


@jit
def defer_row(net, node, side, x):
    """Sets x aside, with its instant and entry, for the collector of a node."""
    at, deferred = net.at, net.deferred
    n = at.deferred_n
    set_frame(deferred[n], node, side, x)
    deferred[n].now, deferred[n].entry = at.now, at.entry
    at.deferred_n = n + 1
    if net.nodes[node].step > 0:
        schedule_window(net, node, side)


@jit
def schedule_window(net, node, side):
    """Set a window with a step due at the next multiple, if the window holds then a solution from before the end of its streams."""
    timers, now, step, k = net.timers, net.at.now, net.nodes[node].step, net.nodes[node].timer
    following = (now // step + 1) * step
    if side == LEFT and now <= net.at.horizon:
        timers[k].latest = now
    set_due(net, k, following if timers[k].latest > following - net.nodes[node].window else FOREVER)


@jit
def emit_report(net):
    """Give the next report to its node's readers, at its instant; after the last, time goes on from where it stood."""
    at, reports = net.at, net.reports
    r = at.reported
    if r == at.reports:
        at.now, at.reported, at.reports = at.stood, 0, 0
        return
    at.reported = r + 1
    at.now, at.entry = reports[r].end, reports[r].entry
    row = take_row(net)
    net.rows[row].start, net.rows[row].end = reports[r].start, reports[r].end
    for v in range(VAR, net.rows.shape[1]):
        net.rows[row, v] = reports[r, G_VAR + v - VAR]
    push_frame(net, reports[r].node, EMIT, row)
