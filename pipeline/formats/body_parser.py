"""This module turns request bodies, WebSocket frames and files into occurrences: interfaces.md, stream formats."""

from codecs import BOM_UTF8
from pathlib import Path

import pyarrow as pa
import pyoxigraph as ox

from engine.messages import Micros
from epsparql.events.media_types import (
    ARROW,
    ETALIS_STREAM,
    LD_JSON,
    N_QUADS,
    N_TRIPLES,
    NDJSON,
    NDJSON_LD,
    RDF_XML,
    SUFFIXES,
    TRIG,
    TURTLE,
)  # fmt: skip
from pipeline.errors import FormatError
from pipeline.formats.arrow import parse_arrow
from pipeline.formats.batches.batch_builder import Interval
from pipeline.formats.batches.expansion_budget import ExpansionBudget
from pipeline.formats.batches.fast_path import quads_batch
from pipeline.formats.batches.row_builder import RowBuilder
from pipeline.formats.batches.timestamps import instant
from pipeline.formats.etalis import parse_etalis_stream
from pipeline.formats.ndjson import EventFrame, parse_ndjson, parse_ndjson_frame
from pipeline.formats.rdf.rdf import MessageTime, read_message
from pipeline.formats.rdf.rdf_messages import MESSAGE_VERSIONS, announces_messages, parse_ld_lines, parse_messages, read_timed_message
from pipeline.formats.rdf.rdf_version import VERSIONS
from pipeline.formats.rdf.rdf_xml import placed, plain_xml
from pipeline.formats.reading_rules import PLAIN_RULES, ReadingRules

_RDF = {
    N_TRIPLES: ox.RdfFormat.N_TRIPLES,
    TURTLE: ox.RdfFormat.TURTLE,
    TRIG: ox.RdfFormat.TRIG,
    N_QUADS: ox.RdfFormat.N_QUADS,
    LD_JSON: ox.RdfFormat.JSON_LD,
    RDF_XML: ox.RdfFormat.RDF_XML,
}
UNTIMED: Micros = -(1 << 61)
"""This stands for the arrival time of a file, which has none."""
MEDIA_TYPES = (NDJSON, *_RDF, NDJSON_LD, ARROW, ETALIS_STREAM)


