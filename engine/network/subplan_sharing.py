"""Subpatterns that several queries of a kernel have are evaluated once (docs/decisions/0014-shared-subpatterns.md).

A *share* has nodes, scans and goals of its own, in the tables like a query's. In the plan of each query that reads the share, the root of the subplan
hands on what it gives, in the query's own columns. The nodes below the root are fed by nothing. So a query keeps its plan, and whoever comes or goes
touches no goal of another.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.alpha.free_rows import by_predicate, with_rows
from engine.background.fact_store import FactIndex
from engine.errors import SnapshotMismatch
from engine.kernel.state import layout as c
from engine.kernel.state.arrays import with_width
from engine.kernel.state.goal_store import clear_stores
from engine.messages import UNRESTRICTED
from engine.network.background_update import difference, goals_of
from engine.network.memory import Stores
from engine.network.placed_query import Planned, placed_alpha, planned_from
from engine.physical_plan.common_subplans import Subplan, copy_subplan, find_subplans
from engine.physical_plan.plan import TABLES, Fragment, Place, place, sizes
from engine.planner.builder.join_order import NO_RATES

if TYPE_CHECKING:
    from engine.network.quotas import Quotas

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Moment:
    """Tells what a network had been given when a query came.

    The fields are the number of occurrences, the entry of the last one that waits for time (or -1), and the latest end. If two queries came at one
    moment, each reads what the other reads.
    """

    seen: int
    waiting: int
    latest: int


@dataclass(slots=True, eq=False)
class Reading:
    """Represents a subplan of a query that a share carries out.

    `moves` is the first row by which its root hands on, `filter_` what the root had for itself.
    """

    share: "Share"
    registered: int
    first: int  # the query's first node
    subplan: Subplan
    moves: int
    filter_: int

    @property
    def root(self) -> int:
        return self.first + self.subplan.root

    @property
    def nodes(self) -> Ints:
        return self.first + np.array(self.subplan.nodes, np.int64)

    def stands_for(self, node: int) -> int:
        """Return the node of the share that stands for one of the query's."""
        return self.share.stands.at.node + self.subplan.nodes.index(node - self.first)


@dataclass(slots=True, eq=False)
class Share:
    """Represents a shared subplan.

    `stands` is its place in the tables, from its root on in the order of `Subplan.nodes`; `edges` is the range of those to its readers.
    """

    digest: bytes
    stands: Planned
    moment: Moment | None
    readings: list[Reading] = field(default_factory=list)
    edges: tuple[int, int] = (0, 0)

    @property
    def number(self) -> int:
        """Return the number that a share has in the tables, as a query has one."""
        return self.stands.number

    @property
    def columns(self) -> range:
        return range(c.VAR, c.VAR + len(self.stands.columns))


