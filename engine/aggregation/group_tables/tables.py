"""The groups of one node stand in tables."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.aggregation.group_tables import layout as g
from epsparql.algebra import Aggregate, AggregateFunction, RangeWindow, RowsWindow

Ints = NDArray[np.int64]

OPERATIONS = {
    AggregateFunction.COUNT: g.COUNT,
    AggregateFunction.SUM: g.SUM,
    AggregateFunction.MIN: g.MIN,
    AggregateFunction.MAX: g.MAX,
    AggregateFunction.SAMPLE: g.FIRST_VALUE,
    AggregateFunction.FIRST: g.FIRST_VALUE,
    AggregateFunction.LAST: g.LAST_VALUE,
}
ORDERED = (AggregateFunction.SAMPLE, AggregateFunction.FIRST, AggregateFunction.LAST)
"""These depend on the order of the solutions, not on their values."""
_OF_TOTALS = {g.COUNT: g.COUNT_TOTAL, g.SUM: g.SUM_TOTAL}
_IN_SOLUTION = {g.COUNT: 1, g.SUM: 4, g.COUNT_TOTAL: 1, g.SUM_TOTAL: 4}
_IN_GROUP = {g.COUNT: 1, g.SUM: g.SUM_WIDTH, g.COUNT_TOTAL: 1, g.SUM_TOTAL: g.TOTAL_WIDTH}
_FIRST = 64


class Tables(NamedTuple):
    """Holds what `sweep` works on; widths depend on the keys and set functions."""

    at: Ints
    program: Ints
    groups: Ints
    heads: Ints
    solutions: Ints
    limbs: Ints


def tables(keys: int, held: tuple[Aggregate, ...], window: RangeWindow | RowsWindow | None, *, totals: bool = False) -> Tables:
    """Return empty tables; `totals` says that COUNT and SUM take what many solutions have together."""
    at = np.zeros(g.AT_WIDTH, np.int64)
    at[[g.FREE_SOLUTION, g.FREE_GROUP, g.FREE_LIMBS, g.FIRST_OUT, g.LAST_IN]] = g.NONE
    at[g.LIMBS_TOP] = 1
    at[g.LATEST] = -(1 << 62)
    match window:
        case RangeWindow(length, step):
            at[g.WINDOW], at[g.LENGTH], at[g.STEP] = g.RANGE, length, step or 0
        case RowsWindow(count):
            at[g.WINDOW], at[g.LENGTH] = g.ROWS, count
    program = np.zeros((len(held), g.PROGRAM_WIDTH), np.int64)
    in_solution, in_group = g.SOLUTION_WIDTH, g.KEY + keys
    for row, aggregate in zip(program, held, strict=True):
        op = OPERATIONS[aggregate.function]
        op = _OF_TOTALS.get(op, op) if totals else op
        row[:] = op, in_solution, in_group
        in_solution, in_group = in_solution + _IN_SOLUTION.get(op, g.EXTREME_WIDTH), in_group + _IN_GROUP.get(op, 4)
    limbs = np.zeros((_FIRST, g.LIMBS_WIDTH), np.int64)
    limbs[0, g.LOWEST] = g.LIMB_COUNT - 1
    solutions = np.zeros((_FIRST, in_solution), np.int64)
    return Tables(at, program, np.zeros((_FIRST, in_group), np.int64), np.full(1, g.NONE, np.int64), solutions, limbs)


def with_room(t: Tables, n: int) -> Tables:
    """Return the tables with room for n more solutions, each of a group of its own; no row moves."""
    wanted = {"groups": t.at[g.GROUPS_TOP] + n, "limbs": t.at[g.LIMBS_TOP] + n * len(t.program)}
    if t.at[g.WINDOW] != g.EVER:
        wanted["solutions"] = t.at[g.SOLUTIONS_TOP] + n
    for name, rows in wanted.items():
        table = getattr(t, name)
        if rows > len(table):
            larger = np.zeros((max(int(rows), 2 * len(table)), table.shape[1]), np.int64)
            larger[: len(table)] = table
            t = t._replace(**{name: larger})
    return t


def kept(t: Tables) -> Tables:
    """Return the part of the tables that a snapshot needs."""
    tops = {"groups": g.GROUPS_TOP, "solutions": g.SOLUTIONS_TOP, "limbs": g.LIMBS_TOP}
    return t._replace(**{name: getattr(t, name)[: t.at[top]] for name, top in tops.items()})


def list_window(t: Tables) -> Iterator[int]:
    """Yield the rows of the solutions in a RANGE window, oldest first."""
    s = int(t.at[g.FIRST_OUT])
    while s != g.NONE:
        yield s
        s = int(t.solutions[s, g.NEXT])


def read_wide(cells: Sequence[int]) -> int:
    """Return a number of 64 bits a cell, the low one first."""
    found = cells[-1]
    for cell in reversed(cells[:-1]):
        found = found << 64 | cell % (1 << 64)
    return found


def write_wide(number: int, cells: int) -> list[int]:
    """Return the cells of a number that fits into them."""
    parts = [(number >> 64 * k) % (1 << 64) for k in range(cells)]
    return [part - (part >> 63 << 64) for part in parts]
