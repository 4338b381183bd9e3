"""This module reads the words of a mapping that say how CSV or lines of text are written: their encoding, numbers,
pattern, and what precedes them.
"""

import codecs
import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from epsparql.deferred_methods import dataclass
from pipeline.errors import InvalidMapping
from pipeline.mapping.columns import CELL, Column

DIALECT_MEMBERS = ("delimiter", "skip", "header_rows", "encoding", "decimal", "group", "pattern", "comment")
_MOST_LINES, _LONGEST_PATTERN, _LONGEST_COMMENT = 1_000, 4_000, 64
_CLIENT = r'(?P<host>\S+) (?P<ident>\S+) (?P<user>.+?) \[(?P<time>[^\]]+)\] "(?P<request>(?P<method>[A-Z]+) (?P<path>\S*)(?: (?P<protocol>[^"]*))?|'
_COMMON = _CLIENT + r'(?:[^"\\]|\\.)*)" (?P<status>\d{3}) (?P<bytes>\d+|-)'
NAMED_PATTERNS = {
    "combined": rf'^{_COMMON} "(?P<referer>(?:[^"\\]|\\.)*)" "(?P<agent>(?:[^"\\]|\\.)*)".*$',
    "common": rf"^{_COMMON}$",
    "rfc5424": (
        r"^<(?P<priority>\d{1,3})>1 (?P<time>\S+) (?P<host>\S+) (?P<app>\S+) (?P<process>\S+) (?P<message_id>\S+) "
        r"(?P<data>-|(?:\[(?:[^\]\\]|\\.)*\])+)(?: (?P<message>.*))?$"
    ),
    "rsyslog": (
        r"^(?P<time>\d{4}-\d\d-\d\dT\S+) (?P<host>\S+) (?P<app>[^\s:\[]+)(?:\[(?P<process>[^\]]*)\])?: ?(?P<message>.*)$"
    ),
    "rfc3164": (
        r"^(?:<(?P<priority>\d{1,3})>)?(?P<time>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) (?P<host>\S+) "
        r"(?P<app>[^\s:\[]+)(?:\[(?P<process>[^\]]*)\])?: ?(?P<message>.*)$"
    ),
}  # fmt: skip
"""Logs of web servers, and of syslog: of the network, of rsyslog's files, and of old files, whose times have no year."""
_SEPARATOR = re.compile(rb"sep=.?\r?\n", re.IGNORECASE)
"""Excel writes such a line before the header."""
_BYTE_ORDER_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """Says how CSV or lines of text are written.

    `skip` lines stand before the header, or before the first row of lines. `header_rows` counts the header and the
    rows of units below it; with 0 there is no header. `pattern` is the regular expression of lines; lines that begin
    with `comment` are no rows.
    """

    delimiter: str = ","
    skip: int = 0
    header_rows: int = 1
    encoding: str = "utf-8"
    pattern: str = ""
    comment: str = ""


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """Says how numbers in cells are written: the decimal mark, and the mark between groups of three digits, "" for
    none.
    """

    decimal: str = "."
    group: str = ""

    def rewrite(self, column: Column) -> Column:
        """Return the column in which cells that are numbers of this form have a decimal point and no groups."""
        if (self.decimal == "." and not self.group) or not len(column.texts):
            return column
        numbers = pc.and_(pc.match_substring_regex(column.texts, self.form), pa.array(column.kinds == CELL))
        if not pc.any(numbers).as_py():
            return column
        texts = pc.replace_substring(column.texts, self.group, "") if self.group else column.texts
        texts = pc.replace_substring(texts, self.decimal, ".") if self.decimal != "." else texts
        return Column(column.indices, pc.if_else(numbers, texts, column.texts), column.kinds)

    @property
    def form(self) -> str:
        """Return the pattern of the numbers that Turtle would not read as they are."""
        decimal, group = re.escape(self.decimal), re.escape(self.group)
        whole = rf"(?:[0-9]{{1,3}}(?:{group}[0-9]{{3}})+|[0-9]+)" if self.group else "[0-9]+"
        return rf"^[+-]?(?:{whole}(?:{decimal}[0-9]+)?|{decimal}[0-9]+)(?:[eE][+-]?[0-9]+)?$"


def read_dialect(found: Mapping[str, Any]) -> CsvDialect:
    """Return how a mapping's CSV or lines are written. Raises: InvalidMapping."""
    return CsvDialect(
        _character(found, "delimiter", ",", '"\n\r'),
        _line_count(found, "skip", 0),
        _line_count(found, "header_rows", 1),
        _encoding(found.get("encoding", "utf-8")),
        read_pattern(found),
        _read_comment(found),
    )