@dataclass(slots=True, eq=False)
class Sharing(Stores):
    """Represents residents that share what they have in common."""

    shares: dict[int, Share] = field(default_factory=dict)  # by number
    readings: dict[int, list[Reading]] = field(default_factory=dict)  # by `registered`
    moments: dict[int, Moment] = field(default_factory=dict)  # at which queries came, by `registered`
    quotas: "Quotas" = field(init=False)
    _shared: dict[bytes, list[Share]] = field(default_factory=dict)  # by digest
    _alone: dict[bytes, dict[tuple[int, int], Subplan]] = field(
        default_factory=dict
    )  # subplans that their queries carry out, by digest: `registered`, root
    _due: int = c.FOREVER  # the instant from which on shares, or queries, may keep the same goals though they came at different moments

    # ------------------------------------------------------------ coming
    def moment(self, waiting: int, latest: int) -> Moment:
        """Return the present moment; `waiting` and `latest` are the last entry and the latest end of what waits for time."""
        return Moment(int(by_predicate(self.net)[0, c.ALPHA_SEEN]), waiting, max(latest, int(self.net.at[c.NOW])))

    def share(self, registered: int, moment: Moment) -> None:
        """Let a query that has just come read what it has in common with others that came at the same moment."""
        self.moments[registered], planned = moment, self.planned[registered]
        carried = set[int]()
        for root in sorted(planned.subplans):  # the outermost first
            subplan = planned.subplans[root]
            if root in carried:
                continue
            if (share := self._of_moment(subplan.digest, moment)) is not None:
                self._read(share, planned, subplan)
                carried.update(subplan.nodes)
            else:
                self._list(planned, [subplan])
                self._meet_later(subplan, moment)

    def _of_moment(self, digest: bytes, moment: Moment) -> Share | None:
        """Return the share that evaluates a subplan for queries of a moment. If a query of that moment evaluates it alone, a share is made of it."""
        for share in self._shared.get(digest, ()):
            if share.moment == moment:
                return share
        for (registered, _), subplan in self._alone.get(digest, {}).items():
            if self.moments.get(registered) == moment:
                return self._set_apart(self.planned[registered], subplan)
        return None

    def _set_apart(self, planned: Planned, subplan: Subplan) -> Share:
        """Make a share of a query's subplan, which it reads from now on."""
        fragment = copy_subplan(self._planned_anew(planned, self.knows[planned.registered]), subplan, self.terms.intern)
        share = self._settled(fragment, subplan.digest, planned, self.moments.get(planned.registered))
        goals = [self._goals_at(planned, planned.at.node + node) for node in subplan.nodes]
        self._read(share, planned, subplan)
        for k, sides in enumerate(goals):
            for side, rows in sides.items():
                self.replace_goals(c.SIDES * (share.stands.at.node + k) + side, to_columns(rows, subplan.columns, share.columns))
        return share

    def _settled(self, fragment: Fragment, digest: bytes, planned: Planned, moment: Moment | None) -> Share:
        """Place a share in rows that are free; nobody reads it yet."""
        number = self._used["queries"].take(1)
        at = Place(*(self._used[table].take(n) for table, n in zip(TABLES, sizes(fragment), strict=True)))
        stands = planned_from(-1 - number, planned.reads_after, "", planned.query, number, fragment, at, 0, UNRESTRICTED, NO_RATES)
        net = with_rows(with_width(self.net, len(fragment.columns)), {"queries": self._used["queries"].end})
        self._hold(place(net, fragment, at, number, self._used))
        self.net.queries[number] = 1, planned.reads_after, -c.BIG, 0, 0, c.FOREVER, -c.BIG, 0, 0, 0, c.FOREVER, 0, -c.BIG
        self._inquiries |= {at.ask + k: (inquiry, "") for k, inquiry in enumerate(fragment.inquiries)}
        self._with_scans(placed_alpha(fragment, at, number))
        share = self.shares[number] = Share(digest, stands, moment)
        self._shared.setdefault(digest, []).append(share)
        return share

    def _goals_at(self, planned: Planned, node: int) -> dict[int, Ints]:
        """Return the goals at a query's node by side, wherever they are kept, in the query's columns."""
        reading, at = self._reading_at(planned, node), self.kept_at(planned, node)
        found = {store % c.SIDES: goals.timed for store, goals in goals_of(self, c.SIDES * at, c.SIDES * (at + 1)).items()}
        if reading is None:
            return found
        return {side: to_columns(rows, reading.share.columns, reading.subplan.columns) for side, rows in found.items()}

    def kept_at(self, planned: Planned, node: int) -> int:
        """Return the node that keeps the goals of a query's node: itself, or one of a share."""
        reading = self._reading_at(planned, node)
        return node if reading is None else reading.stands_for(node)

    def _reading_at(self, planned: Planned, node: int) -> Reading | None:
        return next((r for r in self.readings.get(planned.registered, ()) if node - r.first in r.subplan.nodes), None)

    # ------------------------------------------------------------ reading
    def _read(self, share: Share, planned: Planned, subplan: Subplan) -> None:
        """Let a share carry out a query's subplan; the goals that the query kept there are given up."""
        for inner in [r for r in self.readings.get(planned.registered, ()) if r.subplan.root in subplan.nodes]:
            self._end(inner)
        self._list_no_more(planned, subplan.nodes)
        net, n = self.net, len(subplan.columns)
        moves = self._used["moves"].take(n)
        reading = Reading(share, planned.registered, planned.at.node, subplan, moves, int(net.nodes[planned.at.node + subplan.root, c.FILTER]))
        wants = [want for node, _, want in planned.scans if node in subplan.nodes]
        gone = self._scans.remove(net, planned.number, wants, reading.nodes.tolist())
        assert not gone, "the share wants as much"
        for node in reading.nodes.tolist():
            clear_stores(self.address, c.SIDES * node, c.SIDES * (node + 1))
        self._hold(with_rows(net, {"moves": self._used["moves"].end}))
        self.net.moves[moves : moves + n] = np.column_stack([share.columns, subplan.columns])
        share.readings.append(reading)
        self.readings.setdefault(planned.registered, []).append(reading)
        self._stand_in(reading)
        self._link(share)
        self.quotas.deal(planned)

    def _stand_in(self, reading: Reading) -> None:
        """Make the root of a subplan hand on what comes to it, in the query's columns."""
        columns = [c.KIND, c.FILTER, c.MOVE_AT, c.MOVE_N, c.KEEP, c.ONCE_ONLY]
        self.net.nodes[reading.root, columns] = c.MOVE, c.NONE, reading.moves, len(reading.subplan.columns), 0, 0

    def _link(self, share: Share) -> None:
        """Give a share its readers."""
        self._used["edges"].give(*share.edges)
        n = len(share.readings)
        first = self._used["edges"].take(n)
        share.edges = first, n
        self._hold(with_rows(self.net, {"edges": self._used["edges"].end}))
        self.net.edges[first : first + n] = [(reading.root, c.LEFT) for reading in share.readings]
        self.net.nodes[share.stands.at.node, [c.EDGE_AT, c.EDGE_N]] = first, n
        self._note_scans()

    # ------------------------------------------------------------ going
    def _end(self, reading: Reading) -> None:
        """End a query's reading of a share; a share that nobody reads goes."""
        share = reading.share
        share.readings.remove(reading)
        self.readings[reading.registered].remove(reading)
        self._used["moves"].give(reading.moves, len(reading.subplan.columns))
        if share.readings:
            self._link(share)
        else:
            self._close(share)

    def _close(self, share: Share) -> None:
        """Take out a share that nobody reads."""
        stands = share.stands
        self._used["edges"].give(*share.edges)
        self.net.nodes[stands.at.node : stands.after.node, c.KIND] = c.DROPPED
        self._without_scans(stands.number, [want for _, _, want in stands.scans])
        clear_stores(self.address, c.SIDES * stands.at.node, c.SIDES * stands.after.node)
        self._dropped.append(stands)
        del self.shares[share.number]
        self._shared[share.digest].remove(share)
        if not self._shared[share.digest]:
            del self._shared[share.digest]

    def forget(self, planned: Planned) -> None:
        """Forget a query that goes, whose own scans are gone already."""
        for reading in [*self.readings.get(planned.registered, ())]:
            self._end(reading)
        self._list_no_more(planned, planned.subplans)
        self.readings.pop(planned.registered, None)
        self.moments.pop(planned.registered, None)

    def _list_no_more(self, planned: Planned, nodes: Iterable[int]) -> None:
        """Note that a query does not carry out the subplans with these roots itself any more."""
        for subplan in (planned.subplans[node] for node in nodes if node in planned.subplans):
            alone = self._alone.get(subplan.digest, {})
            alone.pop((planned.registered, subplan.root), None)
            if not alone:
                self._alone.pop(subplan.digest, None)

    def part(self, planned: Planned) -> None:
        """Let a query carry out itself what it has in common with others, with copies of the goals."""
        readings = [*self.readings.get(planned.registered, ())]
        if not readings:
            return
        rows = placed_alpha(self._planned_anew(planned, self.knows[planned.registered]), planned.at, planned.number)
        for reading in readings:
            goals = {node: self._goals_at(planned, node) for node in reading.nodes.tolist()}
            self._with_scans(rows[np.isin(rows[:, c.A_NODE], reading.nodes)])
            self._end(reading)
            self.net.nodes[reading.root, [c.KIND, c.FILTER, c.MOVE_AT, c.MOVE_N]] = c.JOIN, reading.filter_, 0, 0
            for node, sides in goals.items():
                for side, kept in sides.items():
                    self.replace_goals(c.SIDES * node + side, kept)
            self._list(planned, [reading.subplan])
        self._note_scans()
        self.quotas.deal(planned)

    def read_by(self, planned: Planned) -> list[Share]:
        """Return the shares that a query reads; a share that it reads twice comes twice."""
        return [reading.share for reading in self.readings.get(planned.registered, ())]

    def readers_of(self, number: int) -> list[Planned]:
        """Return the query of a number, or those that read the share of that number."""
        if number not in self.shares:
            return [self.numbered[number]]
        return [self.planned[registered] for registered in dict.fromkeys(reading.registered for reading in self.shares[number].readings)]

    # ------------------------------------------------------------ of different moments
    def _meet_later(self, subplan: Subplan, moment: Moment) -> None:
        """Note until when a subplan of this moment may keep other goals than equal ones of earlier moments."""
        if len(self._alone[subplan.digest]) + len(self._shared.get(subplan.digest, ())) > 1:
            self._due = min(self._due, moment.latest + subplan.reach)

    def meet(self) -> None:
        """Evaluate as one the subplans that came at different moments and keep the same goals by now.

        None of them reaches back to the latest of these moments, so all rest on occurrences that each of the queries reads.
        """
        self._due, now = c.FOREVER, int(self.net.at[c.NOW])
        known = {digest: next(iter(alone.values())) for digest, alone in self._alone.items()}
        known |= {digest: shares[0].readings[0].subplan for digest, shares in self._shared.items()}
        for subplan in sorted(known.values(), key=lambda subplan: -len(subplan.nodes)):  # the outermost first
            moments = sorted({moment for moment in self._moments_of(subplan.digest) if moment is not None}, key=lambda moment: moment.latest)
            past = [moment for moment in moments if moment.latest + subplan.reach < now]
            if len(past) > 1:
                self._unite(subplan.digest, past)
            if len(past) < len(moments) > 1:
                self._due = min(self._due, moments[len(past)].latest + subplan.reach)

    def _moments_of(self, digest: bytes) -> list[Moment | None]:
        alone = self._alone.get(digest, {})
        return [share.moment for share in self._shared.get(digest, ())] + [self.moments.get(registered) for registered, _ in alone]

    def _unite(self, digest: bytes, moments: Sequence[Moment]) -> None:
        """Make one share of the shares, and of the queries, of these moments."""
        shares = [share for share in self._shared.get(digest, ()) if share.moment in moments]
        alone = [(self.planned[k], subplan) for (k, _), subplan in self._alone.get(digest, {}).items() if self.moments.get(k) in moments]
        share = shares[0] if shares else self._set_apart(*alone[0])
        for other in shares[1:]:
            for reading in other.readings:
                reading.share = share
            share.readings += other.readings
            other.readings = []
            self._close(other)
        for planned, subplan in alone:
            if (planned.registered, subplan.root) in self._alone.get(digest, {}):
                self._read(share, planned, subplan)
        share.moment = moments[-1]
        self._link(share)
        for planned in self.readers_of(share.number):
            self.quotas.deal(planned)

    # ------------------------------------------------------------ snapshots
    def shares_of(self, queries: Sequence[Planned]) -> list[Share]:
        """Return the shares that any of these queries reads."""
        registered = {planned.registered for planned in queries}
        return [share for share in self.shares.values() if any(reading.registered in registered for reading in share.readings)]

    def share_again(self, readers: Sequence[tuple[Planned, Subplan]], moment: Moment | None, form: str) -> Share:
        """Make restored queries, whose goals are yet to come, share a subplan as they did. Raises SnapshotMismatch."""
        share = self._set_apart(*readers[0])
        share.moment = moment
        if share.stands.form != form:
            raise SnapshotMismatch("this version plans what queries share otherwise")
        for planned, subplan in readers[1:]:
            self._read(share, planned, subplan)
        return share

    def list_restored(self) -> None:
        """Note what queries that have been restored carry out themselves."""
        for planned in self.planned.values():
            if planned.registered in self.moments:
                shared = {node for reading in self.readings.get(planned.registered, ()) for node in reading.subplan.nodes}
                self._list(planned, [subplan for root, subplan in planned.subplans.items() if root not in shared])
        self._due = -c.FOREVER

    def _list(self, planned: Planned, subplans: Iterable[Subplan]) -> None:
        for subplan in subplans:
            self._alone.setdefault(subplan.digest, {})[planned.registered, subplan.root] = subplan

    # ------------------------------------------------------------ a background that changes
    def _replan(self, known: FactIndex) -> list[Fragment]:
        fragments = Stores._replan(self, known)
        for reading in (reading for share in self.shares.values() for reading in share.readings):
            self._stand_in(reading)
        return fragments

    def part_from_what_changes(self, known: FactIndex) -> None:
        """Let each query that takes in something else over another background carry out itself what it shares."""
        for planned in [self.planned[registered] for registered, readings in self.readings.items() if readings]:
            before, now = self._planned_anew(planned, self.knows[planned.registered]), self._planned_anew(planned, known)
            if planned.shape != now.shape or find_subplans(now) != planned.subplans or difference(before, now):
                self.part(planned)

    def list_again(self, planned: Planned, fragment: Fragment) -> None:
        """Note what a query carries out itself, as it is planned now."""
        now = find_subplans(fragment)
        if now != planned.subplans and planned.registered in self.moments:
            self._list_no_more(planned, planned.subplans)
            self.planned[planned.registered] = self.numbered[planned.number] = replace(planned, subplans=now)
            self._list(planned, now.values())


def to_columns(rows: Ints, before: Sequence[int], after: Sequence[int]) -> Ints:
    """Return goals with the contents of some columns moved to others."""
    moved = np.zeros_like(rows)
    moved[:, [c.START, c.END]] = rows[:, [c.START, c.END]]
    moved[:, list(after)] = rows[:, list(before)]
    return moved
