"""What the queries of a network may keep, and what happens to one that needs more."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.kernel import columns as c
from engine.kernel.stores import sweep_stores
from engine.planned import Planned
from engine.usage import Quota, Usage, excess, goal_bytes

if TYPE_CHECKING:
    from engine.network import Network


@dataclass(slots=True)
class Quotas:
    """Quotas by `registered`. What collectors hold counts as of when it was weighed last: it is at hand at moments that the blocks of the log decide."""

    network: "Network"
    quotas: dict[int, Quota] = field(default_factory=dict)
    held: dict[int, int] = field(default_factory=dict)

    def limit(self, registered: int, quota: Quota, held: int = 0) -> None:
        """From now on the query fails as soon as it needs more than its quota; `held` bytes are its collectors'."""
        self.quotas[registered], self.held[registered] = quota, held
        self._limit_goals(self.network.planned[registered])

    def of(self, registered: int) -> tuple[Quota, int]:
        """A query's quota, and what its collectors held when they were weighed."""
        return self.quotas.get(registered, Quota()), self.held.get(registered, 0)

    def forget(self, registered: int) -> None:
        self.quotas.pop(registered, None)
        self.held.pop(registered, None)

    def usage(self, registered: int) -> Usage:
        """What the query's state amounts to now."""
        return self._usage(self.network.planned[registered], self._collected(registered))

    def _usage(self, planned: Planned, held: int) -> Usage:
        """Goals that have outlived their lives do not count, whenever they are swept."""
        network = self.network
        sweep_stores(network.address, c.SIDES * planned.at.node, c.SIDES * planned.after.node)
        goals = int(network.net.queries[planned.number, c.Q_GOALS])
        return Usage(goals, goals * goal_bytes(len(planned.columns)) + held)

    def _collected(self, registered: int) -> int:
        return sum(each.collector.size() for each in self.network.collecting.values() if each.registered == registered)

    def _limit_goals(self, planned: Planned) -> None:
        """Tells the kernel how many goals the quota leaves to a query beside what its collectors hold."""
        quota = self.quotas[planned.registered]
        most = quota.goals or c.FOREVER
        if quota.state_bytes:
            most = min(most, (quota.state_bytes - self.held[planned.registered]) // goal_bytes(len(planned.columns)))
        self.network.net.queries[planned.number, c.Q_LIMIT] = most

    # ------------------------------------------------------------ collectors
    @property
    def weighs(self) -> bool:
        """Whether what a collector holds counts for a quota."""
        return any(self._counts(each.registered) for each in self.network.collecting.values())

    def _counts(self, registered: int) -> bool:
        return registered in self.quotas and self.quotas[registered].state_bytes > 0

    def weigh(self, entry: int) -> None:
        """Counts what collectors hold, as of an entry between feeds: what is beyond a quota by it stops there."""
        network, sizes = self.network, dict[int, int]()
        for each in network.collecting.values():
            if self._counts(each.registered):
                sizes[each.registered] = sizes.get(each.registered, 0) + each.collector.size()
        for registered, held in sizes.items():
            planned = network.planned[registered]
            self.held[registered] = held
            self._limit_goals(planned)
            if network.net.queries[planned.number, c.Q_GOALS] > network.net.queries[planned.number, c.Q_LIMIT]:
                network.net.at[c.ENTRY] = entry
                self.look_into(planned)
        network.free_dropped()

    # ------------------------------------------------------------ too much
    def look_into(self, planned: Planned) -> None:
        """Stops a query that is beyond one of its bounds."""
        registered, queries = planned.registered, self.network.net.queries
        quota, held = self.of(registered)
        reason = excess(planned.name, self._usage(planned, held), quota)
        derived, bound = queries[planned.number, [c.Q_DERIVED, c.Q_BOUND]].tolist()
        if reason is None and derived > bound:
            reason = f"derived more than {bound} triples at one instant: the rule feeds itself without end"
        if reason is not None:
            self.network.fail(planned, reason)
