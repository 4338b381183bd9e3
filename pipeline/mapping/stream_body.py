"""This module reads what is sent to a stream by the stream's settings: its mapping, its base, and what becomes of
rows that do not map.
"""

from codecs import BOM_UTF8
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Literal

import msgspec
import pyarrow as pa
from msgspec import UNSET, Raw, UnsetType

from engine.messages import Micros
from epsparql.deferred_methods import dataclass
from epsparql.events.media_types import CSV, JSON, LINES
from epsparql.events.on_error import REFUSE, SKIP
from pipeline.errors import FormatError
from pipeline.formats.batches.batch_builder import Interval, Labels
from pipeline.formats.batches.expansion_budget import ExpansionBudget
from pipeline.formats.body_parser import MEDIA_TYPES, NDJSON, parse_body, parse_frame
from pipeline.formats.etalis import check_event_nodes, may_name_events
from pipeline.formats.namespaces import Namespaces
from pipeline.formats.ndjson import LONGEST_KEY, parse_event_frames
from pipeline.formats.reading_rules import ReadingRules, is_blank
from pipeline.formats.short_terms import ShortTerms
from pipeline.mapping.cloud_events import CLOUD_EVENT, CLOUD_EVENTS, read_cloud_events
from pipeline.mapping.json_reader import read_documents
from pipeline.mapping.mapper import MappedBody, map_body, map_table, refuse_rejected
from pipeline.mapping.mapping import Mapping, compile_mapping
from pipeline.source_positions import Source, parse_source

MAPPED_TYPES = (JSON, CSV, LINES, CLOUD_EVENT, CLOUD_EVENTS)
"""Bodies of these types go through the stream's mapping."""
_FORMATS = {"csv": CSV, "json": JSON, "lines": LINES}
SHORT, GROUP = 4 << 10, 64 << 10
"""Bodies of ndjson of at most so many bytes that came at once are read in groups of so many bytes."""


@dataclass(frozen=True, slots=True)
class BodySettings:
    """Holds the settings of a stream that say how bodies are read; `mapping` and `prefixes` are JSON text, "" for none.

    Times finer than a microsecond are rounded where `rounds` says so. Terms of ndjson may have the prefixes.
    """

    base: str = ""
    mapping: str = ""
    on_error: str = REFUSE
    rounds: bool = False
    prefixes: str = ""

    def compiled(self, media_type: str) -> Mapping:
        """Return the stream's mapping. Raises: FormatError where the stream has none."""
        if not self.mapping:
            reason = f"{media_type} needs a mapping, and the stream has none"
            remedy = 'PUT /streams/{name} with {"mapping": {…}}, which epsparql map FILE proposes; or application/x-ndjson or application/ld+json'
            raise FormatError("media-type", reason, expected=remedy)
        mapping = compile_mapping(self.mapping, self.base)
        return mapping.rounded() if self.rounds else mapping

    @property
    def reading_rules(self) -> ReadingRules:
        """Return how bodies are read. Prefixes of the stream count before those of its mapping."""
        names = compile_mapping(self.mapping, self.base).names if self.mapping else Namespaces(self.base, {})
        return ReadingRules(ShortTerms(names.declare(_decode_prefixes(self.prefixes)) if self.prefixes else names), self.rounds)


@lru_cache(maxsize=256)
def _decode_prefixes(text: str) -> dict[str, str]:
    return msgspec.json.decode(text, type=dict[str, str])


@dataclass(frozen=True, slots=True, eq=False)
class StreamBody:
    """Holds a body's occurrences and rejected rows, and the idempotency key and source that it brings along."""

    mapped: MappedBody
    key: str | None = None
    source: Source | None = None

    @classmethod
    def from_batch(cls, batch: pa.RecordBatch, key: str | None = None, source: Source | None = None) -> "StreamBody":
        """Return a body all of whose rows map.

        Raises: FormatError, where it describes an event of ETALIS that it does not bring.
        """
        check_event_nodes((batch,))
        return cls(MappedBody(batch, (), batch.num_rows), key, source)


