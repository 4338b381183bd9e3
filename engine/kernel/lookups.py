"""What the background has for a solution: the triples of its key in a node's table."""

from engine.kernel.columns import *
from engine.kernel.compile import inlined, jit
from engine.kernel.flow import copied
from engine.kernel.goals import hash_of
from engine.kernel.net import table_at


@jit
def first_place(net, node, x):
    """Where the newest triple for x stands, or NONE."""
    table = net.nodes[node, LOOK]
    heads = table_at(net.lookups[table, L_HEADS], net.lookups[table, L_BUCKETS], 1)
    hash_ = hash_of(net, x, net.nodes[node, KEY_AT], net.nodes[node, KEY_N])
    return fitting(net, node, x, heads[hash_ & (net.lookups[table, L_BUCKETS] - 1), 0])


@jit
def next_place(net, node, x, place):
    """Where the next older one stands, or NONE."""
    return fitting(net, node, x, cells_of(net, node)[place, L_OLDER])


@inlined
def cells_of(net, node):
    table = net.nodes[node, LOOK]
    return table_at(net.lookups[table, L_CELLS], net.lookups[table, L_ROOM], net.lookups[table, L_WIDTH])


@inlined
def fitting(net, node, x, place):
    """The first place of a chain, from this one on, whose triple x is compatible with; what a later version of the background has added does not count."""
    cells, n = cells_of(net, node), net.lookups[net.nodes[node, LOOK], L_N]
    while place != NONE and (place >= n or not agrees(net, node, x, cells, place)):
        place = cells[place, L_OLDER]
    return place


@inlined
def agrees(net, node, x, cells, place):
    nodes, rows, slots = net.nodes, net.rows, net.slots
    first, keys, more = nodes[node, KEY_AT], nodes[node, KEY_N], nodes[node, LOOK_AT]
    for k in range(keys):
        if cells[place, L_KEY + k] != rows[x, slots[first + k]]:
            return False
    for k in range(nodes[node, LOOK_N]):
        term = rows[x, slots[more + k]]
        if term != UNBOUND and term != cells[place, L_KEY + keys + k]:
            return False
    return True


@jit
def with_triple(net, node, x, place):
    """A copy of x with what the triple binds, on x's interval."""
    z, cells, first = copied(net, x), cells_of(net, node), L_KEY + net.nodes[node, KEY_N]
    for k in range(net.nodes[node, LOOK_N]):
        net.rows[z, net.slots[net.nodes[node, LOOK_AT] + k]] = cells[place, first + k]
    return z
