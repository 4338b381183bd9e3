"""Temporal relations and compatibility; x is left, y is right."""

from engine.kernel import inlined, jit
from engine.kernel.state.layout import ANY, DURING, EQUALS, FINISHES, LEAST_WIDTH, MEETS, OVERLAPS, SEQ, STARTS, UNBOUND, VAR


@inlined
def holds_relation(relation, x_start, x_end, y_start, y_end):
    """Return whether x and y stand in a relation (semantics.md, section 3); a timeless operand satisfies every relation."""
    if relation == SEQ:  # strict; [BIG, -BIG] satisfies it by its numbers
        return x_end < y_start
    if relation == ANY or x_start > x_end or y_start > y_end:
        return True
    if relation == EQUALS:
        return x_start == y_start and x_end == y_end
    if relation == MEETS:
        return x_end == y_start
    if relation == DURING:
        return y_start < x_start and x_end < y_end
    if relation == STARTS:
        return x_start == y_start and x_end < y_end
    if relation == FINISHES:
        return x_end == y_end and x_start > y_start
    if relation == OVERLAPS:
        return x_start < y_start < x_end < y_end
    return max(x_start, y_start) < min(x_end, y_end)  # PAR


@inlined
def has_same_key(net, x, y, key_at, key_n):
    for k in range(key_at, key_at + key_n):
        if net.rows[x, net.slots[k]] != net.rows[y, net.slots[k]]:
            return False
    return True


@inlined
def is_compatible(net, x, y, at, n):
    """Return whether x and y are compatible in the residual variables, which may be unbound on a side."""
    for k in range(at, at + n):
        a, b = net.rows[x, net.slots[k]], net.rows[y, net.slots[k]]
        if a != b and a != UNBOUND and b != UNBOUND:
            return False
    return True


@jit
def shares_variable(net, x, y, at, n):
    for k in range(at, at + n):
        if net.rows[x, net.slots[k]] != UNBOUND and net.rows[y, net.slots[k]] != UNBOUND:
            return True
    return False


@inlined
def merge_rows(net, z, x, y):
    """Make z the union of the bindings (equal or UNBOUND = 0, so OR) and the hull of the intervals."""
    rows = net.rows
    rows[z].start = min(rows[x].start, rows[y].start)
    rows[z].end = max(rows[x].end, rows[y].end)
    merge_bindings(rows, z, VAR, rows, x, y)


@inlined
def merge_bindings(table, z, first, rows, x, y):
    """Write the bindings of both to row z of a table, from column `first` on.

    The columns that each row has stand apart, because loops of unknown length cost more than what they do.
    """
    a, b, c, d = (
        rows[x, VAR] | rows[y, VAR],
        rows[x, VAR + 1] | rows[y, VAR + 1],
        rows[x, VAR + 2] | rows[y, VAR + 2],
        rows[x, VAR + 3] | rows[y, VAR + 3],
    )
    table[z, first], table[z, first + 1], table[z, first + 2], table[z, first + 3] = a, b, c, d
    for v in range(LEAST_WIDTH, rows.shape[1] - VAR):
        table[z, first + v] = rows[x, VAR + v] | rows[y, VAR + v]
