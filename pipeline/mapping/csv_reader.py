"""This module reads the columns of CSV (RFC 4180) by Arrow's parser.

Without a header, the columns are named by their numbers.
"""

import csv
import io
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from pipeline.errors import FormatError
from pipeline.formats.batches.expansion_budget import ExpansionBudget
from pipeline.mapping.columns import RowFault, Table, column_of_cells
from pipeline.mapping.csv_dialect import CsvDialect, skip_lines
from pipeline.mapping.mapping import Mapping

MOST_COLUMNS = 5_000
"""A header names at most this many columns."""
_LONGEST_HEADER = 1 << 20
_LONGEST = 1 << 30
_SHOWN = 20
_CELL_BYTES = 16


def read_csv(body: bytes, mapping: Mapping, budget: ExpansionBudget) -> Table:
    """Return the rows of a body.

    A row of too few or too many cells is a fault. Raises: FormatError where there is no table of these columns.
    """
    if len(body) > _LONGEST:
        raise FormatError("csv", f"the body has more than {_LONGEST} bytes; send it in parts")
    fields, dialect = list(mapping.fields), mapping.dialect
    body = name_columns(skip_lines(body, dialect), dialect)
    header = read_header(body, dialect)
    _check_columns(header, fields)
    budget.spend(_CELL_BYTES * len(fields) * (body.count(b"\n") + body.count(b"\r") + 1))
    refused: list[tuple[int, str, str]] = []
    try:
        table = _parse(body, dialect, fields, refused)
    except pa.ArrowInvalid as fault:
        raise FormatError("csv", f"the body is no CSV: {fault}", expected="CSV with a header, as RFC 4180 has it") from None
    numbers = np.arange(table.num_rows + len(refused))
    numbers = np.delete(numbers, [number for number, _, _ in refused])
    columns = {name: column_of_cells(_whole(table.column(name))) for name in fields}
    texts = {number: text for number, _, text in refused}

    def text_of(rows: Sequence[int]) -> list[str]:
        wanted = [row for row in rows if row not in texts]
        again = _parse(body, dialect, header, []) if wanted else None
        found = (
            dict(zip(wanted, _write_rows(again.take(np.searchsorted(numbers, wanted)), dialect.delimiter), strict=True)) if again is not None else {}
        )
        return [texts[row] if row in texts else found[row] for row in rows]

    faults = tuple(RowFault(number, "", reason) for number, reason, _ in refused)
    return Table(table.num_rows, columns, numbers, text_of, faults, has_header=True)


def name_columns(body: bytes, dialect: CsvDialect) -> bytes:
    """Return a body below a header: its own, or else the names of its columns, as many as its first row has cells.

    Raises: FormatError.
    """
    if dialect.header_rows or not body.strip():
        return body
    return dialect.delimiter.join(number_columns(len(read_header(body, dialect)))).encode() + b"\n" + body.lstrip(b"\r\n")


def number_columns(width: int) -> list[str]:
    """Return the names of columns that have none."""
    return [f"column{number}" for number in range(1, width + 1)]


def read_header(body: bytes, dialect: CsvDialect) -> list[str]:
    """Return the names in the header, with which the body begins. Raises: FormatError."""
    start = body[:_LONGEST_HEADER].lstrip(b"\r\n").decode(errors="replace")
    try:
        names = next(csv.reader(io.StringIO(start, newline=""), delimiter=dialect.delimiter), [])
    except csv.Error as fault:
        raise FormatError("csv", f"the header cannot be read: {fault}", 1, 1) from None
    if not names:
        raise FormatError("csv", "the body has no header", 1, 1, "a first line with the names of the columns")
    if len(names) > MOST_COLUMNS:
        raise FormatError("csv", f"the header names {len(names)} columns, and at most {MOST_COLUMNS} are read", 1, 1, "fewer columns")
    return names


def _check_columns(names: Sequence[str], fields: Sequence[str]) -> None:
    """Check that each field is one column. Raises: FormatError."""
    shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    for field in fields:
        if field not in names:
            raise FormatError("mapping", f"the mapping reads the column {field!r}, which the header does not have", 1, 1, f"one of {shown}")
        if names.count(field) > 1:
            raise FormatError("csv", f"the header names the column {field!r} twice", 1, 1, "names that differ")


def _parse(body: bytes, dialect: CsvDialect, names: Sequence[str], refused: list[tuple[int, str, str]]) -> pa.Table:
    """Return the columns as bytes; put the rows with too few or too many cells into `refused`: number, reason, text."""
    below = max(dialect.header_rows, 1)  # rows stand below so many

    def refuse(row: pacsv.InvalidRow) -> str:
        reason = f"the row has {row.actual_columns} cells and the {'header' if dialect.header_rows else 'first row'} {row.expected_columns}"
        refused.append(
            (
                int(row.number) - 1 - below,
                reason,
                row.text if isinstance(row.text, str) else bytes(row.text).decode(errors="backslashreplace"),
            )
        )
        return "skip"

    unique = list(dict.fromkeys(names))
    return pacsv.read_csv(
        pa.BufferReader(body),
        pacsv.ReadOptions(use_threads=False, block_size=max(len(body), 1) + 1, skip_rows_after_names=below - 1),
        pacsv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True, invalid_row_handler=refuse),
        pacsv.ConvertOptions(check_utf8=False, column_types=dict.fromkeys(unique, pa.binary()), include_columns=unique, null_values=[""],
        strings_can_be_null=True, quoted_strings_can_be_null=True),
    )  # fmt: skip


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], pa.binary())


def _write_rows(rows: pa.Table, delimiter: str) -> list[str]:
    found = []
    for cells in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        line = io.StringIO()
        csv.writer(line, delimiter=delimiter, lineterminator="").writerow((cell or b"").decode(errors="backslashreplace") for cell in cells)
        found.append(line.getvalue())
    return found
