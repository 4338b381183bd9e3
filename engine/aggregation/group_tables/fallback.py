"""The host's collector takes over what the tables of groups hold, in its own form, where a value is not native."""

from decimal import Decimal
from typing import Any

from engine.aggregation.group_tables import layout as g
from engine.aggregation.group_tables.tables import Tables
from engine.expressions.numeric import WHOLE
from epsparql.algebra import Aggregate, AggregateFunction
from epsparql.deferred_methods import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class States:
    tables: Tables
    keys: int
    held: tuple[Aggregate, ...]
    scales: list[int]

    def all(self) -> list[Any]:
        """Return [key, state] of each group."""
        t = self.tables
        live = [k for k in range(int(t.at[g.GROUPS_TOP])) if t.groups[k, g.N] > 0]
        ever = t.at[g.WINDOW] == g.EVER
        rows = {} if ever else self._solutions(live)
        return [[self.key(k), self.ever(k) if ever else rows[k]] for k in live]

    def key(self, k: int) -> list[int]:
        found: list[int] = self.tables.groups[k, g.KEY : g.KEY + self.keys].tolist()
        return found

    def _solutions(self, live: list[int]) -> dict[int, list[Any]]:
        """Return [start, end, values] of each solution of a group, oldest first."""
        t = self.tables
        columns = [in_solution + g.TERM for _, in_solution, _ in t.program.tolist()]
        found: dict[int, list[Any]] = {k: [] for k in live}
        for first in [int(t.at[g.FIRST_OUT])] if t.at[g.WINDOW] == g.RANGE else [int(t.groups[k, g.OLDEST]) for k in live]:
            s = first
            while s != g.NONE:
                row = t.solutions[s]
                found[int(row[g.GROUP])].append([int(row[g.START]), int(row[g.END]), row[columns].tolist()])
                s = int(row[g.NEXT])
        return found

    def ever(self, k: int) -> list[Any]:
        """Return the state of a group without window."""
        row = self.tables.groups[k]
        return [int(row[g.LEAST]), [self._accumulator(k, a) for a in range(len(self.held))]]

    def _accumulator(self, k: int, a: int) -> Any:
        row = self.tables.groups[k, int(self.tables.program[a, g.IN_GROUP]) :].tolist()
        match self.held[a].function:
            case AggregateFunction.COUNT:
                return row[g.COUNTED]
            case AggregateFunction.SUM:
                if self.tables.program[a, g.OP] == g.SUM:
                    return self._sum(row, int(self.tables.groups[k, g.N]), self.scales[a])
                return self._total(row, self.scales[a], doubles=bool(self.tables.program[a, g.OP] == g.DOUBLE_TOTAL))
            case AggregateFunction.MIN | AggregateFunction.MAX | AggregateFunction.SAMPLE | AggregateFunction.FIRST | AggregateFunction.LAST:
                return row[g.TERM]
            case _:
                raise AssertionError("not native")

    def _total(self, row: list[int], scale: int, *, doubles: bool) -> list[Any]:
        """Return a total of SUM as `Sum` has it. All that is added beside doubles counts as one of them."""
        n, wide, low, middle, high, *_ = row
        units = high << 128 | middle % (1 << 64) << 64 | low % (1 << 64)
        if doubles and wide:
            return [[n, 0, 0, 0, wide, 0, 0, 0], 0, "0", units << g.UNIT - g.DOUBLE_SHIFT]
        if wide:
            return [[n, 0, wide, 0, 0, 0, 0, 0], 0, str(Decimal(units).scaleb(-scale, WHOLE)), 0]
        return [[n, 0, 0, 0, 0, 0, 0, 0], units >> g.DOUBLE_SHIFT if doubles else units // 10**scale, "0", 0]

    def _sum(self, row: list[int], n: int, scale: int) -> list[Any]:
        """Return a sum as `Sum` has it, whose float counts are of INFINITY too."""
        counts = [n, row[g.ERRORS], row[g.DECIMALS], 0, row[g.DOUBLES], row[g.NANS], row[g.RISES], row[g.FALLS]]
        units = (row[g.HIGH] << 32) + row[g.REST]
        limbs = self.tables.limbs[row[g.LIMBS], : g.LIMB_COUNT].tolist() if row[g.LIMBS] != g.NONE else []
        floating = sum(limb << (32 * k) for k, limb in enumerate(limbs))
        if row[g.DECIMALS]:
            return [counts, 0, str(Decimal(units).scaleb(-scale, WHOLE)), floating]
        return [counts, units // 10**scale, "0", floating]
