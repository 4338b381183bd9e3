"""This module updates a query's state when the background changes.

Timeless goals that still have their triples stay, and partial solutions are made anew.

The query is placed once more in a network of its own, over the background as it is now and without streams. Its stores then hold every timeless
solution that there may be. What a negative part once let pass stays, whatever the part would say now. So there all solutions pass, in each way in
which they may. A timeless goal that is not among them has lost a triple that it rested on. Partial solutions of a unit (`Unit`) are found by giving
it once more what came of the stream, in order of end.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.aggregation.order_limit import ModifiersCollector
from engine.kernel.goal_maintenance import free_timeless_goals, read_goals
from engine.kernel.state import layout as c
from engine.kernel.state.arrays import to_width
from engine.network.placed_query import Planned
from engine.physical_plan.plan import Fact, Fragment, Lookup, Unit
from engine.state_size import Quota
from engine.triples.relation import addition, without

if TYPE_CHECKING:
    from engine.network.network import Network
    from engine.network.query_slots import Residents

Ints = NDArray[np.int64]
Target = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Difference:
    """Holds the difference of two plans of a query over two backgrounds: rows that they take in, and what they look up, by node of the join."""

    added: list[Fact]
    removed: list[Fact]
    more: dict[int, Ints]
    fewer: dict[int, Ints]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.more or self.fewer)

    @property
    def loses(self) -> bool:
        return bool(self.removed or self.fewer)

    @property
    def nodes(self) -> list[int]:
        return [fact.node for fact in (*self.added, *self.removed)] + [*self.more, *self.fewer]


def difference(before: Fragment, now: Fragment) -> Difference:
    """Return what differs between two plans over two backgrounds. The same plan has the same places for rows, in the same order."""
    found = Difference([], [], {}, {})
    for old, new in zip(before.facts, now.facts, strict=True):
        if old.source is None or old.source is not new.source:
            for rows, part in ((without(new.rows, old.rows), found.added), (without(old.rows, new.rows), found.removed)):
                if len(rows):
                    part.append(replace(new, rows=rows))
    for node in now.lookups:
        one, other = before.lookups[node], now.lookups[node]
        if (one is None) != (other is None) or (one is not None and other is not None and one.source is not other.source):
            for here, there, where in ((other, one, found.more), (one, other, found.fewer)):
                if here is not None and len(rows := _beyond(here, there)):
                    where[node] = rows
    return found


def _beyond(here: Lookup, there: Lookup | None) -> Ints:
    """Return the rows that one lookup has and another has not."""
    if there is None:
        return here.rows
    if addition(here.source, there.source) is not None:
        return here.source[:0, here.parts]
    more = addition(there.source, here.source)
    return without(here.rows, there.rows) if more is None else more[:, here.parts]


def _brought(network: "Network", planned: Planned, fragment: Fragment, change: Difference) -> list[Fact]:
    """Return the joins of timeless goals with what there is more to look up.

    If those rows were copied before, the copies have found their joins already.
    """
    found = []
    for node, rows in change.more.items():
        row = fragment.nodes[node]
        if row[c.KIND] != c.JOIN:
            continue  # what it once decided stands
        keys, free = (tuple(fragment.slots[at : at + n]) for at, n in ((row[c.KEY_AT], row[c.KEY_N]), (row[c.LOOK_AT], row[c.LOOK_N])))
        store = c.SIDES * (planned.at.node + node) + c.LEFT
        left = goals_of(network, store, store + 1).get(store)
        if left is None or not len(left.timeless):
            continue
        for fact in change.removed:
            if fact.node == node and fact.side == c.RIGHT:
                rows = without(rows, fact.rows[:, [fact.columns.index(column) for column in (*keys, *free)]])
        by_key: dict[tuple[int, ...], list[list[int]]] = {}
        for cells in rows.tolist():
            by_key.setdefault(tuple(cells[: len(keys)]), []).append(cells[len(keys) :])
        columns = tuple(range(c.VAR, c.VAR + len(fragment.columns)))
        joined = []
        for goal in left.timeless.tolist():
            for more in by_key.get(tuple(goal[k] for k in keys), ()):
                z = list(goal)
                for column, term in zip(free, more, strict=True):
                    z[column] = term
                joined.append(z[c.VAR : c.VAR + len(columns)])
        if joined:
            via = row[c.LOOK_VIA]
            found.append(Fact(node if via == c.NONE else via, c.EMIT if via == c.NONE else c.LEFT, True, columns, np.array(joined, np.int64)))
    return found


def held_to(network: "Network", planned: Planned, fragment: Fragment, change: Difference) -> list[Fact]:
    """Hold what a query keeps to the background for which `fragment` is its plan.

    Return what it is to take in at its next instant. It may fail by its limits.
    """
    units = [unit for unit in fragment.units if any(node in unit.nodes for node in change.nodes)]
    if change.loses or units:
        review(network, planned, fragment, units)
    if planned.registered not in network.planned:
        return []
    return _taken_in(network, planned, fragment, [*change.added, *_brought(network, planned, fragment, change)])


def _taken_in(network: "Network", planned: Planned, fragment: Fragment, added: Sequence[Fact]) -> list[Fact]:
    """Take in at once what timers look for, and return the rest, which is for the query's next instant.

    Timers decide at instants at which nothing may come.
    """
    timers = {node for node, row in enumerate(fragment.nodes) if row[c.KIND] == c.WITHOUTFOR}
    now = [fact for fact in added if any(fact.node in nodes for nodes in fragment.timed) or (fact.node in timers and fact.side == c.BLOCKER)]
    for fact in now:
        rows = np.zeros((len(fact.rows), network.net.rows.shape[1]), np.int64)
        rows[:, c.START], rows[:, c.END] = c.BIG, -c.BIG
        rows[:, fact.columns] = fact.rows
        network.take_in(rows, np.broadcast_to(np.array([planned.at.node + fact.node, fact.side], np.int64), (len(rows), 2)))
    return [fact for fact in added if not any(fact is each for each in now)]


NOTHING: Ints = np.zeros((0, 1), np.int64)
MORE = 2
"""Where negative parts let all pass, a query's timeless solutions may have this many times its limits."""
OPTIONALS = (c.OPTIONAL, c.OPTIONALSEQ, c.EQUALSOPTIONAL)


