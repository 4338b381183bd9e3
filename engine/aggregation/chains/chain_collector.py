"""A chain of SEQs under an aggregate: its operands' solutions come here one by one, and no match is made."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.aggregation.arguments import Argument
from engine.aggregation.chains import layout as l
from engine.aggregation.chains.addends import SumUnit, read_addends
from engine.aggregation.chains.chain_tables import EXTREMES, ChainShape, chain_tables, kept_chains, live_events, restored_chains, with_room_for
from engine.aggregation.chains.ranks import Ranks
from engine.aggregation.group_by import GroupCollector
from engine.aggregation.group_tables import layout as g
from engine.aggregation.native_group_by import NativeGroups, Taken
from engine.aggregation.row_batch import Moments, Passage, Reports, RowBatch, rows_of
from engine.dictionary.term_dictionary import TermTable
from engine.errors import SolverStopped
from engine.expressions.nondeterministic import NAMELESS, Naming
from engine.kernel.state import layout as c
from engine.kernel.state.arrays import MOST_AT_ONCE
from engine.native.entries import scale_values, sweep_chains
from engine.state_size import goal_bytes
from epsparql.algebra import AggregateFunction

Ints = NDArray[np.int64]
MOST_LISTED = 16 * MOST_AT_ONCE
"""So many matches may be listed at one instant, because a match that joins make counts as a sixteenth of a step."""
_STOPPED = {
    l.TOO_LARGE: "its matches are more, or add up to more, than 125 bits hold: shorten WITHIN",
    l.TOO_MANY: f"took more than {MOST_AT_ONCE:,} steps at one instant: the matches of its parts at that instant multiply",
}


class _Given(NamedTuple):
    """Holds what a sweep gives: solutions, each a moment; sums with their groups' keys, or matches with their terms."""

    moments: Ints
    keys: Ints
    values: Ints


