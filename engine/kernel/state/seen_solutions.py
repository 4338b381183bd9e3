"""An instant's solutions are a set: this module tells which of them have been met before."""

from engine.kernel import entry_point, inlined
from engine.kernel.state.handle import as_net
from engine.kernel.state.hash_table import MIX, SALT, enter_item, head_of, mix_hash, spread_items
from engine.kernel.state.layout import BIG, LEAST_WIDTH, SEEN_VAR, VAR


@inlined
def meet_first(net, tag, row):
    """Return whether this instant meets this solution (or, under tags below zero, triple) for the first time at `tag`."""
    return meet_first_in(net, tag, net.rows, row, net.rows[row].start, VAR)


@inlined
def meet_first_in(net, tag, table, row, start, first):
    """Do as `meet_first` does for a row of any table, with this start, and its first variable in the column `first`."""
    seen, width = net.seen, net.rows.shape[1] - VAR
    hash_ = (tag * SALT) ^ (start * MIX)
    report = net.at.now if net.at.reports > 0 else -BIG
    a, b, c, d = table[row, first], table[row, first + 1], table[row, first + 2], table[row, first + 3]
    hash_ += report * (SALT - 2)
    hash_ += a * SALT + b * (SALT + 2) + c * (SALT + 4) + d * (SALT + 6)  # a sum: its multiplications overlap
    for v in range(LEAST_WIDTH, width):
        hash_ += table[row, first + v] * (SALT + 2 * v)
    hash_ = mix_hash(hash_, 0)
    earliest = net.at.seen_first  # entries of earlier instants have lower numbers: nothing needs clearing
    entry = net.seen_heads[head_of(net.seen_heads, hash_)]
    while entry >= earliest:
        known = seen[entry - earliest]
        if known.hash == hash_ and known.tag == tag and known.report == report and is_same_solution(net, entry - earliest, table, row, start, first):
            return False
        entry = known.next
    new = net.at.seen_n
    seen[new].hash, seen[new].tag, seen[new].start, seen[new].report = hash_, tag, start, report
    seen[new, SEEN_VAR], seen[new, SEEN_VAR + 1], seen[new, SEEN_VAR + 2], seen[new, SEEN_VAR + 3] = a, b, c, d
    for v in range(LEAST_WIDTH, width):
        seen[new, SEEN_VAR + v] = table[row, first + v]
    enter_item(net.seen_heads, seen, new, earliest + new)
    net.at.seen_n = new + 1
    return True


@inlined
def is_same_solution(net, known, table, row, start, first):
    if net.seen[known].start != start:
        return False
    for v in range(net.rows.shape[1] - VAR):
        if net.seen[known, SEEN_VAR + v] != table[row, first + v]:
            return False
    return True


@entry_point
def spread_seen(address, heads):
    """Enter what this instant has met into the larger table `heads`."""
    net = as_net(address)
    spread_items(heads, net.seen, net.at.seen_n, net.at.seen_first)
