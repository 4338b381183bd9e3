"""Telemetry of OpenTelemetry as events: each kind of record with its triples and times, what is rejected, and bounds."""

import json
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict

from engine.messages import int64s
from pipeline.errors import FormatError
from pipeline.mapping.stream_body import StreamBody
from pipeline.otlp.export_request import SIGNALS
from pipeline.otlp.record_builder import MOST_ATTRIBUTES
from pipeline.otlp.telemetry_body import read_telemetry

ARRIVED = 7_000_000
TRACE, SPAN = "5B8EFFF798038103D269B633813FC60C", "EEE19B7EC3C1B174"
RESOURCE = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}
SHARED = {("resource:service.name", '"shop"'), ("scope", '"lib"')}
IDS = {("traceId", f'"{TRACE.lower()}"'), ("spanId", f'"{SPAN.lower()}"')}
XSD, RDF = "http://www.w3.org/2001/XMLSchema#", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"


def logs(*records: dict[str, Any]) -> dict[str, Any]:
    return {"resourceLogs": [{"resource": RESOURCE, "scopeLogs": [{"scope": {"name": "lib"}, "logRecords": list(records)}]}]}


def traces(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"resource": RESOURCE, "scopeSpans": [{"scope": {"name": "lib"}, "spans": list(spans)}]}]}


def metrics(**data: Any) -> dict[str, Any]:
    metric = {"name": "m", "unit": "By", **data}
    return {"resourceMetrics": [{"resource": RESOURCE, "scopeMetrics": [{"scope": {"name": "lib"}, "metrics": [metric]}]}]}


def span(**more: Any) -> dict[str, Any]:
    return {"traceId": TRACE, "spanId": SPAN, "name": "GET /", "startTimeUnixNano": "1000", "endTimeUnixNano": "5000", **more}


def read(body: object, signal: str = "logs", **more: Any) -> StreamBody:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read_telemetry(text, signal, **({"is_json": True, "arrived": ARRIVED, "skips": True} | more))


def events_of(found: StreamBody) -> list[tuple[int, int, set[tuple[str, str]]]]:
    """The events with their times and triples; names of the vocabulary without their namespace."""
    batch = found.mapped.batch
    s, p, o = (batch.column(name).to_pylist() for name in "spo")
    times = zip(int64s(batch.column("start")).tolist(), int64s(batch.column("end")).tolist(), strict=True)
    events = dict[str, tuple[int, int, set[tuple[str, str]]]]()
    for subject, predicate, value, (start, end) in zip(s, p, o, times, strict=True):
        known = events.setdefault(subject, (start, end, set()))
        assert known[:2] == (start, end)
        short = "a" if predicate == f"<{RDF}type>" else predicate.removeprefix("<urn:epsparql:otel:").removesuffix(">")
        known[2].add((short, value.replace("<urn:epsparql:otel:", "<otel:").replace(XSD, "xsd:")))
    return list(events.values())