@dataclass(slots=True)
class Goals:
    """Holds the goals of one store as whole rows: the timed ones in order of end and then the timeless ones, the oldest first."""

    timed: Ints
    timeless: Ints


def goals_of(network: "Residents", first: int, after: int) -> dict[int, Goals]:
    """Return the goals of the stores from `first` to `after` (exclusive) that hold any, by store."""
    n = int(network.net.stores[first:after, c.COUNT].sum())
    width = network.net.rows.shape[1]
    stores, numbers, cells = np.empty(n, np.int64), np.empty(n, np.int64), np.empty((n, width), np.int64)
    read_goals(network.address, np.arange(width), first, after, stores, numbers, cells)
    timeless = cells[:, c.START] > cells[:, c.END]
    edges = np.flatnonzero(np.diff(stores, prepend=-1, append=-1))
    found = {}
    for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        split = low + int((~timeless[low:high]).sum())
        found[int(stores[low])] = Goals(cells[low:split], cells[split:high])
    return found


def review(network: "Network", planned: Planned, fragment: Fragment, units: Sequence[Unit]) -> None:
    """Hold the goals of a query between two instants to the background for which `fragment` is its plan; `units` are those that the change concerns."""
    first, after = c.SIDES * planned.at.node, c.SIDES * planned.after.node
    stands = goals_of(network, first, after)
    units = [unit for unit in units if any(len(stands[at].timed) for at in _stores(planned, (store for store, _ in unit.leaves)) if at in stands)]
    if not units and not any(len(goals.timeless) for goals in stands.values()):
        return
    shadow, place = _shadow(network, planned, fragment, stands)
    if shadow.failures:
        network.fail(planned, f"with the background as it is now, {shadow.failures[0].reason}")
        return
    possible = goals_of(shadow, c.SIDES * place, c.SIDES * (place + len(fragment.nodes)))
    unseen = _unseen(planned)
    for store, goals in stands.items():
        if len(goals.timeless):
            there = possible.get(store - first + c.SIDES * place)
            known = set() if there is None else set(_keys(there.timeless, unseen))
            gone = np.array([key not in known for key in _keys(goals.timeless, unseen)], np.int64)
            if gone.any():
                free_timeless_goals(network.address, store, gone[::-1].copy())
                goals.timeless = goals.timeless[gone == 0]
    for unit in units:
        _remake(network, planned, shadow, place, unit, stands)


