"""The doors of OTLP: the real SDK of OpenTelemetry as the sender, its retries, the answers that the protocol
prescribes, and bounds.
"""

import gzip
import json
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import requests
from google.rpc.status_pb2 import Status
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from epsparql.client import Client
from epsparql.extras import EXTRAS
from server.http.otlp_status import write_status
from server.http.problem_details import Problem
from tests.server.conftest import DEADLINE_S, serving, until
from tests.server.routes.test_streams import assert_problem

PROTOBUF, JSON = "application/x-protobuf", "application/json"
PREFIXES = "PREFIX otel: <urn:epsparql:otel:> PREFIX attribute: <urn:epsparql:otel:attribute:> PREFIX resource: <urn:epsparql:otel:resource:>"
SHOP = Resource({"service.name": "shop"})
MOST = 200_000


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("telemetry") / "data", max_body=MOST) as found:
        yield found


def logs(*records: dict[str, Any]) -> bytes:
    return json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": list(records)}]}]}).encode()


def as_protobuf(body: bytes) -> bytes:
    from google.protobuf.json_format import Parse

    found: bytes = Parse(body, ExportLogsServiceRequest()).SerializeToString()
    return found


def post(url: str, body: bytes, stream: str, signal: str = "logs", **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in ({"content_type": JSON} | headers).items()}
    return httpx.post(f"{url}/streams/{stream}/otlp/v1/{signal}", content=body, headers=named, timeout=DEADLINE_S)


def accepted(url: str, stream: str) -> int:
    found: int = Client(url).stream(stream)["accepted"]
    return found


def test_what_the_sdk_sends_is_matched(url: str) -> None:
    """A span of two operations, a log record within it and a counter reach one query each."""
    client, base = Client(url), f"{url}/streams/sdk/otlp/v1"
    client.create_stream("sdk", max_delay="PT1M")
    client.register("slow", f"""{PREFIXES} SELECT ?trace ?text FROM STREAM <sdk> WHERE {{
        {{ ?log otel:body ?text ; otel:severity "ERROR" ; otel:traceId ?trace ; resource:service.name "shop" }}
        DURING {{ ?span a otel:Span ; otel:name "pay" ; otel:traceId ?trace ; attribute:card.kind "debit" }} }}""")  # fmt: skip
    client.register(
        "paid", f'{PREFIXES} SELECT ?n FROM STREAM <sdk> WHERE {{ ?point otel:metric "paid" ; otel:value ?n ; attribute:card.kind "debit" }}'
    )
    tracers, loggers = TracerProvider(resource=SHOP), LoggerProvider(resource=SHOP)
    tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{base}/traces", compression=Compression.Gzip)))
    loggers.add_log_record_processor(SimpleLogRecordProcessor(OTLPLogExporter(f"{base}/logs", compression=Compression.Deflate)))
    meters = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter(f"{base}/metrics"))], SHOP)
    with tracers.get_tracer("t").start_as_current_span("pay", attributes={"card.kind": "debit"}):
        time.sleep(0.002)
        loggers.get_logger("l").emit(body="declined", severity_text="ERROR")
        time.sleep(0.002)
    meters.get_meter("m").create_counter("paid").add(3, {"card.kind": "debit"})
    for provider in (tracers, loggers, meters):
        provider.shutdown()
    client.finish("sdk")
    (slow,), (paid,) = (client.solutions(query, wait_s=DEADLINE_S) for query in ("slow", "paid"))
    assert "declined" in str(slow.binding)
    assert "'3'" in str(paid.binding)


