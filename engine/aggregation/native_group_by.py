"""The groups of one node stand in tables, while all that is aggregated has a native value."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.aggregation.arguments import Argument, terms_of_many
from engine.aggregation.group_tables import layout as g
from engine.aggregation.group_tables.fallback import States
from engine.aggregation.group_tables.numeric_columns import MOST, Plain, Worth, addends, plain_of, ranks
from engine.aggregation.group_tables.results import results
from engine.aggregation.group_tables.tables import OPERATIONS, ORDERED, Tables, kept, list_window, read_wide, tables, with_room, write_wide
from engine.aggregation.row_batch import Moments, Reports, RowBatch
from engine.dictionary.term_dictionary import TermTable
from engine.kernel.state import layout as c
from engine.native.entries import spread_groups, sweep
from epsparql.algebra import Aggregate, AggregateFunction, RangeWindow, RowsWindow, Var
from epsparql.deferred_methods import dataclass

Ints = NDArray[np.int64]

_INDIFFERENT = (AggregateFunction.MIN, AggregateFunction.MAX, AggregateFunction.SAMPLE)
_FOREVER = 1 << 61


def fits(held: Sequence[Aggregate]) -> bool:
    """Return whether all set functions are native."""
    return all(a.function in OPERATIONS and (not a.distinct or a.function in _INDIFFERENT) for a in held)


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """Holds what the moments of a feed bring, in columns: the key of each, and the term that each set function takes
    (0 for none).
    """

    moments: Ints  # n x MOMENT_WIDTH
    keys: Ints
    terms: tuple[Ints, ...]  # by set function; the same array where the argument is the same

    def where(self, order: Ints) -> "Taken":
        return Taken(self.moments[order], self.keys[order], tuple(terms[order] for terms in self.terms))


def read_moments(moments: Moments, keys: Sequence[int | None], arguments: Sequence[Argument | None], terms: TermTable) -> Taken:
    """Return what moments bring.

    `keys` are the columns of the key, None where it is unbound. `arguments` are what each set function takes, None
    for COUNT(*).
    """
    solutions = np.flatnonzero(moments.side == c.LEFT)
    rows, now = moments.rows.where(solutions), moments.now[solutions]
    known: dict[object, Ints] = {}
    columns = []
    for argument in arguments:
        what = argument.expression if argument is not None and isinstance(argument.expression, Var) else argument
        if what not in known:
            known[what] = np.zeros(len(moments), np.int64)
            known[what][solutions] = terms_of_many(argument, rows, now, terms)
        columns.append(known[what])
    found = np.zeros((len(moments), len(keys)), np.int64)
    for k, place in enumerate(keys):
        if place is not None:
            found[:, k] = moments.rows.cells[:, place]
    placed = moments.rows.placed(moments.now)
    return Taken(np.stack([moments.now, moments.entry, moments.side, placed.start, placed.end], axis=1), found, tuple(columns))


class NativeGroups:
    """Keeps one node's groups; `scales` are, for each set function, the decimal places that its sums count in."""

    def __init__(self, keys: int, held: tuple[Aggregate, ...], window: RangeWindow | RowsWindow | None, *, totals: bool = False) -> None:
        self.keys, self.held = keys, held
        self.tables: Tables = tables(keys, held, window, totals=totals)
        self.scales = [0] * len(held)
        self._doubles = [False] * len(held)

    # ------------------------------------------------------------ what comes
    def values(self, taken: Taken, terms: TermTable) -> tuple[Ints, bool] | None:
        """Return the columns of values (n x VALUE_WIDTH a set function), and whether the order of an instant's
        solutions matters.

        It does to equal values of an extreme that are different terms, and to what the first or the last value is.
        None if something has no native value: nothing has changed then.
        """
        values, tied = np.zeros((len(taken.moments), g.VALUE_WIDTH * len(self.held)), np.int64), False
        known: dict[int, tuple[Ints, Ints, Plain]] = {}
        for a, (aggregate, column) in enumerate(zip(self.held, taken.terms, strict=True)):
            at = g.VALUE_WIDTH * a
            values[:, at + g.TERM] = column
            if aggregate.function is AggregateFunction.COUNT or aggregate.function in ORDERED:
                tied = tied or aggregate.function in ORDERED
                continue
            if id(column) not in known:
                distinct, which = np.unique(column, return_inverse=True)
                known[id(column)] = distinct, which, plain_of(distinct, terms)
            distinct, which, plain = known[id(column)]
            adds = aggregate.function is AggregateFunction.SUM
            worth = addends(distinct, plain, terms) if adds else ranks(distinct, plain, terms)
            value = self._scaled(a, worth) if adds else worth.value
            if value is None or worth.foreign:
                return None
            values[:, at + g.CLASS], values[:, at + g.VALUE], values[:, at + g.LOW] = worth.class_[which], value[which], worth.low[which]
            tied = tied or (not adds and _has_equals(distinct, worth))
        return values, tied

    def _scaled(self, a: int, worth: Worth) -> Ints | None:
        """Return mantissas in the scale of a SUM, which grows as it must.

        The result is None if a mantissa is too large then, or doubles meet fractions.
        """
        exact = (worth.class_ == g.INTEGER) | (worth.class_ == g.DECIMAL)
        scale = max(self.scales[a], int(worth.scale.max(initial=0)))
        doubles = self._doubles[a] or bool((worth.class_ >= g.DOUBLE).any())
        factors = 10 ** (scale - worth.scale)
        if (doubles and scale) or (np.abs(worth.value[exact]) > (MOST - 1) // factors[exact]).any() or not self._rescale(a, scale):
            return None
        self._doubles[a] = doubles
        return np.where(exact, worth.value * np.where(exact, factors, 1), worth.value)

    def _rescale(self, a: int, scale: int) -> bool:
        """Bring what a SUM holds to a larger scale, and return whether the values fit."""
        if scale == self.scales[a]:
            return True
        factor = 10 ** (scale - self.scales[a])
        t = self.tables
        _, in_solution, in_group = t.program[a].tolist()
        high, rest = t.groups[:, in_group + g.HIGH], t.groups[:, in_group + g.REST]
        class_, value = t.solutions[:, in_solution + g.CLASS], t.solutions[:, in_solution + g.VALUE]
        exact = (class_ == g.INTEGER) | (class_ == g.DECIMAL)
        if np.abs(value[exact]).max(initial=0) > (MOST - 1) // factor or np.abs(high).max(initial=0) >= MOST // factor:
            return False
        value[exact] *= factor
        for _ in range(scale - self.scales[a]):
            rest *= 10
            high *= 10
            high += rest >> 32
            rest &= (1 << 32) - 1
        self.scales[a] = scale
        return True

    def scale_total(self, a: int, scale: int, shift: int, factor: int) -> bool:
        """Multiply what a total of SUM holds by factor * 2**shift, to a larger scale, or to that of doubles if it is shifted.

        Return whether it fits.
        """
        t = self.tables
        _, in_solution, in_group = t.program[a].tolist()
        live = np.flatnonzero(t.groups[: t.at[g.GROUPS_TOP], g.N] > 0).tolist()
        sums = [t.groups[k, in_group + g.SUM_LOW : in_group + g.TOTAL_WIDTH] for k in live]
        sums += [t.solutions[s, in_solution + g.TOTAL_LOW : in_solution + g.TOTAL_HIGH + 1] for s in list_window(t)]
        scaled = [read_wide(cells.tolist()) * factor << shift for cells in sums]
        if any(value.bit_length() > 124 for value in scaled):
            return False
        for cells, value in zip(sums, scaled, strict=True):
            cells[:] = write_wide(value, len(cells))
        self.scales[a] = scale
        if shift:
            t.program[a, g.OP] = g.DOUBLE_TOTAL
        return True

    # ------------------------------------------------------------ what is reported
    def decide(self, taken: Taken, values: Ints, shown: Sequence[tuple[int, AggregateFunction]], horizon: int | None, terms: TermTable) -> Reports:
        """Take the moments in and report; `shown` are the set functions of the reports."""
        self.tables.at[g.HORIZON] = _FOREVER if horizon is None else horizon
        self.tables.at[g.MOMENT] = 0
        return self.reports(self._swept(taken, values), shown, terms)

    def reports(self, out: Ints, shown: Sequence[tuple[int, AggregateFunction]], terms: TermTable) -> Reports:
        """Return the reports that a sweep gave, with their terms."""
        base = g.R_KEY + self.keys
        columns = [out[:, g.R_KEY : base]]
        for k, function in shown:
            given = out[:, base + g.RESULT_WIDTH * k : base + g.RESULT_WIDTH * (k + 1)]
            columns.append(results(function, given, self.scales[k], terms)[:, None])
        return Reports(out[:, g.R_ENTRY], RowBatch(out[:, g.R_START], out[:, g.R_END], np.concatenate(columns, axis=1)))

    def _swept(self, taken: Taken, values: Ints) -> Ints:
        n = len(taken.moments)
        out = np.zeros((n, g.R_KEY + self.keys + g.RESULT_WIDTH * len(self.held)), np.int64)
        gained, parts = np.zeros(n, np.int64), []
        while True:
            self.spread_heads()
            code = sweep(*self.tables, taken.moments, taken.keys, values, gained, out)
            at = self.tables.at
            parts.append(out[: at[g.FOUND]].copy())
            at[g.FOUND] = 0
            if code == g.DONE:
                return np.concatenate(parts)
            self.tables = with_room(self.tables, int(at[g.NEED]))
            if at[g.NEED] > len(out):
                out = np.zeros((2 * int(at[g.NEED]), out.shape[1]), np.int64)

    def spread_heads(self, more: int = 0) -> None:
        """Make the table of heads large enough for `more` groups."""
        t, wanted = self.tables, int(self.tables.at[g.LIVE]) + more
        if wanted > len(t.heads):
            heads = np.full(2 << wanted.bit_length(), g.NONE, np.int64)
            spread_groups(t.groups, int(t.at[g.GROUPS_TOP]), self.keys, heads)
            self.tables = t._replace(heads=heads)

    # ------------------------------------------------------------ what it keeps
    @property
    def live(self) -> int:
        """Return the number of groups."""
        return int(self.tables.at[g.LIVE])

    @property
    def solutions(self) -> int:
        """Return the number of solutions in all groups."""
        return int(self.tables.groups[: self.tables.at[g.GROUPS_TOP], g.N].sum())

    def arrays(self) -> dict[str, Ints]:
        return kept(self.tables)._asdict()

    def state(self) -> Any:
        return [self.scales, self._doubles]

    def restore(self, state: Any, arrays: dict[str, Ints]) -> None:
        self.scales, self._doubles = state
        at = np.zeros(g.AT_WIDTH, np.int64)  # older snapshots have fewer columns
        at[: len(arrays["at"])] = arrays["at"]
        self.tables = Tables(**arrays | {"at": at})

    def handed_over(self) -> list[Any]:
        """Return the groups' states as the host's collector has them."""
        return self.states.all()

    @property
    def states(self) -> States:
        return States(self.tables, self.keys, self.held, self.scales)


def _has_equals(terms: Ints, worth: Worth) -> bool:
    bound = terms != 0
    columns = np.stack([worth.low[bound], worth.value[bound], worth.class_[bound]])
    columns = columns[:, np.lexsort(columns)]
    return bool((np.diff(columns) == 0).all(axis=0).any())