def _stores(planned: Planned, places: Iterable[Target]) -> list[int]:
    return [c.SIDES * (planned.at.node + node) + side for node, side in places]


def _unseen(planned: Planned) -> Ints:
    """Return the columns that say what an EXISTS found, which may have been either."""
    return np.array([column for variable, column in planned.columns.items() if variable.name.startswith("_:exists@")], np.int64)


def _keys(rows: Ints, unseen: Ints) -> list[bytes]:
    cells = rows[:, c.VAR :].copy()
    cells[:, unseen - c.VAR] = 0
    width = int(np.flatnonzero(cells.any(axis=0)).max(initial=-1)) + 1 if len(cells) else 0
    return [cell.tobytes().rstrip(b"\0") for cell in np.ascontiguousarray(cells[:, :width])]


def _remake(network: "Network", planned: Planned, shadow: "Network", place: int, unit: Unit, stands: dict[int, Goals]) -> None:
    """Make the partial solutions of a unit anew: what came of the stream is joined with the background as it is now."""
    rows, places = [], []
    for store, entry in unit.leaves:
        (at,) = _stores(planned, [store])
        if at in stands:
            rows.append(stands[at].timed)
            places.append(np.broadcast_to(np.array([place + entry[0], entry[1]], np.int64), (len(stands[at].timed), 2)))
    shadow.net.nodes[place + unit.root, c.EDGE_N] = 0  # solutions that the unit gave in the past are not given again
    shadow.replay(np.concatenate(rows), np.concatenate(places))
    made = goals_of(shadow, c.SIDES * (place + unit.nodes.start), c.SIDES * (place + unit.nodes.stop))
    nothing = np.zeros((0, network.net.rows.shape[1]), np.int64)
    for node, side in unit.inner:
        (at,) = _stores(planned, [(node, side)])
        there, before = made.get(c.SIDES * (place + node) + side), stands.get(at)
        timed = nothing if there is None else there.timed
        if before is None and not len(timed):
            continue
        timeless = nothing if before is None else before.timeless
        network.replace_goals(at, np.concatenate([to_width(timed, nothing.shape[1]), timeless]))


def _shadow(network: "Network", planned: Planned, fragment: Fragment, stands: dict[int, Goals]) -> tuple["Network", int]:
    """Place the query alone over the background, with its facts taken in. Return that network and the first of the query's nodes."""
    taken = replace(fragment, facts=[*fragment.facts, *_firsts(planned, fragment, stands)])
    shadow = network.empty_like()
    shadow.known = network.known
    shadow.settle(planned.registered, planned.name, planned.query, _permissive(taken, network), policy=planned.policy, rates=planned.rates)
    there, (quota, held) = shadow.planned[planned.registered], network.quotas.of(planned.registered)
    shadow.quotas.limit(planned.registered, Quota(MORE * quota.goals, MORE * quota.state_bytes), held)
    feed = np.zeros((c.FEED_HEIGHT, 1), np.int64)
    feed[c.IN_KIND], feed[c.IN_S], feed[c.IN_END] = c.OPENING, there.number, network.net.at[c.NOW]
    shadow.feed(feed)
    return shadow, there.at.node


def _firsts(planned: Planned, fragment: Fragment, stands: dict[int, Goals]) -> list[Fact]:
    """Return facts for the graphs that a stream has named; they stay."""
    facts = []
    for node, row in enumerate(fragment.nodes):
        (at,) = _stores(planned, [(node, c.LEFT)])
        if row[c.KIND] == c.FIRST and at in stands:
            columns = tuple(range(c.VAR, c.VAR + len(fragment.columns)))
            facts.append(Fact(node, c.LEFT, False, columns, stands[at].timeless[:, columns]))
    return facts


