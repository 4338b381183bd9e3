"""This module updates a query's state when the background changes.

Timeless goals that still have their triples stay, and partial solutions are made anew.

The query is placed once more in a network of its own, over the background as it is now and without streams. Its
stores then hold every timeless solution that there may be. What a negative part once let pass stays, whatever the
part would say now. So there all solutions pass, in each way in which they may, but for those that the part is known
to have kept back (`_hand_on_decided`). A timeless goal that is not among them has lost a triple that it rested on.
Partial solutions of a unit (`Unit`) are found by giving it once more what came of the stream, in order of end.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.aggregation.order_limit import ModifiersCollector
from engine.background.fact_store import FactIndex
from engine.kernel.state import layout as c
from engine.kernel.state.arrays import to_width, width_of
from engine.native.entries import clear_stores, free_timeless_goals
from engine.network.host_calls import KernelHost
from engine.network.kernel_arrays import Goals
from engine.network.placed_query import POLICIES, Answers, Planned, list_reads, list_scans
from engine.network.stratification import rank_nodes
from engine.physical_plan.join_trees import Linear, Pairing, Shape, straighter
from engine.physical_plan.plan import NO_ROWS, Fact, Fragment, Node, RowRange, Unit, placed_edges, placed_nodes
from engine.physical_plan.plan_difference import Difference, compare_plans
from engine.physical_plan.plan_signature import sign_plan
from engine.state_size import Quota
from engine.triples.relation import without

Ints = NDArray[np.int64]
Target = tuple[int, int]
MORE = 2
"""Where negative parts let all pass, a query's timeless solutions may have this many times its limits."""
OPTIONALS = (c.OPTIONAL, c.OPTIONALSEQ, c.EQUALSOPTIONAL)