LOG = {
    "timeUnixNano": "1500",
    "observedTimeUnixNano": "9000000",
    "severityNumber": 17,
    "severityText": "ERROR",
    "body": {"stringValue": 'no "card"\n'},
    "eventName": "paid",
    "traceId": TRACE,
    "spanId": SPAN,
}
LOG_TRIPLES = SHARED | IDS | {
    ("a", "<otel:Log>"), ("severityNumber", '"17"^^<xsd:integer>'), ("severity", '"ERROR"'), ("body", r'"no \"card\"\n"'), ("eventName", '"paid"'),
}  # fmt: skip
POINT = {"timeUnixNano": "2499", "attributes": [{"key": "host", "value": {"stringValue": "h"}}]}
POINT_TRIPLES = SHARED | {("metric", '"m"'), ("unit", '"By"'), ("attribute:host", '"h"')}
TOTALS = {("count", '"3"^^<xsd:integer>'), ("sum", '"4.5"^^<xsd:double>')}
RECORDS = [
    pytest.param("logs", logs(LOG), [(2, 2, LOG_TRIPLES)], id="a log record, whose half a microsecond is rounded up"),
    pytest.param("logs", logs({"observedTimeUnixNano": 1499}), [(1, 1, SHARED | {("a", "<otel:Log>")})], id="the observed time"),
    pytest.param("logs", logs({}), [(ARRIVED, ARRIVED, SHARED | {("a", "<otel:Log>")})], id="no time"),
    pytest.param(
        "traces",
        traces(span(kind=2, parentSpanId="00000000000000ff", status={"code": 2, "message": "down"})),
        [(1, 5, SHARED | IDS | {("a", "<otel:Span>"), ("name", '"GET /"'), ("kind", '"server"'), ("parentSpanId", '"00000000000000ff"'),
          ("status", '"error"'), ("statusMessage", '"down"')})],
        id="a span lasts from its start to its end",
    ),
    pytest.param(
        "traces",
        traces(span(events=[{"timeUnixNano": "3000", "name": "exception", "attributes": [{"key": "exception.type", "value": {"stringValue": "E"}}]}])),
        [(1, 5, SHARED | IDS | {("a", "<otel:Span>"), ("name", '"GET /"')}),
         (3, 3, SHARED | IDS | {("a", "<otel:SpanEvent>"), ("name", '"exception"'), ("attribute:exception.type", '"E"')})],
        id="an event of a span",
    ),
    pytest.param("metrics", metrics(gauge={"dataPoints": [POINT | {"asInt": "-3"}]}),
                 [(2, 2, POINT_TRIPLES | {("a", "<otel:Gauge>"), ("value", '"-3"^^<xsd:integer>')})], id="a gauge"),
    pytest.param("metrics", metrics(sum={"dataPoints": [POINT | {"asDouble": 0.5}], "aggregationTemporality": 2, "isMonotonic": True}),
                 [(2, 2, POINT_TRIPLES | {("a", "<otel:Sum>"), ("value", '"0.5"^^<xsd:double>'), ("temporality", '"cumulative"'),
                   ("monotonic", '"true"^^<xsd:boolean>')})], id="a sum"),
    pytest.param("metrics", metrics(histogram={"dataPoints": [POINT | {"count": 3, "sum": 4.5, "max": 2.0}], "aggregationTemporality": 1}),
                 [(2, 2, POINT_TRIPLES | TOTALS | {("a", "<otel:Histogram>"), ("max", '"2.0"^^<xsd:double>'), ("temporality", '"delta"')})], id="a histogram"),
    pytest.param("metrics", metrics(exponentialHistogram={"dataPoints": [POINT | {"count": 3, "sum": 4.5}]}),
                 [(2, 2, POINT_TRIPLES | TOTALS | {("a", "<otel:ExponentialHistogram>")})], id="an exponential histogram"),
    pytest.param("metrics", metrics(summary={"dataPoints": [POINT | {"count": 3, "sum": 4.5}]}),
                 [(2, 2, POINT_TRIPLES | TOTALS | {("a", "<otel:Summary>")})], id="a summary"),
    pytest.param("metrics", metrics(gauge={"dataPoints": [POINT | {"flags": 1}]}), [(2, 2, POINT_TRIPLES | {("a", "<otel:Gauge>")})], id="the end of a series"),
    pytest.param("metrics", metrics(), [], id="a metric without points"),
    pytest.param("logs", {}, [], id="nothing"),
]  # fmt: skip


@pytest.mark.parametrize(("signal", "body", "events"), RECORDS)
def test_a_record_is_an_event(signal: str, body: dict[str, Any], events: list[Any]) -> None:
    found = read(body, signal)
    assert events_of(found) == events
    assert (found.mapped.rows, found.mapped.rejected) == (len(events), ())


@pytest.mark.parametrize(("signal", "body", "events"), RECORDS)
def test_protobuf_and_json_say_the_same(signal: str, body: dict[str, Any], events: list[Any]) -> None:
    request = SIGNALS[signal].new_message("Request")
    ParseDict(
        json.loads(
            json.dumps(body).replace(TRACE, "W47/95gDgQPSabYzgT/GDA==").replace(SPAN, "7uGbfsPBsXQ=").replace('"00000000000000ff"', '"AAAAAAAAAP8="')
        ),
        request,
    )
    assert events_of(read(request.SerializeToString(), signal, is_json=False)) == events


