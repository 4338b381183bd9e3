"""Serves streams: their settings, their sources, and what is sent to them."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from pydantic import BaseModel

from engine.messages import DropStream, Finish, Micros, SetStream
from pipeline.formats.batches.timestamps import iso
from pipeline.formats.body_parser import MEDIA_TYPES, NDJSON, RDF_XML, TRIG, TURTLE, Interval, interval_of
from pipeline.formats.ndjson import LONGEST_KEY
from pipeline.formats.time_hints import time_hint
from pipeline.log.catalog import Stream
from pipeline.mapping.cloud_events import CLOUD_EVENT, key_of, time_of
from pipeline.mapping.json_reader import check_fields
from pipeline.mapping.mapper import CSV, JSON
from pipeline.mapping.mapping import check_base, compile_mapping
from pipeline.mapping.proposal import propose_mapping
from pipeline.mapping.stream_body import MAPPED_TYPES, BodySettings, StreamBody
from pipeline.mapping.stream_body import read_body as read_stream_body
from pipeline.registrations.query_cache import get_shape
from pipeline.rejected_rows import ON_ERROR, REJECT
from pipeline.source_positions import LONGEST_HEADER, LONGEST_ID, MOST_DECLARED, Source, SourceState, parse_source
from server.dependencies import ADMIN, INGEST, Feeder, Shared
from server.http.auth import ingest_scope
from server.http.body_parsing import (
    format_duration,
    parse_json_object,
    read_body,
    read_duration_member,
    read_media_type,
    read_names_member,
    read_text_member,
)
from server.http.path_names import Name
from server.http.problem_details import Fault, Problem, bad_request, describe_responses
from server.service import Service

router = APIRouter(tags=["streams"])
_SETTINGS = ("max_delay", "idle_timeout", "max_ahead", "description", "sources", "base", "mapping", "on_error")
_BASE = "http://example.org/"  # names of a proposed mapping are relative to this IRI where nothing else is said
_SHOWN = 200  # a message shows this many characters of a name
_NAMED = 5  # a message names this many of the queries that use a stream
_NO_STREAM = describe_responses(HTTPStatus.NOT_FOUND)


class StreamDocument(BaseModel):
    """Describes a stream.

    Durations are xsd:duration text, null where off; `watermark` and `latest` are null before the first event. `sources` are the declared ones.

    `rejected` counts rows that did not map.
    """

    name: str
    description: str
    max_delay: str
    idle_timeout: str | None
    max_ahead: str | None
    sources: list[str]
    latest: str | None
    watermark: str | None
    finished: bool
    accepted: int
    late: int
    rejected: int
    base: str
    mapping: dict[str, Any] | None
    on_error: str


class StreamList(BaseModel):
    streams: list[StreamDocument]


class StreamSettings(BaseModel):
    """Sets a stream's options. Durations are xsd:duration text or a number of seconds. The watermark is the least over declared `sources`.

    `mapping` says how CSV and JSON become triples. `on_error` is reject or dead_letter. With a `base`, terms of ndjson may be short.
    """

    max_delay: str | float = 0
    idle_timeout: str | float | None = None
    max_ahead: str | float | None = None
    description: str = ""
    sources: list[str] = []
    base: str = ""
    mapping: dict[str, Any] | None = None
    on_error: str = REJECT


class SourceDocument(BaseModel):
    """Describes a source of a stream.

    `position` is the stored one, from which to read on; null means from the beginning. `offset` is the log position after the body that stored it.

    `arrived` is when that body came, and `latest` the latest end of the source's events. A `declared` source holds the watermark.
    """

    id: str
    position: str | None
    offset: int | None
    arrived: str | None
    latest: str | None
    declared: bool


class SourceList(BaseModel):
    sources: list[SourceDocument]


class Accepted(BaseModel):
    """Confirms a body.

    `offset` is the log position after the body. Of the `accepted` occurrences, `late` ones are in the late feed alone.

    `rejected` is present where rows did not map; they are in the dead-letter feed.

    `duplicate` is true where the stream stands at the body's source position already: nothing of it was taken again.

    `warning` tells of a time in the body that was not read, or of a body that does not come from a declared source.
    """

    accepted: int
    offset: int
    late: int
    rejected: int | None = None
    duplicate: bool | None = None
    warning: str | None = None


def _document(stream: Stream) -> StreamDocument:
    return StreamDocument(
        name=stream.name,
        description=stream.description,
        max_delay=format_duration(stream.max_delay) or "PT0S",
        idle_timeout=format_duration(stream.idle_timeout),
        max_ahead=format_duration(stream.max_ahead),
        sources=list(stream.sources),
        latest=None if stream.latest is None else iso(stream.latest),
        watermark=None if stream.watermark is None or stream.finished else iso(stream.watermark),
        finished=stream.finished,
        accepted=stream.accepted,
        late=stream.late,
        rejected=stream.rejected,
        base=stream.base,
        mapping=json.loads(stream.mapping) if stream.mapping else None,
        on_error=stream.on_error,
    )


_SETTINGS_BODY: dict[str, Any] = {
    "requestBody": {
        "content": {
            "application/json": {
                "schema": {"$ref": "#/components/schemas/StreamSettings"},
                "example": {
                    "max_delay": "PT10S",
                    "description": "readings of all stations",
                    "mapping": {"time": "ts", "base": "http://example.org/", "subject": "sensor/{sensor}", "properties": {"temp": ":temperature"}},
                },
            }
        }
    }
}
_EXAMPLES = {
    CSV: "ts,sensor,temp\n2026-01-01T00:00:00Z,s1,21.5\n",
    JSON: '[{"ts":"2026-01-01T00:00:00Z","sensor":"s1","temp":21.5}]',
    CLOUD_EVENT: '{"specversion":"1.0","id":"1","source":"/sensors","type":"reading","time":"2026-01-01T00:00:00Z","data":{"sensor":"s1","temp":21.5}}',
    NDJSON: '{"s":"<http://example.org/a>","p":"<http://example.org/value>","o":"\\"21.5\\"^^<http://www.w3.org/2001/XMLSchema#decimal>","at":"2026-01-01T00:00:00Z"}\n',
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
_EVENTS_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            media: {"schema": {"type": "string"}} | ({"example": _EXAMPLES[media]} if media in _EXAMPLES else {})
            for media in (*MEDIA_TYPES, *MAPPED_TYPES)
        },
    }
}


_SOURCE_HEADER = (
    'This is a JSON object in ASCII, such as {"id": "readings-0", "after": "41", "position": "57"}. '
    "The body is accepted if the stream's stored position of the source is `after`, and ignored if it is `position`. "
    "Otherwise the answer is 409 with the stored position."
)


# ---------------------------------------------------------------- the streams
@router.put(
    "/streams/{name}",
    dependencies=[ADMIN],
    summary="Create a stream or change its settings",
    responses=describe_responses(HTTPStatus.BAD_REQUEST, success={201: {"description": "Created", "model": StreamDocument}}),
    openapi_extra=_SETTINGS_BODY,
)
async def put_stream(name: Name, request: Request, response: Response, service: Shared) -> StreamDocument:
    found = parse_json_object(await read_body(request, service.settings.max_query), _SETTINGS)
    wanted = (
        read_duration_member(found, "max_delay") or 0,
        read_duration_member(found, "idle_timeout"),
        read_duration_member(found, "max_ahead"),
        read_text_member(found, "description", ""),
        read_names_member(found, "sources", MOST_DECLARED, LONGEST_ID),
        *_read_mapping_members(found),
    )
    async with service.catalog.changing:
        known = service.log.catalogue.streams.get(name)
        if known is None or wanted != (
            known.max_delay,
            known.idle_timeout,
            known.max_ahead,
            known.description,
            known.sources,
            known.base,
            known.mapping,
            known.on_error,
        ):
            await asyncio.to_thread(service.log.append, lambda offset: SetStream(offset, name, *wanted))
    response.status_code = HTTPStatus.CREATED if known is None else HTTPStatus.OK
    return _document(service.catalog.get_stream(name))


def _read_mapping_members(found: dict[str, Any]) -> tuple[str, str, str]:
    """Return the base, the mapping's text and on_error. Raises: Fault 400, InvalidMapping."""
    base, on_error = check_base(read_text_member(found, "base", "")), read_text_member(found, "on_error", REJECT)
    if on_error not in ON_ERROR:
        raise bad_request("invalid-member", f"on_error cannot be {on_error[:_SHOWN]!r}", expected=" or ".join(ON_ERROR))
    mapping = "" if found.get("mapping") is None else json.dumps(found["mapping"])
    try:
        mapping.encode()
    except UnicodeEncodeError:
        raise bad_request("invalid-member", "the mapping holds half of a surrogate pair", expected="Unicode characters") from None
    if mapping:
        check_fields(compile_mapping(mapping, base))
    return base, mapping, on_error