class BackgroundUpdate:
    """Brings the queries of a network from one background to another, between two instants."""

    def __init__(self, host: KernelHost) -> None:
        self._host, self._slots = host, host.slots
        self.coming: FactIndex | None = None  # the background from the next instant on
        self.begun: int = -c.BIG  # the instant that time had reached when it came, which is decided without it

    def announce(self, known: FactIndex, time: int) -> None:
        """Set the background that holds from the instant after `time` on, whatever its queries have seen of that
        instant.

        The background closes no cycle.
        """
        self.coming, self.begun = known, max(self.begun, time)

    @property
    def is_due(self) -> bool:
        """Return whether the instant that has begun goes by another background than later ones."""
        return self.coming is not None or self._slots.scans.entails_otherwise

    def replace_known(self, known: FactIndex, other: FactIndex) -> None:
        """Replace the background `known` by `other`, which is the same background."""
        self._host.planning.replace_known(known, other)
        self.coming = other if self.coming is known else self.coming

    def check_cycles(self, known: FactIndex) -> None:
        """Raise Cycle if the background `known` would close one; nothing has changed then, nor otherwise."""
        slots, net = self._slots, self._slots.arrays.net
        changing = self._host.planning.find_changing(slots.planned, known)
        if not changing and slots.scans.entailment_by(known) is slots.scans.entailment:
            return
        planned, nodes, edges = dict(slots.planned), net.nodes.copy(), net.edges.copy()
        bounds, entailment = net.queries[:, c.Q_BOUND].copy(), slots.scans.entailment
        try:
            slots.scans.entailment = slots.scans.entailment_by(known)
            self._plan_changing(known, changing)
            rank_nodes(slots, list(slots.planned.values()))
        except BaseException:
            self._host.planning.forget_plans()
            raise
        finally:
            net.nodes[:], net.edges[:], net.queries[:, c.Q_BOUND] = nodes, edges, bounds
            slots.scans.entailment, slots.planned = entailment, planned

    def apply_coming(self) -> None:
        """Change the background between two instants.

        What the queries keep is held to it, and what it brings they take in at their next instant.
        """
        assert self.coming is not None
        host, slots, known, self.coming = self._host, self._slots, self.coming, None
        changing = host.planning.find_changing(slots.planned, known)
        is_new = bool(changing) or slots.scans.entailment_by(known) is not slots.scans.entailment
        host.sharing.part_changing(known, changing)
        chains = [p for registered, p in slots.planned.items() if registered in changing and p.shape is not Pairing.NEAREST]
        for planned in [p for p in chains if p.shape != host.planning.plan_over(p, known)[0].shape]:
            _straighten(host, planned)
        host.set_background(known)
        before = dict(slots.planned)
        plans = self._plan_changing(known, changing)
        if is_new:
            rank_nodes(slots, list(slots.planned.values()))
        for registered, (fragment, _) in plans.items():
            slots.list_query(slots.planned[registered])
            slots.scans.replace_scans(before[registered], slots.planned[registered], fragment)
        slots.scans.update_margin()
        for registered in slots.planned.keys() - plans.keys():
            host.planning.knows[registered] = known
        for planned, (fragment, answers) in [(slots.planned[registered], plan) for registered, plan in plans.items()]:
            slots.lookups.set_tables(planned, fragment, known)
            host.sharing.relist_query(planned, fragment)
            if before[planned.registered].shape != planned.shape:
                _make_all_pairs(host, planned, fragment)
            was, _ = host.planning.plan_over(planned)
            host.planning.rest_on(planned.registered, known, answers)
            if change := compare_plans(was, fragment):
                added = _hold_to(host, planned, fragment, change) if slots.arrays.net.queries[planned.number, c.Q_OPEN] else change.added
                if planned.registered in slots.planned:
                    slots.change_facts(planned, added, change.removed)
        host.planning.forget_plans()
        slots.free_dropped()

    def _plan_changing(self, known: FactIndex, changing: Collection[int]) -> dict[int, tuple[Fragment, Answers]]:
        """Plan queries over a background: nodes and edges change where timeless solutions become possible.

        Return the new plans in the queries' order, with what the background told of them.
        """
        plans, slots = dict[int, tuple[Fragment, Answers]](), self._slots
        for registered, planned in [(registered, planned) for registered, planned in slots.planned.items() if registered in changing]:
            fragment, _ = plans[registered] = self._host.planning.plan_over(planned, known)
            if planned.shape not in (fragment.shape, Pairing.NEAREST):
                continue  # `apply_coming` plans it otherwise; nothing of it decides on absence
            nodes = placed_nodes(fragment, planned.at, planned.number)
            assert len(nodes) == planned.after.node - planned.at.node, "a plan's shape does not depend on the background"
            slots.arrays.net.nodes[planned.at.node : planned.after.node] = nodes
            slots.arrays.net.edges[planned.at.edge : planned.after.edge] = placed_edges(fragment, planned.at)
            slots.planned[registered] = replace(
                planned, strict=frozenset(fragment.strict), scans=list_scans(fragment), form=sign_plan(fragment), reads=list_reads(fragment),
                shape=fragment.shape,
            )  # fmt: skip
        self._host.sharing.replace_roots()
        return plans

    # ------------------------------------------------------------ what a query has let go
    def find_needing_past(self, known: FactIndex, time: int) -> list[Planned]:
        """Return the queries that, over another background, decide by goals which have outlived the window that they
        had for them.

        Time has come to `time`.
        """
        planned = self._slots.planned
        changing = self._host.planning.find_changing(planned, known) | {each.registered for each in planned.values() if each.shape is Pairing.NEAREST}
        return [each for k, each in planned.items() if k in changing and self._decides_by_window(each, time) and self._needs_past(each, known, time)]

    def _decides_by_window(self, planned: Planned, time: int) -> bool:
        """Return whether a query may decide by less than all that ever came.

        A query that no instant has reached yet may meet the instant `time` before the change holds.
        """
        net = self._slots.arrays.net
        nodes = net.nodes[planned.at.node : planned.after.node]
        windowed = (nodes[:, c.LIFE_BLOCKER] != c.FOREVER) & np.isin(nodes[:, c.KIND], (c.WITHOUT, *POLICIES))
        windowed |= nodes[:, c.GATE] != c.NONE
        windowed |= (nodes[:, [c.LIFE_LEFT, c.LIFE_RIGHT]] != c.FOREVER).all(axis=1) & np.isin(nodes[:, c.KIND], OPTIONALS)
        return bool((net.queries[planned.number, c.Q_OPEN] or time > -c.BIG) and windowed.any())

    def _needs_past(self, planned: Planned, known: FactIndex, time: int) -> bool:
        if planned.shape is Pairing.NEAREST:
            planned = replace(planned, shape=Linear.WRITTEN)  # what it keeps now is all that it needs then
        net, planning = self._slots.arrays.net, self._host.planning
        (was, _), (now, _) = planning.plan_over(planned), planning.plan_over(planned, known)
        if planned.shape != now.shape:
            return False  # nothing of it decides on absence
        row = net.queries[planned.number]
        passed = max(time, int(net.at[c.NOW])) - int(row[c.Q_T0] if row[c.Q_OPEN] else time)
        lives = [(one.life_blocker, other.life_blocker) for one, other in zip(was.nodes, now.nodes, strict=True)]
        if any(before < after and before <= passed for before, after in lives):
            return True
        if any(one.gate != other.gate for one, other in zip(was.nodes, now.nodes, strict=True) if one.gate != c.NONE):
            return True
        change = compare_plans(was, now)
        return bool(now.forgetful and (change.added or change.more))


