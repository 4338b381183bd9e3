"""The kernel's functions as Python runs them, over the same memory: a mutant of one then costs no compile.

What numba is told in engine/kernel/state/handle.py is said here for Python. Cells are Python's integers; hashes are numpy's, and wrap as the machine's
do. An index outside of its table is an error, where compiled code would read whatever stands there.
"""

from collections.abc import Mapping
from ctypes import CFUNCTYPE, c_char, c_int64
from struct import calcsize, pack_into, unpack_from
from typing import Any, Literal

import numpy as np

WORD = 8
Kind = Literal["q", "d", "i", "b"]
"""Cells are integers of 64 bits or floats, or integers of 32 or 8 bits. A number that does not fit is an error."""


_KINDS: Mapping[int, Kind] = {8: "q", 4: "i", 1: "b"}


class PlainTable:
    """Represents a table of cells at an address, by row and column. A row alone is a record with these fields."""

    __slots__ = ("address", "cells", "fields", "height", "shape", "width")

    def __init__(self, address: int, height: int, width: int, fields: Mapping[str, int] | None = None, kind: Kind = "q") -> None:
        self.address, self.height, self.width, self.fields = address, height, width, fields or {}
        size = calcsize(kind) * height * width
        self.cells: Any = memoryview((c_char * size).from_address(address)).cast("B").cast(kind) if size else memoryview(b"")
        self.shape = height, width

    def __len__(self) -> int:
        return self.height

    def place(self, row: int, column: int) -> int:
        """Return where a cell stands. Raises IndexError."""
        if not (0 <= row < self.height and 0 <= column < self.width):
            raise IndexError(row, column)
        return row * self.width + column

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):
            return self.cells[self.place(*key)]
        return Record(self, self.place(key, 0))

    def __setitem__(self, key: Any, value: Any) -> None:
        self.cells[self.place(*key)] = value


class FlatTable(PlainTable):
    """Represents a table of one dimension."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        return self.cells[self.place(key, 0)]

    def __setitem__(self, key: Any, value: Any) -> None:
        for row in range(self.height) if isinstance(key, slice) else (key,):
            self.cells[self.place(row, 0)] = value


class WideCells:
    """Represents the cells of a table whose first columns have 8 bytes each, and the others 4, by their places as `PlainTable` counts them."""

    def __init__(self, address: int, height: int, width: int, wide: int) -> None:
        self.width, self.wide = width, wide
        self.row_bytes = 4 * (width + wide)
        self.bytes = memoryview((c_char * (height * self.row_bytes)).from_address(address)).cast("B")

    def _find(self, place: int) -> tuple[Kind, int]:
        row, column = divmod(int(place), self.width)
        offset = 8 * column if column < self.wide else 4 * (column + self.wide)
        return "q" if column < self.wide else "i", row * self.row_bytes + offset

    def __getitem__(self, place: int) -> int:
        kind, at = self._find(place)
        found: int = unpack_from(kind, self.bytes, at)[0]
        return found

    def __setitem__(self, place: int, value: int) -> None:
        kind, at = self._find(place)
        pack_into(kind, self.bytes, at, int(value))


class WideTable(PlainTable):
    """Represents a table of `WideCells`."""

    __slots__ = ()

    def __init__(self, address: int, height: int, width: int, wide: int, fields: Mapping[str, int] | None) -> None:
        super().__init__(address, 0, width, fields)
        self.height, self.shape, self.cells = height, (height, width), WideCells(address, height, width, wide)


class Record:
    """Represents a row of a table, whose fields are attributes. No field begins with an underscore."""

    __slots__ = ("_place", "_table")
    _table: PlainTable
    _place: int

    def __init__(self, table: PlainTable, place: int) -> None:
        object.__setattr__(self, "_table", table)
        object.__setattr__(self, "_place", place)

    def __getattr__(self, field: str) -> Any:
        return self._table.cells[self._place + self._table.fields[field]]

    def __setattr__(self, field: str, value: Any) -> None:
        self._table.cells[self._place + self._table.fields[field]] = value


class PlainNet:
    """Represents the arrays of the network whose table of addresses stands at `address`."""

    def __init__(self, address: int) -> None:
        self.address = address

    def __getattr__(self, name: str) -> Any:
        from engine.kernel.state.arrays import CELL_BYTES, FLAT, FLOATS, WIDE, WORDS, Net
        from engine.kernel.state.layout import RECORDS

        k = Net._fields.index(name)
        start, height, width = map(int, PlainTable(self.address, len(Net._fields), WORDS).cells[WORDS * k : WORDS * k + WORDS])
        kind: Kind = "d" if name in FLOATS else _KINDS[CELL_BYTES.get(name, WORD)]
        fields = RECORDS.get(name)
        table: PlainTable | Record
        if name not in FLAT:
            wide = WIDE.get(name, 0)
            table = WideTable(start, height, width, wide, fields) if wide else PlainTable(start, height, width, fields, kind)
        elif fields is None:
            table = FlatTable(start, height, 1, kind=kind)
        else:
            table = Record(PlainTable(start, 1, height, fields), 0)
        setattr(self, name, table)  # it stays where it is while the kernel runs
        return table


def answer_compiled(function: int, context: int, who: int, question: Record) -> int:
    """Call the compiled function at an address as the kernel does."""
    from engine.kernel.state.layout import ASK_ARG

    address = question._table.address + WORD * (question._place + ASK_ARG)
    answer: int = CFUNCTYPE(c_int64, c_int64, c_int64, c_int64)(function)(context, int(who), address)
    return answer


def install() -> None:
    """Let Python run the kernel in this process. No module of the kernel may have been imported before."""
    import engine.kernel
    from engine.kernel.state import handle

    assert not hasattr(engine.kernel, "scheduler")
    vars(engine.kernel).update(jit=_as_it_is, inlined=_as_it_is, entry_point=np.errstate(over="ignore"))
    vars(handle).update(as_net=PlainNet, table_at=PlainTable, answer_compiled=answer_compiled, prefetch=lambda table, place: None)


def _as_it_is(function: Any) -> Any:
    return function
