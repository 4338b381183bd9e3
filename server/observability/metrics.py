"""Reports figures to a monitor, in Prometheus' text format, with names `epsparql_*` and base units."""

import asyncio
from collections.abc import Iterable, Iterator

from fastapi import APIRouter, Request, Response
from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from server.dependencies import METRICS, Sent, Shared
from server.service import Service
from server.webhook_delivery.delivery import Deliveries

router = APIRouter(tags=["operations"])
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)
_SHOWN = 2_000
"""At most this many streams, and this many queries, have series of their own; beyond that, only the sums count them."""


class Requests:
    """Counts requests by route, for as long as the app lives."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        labels = ("method", "route", "status")
        self._count = Counter("epsparql_http_requests", "Requests answered, and WebSockets closed", labels, registry=self.registry)
        self._seconds = Histogram(
            "epsparql_http_request_seconds", "Until a request was answered in full", ("route",), buckets=_BUCKETS, registry=self.registry
        )
        ProcessCollector(namespace="epsparql", registry=self.registry)

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request.

        `route` is a template, so names in paths make no series; paths that clients make up share one series.
        """
        known = method if route else "other"
        self._count.labels(known, route or "none", str(status)).inc()
        if method != "WEBSOCKET":
            self._seconds.labels(route or "none").observe(seconds)


def _gauge(name: str, about: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"epsparql_{name}", about, value=value)


class Standing:
    """Collects the server's present figures when a monitor asks for them."""

    def __init__(self, service: Service, deliveries: Deliveries) -> None:
        self._service, self._deliveries = service, deliveries

    def collect(self) -> Iterator[Metric]:
        yield from self._runner()
        yield from self._streams()
        yield from self._queries()
        yield from self._subscribers()

    def _runner(self) -> Iterator[Metric]:
        service = self._service
        head, position = service.log.head(), service.solutions.position
        yield _gauge("log_head_entries", "Entries in the input log", head)
        yield _gauge("runner_position_entries", "Entries whose solutions are published", position)
        yield _gauge("runner_lag_entries", "Entries that the runner is behind", max(head - position, 0))
        yield _gauge("runner_ready", "1 if the runner is up", float(service.lifecycle.runner.ready))
        if service.lifecycle.export is not None:
            yield _gauge(
                "export_lag_entries", "Entries whose solutions are published and not exported", max(position - service.lifecycle.export.position, 0)
            )
            yield _gauge("export_failing", "1 if the last try to export failed", float(service.lifecycle.export.failure != ""))
        if service.lifecycle.keeper is not None:
            yield _gauge(
                "store_failing",
                "1 if the last try to bring solutions and snapshots to the store failed",
                float(service.lifecycle.keeper.failure != ""),
            )
        batch = service.read_batch()
        if batch is not None:
            yield _gauge("batch_seconds", "What the last batch on Spark took", batch.seconds)
            yield _gauge("batch_rows", "Occurrences in it, late ones too", batch.rows)
            yield _gauge("batch_lag_entries", "Entries that were left for the next one", batch.lag)
        report = service.read_report()
        if report is not None:
            yield _gauge("engine_reserved_bytes", "Bytes of the engine's tables", report.own.reserved_bytes)
            yield _gauge("engine_terms", "Terms that the engine knows", report.own.terms)
            yield _gauge(
                "entailment_limited", "1 if OWL would entail too much of the background, so that RDFS alone is applied", float(report.limited != "")
            )

    def _streams(self) -> Iterator[Metric]:
        streams = list(self._service.log.catalogue.streams.values())
        yield _gauge("streams", "Streams", len(streams))
        shown = streams[:_SHOWN]
        accepted = CounterMetricFamily("epsparql_stream_occurrences", "Occurrences accepted, late ones too", labels=("stream",))
        late = CounterMetricFamily("epsparql_stream_late_occurrences", "Occurrences that came late", labels=("stream",))
        latest = GaugeMetricFamily("epsparql_stream_latest_seconds", "The greatest end seen, since 1970", labels=("stream",))
        watermark = GaugeMetricFamily("epsparql_stream_watermark_seconds", "The watermark, since 1970, of a stream not finished", labels=("stream",))
        for stream in shown:
            accepted.add_metric((stream.name,), stream.accepted)
            late.add_metric((stream.name,), stream.late)
            if stream.latest is not None:
                latest.add_metric((stream.name,), stream.latest / 1e6)
            if stream.watermark is not None and not stream.finished:
                watermark.add_metric((stream.name,), stream.watermark / 1e6)
        yield from (accepted, late, latest, watermark)

    def _queries(self) -> Iterator[Metric]:
        service, report = self._service, self._service.read_report()
        queries = service.catalog.list_queries()
        states = GaugeMetricFamily("epsparql_queries", "Queries by state", labels=("state",))
        for state in dict.fromkeys(("running", "completed", "failed", *(query.state for query in queries))):
            states.add_metric((state,), sum(query.state == state for query in queries))
        solutions = CounterMetricFamily("epsparql_query_solutions", "Solutions given", labels=("query",))
        goals = GaugeMetricFamily("epsparql_query_goals", "Partial solutions kept", labels=("query",))
        size = GaugeMetricFamily("epsparql_query_state_bytes", "Bytes of a query's state, as the limits count them", labels=("query",))
        for query in queries[:_SHOWN]:
            solutions.add_metric((query.name,), service.solutions.tally(query.registered).count)
            standing = report.queries.get(query.registered) if report is not None and query.state in ("running", "paused") else None
            if standing is not None:
                goals.add_metric((query.name,), standing.usage.goals)
                size.add_metric((query.name,), standing.usage.state_bytes)
        yield from (states, solutions, goals, size)

    def _subscribers(self) -> Iterator[Metric]:
        seats = self._service.admission.connections
        now = GaugeMetricFamily("epsparql_subscribers", "Subscribers by class; feed is of those that send", labels=("class",))
        sent = CounterMetricFamily("epsparql_deliveries", "Solutions sent to subscribers", labels=("class",))
        for kind in seats.kinds:
            now.add_metric((kind,), seats.taken(kind))
            sent.add_metric((kind,), seats.sent[kind])
        now.add_metric(("webhook",), len(self._deliveries))
        sent.add_metric(("webhook",), sum(observer.delivered for observer in self._deliveries))
        yield from (now, sent)
        yield CounterMetricFamily("epsparql_slow_subscribers", "Times that a subscriber was found too slow", value=seats.slow)
        given_up = sum(observer.given_up for observer in self._deliveries)
        yield GaugeMetricFamily("epsparql_webhook_given_up", "Deliveries given up, of the webhooks there are", value=given_up)


@router.get(
    "/metrics",
    dependencies=[METRICS],
    summary="Figures for Prometheus",
    responses={200: {"description": "Prometheus' text format", "content": {"text/plain": {"schema": {"type": "string"}}}}},
    response_class=Response,
)
async def metrics(request: Request, service: Shared, deliveries: Sent) -> Response:
    requests: Requests = request.app.state.requests
    text = await asyncio.to_thread(_text, requests.registry, Standing(service, deliveries).collect())
    return Response(text, headers={"Content-Type": CONTENT_TYPE_LATEST})


def _text(registry: CollectorRegistry, standing: Iterable[Metric]) -> bytes:
    """Return all figures as text; a temporary registry gives the second part the same form."""
    moment = CollectorRegistry()
    found = list(standing)

    class Found:
        def collect(self) -> Iterable[Metric]:
            return found

    moment.register(Found())
    return generate_latest(registry) + generate_latest(moment)
