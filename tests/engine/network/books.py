"""The books of a network: each row of its tables is somebody's, once, and all lists say the same."""

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from engine.alpha.alpha_nodes import widest
from engine.alpha.free_rows import Ranges
from engine.engine import Engine
from engine.kernel.state import layout as c
from engine.kernel.state.arrays import margin, read_whole
from engine.network.network import Network
from engine.network.placed_query import Planned, list_reads, list_scans
from engine.physical_plan.common_subplans import find_subplans
from engine.physical_plan.plan import TABLES, placed_edges, placed_nodes, ranges_of
from engine.physical_plan.plan_signature import sign_plan

Ints = NDArray[np.int64]


def check_books(engine: Engine) -> None:
    """Check the networks of an engine between feeds."""
    for member in engine.registry.members:
        network = member.network
        _check_rows(network)
        _check_lists(network)
        _check_readers(network)
        _check_shares(network)
        _check_goals(network)
        if network.background.coming is None:
            _check_programs(network)


def _placed(network: Network) -> list[Planned]:
    """Queries and shares have nodes."""
    return [*network.planned.values(), *(share.stands for share in network.host.shares.numbered.values())]


def ranges_around(used: Iterable[tuple[int, int]]) -> Ranges:
    """Return the ranges of a table in which (first, n) rows each are in use."""
    ranges = Ranges()
    for first, n in sorted(used):
        if n:
            if first > ranges.end:
                ranges.free.append((ranges.end, first))
            ranges.end = first + n
    return ranges


def _check_rows(network: Network) -> None:
    """Each row of a table is one query's or is free."""
    net, shares = network.net, network.host.shares.numbered.values()
    assert network.slots.dropped == []
    used = {name: [ranges_of(planned.at, planned.after)[name] for planned in _placed(network)] for name in TABLES}
    used["edges"] += [share.edges for share in shares]
    used["moves"] += [(reading.moves, len(reading.subplan.columns)) for share in shares for reading in share.readings]
    used["queries"] = [(planned.number, 1) for planned in _placed(network)]
    used["reads"] = [(k, 1) for k in np.flatnonzero(net.reads[: network.arrays.used["reads"].end, c.R_QUERY] != c.NONE).tolist()]
    for name, ranges in used.items():
        assert network.arrays.used[name] == ranges_around(ranges), name
        assert sum(n for _, n in ranges) == len({k for first, n in ranges for k in range(first, first + n)}), name
        assert network.arrays.used[name].end <= len(getattr(net, name)), name
    for first, after in network.arrays.used["nodes"].free:
        assert (net.nodes[first:after, c.KIND] == c.DROPPED).all()
    for first, after in network.arrays.used["queries"].free:
        assert net.queries[first:after, c.Q_OPEN].all(), "no occurrence opens it"
    for planned in _placed(network):
        assert (net.nodes[planned.at.node : planned.after.node, c.QUERY] == planned.number).all()
        assert (net.nodes[planned.at.node : planned.after.node, c.KIND] != c.DROPPED).all()
        for first, n in net.queries[planned.number, [c.Q_FACTS_AT, c.Q_FACTS_N]].reshape(1, 2).tolist():
            assert not n or first + n <= network.arrays.used["facts"].end <= len(net.facts)
            assert np.isin(net.facts[first : first + n, c.F_NODE], range(planned.at.node, planned.after.node)).all()


def _check_lists(network: Network) -> None:
    """All that is listed of a query is listed of each that is there, and of no other."""
    slots, planned, host = network.slots, network.planned, network.host
    assert slots.numbered == {each.number: each for each in planned.values()}
    assert slots.rules == {k: each for k, each in planned.items() if each.writes is not None}
    assert slots.with_instants == {k: each for k, each in planned.items() if each.instants}
    assert slots.inquiries.keys() == {k for each in _placed(network) for k in range(each.at.ask, each.after.ask)}
    assert network.planning.knows.keys() == network.planning.answers.keys() == planned.keys()
    assert host.quotas._quotas.keys() == host.quotas._held.keys() <= planned.keys()
    assert network.sharing.moments.keys() <= planned.keys()
    at = network.net.at
    assert not (at[c.FED_ALONE] and slots.rules), "what rules derive comes between occurrences"
    assert at[c.LATEST_FROM] >= max((each.source.reads_after for each in planned.values()), default=at[c.LATEST_FROM])
    own, net = {node for each in planned.values() for node in range(each.at.node, each.after.node)}, network.net
    timers = net.timers[: net.at[c.TIMER_NODES], c.T_NODE].tolist()
    kinds, is_idle = net.nodes[:, c.KIND], (net.nodes[:, c.DEFERRED] != 0) & (net.nodes[:, c.STEP] == 0)
    acting = (kinds == c.WITHOUTFOR) | ((kinds == c.COLLECT) & ~is_idle)
    assert sorted(timers) == sorted(own.intersection(np.flatnonzero(acting).tolist()))
    collecting = own.intersection(np.flatnonzero(np.isin(kinds, (c.COLLECT, c.ONCE))).tolist())
    assert network.collectors.placed.keys() == collecting
    assert network.collectors.completed <= collecting
    for node, each in network.collectors.placed.items():
        assert (each.node, each.registered) == (node, next(p.registered for p in planned.values() if p.at.node <= node < p.after.node))
        assert each.timer == (timers.index(node) if node in timers else None)


