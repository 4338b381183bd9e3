"""The host's collector takes over what the tables of groups hold, in its own form, where a value is not native."""

from decimal import Decimal
from typing import Any

from engine.aggregation.group_tables import layout as g
from engine.aggregation.group_tables.tables import Tables, read_wide
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
        found: dict[int, list[Any]] = {k: [] for k in live}
        for first in [int(t.at[g.FIRST_OUT])] if t.at[g.WINDOW] == g.RANGE else [int(t.groups[k, g.OLDEST]) for k in live]:
            s = first
            while s != g.NONE:
                row = t.solutions[s]
                values = [self._read_taken(row[in_solution:].tolist(), a) for a, (_, in_solution, _) in enumerate(t.program.tolist())]
                found[int(row[g.GROUP])].append([int(row[g.START]), int(row[g.END]), values])
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
                return self._total(a, row[g.ADDED], row[g.ADDED_WIDE], read_wide(row[g.SUM_LOW : g.TOTAL_WIDTH]))
            case AggregateFunction.MIN | AggregateFunction.MAX | AggregateFunction.SAMPLE | AggregateFunction.FIRST | AggregateFunction.LAST:
                return row[g.TERM]
            case _:
                raise AssertionError("not native")

    def _read_taken(self, row: list[int], a: int) -> Any:
        """Return what a solution has for a set function: a term, or a total."""
        match self.tables.program[a, g.OP]:
            case g.COUNT_TOTAL:
                return {"n": row[g.TOTAL_N]}
            case g.SUM_TOTAL | g.DOUBLE_TOTAL:
                return self._total(a, row[g.TOTAL_N], row[g.TOTAL_WIDE], read_wide(row[g.TOTAL_LOW : g.TOTAL_HIGH + 1]))
            case _:
                return row[g.TERM]

    def _total(self, a: int, n: int, wide: int, units: int) -> dict[str, int]:
        """Return what many addends are together, as `Sum` takes it in: in units of 2**-`shift` or of 10**-`scale`."""
        shift = g.DOUBLE_SHIFT if self.tables.program[a, g.OP] == g.DOUBLE_TOTAL else 0
        return {"n": n, "wide": wide, "units": units, "shift": shift, "scale": self.scales[a]}

    def _sum(self, row: list[int], n: int, scale: int) -> list[Any]:
        """Return a sum as `Sum` has it, whose float counts are of INFINITY too."""
        counts = [n, row[g.ERRORS], row[g.DECIMALS], 0, row[g.DOUBLES], row[g.NANS], row[g.RISES], row[g.FALLS]]
        units = (row[g.HIGH] << 32) + row[g.REST]
        limbs = self.tables.limbs[row[g.LIMBS], : g.LIMB_COUNT].tolist() if row[g.LIMBS] != g.NONE else []
        floating = sum(limb << (32 * k) for k, limb in enumerate(limbs))
        if row[g.DECIMALS]:
            return [counts, 0, str(Decimal(units).scaleb(-scale, WHOLE)), floating]
        return [counts, units // 10**scale, "0", floating]
