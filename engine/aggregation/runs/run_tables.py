"""The open runs of one node stand in tables beside its groups."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.aggregation.group_tables.layout import NONE
from engine.aggregation.runs import layout as r

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class RunTables(NamedTuple):
    """Holds what `sweep_runs` works on beside the groups: a row of `links` a group, and a heap of groups by when
    WITHIN ends their runs.
    """

    clock: Ints
    links: Ints
    heap: Ints


class ElementColumns(NamedTuple):
    """Holds what comes, a row a moment.

    `moments` say when and what comes, `keys` of which group, and `values` have VALUE_WIDTH columns for each set
    function. `previous` has what PREV will be of each element. `row` has what PREV is at it, then the element's own
    terms, constants, and verdicts on parts of WHILE. `group` is its row of `groups`. `linked` says whether it may
    continue a run: FALSE, TRUE, or UNSURE where `code` has to say it.

    `numbers` and `kinds` are those of terms, and `powers` the scale of each set function's sums. `begun` is what the
    sweep knows of the instant at hand.
    """

    moments: Ints
    keys: Ints
    values: Ints
    previous: Ints
    row: Ints
    group: Ints
    linked: Ints
    code: Ints
    numbers: Floats
    kinds: NDArray[np.int8]
    powers: Floats
    begun: Ints


def run_tables(gap: int | None, within: int | None, previous: int, *, closing: bool, certain: bool) -> RunTables:
    """Return empty tables; `gap` and `within` are in µs, `previous` counts the values of PREV."""
    clock = np.zeros(r.CLOCK_WIDTH, np.int64)
    clock[[r.OLDEST_RUN, r.NEWEST_RUN]] = NONE
    clock[r.GAP], clock[r.WITHIN] = (r.FOREVER if part is None else min(part, r.FOREVER) for part in (gap, within))
    clock[r.CLOSING], clock[r.CERTAIN] = closing, certain
    return RunTables(clock, np.zeros((0, r.PREVIOUS + previous), np.int64), np.zeros(0, np.int64))


def with_links(runs: RunTables, groups: int) -> RunTables:
    """Return the tables with a row for each of so many groups; no row moves."""
    if groups <= len(runs.links):
        return runs
    links, heap = np.zeros((groups, runs.links.shape[1]), np.int64), np.zeros(groups if runs.clock[r.WITHIN] < r.FOREVER else 0, np.int64)
    links[: len(runs.links)] = runs.links
    heap[: len(runs.heap)] = runs.heap
    return runs._replace(links=links, heap=heap)


def kept_runs(runs: RunTables, groups: int) -> RunTables:
    """Return the part of the tables that a snapshot needs, of so many groups."""
    return runs._replace(links=runs.links[:groups], heap=runs.heap[: runs.clock[r.HEAPED]])