def _check_readers(network: Network) -> None:
    """The lists by which an occurrence finds its readers have each, once, and so have the tables of the background."""
    net, streams, scans = network.net, network.slots.streams, network.slots.scans.scans
    read = {name: [each for each in network.planned.values() if name in each.source.query.streams] for name in streams.numbers}
    assert streams.reads == {name for name, readers in read.items() if readers}
    for name, readers in read.items():
        pending, k, _ = net.streams[streams.numbers[name]].tolist()
        found = list[int]()
        while k != c.NONE:
            query, k = net.reads[k].tolist()
            found.append(query)
        assert sorted(found) == sorted(each.number for each in readers)
        assert pending == sum(bool(net.queries[each.number, c.Q_OPEN] == 0 or net.queries[each.number, c.Q_FACTS_N]) for each in readers), name
    expected = Counter[tuple[int, int, int, int, int]]()
    for each in _placed(network):
        shared = {node for reading in network.host.shares.readings.get(each.registered, ()) for node in reading.subplan.nodes}
        expected.update((each.number, each.at.node + node, side, *want) for node, side, want, _ in each.scans if node not in shared)
    found_scans = Counter[tuple[int, int, int, int, int]]()
    for want, number in scans.wants.items():
        first, n = net.wants[number].tolist()
        assert n == scans.counts[number] > 0
        for row in net.alpha[first : first + n].tolist():
            found_scans[row[c.A_QUERY], row[c.A_NODE], row[c.A_SIDE], *want] += 1
        assert (np.diff(net.alpha[first : first + n, c.A_S]) >= 0).all(), "in order of subjects"
    assert found_scans == expected
    tables = network.slots.lookups._tables
    for each in network.planned.values():
        for node in range(each.at.node, each.after.node):
            look = int(net.nodes[node, c.LOOK])
            assert (look == c.NONE) == (node not in tables), "a share looks nothing up"
            assert look == c.NONE or net.lookups[look].tolist() == np.asarray(tables[node].row).tolist()
    assert tables.keys() <= {node for each in network.planned.values() for node in range(each.at.node, each.after.node)}


def _check_shares(network: Network) -> None:
    """Shares and their readers know each other; who carries out a subplan is listed as doing so."""
    net, shares, sharing = network.net, network.host.shares, network.sharing
    assert {number: share for each in sharing._shared.values() for share in each for number in [share.number]} == shares.numbered
    assert all(sharing._shared.values())
    assert all(sharing._alone.values())
    readings = [reading for share in shares.numbered.values() for reading in share.readings]
    assert sorted(map(id, readings)) == sorted(id(reading) for each in shares.readings.values() for reading in each)
    for share in shares.numbered.values():
        assert share.readings
        first, n = share.edges
        assert net.nodes[share.stands.at.node, [c.EDGE_AT, c.EDGE_N]].tolist() == [first, n]
        assert net.edges[first : first + n].tolist() == [[reading.root, c.LEFT] for reading in share.readings]
        for reading in share.readings:
            assert reading.share is share
            planned = network.planned[reading.registered]
            assert reading.first == planned.at.node
            root = net.nodes[reading.root, [c.KIND, c.FILTER, c.MOVE_AT, c.MOVE_N, c.KEEP, c.ONCE_ONLY]].tolist()
            assert root == [c.MOVE, c.NONE, reading.moves, len(reading.subplan.columns), 0, 0]
            assert net.moves[reading.moves : reading.moves + root[3]].tolist() == [
                list(pair) for pair in zip(share.columns, reading.subplan.columns, strict=True)
            ]
            assert not net.stores[c.SIDES * reading.nodes, c.COUNT].any()
    alone = {(digest, *key) for digest, each in sharing._alone.items() for key in each}
    carried = set()
    for registered in sharing.moments:
        planned, read = network.planned[registered], shares.readings.get(registered, ())
        inside = {node for reading in read for node in reading.subplan.nodes}
        carried |= {(subplan.digest, registered, root) for root, subplan in planned.subplans.items() if root not in inside}
    assert alone == carried


