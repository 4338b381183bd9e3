"""This module reads CloudEvents 1.0 in their JSON format: one event, or a batch.

Their data goes through the stream's mapping.
"""

import base64
import binascii
from collections.abc import Sequence
from hashlib import sha256

import msgspec
import numpy as np
from msgspec import Raw

from engine.messages import Micros
from epsparql.deferred_methods import dataclass
from pipeline.errors import FormatError
from pipeline.formats.batches.timestamps import instant
from pipeline.formats.ndjson import LONGEST_KEY

CLOUD_EVENT, CLOUD_EVENTS = "application/cloudevents+json", "application/cloudevents-batch+json"
_VERSION = "1.0"
_EXPECTED = 'a CloudEvent such as {"specversion":"1.0","id":"1","source":"/sensors","type":"reading","time":"2026-01-01T00:00:00Z","data":{…}}'


class _Envelope(msgspec.Struct, gc=False):
    """Represents an event; members that extensions add are not read."""

    specversion: str
    id: str
    source: str
    type: str
    time: str | None = None
    datacontenttype: str | None = None
    data: Raw = Raw()
    data_base64: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class CloudEvents:
    """Holds the data of each event, the times of all or (None) of none, and the idempotency key of a single event."""

    documents: Sequence[Raw | bytes]
    times: "np.ndarray[tuple[int], np.dtype[np.int64]] | None"
    key: str | None


def read_cloud_events(body: bytes, media_type: str, *, rounds: bool = False) -> CloudEvents:
    """Return the events of a body. Raises: FormatError."""
    try:
        batch = media_type == CLOUD_EVENTS
        events = msgspec.json.decode(body, type=list[_Envelope]) if batch else [msgspec.json.decode(body, type=_Envelope)]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise FormatError("cloud-event", f"the body is no CloudEvent: {fault}", expected=_EXPECTED) from None
    documents = [_data_of(event, number) for number, event in enumerate(events, 1)]
    times = [time_of(event.time, number, rounds=rounds) for number, event in enumerate(events, 1) if event.time is not None]
    if times and len(times) < len(events):
        untimed = next(number for number, event in enumerate(events, 1) if event.time is None)
        raise FormatError("cloud-event", f"event {untimed} has no time, and others of the batch have", expected="times for all or for none")
    key = key_of(events[0].source, events[0].id) if not batch else None
    return CloudEvents(documents, np.array(times, np.int64) if times else None, key)


def key_of(source: str, name: str) -> str:
    """Return the idempotency key of an event: its source and id, or a digest of them where they are long."""
    key = f"{source} {name}"
    return key if len(key) <= LONGEST_KEY else sha256(key.encode()).hexdigest()


def time_of(text: str, number: int = 1, *, rounds: bool = False) -> Micros:
    """Return the instant of an event's time. Raises: FormatError."""
    try:
        return instant(text, rounds)
    except ValueError as fault:
        raise FormatError("time", f"event {number}: {fault}", expected="a time of RFC 3339") from None


def _data_of(event: _Envelope, number: int) -> Raw | bytes:
    """Return the event's data, which is JSON. Raises: FormatError."""
    if event.specversion != _VERSION or not event.id or not event.source:
        reason = (
            f"event {number} has no id or source" if event.specversion == _VERSION else f"event {number} is of version {event.specversion[:16]!r}"
        )
        raise FormatError("cloud-event", reason, expected=_EXPECTED)
    kind = (event.datacontenttype or "application/json").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise FormatError(
            "cloud-event", f"the data of event {number} is {kind!r}", expected="data of application/json; send other data in binary mode"
        )
    if event.data_base64 is not None:
        try:
            return base64.b64decode(event.data_base64, validate=True)
        except (binascii.Error, ValueError) as fault:
            raise FormatError("cloud-event", f"data_base64 of event {number} cannot be read: {fault}") from None
    if not bytes(event.data):
        raise FormatError("cloud-event", f"event {number} has no data", expected=_EXPECTED)
    return event.data
