"""Takes events in the bodies of requests."""

import asyncio
import inspect
from concurrent.futures import Future
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import APIRouter, Depends, Header, Query, Request
from pydantic import BaseModel
from starlette.datastructures import Headers

from engine.messages import Micros
from epsparql.deferred_methods import dataclass
from epsparql.events.media_types import CSV, JSON, LINES
from epsparql.events.on_error import OTHER_NAMES
from pipeline.formats.batches.row_builder import mark_retractions
from pipeline.formats.body_parser import MEDIA_TYPES, NDJSON, RDF_XML, TRIG, TURTLE, Interval, interval_of
from pipeline.formats.ndjson import LONGEST_KEY
from pipeline.formats.time_hints import time_hint
from pipeline.log import Ack
from pipeline.mapping.cloud_events import CLOUD_EVENT, key_of, time_of
from pipeline.mapping.stream_body import MAPPED_TYPES, SHORT, BodySettings, StreamBody
from pipeline.mapping.stream_body import read_body as read_stream_body
from pipeline.source_positions import LONGEST_HEADER, Source, parse_source
from pipeline.time_units import describe_wrong_unit
from server.dependencies import INGEST, Shared
from server.http.body_parsing import (
    describe_body,
    describe_content,
    read_body,
)
from server.http.path_names import Name
from server.http.problem_details import Fault, Problem, bad_request, describe_responses
from server.service import Service

SMALL = 16 << 10
"""So many bytes of ndjson are parsed in less time than a thread takes to get its turn."""
_SHOWN = 200  # a message shows this many characters of a name


router = APIRouter(tags=["streams"])


class RejectedRowDocument(BaseModel):
    """Describes a row that did not map.

    `row` counts the rows of its body from 1, and `field` is null where no single field is at fault.
    """

    row: int
    field: str | None
    reason: str


class Accepted(BaseModel):
    """Confirms a body.

    `offset` is the log position after the body. Of the `accepted` occurrences, `late` ones are in the late feed alone.

    `rejected` is present where rows did not map, and counts them. With on_error dead_letter they are in the
    dead-letter feed. `first_rejected` says what is wrong with the first one.

    `duplicate` is true where the stream stands at the body's source position already: nothing of it was taken again.

    `warning` tells of a time in the body that was not read, or of times that look like another unit. It also tells of
    a body that does not come from a declared source.
    """

    accepted: int
    offset: int
    late: int
    rejected: int | None = None
    first_rejected: RejectedRowDocument | None = None
    duplicate: bool | None = None
    warning: str | None = None


EXAMPLES = {
    CSV: "ts,sensor,temp\n2026-01-01T00:00:00Z,s1,21.5\n",
    LINES: '10.0.0.1 - - [01/Jan/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 512 "-" "curl/8.5.0"\n',
    JSON: '[{"ts":"2026-01-01T00:00:00Z","sensor":"s1","temp":21.5}]',
    CLOUD_EVENT: '{"specversion":"1.0","id":"1","source":"/sensors","type":"reading","time":"2026-01-01T00:00:00Z",'
    '"data":{"sensor":"s1","temp":21.5}}',
    NDJSON: '{"s":"<http://example.org/a>","p":"<http://example.org/value>","o":21.5,"at":"2026-01-01T00:00:00Z"}\n',
    TURTLE: "<http://example.org/a> <http://example.org/value> 21.5 .\n",
    RDF_XML: """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://example.org/" xmlns:prov="http://www.w3.org/ns/prov#">
  <e:Reading rdf:about="http://example.org/r"><e:value>21.5</e:value>
    <prov:generatedAtTime rdf:datatype="http://www.w3.org/2001/XMLSchema#dateTime">2026-01-01T00:00:00Z</prov:generatedAtTime></e:Reading>
</rdf:RDF>
""",
    TRIG: """PREFIX : <http://example.org/> PREFIX prov: <http://www.w3.org/ns/prov#>
:g prov:generatedAtTime "2026-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
:g { :a :value 21.5 }
""",
}
_EVENTS_BODY = describe_body({media: describe_content(example=EXAMPLES.get(media)) for media in (*MEDIA_TYPES, *MAPPED_TYPES)})


_SOURCE_HEADER = (
    'This is a JSON object in ASCII, such as {"id": "readings-0", "after": "41", "position": "57"}. '
    "The body is accepted if the stream's stored position of the source is `after`, and ignored if it is `position`. "
    "Otherwise the answer is 409 with the stored position."
)


