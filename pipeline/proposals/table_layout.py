"""This module finds how a file of CSV is laid out: its encoding, delimiter, the lines before the header, and a row of
units below it.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import field
from typing import Any

from epsparql.deferred_methods import dataclass
from pipeline.errors import FormatError
from pipeline.mapping.csv_dialect import CsvDialect, skip_lines, to_utf8
from pipeline.mapping.csv_reader import number_columns
from pipeline.mapping.mapping import MAX_PROPERTIES
from pipeline.proposals.choices import Choices
from pipeline.proposals.date_forms import find_form
from pipeline.proposals.values import NO_VALUE, is_number

_DELIMITERS = ",;\t|"
_ENCODINGS = ("windows-1252", "iso-8859-15", "windows-1250", "windows-1251", "cp850", "mac-roman")
_HEAD_BYTES, _HEAD_ROWS = 256 << 10, 200
_NO_UNIT, _YEAR = re.compile(r"\d{3}"), re.compile(r"(?:19|20)\d\d")
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Layout:
    """Holds the words of a mapping that say how a file is read, the fields that its rows have, and what was guessed."""

    words: dict[str, Any]
    fields: tuple[str, ...]
    comments: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Head:
    """Holds the first rows of a file as a delimiter splits them, with the line where each begins.

    `header` is the place of the header's row.
    """

    delimiter: str
    rows: list[list[str]]
    lines: list[int]
    header: int

    @property
    def rank(self) -> tuple[int, int, int]:
        """Return how well the delimiter splits the rows: by the first line, below other lines, or not at all; then by
        the rows that do not fit.
        """
        if not self.rows:
            return 2, 0, 0
        width, below = len(self.rows[self.header]), self.rows[self.header + 1 :]
        bad = sum(len(row) != width for row in below)
        tier = 2
        if width > 1 and self.header == 0 and 2 * bad <= len(below):
            tier = 0
        elif width > 1 and below and not bad:
            tier = 1
        return tier, self.header + bad, -width


def find_table_layout(body: bytes, choices: Choices) -> Layout:
    """Return how a file of CSV is laid out. Raises: FormatError where it has no header."""
    encoding, told = find_encoding(body, choices)
    text = skip_lines(to_utf8(body[: 2 * _HEAD_BYTES], encoding), CsvDialect())
    head = min((_split(text, delimiter) for delimiter in _DELIMITERS), key=lambda each: each.rank)
    if not head.rows:
        raise FormatError("mapping", "there are no rows to propose a mapping from", expected="a header and rows of CSV")
    words: dict[str, Any] = {"format": "csv"} | ({"encoding": encoding} if encoding != "utf-8" else {})
    words |= {"delimiter": head.delimiter} if head.delimiter != "," else {}
    skipped = head.lines[head.header]
    if skipped:
        words["skip"] = skipped
        told.append(f"the header is in line {skipped + 1}, after {skipped} other line{'s'[: skipped > 1]}; without skip it is line 1")
    names, rows = head.rows[head.header], head.rows[head.header + 1 :]
    if _is_row(names, rows) and choices.choose_value("header_rows", ["0", "1"]) == "0":
        words["header_rows"] = 0
        told.append(f"the first row ({', '.join(names[:_SHOWN])}) has values as the rows below, so there is no header; header_rows 1 makes it one")
        names = number_columns(len(names))
    elif rows and _is_units(rows[0], rows[1:]) and choices.choose_value("header_rows", ["2", "1"]) == "2":
        words["header_rows"] = 2
        told.append(
            f"the row below the header has units ({', '.join(filter(None, rows[0][:_SHOWN]))}) and is passed over; header_rows 1 makes it a row"
        )
    return Layout(words, tuple(_fields(names, told)), told)


def find_encoding(body: bytes, choices: Choices) -> tuple[str, list[str]]:
    """Return the encoding of a body, and what was guessed about it. Raises: FormatError."""
    try:
        to_utf8(body).decode()
    except UnicodeDecodeError as fault:
        shown = f"byte 0x{body[fault.start]:02x} at {fault.start} is no UTF-8" if fault.start < len(body) else "it is no UTF-8"
        encoding = choices.choose_value("encoding", _ENCODINGS)
        return encoding, [f"the file is read as {encoding}, since {shown}; encoding names another one"]
    return "utf-8", []


def _split(body: bytes, delimiter: str) -> _Head:
    """Return the first rows, and which of them is the header: the first that has as many cells as most rows."""
    head = body[:_HEAD_BYTES].decode(errors="replace")
    lines = head if len(body) <= _HEAD_BYTES else head[: head.rfind("\n") + 1]
    reader = csv.reader(io.StringIO(lines, newline=""), delimiter=delimiter)
    rows, starts, before = list[list[str]](), list[int](), 0
    try:
        for row in reader:
            if row and len(rows) < _HEAD_ROWS:
                rows.append([cell.strip() for cell in row])
                starts.append(before)
            before = reader.line_num
    except csv.Error:
        pass  # the reader of the file says what is wrong
    counts = Counter(len(row) for row in rows[len(rows) // 3 :])
    width = max(counts, key=lambda count: (counts[count], count), default=0)
    header = next((k for k, row in enumerate(rows) if len(row) == width), 0)
    return _Head(delimiter, rows, starts, header + _count_comments(rows[header:]))


def _count_comments(rows: Sequence[Sequence[str]]) -> int:
    """Return how many rows above a header are comments.

    A header that begins with the sign of comments has a row of values below it.
    """
    count = next((k for k, row in enumerate(rows) if not row[0].startswith("#") or len(row) != len(rows[0])), len(rows))
    is_header = count + 1 < len(rows) and not any(map(_is_datum, rows[count])) and any(map(_is_datum, rows[count + 1]))
    return count if is_header else 0


def _is_datum(cell: str) -> bool:
    return is_number(cell) or find_form(cell) is not None or re.match(r"\d{4}-\d\d-\d\d", cell) is not None


def _is_row(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Tell whether the first row is no header: it has numbers and times where the rows below do.

    Years in a row may name columns.
    """
    data = [k for k in range(len(first)) if (cells := [row[k] for row in rows if k < len(row)]) and _are_data(cells)]
    years = [cell for cell in first if _YEAR.fullmatch(cell)]
    if len(years) > 1 and len(years) == sum(map(_is_datum, first)) and years == sorted(set(years)):
        return False
    return bool(data) and all(_is_datum(first[k]) or first[k].lower() in NO_VALUE for k in data) and any(_is_datum(first[k]) for k in data)


def _is_units(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Tell whether a row has units: no number or time where the rows below have one."""
    if not rows or any(_is_datum(cell) or _NO_UNIT.search(cell) for cell in first):
        return False
    data = [k for k in range(len(first)) if (cells := [row[k] for row in rows if k < len(row)]) and _are_data(cells)]
    return any(first[k].lower() not in NO_VALUE for k in data)


def _are_data(cells: Sequence[str]) -> bool:
    found = [cell for cell in cells if cell.lower() not in NO_VALUE]
    return bool(found) and all(map(_is_datum, found))


def _fields(names: Sequence[str], told: list[str]) -> list[str]:
    """Return the columns that a mapping can name."""
    counts = Counter(names)
    for name in dict.fromkeys(names):
        if not name:
            told.append("a column without a name is left out; a name in the header includes it")
        elif counts[name] > 1:
            told.append(f"{name!r} is the name of {counts[name]} columns, which are left out; names that differ include them")
    found = [name for name in names if name and counts[name] == 1]
    if len(found) > MAX_PROPERTIES:
        told.append(f"the columns after {found[MAX_PROPERTIES - 1]!r} are left out: a mapping has at most {MAX_PROPERTIES}")
    return found[:MAX_PROPERTIES]
