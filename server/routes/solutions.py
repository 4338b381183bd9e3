"""Serves solutions page by page, as Server-Sent Events, or as a Linked Data Event Stream."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from typing import Annotated, Literal
from urllib.parse import urlencode

import pyarrow as pa
from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from engine.messages import Micros
from epsparql.deferred_methods import dataclass
from pipeline.errors import Gone
from pipeline.formats.batches.timestamps import instant
from pipeline.log.catalog import Registration
from pipeline.registrations.query_cache import find_form, get_shape
from pipeline.solutions.event_stream_pages import MEDIA_TYPES, PAGE, EventStreamAddresses, write_event_page, write_root
from pipeline.solutions.formats import CSV, LD_JSON, N_QUADS, NDJSON, SPARQL_JSON, TRIG, TURTLE, Changes, Form, Triples, version_of_page, write_page
from pipeline.solutions.json_encoder import Envelope
from pipeline.solutions.result_kinds import InstanceLife
from pipeline.solutions.solution_ids import Key, KeyRange, key_of
from pipeline.solutions.solution_log import listed
from server.dependencies import INSTANCE, READ, Shared
from server.http import connection_limits
from server.http.content_negotiation import choose_media_type, versioned
from server.http.event_streams import EVENT_STREAM, HEADERS, IDLE, RETRY
from server.http.path_names import Instance, Name, encode_name
from server.http.problem_details import Fault, Problem, bad_request, describe_responses, unsupported
from server.query_output.page_cache import Notice
from server.query_output.promotion_notices import split_by_form
from server.query_output.watermark_progress import QueryProgress
from server.registrations.catch_up_rules import refuse_revised, refuse_static_rule
from server.service import Service
from server.subscriptions.query_follower import End, Idle, follow_query

router = APIRouter(tags=["solutions"])
JSON = "application/json"
_TABLES = (SPARQL_JSON, CSV, NDJSON, JSON)
_GRAPHS = (TURTLE, TRIG, N_QUADS, NDJSON, LD_JSON)
NEWEST = "newest"
_IMMUTABLE = "max-age=31536000, immutable"


def list_media_types(form: Form) -> tuple[str, ...]:
    """Return the media types of such solutions; the first is the default."""
    if isinstance(form, Changes):
        return (NDJSON,)
    return _GRAPHS if isinstance(form, Triples) else _TABLES


async def _read_range(
    name: Name,
    service: Shared,
    after: Annotated[str | None, Query(description="Solutions after the one with this id are read.")] = None,
    before: Annotated[str | None, Query(description="Solutions before the one with this id are read.")] = None,
    first: Annotated[str | None, Query(alias="from", description="Solutions that end at this xsd:dateTime or later are read.")] = None,
    last: Annotated[str | None, Query(alias="to", description="Solutions that end at this xsd:dateTime or earlier are read.")] = None,
    order: Annotated[Literal["oldest", "newest"], Query(description="The order of the page; the log is read from that end.")] = "oldest",
) -> KeyRange:
    """Return the range that the parameters select. Raises: Fault 400, 404."""
    service.catalog.get_query(name)
    bounds = _parse_id("after", after, name), _parse_id("before", before, name)
    times = _parse_time("from", first, name), _parse_time("to", last, name)
    if times[0] is not None and times[1] is not None and times[0] > times[1]:
        raise bad_request("bad-range", "from is later than to, so nothing can lie between them", expected="from <= to", query=name)
    return KeyRange(*bounds, newest=order == NEWEST).within(*times)


def _parse_id(member: str, text: str | None, query: str) -> Key | None:
    """Return the key of an id. Raises: Fault 400."""
    try:
        return None if text is None else key_of(text)
    except ValueError as error:
        raise bad_request("bad-id", f"{member}: {error}", expected="the id of a solution", query=query) from None


def _parse_time(member: str, text: str | None, query: str) -> Micros | None:
    """Return the instant of an xsd:dateTime. Raises: Fault 400."""
    try:
        return None if text is None else instant(text)
    except ValueError as error:
        expected = "an xsd:dateTime; the + of a time zone is written %2B"
        raise bad_request("bad-time", f"{member}: {error}", expected=expected, query=query) from None


@router.get(
    "/queries/{name}/solutions",
    dependencies=[READ],
    summary="Read a page of solutions; the Link header leads to the next page",
    responses=describe_responses(
        [400, 404, 406, 410, 429],
        success={
            200: {
                "description": "Solutions, in order of emission, or the newest first",
                "content": {media: {} for media in dict.fromkeys(_TABLES + _GRAPHS)},
            }
        },
    ),
    response_class=Response,
)
async def get_solutions(
    name: Name,
    request: Request,
    service: Shared,
    keys: Annotated[KeyRange, Depends(_read_range)],
    limit: Annotated[int, Query(ge=1, le=100_000)] = 1000,
    wait: Annotated[float, Query(ge=0, description="The server waits up to this many seconds for a first solution.")] = 0.0,
) -> Response:
    return await _answer_page(service, request, _Part(service, service.catalog.get_query(name)), keys, limit, wait)


@router.get(
    "/queries/{name}/instances/{instance}/solutions",
    dependencies=[INSTANCE],
    summary="Read a page of the solutions of one instance; the Link header leads to the next page",
    responses=describe_responses(
        [400, 404, 406, 409, 410, 429],
        success={
            200: {
                "description": "Solutions, as those of the query",
                "content": {media: {} for media in _TABLES},
            }
        },
    ),
    response_class=Response,
)
async def get_instance_solutions(
    name: Name,
    instance: Instance,
    request: Request,
    service: Shared,
    keys: Annotated[KeyRange, Depends(_read_range)],
    limit: Annotated[int, Query(ge=1, le=100_000)] = 1000,
    wait: Annotated[float, Query(ge=0, description="The server waits up to this many seconds for a first solution.")] = 0.0,
) -> Response:
    registration = service.catalog.get_query(name)
    return await _answer_page(service, request, _Part(service, registration, service.catalog.get_life(registration, instance)), keys, limit, wait)


@dataclass(frozen=True, slots=True)
class _Part:
    """Reads the solutions of a query, or those of one of its instances."""

    service: Service
    registration: Registration
    life: InstanceLife | None = None

    @property
    def address(self) -> str:
        query = f"/queries/{encode_name(self.registration.name)}"
        return f"{query}/solutions" if self.life is None else f"{query}/instances/{encode_name(self.life.instance)}/solutions"

    def read_page(self, keys: KeyRange, limit: int) -> tuple[pa.RecordBatch, str | None, bool]:
        """Return up to `limit` solutions (STORED) of a range, the id of the last one, and whether nothing follows it.

        Raises: Gone.
        """
        solutions, registered = self.service.solutions, self.registration.registered
        if self.life is None:
            found = solutions.read_range(registered, keys, limit)
        else:
            found, _ = solutions.read_instance(registered, self.life, keys, limit)
        return found, listed(found.slice(found.num_rows - 1))[0].id if found.num_rows else None, found.num_rows < limit


async def _answer_page(service: Service, request: Request, part: _Part, keys: KeyRange, limit: int, wait: float) -> Response:
    registration = part.registration
    refuse_static_rule(registration)
    form = find_form(registration.text, registration.emit)
    if isinstance(form, Changes) and not {"from", "to"}.isdisjoint(request.query_params):
        detail = "the changes of a revised query are in order of the log, not of time"
        raise bad_request("bad-range", detail, expected="after or before", query=registration.name)
    accept = request.headers.get("accept")
    choose_media_type(accept, list_media_types(form))  # so that nobody waits for what is refused anyway
    if wait:
        await _wait_for_solution(part, keys, min(wait, service.settings.max_wait_s))
    async with service.admission.answers.making:
        read, last, is_last = await asyncio.to_thread(part.read_page, keys, limit)
        version = await asyncio.to_thread(version_of_page, read, form)
        media_type = choose_media_type(accept, list_media_types(form), version)
        written_as = SPARQL_JSON if media_type == JSON else media_type  # clients of plain JSON, such as Grafana, ask for the general type
        parts = split_by_form(service.catalog.refresh(registration) or registration, read)[
            : None if media_type == NDJSON else 1
        ]  # others have one head
        found = pa.concat_batches([each for each, _ in parts])
        if found.num_rows < read.num_rows:
            last, is_last = listed(found.slice(found.num_rows - 1))[0].id, False
        link = _link_next_page(part.address, request, last, limit, is_last=is_last)
        written = await asyncio.to_thread(lambda: b"".join(write_page(written_as, each, of) for each, of in parts))
    return service.admission.answers.create_response(written, versioned(media_type, version), link)


def _link_next_page(path: str, request: Request, last: str | None, limit: int, *, is_last: bool) -> dict[str, str]:
    """Return the header that leads on from the id `last`. Newest first, nothing follows the last page."""
    given = request.query_params
    kept = {member: given[member] for member in ("order", "after", "before", "from", "to") if given.get(member)}
    newest = kept.get("order") == NEWEST
    if newest and is_last:
        return {}
    if last is not None:
        kept["before" if newest else "after"] = last
    following = f"{path}?{urlencode(kept | {'limit': str(limit)})}"
    return {"Link": f'<{following}>; rel="next"'}


async def _wait_for_solution(part: _Part, keys: KeyRange, wait_s: float) -> None:
    """Wait until there is a solution in the range, or no more can come, but at most `wait_s`."""
    service, registration = part.service, part.registration
    deadline = asyncio.get_running_loop().time() + wait_s
    while True:
        seen = service.notifier.generation
        ended = service.catalog.with_state(registration).state in ("completed", "failed")  # before reading, so that nothing can come in between
        found, _, _ = await asyncio.to_thread(part.read_page, keys, 1)
        left_s = deadline - asyncio.get_running_loop().time()
        over = service.lifecycle.stopping.is_set() or not service.catalog.is_current(registration) or ended
        if found.num_rows or left_s <= 0 or over:
            return
        await service.notifier.wait_for_news(seen, left_s)


_FINISHED = ": no further solution will follow\n\n"
"""Progress is told in a comment, because clients would take an event without an id for a solution."""


@router.get(
    "/queries/{name}/events",
    dependencies=[READ],
    summary="Follow a query's solutions as Server-Sent Events",
    responses=describe_responses(
        [400, 404, 429, 410],
        success={
            200: {
                "description": "Events; the id of each is its solution's id. An event `promoted` tells that another text took the "
                "query's place, and a comment that no further solution will follow",
                "content": {EVENT_STREAM: {"schema": {"type": "string"}}},
            }
        },
    ),
    response_class=Response,
)
async def get_events(
    name: Name,
    service: Shared,
    after: Annotated[str | None, Query(description="This has the meaning of Last-Event-ID, for the first connection.")] = None,
    last_event_id: Annotated[str | None, Header(description="This is the id of the last event that was already read.")] = None,
) -> Response:
    return await _answer_events(service, service.catalog.get_query(name), last_event_id or after)


@router.get(
    "/queries/{name}/instances/{instance}/events",
    dependencies=[INSTANCE],
    summary="Follow the solutions of one instance as Server-Sent Events",
    responses=describe_responses(
        [400, 404, 409, 429, 410],
        success={200: {"description": "Events, as those of the query", "content": {EVENT_STREAM: {"schema": {"type": "string"}}}}},
    ),
    response_class=Response,
)
async def get_instance_events(
    name: Name,
    instance: Instance,
    service: Shared,
    after: Annotated[str | None, Query(description="This has the meaning of Last-Event-ID, for the first connection.")] = None,
    last_event_id: Annotated[str | None, Header(description="This is the id of the last event that was already read.")] = None,
) -> Response:
    registration = service.catalog.get_query(name)
    return await _answer_events(service, registration, last_event_id or after, service.catalog.get_life(registration, instance))


async def _answer_events(service: Service, registration: Registration, last: str | None, life: InstanceLife | None = None) -> Response:
    refuse_static_rule(registration)
    try:
        await asyncio.to_thread(service.solutions.read, registration.registered, last, 1)
    except ValueError as error:
        raise bad_request("bad-id", f"Last-Event-ID: {error}", expected="the id of a solution", query=registration.name) from None
    service.admission.connections.check_follower(registration.registered)
    return StreamingResponse(_stream_events(service, registration, last, life), media_type=EVENT_STREAM, headers=HEADERS)


async def _stream_events(service: Service, registration: Registration, after: str | None, life: InstanceLife | None) -> AsyncIterator[str | bytes]:
    yield RETRY
    with service.admission.connections.count_follower(connection_limits.EVENT_STREAM, registration.registered):
        async for item in follow_query(service, registration, after, Envelope.EVENT, life):
            match item:
                case Idle():
                    yield IDLE
                case QueryProgress():
                    if item.finished:
                        yield _FINISHED
                case End():
                    yield f": {item.value}\n\n"
                    return
                case Notice():
                    yield f"event: promoted\nid: {item.id}\ndata: {item.text}\n\n"
                case page:
                    own = page.written.text if life is None else page.join_texts(life)
                    service.admission.connections.sent[connection_limits.EVENT_STREAM] += len(page) if own else 0
                    if own:
                        yield own


@router.get(
    "/queries/{name}/ldes",
    dependencies=[READ],
    summary="Read a query's solutions as a Linked Data Event Stream",
    responses=describe_responses(
        [400, 404, 406, 410, 429, 422],
        success={
            200: {
                "description": "The root, which leads to the first page; or a page of 250 solutions, which leads to the next one",
                "content": {media: {} for media in MEDIA_TYPES},
            },
            304: {"description": "The page is still the one that If-None-Match names"},
        },
    ),
    response_class=Response,
)
async def get_event_stream(
    name: Name,
    request: Request,
    service: Shared,
    registered: Annotated[int | None, Query(description="This is the registration whose page is read; the root names it.")] = None,
    page: Annotated[int | None, Query(ge=0, le=2**40, description="This is the number of the page; without it the root is read.")] = None,
    if_none_match: Annotated[str | None, Header(description="This is the ETag of the page that the client has.")] = None,
) -> Response:
    registration = service.catalog.get_query(name)
    refuse_static_rule(registration)
    _check_page(registration, registered, page)
    accept = request.headers.get("accept")
    media_type = choose_media_type(accept, tuple(MEDIA_TYPES))
    addresses = EventStreamAddresses(f"{request.base_url}queries/{encode_name(name)}/ldes", registration.registered)
    tally = await asyncio.to_thread(service.solutions.tally, registration.registered)
    if page is None:
        first = -(-tally.gone // PAGE)  # of the pages that are kept, the first one that is whole
        headers = _describe_page(f"{registration.registered}-{first}", full=False)
        return Response(write_root(addresses, first, media_type), media_type=media_type, headers=headers)
    held = min(tally.count - page * PAGE, PAGE)
    if held < 0:
        raise Fault(Problem(HTTPStatus.NOT_FOUND, "unknown-page", f"the last page has the number {tally.count // PAGE}", query=name))
    headers = _describe_page(f"{registration.registered}-{page}-{held}", full=held == PAGE)
    if _is_known(if_none_match, headers):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    found = await asyncio.to_thread(service.solutions.read_rank, registration.registered, page * PAGE, held)
    version = version_of_page(found, Triples())
    media_type = choose_media_type(accept, tuple(MEDIA_TYPES), version)
    written = await asyncio.to_thread(write_event_page, addresses, page, listed(found), media_type)
    return service.admission.answers.create_response(written, versioned(media_type, version), headers)


def _check_page(registration: Registration, registered: int | None, page: int | None) -> None:
    """Check that the query has an event stream, and that the page is one of it. Raises: Fault 400, 409, 422; Gone."""
    name = registration.name
    refuse_revised(registration, "be an event stream, whose members stay", "read its changelog at /solutions")
    if not isinstance(get_shape(registration.text).form, Triples):
        raise unsupported("only graphs are members of an event stream: write the query with CONSTRUCT or DESCRIBE", query=name)
    if (registered is None) != (page is None):
        raise bad_request("bad-page", "registered and page come together", expected="both, or neither for the root", query=name)
    if registered is not None and registered != registration.registered:
        raise Gone(f"the query {name!r} was registered again, and has another event stream now: begin at its root")


def _describe_page(version: str, *, full: bool) -> dict[str, str]:
    return {"ETag": f'W/"{version}"', "Vary": "Accept", "Cache-Control": _IMMUTABLE if full else "no-cache"}


def _is_known(if_none_match: str | None, headers: Mapping[str, str]) -> bool:
    """Return whether the client has this version already."""
    return if_none_match is not None and headers["ETag"] in map(str.strip, if_none_match.split(","))