# ---------------------------------------------------------------- the plan in which negative parts let all pass
@dataclass(slots=True)
class _Permissive:
    fragment: Fragment
    nodes: list[list[int]] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)
    moves: list[tuple[int, int]] = field(default_factory=list)
    instead: dict[Target, Target] = field(default_factory=dict)  # the new target of what went to a side
    direct: set[int] = field(default_factory=set)  # edges that go where they say

    def __post_init__(self) -> None:
        self.nodes, self.edges, self.moves = [list(row) for row in self.fragment.nodes], list(self.fragment.edges), list(self.fragment.moves)

    def passing(self, targets: Sequence[Target], filter_: int = c.NONE, *, direct: bool = False) -> Target:
        row = [0] * c.NODE_WIDTH
        row[c.KIND], row[c.SPAN], row[c.FILTER], row[c.CONDITION], row[c.LOOK], row[c.LOOK_VIA] = c.PASS, c.FOREVER, filter_, c.NONE, c.NONE, c.NONE
        row[c.EDGE_AT], row[c.EDGE_N] = len(self.edges), len(targets)
        if direct:
            self.direct.add(len(self.edges))
        self.edges += targets
        self.nodes.append(row)
        return len(self.nodes) - 1, c.LEFT

    def moving(self, target: Target, pairs: Sequence[tuple[int, int]], *, keep: bool) -> Target:
        node, side = self.passing([target])
        self.nodes[node][c.KIND], self.nodes[node][c.KEEP] = c.MOVE, keep
        self.nodes[node][c.MOVE_AT], self.nodes[node][c.MOVE_N] = len(self.moves), len(pairs)
        self.moves += pairs
        return node, side

    def readers(self, node: int) -> list[Target]:
        row = self.fragment.nodes[node]
        return self.fragment.edges[row[c.EDGE_AT] : row[c.EDGE_AT] + row[c.EDGE_N]]


def _permissive(fragment: Fragment, network: "Network") -> Fragment:
    made = _Permissive(fragment)
    for node, row in enumerate(fragment.nodes):
        _let_pass(made, node, row[c.KIND], network)
    edges = [edge if k in made.direct else made.instead.get(edge, edge) for k, edge in enumerate(made.edges)]
    facts = [
        replace(fact, node=at[0], side=at[1]) for fact in fragment.facts for at in [made.instead.get((fact.node, fact.side), (fact.node, fact.side))]
    ]
    return replace(fragment, nodes=made.nodes, edges=edges, moves=made.moves, facts=facts, alpha=[], collectors={})


def _let_pass(made: _Permissive, node: int, kind: int, network: "Network") -> None:
    row, readers = made.nodes[node], made.readers(node)
    if kind in (c.MINUS, c.EXISTS, c.NOTEXISTS) and readers:
        made.instead[node, c.LEFT] = made.passing(readers, row[c.FILTER])
    elif kind == c.MARK:
        made.instead[node, c.LEFT] = _either(made, node, network, made.passing(readers, row[c.FILTER]))
    elif kind in OPTIONALS:
        side = c.RIGHT if kind == c.OPTIONALSEQ else c.LEFT
        finds = [(row[c.LOOK_VIA], c.LEFT)] if row[c.LOOK_VIA] != c.NONE else []
        made.instead[node, side] = made.passing([(node, side), *finds, made.passing(readers, row[c.FILTER])], direct=True)
        _as_join(row)
    elif kind == c.FIND:
        row[c.KIND] = c.JOIN
    elif kind in (c.WITHOUT, c.RECENT, c.CHRONOLOGICAL):
        _as_join(row)
    elif kind == c.WITHOUTFOR:
        made.instead[node, c.LEFT] = made.passing([])
    elif kind == c.COLLECT:
        collector = made.fragment.collectors[node]
        columns = [made.fragment.columns[v] for v in collector.writes]
        onwards = [made.moving(made.passing(readers), [(k, k) for k in columns], keep=False)] if isinstance(collector, ModifiersCollector) else []
        made.instead[node, c.LEFT] = made.passing([(node, c.LEFT), *onwards], direct=True)


def _as_join(row: list[int]) -> None:
    """Turn a node into a join of all pairs, whatever a condition or an absence says."""
    row[c.KIND], row[c.TIMELESS], row[c.LIFE_LEFT], row[c.LIFE_RIGHT], row[c.MARK_N] = c.JOIN, 1, c.FOREVER, c.FOREVER, 0


def _either(made: _Permissive, node: int, network: "Network", target: Target) -> Target:
    """Place nodes before `target` that make each EXISTS of the node both true and false."""
    row = made.fragment.nodes[node]
    for mark, _ in made.fragment.edges[row[c.MARK_AT] : row[c.MARK_AT] + row[c.MARK_N]]:
        column = made.fragment.nodes[mark][c.COLUMN]
        values = [int(network.net.at[c.TRUE_TERM]), int(network.net.at[c.FALSE_TERM])]
        target = made.passing([made.moving(target, [(-value, column)], keep=True) for value in values])
    return target
