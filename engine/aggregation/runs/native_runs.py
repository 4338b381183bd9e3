"""Runs of one node stand in tables, while what their aggregates take has a native value."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.aggregation.group_tables import layout as g
from engine.aggregation.group_tables.tables import with_room
from engine.aggregation.native_group_by import NativeGroups, Taken
from engine.aggregation.operator import AT_LAST
from engine.aggregation.row_batch import Ints, Passage, Reports, RowBatch
from engine.aggregation.runs import layout as r
from engine.aggregation.runs.link_code import LinkCode
from engine.aggregation.runs.open_run import RunShape
from engine.aggregation.runs.run_tables import ElementColumns, RunTables, kept_runs, run_tables, with_links
from engine.aggregation.set_functions import Folding
from engine.dictionary.term_dictionary import TermTable
from engine.kernel.state import layout as c
from engine.native.entries import find_deadline, judge_elements, place_elements, sweep_runs
from epsparql.algebra import RunReport
from epsparql.deferred_methods import dataclass

_NO_NUMBERS = np.zeros((1, 2))
Undecided = Callable[[int, list[int], Any], bool]
"""Says whether a moment continues a run, by the values of PREV, and the state of WHILE's aggregates before it if
there are any.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Elements:
    """Holds what the moments of a feed bring, a row a moment.

    `taken` and `values` are as groups have them, and `rows` as they came. `previous` is what PREV will be at the next
    element, and `uncut` says whether no timeless solution of UNTIL breaks the link to this one.
    """

    taken: Taken
    values: Ints
    rows: RowBatch
    previous: Ints
    uncut: NDArray[np.bool_]


