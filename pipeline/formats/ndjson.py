"""This module reads application/x-ndjson: one event, or one message of several triples, per line.

Two ways lead to one result. The compiled way is for bodies of the usual shape
(pipeline/formats/batches/fast_path.py). The way line by line is for all others, and also finds the place of a fault.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyoxigraph as ox
from msgspec import UNSET, Raw, UnsetType

from engine.messages import Micros, int64s
from pipeline.errors import FormatError
from pipeline.formats.batches.batch_builder import Interval, Labels
from pipeline.formats.batches.expansion_budget import ExpansionBudget
from pipeline.formats.batches.fast_path import events_batch
from pipeline.formats.batches.ntriples import GRAPHS, OBJECTS, PREDICATES, SUBJECTS, CanonicalTerms, labelled
from pipeline.formats.batches.row_builder import RowBuilder
from pipeline.formats.batches.timestamps import instant
from pipeline.formats.namespaces import find_prefix_fault
from pipeline.formats.rdf.rdf import MessageTime, read_message
from pipeline.formats.reading_rules import PLAIN_RULES, ReadingRules
from pipeline.source_positions import Source, parse_source

LONGEST_KEY = 255
"""A frame's id and an idempotency key have at most this many characters."""


class EventLine(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """Represents one line: the fields that it may have.

    Terms are JSON values; the first line may have `prefixes` alone.
    """

    s: Raw | UnsetType = UNSET
    p: Raw | UnsetType = UNSET
    o: Raw | UnsetType = UNSET
    g: Raw | UnsetType = UNSET
    triples: str | UnsetType = UNSET
    start: str | UnsetType = UNSET
    end: str | UnsetType = UNSET
    at: str | UnsetType = UNSET
    retract: bool | UnsetType = UNSET
    prefixes: dict[str, str] | UnsetType = UNSET


class FrameLine(EventLine, forbid_unknown_fields=True, gc=False):
    """Represents a line of a WebSocket frame, whose first line may carry the frame's id and source."""

    id: str | UnsetType = UNSET
    source: msgspec.Raw | UnsetType = UNSET


class EventFrame(NamedTuple):
    """Holds a WebSocket frame: its OCCURRENCES, its id, and the source that it comes from."""

    batch: pa.RecordBatch
    key: str | None
    source: Source | None


_EACH_LINE = "one JSON object per line"
_FIRST_LINE = re.compile(rb"\s*[^\n]*\n?")
_LINE = msgspec.json.Decoder(EventLine)
_FRAME_LINE = msgspec.json.Decoder(FrameLine)
_ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]", re.DOTALL)
_STRING = r'"((?:[^"\\]|\\.)*)"'
_FIELD = re.compile(rf"[{{,]\s*{_STRING}\s*:\s*(?:{_STRING})?")


def parse_ndjson(body: bytes, default: Interval, rules: ReadingRules = PLAIN_RULES) -> pa.RecordBatch:
    """Return OCCURRENCES of a body. `default` is the time of lines without one. Raises: FormatError."""
    found = _read_compiled(body, default, rules, _LINE) or read_lines(body, default, _LINE, rules)
    return found[0]


def parse_ndjson_frame(body: bytes, default: Interval, rules: ReadingRules = PLAIN_RULES) -> EventFrame:
    """Read a WebSocket frame like a body, with the `"id"` and `"source"` of its first line; that line may hold
    nothing else. Raises: FormatError.
    """
    first, end, rest = body.partition(b"\n")
    header = _decode(first, 1, _FRAME_LINE) if b'"source"' in first else None
    source = _read_source(header, first)
    if header is not None and source is not None and not _is_event(header):
        if header.prefixes is not UNSET:
            rules = _Place(first, 1).declare(header, rules)
        batch = parse_ndjson(end + rest, default, rules)  # the compiled way knows no source; lines keep their numbers
        key = header.id if isinstance(header, FrameLine) and header.id is not UNSET else None
    else:
        batch, key = _read_compiled(body, default, rules, _FRAME_LINE) or read_lines(body, default, _FRAME_LINE, rules)
    if key is not None and len(key) > LONGEST_KEY:
        raise _too_long(body)
    return EventFrame(batch, key, source)


