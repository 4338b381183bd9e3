"""This module makes one network of several that reach the same streams, once they stand at the same instant
(docs/decisions/0019-what-is-behind.md).

A query that was paused, has read the past or was promoted comes back with a network of its own. It costs up to 0.3
MB, whatever it keeps. Queries that come while the background changes have one, too. There the queries of the smaller
network are placed in the larger one, with what they keep:

1. Both have read the log as far, so they have closed the same instants, and at most one instant is open.
2. What waits for time is the same but for what came before the one or the other was there. No query reads that of the other network.
3. Goals, collectors and what the open instant has met go over by the names of a snapshot. So does the work that waits for its close.
4. From then on each query is given what the others are given. Their shares unite like those of a newcomer.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.errors import Refusal, SnapshotMismatch
from engine.kernel.state import layout as c
from engine.messages import END_OF_TIME
from engine.network.network import Network
from engine.network.stratification import Cycle
from engine.physical_plan.join_trees import PlanShape
from engine.planner.builder.join_order import Rates
from engine.runtime.event_queue import Waiting
from engine.runtime.event_scheduler import ScheduledNetwork, find_reached
from engine.runtime.query_registry import Registry
from engine.snapshot.network_state import adopt, snapshot_network
from epsparql import QueryError

Ints = NDArray[np.int64]
MOST_ROWS = 50_000
"""A network with more goals, or more occurrences that wait, stays as it is: what it costs is little beside them, and
the others need not wait.
"""
MOST_COMPARED = 10_000
"""So many occurrences that wait are compared one by one.

