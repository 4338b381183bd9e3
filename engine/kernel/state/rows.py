"""A row holds one solution. Rows are taken from those given back, and copied."""

from engine.kernel import inlined
from engine.kernel.state.layout import LEAST_WIDTH, UNBOUND, VAR


@inlined
def take_row(net):
    """Take a row: the one given back last, else one never used."""
    at = net.at
    if at.free > 0:
        at.free -= 1
        return net.free[at.free]
    at.used += 1
    return at.used - 1


@inlined
def free_row(net, row):
    net.free[net.at.free] = row
    net.at.free += 1


@inlined
def copy_row(net, x):
    y = take_row(net)
    for column in range(net.rows.shape[1]):
        net.rows[y, column] = net.rows[x, column]
    return y


@inlined
def make_row(net, start, end):
    """Return a row on this interval with nothing bound."""
    row, rows = take_row(net), net.rows
    rows[row].start, rows[row].end = start, end
    rows[row, VAR], rows[row, VAR + 1], rows[row, VAR + 2], rows[row, VAR + 3] = UNBOUND, UNBOUND, UNBOUND, UNBOUND
    for v in range(VAR + LEAST_WIDTH, rows.shape[1]):
        rows[row, v] = UNBOUND
    return row


@inlined
def is_timeless(net, row):
    return net.rows[row].start > net.rows[row].end