def _check_goals(network: Network) -> None:
    """Goals are in their stores, in order, on the chains of their hashes; all other rows are free or wait."""
    net, at = network.net, network.net.at
    assert not at[[c.DEPTH, c.PARKED, c.GATHERED, c.DEFERRED_N, c.FOUND]].any()
    rows, goals, timeless, of_query = read_whole(net, np.arange(len(net.rows))), list[int](), 0, Counter[int]()
    for store in np.flatnonzero(net.stores[:, c.COUNT]).tolist():
        timed, without = list(_follow(rows, net.stores[store, c.HEAD])), list(_follow(rows, net.stores[store, c.TIMELESS_HEAD]))
        assert net.stores[store, c.COUNT] == len(timed) + len(without)
        assert not timed or timed[-1] == net.stores[store, c.TAIL]
        assert (np.diff(rows[timed, c.END]) >= 0).all()
        assert (rows[without, c.START] > rows[without, c.END]).all()
        goals += [*timed, *without]
        timeless += len(without)
        of_query[int(net.nodes[store // c.SIDES, c.QUERY])] += len(timed) + len(without)
    assert at[c.TIMELESS_GOALS] == timeless
    for each in _placed(network):
        assert net.queries[each.number, c.Q_GOALS] == of_query.pop(each.number, 0)
    assert not of_query
    chained = [*_chained(rows, net.heads, in_order=not len(net.links)), *_chained(rows, net.timeless, in_order=False)]
    assert sorted(chained) == sorted(goals)
    waiting = net.waiting[: at[c.WAITING]]
    own = waiting[(waiting[:, c.FRAME_SIDE] < c.ORDER) | (waiting[:, c.FRAME_SIDE] == c.RIGHT_CHOICE), c.FRAME_ROW].tolist()
    free = net.free[: at[c.FREE]].tolist()
    assert sorted([*goals, *own, *free]) == list(range(at[c.USED]))


def _follow(rows: Ints, goal: int) -> Iterator[int]:
    while goal != c.NONE:
        yield int(goal)
        goal = rows[goal, c.QUEUE]


def _chained(rows: Ints, heads: NDArray[np.int32], *, in_order: bool) -> Iterator[int]:
    """The goals on chains, each from its head; an older one does not end later, unless a policy orders them."""
    for head in np.flatnonzero(heads != c.NONE).tolist():
        goal, newer = int(heads[head]), c.NONE
        while goal != c.NONE:
            assert rows[goal, c.HASH] & (len(heads) - 1) == head
            assert rows[goal, c.NEWER] == newer
            assert newer == c.NONE or not in_order or rows[goal, c.END] <= rows[newer, c.END]
            yield goal
            newer, goal = goal, int(rows[goal, c.OLDER])


def _check_programs(network: Network) -> None:
    """Each query is as a plan over the present background has it, or the one that it rests on, if it tells the same."""
    net, known = network.net, network.planning.known
    for planned in network.planned.values():
        assert network.planning.knows[planned.registered] is known
        fragment = network.planning.plan_anew(planned)
        assert planned.strict == fragment.strict
        assert (planned.shape, planned.form, planned.scans) == (fragment.shape, sign_plan(fragment), list_scans(fragment))
        assert (planned.subplans, planned.reads) == (find_subplans(fragment), list_reads(fragment))
        nodes, there = placed_nodes(fragment, planned.at, planned.number), net.nodes[planned.at.node : planned.after.node].copy()
        roots = [reading.root - planned.at.node for reading in network.host.shares.readings.get(planned.registered, ())]
        for table in (nodes, there):
            table[:, [c.STRATUM, c.LOOK, c.TIMER]] = 0
            table[np.ix_(roots, [c.KIND, c.FILTER, c.MOVE_AT, c.MOVE_N, c.KEEP, c.ONCE_ONLY])] = 0
        assert there.tolist() == nodes.tolist()
        assert net.edges[planned.at.edge : planned.after.edge].tolist() == placed_edges(fragment, planned.at).tolist()
        tables = {planned.at.node + node: known.table(lookup) for node, lookup in fragment.lookups.items() if lookup is not None}
        own = range(planned.at.node, planned.after.node)
        assert {node: id(table) for node, table in network.slots.lookups._tables.items() if node in own} == {
            node: id(table) for node, table in tables.items()
        }
    if not network.slots.scans.is_margin_due:
        scans = network.slots.scans
        assert net.at[c.MARGIN] >= margin(net, widest(net) + scans._postings.widest(net)), "it counts facts that have been taken in since"