VALUES = [
    pytest.param({"boolValue": False}, {'"false"^^<xsd:boolean>'}, id="boolean"),
    pytest.param({"intValue": "9007199254740993"}, {'"9007199254740993"^^<xsd:integer>'}, id="an integer in a string"),
    pytest.param({"doubleValue": 1e300}, {'"1e+300"^^<xsd:double>'}, id="double"),
    pytest.param({"doubleValue": "-Infinity"}, {'"-INF"^^<xsd:double>'}, id="infinity"),
    pytest.param({"doubleValue": "NaN"}, {'"NaN"^^<xsd:double>'}, id="no number"),
    pytest.param({"bytesValue": "AAE="}, {'"AAE="^^<xsd:base64Binary>'}, id="bytes"),
    pytest.param({"stringValue": ""}, {'""'}, id="empty"),
    pytest.param({"stringValue": "tab\tü\u0000\\"}, {'"tab\\tü\\u0000\\\\"'}, id="what is escaped"),
    pytest.param({}, set(), id="none"),
    pytest.param({"arrayValue": {"values": [{"stringValue": "a"}, {"intValue": 1}, {"stringValue": "a"}]}}, {'"a"', '"1"^^<xsd:integer>'}, id="array"),
    pytest.param({"arrayValue": {"values": [{"arrayValue": {"values": [{"intValue": 1}]}}]}}, {f'"[[1]]"^^<{RDF}JSON>'}, id="nested array"),
    pytest.param({"kvlistValue": {"values": [{"key": "ü", "value": {"doubleValue": "NaN"}}, {"key": "n"}]}},
                 {rf'"{{\"ü\": \"nan\", \"n\": null}}"^^<{RDF}JSON>'}, id="map"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "terms"), VALUES)
def test_a_value_is_literals(value: dict[str, Any], terms: set[str]) -> None:
    attributes = [{"key": "k ey/", "value": value}]
    ((_, _, triples),) = events_of(read(logs({"timeUnixNano": 1000, "attributes": attributes, "body": value})))
    assert {o for p, o in triples if p == "attribute:k%20ey%2F"} == terms
    assert {o for p, o in triples if p == "body"} == terms


def test_a_body_has_a_key_if_each_event_has_a_time() -> None:
    body, other = logs(LOG), logs(LOG | {"timeUnixNano": "1600"})
    assert read(body).key == read(body, arrived=9).key is not None
    assert read(other).key != read(body).key
    assert read(body, "metrics").key != read(body).key
    assert read(logs(LOG, {})).key is None


def test_records_are_told_apart_but_for_spans_that_come_again() -> None:
    assert len(events_of(read(logs(LOG, LOG)))) == 2
    first, second = (set(read(body, "traces").mapped.batch.column("s").to_pylist()) for body in (traces(span()), traces(span(name="other"))))
    assert first == second


LONG = "x" * 300_000
REJECTED = [
    pytest.param("traces", traces(span(endTimeUnixNano=0), span()), "endTimeUnixNano", "no such time", id="a span without an end"),
    pytest.param("traces", traces(span(endTimeUnixNano="999"), span()), "endTimeUnixNano", "before it starts", id="a span that ends too early"),
    pytest.param("traces", traces(span(traceId=""), span()), "traceId", "no such id", id="a span without a trace"),
    pytest.param("traces", traces(span(spanId="0" * 16), span()), "spanId", "no such id", id="an id of zeros"),
    pytest.param("traces", traces(span(spanId="00ff"), span()), "spanId", "2 bytes; 8 are expected", id="a short id"),
    pytest.param("traces", traces(span(events=[{"name": "e"}]), span()), "events", "no time", id="an event of a span without time"),
    pytest.param("logs", logs(LOG | {"body": {"stringValue": LONG}}, LOG), "body", "300000 characters", id="a long text"),
    pytest.param("logs", logs(LOG | {"body": {"stringValue": '"' * 200_000}}, LOG), "body", "400000 characters", id="a text that is long when written"),
    pytest.param("logs", logs(LOG | {"attributes": [{"key": "", "value": {}}, {"key": "", "value": {"intValue": 1}}]}, LOG), "attributes", "0 characters", id="no name"),
    pytest.param("logs", logs(LOG | {"attributes": [{"key": f"k{k}"} for k in range(MOST_ATTRIBUTES + 1)]}, LOG), "attributes", "1001 attributes", id="many attributes"),
]  # fmt: skip


@pytest.mark.parametrize(("signal", "body", "field", "reason"), REJECTED)
def test_a_record_that_cannot_be_an_event_is_rejected_alone(signal: str, body: dict[str, Any], field: str, reason: str) -> None:
    found = read(body, signal)
    (rejected,) = found.mapped.rejected
    assert (rejected.row, rejected.field, found.mapped.rows) == (1, field, 1)
    assert reason in rejected.reason
    assert 0 < len(rejected.text) <= 1_000