With more, networks that differ in them wait for a later entry.
"""
_KEY = [c.IN_S, c.IN_P, c.IN_O, c.IN_START, c.IN_END, c.IN_SINCE]


def unite_networks(registry: Registry, entry: int) -> None:
    """Make one network of those that reach the same streams, as of an entry that has just been applied.

    No query finds anything else for it.
    """
    if not any(member.apart for member in registry.members):
        return
    rules, groups = registry.rules, dict[object, list[ScheduledNetwork]]()
    for member in registry.members:
        gate = frozenset(find_reached(member.network.reads, rules))
        alike = not (member.revised or member.silent or any(rule.into in gate for rule in member.rules))  # none of a cycle
        groups.setdefault((gate, member.part, member.network.planning.without) if alike else member, []).append(member)
    gone = [side for members in groups.values() for side in _unite_group(registry, members, entry)]
    if gone:
        registry.members = [member for member in registry.members if member not in gone]
        registry.forget_layout()


def _unite_group(registry: Registry, members: Sequence[ScheduledNetwork], entry: int) -> list[ScheduledNetwork]:
    """Place the queries of networks in the one of them that has most. Return the networks that are empty now."""
    main, gone = max(members, key=lambda member: len(member.network.planned)), list[ScheduledNetwork]()
    if any(member.apart for member in members):
        gone = [side for side in members if side is not main and _unite(registry, main, side, entry)]
    for member in members:
        member.apart = len(members) - len(gone) > 1
    return gone


def _unite(registry: Registry, main: ScheduledNetwork, side: ScheduledNetwork, entry: int) -> bool:
    """Place the queries of one network in another one. Return False, and change nothing, if the two do not stand alike."""
    if main.time != side.time or main.time >= END_OF_TIME or not all(_is_settled(registry, member.network) for member in (main, side)):
        return False
    if max(int(side.network.net.stores[:, c.COUNT].sum()), len(main.pending), len(side.pending)) > MOST_ROWS:
        return False
    now, its_now = (int(member.network.net.at[c.NOW]) for member in (main, side))
    if (main if now < its_now else side).network.net.at[c.WAITING] and now != its_now:
        return False
    if (waiting := _unite_waiting(main, side)) is None:
        return False
    network, (meta, arrays) = main.network, snapshot_network(side.network)
    if now < its_now:
        _open_instant(network, its_now)
    elif its_now < now:
        arrays |= {name: arrays[name][:0] for name in ("met", "met.places")}
    elif _find_met(network) != _find_met(side.network):
        network.net.at[c.LATEST_FROM] = entry  # what comes again is new again, as it may be for some
    network.net.at[c.MOST_NOW] = max(network.net.at[c.MOST_NOW], side.network.net.at[c.MOST_NOW] if now <= its_now else 0)
    moment = network.sharing.apart_moment(int(waiting[c.IN_SINCE].max(initial=-1)), int(waiting[c.IN_END].max(initial=-c.BIG)))

    def add(registered: int, rates: Rates, shape: PlanShape | None) -> None:
        registry.restore_query(network, registry.registered[registered], rates, shape, registry.known)

    try:
        adopt(network, meta, arrays, add, moment)
    except (QueryError, Refusal, Cycle, SnapshotMismatch):  # another version planned it
        for registered in side.network.planned.keys() & network.planned.keys():
            network.drop_query(registered)
        return False
    main.pending = Waiting.from_table(waiting)
    return True


def _is_settled(registry: Registry, network: Network) -> bool:
    """Return whether a network goes by the present background, and its streams have not ended."""
    return network.planning.known is registry.known and not network.background.is_due and network.net.at[c.HORIZON] >= c.FOREVER


def _open_instant(network: Network, now: int) -> None:
    """Let a network that has closed all instants before `now` stand at that, as if an occurrence had come that
    concerns no query.
    """
    at = network.net.at
    at[c.NOW], at[c.MOST_NOW] = now, at[c.MOST_MADE]
    at[c.SEEN_MOST], at[c.SEEN_FIRST] = max(at[c.SEEN_MOST], at[c.SEEN_N]), at[c.SEEN_FIRST] + at[c.SEEN_N]
    at[c.SEEN_N] = 0


def _find_met(network: Network) -> set[tuple[object, ...]]:
    """Return the occurrences that the open instant has met."""
    names = {number: name for name, number in network.slots.streams.numbers.items() if name in network.reads}
    seen = network.net.seen[: network.net.at[c.SEEN_N]]
    rows = seen[seen[:, c.SEEN_TAG] < 0][:, [c.SEEN_TAG, c.SEEN_START, *range(c.SEEN_VAR, c.SEEN_VAR + 4)]].tolist()
    return {(names[stream], *terms) for tag, *terms in rows if (stream := (-1 - tag) % c.MOST_STREAMS) in names}


# ---------------------------------------------------------------- what waits for time
class _Queue(NamedTuple):
    """Holds the occurrences of a stream that wait in a network, and the entry after which its first reader reads there."""

    table: Ints
    read_after: int


def _unite_waiting(main: ScheduledNetwork, side: ScheduledNetwork) -> Ints | None:
    """Return what waits for time in two networks, with the first one's numbers of streams.

    Return None if a query reads what its network lacks.
    """
    numbers, parts = main.network.slots.streams, list[Ints]()
    fuller, other = (side, main) if side.network.slots.graphs_after < main.network.slots.graphs_after else (main, side)
    for name in main.network.reads | side.network.reads:
        queues = [_find_queue(member, name) for member in (fuller, other) if name in member.network.reads]
        table = queues[0].table if len(queues) == 1 else _unite_queues(*queues)
        if table is None:
            return None
        table[c.IN_STREAM] = numbers.number_stream(name)
        parts.append(table)
    table = np.concatenate(parts, axis=1)
    return table.take(np.argsort(table[c.IN_SINCE], kind="stable"), axis=1)


def _find_queue(member: ScheduledNetwork, name: str) -> _Queue:
    table, network = member.pending.table, member.network
    readers = [planned.source.reads_after for planned in network.planned.values() if name in planned.source.query.streams]
    return _Queue(table[:, table[c.IN_STREAM] == network.slots.streams.numbers[name]], min(readers))


def _unite_queues(fuller: _Queue, other: _Queue) -> Ints | None:
    """Return what waits in either queue, once, and as the first one has it, in which the names of graphs are whole."""
    if np.array_equal(fuller.table[_KEY], other.table[_KEY]):  # as mostly, and so without a look at each
        return fuller.table
    if max(fuller.table.shape[1], other.table.shape[1]) > MOST_COMPARED:
        return None
    first, second = (_number_rows(queue.table) for queue in (fuller, other))
    lacking, more = [first[key] for key in first.keys() - second.keys()], sorted(second[key] for key in second.keys() - first.keys())
    if (fuller.table[c.IN_SINCE, lacking] > other.read_after).any() or (other.table[c.IN_SINCE, more] > fuller.read_after).any():
        return None
    return np.concatenate([fuller.table, other.table[:, more]], axis=1)


def _number_rows(table: Ints) -> dict[tuple[int, ...], int]:
    """Return the column of each occurrence by what it is. Equal ones, which are in several graphs, are counted."""
    copies, found = Counter[tuple[int, ...]](), dict[tuple[int, ...], int]()
    for k, key in enumerate(map(tuple, table[_KEY].T.tolist())):
        found[*key, copies[key]] = k
        copies[key] += 1
    return found
