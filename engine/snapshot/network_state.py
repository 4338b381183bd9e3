"""This module writes and restores a network's part of a snapshot.

A snapshot has the goals and the states of the queries by name; programs and indexes are made anew.

A place is (query, node, side): the query by its place in the list, its node as the query's own plan numbers it. So
the rows of other queries, ones that were dropped among them, leave no trace, and neither do hashes, links and the
order of columns.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.background.reasoning.rdfs_schema import DOMAIN, VOCABULARY, Schema, Statement, schema_stating
from engine.background.reasoning.stream_entailment import Entailment
from engine.errors import SnapshotMismatch
from engine.expressions.evaluator import parse_term
from engine.kernel.state import layout as c
from engine.kernel.state.arrays import read_whole, width_of
from engine.native.entries import enter_goals, enter_rows, read_ages, read_goals, restore_seen, sweep_stores
from engine.network.network import Network
from engine.network.placed_query import Planned
from engine.network.shares import Moment, SharedSubplan
from engine.physical_plan.batched_groups import DeferredCollector
from engine.physical_plan.join_trees import Linear, PlanShape, kept_shape, shape_again
from engine.planner.builder.join_order import Rates
from epsparql.deferred_methods import dataclass
from epsparql.terms import Term

Ints = NDArray[np.int64]

ROW = {"start": c.START, "end": c.END}
"""These columns of a row, beside its variables, say what the row is; the other columns link it."""
QUERY = {"open": c.Q_OPEN, "after": c.Q_AFTER, "instant": c.Q_INSTANT, "derived": c.Q_DERIVED, "t0": c.Q_T0}
"""These columns say how far a query is. The rest of its row belongs to the program or counts goals."""
QUERY_SINCE = {"made": c.Q_MADE, "made at": c.Q_MADE_AT}
"""These columns also say how far a query is; snapshots of this format may lack them."""
COUNTS = slice(c.TAKEN, c.REFUSED + 1)
"""These columns of a store count rows for those who look at a plan; snapshots of this format may lack them."""
AT_SINCE = {"most now": c.MOST_NOW}
"""These cells also say how far the run is; snapshots of this format may lack them."""
AT = {"now": c.NOW, "entry": c.ENTRY, "late": c.LATE, "horizon": c.HORIZON}
"""These cells say how far the run is between feeds."""

WAITS = {
    "left": c.DECIDE_LEFT,
    "right": c.DECIDE_RIGHT,
    "absent": c.DECIDE_BLOCKER,
    "order": c.ORDER,
    "left choice": c.LEFT_CHOICE,
    "serve": c.SERVE,
    "right choice": c.RIGHT_CHOICE,
    "settle": c.SETTLE,
    "settle right": c.SETTLE_RIGHT,
    "youngest": c.YOUNGEST,
}
"""These are the reasons for which work waits at its node."""
FEED = {
    "stream": c.IN_STREAM, "s": c.IN_S, "p": c.IN_P, "o": c.IN_O, "g": c.IN_G, "start": c.IN_START, "end": c.IN_END, "since": c.IN_SINCE,
    "kind": c.IN_KIND,
}  # fmt: skip
"""These columns hold what is known of an occurrence that waits for time. Older snapshots have no kinds."""
TIMER = {"due": c.T_DUE, "latest": c.T_LATEST}
AddQuery = Callable[[int, Rates, PlanShape | None], None]
"""It puts a query, by its registration, its rates and the shape of its plan, into a network."""
_AT_ONCE = 1 << 16  # rows that are entered at once: room is made in all pools


def snapshot_network(network: Network, chosen: Sequence[Planned] | None = None) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the state between feeds of a network, or of some of its queries: a part that is fit for JSON, and arrays
    by name.
    """
    net = network.net
    assert not net.at[c.DEPTH]
    assert not net.at[c.PARKED]
    sweep_stores(network.arrays.address, 0, min(len(net.stores), c.SIDES * len(net.nodes)))
    queries = list(network.planned.values() if chosen is None else chosen)
    shares = network.host.shares.list_shares(queries)
    places = NodePlaces.from_queries(network, [*queries, *(share.stands for share in shares)])
    meta = {
        "row": list(ROW),
        "waits": list(WAITS),
        "timers": list(TIMER),
        "streams": network.slots.streams.numbers,
        "at": {name: int(net.at[cell]) for name, cell in (AT | AT_SINCE).items()},
        "began": network.arrays.began,
        "queries": [_query(network, planned) for planned in queries],
        "collectors": [_collector(network, places, node) for node in network.collectors.placed if places.query[node] != c.NONE],
        "outgoing": _stated(network.slots.scans.outgoing),
        "shares": [_share(share, queries) for share in shares],
    }
    stores, numbers, goals = _goals(network)
    if chosen is not None:
        stores, numbers, goals = (part[places.query[stores // c.SIDES] != c.NONE] for part in (stores, numbers, goals))
    place_of = np.full(len(net.rows), c.NONE, np.int64)
    place_of[numbers] = np.arange(len(numbers))
    waiting, seen = net.waiting[: net.at[c.WAITING]], net.seen[: net.at[c.SEEN_N]]
    waiting = waiting[places.query[waiting[:, c.FRAME_NODE]] != c.NONE]
    seen = seen[places.stand(seen[:, c.SEEN_TAG]) & (seen[:, c.SEEN_REPORT] == -c.BIG)]  # reports have been given
    facts = [net.facts[first : first + n] for first, n in (net.queries[p.number, [c.Q_FACTS_AT, c.Q_FACTS_N]].tolist() for p in queries)]
    arrays = {
        "observed": network.arrays.observed,
        "goals": goals,
        "goals.places": places.of_stores(stores),
        "goals.marked": net.links[numbers, c.MARKED] if len(net.links) else np.zeros(0, np.int64),
        "waiting": read_whole(net, waiting[:, c.FRAME_ROW])[:, _columns(network, list(ROW))],
        "waiting.places": places.of_nodes(waiting[:, c.FRAME_NODE], _named(waiting[:, c.FRAME_SIDE])),
        "waiting.goals": place_of[waiting[:, c.FRAME_ROW]],
        "met": seen[:, [c.SEEN_START, *range(c.SEEN_VAR, seen.shape[1])]],
        "met.places": places.of_tags(seen[:, c.SEEN_TAG]),
        "facts": np.concatenate([rows[:, c.F_TRIPLE :] for rows in facts]) if facts else np.zeros((0, 1), np.int64),
        "facts.places": np.concatenate([places.of_nodes(rows[:, c.F_NODE], rows[:, c.F_SIDE]) for rows in facts])
        if facts
        else np.zeros((0, 3), np.int64),
    }
    return meta, arrays


def restore(network: Network, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], add: AddQuery) -> None:
    """Take over what `snapshot_network` gave into a new network. Raises SnapshotMismatch."""
    for name in meta["streams"]:
        network.slots.streams.number_stream(name)
    queries = _place_queries(network, meta, add)
    net = network.net
    for name, cell in AT.items():
        net.at[cell] = meta["at"][name]
    for name, cell in AT_SINCE.items():
        net.at[cell] = meta["at"].get(name, net.at[cell])
    if meta.get("outgoing") is not None:
        network.slots.scans.entail_by(Entailment(schema_stating(_statements(meta["outgoing"]))))
    network.arrays.restore_observed(arrays["observed"])
    network.arrays.began = meta.get("began")
    _restore_queries(network, queries, meta, arrays)


def adopt(network: Network, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], add: AddQuery, moment: Moment) -> None:
    """Take over the queries that `snapshot_network` gave into a network that has others, and stands at the same
    instant. Raises SnapshotMismatch.

    Queries of one moment are of one moment still: `moment`, or one that differs in its number alone. What the instant
    has met of the streams is left out, as the network has its own.
    """
    known = {tuple(each["moment"]) for each in (*meta["queries"], *meta["shares"]) if each["moment"] is not None}
    now = {each: [moment.seen - k, moment.waiting, moment.latest] for k, each in enumerate(sorted(known))} | {None: None}

    def as_of_now(parts: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        return [{**each, "moment": now[each["moment"] and tuple(each["moment"])]} for each in parts]

    of_queries = arrays["met.places"][:, 0] != c.NONE
    met = {name: arrays[name][of_queries] for name in ("met", "met.places")}
    meta = {**meta, "queries": as_of_now(meta["queries"]), "shares": as_of_now(meta["shares"])}
    _restore_queries(network, _place_queries(network, meta, add), meta, {**arrays, **met})


def _place_queries(network: Network, meta: Mapping[str, Any], add: AddQuery) -> list[Planned]:
    """Plan the queries of a snapshot at places of their own.

    Raises SnapshotMismatch if a plan is another one than it was.
    """
    if unknown := {*meta["row"]} - ROW.keys():
        raise SnapshotMismatch(f"goals have columns that this version does not know: {', '.join(sorted(unknown))}")
    for query in meta["queries"]:
        add(query["registered"], query["rates"], _shape(query))
        if network.planned[query["registered"]].form != query["form"]:
            raise SnapshotMismatch(f"query {network.planned[query['registered']].source.name} is planned otherwise by this version")
    return [network.planned[query["registered"]] for query in meta["queries"]]


def _restore_queries(network: Network, queries: Sequence[Planned], meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Let queries that have just been placed stand as a snapshot has them."""
    net = network.net
    for planned, query in zip(queries, meta["queries"], strict=True):
        for name, column in QUERY.items():
            net.queries[planned.number, column] = query["stands"][name]
        for name, column in QUERY_SINCE.items():
            net.queries[planned.number, column] = query["stands"].get(name, 0)
        network.quotas.set_quota(planned.registered, network.quotas.get_quota(planned.registered)[0], query["held"])
        _restore_counts(network, planned, query.get("counts", ()))
        if (moment := _moment(query.get("moment"))) is not None:
            network.sharing.moments[planned.registered] = moment
    shares = [_shared(network, share, queries) for share in meta.get("shares", ())]
    places = NodePlaces.from_queries(network, [*queries, *(share.stands for share in shares)])
    network.slots.restore_facts(_facts(places, queries, arrays["facts.places"], arrays["facts"]))
    _enter(network, places, meta, arrays)
    for query, node, completed, timer, state, tables in meta["collectors"]:
        at = places.node(query, node)
        collecting = network.collectors.placed[at]
        collecting.collector.restore(state)
        if isinstance(collecting.collector, DeferredCollector):
            collecting.collector.restore_tables(tables)
        if collecting.timer is not None:
            network.net.timers[collecting.timer, [TIMER[name] for name in meta["timers"]]] = timer
        if completed:
            network.collectors.completed.add(at)
    network.sharing.list_restored(queries)
    for planned in queries:
        network.quotas.deal_goals(planned)


def _stated(schema: Schema[Term] | None) -> list[list[str]] | None:
    """Return a schema's statements as JSON."""
    return None if schema is None else [[str(s), str(VOCABULARY[relation]), str(value)] for s, relation, value in schema.statements]


def _statements(stated: Sequence[Sequence[str]]) -> Iterator[Statement[Term]]:
    relations = {str(VOCABULARY[relation]): relation for relation in range(DOMAIN, len(VOCABULARY))}
    return ((parse_term(s), relations[relation], parse_term(value)) for s, relation, value in stated)


@dataclass(frozen=True, slots=True, eq=False)
class NodePlaces:
    """Maps the nodes of a network to the nodes of its queries."""

    first: Ints  # by query, its first node
    query: Ints  # by node, or c.NONE

    @classmethod
    def from_queries(cls, network: Network, queries: Sequence[Planned]) -> "NodePlaces":
        query = np.full(len(network.net.nodes), c.NONE, np.int64)
        for k, planned in enumerate(queries):
            query[planned.at.node : planned.after.node] = k
        return cls(np.array([planned.at.node for planned in queries], np.int64), query)

    def node(self, query: int, node: int) -> int:
        return int(self.first[query]) + node

    def of_nodes(self, nodes: Ints, sides: Ints) -> Ints:
        query = self.query[nodes]
        return np.column_stack([query, nodes - self.first[query] if len(nodes) else nodes, sides]).astype(np.int64)

    def of_stores(self, stores: Ints) -> Ints:
        """Return the place and the number of goals of each run of goals of one store."""
        found, counts = np.unique(stores, return_counts=True)
        return np.column_stack([self.of_nodes(found // c.SIDES, found % c.SIDES), counts])

    def stand(self, tags: Ints) -> NDArray[np.bool_]:
        """Return which tags belong to a stream or to a query here.

        A restored network whose queries had all failed has no nodes at all.
        """
        found: NDArray[np.bool_] = tags < 0
        if len(self.query):
            found |= (tags < c.BIG) & (self.query[np.maximum(tags, 0) % c.RIGHT_TAG] != c.NONE)
        return found

    def of_tags(self, tags: Ints) -> Ints:
        """Return the places of what was met for the first time.

        A place is a solution at a side of a node, or an occurrence of a stream. For an occurrence the query is
        c.NONE, and the stream stands for the node.
        """
        timed = np.maximum(tags, 0)
        of_nodes = self.of_nodes(timed % c.RIGHT_TAG, timed // c.RIGHT_TAG) if len(self.first) else np.zeros((len(tags), 3), np.int64)
        return np.where((tags < 0)[:, None], np.column_stack([np.full_like(tags, c.NONE), -1 - tags, np.zeros_like(tags)]), of_nodes)

    def find_nodes(self, places: Ints) -> Ints:
        found: Ints = self.first[places[:, 0]] + places[:, 1] if len(self.first) else np.zeros(len(places), np.int64)  # all of no query
        return found


def _columns(network: Network, row: Sequence[str]) -> Ints:
    """Return the columns of rows that are kept, in the order of `row` and then of the variables."""
    return np.array([*(ROW[name] for name in row), *range(c.VAR, width_of(network.net))], np.int64)


def _query(network: Network, planned: Planned) -> dict[str, Any]:
    row = network.net.queries[planned.number]
    stands = {name: int(row[column]) for name, column in (QUERY | QUERY_SINCE).items()}
    _, held = network.quotas.get_quota(planned.registered)
    return {
        "registered": planned.registered,
        "form": planned.form,
        "rates": dict(planned.rates),
        "shape": None if planned.shape is None else kept_shape(planned.shape),
        "stands": stands,
        "held": held,
        "moment": _instant(network.sharing.moments.get(planned.registered)),
        "counts": _counted(network, planned).tolist(),
    }


def _counted(network: Network, planned: Planned) -> Ints:
    """Return how many rows each store of a query's nodes has taken in, and each node has given and refused."""
    return network.net.stores[c.SIDES * planned.at.node : c.SIDES * planned.after.node, COUNTS]


def _restore_counts(network: Network, planned: Planned, counted: Sequence[Sequence[int]]) -> None:
    """Take over the counts of rows, which older snapshots lack."""
    first = c.SIDES * planned.at.node
    if counted:
        network.net.stores[first : first + len(counted), COUNTS] = np.array(counted, np.int64)


def _shape(query: Mapping[str, Any]) -> PlanShape | None:
    """Return the shape of a query's chain of SEQs; older versions have two shapes. What has none is planned as written."""
    if "shape" not in query:
        return Linear.FROM_END if query["turned"] else Linear.WRITTEN
    return Linear.WRITTEN if query["shape"] is None else shape_again(query["shape"])


def _share(share: SharedSubplan, queries: Sequence[Planned]) -> dict[str, Any]:
    """Return a share as the queries that read it: their places in the list, and the roots of their subplans."""
    places = {planned.registered: k for k, planned in enumerate(queries)}
    readers = [[places[reading.registered], reading.subplan.root] for reading in share.readings if reading.registered in places]
    return {"form": share.stands.form, "moment": _instant(share.moment), "readers": readers}


def _shared(network: Network, share: Mapping[str, Any], queries: Sequence[Planned]) -> SharedSubplan:
    """Make queries share again. Raises SnapshotMismatch."""
    readers = [(queries[k], queries[k].subplans[root]) for k, root in share["readers"]]
    if len({subplan.digest for _, subplan in readers}) > 1:
        raise SnapshotMismatch("this version shares other parts of queries")
    return network.sharing.restore_share(readers, _moment(share["moment"]), share["form"])


def _instant(moment: Moment | None) -> list[int] | None:
    return None if moment is None else [moment.seen, moment.waiting, moment.latest]


def _moment(kept: Sequence[int] | None) -> Moment | None:
    return None if kept is None else Moment(*kept)


def _named(sides: Ints) -> Ints:
    """Return frames' sides as their places among the names."""
    place = np.zeros(max(WAITS.values()) + 1, np.int64)
    place[list(WAITS.values())] = np.arange(len(WAITS))
    return place[sides]


def _goals(network: Network) -> tuple[Ints, Ints, Ints]:
    """Return the store and row of each goal, with what its columns hold.

    Goals of a store are in order of end; where a policy orders them otherwise, they are in the order of its chains.
    """
    columns = _columns(network, list(ROW))
    n = int(network.net.stores[:, c.COUNT].sum())
    stores, numbers, goals = np.empty(n, np.int64), np.empty(n, np.int64), np.empty((n, len(columns)), np.int64)
    read_goals(network.arrays.address, columns, 0, len(network.net.stores), stores, numbers, goals)
    if not len(network.net.links):
        return stores, numbers, goals
    ages = np.zeros(len(network.net.rows), np.int64)
    read_ages(network.arrays.address, ages)
    timeless = goals[:, 0] > goals[:, 1]
    order = np.lexsort((np.where(timeless, 0, ages[numbers]), np.where(timeless, c.BIG, goals[:, 1]), stores))
    return stores, numbers[order], goals[order]


def _collector(network: Network, places: NodePlaces, node: int) -> list[object]:
    collecting = network.collectors.placed[node]
    query = int(places.query[node])
    timer = None if collecting.timer is None else network.net.timers[collecting.timer, list(TIMER.values())].tolist()
    collector = collecting.collector
    tables = collector.tables() if isinstance(collector, DeferredCollector) else {}
    return [query, node - int(places.first[query]), node in network.collectors.completed, timer, collector.state(), tables]


# ---------------------------------------------------------------- back
def _facts(places: NodePlaces, queries: Sequence[Planned], at: Ints, facts: Ints) -> list[tuple[Planned, Ints]]:
    """Return, for each query, the facts that it is yet to take in, as rows of the network's table of facts."""
    rows = np.column_stack([places.find_nodes(at), at[:, 2], facts]) if len(at) else np.zeros((0, c.F_VAR), np.int64)
    return [(planned, rows[at[:, 0] == k]) for k, planned in enumerate(queries)]


def _enter(network: Network, places: NodePlaces, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Give rows to the goals, to what waits for the close of the instant, and to what it has met.

    Link them in this kernel.
    """
    at = arrays["goals.places"]
    stores = np.repeat((c.SIDES * places.find_nodes(at) + at[:, 2]).astype(np.int32), at[:, 3])
    goals, marked = (np.ascontiguousarray(arrays[name]) for name in ("goals", "goals.marked"))
    ends = goals[:, meta["row"].index("end")]
    in_order = bool((ends[1:] >= ends[:-1]).all())
    order = np.zeros(0, np.int64) if in_order else np.argsort(ends, kind="stable")  # as they came: chains of several stores fall in end too
    numbers = np.empty(len(goals), np.int32)
    network.arrays.reserve_goals(len(goals))
    enter_goals(network.arrays.address, _columns_of(network, meta["row"], goals), goals, stores, order, marked, numbers)
    network.arrays.spread_heads()
    met = arrays["met.places"]
    tags = np.where(met[:, 0] == c.NONE, -1 - met[:, 1], places.find_nodes(np.maximum(met, 0)) + c.RIGHT_TAG * met[:, 2])
    restore_seen(network.arrays.address, tags, _enter_rows(network, ["start"], arrays["met"]))
    _wait(network, places, meta, arrays, numbers)


def _wait(network: Network, places: NodePlaces, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], goals: NDArray[np.int32]) -> None:
    """Restore work that waits for the close of the instant, with a goal among those entered as `goals`, or with a row
    of its own.
    """
    at, goal = arrays["waiting.places"], arrays["waiting.goals"]
    own = goal == c.NONE
    frames = np.zeros((len(at), c.FRAME_WIDTH), np.int64)
    frames[:, c.FRAME_NODE] = places.find_nodes(at)
    frames[:, c.FRAME_SIDE] = np.array([WAITS[name] for name in meta["waits"]], np.int64)[at[:, 2]]
    frames[~own, c.FRAME_ROW] = goals[goal[~own]]
    frames[own, c.FRAME_ROW] = _enter_rows(network, meta["row"], arrays["waiting"][own])
    network.arrays.make_room(len(frames))
    network.arrays.spread_heads()
    first = int(network.net.at[c.WAITING])
    network.net.waiting[first : first + len(frames)] = frames
    network.net.at[c.WAITING] = first + len(frames)


def pending(table: Ints) -> Ints:
    """Return the occurrences that wait for time, in the order of `FEED`."""
    return np.ascontiguousarray(table[list(FEED.values())].T)


def pending_again(names: Sequence[str], rows: Ints) -> Ints:
    """Return occurrences that wait for time in the columns of a feed."""
    table = np.zeros((c.FEED_HEIGHT, len(rows)), np.int64)
    table[c.IN_KIND] = c.OCCURRENCE
    table[[FEED[name] for name in names]] = rows.T
    return table


def _enter_rows(network: Network, row: Sequence[str], cells: Ints) -> Ints:
    """Enter rows with these cells and return their numbers."""
    columns = _columns_of(network, row, cells)
    numbers = np.empty(len(cells), np.int64)
    for first in range(0, len(cells), _AT_ONCE):
        part = np.ascontiguousarray(cells[first : first + _AT_ONCE])
        network.arrays.make_room(len(part))
        network.arrays.spread_heads()
        enter_rows(network.arrays.address, columns, part, numbers[first : first + _AT_ONCE])
    return numbers


def _columns_of(network: Network, row: Sequence[str], cells: Ints) -> Ints:
    """Return the columns that cells of a snapshot go to: those named in `row` and then variables.

    Columns that it lacks are zero.
    """
    variables = min(cells.shape[1] - len(row), width_of(network.net) - c.VAR)
    assert not cells[:, len(row) + variables :].any(), "columns of wider queries, which are gone"
    return np.array([*(ROW[name] for name in row), *range(c.VAR, c.VAR + variables)], np.int64)