# ---------------------------------------------------------------- a chain of SEQs that was joined in another order than it is written
def _straighten(host: KernelHost, planned: Planned) -> None:
    """Plan a chain as it is written, step by step (`straighter`), because an operand is timeless now
    (docs/decisions/0013-shapes.md).

    It may fail by its limits on the way.
    """
    while planned.shape not in (None, Linear.WRITTEN) and planned.registered in host.slots.planned:
        assert not isinstance(planned.shape, Pairing)
        planned = _reshape(host, planned, straighter(planned.shape, max(last for _, last in planned.segments) + 1))


def _reshape(host: KernelHost, planned: Planned, shape: Shape) -> Planned:
    """Plan a query in an order in which what its joins keep follows from what they kept, and take that over."""
    slots, arrays, at = host.slots, host.arrays, planned.at.node
    order, before = list(slots.planned), arrays.net.queries[planned.number].copy()
    stores, (quota, held) = arrays.read_goals(c.SIDES * at, c.SIDES * planned.after.node), host.quotas.get_quota(planned.registered)
    host.take_out(planned)
    host.add_query(planned.source, host.planning.known, planned.rates, shape)
    host.quotas.set_quota(planned.registered, quota, held)
    new = slots.planned[planned.registered]
    slots.planned = {registered: slots.planned[registered] for registered in order}
    tags = arrays.net.seen[: arrays.net.at[c.SEEN_N], c.SEEN_TAG]
    tags[tags == planned.out] = new.out  # solutions that it has given at this instant
    if before[c.Q_OPEN]:
        slots.streams.count_pending(planned, -1)
    for column in (c.Q_OPEN, c.Q_FROM, c.Q_AFTER, c.Q_T0):
        arrays.net.queries[new.number, column] = before[column]
    slots.free_dropped()
    parts = {segment: stores[store].timed for segment, (node, side) in planned.segments.items() if (store := c.SIDES * (at + node) + side) in stores}
    if parts:
        _enter_again(host, new, [(rows, new.segments[segment]) for segment, rows in parts.items()])
        arrays.net.queries[new.number, [c.Q_MADE, c.Q_MADE_AT]] = before[[c.Q_MADE, c.Q_MADE_AT]]
    return new


def _enter_again(host: KernelHost, planned: Planned, parts: Sequence[tuple[Ints, Target]]) -> None:
    """Let solutions that a query has kept enter sides of its nodes, the last of which keep what comes of them."""
    arrays = host.arrays
    places = [(planned.at.node + node, side) for rows, (node, side) in parts for _ in range(len(rows))]
    most, arrays.net.at[c.MOST_NOW] = int(arrays.net.at[c.MOST_NOW]), c.FOREVER  # it has been counted when it came
    host.enter_solutions(np.concatenate([rows for rows, _ in parts]), np.array(places, np.int64).reshape(-1, 2))
    arrays.net.at[c.MOST_NOW] = most
    assert not arrays.net.at[c.FOUND], "the last operand keeps no goals"


