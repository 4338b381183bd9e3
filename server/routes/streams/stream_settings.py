"""Creates, shows, finishes and deletes streams, and lists their sources."""

import asyncio
import json
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from engine.messages import MOST_PARTS, DropStream, Finish, SetStream
from epsparql.events.on_error import ON_ERROR, OTHER_NAMES, REFUSE, read_on_error
from pipeline.errors import FormatError
from pipeline.formats.background import checked_name
from pipeline.formats.batches.timestamps import MICROSECOND, iso
from pipeline.formats.namespaces import find_prefix_fault
from pipeline.log.catalog import MAX_AHEAD, Stream
from pipeline.log.lag import count_waiting
from pipeline.mapping.json_reader import check_fields
from pipeline.mapping.mapping import check_base, compile_mapping
from pipeline.registrations.query_cache import get_shape
from pipeline.source_positions import LONGEST_ID, MOST_DECLARED, SourceState
from pipeline.time_units import describe_wrong_unit
from server.dependencies import ADMIN, INGEST, Feeder, Shared
from server.http.body_parsing import (
    describe_body,
    describe_content,
    format_duration,
    parse_json_object,
    read_body,
    read_duration_member,
    read_flag_member,
    read_names_member,
    read_text_member,
)
from server.http.path_names import Name
from server.http.problem_details import Fault, Problem, bad_request, describe_responses
from server.registrations.revision_rules import check_revised_place
from server.registrations.stream_promises import set_entry
from server.service import Service
from server.tokens.scopes import ingest_scope

router = APIRouter(tags=["streams"])
_SETTINGS = (
    "max_delay",
    "revisable",
    "idle_timeout",
    "max_ahead",
    "description",
    "sources",
    "base",
    "mapping",
    "on_error",
    "key",
    "parts",
    "round",
    "prefixes",
    "instants",
    "local",
)
_LONGEST_IRI = 1000
_SHOWN = 200  # a message shows this many characters of a name
_NAMED = 5  # a message names this many of the queries that use a stream
_NO_STREAM = describe_responses([404])


class StreamDocument(BaseModel):
    """Describes a stream.

    Durations are xsd:duration text, null where off; `watermark` and `latest` are null before the first event.
    `sources` are the declared ones.

    Within the horizon `revisable` behind the latest end, late occurrences and retractions are taken; the watermark
    lies as far behind.

    `rejected` counts rows that did not map, which the dead-letter feed has or, with on_error skip, were left out.
    `waiting` counts events that wait for declared sources, and `waits_for` names those.

    `warning` says if the stream's times look like numbers of another unit, such as seconds that were read as
    milliseconds.
    """

    name: str
    description: str
    max_delay: str
    revisable: str | None
    idle_timeout: str | None
    max_ahead: str | None
    sources: list[str]
    latest: str | None
    watermark: str | None
    finished: bool
    accepted: int
    late: int
    rejected: int
    waiting: int
    waits_for: list[str]
    base: str
    mapping: dict[str, Any] | None
    on_error: str
    key: str
    parts: list[str]
    round: str
    prefixes: dict[str, str]
    instants: bool
    local: bool
    warning: str | None


class StreamList(BaseModel):
    streams: list[StreamDocument]


class StreamSettings(BaseModel):
    """Sets a stream's options. Durations are xsd:duration text or a number of seconds. The watermark is the least
    over declared `sources`.

    `revisable` is a horizon of at least `max_delay`, behind the latest end, in which late occurrences and retractions
    are taken.

    Events that end further than `max_ahead` beyond the server's clock are refused; 0 or null turns this off.

    `mapping` says how CSV and JSON become triples. `on_error` is refuse, skip or dead_letter. Terms of ndjson may be
    prefixed names: with the `base` in place of the empty prefix, and with the `prefixes`, which are IRIs by name.

    `key` is the IRI of the predicate whose object is the key of a message, by which several partitions share the
    stream. `parts` are the IRIs of predicates that link the nodes of a message, such as sosa:hasResult.

    With `instants`, events whose start and end differ are refused, so queries keep less.

    With `local`, a body that describes a subject of another body is refused, so what a subject lacks is certain at
    once.

    With `round`, "microsecond", times of events that are finer are rounded to the nearest microsecond. Without it
    they are refused.
    """

    max_delay: str | float = 0
    revisable: str | float | None = None
    idle_timeout: str | float | None = None
    max_ahead: str | float | None = "P1D"
    description: str = ""
    sources: list[str] = []
    base: str = ""
    mapping: dict[str, Any] | None = None
    on_error: str = REFUSE
    key: str = ""
    parts: list[str] = []
    round: str = ""
    prefixes: dict[str, str] = {}
    instants: bool = False
    local: bool = False