@dataclass(frozen=True, slots=True)
class EventTimes:
    """Holds the query parameters that time a body's events."""

    at: Annotated[str | None, Query(description="This xsd:dateTime is the time of events that have none in the body.")] = None
    start: Annotated[str | None, Query(description="Together with `end`, this gives an interval in place of `at`.")] = None
    end: str | None = None
    retract: Annotated[
        bool, Query(description="With true, the body's triples take back the occurrences of a revisable stream that have the same time.")
    ] = False
    timing: Annotated[
        str | None, Query(description="In RDF Messages and RDF/XML, this property gives a message's time, in place of prov:generatedAtTime.")
    ] = None
    round: Annotated[
        Literal["microsecond"] | None, Query(description="Times that are finer than a microsecond are rounded to the nearest one, and not refused.")
    ] = None


async def _read_times(**given: Any) -> EventTimes:
    return EventTimes(**given)


_read_times.__signature__ = inspect.signature(EventTimes)  # type: ignore[attr-defined]  # FastAPI would call the class in another thread


@router.post(
    "/streams/{name}/events",
    dependencies=[INGEST],
    status_code=202,
    response_model_exclude_none=True,
    summary="Send events; the answer comes when they are durable",
    responses=describe_responses([400, 409, 413, 415, 422, 429]),
    openapi_extra=_EVENTS_BODY,
)
async def post_events(
    name: Name,
    request: Request,
    service: Shared,
    times: Annotated[EventTimes, Depends(_read_times)],
    idempotency_key: Annotated[
        str | None, Header(max_length=LONGEST_KEY, description="A body that is sent again with the same key is accepted once.")
    ] = None,
    epsparql_source: Annotated[str | None, Header(max_length=LONGEST_HEADER, description=_SOURCE_HEADER)] = None,
    on_error: Annotated[
        Literal["refuse", "skip", "dead_letter"] | None, Query(description="For this body, this is in place of the stream's setting `on_error`.")
    ] = None,
) -> Accepted:
    source = None if epsparql_source is None else parse_source(epsparql_source)
    sending = open_sending(request.headers, service, name, times, idempotency_key, source)
    if on_error is not None:
        sending = replace(sending, settings=replace(sending.settings, on_error=on_error))
    body = await read_body(request, service.settings.max_body)
    return await sending.accept(body)


@dataclass(frozen=True, slots=True, eq=False)
class Sending:
    """Holds what a request says of the body that it sends, beside the body."""

    service: Service
    name: str
    times: EventTimes
    content_type: str
    kind: str  # the media type, without parameters
    settings: BodySettings
    event: "_EventHeaders"
    default: Interval | None
    key: str | None
    source: Source | None

    async def accept(self, body: bytes) -> Accepted:
        """Parse a body and put it into the log. Return once it is durable. Raises: Fault, PipelineError."""
        arrived = self.service.clock()
        in_moments = self.kind == NDJSON and len(body) <= SMALL
        found, warning = self.parse(body, arrived) if in_moments else await asyncio.to_thread(self.parse, body, arrived)
        submitted = self.submit(arrived, found)
        await self.service.intake.wait_for(submitted)
        accepted = self.confirm(submitted, warning)
        if accepted.rejected and found.mapped.rejected:
            first = found.mapped.rejected[0]
            accepted.first_rejected = RejectedRowDocument(row=first.row, field=first.field or None, reason=first.reason)
        return accepted

    def is_short(self, body: bytes) -> bool:
        """Return whether the body may be read together with others."""
        return self.kind == NDJSON and len(body) <= SHORT and self.default is None and self.settings == BodySettings(on_error=self.settings.on_error)

    def parse(self, body: bytes, arrived: Micros) -> tuple[StreamBody, str | None]:
        """Return what a body brings, and the warning for its sender. Raises: FormatError."""
        found = read_stream_body(
            body, self.content_type, self.settings, default=self.default, arrived=arrived, timing=self.times.timing, timed=self.event.at is not None
        )
        mapped = self.kind in MAPPED_TYPES
        looks = time_hint(body, self.content_type, found.mapped.batch, arrived) if self.default is None and not mapped else None
        return found, None if looks is None else unread_time_warning(looks, "body", "give ?at=, or a time for their graph")

    def submit(self, arrived: Micros, found: StreamBody) -> Future[Ack]:
        """Queue what a body brings. Raises: Overloaded, LogFailed."""
        mapped = found.mapped
        if self.times.retract:
            mapped = replace(mapped, batch=mark_retractions(mapped.batch, [(0, mapped.batch.num_rows)]))
        return self.service.intake.submit(self.name, mapped, self.key or found.key or self.event.key, self.source, arrived)

    def confirm(self, submitted: Future[Ack], warning: str | None) -> Accepted:
        """Return the answer to a body that is in the log. Raises: what became of it otherwise."""
        ack = submitted.result()
        warning = undeclared_source_warning(self.service, self.name, self.source) or warning or wrong_unit_warning(self.service, self.name)
        return Accepted(
            accepted=ack.accepted, offset=ack.offset, late=ack.late, rejected=ack.rejected or None, duplicate=ack.duplicate or None, warning=warning
        )


