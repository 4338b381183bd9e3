"""This module represents sets of values that a condition lets pass, so that conditions can be intersected.

A region has one row of intervals for each cell: a part of the values within which the engine's comparisons agree on
one order. A region may be too wide, never too narrow. An interval lies between two cuts, each of which is just before
or just behind a value; so `< 5` ends at the cut before 5, and `<= 5` at the cut behind it.

Numbers have three cells, since a constant is compared as the greater of both types: 0.1 is one value beside a
decimal, another beside a float.
"""

import struct
from collections.abc import Iterable, Mapping
from enum import Enum, auto
from fractions import Fraction
from typing import NamedTuple

from epsparql.lint.type_inference import Kind

MOST_CUTS = 400
"""A row with more cuts is not refined further: an intersection then keeps one operand, and a union one interval."""


class Cell(Enum):
    """Names the parts of the values. DAY_TIME are the durations without months; UNBOUND is no value."""

    EXACT = auto()
    FLOAT = auto()
    DOUBLE = auto()
    NAN = auto()
    TEXT = auto()
    TAGGED = auto()
    TRUE = auto()
    FALSE = auto()
    INSTANT = auto()
    DAY = auto()
    DAY_TIME = auto()
    CALENDAR = auto()
    IRI = auto()
    BLANK = auto()
    TRIPLE = auto()
    OTHER = auto()
    UNBOUND = auto()


NUMBERS = (Cell.EXACT, Cell.FLOAT, Cell.DOUBLE)
CELLS: dict[Kind, tuple[Cell, ...]] = {
    Kind.IRI: (Cell.IRI,),
    Kind.BLANK: (Cell.BLANK,),
    Kind.NUMBER: (*NUMBERS, Cell.NAN),
    Kind.TEXT: (Cell.TEXT,),
    Kind.TAGGED: (Cell.TAGGED,),
    Kind.TRUE: (Cell.TRUE,),
    Kind.FALSE: (Cell.FALSE,),
    Kind.INSTANT: (Cell.INSTANT,),
    Kind.DAY: (Cell.DAY,),
    Kind.DURATION: (Cell.DAY_TIME, Cell.CALENDAR),
    Kind.TRIPLE: (Cell.TRIPLE,),
    Kind.OTHER: (Cell.OTHER,),
}

Place = Fraction | str
Cut = tuple[int, Place, int]
Row = tuple[Cut, ...]
Region = Mapping[Cell, Row]
"""A cell that a region lacks is empty."""

WHOLE: Row = ((-1, "", 0), (1, "", 0))


class ConstantValue(NamedTuple):
    """Holds a constant as it is compared.

    `numeric` is the cell of its type for a number; `place` is its place in the order of its kind.
    """

    kind: Kind
    place: Place
    numeric: Cell | None = None


def region_of(kinds: Kind) -> Region:
    """Return all values of some kinds."""
    return {cell: WHOLE for kind, cells in CELLS.items() if kind & kinds for cell in cells}


BOUND: Region = region_of(~Kind(0))


def intersect(left: Region, right: Region) -> Region:
    found = {cell: _intersect_rows(row, right[cell]) for cell, row in left.items() if cell in right}
    return {cell: row for cell, row in found.items() if row}


def unite(left: Region, right: Region) -> Region:
    return {cell: _unite_rows([*_intervals(left.get(cell, ())), *_intervals(right.get(cell, ()))]) for cell in {**left, **right}}


def _intervals(row: Row) -> list[tuple[Cut, Cut]]:
    return list(zip(row[::2], row[1::2], strict=True))


def _intersect_rows(left: Row, right: Row) -> Row:
    if left == WHOLE or right == WHOLE:
        return right if left == WHOLE else left
    if len(left) + len(right) > MOST_CUTS:
        return min(left, right, key=len)
    found: list[Cut] = []
    mine, yours = _intervals(left)[::-1], _intervals(right)[::-1]
    while mine and yours:
        start, end = max(mine[-1][0], yours[-1][0]), min(mine[-1][1], yours[-1][1])
        if start < end:
            found += (start, end)
        (mine if mine[-1][1] <= yours[-1][1] else yours).pop()
    return tuple(found)


