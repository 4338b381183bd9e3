"""This module looks up solutions in the background: the triples of their key in a node's table, or in several tables, one after the other."""

from engine.kernel import inlined, jit
from engine.kernel.state.goal_store import hash_key
from engine.kernel.state.handle import table_at
from engine.kernel.state.layout import EMIT, L_KEY, L_NEWEST, L_OLDER, NONE, UNBOUND
from engine.kernel.state.rows import copy_row, free_row


@jit
def find_first_place(net, node, x):
    """Return the place of the newest triple for x, or NONE."""
    table = net.nodes[node].look
    heads = table_at(net.lookups[table].heads, net.lookups[table].buckets, 1)
    hash_ = hash_key(net, x, net.nodes[node].key_at, net.nodes[node].key_n)
    return find_agreeing(net, node, x, heads[hash_ & (net.lookups[table].buckets - 1), L_NEWEST])


@jit
def find_next_place(net, node, x, place):
    """Return the place of the next older triple for x, or NONE."""
    return find_agreeing(net, node, x, cells_of(net, node)[place, L_OLDER])


@inlined
def cells_of(net, node):
    table = net.nodes[node].look
    return table_at(net.lookups[table].cells, net.lookups[table].room, net.lookups[table].width)


@inlined
def find_agreeing(net, node, x, place):
    """Return the first place of a chain, from this one on, whose triple x is compatible with.

    Triples that a later version of the background has added do not count.
    """
    cells, n = cells_of(net, node), net.lookups[net.nodes[node].look].n
    while place != NONE and (place >= n or not agrees_with_triple(net, node, x, cells, place)):
        place = cells[place, L_OLDER]
    return place


@inlined
def agrees_with_triple(net, node, x, cells, place):
    nodes, rows, slots = net.nodes, net.rows, net.slots
    first, keys, more = nodes[node].key_at, nodes[node].key_n, nodes[node].look_at
    for k in range(keys):
        if cells[place, L_KEY + k] != rows[x, slots[first + k]]:
            return False
    for k in range(nodes[node].look_n):
        term = rows[x, slots[more + k]]
        if term != UNBOUND and term != cells[place, L_KEY + keys + k]:
            return False
    return True


@jit
def copy_with_triple(net, node, x, place):
    """Return a copy of x with what the triple binds, on x's interval."""
    z, cells, first = copy_row(net, x), cells_of(net, node), L_KEY + net.nodes[node].key_n
    for k in range(net.nodes[node].look_n):
        net.rows[z, net.slots[net.nodes[node].look_at + k]] = cells[place, first + k]
    return z


# ---------------------------------------------------------------- FINDs, one after the other
# A row found stands on those of the FINDs before, down to x: HASH has its place in the table, OLDER the row that it stands on, NEWER its FIND.
@inlined
def has_finds(net, node):
    """Return whether a node that decides on absence is to look up what it decides."""
    first = net.nodes[node].look_via
    return first != NONE and net.nodes[first].look != NONE


@jit
def find_first_row(net, node, x):
    """Return x with what the FINDs of a node have for it first, or NONE.

    The row is to go on to `find_next_row` or to be given back to `free_found_rows`.
    """
    find = net.nodes[node].look_via
    return find_row_from(net, x, x, find, find_first_place(net, find, x))


@jit
def find_next_row(net, x, z):
    """Return x with what comes after z, which is freed; or NONE."""
    find, place, below = net.rows[z].newer, net.rows[z].hash, net.rows[z].older
    free_row(net, z)
    return find_row_from(net, x, below, find, find_next_place(net, find, below, place))


@jit
def find_row_from(net, x, below, find, place):
    """Return the next row that all FINDs have for x, or NONE. The search goes on from a place in the table of `find`, for the row `below`."""
    nodes, edges, rows = net.nodes, net.edges, net.rows
    while True:
        if place != NONE:
            z = copy_with_triple(net, find, below, place)
            rows[z].hash, rows[z].older, rows[z].newer = place, below, find
            edge = nodes[find].edge_at
            if edges[edge].task == EMIT:
                return z
            find, below = edges[edge].node, z
            place = find_first_place(net, find, below)
        elif below == x:
            return NONE
        else:
            z = below
            find, place, below = rows[z].newer, rows[z].hash, rows[z].older
            free_row(net, z)
            place = find_next_place(net, find, below, place)


@jit
def free_found_rows(net, x, z):
    """Free z and the rows that it stands on."""
    while z != x:
        below = net.rows[z].older
        free_row(net, z)
        z = below
