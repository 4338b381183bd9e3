"""Reports figures to a monitor, in Prometheus' text format, with names `epsparql_*` and base units."""

import asyncio
from collections.abc import Iterator, Mapping

from fastapi import APIRouter, Request, Response
from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from connectors.status import RUNNING, STATES
from pipeline.log.lag import count_waiting
from server.connectors.registry import ConnectorRegistry
from server.dependencies import METRICS, Connected, Sent, Shared
from server.service import Service
from server.webhook_delivery.delivery import Deliveries

router = APIRouter(tags=["operations"])
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)
_SHOWN = 2_000
"""At most this many streams, and this many queries, have series of their own; beyond that, only the sums count them."""


class RequestCounts:
    """Counts requests by route, for as long as the app lives."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        labels = ("method", "route", "status")
        self._count = Counter("epsparql_http_requests", "Requests answered, and WebSockets closed", labels, registry=self.registry)
        self._seconds = Histogram(
            "epsparql_http_request_seconds", "Seconds until a request was answered in full", ("route",), buckets=_BUCKETS, registry=self.registry
        )
        self._series: dict[tuple[str, str, str], tuple[Counter, Histogram | None]] = {}
        ProcessCollector(namespace="epsparql", registry=self.registry)

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request.

        `route` is a template, so names in paths make no series; paths that clients make up share one series.
        """
        series = method if route else "other", route or "none", str(status)
        if series not in self._series:
            self._series[series] = self._count.labels(*series), self._seconds.labels(series[1]) if method != "WEBSOCKET" else None
        counter, histogram = self._series[series]
        counter.inc()
        if histogram is not None:
            histogram.observe(seconds)


def _gauge(name: str, about: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"epsparql_{name}", about, value=value)


