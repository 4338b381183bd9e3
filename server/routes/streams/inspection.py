"""Shows the last events of a stream, and what they carry."""

import asyncio
import json
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel

from pipeline.formats.batches.timestamps import iso
from pipeline.formats.body_parser import N_QUADS, NDJSON
from pipeline.inspection.backward_reader import Look, RecentRows
from pipeline.inspection.stream_profile import SeenName, StreamProfile
from server.dependencies import INGEST, Shared
from server.http.content_negotiation import choose_media_type
from server.http.path_names import Name, encode_name
from server.http.problem_details import Fault, Problem, describe_responses

router = APIRouter(tags=["streams"])
MOST_EVENTS, MOST_NAMES = 1000, 1000
MOST_SHOWN, LONGEST_SHOWN = 16_000_000, 1000
"""An answer with events has at most this many characters, and a name or example in a profile at most this many."""
_NO_STREAM = describe_responses(HTTPStatus.NOT_FOUND)


class SeenDocument(BaseModel):
    """Counts the events that carried a predicate, class or datatype.

    `first` and `last` are the least start and the greatest end of them. `rate` is how many came a second, lately. `example` is the triple of one.
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

    `events` were read, `late` ones among them, from the log position `since` on. `complete` says whether these are all events of the stream.

    `rate` is how many events came a second: in the last five minutes, or in the time that the events cover if that is shorter.
    """

    events: int
    late: int
    since: int
    complete: bool
    rate: float
    predicates: SeenList
    classes: SeenList
    datatypes: SeenList


@router.get(
    "/streams/{name}/events",
    dependencies=[INGEST],
    summary="Show the last events of a stream, the newest first",
    responses=describe_responses(
        HTTPStatus.NOT_FOUND,
        HTTPStatus.NOT_ACCEPTABLE,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        success={
            200: {
                "description": "Each line is an event. The header Epsparql-Read-From is the log position back to which the server read.",
                "content": {media: {"schema": {"type": "string"}} for media in (NDJSON, N_QUADS)},
            }
        },
    ),
    response_class=Response,
)
async def get_last_events(
    name: Name,
    request: Request,
    service: Shared,
    last: Annotated[int, Query(ge=1, le=MOST_EVENTS, description="This is the number of events.")] = 20,
    before: Annotated[int | None, Query(ge=0, description="Only bodies before this log position are looked at.")] = None,
) -> Response:
    media_type = choose_media_type(request.headers.get("accept"), (NDJSON, N_QUADS))
    stream = service.catalog.get_stream(name)
    look = await service.inspector.read_last(stream, last, before) if stream.accepted else Look((), service.log.head(), is_cut=False)
    headers = {"Epsparql-Read-From": str(look.read_from)}
    if look.is_cut:
        left = last - sum(piece.rows.num_rows for piece in look.pieces)
        headers["Link"] = f'</streams/{encode_name(name)}/events?last={left}&before={look.read_from}>; rel="next"'
    text = await asyncio.to_thread(_format_events, look, _format_quad if media_type == N_QUADS else _format_event)
    return Response(text, media_type=media_type, headers=headers)


def _format_events(look: Look, form: Callable[[RecentRows, dict[str, Any]], str]) -> str:
    """Return the events as lines, the newest first. Raises: Fault 413."""
    lines: list[str] = []
    size = 0
    for piece in look.pieces:
        for row in reversed(range(piece.rows.num_rows)):
            lines.append(form(piece, {column: piece.rows.column(column)[row] for column in piece.rows.schema.names}))
            size += len(lines[-1])
            if size > MOST_SHOWN and len(lines) > 1:
                detail = f"the last {len(lines)} events have more than {MOST_SHOWN:,} characters; ask for fewer, as in ?last={len(lines) - 1}"
                raise Fault(Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "answer-too-large", detail))
    return "".join(f"{line}\n" for line in lines)


def _format_event(piece: RecentRows, row: dict[str, Any]) -> str:
    terms = {name: row[name].as_py() for name in "spog"}
    times = {name: iso(row[name].value) for name in ("start", "end")} | {"arrived": iso(piece.arrived)}
    return json.dumps(terms | times | {"late": row["late"].as_py(), "offset": piece.offset + 1}, ensure_ascii=False)


def _format_quad(_piece: RecentRows, row: dict[str, Any]) -> str:
    return " ".join(term for name in "spog" if (term := row[name].as_py()) is not None) + " ."


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
