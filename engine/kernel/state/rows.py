"""A row holds one solution. Rows are taken from those given back, and copied.

Cells of one row have two sizes (`engine/kernel/state/handle.py`). Code that knows the column reads the first columns as fields, and the others by number.
"""

from engine.kernel import inlined
from engine.kernel.state.layout import END, HASH, LEAST_WIDTH, OLDER, START, UNBOUND, VAR


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
def read_cell(net, row, column):
    """Return the cell of a row in any column."""
    if column > HASH:
        return net.rows[row, column]
    return net.rows[row].start if column == START else net.rows[row].end if column == END else net.rows[row].hash


@inlined
def write_cell(net, row, column, value):
    """Write the cell of a row in any column."""
    if column > HASH:
        net.rows[row, column] = value
    elif column == START:
        net.rows[row].start = value
    elif column == END:
        net.rows[row].end = value
    else:
        net.rows[row].hash = value


@inlined
def copy_row(net, x):
    y, rows = take_row(net), net.rows
    rows[y].start, rows[y].end, rows[y].hash = rows[x].start, rows[x].end, rows[x].hash
    for column in range(OLDER, rows.shape[1]):
        rows[y, column] = rows[x, column]
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