# ---------------------------------------------------------------- pairs with nothing between them
def _make_all_pairs(host: KernelHost, planned: Planned, fragment: Fragment) -> None:
    """Let what a plan of the nearest pairs has kept enter the plan as written
    (docs/decisions/0106-pairs-with-nothing-between.md).

    Of left solutions that differ in their ends alone it has kept the first. All pairs of them are one solution, and
    what decides on one decides on it.
    """
    nodes, counts = fragment.pairs, (planned.number, [c.Q_MADE, c.Q_MADE_AT])
    assert nodes is not None
    first, after = c.SIDES * (planned.at.node + nodes.nearest), c.SIDES * (planned.at.node + nodes.last + 1)
    stores, counted = host.arrays.read_goals(first, after), host.arrays.net.queries[counts]
    left, absent = ([stores[first + side].timed] if first + side in stores else [] for side in (c.LEFT, c.BLOCKER))
    clear_stores(host.arrays.address, first, after)
    for_both = [(rows, (node, c.LEFT)) for rows in left for node in (nodes.joined, nodes.between)]
    if parts := [*for_both, *((rows, (nodes.between, c.RIGHT)) for rows in absent)]:
        _enter_again(host, planned, parts)
        host.arrays.net.queries[counts] = counted


# ---------------------------------------------------------------- what a query keeps
def _join_brought(host: KernelHost, planned: Planned, fragment: Fragment, change: Difference) -> list[Fact]:
    """Return the joins of timeless goals with what there is more to look up.

    If those rows were copied before, the copies have found their joins already.
    """
    found = []
    for node, rows in change.more.items():
        row = fragment.nodes[node]
        if row.kind != c.JOIN:
            continue  # what it once decided stands
        keys, free = fragment.columns_at(row.key), fragment.columns_at(row.look)
        store = c.SIDES * (planned.at.node + node) + c.LEFT
        left = host.arrays.read_goals(store, store + 1).get(store)
        if left is None or not len(left.timeless):
            continue
        for fact in change.removed:
            if _copies_for(fragment, fact, node):
                rows = without(rows, fact.rows[:, _order_columns(fragment, fact, node)])
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
            via = row.look_via
            found.append(Fact(node if via == c.NONE else via, c.EMIT if via == c.NONE else c.LEFT, True, columns, np.array(joined, np.int64)))
    return found


def _keep_joined(host: KernelHost, planned: Planned, fragment: Fragment, change: Difference) -> list[Fact]:
    """Store what a join looked up before and copies now, and return what is new.

    Those rows have found their joins already. If they came as new ones, a negative part would decide on a timeless
    solution once more.
    """
    added = list(change.added)
    for node, looked_up in change.fewer.items():
        if fragment.nodes[node].kind != c.JOIN or fragment.lookups[node] is not None:
            continue
        for k, fact in enumerate(added):
            if not _copies_for(fragment, fact, node):
                continue
            order = _order_columns(fragment, fact, node)
            new = without(fact.rows[:, order], looked_up)
            stood = replace(fact, columns=tuple(fact.columns[column] for column in order), rows=without(fact.rows[:, order], new))
            added[k] = replace(stood, rows=new)
            row = host.arrays.net.nodes[planned.at.node + node]
            edges, row[c.EDGE_N] = int(row[c.EDGE_N]), 0
            _take_in_now(host, planned, stood)
            if planned.registered not in host.slots.planned:
                return []
            row[c.EDGE_N] = edges
    return added


def _copies_for(fragment: Fragment, fact: Fact, node: int) -> bool:
    """Return whether a fact holds copies of what a join may look up instead. A filter may stand between them."""
    own, passes = (node, c.RIGHT), fragment.nodes[fact.node].kind == c.PASS
    return (fact.node, fact.side) == own or (passes and fragment.edges_of(fact.node) == [own])


def _order_columns(fragment: Fragment, fact: Fact, node: int) -> list[int]:
    """Return where a fact has the columns of a join's look-up, in the order of that."""
    row = fragment.nodes[node]
    return [fact.columns.index(column) for column in (*fragment.columns_at(row.key), *fragment.columns_at(row.look))]