def take_header(body: bytes, rules: ReadingRules) -> tuple[bytes, ReadingRules]:
    """Return a body with empty lines up to the first line that declares prefixes, and the rules for its other lines.

    Raises: FormatError.
    """
    rest, rules, _ = _split_header(body, rules, _LINE)
    return b"\n" * body[: len(body) - len(rest)].count(b"\n") + rest, rules.begin()


def _split_header(body: bytes, rules: ReadingRules, decoder: msgspec.json.Decoder[Any]) -> tuple[bytes, ReadingRules, EventLine | None]:
    """Return the lines after a first line that declares prefixes, with the rules for them and that line; else the body.

    Raises: FormatError.
    """
    found = _FIRST_LINE.match(body)
    if rules.begun or found is None or b'"prefixes"' not in found[0]:
        return body, rules, None
    text = found[0].removesuffix(b"\n").rpartition(b"\n")[2]
    number = found[0].removesuffix(b"\n").count(b"\n") + 1
    header = _decode(text, number, decoder)
    if header.prefixes is UNSET:
        return body, rules, None
    return body[found.end() :], _Place(text, number).declare(header, rules), header


def _read_compiled(
    body: bytes, default: Interval, rules: ReadingRules, decoder: msgspec.json.Decoder[Any]
) -> tuple[pa.RecordBatch, str | None] | None:
    """Return OCCURRENCES and the first line's id; None for a body that is to be read line by line."""
    framed = decoder is _FRAME_LINE
    try:
        body, rules, header = _split_header(body, rules, decoder)
    except FormatError:
        return None
    found = events_batch(body, default, frame=framed and header is None, rounds=rules.rounds, read_term=rules.short.write_found)
    if found is None or header is None:
        return found
    return found[0], header.id if isinstance(header, FrameLine) and header.id is not UNSET else None


def parse_event_frames(bodies: Sequence[bytes], arrived: Micros) -> list[pa.RecordBatch] | None:
    """Read frames that hold events with times and nothing else, as one body: return each one's OCCURRENCES.

    Return None where a frame has to be read by itself. Names of blank nodes and warnings depend on the frame, and
    faults have places in it. A frame without events is refused.
    """
    joined = b"\n".join(bodies)
    found = None if b"_:" in joined else events_batch(joined, Interval(arrived, arrived), frame=False, read_term=PLAIN_RULES.short.write_found)
    if found is None:
        return None
    batch, counts = found[0], [sum(1 for line in body.split(b"\n") if line and not line.isspace()) if b"\n" in body else 1 for body in bodies]
    named = b"\\u" in joined and any(
        b"_:" in terms.buffers()[2].to_pybytes() for terms in (batch.column(k).dictionary for k in range(4)) if len(terms)
    )
    if named or 0 in counts or sum(counts) != batch.num_rows or (int64s(batch.column("end")) == arrived).any():
        return None
    begins = accumulate(counts, initial=0)
    return [batch.slice(begin, count) for begin, count in zip(begins, counts, strict=False)]


def _is_event(line: EventLine) -> bool:
    return any(getattr(line, name) is not UNSET for name in EventLine.__struct_fields__ if name != "prefixes")


def _read_source(line: EventLine | None, text: bytes) -> Source | None:
    """Return the source that a frame's first line carries. Raises: FormatError."""
    if not isinstance(line, FrameLine) or isinstance(line.source, UnsetType):
        return None
    try:
        return parse_source(bytes(line.source))
    except FormatError as fault:
        raise FormatError(fault.code, fault.message, 1, _Place(text, 1).value("source")[0], fault.expected) from None


def _too_long(body: bytes) -> FormatError:
    number, text = next((number, text) for number, text in enumerate(body.split(b"\n"), 1) if text and not text.isspace())
    reason = f"the id has more than {LONGEST_KEY} characters; it is remembered for a day"
    return FormatError("field", reason, number, _Place(text, number).value("id")[0], f"at most {LONGEST_KEY} characters")