def read_body(
    body: bytes,
    media_type: str,
    settings: BodySettings,
    *,
    default: Interval | None,
    arrived: Micros,
    timing: str | None = None,
    timed: bool = False,
) -> StreamBody:
    """Return what a body brings.

    `timed` says that `default` is the time of all rows, whatever the mapping names. Raises: FormatError.
    """
    body, kind = _check_content(body), media_type.partition(";")[0].strip().lower()
    otherwise = default or Interval(arrived, arrived)
    if kind in (CSV, JSON, LINES):
        mapping = settings.compiled(kind)
        mapped = map_body(body, kind, replace(mapping, time=()) if timed else mapping, otherwise)
        return StreamBody(_settled(mapped, settings))
    if kind in (CLOUD_EVENT, CLOUD_EVENTS):
        return _read_cloud_events(body, kind, settings, otherwise)
    try:
        batch = parse_body(body, media_type, default=default, arrived=arrived, timing=timing, rules=settings.reading_rules)
    except FormatError as fault:
        if fault.code == "media-type" and kind not in MEDIA_TYPES:
            raise FormatError("media-type", fault.message, expected=f"{fault.expected}; with a mapping also {', '.join(MAPPED_TYPES)}") from None
        raise
    return StreamBody.from_batch(batch)


def _check_content(body: bytes) -> bytes:
    """Return a body without its byte order mark. Raises: FormatError where it is empty."""
    body = body.removeprefix(BOM_UTF8)
    if is_blank(body):
        raise FormatError("empty", "the body is empty, so it brings no events", expected="at least one event")
    return body


def read_together(bodies: Sequence[bytes], arrived: Micros) -> list[pa.RecordBatch] | None:
    """Read short bodies of ndjson that came at once, for streams without settings, in the time that one of them takes.

    Return None where each is to be read by itself, for what one of them holds beside events with times.
    """
    found = list[pa.RecordBatch]()
    for group in _cut_into_groups(bodies):
        batches = parse_event_frames(group, arrived)
        if batches is None or any(map(may_name_events, batches)):
            return None
        found += batches
    return found


def _cut_into_groups(bodies: Sequence[bytes]) -> list[list[bytes]]:
    """Return the bodies in groups of at most GROUP bytes.

    Each body of a group counts the group's memory as its own in the log's queue.
    """
    groups, size = [list[bytes]()], 0
    for body in bodies:
        if size + len(body) > GROUP and groups[-1]:
            groups.append([])
            size = 0
        groups[-1].append(body)
        size += len(body)
    return groups


def _read_cloud_events(body: bytes, kind: str, settings: BodySettings, otherwise: Interval) -> StreamBody:
    mapping, budget = settings.compiled(kind), ExpansionBudget(len(body))
    events = read_cloud_events(body, kind, rounds=settings.rounds)
    if events.times is not None:
        mapping = replace(mapping, time=())
    budget.spend(16 * (len(mapping.fields) + 1) * (len(events.documents) + body.count(b"{")))
    table = read_documents(events.documents, mapping)
    labels = Labels(body, otherwise if events.times is None and not mapping.time else None)
    return StreamBody(
        _settled(map_table(table, mapping, budget, labels, (otherwise if events.times is None else events.times, ())), settings), events.key
    )


def _settled(mapped: MappedBody, settings: BodySettings) -> MappedBody:
    check_event_nodes((mapped.batch,))
    return refuse_rejected(mapped) if settings.on_error == REFUSE else replace(mapped, skips=settings.on_error == SKIP)


class _FrameHead(msgspec.Struct, forbid_unknown_fields=True):
    """Represents the first line of a frame that goes through the mapping."""

    format: Literal["csv", "json", "lines"]
    id: str | UnsetType = UNSET
    source: Raw | UnsetType = UNSET


def read_frame(body: bytes, settings: BodySettings, *, arrived: Micros, binary: bool) -> StreamBody:
    """Return what a WebSocket frame brings.

    A first line such as `{"format":"csv"}` says that the rest goes through the mapping. Raises: FormatError.
    """
    body = _check_content(body)
    first, _, rest = body.partition(b"\n") if not binary else (b"", b"", b"")
    if b'"format"' not in first:
        batch, key, source = parse_frame(body, arrived=arrived, binary=binary, rules=settings.reading_rules)
        return StreamBody.from_batch(batch, key, source)
    try:
        head = msgspec.json.decode(first, type=_FrameHead)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise FormatError("field", f"the line of the frame's format cannot be read: {fault}", 1, 1, '{"format":"csv"}, json or lines') from None
    key = None if head.id is UNSET else head.id
    if key is not None and len(key) > LONGEST_KEY:
        raise FormatError("field", f"the id has more than {LONGEST_KEY} characters; it is remembered for a day", 1, 1)
    source = None if isinstance(head.source, UnsetType) else parse_source(bytes(head.source))
    return replace(read_body(rest, _FORMATS[head.format], settings, default=None, arrived=arrived), key=key, source=source)


__all__ = ["GROUP", "MAPPED_TYPES", "NDJSON", "SHORT", "BodySettings", "StreamBody", "read_body", "read_frame", "read_together"]
