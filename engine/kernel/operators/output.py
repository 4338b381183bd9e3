"""OUT writes the solutions of a query, each once an instant."""

from engine.kernel import inlined, jit
from engine.kernel.operators.construct import derive_triples, hide_left_out
from engine.kernel.state.goal_store import keep_timeless_once
from engine.kernel.state.layout import MOST_FEW, NONE, OUT, OUT_VAR, TIMED_ONLY, UNBOUND, VAR
from engine.kernel.state.rows import free_row, is_timeless
from engine.kernel.state.seen_solutions import meet_first_in
from engine.kernel.state.temporal_relations import merge_bindings
from engine.kernel.state.work_queues import count_made


@jit
def write_solution(net, node, z):
    """Write a solution of a query; the instant's duplicates end here, whatever is hidden apart."""
    rows, nodes = net.rows, net.nodes
    for k in range(nodes[node].hide_at, nodes[node].hide_at + nodes[node].hide_n):
        rows[z, net.slots[k]] = UNBOUND
    if nodes[node].template_n > 0:
        hide_left_out(net, node, z)
    if is_timeless(net, z):  # it stands at the instant at which its query opened, or its facts came
        if keep_timeless_once(net, node, z):
            free_row(net, z)
            return
        rows[z].start, rows[z].end = net.at.now, net.at.now
    count_made(net, node, 1)
    if write_joined(net, node, z, z) and nodes[node].template_n > 0:
        derive_triples(net, node, z)
    free_row(net, z)


@inlined
def write_joined(net, node, x, y):
    """Write the join of x and y as a solution of the OUT `node`, and return whether the solution is new at this instant."""
    rows, k = net.rows, net.at.found
    solution = net.out[k]
    solution.start, solution.end = min(rows[x].start, rows[y].start), max(rows[x].end, rows[y].end)
    solution.node, solution.entry = node, net.at.entry
    merge_bindings(net.out, k, OUT_VAR, rows, x, y)
    if net.nodes[node].apart != 0:
        remember_few(net, k)  # so that they stay few
        is_new = True
    else:
        is_new = is_first_in_out(net, node, k)
    net.at.found = k + is_new
    return is_new


@inlined
def is_first_in_out(net, node, k):
    """Return whether row k of `out` is the first of its kind at this instant.

    The first few of an instant are looked through; more have a table of hashes.
    """
    out, first = net.out, net.at.few_from
    if first == NONE:
        return is_first_in_seen(net, node, k)
    for r in range(first, k):
        if out[r].start == out[k].start and out[r].node == node and has_same_values(net, r, k):
            return False
    if k - first == MOST_FEW:
        remember_few(net, k + 1)
    return True


@inlined
def has_same_values(net, r, k):
    for v in range(OUT_VAR, OUT_VAR + net.rows.shape[1] - VAR):
        if net.out[r, v] != net.out[k, v]:
            return False
    return True


@jit
def is_first_in_seen(net, node, k):
    return meet_first_in(net, node, net.out, k, net.out[k].start, OUT_VAR)


@jit
def remember_few(net, after):
    """Enter this instant's rows of `out` before `after` into what it has met, for they are too many, or about to be taken."""
    if net.at.few_from != NONE:
        for k in range(net.at.few_from, after):
            is_first_in_seen(net, net.out[k].node, k)
    net.at.few_from = NONE


@inlined
def find_plain_out(net, node):
    """Return the OUT that alone reads what `node` joins and takes all of it as it is, or NONE. Such joins need no row of their own."""
    joining = net.nodes[node]
    if joining.edge_n != 1 or joining.timeless != 0 or (joining.filter != NONE and joining.filter != TIMED_ONLY):
        return NONE
    reader = net.edges[joining.edge_at].node
    reading = net.nodes[reader]
    return reader if reading.kind == OUT and reading.template_n == 0 and reading.hide_n == 0 else NONE