def _hold_to(host: KernelHost, planned: Planned, fragment: Fragment, change: Difference) -> list[Fact]:
    """Hold what a query keeps to the background for which `fragment` is its plan.

    Return what it is to take in at its next instant. It may fail by its limits.
    """
    units = [unit for unit in fragment.units if any(node in unit.nodes for node in change.nodes)]
    woken = _wake_paths(host, planned, fragment, change)
    if change.loses or units:
        _review_goals(host, planned, replace(fragment, facts=[*fragment.facts, *woken]), units)
    if planned.registered not in host.slots.planned:
        return []
    brought = [*_join_brought(host, planned, fragment, change), *woken, *_follow_paths(host, planned, fragment, change)]
    added = _keep_joined(host, planned, fragment, change)
    return _take_in_timed(host, planned, fragment, [*added, *brought]) if planned.registered in host.slots.planned else []


def _wake_paths(host: KernelHost, planned: Planned, fragment: Fragment, change: Difference) -> list[Fact]:
    """Return what wakes the paths that keep walks of the stream and do not copy the background any more."""
    found = []
    for path in change.deepened:
        leaves = [store for unit in fragment.units if unit.root in path.nodes for store, _ in unit.leaves]
        numbers = _number_stores(planned, leaves)
        if any(len(goals.timed) for at in numbers for goals in host.arrays.read_goals(at, at + 1).values()):
            found.append(Fact(path.first, c.LEFT, True, (), np.zeros((1, 0), np.int64)))
    return found


def _follow_paths(host: KernelHost, planned: Planned, fragment: Fragment, change: Difference) -> list[Fact]:
    """Return the timeless solutions that are joined with paths which do not copy the background any more. They look
    it up from now on.

    What they find that stands already does not pass the set behind the join.
    """
    columns = tuple(range(c.VAR, c.VAR + len(fragment.columns)))
    found = []
    for path in change.deepened:
        (at,) = _number_stores(planned, [path.operand])
        found += [Fact(*path.entry, True, columns, goals.timeless[:, columns]) for goals in host.arrays.read_goals(at, at + 1).values()]
    return found


def _take_in_timed(host: KernelHost, planned: Planned, fragment: Fragment, added: Sequence[Fact]) -> list[Fact]:
    """Take in at once what timers look for, and return the rest, which is for the query's next instant.

    Timers decide at instants at which nothing may come.
    """
    timers = {node for node, row in enumerate(fragment.nodes) if row.kind == c.WITHOUTFOR}
    readers = [fragment.find_reader((fact.node, fact.side))[0] for fact in added]
    now = [
        fact
        for fact, reader in zip(added, readers, strict=True)
        if any(reader in nodes for nodes in fragment.timed) or (reader in timers and fact.side == c.BLOCKER)
    ]
    for fact in now:
        _take_in_now(host, planned, fact)
    return [fact for fact in added if not any(fact is each for each in now)]


def _take_in_now(host: KernelHost, planned: Planned, fact: Fact) -> None:
    rows = np.zeros((len(fact.rows), width_of(host.arrays.net)), np.int64)
    rows[:, c.START], rows[:, c.END] = c.BIG, -c.BIG
    rows[:, fact.columns] = fact.rows
    host.take_in_timeless(rows, np.broadcast_to(np.array([planned.at.node + fact.node, fact.side], np.int64), (len(rows), 2)))


def _review_goals(host: KernelHost, planned: Planned, fragment: Fragment, units: Sequence[Unit]) -> None:
    """Hold the goals of a query between two instants to the background for which `fragment` is its plan; `units` are
    those that the change concerns.
    """
    first, after = c.SIDES * planned.at.node, c.SIDES * planned.after.node
    stands = host.arrays.read_goals(first, after)
    units = [
        unit for unit in units if any(len(stands[at].timed) for at in _number_stores(planned, (store for store, _ in unit.leaves)) if at in stands)
    ]
    if not units and not any(len(goals.timeless) for goals in stands.values()):
        return
    unseen = _find_unseen(planned)
    shadow, place, deciding = _place_shadow(host, planned, fragment, stands)
    _hand_on_decided(shadow, place, deciding, {store - first: goals for store, goals in stands.items()}, unseen)
    if shadow.failures:
        host.fail_query(planned, f"with the background as it is now, {shadow.failures[0].reason}")
        return
    for store, goals in stands.items():
        if len(goals.timeless):
            lasting = fragment.lasting.get(divmod(store - first, c.SIDES))
            at, ignored = (store - first, unseen) if lasting is None else (_store_of(lasting.decided), _find_others(planned, lasting.columns))
            held = deciding[at].held if at in deciding else at
            known = set(_key_rows(_read_timeless(shadow, held + c.SIDES * place), ignored))
            gone = np.array([key not in known for key in _key_rows(goals.timeless, ignored)], np.int64)
            free_timeless_goals(host.arrays.address, store, gone[::-1].copy())
            goals.timeless = goals.timeless[gone == 0]
    for unit in units:
        _remake_unit(host, planned, shadow, place, unit, stands)


