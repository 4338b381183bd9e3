"""This module holds the queries of a network to quotas, and stops a query that needs more than its quota."""

from collections.abc import Iterator

from engine.kernel.state import layout as c
from engine.native.entries import sweep_stores
from engine.network.collectors import Collectors
from engine.network.placed_query import Planned
from engine.network.query_slots import QuerySlots
from engine.network.shares import Shares
from engine.state_size import Quota, Usage, excess, goal_bytes


def _weigh_instances(planned: Planned) -> int:
    """Return the bytes of a query's instances, if it has PARAMETERS."""
    return 0 if planned.source.instances is None else planned.source.instances.state_bytes


class Quotas:
    """Holds quotas by `registered`.

    What collectors hold counts as of the last weighing, because it is at hand at moments that the blocks of the log
    decide. Instances count as of the last entry that changed them.
    """

    def __init__(self, slots: QuerySlots, collectors: Collectors, shares: Shares) -> None:
        self._slots, self._collectors, self._shares = slots, collectors, shares
        self._quotas: dict[int, Quota] = {}
        self._held: dict[int, int] = {}

    def set_quota(self, registered: int, quota: Quota, held: int = 0) -> None:
        """Set a query's quota: from now on it fails as soon as it needs more. `held` are the bytes of its collectors."""
        self._quotas[registered], self._held[registered] = quota, held
        self.deal_goals(self._slots.planned[registered])

    def get_quota(self, registered: int) -> tuple[Quota, int]:
        """Return a query's quota, and what its collectors held when they were weighed."""
        return self._quotas.get(registered, Quota()), self._held.get(registered, 0)

    def remove_quota(self, registered: int) -> None:
        self._quotas.pop(registered, None)
        self._held.pop(registered, None)

    def measure_usage(self, registered: int, passed: int) -> Usage:
        """Return the size of the query's state as of an instant before which nothing comes any more."""
        at = self._slots.arrays.net.at
        now = int(at[c.NOW])
        at[c.NOW] = max(now, passed)  # a partition without events of late has goals that are of no use
        usage = self._measure_usage(self._slots.planned[registered], self._collectors.measure_query(registered))
        at[c.NOW] = now
        return usage

    def _measure_usage(self, planned: Planned, held: int) -> Usage:
        """Return the size of a query's state.

        Goals that have outlived their lives do not count, whenever they are swept; goals in shares count as if it
        were alone.
        """
        for place in (planned, *(share.stands for share in self._shares.list_read(planned))):
            sweep_stores(self._slots.arrays.address, c.SIDES * place.at.node, c.SIDES * place.after.node)
        goals = self._count_goals(planned)
        return Usage(goals, goals * goal_bytes(len(planned.columns)) + held + _weigh_instances(planned))

    def _count_goals(self, planned: Planned) -> int:
        """Return how many goals the query keeps, with the goals of the shares that it reads."""
        queries = self._slots.arrays.net.queries
        return int(queries[planned.number, c.Q_GOALS] + sum(queries[share.number, c.Q_GOALS] for share in self._shares.list_read(planned)))

    def _count_allowed(self, planned: Planned) -> int:
        """Return how many goals the quota leaves to a query beside its collectors and instances."""
        quota, held = self.get_quota(planned.registered)
        most = quota.goals or c.FOREVER
        return min(most, (quota.state_bytes - held - _weigh_instances(planned)) // goal_bytes(len(planned.columns))) if quota.state_bytes else most

    def _count_left(self, planned: Planned) -> int:
        """Return how many more goals the query's own nodes, and each share that it reads, may keep before it is
        looked into.
        """
        return max(self._count_allowed(planned) - self._count_goals(planned), 0) // (1 + len(self._shares.list_read(planned)))

    def deal_goals(self, planned: Planned) -> None:
        """Tell the kernel when to look into a query.

        The kernel looks into it at its quota. If the query reads shares, its own nodes and each share get an equal
        part of what is left. The kernel looks into it at the end of a part; what is left is dealt out anew then.
        """
        queries = self._slots.arrays.net.queries
        left = self._count_left(planned)
        queries[planned.number, c.Q_LIMIT] = queries[planned.number, c.Q_GOALS] + left
        for share in self._shares.list_read(planned):
            queries[share.number, c.Q_LIMIT] = min(queries[share.number, c.Q_LIMIT], queries[share.number, c.Q_GOALS] + left)

    def deal_anew(self, planned: Planned) -> None:
        """Deal out what is left as `deal_goals` does, where shares may keep fewer goals than when it was last done."""
        queries = self._slots.arrays.net.queries
        for share in self._shares.list_read(planned):
            least = min(self._count_left(reader) for reader in self._shares.find_readers(share.number))
            queries[share.number, c.Q_LIMIT] = queries[share.number, c.Q_GOALS] + least
        queries[planned.number, c.Q_LIMIT] = queries[planned.number, c.Q_GOALS] + self._count_left(planned)

    # ------------------------------------------------------------ collectors
    @property
    def weighs_collectors(self) -> bool:
        """Return whether what a collector holds counts for a quota."""
        return any(self._limits_bytes(each.registered) for each in self._collectors.placed.values())

    def _limits_bytes(self, registered: int) -> bool:
        return registered in self._quotas and self._quotas[registered].state_bytes > 0

    def weigh_collectors(self) -> Iterator[Planned]:
        """Count what collectors hold, between feeds, and yield the queries that are beyond their quotas by it."""
        sizes: dict[int, int] = {}
        for each in self._collectors.placed.values():
            if self._limits_bytes(each.registered):
                sizes[each.registered] = sizes.get(each.registered, 0) + each.collector.size()
        for registered, held in sizes.items():
            planned = self._slots.planned[registered]
            self._held[registered] = held
            self.deal_goals(planned)
            if self._count_goals(planned) > self._count_allowed(planned):
                yield planned

    # ------------------------------------------------------------ too much
    def explain_excess(self, planned: Planned) -> str | None:
        """Return why a query is to stop, if it is."""
        quota, held = self.get_quota(planned.registered)
        reason = excess(planned.source.name, self._measure_usage(planned, held), quota)
        derived, bound = self._slots.arrays.net.queries[planned.number, [c.Q_DERIVED, c.Q_BOUND]].tolist()
        if reason is None and derived > bound:
            reason = f"derived more than {bound} triples at one instant, each KiB of text counted as one: the rule feeds itself without end"
        made, most = self._count_made(planned), int(self._slots.arrays.net.at[c.MOST_NOW])
        if reason is None and made > most:
            reason = f"took more than {most:,} steps at one instant: the matches of its parts at that instant multiply"
        return reason

    def _count_made(self, planned: Planned) -> int:
        """Return how much a query, or a share that it reads, has made at an instant; of several the most counts."""
        numbers = [planned.number, *(share.number for share in self._shares.list_read(planned))]
        return int(self._slots.arrays.net.queries[numbers, c.Q_MADE].max())
