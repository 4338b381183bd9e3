"""This module serves collectors that nothing inside the instant waits for.

Their solutions are kept for the end of the feed, and their reports come back in one go.
"""

from engine.kernel import jit
from engine.kernel.operators.timers import set_due
from engine.kernel.state.goal_store import push, take
from engine.kernel.state.layout import *

MOST_DEFERRED = 1 << 16


@jit
def defer(net, node, side, x):
    """Sets x aside, with its instant and entry, for the collector of a node."""
    at, deferred = net.at, net.deferred
    n = at[DEFERRED_N]
    deferred[n, FRAME_NODE], deferred[n, FRAME_SIDE], deferred[n, FRAME_ROW] = node, side, x
    deferred[n, D_NOW], deferred[n, D_ENTRY] = at[NOW], at[ENTRY]
    at[DEFERRED_N] = n + 1
    if net.nodes[node, STEP] > 0:
        schedule(net, node, side)


@jit
def schedule(net, node, side):
    """Set a window with a step due at the next multiple, if the window holds then a solution from before the end of its streams."""
    timers, now, step, k = net.timers, net.at[NOW], net.nodes[node, STEP], net.nodes[node, TIMER]
    following = (now // step + 1) * step
    if side == LEFT and now <= net.at[HORIZON]:
        timers[k, T_LATEST] = now
    set_due(net, k, following if timers[k, T_LATEST] > following - net.nodes[node, WINDOW] else FOREVER)


@jit
def report(net):
    """Give the next report to its node's readers, at its instant; after the last, time goes on from where it stood."""
    at, reports = net.at, net.reports
    r = at[REPORTED]
    if r == at[REPORTS]:
        at[NOW], at[REPORTED], at[REPORTS] = at[STOOD], 0, 0
        return
    at[REPORTED] = r + 1
    at[NOW], at[ENTRY] = reports[r, G_END], reports[r, G_ENTRY]
    row = take(net)
    net.rows[row, START], net.rows[row, END] = reports[r, G_START], reports[r, G_END]
    for v in range(VAR, net.rows.shape[1]):
        net.rows[row, v] = reports[r, G_VAR + v - VAR]
    push(net, reports[r, G_NODE], EMIT, row)
