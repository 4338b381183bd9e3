"""This module finds the pattern of lines of text: a known one of logs, the fields that a header names, or a time
before a message.
"""

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import FormatError
from pipeline.mapping.csv_dialect import NAMED_PATTERNS, find_groups, to_utf8
from pipeline.mapping.mapping import MAX_PROPERTIES
from pipeline.proposals.choices import Choices
from pipeline.proposals.table_layout import Layout, find_encoding
from pipeline.proposals.values import is_number

_TIMED = (
    r"^\[?(?P<time>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)\]?"
    r"(?:[\s|-]+\[?(?P<level>TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)\]?)?[\s|:-]+(?P<message>.*)$"
)
_FIELDS = "#Fields:"
_HEAD = 100
_SHOWN = 64
_EXPECTED = f'a mapping with "format": "lines" and a pattern with named groups, or a known one: {", ".join(NAMED_PATTERNS)}'


def find_line_layout(body: bytes, choices: Choices) -> Layout:
    """Return the pattern of a body's lines, and its groups.

    Raises: FormatError where no pattern that is known fits all lines.
    """
    encoding, told = find_encoding(body, choices)
    lines = [line.rstrip("\r") for line in to_utf8(body, encoding).decode(errors="replace").split("\n")]
    if not any(line.strip() for line in lines):
        raise FormatError("mapping", "there are no lines to propose a mapping from", expected=_EXPECTED)
    words = _find_fields(lines) or _find_columns(lines, told) or _find_pattern(lines, told)
    groups = find_groups(NAMED_PATTERNS.get(words["pattern"], words["pattern"]))
    own = {"format": "lines"} | ({"encoding": encoding} if encoding != "utf-8" else {}) | words
    if "null" in words:
        told.append(f"{words['null'][-1]!r} means no value; without null it is text")
    return Layout(own, tuple(groups[:MAX_PROPERTIES]), told)


def _find_pattern(lines: Sequence[str], told: list[str]) -> dict[str, Any]:
    """Return the known pattern that all lines match.

    Raises: FormatError naming a line that the best one does not match.
    """
    rows = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    texts = pa.array([line for _, line in rows], pa.utf8())
    matches = {name: pc.match_substring_regex(texts, pattern) for name, pattern in [*NAMED_PATTERNS.items(), ("", _TIMED)]}
    best = max(matches, key=lambda name: pc.sum(matches[name]).as_py())
    missed = pc.index(matches[best], False).as_py()
    if missed >= 0:
        number, line = rows[missed]
        fitting = f"the pattern {best}, which others do" if best and pc.any(matches[best]).as_py() else "a known pattern"
        raise FormatError("mapping", f"line {number} does not match {fitting}: {line[:_SHOWN]!r}", expected=_EXPECTED)
    if best == "rfc3164":
        told.append("the times name no year and are not read; RSYSLOG_FileFormat of rsyslog, and journalctl -o json, write it")
    told.append(
        f"lines have the pattern {best}" if best else "lines have a time and a message; a pattern with further named groups divides the message"
    )
    return {"pattern": best or _TIMED} | ({"null": ["", "-"]} if best in ("combined", "common", "rfc5424") else {})


def _find_fields(lines: Sequence[str]) -> dict[str, Any] | None:
    """Return the pattern of W3C's extended log format, whose fields a comment names."""
    names = next((line.removeprefix(_FIELDS).split() for line in lines[:_HEAD] if line.startswith(_FIELDS)), None)
    if not names or len(names) > MAX_PROPERTIES:
        return None
    pattern = "^" + r"[ \t]+".join(_name_groups(names)) + "$"
    fits = _match_all([line for line in lines if not line.startswith("#")], pattern)
    return {"pattern": pattern, "comment": "#", "null": ["", "-"]} if fits else None


def _find_columns(lines: Sequence[str], told: list[str]) -> dict[str, Any] | None:
    """Return the pattern of a table whose columns are apart by spaces.

    A comment of as many words names them, or the first line, or nothing.
    """
    rows = [(number, line) for number, line in enumerate(lines) if line.strip() and not line.startswith("#")]
    comments = [line.lstrip("# ").split() for line in lines[:_HEAD] if line.startswith("#")]
    if not rows:
        return None
    number, first = rows[0][0], rows[0][1].split()
    words: dict[str, Any] = {"comment": "#"} if comments else {}
    names = next((each for each in comments if len(each) == len(first) and not any(map(is_number, each))), [])
    headed = not any(is_number(each) or each[0].isdigit() for each in first)  # a time begins with a digit, too
    if not names and headed and any(map(is_number, rows[min(1, len(rows) - 1)][1].split())):
        names, rows, words = first, rows[1:], words | {"skip": number + 1}
    nameless = not names and 2 * sum(map(is_number, first)) >= len(first)
    names = [f"column_{k}" for k in range(1, len(first) + 1)] if nameless else names
    pattern = r"^\s*" + r"\s+".join(_name_groups(names)) + r"\s*$"
    if not 1 < len(names) <= MAX_PROPERTIES or number >= _HEAD or not _match_all([line for _, line in rows], pattern):
        return None
    if nameless:
        told.append("no line names the columns, so they are column_1 and so on; other names in the pattern replace them")
    return {"pattern": pattern} | words


def _name_groups(names: Sequence[str]) -> list[str]:
    """Return a group for each name, with the characters that a group's name may have, and a number behind a name that
    is taken.
    """
    found = dict[str, str]()
    for name in names:
        clean = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "field"
        clean = f"_{clean}" if clean[0].isdigit() else clean
        free = clean if clean not in found else next(f"{clean}_{k}" for k in range(2, len(names) + 2) if f"{clean}_{k}" not in found)
        found[free] = rf"(?P<{free}>\S+)"
    return list(found.values())


def _match_all(lines: Sequence[str], pattern: str) -> bool:
    texts = [line for line in lines if line.strip()]
    return bool(texts) and bool(pc.all(pc.match_substring_regex(pa.array(texts, pa.utf8()), pattern)).as_py())