class SourceDocument(BaseModel):
    """Describes a source of a stream.

    `position` is the stored one, from which to read on; null means from the beginning. `offset` is the log position
    after the body that stored it.

    `arrived` is when that body came, and `latest` the latest end of the source's events. A `declared` source holds
    the watermark.
    """

    id: str
    position: str | None
    offset: int | None
    arrived: str | None
    latest: str | None
    declared: bool


class SourceList(BaseModel):
    sources: list[SourceDocument]


def _document(service: Service, stream: Stream) -> StreamDocument:
    return StreamDocument(
        name=stream.name,
        description=stream.description,
        max_delay=format_duration(stream.max_delay) or "PT0S",
        revisable=format_duration(stream.revisable),
        idle_timeout=format_duration(stream.idle_timeout),
        max_ahead=format_duration(stream.max_ahead),
        sources=list(stream.sources),
        latest=None if stream.latest is None else iso(stream.latest),
        watermark=None if stream.watermark is None or stream.finished else iso(stream.watermark),
        finished=stream.finished,
        accepted=stream.accepted,
        late=stream.late,
        rejected=stream.rejected,
        waiting=count_waiting(stream.waiting),
        waits_for=service.log.find_awaited(stream.name),
        base=stream.base,
        mapping=json.loads(stream.mapping) if stream.mapping else None,
        on_error=OTHER_NAMES.get(stream.on_error, stream.on_error),
        key="" if stream.message_key is None else stream.message_key.predicate,
        parts=[] if stream.message_key is None else list(stream.message_key.parts),
        round=stream.round,
        prefixes=json.loads(stream.prefixes) if stream.prefixes else {},
        instants=stream.instants is not None,
        local=stream.local is not None,
        warning=None if stream.latest is None else describe_wrong_unit(stream.latest, service.clock()),
    )


_SETTINGS_EXAMPLE = {
    "max_delay": "PT10S",
    "description": "readings of all stations",
    "mapping": {"time": "ts", "base": "http://example.org/", "subject": "sensor/{sensor}", "properties": {"temp": ":temperature"}},
}
_SETTINGS_BODY = describe_body({"application/json": describe_content("StreamSettings", _SETTINGS_EXAMPLE)}, required=False)


@router.put(
    "/streams/{name}",
    dependencies=[ADMIN],
    summary="Create a stream or change its settings",
    responses=describe_responses([400, 409], success={201: {"description": "Created", "model": StreamDocument}}),
    openapi_extra=_SETTINGS_BODY,
)
async def put_stream(name: Name, request: Request, response: Response, service: Shared) -> StreamDocument:
    found = parse_json_object(await read_body(request, service.settings.max_query), _SETTINGS)
    wanted = (
        read_duration_member(found, "max_delay") or 0,
        read_duration_member(found, "idle_timeout"),
        (read_duration_member(found, "max_ahead") or None) if "max_ahead" in found else MAX_AHEAD,
        read_text_member(found, "description", ""),
        read_names_member(found, "sources", MOST_DECLARED, LONGEST_ID),
        *_read_mapping_members(found),
        *_read_message_key(found),
        _read_horizon(found, service, name),
        _read_rounding(found),
        _read_prefixes(found),
        read_flag_member(found, "instants"),
        read_flag_member(found, "local"),
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
            "" if known.message_key is None else known.message_key.predicate,
            () if known.message_key is None else known.message_key.parts,
            known.revisable,
            known.round,
            known.prefixes,
            known.instants is not None,
            known.local is not None,
        ):
            await asyncio.to_thread(service.log.append, lambda offset: set_entry(service.catalog, SetStream(offset, name, *wanted)))
    response.status_code = HTTPStatus.CREATED if known is None else HTTPStatus.OK
    return _document(service, service.catalog.get_stream(name))