def read_lines(
    body: bytes, default: Interval, decoder: msgspec.json.Decoder[Any] = _LINE, rules: ReadingRules = PLAIN_RULES
) -> tuple[pa.RecordBatch, str | None]:
    """Read any body by the exact path, line by line: return OCCURRENCES and the first line's id. Raises: FormatError."""
    rows, first = RowBuilder(ExpansionBudget(len(body)), rounds=rules.rounds), None
    for number, text in enumerate(body.split(b"\n"), 1):
        if text and not text.isspace():
            line, place = _decode(text, number, decoder), _Place(text, number)
            if first is not None and isinstance(line, FrameLine) and line.source is not UNSET:
                raise FormatError("field", "only a frame's first line has a source", number, place.key("source"))
            if line.prefixes is not UNSET:
                rules = place.declare(line, rules if first is None else rules.begin())
            else:
                place.read(line, default, rows, rules)
            first = first or line
    return rows.batch(), first.id if isinstance(first, FrameLine) and first.id is not UNSET else None


def _decode(text: bytes, number: int, decoder: msgspec.json.Decoder[Any]) -> EventLine:
    try:
        text.decode()
        line: EventLine = decoder.decode(text)
    except UnicodeDecodeError as fault:
        column = len(text[: fault.start].decode()) + 1
        raise FormatError("json", "these bytes are not UTF-8", number, column) from None
    except msgspec.ValidationError as fault:
        raise _invalid(str(fault), text, number) from None
    except (msgspec.DecodeError, RecursionError) as fault:
        at = re.search(r" \(byte (\d+)\)", str(fault))
        before = text[: int(at[1])] if at else text.rstrip()
        if "trailing characters" in str(fault):  # the one message that counts from 1
            before = before[:-1]
        reason = str(fault).replace(at[0], "") if at else str(fault)
        raise FormatError("json", reason, number, len(before.decode("utf-8", "replace")) + 1, _EACH_LINE) from None
    return line


def _invalid(message: str, text: bytes, number: int) -> FormatError:
    """Return the error for well-formed JSON that is no event."""
    reason, _, path = message.partition(" - at `$.")
    field = path.rstrip("`")
    unknown = re.search(r"unknown field `(.*)`", reason)
    if unknown:
        fields = f"{', '.join(EventLine.__struct_fields__)}; or a mapping, which epsparql map proposes, if these are rows"
        return FormatError("field", f"unknown field {unknown[1]!r}", number, _Place(text, number).key(unknown[1]), fields)
    if not field:
        return FormatError("json", reason, number, 1, _EACH_LINE)
    return FormatError("json", f"{field}: {reason}", number, _Place(text, number).value(field.partition("[")[0])[0])