def test_all_records_of_a_resource_that_cannot_be_are_rejected() -> None:
    body = logs(LOG, LOG)
    body["resourceLogs"][0]["resource"] = {"attributes": [{"key": "k", "value": {"stringValue": LONG}}]}
    assert [(each.row, each.field) for each in read(body).mapped.rejected] == [(1, "k"), (2, "k")]


def test_so_many_rejected_records_are_kept() -> None:
    found = read(traces(*[span(spanId="") for _ in range(1_003)]), "traces").mapped
    assert (len(found.rejected), found.beyond) == (1_000, 3)


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {"intValue": 1}
    for _ in range(depth):
        value = {"arrayValue": {"values": [value]}}
    return value


MALFORMED = [
    pytest.param(b"[]", True, "no JSON object", id="no object"),
    pytest.param(b'{"resourceLogs": [}', True, "Expecting value", id="no JSON"),
    pytest.param(b"\xff", True, "cannot be read", id="no UTF-8"),
    pytest.param(b'{"resourceLogs": 5}', True, "resourceLogs", id="a number for a list"),
    pytest.param(b'{"resourceLogs": {"a": 1}}', True, "resourceLogs", id="an object for a list"),
    pytest.param(json.dumps(logs({"traceId": "xyz"})).encode(), True, "'xyz', which is not hexadecimal", id="an id that is none"),
    pytest.param(json.dumps(logs({"timeUnixNano": -1})).encode(), True, "timeUnixNano", id="a time before 1970"),
    pytest.param(json.dumps(logs({"body": {"stringValue": "\ud800"}})).encode(), True, "body", id="half of a surrogate pair"),
    pytest.param(json.dumps(logs({"body": nested(200)})).encode(), True, "body", id="a deep value"),
    pytest.param(b"[" * 100_000, True, "cannot be read", id="deep brackets"),
    pytest.param(b"9" * 5_000, True, "cannot be read", id="a long number"),
    pytest.param(b"{}", False, "cannot be read", id="JSON as protobuf"),
    pytest.param(b"\x0a\xff\xff\xff\xff\x0f", False, "cannot be read", id="a length beyond the body"),
    pytest.param(b"\x0a\x0a" * 1_000, False, "cannot be read", id="bytes"),
]


@pytest.mark.parametrize(("body", "is_json", "reason"), MALFORMED)
def test_a_body_that_is_no_request_is_refused(body: bytes, is_json: bool, reason: str) -> None:
    with pytest.raises(FormatError) as refused:
        read(body, is_json=is_json)
    assert reason in str(refused.value)
    assert refused.value.expected
    assert len(str(refused.value)) < 1_000


def test_a_deep_value_of_protobuf_is_refused() -> None:
    request, value = SIGNALS["logs"].new_message("Request"), None
    value = request.resource_logs.add().scope_logs.add().log_records.add().body
    for _ in range(200):
        value = value.array_value.values.add()
    with pytest.raises(FormatError, match="cannot be read"):
        read(request.SerializeToString(), is_json=False)


EMPTY_POINTS = metrics(gauge={"dataPoints": [{}] * 70_000})
MANY = [
    pytest.param("logs", logs(*[{}] * 70_000), "70,002 records", id="records"),
    pytest.param("traces", {"resourceSpans": [{}] * 70_000}, "70,000 records", id="resources"),
    pytest.param("metrics", EMPTY_POINTS, "70,003 records", id="points of a metric"),
    pytest.param("logs", logs({"attributes": [{}] * 600_000}), "600,008 objects", id="objects"),
]


@pytest.mark.parametrize(("signal", "body", "reason"), MANY)
def test_a_body_of_many_small_parts_is_refused_before_they_are_read(signal: str, body: dict[str, Any], reason: str) -> None:
    with pytest.raises(FormatError, match="smaller batches") as refused:
        read(body, signal)
    assert reason in str(refused.value)


def test_a_small_body_does_not_expand_without_bounds() -> None:
    body = logs(*[{} for _ in range(20_000)])
    body["resourceLogs"][0]["resource"] = {"attributes": [{"key": f"k{k}", "value": {"intValue": k}} for k in range(MOST_ATTRIBUTES)]}
    with pytest.raises(FormatError) as refused:
        read(body)
    assert refused.value.code == "expansion"
