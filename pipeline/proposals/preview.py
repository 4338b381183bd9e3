"""This module shows the triples that a mapping makes of the first rows of a file."""

import re
from dataclasses import replace

import numpy as np
import pyarrow as pa

from engine.messages import int64s
from epsparql.terms import XSD
from pipeline.formats.batches.batch_builder import Interval, Labels
from pipeline.formats.batches.expansion_budget import ExpansionBudget
from pipeline.formats.batches.timestamps import iso
from pipeline.mapping.columns import ABSENT, Column, Table
from pipeline.mapping.mapper import map_table
from pipeline.mapping.mapping import Mapping

_LOCAL = re.compile(r"[\w-]+")
_ROWS, _TRIPLES = 3, 100
"""So many rows are shown, and so many triples of each."""


def preview_rows(table: Table, mapping: Mapping) -> tuple[tuple[str, ...], ...]:
    """Return the triples of the first rows as Turtle writes them, each with its time, row by row."""
    return tuple(_preview_row(table, row, mapping) for row in range(min(table.count, _ROWS)))


def _preview_row(table: Table, row: int, mapping: Mapping) -> tuple[str, ...]:
    columns = {field: _cut_row(column, row) for field, column in table.columns.items()}
    one = replace(table, count=1, columns=columns, numbers=table.numbers[row : row + 1], documents=None)
    null = ("",) if table.has_header else ()
    batch = map_table(one, mapping, ExpansionBudget(0), Labels(b"", None), (Interval(0, 0), null)).batch.slice(0, _TRIPLES)
    terms = zip(*(batch.column(name).to_pylist() for name in "spo"), int64s(batch.column("end")).tolist(), strict=True)
    return tuple(
        f"{_shorten(s, mapping)} {_shorten(p, mapping)} {_shorten(o, mapping)} .{f'  # {iso(at)}' if mapping.time else ''}" for s, p, o, at in terms
    )


def _cut_row(column: Column, row: int) -> Column:
    number = int(column.indices[row])
    if number == ABSENT:
        return Column(np.full(1, ABSENT, np.int32), pa.array([], pa.utf8()), np.empty(0, np.uint8))
    return Column(np.zeros(1, np.int32), column.texts.slice(number, 1), column.kinds[number : number + 1])


def _shorten(term: str, mapping: Mapping) -> str:
    """Return a term with the prefix of XSD, or as a name relative to the mapping's base."""
    text, typed, datatype = term.rpartition("^^<")
    if typed and term.startswith('"'):
        return f"{text}^^xsd:{datatype[len(XSD) : -1]}" if datatype.startswith(XSD) else term
    base = f"<{mapping.names.base}"
    if len(base) == 1 or not term.startswith(base):
        return term
    local = term[len(base) : -1]
    return f":{local}" if _LOCAL.fullmatch(local) else f"<{local}>"