class ChainCollector:
    """Reports what `group` would report of all matches of a chain.

    Sums over matches go to groups of totals. A value that no sum of 128 bits holds, such as NaN, ends that for good:
    from then on, matches are listed and go to `group`.
    """

    def __init__(self, group: GroupCollector, shape: ChainShape, naming: Naming = NAMELESS) -> None:
        self.group, self.shape, self.reads, self.writes = group, shape, group.reads, group.writes
        self.window, self.step, self.done = group.window, group.step, False
        self._held = group.folding.held
        self._arguments = [
            None if a.argument is None else Argument(a.argument, self.reads, naming, f"aggregate {k}") for k, a in enumerate(self._held)
        ]
        self._keys = group.writes[: len(group.writes) - len(group.folding.shown)]
        self._totals: NativeGroups | None = NativeGroups(len(self._keys), self._held, group.window, totals=True)
        self._units = [SumUnit()] * len(self._held)
        self._ranks = [Ranks() for _ in self._held]
        self._now = -c.BIG
        self._chains = chain_tables(shape, self._held, self.reads, self._keys)

    # ------------------------------------------------------------ what comes, and what is reported
    def defer(self) -> bool:
        """Let its node decide on many instants at once; return that it can."""
        return self.group.defer()

    def decide(self, now: int, rows: RowBatch, wakes: RowBatch, horizon: int | None, terms: TermTable) -> RowBatch:
        due = rows_of([c.BIG], [-c.BIG], [[c.UNBOUND] * len(self.reads)], len(self.reads))
        side = np.repeat(np.array([c.LEFT, c.BLOCKER, c.RIGHT]), [len(rows), len(wakes), len(due)])
        whole = RowBatch(*(np.concatenate([getattr(part, name) for part in (rows, wakes, due)]) for name in ("start", "end", "cells")))
        moments = Moments(np.full(len(side), now), np.zeros(len(side), np.int64), side, whole)
        return self.decide_all(moments, Passage(whole.end[:0], whole.end[:0]), horizon, terms).rows

    def decide_all(self, moments: Moments, passage: Passage, horizon: int | None, terms: TermTable) -> Reports:
        """Take many instants in and report.

        Raises SolverStopped where matches have to be listed, and are more than a query may make at one instant.
        """
        moments, steps = self._in_order(moments, terms)
        self._now = int(moments.now[-1])
        values = None if self._totals is None else self._read_values(moments, steps, terms)
        if values is None and self._totals is not None:
            self.group.restore([int(moments.now[0]), int(self._totals.tables.at[g.LATEST]), self._totals.handed_over(), False])
            self._totals = None
        given = self._swept(moments, steps, values)
        if self._totals is None:
            rows = RowBatch(given.moments[:, g.M_START], given.moments[:, g.M_END], given.keys)
            listed = Moments(given.moments[:, g.M_NOW], given.moments[:, g.M_ENTRY], given.moments[:, g.M_SIDE], rows)
            return self.group.decide_all(listed, passage, horizon, terms)
        found = self._totals.decide(Taken(given.moments, given.keys, ()), given.values, self.group.folding.shown, horizon, terms)
        if self._totals.tables.at[g.EXCESS]:
            raise SolverStopped(_STOPPED[l.TOO_LARGE])
        return found

    def due(self) -> int:
        if self._totals is None or self.step is None:
            return self.group.due()
        following = (self._now // self.step + 1) * self.step
        return following if self._totals.tables.at[g.LATEST] > following - self._totals.tables.at[g.LENGTH] else c.FOREVER

    def _in_order(self, moments: Moments, terms: TermTable) -> tuple[Moments, Ints]:
        """Return the moments with the operand of each, of one instant the last one first. A blocker stands between its
        operands, and is numbered by its gap behind the last operand.
        """
        marks = np.array([terms.intern(mark) for mark in self.shape.marks])
        numbers = np.array([*range(self.shape.steps), *(self.shape.steps + gap for gap, _ in self.shape.gaps)])
        steps = np.full(len(moments), self.shape.steps - 1)
        solutions, order = moments.side == c.LEFT, np.argsort(marks)
        column = moments.rows.cells[solutions, self.reads.index(self.shape.marked)]
        steps[solutions] = numbers[order[np.searchsorted(marks, column, sorter=order)]]
        assert not moments.rows.where(solutions).timeless, "no operand of a chain is timeless"
        places = np.where(steps < self.shape.steps, 2 * steps, 2 * (steps - self.shape.steps) + 1)
        kept = np.lexsort((-places, moments.now))
        if self.shape.gaps:
            return moments.where(kept), steps[kept]
        last = np.flatnonzero(solutions & (steps == self.shape.steps - 1) & (moments.rows.start < moments.rows.end))
        if len(last):  # of those that differ in their starts alone, only the latest counts: it has all matches of the others
            kept = kept[~np.isin(kept, _find_longer(moments, np.flatnonzero(solutions & (steps == self.shape.steps - 1))))]
        return moments.where(kept), steps[kept]

    def _read_values(self, moments: Moments, steps: Ints, terms: TermTable) -> Ints | None:
        """Return what each event adds to the parts of a weight, two cells a part; None if a sum cannot hold a value."""
        sums, units = int(self._chains.at[l.PARTS]) - 1, list(self._units)
        values, extremes = (
            np.zeros((len(moments), sums, 2), np.int64),
            np.zeros((len(moments), int(self._chains.at[l.EXTREMES]), g.VALUE_WIDTH), np.int64),
        )
        for a, (link, operand, argument) in enumerate(zip(self._chains.links.tolist(), self.shape.operands, self._arguments, strict=True)):
            if operand is None or argument is None:
                continue
            chosen = np.flatnonzero((moments.side == c.LEFT) & (steps == operand))
            numbers, part = np.array(argument.numbers(moments.rows.where(chosen), 0, terms), np.int64), link[l.LINK_PART] - 1
            if self._held[a].function in EXTREMES:
                ranked = self._ranks[a].rank_terms(numbers, terms, partial(self._live_values, part + 1))
                if ranked is None:
                    return None
                extremes[chosen, part + 1] = ranked
                continue
            if self._held[a].function is AggregateFunction.COUNT:
                values[chosen, part, 0] = numbers != c.UNBOUND
                continue
            found = read_addends(numbers, units[a], terms)
            if found is None:
                return None
            units[a] = found.unit
            values[chosen, part, 0], values[chosen, part, 1], values[chosen, link[l.LINK_WIDE] - 1, 0] = found.low, found.high, found.wide
        if not all(self._rescale(a, unit) for a, unit in enumerate(units)):
            return None
        return np.concatenate([values.reshape(len(moments), -1), extremes.reshape(len(moments), -1)], axis=1)

    def _live_values(self, extreme: int) -> Ints:
        """Return the values that live events have for an extreme, as rows of VALUE_WIDTH."""
        first = l.EVENT_WIDTH + 2 * (int(self._chains.at[l.PARTS]) - 1) + g.VALUE_WIDTH * extreme
        return live_events(self._chains)[:, first : first + g.VALUE_WIDTH]

    def _rescale(self, a: int, unit: SumUnit) -> bool:
        """Bring what is there to a unit, and return whether it fits."""
        before, self._units[a] = self._units[a], unit
        if unit == before:
            return True
        shift = g.DOUBLE_SHIFT if unit.has_doubles else 0
        factor = 10 ** (unit.scale - before.scale)
        assert self._totals is not None
        return not scale_values(*self._chains, int(self._chains.links[a, l.LINK_PART]), shift, factor) and self._totals.scale_total(
            a, unit.scale, shift, factor
        )

    def _swept(self, moments: Moments, steps: Ints, values: Ints | None) -> _Given:
        n, width = len(moments), len(self._held) * g.VALUE_WIDTH
        rows = moments.rows
        came = np.stack([moments.now, moments.entry, moments.side, rows.start, rows.end], axis=1), steps, np.ascontiguousarray(rows.cells)
        at = self._chains.at
        width_taken = 2 * (int(at[l.PARTS]) - 1) + g.VALUE_WIDTH * int(at[l.EXTREMES])
        taken = np.zeros((n, width_taken), np.int64) if values is None else values
        room, parts = n, list[_Given]()
        self._chains = with_room_for(self._chains, n)
        at = self._chains.at
        at[l.AT_MOMENT], at[l.MOST_MADE] = 0, MOST_LISTED
        while True:
            out = _Given(*(np.zeros((room, k), np.int64) for k in (g.MOMENT_WIDTH, len(self.reads) if values is None else len(self._keys), width)))
            code = sweep_chains(*self._chains, came[0], came[1], taken, came[2], *(out._replace(values=out.values[:0]) if values is None else out))
            given, at[l.GIVEN] = int(at[l.GIVEN]), 0
            parts.append(_Given(*(array[:given] for array in out)))
            if at[l.FAULT]:
                raise SolverStopped(_STOPPED[int(at[l.FAULT])])
            if code == g.DONE:
                return _Given(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
            room = max(n, int(at[l.WANTED]))

    # ------------------------------------------------------------ what it keeps
    @property
    def ways(self) -> tuple[int, int]:
        """Return how many last events were answered by sums, and for how many the matches were listed."""
        return int(self._chains.at[l.SUMMED]), int(self._chains.at[l.ENUMERATED])

    def size(self) -> int:
        """Return the bytes of its state for the quota: an event and a key count as goals, and groups as they do."""
        at = self._chains.at
        groups = self.group.size() if self._totals is None else goal_bytes(len(self.writes)) * self._totals.live
        if self._totals is not None and self.window is not None:
            groups += goal_bytes(len(self.writes)) * self._totals.solutions
        return goal_bytes(len(self.reads)) * int(at[l.NEXT_EVENT] - at[l.OLDEST_EVENT] + at[l.LIVE_KEYS]) + groups

    def tables(self) -> dict[str, Ints]:
        """Return the part of its state that is in tables."""
        return kept_chains(self._chains) | (self.group.tables() if self._totals is None else self._totals.arrays())

    def restore_tables(self, tables: dict[str, Ints]) -> None:
        """Take in the tables of a snapshot, after `restore`."""
        self._chains = restored_chains(self._chains, tables)
        groups = {name: table for name, table in tables.items() if not name.startswith("chain.")}
        if self._totals is None:
            self.group.restore_tables(groups)
        else:
            self._totals.restore([[unit.scale for unit in self._units], [False] * len(self._units)], groups)

    def state(self) -> object:
        return [self._now, [list(unit) for unit in self._units], None if self._totals is not None else self.group.state()]

    def restore(self, state: Any) -> None:
        self._now, units, listed = state
        self._units = [SumUnit(scale, bool(has_doubles)) for scale, has_doubles in units]
        if listed is not None:
            self._totals = None
            self.group.restore(listed)


def _find_longer(moments: Moments, last: Ints) -> Ints:
    """Return those of the last events that differ from another one of their instant in an earlier start alone."""
    rows = moments.rows
    columns = np.column_stack([moments.now[last], rows.cells[last]])
    order = np.lexsort((rows.start[last], *columns.T))
    same = (np.diff(columns[order], axis=0) == 0).all(axis=1)
    found: Ints = last[order[:-1][same]]
    return found
