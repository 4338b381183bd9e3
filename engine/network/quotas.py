"""What the queries of a network may keep, and what happens to one that needs more."""

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
    """Quotas by `registered`. What collectors hold counts as of when it was weighed last: it is at hand at moments that the blocks of the log decide."""

    network: "Network"
    quotas: dict[int, Quota] = field(default_factory=dict)
    held: dict[int, int] = field(default_factory=dict)

    def limit(self, registered: int, quota: Quota, held: int = 0) -> None:
        """From now on the query fails as soon as it needs more than its quota; `held` bytes are its collectors'."""
        self.quotas[registered], self.held[registered] = quota, held
        self.deal(self.network.planned[registered])

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
        """Goals that have outlived their lives do not count, whenever they are swept; those of what it shares count as if it were alone."""
        for place in (planned, *(share.stands for share in self.network.read_by(planned))):
            sweep_stores(self.network.address, c.SIDES * place.at.node, c.SIDES * place.after.node)
        goals = self._goals(planned)
        return Usage(goals, goals * goal_bytes(len(planned.columns)) + held)

    def _collected(self, registered: int) -> int:
        return sum(each.collector.size() for each in self.network.collecting.values() if each.registered == registered)

    def _goals(self, planned: Planned) -> int:
        """What the query keeps, and what the shares keep that it reads."""
        queries = self.network.net.queries
        return int(queries[planned.number, c.Q_GOALS] + sum(queries[share.number, c.Q_GOALS] for share in self.network.read_by(planned)))

    def _most(self, planned: Planned) -> int:
        """How many goals the quota leaves to a query beside what its collectors hold."""
        quota, held = self.of(planned.registered)
        most = quota.goals or c.FOREVER
        return min(most, (quota.state_bytes - held) // goal_bytes(len(planned.columns))) if quota.state_bytes else most

    def _left(self, planned: Planned) -> int:
        """How many goals more the query's own nodes may keep, and each share that it reads, before it is looked into."""
        return max(self._most(planned) - self._goals(planned), 0) // (1 + len(self.network.read_by(planned)))

    def deal(self, planned: Planned) -> None:
        """Tells the kernel when to look into a query: at its quota, or where it reads shares at half of what is left, which is dealt out anew then."""
        queries = self.network.net.queries
        left = self._left(planned)
        queries[planned.number, c.Q_LIMIT] = queries[planned.number, c.Q_GOALS] + left
        for share in self.network.read_by(planned):
            queries[share.number, c.Q_LIMIT] = min(queries[share.number, c.Q_LIMIT], queries[share.number, c.Q_GOALS] + left)

    def _deal_anew(self, planned: Planned) -> None:
        """As `deal`, where shares may keep fewer goals than when it was last done."""
        queries, shares = self.network.net.queries, self.network.read_by(planned)
        for share in shares:
            least = min(self._left(reader) for reader in self.network.readers_of(share.number))
            queries[share.number, c.Q_LIMIT] = queries[share.number, c.Q_GOALS] + least
        queries[planned.number, c.Q_LIMIT] = queries[planned.number, c.Q_GOALS] + self._left(planned)

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
            self.deal(planned)
            if self._goals(planned) > self._most(planned):
                network.net.at[c.ENTRY] = entry
                self.look_into([planned])
        network.free_dropped()

    # ------------------------------------------------------------ too much
    def look_into(self, queries: Sequence[Planned]) -> None:
        """Stops those of these queries that are beyond one of their bounds."""
        for planned in queries:
            if (reason := self._excess(planned)) is not None:
                self.network.fail(planned, reason)
        staying = [planned for planned in queries if planned.registered in self.network.planned]
        for planned in staying[:1]:
            self._deal_anew(planned)
        for planned in staying[1:]:
            self.deal(planned)

    def _excess(self, planned: Planned) -> str | None:
        """Why a query is to stop, if it is."""
        quota, held = self.of(planned.registered)
        reason = excess(planned.name, self._usage(planned, held), quota)
        derived, bound = self.network.net.queries[planned.number, [c.Q_DERIVED, c.Q_BOUND]].tolist()
        if reason is None and derived > bound:
            reason = f"derived more than {bound} triples at one instant, each KiB of text counted as one: the rule feeds itself without end"
        made, most = self._made(planned), int(self.network.net.at[c.MOST_NOW])
        if reason is None and made > most:
            reason = f"took more than {most:,} steps at one instant: what its parts match there at once multiplies"
        return reason

    def _made(self, planned: Planned) -> int:
        """What a query has made at an instant, or what it shares with others."""
        numbers = [planned.number, *(share.number for share in self.network.read_by(planned))]
        return int(self.network.net.queries[numbers, c.Q_MADE].max())
