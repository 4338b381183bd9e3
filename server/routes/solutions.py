"""Serves solutions page by page, or as Server-Sent Events."""

import asyncio
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Annotated
from urllib.parse import urlencode

import pyarrow as pa
from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from pipeline.log.catalog import Registration
from pipeline.registrations.query_cache import get_shape
from pipeline.solutions.formats import CSV, LD_JSON, N_QUADS, NDJSON, SPARQL_JSON, TRIG, TURTLE, Form, Triples, write_page
from pipeline.solutions.solution_log import listed
from server.dependencies import READ, Shared
from server.http.connection_limits import EVENT_STREAM
from server.http.content_negotiation import choose_media_type
from server.http.path_names import Name, encode_name
from server.http.problem_details import bad_request, describe_responses
from server.query_output.watermark_progress import QueryProgress
from server.service import Service
from server.subscriptions.query_follower import End, Idle, follow_query

router = APIRouter(tags=["solutions"])
_TABLES = (SPARQL_JSON, CSV, NDJSON)
_GRAPHS = (TURTLE, TRIG, N_QUADS, NDJSON, LD_JSON)
_EVENT_STREAM = "text/event-stream"
_RETRY = "retry: 1000\n\n"


def list_media_types(form: Form) -> tuple[str, ...]:
    """Return the media types of such solutions; the first is the default."""
    return _GRAPHS if isinstance(form, Triples) else _TABLES


@router.get(
    "/queries/{name}/solutions",
    dependencies=[READ],
    summary="Read a page of solutions; the Link header leads to the next page",
    responses=describe_responses(
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.NOT_FOUND,
        HTTPStatus.NOT_ACCEPTABLE,
        HTTPStatus.GONE,
        success={200: {"description": "Solutions, in order of emission", "content": {media: {} for media in dict.fromkeys(_TABLES + _GRAPHS)}}},
    ),
    response_class=Response,
)
async def get_solutions(
    name: Name,
    request: Request,
    service: Shared,
    after: Annotated[str | None, Query(description="This is the id of the last solution that was already read.")] = None,
    limit: Annotated[int, Query(ge=1, le=100_000)] = 1000,
    wait: Annotated[float, Query(ge=0, description="The server waits up to this many seconds for a first solution.")] = 0.0,
) -> Response:
    registration = service.catalog.get_query(name)
    form = get_shape(registration.text).form
    media_type = choose_media_type(request.headers.get("accept"), list_media_types(form))
    found = await _wait_for_page(service, registration, after, limit, min(wait, service.settings.max_wait_s))
    last = listed(found.slice(found.num_rows - 1))[0].id if found.num_rows else after
    parameters = {"after": last} if last else {}
    following = f"/queries/{encode_name(name)}/solutions?{urlencode(parameters | {'limit': str(limit)})}"
    return Response(
        await asyncio.to_thread(write_page, media_type, found, form), media_type=media_type, headers={"Link": f'<{following}>; rel="next"'}
    )


async def _wait_for_page(service: Service, registration: Registration, after: str | None, limit: int, wait_s: float) -> pa.RecordBatch:
    deadline = asyncio.get_running_loop().time() + wait_s
    while True:
        seen = service.notifier.generation
        ended = service.catalog.with_state(registration).state in ("completed", "failed")  # before reading, so that nothing can come in between
        try:
            found = await asyncio.to_thread(service.solutions.read, registration.registered, after, limit)
        except ValueError as error:
            raise bad_request("bad-id", f"after: {error}", expected="the id of a solution", query=registration.name) from None
        left_s = deadline - asyncio.get_running_loop().time()
        over = service.lifecycle.stopping.is_set() or not service.catalog.is_current(registration) or ended
        if found.num_rows or left_s <= 0 or over:
            return found
        await service.notifier.wait_for_news(seen, left_s)


@router.get(
    "/queries/{name}/events",
    dependencies=[READ],
    summary="Follow a query's solutions as Server-Sent Events",
    responses=describe_responses(
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.NOT_FOUND,
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.GONE,
        success={200: {"description": "Events; the id of each is its solution's id", "content": {_EVENT_STREAM: {"schema": {"type": "string"}}}}},
    ),
    response_class=Response,
)
async def get_events(
    name: Name,
    service: Shared,
    after: Annotated[str | None, Query(description="This has the meaning of Last-Event-ID, for the first connection.")] = None,
    last_event_id: Annotated[str | None, Header(description="This is the id of the last event that was already read.")] = None,
) -> Response:
    registration = service.catalog.get_query(name)
    last = last_event_id or after
    try:
        await asyncio.to_thread(service.solutions.read, registration.registered, last, 1)
    except ValueError as error:
        raise bad_request("bad-id", f"Last-Event-ID: {error}", expected="the id of a solution", query=name) from None
    service.admission.connections.check_follower(registration.registered)
    return StreamingResponse(
        _stream_events(service, registration, last), media_type=_EVENT_STREAM, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    )


async def _stream_events(service: Service, registration: Registration, after: str | None) -> AsyncIterator[str]:
    yield _RETRY
    with service.admission.connections.count_follower(EVENT_STREAM, registration.registered):
        async for item in follow_query(service, registration, after, service.settings.comment_s):
            match item:
                case Idle():
                    yield ": \n\n"
                case QueryProgress():
                    pass  # clients would take an event without an id for a solution
                case End():
                    yield f": {item.value}\n\n"
                    return
                case page:
                    service.admission.connections.sent[EVENT_STREAM] += len(page)
                    yield "".join(f"id: {line.id}\ndata: {line.text}\n\n" for line in page)