def _number_stores(planned: Planned, places: Iterable[Target]) -> list[int]:
    return [c.SIDES * (planned.at.node + node) + side for node, side in places]


def _store_of(place: Target) -> int:
    return c.SIDES * place[0] + place[1]


def _find_others(planned: Planned, columns: Collection[int]) -> Ints:
    """Return the query's columns but for these."""
    return np.array([column for column in planned.columns.values() if column not in columns], np.int64)


def _find_unseen(planned: Planned) -> Ints:
    """Return the columns that say what an EXISTS found, which may have been either."""
    return np.array([column for variable, column in planned.columns.items() if variable.name.startswith("_:exists@")], np.int64)


def _key_rows(rows: Ints, unseen: Ints) -> list[bytes]:
    cells = rows[:, c.VAR :].copy()
    cells[:, unseen - c.VAR] = 0
    width = int(np.flatnonzero(cells.any(axis=0)).max(initial=-1)) + 1 if len(cells) else 0
    return [cell.tobytes().rstrip(b"\0") for cell in np.ascontiguousarray(cells[:, :width])]


def _remake_unit(host: KernelHost, planned: Planned, shadow: KernelHost, place: int, unit: Unit, stands: dict[int, Goals]) -> None:
    """Make the partial solutions of a unit anew: what came of the stream is joined with the background as it is now."""
    rows, places = [], []
    for store, entry in unit.leaves:
        (at,) = _number_stores(planned, [store])
        if at in stands:
            rows.append(stands[at].timed)
            places.append(np.broadcast_to(np.array([place + entry[0], entry[1]], np.int64), (len(stands[at].timed), 2)))
    shadow.arrays.net.nodes[place + unit.root, c.EDGE_N] = 0  # solutions that the unit gave in the past are not given again
    shadow.replay_solutions(np.concatenate(rows), np.concatenate(places))
    made = shadow.arrays.read_goals(c.SIDES * (place + unit.nodes.start), c.SIDES * (place + unit.nodes.stop))
    nothing = np.zeros((0, width_of(host.arrays.net)), np.int64)
    for node, side in unit.inner:
        (at,) = _number_stores(planned, [(node, side)])
        there, before = made.get(c.SIDES * (place + node) + side), stands.get(at)
        timed = nothing if there is None else there.timed
        timeless = nothing if before is None else before.timeless
        host.arrays.replace_goals(at, np.concatenate([to_width(timed, nothing.shape[1]), timeless]))


class _Deciding(NamedTuple):
    """Says how a side that decides lets solutions pass in a network of its own."""

    held: int  # the store of that network, from the query's first on, that has the side's solutions
    alone: Target  # where those go by themselves that may pass so
    decided: Target | None  # where those go that were decided on, as they are kept; None: they do not pass by themselves


