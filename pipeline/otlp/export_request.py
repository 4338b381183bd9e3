"""This module decodes the requests of OTLP over HTTP: protobuf, or JSON whose ids are hexadecimal.

Source: OTLP 1.10, OTLP/HTTP. The classes of the messages are those of the library opentelemetry-proto.
"""

import base64
import json
from typing import Any

from epsparql.deferred_methods import dataclass
from epsparql.extras import load_extra
from pipeline.errors import FormatError

_USER = "OTLP"
_SHOWN = 400
MOST_BODY, MOST_RECORDS, _MOST_OBJECTS = 8 << 20, 65_536, 500_000
"""A body has at most so many bytes, records with what groups them, and objects in JSON. Each of these may be two bytes,
and takes a hundred when it is read.
"""
_SMALLER = "smaller batches (OTEL_BLRP_MAX_EXPORT_BATCH_SIZE and its kin, or send_batch_max_size of a Collector)"
_IDS = ("traceId", "spanId", "parentSpanId", "trace_id", "span_id", "parent_span_id")


@dataclass(frozen=True, slots=True)
class Signal:
    """Describes a kind of telemetry: how its messages are named, and the member of an answer that counts what was
    rejected.
    """

    package: str
    name: str
    rejected: str

    def new_message(self, kind: str) -> Any:
        """Return an empty `Request` or `Response`. Raises: MissingExtra."""
        service = load_extra("otel", _USER, f"opentelemetry.proto.collector.{self.package}.v1.{self.package}_service_pb2")
        return getattr(service, f"Export{self.name}Service{kind}")()


SIGNALS = {
    "logs": Signal("logs", "Logs", "rejected_log_records"),
    "metrics": Signal("metrics", "Metrics", "rejected_data_points"),
    "traces": Signal("trace", "Trace", "rejected_spans"),
}


def too_many(count: int, what: str, most: int) -> FormatError:
    return FormatError("otlp", f"the body has {count:,} {what}, and at most {most:,} are taken", expected=_SMALLER)


def decode_request(body: bytes, signal: Signal, *, is_json: bool) -> Any:
    """Return the message of a body. Raises: FormatError, MissingExtra."""
    request = signal.new_message("Request")
    if is_json:
        _decode_json(body, request)
        return request
    from google.protobuf.message import DecodeError

    try:
        request.ParseFromString(body)
    except DecodeError as fault:
        expected = f"Export{signal.name}ServiceRequest in protobuf, or Content-Type: application/json"
        raise FormatError("otlp", f"the body cannot be read: {fault}", expected=expected) from None
    return request


def _decode_json(body: bytes, request: Any) -> None:
    from google.protobuf.json_format import ParseDict, ParseError

    if (count := body.count(b"{")) > _MOST_OBJECTS:
        raise too_many(count, "objects", _MOST_OBJECTS)
    expected = f"a JSON object of {request.DESCRIPTOR.name}"
    try:
        found = json.loads(body, object_hook=_rewrite_ids) if body.strip() else {}
    except json.JSONDecodeError as fault:
        raise FormatError("json", fault.msg, fault.lineno, fault.colno, expected) from None
    except (ValueError, RecursionError) as fault:  # it is no UTF-8, an id is none, or it is nested too deeply
        raise FormatError("otlp", f"the body cannot be read: {fault}"[:_SHOWN], expected=expected) from None
    if not isinstance(found, dict):
        raise FormatError("otlp", "the body is no JSON object", expected=expected)
    try:
        ParseDict(found, request, ignore_unknown_fields=True)
    except (ParseError, RecursionError) as fault:
        raise FormatError("otlp", f"the body cannot be read: {fault}"[:_SHOWN], expected=expected) from None


def _rewrite_ids(found: dict[str, Any]) -> dict[str, Any]:
    """Change ids from hexadecimal to base64, by which protobuf's JSON writes bytes. Raises: ValueError."""
    for name in _IDS:
        text = found.get(name)
        if isinstance(text, str):
            try:
                found[name] = base64.b64encode(bytes.fromhex(text)).decode()
            except ValueError:
                raise ValueError(f"{name} is {text[:64]!r}, which is not hexadecimal") from None
    return found