def read_number_format(found: Mapping[str, Any]) -> NumberFormat:
    """Return how a mapping's numbers are written. Raises: InvalidMapping."""
    numbers = NumberFormat(_character(found, "decimal", ".", "+-\n\r"), _character(found, "group", "", "+-\n\r"))
    if numbers.decimal == numbers.group:
        raise InvalidMapping("group", "is the decimal mark too", 'another character than decimal, such as "."')
    return numbers


def _character(found: Mapping[str, Any], member: str, default: str, excluded: str) -> str:
    value = found.get(member, default)
    printable = isinstance(value, str) and len(value) == 1 and not value.isalnum() and value not in excluded
    if member in found and not (printable and (value.isascii() or member == "group")):
        raise InvalidMapping(member, f"is {value!r}", 'one character such as ";" or ","')
    return str(value)


def _line_count(found: Mapping[str, Any], member: str, default: int) -> int:
    value = found.get(member, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MOST_LINES:
        raise InvalidMapping(member, "is no number of lines", f"a number from 0 to {_MOST_LINES}")
    return value


def _read_comment(found: Mapping[str, Any]) -> str:
    value = found.get("comment", "")
    if "comment" in found and not (isinstance(value, str) and value and len(value) <= _LONGEST_COMMENT and "pattern" in found):
        reason = "is no beginning of lines" if "pattern" in found else "is given without pattern"
        raise InvalidMapping("comment", reason, 'what lines that are no rows begin with, such as "#", beside pattern')
    return str(value)


def _encoding(name: Any) -> str:
    try:
        if not isinstance(name, str) or b"a,\n".decode(name).encode(name) != b"a,\n":
            raise LookupError
        return codecs.lookup(name).name
    except (LookupError, ValueError, UnicodeError):
        raise InvalidMapping(
            "encoding", f"is {name!r}", 'an encoding such as "utf-8" or "windows-1252"; UTF-16 is known by its byte order mark'
        ) from None


def read_pattern(found: Mapping[str, Any]) -> str:
    """Return the pattern of a mapping's lines, "" for none; a name stands for one that is known.

    Raises: InvalidMapping.
    """
    if "pattern" not in found:
        return ""
    text = found["pattern"]
    expected = f"{', '.join(NAMED_PATTERNS)}, or a regular expression with named groups such as (?P<time>\\S+) (?P<message>.*)"
    if not isinstance(text, str) or not text or len(text) > _LONGEST_PATTERN:
        raise InvalidMapping("pattern", "is no pattern of lines", expected)
    pattern = NAMED_PATTERNS.get(text, text)
    try:
        names = find_groups(pattern)
    except pa.ArrowInvalid as fault:
        raise InvalidMapping("pattern", f"cannot be read: {str(fault).removeprefix('Invalid regular expression: ')}", expected) from None
    if not names or len(set(names)) < len(names):
        raise InvalidMapping("pattern", "names a group twice" if names else "has no named group", expected)
    return pattern


def find_groups(pattern: str) -> list[str]:
    """Return the names of a pattern's groups.

    Raises: ArrowInvalid where it is no regular expression of RE2, or has a group without a name.
    """
    found = pc.extract_regex(pa.array([], pa.utf8()), pattern=pattern)
    return [found.type.field(k).name for k in range(found.type.num_fields)]


def to_utf8(body: bytes, encoding: str = "utf-8") -> bytes:
    """Return a body in UTF-8 without a byte order mark.

    A mark says the encoding of the body, whatever the mapping says.
    """
    for mark, marked in _BYTE_ORDER_MARKS:
        if body.startswith(mark):
            text = body[len(mark) :]
            return text if marked == "utf-8" else text.decode(marked, errors="replace").encode()
    return body if encoding in ("utf-8", "ascii") else body.decode(encoding, errors="replace").encode()


def skip_lines(body: bytes, dialect: CsvDialect) -> bytes:
    """Return the body from its header on: without Excel's line of the separator, and without the lines that the
    dialect skips.
    """
    found = _SEPARATOR.match(body)
    start = found.end() if found is not None else 0
    for _ in range(dialect.skip):
        end = body.find(b"\n", start)
        if end < 0:
            return b""
        start = end + 1
    return body[start:] if start else body