def _place_shadow(host: KernelHost, planned: Planned, fragment: Fragment, stands: dict[int, Goals]) -> tuple[KernelHost, int, dict[int, _Deciding]]:
    """Place the query alone over the background, with its facts taken in.

    Return that network and the first of the query's nodes. Also return how the deciding sides decide there, by their
    stores from the query's first on.
    """
    taken = replace(fragment, facts=[*fragment.facts, *_find_first_facts(planned, fragment, stands)])
    shadow = host.make_empty()
    source = replace(planned.source, reads_after=planned.registered, max_derivations=0)  # its derivations have been counted
    permissive, deciding = _make_permissive(taken, host)
    shadow.place_plan(source, permissive, planned.rates)
    there, (quota, held) = shadow.slots.planned[planned.registered], host.quotas.get_quota(planned.registered)
    shadow.quotas.set_quota(planned.registered, Quota(MORE * quota.goals, MORE * quota.state_bytes), held)
    feed = np.zeros((c.FEED_HEIGHT, 1), np.int64)
    feed[c.IN_KIND], feed[c.IN_S], feed[c.IN_END] = c.OPENING, there.number, host.arrays.net.at[c.NOW]
    shadow.feed(feed)
    return shadow, there.at.node, deciding


def _hand_on_decided(shadow: KernelHost, place: int, deciding: dict[int, _Deciding], stands: dict[int, Goals], unseen: Ints) -> None:
    """Let the timeless solutions at sides that decide pass by themselves, unless they are among those kept there:
    these were decided otherwise.

    `stands` are the query's goals, and `deciding` the sides, by stores from the query's first on. What passes one
    side may come to another, so this goes round until nothing new comes.
    """
    kept = {store: dict(zip(_key_rows(stands[store].timeless, unseen), stands[store].timeless, strict=True)) for store in deciding if store in stands}
    passed, width = dict.fromkeys(deciding, 0), width_of(shadow.arrays.net)
    going = True
    while going and not shadow.failures:
        going = False
        for store, side in deciding.items():
            rows = _read_timeless(shadow, side.held + c.SIDES * place)[passed[store] :]
            passed[store] += len(rows)
            going |= len(rows) > 0
            new, places = [], []
            for key, row in zip(_key_rows(rows, unseen), rows, strict=True):
                was = kept.get(store, {}).get(key)
                target = side.alone if was is None else side.decided
                if target is not None:
                    new.append(row if was is None else to_width(was[None], width)[0])
                    places.append((place + target[0], target[1]))
            if new:
                shadow.enter_solutions(np.array(new, np.int64), np.array(places, np.int64))


def _read_timeless(host: KernelHost, store: int) -> Ints:
    goals = host.arrays.read_goals(store, store + 1).get(store)
    return np.zeros((0, width_of(host.arrays.net)), np.int64) if goals is None else goals.timeless


def _find_first_facts(planned: Planned, fragment: Fragment, stands: dict[int, Goals]) -> list[Fact]:
    """Return facts for the graphs that a stream has named; they stay."""
    facts = []
    for node, row in enumerate(fragment.nodes):
        (at,) = _number_stores(planned, [(node, c.LEFT)])
        if row.kind == c.FIRST and at in stands:
            columns = tuple(range(c.VAR, c.VAR + len(fragment.columns)))
            facts.append(Fact(node, c.LEFT, False, columns, stands[at].timeless[:, columns]))
    return facts


# ---------------------------------------------------------------- the plan in which negative parts let all pass
@dataclass(slots=True)
class _Permissive:
    fragment: Fragment
    nodes: list[Node] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)
    moves: list[tuple[int, int]] = field(default_factory=list)
    instead: dict[Target, Target] = field(default_factory=dict)  # the new target of what went to a side
    direct: set[int] = field(default_factory=set)  # edges that go where they say
    deciding: dict[int, _Deciding] = field(default_factory=dict)  # by store

    def __post_init__(self) -> None:
        self.nodes, self.edges, self.moves = [replace(row) for row in self.fragment.nodes], list(self.fragment.edges), list(self.fragment.moves)

    def passing(self, targets: Sequence[Target], filter_: int = c.NONE, *, direct: bool = False) -> Target:
        row = Node(c.PASS, filter=filter_, edges=RowRange(len(self.edges), len(targets)))
        if direct:
            self.direct.add(len(self.edges))
        self.edges += targets
        self.nodes.append(row)
        return len(self.nodes) - 1, c.LEFT

    def moving(self, target: Target, pairs: Sequence[tuple[int, int]], *, keep: bool) -> Target:
        node, side = self.passing([target])
        row = self.nodes[node]
        row.kind, row.keep, row.moves = c.MOVE, keep, RowRange(len(self.moves), len(pairs))
        self.moves += pairs
        return node, side

    def holding(self) -> Target:
        """Return a node that keeps timeless solutions, each once, and hands none on."""
        self.nodes.append(Node(c.MOVE, keep=True, once=True))
        return len(self.nodes) - 1, c.LEFT

    def readers(self, node: int) -> list[Target]:
        return self.fragment.edges_of(node)


