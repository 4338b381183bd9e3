"""This module reads the records of a request of OTLP: logs, points of metrics, and spans with their events.

1. What all records of a resource and scope share, and all points of a metric, is turned into pairs of predicate and
   object once.
2. Each record copies these pairs and adds its own, so its triples need nothing of another event.
3. A record that cannot be an event is rejected with its number and the reason; the others are taken.
"""

from array import array
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from engine.messages import Micros
from pipeline.formats.batches.batch_builder import digest_name
from pipeline.formats.etalis import check_event_nodes
from pipeline.mapping.mapper import LONGEST_TEXT, MOST_REJECTED, MappedBody
from pipeline.mapping.stream_body import StreamBody
from pipeline.otlp.export_request import MOST_RECORDS, SIGNALS, decode_request, too_many
from pipeline.otlp.literals import RecordFault
from pipeline.otlp.record_builder import Pairs, RecordBuilder
from pipeline.otlp.vocabulary import ATTRIBUTE, RESOURCE, SPAN_KINDS, STATUSES, TEMPORALITIES, find_name
from pipeline.rejected_rows import Rejected

Add: TypeAlias = Callable[["array[int]", Any], None]
"""Adds a record, given the pairs that it shares with others."""
_NO_TRACE, _NO_SPAN = bytes(16), bytes(8)
_MEMBERS = {
    "logs": ("resource_logs", "scope_logs", "log_records"),
    "metrics": ("resource_metrics", "scope_metrics", "metrics"),
    "traces": ("resource_spans", "scope_spans", "spans"),
}
_TYPES = {
    "gauge": "Gauge",
    "sum": "Sum",
    "histogram": "Histogram",
    "exponential_histogram": "ExponentialHistogram",
    "summary": "Summary",
}


def read_telemetry(body: bytes, signal: str, *, is_json: bool, arrived: Micros, skips: bool) -> StreamBody:
    """Return what a body of a signal brings; `skips` says that the log only counts its rejected records.

    Its idempotency key is a digest of the body. A body has none if an event took the time of arrival, for the next
    body may then look the same. Raises: FormatError, MissingExtra.
    """
    request = decode_request(body, SIGNALS[signal], is_json=is_json)
    _check_count(request, signal)
    builder = RecordBuilder(body, arrived)
    reader = _RecordReader(builder)
    resources, scopes, members = _MEMBERS[signal]
    for resource in getattr(request, resources):
        for scope in getattr(resource, scopes):
            if signal == "metrics":
                for metric in scope.metrics:
                    reader.read_records(reader.add_point, _points_of(metric), resource, scope, metric)
            else:
                add = reader.add_log if signal == "logs" else reader.add_span
                reader.read_records(add, getattr(scope, members), resource, scope)
    batch = builder.build_batch()
    check_event_nodes((batch,))
    mapped = MappedBody(batch, tuple(reader.rejected), len(builder), skips, reader.beyond)
    return StreamBody(mapped, None if builder.untimed else f"otlp {signal} {digest_name(body)}")


def _check_count(request: Any, signal: str) -> None:
    """Check how many records, metrics, scopes and resources a request has. Raises: FormatError."""
    level, count = [request], 0
    for name in _MEMBERS[signal]:
        count += sum(len(getattr(each, name)) for each in level)
        if count > MOST_RECORDS:
            raise too_many(count, "records", MOST_RECORDS)
        level = [child for each in level for child in getattr(each, name)]
    if signal == "metrics" and (count := count + sum(len(_points_of(metric)) for metric in level)) > MOST_RECORDS:
        raise too_many(count, "records", MOST_RECORDS)


