"""GROUP BY applies its set functions to everything since the start or to a window (semantics.md section 7)."""

from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

from engine.aggregation.arguments import Argument, Take
from engine.aggregation.group_tables import layout as g
from engine.aggregation.native_group_by import NativeGroups, fits, read_moments
from engine.aggregation.row_batch import Ints, Moments, Passage, Reports, RowBatch, in_order, no_rows, order_moments, rows_of, together
from engine.aggregation.set_functions import folding
from engine.aggregation.term_values import TermValues, Value
from engine.aggregation.window_contents import Ever, Sliding
from engine.dictionary.term_dictionary import TermTable
from engine.expressions.nondeterministic import NAMELESS, Naming
from engine.kernel.state import layout as c
from engine.rewrite.rename_hidden import restore_name
from engine.state_size import goal_bytes
from epsparql.algebra import Aggregate, AggregateFunction, RangeWindow, RowsWindow
from epsparql.terms import Variable

Key = tuple[int, ...]


class GroupCollector:
    """Reports each group that gains a solution, at that instant; with a STEP, each group with a solution in the
    window, at each step.

    The one group without keys reports when it comes into being, which a wake says. A timeless solution stands where
    it is given.
    """

    def __init__(
        self,
        keys: tuple[Variable, ...],
        aggregates: tuple[tuple[Variable, Aggregate], ...],
        window: RangeWindow | RowsWindow | None,
        reads: tuple[Variable, ...],
        graph: Variable | None = None,
        naming: Naming = NAMELESS,
        visible: tuple[Variable, ...] | None = None,
    ) -> None:
        """Make the collector; `graph` is the key that tells graphs apart inside GRAPH.

        If `graph` is the only key, each graph has one implicit group. `visible` are the columns that the group's own
        SELECT sees; without it, all that are named so.
        """
        self._visible = tuple(v for v in reads if restore_name(v) is not None) if visible is None else visible
        self.reads = reads
        self.writes = (*keys, *(variable for variable, _ in aggregates))
        self.done = False
        self.window = window
        self.step = window.step if isinstance(window, RangeWindow) else None
        self._implicit = set(keys) <= {graph}
        self._keys = [reads.index(key) if key in reads else None for key in keys]
        self.folding = folding([aggregate for _, aggregate in aggregates])
        self._arguments = [
            None if aggregate.argument is None else Argument(aggregate.argument, reads, naming, f"aggregate {k}")
            for k, aggregate in enumerate(self.folding.held)
        ]
        self._taken = [self._take_of(*each) for each in zip(self.folding.held, self._arguments, strict=True)]
        self._ordered = isinstance(window, RowsWindow) or any(a.function is not AggregateFunction.COUNT for a in self.folding.held)
        self._worth = TermValues()
        self._native: NativeGroups | None = None  # of a node that is deferred, until something comes that is not native
        self._groups: dict[Key, Ever | Sliding] = {}
        self._queue: deque[tuple[int, Key]] = deque()  # of a RANGE window: the end and group of each solution in it, oldest first
        self._kept: list[Any] | None = None  # groups of a snapshot
        self._now = self._latest = -c.BIG  # _latest: the end of the last solution that schedules reports

    def decide(self, now: int, rows: RowBatch, wakes: RowBatch, horizon: int | None, terms: TermTable) -> RowBatch:
        self._worth.over(terms)
        self._now = now
        if self._kept is not None:
            self._remade(self._kept)
            self._kept = None
        gained = self._take(rows.standing(now), now, terms) if len(rows) else {}
        if isinstance(self.window, RangeWindow):
            self._leave(now - self.window.length)
        if self.step is not None and isinstance(self.window, RangeWindow):
            if len(rows) and (horizon is None or now <= horizon):
                self._latest = now
            reports = now % self.step == 0 and self._latest > now - self.window.length
            return self._report_groups(now, list(self._groups), now - self.window.length) if reports else no_rows(len(self.writes))
        if self._implicit and len(wakes):
            gained |= dict.fromkeys(self._keys_of(wakes.cells))
        return self._report_groups(now, gained)

    # ------------------------------------------------------------ many instants at once
    def defer(self) -> bool:
        """Let its node decide on many instants at once: natively, if its set functions are native; return that it can."""
        if fits(self.folding.held) and not (self._implicit and self._keys):
            self._native = NativeGroups(len(self._keys), self.folding.held, self.window)
        return True

    def decide_all(self, moments: Moments, passage: Passage, horizon: int | None, terms: TermTable) -> Reports:
        """Call `decide`, or its native form, for each of the instants."""
        if self._native is not None:
            moments = moments.standing()
            taken = read_moments(moments, self._keys, self._arguments, terms)
            values = self._native.values(taken, terms)
            if values is not None:
                ordered = values[1] or isinstance(self.window, RowsWindow)
                order = order_moments(moments, self.reads, self._visible, terms) if ordered else np.arange(len(moments))
                return self._native.decide(taken.where(order), values[0][order], self.folding.shown, horizon, terms)
            self._kept, self._latest, self._native = self._native.handed_over(), int(self._native.tables.at[g.LATEST]), None
        parts = []
        for moment in moments.each() if len(moments) else ():
            rows, wakes = (moment.rows.where(moment.side == side) for side in (c.LEFT, c.BLOCKER))
            given = self.decide(int(moment.now[0]), rows, wakes, horizon, terms)
            parts.append(Reports(np.full(len(given), moment.entry[0], np.int64), given))
        return together(parts, len(self.writes))

    def due(self) -> int:
        if self.step is None or not isinstance(self.window, RangeWindow):
            return c.FOREVER
        following = (self._now // self.step + 1) * self.step
        return following if self._latest > following - self.window.length else c.FOREVER

    # ------------------------------------------------------------ solutions come and leave
    def _take(self, rows: RowBatch, now: int, terms: TermTable) -> dict[Key, None]:
        """Add the solutions to their groups, and name these."""
        if self._ordered and len(rows) > 1:
            rows = rows.where(in_order(rows.placed(now), self.reads, terms, self._visible))
        placed = rows.placed(now)
        keys = self._keys_of(rows.cells)
        worth, ranged, last = self._worth, isinstance(self.window, RangeWindow), self.window.count if isinstance(self.window, RowsWindow) else None
        for key, start, end, values in zip(keys, placed.start.tolist(), placed.end.tolist(), self._read_values(rows, now, terms), strict=True):
            group = self._groups.get(key)
            if group is None:
                group = self._groups[key] = self._new()
            group.add(start, end, values, worth)
            if ranged:
                self._queue.append((end, key))
            elif last is not None and isinstance(group, Sliding) and len(group.rows) > last:
                group.drop(worth)
        return dict.fromkeys(keys)

    def _leave(self, until: int) -> None:
        """Drop the solutions that have left a RANGE window, and the groups that have none."""
        while self._queue and self._queue[0][0] <= until:
            _, key = self._queue.popleft()
            group = self._groups[key]
            assert isinstance(group, Sliding)
            group.drop(self._worth)
            if not group.rows:
                del self._groups[key]

    def _new(self) -> Ever | Sliding:
        return Ever(self.folding) if self.window is None else Sliding(self.folding)

    def _keys_of(self, cells: Ints) -> list[Key]:
        unbound = [c.UNBOUND] * len(cells)
        columns = [unbound if k is None else cells[:, k].tolist() for k in self._keys]
        return list(zip(*columns, strict=True)) if columns else [()] * len(cells)

    def _read_values(self, rows: RowBatch, now: int, terms: TermTable) -> list[tuple[Value, ...]]:
        """Return, for each solution, the value that each set function takes in."""
        columns = [take(rows, now, terms) for take in self._taken]
        return list(zip(*columns, strict=True)) if columns else [()] * len(rows)

    def _take_of(self, aggregate: Aggregate, argument: Argument | None) -> Take:
        """Return the function for what an aggregate takes of each solution.

        COUNT(*) counts solutions, and with DISTINCT what they bind visibly.
        """
        if argument is not None:
            return argument.numbers
        if not aggregate.distinct:
            return lambda rows, _now, _terms: [1] * len(rows)
        columns = [self.reads.index(variable) for variable in self._visible]
        return lambda rows, _now, _terms: [tuple(cells) for cells in rows.cells[:, columns].tolist()]

    # ------------------------------------------------------------ reports
    def _report_groups(self, now: int, keys: Iterable[Key], start: int | None = None) -> RowBatch:
        """Report one row a group, on [`start` or the least start, now]; a group without solutions stands at [now, now]."""
        starts, cells = [], []
        for key in keys:
            group = self._groups.get(key) or self._new()
            starts.append(min(group.least, now) if start is None else start)
            cells.append([*key, *group.results(self._worth)])
        return rows_of(starts, [now] * len(starts), cells, len(self.writes))

    # ------------------------------------------------------------ snapshots
    def size(self) -> int:
        """Return the bytes of its state for the quota.

        A group counts as a goal of its set functions, a solution in a window as one of the variables that are read.
        """
        groups, solutions = len(self._groups), len(self._queue)
        if self._native is not None:
            groups, solutions = self._native.live, 0 if self.window is None else self._native.solutions
        elif isinstance(self.window, RowsWindow):
            solutions = sum(len(group.rows) for group in self._groups.values() if isinstance(group, Sliding))
        return goal_bytes(len(self.writes)) * groups + goal_bytes(len(self.reads)) * solutions

    def tables(self) -> dict[str, Ints]:
        """Return the part of its state that is in tables."""
        return {} if self._native is None else self._native.arrays()

    def restore_tables(self, tables: dict[str, Ints]) -> None:
        """Take in the tables of a snapshot, after `restore`."""
        if self._native is not None:
            self._native.restore(self._kept, tables)
            self._kept = None

    def state(self) -> object:
        if self._native is not None:
            return [self._now, self._latest, self._native.state(), True]
        groups = [[list(key), group.state()] for key, group in self._groups.items()] if self._kept is None else self._kept
        return [self._now, self._latest, groups, False]

    def restore(self, state: Any) -> None:
        """Take in a state; groups are made anew at the next instant, which brings the terms."""
        self._groups, self._queue = {}, deque()
        self._now, self._latest, self._kept, native = state
        if not native:
            self._native = None

    def _remade(self, kept: list[Any]) -> None:
        for key, held in kept:
            group = self._groups[tuple(key)] = self._new()
            group.restore(held, self._worth)
        if isinstance(self.window, RangeWindow):
            queue = [(end, key) for key, group in self._groups.items() if isinstance(group, Sliding) for _, end, _ in group.rows]
            self._queue = deque(sorted(queue, key=lambda entry: entry[0]))