class LosingAdapter(requests.adapters.HTTPAdapter):
    """Loses the first answers: the server has the body, and the sender does not know."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.left = times

    def send(self, *arguments: Any, **named: Any) -> Any:
        answer = super().send(*arguments, **named)
        if self.left:
            self.left -= 1
            answer.close()
            raise requests.exceptions.ConnectionError("the answer was lost")
        return answer


@pytest.mark.parametrize("compression", list(Compression))
def test_a_retry_after_a_lost_answer_is_counted_once(url: str, compression: Compression) -> None:
    stream, session, adapter = f"lost{compression.value}", requests.Session(), LosingAdapter(2)
    session.mount("http://", adapter)
    loggers = LoggerProvider(resource=Resource({}))
    exporter = OTLPLogExporter(f"{url}/streams/{stream}/otlp/v1/logs", session=session, compression=compression, timeout=DEADLINE_S)
    loggers.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    loggers.get_logger("l").emit(body="once")
    first = accepted(url, stream)
    loggers.get_logger("l").emit(body="once")  # another record, though it reads the same
    loggers.shutdown()
    assert adapter.left == 0
    assert accepted(url, stream) == 2 * first > 0


def test_records_without_times_are_counted_as_often_as_they_come(url: str) -> None:
    timed, untimed = logs({"timeUnixNano": str(10**18), "body": {"stringValue": "x"}}), logs({"body": {"stringValue": "x"}})
    for body, count in ((timed, 2), (timed, 2), (untimed, 4), (untimed, 6), (as_protobuf(timed), 8), (as_protobuf(timed), 8)):
        assert post(url, body, "again", content_type=JSON if body[:1] == b"{" else PROTOBUF).status_code == 200
        assert accepted(url, "again") == count


def test_rejected_records_are_a_partial_success(url: str) -> None:
    ids = {"traceId": "0" * 31 + "1", "spanId": "0" * 15 + "1"}
    good = {"name": "g", "startTimeUnixNano": str(10**18), "endTimeUnixNano": str(10**18), **ids}
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [good, {"name": "bad"}, {"name": "worse"}]}]}]}).encode()
    reason = "row 2, field startTimeUnixNano: the span has no such time (1 more row does not map)"
    answer = post(url, body, "partial", "traces")
    assert answer.json() == {"partialSuccess": {"rejectedSpans": "2", "errorMessage": reason}}
    assert Client(url).stream("partial")["rejected"] == 2
    assert accepted(url, "partial") == 4
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = ExportTraceServiceRequest()
    request.resource_spans.add().scope_spans.add().spans.add(name="bad")
    answer = post(url, request.SerializeToString(), "partial", "traces", content_type=PROTOBUF)
    found = ExportTraceServiceResponse.FromString(answer.content).partial_success
    assert (answer.headers["content-type"], found.rejected_spans) == (PROTOBUF, 1)
    Client(url).create_stream("letters", on_error="dead_letter")
    post(url, body, "letters", "traces")
    kept = httpx.get(f"{url}/streams/letters/rejected").text.splitlines()
    assert [(json.loads(line)["row"], json.loads(line)["text"]) for line in kept] == [(2, '{"name": "bad"}'), (3, '{"name": "worse"}')]


def test_late_records_are_told_of(url: str) -> None:
    for number in (5, 1):
        answer = post(url, logs({"timeUnixNano": str(number * 10**15)}), "late")
    assert "1 of 1 triples came late" in answer.json()["partialSuccess"]["errorMessage"]
    assert "max_delay" in answer.json()["partialSuccess"]["errorMessage"]


def test_a_request_without_records_is_a_success(url: str) -> None:
    for body, media_type, expected in ((b"", PROTOBUF, b""), (b"{}", JSON, b"{}"), (b"", JSON, b"{}")):
        answer = post(url, body, "nothing", content_type=media_type)
        assert (answer.status_code, answer.content, answer.headers["content-type"]) == (200, expected, media_type)


TIMED = logs({"timeUnixNano": str(10**18)})
REFUSED = [
    pytest.param(b"{", {}, 400, "json: line 1, column 2", id="JSON that is none"),
    pytest.param(gzip.compress(b" " * (MOST + 1)), {"content_encoding": "gzip"}, 413, "the decompressed body is larger than 200000", id="a bomb"),
    pytest.param(zlib.compress(b" " * 10_000_000), {"content_encoding": "deflate"}, 413, "send it in parts", id="a bomb of deflate"),
    pytest.param(b" " * (MOST + 1), {}, 413, "send it in parts", id="a large body"),
    pytest.param(gzip.compress(TIMED)[:-9], {"content_encoding": "gzip"}, 400, "ends early", id="half of a compressed body"),
    pytest.param(gzip.compress(TIMED) + b"x", {"content_encoding": "gzip"}, 400, "followed by other bytes", id="more than a compressed body"),
    pytest.param(TIMED, {"content_encoding": "gzip"}, 400, "cannot be decompressed", id="not compressed"),
    pytest.param(TIMED, {"content_encoding": "zstd"}, 415, "expected gzip, deflate", id="another compression"),
    pytest.param(logs({"timeUnixNano": str(10**19)}), {}, 422, "max_ahead", id="a time of the future"),
]


@pytest.mark.parametrize(("body", "headers", "status", "reason"), REFUSED)
def test_a_refusal_is_a_status_in_the_requests_media_type(url: str, body: bytes, headers: dict[str, str], status: int, reason: str) -> None:
    answer = post(url, body, "refused", **headers)
    assert (answer.status_code, answer.headers["content-type"]) == (status, JSON)
    assert answer.json()["code"] > 0
    assert reason in answer.json()["message"]
    if reason.startswith("json") or status == 422:
        return
    coded = post(url, body, "refused", **(headers | {"content_type": PROTOBUF}))
    assert coded.headers["content-type"] == PROTOBUF
    found = Status.FromString(coded.content)
    assert (coded.status_code, found.code, found.message) == (status, answer.json()["code"], answer.json()["message"])


def test_another_media_type_gets_a_problem(url: str) -> None:
    problem = assert_problem(post(url, TIMED, "refused", content_type="text/plain"), 415, "media-type")
    assert problem["expected"] == f"{PROTOBUF} or {JSON}"


def test_a_stream_that_has_ended_takes_nothing(url: str) -> None:
    Client(url).create_stream("ended")
    Client(url).finish("ended")
    answer = post(url, TIMED, "ended")
    assert (answer.status_code, answer.json()["code"]) == (409, 9)


@pytest.mark.parametrize("size", [1, 200, 2_000])
def test_a_status_says_when_to_retry(size: int) -> None:
    problem = Problem(503, "log-failed", "x" * size, headers={"Retry-After": "1"})  # type: ignore[arg-type]  # a status by its number
    answer = write_status(problem, PROTOBUF)
    found = Status.FromString(answer.body)
    assert (answer.status_code, answer.headers["retry-after"], found.code) == (503, "1", 14)
    assert found.message == f"log-failed: {'x' * size}"[:2_000]


def test_where_the_library_is_missing_the_answer_names_it(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXTRAS, "otel", ("opentelemetry.no_such_part",))
    answer = post(url, TIMED, "missing")
    assert (answer.status_code, answer.json()["code"]) == (501, 12)
    assert "pip install 'epsparql[otel]'" in answer.json()["message"]


def test_a_trace_is_a_message_key(tmp_path: Path) -> None:
    """The events of a trace meet in one of several partitions, and records without a trace are still taken."""
    with serving(tmp_path / "data", partitions=2) as url:
        client = Client(url)
        client.create_stream("keyed", key="urn:epsparql:otel:traceId", max_delay="PT1S")
        client.register(
            "pairs",
            f"{PREFIXES} SELECT ?t FROM STREAM <keyed> WHERE {{ {{ ?a otel:body 1 ; otel:traceId ?t }} SEQ {{ ?b otel:body 2 ; otel:traceId ?t }} }}",
        )
        records = [
            {"timeUnixNano": str(10**18 + 10**6 * (2 * trace + number)), "traceId": f"{trace + 1:032x}", "body": {"intValue": number}}
            for trace in range(8) for number in (1, 2)
        ]  # fmt: skip
        assert post(url, logs(*records, {"timeUnixNano": str(10**18)}), "keyed").status_code == 200
        client.finish("keyed")
        until(lambda: len(client.solutions("pairs", wait_s=1)) == 8, "each trace has its pair")
