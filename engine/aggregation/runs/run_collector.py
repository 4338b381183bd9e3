"""Runs and sessions: windows that the data itself delimits (semantics.md section 13).

A group has at most one open run. What is kept of it is what its aggregates and the next link need: accumulators, the
least start, the last end, the values of PREV. Elements of an instant are taken first, in their order; then what lies
between elements (UNTIL), deadlines, and the last instant of the streams close runs:

    element y of the group ── links to the open run ──▶ the run grows ─────────────┐
                     └─────── does not ──▶ the run is over (a), y begins another ──┴▶ EACH: runs that grew report
    UNTIL's z after the last element (c), the deadline (b), the last instant (d) ──▶ the run is over ──▶ CLOSED: it reports
"""

from collections.abc import Iterator, Sequence
from functools import partial
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.aggregation.arguments import Argument, terms_of_many
from engine.aggregation.native_group_by import fits, read_moments
from engine.aggregation.operator import AT_LAST
from engine.aggregation.row_batch import Ints, Moments, Passage, Reports, RowBatch, in_order, no_rows, order_moments, rows_of, together
from engine.aggregation.runs.link_code import LinkCode, link_code
from engine.aggregation.runs.native_runs import Elements, NativeRuns
from engine.aggregation.runs.open_run import Element, Row, Run, RunShape
from engine.aggregation.set_functions import Folding, folding
from engine.aggregation.term_values import TermValues, Value
from engine.aggregation.window_contents import Ever
from engine.dictionary.term_dictionary import TermTable
from engine.expressions.literals import FALSE, TRUE
from engine.expressions.nondeterministic import NAMELESS, Naming
from engine.kernel.state import layout as c
from engine.state_size import goal_bytes
from epsparql.algebra import AggregateFunction, Constant, If, RunReport
from epsparql.terms import Variable

Key = tuple[int, ...]

_SPARE_DEADLINES = 64  # entries of the heap beyond two a run, before it is made anew


