"""This module looks up solutions in the background: the triples of their key in a node's table, or in several tables, one after the other."""

from engine.kernel import inlined, jit
from engine.kernel.operators.emit import copied
from engine.kernel.state.goal_store import hash_of, release
from engine.kernel.state.handle import table_at
from engine.kernel.state.layout import *


@jit
def first_place(net, node, x):
    """Return the place of the newest triple for x, or NONE."""
    table = net.nodes[node, LOOK]
    heads = table_at(net.lookups[table, L_HEADS], net.lookups[table, L_BUCKETS], 1)
    hash_ = hash_of(net, x, net.nodes[node, KEY_AT], net.nodes[node, KEY_N])
    return fitting(net, node, x, heads[hash_ & (net.lookups[table, L_BUCKETS] - 1), 0])


@jit
def next_place(net, node, x, place):
    """Return the place of the next older triple for x, or NONE."""
    return fitting(net, node, x, cells_of(net, node)[place, L_OLDER])


@inlined
def cells_of(net, node):
    table = net.nodes[node, LOOK]
    return table_at(net.lookups[table, L_CELLS], net.lookups[table, L_ROOM], net.lookups[table, L_WIDTH])


@inlined
def fitting(net, node, x, place):
    """Return the first place of a chain, from this one on, whose triple x is compatible with.

    Triples that a later version of the background has added do not count.
    """
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
    """Return a copy of x with what the triple binds, on x's interval."""
    z, cells, first = copied(net, x), cells_of(net, node), L_KEY + net.nodes[node, KEY_N]
    for k in range(net.nodes[node, LOOK_N]):
        net.rows[z, net.slots[net.nodes[node, LOOK_AT] + k]] = cells[place, first + k]
    return z


# ---------------------------------------------------------------- FINDs, one after the other
# A row found stands on those of the FINDs before, down to x: HASH has its place in the table, OLDER the row that it stands on, NEWER its FIND.
@inlined
def has_finds(net, node):
    """Return whether a node that decides on absence is to look up what it decides."""
    first = net.nodes[node, LOOK_VIA]
    return first != NONE and net.nodes[first, LOOK] != NONE


@jit
def first_found(net, node, x):
    """Return x with what the FINDs of a node have for it first, or NONE.

    The row is to go on to `next_found` or to be given back to `forget_found`.
    """
    find = net.nodes[node, LOOK_VIA]
    return found_from(net, x, x, find, first_place(net, find, x))


@jit
def next_found(net, x, z):
    """Return x with what comes after z, which is freed; or NONE."""
    find, place, below = net.rows[z, NEWER], net.rows[z, HASH], net.rows[z, OLDER]
    release(net, z)
    return found_from(net, x, below, find, next_place(net, find, below, place))


@jit
def found_from(net, x, below, find, place):
    """Return the next row that all FINDs have for x, or NONE. The search goes on from a place in the table of `find`, for the row `below`."""
    nodes, edges, rows = net.nodes, net.edges, net.rows
    while True:
        if place != NONE:
            z = with_triple(net, find, below, place)
            rows[z, HASH], rows[z, OLDER], rows[z, NEWER] = place, below, find
            edge = nodes[find, EDGE_AT]
            if edges[edge, 1] == EMIT:
                return z
            find, below = edges[edge, 0], z
            place = first_place(net, find, below)
        elif below == x:
            return NONE
        else:
            z = below
            find, place, below = rows[z, NEWER], rows[z, HASH], rows[z, OLDER]
            release(net, z)
            place = next_place(net, find, below, place)


@jit
def forget_found(net, x, z):
    """Free z and the rows that it stands on."""
    while z != x:
        below = net.rows[z, OLDER]
        release(net, z)
        z = below