class MappingProposal(BaseModel):
    """Proposes a mapping for a stream, with what was found in the rows and what is doubtful."""

    mapping: dict[str, Any]
    comments: list[str]


@router.post(
    "/streams/{name}/mapping",
    dependencies=[INGEST],
    summary="Propose a mapping from the first rows of a body; nothing is set or sent",
    responses=describe_responses(HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
    openapi_extra={
        "requestBody": {"required": True, "content": {media: {"schema": {"type": "string"}, "example": _EXAMPLES[media]} for media in (CSV, JSON)}}
    },
)
async def propose_stream_mapping(
    name: Name,
    request: Request,
    service: Shared,
    base: Annotated[str | None, Query(description="Names are relative to this IRI, if the stream has no base.")] = None,
) -> MappingProposal:
    media_type = read_media_type(request)
    if media_type not in (CSV, JSON):
        raise Fault(Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "media-type", "a mapping is for rows of CSV or JSON", expected=f"{CSV}, {JSON}"))
    body = await read_body(request, service.settings.max_body)
    wanted = get_stream_settings(service, name).base or check_base(base or _BASE)
    found = await asyncio.to_thread(propose_mapping, body, media_type, wanted)
    return MappingProposal(mapping=found.document, comments=list(found.comments))


@router.get("/streams", summary="List the streams that the token may send events to")
async def list_streams(service: Shared, caller: Feeder) -> StreamList:
    return StreamList(streams=[_document(stream) for name, stream in service.catalog.list_streams().items() if caller.may(ingest_scope(name))])


