"""This module plans a chain of SEQs as it is written.

It was joined in another order before its background made an operand timeless (docs/decisions/0013-shapes.md).
"""

from typing import TYPE_CHECKING

import numpy as np

from engine.kernel.state import layout as c
from engine.network.background_update import goals_of
from engine.network.placed_query import Planned
from engine.physical_plan.join_trees import Linear, Shape, straighter

if TYPE_CHECKING:
    from engine.network.network import Network


def straighten(network: "Network", planned: Planned) -> None:
    """Plan a chain as it is written, step by step (`straighter`). It may fail by its limits on the way."""
    while planned.shape not in (None, Linear.WRITTEN) and planned.registered in network.planned:
        planned = _reshaped(network, planned, straighter(planned.shape, max(last for _, last in planned.segments) + 1))


def _reshaped(network: "Network", planned: Planned, shape: Shape) -> Planned:
    """Plan a query in an order in which what its joins keep follows from what they kept, and take that over."""
    order, before, at = list(network.planned), network.net.queries[planned.number].copy(), planned.at.node
    stores, (quota, held) = goals_of(network, c.SIDES * at, c.SIDES * planned.after.node), network.quotas.of(planned.registered)
    network.take_out(planned)
    network.add(
        planned.registered, planned.name, planned.query, network.known, planned.max_derivations, planned.policy, planned.rates, shape,
        reads_after=planned.reads_after,
    )  # fmt: skip
    network.quotas.limit(planned.registered, quota, held)
    new = network.planned[planned.registered]
    network.planned = {registered: network.planned[registered] for registered in order}
    tags = network.net.seen[: network.net.at[c.SEEN_N], c.SEEN_TAG]
    tags[tags == planned.out] = new.out  # solutions that it has given at this instant
    for stream in set(planned.query.streams) if before[c.Q_OPEN] else ():
        network.net.streams[network.streams[stream], c.S_PENDING] -= 1
    for column in (c.Q_OPEN, c.Q_FROM, c.Q_AFTER, c.Q_T0):
        network.net.queries[new.number, column] = before[column]
    network.free_dropped()
    parts = {segment: stores[store].timed for segment, (node, side) in planned.segments.items() if (store := c.SIDES * (at + node) + side) in stores}
    if parts:
        places = [(new.at.node + node, side) for segment, rows in parts.items() for node, side in [new.segments[segment]] * len(rows)]
        most, network.net.at[c.MOST_NOW] = int(network.net.at[c.MOST_NOW]), c.FOREVER  # it has been counted when it came
        network.take_over(np.concatenate([*parts.values()]), np.array(places, np.int64))
        network.net.at[c.MOST_NOW] = most
        network.net.queries[new.number, [c.Q_MADE, c.Q_MADE_AT]] = before[[c.Q_MADE, c.Q_MADE_AT]]
    return new