class NativeRuns:
    """Keeps one node's open runs, whose aggregates are those of reports and then those of WHILE."""

    def __init__(self, shape: RunShape, reported: Folding, grown: Folding, code: LinkCode) -> None:
        window = shape.window
        self._shown, self._reported, self._grown = reported.shown, len(reported.held), len(grown.held)
        self._lasting, self._code = shape.lasting, code
        self._closing = window.report is RunReport.CLOSED
        self.groups = NativeGroups(len(shape.keys), reported.held + grown.held, None)
        self.groups.tables.at[g.HORIZON] = c.FOREVER
        self._runs = run_tables(window.gap, window.within, len(window.previous), closing=self._closing, certain=shape.certain)

    # ------------------------------------------------------------ what comes, and what is reported
    def decide(self, elements: Elements, undecided: Undecided, passage: Passage, horizon: int | None, terms: TermTable) -> Reports:
        """Take the moments in, then let deadlines pass as time has, and report."""
        at, clock = self.groups.tables.at, self._runs.clock
        at[g.HORIZON] = c.FOREVER if horizon is None else horizon
        at[g.MOMENT] = clock[r.REPEATED] = 0
        clock[r.LIMIT] = passage.until if self._closing else -c.BIG  # with EACH, only what comes shows that a run is over
        out = self._swept(self._placed(elements, undecided, terms), undecided, terms)
        timed = out[:, g.R_ENTRY] == g.NONE
        out[timed, g.R_ENTRY] = passage.entries_of(out[timed, g.R_END])
        found = self.groups.reports(out, self._shown, terms)
        return _without_equals(found) if clock[r.REPEATED] else found

    def _swept(self, came: ElementColumns, undecided: Undecided, terms: TermTable) -> Ints:
        t, n = self.groups.tables, len(came.moments)
        gained, parts = np.zeros(n, np.int64), []
        out = np.zeros((n, g.R_KEY + came.keys.shape[1] + g.RESULT_WIDTH * len(t.program)), np.int64)
        code = g.ROOM
        while code != g.DONE:
            code = sweep_runs(*t, *self._runs, *came, gained, out)
            parts.append(out[: t.at[g.FOUND]].copy())
            t.at[g.FOUND] = 0
            if code == g.ROOM and t.at[g.NEED] > len(out):
                out = np.zeros((int(t.at[g.NEED]), out.shape[1]), np.int64)
            elif code == r.UNDECIDED:
                i = int(t.at[g.MOMENT])
                least, held = self.groups.states.ever(int(came.group[i]))
                previous = came.row[i, : came.previous.shape[1]].tolist()
                came.linked[i] = r.TRUE if undecided(i, previous, [least, held[self._reported :]]) else r.FALSE
                came = came._replace(numbers=terms.numbers, kinds=terms.kinds)  # there may be new terms, and these arrays stand elsewhere
        return np.concatenate(parts)

    def _placed(self, elements: Elements, undecided: Undecided, terms: TermTable) -> ElementColumns:
        """Give all elements their groups, with room for new ones, and what WHILE looks at."""
        taken, groups, n = elements.taken, self.groups, len(elements.uncut)
        solutions = np.flatnonzero(taken.moments[:, g.M_SIDE] == g.SOLUTION)
        groups.tables = with_room(groups.tables, len(solutions))
        groups.spread_heads(len(solutions))
        self._runs = with_links(self._runs, len(groups.tables.groups))
        constants = self._code.constants_of(terms)
        parts = [np.zeros_like(elements.previous), elements.rows.cells, np.broadcast_to(constants, (n, len(constants)))]
        row = np.ascontiguousarray(np.concatenate(parts, axis=1))
        columns = ElementColumns(
            taken.moments,
            taken.keys,
            elements.values,
            elements.previous,
            row,
            np.zeros(n, np.int64),
            np.where(elements.uncut, r.UNSURE, r.FALSE),
            self._code.code,
            _NO_NUMBERS,
            terms.kinds,
            10.0 ** np.array(groups.scales),
            np.array([g.NONE, 0], np.int64),
        )
        place_elements(*groups.tables, *self._runs, *columns)
        if len(self._code.code):
            times = np.stack([elements.rows.start, elements.rows.end, taken.moments[:, g.M_NOW]], axis=1)
            self._code.write_verdicts(row, times, solutions, terms)
            columns = columns._replace(numbers=terms.numbers, kinds=terms.kinds)
        if not self._grown:  # then nothing depends on the run
            judge_elements(*groups.tables, *columns)
            for k in np.flatnonzero(columns.linked == r.UNSURE).tolist():
                columns.linked[k] = undecided(k, row[k, : elements.previous.shape[1]].tolist(), None)
        return columns

    def due(self) -> int:
        """Return the next deadline; of runs without one the last instant of the streams, which each of them may wait
        for.
        """
        horizon = int(self.groups.tables.at[g.HORIZON])
        if self._lasting and horizon >= c.FOREVER:
            return AT_LAST
        return find_deadline(self.groups.tables.at, *self._runs)

    # ------------------------------------------------------------ what it keeps
    @property
    def live(self) -> int:
        """Return the number of open runs."""
        return self.groups.live

    def arrays(self) -> dict[str, Ints]:
        runs = kept_runs(self._runs, int(self.groups.tables.at[g.GROUPS_TOP]))
        return self.groups.arrays() | runs._asdict()

    def state(self) -> Any:
        return self.groups.state()

    def restore(self, state: Any, arrays: dict[str, Ints]) -> None:
        self._runs = RunTables(*(arrays[name] for name in RunTables._fields))
        self.groups.restore(state, {name: array for name, array in arrays.items() if name not in RunTables._fields})

    def handed_over(self) -> list[Any]:
        """Return the open runs as the host's collector has them, in the order of their last elements."""
        states, found = self.groups.states, []
        k = int(self._runs.clock[r.OLDEST_RUN])
        while k != g.NONE:
            row = self._runs.links[k].tolist()
            least, held = states.ever(k)
            elements = int(self.groups.tables.groups[k, g.N])
            reported, grown = held[: self._reported], held[self._reported :]
            found.append([states.key(k), [least, reported], [least, grown], row[r.PREVIOUS :], row[r.LAST_END], elements])
            k = row[r.NEWER_RUN]
        return found


def _without_equals(reports: Reports) -> Reports:
    """Return the reports without those that equal an earlier one: two runs of a group may give the same solution at
    an instant.
    """
    rows = reports.rows
    _, first = np.unique(np.column_stack([rows.start, rows.end, rows.cells]), axis=0, return_index=True)
    first.sort()
    return Reports(reports.entry[first], rows.where(first))