class _Place:
    """Represents one line, and finds where in it things stand. Columns are code points, from 1."""

    def __init__(self, text: bytes, number: int) -> None:
        self.text, self.number = text, number

    def key(self, name: str) -> int:
        """Return the column of a field's name."""
        found = [m for m in _FIELD.finditer(self.text.decode()) if _unescaped(m[1]) == name]
        return found[0].start(1) if found else 1

    def value(self, name: str) -> tuple[int, str]:
        """Return the column of a field's value, and the value as written between its quotes (empty if it is no string)."""
        found = [m for m in _FIELD.finditer(self.text.decode()) if _unescaped(m[1]) == name]
        if not found:
            return 1, ""
        last = found[-1]
        return (last.start(2), last[2]) if last[2] is not None else (last.end() + 1, "")

    def column(self, name: str, offset: int) -> int:
        """Return the column of the decoded value's code point at `offset`."""
        begin, raw = self.value(name)
        return begin + 1 + sum(len(piece) for piece in _ESCAPE.findall(raw)[:offset])

    def fault(self, code: str, message: str, name: str, expected: str = "") -> FormatError:
        return FormatError(code, message, self.number, self.column(name, 0), expected)

    def declare(self, line: EventLine, rules: ReadingRules) -> ReadingRules:
        """Return the rules for the lines after this one, which declares prefixes. Raises: FormatError."""
        if rules.begun or _is_event(line):
            raise FormatError("field", "only the first line declares prefixes, and it has no event", self.number, self.key("prefixes"))
        assert not isinstance(line.prefixes, UnsetType)
        if (reason := find_prefix_fault(line.prefixes)) is not None:
            raise FormatError("field", reason, self.number, self.key("prefixes"), '{"prefixes": {"ex": "http://example.org/"}}')
        return rules.declare(line.prefixes, self.text)

    def read(self, line: EventLine, default: Interval, rows: RowBuilder, rules: ReadingRules) -> None:
        """Add the occurrences of the line. Raises: FormatError."""
        begin = len(rows)
        self._read_event(line, default, rows, rules)
        if line.retract is True:
            rows.retract_from(begin)

    def _read_event(self, line: EventLine, default: Interval, rows: RowBuilder, rules: ReadingRules) -> None:
        when = self._when(line, rounds=rows.rounds)
        scope = rules.header + self.text if rules.header else self.text
        labels = Labels(scope, default if when is None else None)
        if isinstance(line, FrameLine) and line.id is not UNSET and not _is_event(line):
            return
        graph = None if line.g is UNSET or bytes(line.g) == b"null" else self._term(GRAPHS, "g", line.g, labels, rules)
        at = when or default
        if isinstance(line.triples, str):
            for name in "spo":
                if getattr(line, name) is not UNSET:
                    raise self.fault("field", f"'triples' and {name!r} exclude each other", name)
            self._read_triples(line.triples, at, rows, graph, scope, stated=when is not None)
            return
        terms = [self._required(place, name, line, labels, rules) for place, name in ((SUBJECTS, "s"), (PREDICATES, "p"), (OBJECTS, "o"))]
        rows.spend_row()
        rows.add(map(rows.number, (*terms, graph)), at.start, at.end)

    def _required(self, terms: CanonicalTerms, name: str, line: EventLine, labels: Labels, rules: ReadingRules) -> str:
        value: Raw | UnsetType = getattr(line, name)
        if isinstance(value, UnsetType):
            raise FormatError("field", f"the field {name!r} is missing", self.number, 1, "s, p and o, or triples")
        return self._term(terms, name, value, labels, rules)

    def _term(self, terms: CanonicalTerms, name: str, value: Raw, labels: Labels, rules: ReadingRules) -> str:
        """Return the term of a JSON value.

        Raises: FormatError, with the place of the fault within a string in N-Triples syntax.
        """
        try:
            text = rules.short.write_term(bytes(value), name)
        except FormatError as fault:
            raise FormatError(fault.code, fault.message, self.number, self.value(name)[0], fault.expected) from None
        except RecursionError:
            raise FormatError("json", f"{name} is nested too deep", self.number, self.value(name)[0]) from None
        try:
            return labelled(terms[text], labels.blank_node)
        except FormatError as fault:
            spelled = msgspec.json.decode(value) == text
            column = self.column(name, (fault.column or 1) - 1) if spelled else self.value(name)[0]
            raise FormatError(fault.code, fault.message, self.number, column, fault.expected) from None

    def _read_triples(self, text: str, at: Interval, rows: RowBuilder, graph: str | None, scope: bytes, *, stated: bool) -> None:
        """Read a message of Turtle."""
        try:
            read_message(text.encode(), ox.RdfFormat.TURTLE, MessageTime(at, stated), rows, scope=scope, graph=graph)
        except FormatError as fault:
            before = text.split("\n")[: (fault.line or 1) - 1]
            offset = sum(len(line) + 1 for line in before) + (fault.column or 1) - 1
            raise FormatError(fault.code, fault.message, self.number, self.column("triples", offset), fault.expected) from None

    def _when(self, line: EventLine, *, rounds: bool) -> Interval | None:
        """Return the time that the line states, or None."""
        if line.at is not UNSET:
            for name in ("start", "end"):
                if getattr(line, name) is not UNSET:
                    raise self.fault("field", f"'at' and {name!r} exclude each other", name)
            at = self._instant(line, "at", rounds)
            return Interval(at, at)
        if line.start is UNSET and line.end is UNSET:
            return None
        for name, other in (("start", "end"), ("end", "start")):
            if getattr(line, name) is UNSET:
                raise self.fault("field", f"{other!r} comes with {name!r}", other)
        start, end = (self._instant(line, name, rounds) for name in ("start", "end"))
        if start > end:
            raise self.fault("interval", f"the event starts at {line.start}, which is after its end {line.end}", "start")
        return Interval(start, end)

    def _instant(self, line: EventLine, name: str, rounds: bool) -> Micros:
        try:
            return instant(getattr(line, name), rounds)
        except ValueError as fault:
            raise self.fault("time", str(fault), name) from None


def _unescaped(name: str) -> str:
    """Return a field's name; as written where it is malformed, in a line that is refused anyway."""
    with suppress(msgspec.DecodeError):
        return str(msgspec.json.decode(f'"{name}"'))
    return name