def _unite_rows(intervals: Iterable[tuple[Cut, Cut]]) -> Row:
    found: list[Cut] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1]:
            found[-1] = max(found[-1], end)
        else:
            found += (start, end)
    return tuple(found) if len(found) <= MOST_CUTS else (found[0], found[-1])


# ---------------------------------------------------------------- comparisons
def compared(symbol: str, constant: ConstantValue) -> Region:
    """Return the values for which a comparison with a constant may be true."""
    cells = CELLS[constant.kind]
    rows = {cell: _compare_in(cell, symbol, constant) for cell in cells}
    if symbol != "!=":
        return {cell: row for cell, row in rows.items() if row}
    return {**BOUND, **rows, Cell.NAN: WHOLE}


def equal_to_any(constants: Iterable[ConstantValue]) -> Region:
    """Return the values that may equal one of several constants."""
    found: dict[Cell, list[tuple[Cut, Cut]]] = {}
    for constant in constants:
        for cell, row in compared("=", constant).items():
            found.setdefault(cell, []).extend(_intervals(row))
    return {cell: _unite_rows(intervals) for cell, intervals in found.items()}


def _compare_in(cell: Cell, symbol: str, constant: ConstantValue) -> Row:
    """Return the part of a cell of the constant's kind that compares so."""
    match cell:
        case Cell.NAN:
            return ()
        case Cell.EXACT if constant.numeric is not Cell.EXACT:
            low, high = _spread(constant)
            return _build_row(symbol, constant.place, low, high)
        case Cell.CALENDAR if symbol == "=":
            return ()
        case Cell.CALENDAR if symbol == "!=":
            return WHOLE
        case Cell.FLOAT if constant.numeric is Cell.EXACT:
            place = nearest_single(constant.place)
            return WHOLE if place is None else _build_row(symbol, place, place, place)
        case Cell.DOUBLE if constant.numeric is Cell.EXACT and isinstance(constant.place, Fraction):
            place = Fraction(float(constant.place))
            return _build_row(symbol, place, place, place)
    return _build_row(symbol, constant.place, constant.place, constant.place)


def _build_row(symbol: str, place: Place, low: Place, high: Place) -> Row:
    """Return the places beyond or beside one; those from `low` to `high` may count as equal to it."""
    match symbol:
        case "<":
            return WHOLE[0], (0, place, 0)
        case "<=":
            return WHOLE[0], (0, high, 1)
        case ">":
            return (0, place, 1), WHOLE[1]
        case ">=":
            return (0, low, 0), WHOLE[1]
        case "=":
            return (0, low, 0), (0, high, 1)
    return WHOLE[0], (0, place, 0), (0, place, 1), WHOLE[1]


def _spread(constant: ConstantValue) -> tuple[Fraction, Fraction]:
    """Return two numbers around those exact ones that are rounded to a float or double: more than half a step away to
    both sides.
    """
    assert isinstance(constant.place, Fraction)
    bits, least = (22, 140) if constant.numeric is Cell.FLOAT else (51, 1060)
    margin = abs(constant.place) / (1 << bits) + Fraction(1, 1 << least)
    return constant.place - margin, constant.place + margin


def nearest_single(number: Place) -> Fraction | None:
    """Return the 32-bit float nearest to a number; None beyond their range, and where its nearest double lies just
    between two of them.
    """
    assert isinstance(number, Fraction)
    double = float(number)
    try:
        found: float = struct.unpack("f", struct.pack("f", double))[0]
        other: float = struct.unpack("f", struct.pack("f", 2 * double - found))[0]
    except OverflowError:
        return None
    return None if found != double and other == 2 * double - found else Fraction(found)
