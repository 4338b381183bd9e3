"""A solution leaves its node: through the filter, and then to the readers."""

from engine.kernel import inlined, jit
from engine.kernel.operators.filter import judge_filter
from engine.kernel.state.layout import EMIT, FALSE, FAN, NONE, PENDING, SIDES, TIMED_ONLY, TIMELESS_ONLY, TRUE
from engine.kernel.state.rows import copy_row, free_row, is_timeless
from engine.kernel.state.work_queues import count_looks, park_frame, push_frame


@inlined
def emit_row(net, node, z):
    """Hand on row z, which the caller owned."""
    filter_ = net.nodes[node].filter
    if filter_ == NONE or (filter_ == TIMED_ONLY and not is_timeless(net, z)) or passes_filter(net, node, z):
        forward_row(net, node, z)


@jit
def emit_elsewhere(net, node, z):
    """Do as `emit_row` does, off the hot path: one copy of its code serves all callers."""
    emit_row(net, node, z)


@jit
def passes_filter(net, node, z):
    """Return whether z is to go on now; if not, it has been parked or freed."""
    filter_ = net.nodes[node].filter
    verdict = judge_filter(net, filter_, z) if filter_ >= 0 else TRUE if is_timeless(net, z) == (filter_ == TIMELESS_ONLY) else FALSE
    if net.at.spent > 0:
        count_looks(net, node, 0)
    if verdict == TRUE:
        return True
    if verdict == PENDING:
        park_frame(net, node, EMIT, z)
    else:
        net.stores[SIDES * node].refused += 1
        free_row(net, z)
    return False


@inlined
def forward_row(net, node, z):
    """Push z for the node's reader, or leave it to another step to copy it for several."""
    net.stores[SIDES * node].given += 1
    if net.nodes[node].edge_n != 1:
        push_frame(net, node, FAN, z)
        return
    reader = net.edges[net.nodes[node].edge_at]
    push_frame(net, reader.node, reader.task, z)


@jit
def fan_out_row(net, node, z):
    """Push one copy of z for each reader of `node`; the room for them was checked."""
    first = net.nodes[node].edge_at
    for e in range(first, first + net.nodes[node].edge_n):
        push_frame(net, net.edges[e].node, net.edges[e].task, copy_row(net, z))
    free_row(net, z)
