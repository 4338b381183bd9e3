"""Shows the last events of a stream, follows them, and shows what they carry."""

import asyncio
from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from pipeline.formats.batches.timestamps import iso
from pipeline.formats.body_parser import N_QUADS, NDJSON
from pipeline.inspection.backward_reader import Look
from pipeline.inspection.stream_profile import SeenName, StreamProfile
from server.dependencies import INGEST, Shared
from server.http.content_negotiation import choose_media_type
from server.http.event_streams import EVENT_STREAM, HEADERS
from server.http.path_names import Name, encode_name
from server.http.problem_details import Fault, Problem, bad_request, describe_responses
from server.inspection.event_lines import LineWriter, parse_event_id, write_event_texts, write_quads
from server.service import Service
from server.subscriptions.stream_tail import start_tail, stream_tail

router = APIRouter(tags=["streams"])
MOST_EVENTS, MOST_NAMES = 1000, 1000
MOST_SHOWN, LONGEST_SHOWN = 16_000_000, 1000
"""An answer with events has at most this many characters, and a name or example in a profile at most this many."""
_NO_STREAM = describe_responses([404])


class SeenDocument(BaseModel):
    """Counts the events that carried a predicate, class or datatype.

    `first` and `last` are the least start and the greatest end of them. `rate` is how many came a second, lately.
    `example` is the triple of one.
    """

    name: str
    count: int
    first: str
    last: str
    rate: float
    example: str


class SeenList(BaseModel):
    """Lists names by their counts. `others` is the number of rarer names, which are left out."""

    names: list[SeenDocument]
    others: int


class ProfileDocument(BaseModel):
    """Describes what the last events of a stream carry, counted when it is asked for.

    `events` were read, `late` ones among them, from the log position `since` on. `lasting` of them start before they
    end. `complete` says whether these are all events of the stream.

    `rate` is how many events came a second: in the last five minutes, or in the time that the events cover if that is
    shorter.
    """

    events: int
    late: int
    lasting: int
    since: int
    complete: bool
    rate: float
    predicates: SeenList
    classes: SeenList
    datatypes: SeenList


@router.get(
    "/streams/{name}/events",
    dependencies=[INGEST],
    summary="Show the last events of a stream, the newest first, or follow them as Server-Sent Events",
    responses=describe_responses(
        [400, 404, 406, 410, 413, 429],
        success={
            200: {
                "description": "Each line is an event. The header Epsparql-Read-From is the log position back to which the server read. "
                "As text/event-stream, the last events come the oldest first, and then those that arrive; the id of each is its event's id.",
                "content": {media: {"schema": {"type": "string"}} for media in (NDJSON, N_QUADS, EVENT_STREAM)},
            }
        },
    ),
    response_class=Response,
)
async def get_last_events(
    name: Name,
    request: Request,
    service: Shared,
    last: Annotated[int, Query(ge=0, le=MOST_EVENTS, description="This is the number of events.")] = 20,
    before: Annotated[
        int | None, Query(ge=0, description="Only bodies before this log position are looked at. An event stream has no such end.")
    ] = None,
    after: Annotated[str | None, Query(description="This has the meaning of Last-Event-ID, for the first connection.")] = None,
    last_event_id: Annotated[str | None, Header(description="An event stream continues after the event with this id.")] = None,
) -> Response:
    media_type = choose_media_type(request.headers.get("accept"), (NDJSON, N_QUADS, EVENT_STREAM))
    if media_type == EVENT_STREAM:
        if before is not None:
            raise bad_request("bad-range", "an event stream has no end, so it takes no ?before=", expected="after")
        return await _follow_events(name, service, last, last_event_id or after)
    if after is not None:
        raise bad_request("bad-range", "?after= is for event streams", expected=f"Accept: {EVENT_STREAM}, or before")
    stream = service.catalog.get_stream(name)
    look = await service.inspector.read_last(stream, last, before) if stream.accepted and last else Look((), service.log.head(), is_cut=False)
    headers = {"Epsparql-Read-From": str(look.read_from)}
    if look.is_cut:
        left = last - sum(piece.rows.num_rows for piece in look.pieces)
        headers["Link"] = f'</streams/{encode_name(name)}/events?last={left}&before={look.read_from}>; rel="next"'
    text = await asyncio.to_thread(_format_events, look, write_quads if media_type == N_QUADS else write_event_texts)
    return service.admission.answers.create_response(text.encode(), media_type, headers)


async def _follow_events(name: str, service: Service, last: int, after: str | None) -> Response:
    """Return the event stream. Raises: Fault 400, 404, 429; Gone."""
    stream = service.catalog.get_stream(name)
    try:
        start = await start_tail(service, stream, last, None if after is None else parse_event_id(after))
    except ValueError as error:
        raise bad_request("bad-id", f"Last-Event-ID: {error}", expected="the id of an event, such as 42-1") from None
    service.admission.connections.check_follower(stream.name)
    return StreamingResponse(stream_tail(service, stream, start), media_type=EVENT_STREAM, headers=HEADERS)


def _format_events(look: Look, write: LineWriter) -> str:
    """Return the events as lines, the newest first. Raises: Fault 413."""
    lines: list[str] = []
    size = 0
    for piece in look.pieces:
        for line in reversed([*write(piece)]):
            lines.append(line)
            size += len(line)
            if size > MOST_SHOWN and len(lines) > 1:
                detail = f"the last {len(lines)} events have more than {MOST_SHOWN:,} characters; ask for fewer, as in ?last={len(lines) - 1}"
                raise Fault(Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "answer-too-large", detail))
    return "".join(f"{line}\n" for line in lines)


@router.get(
    "/streams/{name}/profile",
    dependencies=[INGEST],
    summary="Show the predicates, classes and datatypes that the last events of a stream carry",
    responses=_NO_STREAM,
)
async def get_profile(name: Name, service: Shared) -> ProfileDocument:
    stream = service.catalog.get_stream(name)
    found = await service.inspector.profile(stream) if stream.accepted else StreamProfile(0, 0, service.log.head(), is_complete=True, rate=0.0)
    return ProfileDocument(
        events=found.events,
        late=found.late,
        lasting=found.lasting,
        since=found.since,
        complete=found.is_complete,
        rate=found.rate,
        predicates=_list_seen(found.predicates),
        classes=_list_seen(found.classes),
        datatypes=_list_seen(found.datatypes),
    )


def _list_seen(seen: Sequence[SeenName]) -> SeenList:
    names = [
        SeenDocument(
            name=_shorten(each.name), count=each.count, first=iso(each.first), last=iso(each.last), rate=each.rate, example=_shorten(each.example)
        )
        for each in seen[:MOST_NAMES]
    ]
    return SeenList(names=names, others=len(seen) - len(names))


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"
