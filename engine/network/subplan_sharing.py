"""Subpatterns that several queries of a kernel have are evaluated once (docs/decisions/0002-networks-by-reach.md).

A *share* has nodes, scans and goals of its own, in the tables like a query's. In the plan of each query that reads
the share, the root of the subplan hands on what it gives, in the query's own columns. The nodes below the root are
fed by nothing. So a query keeps its plan, and whoever comes or goes touches no goal of another.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.alpha.free_rows import by_predicate, with_rows
from engine.background.fact_store import FactIndex
from engine.errors import SnapshotMismatch
from engine.kernel.state import layout as c
from engine.native.entries import clear_stores
from engine.network.placed_query import Planned, QueryPlanning, RegisteredQuery, describe_plan, make_scan_rows
from engine.network.query_slots import QuerySlots
from engine.network.quotas import Quotas
from engine.network.shares import Moment, Reading, SharedSubplan, Shares
from engine.physical_plan.common_subplans import Subplan, copy_subplan, find_subplans
from engine.physical_plan.plan import Fragment
from engine.physical_plan.plan_difference import compare_plans

Ints = NDArray[np.int64]


class SubplanSharing:
    """Lets queries of a network read what they have in common from shares."""

    def __init__(self, planning: QueryPlanning, slots: QuerySlots, shares: Shares, quotas: Quotas) -> None:
        self._planning, self._slots, self._arrays, self._shares, self._quotas = planning, slots, slots.arrays, shares, quotas
        self.moments: dict[int, Moment] = {}  # at which queries came, by `registered`
        self.due: int = c.FOREVER  # the instant from which on those of different moments may keep the same goals
        self._shared: dict[bytes, list[SharedSubplan]] = {}  # by digest
        self._alone: dict[bytes, dict[tuple[int, int], Subplan]] = {}  # subplans that queries carry out, by digest: `registered`, root

    # ------------------------------------------------------------ coming
    def current_moment(self, waiting: int, latest: int) -> Moment:
        """Return the present moment; `waiting` and `latest` are the last entry and the latest end of what waits for
        time.
        """
        return Moment(int(by_predicate(self._arrays.net)[0, c.ALPHA_SEEN]), waiting, max(latest, int(self._arrays.net.at[c.NOW])))

    def share_query(self, registered: int, moment: Moment) -> None:
        """Let a query that has just come read what it has in common with others that came at the same moment."""
        self.moments[registered], planned = moment, self._slots.planned[registered]
        carried = set[int]()
        for root in sorted(planned.subplans):  # the outermost first
            subplan = planned.subplans[root]
            if root in carried:
                continue
            if (share := self._find_or_make(subplan.digest, moment)) is not None:
                self._start_reading(share, planned, subplan)
                carried.update(subplan.nodes)
            else:
                self._list_subplans(planned, [subplan])
                self._plan_meeting(subplan, moment)

    def _find_or_make(self, digest: bytes, moment: Moment) -> SharedSubplan | None:
        """Return the share that evaluates a subplan for queries of a moment.

        If a query of that moment evaluates it alone, a share is made of it.
        """
        for share in self._shared.get(digest, ()):
            if share.moment == moment:
                return share
        for (registered, _), subplan in self._alone.get(digest, {}).items():
            if self.moments.get(registered) == moment:
                return self._make_share(self._slots.planned[registered], subplan)
        return None

    def _make_share(self, planned: Planned, subplan: Subplan) -> SharedSubplan:
        """Make a share of a query's subplan, which it reads from now on."""
        fragment = copy_subplan(self._planning.plan_anew(planned), subplan, self._arrays.terms.intern)
        share = self._place_share(fragment, subplan.digest, planned, self.moments.get(planned.registered))
        goals = [self._read_goals(planned, planned.at.node + node) for node in subplan.nodes]
        self._start_reading(share, planned, subplan)
        for k, sides in enumerate(goals):
            for side, rows in sides.items():
                self._arrays.replace_goals(c.SIDES * (share.stands.at.node + k) + side, move_columns(rows, subplan.columns, share.columns))
        return share

    def _place_share(self, fragment: Fragment, digest: bytes, planned: Planned, moment: Moment | None) -> SharedSubplan:
        """Place a share in rows that are free; nobody reads it yet."""
        number, at = self._slots.take_place(fragment)
        source = RegisteredQuery(-1 - number, "", planned.source.query, planned.source.reads_after)
        stands = describe_plan(source, number, fragment, at)
        self._slots.write_plan(stands, fragment, is_open=True)
        self._slots.add_inquiries(stands)
        self._slots.scans.add_scans(make_scan_rows(fragment, at, number))
        share = self._shares.numbered[number] = SharedSubplan(digest, stands, moment)
        self._shared.setdefault(digest, []).append(share)
        return share

    def _read_goals(self, planned: Planned, node: int) -> dict[int, Ints]:
        """Return the goals at a query's node by side, wherever they are kept, in the query's columns."""
        reading, at = self._shares.find_reading(planned, node), self._shares.find_keeper(planned, node)
        found = {store % c.SIDES: goals.timed for store, goals in self._arrays.read_goals(c.SIDES * at, c.SIDES * (at + 1)).items()}
        if reading is None:
            return found
        return {side: move_columns(rows, reading.share.columns, reading.subplan.columns) for side, rows in found.items()}

    # ------------------------------------------------------------ reading
    def _start_reading(self, share: SharedSubplan, planned: Planned, subplan: Subplan) -> None:
        """Let a share carry out a query's subplan; the goals that the query kept there are given up."""
        for inner in [r for r in self._shares.readings.get(planned.registered, ()) if r.subplan.root in subplan.nodes]:
            self._end_reading(inner)
        self._unlist_subplans(planned, subplan.nodes)
        net, n = self._arrays.net, len(subplan.columns)
        moves = self._arrays.used["moves"].take(n)
        reading = Reading(share, planned.registered, planned.at.node, subplan, moves, int(net.nodes[planned.at.node + subplan.root, c.FILTER]))
        wants = [want for node, _, want, _ in planned.scans if node in subplan.nodes]
        self._slots.scans.remove_scans(planned.number, wants, reading.nodes.tolist())
        for node in reading.nodes.tolist():
            clear_stores(self._arrays.address, c.SIDES * node, c.SIDES * (node + 1))
        self._arrays.replace_arrays(with_rows(self._arrays.net, {"moves": self._arrays.used["moves"].end}))
        self._arrays.net.moves[moves : moves + n] = np.column_stack([share.columns, subplan.columns])
        share.readings.append(reading)
        self._shares.readings.setdefault(planned.registered, []).append(reading)
        self._replace_root(reading)
        self._link_readers(share)
        self._quotas.deal_goals(planned)

    def _replace_root(self, reading: Reading) -> None:
        """Make the root of a subplan hand on what comes to it, in the query's columns."""
        columns = [c.KIND, c.FILTER, c.MOVE_AT, c.MOVE_N, c.KEEP, c.ONCE_ONLY]
        self._arrays.net.nodes[reading.root, columns] = c.MOVE, c.NONE, reading.moves, len(reading.subplan.columns), 0, 0

    def _link_readers(self, share: SharedSubplan) -> None:
        """Give a share its readers."""
        self._arrays.used["edges"].give(*share.edges)
        n = len(share.readings)
        first = self._arrays.used["edges"].take(n)
        share.edges = first, n
        self._arrays.replace_arrays(with_rows(self._arrays.net, {"edges": self._arrays.used["edges"].end}))
        self._arrays.net.edges[first : first + n] = [(reading.root, c.LEFT) for reading in share.readings]
        self._arrays.net.nodes[share.stands.at.node, [c.EDGE_AT, c.EDGE_N]] = first, n
        self._slots.scans.update_margin()

    # ------------------------------------------------------------ going
    def _end_reading(self, reading: Reading) -> None:
        """End a query's reading of a share; a share that nobody reads goes."""
        share = reading.share
        share.readings.remove(reading)
        self._shares.readings[reading.registered].remove(reading)
        self._arrays.used["moves"].give(reading.moves, len(reading.subplan.columns))
        if share.readings:
            self._link_readers(share)
        else:
            self._close_share(share)

    def _close_share(self, share: SharedSubplan) -> None:
        """Take out a share that nobody reads."""
        stands = share.stands
        self._arrays.used["edges"].give(*share.edges)
        self._arrays.net.nodes[stands.at.node : stands.after.node, c.KIND] = c.DROPPED
        self._slots.scans.remove_scans(stands.number, [want for _, _, want, _ in stands.scans])
        clear_stores(self._arrays.address, c.SIDES * stands.at.node, c.SIDES * stands.after.node)
        self._slots.dropped.append(stands)
        del self._shares.numbered[share.number]
        self._shared[share.digest].remove(share)
        if not self._shared[share.digest]:
            del self._shared[share.digest]

    def remove_query(self, planned: Planned) -> None:
        """Forget a query that goes, whose own scans are gone already."""
        for reading in [*self._shares.readings.get(planned.registered, ())]:
            self._end_reading(reading)
        self._unlist_subplans(planned, planned.subplans)
        self._shares.readings.pop(planned.registered, None)
        self.moments.pop(planned.registered, None)

    def _unlist_subplans(self, planned: Planned, nodes: Iterable[int]) -> None:
        """Note that a query does not carry out the subplans with these roots itself any more."""
        for subplan in (planned.subplans[node] for node in nodes if node in planned.subplans):
            alone = self._alone.get(subplan.digest, {})
            alone.pop((planned.registered, subplan.root), None)
            if not alone:
                self._alone.pop(subplan.digest, None)

    def part_query(self, planned: Planned) -> None:
        """Let a query carry out itself what it has in common with others, with copies of the goals."""
        readings = [*self._shares.readings.get(planned.registered, ())]
        if not readings:
            return
        rows = make_scan_rows(self._planning.plan_anew(planned), planned.at, planned.number)
        for reading in readings:
            goals = {node: self._read_goals(planned, node) for node in reading.nodes.tolist()}
            self._slots.scans.add_scans(rows[np.isin(rows[:, c.A_NODE], reading.nodes)])
            self._end_reading(reading)
            self._arrays.net.nodes[reading.root, [c.KIND, c.FILTER, c.MOVE_AT, c.MOVE_N]] = c.JOIN, reading.filter_, 0, 0
            for node, sides in goals.items():
                for side, kept in sides.items():
                    self._arrays.replace_goals(c.SIDES * node + side, kept)
            self._list_subplans(planned, [reading.subplan])
        self._slots.scans.update_margin()
        self._quotas.deal_goals(planned)

    # ------------------------------------------------------------ of different moments
    def _plan_meeting(self, subplan: Subplan, moment: Moment) -> None:
        """Note until when a subplan of this moment may keep other goals than equal ones of earlier moments."""
        if len(self._alone[subplan.digest]) + len(self._shared.get(subplan.digest, ())) > 1:
            self.due = min(self.due, moment.latest + subplan.memory)

    def unite_due(self) -> None:
        """Evaluate as one the subplans that came at different moments and keep the same goals by now.

        None of them reaches back to the latest of these moments, so all rest on occurrences that each of the queries
        reads.
        """
        self.due, now = c.FOREVER, int(self._arrays.net.at[c.NOW])
        known = {digest: next(iter(alone.values())) for digest, alone in self._alone.items()}
        known |= {digest: shares[0].readings[0].subplan for digest, shares in self._shared.items()}
        for subplan in sorted(known.values(), key=lambda subplan: -len(subplan.nodes)):  # the outermost first
            moments = sorted({moment for moment in self._list_moments(subplan.digest) if moment is not None}, key=lambda moment: moment.latest)
            past = [moment for moment in moments if moment.latest + subplan.memory < now]
            if len(past) > 1:
                self._unite_shares(subplan.digest, past)
            if len(past) < len(moments) > 1:
                self.due = min(self.due, moments[len(past)].latest + subplan.memory)

    def _list_moments(self, digest: bytes) -> list[Moment | None]:
        alone = self._alone.get(digest, {})
        return [share.moment for share in self._shared.get(digest, ())] + [self.moments.get(registered) for registered, _ in alone]

    def _unite_shares(self, digest: bytes, moments: Sequence[Moment]) -> None:
        """Make one share of the shares, and of the queries, of these moments."""
        shares = [share for share in self._shared.get(digest, ()) if share.moment in moments]
        alone = [(self._slots.planned[k], subplan) for (k, _), subplan in self._alone.get(digest, {}).items() if self.moments.get(k) in moments]
        share = shares[0] if shares else self._make_share(*alone[0])
        for other in shares[1:]:
            for reading in other.readings:
                reading.share = share
            share.readings += other.readings
            other.readings = []
            self._close_share(other)
        for planned, subplan in alone:
            if (planned.registered, subplan.root) in self._alone.get(digest, {}):
                self._start_reading(share, planned, subplan)
        share.moment = moments[-1]
        self._link_readers(share)
        for planned in self._shares.find_readers(share.number):
            self._quotas.deal_goals(planned)

    # ------------------------------------------------------------ snapshots
    def restore_share(self, readers: Sequence[tuple[Planned, Subplan]], moment: Moment | None, form: str) -> SharedSubplan:
        """Make restored queries, whose goals are yet to come, share a subplan as they did. Raises SnapshotMismatch."""
        share = self._make_share(*readers[0])
        share.moment = moment
        if share.stands.form != form:
            raise SnapshotMismatch("this version plans what queries share otherwise")
        for planned, subplan in readers[1:]:
            self._start_reading(share, planned, subplan)
        return share

    def list_restored(self, queries: Iterable[Planned]) -> None:
        """Note what queries that have been restored carry out themselves."""
        for planned in queries:
            if planned.registered in self.moments:
                shared = {node for reading in self._shares.readings.get(planned.registered, ()) for node in reading.subplan.nodes}
                self._list_subplans(planned, [subplan for root, subplan in planned.subplans.items() if root not in shared])
        self.due = -c.FOREVER

    def apart_moment(self, waiting: int, latest: int) -> Moment:
        """Return the present moment for queries of another network, which have been given other occurrences before
        than any query here.
        """
        moments = (*self.moments.values(), *(share.moment for share in self._shares.numbered.values()))
        least = min((moment.seen for moment in moments if moment is not None), default=0)
        return replace(self.current_moment(waiting, latest), seen=min(least, 0) - 1)

    def _list_subplans(self, planned: Planned, subplans: Iterable[Subplan]) -> None:
        for subplan in subplans:
            self._alone.setdefault(subplan.digest, {})[planned.registered, subplan.root] = subplan

    # ------------------------------------------------------------ a background that changes
    def replace_roots(self) -> None:
        """Let the roots of subplans hand on what shares give, after their queries' nodes have been written anew."""
        for reading in (reading for share in self._shares.numbered.values() for reading in share.readings):
            self._replace_root(reading)

    def part_changing(self, known: FactIndex, changing: Collection[int]) -> None:
        """Let each of these queries that takes in something else over another background carry out itself what it
        shares.
        """
        for planned in [self._slots.planned[k] for k, readings in self._shares.readings.items() if readings and k in changing]:
            (before, _), (now, _) = self._planning.plan_over(planned), self._planning.plan_over(planned, known)
            if planned.shape != now.shape or find_subplans(now) != planned.subplans or compare_plans(before, now):
                self.part_query(planned)

    def relist_query(self, planned: Planned, fragment: Fragment) -> None:
        """Note what a query carries out itself, as it is planned now."""
        now = find_subplans(fragment)
        if now != planned.subplans and planned.registered in self.moments:
            self._unlist_subplans(planned, planned.subplans)
            self._slots.planned[planned.registered] = relisted = replace(planned, subplans=now)
            self._slots.list_query(relisted)
            self._list_subplans(planned, now.values())


def move_columns(rows: Ints, before: Sequence[int], after: Sequence[int]) -> Ints:
    """Return goals with the contents of some columns moved to others."""
    moved = np.zeros_like(rows)
    moved[:, [c.START, c.END]] = rows[:, [c.START, c.END]]
    moved[:, list(after)] = rows[:, list(before)]
    return moved