@router.get("/streams/{name}", dependencies=[INGEST], summary="Show a stream's settings, watermark and counts", responses=_NO_STREAM)
async def get_stream(name: Name, service: Shared) -> StreamDocument:
    return _document(service.catalog.get_stream(name))


@router.delete(
    "/streams/{name}",
    dependencies=[ADMIN],
    status_code=204,
    summary="Delete a stream that no running query reads or writes; its solutions stay",
    responses=describe_responses(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT),
)
async def delete_stream(name: Name, service: Shared) -> None:
    async with service.catalog.changing:
        service.catalog.get_stream(name)
        users = [
            query.name for query in service.catalog.list_queries() if query.state in ("running", "paused") and name in get_shape(query.text).touched
        ]
        if users:
            raise _in_use_fault(name, users)
        await asyncio.to_thread(service.log.append, lambda offset: DropStream(offset, name))


def _in_use_fault(name: str, users: Sequence[str]) -> Fault:
    shown = ", ".join(map(repr, users[:_NAMED])) + (f" and {len(users) - _NAMED} more" if len(users) > _NAMED else "")
    detail = f"the stream {name!r} is read or written by running queries: {shown}; drop them first, or finish the stream if it has ended"
    return Fault(Problem(HTTPStatus.CONFLICT, "stream-in-use", detail, query=users[0]))


@router.post(
    "/streams/{name}/finish", dependencies=[ADMIN], summary="Finish a stream, so that no query waits for it any longer", responses=_NO_STREAM
)
async def finish_stream(name: Name, service: Shared) -> StreamDocument:
    async with service.catalog.changing:
        if not service.catalog.get_stream(name).finished:
            await asyncio.to_thread(service.log.append, lambda offset: Finish(offset, name))
    service.notifier.wake_all()
    return _document(service.catalog.get_stream(name))


@router.get(
    "/streams/{name}/sources",
    dependencies=[INGEST],
    summary="List the sources of a stream with their durable positions, from which to read on",
    responses=describe_responses(HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE),
)
async def list_sources(name: Name, service: Shared) -> SourceList:
    declared = service.catalog.get_stream(name).sources
    known = await asyncio.to_thread(service.log.read_sources, name)
    return SourceList(sources=[_describe_source(source, known.get(source), source in declared) for source in dict.fromkeys([*declared, *known])])


def _describe_source(source: str, state: SourceState | None, declared: bool) -> SourceDocument:
    if state is None:
        return SourceDocument(id=source, position=None, offset=None, arrived=None, latest=None, declared=declared)
    latest = None if state.latest is None else iso(state.latest)
    return SourceDocument(id=source, position=state.position, offset=state.offset, arrived=iso(state.arrived), latest=latest, declared=declared)


# ---------------------------------------------------------------- their events
@dataclass(frozen=True, slots=True)
class EventTimes:
    """Holds the query parameters that time a body's events."""

    at: Annotated[str | None, Query(description="This xsd:dateTime is the time of events that have none in the body.")] = None
    start: Annotated[str | None, Query(description="Together with `end`, this gives an interval in place of `at`.")] = None
    end: str | None = None
    timing: Annotated[
        str | None, Query(description="In RDF Messages and RDF/XML, this property gives a message's time, in place of prov:generatedAtTime.")
    ] = None


