"""Hash tables with chains: `heads` has the newest item of each chain, and an item's `hash` and `next` stand in its row.

Their size is a power of two, and the least bits of the hash choose the chain.
"""

import numpy as np

from engine.kernel import inlined

MIX = np.int64(-7046029254386353131)
SALT = np.int64(-4417276706812531889)


@inlined
def mix_hash(hash_, term):
    hash_ = (hash_ ^ term) * MIX
    return hash_ ^ (hash_ >> 29)


@inlined
def head_of(heads, hash_):
    return hash_ & (len(heads) - 1)


@inlined
def enter_item(heads, table, item, number):
    """Make an item of a table the newest of its chain; `number` is what the chains know it by."""
    head = head_of(heads, table[item].hash)
    table[item].next = heads[head]
    heads[head] = number


@inlined
def spread_items(heads, table, n, first):
    """Enter the first n items into the empty, larger table `heads`; the chains know them by numbers from `first` on."""
    for item in range(n):
        enter_item(heads, table, item, first + item)