class _RecordReader:
    """Reads the records of one request into a builder, and numbers them from 1."""

    def __init__(self, builder: RecordBuilder) -> None:
        self._builder, self._row = builder, 0
        self.rejected: list[Rejected] = []
        self.beyond = 0

    def read_records(self, add: Add, records: Sequence[Any], resource: Any, scope: Any, metric: Any = None) -> None:
        """Add the records of a scope or of a metric by a method, and reject those that cannot be events."""
        if not records:
            return
        pairs, wrong = Pairs(), None
        try:
            self._builder.add_attributes(pairs, RESOURCE, resource.resource.attributes)
            self._builder.add_word(pairs, "scope", scope.scope.name)
            if metric is not None:
                self._describe_metric(pairs, metric)
            elif add == self.add_log:
                self._builder.add_type(pairs, "Log")
        except RecordFault as fault:
            wrong = fault
        shared = array("i", pairs)
        for record in records:
            self._row += 1
            try:
                if wrong is not None:
                    raise wrong
                add(shared, record)
            except RecordFault as fault:
                self._reject(fault, record)

    def _reject(self, fault: RecordFault, record: Any) -> None:
        if len(self.rejected) == MOST_REJECTED:
            self.beyond += 1
            return
        from google.protobuf.json_format import MessageToJson

        text = MessageToJson(record, indent=None)[:LONGEST_TEXT]
        self.rejected.append(Rejected(self._row, fault.field[:LONGEST_TEXT], fault.reason, text))

    # ------------------------------------------------------------ signals
    def add_log(self, shared: "array[int]", record: Any) -> None:
        """Add the event of a log record to what it shares with others. Raises: RecordFault."""
        builder, pairs = self._builder, Pairs()
        builder.add_word(pairs, "severityNumber", record.severity_number)
        builder.add_word(pairs, "severity", record.severity_text)
        builder.add_value(pairs, "body", record.body)
        builder.add_word(pairs, "eventName", record.event_name)
        builder.add_id(pairs, "traceId", record.trace_id, _NO_TRACE)
        builder.add_id(pairs, "spanId", record.span_id, _NO_SPAN)
        builder.add_attributes(pairs, ATTRIBUTE, record.attributes)
        at = builder.find_time(record.time_unix_nano, record.observed_time_unix_nano)
        builder.add_event(shared, pairs, at, at)

    def add_span(self, shared: "array[int]", span: Any) -> None:
        """Add a span as an event from its start to its end, and its own events as instants. Raises: RecordFault."""
        builder, ids, pairs = self._builder, Pairs(), Pairs()
        begin, end = span.start_time_unix_nano, span.end_time_unix_nano
        if not begin or not end:
            raise RecordFault("endTimeUnixNano" if begin else "startTimeUnixNano", "the span has no such time")
        if end < begin:
            raise RecordFault("endTimeUnixNano", "the span ends before it starts; check its sender's clock")
        trace, own = builder.add_id(ids, "traceId", span.trace_id, _NO_TRACE), builder.add_id(ids, "spanId", span.span_id, _NO_SPAN)
        if not trace or not own:
            raise RecordFault("spanId" if trace else "traceId", "the span has no such id")
        inner = [self._read_span_event(ids[:], event) for event in span.events]
        builder.add_type(pairs, "Span")
        builder.add_word(pairs, "name", span.name)
        builder.add_word(pairs, "kind", find_name(SPAN_KINDS, span.kind))
        builder.add_id(pairs, "parentSpanId", span.parent_span_id, _NO_SPAN)
        builder.add_word(pairs, "status", find_name(STATUSES, span.status.code))
        builder.add_word(pairs, "statusMessage", span.status.message)
        builder.add_attributes(pairs, ATTRIBUTE, span.attributes)
        name = f"_:s{trace}{own}"  # a span has one name, in whatever body it comes
        builder.add_event(shared, ids + pairs, builder.find_time(begin), builder.find_time(end), name)
        for number, (about, at) in enumerate(inner):
            builder.add_event(shared, about, at, at, f"{name}-{number}")

    def _read_span_event(self, pairs: Pairs, event: Any) -> tuple[Pairs, Micros]:
        if not event.time_unix_nano:
            raise RecordFault("events", "an event of the span has no time")
        self._builder.add_type(pairs, "SpanEvent")
        self._builder.add_word(pairs, "name", event.name)
        self._builder.add_attributes(pairs, ATTRIBUTE, event.attributes)
        return pairs, self._builder.find_time(event.time_unix_nano)

    def _describe_metric(self, pairs: Pairs, metric: Any) -> None:
        kind = metric.WhichOneof("data")
        self._builder.add_type(pairs, _TYPES[kind])
        self._builder.add_word(pairs, "metric", metric.name)
        self._builder.add_word(pairs, "unit", metric.unit)
        if kind in ("sum", "histogram", "exponential_histogram"):
            self._builder.add_word(pairs, "temporality", find_name(TEMPORALITIES, getattr(metric, kind).aggregation_temporality))
        if kind == "sum":
            self._builder.add_number(pairs, "monotonic", metric.sum.is_monotonic)

    def add_point(self, shared: "array[int]", point: Any) -> None:
        """Add the event of a metric's point: its value, or the totals of its distribution. Raises: RecordFault."""
        builder, pairs, fields = self._builder, Pairs(), point.DESCRIPTOR.fields_by_name
        if "as_int" in fields:
            kind = point.WhichOneof("value")
            if kind is not None:  # the last point of a series has no value
                builder.add_number(pairs, "value", getattr(point, kind))
        else:
            for name in ("count", "sum", "min", "max"):
                if name in fields and (not fields[name].has_presence or point.HasField(name)):
                    builder.add_number(pairs, name, getattr(point, name))
        builder.add_attributes(pairs, ATTRIBUTE, point.attributes)
        at = builder.find_time(point.time_unix_nano)
        builder.add_event(shared, pairs, at, at)


def _points_of(metric: Any) -> Sequence[Any]:
    kind = metric.WhichOneof("data")
    return () if kind is None else getattr(metric, kind).data_points