def media_type_of(path: Path | str) -> str:
    """Return the media type that the file's suffix names. Raises: FormatError."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise FormatError("media-type", f"{Path(path).name}: no format is known by the suffix {suffix!r}", expected=", ".join(SUFFIXES))
    return SUFFIXES[suffix]


def interval_of(at: str | None, start: str | None, end: str | None, *, rounds: bool = False) -> Interval | None:
    """Return the request's `?at=` or `?start=&end=`, given as xsd:dateTime; None where none is given.

    Raises: FormatError.
    """
    if at is None and start is None and end is None:
        return None
    try:
        if at is not None and start is None and end is None:
            return Interval(instant(at, rounds), instant(at, rounds))
        if at is None and start is not None and end is not None:
            found = Interval(instant(start, rounds), instant(end, rounds))
            if found.start > found.end:
                raise FormatError("interval", f"the start {start} is after the end {end}")
            return found
    except ValueError as fault:
        raise FormatError("time", str(fault)) from None
    raise FormatError("time", "at excludes start and end, which come together", expected="at, or start and end")


def parse_body(
    body: bytes, media_type: str, *, default: Interval | None, arrived: Micros, timing: str | None = None, rules: ReadingRules = PLAIN_RULES
) -> pa.RecordBatch:
    """Return OCCURRENCES of one body, in which retractions are marked as late. Rows without a time stand at
    `default`, or else at `arrived`.

    `media_type` may carry parameters, of which `version` counts: RDF Messages are read where it is one of
    MESSAGE_VERSIONS, or where the body begins with one. `timing` is the property that times messages; `rules` are
    those of the stream. Raises: FormatError, code `media-type` for an unknown media type.
    """
    kind = media_type.partition(";")[0].strip().lower()
    body = body if kind == ARROW else body.removeprefix(BOM_UTF8)
    otherwise = default or Interval(arrived, arrived)
    if kind == NDJSON:
        return parse_ndjson(body, otherwise, rules)
    if kind == ARROW:
        return parse_arrow(body, otherwise)
    if kind == NDJSON_LD:
        rows = RowBuilder(ExpansionBudget(len(body)), rounds=rules.rounds)
        parse_ld_lines(body, otherwise, rows, timing)
        return rows.batch()
    if kind == ETALIS_STREAM:
        return parse_etalis_stream(body, None if arrived == UNTIMED else arrived)
    if kind not in _RDF:
        raise FormatError("media-type", f"{kind!r} is not a media type for events", expected=", ".join(MEDIA_TYPES))
    version, may_have_messages = version_of(media_type), kind not in (LD_JSON, RDF_XML)
    if version not in (None, *VERSIONS, *(MESSAGE_VERSIONS if may_have_messages else ())):
        expected = f"one of {', '.join(VERSIONS)}; of {TURTLE}, {TRIG}, {N_TRIPLES} and {N_QUADS} also of {', '.join(MESSAGE_VERSIONS)}"
        raise FormatError("media-type", f"{kind} has no version {version!r} here", expected=expected)
    if version in MESSAGE_VERSIONS or (may_have_messages and announces_messages(body)):
        rows = RowBuilder(ExpansionBudget(len(body)), rounds=rules.rounds)
        parse_messages(body, _RDF[kind], otherwise, rows, timing)
        return rows.batch()
    if kind == RDF_XML:
        return _read_rdf_xml(body, otherwise, timing, rounds=rules.rounds)
    batch = quads_batch(body, otherwise, graphs=kind == N_QUADS, rounds=rules.rounds) if kind in (N_TRIPLES, N_QUADS) else None
    return batch if batch is not None else read_statements(body, _RDF[kind], otherwise, rounds=rules.rounds)


def read_statements(body: bytes, fmt: ox.RdfFormat, otherwise: Interval, *, rounds: bool = False) -> pa.RecordBatch:
    """Read any RDF message by the exact path: return its OCCURRENCES, those without a time at `otherwise`.

    Raises: FormatError.
    """
    rows = RowBuilder(ExpansionBudget(len(body)), rounds=rounds)
    read_message(body, fmt, MessageTime(otherwise), rows)
    return rows.batch()


def _read_rdf_xml(body: bytes, otherwise: Interval, timing: str | None, *, rounds: bool) -> pa.RecordBatch:
    """Read RDF/XML as one message, which has no graphs and so is timed as a whole. Raises: FormatError."""
    rows = RowBuilder(ExpansionBudget(len(body)), rounds=rounds)
    try:
        read_timed_message(plain_xml(body, rows.budget), ox.RdfFormat.RDF_XML, otherwise, rows, timing, scope=body)
    except FormatError as fault:
        raise placed(fault, body) from None
    return rows.batch()


def version_of(media_type: str) -> str | None:
    """Return the media type's parameter `version`."""
    for parameter in media_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "version":
            return value.strip().strip('"').lower()
    return None


def parse_frame(body: bytes, *, arrived: Micros, binary: bool = False, rules: ReadingRules = PLAIN_RULES) -> EventFrame:
    """Read a WebSocket frame: ndjson, with the `"id"` and `"source"` that its first line may carry, alone or with an
    event; a binary frame is Arrow.

    Raises: FormatError.
    """
    if binary:
        return EventFrame(parse_arrow(body, Interval(arrived, arrived)), None, None)
    return parse_ndjson_frame(body.removeprefix(BOM_UTF8), Interval(arrived, arrived), rules)


__all__ = [
    "ARROW", "LD_JSON", "MEDIA_TYPES", "NDJSON", "NDJSON_LD", "N_QUADS", "N_TRIPLES", "RDF_XML", "TRIG", "TURTLE", "FormatError",
    "Interval", "interval_of", "media_type_of", "parse_body", "parse_frame", "version_of",
]  # fmt: skip