@router.post(
    "/streams/{name}/events",
    dependencies=[INGEST],
    status_code=202,
    response_model_exclude_none=True,
    summary="Send events; the answer comes when they are durable",
    responses=describe_responses(
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.CONFLICT,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        HTTPStatus.UNPROCESSABLE_ENTITY,
        HTTPStatus.TOO_MANY_REQUESTS,
    ),
    openapi_extra=_EVENTS_BODY,
)
async def post_events(
    name: Name,
    request: Request,
    service: Shared,
    times: Annotated[EventTimes, Depends()],
    idempotency_key: Annotated[
        str | None, Header(max_length=LONGEST_KEY, description="A body that is sent again with the same key is accepted once.")
    ] = None,
    epsparql_source: Annotated[str | None, Header(max_length=LONGEST_HEADER, description=_SOURCE_HEADER)] = None,
) -> Accepted:
    if behind := service.admission.backlog:
        raise Fault(_behind_problem(behind))
    if not read_media_type(request):
        raise Fault(Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "media-type", "the body has no Content-Type", expected=", ".join(MEDIA_TYPES)))
    default = interval_of(times.at, times.start, times.end)
    source = None if epsparql_source is None else parse_source(epsparql_source)
    event = _read_event_headers(request)
    settings = get_stream_settings(service, name)
    body = await read_body(request, service.settings.max_body)
    arrived = service.clock()
    sent = SentBody(body, request.headers["content-type"], default if event.at is None else event.at, arrived, times.timing)
    found, warning = await asyncio.to_thread(_parse_events, sent, settings, timed=event.at is not None)
    key = idempotency_key or found.key or event.key
    submitted = service.log.submit(name, found.mapped.batch, key, source=source, arrived=arrived, rejected=found.mapped.rejected)
    ack = await asyncio.wrap_future(submitted)
    warning = undeclared_source_warning(service, name, source) or warning
    told = Accepted(accepted=ack.accepted, offset=ack.offset, late=ack.late, warning=warning)
    told.rejected, told.duplicate = ack.rejected or None, ack.duplicate or None
    return told


def get_stream_settings(service: Service, name: str) -> BodySettings:
    """Return the settings by which bodies of a stream are read; a stream that nothing was sent to yet has the default ones."""
    known = service.log.catalogue.streams.get(name)
    return BodySettings() if known is None else BodySettings(known.base, known.mapping, known.on_error)


class _EventHeaders(NamedTuple):
    """Holds the time and the idempotency key of a CloudEvent in binary mode."""

    at: Interval | None
    key: str | None


def _read_event_headers(request: Request) -> _EventHeaders:
    """Return what the headers of a CloudEvent say, if there are any. Raises: Fault 400, FormatError."""
    version, named = request.headers.get("ce-specversion"), (request.headers.get("ce-source"), request.headers.get("ce-id"))
    if version is None:
        return _EventHeaders(None, None)
    source, number = named
    if version != "1.0" or not source or not number:
        raise bad_request("cloud-event", "the headers are not those of a CloudEvent", expected="ce-specversion: 1.0, ce-id and ce-source")
    at = request.headers.get("ce-time")
    moment = None if at is None else time_of(at)
    return _EventHeaders(None if moment is None else Interval(moment, moment), key_of(source, number))


@dataclass(frozen=True, slots=True, eq=False)
class SentBody:
    """Holds a body with what its request says of it."""

    content: bytes
    media_type: str
    default: Interval | None
    arrived: Micros
    timing: str | None


def _parse_events(sent: SentBody, settings: BodySettings, *, timed: bool) -> tuple[StreamBody, str | None]:
    """Return what a body brings, and the warning for its sender. Raises: FormatError."""
    found = read_stream_body(sent.content, sent.media_type, settings, default=sent.default, arrived=sent.arrived, timing=sent.timing, timed=timed)
    mapped = sent.media_type.partition(";")[0].strip().lower() in MAPPED_TYPES
    looks = time_hint(sent.content, sent.media_type, found.mapped.batch, sent.arrived) if sent.default is None and not mapped else None
    return found, None if looks is None else unread_time_warning(looks, "body", "give ?at=, or a time for their graph")


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


def _behind_problem(how: str) -> Problem:
    detail = f"the runner is {how}; send the body again later"
    return Problem(HTTPStatus.TOO_MANY_REQUESTS, "runner-behind", detail, headers={"Retry-After": "1"})
