"""This module holds the queries of a network to quotas, and stops a query that needs more than its quota."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.kernel.goal_maintenance import sweep_stores
from engine.kernel.state import layout as c
from engine.network.placed_query import Planned
from engine.state_size import Quota, Usage, excess, goal_bytes

if TYPE_CHECKING:
    from engine.network.network import Network


@dataclass(slots=True)
class Quotas:
    """Holds quotas by `registered`.

    What collectors hold counts as of the last weighing, because it is at hand at moments that the blocks of the log decide.
    """

    network: "Network"
    quotas: dict[int, Quota] = field(default_factory=dict)
    held: dict[int, int] = field(default_factory=dict)

    def limit(self, registered: int, quota: Quota, held: int = 0) -> None:
        """Set a query's quota: from now on it fails as soon as it needs more. `held` are the bytes of its collectors."""
        self.quotas[registered], self.held[registered] = quota, held
        self.deal(self.network.planned[registered])

    def of(self, registered: int) -> tuple[Quota, int]:
        """Return a query's quota, and what its collectors held when they were weighed."""
        return self.quotas.get(registered, Quota()), self.held.get(registered, 0)

    def forget(self, registered: int) -> None:
        self.quotas.pop(registered, None)
        self.held.pop(registered, None)

    def usage(self, registered: int) -> Usage:
        """Return the size of the query's state now."""
        return self._usage(self.network.planned[registered], self._collected(registered))

    def _usage(self, planned: Planned, held: int) -> Usage:
        """Return the size of a query's state.

        Goals that have outlived their lives do not count, whenever they are swept; goals in shares count as if it were alone.
        """
        for place in (planned, *(share.stands for share in self.network.read_by(planned))):
            sweep_stores(self.network.address, c.SIDES * place.at.node, c.SIDES * place.after.node)
        goals = self._goals(planned)
        return Usage(goals, goals * goal_bytes(len(planned.columns)) + held)

    def _collected(self, registered: int) -> int:
        return sum(each.collector.size() for each in self.network.collecting.values() if each.registered == registered)

    def _goals(self, planned: Planned) -> int:
        """Return how many goals the query keeps, with the goals of the shares that it reads."""
        queries = self.network.net.queries
        return int(queries[planned.number, c.Q_GOALS] + sum(queries[share.number, c.Q_GOALS] for share in self.network.read_by(planned)))

    def _most(self, planned: Planned) -> int:
        """Return how many goals the quota leaves to a query beside what its collectors hold."""
        quota, held = self.of(planned.registered)
        most = quota.goals or c.FOREVER
        return min(most, (quota.state_bytes - held) // goal_bytes(len(planned.columns))) if quota.state_bytes else most

    def _left(self, planned: Planned) -> int:
        """Return how many more goals the query's own nodes, and each share that it reads, may keep before it is looked into."""
        return max(self._most(planned) - self._goals(planned), 0) // (1 + len(self.network.read_by(planned)))

    def deal(self, planned: Planned) -> None:
        """Tell the kernel when to look into a query.

        The kernel looks into it at its quota. If the query reads shares, its own nodes and each share get an equal part of what is left. The kernel
        looks into it at the end of a part; what is left is dealt out anew then.
        """
        queries = self.network.net.queries
        left = self._left(planned)
        queries[planned.number, c.Q_LIMIT] = queries[planned.number, c.Q_GOALS] + left
        for share in self.network.read_by(planned):
            queries[share.number, c.Q_LIMIT] = min(queries[share.number, c.Q_LIMIT], queries[share.number, c.Q_GOALS] + left)

    def _deal_anew(self, planned: Planned) -> None:
        """Deal out what is left as `deal` does, where shares may keep fewer goals than when it was last done."""
        queries, shares = self.network.net.queries, self.network.read_by(planned)
        for share in shares:
            least = min(self._left(reader) for reader in self.network.readers_of(share.number))
            queries[share.number, c.Q_LIMIT] = queries[share.number, c.Q_GOALS] + least
        queries[planned.number, c.Q_LIMIT] = queries[planned.number, c.Q_GOALS] + self._left(planned)

    # ------------------------------------------------------------ collectors
    @property
    def weighs(self) -> bool:
        """Return whether what a collector holds counts for a quota."""
        return any(self._counts(each.registered) for each in self.network.collecting.values())

    def _counts(self, registered: int) -> bool:
        return registered in self.quotas and self.quotas[registered].state_bytes > 0

    def weigh(self, entry: int) -> None:
        """Count what collectors hold, as of an entry between feeds; a query that is beyond its quota by it stops there."""
        network, sizes = self.network, dict[int, int]()
        for each in network.collecting.values():
            if self._counts(each.registered):
                sizes[each.registered] = sizes.get(each.registered, 0) + each.collector.size()
        for registered, held in sizes.items():
            planned = network.planned[registered]
            self.held[registered] = held
            self.deal(planned)
            if self._goals(planned) > self._most(planned):
                network.net.at[c.ENTRY] = entry
                self.look_into([planned])
        network.free_dropped()

    # ------------------------------------------------------------ too much
    def look_into(self, queries: Sequence[Planned]) -> None:
        """Stop those of these queries that are beyond one of their bounds."""
        for planned in queries:
            if (reason := self._excess(planned)) is not None:
                self.network.fail(planned, reason)
        staying = [planned for planned in queries if planned.registered in self.network.planned]
        for planned in staying[:1]:
            self._deal_anew(planned)
        for planned in staying[1:]:
            self.deal(planned)

    def _excess(self, planned: Planned) -> str | None:
        """Return why a query is to stop, if it is."""
        quota, held = self.of(planned.registered)
        reason = excess(planned.name, self._usage(planned, held), quota)
        derived, bound = self.network.net.queries[planned.number, [c.Q_DERIVED, c.Q_BOUND]].tolist()
        if reason is None and derived > bound:
            reason = f"derived more than {bound} triples at one instant, each KiB of text counted as one: the rule feeds itself without end"
        made, most = self._made(planned), int(self.network.net.at[c.MOST_NOW])
        if reason is None and made > most:
            reason = f"took more than {most:,} steps at one instant: the matches of its parts at that instant multiply"
        return reason

    def _made(self, planned: Planned) -> int:
        """Return how much a query, or a share that it reads, has made at an instant; of several the most counts."""
        numbers = [planned.number, *(share.number for share in self.network.read_by(planned))]
        return int(self.network.net.queries[numbers, c.Q_MADE].max())