def _make_permissive(fragment: Fragment, host: KernelHost) -> tuple[Fragment, dict[int, _Deciding]]:
    made = _Permissive(replace(fragment, nodes=[replace(row, gate=c.NONE) for row in fragment.nodes]))
    for node, row in enumerate(fragment.nodes):
        _let_pass(made, node, row.kind, host)
    edges = [edge if k in made.direct else made.instead.get(edge, edge) for k, edge in enumerate(made.edges)]
    facts = [
        replace(fact, node=at[0], side=at[1]) for fact in fragment.facts for at in [made.instead.get((fact.node, fact.side), (fact.node, fact.side))]
    ]
    return replace(fragment, nodes=made.nodes, edges=edges, moves=made.moves, facts=facts, scans=[], collectors={}), made.deciding


def _let_pass(made: _Permissive, node: int, kind: int, host: KernelHost) -> None:
    row, readers = made.nodes[node], made.readers(node)
    if kind in (c.MINUS, c.EXISTS, c.NOTEXISTS) and readers:
        _let_decided_pass(made, (node, c.LEFT), made.passing(readers, row.filter))
    elif kind == c.MARK:
        passing = made.passing(readers, row.filter)
        _let_decided_pass(made, (node, c.LEFT), _mark_either(made, node, host, passing), passing)
    elif kind in OPTIONALS:
        target = node, c.RIGHT if kind == c.OPTIONALSEQ else c.LEFT
        finds = [(row.look_via, c.LEFT)] if row.look_via != c.NONE else []
        passing = made.passing(readers, row.filter)
        _let_decided_pass(made, target, passing)
        made.instead[target] = made.passing([target, *finds, made.instead[target]], direct=True)
        if row.condition != c.NONE and not row.marks.n and made.fragment.find_inquiry(row.condition).lasts:
            row.filter, row.edges = row.condition, RowRange(len(made.edges), 1)
            made.edges.append(passing)
        _as_join(row)
    elif kind == c.FIND:
        row.kind = c.JOIN
    elif kind in (c.WITHOUT, c.RECENT, c.CHRONOLOGICAL):
        _as_join(row)
    elif kind == c.WITHOUTFOR:
        made.instead[node, c.LEFT] = made.passing([])
    elif kind == c.ONCE:
        made.instead[node, c.LEFT] = made.passing(readers, row.filter)
    elif kind == c.COLLECT:
        collector = made.fragment.collectors[node]
        columns = [made.fragment.columns[v] for v in collector.writes]
        onwards = [made.moving(made.passing(readers), [(k, k) for k in columns], keep=False)] if isinstance(collector, ModifiersCollector) else []
        made.instead[node, c.LEFT] = made.passing([(node, c.LEFT), *onwards], direct=True)


def _let_decided_pass(made: _Permissive, target: Target, alone: Target, decided: Target | None = None) -> None:
    made.instead[target] = held = made.holding()
    made.deciding[c.SIDES * target[0] + target[1]] = _Deciding(c.SIDES * held[0] + held[1], alone, decided)


def _as_join(row: Node) -> None:
    """Turn a node into a join of all pairs, whatever a condition or an absence says."""
    row.kind, row.timeless, row.life_left, row.life_right, row.marks = c.JOIN, 1, c.FOREVER, c.FOREVER, NO_ROWS


def _mark_either(made: _Permissive, node: int, host: KernelHost, target: Target) -> Target:
    """Place nodes before `target` that make each EXISTS of the node both true and false."""
    for mark in made.fragment.marks_of(node):
        column = made.fragment.nodes[mark].column
        values = [int(host.arrays.net.at[c.TRUE_TERM]), int(host.arrays.net.at[c.FALSE_TERM])]
        target = made.passing([made.moving(target, [(-value, column)], keep=True) for value in values])
    return target