def open_sending(headers: Headers, service: Service, name: str, times: EventTimes, key: str | None = None, source: Source | None = None) -> Sending:
    """Return what the head of a request says of its body. Raises: Fault, PipelineError."""
    check_backlog(service)
    content_type = headers.get("content-type", "")
    kind = content_type.partition(";")[0].strip().lower()
    if not kind:
        raise Fault(Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "media-type", "the body has no Content-Type", expected=", ".join(MEDIA_TYPES)))
    settings = get_stream_settings(service, name)
    if times.round is not None:
        settings = replace(settings, rounds=True)
    default = interval_of(times.at, times.start, times.end, rounds=settings.rounds)
    event = _read_event_headers(headers, rounds=settings.rounds)
    return Sending(service, name, times, content_type, kind, settings, event, default if event.at is None else event.at, key, source)


def get_stream_settings(service: Service, name: str) -> BodySettings:
    """Return the settings by which bodies of a stream are read; a stream that nothing was sent to yet has the default
    ones.
    """
    known = service.log.catalogue.streams.get(name)
    return (
        BodySettings()
        if known is None
        else BodySettings(known.base, known.mapping, OTHER_NAMES.get(known.on_error, known.on_error), bool(known.round), known.prefixes)
    )


class _EventHeaders(NamedTuple):
    """Holds the time and the idempotency key of a CloudEvent in binary mode."""

    at: Interval | None
    key: str | None


def _read_event_headers(headers: Headers, *, rounds: bool) -> _EventHeaders:
    """Return what the headers of a CloudEvent say, if there are any. Raises: Fault 400, FormatError."""
    version = headers.get("ce-specversion")
    if version is None:
        return _EventHeaders(None, None)
    source, number = headers.get("ce-source"), headers.get("ce-id")
    if version != "1.0" or not source or not number:
        raise bad_request("cloud-event", "the headers are not those of a CloudEvent", expected="ce-specversion: 1.0, ce-id and ce-source")
    at = headers.get("ce-time")
    moment = None if at is None else time_of(at, rounds=rounds)
    return _EventHeaders(None if moment is None else Interval(moment, moment), key_of(source, number))


def unread_time_warning(name: str, where: str, remedy: str) -> str:
    """Return the warning of what looks like the time of events that were all given the time of arrival."""
    return f"all events got the time of arrival: {name[:_SHOWN]!r} in the {where} is not read as their time; {remedy}"


def undeclared_source_warning(service: Service, name: str, source: Source | None) -> str | None:
    """Return the warning of a body from none of the sources that its stream declares."""
    stream = service.log.catalogue.streams.get(name)
    if stream is None or not stream.sources or (source is not None and source.id in stream.sources):
        return None
    sent = "the body names no source" if source is None else f"the source {source.id[:_SHOWN]!r} is not declared"
    return f"{sent}, so its events do not move the watermark, which waits for the sources that the stream declares"


def wrong_unit_warning(service: Service, name: str) -> str | None:
    """Return the warning of a stream whose times look like numbers of another unit."""
    stream = service.log.catalogue.streams.get(name)
    return None if stream is None or stream.latest is None else describe_wrong_unit(stream.latest, service.clock())


def check_backlog(service: Service) -> None:
    """Check that the runner keeps up. Raises: Fault 429."""
    if behind := service.admission.backlog:
        detail = f"the runner is {behind}; send the body again later"
        raise Fault(Problem(HTTPStatus.TOO_MANY_REQUESTS, "runner-behind", detail, headers={"Retry-After": "1"}))
