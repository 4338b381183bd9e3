"""This module brings the queries of a network from one version of the background to the next, between two instants.

`kept_goals` holds what a query keeps to the new version. A chain of SEQs that was joined in another order is planned
as it is written first, because an operand of it is timeless now.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.background.fact_store import FactIndex
from engine.errors import Refusal
from engine.kernel.state import layout as c
from engine.native.entries import clear_stores
from engine.network.host_calls import KernelHost
from engine.network.kept_goals import hold_to
from engine.network.permissive_plan import Target
from engine.network.placed_query import OPTIONALS, POLICIES, Answers, Planned, list_reads, list_scans
from engine.network.stratification import rank_nodes
from engine.physical_plan.join_trees import Linear, Pairing, Shape, straighter
from engine.physical_plan.plan import Fragment, placed_edges, placed_nodes
from engine.physical_plan.plan_difference import compare_plans
from engine.physical_plan.plan_signature import sign_plan

Ints = NDArray[np.int64]


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

    def list_refused(self, known: FactIndex) -> list[tuple[Planned, str]]:
        """Return the queries with PARAMETERS that are not evaluated over another background, with the reasons."""
        refused = list[tuple[Planned, str]]()
        for planned in self._slots.planned.values():
            if planned.source.instances is not None:
                try:
                    self._host.planning.plan_over(planned, known)
                except Refusal as refusal:
                    refused.append((planned, f"{refusal} is not evaluated"))
        return refused

    def apply_coming(self) -> None:
        """Change the background between two instants.

        What the queries keep is held to it, and what it brings they take in at their next instant.
        """
        assert self.coming is not None
        host, slots, known, self.coming = self._host, self._slots, self.coming, None
        changing = host.planning.find_changing(slots.planned, known)
        is_new = bool(changing) or slots.scans.entailment_by(known) is not slots.scans.entailment
        host.sharing.part_changing(known, changing)
        chains = [p for registered, p in slots.planned.items() if registered in changing and not isinstance(p.shape, Pairing)]
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
                added = hold_to(host, planned, fragment, change) if slots.arrays.net.queries[planned.number, c.Q_OPEN] else change.added
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
        if planned.shape is Pairing.SUMMED:
            return True
        net = self._slots.arrays.net
        nodes = net.nodes[planned.at.node : planned.after.node]
        windowed = (nodes[:, c.LIFE_BLOCKER] != c.FOREVER) & np.isin(nodes[:, c.KIND], (c.WITHOUT, *POLICIES))
        windowed |= nodes[:, c.GATE] != c.NONE
        windowed |= (nodes[:, [c.LIFE_LEFT, c.LIFE_RIGHT]] != c.FOREVER).all(axis=1) & np.isin(nodes[:, c.KIND], OPTIONALS)
        return bool((net.queries[planned.number, c.Q_OPEN] or time > -c.BIG) and windowed.any())

    def _needs_past(self, planned: Planned, known: FactIndex, time: int) -> bool:
        if planned.shape is Pairing.SUMMED:
            return self._host.planning.plan_over(planned, known)[0].shape is not Pairing.SUMMED
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
    (docs/decisions/0053-bounds-on-durations.md).

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