def _read_horizon(found: dict[str, Any], service: Service, name: str) -> int | None:
    """Return the horizon of a revisable stream. Raises: Fault 400, 409."""
    horizon = read_duration_member(found, "revisable")
    if horizon is None:
        return None
    if horizon < (read_duration_member(found, "max_delay") or 0):
        raise bad_request("invalid-member", "revisable is less than max_delay", expected="a horizon of at least max_delay")
    check_revised_place(service.settings.data, name)
    return horizon


def _read_rounding(found: dict[str, Any]) -> str:
    """Return the unit to which times are rounded, "" for none. Raises: Fault 400."""
    unit = read_text_member(found, "round", "")
    if unit not in ("", MICROSECOND):
        raise bad_request("invalid-member", f"round cannot be {unit[:_SHOWN]!r}", expected=f'"{MICROSECOND}", or "" for none')
    return unit


def _read_prefixes(found: dict[str, Any]) -> str:
    """Return the declared prefixes as JSON text, "" for none. Raises: Fault 400."""
    prefixes = found.get("prefixes") or {}
    if not isinstance(prefixes, dict) or not all(isinstance(namespace, str) for namespace in prefixes.values()):
        raise bad_request("invalid-member", "prefixes is no object of strings", expected='an object such as {"ex": "http://example.org/"}')
    if (reason := find_prefix_fault(prefixes)) is not None:
        raise bad_request("invalid-member", f"prefixes: {reason}", expected='an object such as {"ex": "http://example.org/"}')
    return json.dumps(prefixes) if prefixes else ""


def _read_mapping_members(found: dict[str, Any]) -> tuple[str, str, str]:
    """Return the base, the mapping's text and on_error. Raises: Fault 400, InvalidMapping."""
    base, given = check_base(read_text_member(found, "base", "")), read_text_member(found, "on_error", REFUSE)
    on_error = read_on_error(given)
    if on_error is None:
        raise bad_request("invalid-member", f"on_error cannot be {given[:_SHOWN]!r}", expected=" or ".join(ON_ERROR))
    mapping = "" if found.get("mapping") is None else json.dumps(found["mapping"])
    try:
        mapping.encode()
    except UnicodeEncodeError:
        raise bad_request("invalid-member", "the mapping holds half of a surrogate pair", expected="Unicode characters") from None
    if mapping:
        check_fields(compile_mapping(mapping, base))
    return base, mapping, on_error


def _read_message_key(found: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Return the predicate of the message key, "" for none, and those that link the nodes of a message.

    Raises: Fault 400.
    """
    key, parts = read_text_member(found, "key", ""), read_names_member(found, "parts", MOST_PARTS, _LONGEST_IRI)
    for member, iri in (("key", key), *(("parts", part) for part in parts)):
        try:
            checked_name(iri)
        except FormatError:
            detail = f"{member} has {iri[:_SHOWN]!r}, which is no IRI"
            raise bad_request("invalid-member", detail, expected="an absolute IRI without angle brackets") from None
    if parts and (not key or key in parts):
        raise bad_request("invalid-member", "parts say what belongs to a message with a key", expected="a key that is not among the parts")
    return key, parts


@router.get("/streams", summary="List the streams that the token may send events to")
async def list_streams(service: Shared, caller: Feeder) -> StreamList:
    return StreamList(
        streams=[_document(service, stream) for name, stream in service.catalog.list_streams().items() if caller.may(ingest_scope(name))]
    )


@router.get("/streams/{name}", dependencies=[INGEST], summary="Show a stream's settings, watermark and counts", responses=_NO_STREAM)
async def get_stream(name: Name, service: Shared) -> StreamDocument:
    return _document(service, service.catalog.get_stream(name))


@router.delete(
    "/streams/{name}",
    dependencies=[ADMIN],
    status_code=204,
    summary="Delete a stream that no running query reads or writes; its solutions stay",
    responses=describe_responses([404, 409]),
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
    return _document(service, service.catalog.get_stream(name))


@router.get(
    "/streams/{name}/sources",
    dependencies=[INGEST],
    summary="List the sources of a stream with their durable positions, from which to read on",
    responses=describe_responses([404, 503]),
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