class RunCollector:
    """Reports runs: with EACH those that gained an element at this instant, with CLOSED those that are over by it."""

    def __init__(self, shape: RunShape, reads: tuple[Variable, ...], visible: tuple[Variable, ...], naming: Naming = NAMELESS) -> None:
        """Make the collector; `visible` are the columns that its SELECT sees."""
        window = shape.window
        self.shape, self.window, self.reads, self.done = shape, window, reads, False
        self.writes = (*shape.keys, *(variable for variable, _ in shape.aggregates))
        self._closing = window.report is RunReport.CLOSED
        self._visible, self._naming = visible, naming
        self._keys = [reads.index(key) if key in reads else None for key in shape.keys]
        self._broken = None if shape.broken is None else reads.index(shape.broken)
        self._folding, self._growing = (folding([aggregate for _, aggregate in named]) for named in (shape.aggregates, window.aggregates))
        self._values, self._grown = self._take_values(self._folding, "aggregate"), self._take_values(self._growing, "WHILE aggregate")
        self._previous = [Argument(value, reads, naming, f"PREV {k}") for k, (_, value) in enumerate(window.previous)]
        self._links = self._condition()
        self._listed = any(a.distinct or a.function is AggregateFunction.GROUP_CONCAT for a in self._folding.held)
        self._worth = TermValues()
        self._open: dict[Key, Run] = {}  # in the order of their last elements
        self._deadlines: list[tuple[int, Key]] = []  # a heap: no run's deadline is before its entry
        self._elements = 0  # of open runs
        self._last: int | None = None  # the last instant of the streams, once it is known
        self._kept: Any = None  # the rest of a state whose tables are yet to come
        self._native: NativeRuns | None = None  # of a node that is deferred, until something comes that is not native

    def _take_values(self, folded: Folding, site: str) -> list[Argument | None]:
        """Return what each aggregate takes of an element; None for COUNT(*)."""
        return [
            None if aggregate.argument is None else Argument(aggregate.argument, self.reads, self._naming, f"{site} {k}")
            for k, aggregate in enumerate(folded.held)
        ]

    def _condition(self) -> Argument | None:
        """Return WHILE as a value that is true or false, over an element, then the values of PREV and of the
        aggregates.
        """
        if self.window.condition is None:
            return None
        columns = (*self.reads, *(variable for variable, _ in self.window.previous), *(variable for variable, _ in self.window.aggregates))
        return Argument(If(self.window.condition, Constant(TRUE), Constant(FALSE)), columns, self._naming, "WHILE")

    # ------------------------------------------------------------ many instants at once
    def defer(self) -> bool:
        """Let its node decide on many instants at once, natively; return whether it can."""
        code = self._link_code()
        if code is not None and fits(self._folding.held):
            self._native = NativeRuns(self.shape, self._folding, self._growing, code)
        return self._native is not None

    def _link_code(self) -> LinkCode | None:
        """Return the code of WHILE, if there is one for it, over the values of PREV and then the element's own."""
        after = len(self._folding.held)
        shown = zip(self.window.aggregates, self._growing.shown, strict=True)
        grown = {variable: (after + k, function is AggregateFunction.AVG) for (variable, _), (k, function) in shown}
        return link_code(self.window, self.reads, grown, self._naming)

    @property
    def deferred(self) -> bool:
        """Return whether it decides natively; else the host decides instant by instant."""
        return self._native is not None

    @property
    def closing(self) -> bool:
        """Return whether runs report when they are over, which time alone may make them."""
        return self._closing

    def decide_all(self, moments: Moments, passage: Passage, horizon: int | None, terms: TermTable) -> Reports:
        """Call `decide`, or its native form, for each of the instants, and for the deadlines that have passed."""
        self._worth.over(terms)
        if self._native is not None:
            moments = moments.standing()
            order = order_moments(moments, self.reads, self._visible, terms)
            moments = moments if (np.diff(order) == 1).all() else moments.where(order)
            taken = read_moments(moments, self._keys, [*self._values, *self._grown], terms)
            values = self._native.groups.values(taken, terms)
            if values is not None:
                self._last = horizon
                elements = Elements(taken, values[0], moments.rows, self._previous_of(moments, terms), self._uncut(moments, terms))
                return self._native.decide(elements, partial(self._links_exactly, moments, terms), passage, horizon, terms)
            runs, self._native = self._native.handed_over(), None
            self.restore([self._last, runs])
        return together(list(self._decide_each(moments, passage, horizon, terms)), len(self.writes))

    def _decide_each(self, moments: Moments, passage: Passage, horizon: int | None, terms: TermTable) -> Iterator[Reports]:
        for moment in moments.each():
            now = int(moment.now[0])
            yield from self._pass_deadlines(now, passage, horizon, terms)
            rows, wakes = (moment.rows.where(moment.side == side) for side in (c.LEFT, c.BLOCKER))
            given = self.decide(now, rows, wakes, horizon, terms)
            yield Reports(np.full(len(given), moment.entry[0], np.int64), given)
        yield from self._pass_deadlines(passage.until, passage, horizon, terms)

    def _pass_deadlines(self, until: int, passage: Passage, horizon: int | None, terms: TermTable) -> Iterator[Reports]:
        none = no_rows(len(self.reads))
        self._last = horizon
        while (due := self._due_by(horizon)) < until:
            given = self.decide(due, none, none, horizon, terms)
            yield Reports(passage.entries_of(given.end), given)

    def _due_by(self, horizon: int | None) -> int:
        due = self.due()
        return horizon if due == AT_LAST and horizon is not None else due

    def _previous_of(self, moments: Moments, terms: TermTable) -> Ints:
        """Return, for each moment, what PREV will be of its element."""
        found = np.zeros((len(moments), len(self._previous)), np.int64)
        solutions = np.flatnonzero(moments.side == c.LEFT)
        rows, now = moments.rows.where(solutions), moments.now[solutions]
        for k, argument in enumerate(self._previous):
            found[solutions, k] = terms_of_many(argument, rows, now, terms)
        return found

    def _uncut(self, moments: Moments, terms: TermTable) -> NDArray[np.bool_]:
        """Return for which elements no timeless solution of UNTIL breaks the link."""
        uncut: NDArray[np.bool_] = moments.side == c.LEFT
        if self._broken is not None:
            uncut &= moments.rows.cells[:, self._broken] != terms.intern(str(TRUE))
        return uncut

    def _links_exactly(self, moments: Moments, terms: TermTable, k: int, previous: list[int], grown: Any) -> bool:
        """Return whether WHILE is true of a moment, by the values of PREV, and the state of WHILE's aggregates before
        it if there are any.
        """
        growing, now, rows = Ever(self._growing), int(moments.now[k]), moments.rows
        if grown is not None:
            growing.restore(grown, self._worth)
            (element,) = self._read_elements(rows.where(np.array([k])), now, terms)
            self._grow(growing, element)
        return self._satisfies((rows.cells[k].tolist(), int(rows.start[k]), int(rows.end[k])), previous, growing, now, terms)

    # ------------------------------------------------------------ an instant
    def decide(self, now: int, rows: RowBatch, wakes: RowBatch, horizon: int | None, terms: TermTable) -> RowBatch:
        """Take the elements of an instant in; `wakes` are the timed solutions of UNTIL that end at it."""
        self._worth.over(terms)
        self._last = horizon
        over: list[tuple[Key, Run]] = []
        grew = self._take_elements(rows.standing(now), now, terms, over) if len(rows) else []
        for key, start in zip(self._keys_of(wakes.cells), wakes.start.tolist(), strict=True):
            over += self._break_links(key, start)
        over += self._expire(now)
        if self._closing and self.shape.lasting and horizon == now:
            over += [(key, self._close(key)) for key in list(self._open)]
        return self._report(now, over if self._closing else grew)

    def _take_elements(self, rows: RowBatch, now: int, terms: TermTable, over: list[tuple[Key, Run]]) -> list[tuple[Key, Run]]:
        """Link the elements to runs; return the runs that grew, and add to `over` those that are over."""
        if len(rows) > 1:
            rows = rows.where(in_order(rows.placed(now), self.reads, terms, self._visible))
        true, grew = terms.intern(str(TRUE)), dict[int, tuple[Key, Run]]()
        broken = [False] * len(rows) if self._broken is None else (rows.cells[:, self._broken] == true).tolist()
        for key, element, cut in zip(self._keys_of(rows.cells), self._read_elements(rows, now, terms), broken, strict=True):
            run = self._open.get(key)
            growing = None if run is None or cut else self._link(run, element, now, terms)
            if run is None or growing is None:
                if run is not None:
                    over.append((key, self._close(key)))
                run = Run(Ever(self._folding), self._grow(Ever(self._growing), element))
            else:
                del self._open[key]
                run.growing = growing
            self._add(key, run, element)
            grew[id(run)] = key, run
        return list(grew.values())

    def _link(self, run: Run, y: Element, now: int, terms: TermTable) -> Ever | None:
        """Return what WHILE's aggregates are with `y` if it continues the run, None if it does not."""
        window = self.window
        if window.gap is not None and y.end - run.last > window.gap:
            return None
        if window.within is not None and y.end - min(run.least, y.start) > window.within:
            return None
        growing = self._grow(run.growing.copied(), y) if window.aggregates else run.growing
        return growing if self._satisfies(y.row, run.previous, growing, now, terms) else None

    def _satisfies(self, row: Row, previous: Sequence[int], growing: Ever, now: int, terms: TermTable) -> bool:
        """Return whether WHILE, if it is given, is true of an element."""
        if self._links is None:
            return True
        cells, start, end = row
        found = self._links.evaluate_row([*cells, *previous, *growing.results(self._worth)], start, end, now, terms)
        return found == terms.intern(str(TRUE))

    def _grow(self, growing: Ever, y: Element) -> Ever:
        growing.add(y.start, y.end, y.grown, self._worth)
        return growing

    def _add(self, key: Key, run: Run, y: Element) -> None:
        before = self._deadline(run) if run.elements else c.FOREVER
        run.held.add(y.start, y.end, y.values, self._worth)
        run.previous, run.last, run.elements = y.previous, y.end, run.elements + 1
        self._open[key] = run
        self._elements += 1
        deadline = self._deadline(run)
        if deadline < before:  # a later one is found when the entry comes up
            heappush(self._deadlines, (deadline, key))
            if len(self._deadlines) > 2 * len(self._open) + _SPARE_DEADLINES:
                self._list_deadlines()

    # ------------------------------------------------------------ runs that are over
    def _close(self, key: Key) -> Run:
        run = self._open.pop(key)
        self._elements -= run.elements
        return run

    def _break_links(self, key: Key, start: int) -> Iterator[tuple[Key, Run]]:
        """Yield the runs that a solution of UNTIL ends: those of groups that agree with its key whose last element
        ends before it starts.
        """
        if self.shape.certain and c.UNBOUND not in key:
            found = [key] if key in self._open and self._open[key].last < start else []
        else:
            found = []
            for other, run in self._open.items():
                if run.last >= start:
                    break
                if all(mine in (theirs, c.UNBOUND) or theirs == c.UNBOUND for mine, theirs in zip(key, other, strict=True)):
                    found.append(other)
        yield from ((each, self._close(each)) for each in found)

    def _deadline(self, run: Run) -> int:
        """Return the instant by which time alone ends a run; an element at that instant itself may still continue it."""
        if self._closing and self._last is not None and run.last > self._last:
            return c.FOREVER
        gap, within = self.window.gap, self.window.within
        deadline = c.FOREVER if gap is None else run.last + gap
        return deadline if within is None else min(deadline, max(run.last, run.least + within))

    def _list_deadlines(self) -> None:
        """Make the heap anew: entries that runs have left behind, by an earlier deadline or by their end, would grow
        with the elements.
        """
        self._deadlines = [(deadline, key) for key, run in self._open.items() if (deadline := self._deadline(run)) < c.FOREVER]
        heapify(self._deadlines)

    def _expire(self, now: int) -> Iterator[tuple[Key, Run]]:
        """Yield the runs whose deadline has come."""
        while self._deadlines and self._deadlines[0][0] <= now:
            _, key = heappop(self._deadlines)
            run = self._open.get(key)
            if run is not None and (deadline := self._deadline(run)) <= now:
                yield key, self._close(key)
            elif run is not None and deadline < c.FOREVER:
                heappush(self._deadlines, (deadline, key))

    def due(self) -> int:
        """Return the next deadline, of runs that report by it."""
        if self._closing and self._native is not None:
            return self._native.due()
        if not self._closing or not self._open:
            return c.FOREVER
        if self.shape.lasting:
            return AT_LAST if self._last is None or next(iter(self._open.values())).last <= self._last else c.FOREVER
        while self._deadlines:
            due, key = self._deadlines[0]
            run = self._open.get(key)
            deadline = c.FOREVER if run is None else self._deadline(run)
            if deadline == due:
                return due
            heappop(self._deadlines)
            if deadline < c.FOREVER:
                heappush(self._deadlines, (deadline, key))
        return c.FOREVER

    # ------------------------------------------------------------ what comes, and what is reported
    def _keys_of(self, cells: Ints) -> list[Key]:
        columns = [[c.UNBOUND] * len(cells) if k is None else cells[:, k].tolist() for k in self._keys]
        return list(zip(*columns, strict=True)) if columns else [()] * len(cells)

    def _read_elements(self, rows: RowBatch, now: int, terms: TermTable) -> Iterator[Element]:
        def taken(arguments: Sequence[Argument | None]) -> list[tuple[int, ...]]:
            columns = [[1] * len(rows) if each is None else each.numbers(rows, now, terms) for each in arguments]
            return list(zip(*columns, strict=True)) if columns else [()] * len(rows)

        values = self._with_solutions(taken(self._values), rows)
        placed = rows.placed(now)
        given = zip(rows.cells.tolist(), rows.start.tolist(), rows.end.tolist(), strict=True)
        columns = placed.start.tolist(), placed.end.tolist(), given, values, taken(self._grown), taken(self._previous)
        return (Element(*each) for each in zip(*columns, strict=True))

    def _with_solutions(self, values: list[tuple[int, ...]], rows: RowBatch) -> Sequence[Sequence[Value]]:
        """Return the values with, for COUNT(DISTINCT *), what each solution binds visibly."""
        whole = [k for k, aggregate in enumerate(self._folding.held) if aggregate.argument is None and aggregate.distinct]
        if not whole:
            return values
        shown = [tuple(cells) for cells in rows.cells[:, [self.reads.index(variable) for variable in self._visible]].tolist()]
        return [[solution if k in whole else value for k, value in enumerate(each)] for each, solution in zip(values, shown, strict=True)]

    def _report(self, now: int, runs: Sequence[tuple[Key, Run]]) -> RowBatch:
        """Report one row a run; equal ones of two runs of a group are one."""
        rows = dict.fromkeys((run.least, (*key, *run.held.results(self._worth))) for key, run in runs)
        return rows_of([least for least, _ in rows], [now] * len(rows), [cells for _, cells in rows], len(self.writes))

    # ------------------------------------------------------------ snapshots
    def size(self) -> int:
        """Return the bytes of its state for the quota: a group's open run counts as a goal, and the elements that an
        aggregate lists as ones too.
        """
        if self._native is not None:
            return goal_bytes(len(self.writes)) * self._native.live
        return goal_bytes(len(self.writes)) * len(self._open) + goal_bytes(1) * (self._elements if self._listed else 0)

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
            return [self._last, self._native.state(), True]
        runs = [[list(key), run.held.state(), run.growing.state(), list(run.previous), run.last, run.elements] for key, run in self._open.items()]
        return [self._last, runs]

    def restore(self, state: Any) -> None:
        """Take in a state; one without tables is the host's, and stays with it."""
        self._last, runs, *native = state
        self._open, self._elements = {}, 0
        if native:
            self._kept = runs
            return
        self._native = None
        for key, held, growing, previous, last, elements in runs:
            run = self._open[tuple(key)] = Run(Ever(self._folding), Ever(self._growing), tuple(previous), last, elements)
            run.held.restore(held, self._worth)
            run.growing.restore(growing, self._worth)
            self._elements += elements
        self._list_deadlines()