class ServerCollector(Collector):
    """Collects the server's present figures when a monitor asks for them."""

    def __init__(self, service: Service, deliveries: Deliveries, connectors: ConnectorRegistry) -> None:
        self._service, self._deliveries, self._connectors = service, deliveries, connectors

    def collect(self) -> Iterator[Metric]:
        yield from self._collect_runner()
        yield from self._collect_streams()
        yield from self._collect_queries()
        yield from self._collect_subscribers()
        yield from self._collect_connectors()

    def _collect_runner(self) -> Iterator[Metric]:
        service = self._service
        head, position = service.log.head(), service.solutions.position
        yield _gauge("log_head_entries", "Entries in the input log", head)
        yield _gauge("runner_position_entries", "Entries whose solutions are published", position)
        yield _gauge("runner_lag_entries", "Entries that the runner has not read yet", max(head - position, 0))
        yield _gauge("runner_ready", "1 if the runner is up", float(service.lifecycle.runner.ready))
        if service.lifecycle.export is not None:
            yield _gauge(
                "export_lag_entries", "Entries whose solutions are published but not exported", max(position - service.lifecycle.export.position, 0)
            )
            yield _gauge("export_failing", "1 if the last attempt to export failed", float(service.lifecycle.export.failure != ""))
        if service.lifecycle.keeper is not None:
            yield _gauge(
                "store_failing",
                "1 if the last attempt to write solutions and snapshots to the store failed",
                float(service.lifecycle.keeper.failure != ""),
            )
            yield from _collect_standbys(service.lifecycle.standbys)
            yield _gauge("store_repairs", "Damaged segments that were fetched from the store since the start", service.lifecycle.keeper.repairs)
        batch = service.read_batch()
        if batch is not None:
            yield _gauge("batch_seconds", "Seconds that the last batch on Spark took", batch.seconds)
            yield _gauge("batch_rows", "Occurrences in the last batch, with late ones", batch.rows)
            yield _gauge("batch_lag_entries", "Entries that the last batch left for the next one", batch.lag)
        report = service.read_report()
        if report is not None:
            yield _gauge("engine_reserved_bytes", "Bytes of the engine's tables", report.own.reserved_bytes)
            yield _gauge("engine_networks", "Networks of queries, each with the queries that reach the same streams", report.own.networks)
            yield _gauge("engine_terms", "Terms that the engine stores", report.own.terms)
            yield _gauge(
                "entailment_limited",
                "1 if OWL would entail too many triples, so that RDFS alone is applied to the background",
                float(report.limited != ""),
            )

    def _collect_streams(self) -> Iterator[Metric]:
        streams = list(self._service.log.catalogue.streams.values())
        yield _gauge("streams", "Number of streams", len(streams))
        shown = streams[:_SHOWN]
        accepted = CounterMetricFamily("epsparql_stream_occurrences", "Occurrences accepted, with late ones", labels=("stream",))
        late = CounterMetricFamily("epsparql_stream_late_occurrences", "Occurrences that arrived late", labels=("stream",))
        rejected = CounterMetricFamily("epsparql_stream_rejected_rows", "Rows that did not map, in the dead-letter feed", labels=("stream",))
        waiting = GaugeMetricFamily("epsparql_stream_waiting_occurrences", "Occurrences that wait for declared sources", labels=("stream",))
        latest = GaugeMetricFamily("epsparql_stream_latest_seconds", "Latest end of an occurrence, in seconds since 1970", labels=("stream",))
        watermark = GaugeMetricFamily(
            "epsparql_stream_watermark_seconds", "Watermark of an unfinished stream, in seconds since 1970", labels=("stream",)
        )
        for stream in shown:
            accepted.add_metric((stream.name,), stream.accepted)
            late.add_metric((stream.name,), stream.late)
            rejected.add_metric((stream.name,), stream.rejected)
            if stream.sources:
                waiting.add_metric((stream.name,), count_waiting(stream.waiting))
            if stream.latest is not None:
                latest.add_metric((stream.name,), stream.latest / 1e6)
            if stream.watermark is not None and not stream.finished:
                watermark.add_metric((stream.name,), stream.watermark / 1e6)
        yield from (accepted, late, rejected, waiting, latest, watermark)

    def _collect_queries(self) -> Iterator[Metric]:
        service, report = self._service, self._service.read_report()
        queries = service.catalog.list_queries()
        states = GaugeMetricFamily("epsparql_queries", "Queries by state", labels=("state",))
        for state in dict.fromkeys(("running", "completed", "failed", *(query.state for query in queries))):
            states.add_metric((state,), sum(query.state == state for query in queries))
        solutions = CounterMetricFamily("epsparql_query_solutions", "Solutions that a query has emitted", labels=("query",))
        matches = GaugeMetricFamily("epsparql_query_partial_matches", "Partial matches that a query stores", labels=("query",))
        goals = GaugeMetricFamily("epsparql_query_goals", "Deprecated, use epsparql_query_partial_matches", labels=("query",))
        size = GaugeMetricFamily("epsparql_query_state_bytes", "Bytes of a query's state, as max_state_bytes counts them", labels=("query",))
        for query in queries[:_SHOWN]:
            solutions.add_metric((query.name,), service.solutions.tally(query.registered).count)
            standing = report.queries.get(query.registered) if report is not None and query.state in ("running", "paused") else None
            if standing is not None:
                for family in (matches, goals):
                    family.add_metric((query.name,), standing.usage.goals)
                size.add_metric((query.name,), standing.usage.state_bytes)
        yield from (states, solutions, matches, goals, size)

    def _collect_subscribers(self) -> Iterator[Metric]:
        limits = self._service.admission.connections
        now = GaugeMetricFamily("epsparql_subscribers", "Connections by class; the class feed sends events", labels=("class",))
        sent = CounterMetricFamily("epsparql_deliveries", "Solutions sent to subscribers", labels=("class",))
        for kind in limits.kinds:
            now.add_metric((kind,), limits.count_open(kind))
            sent.add_metric((kind,), limits.sent[kind])
        now.add_metric(("webhook",), len(self._deliveries))
        sent.add_metric(("webhook",), sum(webhook.delivered for webhook in self._deliveries))
        yield from (now, sent)
        yield CounterMetricFamily("epsparql_slow_subscribers", "Times that a subscriber was marked as slow", value=limits.slow)
        given_up = sum(webhook.given_up for webhook in self._deliveries)
        yield GaugeMetricFamily("epsparql_webhook_given_up", "Deliveries that the present webhooks gave up", value=given_up)
        for count, about in (
            ("suppressed", "Solutions that the present webhooks left out as repeats (once_per)"),
            ("forgotten", "Keys of once_per that the present webhooks forgot at the bound, which may repeat an alert"),
        ):
            value = sum(webhook.suppressed if count == "suppressed" else webhook.sent.forgotten for webhook in self._deliveries)
            yield GaugeMetricFamily(f"epsparql_webhook_{count}", about, value=value)

    def _collect_connectors(self) -> Iterator[Metric]:
        states = GaugeMetricFamily("epsparql_connectors", "Connectors by state", labels=("state",))
        lag = GaugeMetricFamily("epsparql_connector_lag", "Messages or solutions that a connector has not taken over yet", labels=("connector",))
        up = GaugeMetricFamily("epsparql_connector_running", "1 if a connector runs, 0 while it waits or has failed", labels=("connector",))
        counts = {
            name: CounterMetricFamily(f"epsparql_connector_{name}", about, labels=("connector",))
            for name, about in (
                ("messages", "Messages or solutions that a connector took over, since its process started"),
                ("skipped", "Messages that the server refused and a connector left out"),
                ("missed", "Messages that were gone before a connector could read them"),
                ("suppressed", "Solutions that a connector left out as repeats (once_per), since its process started"),
                ("forgotten", "Keys of once_per that a connector forgot at the bound, which may repeat an alert"),
                ("faults", "Faults of a connector"),
                ("restarts", "Times that a connector's process was started again"),
            )
        }
        found = list(self._connectors)
        for state in STATES:
            states.add_metric((state,), sum(status.state == state for _, status in found))
        for connector, status in found:
            up.add_metric((connector.name,), float(status.state == RUNNING))
            if status.lag is not None:
                lag.add_metric((connector.name,), status.lag)
            for name, family in counts.items():
                family.add_metric((connector.name,), getattr(status, name))
        yield from (states, up, lag, *counts.values())


def _collect_standbys(standbys: Mapping[str, int] | None) -> Iterator[Metric]:
    """Yield how many servers stand by; nothing where none can."""
    if standbys is not None:
        found = GaugeMetricFamily("epsparql_standbys", "Servers that stand by, by state", labels=("state",))
        for state, number in standbys.items():
            found.add_metric((state,), number)
        yield found


@router.get(
    "/metrics",
    dependencies=[METRICS],
    summary="Show metrics in Prometheus' text format",
    responses={200: {"description": "Prometheus' text format", "content": {"text/plain": {"schema": {"type": "string"}}}}},
    response_class=Response,
)
async def metrics(request: Request, service: Shared, deliveries: Sent, connected: Connected) -> Response:
    requests: RequestCounts = request.app.state.requests
    text = await asyncio.to_thread(_format_metrics, requests.registry, ServerCollector(service, deliveries, connected))
    return Response(text, headers={"Content-Type": CONTENT_TYPE_LATEST})


def _format_metrics(requests: CollectorRegistry, present: ServerCollector) -> bytes:
    """Return all figures as text; a temporary registry gives the present ones the same form."""
    moment = CollectorRegistry()
    moment.register(present)
    return generate_latest(requests) + generate_latest(moment)
